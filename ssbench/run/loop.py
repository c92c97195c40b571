"""The master's loop: carries a phase of a run through over a fleet.

One thread. A *phase* (initial uploads, the benchmark, clean-up) says what is to be done next and learns
how each task ended; a *pace* says how many may be sent now. A lane (:mod:`ssbench.run.lane`) brings both
together, for one group of users; there are several at once where groups have paces of their own. The loop
receives for all of them, renews tokens, and ends what is over, interrupted or hopeless.
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

from ssbench.base import interruption
from ssbench.base.errors import WorkerError
from ssbench.fleet.crew import GroupWorkers
from ssbench.fleet.fleet import Fleet
from ssbench.fleet.pace import Pace
from ssbench.fleet.phase import Phase
from ssbench.fleet.standstill import StallDetector
from ssbench.run import terminal, texts
from ssbench.run.lane import TICK_SECONDS, PhaseRunner
from ssbench.run.load_course import MasterLoad
from ssbench.run.news import WorkerNews
from ssbench.run.tokens import TokenRenewal

_log = logging.getLogger(__name__)

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
    """Carries phases through.

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
        #: The phases under way, by the group of their crew.
        self._lanes: Mapping[int, PhaseRunner] = {}
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
        crew: GroupWorkers | None = None,
    ) -> StallDetector:
        """Carry one phase through; return how long nothing succeeded in it. See :meth:`run_together`.

        None: with the crew of the first group, at the pace of the constructor.
        """
        return self.run_together([(phase, pace or self.pace, crew or self.fleet)], give_up_after)[0]

    @rare_garbage_collection()
    def run_together(
        self, phases: Sequence[tuple[Phase, Pace, GroupWorkers]], give_up_after: float | None = None
    ) -> list[StallDetector]:
        """Carry phases through at the same time, each with its pace and its crew.

        Returns how long nothing succeeded in each. ``give_up_after`` replaces that of the constructor. Raises
        WorkerError when no worker is left and ClusterError when a phase is abandoned (WorkerError if that is
        because workers are lost again and again). However it ends, every task that was sent has been reported
        to its phase.
        """
        patience = self.give_up_after if give_up_after is None else give_up_after
        now = self.clock()
        self._awake_by = math.inf
        self.own.begin(now, terminal.seconds_unread())
        if self.fleet.roster.living():
            self._worker_at = now
        lanes = self._lanes = {
            crew.account.group: PhaseRunner(
                crew, pace, phase, self._renewals[crew.account.group], patience, self.clock
            )
            for phase, pace, crew in phases
        }
        self._running = True
        try:
            self._carry_through(lanes)
        finally:
            self._lanes = {}
            abandoned = [lane.abandon() for lane in lanes.values()]
            if any(abandoned):
                # Workers drop what they still have of it, and have their slots free for the next phase.
                self.fleet.forget_jobs()
            self.news.tell(self.fleet.take_events(), self.clock(), all_of_it=True)
            self._running = False
        return [lane.standstill for lane in lanes.values()]

    def _carry_through(self, lanes: Mapping[int, PhaseRunner]) -> None:
        under_way = [*lanes.values()]
        while True:
            if self._at_once:
                raise KeyboardInterrupt
            interruption.raise_if_interrupted()  # of before this phase
            now = self.clock()
            self.own.turn(self._awake_by, now)
            if now >= self._next_tick:
                self.tick(now)
                for lane in under_way:
                    lane.tick(now)
                self._look_for_workers(now)
            timeout = TICK_SECONDS
            for lane in under_way:
                wait = lane.turn(now)
                timeout = wait if wait < timeout else timeout
            if any(lane.over for lane in under_way):
                under_way = [lane for lane in under_way if not lane.over]
                if not under_way:
                    return
            self._awake_by = now + timeout
            for arrival in self.fleet.receive(timeout):
                if (arrived := lanes.get(arrival.group)) is not None:
                    arrived.take(arrival)

    # -- time passes --------------------------------------------------------------------------

    def tick(self, now: float) -> None:
        """Find who is lost, send pings, look for a new token, log the news; call this every :data:`TICK_SECONDS`."""
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
            for crew in self.fleet.crews:
                own = self._renewals[crew.account.group]
                if renewal in own:
                    crew.renew(own.index(renewal) if len(own) > 1 else None, token)
            if before:
                self.news.warn(f"Authenticating again succeeded after {before} failures")
        elif renewal.failures > before:
            for group, lane in self._lanes.items():
                if renewal in self._renewals[group]:
                    lane.standstill.failed(AUTHENTICATION_FAILED, renewal.error, 0.0, now)
            self._say_renewal_failed(renewal, now, first=not before)

    def _say_renewal_failed(self, renewal: TokenRenewal, now: float, *, first: bool) -> None:
        text = texts.describe_failed_renewal(renewal.failures, renewal.error)
        if first:
            self.news.warn(text)
        elif now - self._renewal_said_at >= _SAY_RENEWAL_SECONDS:
            _log.warning("%s", text)
        else:
            return
        self._renewal_said_at = now

    def _look_for_workers(self, now: float) -> None:
        """Raise WorkerError where there is none for some time."""
        if self.fleet.roster.living():
            self._worker_at = now
        elif now - self._worker_at > _NO_WORKER_LEFT_SECONDS:
            raise WorkerError("all workers are gone")

    def note_strange_results(self) -> None:
        """Add to the warnings, for the report, what was ignored or counted as an error, and whose it was."""
        fleet = self.fleet
        self.news.add(
            texts.describe_strange_results(fleet.seats(), fleet.invalid_messages, self.own.gaps_dropped)
        )
