"""What the master knows of one worker process: a part for each who keeps account of workers.

The roster keeps :class:`WorkerPresence`, the allocation :class:`JobAllowance`, the ledger :class:`HeldJobs`; each
writes its own part only. Times are of the master's monotonic clock.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field

from ssbench.fleet.ahead import PrefetchedJobs
from ssbench.fleet.clocks import WorkerClock
from ssbench.fleet.history import History
from ssbench.fleet.wire import HEARTBEAT_SECONDS, work_address, worker_name
from ssbench.fleet.worker_load import WorkerLoad

#: What is to be done: (kind, size class, container, object number, bytes).
Task = tuple[int, int, int, int, int]


class TaskBatch:
    """A message of jobs on its way or with a worker. The jobs' numbers follow one another."""

    __slots__ = (
        "began_at",
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
    """Whether a worker is there; kept by :class:`~ssbench.fleet.roster.Roster`.

    ``alive``: its heartbeats arrive. ``ready``: what is sent to it arrives too, and no other worker has its
    id; only then it gets jobs. ``used``: it has been ready in this run. ``ended`` and ``refusal`` (why it is
    not used) are set for good. ``told``: the user knows that it cannot be reached.

    ``since`` is when its heartbeats began to arrive, ``known_since`` when it was first heard of in this run,
    ``pinged`` when it was last sent a ping, ``ping_due`` when the next one is due, ``echo`` when the
    last ping that it answered was sent and ``reached`` when that answer came; ``heard`` is what its own clock
    was then. ``round_trip`` is the least that a ping and its answer took in this run. ``lost`` is how many
    times it counted as lost.
    """

    last_seen: float
    since: float
    known_since: float
    refusal: str | None = None
    alive: bool = True
    ready: bool = False
    used: bool = False
    ended: bool = False
    told: bool = False
    pinged: float = -math.inf
    ping_due: float = -math.inf
    echo: float = -math.inf
    reached: float = -math.inf
    heard: float | None = None
    round_trip: float = math.inf
    lost: int = 0

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

    def pinged_at(self, now: float) -> None:
        """Take note of a ping that was sent."""
        self.pinged, self.ping_due = now, now + HEARTBEAT_SECONDS

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

    def lose(self) -> None:
        """It counts as lost."""
        self.lost += 1
        # It drops its jobs when a ping says so. The answer to an earlier one is no sign of that.
        self.echo = max(self.echo, self.pinged)

    def forgive(self, seconds: float) -> None:
        """The master was delayed for so long: it could hear nothing meanwhile."""
        self.last_seen += seconds
        self.since += seconds
        self.reached += seconds
        # What it answers to an earlier ping says nothing about how it can be reached now.
        self.echo = max(self.echo, self.pinged)


@dataclass(slots=True, eq=False)
class JobAllowance:
    """How many jobs a worker may have; kept by :class:`~ssbench.fleet.allocation.Allocation`.

    ``capacity`` is how many it can run at once, ``share`` how many it may, ``most`` how many it may be sent,
    with those ``ahead``, of which there are no more than ``bound``. ``in_turn``: it is in line for more jobs.
    ``away`` is set until the next tick when its connection for work is not there, or when it has handed jobs
    back.
    """

    capacity: int
    share: int = 0
    most: int = 0
    ahead: PrefetchedJobs = field(default_factory=PrefetchedJobs)
    bound: float = math.inf
    in_turn: bool = False
    away: bool = False


@dataclass(slots=True, eq=False)
class HeldJobs:
    """The jobs of a worker; kept by :class:`~ssbench.fleet.ledger.JobLedger`.

    ``users_told`` is how many users it was last sent as its limit. ``outstanding`` have not ended,
    ``completed`` ended in this run, the last of them at ``progressed_at``. ``begun`` is the number of the
    last one that has begun, ``begun_then`` what that was at ``looked_at``, when jobs that never end were last
    looked for. ``batches`` are those that it has claimed, ``unacknowledged`` those that it has not said to
    have received, ``unbegun`` those with jobs that may not have begun. ``recalled``: it was asked to hand
    back what has not begun. ``parameters`` refers to those that it was sent last, and is empty where it may
    not have them.

    ``foreign_results`` named jobs that others have, ``invalid_results`` had figures that cannot be.
    """

    users_told: int = 0
    outstanding: int = 0
    completed: int = 0
    progressed_at: float = -math.inf
    begun: int = 0
    begun_then: int = 0
    looked_at: float = -math.inf
    batches: set[int] = field(default_factory=set)
    unacknowledged: deque[TaskBatch] = field(default_factory=deque)
    unbegun: deque[TaskBatch] = field(default_factory=deque)
    recalled: bool = False
    parameters: bytes = b""
    foreign_results: int = 0
    invalid_results: int = 0

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

    def seat(self) -> WorkerState:
        """Return the same worker with an allowance and a holding of its own, for another group of users."""
        seat = copy(self)
        seat.allowance, seat.held = JobAllowance(self.allowance.capacity), HeldJobs()
        return seat

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
