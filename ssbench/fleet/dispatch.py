"""Which worker holds which job, which workers are lost, which jobs are to be sent again.

Pure: the dispatcher knows no socket and is told the time, so that "the worker dies at this moment" is a
unit test. The fleet feeds it what arrives and asks it what to do. What happens to workers it reports as
:mod:`ssbench.fleet.events`.

The rules, which make every job end exactly once:

* A job gets a new number each time it is sent. A result settles the number it names, if it comes from
  the worker that the job was sent to. A number that is not in flight (a late result, one of another
  run, an invented one), and one that another worker has, settles nothing and is counted.
* A worker is ready, and gets jobs, once it has answered a ping: only then both directions are known to
  work. Each heartbeat interval it gets another one.
* A worker is sent no more jobs than its share of the limit, and than it says it has room for: one that
  hangs keeps what it was sent, and takes nothing from the others.
* A worker claims a batch that it was sent in a heartbeat, or with a result or a handback. It sends its
  results before the heartbeat that no longer lists their batch, so a batch that it has claimed and
  leaves out is lost; all are when it serves no run, or another one.
* A worker whose heartbeats, or whose answers to pings, have not come for
  :data:`~ssbench.fleet.wire.LOST_AFTER` seconds is lost, with all batches that it was sent. Once it answers a
  ping again it is used again; its late results are known by their old numbers.
* A batch that has not been claimed within that time after it was sent is lost: its connection broke.
* A worker that holds a job for longer than any can take is not used any more, whatever its heartbeats say.
* Of two workers with one id the later one waits. It is refused when a heartbeat of the earlier one comes more
  than a heartbeat interval after it joined, and used when the earlier one is lost or has ended: a worker that
  was killed and started again at once is used.
"""

from __future__ import annotations

import enum
import math
import secrets
from collections import Counter, deque
from collections.abc import Iterable, Sequence

from ssbench.fleet import events
from ssbench.fleet.history import History
from ssbench.fleet.pace import share_out
from ssbench.fleet.wire import HEARTBEAT_SECONDS, LOST_AFTER, Heartbeat, Job
from ssbench.fleet.worker_state import ClockOffset, WorkerState

#: Most workers that are kept; strangers can pretend to be any number.
MOST_WORKERS = 4096

#: What is to be done: (kind, size class, container, object number, bytes).
Task = tuple[int, int, int, int, int]


#: A task, the batch it is in, its history.
Entry = tuple[Task, "Batch", History | None]


class Batch:
    """A message of jobs on its way or with a worker. The jobs' numbers follow one another."""

    __slots__ = ("first", "remaining", "sent_at", "size", "waits_since", "worker")

    def __init__(self, first: int, size: int, sent_at: float, worker: WorkerState) -> None:
        self.first = first
        self.size = size
        self.remaining = size
        self.sent_at = sent_at
        #: When the wait for its claim began: as it was sent, or later by what the master was held up.
        self.waits_since = sent_at
        self.worker = worker


class NotReady(enum.Enum):
    """Why a worker whose heartbeats arrive is not ready."""

    NEW = enum.auto()
    #: Another worker, which may still live, has its id.
    SAME_ID = enum.auto()
    #: It does not answer pings.
    UNREACHABLE = enum.auto()


class Dispatcher:
    """Keeps account of the jobs and the workers of one master.

    ``limit`` is how many jobs at once the workers share among them; it may be changed. ``master`` is the
    number that the pings of this master carry.
    """

    def __init__(self, limit: int = 0) -> None:
        self.master = secrets.randbits(62) + 1
        self.workers: dict[int, WorkerState] = {}
        self.in_flight: dict[int, Entry] = {}
        self.backlog: deque[tuple[Task, History | None]] = deque()
        self.events: list[events.Event] = []
        self.late_results = 0
        #: Results and jobs handed back that were with another worker than the one that named them.
        self.foreign_results = 0
        #: Results with impossible figures.
        self.invalid_results = 0
        #: Seconds after which a worker that still holds a job is not used any more; no job takes that long.
        self.longest_job = math.inf
        self.handed_back = 0
        self._batches: dict[int, Batch] = {}
        self._turn: deque[WorkerState] = deque()
        self._next_id = 1
        self._limit = limit
        self._capacity = 0
        #: Whether shares and capacity have to be counted again: workers came, went or changed.
        self._changed = False
        #: Tasks that were lost and not taken yet, each with the worker that had it.
        self.lost: list[tuple[Task, WorkerState]] = []
        self._holders: dict[int, WorkerState] = {}
        self._full = False
        self._ticked: float | None = None

    def begin(self, limit: int, now: float) -> list[WorkerState]:
        """Begin another run with a limit of its own; call it while no job is in flight.

        Counts start from 0, and every worker has to answer a ping again before it is used: it may have
        gone while nobody listened. Events that nobody took are dropped. Returns the workers that were ready
        before.
        """
        self._limit = limit
        self.events.clear()
        self.late_results = self.foreign_results = self.invalid_results = self.handed_back = 0
        self._ticked = now
        former = self.living()
        for worker in self.workers.values():
            worker.begin(now)
        self._changed = True
        return former

    # -- jobs ---------------------------------------------------------------------------------

    @property
    def limit(self) -> int:
        """How many jobs at once the workers share among them."""
        return self._limit

    @limit.setter
    def limit(self, limit: int) -> None:
        if limit != self._limit:
            self._limit = limit
            self._changed = True

    @property
    def capacity(self) -> int:
        """How many jobs the workers that are ready can run at once."""
        if self._changed:
            self._share_out()
        return self._capacity

    @property
    def oldest_sent(self) -> float | None:
        """When the oldest batch in flight was sent."""
        return next((batch.sent_at for batch in self._batches.values()), None)

    def next_worker(self) -> WorkerState | None:
        """Return the worker whose turn it is of those that may be sent more; None if there is none.

        It may be sent ``quota - outstanding`` jobs.
        """
        if self._changed:
            self._share_out()
        turn = self._turn
        for _ in range(len(turn)):
            worker = turn[0]
            turn.rotate(-1)
            if worker.outstanding < worker.quota and not worker.away:
                return worker
        return None

    def send(
        self, tasks: Sequence[Task], now: float, worker: WorkerState, histories: Sequence[History | None] = ()
    ) -> tuple[int, list[Job]]:
        """Record a batch of tasks as sent now to a worker; return its number and the jobs for the wire.

        ``histories`` are those of tasks that are sent again, one for each task, or empty.
        """
        first = self._next_id
        self._next_id = first + len(tasks)
        batch = self._batches[first] = Batch(first, len(tasks), now, worker)
        worker.outstanding += len(tasks)
        in_flight = self.in_flight
        jobs: list[Job] = []
        for number, task in enumerate(tasks, first):
            in_flight[number] = (task, batch, None)
            jobs.append((number, *task))
        for number, history in enumerate(histories, first):
            in_flight[number] = (*in_flight[number][:2], history)
        return first, jobs

    def unsend(self, first: int) -> None:
        """Take back a batch that could not be sent; its tasks go to the head of the backlog."""
        batch = self._batches.pop(first)
        batch.worker.outstanding -= batch.size
        for number in reversed(range(first, first + batch.size)):
            task, _, history = self.in_flight.pop(number)
            self.backlog.appendleft((task, history))

    def settle(self, job_id: int, worker: WorkerState) -> Entry | None:
        """Take note that a worker says a job has ended.

        Returns its entry, or None if that worker does not have the job.
        """
        entry = self.in_flight.pop(job_id, None)
        if entry is None or entry[1].worker is not worker:
            self.put_back(job_id, entry, worker)
            return None
        self.settled(entry[1], 1)
        return entry

    def settled(self, batch: Batch, count: int) -> None:
        """Take note that so many jobs of a batch have ended, and were taken out of ``in_flight``."""
        worker = batch.worker
        worker.outstanding -= count
        batch.remaining -= count
        if not batch.remaining:
            self._close(batch)
        elif worker.ready:
            # As _claim does; the call would cost as much as all else here.
            worker.batches.add(batch.first)

    def put_back(self, job_id: int, entry: Entry | None, worker: WorkerState) -> None:
        """Count a job that a worker named and does not have; ``entry`` was taken out of ``in_flight``."""
        if entry is None:
            self.late_results += 1
        else:
            self.in_flight[job_id] = entry
            self._note_foreign(worker)

    def _note_foreign(self, worker: WorkerState) -> None:
        self.foreign_results += 1
        worker.foreign_results += 1
        if worker.foreign_results == 1:
            self.events.append(events.Foreign(worker))

    def note_invalid(self, worker: WorkerState, why: str) -> None:
        """Count a result of a worker with impossible figures; ``why`` they are."""
        self.invalid_results += 1
        worker.invalid_results += 1
        if worker.invalid_results == 1:
            self.events.append(events.Invalid(worker, why))

    def send_again(self, task: Task, history: History | None) -> None:
        """Put a settled task at the end of the backlog, to be sent once more."""
        self.backlog.append((task, history))

    def hand_back(self, job_ids: Iterable[int], worker: WorkerState, capacity: int) -> None:
        """Put jobs that a worker did not begin at the head of the backlog; it has room for ``capacity``."""
        self._set_capacity(worker, capacity)
        # Whatever it says: one that hands back all it gets is not tried more often than ten times a second.
        worker.away = True
        for job_id in job_ids:
            if job_id in self.in_flight:
                entry = self.settle(job_id, worker)
                if entry is not None:
                    self.handed_back += 1
                    self.backlog.appendleft((entry[0], entry[2]))

    def take_lost(self) -> list[tuple[Task, WorkerState]]:
        """The tasks that were lost since the last call, each with the worker that had it.

        Each was in flight and is no longer.
        """
        lost, self.lost = self.lost, []
        return lost

    def abandon(self) -> list[Task]:
        """Forget all that is in flight or in the backlog, because the phase ends; return it."""
        tasks = [entry[0] for entry in self.in_flight.values()] + [task for task, _ in self.backlog]
        for batch in list(self._batches.values()):
            self._close(batch)
        for _, batch, _ in self.in_flight.values():
            batch.worker.outstanding -= 1
        self.in_flight.clear()
        self.backlog.clear()
        return tasks

    def _close(self, batch: Batch) -> None:
        del self._batches[batch.first]
        batch.worker.batches.discard(batch.first)

    def _lose(self, batch: Batch) -> None:
        for number in range(batch.first, batch.first + batch.size):
            entry = self.in_flight.pop(number, None)
            if entry is not None:
                batch.worker.outstanding -= 1
                self.lost.append((entry[0], batch.worker))
        self._close(batch)

    @staticmethod
    def _claim(worker: WorkerState, batch: Batch) -> None:
        # A worker that counts as lost claims nothing: nobody would look after it.
        if worker is batch.worker and worker.ready:
            worker.batches.add(batch.first)

    # -- workers ------------------------------------------------------------------------------

    def living(self) -> list[WorkerState]:
        """Return the workers that can be given work."""
        return [worker for worker in self.workers.values() if worker.ready]

    def known(self, instance: int) -> WorkerState | None:
        """Return the worker of that instance, if anything has come from it."""
        return self.workers.get(instance)

    def refused(self) -> list[WorkerState]:
        """Return the refused workers that still send something."""
        return [worker for worker in self.workers.values() if worker.refused and worker.alive]

    def to_ping(self, now: float) -> list[WorkerState]:
        """Return the workers whose next ping is due."""
        due = now - HEARTBEAT_SECONDS
        return [
            worker
            for worker in self.workers.values()
            if worker.alive and worker.pinged <= due and not worker.refused
        ]

    def heartbeat(self, beat: Heartbeat, run_id: int, now: float) -> None:
        """Take in a heartbeat: its worker is alive, holds batches and has received a ping."""
        worker = self.workers.get(beat.instance) or self._enter(
            WorkerState(beat.worker_id, beat.instance, beat.host, beat.pid, beat.version, beat.capacity, now)
        )
        if worker is None or worker.ended:
            return
        if not worker.alive:
            worker.alive, worker.since = True, now
            # A machine that was suspended has a clock that stood still meanwhile.
            worker.offset = ClockOffset()
        worker.last_seen = now
        if worker.refused:
            return
        if beat.master == self.master:
            worker.answered(beat.ping, now)
        self._set_capacity(worker, beat.capacity)
        worker.load.observe(beat.clock, beat.cpu, beat.lag)
        worker.offset.observe(beat.clock, now)
        if not worker.ready and now - worker.reached <= LOST_AFTER:
            self._admit(worker)
        self._compare(worker, beat.held if beat.run_id == run_id else [])

    def refuse(self, instance: int, worker_id: int, host: str, reason: str, now: float) -> None:
        """Refuse a worker for good; ``reason`` continues a sentence about it ("has the id of ...")."""
        worker = self.workers.get(instance) or self._enter(
            WorkerState(worker_id, instance, host, 0, "", 0, now)
        )
        if worker is None:
            return
        worker.last_seen = now
        worker.alive = not worker.ended
        if not worker.refused:
            self._withdraw(worker)
            worker.refusal = reason
            self.events.append(events.Refused(worker, reason))

    def leave(self, instance: int, reason: str) -> None:
        """Take note that a worker ends, or that its process has ended; ``reason`` is for the user."""
        worker = self.workers.get(instance)
        if worker is not None:
            self._end(worker, events.Left(worker, reason))

    def _end(self, worker: WorkerState, event: events.Event) -> None:
        if worker.ended:
            return
        worker.ended = True
        worker.alive = False
        if worker.ready:
            self._withdraw(worker)
            self.events.append(event)

    def tick(self, now: float) -> None:
        """Find the workers and batches that are lost by now; call it several times a second.

        A master that was itself stopped, or got no CPU, has received nothing meanwhile; its own gap
        does not count against the workers.
        """
        if self._ticked is not None and now - self._ticked > HEARTBEAT_SECONDS:
            gap = now - self._ticked
            for worker in self.workers.values():
                worker.forgive(gap)
            for batch in self._batches.values():
                batch.waits_since += gap
        self._ticked = now
        for worker in self.workers.values():
            worker.away = False  # try again
            if worker.alive:
                self._look_at(worker, now)
        self._find_overdue(now)
        self._find_unconfirmed(now)

    def _find_overdue(self, now: float) -> None:
        late = {batch.worker for batch in self._batches.values() if now - batch.sent_at > self.longest_job}
        for worker in late:
            self._end(worker, events.Overdue(worker, self.longest_job, worker.outstanding))

    def _find_unconfirmed(self, now: float) -> None:
        unclaimed = [
            batch
            for batch in self._batches.values()
            if now - batch.waits_since > LOST_AFTER and batch.first not in batch.worker.batches
        ]
        lost: Counter[WorkerState] = Counter()
        for batch in unclaimed:
            lost[batch.worker] += batch.remaining
            self._lose(batch)
        self.events += (events.Unconfirmed(worker, jobs) for worker, jobs in lost.items())

    def not_ready(self, now: float) -> list[tuple[WorkerState, NotReady]]:
        """Return the workers whose heartbeats arrive and that cannot be used, and why."""
        found = []
        for worker in self.workers.values():
            if not worker.alive or worker.ready or worker.refused:
                continue
            if now - worker.reached <= LOST_AFTER:
                why = NotReady.SAME_ID
            elif now - worker.since <= 2 * HEARTBEAT_SECONDS:
                why = NotReady.NEW
            else:
                why = NotReady.UNREACHABLE
            found.append((worker, why))
        return found

    def _look_at(self, worker: WorkerState, now: float) -> None:
        silence = now - worker.last_seen
        # Where both directions fail, its last heartbeat may be a little younger than its last answer.
        silent = silence > 2 * HEARTBEAT_SECONDS
        if worker.ready and now - worker.reached > LOST_AFTER:
            jobs = worker.outstanding
            self._withdraw(worker)
            worker.told = not silent
            self.events.append(
                events.Lost(worker, silence, jobs)
                if silent
                else events.CutOff(worker, now - worker.reached, jobs)
            )
        unreachable = not (silent or worker.refused) and now - max(worker.reached, worker.since) > LOST_AFTER
        if unreachable and not worker.told:
            worker.told = True
            self.events.append(events.Unreachable(worker))
        if silence > LOST_AFTER:
            worker.alive = False

    def _admit(self, worker: WorkerState) -> None:
        """Use a worker that can be reached, unless another one has its id."""
        holder = self._holders.get(worker.worker_id)
        if holder is None or not holder.ready:
            self._holders[worker.worker_id] = worker
            self.events.append(events.Back(worker) if worker.used else events.Joined(worker, worker.capacity))
            worker.ready = worker.used = True
            worker.told = False
            self._changed = True
        elif holder.last_seen > worker.since + HEARTBEAT_SECONDS:
            reason = (
                f"has the id of the worker on {holder.host} (pid {holder.pid});"
                " give each worker an id of its own"
            )
            self.refuse(worker.instance, worker.worker_id, worker.host, reason, worker.last_seen)

    def _enter(self, worker: WorkerState) -> WorkerState | None:
        if len(self.workers) >= MOST_WORKERS:
            forgotten = next((other for other in self.workers.values() if not other.alive), None)
            if forgotten is None:
                if not self._full:
                    self._full = True
                    self.events.append(events.Full(worker))
                return None
            del self.workers[forgotten.instance]
            if self._holders.get(forgotten.worker_id) is forgotten:
                del self._holders[forgotten.worker_id]
        self.workers[worker.instance] = worker
        return worker

    def _compare(self, worker: WorkerState, held: Sequence[int]) -> None:
        for first in held:
            batch = self._batches.get(first)
            if batch is not None:
                self._claim(worker, batch)
        jobs = 0
        for first in worker.batches.difference(held):
            jobs += self._batches[first].remaining
            self._lose(self._batches[first])
        if jobs:
            self.events.append(events.Dropped(worker, jobs))

    def _withdraw(self, worker: WorkerState) -> None:
        worker.ready = False
        for batch in list(self._batches.values()):
            if batch.worker is worker:
                self._lose(batch)
        self._changed = True

    def _set_capacity(self, worker: WorkerState, capacity: int) -> None:
        if worker.capacity != capacity:
            worker.capacity = capacity
            self._changed = True

    def _share_out(self) -> None:
        # Only when somebody asks: thousands of workers may join between two questions.
        self._changed = False
        living = self.living()
        self._turn = deque(living)
        capacities = [worker.capacity for worker in living]
        self._capacity = sum(capacities)
        for worker, share in zip(living, share_out(self._limit, capacities), strict=True):
            worker.quota = share
