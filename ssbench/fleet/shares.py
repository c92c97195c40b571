"""Which worker is to get how many jobs: its share of the users, and what it holds ahead of them.

Pure. All workers get their shares before any gets jobs ahead, and take turns. One is in line for more
when it has few (:attr:`~ssbench.fleet.ahead.Ahead.low`), until it has as many as it may.
"""

from __future__ import annotations

from collections import deque

from ssbench.fleet.ahead import MOST_AHEAD, Ahead
from ssbench.fleet.membership import Membership
from ssbench.fleet.pace import share_out
from ssbench.fleet.worker_state import WorkerState


class Shares(Membership):
    """The workers of one master, and what each may have.

    ``limit`` is how many jobs at once the workers run among them; it may be changed. ``in_hand`` is how many
    they may have in all, with those ahead; None: what each needs. ``keeps_ahead`` is False while they
    get no more than they can begin at once.
    """

    def __init__(self, limit: int = 0) -> None:
        super().__init__()
        #: The workers in line for more jobs: those that have less than their share, and the others.
        self._short: deque[WorkerState] = deque()
        self._turn: deque[WorkerState] = deque()
        self._limit = limit
        self._in_hand: int | None = None
        self._keeps_ahead = True
        self._capacity = self._ahead = 0
        #: Workers that had more than they may have by now, when that was last changed.
        self._over: set[WorkerState] = set()

    @property
    def limit(self) -> int:
        """How many jobs at once the workers run among them."""
        return self._limit

    @limit.setter
    def limit(self, limit: int) -> None:
        if limit != self._limit:
            self._limit = limit
            self._changed = True

    @property
    def in_hand(self) -> int | None:
        """How many jobs the workers may have in all, with those ahead; None: what each needs."""
        return self._in_hand

    @in_hand.setter
    def in_hand(self, in_hand: int | None) -> None:
        if in_hand != self._in_hand:
            self._in_hand = in_hand
            self._changed = True

    @property
    def keeps_ahead(self) -> bool:
        """Whether workers get jobs beyond those that they can begin at once."""
        return self._keeps_ahead

    @keeps_ahead.setter
    def keeps_ahead(self, keeps_ahead: bool) -> None:
        if keeps_ahead != self._keeps_ahead:
            self._keeps_ahead = keeps_ahead
            self._changed = True

    @property
    def capacity(self) -> int:
        """How many jobs the workers that are ready can run at once."""
        if self._changed:
            self._share_out()
        return self._capacity

    @property
    def ahead(self) -> int:
        """How many jobs the workers that are ready may have beyond those that they run."""
        if self._changed:
            self._share_out()
        return self._ahead

    @property
    def beyond(self) -> int:
        """How many jobs workers have beyond those that they may have by now: once they were to have more.

        Others are not to wait until those have ended.
        """
        if self._over:
            self._over = {worker for worker in self._over if worker.outstanding > worker.most}
        return sum(worker.outstanding - worker.most for worker in self._over)

    def measure_anew(self) -> None:
        """Forget how many jobs each worker is to have ahead: those that come now may take another time."""
        for worker in self.workers.values():
            worker.ahead = Ahead()
        self._changed = True

    def next_worker(self) -> WorkerState | None:
        """Return the worker whose turn it is of those that are to be sent more; None if there is none.

        It is to be sent :meth:`room` jobs.
        """
        if self._changed:
            self._share_out()
        short, turn = self._short, self._turn
        while short:
            worker = short[0]
            if worker.ready and worker.outstanding < worker.share and not worker.away:
                short.rotate(-1)
                return worker
            short.popleft()
            worker.in_turn = worker.outstanding >= worker.share
            if worker.in_turn:
                turn.append(worker)
        while turn:
            worker = turn[0]
            if worker.ready and worker.outstanding < worker.most and not worker.away:
                turn.rotate(-1)
                return worker
            worker.in_turn = False
            turn.popleft()
        return None

    @staticmethod
    def room(worker: WorkerState) -> int:
        """How many jobs to send to a worker now: first all get their share, and then what they hold ahead."""
        return (worker.share if worker.outstanding < worker.share else worker.most) - worker.outstanding

    def note_room(self, worker: WorkerState) -> None:
        """Put a worker in line for jobs if it has few; call it when some of its jobs have ended."""
        if worker.in_turn:
            return
        outstanding = worker.outstanding
        if outstanding < worker.share:
            worker.in_turn = True
            self._short.append(worker)
        elif outstanding < worker.most and (
            self._in_hand is not None or outstanding <= worker.share + worker.ahead.low
        ):
            worker.in_turn = True
            self._turn.append(worker)

    def note_progress(
        self, worker: WorkerState, ended: int, begun: int, received: tuple[int, float], now: float
    ) -> None:
        """Take note of a message with results, ``ended`` of which settled jobs.

        ``begun`` is the last job that it says has begun, ``received`` the last batch and for how long it had
        had that, with the time for which the message then waited.
        """
        worker.completed += ended
        if ended:
            worker.progressed_at = now
        worker.has_begun(begun, now)
        if worker.acknowledged(*received, now) and not self._changed and worker.ready:
            before = worker.most
            self._set_most(worker)
            self._ahead += worker.most - before
        worker.forget_ended()
        self.note_room(worker)

    def _share_out(self) -> None:
        # Only when somebody asks: thousands of workers may join between two questions.
        self._changed = False
        living = self.living()
        capacities = [worker.capacity for worker in living]
        self._capacity = sum(capacities)
        for line in (self._short, self._turn):
            for worker in line:
                worker.in_turn = False
            line.clear()
        self._ahead = 0
        for worker, share in zip(living, share_out(self._limit, capacities), strict=True):
            worker.share = share
            self._set_most(worker)
            self._ahead += worker.most - share
            self.note_room(worker)

    def _set_most(self, worker: WorkerState) -> None:
        share = worker.share
        ahead = worker.ahead.high if self._keeps_ahead and share else 0
        if ahead and self._in_hand is not None:
            ahead = max(0, min(-(-self._in_hand * share // max(self._limit, 1)) - share, MOST_AHEAD))
        worker.most = share + ahead
        if worker.outstanding > worker.most:
            self._over.add(worker)
