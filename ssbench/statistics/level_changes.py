"""Whether a value each second changed: evenly, at the beginning, for a while, or to another level.

Noise that fades (a first-order autoregressive process) goes up and down by itself. So a change is *evident*
where a run with it is much likelier than the likeliest one without: twice the logarithm of their ratio, each
with the autocorrelation that fits it best. ``doc/methods.rst`` says how often that is wrong.

:func:`ssbench.statistics.confidence.find_step` finds steps in longer runs; what is found here are those of
few seconds, and changes that are no step.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from enum import Enum

import msgspec
import numpy as np
import numpy.typing as npt

from ssbench.base.record import Offset

_Series = npt.NDArray[np.float64]
_Places = npt.NDArray[np.intp]

#: Autocorrelations from one value to the next that are tried.
_FADINGS: _Series = np.array([0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98])[:, None]

#: In fewer values nothing is found; each level has at least so many.
MIN_VALUES = 10
_MIN_LEVEL = 5

#: A series is taken in no more parts than this, so that an hour costs as much as four minutes.
_MAX_PARTS = 240

#: A level for a while has at least so many values, or this part of the run, so that it is no burst: 6 of 18,
#: 7 from 21 on. Around it are as many at least.
_MIN_PASSING, _LONG_PASSING, _PASSING_PART = 6, 7, 4
_MIN_AROUND, _AROUND_PART = 3, 8

#: How much of the first value of a new level may have it.
_PARTS = (1.0, 0.75, 0.5, 0.25)

#: Values at the beginning that may be of another level.
_BURST_LENGTHS = (2, 3, 4)

#: How evident a change has to be. In noise alone one in a hundred runs reaches 23 with a step (9 to 17 of ten
#: to nineteen values), 28 with a level for a while, 15 with another beginning, 15 with a slope.
_EVIDENT_STEP, _EVIDENT_BURST, _EVIDENT_SLOPE = 20.0, 35.0, 15.0
_EVIDENT_PASSING, _EVIDENT_PASSING_MORE = 26.0, 0.1

#: And how large, as a share of the mean: the change; of another beginning, what that does to the mean.
_LEAST_STEP, _LEAST_PASSING, _LEAST_SLOPE, _LEAST_MOVED = 0.1, 0.2, 0.3, 0.05

#: At least this share of the values of each level is on its own side of the middle.
_MIN_SEPARATED_SHARE = 0.8


class ChangeShape(Enum):
    """How a value changed."""

    STEP = "step"  # from one level to another
    BURST = "burst"  # it had another level for a few seconds at the beginning
    PASSING = "passing"  # it had another level for a while
    SLOPE = "slope"  # evenly all along


class Change(msgspec.Struct, frozen=True):
    """A change of a value, in the value's unit."""

    shape: ChangeShape  # how it changed
    start: Offset  # when it began to have its other level
    end: Offset  # when it no longer had
    #: The level before (of a slope at the beginning), or around.
    before: float
    after: float  # the other level (of a slope that at the end)


class _Found(msgspec.Struct, frozen=True):
    """A change of a zero-mean series."""

    shape: ChangeShape
    first: int
    last: int
    change: float
    evidence: float  # how evident it is, as a multiple of how evident it has to be
    before: float = 0.0  # how much of its first value is still of the level before


class _Whitened:
    """A series with the autoregressive part subtracted, for each of several autocorrelations."""

    def __init__(self, series: _Series) -> None:
        self.count = len(series)
        self._root = np.sqrt(1 - _FADINGS**2)
        self._noise = self._whiten(series)
        self._constant = self._whiten(np.ones(self.count))
        self._squares = (self._constant**2).sum(1, keepdims=True)
        self._product = (self._constant * self._noise).sum(1, keepdims=True)
        self._left = (self._noise**2).sum(1, keepdims=True) - self._product**2 / self._squares
        self._sums = np.concatenate([np.zeros((len(_FADINGS), 1)), np.cumsum(self._noise, axis=1)], axis=1)
        self._without = float(self._likelihood(self._left).max())

    def try_levels(self, first: _Places, last: _Places, part: float = 1.0) -> tuple[float, int, float]:
        """Return how evident the best of some levels is, from ``first`` to before ``last``.

        With that its place among them, and by how much it is above the rest. Each has two values or more.
        ``part`` is how much of its first value has the new level, where that is not the first of all.
        """
        at_start, until_end = first == 0, last == self.count
        begin = np.where(at_start, self._root, part)
        own, inner, second = 1 - _FADINGS, last - first - 2, 1 - _FADINGS * np.where(at_start, 1.0, part)
        own_squares = begin**2 + second**2 + inner * own**2 + np.where(until_end, 0.0, _FADINGS**2)
        common = np.where(at_start, self._root**2, own * part) + own * (second + inner * own)
        common -= np.where(until_end, 0.0, _FADINGS * own)
        following = np.minimum(last, self.count - 1)
        product = (
            begin * self._noise[:, first]
            + second * self._noise[:, first + 1]
            + own * (self._sums[:, last] - self._sums[:, first + 2])
            - np.where(until_end, 0.0, _FADINGS * self._noise[:, following])
        )
        return self._find_best(own_squares, common, product)

    def try_curve(self, curve: _Series) -> tuple[float, float]:
        """Return the evidence for a zero-mean curve in the series, and its amplitude."""
        line = self._whiten(curve)
        evidence, _, times = self._find_best(
            (line**2).sum(1, keepdims=True),
            (line * self._constant).sum(1, keepdims=True),
            (line * self._noise).sum(1, keepdims=True),
        )
        return evidence, times

    def _whiten(self, series: _Series) -> _Series:
        found = series - _FADINGS * np.concatenate([[0.0], series[:-1]])
        found[:, :1] = self._root * series[0]
        return np.asarray(found)

    def _find_best(self, squares: _Series, common: _Series, product: _Series) -> tuple[float, int, float]:
        divisor = squares - common**2 / self._squares
        changes = (product - common * self._product / self._squares) / divisor
        likelihood = self._likelihood(self._left - changes**2 * divisor)
        row, place = divmod(int(np.argmax(likelihood)), likelihood.shape[1])
        return 2 * (float(likelihood[row, place]) - self._without), place, float(changes[row, place])

    def _likelihood(self, left: _Series) -> _Series:
        """Return the log likelihoods of noise with these sums of squares."""
        least = np.finfo(float).tiny  # of a series without noise rounding may leave less than nothing
        return np.asarray(np.log(self._root) - self.count / 2 * np.log(np.maximum(left, least) / self.count))


def measure_step_evidence(series: _Series) -> float:
    """Return how evident the best step of a series is: of :data:`MIN_VALUES` or more, not all equal."""
    return _try_step(_Whitened(series - series.mean())).evidence * _EVIDENT_STEP


def find_change(
    values: _Series,
    offset: float = 0.0,
    curve: _Series | None = None,
    *,
    longest_step: float = math.inf,
    longest_slope: float = math.inf,
) -> Change | None:
    """Return the most evident change of a value each second, if any.

    ``values`` are shares by which each is above a mean, or differences of logarithms; the first is ``offset``
    seconds after the start. What rises evenly goes like a ``curve``, a straight line by default. In more than
    ``longest_step`` and ``longest_slope`` seconds none of that shape is looked for.
    """
    length = math.ceil(len(values) / _MAX_PARTS) or 1
    parts = _average(values, length)
    count = len(parts)
    if count < MIN_VALUES or not float(np.ptp(parts)) > 0:
        return None
    course = _average(np.arange(float(len(values))) if curve is None else curve, length)
    longest = {ChangeShape.STEP: longest_step, ChangeShape.SLOPE: longest_slope}
    found = [
        each
        for each in _try_changes(parts - parts.mean(), course - course.mean())
        if each.evidence >= 1 and len(values) <= longest.get(each.shape, math.inf)
    ]
    if not found:
        return None
    best = max(found, key=lambda each: each.evidence)
    is_inside = np.zeros(count, bool)
    is_inside[best.first : best.last] = True
    if best.shape is ChangeShape.SLOPE:
        rise = best.change / (course[-1] - course[0])
        before, after = (parts.mean() + rise * (course[each] - course.mean()) for each in (0, -1))
    else:
        before, after = parts[~is_inside].mean(), parts[is_inside].mean()
    start, end = (best.first + best.before) * length + offset, best.last * length + offset
    return Change(best.shape, start, end, float(before), float(after))


def _average(values: _Series, length: int) -> _Series:
    count = len(values) // length
    return np.asarray(values[: count * length].reshape(count, length).mean(axis=1))


def _try_changes(values: _Series, curve: _Series) -> Iterator[_Found]:
    """Yield the best change of each shape that is large enough, whether it is evident or not."""
    count = len(values)
    whitened = _Whitened(values)
    if float(np.ptp(curve)) > 0:
        evidence, times = whitened.try_curve(curve)
        change = times * float(curve[-1] - curve[0])
        if abs(change) >= _LEAST_SLOPE:
            yield _Found(ChangeShape.SLOPE, 0, count, change, evidence / _EVIDENT_SLOPE)
    step = _try_step(whitened)
    if abs(step.change) >= _LEAST_STEP and _is_separated(values, step):
        yield step
    last = np.array(_BURST_LENGTHS)
    evidence, place, change = whitened.try_levels(np.zeros_like(last), last)
    burst = _Found(ChangeShape.BURST, 0, int(last[place]), change, evidence / _EVIDENT_BURST)
    if abs(change) * burst.last >= _LEAST_MOVED * count:
        yield burst
    shortest = max(_MIN_PASSING, min(_LONG_PASSING, count // 3), count // _PASSING_PART)
    around = max(_MIN_AROUND, count // _AROUND_PART)
    begins, lengths = np.meshgrid(np.arange(around, count), np.arange(shortest, count))
    is_inside = begins + lengths <= count - around
    first, last = begins[is_inside], (begins + lengths)[is_inside]
    if len(first):
        evidence, place, change = whitened.try_levels(first, last)
        needed = _EVIDENT_PASSING + _EVIDENT_PASSING_MORE * count
        passing = _Found(ChangeShape.PASSING, int(first[place]), int(last[place]), change, evidence / needed)
        if abs(change) >= _LEAST_PASSING and _is_separated(values, passing):
            yield passing


def _try_step(whitened: _Whitened) -> _Found:
    """Return the best step, whether it is evident or not."""
    first = np.arange(_MIN_LEVEL, whitened.count - _MIN_LEVEL + 1)
    tried = (
        (*whitened.try_levels(first, np.full_like(first, whitened.count), part), part) for part in _PARTS
    )
    evidence, place, change, part = max(tried)
    return _Found(
        ChangeShape.STEP, int(first[place]), whitened.count, change, evidence / _EVIDENT_STEP, 1 - part
    )


def _is_separated(values: _Series, found: _Found) -> bool:
    """Whether most values of each level are on its own side of the middle, so that no outlier makes it."""
    is_inside = np.zeros(len(values), bool)
    is_inside[found.first : found.last] = True
    middle = (values[is_inside].mean() + values[~is_inside].mean()) / 2
    beyond = (values - middle) * found.change > 0
    share = min(float(beyond[is_inside].mean()), 1 - float(beyond[~is_inside].mean()))
    return share >= _MIN_SEPARATED_SHARE
