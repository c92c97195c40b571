"""The master's loop: carries a phase of a run through over a fleet.

One thread. A *phase* (initial uploads, the benchmark, clean-up) says what is to be done next and is told
how each task ended; a *pace* says how many may be sent now. The loop sends again what has to be, renews
tokens, and ends a phase that is over, interrupted or hopeless.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Sequence

import msgspec

from ssbench.errors import ClusterError, WorkerError
from ssbench.fleet.fleet import Arrival, Fleet
from ssbench.fleet.history import History, tried
from ssbench.fleet.pace import Pace
from ssbench.fleet.phase import Phase, give_back
from ssbench.fleet.standstill import Standstill
from ssbench.fleet.wire import LOST_AFTER, Result
from ssbench.fleet.worker_state import Task
from ssbench.names import side_of
from ssbench.results import LOST, UNFINISHED
from ssbench.run import garbage, texts
from ssbench.run.news import News
from ssbench.run.own_part import OwnPart
from ssbench.run.tokens import UNAUTHORIZED, TokenRenewal, WaitingForToken
from ssbench.screen import terminal

_log = logging.getLogger(__name__)

#: Seconds between two ticks: who is lost, is a token there, is a phase over.
TICK = 0.1

#: Seconds to wait for results when a phase has no task to give, although there is room.
_NO_TASKS = 0.001
#: The same when all users are busy.
_NO_TASKS_AHEAD = 0.01

#: With no worker left for this long the run ends (seconds, on top of those that make a worker lost).
_NOBODY_LEFT = 4.0

#: Seconds between two messages on what the master waits for.
SAY_SECONDS = 5.0

#: A failure of authentication is logged at the first attempt, and then at this interval (seconds).
_SAY_RENEWAL_SECONDS = 10.0

#: What failing to authenticate again counts as among the failures of a phase.
AUTHENTICATION = "authentication failed"


class Loop:
    """Carries phases through.

    ``pace`` says how many jobs may be sent, ``news`` tells the user what happens, ``renewals`` get new
    tokens: one, or one for each side where the sides are two accounts. A phase in which nothing succeeds
    for ``give_up_after`` seconds is abandoned; 0: none is. ``clock`` is the fleet's.
    """

    def __init__(
        self,
        fleet: Fleet,
        pace: Pace,
        news: News,
        renewals: Sequence[TokenRenewal],
        give_up_after: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.fleet = fleet
        self.pace = pace
        self.news = news
        self.give_up_after = give_up_after
        #: Set by a signal: stop sending. Phases heed it; waiting for workers ends.
        self.interrupted = threading.Event()
        #: Called with each tick's time; may raise, which ends the run. Local workers are checked there.
        self.on_tick: Callable[[float], None] = lambda _now: None
        self.clock = clock
        self._renewals = renewals
        self._unauthorized = WaitingForToken()
        self._renewal_said_at = -math.inf
        self._standstill = Standstill(0.0, 0.0)
        self._sent = 0
        #: What this loop itself took of the time.
        self.own = OwnPart()
        self._awake_by = math.inf
        self._next_tick = -math.inf
        self._said_at = -math.inf
        self._somebody_at = clock()
        self._running = self._at_once = False
        #: Whether the phase sends no new tasks.
        self._draining = False
        #: Whether the backlog was sent from after that.
        self._resent = False

    # -- the loop -----------------------------------------------------------------------------

    def end_at_once(self) -> bool:
        """Let :meth:`run`, if it is under way, raise KeyboardInterrupt within a tenth of a second.

        Returns whether it is under way. If a signal handler raised it, that could happen after a job was
        settled and before its phase was told.
        """
        self._at_once = self._running
        return self._running

    @garbage.seldom_searched()
    def run(self, phase: Phase, give_up_after: float | None = None) -> Standstill:
        """Carry a phase through; return how long nothing succeeded in it.

        ``give_up_after`` replaces that of the constructor. Raises WorkerError when no worker is left and
        ClusterError when the phase is abandoned (WorkerError if that is because workers are lost again
        and again). However it ends, every task that was sent has been reported to the phase.
        """
        fleet, ledger = self.fleet, self.fleet.ledger
        began = self.clock()
        self._begin(began, self.give_up_after if give_up_after is None else give_up_after)
        drain_began: float | None = None
        self._running = True
        try:
            while True:
                if self._at_once:
                    raise KeyboardInterrupt
                now = self.clock()
                self.own.turn(self._awake_by, now)
                if now >= self._next_tick:
                    self.tick(now)
                    phase.tick(now)
                    self._check(now, phase)
                if ledger.lost:
                    self._settle_lost(phase, now)
                if phase.exhausted(now):
                    if drain_began is None:
                        drain_began = self._said_at = now
                        self._draining = True
                        self._recall(phase, now)
                    if ledger.backlog and phase.cut_short(now):
                        self._take_back(phase, lambda history: not tried(history))
                    if self._drained(phase, now - drain_began):
                        return self._standstill
                    timeout = self._send(None, now)
                    if self._resent:
                        phase.sent_again(now)
                else:
                    timeout = self._send(phase, now)
                phase.catch_up()
                self._awake_by = now + timeout
                for arrival in fleet.receive(timeout):
                    self._take(arrival, phase)
        finally:
            self._abandon(phase)
            self._running = False

    def _begin(self, now: float, give_up_after: float) -> None:
        self._standstill = Standstill(give_up_after, now)
        self._awake_by = math.inf
        self.own.begin(now, terminal.seconds_unread())
        self._sent = 0
        self._draining = False
        self._said_at = now
        self.fleet.allocation.limit = self.pace.users(now)
        self.fleet.allocation.keeps_ahead = True
        self.fleet.allocation.measure_anew()
        if self.fleet.roster.living():
            self._somebody_at = now

    def _drained(self, phase: Phase, seconds: float) -> bool:
        """Whether a phase that sends no more is over after this many seconds."""
        fleet = self.fleet
        if not fleet.ledger.in_flight and not fleet.ledger.backlog and not self._unauthorized:
            return True
        drain_timeout = phase.drain_timeout
        return drain_timeout is not None and seconds > drain_timeout

    def _recall(self, phase: Phase, now: float) -> None:
        """Ask for what has not begun, so that it is shared out again, or given back to the phase.

        What is only not due yet stays where it is, unless the phase is cut short.
        """
        if phase.cut_short(now) or self.pace.in_hand(now) is None:
            self.fleet.recall()

    def _take_back(self, phase: Phase, which: Callable[[History | None], bool]) -> None:
        """Give back to a phase what has not begun and has such a history; the rest is sent again."""
        backlog = self.fleet.ledger.backlog
        not_begun = [each for each in backlog if which(each[1])]
        if not_begun:
            rest = [each for each in backlog if not which(each[1])]
            backlog.clear()
            backlog.extend(rest)
            give_back(phase, not_begun)

    def _abandon(self, phase: Phase) -> None:
        """Report to the phase what has not ended."""
        fleet = self.fleet
        for task, worker in fleet.ledger.take_lost():
            phase.lost([task], abandoned=LOST, worker=worker)
        unauthorized = [task for task, _ in self._unauthorized.take()]
        if unauthorized:
            phase.lost(unauthorized, abandoned=UNAUTHORIZED)
        begun, not_begun = fleet.dispatcher.abandon()
        give_back(phase, not_begun)
        if begun:
            phase.lost(begun, abandoned=UNFINISHED if fleet.roster.living() else LOST)
        if begun or not_begun:
            # Workers drop what they still have of it, and have their slots free for the next phase.
            self.fleet.forget_jobs()
        self.news.tell(self.fleet.take_events(), self.clock(), all_of_it=True)

    def _send(self, phase: Phase | None, now: float) -> float:
        """Send what there is room for: the backlog first, then new tasks of the phase (None: no more).

        Returns how many seconds to wait for results at most.
        """
        fleet, pace = self.fleet, self.pace
        ledger, allocation = fleet.ledger, fleet.allocation
        self._resent = False
        if self._renews:
            return TICK
        fleet.let_hold(pace.in_hand(now))
        if ledger.backlog:
            if allocation.in_hand is not None and phase is not None:
                self._take_back(phase, lambda history: history is None)
            self._send_backlog()
        if phase is None:
            return TICK
        in_flight = len(ledger.in_flight) - allocation.ahead - allocation.beyond
        room = pace.room(now, self._sent, in_flight, allocation.capacity)
        if room > 0:
            timeout = self._send_new(phase, room, now)
            if timeout is not None:
                return timeout
        wait = pace.wait(now, self._sent)
        return wait if wait < TICK else TICK

    def _send_backlog(self) -> None:
        ledger, allocation = self.fleet.ledger, self.fleet.allocation
        while ledger.backlog and (worker := allocation.next_worker()) is not None:
            tasks, histories = self._from_backlog(min(self.pace.batch_size, allocation.room(worker)))
            self._resent |= self.fleet.send(worker, tasks, self.clock(), histories)

    def _send_new(self, phase: Phase, room: int, now: float) -> float | None:
        """Send ``room`` new tasks; returns how many seconds to wait for results if it cannot."""
        fleet, allocation, pace = self.fleet, self.fleet.allocation, self.pace
        batch_size = pace.batch_size
        if allocation.in_hand is not None:
            # What is due together goes to all workers.
            batch_size = min(batch_size, -(-room // max(1, len(fleet.roster.living()))))
        while room > 0:
            worker = allocation.next_worker()
            if worker is None:
                return TICK
            tasks = phase.next_tasks(min(batch_size, allocation.room(worker), room))
            if not tasks:
                return _NO_TASKS if worker.held.outstanding < worker.allowance.share else _NO_TASKS_AHEAD
            dues = pace.dues(self._sent, len(tasks))
            self._sent += len(tasks)
            # Not the time of the turn: sending to many workers takes a while.
            if not fleet.send(worker, tasks, self.clock(), (), dues):
                return 0.0
            room -= len(tasks)
        return None

    def _from_backlog(self, most: int) -> tuple[list[Task], list[History | None]]:
        backlog = self.fleet.ledger.backlog
        taken = [backlog.popleft() for _ in range(min(most, len(backlog)))]
        histories = [history for _, history in taken]
        return [task for task, _ in taken], histories if any(histories) else []

    def _take(self, arrival: Arrival, phase: Phase) -> None:
        ended = arrival.ended
        failed = 0
        if arrival.special:
            ended, failed = self._take_special(arrival)
        if len(ended) > failed:
            self._standstill.succeeded(arrival.at)
        if ended:
            phase.done(ended, arrival.worker)

    def _take_special(self, arrival: Arrival) -> tuple[list[tuple[Task, Result]], int]:
        """Complete failures and results of jobs sent again; return what ended and how many of them failed."""
        now = arrival.at
        ended: list[tuple[Task, Result] | None] = list(arrival.ended)
        urls = self.fleet.parameters.storage_urls
        failed = 0
        for place, sent_at, history in arrival.special:
            task, result = arrival.ended[place]
            if history is not None:
                result = history.add_to(result)
            if result.cause is not None:
                if len(urls) > 1:
                    detail = texts.at_storage_url(result, urls)
                    result = msgspec.structs.replace(result, detail=detail)
                if result.unauthorized and self._send_again_with_token(task, result, history, arrival):
                    ended[place] = None
                    self._standstill.failed(UNAUTHORIZED, result.detail, 0.0, now)
                    continue
                failed += 1
                self._standstill.failed(result.cause or "", result.detail, now - sent_at, now)
            ended[place] = (task, result)
        return [each for each in ended if each is not None], failed

    def _send_again_with_token(
        self, task: Task, result: Result, history: History | None, arrival: Arrival
    ) -> bool:
        renewals = self._renewals
        renewal = renewals[side_of(task[3]) if len(renewals) > 1 else 0]
        ended = min(result.completed + arrival.worker.clock.offset.seconds, arrival.at)
        if not self._unauthorized.add(task, result, history, renewal, ended):
            return False
        # A job that began with an earlier token is sent again with the one that is there by now.
        if arrival.generation >= self.fleet.parameters.generation and not renewal.under_way:
            _log.info("Swift no longer takes the token; authenticating again")
            renewal.start()
            # What has not begun would only be refused too.
            self.fleet.recall()
        return True

    # -- time passes --------------------------------------------------------------------------

    def tick(self, now: float) -> None:
        """Find who is lost, send pings, look for a new token, log the news; call this every :data:`TICK`."""
        self._next_tick = now + TICK
        self.fleet.tick(now)
        self.on_tick(now)
        self._look_after_tokens(now)
        self.news.tell(self.fleet.take_events(), now)

    @property
    def _renews(self) -> bool:
        """Whether a token was refused and there is no other yet."""
        return any(renewal.under_way for renewal in self._renewals)

    def _look_after_tokens(self, now: float) -> None:
        for renewal in self._renewals:
            self._look_after(renewal, now)
        if not self._renews:
            self.fleet.allocation.keeps_ahead = not self._draining
            for task, history in self._unauthorized.take():
                self.fleet.ledger.send_again(task, history)

    def _look_after(self, renewal: TokenRenewal, now: float) -> None:
        before = renewal.failures
        tokens = renewal.poll(now)
        if tokens is not None:
            self.fleet.change(**tokens)
            if before:
                self.news.warn(f"Authenticating again succeeded after {before} failures")
        elif renewal.failures > before:
            self._standstill.failed(AUTHENTICATION, renewal.error, 0.0, now)
            self._say_renewal_failed(renewal, now, first=not before)

    def _say_renewal_failed(self, renewal: TokenRenewal, now: float, *, first: bool) -> None:
        text = texts.authentication_failed(renewal.failures, renewal.error)
        if first:
            self.news.warn(text)
        elif now - self._renewal_said_at >= _SAY_RENEWAL_SECONDS:
            _log.warning("%s", text)
        else:
            return
        self._renewal_said_at = now

    def _check(self, now: float, phase: Phase) -> None:
        """Raise what ends the phase early; say what it waits for."""
        fleet, standstill = self.fleet, self._standstill
        fleet.allocation.limit = self.pace.users(now)
        fleet.tell_shares()
        if self._draining:
            self._recall(phase, now)
        if fleet.roster.living():
            self._somebody_at = now
        elif now - self._somebody_at > _NOBODY_LEFT:
            raise WorkerError("all workers are gone")
        if standstill.hopeless(now, fleet.ledger.oldest_begun):
            why = texts.abandoned(standstill, now)
            raise WorkerError(why) if standstill.main_cause == LOST else ClusterError(why)
        stands_still = self._draining or now - standstill.succeeded_at >= SAY_SECONDS
        if stands_still and now - self._said_at >= SAY_SECONDS:
            self._said_at = now
            holders = [worker for worker in fleet.roster.living() if worker.held.outstanding]
            text = texts.waiting_for_jobs(
                phase.what,
                len(fleet.ledger.in_flight),
                holders,
                len(self._unauthorized),
                standstill,
                now,
            )
            _log.info("%s", text)

    def _settle_lost(self, phase: Phase, now: float) -> None:
        for task, worker in self.fleet.ledger.take_lost():
            self._standstill.failed(LOST, texts.holder(worker), LOST_AFTER, now)
            for again in phase.lost([task], abandoned=None, worker=worker):
                self.fleet.ledger.send_again(again, History(1, now, {LOST: 1}))

    def note_strange_results(self) -> None:
        """Add to the warnings, for the report, what was ignored or counted as an error, and whose it was."""
        fleet = self.fleet
        self.news.warnings.extend(
            texts.strange_results(fleet.roster.workers.values(), fleet.invalid_messages)
        )
