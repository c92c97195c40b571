"""The table of counters: what is counted of results besides that there are so many, and how.

A counter is a row here, and a row of the same key in the table of figures, which says what it is called.
Statistics and metrics keep all that there are; reports show all that are figures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ssbench.results.block import ResultBlock

_Rows = npt.NDArray[np.intp]

_NOT_FOUND = 404


@dataclass(frozen=True, slots=True)
class _Counter:
    """``count`` returns how many there are in some rows of a block.

    There are none in a block with none of the fields ``given``: most blocks cost nothing.
    """

    given: frozenset[str]
    count: Callable[[ResultBlock, _Rows], int]
    of_successes: bool = False


def _on_new(block: ResultBlock, rows: _Rows) -> int:
    return int(np.count_nonzero((block.connections[rows] > 0) | (block.connecting[rows] > 0)))


COUNTERS = {
    "retries": _Counter(frozenset({"retries"}), lambda block, rows: int(block.retries[rows].sum())),
    "resent": _Counter(
        frozenset({"attempts"}),
        lambda block, rows: int((block.attempts[rows] - block.retries[rows] - 1).sum()),
    ),
    "new_connections": _Counter(
        frozenset({"connecting", "connections"}), lambda block, rows: int(block.connections[rows].sum())
    ),
    "resumed_connections": _Counter(
        frozenset({"resumed"}), lambda block, rows: int(block.resumed[rows].sum())
    ),
    "on_new": _Counter(frozenset({"connecting", "connections"}), _on_new),
    "entries": _Counter(
        frozenset({"entries"}), lambda block, rows: int(block.entries[rows].sum()), of_successes=True
    ),
    "vanished": _Counter(
        frozenset({"status"}),
        lambda block, rows: int(np.count_nonzero(block.status[rows] == _NOT_FOUND)),
        of_successes=True,
    ),
}


def count_results(block: ResultBlock, rows: _Rows, successes: _Rows) -> dict[str, int]:
    """Return what some rows of a block add to counters; those to which they add nothing may be left out."""
    given = block.given
    return {
        key: counter.count(block, successes if counter.of_successes else rows)
        for key, counter in COUNTERS.items()
        if not counter.given.isdisjoint(given)
    }


def sum_counters(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Return several together, with all counters that there are."""
    found: Counter[str] = Counter(dict.fromkeys(COUNTERS, 0))
    for part in parts:
        found.update(part)
    return dict(found)
