"""When a sweep ends, what is to be known of it, and its knee: where more load brings nothing.

Two models of the rate at N users (or workers, or operations a second that are due) are fitted to all steps:

``queue``
    ``X(N) = a N / (1 + (N / knee)^s)^(1/s)``: rises by ``a`` a user and levels off at ``a knee``; the smaller
    ``s``, the rounder. These are the asymptotes of a closed queueing network, which meet at the knee (Denning
    and Buzen, ACM Computing Surveys 10, 1978).
``USL``
    ``X(N) = a N / (1 + sigma (N - 1) + kappa N (N - 1))``, the Universal Scalability Law (Gunther, Guerrilla
    Capacity Planning, 2007), which can fall again. Its knee is its highest rate divided by ``a``.

Both have three parameters, so the one that leaves less is taken. The interval is that of the profile
likelihood: all knees, of either model, with which the rest is not significantly worse.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ssbench.capacity.steps import BUSY_SHARE, Step, gain
from ssbench.capacity.variables import Varied, plain
from ssbench.figures.units import change, count, extent
from ssbench.measures import PerhapsNumber

#: With fewer steps no model is fitted, as they have three parameters.
LEAST_STEPS = 4

#: Two runs of one load differ by at least this, as a share of the rate.
_RUN_NOISE = 0.02

#: The quantile .95 of chi square with 1 degree of freedom, for steps whose scatter is known, and those of F
#: with 1 and n degrees of freedom, n from 1 to 10, for steps that scatter more than that.
_CHI_SQUARE = 3.841
_F = (161.4, 18.51, 10.13, 7.709, 6.608, 5.987, 5.591, 5.318, 5.117, 4.965)

_SHARPNESS = np.geomspace(0.7, 60.0, 60)
_CONTENTION = np.concatenate(([0.0], np.geomspace(1e-4, 1.0, 90)))
_CROSSTALK = np.concatenate(([0.0], np.geomspace(1e-8, 0.3, 120)))

_Floats = npt.NDArray[np.float64]

#: A sweep ends where doubling the load brings less than this for certain; less where it was not doubled.
LEAST_GAIN = 0.05


@dataclass(frozen=True, slots=True)
class Knee:
    """Where the rate stops rising with the load, between ``low`` and ``high`` (95 %).

    ``model`` is the name of the one that fits better, ``error`` by which share of the rate steps are off it.
    ``high`` is infinite where it is not certain that the sweep went beyond the knee, ``value`` where it
    seems not to have.
    """

    value: PerhapsNumber
    low: float
    high: PerhapsNumber
    model: str
    error: float

    @property
    def reached(self) -> bool:
        """Whether the sweep went beyond the knee, for certain."""
        return math.isfinite(self.high)


@dataclass(frozen=True, slots=True)
class _Fit:
    """A model on its grid: ``rest`` (sum of squares, weighted) for each of ``knees``."""

    name: str
    knees: _Floats
    rest: _Floats


def knee(values: Sequence[float], rates: Sequence[float], errors: Sequence[float | None]) -> Knee | None:
    """Return the knee; None where there are too few steps.

    ``rates`` are operations a second at each of ``values``, ``errors`` half the widths of their 95 %
    intervals as a share, None where they are not known.
    """
    known = [
        (value, rate, error)
        for value, rate, error in zip(values, rates, errors, strict=True)
        if 0 < rate < math.inf
    ]
    if len({value for value, _, _ in known}) < LEAST_STEPS:
        return None
    x = np.array([value for value, _, _ in known])
    y = np.log([rate for _, rate, _ in known])
    spread = np.hypot([(error or 0.0) / 1.96 for _, _, error in known], _RUN_NOISE)
    weights = 1 / spread**2
    fits = [_queue(x, y, weights), _usl(x, y, weights)]
    best = min(fits, key=lambda fit: float(fit.rest.min()))
    least = float(best.rest.min())
    allowed = least + _more(least, len(known) - 3)
    likely = np.concatenate([fit.knees[fit.rest <= allowed] for fit in fits])
    value = float(best.knees[int(np.argmin(best.rest))])
    highest = float(x.max())
    low, high = float(likely.min()), float(likely.max())
    error = math.sqrt(least / float(weights.sum()))
    if high > highest:
        # Where a knee beyond all steps is cannot be known.
        # A lower end below all steps says nothing: 0.
        low = min(low, highest) if low > float(x.min()) else 0.0
        return Knee(value if value <= highest else math.inf, low, math.inf, best.name, error)
    return Knee(value, low, high, best.name, error)


def _more(least: float, degrees: int) -> float:
    """Return how much more than the least a knee may leave, to be in the interval."""
    scatter = least / max(1, degrees)
    return _CHI_SQUARE if scatter <= 1 else scatter * _F[min(max(1, degrees), len(_F)) - 1]


def _rest(y: _Floats, weights: _Floats, shapes: _Floats) -> _Floats:
    """Return what the best height leaves of each shape, whose last axis is that of the steps."""
    off = y - shapes
    height = (off * weights).sum(axis=-1, keepdims=True) / weights.sum()
    rest: _Floats = (weights * (off - height) ** 2).sum(axis=-1)
    return rest


def _queue(x: _Floats, y: _Floats, weights: _Floats) -> _Fit:
    knees = np.geomspace(x.min() / 2, x.max() * 4, 600)
    sharpness = _SHARPNESS[None, :, None]
    ratio = np.log(x[None, None, :] / knees[:, None, None])
    shapes = np.log(x) - np.logaddexp(0.0, sharpness * ratio) / sharpness
    return _Fit("queue", knees, _rest(y, weights, shapes).min(axis=1))


def _usl(x: _Floats, y: _Floats, weights: _Floats) -> _Fit:
    sigma, kappa = _CONTENTION[:, None, None], _CROSSTALK[None, :, None]
    shapes = np.log(x) - np.log1p(sigma * (x - 1) + kappa * x * (x - 1))
    rest = _rest(y, weights, shapes).ravel()
    with np.errstate(divide="ignore", invalid="ignore"):
        peak = np.sqrt((1 - _CONTENTION[:, None]) / _CROSSTALK[None, :])
        at_peak = peak / (1 + _CONTENTION[:, None] * (peak - 1) + _CROSSTALK[None, :] * peak * (peak - 1))
        asymptote = np.where(_CROSSTALK[None, :] > 0, at_peak, 1 / _CONTENTION[:, None])
    knees = np.nan_to_num(asymptote, nan=np.inf, posinf=np.inf).ravel()
    return _Fit("USL", knees, rest)


def why_stop(variable: Varied, steps: Sequence[Step]) -> str | None:
    """Return why a sweep ends after these steps, None where it continues."""
    if not steps:
        return None
    last = steps[-1]
    if not last.count and not last.failed:
        return f"no operation ended at {variable.words(last.value)}"
    if not variable.is_load:
        return None
    if last.failed:
        return f"{count(last.failed)} operations failed at {variable.words(last.value)}"
    # The knee is found from some steps on.
    return no_gain(variable, *steps[-2:]) if len(steps) >= LEAST_STEPS else None


def no_gain(variable: Varied, before: Step, after: Step) -> str | None:
    """Return in words that more load brought nothing for certain; None where it did, or may have."""
    _, most = gain(before, after)
    ratio = after.value / before.value
    # Of a smaller step as much is expected as several of it have to bring to double the load.
    least = min(LEAST_GAIN, (1 + LEAST_GAIN) ** math.log2(ratio) - 1)
    if most is None or most >= least:
        return None
    return (
        f"from {plain(before.value)} to {variable.words(after.value)} the rate rose by less than"
        f" {extent(least)} % (95 % sure: by {change(most)} % at most)"
    )


def find_knee(variable: Varied, steps: Sequence[Step]) -> Knee | None:
    """Return the knee of a sweep over a load; None where there are too few steps for one."""
    if not variable.is_load:
        return None
    errors = [step.interval.half_width / step.rate if step.interval and step.rate else None for step in steps]
    return knee([step.value for step in steps], [step.rate for step in steps], errors)


def first_of_the_best(steps: Sequence[Step]) -> Step:
    """Return the step of the lowest value that may have the highest rate of all, by its interval."""
    best = max(steps, key=lambda step: step.rate)
    return min((step for step in steps if _may_be(step, best.rate)), key=lambda step: step.value)


def _may_be(step: Step, rate: float) -> bool:
    return step.rate >= rate or (step.interval is not None and step.interval.high >= rate)


def knee_in_words(variable: Varied, found: Knee) -> str:
    """Return a sentence on the knee."""
    words = variable.words
    fit = f"{found.model} model, steps {extent(found.error)} % off"
    if found.reached:
        return (
            f"The knee is at {words(short(found.value))} (95 % sure: {plain(short(found.low))} to"
            f" {plain(short(found.high))}; {fit}): beyond it more load brings longer waits, not more"
            " operations."
        )
    known = f"; if there is one, it is at {words(short(found.low))} or beyond" if found.low else ""
    return f"No knee is certain, since the rate may still rise at the highest load ({fit}){known}."


def short(value: float) -> float:
    """Return a knee, or an end of its interval, as it is shown: in 2 digits, whole from 10 on."""
    return round(value) if value >= 10 else float(f"{value:.2g}")


def limits(variable: Varied, steps: Sequence[Step]) -> list[str]:
    """Return where the load generator rather than Swift was full, or the limit, in words."""
    found = []
    unit = variable.unit
    if busy := _values(step for step in steps if step.is_busy):
        found.append(
            f"The load generator rather than Swift was full at {busy} {unit}: a worker used over"
            f" {100 * BUSY_SHARE:g} % of its core. Start more workers."
        )
    if small := [step for step in steps if step.lacks_room]:
        room = min(step.room or 0 for step in small)
        found.append(
            f"The load generator rather than Swift was full at {_values(small)} {unit}: its workers run"
            f" {room} operations at once. Start more workers, or give them a higher --concurrency."
        )
    if other := [step for step in steps if step.limits and not step.generator_full]:
        last = sorted(other, key=lambda step: step.value)[-1]
        found.append(f"At {_values(other)} {unit}, of the last of them: {last.limits[0]}.")
    return found


def too_short(steps: Sequence[Step]) -> list[str]:
    """Return what is to be known where no gain can be judged."""
    if len(steps) < 2 or all(step.interval for step in steps):
        return []
    return [
        "Some steps were too short to tell how exact their rates are, so it is not known whether more load"
        " brought nothing. Give each a minute (-r 60)."
    ]


def _values(steps: Iterable[Step]) -> str:
    return ", ".join(map(plain, sorted({step.value for step in steps})))
