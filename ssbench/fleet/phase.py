"""Parts of a run, and how many jobs may be sent for them now.

The loop (:mod:`ssbench.run.loop`) carries out a :class:`Phase` and asks a :class:`Pace` each time it may send
something. All here is pure: it is given the time and the counts.

A pace alone decides how much load there is. It is a :class:`ClosedLoop`, or a :class:`StagedPace` whose load
changes with the time, or whose operations are due at moments of their own:

* *Stages* change :meth:`Pace.users` with the time.
* In an *open loop* of N operations a second :meth:`Pace.room` is the number of operations that are due
  shortly and were not sent, as far as users are free, :meth:`Pace.dues` says when each is due, and
  :meth:`Pace.wait` in how many seconds the next ones are to be sent.
"""

from __future__ import annotations

# ruff: noqa: D102 - the methods of a pace are documented in Pace
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol

from ssbench.fleet.worker_state import History, Task, WorkerState
from ssbench.scenario.draws import Arrivals
from ssbench.scenario.model import Stage
from ssbench.store.contract import JobResult


class Phase(Protocol):
    """A part of a run: it provides tasks and receives how each ends.

    Times are of the master's monotonic clock.
    """

    #: For messages: "initial uploads", "operations".
    what: str

    @property
    def drain_timeout(self) -> float | None:
        """Seconds to wait for tasks in flight once no more are to be sent; None: as long as it takes."""

    def next_tasks(self, count: int) -> Sequence[Task]:
        """Return at most ``count`` tasks to send now."""

    def exhausted(self, now: float) -> bool:
        """Return whether no new tasks are to be sent. Changes nothing."""

    def cut_short(self, now: float) -> bool:
        """Return whether what has not begun is not to be done any more; only where it is exhausted."""

    def take_back(self, tasks: Sequence[Task], *, in_doubt: bool) -> None:
        """Take back tasks that have not begun and will not be sent again.

        ``in_doubt``: as far as is known they have not; a lost worker may have done them.
        """

    def sent_again(self, now: float) -> None:
        """Take note that tasks were sent after it was exhausted: some that had not begun, or that failed."""

    def done(self, ended: Sequence[tuple[Task, JobResult]], worker: WorkerState) -> None:
        """Receive results: these tasks succeeded or failed."""

    def lost(
        self, tasks: Sequence[Task], *, abandoned: str | None, worker: WorkerState | None = None
    ) -> Sequence[Task]:
        """Take note of tasks without a result; return those to send again.

        They were lost with ``worker`` if ``abandoned`` is None. Otherwise no task is sent any more, and
        ``abandoned`` is the cause of their failure; ``worker`` is the one that had them, where known.
        """

    def catch_up(self) -> None:
        """Do what could wait until the next tasks are on their way."""

    def tick(self, now: float) -> None:
        """Do what is to be done several times a second."""


def give_back_tasks(phase: Phase, not_begun: Sequence[tuple[Task, History | None]]) -> None:
    """Give back tasks to a phase that have not begun, each with its history."""
    for in_doubt in (False, True):
        tasks = [
            task for task, history in not_begun if (history is not None and history.in_doubt) == in_doubt
        ]
        if tasks:
            phase.take_back(tasks, in_doubt=in_doubt)


# -- When waiting longer is useless ----------------------------------------------------------------


class StallDetector:
    """What happened since the last success of a phase. Times are of the master's monotonic clock, in seconds.

    A phase is abandoned when nothing has succeeded for ``give_up_after`` seconds and the failures since then
    explain it: every job that was in flight at the first of them has failed too, and none has been in flight
    for longer than failing takes. So an upload of several minutes is waited for, however much else fails;
    :mod:`ssbench.fleet.dispatcher` sees to it that each job ends some time.

    ``give_up_after`` 0 means never. To be idle is no failure: of each time in which nothing was due at most a
    tenth of it counts, so that a store that fails all of few requests is given up all the same.
    """

    def __init__(self, give_up_after: float, now: float) -> None:
        self.give_up_after = give_up_after
        #: When the last job succeeded, and when the last one ended; the start of the phase before that.
        self.succeeded_at = self.ended_at = now
        #: The longest time without a success in which something failed.
        self.longest = 0.0
        self._clear()

    def _clear(self) -> None:
        #: How long it has been idle without an end, and how much of all such times does not count.
        self._idle = self._uncounted = 0.0
        self._causes: Counter[str] = Counter()
        self._detail = ""
        self._first_failure = float("inf")
        self._longest_failure = 0.0

    def succeeded(self, now: float) -> None:
        """Take note that a job succeeded."""
        if self._causes or self._uncounted:
            self.longest = self.silence(now)
            self._clear()
        self._idle = 0.0
        self.succeeded_at = self.ended_at = now

    def failed(self, cause: str, detail: str, seconds: float, now: float) -> None:
        """Take note that a job failed that had been in flight for this many seconds."""
        self.ended_at = now
        self._idle = 0.0
        self._causes[cause] += 1
        self._detail = detail or self._detail
        self._first_failure = min(self._first_failure, now)
        self._longest_failure = max(self._longest_failure, seconds)

    def idled(self, seconds: float) -> None:
        """Take note that nothing was due or in flight for this many more seconds; 0: something is."""
        most = self.give_up_after / 10
        before = max(self._idle - most, 0.0)
        self._idle = self._idle + seconds if seconds else 0.0
        self._uncounted += max(max(self._idle - most, 0.0) - before, 0.0)

    def silence(self, now: float) -> float:
        """Return the longest time without a success in which something failed, up to now."""
        return max(self.longest, self._count_seconds(now)) if self._causes else self.longest

    def _count_seconds(self, now: float) -> float:
        """Return for how long nothing has succeeded, as far as that counts."""
        return now - self.succeeded_at - self._uncounted

    @property
    def failures(self) -> str:
        """The failures since the last success: causes with their counts, the last detail; or empty."""
        causes = ", ".join(f"{count} x {cause}" for cause, count in self._causes.most_common(3))
        return f"{causes} (the last: {self._detail})" if self._detail else causes

    @property
    def main_cause(self) -> str | None:
        """The most frequent cause since the last success."""
        return self._causes.most_common(1)[0][0] if self._causes else None

    def hopeless(self, now: float, find_oldest: Callable[[], float | None]) -> bool:
        """Return whether to abandon the phase. ``find_oldest`` returns when the oldest job under way began.

        It is called only where nothing but failures came for long: among thousands of batches it takes long.
        """
        if not (self.give_up_after and self._causes) or self._count_seconds(now) < self.give_up_after:
            return False
        oldest = find_oldest()
        return oldest is None or (oldest >= self._first_failure and now - oldest <= self._longest_failure)


# -- How many jobs may be sent now -----------------------------------------------------------------


#: Most jobs of a message, which has to stay under :data:`ssbench.fleet.wire.MAX_MESSAGE_BYTES`.
MAX_BATCH_JOBS = 10_000


class Pace(Protocol):
    """Decides how many jobs may be sent. Times are seconds of the master's monotonic clock.

    Jobs that workers hold ahead of their users (:mod:`ssbench.fleet.prefetch`) do not concern a pace: the
    loop leaves as many out of ``in_flight`` as workers may hold.
    """

    @property
    def batch_size(self) -> int:
        """How many jobs a message for a worker has at least, where its users have others meanwhile.

        As far as no moment says when the jobs are due.
        """

    def users(self, now: float) -> int:
        """How many operations may be under way at once; asked some times a second.

        The workers get equal shares of them, as far as each has room.
        """

    def room(self, now: float, sent: int, in_flight: int, capacity: int) -> int:
        """How many more jobs may be sent now; none if it is not positive.

        ``sent`` is how many new tasks the phase has sent so far, ``in_flight`` how many jobs are with workers
        beyond those that they may hold ahead; negative while they hold fewer. ``capacity`` is how many
        operations the workers that are there can run at once.
        """

    def wait(self, now: float, sent: int) -> float:
        """Seconds until there is room without any result; infinity if only results make room."""

    def in_hand(self, now: float) -> int | None:
        """How many jobs all workers together may have, with those ahead; None: as many as they need."""

    def reach(self, round_trip: Callable[[], float]) -> None:
        """Ask for the seconds that a message to the worker furthest away and its answer take, if they matter.

        Operations that are due are handed out earlier by as much.
        """

    def dues(self, first: int, count: int) -> Sequence[float]:
        """When the new tasks from number ``first`` on are due, which are sent now; empty in a closed loop."""


@dataclass(frozen=True, slots=True)
class ClosedLoop:
    """A constant number of users, each of which begins its next operation when one has ended."""

    user_count: int
    batch_size: int = 1

    def users(self, now: float) -> int:
        return self.user_count

    def room(self, now: float, sent: int, in_flight: int, capacity: int) -> int:
        return (capacity if capacity < self.user_count else self.user_count) - in_flight

    def wait(self, now: float, sent: int) -> float:
        return math.inf

    def in_hand(self, now: float) -> int | None:
        return None

    def reach(self, round_trip: Callable[[], float]) -> None:
        pass

    def dues(self, first: int, count: int) -> Sequence[float]:
        return ()


def share_users(total: int, capacities: Sequence[int]) -> list[int]:
    """Divide ``total`` users among workers; returns the share of each.

    All get the same, give or take one, but no worker more than its capacity: what it has no room for goes
    to the others.
    """
    shares = [0] * len(capacities)
    left = total
    for place, worker in enumerate(sorted(range(len(capacities)), key=capacities.__getitem__)):
        shares[worker] = min(capacities[worker], -(-left // (len(capacities) - place)))
        left -= shares[worker]
    return shares


#: Operations are handed out this many seconds before they are due, so that they are with a worker in time,
#: and earlier by the time of a message and its answer (:meth:`Pace.reach`).
LEAD_SECONDS = 0.25

#: They are handed out for this many seconds at once, so that a message holds several.
CHUNK_SECONDS = 0.05


class StagedPace:
    """Goes through stages from ``start`` on; a :class:`~ssbench.fleet.phase.Pace`.

    Where a stage has a rate, operations are due at the moments of ``arrivals``, and :meth:`dues` gives the
    loop which. They are asked for in order, so that ``arrivals`` counts what was handed out. What could not
    be begins later, in the next stage too, unless that has no rate: then it is skipped. Of a stage
    with a rate that follows one without, nothing is handed out before it begins, so its first operations
    begin a little late.
    """

    def __init__(self, plan: Sequence[Stage], arrivals: Arrivals, start: float, batch_size: int = 1) -> None:
        self.batch_size = batch_size
        self._plan = plan
        self._arrivals = arrivals
        self._start = start
        self._ends = list(accumulate(stage.seconds for stage in plan))
        self._place = 0
        self._lead = LEAD_SECONDS

    def reach(self, round_trip: Callable[[], float]) -> None:
        self._lead = LEAD_SECONDS + round_trip()

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
        return self.users(now) + math.ceil(2 * (self._lead + CHUNK_SECONDS) * rate) + 1

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
        # It is handed out with the chunk that it is due in; sums of floating point numbers may say a little
        # before that.
        return max(
            1e-4, self._start + math.floor(following / CHUNK_SECONDS) * CHUNK_SECONDS - self._lead - now
        )

    def dues(self, first: int, count: int) -> list[float]:
        if self._plan[self._place].rate is None:
            return []
        return [self._start + moment for moment in self._arrivals.take(count)]

    def _horizon(self, now: float) -> float:
        """The end of the chunk up to which operations are handed out, in seconds from the start."""
        return (math.floor((now - self._start + self._lead) / CHUNK_SECONDS) + 1) * CHUNK_SECONDS

    def _where(self, now: float) -> tuple[int, float]:
        """Return which stage it is, and how much of it is over."""
        passed = now - self._start
        while self._place < len(self._plan) - 1 and passed >= self._ends[self._place]:
            self._place += 1
        stage = self._plan[self._place]
        left = self._ends[self._place] - passed
        return self._place, 0.0 if stage.seconds == math.inf else min(max(1 - left / stage.seconds, 0.0), 1.0)
