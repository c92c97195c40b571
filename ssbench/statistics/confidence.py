"""How far a figure of a run may be from the truth: 95 % intervals, warm-up, drift, steps.

What a store does in one second is much like what it did in the second before, so that a hundred seconds say
less than a hundred measurements would. All intervals here count *effective* seconds: the fewest of what three
estimates say (:func:`effective_size`).

``doc/numbers.rst`` says how often intervals and steps were measured to be right. Nothing here knows of
operations or files.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist, fmean, stdev

import msgspec
import numpy as np
import numpy.typing as npt

from ssbench.base.record import Offset, PerhapsNumber, PerSecond
from ssbench.statistics.level_changes import measure_step_evidence

Series = npt.NDArray[np.float64]

#: Of fewer seconds nothing is said.
MIN_SECONDS = 10

#: The highest autocorrelation from one second to the next that is reckoned with, and the highest ratio
#: of two autocorrelations, which are less sure.
_MAX_CORRELATION = 0.95
_MAX_FADING_RATIO = 0.9

#: The same of what seconds have in common, where their own noise is known.
_MAX_COMMON_CORRELATION = 0.97

#: Seconds in one mean of MSER-5.
_MSER_BATCH_SECONDS = 5

#: A run that changes by more than this share of its mean while it is measured is not steady.
_MAX_DRIFT_SHARE = 0.05

#: In fewer seconds no slope can be distinguished from noise.
_MIN_DRIFT_SECONDS = 30

#: Noise of fewer too often looks like a line (:func:`find_step` judges shorter runs).
MIN_STEADY_SECONDS = 45

#: Fewer seconds do not show that something rises.
_MIN_CLIMB_SECONDS = 6
_CLIMB_CONFIDENCE = 0.99

#: With more degrees of freedom Student's t is normal; its terms would cancel each other, or be infinite.
_NORMAL_FREEDOM = 1e7

#: The quantile of the normal distribution for 95 %.
_NORMAL_QUANTILE = 1.959964
#: Of cuts that are as good but for this share, the shortest is taken as the warm-up.
_CUT_TOLERANCE = 0.1

#: So many long batches give a second estimate of what a percentile may be off by.
_LONG_BATCH_COUNT = 5

_CONFIDENCE_SHARE = 0.95
#: Of a line that is fitted to noise much alike, an interval of 99.9 % misses the truth in 1 or 2 of 100.
_DRIFT_CONFIDENCE = 0.999
_MIN_EFFECTIVE_SIZE = 2.0


class Interval(msgspec.Struct, frozen=True):
    """A 95 % interval in the unit of its figure."""

    low: float  # its lower end
    high: PerhapsNumber  # its upper end; infinite, which JSON has as null, where too few values lie beyond
    effective_size: float  # how many independent measurements would have said as much

    @property
    def half_width(self) -> float:
        """Half of its width."""
        return (self.high - self.low) / 2

    def around(self, value: float) -> Interval:
        """Return an interval as wide around another value, which like its bounds cannot be below 0."""
        half = self.half_width
        return Interval(max(0.0, value - half), value + half, self.effective_size)


class ShareInterval(Interval, frozen=True):
    """A 95 % interval of a share: the wider one of two."""

    by_seconds: float  # half of the width by Student's t of as many seconds, which a longer run has more of
    by_batches: float  # half of the width by a few long batches, of which a longer run has as many


# -- Student's t ------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def t_quantile(share: float, freedom: float) -> float:
    """Return the quantile of Student's t; 0.5 <= share < 1, ``freedom`` may be a fraction.

    The probability of the tail is convex, so that Newton's method from the normal quantile, which is
    less, comes nearer from one side.
    """
    tail = 1 - share
    value = NormalDist().inv_cdf(share)
    if freedom > _NORMAL_FREEDOM:
        return value
    log_scale = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2) - math.log(freedom * math.pi) / 2
    for _ in range(100):
        density = math.exp(log_scale - (freedom + 1) / 2 * math.log1p(value**2 / freedom))
        step = (t_tail(value, freedom) - tail) / density
        value += step
        if abs(step) <= 1e-10 * max(1.0, abs(value)):
            break
    return value


def mean_half_width(values: Sequence[float]) -> float:
    """Return half the 95 % interval of the mean of some values, two or more."""
    return t_quantile(0.975, len(values) - 1) * stdev(values) / math.sqrt(len(values))


def t_tail(value: float, freedom: float) -> float:
    """Return the probability that Student's t is greater than ``value``, which is 0 or more."""
    if freedom > _NORMAL_FREEDOM:
        return math.erfc(value / math.sqrt(2)) / 2
    return beta_share(freedom / (freedom + value * value), freedom / 2, 0.5) / 2


def welch_error(before: Sequence[float], after: Sequence[float]) -> tuple[float, float]:
    """Return the standard error of the difference of two means, and its degrees of freedom."""
    parts = [_find_variance(side) / len(side) for side in (before, after)]
    if not sum(parts):
        return 0.0, float(len(before) + len(after) - 2)
    below = sum(part**2 / (len(side) - 1) for part, side in zip(parts, (before, after), strict=True))
    return math.sqrt(sum(parts)), sum(parts) ** 2 / below


def _find_variance(values: Sequence[float]) -> float:
    """Return the variance of a sample, of two values or more.

    That of the standard library is exact, by fractions, and takes fifty times as long.
    """
    first = values[0]
    off = [value - first for value in values]  # 0 of equal values, whatever their mean is rounded to
    mean = fmean(off)
    return math.fsum([(each - mean) ** 2 for each in off]) / (len(off) - 1)


def beta_share(x: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function, by its continued fraction."""
    if x in {0.0, 1.0}:
        return x
    if x > (a + 1) / (a + b + 2):  # where the fraction of the mirrored function converges sooner
        return 1 - beta_share(1 - x, b, a)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    # Lentz's method; the terms of the fraction are those of Abramowitz and Stegun, 26.5.8.
    ratio = fraction = 1.0 / (1.0 - (a + b) * x / (a + 1))
    previous = 1.0
    for m in range(1, 1000):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            ratio = 1.0 / (1.0 + term * ratio)
            previous = 1.0 + term / previous
            fraction *= ratio * previous
        if abs(ratio * previous - 1) < 1e-14:
            break
    return math.exp(log_front) * fraction / a


# -- how much a series says ---------------------------------------------------------------------------


def effective_size(series: Series, noise: float = 0.0) -> float:
    """Return how many independent values say as much of the mean as these, from 2 to their number.

    The least of three estimates, because each of them misses something: the autocorrelation of neighbours
    is too low where each value has noise of its own on top of what fades; the next but one shows that;
    means of growing batches show slower changes. Where the variance of the values' own noise is known
    (``noise``), what is left of the autocorrelation is that of what fades, which is a fourth.
    """
    count = len(series)
    if count < MIN_SECONDS:
        return float(count)
    variance = float(np.var(series, ddof=1))
    if not variance:
        return float(count)
    first, second = (estimate_autocorrelation(series, lag) for lag in (1, 2))
    # Half a standard error more, because runs that stop themselves stop where it is estimated too low.
    error = math.sqrt(max(0.0, 1 - first**2) / count)
    fading = min(max(first + error / 2, 0.0), _MAX_CORRELATION)
    factor = max((1 + fading) / (1 - fading), _batch_factor(series, variance))
    if first > error / 2:
        fading = min(max(second / first, first), _MAX_FADING_RATIO)
        factor = max(factor, 1 + 2 * first / (1 - fading))
    if 0 < noise < variance:
        alike = (variance - noise) / variance
        found = min(max(first / alike, 0.0), 1.0)
        fading = min(found + math.sqrt(1 - found**2) / math.sqrt(count) / alike / 2, _MAX_COMMON_CORRELATION)
        factor = max(factor, 1 - alike + alike * (1 + fading) / (1 - fading))
    return max(_MIN_EFFECTIVE_SIZE, count / factor)


def estimate_autocorrelation(series: Series, lag: int) -> float:
    """Return the correlation of values with those that come so much later.

    Estimated from few values it is too low, by (1 + 4 r) / n (Kendall 1954).
    """
    deviations, count = series - series.mean(), len(series)
    found = float(deviations[lag:] @ deviations[:-lag] / (deviations @ deviations))
    return (found * count + 1) / (count - 4)


def _batch_factor(series: Series, variance: float) -> float:
    """Return by how much the variance of the mean exceeds that of as many independent values."""
    factor, size = 1.0, 1
    while factor > 0.2 * size and len(series) // (2 * size) >= 2:
        size *= 2
        batches = series[: len(series) // size * size].reshape(-1, size).mean(axis=1)
        factor = max(factor, size * float(np.var(batches, ddof=1)) / variance)
    return factor


def mean_interval(series: Series) -> Interval | None:
    """Return the interval of the mean of a value each second; None of fewer than :data:`MIN_SECONDS`."""
    if len(series) < MIN_SECONDS:
        return None
    size = effective_size(series)
    half = _cached_t_quantile(size - 1) * float(np.std(series, ddof=1)) / math.sqrt(size)
    mean = float(series.mean())
    return Interval(mean - half, mean + half, size)


def _cached_t_quantile(freedom: float, share: float = _CONFIDENCE_SHARE) -> float:
    return t_quantile((1 + share) / 2, round(max(1.0, freedom), 3))


def percentile_ranks(
    share: float, below: Series, every: Series, *, without_chance: bool = True
) -> ShareInterval | None:
    """Return between which shares of all values a percentile lies, as an interval of ``share``.

    ``below`` counts, for each second, the values up to the percentile, ``every`` all of them. Were they
    independent, the number below would be binomial; how much more it changes from second to second
    says how many values they are worth. The values at both ends are the interval of the percentile
    (order statistics). ``without_chance``: what chance alone would change from second to second is taken off
    before that is judged, which finds slow changes beneath it; of rare events it finds them in chance.
    """
    total = float(every.sum())
    if len(every) < MIN_SECONDS or not total:
        return None
    residuals = below - float(below.sum()) / total * every
    independent = share * (1 - share)
    seconds = effective_size(residuals, independent * total / len(every) if without_chance else 0.0)
    variance = float(np.var(residuals, ddof=1)) * len(every) ** 2 / seconds / total**2
    size = min(total, independent / variance) if variance else total
    by_seconds = _cached_t_quantile(seconds - 1) * math.sqrt(independent / size)
    by_batches = _half_width_of_batches(residuals) * len(every) / total
    half = max(by_seconds, by_batches)
    return ShareInterval(max(0.0, share - half), share + half, size, by_seconds, by_batches)


def share_ranks(below: Series, every: Series, *, without_chance: bool = True) -> ShareInterval | None:
    """Return the interval of a share of all, of which each second has so many; None of short runs."""
    total = float(every.sum())
    if not total:
        return None
    return percentile_ranks(float(below.sum()) / total, below, every, without_chance=without_chance)


def ratio_interval(sums: Series, every: Series) -> Interval | None:
    """Return the interval of a mean, of which each second has a sum and a number; None of short runs."""
    total = float(every.sum())
    if len(every) < MIN_SECONDS or not total:
        return None
    mean = float(sums.sum()) / total
    residuals = sums - mean * every
    seconds = effective_size(residuals)
    by_seconds = _cached_t_quantile(seconds - 1) * float(np.std(residuals, ddof=1)) / math.sqrt(seconds)
    half = max(by_seconds, _half_width_of_batches(residuals)) * len(every) / total
    return Interval(mean - half, mean + half, seconds)


def wilson_interval(share: float, size: float) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share of this many."""
    if size <= 0:
        return 0.0, 1.0
    square = _NORMAL_QUANTILE**2
    middle = (share + square / (2 * size)) / (1 + square / size)
    half = (
        _NORMAL_QUANTILE
        * math.sqrt(share * (1 - share) / size + square / (4 * size**2))
        / (1 + square / size)
    )
    # At both ends rounding may leave a little that is not there.
    return max(0.0, middle - half) if share > 0 else 0.0, min(1.0, middle + half) if share < 1 else 1.0


def _half_width_of_batches(series: Series) -> float:
    """Return how far the mean may be off (95 %), by the means of a few long batches.

    What is alike for longer than a run shows by its autocorrelation can still be seen in these.
    """
    length = len(series) // _LONG_BATCH_COUNT
    means = series[len(series) - length * _LONG_BATCH_COUNT :].reshape(_LONG_BATCH_COUNT, length).mean(axis=1)
    return (
        _cached_t_quantile(_LONG_BATCH_COUNT - 1)
        * float(np.std(means, ddof=1))
        / math.sqrt(_LONG_BATCH_COUNT)
    )


# -- is it steady? ------------------------------------------------------------------------------------


def find_warm_up(series: Series) -> int | None:
    """Return how many seconds to leave out at the beginning (MSER-5); None: not steady yet.

    What is left has the least squared standard error of all cuts in the first half, or hardly more.
    """
    count = len(series) // _MSER_BATCH_SECONDS
    if count < 4:
        return 0
    means = series[: count * _MSER_BATCH_SECONDS].reshape(count, _MSER_BATCH_SECONDS).mean(axis=1)
    # Sums of what is left after each cut.
    left = np.arange(count, 0, -1)
    centred = means - means.mean()
    sums = centred[::-1].cumsum()[::-1]
    squares = (centred**2)[::-1].cumsum()[::-1]
    # Of means that are all alike rounding may leave less than nothing.
    errors = np.maximum(squares - sums**2 / left, 0.0) / left**2
    errors = errors[: (count + 1) // 2]
    cut = int(np.flatnonzero(errors <= (1 + _CUT_TOLERANCE) * errors.min())[0])
    return None if cut and cut == (count + 1) // 2 - 1 else cut * _MSER_BATCH_SECONDS


def estimate_drift(series: Series, share: float = _CONFIDENCE_SHARE) -> Interval | None:
    """Return the interval of the change a minute, as a share of the mean; None where nothing is known.

    The slope is that of a straight line. Its interval counts effective seconds of what is left of the
    series without the line; a rank test would take autocorrelation for a trend.
    """
    count, mean = len(series), float(series.mean()) if len(series) else 0.0
    if count < _MIN_DRIFT_SECONDS or mean <= 0:
        return None
    times = np.arange(count) - (count - 1) / 2
    slope = float(times @ series / (times @ times))
    left = series - mean - slope * times
    size = effective_size(left)
    half = (
        _cached_t_quantile(size - 2, share) * float(np.std(left)) / (float(np.std(times)) * math.sqrt(size))
    )
    return Interval(60 * (slope - half) / mean, 60 * (slope + half) / mean, size)


def estimate_climb(series: Series) -> float:
    """Return by how much a value each second rises a second; 0 where chance may do that, and if it falls.

    A queue that grows is a random walk with a drift, so that its steps are independent. Those of values that
    stay at a level undo each other, so that these are called rising less often than is reckoned with.
    """
    if len(series) < _MIN_CLIMB_SECONDS:
        return 0.0
    steps = np.diff(series)
    mean = float(steps.mean())
    half = (
        _cached_t_quantile(len(steps) - 1, _CLIMB_CONFIDENCE)
        * float(np.std(steps, ddof=1))
        / math.sqrt(len(steps))
    )
    return mean if mean > half else 0.0


def is_steady(series: Series) -> bool:
    """Whether nothing shows that the series was still changing when it ended."""
    found = estimate_drift(series, _DRIFT_CONFIDENCE) if len(series) >= MIN_STEADY_SECONDS else None
    if found is None:
        return True
    changed = abs(found.low + found.high) / 2 * len(series) / 60
    return found.low <= 0 <= found.high or changed <= _MAX_DRIFT_SHARE


# -- is there a step? ------------------------------------------------------------------------------


#: A series is taken in no more parts than this, so that an hour costs as much as four minutes.
_MAX_PARTS = 240

#: In fewer seconds a step cannot be distinguished from noise; each level lasts so many parts at least.
MIN_STEP_SECONDS = 20
_MIN_PARTS = 5

#: The change has to be so many of its standard errors, and of the standard deviations of what is left, or
#: very many of the former: 1 or 2 of 100 steady runs have that at an autocorrelation of 0.8. Standard errors
#: alone do not tell them apart, because autocorrelation is least known where a run is short. Of n parts
#: it has to be 2.2 + 6 / sqrt(n) standard deviations.
_MIN_ERRORS = 4.5
_MIN_DEVIATIONS = 2.2
_MORE_OF_FEW = 6.0
_MANY_ERRORS = 7.0

#: A step by less than this share of the mean does not matter.
_MIN_STEP_SHARE = 0.05

#: At least this share of the seconds of each level is on its own side of the middle; it is not where the
#: difference comes from one outlier or a short stall.
_MIN_SEPARATED_SHARE = 0.8

#: Which part of the second in which it changes may be of the new level.
_FRACTIONS = np.array([[1.0], [0.75], [0.5], [0.25]])

_MAX_STEP_CORRELATION = 0.95

#: How evident a step has to be besides, in so few seconds that no drift is known: half as many runs whose
#: noise is much alike have one then.
_MIN_EVIDENCE = 14.0


class Step(msgspec.Struct, frozen=True):
    """A change of the rate from one level to another."""

    at: Offset  # when it was
    before: PerSecond  # the rate before it
    after: PerSecond  # the rate after it
    gradual: bool  # a straight line fits better, so that it was a change all along


class _Fit(msgspec.Struct, frozen=True):
    """Two levels that fit best where the new one begins at a given place."""

    place: int  # the part of the series in which the new level begins
    fraction: float  # the part of that part that has the new level
    before: float
    change: float
    errors: float  # the change in standard errors

    def levels(self, count: int) -> Series:
        """Return the level at each place."""
        found = np.full(count, self.before)
        found[self.place :] += self.change
        found[self.place] = self.before + self.fraction * self.change
        return found


def find_step(series: Series, offset: float = 0.0) -> Step | None:
    """Return the step of a value each second, if any; the first is ``offset`` seconds after the start.

    The two parts of a steady run always differ, as seconds are much like those before them. So a *step*, a
    change from one level of the rate to another, is looked for in noise that fades (a first-order
    autoregressive process): by generalized least squares, at each place, with the autocorrelation that is
    left when the step is taken out.
    """
    length = math.ceil(len(series) / _MAX_PARTS) or 1
    parts = _average_parts(series, length)
    found = _find_levels(parts) if len(series) >= MIN_STEP_SECONDS and len(parts) >= 2 * _MIN_PARTS else None
    if found is None:
        return None
    # It has begun within the part in which it is.
    at = (found.place + 1 - found.fraction) * length + offset
    after = found.before + found.change
    return Step(at, max(0.0, found.before), max(0.0, after), _is_line(parts, found))


def remove_step(series: Series) -> Series:
    """Return a series with the same mean, and without the step that it has, for the noise that is left."""
    length = math.ceil(len(series) / _MAX_PARTS) or 1
    found = find_step(series)
    if found is None:
        return series
    levels = np.where(np.arange(len(series)) + length / 2 < found.at, found.before, found.after)
    return np.asarray(series - levels + levels.mean())


def _average_parts(series: Series, length: int) -> Series:
    count = len(series) // length
    return np.asarray(series[: count * length].reshape(count, length).mean(axis=1))


def _find_levels(parts: Series) -> _Fit | None:
    """Return the two levels that fit best, where they are clearly two."""
    found = _fit_levels(parts, 0.0)
    for _ in range(3):
        found = _fit_levels(parts, _estimate_fading(parts - found.levels(len(parts))))
    change, left = abs(found.change), float(np.std(parts - found.levels(len(parts))))
    deviations = _MIN_DEVIATIONS + _MORE_OF_FEW / math.sqrt(len(parts))
    is_clear = found.errors >= _MANY_ERRORS or change >= deviations * left
    if found.errors < _MIN_ERRORS or not is_clear or change < _MIN_STEP_SHARE * float(parts.mean()):
        return None
    if len(parts) < MIN_STEADY_SECONDS and measure_step_evidence(parts) < _MIN_EVIDENCE:
        return None
    beyond = (parts - found.before - found.change / 2) * found.change > 0
    whole = found.place + (found.fraction < 1)
    return (
        found
        if min(1 - beyond[: found.place].mean(), beyond[whole:].mean()) >= _MIN_SEPARATED_SHARE
        else None
    )


def _estimate_fading(left: Series) -> float:
    """Return how much of the noise at one place is left at the next, where this is left of two levels."""
    # A constant that rounding leaves of levels without noise has no correlation.
    if not float(np.ptp(left)) > 0:
        return 0.0
    # Each of the levels takes some of what neighbours have in common with it.
    return min(max(estimate_autocorrelation(left, 1) + 1 / (len(left) - 4), 0.0), _MAX_STEP_CORRELATION)


def _fit_levels(parts: Series, fading: float) -> _Fit:
    """Return the two levels that fit best in noise of which so much is left at the next place.

    Each value less the share of the one before that is left has noise of its own alone, so that least squares
    apply: the constant becomes ``constant``, and the step a column that follows from its place.
    """
    count = len(parts)
    noise = parts.copy()
    noise[1:] -= fading * parts[:-1]
    constant = np.full(count, 1 - fading)
    noise[0] *= math.sqrt(1 - fading**2)
    constant[0] = math.sqrt(1 - fading**2)
    of_constant, product = float(constant @ constant), float(constant @ noise)
    spread = float(noise @ noise) - product**2 / of_constant
    places = np.arange(_MIN_PARTS, count - _MIN_PARTS + 1)
    after, sums = count - places - 2, np.cumsum(noise[::-1])[::-1]
    # The column of the step: its part at its place, what is left of that at the next, then the constant. Of
    # each fraction there is a row, of each place a column.
    following = 1 - fading * _FRACTIONS
    squares = _FRACTIONS**2 + following**2 + (1 - fading) ** 2 * after
    common = (1 - fading) * (_FRACTIONS + following + (1 - fading) * after)
    own = _FRACTIONS * noise[places] + following * noise[places + 1] + (1 - fading) * sums[places + 2]
    divisor = squares - common**2 / of_constant
    changes = (own - common * product / of_constant) / divisor
    gains = changes**2 * divisor
    row, column = divmod(int(np.argmax(gains)), len(places))
    gain, change = float(gains[row, column]), float(changes[row, column])
    left = max(spread - gain, 0.0) / (count - 3)
    errors = math.sqrt(gain / left) if left > 0 else math.inf
    before = (product - float(common[row, column]) * change) / of_constant
    return _Fit(int(places[column]), float(_FRACTIONS[row, 0]), before, change, errors)


def _is_line(parts: Series, step: _Fit) -> bool:
    """Whether a straight line leaves less than the step."""
    times = np.arange(len(parts)) - (len(parts) - 1) / 2
    line = parts.mean() + times * float(times @ parts) / float(times @ times)
    lines, levels = parts - line, parts - step.levels(len(parts))
    return bool(lines @ lines < levels @ levels)
