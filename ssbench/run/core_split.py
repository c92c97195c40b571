"""Cores of this machine, divided between the Swifts that a run started here and the load.

Where both share cores, servers wait for the load and the load for servers, which is in every latency.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from ssbench.run.trial_swift import SHARED_CORES

#: On a machine with so many cores the servers have half of them to themselves.
_MIN_CORES_TO_DIVIDE = 4

_RANGE_PATTERN = re.compile(r"(\d{1,4})(?:-(\d{1,4}))?\Z")


def choose_cores(available: Collection[int]) -> str:
    """Return the cores of a local Swift where none are asked for: the first half, or all of few."""
    half = sorted(available)[: len(available) // 2]
    return ",".join(map(str, half)) if len(available) >= _MIN_CORES_TO_DIVIDE else SHARED_CORES


def parse_cores(text: str, available: Collection[int]) -> frozenset[int]:
    """Read the cores of a local Swift, as ``0-1,3``; raises ValueError, also where the load has none left."""
    found: set[int] = set()
    for part in text.split(","):
        numbers = _RANGE_PATTERN.match(part)
        if numbers is None:
            raise ValueError(f"expected cores, as 0-1,3, or {SHARED_CORES}, not {part[:200]!r}")
        first = int(numbers[1])
        found.update(range(first, int(numbers[2] or first) + 1))
    if others := sorted(found.difference(available)):
        raise ValueError(f"this process may not use core {others[0]}")
    if not found:
        raise ValueError(f"{text[:200]}: the first core of a range comes first")
    if found.issuperset(available):
        raise ValueError(f"{text}: leaves no core for the load")
    return frozenset(found)


@contextmanager
def keep_cores_apart(servers: Mapping[int, frozenset[int]], load: Iterable[int]) -> Iterator[None]:
    """Keep processes on their cores, and those of the load on all others; these get theirs back at the end.

    A process that has ended, or may not be moved, is left alone.
    """
    usual = os.sched_getaffinity(0)
    left = usual.difference(*servers.values())
    for pid, cores in servers.items():
        _pin_process(pid, cores)
    load = [*load]
    for pid in load:
        _pin_process(pid, left)
    try:
        yield
    finally:
        for pid in load:
            _pin_process(pid, usual)


def _pin_process(pid: int, cores: Collection[int]) -> None:
    """Let all threads of a process run on some cores only."""
    with suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError, ValueError):
                os.sched_setaffinity(int(thread.name), cores)
