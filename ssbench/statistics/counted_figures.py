"""The figures of some results: of an operation, a size class, a worker or of whatever they have in common.

:class:`CountedFigures` are those of one group, :class:`Groups` of all groups of results that agree in some of
their fields. A run may have thousands of such groups, and blocks a few results of each. So
:class:`FiguresCollector` counts a block for all groups together: each sum is an array with a place for every
group.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from ssbench.results.block import ResultBlock, counted_rows, is_constant_column, sum_counters
from ssbench.results.result_fields import STEP_FIELDS, ResultMark
from ssbench.statistics.by_second import BySecond, BySecondCollector, LatencyTable, merge_seconds
from ssbench.statistics.confidence import Interval
from ssbench.statistics.latencies import Latencies, LatencyCollector, merge_latencies
from ssbench.statistics.latency_parts import (
    AttemptTimesCollector,
    CensoredLatencies,
    DueCollector,
    DueFigures,
    LatencyParts,
    LatencyPartsCollector,
    merge_due,
    sum_parts,
)
from ssbench.statistics.tally import add_up, grow_groups, number_values, take_rows, to_whole_numbers
from ssbench.statistics.timeline import Window, WindowTotals, WindowTotalsCollector, merge_totals


class CountedFigures(msgspec.Struct, frozen=True):
    """What is counted of some results. Moments are in seconds since 1970."""

    count: int  # successes
    failed: int  # all others
    lost: int  # those of the others whose worker vanished
    counted: Mapping[str, int]  # each counter of :data:`ssbench.results.block.COUNTERS`
    start: float  # when the first success was sent; infinite: there is none
    end: float  # the last completion, a failure's too; minus infinity: there is no result
    first_byte: Latencies
    last_byte: Latencies
    window_totals: WindowTotals
    moved: int  # bytes of body of all successes whose size is known
    by_second: BySecond  # for intervals of the rates
    parts: LatencyParts  # what the time of successes went into besides their last attempts
    due: DueFigures  # operations that were due in an open loop
    #: Last-byte latencies of successes whose worker stalled, which are not among the others.
    delayed: Latencies
    last_attempt: Latencies  # what the last attempts of those in ``last_byte`` took, without connecting
    connecting: Latencies  # of those that connected
    steps: tuple[Latencies, ...]  # what each step took, of operations that have some

    @property
    def latency(self) -> CensoredLatencies:
        """The latencies that verdicts, thresholds and comparisons are about: as users met them.

        They are since operations were due in an open loop, and those that never began are among them; else
        they are to the last byte.
        """
        return self.due.users_latency(self.last_byte)


def merge_figures(parts: Iterable[CountedFigures]) -> CountedFigures:
    """Return the figures of several groups together, without copying latencies."""
    parts = list(parts)
    if len(parts) == 1:
        return parts[0]
    return CountedFigures(
        count=sum(part.count for part in parts),
        failed=sum(part.failed for part in parts),
        lost=sum(part.lost for part in parts),
        counted=sum_counters(part.counted for part in parts),
        start=min((part.start for part in parts), default=math.inf),
        end=max((part.end for part in parts), default=-math.inf),
        first_byte=merge_latencies(part.first_byte for part in parts),
        last_byte=merge_latencies(part.last_byte for part in parts),
        window_totals=merge_totals(part.window_totals for part in parts),
        moved=sum(part.moved for part in parts),
        by_second=merge_seconds(part.by_second for part in parts),
        parts=sum_parts(part.parts for part in parts),
        due=merge_due(part.due for part in parts),
        delayed=merge_latencies(part.delayed for part in parts),
        last_attempt=merge_latencies(part.last_attempt for part in parts),
        connecting=merge_latencies(part.connecting for part in parts),
        steps=tuple(
            map(merge_latencies, zip_longest(*(part.steps for part in parts), fillvalue=merge_latencies(())))
        ),
    )


def measure_rates(figures: CountedFigures, window: Window | None) -> tuple[float, float]:
    """Return operations and bytes a second."""
    if window:
        return window.per_second(figures.window_totals.count), window.per_second(figures.window_totals.moved)
    if not figures.count:
        return 0.0, 0.0
    own = Window(figures.start, figures.end)
    return own.per_second(figures.count), own.per_second(figures.moved)


def drop_seconds(figures: CountedFigures) -> CountedFigures:
    """Return the same figures without what the intervals of latencies are made of.

    Where stages are put together, what differs from second to second is what was asked for, and no noise.
    """
    return replace(
        figures,
        **{
            name: replace(getattr(figures, name), by_second=LatencyTable())
            for name in ("first_byte", "last_byte", "last_attempt", "connecting")
        },
        steps=tuple(replace(each, by_second=LatencyTable()) for each in figures.steps),
        due=replace(
            figures.due,
            response=replace(figures.due.response, by_second=LatencyTable()),
            undue=replace(figures.due.undue, by_second=LatencyTable()),
            lateness=replace(figures.due.lateness, by_second=LatencyTable()),
        ),
    )


#: The least number of operations of which the interval of a rate is told, as many as a median needs. Of
#: fewer, seconds with one and with none differ by chance so regularly that an interval may seem narrow.
MIN_COUNTED = 20


def estimate_rate_intervals(
    figures: CountedFigures, window: Window | None
) -> tuple[Interval | None, Interval | None]:
    """Return the 95 % intervals of :func:`measure_rates`.

    None of runs that were too short, of old files, of fewer than :data:`MIN_COUNTED`, and where one reaches
    down to 0, which says nothing.
    """
    if window is None or figures.count < MIN_COUNTED:
        return None, None
    found = figures.by_second.intervals(window.start, window.end)
    # Whole seconds of the clock are a little less than the window; only their spread is used.
    operations, moved = (
        interval.around(rate) if interval and interval.half_width < rate else None
        for rate, interval in zip(measure_rates(figures, window), found, strict=True)
    )
    return operations, moved


# -- Groups of results -----------------------------------------------------------------------------


class Groups(msgspec.Struct, frozen=True):
    """Figures of the results that agree in all ``keys``, by the values of these."""

    keys: tuple[str, ...]
    figures: Mapping[tuple[int, ...], CountedFigures]

    def by(self, *keys: str) -> dict[tuple[int, ...], CountedFigures]:
        """Return the figures by the values of only some of the keys, in ascending order."""
        places = [self.keys.index(key) for key in keys]
        parts: dict[tuple[int, ...], list[CountedFigures]] = {}
        for values, figures in self.figures.items():
            parts.setdefault(tuple(values[place] for place in places), []).append(figures)
        return {values: merge_figures(parts[values]) for values in sorted(parts)}

    def merged(self, key: str, names: Mapping[int, str]) -> dict[str, CountedFigures]:
        """Return the figures by the names of the values of one key, in order; values without are left out."""
        parts: dict[str, list[CountedFigures]] = {}
        for (value,), figures in self.by(key).items():
            if name := names.get(value):
                parts.setdefault(name, []).append(figures)
        return {name: merge_figures(parts[name]) for name in sorted(parts)}


class Numbering:
    """Numbers what occurs together in several columns, from 0, in the order in which it comes."""

    def __init__(self) -> None:
        self.numbers: dict[tuple[int, ...], int] = {}

    def of(self, columns: Sequence[npt.NDArray[np.int64]], rows: int) -> npt.NDArray[np.intp]:
        """Return the number of the values of each of so many rows, at least one."""
        code = _number_rows(columns)
        if code is None:
            return np.full(rows, self._numbers(columns, np.zeros(1, np.intp))[0])
        if code.dtype == np.uint16:
            row_of = np.full(1 << 16, -1, np.intp)
            row_of[code] = np.arange(rows)
            found = np.flatnonzero(row_of >= 0)
            number_of = np.empty(1 << 16, np.intp)
            number_of[found] = self._numbers(columns, row_of[found])
            numbers: npt.NDArray[np.intp] = number_of[code]
            return numbers
        _, firsts, places = np.unique(code, return_index=True, return_inverse=True)
        return self._numbers(columns, firsts)[places]

    def _numbers(
        self, columns: Sequence[npt.NDArray[np.int64]], rows: npt.NDArray[np.intp]
    ) -> npt.NDArray[np.intp]:
        """Return the numbers of the values in some rows, which are given to new values."""
        found = zip(*(column[rows].tolist() for column in columns), strict=True) if columns else [()]
        numbers = self.numbers
        return np.array([numbers.setdefault(values, len(numbers)) for values in found], np.intp)


def _number_rows(columns: Sequence[npt.NDArray[np.int64]]) -> npt.NDArray[Any] | None:
    """Return a number for each row, the same where the values of all columns are; None where all rows are."""
    code: npt.NDArray[Any] | None = None
    most = 1
    for column in columns:
        if is_constant_column(column):
            continue
        numbers, values = number_values(column)
        span = len(values)
        if code is None:
            code, most = numbers.astype(np.uint32), span
            continue
        if most * span > 1 << 32:  # more than the product of both can tell apart
            code, codes = number_values(code)
            code, most = code.astype(np.uint64), len(codes)
        code = code * np.asarray(span, code.dtype) + numbers.astype(code.dtype)
        most *= span
    return code.astype(np.uint16) if code is not None and most <= 1 << 16 else code


# -- Counting all groups at once -------------------------------------------------------------------


_GroupNumbers = npt.NDArray[np.intp]
_Floats = npt.NDArray[np.float64]


class FiguresCollector:
    """Counts results that are kept apart by the values of some fields; see :class:`CountedFigures`.

    With ``mixed`` latencies of operations that were not due are kept apart.
    """

    def __init__(self, keys: Sequence[str] = (), *, mixed: bool = False) -> None:
        self._keys = keys
        self._mixed = mixed
        self._numbering = Numbering()
        self._count = self._failed = self._lost = np.empty(0, np.int64)
        self._moved = np.empty(0)
        self._counted: dict[str, npt.NDArray[np.float64]] = {}
        self._start = self._end = np.empty(0)
        self._parts = LatencyPartsCollector()
        self._first_byte = LatencyCollector()
        self._last_byte = AttemptTimesCollector()
        self._delayed = LatencyCollector()
        self._window_totals = WindowTotalsCollector()
        self._by_second = BySecondCollector()
        self._due = DueCollector()
        self._steps: dict[str, LatencyCollector] = {}

    def __len__(self) -> int:
        """How many groups there are."""
        return len(self._numbering.numbers)

    def add(
        self, block: ResultBlock, started: _Floats, before: int, last_sent: float | None = None
    ) -> _GroupNumbers:
        """Count the results of a block that has ``before`` results before it; return their groups' numbers.

        ``started`` is when they were sent, ``last_sent`` the last of these so far; None where no window will
        be known.
        """
        groups = self._numbering.of([getattr(block, key) for key in self._keys], len(block))
        completed, succeeded = block.completed, ~block.failed
        moved = np.where(succeeded, np.maximum(block.size, 0), 0)
        self._end = grow_groups(self._end, len(self), -math.inf)
        np.maximum.at(self._end, groups, completed)
        self._by_second.add(groups, completed, moved, succeeded)
        self._moved = add_up(self._moved, groups, moved)
        if last_sent is not None:
            pausing = block.pausing if "pausing" in block.given else None
            self._window_totals.add(groups, completed, moved, succeeded, started, last_sent, pausing)
        if "due" in block.given or self._mixed:
            self._due.add(block, groups, started, before, mixed=self._mixed)
        rows = np.flatnonzero(succeeded)
        own = take_rows(groups, rows)
        for key, of_successes, found in counted_rows(block, np.arange(len(block)), rows):
            sums = self._counted.get(key, np.empty(0))
            self._counted[key] = add_up(sums, own if of_successes else groups, found)
        self._count = add_up(self._count, own)
        if block.failures:
            self._failed = add_up(self._failed, groups[~succeeded])
        self._add_latencies(block, rows, own, before)
        return groups

    def _add_latencies(
        self, block: ResultBlock, rows: _GroupNumbers, groups: _GroupNumbers, before: int
    ) -> None:
        """Count successes."""
        last_byte = take_rows(block.last_byte, rows)
        self._start = grow_groups(self._start, len(self), math.inf)
        np.minimum.at(self._start, groups, take_rows(block.completed, rows) - np.fmax(last_byte, 0.0))
        if "marks" in block.given:
            delayed = block.marks[rows] & ResultMark.DELAYED != 0
            self._delayed.add(block, rows[delayed], groups[delayed], last_byte[delayed], before)
            rows, groups, last_byte = rows[~delayed], groups[~delayed], last_byte[~delayed]
        self._parts.add(block, rows, groups)
        for name in STEP_FIELDS:
            if name in block.given:
                self._steps.setdefault(name, LatencyCollector()).add(
                    block, rows, groups, take_rows(getattr(block, name), rows), before
                )
        self._first_byte.add(block, rows, groups, take_rows(block.first_byte, rows), before)
        self._last_byte.add(block, rows, groups, last_byte, before)

    def add_lost(self, groups: _GroupNumbers) -> None:
        """Count lost operations, which are failures, by the numbers of their groups."""
        self._lost = add_up(self._lost, groups)

    def finish(self, window: Window | None = None) -> dict[tuple[int, ...], CountedFigures]:
        """Return what was counted, by the values of the fields; what ended within a window needs one."""
        every = len(self)
        totals = [WindowTotals()] * every if window is None else self._window_totals.finish(window, every)
        sums = (self._count, self._failed, self._lost, self._moved, *self._counted.values())
        scalars = (
            *(to_whole_numbers(grow_groups(each, every)) for each in sums),
            grow_groups(self._start, every, math.inf),
            grow_groups(self._end, every, -math.inf),
        )
        columns = zip(
            self._numbering.numbers,
            zip(*(each.tolist() for each in scalars), strict=True),
            self._first_byte.finish(every),
            self._last_byte.finish(every),
            self._delayed.finish(every),
            totals,
            self._by_second.finish(every),
            self._parts.finish(every),
            self._due.finish(every),
            self._steps_of(every),
            strict=True,
        )
        found = {}
        for values, own, first_byte, times, delayed, total, by_second, parts, due, steps in columns:
            count, failed, lost, moved, *counted, start, end = own
            found[values] = CountedFigures(
                count=count,
                failed=failed,
                lost=lost,
                counted=sum_counters([dict(zip(self._counted, counted, strict=True))]),
                start=start,
                end=end,
                first_byte=first_byte,
                last_byte=times.whole,
                window_totals=total,
                moved=moved,
                by_second=by_second,
                parts=parts,
                due=due,
                delayed=delayed,
                last_attempt=times.last_attempt,
                connecting=times.connecting,
                steps=steps,
            )
        return found

    def _steps_of(self, count: int) -> list[tuple[Latencies, ...]]:
        """Return what each step took in each group, up to the last one that any operation of it has."""
        last = max((place for place, name in enumerate(STEP_FIELDS) if name in self._steps), default=-1)
        columns = [
            self._steps.get(name, LatencyCollector()).finish(count) for name in STEP_FIELDS[: last + 1]
        ]
        return [_without_end(steps) for steps in zip(*columns, strict=True)] if columns else [()] * count


def _without_end(steps: tuple[Latencies, ...]) -> tuple[Latencies, ...]:
    while steps and steps[-1].slowest is None:
        steps = steps[:-1]
    return steps
