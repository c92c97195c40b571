"""Counts results by what they have in common, all that there is of it at once.

A run may have thousands of such groups, and blocks a few results of each. So a block is counted for all
groups together: each sum is an array with a place for every group.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ssbench.results.block import ResultBlock
from ssbench.results.counters import counted_rows, sum_counters
from ssbench.results.schema import STEP_FIELDS, ResultMark
from ssbench.statistics.attempts import AttemptTimesCollector, LatencyPartsCollector
from ssbench.statistics.by_second import BySecondCollector
from ssbench.statistics.due import DueCollector
from ssbench.statistics.figures import CountedFigures
from ssbench.statistics.groups import Numbering
from ssbench.statistics.latencies import Latencies
from ssbench.statistics.latency_collector import LatencyCollector
from ssbench.statistics.tally import add_up, grow_groups, take_rows, to_whole_numbers
from ssbench.statistics.timeline import Window
from ssbench.statistics.window_totals import WindowTotals, WindowTotalsCollector

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
                count,
                failed,
                lost,
                sum_counters([dict(zip(self._counted, counted, strict=True))]),
                start,
                end,
                first_byte,
                times.whole,
                total,
                moved,
                by_second,
                parts,
                due,
                delayed,
                times.last_attempt,
                times.connecting,
                steps,
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
