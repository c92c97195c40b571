"""How each device and proxy stands among its peers by the time that is its own, the most evident first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ssbench.attribution.culprits import POOLED, Family, Verdict
from ssbench.attribution.ranks import Difference, interval, upper_tail

#: So many are measured.
MOST = 20

#: The times that are compared, and the level of those who have them.
_OF = {"own": "device", "updates": "device", "own part": "proxy"}


@dataclass(frozen=True, slots=True)
class Standing:
    """A device or proxy: by how much its own times (``part``) are longer than its peers', in seconds.

    ``requests`` counts these times, ``interval`` is of 95 %, ``probability`` that of one test by itself.
    """

    name: str
    part: str
    requests: int
    difference: Difference
    interval: tuple[float, float]
    probability: float


def standings(
    families: Sequence[Family], verdict: Verdict, name: Callable[[str, int], str]
) -> list[Standing]:
    """Return those with most evidence; ``name`` returns what a candidate of a level is called."""
    ranked = []
    for family, tests in zip(families, verdict.tests, strict=True):
        if family.part not in _OF or family.windows or family.tail:
            continue
        best = np.nan_to_num(tests[0].z, nan=-np.inf).max(axis=0)
        ranked += [(float(best[place]), family, int(place)) for place in np.flatnonzero(np.isfinite(best))]
    ranked.sort(key=lambda each: -each[0])
    found = []
    for z, family, place in ranked[:MOST]:
        mask = family.mask(family.levels[0], place)
        measured = family.difference(family.levels[0], place, POOLED)
        if not np.isnan(measured.median):
            found.append(
                Standing(
                    name(_OF[family.part], place),
                    family.part,
                    int(mask.sum()),
                    measured,
                    interval(family.units, mask),
                    upper_tail(z),
                )
            )
    return found
