"""Which worker holds which job, and which jobs are to be sent again.

Pure: a ledger knows no socket and is given the time, so that "the worker dies at this moment" is a unit test.

:class:`JobLedger` has the jobs of one group of users. :class:`GroupJobs` adds how many jobs each worker may
have of these, :class:`Dispatcher` which workers there are; the fleet passes in what arrives and asks what to
do.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ssbench.fleet import fleet_events
from ssbench.fleet.allocation import Allocation
from ssbench.fleet.roster import Roster
from ssbench.fleet.wire import LOST_AFTER, Heartbeat, Job
from ssbench.fleet.worker_state import History, Task, TaskBatch, WorkerState, was_tried


@dataclass(eq=False)
class JobCounts:
    """What is counted of the jobs of a run, for its stat file."""

    late_results: int = 0
    foreign_results: int = 0  # with jobs handed back: that another worker had than the one that named them
    invalid_results: int = 0  # with impossible figures
    handed_back: int = 0  # jobs
    passed_on: int = 0  # jobs of lost workers that had not begun and went to others
    refused_connections: int = 0  # to the ports, of whoever is no worker of this fleet


class JobLedger(JobCounts):
    """Keeps account of jobs, whose numbers are above ``numbers``. ``tell`` is called with each event.

    Its rules make every job end exactly once:

    * A job gets a new number each time it is sent. A result settles the number it names, if it comes from the
      worker that the job was sent to. A number that is not in flight (a late result, one of another run, an
      invented one), and one that another worker has, settles nothing and is counted.
    * A worker begins jobs in the order in which they were sent, and its results say which was the last one.
    * A worker claims a batch that it was sent in a heartbeat, or with a result or a handback. It sends its
      results before the heartbeat that no longer lists their batch, so a batch that it has claimed and leaves
      out is dropped; all are when it serves no run, or another one.
    * A batch that has not been claimed within :data:`~ssbench.fleet.wire.LOST_AFTER` seconds after it was
      sent was dropped: its connection broke.
    * Of jobs that were dropped, or were with a worker that was lost, those are lost that may have begun: the
      first ones, as many as its share, and those up to the last one that it said had begun. The others go to
      the head of the backlog.
    * A worker that holds a job for longer than any can take, from when it can have begun, is not used any
      more, whatever it says. When each job began is not kept, but what had begun at one look must have ended
      at the next, so it is found after twice that time at most.
    """

    def __init__(self, tell: Callable[[fleet_events.Event], None], numbers: int) -> None:
        super().__init__()
        self._tell = tell
        #: The batch of each job.
        self.in_flight: dict[int, TaskBatch] = {}
        self.backlog: deque[tuple[Task, History | None]] = deque()
        #: Seconds after which a worker that still holds a job is not used any more; no job takes that long.
        self.longest_job = math.inf
        self._batches: dict[int, TaskBatch] = {}
        self._next_id = numbers + 1
        #: No worker counts as overdue before that.
        self._heard_by = -math.inf
        #: Tasks that were lost and not taken yet, each with the worker that had it.
        self.lost: list[tuple[Task, WorkerState]] = []

    def begin(self) -> None:
        """Begin another run; call it while no job is in flight. Counts start from 0."""
        JobCounts.__init__(self)

    # -- jobs ---------------------------------------------------------------------------------

    @property
    def oldest_begun(self) -> float | None:
        """When the job in flight that began first can have begun, to a batch."""
        batches = self._batches.values()
        first = next((batch.began_at for batch in batches), None)
        return min((batch.began_at for batch in batches if self._has_begun(batch)), default=first)

    @staticmethod
    def _has_begun(batch: TaskBatch) -> bool:
        """Whether a job of the batch has begun, as far as is known."""
        held = batch.worker.held
        return batch.first <= held.begun or held.outstanding <= held.users_told

    def send(
        self,
        tasks: Sequence[Task],
        now: float,
        worker: WorkerState,
        users: int,
        histories: Sequence[History | None] = (),
        dues: Sequence[float | None] = (),
    ) -> tuple[int, list[Job]]:
        """Record a batch of tasks as sent now to a worker; return its number and the jobs for the wire.

        The message says that the worker may run ``users`` jobs at once. ``histories`` are those of tasks that
        are sent again, one for each task, or empty; ``dues`` are when they are due.
        """
        first = self._next_id
        self._next_id = end = first + len(tasks)
        batch = self._batches[first] = TaskBatch(first, tasks, now, worker, histories, dues)
        held = worker.held
        held.batches[first] = batch
        held.unacknowledged.append(batch)
        held.unbegun.append(batch)
        held.users_told = users
        held.recalled = False
        held.outstanding += len(tasks)
        self.in_flight.update(dict.fromkeys(range(first, end), batch))
        # (number, *task) takes twice as long.
        return first, [
            (number, kind, size_class, container, object_number, size)
            for number, (kind, size_class, container, object_number, size) in enumerate(tasks, first)
        ]

    def unsend(self, first: int) -> WorkerState:
        """Take back a batch that could not be sent; its tasks go to the head of the backlog.

        Returns the worker to which it was to be sent.
        """
        batch = self._batches.pop(first)
        held = batch.worker.held
        del held.batches[first]
        held.unacknowledged.pop()
        held.unbegun.pop()
        held.outstanding -= batch.size
        for number in reversed(range(first, first + batch.size)):
            del self.in_flight[number]
            self.backlog.appendleft(_backlog_entry(number, batch))
        return batch.worker

    def settle(self, job_id: int, worker: WorkerState) -> TaskBatch | None:
        """Take note that a worker says a job has ended.

        Returns its batch, or None if that worker does not have the job.
        """
        batch = self.in_flight.pop(job_id, None)
        if batch is None or batch.worker is not worker:
            self.put_back(job_id, batch, worker)
            return None
        self.settled(batch, 1)
        return batch

    def settled(self, batch: TaskBatch, count: int) -> None:
        """Take note that this many jobs of a batch have ended, and were taken out of ``in_flight``."""
        worker = batch.worker
        held = worker.held
        held.outstanding -= count
        batch.remaining -= count
        if not batch.remaining:
            self._close(batch)
        elif worker.presence.ready:
            batch.claimed = True

    def put_back(self, job_id: int, batch: TaskBatch | None, worker: WorkerState) -> None:
        """Count a job that a worker named and does not have; ``batch`` was taken out of ``in_flight``."""
        if batch is None:
            self.late_results += 1
        else:
            self.in_flight[job_id] = batch
            self._note_foreign(worker)

    def _note_foreign(self, worker: WorkerState) -> None:
        self.foreign_results += 1
        worker.held.foreign_results += 1
        if worker.held.foreign_results == 1:
            self._tell(fleet_events.Foreign(worker))

    def note_invalid(self, worker: WorkerState, why: str) -> None:
        """Count a result of a worker with impossible figures; ``why`` they are."""
        self.invalid_results += 1
        worker.held.invalid_results += 1
        if worker.held.invalid_results == 1:
            self._tell(fleet_events.Invalid(worker, why))

    def send_again(self, task: Task, history: History | None) -> None:
        """Put a settled task at the end of the backlog, to be sent once more."""
        self.backlog.append((task, history))

    def hand_back(self, job_ids: Sequence[int], worker: WorkerState, *, asked: bool = False) -> None:
        """Put jobs that a worker did not begin at the head of the backlog. ``asked``: it was asked to."""
        for job_id in reversed(job_ids):
            if job_id in self.in_flight:
                batch = self.settle(job_id, worker)
                if batch is not None:
                    self.handed_back += not asked
                    self.backlog.appendleft(_backlog_entry(job_id, batch))
        worker.held.forget_ended()

    def note_progress(
        self, worker: WorkerState, ended: int, begun: int, batch_id: int, now: float
    ) -> tuple[int, float] | None:
        """Take note of a message with results, ``ended`` of which settled jobs.

        ``begun`` is the last job that the worker says has begun, ``batch_id`` the last batch that it has
        received: it claims that, and all before it. Returns how many of its jobs ended since that batch was
        sent, and when that was; None if it said so before.
        """
        held, turn = worker.held, None
        held.completed += ended
        if ended:
            held.progressed_at = now
        held.has_begun(begun, now)
        waiting = held.unacknowledged
        while waiting and waiting[0].first <= batch_id:
            batch = waiting.popleft()
            if batch.remaining and worker.presence.ready:
                batch.claimed = True
            if batch.first == batch_id:
                turn = held.completed - batch.completed, batch.sent_at
        # As forget_ended does; the call would cost as much.
        while waiting and not waiting[0].remaining:
            waiting.popleft()
        waiting = held.unbegun
        while waiting and not waiting[0].remaining:
            waiting.popleft()
        return turn

    def take_lost(self) -> list[tuple[Task, WorkerState]]:
        """The tasks that were lost since the last call, each with the worker that had it.

        Each was in flight and is no longer.
        """
        lost, self.lost = self.lost, []
        return lost

    def abandon(self) -> tuple[list[Task], list[tuple[Task, History | None]]]:
        """Forget all that is in flight or in the backlog, because the phase ends.

        Returns what may have begun, and what has not as far as is known.
        """
        passed_on = self.passed_on
        for worker in dict.fromkeys(batch.worker for batch in self._batches.values()):
            self.lose(worker)
        self.passed_on = passed_on
        begun = [task for task, _ in self.take_lost()]
        begun += [task for task, history in self.backlog if was_tried(history)]
        not_begun = [(task, history) for task, history in self.backlog if not was_tried(history)]
        self.backlog.clear()
        return begun, not_begun

    def _close(self, batch: TaskBatch) -> None:
        del self._batches[batch.first]
        batch.remaining = 0
        del batch.worker.held.batches[batch.first]

    def lose(self, worker: WorkerState, firsts: Container[int] | None = None) -> int:
        """A worker no longer has some batches (None: all). Return how many jobs were lost."""
        lost, place, not_begun = 0, 0, []
        held = worker.held
        for batch in [*held.batches.values()]:
            if firsts is not None and batch.first not in firsts:
                place += batch.remaining
                continue
            for number in range(batch.first, batch.first + batch.size):
                if self.in_flight.pop(number, None) is None:
                    continue
                held.outstanding -= 1
                if number <= held.begun or place < held.users_told:
                    self.lost.append((batch.task(number), worker))
                    lost += 1
                else:
                    # It reported all that it had begun, but not what it began after that.
                    not_begun.append(_backlog_entry(number, batch, in_doubt=True))
                place += 1
            self._close(batch)
        self.passed_on += len(not_begun)
        self.backlog.extendleft(reversed(not_begun))
        return lost

    def compare(self, worker: WorkerState, held: Sequence[int]) -> None:
        """Take note of the batches that a worker says it holds."""
        batches = worker.held.batches
        if worker.presence.ready:
            for first in batches.keys() & held:
                batches[first].claimed = True
        dropped = {first for first, batch in batches.items() if batch.claimed}.difference(held)
        if dropped and (jobs := self.lose(worker, dropped)):
            self._tell(fleet_events.Dropped(worker, jobs))

    # -- time passes --------------------------------------------------------------------------

    def forgive(self, gap: float, now: float) -> None:
        """The master was delayed for so many seconds until now: it could hear nothing meanwhile."""
        for batch in self._batches.values():
            batch.waits_since += gap
        # What ended meanwhile is to be heard first.
        self._heard_by = max(self._heard_by, now + LOST_AFTER)

    def overdue(self, living: Iterable[WorkerState], now: float) -> list[WorkerState]:
        """Return the workers that hold a job for longer than any can take."""
        if now < self._heard_by:
            return []
        seen: set[WorkerState] = set()
        late: dict[WorkerState, None] = {}
        for batch in self._batches.values():
            if now - batch.sent_at <= self.longest_job:
                break  # the others were sent later
            worker = batch.worker
            began = batch.began_at
            if batch.first > worker.held.begun:
                if worker in seen:
                    continue
                # Its oldest batch begins, whatever it says, once the jobs before it have ended.
                began = max(began, worker.held.progressed_at)
            seen.add(worker)
            if now - began > self.longest_job:
                late[worker] = None
        return [*late, *self._never_done(living, now)]

    def _never_done(self, living: Iterable[WorkerState], now: float) -> list[WorkerState]:
        """Find the workers that still hold a job that had begun when they were looked at before."""
        found = []
        for worker in living:
            held = worker.held
            if now - held.looked_at > self.longest_job:
                if self._holds_up_to(worker, held.begun_then):
                    found.append(worker)
                held.looked_at, held.begun_then = now, held.begun
        return found

    def _holds_up_to(self, worker: WorkerState, last: int) -> bool:
        """Whether a worker has a job of that number or a smaller one."""
        return any(
            number in self.in_flight
            for batch in worker.held.batches.values()
            for number in range(batch.first, min(batch.first + batch.size, last + 1))
        )

    def find_unconfirmed(self, now: float) -> None:
        """Lose the batches that have not been claimed in time."""
        unclaimed: dict[WorkerState, set[int]] = {}
        for batch in self._batches.values():
            if now - batch.sent_at <= LOST_AFTER:
                break  # the others were sent later
            if now - batch.waits_since > LOST_AFTER and not batch.claimed:
                unclaimed.setdefault(batch.worker, set()).add(batch.first)
        for worker, firsts in unclaimed.items():
            if jobs := self.lose(worker, firsts):
                self._tell(fleet_events.Unconfirmed(worker, jobs))


def _backlog_entry(number: int, batch: TaskBatch, *, in_doubt: bool = False) -> tuple[Task, History | None]:
    """Return what goes into the backlog for a job that has not begun: it is still due when it was.

    ``in_doubt``: as far as is known it has not.
    """
    history, due = batch.history(number), batch.due(number)
    if history is not None and in_doubt:
        history = replace(history, in_doubt=True)
    elif history is None and (in_doubt or due is not None):
        # With replace, thousands of workers that are lost at once took seconds.
        history = History(0, 0.0, {}, due=due, in_doubt=in_doubt)
    return batch.task(number), history


# -- The jobs of one group of users ----------------------------------------------------------------


#: The numbers of the jobs of each group begin with its number in these upper bits, and never meet.
_JOB_NUMBER_BITS = 48


class GroupJobs:
    """Keeps account of the jobs of one group. ``tell`` is called with each event.

    Groups share the workers, but each has its own users, its own jobs ahead and its own order in which jobs
    begin. So a worker has a state for each group; that of the first group is the worker itself. A worker runs
    no more jobs at once than its share of the limit, and no more than it says it has room for. It holds some
    ahead (:mod:`ssbench.fleet.prefetch`), so that none of its users is idle. A worker that hangs keeps what
    it was sent, and takes nothing from the others.

    ``group`` is its number, of so many ``groups``. ``part`` is the share of each worker's capacity that it
    may use.
    """

    def __init__(
        self,
        tell: Callable[[fleet_events.Event], None],
        limit: int,
        group: int = 0,
        part: float = 1.0,
        groups: int = 1,
    ) -> None:
        self.group = group
        self.part = part
        self.allocation = Allocation(limit, groups)
        self.ledger = JobLedger(tell, group << _JOB_NUMBER_BITS)
        self._states: dict[WorkerState, WorkerState] = {}

    def state_of(self, worker: WorkerState) -> WorkerState:
        """Return a worker as this account knows it."""
        if not self.group:
            return worker
        found = self._states.get(worker)
        if found is None:
            found = self._states[worker] = worker.copy_for_group()
        return found

    def living(self) -> list[WorkerState]:
        """Return the states of the workers that can be given work."""
        return self.allocation.workers

    def set_capacity(self, state: WorkerState, capacity: int) -> None:
        """Take note of how many jobs of all groups a worker says that it can run at once."""
        own = capacity if self.part == 1 else math.ceil(capacity * self.part)
        self.allocation.set_capacity(state, own)

    def admit(self, worker: WorkerState) -> None:
        """Let a worker have jobs from now on."""
        state = self.state_of(worker)
        state.held.parameters = b""
        self.allocation.add(state)

    def withdraw(self, worker: WorkerState) -> int:
        """Let a worker have no jobs any more; return how many are lost with it."""
        state = self.state_of(worker)
        self.allocation.remove(state)
        return self.ledger.lose(state)

    def heard(self, worker: WorkerState, beat: Heartbeat, run_id: int) -> None:
        """Take note of what a heartbeat says of the jobs of a worker."""
        state = self.state_of(worker)
        self.set_capacity(state, beat.capacity)
        self.ledger.compare(state, beat.held if beat.run_id == run_id else [])
        self.allocation.note_room(state)

    # -- jobs ---------------------------------------------------------------------------------

    def send(
        self,
        tasks: Sequence[Task],
        now: float,
        worker: WorkerState,
        histories: Sequence[History | None] = (),
        dues: Sequence[float | None] = (),
    ) -> tuple[int, list[Job]]:
        """Record a batch of tasks as sent now to a worker; return its number and the jobs for the wire.

        ``histories`` are those of tasks that are sent again, one for each task, or empty; ``dues`` are when
        they are due.
        """
        self.allocation.share_out()
        worker.presence.pinged = now
        sent = self.ledger.send(tasks, now, worker, worker.allowance.share, histories, dues)
        self.allocation.note_sent(worker)
        return sent

    def unsend(self, first: int) -> None:
        """Take back the last batch of a worker that is not connected now (:meth:`JobLedger.unsend`)."""
        # With its connection it drops the run.
        self._pause(self.ledger.unsend(first))

    def hand_back(
        self, job_ids: Sequence[int], worker: WorkerState, capacity: int, *, asked: bool = False
    ) -> None:
        """Put jobs that a worker did not begin at the head of the backlog; it runs ``capacity`` at once.

        ``asked``: it was asked to.
        """
        self.set_capacity(worker, capacity)
        if not asked:
            # Whatever it says: one that hands back all it gets is tried no more than ten times a second.
            # Perhaps because it does not know the parameters.
            self._pause(worker)
        self.ledger.hand_back(job_ids, worker, asked=asked)
        self.allocation.note_room(worker)

    @staticmethod
    def _pause(worker: WorkerState) -> None:
        """Send a worker no jobs until the next tick, and then the parameters of the run as well."""
        worker.allowance.away = True
        worker.held.parameters = b""

    def note_progress(
        self,
        worker: WorkerState,
        ended: int,
        begun: int,
        received: tuple[int, float],
        now: float,
        clock: float,
    ) -> None:
        """Take note of a message with results, ``ended`` of which settled jobs.

        ``begun`` is the last job that it says has begun, ``received`` the last batch and for how long it had
        had that, with the time for which the message then waited, ``clock`` when it left by its clock.
        """
        batch_id, seconds_held = received
        turn = self.ledger.note_progress(worker, ended, begun, batch_id, now)
        if turn is not None:
            recently_ended, sent = turn
            self.allocation.observe(worker, recently_ended, now - sent, seconds_held)
            worker.presence.acknowledged(sent, clock, now, max(seconds_held, 0.0))
        self.allocation.note_room(worker)

    def abandon(self) -> tuple[list[Task], list[tuple[Task, History | None]]]:
        """Forget all jobs; see :meth:`JobLedger.abandon`."""
        abandoned = self.ledger.abandon()
        self.allocation.tick()
        return abandoned


# -- All groups of a master ------------------------------------------------------------------------


class Dispatcher(GroupJobs):
    """Keeps account of the jobs and the workers of one master: itself those of the first group.

    ``limit`` is how many jobs at once the workers run among them.
    """

    def __init__(self, limit: int = 0) -> None:
        self.events: list[fleet_events.Event] = []
        super().__init__(self.tell, limit)
        #: The accounts of all groups, that of the first one first.
        self.accounts: list[GroupJobs] = [self]
        self.roster = Roster(self.tell, self._admit, self._withdraw)

    def tell(self, event: fleet_events.Event) -> None:
        """Keep an event until it is taken."""
        self.events.append(event)

    def begin(self, limit: int, now: float, parts: Sequence[float] = (1.0,)) -> list[WorkerState]:
        """Begin another run with a limit of its own; call it while no job is in flight.

        Counts start from 0, and every worker has to answer a ping again before it is used. Events that were
        not taken are dropped. Returns the workers that were ready before. ``parts`` are the shares of the
        workers' capacity that the groups of the run may use, one for each group.
        """
        self.events.clear()
        self.part = parts[0]
        count = len(parts)
        further = [GroupJobs(self.tell, 0, group, part, count) for group, part in enumerate(parts) if group]
        self.accounts = [self, *further]
        self.allocation.begin(limit, count)
        self.ledger.begin()
        return self.roster.begin(now)

    def _admit(self, worker: WorkerState) -> None:
        for account in self.accounts:
            account.admit(worker)

    def _withdraw(self, worker: WorkerState) -> int:
        return sum(account.withdraw(worker) for account in self.accounts)

    # -- workers ------------------------------------------------------------------------------

    def heartbeat(self, beat: Heartbeat, run_id: int, now: float, wall: float = 0.0) -> WorkerState | None:
        """Receive a heartbeat: its worker is alive, holds batches and has received a ping. Return it.

        None: the worker is not used, whatever it says. ``wall`` is the master's time of day, 0 where it does
        not matter.
        """
        worker = self.roster.heartbeat(beat, now, wall)
        if worker is not None:
            for account in self.accounts:
                account.heard(worker, beat, run_id)
        return worker

    def tick(self, now: float) -> None:
        """Find the workers and batches that are lost by now; call it several times a second."""
        gap = self.roster.tick(now)
        for account in self.accounts:
            if gap:
                account.ledger.forgive(gap, now)
        self._find_overdue(now)
        for account in self.accounts:
            account.ledger.find_unconfirmed(now)
            account.allocation.tick()

    def _find_overdue(self, now: float) -> None:
        for account in self.accounts:
            longest = account.ledger.longest_job
            for state in account.ledger.overdue(account.living(), now):
                if (worker := self.roster.known(state.instance)) is not None:
                    self.roster.end(worker, partial(fleet_events.Overdue, worker, longest))
