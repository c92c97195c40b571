"""The knee of a sweep: up to which load more of it brings more operations, with its 95 % interval.

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
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

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
