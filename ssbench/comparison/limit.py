"""The limit of a load: where a share of operations crosses what is wanted, estimated from several trials.

The share of operations outside a limit rises with the load. Its logit is taken to rise linearly with the
logarithm of the load, above a share that does not depend on the load::

    outside(x) = g + (1 - g) logistic(b (x - limit) + logit((q - g) / (1 - g))),   x = log load

so that ``outside(limit)`` is ``q``, the share that may be outside. The posterior of the limit is calculated
on a grid of (limit, slope b, floor g), from flat priors, and the next trial is made at its median.
Psychophysics searches for thresholds in this way (QUEST: Watson and Pelli, Perception & Psychophysics 33,
1983; with the slope: Kontsevich and Tyler, Vision Research 39, 1999). Every trial counts, near the limit too,
where a single one never decides.

Two trials of one load differ by more than chance, as if the loads had differed by :data:`LOAD_JITTER`. A trial
that something else disturbed says nothing: with a probability of :data:`DISTURBED_SHARE` its share is any at all.
No store follows the line exactly, so the further a share is from the wanted one, the less it counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

#: By how much two trials of one load seem to differ in load: the standard deviation of its logarithm.
LOAD_JITTER = 0.05

#: How often a trial is disturbed by something that has nothing to do with its load.
DISTURBED_SHARE = 0.05

#: Below the least load, 1, there is room for a limit that no load meets.
_MIN_LOG_LOAD = math.log(0.5)
_GRID_STEP = 0.01
_SLOPE_GRID = np.geomspace(1.5, 60.0, 15)
_FLOOR_GRID = np.array([0.0, 0.35, 0.7])  # as a share of what may be outside

#: How far a logit may be off the line: near the wanted share, and more for each unit of the logit from it.
_LOGIT_ERROR, _LOGIT_ERROR_GROWTH = 0.1, 0.15

#: Gauss and Hermite's nodes and weights for a normal distribution.
_HERMITE_NODES = ((0.0, 2 / 3), (math.sqrt(3.0), 1 / 6), (-math.sqrt(3.0), 1 / 6))

_Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TrialEvidence:
    """What a trial says of one condition: which ``share`` of operations was within its limit.

    ``size`` is the number of independent operations, ``wanted`` the share that has to be within.
    """

    share: float
    size: float
    wanted: float


#: What a trial says of a condition that only holds or does not, such as one of a mean.
HOLDS_EVIDENCE, FAILS_EVIDENCE = TrialEvidence(1.0, 20.0, 0.5), TrialEvidence(0.0, 20.0, 0.5)


@dataclass(frozen=True, slots=True)
class LimitEstimate:
    """The median of the limit, and the 95 % interval of it; in units of the load."""

    median: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Half of the interval, of the logarithm."""
        return math.log(self.high / self.low) / 2


class LoadLimit:
    """The limit of a load, as far as the trials so far tell; the lowest of those of several conditions."""

    def __init__(self, most: float) -> None:
        self._grid: _Floats = np.arange(_MIN_LOG_LOAD, math.log(most) + 0.7, _GRID_STEP)
        #: The logarithm of the posterior of each condition: limits x slopes x floors.
        self._posteriors: list[_Floats] = []

    def add(self, load: float, evidence: Iterable[TrialEvidence]) -> None:
        """Count what a trial says, in the order of conditions; evidence of size 0 changes nothing."""
        for place, each in enumerate(evidence):
            if place == len(self._posteriors):
                self._posteriors.append(np.zeros((len(self._grid), len(_SLOPE_GRID), len(_FLOOR_GRID))))
            if each.size > 0:
                self._posteriors[place] += self._likelihood(math.log(load), each)

    def estimate(self) -> LimitEstimate:
        """Return what is known of it."""
        survival = np.ones(len(self._grid))
        for posterior in self._posteriors:
            density = np.exp(posterior - posterior.max()).sum(axis=(1, 2))
            survival *= 1 - np.cumsum(density) / density.sum()
        low, median, high = (
            math.exp(self._grid[min(int(np.searchsorted(1 - survival, share)), len(self._grid) - 1)])
            for share in (0.025, 0.5, 0.975)
        )
        return LimitEstimate(median, low, high)

    def _likelihood(self, load: float, evidence: TrialEvidence) -> _Floats:
        """Return the logarithm of the likelihood over the grid, but for a constant."""
        allowed = min(max(1 - evidence.wanted, 1e-9), 1 - 1e-9)
        floors = allowed * _FLOOR_GRID
        shift = np.log((allowed - floors) / (1 - allowed))  # logit((q - g) / (1 - g))
        size = _effective_count(evidence, allowed)
        inside = evidence.share * size
        outside = size - inside
        distance = (load - self._grid)[:, None, None]
        parts = []
        for node, weight in _HERMITE_NODES:
            slope = _SLOPE_GRID[None, :, None] * (distance + LOAD_JITTER * node)
            logistic = 1 / (1 + np.exp(-np.clip(slope + shift, -60.0, 60.0)))
            share = floors + (1 - floors) * logistic
            # A share of none or all is one of a model, not of a store.
            share = np.clip(share, 1e-7, 1 - 1e-7)
            parts.append(math.log(weight) + outside * np.log(share) + inside * np.log1p(-share))
        undisturbed = np.logaddexp.reduce(parts, axis=0)
        anything = math.lgamma(inside + 1) + math.lgamma(outside + 1) - math.lgamma(size + 2)
        whole: _Floats = np.logaddexp(
            math.log(1 - DISTURBED_SHARE) + undisturbed, math.log(DISTURBED_SHARE) + anything
        )
        return whole


def _effective_count(evidence: TrialEvidence, allowed: float) -> float:
    """Return the operations that a share counts as: no more than the line itself is exact there."""
    outside = ((1 - evidence.share) * evidence.size + 0.5) / (evidence.size + 1)
    logit, wanted = (math.log(share / (1 - share)) for share in (outside, allowed))
    off = _LOGIT_ERROR + _LOGIT_ERROR_GROWTH * abs(logit - wanted)
    return evidence.size / (1 + evidence.size * outside * (1 - outside) * off**2)
