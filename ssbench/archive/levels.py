"""How a figure developed over many runs: where its level changed.

The method is E-divisive (Matteson and James, 2014): a series is cut where the distances between both parts
exceed those within them by most, and each part is cut again, as long as such a difference is improbable by
chance. How probable it is follows from shuffling the runs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

#: With fewer runs a change cannot be distinguished from chance.
ENOUGH_RUNS = 10

#: The least number of runs of a level.
_SHORTEST = 3

#: The probability by chance that a cut may have at most, and the shuffles from which it is estimated.
_BY_CHANCE = 0.01
_SHUFFLES = 999

#: Of a longer series pass only the last runs: time and memory grow with the square of their number.
MOST_RUNS = 200

_Floats = npt.NDArray[np.float64]


def level_changes(values: Sequence[float]) -> list[int]:
    """Return the places at which a new level begins; all values are above 0, one a run."""
    if len(values) < ENOUGH_RUNS:
        return []
    # The same series gives the same answer each time.
    return sorted(_cut(np.log(np.asarray(values, np.float64)), 0, np.random.default_rng(0)))


def _cut(logs: _Floats, begin: int, random: np.random.Generator) -> list[int]:
    if len(logs) < 2 * _SHORTEST:
        return []
    distances = np.abs(logs[:, None] - logs[None, :])
    excess, place = _best(distances)
    as_much = 0
    for tried in range(_SHUFFLES):
        order = random.permutation(len(logs))
        as_much += _best(distances[np.ix_(order, order)])[0] >= excess
        if as_much > _BY_CHANCE * (_SHUFFLES + 1) - 1 or (tried == 0 and not excess > 0):
            return []
    return [
        *_cut(logs[:place], begin, random),
        begin + place,
        *_cut(logs[place:], begin + place, random),
    ]


def _best(distances: _Floats) -> tuple[float, int]:
    """Return by how much distances between two parts exceed those within them, at most, and where to cut."""
    count = len(distances)
    sums = distances.cumsum(0).cumsum(1)
    first = np.arange(_SHORTEST, count - _SHORTEST + 1)
    second = count - first
    within_first = sums[first - 1, first - 1]
    between = sums[first - 1, -1] - within_first
    within_second = sums[-1, -1] - within_first - 2 * between
    excess = (
        2 * between / (first * second)
        - within_first / (first * np.maximum(first - 1, 1))
        - within_second / (second * np.maximum(second - 1, 1))
    ) * (first * second / count)
    best = int(np.argmax(excess))
    return float(excess[best]), int(first[best])
