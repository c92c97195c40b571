"""Pearson's test of how well counts fit shares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

#: With fixed seeds a test either always passes or never, so that this is only how strict it is.
CHANCE = 0.001


def misfit(counts: Sequence[int], shares: Sequence[float]) -> float:
    """Return the statistic, as a multiple of what it exceeds with a chance of :data:`CHANCE`.

    The critical value is by Wilson and Hilferty (1931), within 1 % from three degrees of freedom on.
    """
    total = sum(counts)
    assert abs(sum(shares) - 1) < 1e-9
    assert all(total * share >= 5 for share in shares), "too few are expected in a bin"
    statistic = sum(
        (n - total * share) ** 2 / (total * share) for n, share in zip(counts, shares, strict=True)
    )
    degrees = len(counts) - 1
    spread = 2 / (9 * degrees)
    return statistic / (degrees * (1 - spread + NormalDist().inv_cdf(1 - CHANCE) * math.sqrt(spread)) ** 3)
