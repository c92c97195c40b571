"""Collects the latencies of many groups of results at once.

There may be thousands of groups, so that what is done for each of them is done at the end; until then the
latencies of all groups are handled together.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from ssbench.results.block import ResultBlock
from ssbench.statistics.latencies import (
    Latencies,
    SlowResult,
    make_slow_results,
    merge_latencies,
    select_grouped_latencies,
)
from ssbench.statistics.tally import grow_groups, take_rows

#: How many latencies are put in order together: this many, or this many for each group.
_PART_COUNT = 1 << 18
_PART_COUNT_PER_GROUP = 512


class LatencyCollector:
    """Collects one of the latencies of results, by the number of their group."""

    def __init__(self) -> None:
        #: Groups, latencies, and when their operations ended.
        self._pending: list[
            tuple[npt.NDArray[np.intp], npt.NDArray[np.float64], npt.NDArray[np.float64]]
        ] = []
        self._pending_count = 0
        self._parts: dict[int, list[Latencies]] = {}
        #: The longest latency of each group, -1 where there is none yet.
        self._longest = np.empty(0)
        self._slowest: dict[int, SlowResult] = {}

    def add(
        self,
        block: ResultBlock,
        rows: npt.NDArray[np.intp],
        groups: npt.NDArray[np.intp],
        latencies: npt.NDArray[np.float64],
        before: int,
    ) -> None:
        """Take the latencies of some rows of a block that has ``before`` results before it.

        ``groups`` and ``latencies`` are those of these rows.
        """
        reported = latencies >= 0
        if not reported.all():
            rows, groups, latencies = rows[reported], groups[reported], latencies[reported]
        if not len(rows):
            return
        self._find_slowest(block, rows, groups, latencies, before)
        above = latencies > 0
        if not above.all():
            rows, groups, latencies = rows[above], groups[above], latencies[above]
        self._pending.append((groups, latencies, take_rows(block.completed, rows)))
        self._pending_count += len(rows)
        if self._pending_count >= max(_PART_COUNT, _PART_COUNT_PER_GROUP * len(self._longest)):
            self._make_part()

    def finish(self, count: int = 1) -> list[Latencies]:
        """Return all that was collected of the groups 0 to ``count`` - 1."""
        self._make_part()
        return [self._finished(group) for group in range(count)]

    def _finished(self, group: int) -> Latencies:
        found = merge_latencies(self._parts.get(group, ()))
        longest = self._slowest.get(group)
        return found if longest is None else replace(found, slowest=longest)

    def _find_slowest(
        self,
        block: ResultBlock,
        rows: npt.NDArray[np.intp],
        groups: npt.NDArray[np.intp],
        latencies: npt.NDArray[np.float64],
        before: int,
    ) -> None:
        """Keep the slowest of each group, the first of those that are equally slow."""
        known = grow_groups(self._longest, int(groups.max()) + 1, -1.0)
        self._longest = known.copy()
        np.maximum.at(self._longest, groups, latencies)
        slower = np.flatnonzero((latencies == self._longest[groups]) & (latencies > known[groups]))
        found, first = np.unique(groups[slower], return_index=True)
        records = make_slow_results(block, rows[slower[first]], latencies[slower[first]], before)
        self._slowest.update(zip(found.tolist(), records, strict=True))

    def _make_part(self) -> None:
        """Make parts of what is pending, so that only little is ever there twice."""
        if not self._pending_count:
            return
        groups, values, ended = (np.concatenate(each) for each in zip(*self._pending, strict=True))
        self._pending.clear()
        self._pending_count = 0
        for group, part in select_grouped_latencies(groups, values, ended).items():
            self._parts.setdefault(group, []).append(part)
