"""Latencies as the users met them, where some operations never began: percentiles that are "at least".

In an open loop an operation that was due and never began has no response time, but it is known how long it
had waited by the end: its response time is longer than that (it is censored). A percentile of all that were
due lies between two bounds: ``low`` counts each of those as what it had waited, ``high`` as infinite.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ssbench.statistics.confidence import Interval
from ssbench.statistics.latencies import Latencies, merge

#: Bounds that differ by no more than this share are one figure.
_SAME = 0.01


@dataclass(frozen=True, slots=True)
class Bounds:
    """Between which values a figure lies, in seconds; both are the same where it is known.

    ``high`` is infinite where only a lower bound is known. Both are NaN without any operation.
    """

    low: float
    high: float

    @property
    def at_least(self) -> bool:
        """Whether the figure is known only to be at least ``low``."""
        return self.high > self.low * (1 + _SAME)


@dataclass(frozen=True, slots=True)
class Censored:
    """The latencies of successes, and how long those had waited that were due and never began.

    ``measured`` are response times in an open loop, else latencies to the last byte. ``waited`` is empty in
    a closed loop. ``together`` is both.
    """

    measured: Latencies
    waited: Latencies
    together: Latencies

    @classmethod
    def of(cls, measured: Latencies, waited: Latencies) -> Censored:
        """Return both together, without copying."""
        return cls(measured, waited, merge((measured, waited)) if waited.count else measured)

    @property
    def count(self) -> int:
        """How many operations there are, those that never began too."""
        return self.together.count

    def supports(self, rank: float) -> bool:
        """Whether enough operations lie beyond a percentile."""
        return self.together.supports(rank)

    def percentile(self, rank: float) -> Bounds:
        """Return the bounds of a percentile, 0 < rank <= 100; NaN without any operation."""
        low = self.together.percentile(rank)
        return Bounds(
            low, self.measured.percentile(rank, endless=self.waited.count) if self.waited.count else low
        )

    def supported_percentile(self, rank: float) -> Bounds | None:
        """Return the bounds; None where too few operations lie beyond."""
        return self.percentile(rank) if self.supports(rank) else None

    @property
    def mean(self) -> Bounds:
        """The bounds of the mean; NaN without any operation."""
        return Bounds(self.together.mean, math.inf if self.waited.count else self.together.mean)

    def interval(self, rank: float) -> Interval | None:
        """Return the 95 % interval of a percentile; None where it is only a bound, or the run was short."""
        return None if self.percentile(rank).at_least else self.measured.interval(rank)
