"""The master's loop: carries out the phases of a run over a fleet, in one thread.

A *phase* (initial uploads, the benchmark, clean-up) says what is to be done next and learns how each task
ended; a *pace* says how many jobs may be sent now. A :class:`PhaseRunner` brings both together for one group
of users. When it is its turn it sends as many jobs as there is room for, passes results on to the phase, and
sends again the jobs that have to be. Groups with paces of their own have a runner each.

The :class:`MasterLoop` receives for all runners, renews tokens, and ends phases that are over, interrupted or
hopeless.
"""

from __future__ import annotations

import gc
import logging
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain

import msgspec

from ssbench.base import interruption
from ssbench.base.errors import ClusterError, WorkerError
from ssbench.fleet.fleet import Fleet, GroupWorkers, ReceivedResults
from ssbench.fleet.phase import MAX_BATCH_JOBS, Pace, Phase, StallDetector, give_back_tasks
from ssbench.fleet.wire import LOST_AFTER
from ssbench.fleet.worker_state import History, Task, was_tried
from ssbench.results.block import LOST_CAUSE, UNFINISHED_CAUSE
from ssbench.run import terminal, worker_messages
from ssbench.run.load_samples import MasterLoad
from ssbench.run.tokens import TokenRenewal, WaitingForToken
from ssbench.run.worker_messages import WorkerNews
from ssbench.store.contract import UNAUTHORIZED_CAUSE, JobResult

_log = logging.getLogger(__name__)

#: Seconds between two ticks: who is lost, is a token there, is a phase over.
TICK_SECONDS = 0.1

#: Seconds to wait for results when a phase has no task for idle users: it may have one when asked again.
_NO_TASKS_SECONDS = 0.001

#: Seconds between two messages on what the master waits for.
SAY_SECONDS = 5.0


class PhaseRunner:
    """Carries out a phase with the workers of one group.

    ``pace`` says how many jobs may be sent. ``renewals`` get new tokens: one for each account, or one for all
    of them. While one of several does, jobs of the other accounts are sent, and those of its own fail once an
    attempt has failed. A phase in which nothing succeeds
    for ``give_up_after`` seconds is hopeless; 0: never. ``over``: all of it has ended.
    ``standstill`` is how long nothing succeeded. It has nothing to do before ``next_turn``, by that clock.
    """

    def __init__(
        self,
        workers: GroupWorkers,
        pace: Pace,
        phase: Phase,
        renewals: Sequence[TokenRenewal],
        give_up_after: float,
        clock: Callable[[], float],
    ) -> None:
        now = clock()
        self.over = False
        self.next_turn = now
        self.standstill = StallDetector(give_up_after, now)
        self._workers = workers
        self._pace = pace
        self._phase = phase
        self._renewals = renewals
        self._clock = clock
        self._unauthorized = WaitingForToken()
        self._sent = 0
        self._said_at = self._ticked_at = now
        #: Since when the phase sends no new tasks; None: it does.
        self._drain_began: float | None = None
        #: Whether the backlog was sent from after that.
        self._resent = False
        workers.allocation.limit = pace.users(now)
        pace.reach(workers.allocation.find_round_trip)
        workers.allocation.keeps_ahead = True
        workers.allocation.least_message = pace.batch_size
        workers.allocation.measure_anew()

    def turn(self, now: float) -> None:
        """Send what is to be sent now, and set when it is its turn again if no results come."""
        phase, ledger = self._phase, self._workers.ledger
        if ledger.lost:
            self._settle_lost(now)
        if phase.exhausted(now):
            if self._drain_began is None:
                self._drain_began = self._said_at = now
                self._recall(now)
            if ledger.backlog and phase.cut_short(now):
                self._take_back(lambda history: not was_tried(history))
            if self._drained(now - self._drain_began):
                self.over = True
                return
            timeout = self._send(None, now)
            if self._resent:
                phase.sent_again(now)
        else:
            timeout = self._send(phase, now)
        phase.catch_up()
        self.next_turn = now + timeout

    def tick(self, now: float) -> None:
        """Do what is to be done several times a second; raises what :meth:`MasterLoop.run` does."""
        workers, phase, standstill = self._workers, self._phase, self.standstill
        self.next_turn = now
        if not self._waits_for_token:
            workers.allocation.keeps_ahead = self._drain_began is None
        for renewal in self._unauthorized.renewals():
            if not renewal.under_way or (renewal.failures and len(self._renewals) > 1):
                for task, history in self._unauthorized.take(renewal):
                    workers.ledger.send_again(task, history)
        phase.tick(now)
        workers.allocation.limit = self._pace.users(now)
        self._pace.reach(workers.allocation.find_round_trip)
        workers.allocation.results_came()
        workers.tell_shares()
        if self._drain_began is not None:
            self._recall(now)
        standstill.idled(now - self._ticked_at if self._is_idle(now) else 0.0)
        self._ticked_at = now
        if standstill.hopeless(now, lambda: workers.ledger.oldest_begun):
            why = worker_messages.describe_abandoned_phase(standstill, now)
            raise WorkerError(why) if standstill.main_cause == LOST_CAUSE else ClusterError(why)
        stalled = self._drain_began is not None or now - standstill.succeeded_at >= SAY_SECONDS
        if stalled and now - self._said_at >= SAY_SECONDS:
            self._said_at = now
            _log.info("%s", self._what_it_waits_for(now))

    @property
    def _waits_for_token(self) -> bool:
        """Whether no job can be sent: the token of all of them is being renewed."""
        return len(self._renewals) == 1 and self._renewals[0].under_way

    def _what_it_waits_for(self, now: float) -> str:
        workers = self._workers
        holders = [worker for worker in workers.living() if worker.held.outstanding]
        if self._is_idle(now):
            return worker_messages.describe_idle_phase(self._phase.what, self.standstill, now)
        return worker_messages.describe_waiting(
            self._phase.what,
            len(workers.ledger.in_flight),
            holders,
            len(self._unauthorized),
            self.standstill,
            now,
            len(workers.ledger.backlog),
        )

    def _is_idle(self, now: float) -> bool:
        """Whether nothing is to be done before a moment that is known."""
        ledger, pace = self._workers.ledger, self._pace
        is_open = self._drain_began is None and pace.in_hand(now) is not None
        under_way = ledger.in_flight or ledger.backlog or self._unauthorized
        return bool(is_open and not under_way and math.isfinite(pace.wait(now, self._sent)))

    def abandon(self) -> bool:
        """Report to the phase what has not ended; return whether workers may still have some of it."""
        workers, phase = self._workers, self._phase
        for task, worker in workers.ledger.take_lost():
            phase.lost([task], abandoned=LOST_CAUSE, worker=worker)
        unauthorized = [task for task, _ in self._unauthorized.take()]
        if unauthorized:
            phase.lost(unauthorized, abandoned=UNAUTHORIZED_CAUSE)
        begun, not_begun = workers.account.abandon()
        give_back_tasks(phase, not_begun)
        if begun:
            phase.lost(begun, abandoned=UNFINISHED_CAUSE if workers.living() else LOST_CAUSE)
        return bool(begun or not_begun)

    def _drained(self, seconds: float) -> bool:
        """Whether a phase that sends no more is over after this many seconds."""
        ledger = self._workers.ledger
        if not ledger.in_flight and not ledger.backlog and not self._unauthorized:
            return True
        drain_timeout = self._phase.drain_timeout
        return drain_timeout is not None and seconds > drain_timeout

    def _recall(self, now: float) -> None:
        """Ask for what has not begun, so that it is shared out again, or given back to the phase.

        What is only not due yet stays where it is, unless the phase is cut short.
        """
        if self._phase.cut_short(now) or self._pace.in_hand(now) is None:
            self._workers.recall()

    def _take_back(self, which: Callable[[History | None], bool]) -> None:
        """Give back to a phase what has not begun and has such a history; the rest is sent again."""
        backlog = self._workers.ledger.backlog
        not_begun = [each for each in backlog if which(each[1])]
        if not_begun:
            rest = [each for each in backlog if not which(each[1])]
            backlog.clear()
            backlog.extend(rest)
            # No other worker did those of lost ones.
            self._workers.ledger.passed_on -= sum(
                history is not None and history.in_doubt for _, history in not_begun
            )
            give_back_tasks(self._phase, not_begun)

    def _send(self, phase: Phase | None, now: float) -> float:
        """Send what there is room for: the backlog first, then new tasks of the phase (None: no more).

        Returns how many seconds to wait for results at most.
        """
        workers, pace = self._workers, self._pace
        ledger, allocation = workers.ledger, workers.allocation
        self._resent = False
        if self._waits_for_token:
            return TICK_SECONDS
        workers.let_hold(pace.in_hand(now))
        if ledger.backlog:
            if allocation.in_hand is not None and phase is not None:
                self._take_back(lambda history: history is None)
            self._send_backlog()
        if phase is None:
            return TICK_SECONDS
        # Users whose jobs wait for a token do nothing else meanwhile.
        in_flight = len(ledger.in_flight) + len(self._unauthorized) - allocation.ahead - allocation.beyond
        room = pace.room(now, self._sent, in_flight, allocation.capacity)
        if room > 0:
            timeout = self._send_new(phase, room, now)
            if timeout is not None:
                return timeout
        wait = pace.wait(now, self._sent)
        return wait if wait < TICK_SECONDS else TICK_SECONDS

    def _send_backlog(self) -> None:
        ledger, allocation = self._workers.ledger, self._workers.allocation
        while ledger.backlog and (worker := allocation.next_worker()) is not None:
            tasks, histories = self._from_backlog(min(MAX_BATCH_JOBS, allocation.room(worker)))
            self._resent |= self._workers.send(worker, tasks, self._clock(), histories)

    def _send_new(self, phase: Phase, room: int, now: float) -> float | None:
        """Send ``room`` new tasks; returns how many seconds to wait for results if it cannot."""
        workers, allocation, pace = self._workers, self._workers.allocation, self._pace
        most = MAX_BATCH_JOBS
        # Where operations are due, or users wait for a token, there may not be enough for all.
        closed = allocation.in_hand is None and not self._unauthorized
        if allocation.in_hand is not None:
            # What is due together goes to all workers.
            most = min(most, -(-room // max(1, len(workers.living()))))
        while room > 0:
            worker = allocation.next_worker()
            if worker is None:
                return TICK_SECONDS
            # A message for its users and another for what it holds ahead would cost twice as much.
            whole = closed and not allocation.results_are_awaited and worker.held.completed > 0
            wanted = min(most, allocation.room(worker, whole=whole), room)
            tasks = phase.next_tasks(wanted)
            if len(tasks) < wanted and not phase.exhausted(now):
                allocation.await_results(len(workers.ledger.in_flight) + len(tasks))
            if not tasks:
                # Where users are busy, objects that are in use now are soon in results.
                return _NO_TASKS_SECONDS if worker.held.outstanding < worker.allowance.share else None
            dues = pace.dues(self._sent, len(tasks))
            self._sent += len(tasks)
            # Not the time of the turn: sending to many workers takes a while.
            if not workers.send(worker, tasks, self._clock(), (), dues):
                return 0.0
            room -= len(tasks)
        return None

    def _from_backlog(self, most: int) -> tuple[list[Task], list[History | None]]:
        backlog = self._workers.ledger.backlog
        taken = [backlog.popleft() for _ in range(min(most, len(backlog)))]
        histories = [history for _, history in taken]
        return [task for task, _ in taken], histories if any(histories) else []

    def take(self, arrival: ReceivedResults) -> None:
        """Take results in, which came in one message."""
        self.next_turn = arrival.at
        ended = arrival.ended
        failed = 0
        if arrival.special:
            ended, failed = self._take_special(arrival)
        if len(ended) > failed:
            self.standstill.succeeded(arrival.at)
        if ended:
            self._phase.done(ended, arrival.worker)

    def _take_special(self, arrival: ReceivedResults) -> tuple[list[tuple[Task, JobResult]], int]:
        """Complete failures and results of jobs sent again; return what ended and how many of them failed."""
        now = arrival.at
        ended: list[tuple[Task, JobResult] | None] = list(arrival.ended)
        urls = self._workers.parameters.storage_urls
        failed = 0
        for place, sent_at, history in arrival.special:
            task, result = arrival.ended[place]
            if history is not None:
                result = history.add_to(result)
            if result.cause is not None:
                if len(urls) > 1:
                    detail = worker_messages.add_storage_url(result, urls)
                    result = msgspec.structs.replace(result, detail=detail)
                if result.unauthorized and self._send_again_with_token(task, result, history, arrival):
                    ended[place] = None
                    self.standstill.failed(UNAUTHORIZED_CAUSE, result.detail, 0.0, now)
                    continue
                failed += 1
                self.standstill.failed(result.cause or "", result.detail, now - sent_at, now)
            ended[place] = (task, result)
        return [each for each in ended if each is not None], failed

    def _send_again_with_token(
        self, task: Task, result: JobResult, history: History | None, arrival: ReceivedResults
    ) -> bool:
        several = len(self._renewals) > 1
        account = task[2] % len(self._renewals)  # see names.in_account
        renewal = self._renewals[account]
        ended = min(result.completed + arrival.worker.clock.offset.seconds, arrival.at)
        if several and renewal.failures:
            return False
        if not self._unauthorized.add(task, result, history, renewal, ended):
            return False
        # A job that began with an earlier token is sent again with the one that is there by now.
        if arrival.generation >= self._workers.token_since(account) and not renewal.under_way:
            _log.info(
                "Swift no longer takes the token%s; authenticating again",
                f" of account {account + 1} of {len(self._renewals)}" if several else "",
            )
            renewal.start()
            if not several:
                # What has not begun would only be refused too.
                self._workers.recall()
        return True

    def _settle_lost(self, now: float) -> None:
        for task, worker in self._workers.ledger.take_lost():
            self.standstill.failed(LOST_CAUSE, worker_messages.describe_job_holder(worker), LOST_AFTER, now)
            for again in self._phase.lost([task], abandoned=None, worker=worker):
                self._workers.ledger.send_again(again, History(1, now, {LOST_CAUSE: 1}))


# -- The loop over all runners ---------------------------------------------------------------------


#: With no worker left for this long the run ends (seconds, on top of those that make a worker lost).
_NO_WORKER_LEFT_SECONDS = 4.0

#: A failure of authentication is logged at the first attempt, and then at this interval (seconds).
_SAY_RENEWAL_SECONDS = 10.0

#: What failing to authenticate again counts as among the failures of a phase.
AUTHENTICATION_FAILED = "authentication failed"

#: How many more objects than at the last search begin the next one. The jobs in flight are thousands of
#: tuples, and their number goes up and down: with Python's default of 700 the search takes a fifth of the
#: master's loop.
_COLLECTION_THRESHOLD = 50_000


@contextmanager
def rare_garbage_collection() -> Iterator[None]:
    """Let Python search for garbage less often; as a context manager, or as a decorator."""
    thresholds = gc.get_threshold()
    gc.set_threshold(_COLLECTION_THRESHOLD)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


class MasterLoop:
    """Carries out phases.

    ``pace`` says how many jobs may be sent, ``news`` reports to the user what happens, ``renewals`` get new
    tokens: for each group of users one for each of its accounts, or one for all of them; the same for groups
    of one account. A phase in which nothing succeeds
    for ``give_up_after`` seconds is abandoned; 0: none is. ``clock`` is the fleet's.
    """

    def __init__(
        self,
        fleet: Fleet,
        pace: Pace,
        news: WorkerNews,
        renewals: Sequence[Sequence[TokenRenewal]],
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
        self._renewal_said_at = -math.inf
        #: The phases under way, by the group of their workers.
        self._runners: Mapping[int, PhaseRunner] = {}
        #: What this loop itself took of the time.
        self.own = MasterLoad()
        self._awake_by = math.inf
        self._next_tick = -math.inf
        self._worker_at = clock()
        self._running = self._at_once = False

    # -- the loop -----------------------------------------------------------------------------

    def end_at_once(self) -> bool:
        """Let :meth:`run`, if it is under way, raise KeyboardInterrupt within a tenth of a second.

        Returns whether it is under way. If a signal handler raised it, that could happen after a job was
        settled and before its phase learned of it.
        """
        self._at_once = self._running
        return self._running

    def run(
        self,
        phase: Phase,
        give_up_after: float | None = None,
        *,
        pace: Pace | None = None,
        workers: GroupWorkers | None = None,
    ) -> StallDetector:
        """Carry one phase through; return how long nothing succeeded in it. See :meth:`run_together`.

        None: with the workers of the first group, at the pace of the constructor.
        """
        return self.run_together([(phase, pace or self.pace, workers or self.fleet)], give_up_after)[0]

    @rare_garbage_collection()
    def run_together(
        self, phases: Sequence[tuple[Phase, Pace, GroupWorkers]], give_up_after: float | None = None
    ) -> list[StallDetector]:
        """Carry phases through at the same time, each with its pace and its workers.

        Returns how long nothing succeeded in each. ``give_up_after`` replaces that of the constructor. Raises
        WorkerError when no worker is left and ClusterError when a phase is abandoned (WorkerError if that is
        because workers are lost again and again). However it ends, every task that was sent has been reported
        to its phase.
        """
        patience = self.give_up_after if give_up_after is None else give_up_after
        now = self.clock()
        self._awake_by = math.inf
        self.own.begin(now, terminal.seconds_unread())
        if self.fleet.roster.has_living:
            self._worker_at = now
        runners = self._runners = {
            workers.account.group: PhaseRunner(
                workers, pace, phase, self._renewals[workers.account.group], patience, self.clock
            )
            for phase, pace, workers in phases
        }
        self._running = True
        try:
            self._carry_through(runners)
        finally:
            self._runners = {}
            abandoned = [runner.abandon() for runner in runners.values()]
            if any(abandoned):
                # Workers drop what they still have of it, and have their slots free for the next phase.
                self.fleet.forget_jobs()
            self.news.tell(self.fleet.take_events(), self.clock(), all_of_it=True)
            self._running = False
        return [runner.standstill for runner in runners.values()]

    def _carry_through(self, runners: Mapping[int, PhaseRunner]) -> None:
        under_way = [*runners.values()]
        while True:
            if self._at_once:
                raise KeyboardInterrupt
            interruption.raise_if_interrupted()  # of before this phase
            now = self.clock()
            self.own.turn(self._awake_by, now)
            if now >= self._next_tick:
                self.tick(now)
                for runner in under_way:
                    runner.tick(now)
                self._look_for_workers(now)
            until = now + TICK_SECONDS
            for runner in under_way:
                # Of many groups few have results at a time.
                if runner.next_turn <= now or self.fleet.heard_news:
                    runner.turn(now)
                until = min(until, runner.next_turn)
            if any(runner.over for runner in under_way):
                under_way = [runner for runner in under_way if not runner.over]
                if not under_way:
                    return
            self._awake_by = until
            for arrival in self.fleet.receive(max(0.0, until - now)):
                if (arrived := runners.get(arrival.group)) is not None:
                    arrived.take(arrival)

    # -- time passes --------------------------------------------------------------------------

    def tick(self, now: float) -> None:
        """Find who is lost, send pings, look for a new token, log the news.

        Call this every :data:`TICK_SECONDS`.
        """
        self._next_tick = now + TICK_SECONDS
        self.fleet.tick(now)
        self.on_tick(now)
        self._look_after_tokens(now)
        self.news.tell(self.fleet.take_events(), now)

    def _look_after_tokens(self, now: float) -> None:
        for renewal in dict.fromkeys(chain.from_iterable(self._renewals)):
            self._look_after(renewal, now)

    def _look_after(self, renewal: TokenRenewal, now: float) -> None:
        before = renewal.failures
        token = renewal.poll(now)
        if token is not None:
            for workers in self.fleet.groups:
                own = self._renewals[workers.account.group]
                if renewal in own:
                    workers.renew(own.index(renewal) if len(own) > 1 else None, token)
            if before:
                self.news.warn(f"Authenticating again succeeded after {before} failures")
        elif renewal.failures > before:
            for group, runner in self._runners.items():
                if renewal in self._renewals[group]:
                    runner.standstill.failed(AUTHENTICATION_FAILED, renewal.error, 0.0, now)
            self._say_renewal_failed(renewal, now, first=not before)

    def _say_renewal_failed(self, renewal: TokenRenewal, now: float, *, first: bool) -> None:
        text = worker_messages.describe_failed_renewal(renewal.failures, renewal.error)
        if first:
            self.news.warn(text)
        elif now - self._renewal_said_at >= _SAY_RENEWAL_SECONDS:
            _log.warning("%s", text)
        else:
            return
        self._renewal_said_at = now

    def _look_for_workers(self, now: float) -> None:
        """Raise WorkerError where there is none for some time."""
        if self.fleet.roster.has_living:
            self._worker_at = now
        elif now - self._worker_at > _NO_WORKER_LEFT_SECONDS:
            raise WorkerError("all workers are gone")

    def note_strange_results(self) -> None:
        """Add to the warnings, for the report, what was ignored or counted as an error, and whose it was."""
        fleet = self.fleet
        self.news.add(
            worker_messages.describe_strange_results(
                fleet.states(), fleet.invalid_messages, self.own.gaps_dropped
            )
        )
