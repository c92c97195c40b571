"""Which worker is to get how many jobs: its share of the users, and what it holds ahead of them.

Pure. All workers get their shares before any gets jobs ahead, and take turns. One is in line for more
when it has few (:attr:`~ssbench.fleet.prefetch.PrefetchedJobs.low`), until it has as many as it may.
"""

from __future__ import annotations

import math
from collections import deque

from ssbench.fleet.phase import share_users
from ssbench.fleet.prefetch import FleetScale, PrefetchedJobs, scale_of_fleet
from ssbench.fleet.worker_state import WorkerState

#: By what the number of jobs of all workers that find an object follows a smaller one at each shortage, and
#: by what it grows several times a second without one.
_FALLING_FACTOR, _RISING_FACTOR = 0.95, 1.1


class Allocation:
    """How many jobs each worker may have, of those that are ready.

    ``limit`` is how many jobs at once the workers run among them; it may be changed. ``in_hand`` is how many
    they may have in all, with those ahead; None: what each needs. ``keeps_ahead`` is False while they
    get no more than they can begin at once. So many ``groups`` of users share the workers.
    """

    def __init__(self, limit: int, groups: int = 1) -> None:
        #: The workers that may get jobs, in the order in which they came.
        self._workers: dict[WorkerState, None] = {}
        #: Whether something changed on which shares depend: they are counted when they are asked for,
        #: because thousands of workers may come between two questions.
        self._stale = False
        self._groups = groups
        self._scale = FleetScale()
        #: The workers in line for more jobs: those that have less than their share, and the others.
        self._short: deque[WorkerState] = deque()
        self._turn: deque[WorkerState] = deque()
        self._limit = limit
        self._in_hand: int | None = None
        self._keeps_ahead = True
        #: How many jobs a message for a worker has at least, where its users have others meanwhile.
        #: Set it before :meth:`measure_anew`.
        self.least_message = 1
        self._capacity = self._ahead = 0
        #: Whether there were fewer tasks than could be sent: objects that others wait for are in results.
        self.results_are_awaited = False
        #: How many jobs the workers may have in all, because no more find an object; None: there are enough.
        self._bound: int | None = None
        #: Workers that had more than they may have by now, when that was last changed.
        self._over: set[WorkerState] = set()

    def begin(self, limit: int, groups: int = 1) -> None:
        """Begin another run, in which no worker is ready yet."""
        for worker in [*self._workers]:
            self.remove(worker)
        self._limit, self._in_hand, self._keeps_ahead = limit, None, True
        self._groups = groups
        self._bound = None
        self._over.clear()

    def add(self, worker: WorkerState) -> None:
        """Let a worker have jobs from now on; nothing is known of how many it needs ahead."""
        worker.allowance.ahead = PrefetchedJobs(self.least_message)
        worker.allowance.away = False
        self._workers[worker] = None
        self._stale = True

    def remove(self, worker: WorkerState) -> None:
        """Let a worker have no jobs any more."""
        self._workers.pop(worker, None)
        worker.allowance.share = worker.allowance.most = 0
        self._stale = True

    def set_capacity(self, worker: WorkerState, capacity: int) -> None:
        """Take note of how many jobs a worker says that it can run at once."""
        if worker.allowance.capacity != capacity:
            worker.allowance.capacity = capacity
            self._stale = True

    @property
    def workers(self) -> list[WorkerState]:
        """The workers that may get jobs, in the order in which they came."""
        return [*self._workers]

    @property
    def limit(self) -> int:
        """How many jobs at once the workers run among them."""
        return self._limit

    @limit.setter
    def limit(self, limit: int) -> None:
        if limit != self._limit:
            self._limit = limit
            self._stale = True

    @property
    def in_hand(self) -> int | None:
        """How many jobs the workers may have in all, with those ahead; None: what each needs."""
        return self._in_hand

    @in_hand.setter
    def in_hand(self, in_hand: int | None) -> None:
        if in_hand != self._in_hand:
            self._in_hand = in_hand
            self._stale = True

    @property
    def keeps_ahead(self) -> bool:
        """Whether workers get jobs beyond those that they can begin at once."""
        return self._keeps_ahead

    @keeps_ahead.setter
    def keeps_ahead(self, keeps_ahead: bool) -> None:
        if keeps_ahead != self._keeps_ahead:
            self._keeps_ahead = keeps_ahead
            self._stale = True

    def await_results(self, in_flight: int) -> None:
        """Take note that there are no more tasks than the ``in_flight`` ones: they have all free objects.

        What workers hold ahead is bounded by that from now on. The needs of those that need little are met,
        and those far away share the rest: else they would hold all objects, which wait there, and the users
        of the others would have none.
        """
        self.results_are_awaited = True
        if len(self._workers) < 2 or self._in_hand is not None:
            return
        # By chance there may be fewer at one moment than at others.
        before = self._bound
        self._bound = max(
            in_flight, self._limit, 0 if before is None else math.ceil(_FALLING_FACTOR * before)
        )
        self._stale |= self._bound != before

    def results_came(self) -> None:
        """Take note of the time: where operations wait for objects no more, workers may hold more of them.

        Call it several times a second.
        """
        bound = self._bound
        if bound is not None and not self.results_are_awaited:
            self._bound = math.ceil(_RISING_FACTOR * bound)
            if self._bound > sum(self._needs()) + self._limit:
                self._bound = None
            self._stale = True
        self.results_are_awaited = False

    def _needs(self) -> list[int]:
        return [worker.allowance.ahead.high if worker.allowance.share else 0 for worker in self._workers]

    @property
    def gathering(self) -> float:
        """For how many seconds workers are to gather results that are not urgent."""
        return self._scale.gathering

    @property
    def ping_seconds(self) -> float:
        """How many seconds apart the pings of a worker are while its results acknowledge jobs."""
        return self._scale.ping_seconds

    def low(self, worker: WorkerState) -> int:
        """With how many jobs left that wait a worker is to tell at once what has ended.

        Where it cannot have as many ahead as it needs, because no more jobs find an object, it is half of
        those that it has: else each result would be a message, and the next job for its object another one.
        """
        low = worker.allowance.ahead.low
        if self.results_are_awaited:
            return min(low, max(0, worker.held.outstanding - worker.allowance.share) // 2)
        return low

    @property
    def capacity(self) -> int:
        """How many jobs the workers that are ready can run at once."""
        self.share_out()
        return self._capacity

    @property
    def ahead(self) -> int:
        """How many jobs the workers that are ready may have beyond those that they run."""
        self.share_out()
        return self._ahead

    @property
    def beyond(self) -> int:
        """How many jobs workers have beyond those that they may have by now: once they were to have more.

        Others are not to wait until those have ended.
        """
        over = self._over
        if over:
            self._over = over = {each for each in over if each.held.outstanding > each.allowance.most}
        return sum(each.held.outstanding - each.allowance.most for each in over)

    def find_round_trip(self) -> float:
        """Return the seconds that a message to the worker furthest away and its answer take, at least."""
        times = [worker.presence.round_trip for worker in self._workers]
        return max([seconds for seconds in times if seconds < math.inf], default=0.0)

    def measure_anew(self) -> None:
        """Forget how many jobs each worker is to have ahead: those that come now may take another time."""
        for worker in self._workers:
            worker.allowance.ahead = PrefetchedJobs(self.least_message)
        self._stale = True

    def next_worker(self) -> WorkerState | None:
        """Return the worker whose turn it is of those that are to be sent more; None if there is none.

        It is to be sent :meth:`room` jobs.
        """
        if self._stale:
            self.share_out()
        short, turn = self._short, self._turn
        while short:
            worker = short[0]
            allowance, outstanding = worker.allowance, worker.held.outstanding
            if outstanding < allowance.share and not allowance.away:
                short.rotate(-1)
                return worker
            short.popleft()
            allowance.in_turn = outstanding >= allowance.share
            if allowance.in_turn:
                turn.append(worker)
        while turn:
            worker = turn[0]
            allowance = worker.allowance
            if worker.held.outstanding < allowance.most and not allowance.away:
                turn.rotate(-1)
                return worker
            allowance.in_turn = False
            turn.popleft()
        return None

    @staticmethod
    def room(worker: WorkerState, *, whole: bool = False) -> int:
        """How many jobs to send to a worker now: first all get their share, and then what they hold ahead.

        ``whole``: there are enough for all, so that it gets both in one message.
        """
        allowance, outstanding = worker.allowance, worker.held.outstanding
        share_only = outstanding < allowance.share and not whole
        return (allowance.share if share_only else allowance.most) - outstanding

    def note_room(self, worker: WorkerState) -> None:
        """Put a worker in line for jobs if it has few; call it when some of its jobs have ended."""
        allowance = worker.allowance
        if allowance.in_turn:
            return
        outstanding, share = worker.held.outstanding, allowance.share
        if outstanding < share:
            allowance.in_turn = True
            self._short.append(worker)
        elif outstanding < allowance.most and (
            self._in_hand is not None or outstanding <= share + allowance.ahead.low
        ):
            allowance.in_turn = True
            self._turn.append(worker)

    def note_sent(self, worker: WorkerState) -> None:
        """Take a worker out of the line if it has all that it may; call it when it was sent jobs.

        If it stayed there, it would get a message for each of its results, however many jobs it has.
        """
        allowance = worker.allowance
        if allowance.in_turn and worker.held.outstanding >= allowance.most:
            for line in (self._turn, self._short):
                if line and line[-1] is worker:  # where it went when it was its turn
                    line.pop()
                    allowance.in_turn = False
                    return

    def observe(self, worker: WorkerState, ended: int, seconds: float, held: float) -> None:
        """Take note of a turn of a batch, as :meth:`~ssbench.fleet.prefetch.PrefetchedJobs.observe` does."""
        allowance = worker.allowance
        if allowance.ahead.observe(ended, seconds, held, self._scale) and not self._stale:
            before = allowance.most
            self._set_most(worker)
            self._ahead += allowance.most - before

    def tick(self) -> None:
        """Try workers again that were not there; call it several times a second."""
        for worker in self._workers:
            allowance = worker.allowance
            allowance.away = False
            if not (allowance.in_turn or self._stale):
                self.note_room(worker)

    def share_out(self) -> None:
        """Count the shares anew, if something has changed."""
        if not self._stale:
            return
        self._stale = False
        self._scale = scale_of_fleet(len(self._workers), self._groups)
        capacities = [worker.allowance.capacity for worker in self._workers]
        self._capacity = sum(capacities)
        for line in (self._short, self._turn):
            for worker in line:
                worker.allowance.in_turn = False
            line.clear()
        self._ahead = 0
        for worker, share in zip(self._workers, share_users(self._limit, capacities), strict=True):
            worker.allowance.share = share
            worker.allowance.ahead.serve(share, worker.presence.round_trip, self._scale)
            worker.allowance.bound = math.inf
        if self._bound is not None:
            left = max(0, self._bound - sum(worker.allowance.share for worker in self._workers))
            for worker, bound in zip(self._workers, share_users(left, self._needs()), strict=True):
                worker.allowance.bound = bound
        for worker in self._workers:
            share = worker.allowance.share
            self._set_most(worker)
            self._ahead += worker.allowance.most - share
            self.note_room(worker)

    def _set_most(self, worker: WorkerState) -> None:
        allowance = worker.allowance
        share = allowance.share
        ahead = int(min(allowance.ahead.high, allowance.bound)) if self._keeps_ahead and share else 0
        if ahead and self._in_hand is not None:
            ahead = max(
                0, min(-(-self._in_hand * share // max(self._limit, 1)) - share, self._scale.most_ahead)
            )
        allowance.most = share + ahead
        if worker.held.outstanding > allowance.most:
            self._over.add(worker)
