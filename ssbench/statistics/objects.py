"""How many objects the operations of a run were about: of few, a figure is one of their devices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from ssbench.results.block import ResultBlock
from ssbench.statistics.tally import count_values

#: More objects of an operation and size class than this are not counted: they are many.
_MAX_COUNTED_OBJECTS = 10_000


class ObjectCounts:
    """How often each object was used, by operation and size class."""

    def __init__(self) -> None:
        self._counts: dict[tuple[int, int], Counter[int]] = {}
        self._known = True

    def add(self, block: ResultBlock) -> None:
        """Count the objects of a block; of one that has none, nothing is known."""
        if "object" not in block.given:
            self._known = False
            return
        names = (block.container.astype(np.int64) << 32) | block.object.astype(np.int64)
        kinds = (block.operation.astype(np.int64) << 16) | block.size_class.astype(np.int64)
        for kind in np.unique(kinds).tolist():
            counts = self._counts.setdefault((kind >> 16, kind & 0xFFFF), Counter())
            if len(counts) <= _MAX_COUNTED_OBJECTS:
                count_values(counts, names[kinds == kind])

    def effective(self, operation: int | None = None, size_class: int | None = None) -> float | None:
        """Return how many objects, each used as often, say as much as those of an operation and size class.

        None of either is all of them (Kish's effective size). None where it is not known, or where they are
        many.
        """
        found = [
            counts
            for (own, its_class), counts in self._counts.items()
            if operation in {None, own} and size_class in {None, its_class}
        ]
        if not self._known or not found or any(len(counts) > _MAX_COUNTED_OBJECTS for counts in found):
            return None
        return _effective_count(sum(found, Counter()).values())


def _effective_count(counts: Iterable[int]) -> float:
    uses = np.fromiter(counts, np.float64)
    return float(uses.sum() ** 2 / (uses**2).sum())
