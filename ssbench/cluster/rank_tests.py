"""Do requests that a server took part in take longer than others of the same kind? A regression of ranks.

Requests are compared within *strata* only: requests of one kind. In each, a request's score is its rank
divided by n + 1, less the mean (van Elteren's weights of the Wilcoxon test). Scores of another kind make
other tests of the same machinery: 1 for the slowest tenth and 0 else is the test of Mantel and Haenszel.

These scores are regressed on who took part. The slices of the run are in the regression, for each group of
strata: who took part in some part of the run only is compared with the others of that part, so that what
slows all requests for a while tells nothing of them. The deviate of a candidate is the sum of what is left of
the scores of its requests, by the standard deviation over all permutations within the strata: standard normal
where taking part does not matter. (:meth:`Units.split` holds another one's taking part fixed.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from ssbench.base.record import PerhapsSeconds

FloatArray = npt.NDArray[np.float64]
#: Whole numbers of any width; products need 64 bits.
IntegerArray = npt.NDArray[np.integer[Any]]

#: The very slowest are this share of all units, but at least and at most so many.
_VERY_SLOW = (0.01, 8, 60)
_MAX_TAIL_SLICES = 100
#: A kind has a median to compare with from so many units on.
_MIN_IN_TAIL_KIND = 5
#: A test needs this many requests on either side.
MIN_TEST_REQUESTS = 8

#: So many candidates have numbers of 16 bits.
_MAX_SMALL_CANDIDATES = 1 << 16

#: The probability below which what is said beside a verdict counts as evident.
_EVIDENT_PROBABILITY = 0.01
#: A run is divided into this many slices, or into fewer where a slice would have fewer units than the
#: next number.
_MAX_SLICES = 20
_MIN_IN_SLICE = 20
#: Dispersion is measured over at least this many slices, and only from deviates this large.
_MIN_SLICES = 5
_LARGE_DEVIATE = 2.0
#: A candidate of whose taking part less than this share is left beside slices cannot be tested.
_LEAST_LEFT = 1e-6


@dataclass(frozen=True)
class Units:
    """What is compared."""

    seconds: FloatArray
    stratum: IntegerArray  # the kind of each
    group: IntegerArray  # the group of each kind
    slices: IntegerArray | None = None  # part of the run that each belongs to; None: that does not matter
    #: Whether deviates are to allow for differences between slices that come and go.
    is_dispersed: bool = False

    def __len__(self) -> int:
        return len(self.seconds)

    @cached_property
    def order(self) -> IntegerArray:
        """The places in the order of strata, and of seconds within each; 32 bits are enough."""
        return np.lexsort((self.seconds, self.stratum)).astype(np.int32)

    def split(self, mask: npt.NDArray[np.bool_]) -> Units:
        """Return the same with each stratum split in two: where the mask is True, and where it is not."""
        codes = self.stratum * 2 + mask
        used = np.bincount(codes, minlength=2 * len(self.group)) > 0
        stratum = (np.cumsum(used, dtype=np.int32) - 1)[codes]
        made = replace(self, stratum=stratum, group=np.repeat(self.group, 2)[used])
        # Of a million units, sorting takes most of the time: those of each half stay in their order.
        halves = mask[self.order]
        sizes = np.bincount(self.stratum, minlength=len(self.group))
        with_ = np.bincount(self.stratum[mask], minlength=len(self.group))
        order = np.empty(len(self), np.int32)
        order[np.arange(int(with_.sum())) + np.repeat(np.cumsum(sizes - with_), with_)] = self.order[halves]
        before = np.cumsum(with_) - with_
        rest = np.arange(len(self) - int(with_.sum())) + np.repeat(before, sizes - with_)
        order[rest] = self.order[~halves]
        return made._ordered(order)

    def at(self, places: IntegerArray) -> Units:
        """Return the units at some places, each once."""
        slices = None if self.slices is None else self.slices[places]
        made = replace(self, seconds=self.seconds[places], stratum=self.stratum[places], slices=slices)
        if "order" not in vars(self):
            return made
        place_of = np.full(len(self), -1, np.int32)
        place_of[places] = np.arange(len(places))
        moved = place_of[self.order]
        return made._ordered(moved[moved >= 0])

    def _ordered(self, order: IntegerArray) -> Units:
        """Take an order that is known without sorting."""
        vars(self)["order"] = order
        return self


@dataclass(frozen=True, slots=True)
class Pairs:
    """Who took part in what, each pair once."""

    unit: IntegerArray  # place of a unit
    candidate: IntegerArray  # place of a candidate
    count: int  # number of candidates

    def of(self, candidate: int, units: int) -> npt.NDArray[np.bool_]:
        """Return which of the units a candidate took part in."""
        mask = np.zeros(units, np.bool_)
        mask[self.unit[self.candidate == candidate]] = True
        return mask


@dataclass(frozen=True, slots=True)
class Deviates:
    """For each group (the last row: all together) and candidate: deviates, and counts.

    A deviate is NaN where a test cannot tell: too few on either side, or always or never in it.
    """

    z: FloatArray
    with_: IntegerArray
    without: IntegerArray


def sort_distinct(numbers: IntegerArray) -> IntegerArray:
    """Return each number once, in order.

    Of millions of them np.unique, which hashes, takes five times as long.
    """
    return _drop_repeats(np.sort(numbers))


def _drop_repeats(ordered: IntegerArray) -> IntegerArray:
    new = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    return ordered if new.all() else ordered[new]


def make_pairs(unit: IntegerArray, candidate: IntegerArray, count: int) -> Pairs:
    """Make pairs, each once."""
    codes = unit.astype(np.int64)
    codes *= count
    codes += candidate
    codes.sort()  # in its place: there may be ten million
    codes = _drop_repeats(codes).astype(np.int64, copy=False)
    width = max(count, 1)
    found = Pairs(np.empty(len(codes), np.int32), np.empty(len(codes), _integer_type(count)), count)
    np.floor_divide(codes, width, out=found.unit, casting="unsafe")
    np.remainder(codes, width, out=found.candidate, casting="unsafe")
    return found


def make_single_pairs(unit: IntegerArray, candidate: IntegerArray, count: int) -> Pairs:
    """Make pairs of units that are in order and have one candidate each: ``unit`` is not copied."""
    return Pairs(unit, candidate.astype(_integer_type(count)), count)


def _integer_type(count: int) -> type[np.integer[Any]]:
    """Return the type of numbers below a count, as small as there may be many of them."""
    return np.uint16 if count <= _MAX_SMALL_CANDIDATES else np.int32


def centre_scores(units: Units) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return scores less the mean of their stratum; then for each stratum its size and variance."""
    order = units.order
    stratum, seconds = units.stratum[order], units.seconds[order]
    sizes = np.bincount(units.stratum, minlength=len(units.group)).astype(np.float64)
    starts = np.concatenate(([0.0], np.cumsum(sizes)[:-1]))
    new = np.ones(len(order), np.bool_)
    new[1:] = (stratum[1:] != stratum[:-1]) | (seconds[1:] != seconds[:-1])
    tie = np.cumsum(new) - 1
    place = np.arange(1.0, len(order) + 1) - starts[stratum]
    ranks = (np.bincount(tie, place) / np.bincount(tie))[tie] if len(order) else place
    scores = np.empty(len(order))
    scores[order] = ranks / (sizes[stratum] + 1)
    means = np.bincount(units.stratum, scores, len(sizes)) / np.maximum(sizes, 1)
    scores -= means[units.stratum]
    squares = np.bincount(units.stratum, scores**2, len(sizes))
    return scores, sizes, squares / np.maximum(sizes - 1, 1)


class Regression:
    """Scores of units, of which kinds and slices of the run explain nothing any more."""

    def __init__(self, units: Units, groups: int) -> None:
        self._units, self._groups = units, groups
        self.centred, self.sizes, self.variances = centre_scores(units)
        self.scores = self.centred
        telling = self.variances > 0
        #: What is left of the variance of scores, by group: less where all takes longer for a while.
        self.left = np.ones(groups)
        self._slices = 0 if units.slices is None or not len(units) else int(units.slices.max()) + 1
        if self._slices < 2 or units.slices is None:
            self._slices = 0
            return
        of, strata = units.group[units.stratum], len(self.sizes)
        cells = units.slices.astype(np.int64) * strata + units.stratum
        counts = np.bincount(cells, minlength=self._slices * strata).reshape(self._slices, strata)
        #: How many units of each kind a slice has, and the generalized inverse of their normal equations.
        self._counts = (counts * telling).astype(np.float64)
        self._inverses = np.zeros((groups, self._slices, self._slices))
        fitted = np.zeros(len(units))
        for group in range(groups):
            mine = units.group == group
            variances, sizes = self.variances[mine], np.maximum(self.sizes[mine], 1)
            inside = self._counts[:, mine]
            gram = np.diag(inside @ variances) - (inside * (variances / sizes)) @ inside.T
            # A little on the diagonal, since one slice follows from the others.
            gram += np.eye(self._slices) * max(_LEAST_LEFT * gram.trace() / self._slices, 1e-12)
            self._inverses[group] = np.linalg.inv(gram)
            at = np.flatnonzero(of == group)
            sums = np.bincount(units.slices[at], self.centred[at], self._slices)
            effect = self._inverses[group] @ sums
            means = np.zeros(strata)
            means[mine] = (effect @ inside) / sizes
            fitted[at] = effect[units.slices[at]] - means[units.stratum[at]]
            freedom = float((self.sizes[mine] - 1)[telling[mine]].sum())
            used = max(int((inside.sum(1) > 0).sum()) - 1, 0)
            if freedom > used:
                self.left[group] = max(freedom - float(sums @ effect), 0.0) / (freedom - used)
        self.scores = self.centred - self.variances[units.stratum] * fitted

    def measure(self, who: Pairs) -> Deviates:
        """Return the deviates of all candidates, for each group and for all together."""
        units, groups, strata = self._units, self._groups, len(self.sizes)
        kind: type[np.integer[Any]] = np.int32 if who.count * strata < 1 << 31 else np.int64
        cells: IntegerArray = who.candidate.astype(kind)
        cells *= strata
        cells += units.stratum[who.unit]
        codes: IntegerArray
        at: IntegerArray
        if who.count * strata > 2 * len(cells):
            codes, at = np.unique(cells, return_inverse=True)
        else:  # as many places as there can be take less memory than sorting
            codes, at = np.arange(who.count * strata), cells
        sums: FloatArray = np.bincount(at, self.scores[who.unit], len(codes)).astype(np.float64)
        taken: FloatArray = np.bincount(at, minlength=len(codes)).astype(np.float64)
        who_did, stratum = codes // max(strata, 1), codes % max(strata, 1)
        size: FloatArray = self.sizes[stratum]
        of_stratum = self.variances[stratum]
        variance = of_stratum * taken * (size - taken) / np.maximum(size, 1)
        telling = variance > 0
        row = units.group[stratum] * who.count + who_did
        shape = groups * who.count

        def total(values: FloatArray) -> FloatArray:
            each: FloatArray = np.bincount(row[telling], values[telling], shape).astype(np.float64)
            return each.reshape(groups, who.count)

        def with_all(values: FloatArray) -> FloatArray:
            return np.vstack((values, values.sum(0)))

        chance = total(variance) - self._explained(
            who, who_did, stratum, of_stratum * taken / np.maximum(size, 1)
        )
        chance = np.where(chance > _LEAST_LEFT * total(variance), chance, np.nan) * self.left[:, None]
        there = with_all(total(taken)), with_all(total(size - taken))
        enough = (there[0] >= MIN_TEST_REQUESTS) & (there[1] >= MIN_TEST_REQUESTS)
        all_chance = np.vstack((chance, np.nansum(chance, axis=0)))
        of_all = np.where(np.isnan(chance), 0.0, total(sums)).sum(0)
        with np.errstate(divide="ignore", invalid="ignore"):
            z = np.vstack((total(sums), of_all)) / np.sqrt(all_chance)
            z = np.where(enough & (all_chance > 0), z, np.nan)
        if units.is_dispersed and units.slices is not None:
            for group, place in zip(*np.nonzero(z > _LARGE_DEVIATE), strict=True):
                mask = who.of(int(place), len(units))
                more, slices = _measure_dispersion(units, self, mask, None if group == groups else group)
                z[group, place] = _normal_of_t(z[group, place] / math.sqrt(more), slices - 1)
        return Deviates(z, there[0].astype(np.int64), there[1].astype(np.int64))

    def _explained(
        self, who: Pairs, who_did: IntegerArray, stratum: IntegerArray, expected: FloatArray
    ) -> FloatArray:
        """Return how much of the taking part of each candidate slices explain, by group."""
        units, count, groups = self._units, who.count, self._groups
        found = np.zeros((groups, count))
        if not self._slices or units.slices is None:
            return found
        of, of_cell = units.group[units.stratum[who.unit]], units.group[stratum]
        weights = self.variances[units.stratum[who.unit]]
        both = (of.astype(np.int64) * self._slices + units.slices[who.unit]) * count + who.candidate
        shape = groups, self._slices, count
        shared = np.bincount(both, weights, groups * self._slices * count).reshape(shape)
        where = of_cell * count + who_did
        for place in range(self._slices):
            less = np.bincount(where, expected * self._counts[place, stratum], groups * count)
            shared[:, place] -= less.reshape(groups, count)
        for group in range(groups):
            found[group] = (shared[group] * (self._inverses[group] @ shared[group])).sum(0)
        return found


def measure_deviates(units: Units, who: Pairs, groups: int) -> Deviates:
    """Test every candidate, for each group and for all together."""
    return Regression(units, groups).measure(who)


def _measure_dispersion(
    units: Units, regression: Regression, mask: npt.NDArray[np.bool_], group: int | None
) -> tuple[float, int]:
    """Return by how much the sums of scores differ between slices beyond chance, and the number of slices.

    It is chi-squared by its degrees of freedom, and at least 1. Multiply the variance of the whole by it
    when requests near each other in time are not independent of each other.
    """
    scores, sizes, variances = regression.scores, regression.sizes, regression.variances
    if units.slices is None:
        return 1.0, 1
    chance = (np.bincount(units.stratum, mask, len(sizes)) / np.maximum(sizes, 1))[units.stratum]
    of = units.group[units.stratum]
    counts = np.ones(len(units)) if group is None else of == group
    sums = np.bincount(units.slices, counts * scores * (mask - chance))
    variance = regression.left[of] * variances[units.stratum]
    expected = np.bincount(units.slices, counts * variance * chance * (1 - chance))
    sums, expected = sums[expected > 0], expected[expected > 0]
    if len(sums) < _MIN_SLICES:
        return 1.0, len(sums)
    excess = (sums - sums.sum() / expected.sum() * expected) ** 2 / expected
    return max(1.0, float(excess.sum()) / (len(sums) - 1)), len(sums)


def _normal_of_t(t: float, freedom: int) -> float:
    """Return the normal deviate that is about as probable as Student's t (Abramowitz and Stegun 26.7.8)."""
    return t if freedom < 1 else t * (1 - 1 / (4 * freedom)) / math.sqrt(1 + t * t / (2 * freedom))


def divide_in_slices(
    moment: IntegerArray, most: int = _MAX_SLICES, least_in_each: int = _MIN_IN_SLICE
) -> IntegerArray:
    """Divide a run into slices of as many units each, by the order in which they ended."""
    order = np.empty(len(moment), np.int64)
    order[np.argsort(moment, kind="stable")] = np.arange(len(moment))
    count = max(1, min(most, len(moment) // least_in_each))
    return (order * count // max(len(moment), 1)).astype(np.int8)


def binomial_tail(trials: int, chance: float, least: int) -> float:
    """Return the probability of ``least`` or more successes."""
    if not 0 < chance < 1:
        return float(chance >= 1 or least <= 0)
    odds = math.log(chance), math.log1p(-chance)
    choices = math.lgamma(trials + 1)
    return math.fsum(
        math.exp(
            choices
            - math.lgamma(count + 1)
            - math.lgamma(trials - count + 1)
            + count * odds[0]
            + (trials - count) * odds[1]
        )
        for count in range(least, trials + 1)
    )


def scan_binomial_tail(happened: npt.NDArray[np.bool_], chance: FloatArray) -> float:
    """Return the probability that among some first trials, however many, events are so remarkably many.

    Each trial has a chance of its own. As many first ones are taken as have the least binomial tail; what is
    returned is the probability that any number of them has so small a tail.
    """
    tails: list[FloatArray] = []
    numbers = np.ones(1)  # the probability of each number of events

    def add_trial(numbers: FloatArray, each: float) -> FloatArray:
        return np.append(numbers, 0.0) * (1 - each) + np.append(0.0, numbers) * each

    for each in chance.tolist():
        numbers = add_trial(numbers, each)
        tails.append(np.cumsum(numbers[::-1])[::-1])
    least = min(float(tail[number]) for tail, number in zip(tails, np.cumsum(happened), strict=True))
    left, reached = np.ones(1), 0.0
    for each, tail in zip(chance.tolist(), tails, strict=True):
        left = add_trial(left, each)
        is_there = tail <= least * (1 + 1e-9)
        reached += float(left[is_there].sum())
        left[is_there] = 0.0
    return reached


def upper_tail(z: float) -> float:
    """Return the probability that a standard normal deviate is larger."""
    return math.erfc(z / math.sqrt(2)) / 2


def find_very_slow(units: Units, moment: IntegerArray | None) -> IntegerArray:
    """Return the places of the very slowest units for their kind, the slowest first.

    That is by how much longer than the median of their kind they take; kinds of few units have none. Of units
    near each other, by a ``moment``, the slowest is taken alone: what makes one request slow may make the
    next ones wait. None: what they waited is not in their times.
    """
    medians = _stratum_medians(units, np.ones(len(units), np.bool_))
    large = np.bincount(units.stratum, minlength=len(units.group)) >= _MIN_IN_TAIL_KIND
    base = np.where(large, medians, np.inf)[units.stratum]
    excess = units.seconds - base
    share, least, most = _VERY_SLOW
    count = min(max(math.ceil(share * len(units)), least), most, int(np.isfinite(base).sum()))
    slowest = np.argpartition(-excess, count - 1)[:count] if count else np.zeros(0, np.int64)
    slowest = slowest[np.argsort(-excess[slowest], kind="stable")]
    if moment is None:
        return slowest
    near = divide_in_slices(moment, _MAX_TAIL_SLICES, 1)
    return slowest[np.sort(np.unique(near[slowest], return_index=True)[1])]


def measure_tail_deviates(units: Units, who: Pairs, groups: int, moment: IntegerArray | None) -> Deviates:
    """Test by how often candidates are among the very slowest, of all groups together.

    The chance of each to be in a unit is that of the units of the same group and slice of the run; as many of
    the slowest are taken as show most.
    """
    slices = np.zeros(len(units), np.int64) if units.slices is None else units.slices.astype(np.int64)
    cell = slices * groups + units.group[units.stratum]
    count, cells = who.count, int(cell.max(initial=0)) + 1
    there = np.bincount(cell[who.unit] * count + who.candidate, minlength=cells * count)
    every = np.maximum(np.bincount(cell, minlength=cells), 1)
    shares = there.reshape(cells, count) / every[:, None]
    slow = find_very_slow(units, moment)
    is_slow = np.zeros(len(units), np.bool_)
    is_slow[slow] = True
    mine = is_slow[who.unit]
    unit, candidate = who.unit[mine], who.candidate[mine]
    tails = np.full(count, 0.5)
    for each in np.flatnonzero(np.bincount(candidate, minlength=count) > 1).tolist():
        happened = np.isin(slow, unit[candidate == each])
        tails[each] = scan_binomial_tail(happened, shares[cell[slow], each])
    counts = np.bincount(who.candidate, minlength=count)
    z = np.full((groups + 1, count), np.nan)
    # One that is in all of the units of a cell, or in none, says nothing there.
    enough = np.minimum(counts, len(units) - counts) >= MIN_TEST_REQUESTS
    enough &= (shares * (1 - shares) * every[:, None]).sum(axis=0) > 1
    deviates = [-NormalDist().inv_cdf(min(max(tail, 1e-300), 0.5)) for tail in tails.tolist()]
    z[-1] = np.where(enough, deviates, np.nan)
    with_, without = np.zeros((2, groups + 1, count), np.int64)
    with_[-1], without[-1] = counts, len(units) - counts
    return Deviates(z, with_, without)


def adjust_by_holm(probabilities: FloatArray) -> FloatArray:
    """Return probabilities adjusted for how many they are, by Holm's method; NaN stays and does not count."""
    adjusted = np.full(probabilities.shape, np.nan)
    there = np.flatnonzero(~np.isnan(probabilities))
    order = there[np.argsort(probabilities.flat[there], kind="stable")]
    steps = probabilities.flat[order] * np.arange(len(order), 0, -1)
    adjusted.flat[order] = np.minimum(np.maximum.accumulate(steps), 1.0) if len(order) else steps
    return adjusted


@dataclass(frozen=True, slots=True)
class PeerDifference:
    """By how much requests with a server take longer than others of their kind, in seconds.

    ``median`` is the median of what they take beyond the median of their kind without; ``mean`` the
    difference of means, outliers cut at the 99th percentile; ``base`` the median that they would have.
    """

    median: float
    mean: float
    base: float

    @property
    def share(self) -> float:
        """The larger of both, as a share of ``base``."""
        return max(self.median, self.mean) / self.base if self.base > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Shown(PeerDifference):
    """One that is ``evident`` (p < 0.01) or not; ``high`` is the upper end of a 95 % interval of the median.

    That end is NaN for too few requests.
    """

    evident: bool
    high: PerhapsSeconds


def is_evident(z: float) -> bool:
    """Whether a deviate has p < 0.01; a NaN has not."""
    return upper_tail(z) < _EVIDENT_PROBABILITY


def measure_peer_difference(units: Units, mask: npt.NDArray[np.bool_]) -> PeerDifference:
    """Measure the difference between units of which the mask is True and the others, within strata."""
    base = _stratum_medians(units, ~mask)[units.stratum]
    compared = mask & ~np.isnan(base)
    if not compared.any():
        return PeerDifference(math.nan, math.nan, math.nan)
    excess = units.seconds - base
    known = excess[~np.isnan(base)]
    cut = np.minimum(excess, np.quantile(known, 0.99))
    # The others, weighted as the strata are among those with.
    strata = len(units.group)
    others = ~mask & ~np.isnan(base)
    counts = np.bincount(units.stratum[others], minlength=strata)
    means = np.bincount(units.stratum[others], cut[others], strata) / np.maximum(counts, 1)
    return PeerDifference(
        float(np.median(excess[compared])),
        float(np.mean(cut[compared] - means[units.stratum[compared]])),
        float(np.median(base[compared])),
    )


@dataclass(frozen=True, slots=True)
class SlowShare:
    """Those of some units that are slower than the slowest hundredth of the others."""

    share: float  # of the units; NaN where no others are of their kinds
    difference: PeerDifference  # of these to the median of their kind
    times_others: float  # the median difference by the least of that hundredth of the others


def measure_slow_share(units: Units, mask: npt.NDArray[np.bool_]) -> SlowShare:
    """Measure which of a mask's units are slower than nearly all others, beside the median of their kind."""
    base = _stratum_medians(units, ~mask)[units.stratum]
    excess = np.nan_to_num(units.seconds - base, nan=-math.inf)
    known = np.isfinite(excess)
    others = excess[~mask & known]
    if not len(others) or not (mask & known).any():
        return SlowShare(math.nan, PeerDifference(math.nan, math.nan, math.nan), math.nan)
    least = float(np.quantile(others, 0.99))
    slow = mask & (excess > least)
    size = float(np.median(excess[slow])) if slow.any() else 0.0
    difference = PeerDifference(size, size, float(np.nanmedian(base[mask])))
    return SlowShare(float(slow.sum() / mask.sum()), difference, size / max(least, 1e-6))


def measure_excess(units: Units, mask: npt.NDArray[np.bool_]) -> FloatArray:
    """Return by how much each unit takes longer than the median of its kind without those of the mask."""
    found: FloatArray = units.seconds - _stratum_medians(units, ~mask)[units.stratum]
    return found


def measure_median_interval(units: Units, mask: npt.NDArray[np.bool_]) -> tuple[float, float]:
    """Return a 95 % interval of the median difference, by order statistics; NaN for too few.

    It is wider by as much as the medians of the others are uncertain themselves, on the whole.
    """
    others = len(units) - int(mask.sum())
    return interval_of_median(measure_excess(units, mask)[mask], others) if others else (math.nan, math.nan)


def interval_of_median(values: FloatArray, others: float = math.inf) -> tuple[float, float]:
    """Return a 95 % interval of the median of values, which are differences to so many ``others``."""
    ordered = np.sort(values[~np.isnan(values)])
    count = len(ordered)
    if count < MIN_TEST_REQUESTS:
        return math.nan, math.nan
    reach = 0.98 * math.sqrt(count * (1 + count / others))
    low, high = math.floor(count / 2 - reach), math.ceil(count / 2 + reach)
    return float(ordered[max(low, 0)]), float(ordered[min(high, count - 1)])


def _stratum_medians(units: Units, mask: npt.NDArray[np.bool_]) -> FloatArray:
    """Return the median of each stratum's units of which the mask is True; NaN where there is none."""
    sizes = np.bincount(units.stratum[mask], minlength=len(units.group))
    starts = np.cumsum(sizes) - sizes
    order = units.order[mask[units.order]]
    ordered = np.append(units.seconds[order], np.nan)
    low = np.where(sizes > 0, starts + (sizes - 1) // 2, len(order))
    high = np.where(sizes > 0, starts + sizes // 2, len(order))
    medians: FloatArray = (ordered[low] + ordered[high]) / 2
    return medians
