"""The slowest operations of a run, with what finds them again in logs."""

from __future__ import annotations

import numpy as np

from ssbench.results import ResultBlock
from ssbench.statistics.latencies import Slowest, measured, slowest

#: How many are kept.
MOST = 20


class SlowestCollector:
    """Keeps the slowest successes."""

    def __init__(self) -> None:
        self._kept: list[Slowest] = []

    def add(self, block: ResultBlock, before: int) -> None:
        """Take the results of a block that has ``before`` results before it."""
        latencies = measured(block)
        least = self._kept[-1].latency if len(self._kept) == MOST else 0.0
        rows = np.flatnonzero(latencies > least)
        if len(rows) > MOST:
            rows = np.sort(rows[np.argpartition(-latencies[rows], MOST)[:MOST]])
        for row in rows.tolist():
            self._kept.append(slowest(block, row, float(latencies[row]), before))
        self._kept.sort(key=lambda each: (-each.latency, each.arrival))
        del self._kept[MOST:]

    def finish(self) -> tuple[Slowest, ...]:
        """Return them, the slowest first."""
        return tuple(self._kept)
