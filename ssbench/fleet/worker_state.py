"""What the master knows of one worker process, in parts with a keeper each.

The roster keeps :class:`WorkerPresence`, the allocation :class:`JobAllowance`, the ledger :class:`HeldJobs`;
each writes its own part only. :class:`WorkerClocks` and :class:`WorkerLoad` follow from heartbeats. A
:class:`History` belongs to a job that is sent again, because its token was refused or its worker was lost.
All is pure; times are of the master's monotonic clock.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field

import msgspec

from ssbench.base.host import HostCounters
from ssbench.fleet.prefetch import PrefetchedJobs
from ssbench.fleet.wire import HEARTBEAT_SECONDS, LAG_BUCKETS, Spent, lag_limit, work_address, worker_name
from ssbench.store.contract import (
    ADDED_OVER_ATTEMPTS,
    UNANSWERED_CAUSES,
    JobResult,
    RareFields,
    add_rare_fields,
)

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


# -- The history of jobs that are sent again -------------------------------------------------------


@dataclass(frozen=True, slots=True)
class History:
    """What happened to a task before it was sent again.

    A task that has not begun has a history only where it has a due time, or where that is in doubt, without
    retries. Times are by the master's monotonic clock.
    """

    retries: int  # attempts that failed
    began: float  # when the first attempt began
    retried: dict[str, int]  # the causes of failed attempts, with counts
    rare: RareFields | None = None  # what those spent, with all before them
    ended: float | None = None  # when the last attempt ended; None: not known
    due: float | None = None  # when the task was due; None in a closed loop
    #: It may have been done, because an attempt got no answer, or because the worker that had it was lost
    #: before it could say whether it had begun it.
    in_doubt: bool = False

    def add_to(self, result: JobResult) -> JobResult:
        """Return the result with the causes and the parts of earlier attempts added to its own.

        The worker knows from :data:`~ssbench.fleet.wire.Spent` how many retries there were, when the first
        attempt began and when the last one ended, so latency, retries and the pause since are its own.
        """
        if not self.retries:
            return result
        retried = dict(self.retried)
        for cause, count in (result.retried or {}).items():
            retried[cause] = retried.get(cause, 0) + count
        rare = add_rare_fields([self.rare, result.rare], ADDED_OVER_ATTEMPTS)
        return msgspec.structs.replace(result, retried=retried, rare=rare)


def history_after_failure(result: JobResult, cause: str, history: History | None, ended: float) -> History:
    """Return the history of a task whose attempt ended with ``result``, because of ``cause``.

    ``ended`` is when that was, by the master's clock: not when the message came. ``result`` includes
    ``history``, the one before that attempt.
    """
    retried = dict(result.retried or {})
    retried[cause] = retried.get(cause, 0) + 1
    # One that only keeps the due time of a job that was handed back knows no beginning.
    began = ended - (result.last_byte or 0.0)
    if history is not None and history.retries:
        # What is known of a clock gets better, so that what ended may seem to precede what began before it.
        began = min(history.began, ended)
    due = None if result.late is None else began - result.late
    in_doubt = result.resent > 0 or not UNANSWERED_CAUSES.isdisjoint(retried)
    if history is not None:
        due, in_doubt = history.due, in_doubt or history.in_doubt
    return History(result.retries + 1, began, retried, result.rare, ended, due, in_doubt)


def was_tried(history: History | None) -> bool:
    """Return whether a task with that history has begun before."""
    return history is not None and history.retries > 0


def make_spent(history: History | None, to_master: float) -> Spent:
    """Return what is sent to a worker about a task: see :data:`~ssbench.fleet.wire.Spent`.

    ``to_master`` is what to add to its clock to have the master's. Where it had the earlier attempt too, that
    was added before, so the moments are exact by its own clock.
    """
    if history is None or not history.retries:
        return 0, None, None, history is not None and history.in_doubt
    ended = None if history.ended is None else history.ended - to_master
    return history.retries, history.began - to_master, ended, history.in_doubt


# -- How busy a worker was -------------------------------------------------------------------------


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


# -- The state of a worker -------------------------------------------------------------------------


#: What is to be done: (kind, size class, container, object number, bytes).
Task = tuple[int, int, int, int, int]


class TaskBatch:
    """A message of jobs on its way or with a worker. The jobs' numbers follow one another."""

    __slots__ = (
        "began_at",
        "claimed",
        "completed",
        "dues",
        "first",
        "histories",
        "remaining",
        "sent_at",
        "size",
        "tasks",
        "waits_since",
        "worker",
    )

    def __init__(
        self,
        first: int,
        tasks: Sequence[Task],
        sent_at: float,
        worker: WorkerState,
        histories: Sequence[History | None] = (),
        dues: Sequence[float | None] = (),
    ) -> None:
        self.first = first
        self.tasks = tasks
        #: Those of tasks that are sent again, one for each task, or empty.
        self.histories = histories
        self.size = len(tasks)
        #: How many of its jobs have not ended; 0 too when it was lost.
        self.remaining = self.size
        self.sent_at = sent_at
        #: When the wait for its claim began: as it was sent, or later by what the master was delayed.
        self.waits_since = sent_at
        #: When the last of its jobs began that has begun, as far as is known; no earlier than it did.
        self.began_at = sent_at
        self.worker = worker
        #: Whether the worker has said that it holds it. One that counts as lost claims nothing: its jobs
        #: would not be watched.
        self.claimed = False
        #: How many jobs of the worker had ended when it was sent.
        self.completed = worker.held.completed
        #: When each of its jobs is due, in an open loop.
        self.dues = dues

    def task(self, number: int) -> Task:
        """Return the task of a job."""
        return self.tasks[number - self.first]

    def history(self, number: int) -> History | None:
        """Return the history of a job that was sent again; None of any other."""
        return self.histories[number - self.first] if self.histories else None

    def due(self, number: int) -> float | None:
        """Return when a job is due, by the master's monotonic clock; None in a closed loop."""
        return self.dues[number - self.first] if self.dues else None


@dataclass(slots=True, eq=False)
class WorkerPresence:
    """Whether a worker is there; kept by :class:`~ssbench.fleet.roster.Roster`."""

    last_seen: float
    since: float  # when its heartbeats began to arrive
    known_since: float  # when it was first heard of in this run
    refusal: str | None = None  # why it is not used, set for good
    alive: bool = True  # its heartbeats arrive
    #: What is sent to it arrives too, and no other worker has its id; only then it gets jobs.
    ready: bool = False
    used: bool = False  # it has been ready in this run
    ended: bool = False  # it has ended, set for good
    told: bool = False  # the user knows that it cannot be reached
    pinged: float = -math.inf  # when it was last sent a ping, or jobs
    ping_due: float = -math.inf  # when the next ping is due
    ping_by: float = -math.inf  # when it is due whatever results have come
    echo: float = -math.inf  # when the last ping that it answered was sent, or the last jobs
    reached: float = -math.inf  # when that answer came
    heard: float | None = None  # what the worker's own clock was then
    round_trip: float = math.inf  # the least that a ping and its answer took in this run
    lost: int = 0  # how many times it counted as lost

    @property
    def refused(self) -> bool:
        """Whether it was turned away."""
        return self.refusal is not None

    def begin(self, now: float) -> None:
        """Another run begins: it is not ready until it answers a ping of that run."""
        self.ready = self.used = self.told = False
        self.since = self.known_since = self.last_seen = now
        self.pinged = self.ping_due = self.reached = -math.inf
        self.round_trip = math.inf

    def pinged_at(self, now: float, seconds: float = HEARTBEAT_SECONDS) -> None:
        """Take note of a ping that was sent; while results come the next one is due after ``seconds``."""
        self.pinged, self.ping_due, self.ping_by = now, now + HEARTBEAT_SECONDS, now + seconds

    def answered(self, sent: float, clock: float, now: float) -> None:
        """Take note of a heartbeat that repeats the ping sent then; only the first one is its answer.

        ``clock`` is the worker's, as the heartbeat says.
        """
        if self.echo < sent <= now:
            if self.round_trip == math.inf:
                # The first one may have been held up, and its clock is known to half of that. The next gets
                # there before any job, and its answer comes before any result.
                self.ping_due = now
            self.echo, self.reached, self.heard = sent, now, clock
            self.round_trip = min(self.round_trip, now - sent)

    def acknowledged(self, sent: float, clock: float, now: float, seconds_held: float = 0.0) -> None:
        """Take note of results that say that jobs arrived which were sent then: they stand for a heartbeat.

        ``clock`` is the worker's, as the results say. It had the jobs for ``seconds_held``, in which it may
        have received nothing.
        """
        if self.ready and self.echo < sent:
            self.echo, self.heard = sent, clock - seconds_held
            self.reached, self.last_seen = max(self.reached, now - seconds_held), now
            self.ping_due = max(self.ping_due, min(now + HEARTBEAT_SECONDS, self.ping_by))

    def lose(self) -> None:
        """It counts as lost."""
        self.lost += 1
        # It drops its jobs when a ping says so. An answer to what was sent before is no sign of that.
        self.echo = max(self.echo, self.pinged)

    def forgive(self, seconds: float) -> None:
        """The master was delayed for so long: it could hear nothing meanwhile."""
        self.last_seen += seconds
        self.since += seconds
        self.reached += seconds
        # What it answers to what was sent before says nothing about how it can be reached now.
        self.echo = max(self.echo, self.pinged)


@dataclass(slots=True, eq=False)
class JobAllowance:
    """How many jobs a worker may have; kept by :class:`~ssbench.fleet.allocation.Allocation`."""

    capacity: int  # jobs that it can run at once
    share: int = 0  # jobs that it may run at once
    most: int = 0  # jobs that it may be sent, with those ``ahead``
    ahead: PrefetchedJobs = field(default_factory=PrefetchedJobs)  # jobs that it holds ahead of its users
    bound: float = math.inf  # jobs that may be ahead at most
    in_turn: bool = False  # it is in line for more jobs
    #: Set until the next tick when its connection for work is not there, or when it has handed jobs back.
    away: bool = False


@dataclass(slots=True, eq=False)
class HeldJobs:
    """The jobs of a worker; kept by :class:`~ssbench.fleet.dispatcher.JobLedger`."""

    users_told: int = 0  # the limit of users that it was last sent
    outstanding: int = 0  # jobs that have not ended
    completed: int = 0  # jobs that ended in this run
    progressed_at: float = -math.inf  # when the last of those ended
    begun: int = 0  # number of the last job that has begun
    begun_then: int = 0  # what that was at ``looked_at``
    looked_at: float = -math.inf  # when jobs that never end were last looked for
    #: Those with jobs that have not ended, by their numbers, in the order in which they were sent.
    batches: dict[int, TaskBatch] = field(default_factory=dict)
    #: Those that it has not said to have received.
    unacknowledged: deque[TaskBatch] = field(default_factory=deque)
    unbegun: deque[TaskBatch] = field(default_factory=deque)  # those with jobs that may not have begun
    recalled: bool = False  # it was asked to hand back what has not begun
    parameters: bytes = b""  # refers to those that it was sent last; empty where it may not have them
    foreign_results: int = 0  # results that named jobs of others
    invalid_results: int = 0  # results with impossible figures

    def begin(self) -> None:
        """Another run begins."""
        self.foreign_results = self.invalid_results = 0
        self.unacknowledged.clear()
        self.unbegun.clear()

    def has_begun(self, job_id: int, now: float) -> None:
        """Take note that this job has begun, and all that were sent to it before."""
        if job_id <= self.begun:
            return  # it said so before
        self.begun = job_id
        waiting = self.unbegun
        while waiting and waiting[0].first <= job_id:
            batch = waiting[0]
            batch.began_at = now
            if batch.first + batch.size > job_id + 1:
                break
            waiting.popleft()

    def forget_ended(self) -> None:
        """Forget the batches whose jobs have all ended, whatever it says of what it received and began."""
        for waiting in (self.unacknowledged, self.unbegun):
            while waiting and not waiting[0].remaining:
                waiting.popleft()


class WorkerState:
    """One worker process: who it is, and the parts that are kept of it."""

    __slots__ = (
        "address",
        "allowance",
        "clock",
        "held",
        "host",
        "instance",
        "label",
        "load",
        "pid",
        "presence",
        "site",
        "version",
        "worker_id",
    )

    def __init__(
        self,
        worker_id: int,
        instance: int,
        host: str,
        pid: int,
        version: str,
        capacity: int,
        now: float,
        label: str = "",
        site: str = "",
    ) -> None:
        self.worker_id = worker_id
        self.instance = instance
        self.host = host
        self.pid = pid
        self.version = version
        #: What an engine calls it, and where it is; empty where that is not known.
        self.label = label
        self.site = site
        self.address = work_address(instance)
        self.presence = WorkerPresence(now, now, now)
        self.allowance = JobAllowance(capacity)
        self.held = HeldJobs()
        self.clock = WorkerClock()
        self.load = WorkerLoad()

    def copy_for_group(self) -> WorkerState:
        """Return the same worker with an allowance and a holding of its own, for another group of users."""
        state = copy(self)
        state.allowance, state.held = JobAllowance(self.allowance.capacity), HeldJobs()
        return state

    @property
    def name(self) -> str:
        """For messages: its id, host and process id."""
        where = f"{self.host}, {self.label}" if self.label else self.host
        return worker_name(self.worker_id, where, self.pid)

    def begin(self, now: float) -> None:
        """Another run begins."""
        self.presence.begin(now)
        self.held.begin()
        self.load.clear()
        self.clock.begin()
