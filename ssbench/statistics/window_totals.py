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

from ssbench.base.measures import Bytes, Count, Seconds
from ssbench.statistics.tally import add_up, grow_groups
from ssbench.statistics.timeline import Window


class WindowTotals(msgspec.Struct, frozen=True, rename={"moved": "bytes"}):
    """What ended within a window: successes, failures (lost operations too), bytes that successes moved.

    ``busy`` is the time that operations were under way within it, without our own pauses between their
    attempts, which are ``pausing``.
    """

    count: Count = 0
    failed: Count = 0
    moved: Bytes = 0
    busy: Seconds = 0.0
    pausing: Seconds = 0.0


class WindowTotalsCollector:
    """Sums up what ended, by the number of its group; separates what ended after a moment known later."""

    def __init__(self) -> None:
        #: Of each group: successes, failures, bytes that successes moved, seconds at the store and of pauses.
        self._sums = [np.empty(0)] * 5
        #: A row for each operation that may have ended after the moment: its group, its end, successes,
        #: failures and bytes; then which shares of its time it was at the store and paused.
        self._late = np.empty((0, 7))

    def add(
        self,
        groups: npt.NDArray[np.intp],
        completed: npt.NDArray[np.float64],
        moved: npt.NDArray[Any],
        succeeded: npt.NDArray[np.bool_],
        started: npt.NDArray[np.float64],
        last_sent: float,
        pausing: npt.NDArray[np.float64] | None = None,
    ) -> None:
        """Count operations; ``last_sent`` is the moment so far. Of failures ``started`` may be NaN.

        ``pausing`` are the seconds of our own pauses in each, None where none paused.
        """
        seconds = completed - started
        known = ~np.isnan(seconds)
        seconds = np.where(known, seconds, 0.0)
        paused = None if pausing is None else np.clip(pausing, 0.0, np.maximum(seconds, 0.0))
        at_store = seconds if paused is None else seconds - paused
        columns = (succeeded, ~succeeded, moved, at_store)
        self._sums[:4] = [
            add_up(sums, groups, column) for sums, column in zip(self._sums[:4], columns, strict=True)
        ]
        if paused is not None:
            self._sums[4] = add_up(self._sums[4], groups, paused)
        self._late = self._late[self._late[:, 1] > last_sent]
        late = np.flatnonzero(completed > last_sent)
        if len(late):
            # When an operation paused is not recorded: any part of it counts as having paused as much.
            share = np.zeros(len(late))
            if paused is not None:
                np.divide(paused[late], seconds[late], out=share, where=seconds[late] > 0)
            failed, known = ~succeeded, known[late]
            rows = [column[late] for column in (groups, completed, succeeded, failed, moved)]
            self._late = np.concatenate(
                [self._late, np.column_stack([*rows, known * (1 - share), known * share])]
            )

    def finish(self, window: Window, count: int = 1) -> list[WindowTotals]:
        """Return what ended within a window whose end is no earlier than any ``last_sent``.

        They are those of the groups 0 to ``count`` - 1.
        """
        late = self._late[self._late[:, 1] > window.end]
        groups = late[:, 0].astype(np.intp)
        after = late[:, 1] - window.end
        beyond = (late[:, 2], late[:, 3], late[:, 4], late[:, 5] * after, late[:, 6] * after)
        columns = (
            grow_groups(sums, count) - np.bincount(groups, each, max(count, len(sums)))
            for sums, each in zip(self._sums, beyond, strict=True)
        )
        return [
            WindowTotals(round(succeeded), round(failed), round(moved), busy, pausing)
            for succeeded, failed, moved, busy, pausing in zip(
                *(each.tolist() for each in columns), strict=True
            )
        ][:count]


def merge_totals(parts: Iterable[WindowTotals]) -> WindowTotals:
    """Return what ended within the window in several groups together."""
    parts = list(parts)
    return WindowTotals(
        count=sum(part.count for part in parts),
        failed=sum(part.failed for part in parts),
        moved=sum(part.moved for part in parts),
        busy=math.fsum(part.busy for part in parts),
        pausing=math.fsum(part.pausing for part in parts),
    )
