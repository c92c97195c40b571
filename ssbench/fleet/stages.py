"""The pace of a run whose load changes with the time, or whose operations are due at moments of their own."""

# ruff: noqa: D102 - the methods of a pace are documented in Pace

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate

from ssbench.fleet.pace import MOST_IN_BATCH
from ssbench.scenario.arrivals import Arrivals
from ssbench.scenario.model import Stage

#: Operations are handed out this many seconds before they are due, so that they are with a worker in time.
LEAD = 0.25

#: They are handed out for this many seconds at once, so that a message holds several.
CHUNK = 0.02


class StagedPace:
    """Goes through stages from ``start`` on; a :class:`~ssbench.fleet.pace.Pace`.

    Where a stage has a rate, operations are due at the moments of ``arrivals``, and :meth:`dues` tells the
    loop which. They are asked for in order, so that ``arrivals`` counts what was handed out. What could not
    be begins later, in the next stage too, unless that has no rate: then it is skipped. Of a stage
    with a rate that follows one without, nothing is handed out before it begins, so its first operations
    begin a little late.
    """

    def __init__(
        self, plan: Sequence[Stage], arrivals: Arrivals, start: float, batch_size: int = MOST_IN_BATCH
    ) -> None:
        self.batch_size = min(batch_size, MOST_IN_BATCH)
        self._plan = plan
        self._arrivals = arrivals
        self._start = start
        self._ends = list(accumulate(stage.seconds for stage in plan))
        self._place = 0

    def users(self, now: float) -> int:
        place, share = self._where(now)
        first, last = self._plan[place].users or (1, 1)
        return round(first + share * (last - first))

    def rate(self, now: float) -> float | None:
        """Operations a second that are due now; None in a closed loop."""
        place, share = self._where(now)
        rate = self._plan[place].rate
        return None if rate is None else rate[0] + share * (rate[1] - rate[0])

    def in_hand(self, now: float) -> int | None:
        rate = self.rate(now)
        if rate is None:
            return None
        # Twice, because chance makes more of them due in one moment than in another, and rates grow.
        return self.users(now) + math.ceil(2 * (LEAD + CHUNK) * rate) + 1

    def room(self, now: float, sent: int, in_flight: int, capacity: int) -> int:
        free = min(capacity, self.users(now)) - in_flight
        if self._plan[self._place].rate is None:
            if self._place:
                self._arrivals.skip(self._ends[self._place - 1])
            return free
        return self._arrivals.until(self._horizon(now), free) if free > 0 else free

    def wait(self, now: float, sent: int) -> float:
        if self._plan[self._place].rate is None:
            return self._start + self._ends[self._place] - now
        following = self._arrivals.next
        if following <= self._horizon(now) or following == math.inf:
            return math.inf  # only results make room
        # It is handed out with the chunk that it is due in.
        return max(0.0, self._start + math.floor(following / CHUNK) * CHUNK - LEAD - now)

    def dues(self, first: int, count: int) -> list[float]:
        if self._plan[self._place].rate is None:
            return []
        return [self._start + moment for moment in self._arrivals.take(count)]

    def _horizon(self, now: float) -> float:
        """The end of the chunk up to which operations are handed out, in seconds from the start."""
        return (math.floor((now - self._start + LEAD) / CHUNK) + 1) * CHUNK

    def _where(self, now: float) -> tuple[int, float]:
        """Return which stage it is, and how much of it is over."""
        passed = now - self._start
        while self._place < len(self._plan) - 1 and passed >= self._ends[self._place]:
            self._place += 1
        stage = self._plan[self._place]
        left = self._ends[self._place] - passed
        return self._place, 0.0 if stage.seconds == math.inf else min(max(1 - left / stage.seconds, 0.0), 1.0)
