"""In which order the runs of two sides were measured, and what drifted meanwhile.

A machine drifts while runs follow each other: caches fill, containers grow, others come and go. Where the
sides were measured in turn (A B B A ...), each pair met the same state, and only differences within pairs
count. Where one group followed the other, what drifted looks like a change: a drift that is shown within
the groups, carried over from the middle of one to the middle of the other, is allowed for, in its own
direction. Allowing for what may have drifted and is not shown would cost a third of all findings (8 and 8
runs of ``bench/comparing.py``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from ssbench.statistics.confidence import t_quantile

_T_SHARE = 0.975

#: Fewer pairs have no interval worth the name.
_MIN_PAIRS = 2


@dataclass(frozen=True, slots=True)
class RunOrder:
    """The places of the runs of both sides in the order in which they began, from 0."""

    before: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """The runs (before, after) that followed each other; none where they were not measured in turn."""
        if len(self.before) != len(self.after) or len(self.before) < _MIN_PAIRS:
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
        return self._line(before, after)[0]

    def carried_over(self, before: Sequence[float], after: Sequence[float]) -> float:
        """Return the difference, after less before, that the drift within the sides explains.

        It is 0 where no drift is shown (Student's t of the slope, 5 %).
        """
        freedom = len(before) + len(after) - 3
        if not self.one_after_the_other or freedom < 1:
            return 0.0
        slope, error = self._line(before, after)
        if abs(slope) <= t_quantile(_T_SHARE, freedom) * error:
            return 0.0
        return slope * (fmean(self.after) - fmean(self.before))

    def may_carry_over(self, before: Sequence[float], after: Sequence[float]) -> tuple[float, float]:
        """Return which differences, after less before, a drift may explain that the sides allow (95 %).

        These are the least and the most; 0 and 0 where the sides were not measured one after the other.
        """
        freedom = len(before) + len(after) - 3
        if not self.one_after_the_other or freedom < 1:
            return 0.0, 0.0
        slope, error = self._line(before, after)
        half = t_quantile(_T_SHARE, freedom) * error
        distance = fmean(self.after) - fmean(self.before)
        low, high = sorted(((slope - half) * distance, (slope + half) * distance))
        return low, high

    def _line(self, before: Sequence[float], after: Sequence[float]) -> tuple[float, float]:
        """Return the slope and its standard error; the latter is 0 of too few runs."""
        centred = [
            (place - fmean(places), value - fmean(values))
            for places, values in ((self.before, before), (self.after, after))
            for place, value in zip(places, values, strict=True)
        ]
        below = sum(place**2 for place, _ in centred)
        if not below:
            return 0.0, 0.0
        slope = sum(place * value for place, value in centred) / below
        left = sum((value - slope * place) ** 2 for place, value in centred)
        return slope, math.sqrt(left / max(1, len(centred) - 3) / below)

    def drift(self, before: Sequence[float], after: Sequence[float]) -> float:
        """Return the change of values from the first run to the last that is no difference of the sides."""
        return self.slope(before, after) * (len(self.before) + len(self.after) - 1)


def find_run_order(before: Sequence[float | None], after: Sequence[float | None]) -> RunOrder | None:
    """Return the order of runs that began at these moments; None where that is not known."""
    moments = [moment for moment in (*before, *after) if moment is not None]
    if len(set(moments)) < len(before) + len(after):
        return None
    places = {moment: place for place, moment in enumerate(sorted(moments))}
    first, second = (
        tuple(places[moment] for moment in side if moment is not None) for side in (before, after)
    )
    return RunOrder(first, second)
