"""By how much a figure changed, how certain that is, and which word describes it.

Times and rates are compared by their logarithms, so that a change is a ratio. Which interval there is
depends on what was measured: between repeated runs that of t on the runs, each of which counts once (of
pairs where they were measured in turn, else Welch's); between single runs only what the runs know of
themselves, without what differs from run to run.

A :class:`FigureDifference` is what was measured; :func:`judge_change` makes a :class:`FigureChange` of it, whose word depends
on how many figures are compared at once (:mod:`ssbench.comparison.family`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from statistics import fmean, variance

from ssbench.comparison.figures import FigureSample
from ssbench.comparison.order import RunOrder
from ssbench.document.figures import COMPARED_FIGURES, Figure
from ssbench.statistics.confidence import t_quantile, t_tail, welch_error

#: Runs a side that allow a word.
MIN_RUNS_FOR_WORD = 4

#: Changes within this share are noise, whatever their interval.
NOISE_SHARE = 0.01

#: Of this share of comparisons in which nothing changed, a difference may be shown.
SIGNIFICANCE_LEVEL = 0.05

_DETECTION_POWER = 0.90

#: Noise of a share is this part of the noise bound: shares of errors are near 0.
SHARE_NOISE_FACTOR = 0.1

NO_DIFFERENCE = "no difference shown"


@dataclass(frozen=True, slots=True)
class Drift:
    """How much of an increase, and of a decrease, a drift explains: amounts from 0, of logarithms."""

    up: float = 0.0
    down: float = 0.0

    def turned(self) -> Drift:
        """The drift of a figure that decreases where this one's increases."""
        return Drift(self.down, self.up)

    def joined(self, difference: float) -> Drift:
        """This one, and a difference that another drift explains."""
        return Drift(max(self.up, difference), max(self.down, -difference))


#: Nothing is known to have drifted.
NO_DRIFT = Drift()


@dataclass(frozen=True, slots=True)
class FigureDifference:
    """What was measured of a figure on both sides; ``before`` and ``after`` are means over the runs.

    ``middle`` is the difference of the logarithms (of shares: of the values), ``error`` its standard error,
    with ``freedom`` degrees of freedom. ``drift`` is allowed for in its interval. ``between_runs``:
    the error has what differs from run to run in it; ``sure``: well enough for a word. ``after_low`` and
    ``after_high`` are the 95 % interval of the mean after, None of a single run but for shares of its sides.
    """

    before: float | None
    after: float | None
    middle: float | None = None
    error: float | None = None
    freedom: float = math.inf
    drift: Drift = NO_DRIFT
    between_runs: bool = False
    sure: bool = False
    rank_p: float | None = None
    after_low: float | None = None
    after_high: float | None = None

    def by_chance(self, noise: float) -> float:
        """Return how probable such a difference beyond the noise bound is where there is none (t)."""
        if self.middle is None or self.error is None:
            return 1.0
        explained = self.drift.up if self.middle > 0 else self.drift.down
        beyond = abs(self.middle) - math.log1p(noise) - explained
        if beyond <= 0:
            return 1.0
        return 2 * t_tail(beyond / self.error, self.freedom) if self.error else 0.0


#: Words for changes for the better.
_BETTER_WORDS = {each.words[0] for each in COMPARED_FIGURES.values()}


@dataclass(frozen=True, slots=True)
class FigureChange:
    """The change of a figure from before to after, as a share of before; of shares, their difference.

    ``low`` and ``high`` are its 95 % interval, None where there is none. ``word`` is one of the figure's
    (:attr:`~ssbench.document.figures.Figure.words`) or "no difference shown", and None where what was
    measured allows no word.
    ``detectable`` is the change that 9 of 10 such comparisons would have shown. ``rank_p`` is the probability
    of the exact Mann-Whitney test, ``p`` that of the test on which the word stands. ``error`` is the standard
    error of the logarithm of the ratio (of shares: of the difference). ``between_runs`` is whether what
    differs from run to run is in the interval. ``after_low`` and ``after_high`` are the 95 % interval of
    ``after`` itself, None of a single run.
    """

    before: float | None
    after: float | None
    change: float | None = None
    low: float | None = None
    high: float | None = None
    word: str | None = None
    detectable: float | None = None
    rank_p: float | None = None
    p: float | None = None
    error: float | None = None
    between_runs: bool = False
    after_low: float | None = None
    after_high: float | None = None

    @property
    def differs(self) -> bool:
        """Whether it was shown that something changed."""
        return self.word not in {None, NO_DIFFERENCE}

    @property
    def better(self) -> bool:
        """Whether it was shown that something changed for the better."""
        return self.word in _BETTER_WORDS


def compare_figure(
    figure: Figure, before: Sequence[FigureSample], after: Sequence[FigureSample], noise: float = NOISE_SHARE
) -> FigureChange:
    """Compare one figure of the runs of two sides; each may have one run or more."""
    return judge_change(figure, measure_difference(figure, before, after), noise)


def measure_difference(
    figure: Figure,
    before: Sequence[FigureSample],
    after: Sequence[FigureSample],
    order: RunOrder | None = None,
    drift: Drift = NO_DRIFT,
) -> FigureDifference:
    """Return what the runs of two sides say; ``order`` holds the places of exactly these runs in time.

    ``drift`` is the least that is allowed for, where one side was measured after the other.
    """
    values = [[sample.value for sample in side] for side in (before, after)]
    first, second = (_mean_of_runs(figure, side) if side else None for side in values)
    if first is None or second is None:
        return FigureDifference(first, second)
    is_share = figure.is_share
    scaled = values if is_share else [[math.log(value) for value in side] for side in values]
    halves = [half for side in (before, after) if (half := _half_of_mean(side)) is not None]
    # Whole intervals are known, and not how they came about.
    alone = (
        math.hypot(*halves) / t_quantile(1 - SIGNIFICANCE_LEVEL / 2, math.inf) if len(halves) == 2 else None
    )
    # Runs of few failures may be alike by chance.
    least = alone or 0.0 if is_share else 0.0
    middle = fmean(scaled[1]) - fmean(scaled[0])
    fewest = min(map(len, scaled))
    if fewest > 1:
        sure = fewest >= MIN_RUNS_FOR_WORD
        low, high = estimate_mean_interval(figure, scaled[1])
        if order is not None and (pairs := order.pairs):
            differences = [scaled[1][two] - scaled[0][one] for one, two in pairs]
            error = math.sqrt(variance(differences) / len(differences))
            return FigureDifference(
                first,
                second,
                middle,
                max(error, least),
                len(pairs) - 1.0,
                between_runs=True,
                sure=sure,
                after_low=low,
                after_high=high,
            )
        ranked = mann_whitney_probability(*scaled) if sure and not is_share else None
        error, freedom = welch_error(scaled[0], scaled[1])
        if order is None or not sure or not order.one_after_the_other:
            drift = NO_DRIFT
        else:
            drift = (NO_DRIFT if is_share else drift).joined(order.carried_over(*scaled))
        return FigureDifference(
            first,
            second,
            middle,
            max(error, least),
            freedom,
            drift,
            between_runs=True,
            sure=sure,
            rank_p=ranked,
            after_low=low,
            after_high=high,
        )
    return FigureDifference(first, second, middle, alone)


def judge_change(
    figure: Figure,
    found: FigureDifference,
    noise: float,
    level: float = SIGNIFICANCE_LEVEL,
    *,
    shown: bool | None = None,
) -> FigureChange:
    """Return the change; it is ``shown`` where its probability by chance is at most ``level``, if not given.

    The interval is of 95 %, whatever the level, which that what is detectable follows.
    """
    if found.middle is None:
        return FigureChange(found.before, found.after)
    is_share = figure.is_share
    noise = noise * SHARE_NOISE_FACTOR if is_share else noise
    plain = (lambda value: value) if is_share else math.expm1
    change = plain(found.middle)
    if found.error is None:
        return FigureChange(found.before, found.after, change)
    half = t_quantile(1 - SIGNIFICANCE_LEVEL / 2, found.freedom) * found.error
    low, high = plain(found.middle - half - found.drift.up), plain(found.middle + half + found.drift.down)
    p = found.by_chance(noise)
    word = detectable = None
    if found.sure:
        if shown is None:
            shown = p <= level
        word = figure.word(found.middle) if shown else NO_DIFFERENCE
        reach = (
            t_quantile(1 - level / 2, found.freedom) + t_quantile(_DETECTION_POWER, found.freedom)
        ) * found.error
        detectable = plain(math.log1p(noise) + max(found.drift.up, found.drift.down) + reach)
    return FigureChange(
        found.before,
        found.after,
        change,
        low,
        high,
        word,
        detectable,
        found.rank_p,
        p if found.sure else None,
        found.error,
        found.between_runs,
        found.after_low,
        found.after_high,
    )


def _mean_of_runs(figure: Figure, values: list[float]) -> float:
    """Return the mean of runs: the geometric one, but of shares."""
    if figure.is_share:
        return fmean(values)
    return math.exp(fmean(map(math.log, values)))


def estimate_mean_interval(figure: Figure, scaled: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval of the mean of two runs or more, by Student's t; ``scaled`` are logarithms."""
    half = t_quantile(1 - SIGNIFICANCE_LEVEL / 2, len(scaled) - 1.0) * math.sqrt(
        variance(scaled) / len(scaled)
    )
    low, high = fmean(scaled) - half, fmean(scaled) + half
    return (max(0.0, low), high) if figure.is_share else (math.exp(low), math.exp(high))


def _half_of_mean(side: Sequence[FigureSample]) -> float | None:
    """Return half the width of the interval of a side's mean, from what each run knows of itself."""
    halves = [sample.half for sample in side]
    known = [half for half in halves if half is not None]
    return math.hypot(*known) / len(known) if len(known) == len(halves) else None


#: No more runs a side than this are ranked exactly; the number of ways to deal them out grows fast.
_MAX_RANKED_RUNS = 40


def mann_whitney_probability(before: Sequence[float], after: Sequence[float]) -> float | None:
    """Return the probability of ranks as uneven as these by chance, exactly; None for too many runs.

    Ties count half, which makes it a little too large.
    """
    first, second = len(before), len(after)
    if max(first, second) > _MAX_RANKED_RUNS:
        return None
    above = sum((a > b) + (a == b) / 2 for a in after for b in before)
    least = math.floor(min(above, first * second - above))
    ways = sum(_count_orders(first, second, count) for count in range(least + 1))
    return min(1.0, 2 * ways / math.comb(first + second, first))


@cache
def _count_orders(first: int, second: int, above: int) -> int:
    """Return in how many orders of two groups this many pairs have the second group's value above."""
    if above < 0 or not first or not second:
        return int(above == 0)
    return _count_orders(first - 1, second, above - second) + _count_orders(first, second - 1, above)
