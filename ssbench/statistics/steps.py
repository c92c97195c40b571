"""Whether, and when, the rate of a run changed from one level to another: a step.

What a store does in one second is much like what it did in the second before, so that the two parts of a
steady run always differ. So a step is looked for as a change of level in noise that fades (a first-order
autoregressive process): by generalized least squares, at each place, with the autocorrelation that is left
when the step is taken out. ``doc/numbers.rst`` says how often that is right.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np

from ssbench.base.measures import Offset, PerSecond
from ssbench.statistics.confidence import Series, estimate_autocorrelation

#: A series is taken in no more parts than this, so that an hour costs as much as four minutes.
_MAX_PARTS = 240

#: In fewer seconds a step cannot be distinguished from noise; each level lasts so many parts at least.
_MIN_SECONDS = 20
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


class Step(msgspec.Struct, frozen=True):
    """A step: ``at`` seconds after the start of the window, and the rates before and after it.

    With ``gradual`` a straight line fits better, so that it was a change all along.
    """

    at: Offset
    before: PerSecond
    after: PerSecond
    gradual: bool = False


class _Fit(msgspec.Struct, frozen=True):
    """Two levels: the new one begins with this part of the part ``place``; ``errors`` of it is the change."""

    place: int
    fraction: float
    before: float
    change: float
    errors: float

    def levels(self, count: int) -> Series:
        """Return the level at each place."""
        found = np.full(count, self.before)
        found[self.place :] += self.change
        found[self.place] = self.before + self.fraction * self.change
        return found


def find_step(series: Series, offset: float = 0.0) -> Step | None:
    """Return the step of a value each second, if any; the first is ``offset`` seconds after the start."""
    length = math.ceil(len(series) / _MAX_PARTS) or 1
    parts = _average_parts(series, length)
    found = _find_levels(parts) if len(series) >= _MIN_SECONDS and len(parts) >= 2 * _MIN_PARTS else None
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
    beyond = (parts - found.before - found.change / 2) * found.change > 0
    whole = found.place + (found.fraction < 1)
    return (
        found
        if min(1 - beyond[: found.place].mean(), beyond[whole:].mean()) >= _MIN_SEPARATED_SHARE
        else None
    )


def _estimate_fading(left: Series) -> float:
    """Return how much of the noise at one place is left at the next, where this is left of two levels."""
    if not left @ left > 0:
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
    after, sums = count - places - 2, np.concatenate([np.cumsum(noise[::-1])[::-1], [0.0]])
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
