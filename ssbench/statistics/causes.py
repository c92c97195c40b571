"""The causes of failures: how many there were of each, after how long and with which answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import msgspec
import numpy as np
import numpy.typing as npt

from ssbench.results.block import ResultBlock
from ssbench.statistics.latencies import Latencies
from ssbench.statistics.latency_collector import LatencyCollector


class Cause(msgspec.Struct, frozen=True):
    """Failures with one cause: how many, and the transaction id of the first that has one.

    ``statuses`` counts the HTTP status of their last answers, -1 where there was none. ``times`` are
    the seconds from the first attempt to the failure, where they are known. ``operations`` counts them
    by the code of the operation.
    """

    count: int
    trans_id: str | None
    statuses: Mapping[int, int]
    times: Latencies
    operations: Mapping[int, int]


class CauseCollector(msgspec.Struct):
    """Counts the failures with one cause."""

    count: int = 0
    trans_id: str | None = None
    statuses: Counter[int] = msgspec.field(default_factory=Counter)
    times: LatencyCollector = msgspec.field(default_factory=LatencyCollector)
    operations: Counter[int] = msgspec.field(default_factory=Counter)

    def add(self, block: ResultBlock, rows: list[int], started: npt.NDArray[np.float64], before: int) -> None:
        """Count some rows of a block that has ``before`` results before it."""
        self.count += len(rows)
        self.trans_id = self.trans_id or next(filter(None, (block.trans_id[row] for row in rows)), None)
        self.statuses.update(block.status[rows].tolist())
        self.operations.update(block.operation[rows].tolist())
        one = np.zeros(len(rows), np.intp)
        self.times.add(block, np.array(rows, np.intp), one, block.completed[rows] - started[rows], before)

    def finish(self) -> Cause:
        """Return what was counted so far."""
        return Cause(
            self.count, self.trans_id, dict(self.statuses), self.times.finish()[0], dict(self.operations)
        )
