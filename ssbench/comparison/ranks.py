"""The exact Mann-Whitney test of two groups of runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

#: No more runs a side than this are ranked exactly; the number of ways to deal them out grows fast.
_MOST_RANKED = 40


def mann_whitney(before: Sequence[float], after: Sequence[float]) -> float | None:
    """Return the probability of ranks as uneven as these by chance, exactly; None for too many runs.

    Ties count half, which makes it a little too large.
    """
    first, second = len(before), len(after)
    if max(first, second) > _MOST_RANKED:
        return None
    above = sum((a > b) + (a == b) / 2 for a in after for b in before)
    least = math.floor(min(above, first * second - above))
    ways = sum(_ways(first, second, count) for count in range(least + 1))
    return min(1.0, 2 * ways / math.comb(first + second, first))


@cache
def _ways(first: int, second: int, above: int) -> int:
    """Return in how many orders of two groups this many pairs have the second group's value above."""
    if above < 0 or not first or not second:
        return int(above == 0)
    return _ways(first - 1, second, above - second) + _ways(first, second - 1, above)
