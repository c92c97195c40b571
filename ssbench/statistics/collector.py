"""Counts results, block by block: for groups of equal operation, size class and so on; finds the slowest.

Memory: 16 bytes a result, for its two latencies, and 12 for each second and bucket that these lie in, of
which there are hundreds in a second with thousands of results. Everything else is folded in as it comes, some
blocks at a time.

:class:`Collector` counts all of it. Besides the figures of each group it has

- the causes of failures (:class:`CauseCollector`): how many of each, after how long, with which answers;
- the figures of each account, and of each address of a server, where there are several
  (:class:`MembersCollector`). They are kept apart by each of these fields alone, not by operation and size
  class too: a hundred accounts would make thousands of groups. Results of runs that lack the fields cost
  nothing;
- how many objects the operations were about (:class:`ObjectCounts`): with few, a figure is one of their
  devices.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from ssbench.results.block import LOST_CAUSE, ResultBlock, join_blocks
from ssbench.results.result_fields import FIELDS, NO_WORKER, FieldKind, ResultMark
from ssbench.statistics.counted_figures import CountedFigures, FiguresCollector, Groups
from ssbench.statistics.latencies import (
    Latencies,
    LatencyCollector,
    SlowResult,
    make_slow_results,
    measured_latencies,
)
from ssbench.statistics.over_time import OverTimeCollector
from ssbench.statistics.tally import count_values
from ssbench.statistics.timeline import ResultTimeline, Window


class Cause(msgspec.Struct, frozen=True):
    """Failures with one cause."""

    count: int
    trans_id: str | None  # transaction id of the first that has one
    statuses: Mapping[int, int]  # how often each HTTP status was in the last answer; -1: there was none
    times: Latencies  # seconds from the first attempt to the failure, where they are known
    operations: Mapping[int, int]  # how many there were, by code of operation


class CauseCollector(msgspec.Struct):
    """Counts the failures with one cause."""

    count: int = 0
    trans_id: str | None = None
    statuses: Counter[int] = msgspec.field(default_factory=Counter)
    times: LatencyCollector = msgspec.field(default_factory=LatencyCollector)
    operations: Counter[int] = msgspec.field(default_factory=Counter)

    def add(self, block: ResultBlock, rows: list[int], started: npt.NDArray[np.float64], before: int) -> None:
        """Count some rows of a block that has ``before`` results before it."""
        self.count += len(rows)
        self.trans_id = self.trans_id or next(filter(None, (block.trans_id[row] for row in rows)), None)
        self.statuses.update(block.status[rows].tolist())
        self.operations.update(block.operation[rows].tolist())
        one = np.zeros(len(rows), np.intp)
        self.times.add(block, np.array(rows, np.intp), one, block.completed[rows] - started[rows], before)

    def finish(self) -> Cause:
        """Return what was counted so far."""
        return Cause(
            self.count, self.trans_id, dict(self.statuses), self.times.finish()[0], dict(self.operations)
        )


# -- Accounts and addresses ------------------------------------------------------------------------


#: The fields by which figures are kept apart.
MEMBER_FIELDS = ("account", "address")


class MemberCounts(msgspec.Struct, frozen=True):
    """What is counted of an account or of an address."""

    number: int  # its place among those of the run; -1: not known
    figures: CountedFigures
    errors: Mapping[str, int]  # its failures by cause, the most frequent first


class MembersCollector:
    """Counts results by each of :data:`MEMBER_FIELDS` that they have; ``mixed`` as of the figures."""

    def __init__(self, *, mixed: bool = False) -> None:
        self._mixed = mixed
        self._figures: dict[str, FiguresCollector] = {}
        self._errors: dict[str, dict[int, Counter[str]]] = {}

    def add(
        self, block: ResultBlock, started: npt.NDArray[np.float64], before: int, last_sent: float | None
    ) -> None:
        """Count the results of a block; what is given is as of the figures."""
        for name in MEMBER_FIELDS:
            if name not in block.given:
                continue
            if name not in self._figures:
                self._figures[name] = FiguresCollector([name], mixed=self._mixed)
            groups = self._figures[name].add(block, started, before, last_sent)
            errors, column = self._errors.setdefault(name, {}), getattr(block, name)
            lost = []
            for row, failure in block.failures.items():
                if failure.cause is not None:
                    errors.setdefault(int(column[row]), Counter())[failure.cause] += 1
                    if failure.cause == LOST_CAUSE:
                        lost.append(row)
            self._figures[name].add_lost(groups[lost])

    def finish(self, name: str, window: Window | None) -> tuple[MemberCounts, ...]:
        """Return the members by one of :data:`MEMBER_FIELDS`, in order; none where results lack that."""
        if name not in self._figures:
            return ()
        figures, errors = self._figures[name].finish(window), self._errors[name]
        return tuple(
            MemberCounts(number, figures[(number,)], dict(errors.get(number, Counter()).most_common()))
            for (number,) in sorted(figures)
        )


# -- Objects ---------------------------------------------------------------------------------------


#: More objects of an operation and size class than this are not counted: they are many.
_MAX_COUNTED_OBJECTS = 10_000


class ObjectCounts:
    """How often each object was used, by operation and size class."""

    def __init__(self) -> None:
        self._counts: dict[tuple[int, int], Counter[int]] = {}
        self._known = True

    def add(self, block: ResultBlock) -> None:
        """Count the objects of a block; of one that has none, nothing is known."""
        if "object" not in block.given:
            self._known = False
            return
        names = (block.container.astype(np.int64) << 32) | block.object.astype(np.int64)
        kinds = (block.operation.astype(np.int64) << 16) | block.size_class.astype(np.int64)
        for kind in np.unique(kinds).tolist():
            counts = self._counts.setdefault((kind >> 16, kind & 0xFFFF), Counter())
            if len(counts) <= _MAX_COUNTED_OBJECTS:
                count_values(counts, names[kinds == kind])

    def effective(self, operation: int | None = None, size_class: int | None = None) -> float | None:
        """Return how many objects, each used as often, say as much as those of an operation and size class.

        None of either is all of them (Kish's effective size). None where it is not known, or where they are
        many.
        """
        found = [
            counts
            for (own, its_class), counts in self._counts.items()
            if operation in {None, own} and size_class in {None, its_class}
        ]
        if not self._known or not found or any(len(counts) > _MAX_COUNTED_OBJECTS for counts in found):
            return None
        return _effective_count(sum(found, Counter()).values())


def _effective_count(counts: Iterable[int]) -> float:
    uses = np.fromiter(counts, np.float64)
    return float(uses.sum() ** 2 / (uses**2).sum())


# -- All that is counted ---------------------------------------------------------------------------


#: How many are kept.
MAX_SLOW_RESULTS = 20

#: So many results are folded in together.
_RESULTS_AT_ONCE = 1 << 15

#: Logarithms of latencies are added up as whole numbers, so many to an octave.
_OCTAVE_PARTS = 1024

#: What results are always kept apart by.
USUAL_GROUP_FIELDS = ("operation", "size_class")

#: A run without stages, groups and sides.
NO_PARTS: Mapping[str, Sequence[Collector]] = {}


class SlowestCollector:
    """Keeps the slowest successes."""

    def __init__(self) -> None:
        self._kept: list[SlowResult] = []

    def add(self, block: ResultBlock, before: int) -> None:
        """Take the results of a block that has ``before`` results before it."""
        latencies = measured_latencies(block)
        least = self._kept[-1].latency if len(self._kept) == MAX_SLOW_RESULTS else 0.0
        rows = np.flatnonzero(latencies > least)
        if len(rows) > MAX_SLOW_RESULTS:
            rows = np.sort(rows[np.argpartition(-latencies[rows], MAX_SLOW_RESULTS)[:MAX_SLOW_RESULTS]])
        self._kept += make_slow_results(block, rows, latencies[rows], before)
        self._kept.sort(key=lambda each: (-each.latency, each.arrival))
        del self._kept[MAX_SLOW_RESULTS:]

    def finish(self) -> tuple[SlowResult, ...]:
        """Return them, the slowest first."""
        return tuple(self._kept)


class Collector:
    """Counts results as they come; what was counted can be asked for after :meth:`settle`, at any time.

    Results are kept apart by :data:`USUAL_GROUP_FIELDS` and by the fields named in ``by``, which must be
    numbers (stage, worker, storage_url, ...); raises ValueError for others. Results of the
    warm-up are only counted, in ``warmed_up`` and, of these, ``warmed_up_failed``; so are those sent before
    ``begin``. ``due`` counts
    those that were due in an open loop, in the warm-up too. ``current`` is whether
    the results are of today's format; without it there is no ``timeline``, and ``seconds`` counts the
    successes of each second since 1970. With ``over_time`` they are counted over the time of the run too,
    and the slowest are kept.

    ``first_completed`` is the earliest completion, infinite without a result. ``workers`` counts the
    successes of each worker that has a result, ``retries`` causes. ``parts`` are collectors of the results of
    each part of the run, by the field that has its number (``stage``, ``group``), each as if there were no
    other; they need as much memory again. With ``mixed``, for runs that have stages with and without a rate,
    latencies of operations that were not due are kept apart. A ``whole`` run has figures of its accounts and
    addresses too. With ``objects`` it is counted how many of them were used.
    """

    def __init__(
        self,
        by: Sequence[str] = (),
        *,
        current: bool = True,
        begin: float | None = None,
        over_time: bool = False,
        mixed: bool = False,
        whole: bool = True,
        objects: bool = False,
        parts: Mapping[str, Sequence[Collector]] = NO_PARTS,
    ) -> None:
        #: Only of fields that have parts.
        self.parts = {name: own for name, own in parts.items() if own}
        self.keys = tuple(dict.fromkeys((*USUAL_GROUP_FIELDS, *by)))
        for name in self.keys:
            if name not in FIELDS or FIELDS[name].kind is not FieldKind.NUMBER:
                raise ValueError(f"results cannot be grouped by {name}")
        self.results = 0
        self.due = 0
        self.warmed_up = self.warmed_up_failed = 0
        self._begin = begin
        self.first_completed = math.inf
        self.workers: Counter[int] = Counter()
        #: The sum of the logarithms of latencies of each worker, so many to an octave of nanoseconds.
        self._octaves: Counter[int] = Counter()
        self.seconds: Counter[int] = Counter()
        self.timeline = ResultTimeline() if current else None
        self.over_time = OverTimeCollector() if over_time else None
        self.slowest = SlowestCollector() if over_time else None
        #: Accounts and addresses, of the run as a whole.
        self.members = MembersCollector(mixed=mixed) if whole else None
        self.objects = ObjectCounts() if objects else None
        self.retries: Counter[str] = Counter()
        self._errors: dict[str, CauseCollector] = {}
        self._figures = FiguresCollector(self.keys, mixed=mixed)
        self._pending: list[ResultBlock] = []
        self._waiting = 0

    def add(self, block: ResultBlock) -> None:
        """Count the results of a block, which must not be empty."""
        for name, parts in self.parts.items():
            numbers = getattr(block, name)
            for place, part in enumerate(parts):
                own = np.flatnonzero(numbers == place)
                if len(own):
                    part.add(block.select(own))
        if "due" in block.given:  # a lost operation had begun, although it is not known when it was due
            self.due += int((~np.isnan(block.due) | np.isnan(block.started)).sum())
        self._pending.append(block)
        self._waiting += len(block)
        if self._waiting >= _RESULTS_AT_ONCE:
            self.settle()

    def settle(self) -> None:
        """Count what was added and is not counted yet."""
        if self._pending:
            block = join_blocks(self._pending)
            self._pending.clear()
            self._waiting = 0
            self._add(block)

    def _add(self, block: ResultBlock) -> None:
        block = self._without_warm_up(block)
        if not len(block):
            return
        started = block.started
        if self.timeline:
            self.timeline.add(block, started)
        last_sent = self.timeline.last_sent if self.timeline else None
        groups = self._figures.add(block, started, self.results, last_sent)
        if self.members:
            self.members.add(block, started, self.results, last_sent)
        if self.objects:
            self.objects.add(block)
        self.first_completed = min(self.first_completed, float(block.completed.min()))
        succeeded, known = ~block.failed, block.worker != NO_WORKER
        count_values(self.workers, block.worker[known], succeeded[known])
        octaves = np.log2(np.fmax(np.where(succeeded, block.last_byte, 0.0), 1e-9) * 1e9)
        count_values(self._octaves, block.worker[known], np.rint(octaves[known] * _OCTAVE_PARTS))
        if not self.timeline:
            count_values(self.seconds, np.floor(block.completed[succeeded]).astype(np.int64))
        if self.over_time and self.slowest:
            self.over_time.add(block)
            self.slowest.add(block, self.results)
        self._add_failures(block, started, groups)
        self.results += len(block)

    def _without_warm_up(self, block: ResultBlock) -> ResultBlock:
        if "marks" not in block.given and self._begin is None:
            return block
        warm_up = block.marks & ResultMark.WARM_UP != 0
        if self._begin is not None:
            warm_up |= np.fmin(block.started, block.completed) < self._begin
        self.warmed_up += int(warm_up.sum())
        if block.failures:
            self.warmed_up_failed += int((warm_up & block.failed).sum())
        return block.select(np.flatnonzero(~warm_up)) if warm_up.any() else block

    def _add_failures(
        self, block: ResultBlock, started: npt.NDArray[np.float64], groups: npt.NDArray[np.intp]
    ) -> None:
        causes: dict[str, list[int]] = {}
        for row, failure in block.failures.items():
            if failure.cause is not None:
                causes.setdefault(failure.cause, []).append(row)
            self.retries.update(failure.retried)
        for name, rows in causes.items():
            self._errors.setdefault(name, CauseCollector()).add(block, rows, started, self.results)
        if LOST_CAUSE in causes:
            self._figures.add_lost(groups[causes[LOST_CAUSE]])

    def typical_latencies(self) -> dict[int, float]:
        """Return the geometric mean of the latencies of each worker with successes, in seconds."""
        return {
            worker: 1e-9 * 2.0 ** (self._octaves[worker] / _OCTAVE_PARTS / count)
            for worker, count in self.workers.items()
            if count
        }

    def errors(self) -> dict[str, Cause]:
        """Return the causes of failures so far."""
        self.settle()
        return {name: cause.finish() for name, cause in self._errors.items()}

    def groups(self, window: Window | None = None) -> Groups:
        """Return the figures of what was counted so far; rates need a window of the timeline's."""
        self.settle()
        return Groups(self.keys, self._figures.finish(window))
