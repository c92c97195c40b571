"""How each device and proxy stands among its peers by the time that is its own, the most evident first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ssbench.cluster.culprits import POOLED, Family, SuspectVerdict
from ssbench.cluster.ranks import FloatArray, PeerDifference, measure_median_interval, upper_tail

#: So many are measured.
MAX_STANDINGS = 20

#: The own times of a party, and the level of those who have them.
OWN_TIME_LEVELS = {"own": "device", "updates": "device", "own part": "proxy"}


@dataclass(frozen=True, slots=True)
class Standing:
    """A device or proxy: by how much its own times (``part``) are longer than its peers', in seconds.

    ``requests`` counts these times, ``interval`` is of 95 %, ``probability`` that of one test by itself.
    """

    name: str
    part: str
    requests: int
    difference: PeerDifference
    interval: tuple[float, float]
    probability: float


def measure_evidence(families: Sequence[Family], verdict: SuspectVerdict, level: str) -> FloatArray:
    """Return the largest deviate of each candidate of a level in all tests, -inf where none could tell.

    A node has at least that of its devices: one with a single device is not tested by itself.
    """
    found = _largest_deviates(families, verdict, level)
    members = next(each.members for each in families[-2].levels if each.name == level)
    if members is None:
        return found
    of_devices = _largest_deviates(families, verdict, "device")
    return np.array([max([own, *of_devices[list(each)]]) for own, each in zip(found, members, strict=True)])


def _largest_deviates(families: Sequence[Family], verdict: SuspectVerdict, level: str) -> FloatArray:
    every = [
        np.nan_to_num(test.z, nan=-np.inf).max(axis=0)
        for family, tests in zip(families, verdict.tests, strict=True)
        for one, test in zip(family.levels, tests, strict=True)
        if one.name == level
    ]
    largest: FloatArray = np.max(every, axis=0)
    return largest


def rank_standings(
    families: Sequence[Family], verdict: SuspectVerdict, name: Callable[[str, int], str]
) -> list[Standing]:
    """Return those with most evidence; ``name`` returns what a candidate of a level is called."""
    ranked = []
    for family, tests in zip(families, verdict.tests, strict=True):
        if family.part not in OWN_TIME_LEVELS or family.windows or family.tail:
            continue
        best = np.nan_to_num(tests[0].z, nan=-np.inf).max(axis=0)
        ranked += [(float(best[place]), family, int(place)) for place in np.flatnonzero(np.isfinite(best))]
    ranked.sort(key=lambda each: -each[0])
    found = []
    for z, family, place in ranked[:MAX_STANDINGS]:
        mask = family.mask(family.levels[0], place)
        measured = family.difference(family.levels[0], place, POOLED)
        if not np.isnan(measured.median):
            found.append(
                Standing(
                    name(OWN_TIME_LEVELS[family.part], place),
                    family.part,
                    int(mask.sum()),
                    measured,
                    measure_median_interval(family.units, mask),
                    upper_tail(z),
                )
            )
    return found
