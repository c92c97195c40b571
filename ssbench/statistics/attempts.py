"""Three times of an operation: the whole of it, its last attempt, and what connecting took of it.

Most operations are one attempt over a kept connection. Their latencies are collected once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ssbench.results import ResultBlock
from ssbench.statistics.latencies import Latencies, LatencyCollector, merge

#: What a block has given in which an operation was more than its last attempt.
_MORE = frozenset({"connecting", "pausing", "last_attempt"})

#: Latencies of zero count as not measured.
_LEAST = 1e-9


@dataclass(frozen=True, slots=True)
class Times:
    """Last-byte latencies of operations, what their last attempts took, and connecting of those that did."""

    whole: Latencies
    last_attempt: Latencies
    connecting: Latencies


class TimesCollector:
    """Collects the three times of an operation and a size class."""

    def __init__(self) -> None:
        self._same = LatencyCollector()
        self._whole = LatencyCollector()
        self._last_attempt = LatencyCollector()
        self._connecting = LatencyCollector()

    def add(
        self,
        block: ResultBlock,
        rows: npt.NDArray[np.intp],
        latencies: npt.NDArray[np.float64],
        before: int,
    ) -> None:
        """Take the last-byte latencies of some rows of a block that has ``before`` results before it."""
        if not block.given & _MORE:
            self._same.add(block, rows, latencies, before)
            return
        last_attempt = block.last_attempt[rows]
        more = (last_attempt != latencies) & (latencies > 0)
        self._same.add(block, rows[~more], latencies[~more], before)
        rows, latencies = rows[more], latencies[more]
        self._whole.add(block, rows, latencies, before)
        self._last_attempt.add(block, rows, np.fmax(last_attempt[more], _LEAST), before)
        connecting = block.connecting[rows]
        connected = connecting > 0
        self._connecting.add(block, rows[connected], connecting[connected], before)

    def finish(self) -> Times:
        """Return all that was collected; what both have in common is there once."""
        same = self._same.finish()
        return Times(
            merge([same, self._whole.finish()]),
            merge([same, self._last_attempt.finish()]),
            self._connecting.finish(),
        )
