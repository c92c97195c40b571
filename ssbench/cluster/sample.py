"""A random sample of the results of a run, so that the memory of a join hardly grows with the run.

What grows is 8 bytes for each transaction id.

Each time that more results have come together than are asked for, half of them are dropped at random, and
from there on half as many are taken. So every result of the run is in the sample with the same probability,
wherever it stands in the run, and the sample has between half of the number and all of it. Only the slowest
results are taken always: they are too few to matter in a figure, and a report shows them one by one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ssbench.cluster.slowest import MAX_SLOWEST_OPERATIONS as SLOWEST

_SAMPLE_SEED = 1
SampleColumn = npt.NDArray[Any]


class ResultSample:
    """Takes columns of results, block by block, and keeps at most ``most`` rows and the slowest ones.

    It keeps all rows where ``most`` is None.
    """

    def __init__(self, most: int | None) -> None:
        self._most = most
        self._random = np.random.default_rng(_SAMPLE_SEED)
        self._share = 1.0
        self._taken = 0
        self._parts: list[list[SampleColumn]] = []
        self._slowest = np.zeros(0)
        self.seen = 0

    def add(self, latency: npt.NDArray[np.float64], columns: list[SampleColumn]) -> None:
        """Take some of the rows of a block; latencies are NaN for failures."""
        rows = np.arange(self.seen, self.seen + len(latency))
        self.seen += len(latency)
        known = latency[~np.isnan(latency)]
        self._slowest = np.sort(np.append(self._slowest, known))[-SLOWEST - 1 :]
        columns = [rows, latency, *columns]
        if self._share < 1:
            columns = self._some(columns, self._share)
        self._parts.append(columns)
        self._taken += len(columns[0])
        while self._most is not None and self._taken > self._most + SLOWEST:
            self._parts = [self._some(self._together(), 0.5)]
            self._share /= 2
            self._taken = len(self._parts[0][0])

    @property
    def limit(self) -> float:
        """The latency above which a result is among the slowest of those so far."""
        return float(self._slowest[0]) if len(self._slowest) > SLOWEST else -1.0

    def _some(self, columns: list[SampleColumn], share: float) -> list[SampleColumn]:
        latency = columns[1]
        taken = (latency > self.limit) | (self._random.random(len(latency)) < share)
        return [column[taken] for column in columns]

    def _together(self) -> list[SampleColumn]:
        return [np.concatenate(parts) for parts in zip(*self._parts, strict=True)]

    def columns(self) -> list[SampleColumn]:
        """Return the number of each row that was taken in the run, its latency, and its other columns."""
        return self._together()
