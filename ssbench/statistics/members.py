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

from ssbench.results import LOST, ResultBlock
from ssbench.statistics.figures import Figures, FiguresCollector
from ssbench.statistics.groups import split
from ssbench.statistics.timeline import Timeline, Window

#: The fields by which figures are kept apart.
KEPT_APART = ("account", "address")


class Member(msgspec.Struct, frozen=True):
    """An account or an address: its place among those of the run, -1 where it is not known.

    ``errors`` counts its failures by cause, the most frequent first.
    """

    number: int
    figures: Figures
    errors: Mapping[str, int]


class _Counts(msgspec.Struct):
    figures: FiguresCollector = msgspec.field(default_factory=FiguresCollector)
    errors: Counter[str] = msgspec.field(default_factory=Counter)


class MembersCollector:
    """Counts results by each of :data:`KEPT_APART` that they have."""

    def __init__(self) -> None:
        self._counts: dict[str, dict[int, _Counts]] = {}

    def add(
        self,
        block: ResultBlock,
        started: npt.NDArray[np.float64],
        timeline: Timeline | None,
        before: int,
        *,
        mixed: bool,
    ) -> None:
        """Count the results of a block that has ``before`` results before it."""
        for name in KEPT_APART:
            if name not in block.given:
                continue
            column = getattr(block, name)
            counts = self._counts.setdefault(name, {})
            for (number,), rows in split([column]):
                own = counts.setdefault(number, _Counts()).figures
                own.add(block, rows, before)
                if "due" in block.given or mixed:
                    own.due.add(block, rows, started, before, mixed=mixed)
                if timeline:
                    own.window_totals.add(block, rows, started, timeline.last_sent)
            for row, failure in block.failures.items():
                if failure.cause is not None:
                    counted = counts[int(column[row])]
                    counted.errors[failure.cause] += 1
                    counted.figures.lost += failure.cause == LOST

    def finish(self, name: str, window: Window | None) -> tuple[Member, ...]:
        """Return the members by one of :data:`KEPT_APART`, in order; none where results lack that."""
        return tuple(
            Member(number, own.figures.finish(window), dict(own.errors.most_common()))
            for number, own in sorted(self._counts.get(name, {}).items())
        )
