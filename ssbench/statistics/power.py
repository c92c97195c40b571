"""How large a change a t-test shows, where the error that it has was estimated from a few runs."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from ssbench.statistics.confidence import t_quantile

#: Of so many comparisons a change is to be shown.
_POWER = 0.90

#: Values of a chi distribution over its degrees of freedom at which functions of it are summed up.
_NODES, _WEIGHTS = (tuple(map(float, each)) for each in np.polynomial.legendre.leggauss(40))


def _spread_chi(freedom: float) -> tuple[list[float], list[float]]:
    """Return values of the root of chi square / freedom, and the probability that each stands for."""
    half = freedom / 2
    width = 6 / math.sqrt(2 * freedom)
    low, high = max(0.0, 1 - width), 1 + width
    values = [(low + high) / 2 + (high - low) / 2 * node for node in _NODES]
    logs = [(freedom - 1) * math.log(value) - half * value**2 for value in values]
    shares = [weight * math.exp(each - max(logs)) for weight, each in zip(_WEIGHTS, logs, strict=True)]
    return values, [share / sum(shares) for share in shares]


def find_power(errors: float, freedom: int, known: float, level: float) -> float:
    """Return how often Student's t shows a change of so many standard errors, in its own direction.

    ``freedom`` is that of the test. The standard error itself was estimated, with ``known`` degrees of
    freedom: the result is the mean over all that it may be.
    """
    limit = t_quantile(1 - level / 2, freedom)
    tested, known_as = _spread_chi(freedom), _spread_chi(known)
    found = 0.0
    for true, probability in zip(*known_as, strict=True):
        found += probability * sum(
            share * math.erfc((limit * value - errors * true) / math.sqrt(2)) / 2
            for value, share in zip(*tested, strict=True)
        )
    return found


@lru_cache(maxsize=4096)
def find_detectable_errors(freedom: int, known: float, level: float) -> float:
    """Return the change, in standard errors, that is shown in nine of ten; see :func:`find_power`."""
    low, high = 1.0, 8.0
    while find_power(high, freedom, known, level) < _POWER and high < 1e4:
        low, high = high, 2 * high
    while high - low > 0.005 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if find_power(middle, freedom, known, level) >= _POWER else (middle, high)
    return high
