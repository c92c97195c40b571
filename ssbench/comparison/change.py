"""By how much a figure changed, how certain that is, and which word describes it.

Times and rates are compared by their logarithms, so that a change is a ratio. Which interval there is
depends on what was measured: between repeated runs that of Welch's t on the runs, each of which counts
once; between single runs only what the runs know of themselves, without what differs from run to run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from statistics import fmean, variance

from ssbench.comparison.figures import Figure, Sample
from ssbench.statistics.confidence import t_quantile

#: Runs a side that allow a word.
ENOUGH_RUNS = 4

#: Changes within this share are noise, whatever their interval.
NOISE = 0.01

_SURE = 0.975
_POWER = 0.90

#: No more runs a side than this are ranked exactly; the number of ways to deal them out grows fast.
_MOST_RANKED = 40


@dataclass(frozen=True, slots=True)
class Change:
    """The change of a figure from before to after, as a share of before; of shares, their difference.

    ``low`` and ``high`` are its 95 % interval, None where there is none. ``word`` is "slower", "faster",
    "more errors", "fewer errors" or "no difference shown", and None where what was measured allows no word.
    ``shows`` is the change that 9 of 10 such comparisons would have shown. ``rank_p`` is the probability of
    the exact Mann-Whitney test.
    """

    before: float | None
    after: float | None
    change: float | None = None
    low: float | None = None
    high: float | None = None
    word: str | None = None
    shows: float | None = None
    rank_p: float | None = None

    @property
    def differs(self) -> bool:
        """Whether it was shown that something changed."""
        return self.word not in {None, NO_DIFFERENCE}


NO_DIFFERENCE = "no difference shown"


def between(
    figure: Figure, before: Sequence[Sample], after: Sequence[Sample], noise: float = NOISE
) -> Change:
    """Compare a figure of the runs of two sides; each may have one run or more."""
    values = [[sample.value for sample in side] for side in (before, after)]
    first, second = (_middle(figure, side) if side else None for side in values)
    if first is None or second is None:
        return Change(first, second)
    if figure.more_is_faster is None:
        return _of_shares(values[0], values[1], noise)
    logs = [[math.log(value) for value in side] for side in values]
    middle = fmean(logs[1]) - fmean(logs[0])
    if min(map(len, logs)) > 1:
        error, freedom = _welch(logs[0], logs[1])
        sure = min(map(len, logs)) >= ENOUGH_RUNS
        ranked = logs if sure else None
        return judged(figure, (first, second), (middle, error, freedom), noise, ranked, sure=sure)
    halves = [half for side in (before, after) if (half := _half_of_mean(side)) is not None]
    if len(halves) < 2:
        return Change(first, second, math.expm1(middle))
    half = math.hypot(*halves)
    return Change(first, second, math.expm1(middle), math.expm1(middle - half), math.expm1(middle + half))


def judged(
    figure: Figure,
    values: tuple[float, float],
    found: tuple[float, float, float],
    noise: float,
    ranked: Sequence[Sequence[float]] | None = None,
    *,
    sure: bool = True,
) -> Change:
    """Return the change for a difference of logarithms, its standard error and degrees of freedom."""
    middle, error, freedom = found
    half = t_quantile(_SURE, freedom) * error
    low, high = math.expm1(middle - half), math.expm1(middle + half)
    shows = math.expm1(math.log1p(noise) + half + t_quantile(_POWER, freedom) * error)
    word = _word(low, high, noise, ("slower", "faster") if figure.more_is_faster else ("faster", "slower"))
    rank_p = mann_whitney(ranked[0], ranked[1]) if ranked else None
    return Change(*values, math.expm1(middle), low, high, word if sure else None, shows, rank_p)


def _word(low: float, high: float, noise: float, words: tuple[str, str]) -> str:
    """Return the word for an interval: less, more, or neither."""
    if high < -noise:
        return words[0]
    return words[1] if low > noise else NO_DIFFERENCE


def _of_shares(before: list[float], after: list[float], noise: float) -> Change:
    first, second = fmean(before), fmean(after)
    if min(len(before), len(after)) < 2:
        return Change(first, second, second - first)
    error, freedom = _welch(before, after)
    half = t_quantile(_SURE, freedom) * error
    low, high = second - first - half, second - first + half
    sure = min(len(before), len(after)) >= ENOUGH_RUNS
    word = _word(low, high, noise * 0.1, ("fewer errors", "more errors")) if sure else None
    return Change(first, second, second - first, low, high, word)


def _middle(figure: Figure, values: list[float]) -> float:
    """Return the mean of runs: the geometric one, but of shares."""
    if figure.more_is_faster is None:
        return fmean(values)
    return math.exp(fmean(map(math.log, values)))


def _half_of_mean(side: Sequence[Sample]) -> float | None:
    """Return half the width of the interval of a side's mean, from what each run knows of itself."""
    halves = [sample.half for sample in side]
    known = [half for half in halves if half is not None]
    return math.hypot(*known) / len(known) if len(known) == len(halves) else None


def _welch(before: Sequence[float], after: Sequence[float]) -> tuple[float, float]:
    """Return the standard error of the difference of two means, and its degrees of freedom."""
    parts = [variance(side) / len(side) for side in (before, after)]
    if not sum(parts):
        return 0.0, float(len(before) + len(after) - 2)
    below = sum(part**2 / (len(side) - 1) for part, side in zip(parts, (before, after), strict=True))
    return math.sqrt(sum(parts)), sum(parts) ** 2 / below


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
