"""A clock for upper bounds of how long things take: it leaves out when this process was not run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: Seconds between two ticks, and the most that counts of the time between them.
_TICK, _MOST = 0.05, 0.1


@contextmanager
def awake() -> Iterator[Callable[[], float]]:
    """Yield what returns for how many seconds this process has run since; a pause counts as a tick or two."""
    passed = 0.0
    ended = threading.Event()

    def count() -> None:
        nonlocal passed
        last = time.monotonic()
        while not ended.wait(_TICK):
            now = time.monotonic()
            passed, last = passed + min(now - last, _MOST), now

    counting = threading.Thread(target=count, name="awake", daemon=True)
    counting.start()
    try:
        yield lambda: passed
    finally:
        ended.set()
        counting.join()
