"""When the operations of an open loop are due. Pure: seconds since the beginning of the run, from a seed.

A rate r(t), which may change in stages and within them, adds up to R(t) operations due until t. Evenly, the
n-th operation (from 0) is due when R is n. As a Poisson process it is due when R is the sum of n + 1 random
distances of mean 1: so the process has the rate r(t) at every moment (time rescaling).
"""

from __future__ import annotations

import math
import sys
import zlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ssbench.scenario.model import Stage

#: Moments made at once.
_MOMENTS_AT_ONCE = 4096

#: R(t) is a sum of products; an operation that is due at the very end of the run because of rounding is none.
_MAX_ROUNDING_ERROR = 1e-9

_Moments = npt.NDArray[np.float64]


def derive_group_seed(seed: int, name: str) -> int:
    """Return the seed by which the group of this name draws, in a run with a seed.

    Groups draw independently of each other, and what one draws does not depend on which others there are.
    """
    return int(np.random.SeedSequence([seed, zlib.crc32(name.encode())]).generate_state(1, np.uint64)[0])


class Arrivals:
    """The moments at which operations are due, in order; each can be taken once.

    ``kind`` is ``even`` or ``poisson``, ``seed`` a whole number of 0 or more. ``phase`` is by which part of
    their distance even ones are later. Only what was asked for is made
    and kept. ``taken`` counts what was taken, ``skipped`` what was left out.
    """

    def __init__(self, plan: Sequence[Stage], kind: str, seed: int, phase: float = 0.0) -> None:
        self.taken = self.skipped = 0
        seconds = np.array([stage.seconds for stage in plan])
        rates = np.array([stage.rate or (0.0, 0.0) for stage in plan], np.float64)
        #: Of each stage: when it begins, R at that moment, r at that moment, the slope of r.
        self._begins = np.concatenate([[0.0], seconds.cumsum()[:-1]])
        self._rates = rates[:, 0]
        self._slopes = (rates[:, 1] - rates[:, 0]) / seconds
        means = rates.mean(axis=1)
        # A stage without an end and without operations has none: infinity times 0 would be no number.
        expected = np.where(means > 0, seconds, 0.0) * means
        self._sums = np.concatenate([[0.0], expected.cumsum()])
        # A child seed of its own: the draws of the workload stay what they are without a rate.
        random = np.random.SeedSequence(seed).spawn(3)[2]
        self._random = np.random.Generator(np.random.PCG64(random)) if kind == "poisson" else None
        #: R at the last moment that was made; the next one is further by a distance.
        self._sum = 0.0 if self._random else phase - 1.0
        self._moments: _Moments = np.empty(0)
        self._first = 0
        self._complete = False

    @property
    def next(self) -> float:
        """The next moment, infinite where there is none."""
        self._make_some()
        return float(self._moments[self._first]) if self._first < len(self._moments) else np.inf

    def until(self, moment: float, most: float = math.inf) -> int:
        """Return how many operations that were not taken are due up to a moment, ``most`` if there are more.

        No more are made for it than that, and a block: an overloaded run has a backlog without end.
        """
        self._make_some()
        while not self._complete and self._moments[-1] <= moment and len(self._moments) - self._first < most:
            self._moments = np.concatenate([self._moments[self._first :], self._make()])
            self._first = 0
        due = int(self._moments.searchsorted(moment, "right")) - self._first
        return due if due < most else int(most)

    def take(self, count: int) -> list[float]:
        """Take the next moments; fewer where there are no more."""
        taken: list[float] = []
        while len(taken) < count and self.next < np.inf:
            part = self._moments[self._first : self._first + count - len(taken)]
            self._first += len(part)
            taken += part.tolist()
        self.taken += len(taken)
        return taken

    def skip(self, moment: float) -> None:
        """Leave out what was not taken and is due before a moment."""
        while True:
            self._make_some()
            skipped = max(0, int(self._moments.searchsorted(moment, "left")) - self._first)
            self._first += skipped
            self.skipped += skipped
            if self._complete or self._first < len(self._moments):
                return

    def _make_some(self) -> None:
        """Make the next moments if all that were made were taken."""
        while not self._complete and self._first >= len(self._moments):
            self._moments, self._first = self._make(), 0

    def _make(self) -> _Moments:
        distances = (
            np.ones(_MOMENTS_AT_ONCE)
            if self._random is None
            else self._random.exponential(size=_MOMENTS_AT_ONCE)
        )
        sums = self._sum + distances.cumsum()
        self._sum = float(sums[-1])
        within = sums < self._sums[-1] - _MAX_ROUNDING_ERROR
        if not within.all():
            self._complete = True
            sums = sums[within]
        places = self._sums.searchsorted(sums, "right") - 1
        left, rates = sums - self._sums[places], self._rates[places]
        # left = r t + slope t^2 / 2, solved so that it holds for a slope of 0 too
        roots = np.sqrt(np.maximum(rates**2 + 2 * self._slopes[places] * left, 0.0))
        divisors = np.maximum(rates + roots, np.finfo(np.float64).tiny)
        return np.asarray(self._begins[places] + 2 * left / divisors)


def find_last_due(
    plan: Sequence[Stage], kind: str, seed: int, until: float, counts: Sequence[int], phase: float = 0.0
) -> list[_Moments]:
    """Return the last moments of each stage at which operations were due up to ``until``, so many of each."""
    arrivals = Arrivals(plan, kind, seed, phase)
    ends = np.cumsum([stage.seconds for stage in plan])
    kept = [np.empty(0) for _ in plan]
    while arrivals.next <= min(until, sys.float_info.max):
        block = np.array(arrivals.take(_MOMENTS_AT_ONCE))
        places = ends.searchsorted(block, "right")
        for place, count in enumerate(counts):
            own = block[(places == place) & (block <= until)] if count else block[:0]
            if len(own):
                kept[place] = np.concatenate([kept[place], own])[-count:]
    return kept


def count_due_by_stage(
    plan: Sequence[Stage], kind: str, seed: int, until: float, most: int | None, phase: float = 0.0
) -> list[int]:
    """Return how many operations were due in each stage up to a moment, of the first ``most`` of them."""
    arrivals = Arrivals(plan, kind, seed, phase)
    ends = np.cumsum([stage.seconds for stage in plan])
    counts = np.zeros(len(plan) + 1, np.int64)
    left = math.inf if most is None else most
    while left > 0 and arrivals.next <= min(until, sys.float_info.max):
        block = np.array(arrivals.take(int(min(left, _MOMENTS_AT_ONCE))))
        block = block[block <= until]
        counts += np.bincount(ends.searchsorted(block, "right"), minlength=len(counts))
        left -= len(block)
    return [int(count) for count in counts[:-1]]
