"""In which order the runs of two sides were measured, and what drifted meanwhile.

A machine drifts while runs follow each other: caches fill, containers grow, others come and go. Where the
sides were measured in turn (A B B A ...), each pair met the same state, and only differences within pairs
count. Where one group followed the other, what drifted looks like a change: the drift that is seen within
the groups, carried over from the middle of one to the middle of the other, is allowed for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

#: Fewer pairs have no interval worth the name.
_LEAST_PAIRS = 2


@dataclass(frozen=True, slots=True)
class Order:
    """The places of the runs of both sides in the order in which they began, from 0."""

    before: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """The runs (before, after) that followed each other; none where they were not measured in turn."""
        if len(self.before) != len(self.after) or len(self.before) < _LEAST_PAIRS:
            return ()
        whose = sorted(
            [(place, 0, number) for number, place in enumerate(self.before)]
            + [(place, 1, number) for number, place in enumerate(self.after)]
        )
        pairs = []
        for (_, one, first), (_, two, second) in zip(whose[::2], whose[1::2], strict=True):
            if one == two:
                return ()
            pairs.append((first, second) if one == 0 else (second, first))
        return tuple(pairs)

    @property
    def one_after_the_other(self) -> bool:
        """Whether all runs of one side began before those of the other."""
        return max(self.before) < min(self.after) or max(self.after) < min(self.before)

    def slope(self, before: Sequence[float], after: Sequence[float]) -> float:
        """Return the change from one run to the next of values, which is the same on both sides.

        The slope of least squares, each side around its own mean; 0 where no run follows another.
        """
        above = below = 0.0
        for places, values in ((self.before, before), (self.after, after)):
            if not places:
                continue
            centre, mean = fmean(places), fmean(values)
            above += sum(
                (place - centre) * (value - mean) for place, value in zip(places, values, strict=True)
            )
            below += sum((place - centre) ** 2 for place in places)
        return above / below if below else 0.0

    def carried_over(self, before: Sequence[float], after: Sequence[float]) -> float:
        """Return how much of a difference the drift within the sides explains, as an amount from 0."""
        if not self.one_after_the_other:
            return 0.0
        return abs(self.slope(before, after)) * abs(fmean(self.after) - fmean(self.before))

    def drift(self, before: Sequence[float], after: Sequence[float]) -> float:
        """Return the change of values from the first run to the last that is no difference of the sides."""
        return self.slope(before, after) * (len(self.before) + len(self.after) - 1)


def order_of(before: Sequence[float | None], after: Sequence[float | None]) -> Order | None:
    """Return the order of runs that began at these moments; None where that is not known."""
    moments = [moment for moment in (*before, *after) if moment is not None]
    if len(set(moments)) < len(before) + len(after):
        return None
    places = {moment: place for place, moment in enumerate(sorted(moments))}
    first, second = (
        tuple(places[moment] for moment in side if moment is not None) for side in (before, after)
    )
    return Order(first, second)
