"""What ended within the window of a run, of which rates are made.

The end of the window is the last moment of sending, which is known at the end only. So what ended after the
latest send so far is kept, which is never more than was under way at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec
import numpy as np
import numpy.typing as npt

from ssbench.measures import Bytes, Count, Seconds
from ssbench.results import ResultBlock
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
    """Sums up what ended, and separates what ended after a moment that becomes known later."""

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
        """Count some rows of a block; ``last_sent`` is the moment so far."""
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

    def finish(self, window: Window) -> WindowTotals:
        """Return what ended within a window whose end is no earlier than any ``last_sent``."""
        late = self._late[self._late[:, 0] > window.end]
        late[:, 4] *= late[:, 0] - window.end
        count, failed, moved, busy = (self._sums - late[:, 1:].sum(axis=0)).tolist()
        return WindowTotals(round(count), round(failed), round(moved), busy)


def merge_totals(parts: Iterable[WindowTotals]) -> WindowTotals:
    """Return what ended within the window in several groups together."""
    parts = list(parts)
    return WindowTotals(
        count=sum(part.count for part in parts),
        failed=sum(part.failed for part in parts),
        moved=sum(part.moved for part in parts),
        busy=math.fsum(part.busy for part in parts),
    )
