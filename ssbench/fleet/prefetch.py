"""How many jobs a worker holds ahead of its users, so that no user waits for a turn through the master.

Pure. While a message goes to a worker and its results come back, the worker ends so many jobs: its rate
times its turn-round time. If more than that wait in its queue when the master hears that the queue is
short, the next ones are there before it is empty. Both figures are measured together: when a worker
acknowledges a batch, the master knows how many jobs of that worker ended since it sent the batch, and what
part of that time the worker already had it. The time for which the answer waited, beyond what messages of
that worker take at least, does not count: where the master itself is the limit, more jobs ahead would
only make that time longer, and more jobs would then be needed again.

Where the number of users changes, what was measured is taken to change with it; before anything is, the turn
of a ping says how many jobs may be needed. So slow operations have next to nothing ahead of them, and fast
ones, or those of workers behind a slow link, have as much as they need. The time for which workers gather
results is added to each turn-round time, some milliseconds: that makes messages of fast operations large,
and is no job at all where operations are slow. In a fleet of thousands, or where many groups of users share
the workers, it is longer, up to half a second, and each worker holds fewer jobs of each group at most
(:func:`scale_of_fleet`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ssbench.fleet.wire import GATHERED_RESULTS, GATHERING_SECONDS, HEARTBEAT_SECONDS

#: What a worker may hold ahead at most. More makes nothing cheaper, and a worker at 30,000 operations a
#: second behind a link of 100 ms needs about as much.
MAX_PREFETCHED = 8192

#: What is held in reserve over the jobs that end in one turn-round time: for a time that varies, a share;
#: for numbers that vary by chance, twice their root (as of independent events).
_TURN_FACTOR = 1.25
_ROOT_FACTOR = 2.0

#: A shorter turn is no measurement (seconds).
_MIN_TURN_SECONDS = 1e-6

#: What all workers together may hold ahead at most: a job takes some 300 bytes of the master's memory. Where
#: operations take no time the end of a phase waits for all of them, half a second.
MAX_FLEET_PREFETCHED = 98_304

#: How short the queues of all workers together may be at most when they are filled again: what a master at
#: 150,000 operations a second sends in a long turn, 0.16 s. Where what workers may hold is bounded, messages
#: are larger the shorter the queues are, and in a fleet of thousands messages are most of what a job costs.
_MAX_FLEET_LOW = 24_576

#: Added to the turn-round time, as a multiple of the time for which workers gather results, as long as no
#: more jobs than that end in it: workers gather no more, and jobs that wait take memory, which costs time.
_GATHERED_FACTOR = 1.5
_MAX_GATHERED_JOBS = _GATHERED_FACTOR * GATHERED_RESULTS

#: Workers gather results for this many seconds for each worker that there is, and so many at most: the
#: messages of thousands of workers, of which each does little, would be the limit of the master. Each group
#: of users has messages of its own, which cost a worker too.
_GATHERING_SECONDS_A_WORKER = 1.5e-4
_GATHERING_SECONDS_A_GROUP = 2e-3
_MAX_GATHERING_SECONDS = 0.5

#: Pings that all workers together are sent in a second where their results say the same, and the seconds
#: between two pings of one at most: so often its load is known. Of several groups one may have jobs that end
#: late, and only heartbeats confirm those.
_PINGS_A_SECOND = 1000
_MAX_PING_SECONDS = 3.0


#: Before anything is measured: a job takes a user about so many seconds, and a turn that is shorter than
#: this (seconds) needs nothing ahead for that.
_FIRST_TURN_SECONDS = 0.005
_SHORT_TURN_SECONDS = 0.01


@dataclass(frozen=True, slots=True)
class FleetScale:
    """What follows from the number of workers and of groups, for each worker and group."""

    #: For how many seconds the worker gathers results.
    gathering: float = GATHERING_SECONDS
    #: How many jobs it may hold ahead at most.
    most_ahead: int = MAX_PREFETCHED
    #: With how many it is sent more, at most.
    most_low: int = MAX_PREFETCHED // 2
    #: Seconds between two pings of the worker while its results acknowledge jobs.
    ping_seconds: float = HEARTBEAT_SECONDS


#: That of a single worker.
_SINGLE_WORKER_SCALE = FleetScale()


def scale_of_fleet(workers: int, groups: int = 1) -> FleetScale:
    """Return the scale of a fleet of so many workers, which so many groups of users share."""
    senders = workers * groups
    gathering = max(
        GATHERING_SECONDS, _GATHERING_SECONDS_A_GROUP * groups, _GATHERING_SECONDS_A_WORKER * senders
    )
    most = min(MAX_FLEET_PREFETCHED // max(1, senders), MAX_PREFETCHED)
    ping = HEARTBEAT_SECONDS if groups > 1 else min(workers / _PINGS_A_SECOND, _MAX_PING_SECONDS)
    return FleetScale(
        min(gathering, _MAX_GATHERING_SECONDS),
        most,
        min(_MAX_FLEET_LOW // max(1, senders), most // 2),
        max(ping, HEARTBEAT_SECONDS),
    )


#: What a new measurement counts for: a larger one all, because users would be idle, a smaller one little.
_RISING_WEIGHT, _FALLING_WEIGHT = 1.0, 0.1


class PrefetchedJobs:
    """What one worker is to hold beyond its share of the users.

    It is sent jobs when no more than ``low`` wait there, until ``high`` do: messages hold several, and
    ``least_message`` at least, as far as it may hold so many.
    """

    __slots__ = ("_ended", "_guessed", "_least_message", "_users", "high", "low")

    def __init__(self, least_message: int = 1) -> None:
        self._ended = 0.0
        self._least_message = least_message
        self._users = 0
        #: Whether there is only a guess so far.
        self._guessed = True
        self._follow(_SINGLE_WORKER_SCALE)

    def serve(self, users: int, round_trip: float, scale: FleetScale = _SINGLE_WORKER_SCALE) -> None:
        """Expect so many jobs at once from now on; a ping and its answer took ``round_trip`` seconds.

        As many more jobs end in a turn as there are more users. Before anything is known of the jobs the
        turn of the ping says how many may be needed: across a slow link users would be idle until the first
        results have come.
        """
        if users == self._users:
            return
        if self._guessed:
            self._ended = users * max(0.0, round_trip - _SHORT_TURN_SECONDS) / _FIRST_TURN_SECONDS
        elif users and self._users:  # without users nothing ends, and what was measured holds for the next
            self._ended *= users / self._users
        if users:
            self._users = users
        self._follow(scale)

    def observe(
        self, ended: int, seconds: float, held: float, scale: FleetScale = _SINGLE_WORKER_SCALE
    ) -> bool:
        """Take note that a batch was acknowledged; return whether ``high`` has changed.

        It was sent ``seconds`` ago. For ``held`` of them the worker had it, or its answer waited, and
        ``ended`` of its jobs ended in that time.
        """
        if seconds < _MIN_TURN_SECONDS:
            return False
        if self._guessed:
            # Its users were idle until they had the first batch; each has ended a job by now, or nearly.
            self._guessed = False
            bound = max(ended, self._users) / max(held, _MIN_TURN_SECONDS) * max(0.0, seconds - held)
            self._ended = min(self._ended, bound)
        rate = ended / seconds
        ended_on_the_way = rate * max(0.0, seconds - held) + min(
            rate * _GATHERED_FACTOR * scale.gathering, _MAX_GATHERED_JOBS
        )
        difference = ended_on_the_way - self._ended
        self._ended += difference * (_RISING_WEIGHT if difference > 0 else _FALLING_WEIGHT)
        before = self.high
        self._follow(scale)
        return self.high != before

    def _follow(self, scale: FleetScale) -> None:
        reserve = 1 + math.ceil(_TURN_FACTOR * self._ended + _ROOT_FACTOR * math.sqrt(self._ended))
        self.low = min(reserve, scale.most_low)
        self.high = min(max(2 * reserve, self.low + self._least_message), scale.most_ahead)
