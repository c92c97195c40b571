"""The figures of each account of a run, and of each address of a server, where there are several.

They are kept apart by each of these fields alone, not by operation and size class too: a hundred accounts
would make thousands of groups. Results of other runs lack the fields, and cost nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import msgspec
import numpy as np
import numpy.typing as npt

from ssbench.results.block import LOST_CAUSE, ResultBlock
from ssbench.statistics.figures import CountedFigures
from ssbench.statistics.figures_collector import FiguresCollector
from ssbench.statistics.timeline import Window

#: The fields by which figures are kept apart.
MEMBER_FIELDS = ("account", "address")


class MemberCounts(msgspec.Struct, frozen=True):
    """An account or an address: its place among those of the run, -1 where it is not known.

    ``errors`` counts its failures by cause, the most frequent first.
    """

    number: int
    figures: CountedFigures
    errors: Mapping[str, int]


class MembersCollector:
    """Counts results by each of :data:`MEMBER_FIELDS` that they have; ``mixed`` as of the figures."""

    def __init__(self, *, mixed: bool = False) -> None:
        self._mixed = mixed
        self._figures: dict[str, FiguresCollector] = {}
        self._errors: dict[str, dict[int, Counter[str]]] = {}

    def add(
        self, block: ResultBlock, started: npt.NDArray[np.float64], before: int, last_sent: float | None
    ) -> None:
        """Count the results of a block; what is given is as of the figures."""
        for name in MEMBER_FIELDS:
            if name not in block.given:
                continue
            if name not in self._figures:
                self._figures[name] = FiguresCollector([name], mixed=self._mixed)
            groups = self._figures[name].add(block, started, before, last_sent)
            errors, column = self._errors.setdefault(name, {}), getattr(block, name)
            lost = []
            for row, failure in block.failures.items():
                if failure.cause is not None:
                    errors.setdefault(int(column[row]), Counter())[failure.cause] += 1
                    if failure.cause == LOST_CAUSE:
                        lost.append(row)
            self._figures[name].add_lost(groups[lost])

    def finish(self, name: str, window: Window | None) -> tuple[MemberCounts, ...]:
        """Return the members by one of :data:`MEMBER_FIELDS`, in order; none where results lack that."""
        if name not in self._figures:
            return ()
        figures, errors = self._figures[name].finish(window), self._errors[name]
        return tuple(
            MemberCounts(number, figures[(number,)], dict(errors.get(number, Counter()).most_common()))
            for (number,) in sorted(figures)
        )
