"""Who holds which job, who counts as lost, what is to be sent again.

Pure: it knows no socket and is told the time, so that "the worker dies at this moment" is a unit
test. The master feeds it what arrives and asks it what to do.

The rules, which make every job end exactly once:

* A job gets a new number each time it is sent. A result settles the number it names, if it comes from
  the worker that the job was sent to. A number that is not in flight (a late result, one of another
  run, an invented one), and one that another worker has, settles nothing and is counted.
* A worker is ready, and gets jobs, once it has answered a ping: only then both directions are known to
  work. Each heartbeat interval it gets another one.
* A worker is sent no more jobs than its share of the limit, and than it says it has room for: one that
  stands still keeps what it was sent, and nothing from the others.
* A worker claims a batch that it was sent in a heartbeat, or with a result or a handback. It sends its
  results before the heartbeat that no longer lists their batch, so a batch that it has claimed and
  leaves out is lost; all are when it serves no run, or another one.
* A worker whose heartbeats, or whose answers to pings, have not come for
  :data:`~ssbench.fleet.wire.LOST_AFTER` seconds is lost, with all batches that it was sent. Once it answers a
  ping again it is used again; its late results are known by their old numbers.
* A batch that has not been claimed as long after it was sent is lost: its connection broke.
* A worker that holds a job for longer than any can take is used no more, whatever its heartbeats say.
* Of two workers with one id the later one waits. It is refused when the earlier one is heard of more than a
  heartbeat interval after it came, and used when the earlier one is lost or has ended: one that was killed
  and started again at once is welcome.
"""

from __future__ import annotations

import math
import secrets
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ssbench.fleet.wire import HEARTBEAT_SECONDS, LOST_AFTER, Heartbeat, Job
from ssbench.fleet.worker_state import ClockOffset, WorkerState

#: Most workers that the book has room for; strangers can pretend to be any number.
MOST_WORKERS = 4096

#: What is to be done: (kind, size class, container, object number, bytes).
Task = tuple[int, int, int, int, int]


@dataclass(frozen=True, slots=True)
class Prior:
    """What lies behind a task that is sent again because its token was refused.

    ``began`` is when its first attempt began, by the master's monotonic clock.
    """

    retries: int
    began: float
    retried: dict[str, int]


#: A task, the batch it is in, what lies behind it.
Entry = tuple[Task, "Batch", Prior | None]


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


@dataclass(frozen=True, slots=True)
class Event:
    """Something to tell the user.

    ``kind``: joined, back, lost, cut off, unreachable, jobs lost, refused, left, full, foreign, invalid.
    ``jobs`` is how many were lost with the worker.
    """

    kind: str
    worker: WorkerState
    text: str
    jobs: int = 0


class Dispatcher:
    """The book of jobs and workers of one master.

    ``limit`` is the most jobs in flight at once, of which no more are sent than the living workers
    have room for together. ``master`` is the number that its pings carry, ``work_port`` is for messages.
    """

    def __init__(self, limit: int, work_port: int | None = None) -> None:
        self.limit = limit
        self.master = secrets.randbits(62) + 1
        self._work_port = "the work port" + (f" ({work_port})" if work_port else "")
        self.workers: dict[int, WorkerState] = {}
        self.in_flight: dict[int, Entry] = {}
        self.backlog: deque[tuple[Task, Prior | None]] = deque()
        self.events: list[Event] = []
        self.late_results = 0
        #: Results and jobs handed back that were with another worker than the one that named them.
        self.foreign_results = 0
        #: Results with figures that cannot be.
        self.invalid_results = 0
        #: Seconds after which a worker that still holds a job is used no more: longer than any job can take.
        self.longest_job = math.inf
        self.handed_back = 0
        self._batches: dict[int, Batch] = {}
        self._turn: deque[WorkerState] = deque()
        self._next_id = 1
        self._capacity = 0
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
        self.limit = limit
        self.events.clear()
        self.late_results = self.foreign_results = self.invalid_results = self.handed_back = 0
        self._ticked = now
        former = self.living()
        for worker in self.workers.values():
            worker.begin(now)
        self._count_capacity()
        return former

    # -- jobs ---------------------------------------------------------------------------------

    def room(self) -> int:
        """How many more jobs may be sent now."""
        return min(self.limit, self._capacity) - len(self.in_flight)

    @property
    def capacity(self) -> int:
        """How many jobs the living workers can run at once."""
        return self._capacity

    @property
    def oldest_sent(self) -> float | None:
        """When the oldest batch in flight was sent."""
        return next((batch.sent_at for batch in self._batches.values()), None)

    def next_worker(self) -> WorkerState | None:
        """Whoever's turn it is of those that may be sent more; None when there is none."""
        turn = self._turn
        for _ in range(len(turn)):
            worker = turn[0]
            turn.rotate(-1)
            if worker.outstanding < worker.quota and not worker.away:
                return worker
        return None

    def send(
        self, tasks: Sequence[Task], now: float, worker: WorkerState, priors: Sequence[Prior | None] = ()
    ) -> tuple[int, list[Job]]:
        """Enter a batch of tasks as sent now to a worker; returns its number and the jobs for the wire."""
        first = self._next_id
        self._next_id = first + len(tasks)
        batch = self._batches[first] = Batch(first, len(tasks), now, worker)
        worker.outstanding += len(tasks)
        in_flight = self.in_flight
        jobs: list[Job] = []
        for number, task in enumerate(tasks, first):
            in_flight[number] = (task, batch, None)
            jobs.append((number, *task))
        for number, prior in enumerate(priors, first):
            in_flight[number] = (*in_flight[number][:2], prior)
        return first, jobs

    def unsend(self, first: int) -> None:
        """Take back a batch that could not be sent; its tasks go to the head of the line."""
        batch = self._batches.pop(first)
        batch.worker.outstanding -= batch.size
        for number in reversed(range(first, first + batch.size)):
            task, _, prior = self.in_flight.pop(number)
            self.backlog.appendleft((task, prior))

    def settle(self, job_id: int, worker: WorkerState) -> Entry | None:
        """A worker says that a job has ended: the entry, or None when that worker does not have the job."""
        entry = self.in_flight.pop(job_id, None)
        if entry is None:
            self.late_results += 1
            return None
        batch = entry[1]
        if batch.worker is not worker:
            self.in_flight[job_id] = entry
            self._note_foreign(worker)
            return None
        worker.outstanding -= 1
        batch.remaining -= 1
        if not batch.remaining:
            self._close(batch)
        elif worker.ready:
            # As _claim does; the call would cost as much as all else here.
            worker.batches.add(batch.first)
        return entry

    def _note_foreign(self, worker: WorkerState) -> None:
        self.foreign_results += 1
        worker.foreign_results += 1
        if worker.foreign_results == 1:
            self._event("foreign", worker, "sends results of jobs that it does not have; they are ignored")

    def note_invalid(self, worker: WorkerState, why: str) -> None:
        """Count a result of a worker with figures that cannot be."""
        self.invalid_results += 1
        worker.invalid_results += 1
        if worker.invalid_results == 1:
            self._event("invalid", worker, f"sent a result that cannot be ({why}); such count as errors")

    def send_again(self, task: Task, prior: Prior | None) -> None:
        """Put a settled task in line to be sent once more."""
        self.backlog.append((task, prior))

    def hand_back(self, job_ids: Iterable[int], worker: WorkerState, capacity: int) -> None:
        """A worker had no room for these, but for ``capacity`` jobs; they go to the head of the backlog."""
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
        """Forget all that is in flight or in line (the phase ends); returns it."""
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
        """The workers that can be given work."""
        return [worker for worker in self.workers.values() if worker.ready]

    def known(self, instance: int) -> WorkerState | None:
        """The worker of that instance, if it has said hello."""
        return self.workers.get(instance)

    def refused(self) -> list[WorkerState]:
        """Those that have been turned away and have been heard of lately."""
        return [worker for worker in self.workers.values() if worker.refused and worker.alive]

    def to_ping(self, now: float) -> list[WorkerState]:
        """Those whose next ping is due."""
        due = now - HEARTBEAT_SECONDS
        return [
            worker
            for worker in self.workers.values()
            if worker.alive and worker.pinged <= due and not worker.refused
        ]

    def heartbeat(self, beat: Heartbeat, run_id: int, now: float) -> None:
        """A worker is alive, and says what it holds and which ping it has received."""
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
        """Turn a worker away for good."""
        worker = self.workers.get(instance) or self._enter(
            WorkerState(worker_id, instance, host, 0, "", 0, now)
        )
        if worker is None:
            return
        worker.last_seen = now
        worker.alive = not worker.ended
        if not worker.refused:
            self._bury(worker)
            worker.refusal = reason
            self._event("refused", worker, f"is refused: it {reason}")

    def leave(self, instance: int, reason: str) -> None:
        """A worker said that it ends, or its process is seen to have ended."""
        worker = self.workers.get(instance)
        if worker is None or worker.ended:
            return
        worker.ended = True
        worker.alive = False
        if worker.ready:
            self._bury(worker)
            self._event("left", worker, reason)

    def tick(self, now: float) -> None:
        """Look at the time: find workers and batches that are lost.

        A master that was itself held up (stopped, starved) has heard nobody meanwhile; its own
        gap is not held against the others.
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
        for worker in {
            batch.worker for batch in self._batches.values() if now - batch.sent_at > self.longest_job
        }:
            self.leave(
                worker.instance,
                f"has held jobs for over {self.longest_job:.0f} s, longer than any of them can take;"
                f" they count as lost ({worker.outstanding}), and it is used no more",
            )
        unclaimed = [
            batch
            for batch in self._batches.values()
            if now - batch.waits_since > LOST_AFTER and batch.first not in batch.worker.batches
        ]
        lost: Counter[WorkerState] = Counter()
        for batch in unclaimed:
            lost[batch.worker] += batch.remaining
            self._lose(batch)
        for worker, jobs in lost.items():
            text = f"has not confirmed {_jobs(jobs)} within {LOST_AFTER:g} s: lost on the way"
            self._event("jobs lost", worker, text, jobs)

    def hindrances(self, now: float) -> list[str]:
        """Why workers whose heartbeats arrive are not ready, a sentence for each."""
        texts = []
        for worker in self.workers.values():
            if not worker.alive or worker.ready or worker.refused:
                continue
            if now - worker.reached <= LOST_AFTER:
                why = "has the id of a worker that may still live"
            elif now - worker.since <= 2 * HEARTBEAT_SECONDS:
                why = "has just come"
            else:
                why = self._unreachable
            texts.append(f"{worker.name} {why}")
        return texts

    @property
    def _unreachable(self) -> str:
        return (
            f"sends heartbeats but cannot be reached on {self._work_port}; does a firewall block that port?"
        )

    def _look_at(self, worker: WorkerState, now: float) -> None:
        silence = now - worker.last_seen
        # Where both directions fail, its last heartbeat may be a little younger than its last answer.
        silent = silence > 2 * HEARTBEAT_SECONDS
        if worker.ready and now - worker.reached > LOST_AFTER:
            jobs = worker.outstanding
            self._bury(worker)
            worker.told = not silent
            if silent:
                text = f"has not been heard of for {silence:.1f} s"
            else:
                text = (
                    f"cannot be reached on {self._work_port}: its heartbeats arrive, but for"
                    f" {now - worker.reached:.1f} s it has received nothing"
                )
            text += " and counts as lost" + (f", with {_jobs(jobs)}" if jobs else "")
            self._event("lost" if silent else "cut off", worker, text, jobs)
        unreachable = not (silent or worker.refused) and now - max(worker.reached, worker.since) > LOST_AFTER
        if unreachable and not worker.told:
            worker.told = True
            self._event("unreachable", worker, self._unreachable)
        if silence > LOST_AFTER:
            worker.alive = False

    def _admit(self, worker: WorkerState) -> None:
        """Use a worker that can be reached, unless another one has its id."""
        holder = self._holders.get(worker.worker_id)
        if holder is None or not holder.ready:
            self._holders[worker.worker_id] = worker
            if worker.used:
                self._event("back", worker, "is back and is used again")
            else:
                self._event("joined", worker, f"joined ({worker.capacity} jobs at once)")
            worker.ready = worker.used = True
            worker.told = False
            self._count_capacity()
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
                    self._event("full", worker, f"is not used: there are {MOST_WORKERS} workers already")
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
            text = f"no longer has {_jobs(jobs)} that it had begun: it was held up, or its connection broke"
            self._event("jobs lost", worker, text, jobs)

    def _bury(self, worker: WorkerState) -> None:
        worker.ready = False
        for batch in list(self._batches.values()):
            if batch.worker is worker:
                self._lose(batch)
        self._count_capacity()

    def _set_capacity(self, worker: WorkerState, capacity: int) -> None:
        if worker.capacity != capacity:
            worker.capacity = capacity
            if worker.ready:
                self._count_capacity()

    def _count_capacity(self) -> None:
        living = self.living()
        self._turn = deque(living)
        self._capacity = sum(worker.capacity for worker in living)
        # All get the same, but for those that have not room for it: their part goes to the others.
        left = self.limit
        for place, worker in enumerate(sorted(living, key=lambda each: each.capacity)):
            worker.quota = min(worker.capacity, max(1, -(-left // (len(living) - place))))
            left -= worker.quota

    def _event(self, kind: str, worker: WorkerState, text: str, jobs: int = 0) -> None:
        self.events.append(Event(kind, worker, f"{worker.name} {text}", jobs))


def _jobs(count: int) -> str:
    return f"{count} job{'' if count == 1 else 's'}"
