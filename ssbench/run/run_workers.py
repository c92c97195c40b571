"""The workers of one run: waiting for them, how many there are and how busy; local ones that end."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from ssbench.base.errors import WorkerError
from ssbench.fleet.fleet import Fleet
from ssbench.fleet.worker_state import WorkerState
from ssbench.run import texts
from ssbench.run.lane import SAY_SECONDS, TICK_SECONDS
from ssbench.run.live_frame import WorkerView
from ssbench.run.local_workers import LocalWorkers, note_ended_workers
from ssbench.run.loop import MasterLoop


class RunWorkers:
    """Counts the workers of a run.

    ``former`` are those of the run before, ``local`` those that this program started (None: it started
    none), ``asked`` is how many the user wants.
    """

    def __init__(
        self, fleet: Fleet, former: Sequence[WorkerState], local: LocalWorkers | None, asked: int
    ) -> None:
        self._fleet = fleet
        self._former = former
        self._local = local
        self._asked = asked
        #: How many local workers have ended.
        self._ended = 0

    def counts(self) -> tuple[int, int]:
        """Return how many workers can get jobs, and how many are expected: asked for, or in use before."""
        roster = self._fleet.roster
        used = sum(worker.presence.used for worker in roster.workers.values())
        return len(roster.living()), max(self._asked, used)

    def views(self) -> list[WorkerView]:
        """Return how busy each worker is that is used, or was."""
        return [
            WorkerView(
                worker.worker_id,
                worker.host,
                worker.presence.ready and not worker.presence.ended,
                worker.load.cpu_share,
                worker.load.lag_percentile(99),
                self._fleet.outstanding(worker),
            )
            for worker in self._fleet.roster.workers.values()
            if worker.presence.used
        ]

    def expected(self) -> int:
        """Return how many to wait for: those asked for, and those that the run before had and that live."""
        return max(self._asked - self._ended, sum(worker.presence.alive for worker in self._former))

    def look_after_local(self, _now: float) -> None:
        """Note which local workers have ended; raises WorkerError where these were all workers."""
        if self._local is None:
            return
        roster = self._fleet.roster
        self._ended += note_ended_workers(self._local, roster)
        if not self._local.running and not roster.living():
            raise WorkerError("all local workers have ended")


_log = logging.getLogger(__name__)

#: The longest time between two ticks while workers join (seconds), however long a tick takes.
_MAX_TICK_SECONDS = 0.5


def wait_for_workers(loop: MasterLoop, expected: Callable[[], int], timeout: float, advice: str) -> None:
    """Return once ``expected()`` workers are ready, or fewer after ``timeout`` seconds, or when interrupted.

    Says every few seconds what it waits for. Raises WorkerError if there is none in the end.
    """
    roster, news = loop.fleet.roster, loop.news
    now = loop.clock()
    deadline = now + timeout
    said_at = now - SAY_SECONDS + 1.0
    tick_at = now
    while True:
        now = loop.clock()
        if now >= tick_at:
            loop.tick(now)
            # One that is heard of is sent a ping at once, but thousands that come together are not all looked
            # at with each message: ticks take about an eleventh of the time. One in which the master was
            # stopped says nothing about the next.
            tick_at = now + min(10 * (loop.clock() - now), _MAX_TICK_SECONDS)
        there = len(roster.living())
        if there >= max(1, expected()) or loop.interrupted.is_set():
            return
        if now >= deadline:
            break
        if now - said_at >= SAY_SECONDS:
            said_at = now
            _log.info(
                "Waiting for workers: %d of %d there, %.0f s left. %s",
                there,
                expected(),
                deadline - now,
                _why_unused(loop, now) or advice,
            )
        loop.fleet.receive(min(TICK_SECONDS, deadline - now))
    why = _why_unused(loop, now)
    if not there:
        raise WorkerError(f"no worker was ready within {timeout:g} s. {why or advice}")
    news.warn(
        f"Only {there} of {expected()} workers were ready within {timeout:g} s; starting with those."
        f" {why}".rstrip()
    )


def _why_unused(loop: MasterLoop, now: float) -> str:
    """Say why workers that tried to come are not used; empty where none did."""
    reasons = (
        texts.describe_not_ready(loop.fleet.roster.not_ready(now), loop.news.work_port),
        texts.describe_refused_keys(loop.fleet.refused_keys),
    )
    return "; ".join(filter(None, reasons))
