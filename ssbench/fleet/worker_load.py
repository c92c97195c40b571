"""How busy a worker was, from its heartbeats (pure)."""

from __future__ import annotations

from collections.abc import Sequence

from ssbench.base.host import HostCounters
from ssbench.fleet.wire import LAG_BUCKETS, lag_limit

#: Two heartbeats that are nearer to each other (seconds) do not tell how busy a worker is.
_MIN_HEARTBEAT_DISTANCE = 0.5

#: Times in which a worker stalled are kept up to this number.
MAX_WORKER_GAPS = 1000


class WorkerLoad:
    """How busy a worker was since it was last cleared, from its heartbeats."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget the load so far; count from the next heartbeat on."""
        self._lag = [0] * LAG_BUCKETS
        self._first: tuple[float, float] | None = None
        self._last: tuple[float, float] | None = None
        self._taken: tuple[float, float] | None = None
        self._host_first: tuple[float, HostCounters] | None = None
        self._host_last: tuple[float, HostCounters] | None = None
        self._lag_since = 0.0
        #: How late its event loop was at most, in seconds, and the times in which it stalled.
        self.lag_max = 0.0
        #: Times in which it stalled, by the master's clock; how many more were not kept.
        self.gaps: list[tuple[float, float]] = []
        self.gaps_dropped = 0
        self._last_gap: float | None = None

    def observe(
        self,
        clock: float,
        cpu: float,
        lag: Sequence[int],
        lag_max: float = 0.0,
        machine: HostCounters | None = None,
    ) -> None:
        """Receive a heartbeat."""
        if machine is not None:
            self._host_last = (clock, machine)
            self._host_first = self._host_first or self._host_last
        self._last = (clock, cpu)
        if self._first is None:
            self._first = self._taken = self._last
            return
        self._lag_since = max(self._lag_since, lag_max)
        self.lag_max = max(self.lag_max, lag_max)
        for place, count in enumerate(lag[:LAG_BUCKETS]):
            self._lag[place] += count

    def stood_still(self, began: float, gap: tuple[float, float], room: int) -> int:
        """Keep a time in which it stalled, of the master's clock, if there is ``room`` for one.

        ``began`` is its beginning by the worker's clock: one that begins with the last one is the same, and
        continued after it was reported. Returns how many more are kept now.
        """
        if self.gaps and began == self._last_gap:
            self.gaps[-1] = gap
            return 0
        if room <= 0 or len(self.gaps) >= MAX_WORKER_GAPS:
            self.gaps_dropped += 1
            return 0
        self._last_gap = began
        self.gaps.append(gap)
        return 1

    @property
    def cpu_share(self) -> float | None:
        """Share of one core that the main thread used; None before there were two heartbeats apart."""
        if (
            self._first is None
            or self._last is None
            or self._last[0] - self._first[0] < _MIN_HEARTBEAT_DISTANCE
        ):
            return None
        return (self._last[1] - self._first[1]) / (self._last[0] - self._first[0])

    @property
    def host(self) -> tuple[float, HostCounters, HostCounters] | None:
        """How many seconds were between two readings of its machine, and both; None where there were none."""
        if self._host_first is None or self._host_last is None:
            return None
        return self._host_last[0] - self._host_first[0], self._host_first[1], self._host_last[1]

    def take_recent(self) -> tuple[float, float] | None:
        """Return the share of one core since the last call, and how late the event loop was at most, in s.

        None, and nothing is taken, where no two heartbeats since then are far enough apart.
        """
        if (
            self._taken is None
            or self._last is None
            or self._last[0] - self._taken[0] < _MIN_HEARTBEAT_DISTANCE
        ):
            return None
        found = (self._last[1] - self._taken[1]) / (self._last[0] - self._taken[0]), self._lag_since
        self._taken, self._lag_since = self._last, 0.0
        return found

    def lag_percentile(self, percentile: float) -> float | None:
        """Upper end, in seconds, of the bucket that holds that percentile of the lateness."""
        below = sum(self._lag) * percentile / 100
        for place, count in enumerate(self._lag):
            below -= count
            if count and below <= 0:
                return lag_limit(place)
        return None
