"""Latencies as the users met them, where some operations never began: figures that are "at least".

In an open loop an operation that was due and never began has no response time, but it is known how long it
had waited by the end: its response time is longer than that (it is censored). So a percentile of all that
were due lies between two bounds. The lower one counts each of those as what it had waited, the upper one as
infinite.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ssbench.statistics.confidence import Interval
from ssbench.statistics.latencies import Latencies, merge

#: Bounds that differ by no more than this share are one figure.
_SAME = 0.01


@dataclass(frozen=True, slots=True)
class Censored:
    """The latencies of successes, and how long those had waited that were due and never began; seconds.

    ``measured`` are response times in an open loop, else latencies to the last byte. ``waited`` is empty in
    a closed loop. ``together`` is both. Figures are lower bounds; :meth:`most` are the upper ones.
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

    @property
    def mean(self) -> float:
        """The least that the mean is; NaN without any operation."""
        return self.together.mean

    def percentile(self, rank: float) -> float:
        """Return the least that a percentile is, 0 < rank <= 100; NaN without any operation."""
        return self.together.percentile(rank)

    def most(self, rank: float | None) -> float:
        """Return the most that a percentile is, or the mean for None; infinite where that is not known."""
        low = self.mean if rank is None else self.percentile(rank)
        if not self.waited.count:
            return low
        high = math.inf if rank is None else self.measured.percentile(rank, endless=self.waited.count)
        return low if high <= low * (1 + _SAME) else high

    def share_within(self, limit: float) -> float:
        """Return the share of operations up to a limit, as far as they are known to be; 0 without any."""
        known = self.measured.share_within(limit) * self.measured.count
        return known / self.count if self.count else 0.0

    def supports(self, rank: float) -> bool:
        """Whether enough operations lie beyond a percentile."""
        return self.together.supports(rank)

    def supported_percentile(self, rank: float) -> float | None:
        """Return the least that a percentile is; None where too few operations lie beyond."""
        return self.percentile(rank) if self.supports(rank) else None

    def interval(self, rank: float) -> Interval | None:
        """Return the 95 % interval of a percentile; None where it is only a bound, or the run was short."""
        return self.measured.interval(rank) if self.percentile(rank) == self.most(rank) else None


def known(latencies: Latencies) -> Censored:
    """Return latencies of which nothing is missing."""
    return Censored(latencies, merge(()), latencies)
