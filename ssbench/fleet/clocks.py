"""How the clocks of a worker go against those of the master (pure)."""

from __future__ import annotations

import math
from dataclasses import dataclass

#: Seconds over which the smallest difference of two hosts' clocks is sought.
CLOCK_WINDOW_SECONDS = 30.0

#: Due times count from another moment of a worker's clock when that differs by this many seconds.
_MAX_DRIFT_SECONDS = 0.01

#: The slope of a clock is that between the first and the last this many seconds, if these are so far apart.
SLOPE_WINDOW_SECONDS = 5.0
SLOPE_SECONDS = 10.0


class ClockOffset:
    """The number of ``seconds`` to add to a worker's clock to get the master's.

    Each message says when it was sent: arrival less sending is the true offset plus the time on the way, so
    that the offset is no larger than the smallest difference, ``most``. A ping was sent before it was
    answered, so that the offset is no smaller than the largest difference of these. The estimate is what it
    was before, as far as it is half of the shortest way there and back from either: it ends in the middle,
    and errs by half of what the shortest ways of the two directions differ, however much other messages are
    delayed, also where these are the first after a clock has moved. Before a ping is answered it is ``most``.
    Only the last one or two :data:`CLOCK_WINDOW_SECONDS` count, because clocks drift.
    """

    def __init__(self, half: float = math.inf) -> None:
        self.seconds = self.most = math.inf
        #: Half of the shortest time of a ping and its answer: by the master's clock alone, so that it stays
        #: true where the worker's stalls, and one late answer after that does not count.
        self.half = half
        #: The bounds of this window, and of the one before.
        self._bounds = self._before = (-math.inf, math.inf)
        self._window_ends = -math.inf

    def observe(self, sent: float, received: float, asked: float | None = None) -> None:
        """Take note of a message: when it was sent (worker's clock) and received (master's).

        It repeats a ping that was sent at ``asked`` (master's clock), None: it repeats none.
        """
        if received >= self._window_ends:
            self._window_ends = received + CLOCK_WINDOW_SECONDS
            self._before, self._bounds = self._bounds, (-math.inf, math.inf)
        least, most = self._bounds
        if asked is None and received - sent >= most:
            return  # nearly always; this is called for each message
        own_least, own_most = -math.inf if asked is None else asked - sent, received - sent
        half = self.half if asked is None else min(self.half, (received - asked) / 2)
        if own_most < most or own_least > least or half < self.half:
            self.half = half
            self._bounds = least, most = max(least, own_least), min(most, own_most)
            least, most = max(least, self._before[0]), min(most, self._before[1])
            if least > most:  # one of the clocks stalled meanwhile
                self._before = -math.inf, math.inf
                self._bounds = least, most = own_least, own_most
            self.most = most
            way = min((most - least) / 2, self.half)
            if math.isinf(least):
                self.seconds = most if math.isinf(way) else most - way
            else:
                self.seconds = min(max(self.seconds, least + way), most - way)


@dataclass(slots=True)
class _OffsetBounds:
    """What is known of the offset of a clock around a moment: it lies between these two."""

    at: float
    least: float = -math.inf
    most: float = math.inf


class WorkerClocks:
    """How a worker's clocks go against the master's, from its heartbeats.

    A worker answers a ping after it was sent and before the answer arrives, so that each answer bounds the
    offset of the monotonic clocks from both sides. The slope is the least that the bounds at the beginning
    and at the end of the time allow: heartbeats that are late on a loaded machine make no slope.
    """

    def __init__(self) -> None:
        #: What is known of the offset of the times of day: heartbeats left after a ping and before they came.
        self._wall = _OffsetBounds(0.0)
        self._first: _OffsetBounds | None = None
        self._last: _OffsetBounds | None = None

    def observe(
        self, clock: float, received: float, asked: float | None, wall_difference: float | None
    ) -> None:
        """Receive a heartbeat that was sent at ``clock`` by the worker's monotonic clock.

        By the master's it arrived at ``received`` and answers a ping sent at ``asked`` (None: no ping).
        ``wall_difference`` is arrival less sending by time of day, None where it is not known.
        """
        if wall_difference is not None:
            self._observe_wall(wall_difference, None if asked is None else received - asked)
        if asked is None:
            return
        if self._first is None:
            self._first = self._last = _OffsetBounds(received)
        elif self._last is None or received - self._last.at >= SLOPE_WINDOW_SECONDS:
            self._last = _OffsetBounds(received)
        bounds = self._last or self._first
        bounds.least = max(bounds.least, asked - clock)
        bounds.most = min(bounds.most, received - clock)

    def _observe_wall(self, difference: float, round_trip: float | None) -> None:
        wall = self._wall
        wall.most = min(wall.most, difference)
        if round_trip is not None:
            wall.least = max(wall.least, difference - round_trip)
        if wall.least > wall.most:  # one of the two was set meanwhile
            self._wall = _OffsetBounds(0.0)

    @property
    def wall_offset(self) -> float | None:
        """Seconds to add to the worker's time of day to have the master's, at least; None where not known.

        It is the least that the time on the way allows, whichever direction took how much of it: 0 for a
        worker behind a slow link whose clock may be right.
        """
        if math.isinf(self._wall.least) or math.isinf(self._wall.most):
            return None
        return min(max(self._wall.least, 0.0), self._wall.most)

    @property
    def slope(self) -> float | None:
        """Seconds that the worker's clock loses in each of the master's; None where too little was seen."""
        if self._first is None or self._last is None or self._last.at - self._first.at < SLOPE_SECONDS:
            return None
        seconds = self._last.at - self._first.at
        least = (self._last.least - self._first.most) / seconds
        most = (self._last.most - self._first.least) / seconds
        return min(max(least, 0.0), most)


class WorkerClock:
    """The clocks of one worker by the master's: offset and slope of the monotonic one, the time of day.

    ``start`` is the moment of the worker's clock from which due times count.
    """

    __slots__ = ("course", "offset", "start")

    def __init__(self) -> None:
        self.offset = ClockOffset()
        self.course = WorkerClocks()
        self.start = -math.inf

    def begin(self) -> None:
        """Another run begins: what is shown of the clocks counts from now on."""
        self.course = WorkerClocks()

    def forget(self) -> None:
        """The worker's clock may have stalled: a machine that was suspended has such a one."""
        self.offset, self.course = ClockOffset(self.offset.half), WorkerClocks()

    def start_of(self, moment: float) -> float:
        """Return a moment of the master's clock by the worker's; the same until the clocks drift apart."""
        start = moment - self.offset.seconds
        if abs(start - self.start) > _MAX_DRIFT_SECONDS:
            self.start = start
        return self.start
