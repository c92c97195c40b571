"""Shares of operations that failed: how far one of a run may be from the truth, and two from each other.

A share of independent operations is a binomial. Failures seldom are independent: a server that stands still
for two seconds fails all of these seconds. So what the failures of each second are beyond the share says by
how much the truth may be off, too, and the larger of both counts. One burst of failures is one event, however
many operations it had, and shows no difference by itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ssbench.statistics.by_second import is_plausible_span
from ssbench.statistics.confidence import MIN_SECONDS, Series, effective_size, t_quantile, wilson_interval
from ssbench.statistics.figures import CountedFigures

_T_SHARE = 0.975


def failure_share(figures: CountedFigures) -> float:
    """Return which share of the operations failed; 0 without any."""
    return figures.failed / max(1, figures.count + figures.failed)


def failure_half_width(figures: CountedFigures) -> float | None:
    """Return half the width of the 95 % interval of a run's share; None of a run that was too short."""
    parts = _parts_by_second([(1, figures)])
    if len(parts) < MIN_SECONDS:
        return None
    error, freedom = _standard_error(parts, [figures])
    return t_quantile(_T_SHARE, freedom) * error


def failure_difference_error(before: CountedFigures, after: CountedFigures) -> tuple[float, float] | None:
    """Return the standard error of the difference of both sides' shares, and its degrees of freedom.

    Both sides met the same seconds: what failed of both in one of them is no difference of theirs. None of a
    run that was too short, or where a side did nothing.
    """
    parts = _parts_by_second([(-1, before), (1, after)])
    if len(parts) < MIN_SECONDS or not all(_count_operations(each) for each in (before, after)):
        return None
    return _standard_error(parts, [before, after])


def failure_interval(figures: CountedFigures) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share, of as many operations as its seconds are worth."""
    error, _ = _standard_error(_parts_by_second([(1, figures)]), [figures])
    variance = _variance(figures)
    return wilson_interval(
        failure_share(figures), _count_operations(figures) * variance / max(variance, error**2)
    )


def _count_operations(figures: CountedFigures) -> int:
    return figures.count + figures.failed


def _standard_error(parts: Series, sides: Sequence[CountedFigures]) -> tuple[float, float]:
    """Return the standard error of a share, or of the difference of two, and its degrees of freedom."""
    alone = sum(_variance(each) for each in sides)
    size = effective_size(parts, alone * len(parts))
    return math.sqrt(max(alone, float(np.var(parts, ddof=1)) / size)), max(1.0, size - 1)


def _variance(figures: CountedFigures) -> float:
    """Return the variance of a binomial share, with one success and one failure added (Agresti and Caffo)."""
    count = _count_operations(figures) + 2
    share = (figures.failed + 1) / count
    return share * (1 - share) / count


def _parts_by_second(sides: Sequence[tuple[int, CountedFigures]]) -> Series:
    """Return what each second adds to a share, or to the difference of two, beyond what it should.

    Their mean is 0: what is known is how much they scatter.
    """
    counted = [each.by_second for _, each in sides]
    seconds = {second for each in counted for counts in (each.counts, each.failed) for second in counts}
    first = min(seconds, default=0)
    span = max(seconds, default=0) - first + 1
    if not is_plausible_span(span, len(seconds)):
        return np.empty(0)
    parts = np.zeros(span)
    for (sign, figures), own in zip(sides, counted, strict=True):
        share, every = failure_share(figures), max(1, _count_operations(figures))
        for counts, weight in ((own.counts, -share), (own.failed, 1 - share)):
            for second, count in counts.items():
                parts[second - first] += sign * weight * count * span / every
    return parts
