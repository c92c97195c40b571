"""Variances that the rows of a table have in common: how much runs differ, by what all rows say.

Few rounds have no very small probabilities: Student's t of 3 degrees of freedom needs 15 standard errors. But
the rows of a family are alike in how much their runs differ. The variance of each is drawn towards what all
rows of that figure have in common, as far as they do (an inverse chi square prior, fitted to the variances of
the rows: Smyth, Statistical Applications in Genetics 3, 2004), so that a row has the degrees of freedom of
its own runs and those of the prior. Rows that are slow in the same rounds, such as those of one scenario at
two stores, say the same again, and count as fewer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from ssbench.comparison.change import FigureDifference

#: With fewer degrees of freedom in all rows together, nothing is known of how much runs differ.
MIN_FREEDOM = 6


def estimate_common_share(residuals: Sequence[Sequence[float]]) -> float:
    """Return how much of what differs from run to run is the same in all rows, from 0 to 1.

    ``residuals`` are those of each row, in the order of rounds. It is the correlation of two rows, by how
    much their mean varies; each row counts alike.
    """
    length = max(map(len, residuals), default=0)
    scales = [math.sqrt(sum(value**2 for value in each)) for each in residuals if len(each) == length]
    alike = [each for each in residuals if len(each) == length]
    scaled = [
        [value / scale for value in each] for each, scale in zip(alike, scales, strict=True) if scale > 0
    ]
    if len(scaled) < 2:
        return 0.0
    together = len(scaled) * sum(fmean(each) ** 2 for each in zip(*scaled, strict=True))
    return min(1.0, max(0.0, (together - 1) / (len(scaled) - 1)))


def moderate_variances(
    found: Mapping[int, FigureDifference], common: float = 0.0
) -> dict[int, FigureDifference]:
    """Return the differences of one figure in many rows, each with a variance that knows the others'.

    ``common`` is the share of :func:`estimate_common_share`.
    """
    known = {
        place: (each.error**2, each.freedom)
        for place, each in found.items()
        if each.between_runs and each.error and math.isfinite(each.freedom)
    }
    total = sum(freedom for _, freedom in known.values())
    if total < MIN_FREEDOM:
        return {place: replace(each, sure=False) for place, each in found.items()}
    prior, prior_freedom = fit_variance_prior([*known.values()])
    # Squares of values with this correlation have its square for theirs.
    total /= 1 + (len(known) - 1) * common**2
    made = dict(found)
    for place, (variance, freedom) in known.items():
        if math.isinf(prior_freedom):
            mixed, all_freedom = prior, math.inf
        else:
            all_freedom = prior_freedom + freedom
            mixed = (prior_freedom * prior + freedom * variance) / all_freedom
        made[place] = replace(
            found[place], error=math.sqrt(mixed), freedom=max(freedom, min(all_freedom, total))
        )
    return made


def fit_variance_prior(variances: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return the variance that rows have in common, and the degrees of freedom that it is worth.

    ``variances`` are those of rows, each with its degrees of freedom. By the moments of their logarithms;
    infinite degrees where the rows differ by no more than chance.
    """
    logs = [
        math.log(variance) - _digamma(freedom / 2) + math.log(freedom / 2) for variance, freedom in variances
    ]
    middle = fmean(logs)
    if len(logs) < 2:
        return math.exp(middle), 0.0
    spread = sum((each - middle) ** 2 for each in logs) / (len(logs) - 1)
    beyond = spread - fmean(_trigamma(freedom / 2) for _, freedom in variances)
    if beyond <= 0:
        return math.exp(middle), math.inf
    freedom = 2 * _invert_trigamma(beyond)
    return math.exp(middle + _digamma(freedom / 2) - math.log(freedom / 2)), freedom


def _shift(value: float) -> Iterator[float]:
    """Yield the arguments by which a series is carried to where its asymptotic form is exact."""
    while value < 6:
        yield value
        value += 1


def _digamma(value: float) -> float:
    """Return the derivative of the logarithm of the gamma function."""
    below = sum(1 / each for each in _shift(value))
    value += max(0, math.ceil(6 - value))
    square = 1 / value**2
    return math.log(value) - 0.5 / value - square * (1 / 12 - square * (1 / 120 - square / 252)) - below


def _trigamma(value: float) -> float:
    """Return the derivative of :func:`_digamma`."""
    below = sum(1 / each**2 for each in _shift(value))
    value += max(0, math.ceil(6 - value))
    square = 1 / value**2
    return 1 / value + square / 2 + square / value * (1 / 6 - square * (1 / 30 - square / 42)) + below


def _invert_trigamma(wanted: float) -> float:
    """Return the value at which the trigamma function, which falls, is this."""
    low, high = 1e-8, 1e8
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if _trigamma(middle) > wanted else (low, middle)
    return math.sqrt(low * high)
