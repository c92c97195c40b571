"""What the master knows of each worker: does it live, what does it hold, how busy is it, what is its time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from ssbench.fleet.wire import LAG_BUCKETS, work_address

#: Seconds over which the smallest difference of two hosts' clocks is sought.
CLOCK_WINDOW = 30.0


class ClockOffset:
    """What to add to a worker's clock to get the master's.

    Each message says when it was sent; arrival less sending is the true offset plus the time on
    the way, so the smallest difference seen is the best estimate, and errs by the shortest time on
    the way. Only the last one or two :data:`CLOCK_WINDOW` count, because clocks drift.
    """

    def __init__(self) -> None:
        self.seconds = math.inf
        self._smallest = math.inf
        self._smallest_before = math.inf
        self._window_ends = -math.inf

    def observe(self, sent: float, received: float) -> None:
        """Take note of a message: when it was sent (worker's clock) and received (master's)."""
        difference = received - sent
        if received >= self._window_ends:
            self._window_ends = received + CLOCK_WINDOW
            self._smallest_before, self._smallest = self._smallest, math.inf
        if difference < self._smallest:
            self._smallest = difference
            self.seconds = min(self._smallest_before, difference)


class Load:
    """How busy a worker was since it was last cleared, from its heartbeats."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Begin anew with the next heartbeat."""
        self._lag = [0] * LAG_BUCKETS
        self._first: tuple[float, float] | None = None
        self._last: tuple[float, float] | None = None

    def observe(self, clock: float, cpu: float, lag: Sequence[int]) -> None:
        """Take in a heartbeat."""
        self._last = (clock, cpu)
        if self._first is None:
            self._first = self._last
            return
        for place, count in enumerate(lag[:LAG_BUCKETS]):
            self._lag[place] += count

    @property
    def cpu_share(self) -> float | None:
        """Share of one core that the main thread used; None before there were two heartbeats."""
        if self._first is None or self._last is None or self._last[0] <= self._first[0]:
            return None
        return (self._last[1] - self._first[1]) / (self._last[0] - self._first[0])

    @property
    def late_share(self) -> float | None:
        """Share of ticks that came more than a millisecond late; None when there were none."""
        ticks = sum(self._lag)
        return sum(self._lag[1:]) / ticks if ticks else None

    def lag_percentile(self, percentile: float) -> float | None:
        """Upper end, in seconds, of the bucket that holds that percentile of the lateness."""
        below = sum(self._lag) * percentile / 100
        for place, count in enumerate(self._lag):
            below -= count
            if count and below <= 0:
                return float(2**place) / 1000
        return None


@dataclass(slots=True, eq=False)
class WorkerState:
    """What is known of one worker process.

    ``rivals`` came with the same id while this one had it. ``ended`` is set for good. ``quota`` is how
    many jobs it may be sent, ``outstanding`` how many of those have not ended; ``away`` is set while
    its connection for work is not there. ``foreign_results`` named jobs that others have,
    ``invalid_results`` had figures that cannot be.
    """

    worker_id: int
    instance: int
    host: str
    pid: int
    version: str
    capacity: int
    last_seen: float
    refused: bool = False
    alive: bool = True
    ended: bool = False
    away: bool = False
    quota: int = 0
    outstanding: int = 0
    foreign_results: int = 0
    invalid_results: int = 0
    rivals: list[WorkerState] = field(default_factory=list)
    batches: set[int] = field(default_factory=set)
    offset: ClockOffset = field(default_factory=ClockOffset)
    load: Load = field(default_factory=Load)
    address: bytes = field(init=False)

    def __post_init__(self) -> None:
        self.address = work_address(self.instance)
