"""What ended within the window of a run, of which rates are made.

The end of the window is the last moment of sending, which is known at the end only. So what ended after the
latest send so far is kept, which is never more than was under way at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from ssbench.measures import Bytes, Count, Seconds
from ssbench.statistics.tally import add_up, grown
from ssbench.statistics.timeline import Window


class WindowTotals(msgspec.Struct, frozen=True, rename={"moved": "bytes"}):
    """What ended within a window: successes, failures (lost operations too), bytes that successes moved.

    ``busy`` is the time that operations were under way within it.
    """

    count: Count = 0
    failed: Count = 0
    moved: Bytes = 0
    busy: Seconds = 0.0


class WindowTotalsCollector:
    """Sums up what ended, by the number of its group; separates what ended after a moment known later."""

    def __init__(self) -> None:
        #: Of each group: successes, failures, bytes that successes moved, seconds.
        self._sums = [np.empty(0)] * 4
        #: A row for each operation that may have ended after the moment: its group, its end, then the same.
        self._late = np.empty((0, 6))

    def add(
        self,
        groups: npt.NDArray[np.intp],
        completed: npt.NDArray[np.float64],
        moved: npt.NDArray[Any],
        succeeded: npt.NDArray[np.bool_],
        started: npt.NDArray[np.float64],
        last_sent: float,
    ) -> None:
        """Count operations; ``last_sent`` is the moment so far. Of failures ``started`` may be NaN."""
        seconds = completed - started
        known = ~np.isnan(seconds)
        columns = (succeeded, ~succeeded, moved, np.where(known, seconds, 0.0))
        self._sums = [add_up(sums, groups, column) for sums, column in zip(self._sums, columns, strict=True)]
        self._late = self._late[self._late[:, 1] > last_sent]
        late = np.flatnonzero(completed > last_sent)
        if len(late):
            rows = (groups, completed, succeeded, ~succeeded, moved, known)
            self._late = np.concatenate([self._late, np.column_stack([column[late] for column in rows])])

    def finish(self, window: Window, count: int = 1) -> list[WindowTotals]:
        """Return what ended within a window whose end is no earlier than any ``last_sent``.

        They are those of the groups 0 to ``count`` - 1.
        """
        late = self._late[self._late[:, 1] > window.end]
        groups = late[:, 0].astype(np.intp)
        beyond = (late[:, 2], late[:, 3], late[:, 4], late[:, 5] * (late[:, 1] - window.end))
        columns = (
            grown(sums, count) - np.bincount(groups, each, max(count, len(sums)))
            for sums, each in zip(self._sums, beyond, strict=True)
        )
        return [
            WindowTotals(round(succeeded), round(failed), round(moved), busy)
            for succeeded, failed, moved, busy in zip(*(each.tolist() for each in columns), strict=True)
        ][:count]


def merge_totals(parts: Iterable[WindowTotals]) -> WindowTotals:
    """Return what ended within the window in several groups together."""
    parts = list(parts)
    return WindowTotals(
        count=sum(part.count for part in parts),
        failed=sum(part.failed for part in parts),
        moved=sum(part.moved for part in parts),
        busy=math.fsum(part.busy for part in parts),
    )
