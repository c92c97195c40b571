"""Metrics of a run for monitoring systems: sums by operation and size class, histograms of latencies.

Results are passed on half a second of them together, so that they cost little (:class:`BatchingSink`). The
loop counts them with numpy and leaves a copy of the sums where the threads of those that ask for them or
deliver them find it, so that neither waits for the other (:class:`CountingSink`).

The table of metrics says what each is called, what it is a number of, and how it is found in the sums
(:class:`MetricDefinition`). A metric is a row, and every form in which metrics are written has it. Names
follow from the key and the unit by the rules with which OpenTelemetry's names become those of Prometheus, so
that a Prometheus server has the same names from a collector
(https://opentelemetry.io/docs/specs/otel/compatibility/prometheus_and_openmetrics/).
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ssbench.base.version import __version__
from ssbench.document.figures import COUNTED_FIGURES, Figure
from ssbench.results.block import COUNTERS, ResultBlock, count_results, join_blocks, leave_out_delayed
from ssbench.results.run_description import MasterFacts, RunSummary, WorkerFacts
from ssbench.scenario.model import Scenario
from ssbench.store import contract

#: Seconds between two moments at which what was gathered is counted.
_BATCH_SECONDS = 0.5

#: Seconds between two looks at the load generator, which of thousands of workers take their time.
_LOOK_SECONDS = 5.0

#: Seconds that the mean number of operations in flight is of.
_IN_FLIGHT_SECONDS = 5.0

#: Causes come from workers: from this many on, new ones are called "other".
_MAX_CAUSES = 50


@dataclass(frozen=True, slots=True)
class RunMonitor:
    """Where to ask about a run that is under way.

    ``workers`` returns how many workers can get jobs, and how many are expected; ``so_far`` the stat file
    and what else is known, None before the benchmark.
    """

    workers: Callable[[], tuple[int, int]]
    so_far: Callable[[], tuple[Path, RunSummary] | None] = lambda: None


class BatchingSink(ABC):
    """A :class:`~ssbench.results.block.Sink` that passes results on, half a second of them together.

    ``summary`` is what was last known of the workers and the master, ``path`` the stat file (None before
    the benchmark). ``in_flight`` is how many operations were in flight in the last seconds, on average over
    those that have ended.
    """

    def __init__(self, scenario: Scenario, source: RunMonitor) -> None:
        self.scenario = scenario
        self.operations = scenario.operation_table
        self.source = source
        self.path: Path | None = None
        self.summary = RunSummary(ended=0.0)
        self.in_flight = 0.0
        self._blocks: list[ResultBlock] = []
        self._next: float | None = None
        self._look_at = 0.0
        #: Moments, and for how many seconds the operations took that ended before each.
        self._busy: deque[tuple[float, float]] = deque()
        self._causes: set[str] = set()

    def add(self, block: ResultBlock) -> None:
        """Receive results."""
        self._blocks.append(block)

    def tick(self, now: float) -> None:
        """Pass on what was gathered, where it is time to."""
        if self._next is None:
            self._look_at = now
            self._busy.clear()
            self.begun()
        elif now < self._next:
            return
        self._next = now + _BATCH_SECONDS
        if now >= self._look_at:
            self._look_at = now + _LOOK_SECONDS
            self._look()
        block = self._gathered()
        self._count_in_flight(block, now)
        self.take(block)

    def end(self, summary: RunSummary) -> None:
        """Pass on the rest; another run may begin."""
        self._look()
        self.summary = summary
        self.in_flight = 0.0
        self.take(self._gathered())
        self._next = None
        self.ended(summary)

    def _look(self) -> None:
        found = self.source.so_far()
        if found is not None:
            self.path, self.summary = found

    def _gathered(self) -> ResultBlock | None:
        blocks, self._blocks = self._blocks, []
        return join_blocks(blocks) if blocks else None

    def _count_in_flight(self, block: ResultBlock | None, now: float) -> None:
        # Of failures it may not be known when they were sent.
        seconds = 0.0 if block is None else float(np.nansum(block.completed - block.started))
        busy = self._busy
        busy.append((now, seconds))
        while len(busy) > 1 and busy[1][0] <= now - _IN_FLIGHT_SECONDS:
            busy.popleft()
        # What ended before the first moment took its time before it.
        passed = now - busy[0][0]
        self.in_flight = sum(took for _, took in list(busy)[1:]) / passed if passed > 0 else 0.0

    @abstractmethod
    def begun(self) -> None:
        """The benchmark has begun."""

    @abstractmethod
    def take(self, block: ResultBlock | None) -> None:
        """Take the results of half a second; None where there are none."""

    @abstractmethod
    def ended(self, summary: RunSummary) -> None:
        """The benchmark has ended."""

    def cause(self, name: str) -> str:
        """Return the name of a cause, or "other" where there are too many different ones."""
        if name not in self._causes and len(self._causes) >= _MAX_CAUSES:
            return "other"
        self._causes.add(name)
        return name

    def measure(self, sums: MetricSums) -> None:
        """Set what is measured, and not counted."""
        sums.in_flight = self.in_flight
        sums.workers = self.source.workers()
        sums.facts, sums.master = self.summary.workers, self.summary.master


def group_by_fields(
    block: ResultBlock, *names: str
) -> Iterator[tuple[tuple[int, ...], npt.NDArray[np.intp]]]:
    """Yield the values that some fields have together, and the rows of each."""
    columns = [np.asarray(getattr(block, name), np.int64) for name in names]
    code = np.zeros(len(block), np.int64)
    for column in columns:
        lowest = int(column.min())
        code = code * (int(column.max()) - lowest + 1) + (column - lowest)
    if code.max() < 1 << 16:
        code = code.astype(np.uint16)  # which numpy sorts by radix
    order = np.argsort(code, kind="stable")
    ordered = code[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=ordered[:1] + 1))
    for rows in np.split(order, starts[1:]):
        yield tuple(int(column[rows[0]]) for column in columns), rows


# -- Sums ------------------------------------------------------------------------------------------


#: Upper ends of the buckets of latencies, in seconds.
LATENCY_BUCKETS = (
    *(0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.05, 0.075),
    *(0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 7.5, 10.0, 20.0, 30.0, 60.0),
)
_BUCKET_BOUNDS = np.array(LATENCY_BUCKETS)

#: Causes of errors that are counted from 0 on, so that their rate is right from the first error on. Others
#: appear with their first error.
_USUAL_CAUSES = (
    contract.NOT_FOUND,
    contract.cause_of_status(500),
    contract.cause_of_status(503),
    contract.CONNECT_REFUSED,
    contract.CONNECT_TIMEOUT,
    contract.READ_TIMEOUT,
    contract.RESET,
    contract.CLOSED,
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
    """All that was counted, by operation and size class, and by cause too; and what is known of the run."""

    users: int
    operations: Counter[SampleKey] = field(default_factory=Counter)
    errors: Counter[SampleKey] = field(default_factory=Counter)
    #: Each counter of :data:`ssbench.results.block.COUNTERS`.
    counted: dict[str, Counter[SampleKey]] = field(
        default_factory=lambda: {key: Counter() for key in COUNTERS}
    )
    moved: Counter[SampleKey] = field(default_factory=Counter)
    left_out: Counter[SampleKey] = field(default_factory=Counter)  # successes that are in no histogram
    last_byte: dict[SampleKey, LatencyHistogram] = field(default_factory=dict)
    first_byte: dict[SampleKey, LatencyHistogram] = field(default_factory=dict)
    in_flight: float = 0.0
    workers: tuple[int, int] = (0, 0)
    facts: tuple[WorkerFacts, ...] = ()
    master: MasterFacts | None = None
    run: str = ""
    started: float | None = None  # seconds since 1970; None: it did not yet
    ended: float | None = None  # seconds since 1970; None: it did not yet

    def copied(self) -> MetricSums:
        """Return a copy that what is counted later does not change."""
        made = copy(self)
        for name in ("operations", "errors", "moved", "left_out"):
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
        self.measure(sums)
        sums.run = "" if self.path is None else self.path.name.removesuffix(".gz").removesuffix(".stat")
        if block is not None:
            self._count(block, sums)
            self._count_failures(block, sums)
        self.shown = sums.copied()

    def _begin_at_0(self) -> None:
        """Let each series exist that the scenario makes likely: one that begins above 0 has a wrong rate."""
        sums = self._sums
        for key in _list_drawn_operations(self.scenario):
            sums.operations[key] = sums.moved[key] = sums.left_out[key] = 0
            for each in sums.counted.values():
                each[key] = 0
            sums.last_byte[key] = LatencyHistogram()
            if self.operations.named(key[0]).times_first_byte:
                sums.first_byte[key] = LatencyHistogram()
            sums.errors.update({(*key, cause): 0 for cause in _USUAL_CAUSES})

    def _count(self, block: ResultBlock, sums: MetricSums) -> None:
        failed = block.failed
        whole, beginning = (leave_out_delayed(block, each) for each in (block.last_byte, block.first_byte))
        for values, rows in group_by_fields(block, *_OPERATION_LABELS):
            key = self._label(*values)
            succeeded = rows[~failed[rows]]
            for name, number in count_results(block, rows, succeeded).items():
                sums.counted[name][key] += number
            if not len(succeeded):
                continue
            sums.operations[key] += len(succeeded)
            sums.moved[key] += int(np.maximum(block.size[succeeded], 0).sum())
            last_byte, first_byte = whole[succeeded], beginning[succeeded]
            sums.last_byte.setdefault(key, LatencyHistogram()).add(last_byte)
            sums.left_out[key] += int(np.isnan(last_byte).sum())
            if not np.isnan(first_byte).all():
                sums.first_byte.setdefault(key, LatencyHistogram()).add(first_byte)

    def _count_failures(self, block: ResultBlock, sums: MetricSums) -> None:
        for row, failure in block.failures.items():
            if failure.cause is not None:
                key = self._label(*(int(getattr(block, name)[row]) for name in _OPERATION_LABELS))
                sums.errors[*key, self.cause(failure.cause)] += 1

    def _label(self, operation: int, size_class: int) -> SampleKey:
        """Return the names of the values of the fields :data:`_OPERATION_LABELS`."""
        row = self.operations.get(operation)
        return row.name if row else str(operation), self.scenario.size_classes[size_class].name


def _list_drawn_operations(scenario: Scenario) -> dict[SampleKey, None]:
    """Return the labels of the operations that a scenario draws."""
    return {
        (name, each.name): None
        for part in scenario.parts
        for each in part.size_classes
        for name, weight in each.weights.items()
        if each.share and weight
    }


# -- The table of metrics --------------------------------------------------------------------------


#: Of more workers than this only the greatest values are reported, as those of the worker "busiest".
MAX_LISTED_WORKERS = 200
BUSIEST_WORKER = "busiest"


class MetricKind(Enum):
    """What is done with the values of a metric: counters and histograms grow, gauges are measured."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class MetricUnit(Enum):
    """A unit by its code in UCUM, and the end of Prometheus' names with it."""

    NONE = ("", "")
    SECONDS = ("s", "_seconds")
    BYTES = ("By", "_bytes")
    SHARE = ("1", "_ratio")

    @property
    def code(self) -> str:
        """The code, for OpenTelemetry."""
        return self.value[0]

    @property
    def suffix(self) -> str:
        """The end of a name, for Prometheus."""
        return self.value[1]


MetricSamples = Iterable[tuple[SampleKey, float | LatencyHistogram]]


@dataclass(frozen=True, slots=True)
class MetricDefinition:
    """A row of the table."""

    key: str
    kind: MetricKind
    unit: MetricUnit
    text: str
    labels: tuple[str, ...]
    #: Finds a value for each combination of ``labels`` that there is.
    samples: Callable[[MetricSums], MetricSamples]
    #: Its name for statsd, which gets the greatest value; empty: it does not.
    statsd: str = ""

    @property
    def dotted(self) -> str:
        """The name for OpenTelemetry."""
        return f"ssbench.{self.key}"

    @property
    def name(self) -> str:
        """The name for Prometheus, to which it adds ``_total`` and so on by itself."""
        return f"ssbench_{self.key.replace('.', '_')}{self.unit.suffix}"


#: Those of what is counted: fields of results, of which :class:`CountingSink` names the values.
_OPERATION_LABELS = ("operation", "size_class")
_WORKER_LABELS = ("worker", "host")


def _sample_one(value: Callable[[MetricSums], float | None]) -> Callable[[MetricSums], MetricSamples]:
    """Return the samples of a metric without labels; one that is not known is left out."""

    def found(sums: MetricSums) -> Iterator[tuple[SampleKey, float]]:
        each = value(sums)
        if each is not None:
            yield (), each

    return found


def _sample_workers(value: Callable[[WorkerFacts], float | None]) -> Callable[[MetricSums], MetricSamples]:
    """Return a sample for each worker, NaN where it is not known yet."""

    def found(sums: MetricSums) -> Iterator[tuple[SampleKey, float]]:
        values = [value(worker) for worker in sums.facts]
        if len(values) > MAX_LISTED_WORKERS:
            yield (BUSIEST_WORKER, ""), max((each for each in values if each is not None), default=math.nan)
            return
        for worker, each in zip(sums.facts, values, strict=True):
            yield (str(worker.worker_id), worker.host), math.nan if each is None else each

    return found


def _sample_master(value: str) -> Callable[[MetricSums], MetricSamples]:
    return _sample_one(lambda sums: math.nan if sums.master is None else (getattr(sums.master, value) or 0.0))


_COUNTER, _GAUGE, _HISTOGRAM = MetricKind


def _counter_metric(figure: Figure) -> MetricDefinition:
    """Return the metric of a counter of results."""
    return MetricDefinition(
        figure.key,
        _COUNTER,
        MetricUnit.NONE,
        f"{figure.meaning}.",
        _OPERATION_LABELS,
        lambda sums: sums.counted[figure.key].items(),
    )


METRICS = (
    MetricDefinition(
        "operations",
        _COUNTER,
        MetricUnit.NONE,
        "Successful operations.",
        _OPERATION_LABELS,
        lambda sums: sums.operations.items(),
    ),
    MetricDefinition(
        "errors",
        _COUNTER,
        MetricUnit.NONE,
        "Failed operations.",
        (*_OPERATION_LABELS, "cause"),
        lambda sums: sums.errors.items(),
    ),
    *map(_counter_metric, COUNTED_FIGURES.values()),
    MetricDefinition(
        "moved",
        _COUNTER,
        MetricUnit.BYTES,
        "Bytes of body that successes moved.",
        _OPERATION_LABELS,
        lambda sums: sums.moved.items(),
    ),
    MetricDefinition(
        "latencies_left_out",
        _COUNTER,
        MetricUnit.NONE,
        "Successful operations that no histogram of latencies has, because their worker stalled meanwhile.",
        _OPERATION_LABELS,
        lambda sums: sums.left_out.items(),
    ),
    MetricDefinition(
        "latency",
        _HISTOGRAM,
        MetricUnit.SECONDS,
        "Latency to the last byte.",
        _OPERATION_LABELS,
        lambda sums: sums.last_byte.items(),
    ),
    MetricDefinition(
        "first_byte_latency",
        _HISTOGRAM,
        MetricUnit.SECONDS,
        "Latency to the first byte.",
        _OPERATION_LABELS,
        lambda sums: sums.first_byte.items(),
    ),
    MetricDefinition(
        "in_flight",
        _GAUGE,
        MetricUnit.NONE,
        "Operations in flight, or users busy: the mean of the last 5 s over operations that have ended.",
        (),
        _sample_one(lambda sums: sums.in_flight),
        "in_flight",
    ),
    MetricDefinition(
        "users",
        _GAUGE,
        MetricUnit.NONE,
        "Operations in flight at most.",
        (),
        _sample_one(lambda sums: sums.users),
        "users",
    ),
    MetricDefinition(
        "workers",
        _GAUGE,
        MetricUnit.NONE,
        "Workers that can get jobs.",
        (),
        _sample_one(lambda sums: sums.workers[0]),
        "workers",
    ),
    MetricDefinition(
        "workers_expected",
        _GAUGE,
        MetricUnit.NONE,
        "Workers that were asked for.",
        (),
        _sample_one(lambda sums: sums.workers[1]),
    ),
    MetricDefinition(
        "worker.cpu",
        _GAUGE,
        MetricUnit.SHARE,
        "Share of one core that a worker has used since the benchmark began.",
        _WORKER_LABELS,
        _sample_workers(lambda worker: worker.cpu_share),
        "worker.cpu",
    ),
    MetricDefinition(
        "worker.lag",
        _GAUGE,
        MetricUnit.SECONDS,
        "How late the event loop of a worker has been, 99th percentile since the benchmark began.",
        _WORKER_LABELS,
        _sample_workers(lambda worker: worker.lag_p99),
        "worker.lag_meter",
    ),
    MetricDefinition(
        "master.cpu",
        _GAUGE,
        MetricUnit.SHARE,
        "Share of one core that the master has used since the benchmark began.",
        (),
        _sample_master("cpu_share"),
        "master.cpu",
    ),
    MetricDefinition(
        "master.lag",
        _GAUGE,
        MetricUnit.SECONDS,
        "How late the loop of the master has been at most since the benchmark began.",
        (),
        _sample_master("lag_max"),
    ),
    MetricDefinition(
        "run_start_timestamp",
        _GAUGE,
        MetricUnit.SECONDS,
        "When the benchmark began.",
        (),
        _sample_one(lambda sums: sums.started),
    ),
    MetricDefinition(
        "run_end_timestamp",
        _GAUGE,
        MetricUnit.SECONDS,
        "When the benchmark ended.",
        (),
        _sample_one(lambda sums: sums.ended),
    ),
)


def describe_run(counting: CountingSink) -> dict[str, str]:
    """Return what is known of the run in words; ``run`` is the name of its stat file."""
    return {
        "version": __version__,
        "scenario": counting.scenario.name,
        "label": counting.label,
        "run": counting.shown.run,
    }
