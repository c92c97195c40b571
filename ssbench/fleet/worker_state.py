"""What the master knows of each worker: whether it is alive, its jobs, its load, its clock."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from ssbench.fleet.wire import LAG_BUCKETS, work_address

#: Seconds over which the smallest difference of two hosts' clocks is sought.
CLOCK_WINDOW = 30.0

#: What a new turn-round time counts for in the average of them.
TURN_ROUND_WEIGHT = 0.25


class ClockOffset:
    """The number of seconds to add to a worker's clock to get the master's.

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
        """Forget the load so far; count from the next heartbeat on."""
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
    """What is known of one worker process. Times are of the master's monotonic clock.

    ``alive``: its heartbeats arrive. ``ready``: what is sent to it arrives too, and nobody else has its id;
    only then it gets jobs. ``used``: it has been ready. ``ended`` and ``refusal`` (why it is not used) are
    set for good. ``capacity`` is what it says it can take, ``quota`` how many jobs it may be sent,
    ``outstanding`` how many of those have not ended. ``away`` is set until the next tick when its
    connection for work is not there, or when it has handed jobs back; ``told`` once the user knows that it
    cannot be reached. ``foreign_results`` named jobs that others have, ``invalid_results`` had figures that
    cannot be.

    ``since`` is when its heartbeats began to arrive, ``pinged`` when it was last sent a ping, ``echo`` when
    the last ping that it answered was sent and ``reached`` when that answer came. ``turn_round`` is the
    moving average of the seconds between the two.
    """

    worker_id: int
    instance: int
    host: str
    pid: int
    version: str
    capacity: int
    last_seen: float
    since: float = field(init=False)
    refusal: str | None = None
    alive: bool = True
    ready: bool = False
    used: bool = False
    ended: bool = False
    away: bool = False
    told: bool = False
    quota: int = 0
    outstanding: int = 0
    foreign_results: int = 0
    invalid_results: int = 0
    pinged: float = -math.inf
    echo: float = -math.inf
    reached: float = -math.inf
    turn_round: float | None = None
    batches: set[int] = field(default_factory=set)
    offset: ClockOffset = field(default_factory=ClockOffset)
    load: Load = field(default_factory=Load)
    address: bytes = field(init=False)

    def __post_init__(self) -> None:
        self.address = work_address(self.instance)
        self.since = self.last_seen

    @property
    def refused(self) -> bool:
        """Whether it was turned away."""
        return self.refusal is not None

    @property
    def name(self) -> str:
        """For messages: its id, host and process id."""
        return f"Worker {self.worker_id} on {self.host} (pid {self.pid})"

    def begin(self, now: float) -> None:
        """Another run begins: it is not ready until it answers a ping of that run."""
        self.ready = self.used = self.told = False
        self.since = self.last_seen = now
        self.pinged = self.reached = -math.inf
        self.foreign_results = self.invalid_results = 0
        self.load.clear()

    def answered(self, sent: float, now: float) -> None:
        """Take note of a heartbeat that repeats the ping sent then; only the first one is its answer."""
        if self.echo < sent <= now:
            self.echo, self.reached = sent, now
            took = now - sent
            if self.turn_round is None:
                self.turn_round = took
            else:
                self.turn_round += (took - self.turn_round) * TURN_ROUND_WEIGHT

    def forgive(self, seconds: float) -> None:
        """The master was held up for so long: nothing could be heard meanwhile."""
        self.last_seen += seconds
        self.since += seconds
        self.reached += seconds
        # What it answers to an earlier ping says nothing about the turn-round time.
        self.echo = max(self.echo, self.pinged)
