"""Whether the rate changes with the number of objects in the store, and from how many on.

The rate of each step is compared with two shapes over the logarithm of the number: a step, and a straight
line from a bend on. The interval of the bend, and whether there is one, follow from what they leave
(a profile likelihood, with Bonferroni's correction for the places that a bend may have).
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from ssbench.base.record import Count, Share
from ssbench.comparison.sweep import RUN_NOISE_SHARE
from ssbench.document.units import format_change, format_change_size, format_count
from ssbench.scenario.value_series import MAX_SERIES_VALUES
from ssbench.statistics.confidence import t_quantile

_Floats = npt.NDArray[np.float64]

#: With fewer steps a bend and its size leave nothing to judge them by.
MIN_TREND_STEPS = 6

#: How often a change is found of the size that is said to be seen.
_POWER = 0.8

#: How often equal rates are called a change at most.
_ERROR_RATE = 0.05

#: The change for which it is said what would show it, and how many steps and times their length at most.
WANTED_CHANGE = 0.05
_MAX_STEPS, _MAX_LENGTHS = 10_000, 60

#: The quantile .95 of chi square with 2 degrees of freedom to that with 1, of roots.
_WIDER = 1.249

#: Places of a bend that are tried between two steps.
_PLACES = 16


@dataclass(frozen=True, slots=True)
class ObjectTrend:
    """What more objects do to the rate."""

    change: Share  # of the rate, from the fewest objects to the most; 0 where none is certain
    low: Share  # lower end of its 95 % interval
    high: Share  # upper end of it
    bend: Count | None  # objects from which on the rate changes; None: no change is certain
    bend_low: Count  # lower end of the 95 % interval of the bend, 0 without one
    bend_high: Count  # upper end of it, 0 without one
    visible: Share  # a change of this size in the middle of the steps is found in 4 of 5 series
    needed_steps: Count | None = (
        None  # steps as long that would show one of 5 %; None: these do, or no number
    )
    needed_lengths: Count | None = None  # so many times the length would show it, too; None: as above
    scatter: Share = 0.0  # standard deviation of a step from what it should be


def find_object_trend(
    counts: Sequence[float], rates: Sequence[float], errors: Sequence[float | None], figures: int = 1
) -> ObjectTrend | None:
    """Return how the rate changes with the number of objects; None where there are too few steps.

    ``rates`` are operations a second with each of ``counts`` objects, or another figure; ``errors`` are half
    the widths of their 95 % intervals as a share, None where they are not known. So many ``figures`` share
    one rate of error.
    """
    known = [
        (count, rate, error)
        for count, rate, error in zip(counts, rates, errors, strict=True)
        if 0 < rate < math.inf and error is not None
    ]
    if len({count for count, _, _ in known}) < MIN_TREND_STEPS:
        return None
    x, y = (np.log([each[place] for each in known]) for place in (0, 1))
    sampled = np.array([error for _, _, error in known]) / NormalDist().inv_cdf(0.975)
    spread = np.hypot(sampled, RUN_NOISE_SHARE)
    shapes, bends = _make_shapes(x)
    flat, rest, changes, deviations = _fit_shapes(y, spread, shapes)
    best = int(np.argmin(rest))
    # Where steps are further off than their intervals say, they are as uncertain as that.
    freedom, places = len(x) - 3, len(x) - 1
    scatter = math.sqrt(float(rest[best]) / freedom)
    shares = 1 - _ERROR_RATE / 2 / places / figures, 0.975
    needed, usual = (
        NormalDist().inv_cdf(each) if scatter <= 1 else t_quantile(each, freedom) for each in shares
    )
    scatter = max(1.0, scatter)
    deviation = scatter * math.sqrt(float((spread**2).mean()))
    visible = _measure_visible(spread * scatter, t_quantile(shares[0], freedom))
    if float(flat - rest[best]) / scatter**2 < needed**2:
        steps, lengths = _find_needed(len(x), float(np.sqrt((sampled**2).mean())), scatter, figures)
        more = (steps, lengths) if visible > WANTED_CHANGE else (None, None)
        return ObjectTrend(0.0, -visible, visible, None, 0, 0, visible, *more, scatter=deviation)
    # Of a bend and a size at once: what two of them leave.
    likely = rest <= rest[best] + (_WIDER * usual * scatter) ** 2
    around = usual * scatter * deviations
    low, high = float((changes - around)[likely].min()), float((changes + around)[likely].max())
    begins = [round(math.exp(each)) for each in (bends[best], bends[likely].min(), bends[likely].max())]
    return ObjectTrend(
        change=math.expm1(changes[best]),
        low=math.expm1(low),
        high=math.expm1(high),
        bend=begins[0],
        bend_low=begins[1],
        bend_high=begins[2],
        visible=visible,
        scatter=deviation,
    )


def _make_shapes(x: _Floats) -> tuple[_Floats, _Floats]:
    """Return the shapes that are tried, each from 0 at the fewest objects to 1 at the most, and the bends."""
    steps = np.unique(x)
    # A step between two counts may be anywhere between them: three of its places stand for all.
    edges = np.concatenate([np.linspace(a, b, 5)[1:-1] for a, b in itertools.pairwise(steps)])
    corners = np.linspace(steps[0], steps[-2], _PLACES * (len(steps) - 2) + 1)
    jumps = (x > edges[:, None]).astype(float)
    lines = np.maximum(0.0, x - corners[:, None])
    lines /= lines.max(axis=1, keepdims=True)
    return np.concatenate([jumps, lines]), np.concatenate([edges, corners])


def _fit_shapes(y: _Floats, spread: _Floats, shapes: _Floats) -> tuple[float, _Floats, _Floats, _Floats]:
    """Return what a constant leaves, and of each shape what it leaves, its size and the error of that.

    What is left are sums of squares in units of the spread; sizes are those of logarithms.
    """
    weights = 1 / spread**2
    off = y - np.average(y, weights=weights)
    centred = shapes - np.average(shapes, axis=1, weights=weights)[:, None]
    lengths = (weights * centred**2).sum(axis=1)
    sizes = (centred * weights * off).sum(axis=1) / lengths
    flat = float((weights * off**2).sum())
    # What fits exactly may be off by a rounding.
    return flat, np.maximum(flat - lengths * sizes**2, 0.0), sizes, 1 / np.sqrt(lengths)


def _measure_visible(spread: _Floats, needed: float) -> float:
    """Return the change between the steps of both halves that is found in most series, as a share."""
    middle = len(spread) // 2
    error = math.sqrt(sum(1 / (1 / half**2).sum() for half in (spread[:middle], spread[middle:])))
    return math.expm1((needed + NormalDist().inv_cdf(_POWER)) * error)


def _find_needed(steps: int, sampled: float, scatter: float, figures: int) -> tuple[int | None, int | None]:
    """Return how many steps would show the wanted change, and how many times their length; None: none would.

    Steps that are further off than their intervals say would be so if they were longer.
    """

    def shows(count: int, lengths: int) -> bool:
        quantile = t_quantile(1 - _ERROR_RATE / 2 / (count - 1) / figures, count - 3)
        spread = scatter * math.hypot(sampled / math.sqrt(lengths), RUN_NOISE_SHARE)
        return _measure_visible(np.full(count, spread), quantile) <= WANTED_CHANGE

    counts = range(steps + 1, _MAX_STEPS + 1)
    place = bisect_left(counts, True, key=lambda count: shows(count, 1))
    return (
        counts[place] if place < len(counts) else None,
        next((each for each in range(2, _MAX_LENGTHS + 1) if scatter == 1 and shows(steps, each)), None),
    )


def describe_trend_briefly(found: ObjectTrend, what: str = "rate") -> str:
    """Return it in one clause."""
    if found.bend is None:
        return f"No change of the {what} with the number of objects is certain"
    way = "falls" if found.change < 0 else "rises"
    return f"The {what} {way} from about {format_count(found.bend)} objects on"


def describe_object_trend(found: ObjectTrend, what: str = "rate") -> str:
    """Return a sentence that says more of it."""
    if found.bend is None:
        return (
            f"A change of {format_change_size(found.visible)} % would have been seen in 4 of 5 such series"
            f"{_describe_needed(found)}."
        )
    return (
        f"It begins at {format_count(found.bend_low)} to {format_count(found.bend_high)} objects (95 % sure);"
        f" with the most of them the {what} differs by {format_change(found.change)} %"
        f" ({format_change(found.low)} to {format_change(found.high)} %)."
    )


def _describe_needed(found: ObjectTrend) -> str:
    """Return what would show the wanted change, or that nothing would and why; empty if these steps do."""
    if found.visible <= WANTED_CHANGE:
        return ""
    wanted = f"one of {format_change_size(WANTED_CHANGE)} %"
    steps = found.needed_steps or 0
    ways = [f"{steps} steps as long"] if 0 < steps <= MAX_SERIES_VALUES else []
    ways += [f"steps {found.needed_lengths} times as long"] if found.needed_lengths else []
    if ways:
        return f"; for {wanted}, make {' or '.join(ways)}"
    count = format_count(steps) if steps else f"more than {format_count(_MAX_STEPS)}"
    return (
        f"; {wanted} would take a series of {count} steps as long, and {MAX_SERIES_VALUES} is the most: steps"
        f" differ by {format_change_size(found.scatter)} % (standard deviation)"
    )
