"""The three accounts of a master put together: who is there, how many each may have, which job is where.

Pure. What concerns one account only is asked of it; here is what concerns several. The fleet feeds in what
arrives and asks what to do.

* A worker runs no more jobs at once than its share of the limit, and than it says it has room for. It holds
  some ahead (:mod:`ssbench.fleet.ahead`), so that none of its users is idle. One that hangs keeps what it was
  sent, and takes nothing from the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ssbench.fleet import events
from ssbench.fleet.allocation import Allocation
from ssbench.fleet.history import History
from ssbench.fleet.ledger import Ledger
from ssbench.fleet.roster import Roster
from ssbench.fleet.wire import Heartbeat, Job
from ssbench.fleet.worker_state import Task, WorkerState


class Dispatcher:
    """Keeps account of the jobs and the workers of one master.

    ``limit`` is how many jobs at once the workers run among them.
    """

    def __init__(self, limit: int = 0) -> None:
        self.events: list[events.Event] = []
        self.allocation = Allocation(limit)
        self.ledger = Ledger(self.tell)
        self.roster = Roster(self.tell, self.allocation.add, self._withdraw)

    def tell(self, event: events.Event) -> None:
        """Keep an event until it is taken."""
        self.events.append(event)

    def begin(self, limit: int, now: float) -> list[WorkerState]:
        """Begin another run with a limit of its own; call it while no job is in flight.

        Counts start from 0, and every worker has to answer a ping again before it is used. Events that were
        not taken are dropped. Returns the workers that were ready before.
        """
        self.events.clear()
        self.allocation.begin(limit)
        self.ledger.begin()
        return self.roster.begin(now)

    def _withdraw(self, worker: WorkerState) -> int:
        self.allocation.remove(worker)
        return self.ledger.lose(worker)

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
        """Take back the last batch of a worker that is not connected now (:meth:`Ledger.unsend`)."""
        self.ledger.unsend(first).allowance.away = True

    def hand_back(
        self, job_ids: Sequence[int], worker: WorkerState, capacity: int, *, asked: bool = False
    ) -> None:
        """Put jobs that a worker did not begin at the head of the backlog; it runs ``capacity`` at once.

        ``asked``: it was asked to.
        """
        self.allocation.set_capacity(worker, capacity)
        if not asked:
            # Whatever it says: one that hands back all it gets is tried no more than ten times a second.
            worker.allowance.away = True
        self.ledger.hand_back(job_ids, worker, asked=asked)
        self.allocation.note_room(worker)

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
        """Forget all jobs; see :meth:`Ledger.abandon`."""
        abandoned = self.ledger.abandon()
        self.allocation.tick()
        return abandoned

    # -- workers ------------------------------------------------------------------------------

    def heartbeat(self, beat: Heartbeat, run_id: int, now: float, wall: float = 0.0) -> None:
        """Receive a heartbeat: its worker is alive, holds batches and has received a ping.

        ``wall`` is the master's time of day, 0 where it does not matter.
        """
        worker = self.roster.heartbeat(beat, now, wall)
        if worker is not None:
            self.allocation.set_capacity(worker, beat.capacity)
            self.ledger.compare(worker, beat.held if beat.run_id == run_id else [])
            self.allocation.note_room(worker)

    def tick(self, now: float) -> None:
        """Find the workers and batches that are lost by now; call it several times a second."""
        if gap := self.roster.tick(now):
            self.ledger.forgive(gap, now)
        self._find_overdue(now)
        self.ledger.find_unconfirmed(now)
        self.allocation.tick()

    def _find_overdue(self, now: float) -> None:
        longest = self.ledger.longest_job
        for worker in self.ledger.overdue(self.roster.living(), now):
            self.roster.end(worker, partial(events.Overdue, worker, longest))
