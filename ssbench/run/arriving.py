"""Waiting for the workers that a run needs, before it begins."""

from __future__ import annotations

import logging
from collections.abc import Callable

from ssbench.errors import WorkerError
from ssbench.run import texts
from ssbench.run.lane import SAY_SECONDS, TICK
from ssbench.run.loop import Loop

_log = logging.getLogger(__name__)


def wait_for_workers(loop: Loop, expected: Callable[[], int], timeout: float, advice: str) -> None:
    """Return once ``expected()`` workers are ready, or fewer after ``timeout`` seconds, or when interrupted.

    Says every few seconds what it waits for. Raises WorkerError if there is none in the end.
    """
    roster, news = loop.fleet.roster, loop.news
    now = loop.clock()
    deadline = now + timeout
    said_at = now - SAY_SECONDS + 1.0
    while True:
        now = loop.clock()
        loop.tick(now)
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
                _why(loop, now) or advice,
            )
        loop.fleet.receive(min(TICK, deadline - now))
    why = _why(loop, now)
    if not there:
        raise WorkerError(f"no worker was ready within {timeout:g} s. {why or advice}")
    news.warn(
        f"Only {there} of {expected()} workers were ready within {timeout:g} s; starting with those."
        f" {why}".rstrip()
    )


def _why(loop: Loop, now: float) -> str:
    """Say why workers that tried to come are not used; empty where none did."""
    reasons = (
        texts.not_ready(loop.fleet.roster.not_ready(now), loop.news.work_port),
        texts.keys_refused(loop.fleet.refused_keys),
    )
    return "; ".join(filter(None, reasons))
