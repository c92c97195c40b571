"""By how much a figure changed, how certain that is, and which word describes it.

Times and rates are compared by their logarithms, so that a change is a ratio. Which interval there is depends
on what was measured: between repeated runs that of t on the runs, each of which counts once (of pairs where
they were measured in turn, else Welch's); between single runs only what the runs know of themselves, without
what differs from run to run.

A :class:`FigureDifference` is what was measured; :func:`judge_change` makes a :class:`FigureChange` of it.

Its word depends on how many figures are compared at once, so that luck shows a change in one of twenty
comparisons, not in each (:func:`judge_changes`): the verdict stands on head figures, which share the level;
of all others those are shown that Holm's procedure (1979) keeps. CPU of servers, which a Swift on this
machine has, answers a question of its own, whatever latencies there are: these figures are a family by
themselves.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import fmean, variance
from typing import TypeVar

import numpy as np

from ssbench.comparison.run_figures import ALL_KEY, FigureKey, FigureSample
from ssbench.document import units
from ssbench.document.figures import COMPARED_FIGURES, CPU_KEYS, Figure, count_needed_results
from ssbench.document.units import DASH
from ssbench.statistics.confidence import effective_size, t_quantile, t_tail, welch_error

_T_SHARE = 0.975

#: Fewer pairs have no interval worth the name.
_MIN_PAIRS = 2


@dataclass(frozen=True, slots=True)
class RunOrder:
    """The places of the runs of both sides in the order in which they began, from 0.

    Where one group of runs followed the other, what drifted looks like a change. A drift that is shown within
    the groups is allowed for, in its own direction. Allowing for what may have drifted and is not shown would
    cost a third of all findings (8 and 8 runs of ``bench/comparing.py``).
    """

    before: tuple[int, ...]
    after: tuple[int, ...]
    is_sequence: bool = False  # the runs are known by their order only, as in a file of another tool

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """The runs (before, after) that followed each other; none where they were not measured in turn."""
        if len(self.before) != len(self.after) or len(self.before) < _MIN_PAIRS:
            return ()
        whose = sorted(
            [(place, 0, number) for number, place in enumerate(self.before)]
            + [(place, 1, number) for number, place in enumerate(self.after)]
        )
        pairs = []
        for (_, one, first), (_, two, second) in zip(whose[::2], whose[1::2], strict=True):
            if one == two:
                return ()
            pairs.append((first, second) if one == 0 else (second, first))
        return tuple(pairs)

    @property
    def one_after_the_other(self) -> bool:
        """Whether all runs of one side began before those of the other."""
        return max(self.before) < min(self.after) or max(self.after) < min(self.before)

    def slope(self, before: Sequence[float], after: Sequence[float]) -> float:
        """Return the change from one run to the next of values, which is the same on both sides.

        The slope of least squares, each side around its own mean; 0 where no run follows another.
        """
        return self._fit(before, after)[0]

    def carried_over(self, before: Sequence[float], after: Sequence[float]) -> Drift:
        """Return the difference, after less before, that the drift within the sides explains.

        There is none where no drift is shown (Student's t of the slope, 5 %). Of runs of one sequence it is
        all that a drift may explain, in either direction: neighbours are alike, which hides a drift.
        """
        if self.is_sequence:
            return NO_DRIFT.joined(*self.may_carry_over(before, after))
        freedom = len(before) + len(after) - 3
        if not self.one_after_the_other or freedom < 1:
            return NO_DRIFT
        slope, error = self._line(before, after)
        if abs(slope) <= t_quantile(_T_SHARE, freedom) * error:
            return NO_DRIFT
        return NO_DRIFT.joined(slope * (fmean(self.after) - fmean(self.before)))

    def may_carry_over(self, before: Sequence[float], after: Sequence[float]) -> tuple[float, float]:
        """Return which differences, after less before, a drift may explain that the sides allow (95 %).

        These are the least and the most; 0 and 0 where the sides were not measured one after the other.
        """
        freedom = (len(before) + len(after)) / self.repetition(before, after) - 3
        if not self.one_after_the_other or len(before) + len(after) <= 3:
            return 0.0, 0.0
        slope, error = self._line(before, after)
        half = t_quantile(_T_SHARE, max(1.0, freedom)) * error
        distance = fmean(self.after) - fmean(self.before)
        low, high = sorted(((slope - half) * distance, (slope + half) * distance))
        return low, high

    def repetition(self, before: Sequence[float], after: Sequence[float]) -> float:
        """Return how many runs of one sequence say as much as one that is independent of its neighbours.

        It is 1 of other runs, between which there was time.
        """
        if not self.is_sequence:
            return 1.0
        slope, left = self.slope(before, after), np.zeros(len(before) + len(after))
        for places, values in ((self.before, before), (self.after, after)):
            level = fmean(values) - slope * fmean(places)
            left[list(places)] = np.array(values) - level - slope * np.array(places)
        return len(left) / effective_size(left)

    def _line(self, before: Sequence[float], after: Sequence[float]) -> tuple[float, float]:
        """Return the slope and its standard error; the latter is 0 of too few runs."""
        slope, below = self._fit(before, after)
        if not below:
            return 0.0, 0.0
        left = sum((value - slope * place) ** 2 for place, value in self._centred(before, after))
        error = math.sqrt(left / max(1, len(before) + len(after) - 3) / below)
        return slope, error * math.sqrt(self.repetition(before, after))

    def _fit(self, before: Sequence[float], after: Sequence[float]) -> tuple[float, float]:
        """Return the least-squares slope and its denominator; 0 and 0 if no run follows another."""
        centred = self._centred(before, after)
        below = sum(place**2 for place, _ in centred)
        return (sum(place * value for place, value in centred) / below if below else 0.0), below

    def _centred(self, before: Sequence[float], after: Sequence[float]) -> list[tuple[float, float]]:
        """Return the places of runs and their values, each side around its own means."""
        return [
            (place - fmean(places), value - fmean(values))
            for places, values in ((self.before, before), (self.after, after))
            for place, value in zip(places, values, strict=True)
        ]

    def drift(self, before: Sequence[float], after: Sequence[float]) -> float:
        """Return the change of values from the first run to the last that is no difference of the sides."""
        return self.slope(before, after) * (len(self.before) + len(self.after) - 1)


def find_run_order(before: Sequence[float | None], after: Sequence[float | None]) -> RunOrder | None:
    """Return the order of runs that began at these moments; None where that is not known."""
    moments = [moment for moment in (*before, *after) if moment is not None]
    if len(set(moments)) < len(before) + len(after):
        return None
    places = {moment: place for place, moment in enumerate(sorted(moments))}
    first, second = (
        tuple(places[moment] for moment in side if moment is not None) for side in (before, after)
    )
    return RunOrder(first, second)


# -- One figure ------------------------------------------------------------------------------------


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

    def joined(self, *differences: float) -> Drift:
        """This one, and differences that another drift explains."""
        return Drift(max((self.up, *differences)), max((self.down, *(-each for each in differences))))

    def with_other(self, other: Drift) -> Drift:
        """This one or another one, whichever explains more."""
        return Drift(max(self.up, other.up), max(self.down, other.down))


#: Nothing is known to have drifted.
NO_DRIFT = Drift()


@dataclass(frozen=True, slots=True)
class FigureDifference:
    """What was measured of a figure on both sides."""

    before: float | None  # mean over the runs
    after: float | None  # mean over the runs
    middle: float | None = None  # difference of the logarithms; of shares that of the values
    error: float | None = None  # standard error of ``middle``
    freedom: float = math.inf  # degrees of freedom of ``error``
    drift: Drift = NO_DRIFT  # allowed for in the interval
    between_runs: bool = False  # the error has what differs from run to run in it
    sure: bool = False  # well enough known for a word
    rank_p: float | None = None
    #: Lower end of the 95 % interval of the mean after; None of a single run but for shares of its sides.
    after_low: float | None = None
    after_high: float | None = None  # The upper end

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
    """The change of a figure; None where there is none."""

    before: float | None  # the figure before
    after: float | None  # the figure after
    change: float | None = None  # from before to after, as a share of before; of shares, their difference
    low: float | None = None  # lower end of the 95 % interval of the change
    high: float | None = None  # upper end of it
    #: One of the figure's (:attr:`~ssbench.document.figures.Figure.words`) or "no difference shown"; None
    #: where what was measured allows no word.
    word: str | None = None
    detectable: float | None = None  # the change that 9 of 10 such comparisons would have shown
    rank_p: float | None = None  # probability of the exact Mann-Whitney test
    p: float | None = None  # probability of the test on which the word stands
    error: float | None = None  # standard error of the logarithm of the ratio; of shares, of the difference
    between_runs: bool = False  # what differs from run to run is in the interval
    after_low: float | None = None  # lower end of the 95 % interval of the figure after; None of a single run
    after_high: float | None = None  # upper end of it

    @property
    def differs(self) -> bool:
        """Whether it was shown that something changed."""
        return self.word not in {None, NO_DIFFERENCE}

    @property
    def better(self) -> bool:
        """Whether it was shown that something changed for the better."""
        return self.word in _BETTER_WORDS


def is_any_shown(changes: Iterable[tuple[str, FigureChange]]) -> bool | None:
    """Whether a change of latencies, rates or CPU is shown, of those of some figures, with their keys.

    None where what was measured allows no word on any.
    """
    judged = [each.differs for key, each in changes if key != FAILURES_FIGURE and each.word is not None]
    return any(judged) if judged else None


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
        if order is not None:
            repetition = order.repetition(*scaled)
            error, freedom = error * math.sqrt(repetition), max(1.0, freedom / repetition)
        if order is None or not sure or not order.one_after_the_other:
            drift = NO_DRIFT
        else:
            drift = (NO_DRIFT if is_share else drift).with_other(order.carried_over(*scaled))
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
        before=found.before,
        after=found.after,
        change=change,
        low=low,
        high=high,
        word=word,
        detectable=detectable,
        rank_p=found.rank_p,
        p=p if found.sure else None,
        error=found.error,
        between_runs=found.between_runs,
        after_low=found.after_low,
        after_high=found.after_high,
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


# -- Many figures at once --------------------------------------------------------------------------


FigurePlace = tuple[FigureKey, str]

FAILURES_FIGURE = "errors"

#: The head figures, on which the verdict stands. Failures are one where operations failed
#: (:func:`is_measured`): latencies and rates are of those that did not.
HEADS: tuple[FigurePlace, ...] = ((ALL_KEY, FAILURES_FIGURE), (ALL_KEY, "p50"), (ALL_KEY, "rate"))


#: What is compared, and the key of the figure.
_Place = TypeVar("_Place", bound=tuple[object, str])


def share_level(places: Iterable[_Place], heads: Collection[object] = ()) -> dict[_Place, float]:
    """Return the level of each test: of heads, of CPU of servers and of all others each share 5 %.

    Without heads all are one family.
    """
    return {
        place: SIGNIFICANCE_LEVEL / len(group)
        for group in _split_tests(places, heads).values()
        for place in group
    }


def _split_tests(places: Iterable[_Place], heads: Collection[object]) -> dict[str, list[_Place]]:
    """Return the tests by the group whose error they share."""
    groups: dict[str, list[_Place]] = {}
    for place in places:
        group = "head" if place in heads else "CPU" if heads and place[1] in CPU_KEYS else "other"
        groups.setdefault(group, []).append(place)
    return groups


def judge_changes(
    found: Mapping[_Place, FigureDifference],
    noise: float,
    heads: Collection[object] = (),
    figures: Mapping[str, Figure] = COMPARED_FIGURES,
) -> dict[_Place, FigureChange]:
    """Return the changes of one family of tests, in the same order.

    The verdict stands on ``heads``, where there are such. What else is shown is what Holm's procedure keeps,
    of CPU and of the others.
    """
    tested = list_tested(found)
    levels = share_level(tested, heads)
    plain = {place: judge_change(figures[place[1]], each, noise) for place, each in found.items()}
    groups = _split_tests(tested, heads)
    shown: dict[_Place, bool] = {}
    for group in (groups.get("CPU", []), groups.get("other", [])):
        shown |= zip(group, apply_holm([plain[place].p or 0.0 for place in group]), strict=True)
    untested = SIGNIFICANCE_LEVEL / (1 if heads else max(1, len(shown)))
    return {
        place: judge_change(
            figures[place[1]], each, noise, levels.get(place, untested), shown=shown.get(place)
        )
        for place, each in found.items()
    }


def list_tested(found: Mapping[_Place, FigureDifference]) -> list[_Place]:
    """Return what a family tests: all that is known well enough and could differ."""
    return [place for place, each in found.items() if each.sure and is_measured(each)]


def is_measured(found: FigureDifference | FigureChange) -> bool:
    """Whether there is something that could differ: not where no operation failed on either side."""
    return bool(found.before or found.after)


def apply_holm(probabilities: Sequence[float]) -> list[bool]:
    """Return which are not by chance, of several probabilities, at 5 % for all of them together."""
    shown = [False] * len(probabilities)
    for rank, place in enumerate(sorted(range(len(shown)), key=lambda place: probabilities[place])):
        if probabilities[place] > SIGNIFICANCE_LEVEL / (len(shown) - rank):
            break
        shown[place] = True
    return shown


# -- Changes as people read them -------------------------------------------------------------------


#: What a dash in a table means.
NOT_KNOWN_NOTE = (
    f"-: not measured, too few operations (p99 needs {count_needed_results(99):,}), or only a lower bound, "
    "because operations that were due never began; of intervals: too wide to say anything"
)

#: An interval from less than a tenth to far more, as three runs give, says nothing.
_MAX_USEFUL_WIDTH = 0.9

#: By how much a larger change that would have been shown is larger says nothing, and may have fifteen digits.
_MAX_USEFUL_DETECTABLE = 10.0


def format_change_cells(figure: Figure, change: FigureChange) -> list[str]:
    """Return before, after, change, interval, what is detectable, the word."""
    interval = ""
    if change.low is not None and change.high is not None:
        interval = f"{units.format_change(change.low)} to {units.format_change(change.high)}"
        if not figure.is_share and is_too_wide(change.low, change.high):
            interval = DASH
    return [
        _format_value(figure, change.before),
        _format_value(figure, change.after),
        format_signed_change(figure, change),
        interval,
        "" if change.detectable is None else format_detectable(change.detectable),
        change.word or "",
    ]


def format_detectable(share: float) -> str:
    """Return in per cent which change would have been shown, or that only a very large one would."""
    if share > _MAX_USEFUL_DETECTABLE:
        return f">{100 * _MAX_USEFUL_DETECTABLE:,.0f} %"
    return f"{units.format_change_size(share)} %"


def is_too_wide(low: float, high: float) -> bool:
    """Return whether an interval of a relative change is too wide to say anything."""
    return low < -_MAX_USEFUL_WIDTH and high > _MAX_USEFUL_WIDTH


def format_signed_change(figure: Figure, change: FigureChange) -> str:
    """Return a change in per cent; of shares, in percentage points."""
    if change.change is None:
        return "-"
    return f"{units.format_change(change.change)}{'' if figure.is_share else ' %'}"


def _format_value(figure: Figure, value: float | None) -> str:
    return "-" if value is None else figure.compared_in.text(value)
