"""Python's search for reference cycles, while thousands of objects come and go that are in no cycle."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

#: How many more objects than at the last search begin the next one. The jobs in flight are thousands of
#: tuples, and their number goes up and down: with Python's default of 700 the search takes a fifth of the
#: master's loop.
_OBJECTS = 50_000


@contextmanager
def seldom_searched() -> Iterator[None]:
    """Let Python search for garbage less often; as a context manager, or as a decorator."""
    thresholds = gc.get_threshold()
    gc.set_threshold(_OBJECTS)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
