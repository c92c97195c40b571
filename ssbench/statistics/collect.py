"""Counts results, block by block, in groups of equal operation, size class, worker or the like.

Memory: 16 bytes a result, for its two latencies, and 12 for each second and bucket that these lie in, of
which there are hundreds in a second of thousands. Everything else is folded in as it comes. What ended
after the last moment of sending is told apart; that moment is known at the end only, so that what
ended after the latest send so far is kept, which is never more than was under way at once.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ssbench.results import FIELDS, LOST, NO_WORKER, Kind, Mark, ResultBlock
from ssbench.results.block import is_constant
from ssbench.statistics.by_second import BySecond, merge_seconds
from ssbench.statistics.due import Due, DueCollector, merge_due
from ssbench.statistics.latencies import Latencies, LatencyCollector, merge
from ssbench.statistics.over_time import OverTimeCollector
from ssbench.statistics.parts import Parts, parts_of, sum_of, vanished
from ssbench.statistics.slowest import SlowestCollector
from ssbench.statistics.tally import tally
from ssbench.statistics.timeline import Timeline, Window

#: What results are always kept apart by.
ALWAYS = ("operation", "size_class")

#: Values of a key that lie further apart are numbered before they are put in order.
_MAX_SPAN = 1 << 16


@dataclass(frozen=True, slots=True)
class Cause:
    """Failures with one cause: how many, and the transaction id of the first that has one.

    ``statuses`` counts the HTTP status of their last answers, -1 where there was none. ``times`` are
    the seconds from the first attempt to the failure, where they are known. ``operations`` counts them
    by the code of the operation.
    """

    count: int
    trans_id: str | None
    statuses: Mapping[int, int]
    times: Latencies
    operations: Mapping[int, int]


@dataclass(slots=True)
class _Cause:
    """Counts the failures with one cause."""

    count: int = 0
    trans_id: str | None = None
    statuses: Counter[int] = field(default_factory=Counter)
    times: LatencyCollector = field(default_factory=LatencyCollector)
    operations: Counter[int] = field(default_factory=Counter)

    def add(self, block: ResultBlock, rows: list[int], started: npt.NDArray[np.float64], before: int) -> None:
        """Count some rows of a block that has ``before`` results before it."""
        self.count += len(rows)
        self.trans_id = self.trans_id or next(filter(None, (block.trans_id[row] for row in rows)), None)
        self.statuses.update(block.status[rows].tolist())
        self.operations.update(block.operation[rows].tolist())
        self.times.add(block, np.array(rows, np.intp), block.completed[rows] - started[rows], before)


@dataclass(frozen=True, slots=True)
class Within:
    """What ended within a window: successes, failures (lost operations too), bytes that successes moved.

    ``busy`` is the time, in seconds, that operations were under way within it.
    """

    count: int = 0
    failed: int = 0
    moved: int = 0
    busy: float = 0.0


@dataclass(frozen=True, slots=True)
class Figures:
    """What is counted of some results.

    ``count`` is of successes. ``lost`` counts operations whose worker vanished; they are neither in
    ``count`` nor in ``errors``. ``start`` is when the first success was sent, infinite without any;
    ``end`` the last completion, a failure's too, minus infinity without a result; seconds since 1970.
    ``resent`` counts requests that were sent again because a kept connection had gone stale. ``moved``
    is the bytes of body of all successes whose size is known. ``by_second`` has what is needed for
    intervals of the rates, ``parts`` what the time of successes went into besides their last attempts,
    ``due`` what is known of operations that were due in an open loop.
    ``held_up`` are the last-byte latencies of successes whose worker stood still, and not among the others.
    """

    count: int
    errors: int
    lost: int
    retries: int
    start: float
    end: float
    first_byte: Latencies
    last_byte: Latencies
    resent: int
    within: Within
    moved: int
    by_second: BySecond
    parts: Parts
    due: Due
    held_up: Latencies

    @property
    def failed(self) -> int:
        """Operations that did not succeed, lost ones too."""
        return self.errors + self.lost


def merge_figures(parts: Iterable[Figures]) -> Figures:
    """Return the figures of several groups together, without copying latencies."""
    parts = list(parts)
    return Figures(
        count=sum(part.count for part in parts),
        errors=sum(part.errors for part in parts),
        lost=sum(part.lost for part in parts),
        retries=sum(part.retries for part in parts),
        start=min((part.start for part in parts), default=math.inf),
        end=max((part.end for part in parts), default=-math.inf),
        first_byte=merge(part.first_byte for part in parts),
        last_byte=merge(part.last_byte for part in parts),
        resent=sum(part.resent for part in parts),
        within=Within(
            count=sum(part.within.count for part in parts),
            failed=sum(part.within.failed for part in parts),
            moved=sum(part.within.moved for part in parts),
            busy=math.fsum(part.within.busy for part in parts),
        ),
        moved=sum(part.moved for part in parts),
        by_second=merge_seconds(part.by_second for part in parts),
        parts=sum_of(part.parts for part in parts),
        due=merge_due(part.due for part in parts),
        held_up=merge(part.held_up for part in parts),
    )


@dataclass(frozen=True, slots=True)
class Groups:
    """Figures of the results that agree in all ``keys``, by the values of these."""

    keys: tuple[str, ...]
    figures: Mapping[tuple[int, ...], Figures]

    def by(self, *keys: str) -> dict[tuple[int, ...], Figures]:
        """Return the figures by the values of only some of the keys, in ascending order."""
        places = [self.keys.index(key) for key in keys]
        parts: dict[tuple[int, ...], list[Figures]] = {}
        for values, figures in self.figures.items():
            parts.setdefault(tuple(values[place] for place in places), []).append(figures)
        return {values: merge_figures(parts[values]) for values in sorted(parts)}


class _Tail:
    """Sums up what ended, and tells apart what ended after a moment that becomes known later."""

    def __init__(self) -> None:
        #: Successes, failures, bytes that successes moved, seconds.
        self._sums = np.zeros(4)
        #: A row for each operation that may have ended after the moment: its end, then the same.
        self._late = np.empty((0, 5))

    def add(
        self,
        block: ResultBlock,
        rows: npt.NDArray[np.intp],
        started: npt.NDArray[np.float64],
        last_sent: float,
    ) -> None:
        """Take in some rows of a block; ``last_sent`` is the moment so far."""
        completed, moved = block.completed[rows], np.maximum(block.size[rows], 0)
        seconds = completed - started[rows]
        failed = block.failed[rows] if block.failures else np.zeros(len(rows), np.bool_)
        failures = 0
        if block.failures:
            moved[failed] = 0
            failures = int(failed.sum())
        busy = float(seconds.sum())
        if math.isnan(busy):  # of failures it may not be known when they were sent
            busy = float(np.nansum(seconds))
        self._sums += (len(rows) - failures, failures, int(moved.sum()), busy)
        if len(self._late):
            self._late = self._late[self._late[:, 0] > last_sent]
        late = np.flatnonzero(completed > last_sent)
        if len(late):
            columns = (completed, ~failed, failed, moved, ~np.isnan(seconds))
            self._late = np.concatenate([self._late, np.column_stack([column[late] for column in columns])])

    def within(self, window: Window) -> Within:
        """Return what ended within a window whose end is no earlier than any ``last_sent``."""
        late = self._late[self._late[:, 0] > window.end]
        late[:, 4] *= late[:, 0] - window.end
        count, failed, moved, busy = (self._sums - late[:, 1:].sum(axis=0)).tolist()
        return Within(round(count), round(failed), round(moved), busy)


@dataclass(slots=True)
class _Group:
    """Counts the results of one group."""

    count: int = 0
    errors: int = 0
    lost: int = 0
    retries: int = 0
    resent: int = 0
    moved: int = 0
    parts: Parts = field(default_factory=Parts)
    start: float = math.inf
    end: float = -math.inf
    first_byte: LatencyCollector = field(default_factory=LatencyCollector)
    last_byte: LatencyCollector = field(default_factory=LatencyCollector)
    held_up: LatencyCollector = field(default_factory=LatencyCollector)
    tail: _Tail = field(default_factory=_Tail)
    by_second: BySecond = field(default_factory=BySecond)
    due: DueCollector = field(default_factory=DueCollector)

    def add(self, block: ResultBlock, rows: npt.NDArray[np.intp], before: int) -> None:
        """Count some rows of a block that has ``before`` results before it."""
        completed = block.completed[rows]
        self.retries += int(block.retries[rows].sum())
        if "attempts" in block.given:
            self.resent += int((block.attempts[rows] - block.retries[rows] - 1).sum())
        self.end = max(self.end, float(completed.max()))
        if block.failures:
            failed = block.failed[rows]
            self.errors += int(failed.sum())
            rows, completed = rows[~failed], completed[~failed]
            if not len(rows):
                return
        self.count += len(rows)
        self.by_second.add(block, rows)
        self.moved += int(np.maximum(block.size[rows], 0).sum())
        self.parts += vanished(block, rows)
        last_byte = block.last_byte[rows]
        self.start = min(self.start, float((completed - np.fmax(last_byte, 0.0)).min()))
        if "marks" in block.given:
            held_up = block.marks[rows] & Mark.HELD_UP != 0
            self.held_up.add(block, rows[held_up], last_byte[held_up], before)
            rows, last_byte = rows[~held_up], last_byte[~held_up]
        self.parts += parts_of(block, rows)
        self.first_byte.add(block, rows, block.first_byte[rows], before)
        self.last_byte.add(block, rows, last_byte, before)

    def figures(self, window: Window | None) -> Figures:
        return Figures(
            self.count,
            self.errors,
            self.lost,
            self.retries,
            self.start,
            self.end,
            self.first_byte.finish(),
            self.last_byte.finish(),
            self.resent,
            Within() if window is None else self.tail.within(window),
            self.moved,
            self.by_second,
            self.parts,
            self.due.finish(),
            self.held_up.finish(),
        )


class Collector:
    """Counts results as they come; what was counted can be asked for at any time.

    Results are kept apart by :data:`ALWAYS` and by the fields named in ``by``, which must be
    numbers (stage, account, worker, storage_url, ...); raises ValueError for others. Results of the
    warm-up are only counted, in ``warmed_up``; so are those sent before ``begin``. ``due`` counts
    those that were due in an open loop, in the warm-up too. ``current`` tells that
    the results are of today's format; without it there is no ``timeline``, and ``seconds`` counts the
    successes of each second since 1970. With ``over_time`` they are counted over the time of the run too,
    and the slowest are kept.

    ``first_completed`` is the earliest completion, infinite without a result. ``workers`` counts the
    successes of each worker that has a result, ``retries`` causes. ``stages`` are collectors of the results
    of so many stages, each as if there were no other; they need as much memory again.
    """

    def __init__(
        self,
        by: Sequence[str] = (),
        *,
        current: bool = True,
        begin: float | None = None,
        over_time: bool = False,
        stages: int = 0,
    ) -> None:
        self.keys = tuple(dict.fromkeys((*ALWAYS, *by)))
        for name in self.keys:
            if name not in FIELDS or FIELDS[name].kind is not Kind.NUMBER:
                raise ValueError(f"results cannot be grouped by {name}")
        self.stages = tuple(Collector(by, current=current, begin=begin) for _ in range(stages))
        self.results = 0
        self.due = 0
        self.warmed_up = 0
        self._begin = begin
        self.first_completed = math.inf
        self.workers: Counter[int] = Counter()
        self.seconds: Counter[int] = Counter()
        self.timeline = Timeline() if current else None
        self.over_time = OverTimeCollector() if over_time else None
        self.slowest = SlowestCollector() if over_time else None
        self.retries: Counter[str] = Counter()
        self._errors: dict[str, _Cause] = {}
        self._groups: dict[tuple[int, ...], _Group] = {}

    def add(self, block: ResultBlock) -> None:
        """Count the results of a block, which must not be empty."""
        for place, stage in enumerate(self.stages):
            of_stage = np.flatnonzero(block.stage == place)
            if len(of_stage):
                stage.add(block.select(of_stage))
        if "due" in block.given:  # a lost operation had begun, although nobody knows when it was due
            self.due += int((~np.isnan(block.due) | np.isnan(block.started)).sum())
        block = self._without_warm_up(block)
        if not len(block):
            return
        started = block.started
        if self.timeline:
            self.timeline.add(block, started)
        for values, rows in _split([getattr(block, key) for key in self.keys]):
            group = self._groups.setdefault(values, _Group())
            group.add(block, rows, self.results)
            if "due" in block.given:
                group.due.add(block, rows, started, self.results)
            if self.timeline:
                group.tail.add(block, rows, started, self.timeline.last_sent)
        self.first_completed = min(self.first_completed, float(block.completed.min()))
        succeeded, known = ~block.failed, block.worker != NO_WORKER
        tally(self.workers, block.worker[known], succeeded[known])
        if not self.timeline:
            tally(self.seconds, np.floor(block.completed[succeeded]).astype(np.int64))
        if self.over_time and self.slowest:
            self.over_time.add(block)
            self.slowest.add(block, started, self.results)
        self._add_failures(block, started)
        self.results += len(block)

    def _without_warm_up(self, block: ResultBlock) -> ResultBlock:
        if "marks" not in block.given and self._begin is None:
            return block
        warm_up = block.marks & Mark.WARM_UP != 0
        if self._begin is not None:
            warm_up |= np.fmin(block.started, block.completed) < self._begin
        self.warmed_up += int(warm_up.sum())
        return block.select(np.flatnonzero(~warm_up)) if warm_up.any() else block

    def _add_failures(self, block: ResultBlock, started: npt.NDArray[np.float64]) -> None:
        causes: dict[str, list[int]] = {}
        for row, failure in block.failures.items():
            if failure.cause is not None:
                causes.setdefault(failure.cause, []).append(row)
            self.retries.update(failure.retried)
        for name, rows in causes.items():
            self._errors.setdefault(name, _Cause()).add(block, rows, started, self.results)
        for row in causes.get(LOST, ()):
            group = self._groups[tuple(int(getattr(block, key)[row]) for key in self.keys)]
            group.lost += 1
            group.errors -= 1

    def errors(self) -> dict[str, Cause]:
        """Return the causes of failures so far."""
        return {
            name: Cause(
                cause.count,
                cause.trans_id,
                dict(cause.statuses),
                cause.times.finish(),
                dict(cause.operations),
            )
            for name, cause in self._errors.items()
        }

    def groups(self, window: Window | None = None) -> Groups:
        """Return the figures of what was counted so far; rates need a window of the timeline's."""
        return Groups(self.keys, {values: group.figures(window) for values, group in self._groups.items()})


def _split(
    columns: Sequence[npt.NDArray[np.int64]],
) -> Iterable[tuple[tuple[int, ...], npt.NDArray[np.intp]]]:
    """Yield the values that occur together in the rows of several columns, and the rows of each."""
    code: npt.NDArray[Any] = np.zeros(len(columns[0]), np.uint32)
    most = 1
    for column in columns:
        if is_constant(column):
            continue
        numbers, span = _numbered(column)
        if most * span > 1 << 32:  # more than the product of both can tell apart
            code, most = _numbered(code)
            code = code.astype(np.uint64)
        code = code * np.asarray(span, code.dtype) + numbers.astype(code.dtype)
        most *= span
    if most <= 1 << 16:
        code = code.astype(np.uint16)  # which numpy sorts by radix
    order = np.argsort(code, kind="stable")
    ordered = code[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=ordered[:1] + 1))
    for rows in np.split(order, starts[1:]):
        yield tuple(int(column[rows[0]]) for column in columns), rows


def _numbered(column: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], int]:
    """Return small numbers, equal where the values of a column are, and what they are all less than."""
    lowest, highest = int(column.min()), int(column.max())
    if highest - lowest < _MAX_SPAN:
        return column - np.asarray(lowest, column.dtype), highest - lowest + 1
    values, numbers = np.unique(column, return_inverse=True)
    return numbers, len(values)
