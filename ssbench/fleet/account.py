"""What the jobs of one group of users are: how many each worker may have of them, and which is where.

Pure. Groups share the workers, and each has its own users, its own jobs ahead and its own order in which jobs
begin; so each has an account of its own. The parts of a worker that an account keeps are those of its *seat*:
in the account of the first group the worker itself, in others the same worker with parts of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ssbench.fleet import events
from ssbench.fleet.allocation import Allocation
from ssbench.fleet.history import History
from ssbench.fleet.ledger import JobLedger
from ssbench.fleet.wire import Heartbeat, Job
from ssbench.fleet.worker_state import Task, WorkerState

#: The numbers of the jobs of each group begin with its number in these upper bits, and never meet.
_JOB_NUMBER_BITS = 48


class GroupJobs:
    """Keeps account of the jobs of one group. ``tell`` is called with each event.

    ``group`` is its number. ``part`` is the share of each worker's capacity that it may use.
    """

    def __init__(
        self, tell: Callable[[events.Event], None], limit: int = 0, group: int = 0, part: float = 1.0
    ) -> None:
        self.group = group
        self.part = part
        self.allocation = Allocation(limit)
        self.ledger = JobLedger(tell, group << _JOB_NUMBER_BITS)
        self._seats: dict[WorkerState, WorkerState] = {}

    def seat(self, worker: WorkerState) -> WorkerState:
        """Return a worker as this account knows it."""
        if not self.group:
            return worker
        found = self._seats.get(worker)
        if found is None:
            found = self._seats[worker] = worker.seat()
        return found

    def living(self) -> list[WorkerState]:
        """Return the seats of the workers that can be given work."""
        return self.allocation.workers

    def set_capacity(self, seat: WorkerState, capacity: int) -> None:
        """Take note of how many jobs of all groups a worker says that it can run at once."""
        own = capacity if self.part == 1 else math.ceil(capacity * self.part)
        self.allocation.set_capacity(seat, own)

    def admit(self, worker: WorkerState) -> None:
        """Let a worker have jobs from now on."""
        seat = self.seat(worker)
        seat.held.parameters = b""
        self.allocation.add(seat)

    def withdraw(self, worker: WorkerState) -> int:
        """Let a worker have no jobs any more; return how many are lost with it."""
        seat = self.seat(worker)
        self.allocation.remove(seat)
        return self.ledger.lose(seat)

    def heard(self, worker: WorkerState, beat: Heartbeat, run_id: int) -> None:
        """Take note of what a heartbeat says of the jobs of a worker."""
        seat = self.seat(worker)
        self.set_capacity(seat, beat.capacity)
        self.ledger.compare(seat, beat.held if beat.run_id == run_id else [])
        self.allocation.note_room(seat)

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
        return self.ledger.send(tasks, now, worker, worker.allowance.share, histories, dues)

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
        self, worker: WorkerState, ended: int, begun: int, received: tuple[int, float], now: float
    ) -> None:
        """Take note of a message with results, ``ended`` of which settled jobs.

        ``begun`` is the last job that it says has begun, ``received`` the last batch and for how long it had
        had that, with the time for which the message then waited.
        """
        batch_id, seconds_held = received
        turn = self.ledger.note_progress(worker, ended, begun, batch_id, now)
        if turn is not None:
            self.allocation.observe(worker, *turn, seconds_held)
        self.allocation.note_room(worker)

    def abandon(self) -> tuple[list[Task], list[tuple[Task, History | None]]]:
        """Forget all jobs; see :meth:`JobLedger.abandon`."""
        abandoned = self.ledger.abandon()
        self.allocation.tick()
        return abandoned
