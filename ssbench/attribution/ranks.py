"""Do requests that somebody took part in take longer than others of the same kind? A rank test.

Requests are compared within *strata* only: requests of one kind. In each, a request's score is its rank
divided by n + 1, less the mean (van Elteren's weights of the Wilcoxon test). The sum of the scores of
those that somebody took part in, divided by its standard deviation over all permutations within the
strata, is a standard normal deviate where taking part does not matter. Scores of another kind make other
tests of the same machinery: 1 for the slowest tenth and 0 else is the test of Mantel and Haenszel.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]
#: From ranks (1 for the least) and the sizes of their strata to scores.
Score = Callable[[Floats, Floats], Floats]

#: A test needs so many requests on either side.
LEAST = 8


def wilcoxon(ranks: Floats, sizes: Floats) -> Floats:
    """Score by ranks: a shift of all requests is found best, and outliers weigh no more than others."""
    return ranks / (sizes + 1)


@dataclass(frozen=True, slots=True)
class Units:
    """What is compared: seconds, the kind (stratum) of each, and the group of each kind."""

    seconds: Floats
    stratum: Places
    group: Places

    def __len__(self) -> int:
        return len(self.seconds)

    def split(self, mask: npt.NDArray[np.bool_]) -> Units:
        """Return the same with each stratum split in two: where the mask is True, and where it is not."""
        _, first, stratum = np.unique(self.stratum * 2 + mask, return_index=True, return_inverse=True)
        return Units(self.seconds, stratum, self.group[self.stratum[first]])


@dataclass(frozen=True, slots=True)
class Pairs:
    """Who took part in what: places of units and of ``count`` candidates, each pair once."""

    unit: Places
    candidate: Places
    count: int

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

    z: Floats
    with_: Places
    without: Places


def pairs(unit: Places, candidate: Places, count: int) -> Pairs:
    """Make pairs, each once."""
    codes = np.unique(unit * count + candidate)
    return Pairs(codes // max(count, 1), codes % max(count, 1), count)


def centred(units: Units, score: Score = wilcoxon) -> tuple[Floats, Floats, Floats]:
    """Return scores less the mean of their stratum; then for each stratum its size and variance."""
    order = np.lexsort((units.seconds, units.stratum))
    stratum, seconds = units.stratum[order], units.seconds[order]
    sizes = np.bincount(units.stratum, minlength=len(units.group)).astype(np.float64)
    starts = np.concatenate(([0.0], np.cumsum(sizes)[:-1]))
    new = np.ones(len(order), np.bool_)
    new[1:] = (stratum[1:] != stratum[:-1]) | (seconds[1:] != seconds[:-1])
    tie = np.cumsum(new) - 1
    place = np.arange(1.0, len(order) + 1) - starts[stratum]
    ranks = (np.bincount(tie, place) / np.bincount(tie))[tie] if len(order) else place
    scores = np.empty(len(order))
    scores[order] = score(ranks, sizes[stratum])
    means = np.bincount(units.stratum, scores, len(sizes)) / np.maximum(sizes, 1)
    scores -= means[units.stratum]
    squares = np.bincount(units.stratum, scores**2, len(sizes))
    return scores, sizes, squares / np.maximum(sizes - 1, 1)


def deviates(units: Units, who: Pairs, groups: int, score: Score = wilcoxon) -> Deviates:
    """Test every candidate, for each group and for all together."""
    scores, sizes, variances = centred(units, score)
    strata = len(sizes)
    codes, at = np.unique(who.candidate * strata + units.stratum[who.unit], return_inverse=True)
    sums: Floats = np.bincount(at, scores[who.unit], len(codes)).astype(np.float64)
    taken: Floats = np.bincount(at, minlength=len(codes)).astype(np.float64)
    who_did, stratum = codes // max(strata, 1), codes % max(strata, 1)
    size: Floats = sizes[stratum]
    variance = variances[stratum] * taken * (size - taken) / np.maximum(size, 1)
    telling = variance > 0
    row = units.group[stratum] * who.count + who_did
    shape = groups * who.count

    def total(values: Floats) -> Floats:
        each: Floats = np.bincount(row[telling], values[telling], shape).astype(np.float64)
        each = each.reshape(groups, who.count)
        return np.vstack((each, each.sum(0)))

    with_, without = total(taken), total(size - taken)
    enough = (with_ >= LEAST) & (without >= LEAST)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(enough, total(sums) / np.sqrt(total(variance)), np.nan)
    return Deviates(z, with_.astype(np.int64), without.astype(np.int64))


def upper_tail(z: float) -> float:
    """Return the probability that a standard normal deviate is larger."""
    return math.erfc(z / math.sqrt(2)) / 2


def holm(probabilities: Floats) -> Floats:
    """Return probabilities adjusted for how many they are, by Holm's method; NaN stays and does not count."""
    adjusted = np.full(probabilities.shape, np.nan)
    there = np.flatnonzero(~np.isnan(probabilities))
    order = there[np.argsort(probabilities.flat[there], kind="stable")]
    steps = probabilities.flat[order] * np.arange(len(order), 0, -1)
    adjusted.flat[order] = np.minimum(np.maximum.accumulate(steps), 1.0) if len(order) else steps
    return adjusted


@dataclass(frozen=True, slots=True)
class Difference:
    """By how much requests with somebody take longer than others of their kind, in seconds.

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


def difference(units: Units, mask: npt.NDArray[np.bool_]) -> Difference:
    """Measure the difference between units of which the mask is True and the others, within strata."""
    base = _medians(units, ~mask)[units.stratum]
    compared = mask & ~np.isnan(base)
    if not compared.any():
        return Difference(math.nan, math.nan, math.nan)
    excess = units.seconds - base
    known = excess[~np.isnan(base)]
    cut = np.minimum(excess, np.quantile(known, 0.99))
    # The others, weighted as the strata are among those with.
    strata = len(units.group)
    others = ~mask & ~np.isnan(base)
    counts = np.bincount(units.stratum[others], minlength=strata)
    means = np.bincount(units.stratum[others], cut[others], strata) / np.maximum(counts, 1)
    return Difference(
        float(np.median(excess[compared])),
        float(np.mean(cut[compared] - means[units.stratum[compared]])),
        float(np.median(base[compared])),
    )


def _medians(units: Units, mask: npt.NDArray[np.bool_]) -> Floats:
    """Return the median of each stratum's units of which the mask is True; NaN where there is none."""
    stratum, seconds = units.stratum[mask], units.seconds[mask]
    order = np.lexsort((seconds, stratum))
    sizes = np.bincount(stratum, minlength=len(units.group))
    starts = np.cumsum(sizes) - sizes
    ordered = np.append(seconds[order], np.nan)
    low = np.where(sizes > 0, starts + (sizes - 1) // 2, len(order))
    high = np.where(sizes > 0, starts + sizes // 2, len(order))
    medians: Floats = (ordered[low] + ordered[high]) / 2
    return medians
