"""How slow a device would have had to be to be found: what an all-clear is worth."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from statistics import NormalDist

import numpy as np

from ssbench.attribution.culprits import ALPHA, LEAST_SHARE, Family
from ssbench.attribution.ranks import Pairs, Units, deviates

#: The delay is found in 9 of 10 runs: the deviate exceeds the least one by this, of p = 0.1.
POWER = 1.28
#: A run of more units is thinned to about so many, whose deviates are smaller by the square root.
_MOST_UNITS = 50_000
#: Delays that are tried: from a thousandth of a request to a hundred times it, by steps of a fifth.
STEPS = np.geomspace(1e-3, 100, 64)


def detectable(families: Sequence[Family], comparisons: int) -> float | None:
    """Return the least delay, in seconds, of any device's reads and deletes that would have been found.

    That is for the device with fewest of them, of those that can be tested. None where no delay would
    have been, or nothing could be tested.
    """
    plain = (each for each in families if not each.windows and not each.tail)
    family = next((each for each in plain if each.part == "own"), None)
    if family is None or not comparisons:
        return None
    level = family.levels[0]
    counts = np.bincount(level.who.candidate, minlength=level.who.count)
    candidates = np.flatnonzero((counts > 0) & (counts < len(family.units)))
    if not len(candidates):
        return None
    mask = family.mask(level, int(candidates[np.argmin(counts[candidates])]))
    units, thinned = family.units, max(1, len(mask) // _MOST_UNITS)
    if thinned > 1:
        kept = np.arange(0, len(mask), thinned)
        units, mask = Units(units.seconds[kept], units.stratum[kept], units.group), mask[kept]
    who = Pairs(np.flatnonzero(mask), np.zeros(int(mask.sum()), np.int64), 1)
    least = NormalDist().inv_cdf(1 - ALPHA / comparisons) + POWER

    def is_found(share: float) -> bool:
        slower = replace(units, seconds=units.seconds + share * family.request * mask)
        return bool(deviates(slower, who, len(family.groups)).z[-1, 0] * thinned**0.5 >= least)

    # One that is as long as the least share measures less than it in half of the runs.
    steps = STEPS[STEPS >= 1.5 * LEAST_SHARE].tolist()
    if not is_found(steps[-1]):
        return None
    return float(steps[bisect_left(steps, True, key=is_found)]) * family.request
