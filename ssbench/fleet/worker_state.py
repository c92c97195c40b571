"""What the master knows of each worker: whether it is alive, its jobs, its load, its clock."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from ssbench.fleet.ahead import Ahead
from ssbench.fleet.clocks import Clocks
from ssbench.fleet.history import History
from ssbench.fleet.wire import LAG_BUCKETS, lag_limit, work_address, worker_name

#: What is to be done: (kind, size class, container, object number, bytes).
Task = tuple[int, int, int, int, int]

#: Seconds over which the smallest difference of two hosts' clocks is sought.
CLOCK_WINDOW = 30.0

#: Two heartbeats that are nearer to each other (seconds) do not tell how busy a worker is.
_LEAST_APART = 0.5

#: Due times count from another moment of a worker's clock when that differs by this many seconds.
_DRIFT = 0.01

#: Times in which a worker stood still are kept up to this number.
MOST_GAPS = 1000


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


class Batch:
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
        #: When the wait for its claim began: as it was sent, or later by what the master was held up.
        self.waits_since = sent_at
        #: When the last of its jobs began that has begun, as far as is known; no earlier than it did.
        self.began_at = sent_at
        self.worker = worker
        #: How many jobs of the worker had ended when it was sent.
        self.completed = worker.completed
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


class Load:
    """How busy a worker was since it was last cleared, from its heartbeats."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget the load so far; count from the next heartbeat on."""
        self._lag = [0] * LAG_BUCKETS
        self._first: tuple[float, float] | None = None
        self._last: tuple[float, float] | None = None
        #: How late its event loop was at most, in seconds, and the times in which it stood still.
        self.lag_max = 0.0
        #: Times in which it stood still, by the master's clock; how many more were not kept.
        self.gaps: list[tuple[float, float]] = []
        self.gaps_dropped = 0
        self._last_gap: float | None = None

    def observe(
        self,
        clock: float,
        cpu: float,
        lag: Sequence[int],
        lag_max: float = 0.0,
    ) -> None:
        """Take in a heartbeat."""
        self._last = (clock, cpu)
        if self._first is None:
            self._first = self._last
            return
        self.lag_max = max(self.lag_max, lag_max)
        for place, count in enumerate(lag[:LAG_BUCKETS]):
            self._lag[place] += count

    def stood_still(self, began: float, gap: tuple[float, float], room: int) -> int:
        """Keep a time in which it stood still, of the master's clock, if there is ``room`` for one.

        ``began`` is its beginning by the worker's clock: one that begins with the last one is the same, and
        went on after it was told. Returns how many more are kept now.
        """
        if self.gaps and began == self._last_gap:
            self.gaps[-1] = gap
            return 0
        if room <= 0 or len(self.gaps) >= MOST_GAPS:
            self.gaps_dropped += 1
            return 0
        self._last_gap = began
        self.gaps.append(gap)
        return 1

    @property
    def cpu_share(self) -> float | None:
        """Share of one core that the main thread used; None before there were two heartbeats apart."""
        if self._first is None or self._last is None or self._last[0] - self._first[0] < _LEAST_APART:
            return None
        return (self._last[1] - self._first[1]) / (self._last[0] - self._first[0])

    def lag_percentile(self, percentile: float) -> float | None:
        """Upper end, in seconds, of the bucket that holds that percentile of the lateness."""
        below = sum(self._lag) * percentile / 100
        for place, count in enumerate(self._lag):
            below -= count
            if count and below <= 0:
                return lag_limit(place)
        return None


@dataclass(slots=True, eq=False)
class WorkerState:
    """What is known of one worker process. Times are of the master's monotonic clock.

    ``alive``: its heartbeats arrive. ``ready``: what is sent to it arrives too, and nobody else has its id;
    only then it gets jobs. ``used``: it has been ready. ``ended`` and ``refusal`` (why it is not used) are
    set for good. ``capacity`` is how many jobs it can run at once. ``away`` is set until the next tick when
    its connection for work is not there, or when it has handed jobs back; ``told`` once the user knows that
    it cannot be reached. ``foreign_results`` named jobs that others have, ``invalid_results`` had figures
    that cannot be.

    ``share`` is how many jobs it may run at once, ``share_told`` what it knows of that, ``most`` how many it
    may be sent, with those ``ahead``. ``outstanding`` have not ended, ``completed`` ended in this run, the
    last of them at ``progressed_at``. ``begun`` is the number of the last one that has begun, ``begun_then``
    what that was at ``looked_at``, when jobs that never end were last looked for.
    ``unacknowledged`` are the batches that it has not said to have received, ``unbegun`` those with jobs that
    may not have begun.
    ``in_turn``: it is in line for more jobs; ``recalled``: it was asked to hand back what has not begun.

    ``since`` is when its heartbeats began to arrive, ``pinged`` when it was last sent a ping, ``echo`` when
    the last ping that it answered was sent and ``reached`` when that answer came; ``heard`` is what its own
    clock was then. ``start`` is the moment of its clock from which due times count. ``known_since`` is when
    it was first heard of in this run.
    """

    worker_id: int
    instance: int
    host: str
    pid: int
    version: str
    capacity: int
    last_seen: float
    since: float = field(init=False)
    known_since: float = field(init=False)
    refusal: str | None = None
    alive: bool = True
    ready: bool = False
    used: bool = False
    ended: bool = False
    away: bool = False
    told: bool = False
    share: int = 0
    share_told: int = 0
    most: int = 0
    outstanding: int = 0
    completed: int = 0
    begun: int = 0
    begun_then: int = 0
    looked_at: float = -math.inf
    progressed_at: float = -math.inf
    in_turn: bool = False
    recalled: bool = False
    ahead: Ahead = field(default_factory=Ahead)
    unacknowledged: deque[Batch] = field(default_factory=deque)
    unbegun: deque[Batch] = field(default_factory=deque)
    foreign_results: int = 0
    invalid_results: int = 0
    pinged: float = -math.inf
    echo: float = -math.inf
    reached: float = -math.inf
    heard: float | None = None
    batches: set[int] = field(default_factory=set)
    start: float = -math.inf
    offset: ClockOffset = field(default_factory=ClockOffset)
    load: Load = field(default_factory=Load)
    clocks: Clocks = field(default_factory=Clocks)
    address: bytes = field(init=False)

    def __post_init__(self) -> None:
        self.address = work_address(self.instance)
        self.since = self.known_since = self.last_seen

    @property
    def refused(self) -> bool:
        """Whether it was turned away."""
        return self.refusal is not None

    @property
    def name(self) -> str:
        """For messages: its id, host and process id."""
        return worker_name(self.worker_id, self.host, self.pid)

    def begin(self, now: float) -> None:
        """Another run begins: it is not ready until it answers a ping of that run."""
        self.ready = self.used = self.told = False
        self.since = self.known_since = self.last_seen = now
        self.pinged = self.reached = -math.inf
        self.foreign_results = self.invalid_results = 0
        self.completed = 0
        self.ahead = Ahead()
        self.unacknowledged.clear()
        self.unbegun.clear()
        self.load.clear()
        self.clocks = Clocks()

    def start_of(self, moment: float) -> float:
        """Return a moment of the master's clock by the worker's; the same until the clocks drift apart."""
        start = moment - self.offset.seconds
        if abs(start - self.start) > _DRIFT:
            self.start = start
        return self.start

    def acknowledged(self, batch_id: int, held: float, now: float) -> bool:
        """Take note that it had received a batch ``held`` seconds before it said so, and claims it.

        Returns whether it is to hold more or fewer jobs ahead. Call this
        when the results of the same message are counted in ``completed``.
        """
        waiting, changed = self.unacknowledged, False
        while waiting and waiting[0].first <= batch_id:
            batch = waiting.popleft()
            if batch.remaining and self.ready:
                self.batches.add(batch.first)
            if batch.first == batch_id:
                changed = self.ahead.observe(self.completed - batch.completed, now - batch.sent_at, held)
        return changed

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

    def answered(self, sent: float, clock: float, now: float) -> None:
        """Take note of a heartbeat that repeats the ping sent then; only the first one is its answer.

        ``clock`` is the worker's, as the heartbeat says.
        """
        if self.echo < sent <= now:
            self.echo, self.reached, self.heard = sent, now, clock

    def forgive(self, seconds: float) -> None:
        """The master was held up for so long: nothing could be heard meanwhile."""
        self.last_seen += seconds
        self.since += seconds
        self.reached += seconds
        # What it answers to an earlier ping says nothing about how it can be reached now.
        self.echo = max(self.echo, self.pinged)
