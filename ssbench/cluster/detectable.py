"""How slow a device would have had to be to be found: what an all-clear is worth."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import NormalDist

import numpy as np

from ssbench.cluster.culprits import ALPHA, MIN_DELAY_SHARE, Family
from ssbench.cluster.ranks import Pairs, Units, measure_deviates

#: The delay is found in 9 of 10 runs: the deviate exceeds the least one by this, of p = 0.1.
POWER_DEVIATE = 1.28
#: A run of more units is thinned to about so many, whose deviates are smaller by the square root.
_MAX_UNITS = 50_000
#: Delays that are tried: from a thousandth of a request to a hundred times it, by steps of a fifth.
DELAY_STEPS = np.geomspace(1e-3, 100, 64)


def find_detectable_delay(families: Sequence[Family], part: str, counts: Mapping[str, int]) -> float | None:
    """Return the least delay of a part, in seconds, that would have been found of anybody who has it.

    That is for the one with fewest of them, of those that can be tested; ``counts`` are the tests by kind of
    party. None where no delay would have been, or nothing could be tested.
    """
    plain = (each for each in families if not each.windows and not each.tail)
    family = next((each for each in plain if each.part == part), None)
    comparisons = counts[family.kind] if family else 0
    if family is None or not comparisons:
        return None
    level = family.levels[0]
    taken = np.bincount(level.who.candidate, minlength=level.who.count)
    candidates = np.flatnonzero((taken > 0) & (taken < len(family.units)))
    if not len(candidates):
        return None
    mask = family.mask(level, int(candidates[np.argmin(taken[candidates])]))
    units, thinned = family.units, max(1, len(mask) // _MAX_UNITS)
    if thinned > 1:
        kept = np.arange(0, len(mask), thinned)
        parts = None if units.slices is None else units.slices[kept]
        units, mask = Units(units.seconds[kept], units.stratum[kept], units.group, parts), mask[kept]
    who = Pairs(np.flatnonzero(mask), np.zeros(int(mask.sum()), np.int64), 1)
    least = NormalDist().inv_cdf(1 - ALPHA / comparisons) + POWER_DEVIATE

    def is_found(share: float) -> bool:
        slower = replace(units, seconds=units.seconds + share * family.request * mask)
        return bool(measure_deviates(slower, who, len(family.groups)).z[-1, 0] * thinned**0.5 >= least)

    # One that is as long as the least share measures less than it in half of the runs.
    steps = DELAY_STEPS[DELAY_STEPS >= 1.5 * MIN_DELAY_SHARE].tolist()
    if not is_found(steps[-1]):
        return None
    return float(steps[bisect_left(steps, True, key=is_found)]) * family.request
