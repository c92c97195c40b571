"""Operations that were due at moments of their own (open loop): response times, and lateness."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ssbench.results import ResultBlock
from ssbench.statistics.censored import Censored
from ssbench.statistics.latencies import Latencies, LatencyCollector, measured, merge

#: An operation that began more than this many seconds after it was due is late.
LATE = 1e-3

#: Latencies of zero count as not measured. An operation that began in the moment in which it was due was
#: measured, and gets the least time that a stat file keeps.
_LEAST = 1e-9


@dataclass(frozen=True, slots=True)
class Due:
    """What is known of some operations that were due, none in a closed loop.

    ``response`` is the time of successes from when they were due to their last byte, ``lateness`` the time
    of all from when they were due to their first attempt. ``late`` counts those later than :data:`LATE`.
    ``waited`` is how long those had waited by the end that never began. ``undue`` are the latencies of
    successes that were not due, in a run that has stages with and without a rate.
    """

    response: Latencies = field(default_factory=lambda: merge(()))
    lateness: Latencies = field(default_factory=lambda: merge(()))
    late: int = 0
    waited: Latencies = field(default_factory=lambda: merge(()))
    undue: Latencies = field(default_factory=lambda: merge(()))

    @property
    def since_due(self) -> Censored:
        """Response times, with those that never began; empty in a closed loop."""
        return Censored.of(self.response, self.waited)

    def users_latency(self, last_byte: Latencies) -> Censored:
        """Return latencies as users met them, of operations with these to the last byte."""
        if not self.response.count and not self.waited.count:
            return Censored.of(last_byte, self.waited)
        measured = merge((self.response, self.undue)) if self.undue.count else self.response
        return Censored.of(measured, self.waited)


def merge_due(parts: Iterable[Due]) -> Due:
    """Return what is known of several groups together."""
    parts = list(parts)
    return Due(
        merge(part.response for part in parts),
        merge(part.lateness for part in parts),
        sum(part.late for part in parts),
        merge(part.waited for part in parts),
        merge(part.undue for part in parts),
    )


class DueCollector:
    """Counts operations that were due; others are passed over."""

    def __init__(self) -> None:
        self._response = LatencyCollector()
        self._lateness = LatencyCollector()
        self._undue = LatencyCollector()
        self._late = 0

    def add(
        self,
        block: ResultBlock,
        rows: npt.NDArray[np.intp],
        started: npt.NDArray[np.float64],
        before: int,
        *,
        mixed: bool = False,
    ) -> None:
        """Take in some rows of a block that has ``before`` results before it; ``started`` is of the block.

        With ``mixed`` those that were not due are kept too.
        """
        if mixed:
            others = rows[np.isnan(block.due[rows])]
            self._undue.add(block, others, measured(block)[others], before)
        rows = rows[~np.isnan(block.due[rows] + started[rows])]
        lateness = np.maximum(started[rows] - block.due[rows], _LEAST)
        self._late += int((lateness > LATE).sum())
        self._lateness.add(block, rows, lateness, before)
        rows = rows[~block.failed[rows]]
        response = np.maximum(block.completed[rows] - block.due[rows], _LEAST)
        self._response.add(block, rows, response, before)

    def finish(self) -> Due:
        """Return all that was counted."""
        return Due(self._response.finish(), self._lateness.finish(), self._late, undue=self._undue.finish())
