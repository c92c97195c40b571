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
from ssbench.fleet.account import GroupJobs
from ssbench.fleet.roster import Roster
from ssbench.fleet.wire import Heartbeat
from ssbench.fleet.worker_state import WorkerState


class Dispatcher(GroupJobs):
    """Keeps account of the jobs and the workers of one master: itself those of the first group.

    ``limit`` is how many jobs at once the workers run among them.
    """

    def __init__(self, limit: int = 0) -> None:
        self.events: list[events.Event] = []
        super().__init__(self.tell, limit)
        #: The accounts of all groups, that of the first one first.
        self.accounts: list[GroupJobs] = [self]
        self.roster = Roster(self.tell, self._admit, self._withdraw)

    def tell(self, event: events.Event) -> None:
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
        further = [GroupJobs(self.tell, 0, group, part) for group, part in enumerate(parts) if group]
        self.accounts = [self, *further]
        self.allocation.begin(limit)
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
            for seat in account.ledger.overdue(account.living(), now):
                if (worker := self.roster.known(seat.instance)) is not None:
                    self.roster.end(worker, partial(events.Overdue, worker, longest))
