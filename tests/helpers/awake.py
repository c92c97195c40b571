"""A clock of gevent for upper bounds: it leaves out the time in which the process was not run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import gevent

#: Seconds between two ticks, and the most that counts of the time between them.
_TICK, _MOST = 0.05, 0.1


@contextmanager
def awake() -> Iterator[Callable[[], float]]:
    """Yield what returns for how many seconds this process has run since; a pause counts as a tick or two."""
    passed, last = 0.0, time.monotonic()

    def tick() -> None:
        nonlocal passed, last
        now = time.monotonic()
        passed, last = passed + min(now - last, _MOST), now

    timer = gevent.get_hub().loop.timer(_TICK, _TICK, ref=False)
    timer.start(tick)
    try:
        yield lambda: passed
    finally:
        timer.close()
