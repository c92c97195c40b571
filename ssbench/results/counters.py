"""The table of counters: what is counted of results besides that there are so many, and how.

A counter is a row here, and a row of the same key in the table of figures, which says what it is called.
Statistics and metrics keep all that there are; reports show all that are figures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ssbench.results.block import ResultBlock

_Rows = npt.NDArray[np.intp]

_NOT_FOUND_STATUS = 404


@dataclass(frozen=True, slots=True)
class _Counter:
    """``of`` returns how many there are in each of some rows of a block.

    There are none in a block with none of the fields ``given``: most blocks cost nothing.
    """

    given: frozenset[str]
    of: Callable[[ResultBlock, _Rows], npt.NDArray[Any]]
    of_successes: bool = False


def _on_new(block: ResultBlock, rows: _Rows) -> npt.NDArray[np.bool_]:
    new: npt.NDArray[np.bool_] = (block.connections[rows] > 0) | (block.connecting[rows] > 0)
    return new


COUNTERS = {
    "retries": _Counter(frozenset({"retries"}), lambda block, rows: block.retries[rows]),
    "resent": _Counter(
        frozenset({"attempts"}),
        lambda block, rows: block.attempts[rows] - block.retries[rows] - 1,
    ),
    "new_connections": _Counter(
        frozenset({"connecting", "connections"}), lambda block, rows: block.connections[rows]
    ),
    "resumed_connections": _Counter(frozenset({"resumed"}), lambda block, rows: block.resumed[rows]),
    "on_new": _Counter(frozenset({"connecting", "connections"}), _on_new),
    "entries": _Counter(frozenset({"entries"}), lambda block, rows: block.entries[rows], of_successes=True),
    "missing_names": _Counter(
        frozenset({"expected_entries"}),
        lambda block, rows: np.maximum(block.expected_entries[rows] - block.entries[rows], 0),
        of_successes=True,
    ),
    "vanished": _Counter(
        frozenset({"status"}),
        lambda block, rows: block.status[rows] == _NOT_FOUND_STATUS,
        of_successes=True,
    ),
    "unsent": _Counter(
        frozenset({"expected_size"}),
        lambda block, rows: (block.size[rows] >= 0) & (block.size[rows] < block.expected_size[rows]),
        of_successes=True,
    ),
    "unchecked": _Counter(
        frozenset({"unchecked"}), lambda block, rows: block.unchecked[rows], of_successes=True
    ),
}


def count_results(block: ResultBlock, rows: _Rows, successes: _Rows) -> dict[str, int]:
    """Return what some rows of a block add to counters; those to which they add nothing may be left out."""
    return {key: int(found.sum()) for key, _, found in counted_rows(block, rows, successes)}


def counted_rows(
    block: ResultBlock, rows: _Rows, successes: _Rows
) -> Iterator[tuple[str, bool, npt.NDArray[Any]]]:
    """Yield counters to which a block may add, with what each row adds.

    Those that are of successes only, which is the second item, have it of the rows ``successes``.
    """
    given = block.given
    for key, counter in COUNTERS.items():
        if not counter.given.isdisjoint(given):
            yield key, counter.of_successes, counter.of(block, successes if counter.of_successes else rows)


def sum_counters(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Return several together, with all counters that there are."""
    found: Counter[str] = Counter(dict.fromkeys(COUNTERS, 0))
    for part in parts:
        found.update(part)
    return dict(found)
