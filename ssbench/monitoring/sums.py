"""Results counted for monitoring systems: sums by operation and size class, histograms of latencies.

The loop counts with numpy twice a second and leaves a copy of the sums where the threads of those that ask
for them or deliver them find it, so that neither waits for the other.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ssbench.monitoring.gathering import BatchingSink, RunMonitor, format_operation_name, group_by_fields
from ssbench.results.block import ResultBlock
from ssbench.results.counters import COUNTERS, count_results
from ssbench.results.description import MasterFacts, RunSummary, WorkerFacts
from ssbench.scenario.model import Scenario
from ssbench.scenario.operation_table import OPERATIONS
from ssbench.store import causes

#: Upper ends of the buckets of latencies, in seconds.
LATENCY_BUCKETS = (
    *(0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.05, 0.075),
    *(0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 7.5, 10.0, 20.0, 30.0, 60.0),
)
_BUCKET_BOUNDS = np.array(LATENCY_BUCKETS)

#: Causes of errors that are counted from 0 on, so that their rate is right from the first error on. Others
#: appear with their first error.
_USUAL_CAUSES = (
    causes.NOT_FOUND,
    causes.cause_of_status(500),
    causes.cause_of_status(503),
    causes.CONNECT_REFUSED,
    causes.CONNECT_TIMEOUT,
    causes.READ_TIMEOUT,
    causes.RESET,
    causes.CLOSED,
)

#: The values of labels.
SampleKey = tuple[str, ...]


@dataclass(slots=True)
class LatencyHistogram:
    """Counts of buckets, the last of which has no upper end, and the sum of all values."""

    counts: npt.NDArray[np.int64] = field(
        default_factory=lambda: np.zeros(len(LATENCY_BUCKETS) + 1, np.int64)
    )
    total: float = 0.0

    def add(self, values: npt.NDArray[np.float64]) -> None:
        """Count values; those that were not measured are left out."""
        values = values[~np.isnan(values)]
        places = np.searchsorted(
            _BUCKET_BOUNDS, values
        )  # a value on a bound belongs to the bucket that it ends
        self.counts = self.counts + np.bincount(places, minlength=len(self.counts))
        self.total += float(values.sum())


@dataclass(slots=True)
class MetricSums:
    """All that was counted, by operation and size class, and by cause too; and what is known of the run.

    ``counted`` has each counter of :data:`ssbench.results.COUNTERS`.
    ``started`` and ``ended`` are seconds since 1970, None where it did not yet.
    """

    users: int
    operations: Counter[SampleKey] = field(default_factory=Counter)
    errors: Counter[SampleKey] = field(default_factory=Counter)
    counted: dict[str, Counter[SampleKey]] = field(
        default_factory=lambda: {key: Counter() for key in COUNTERS}
    )
    moved: Counter[SampleKey] = field(default_factory=Counter)
    last_byte: dict[SampleKey, LatencyHistogram] = field(default_factory=dict)
    first_byte: dict[SampleKey, LatencyHistogram] = field(default_factory=dict)
    in_flight: float = 0.0
    workers: tuple[int, int] = (0, 0)
    facts: tuple[WorkerFacts, ...] = ()
    master: MasterFacts | None = None
    run: str = ""
    started: float | None = None
    ended: float | None = None

    def copied(self) -> MetricSums:
        """Return a copy that what is counted later does not change."""
        made = copy(self)
        for name in ("operations", "errors", "moved"):
            setattr(made, name, Counter(getattr(self, name)))
        made.counted = {name: Counter(each) for name, each in self.counted.items()}
        for name in ("last_byte", "first_byte"):
            setattr(made, name, {key: copy(histogram) for key, histogram in getattr(self, name).items()})
        return made


class CountingSink(BatchingSink):
    """A sink that counts results for all who show or deliver the sums.

    ``shown`` is what other threads see: never changed, only replaced. ``began`` is when counting began, in
    seconds since 1970, ``label`` that of the run. ``on_counted`` are called with the clock of :meth:`tick`
    after each counting, ``on_ended`` when a run has ended; neither may wait.
    """

    def __init__(self, scenario: Scenario, source: RunMonitor, label: str | None = None) -> None:
        super().__init__(scenario, source)
        self.label = label or ""
        self.began = time.time()
        self.on_counted: list[Callable[[float], None]] = []
        self.on_ended: list[Callable[[], None]] = []
        self._sums = MetricSums(scenario.user_count)
        self._begin_at_0()
        self.shown = self._sums.copied()

    def tick(self, now: float) -> None:
        """Count what was gathered, where it is time to."""
        super().tick(now)
        for call in self.on_counted:
            call(now)

    def begun(self) -> None:
        """The benchmark has begun; what runs before it counted stays."""
        self._sums.started, self._sums.ended = time.time(), None

    def ended(self, summary: RunSummary) -> None:
        """The benchmark has ended; what was counted stays until the program ends."""
        self._sums.ended = summary.ended
        self.shown = self._sums.copied()
        for call in self.on_ended:
            call()

    def take(self, block: ResultBlock | None) -> None:
        """Count the results of half a second."""
        sums = self._sums
        sums.in_flight = self.in_flight
        sums.workers = self.source.workers()
        sums.facts, sums.master = self.summary.workers, self.summary.master
        sums.run = "" if self.path is None else self.path.name.removesuffix(".gz").removesuffix(".stat")
        if block is not None:
            self._count(block, sums)
            self._count_failures(block, sums)
        self.shown = sums.copied()

    def _begin_at_0(self) -> None:
        """Let each series exist that the scenario makes likely: one that begins above 0 has a wrong rate."""
        sums = self._sums
        for name, size_class in _list_drawn_operations(self.scenario):
            key = (name, size_class)
            sums.operations[key] = sums.moved[key] = 0
            for each in sums.counted.values():
                each[key] = 0
            sums.last_byte[key] = LatencyHistogram()
            if OPERATIONS.named(name).times_first_byte:
                sums.first_byte[key] = LatencyHistogram()
            sums.errors.update({(*key, cause): 0 for cause in _USUAL_CAUSES})

    def _count(self, block: ResultBlock, sums: MetricSums) -> None:
        failed = block.failed
        for operation, size_class, rows in group_by_fields(block, "operation", "size_class"):
            key = (format_operation_name(operation), self.size_class(size_class))
            succeeded = rows[~failed[rows]]
            for name, number in count_results(block, rows, succeeded).items():
                sums.counted[name][key] += number
            if not len(succeeded):
                continue
            sums.operations[key] += len(succeeded)
            sums.moved[key] += int(np.maximum(block.size[succeeded], 0).sum())
            sums.last_byte.setdefault(key, LatencyHistogram()).add(block.last_byte[succeeded])
            first_byte = block.first_byte[succeeded]
            if not np.isnan(first_byte).all():
                sums.first_byte.setdefault(key, LatencyHistogram()).add(first_byte)

    def _count_failures(self, block: ResultBlock, sums: MetricSums) -> None:
        for row, failure in block.failures.items():
            if failure.cause is not None:
                key = (
                    format_operation_name(int(block.operation[row])),
                    self.size_class(int(block.size_class[row])),
                )
                sums.errors[*key, self.cause(failure.cause)] += 1


def _list_drawn_operations(scenario: Scenario) -> dict[tuple[str, str], None]:
    """Return the operations that a scenario draws, each with the size classes that it is drawn for."""
    return {
        (name, each.name): None
        for part in scenario.parts
        for each in part.size_classes
        for name, weight in each.weights.items()
        if each.share and weight
    }
