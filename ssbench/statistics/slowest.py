"""The slowest operations of a run, with what finds them again in logs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ssbench.results import ResultBlock
from ssbench.statistics.latencies import Slowest, measured, slowest

#: How many are kept.
MOST = 20


@dataclass(frozen=True, slots=True)
class SlowOperation:
    """A slow success. ``first_byte`` is NaN where it has none, ``storage_url`` -1 where it is not known.

    ``started`` is seconds since 1970; ``address`` that of the server, None where it is not known.
    """

    slowest: Slowest
    first_byte: float
    started: float
    size: int
    retries: int
    storage_url: int
    address: str | None


class SlowestCollector:
    """Keeps the slowest successes."""

    def __init__(self) -> None:
        self._kept: list[SlowOperation] = []

    def add(self, block: ResultBlock, started: npt.NDArray[np.float64], before: int) -> None:
        """Take the results of a block that has ``before`` results before it."""
        latencies = measured(block)
        least = self._kept[-1].slowest.latency if len(self._kept) == MOST else 0.0
        rows = np.flatnonzero(latencies > least)
        if len(rows) > MOST:
            rows = np.sort(rows[np.argpartition(-latencies[rows], MOST)[:MOST]])
        for row in rows.tolist():
            self._kept.append(
                SlowOperation(
                    slowest=slowest(block, row, float(latencies[row]), before),
                    first_byte=float(block.first_byte[row]),
                    started=float(started[row]),
                    size=int(block.size[row]),
                    retries=int(block.retries[row]),
                    storage_url=int(block.storage_url[row]),
                    address=block.address[row],
                )
            )
        self._kept.sort(key=lambda each: (-each.slowest.latency, each.slowest.arrival))
        del self._kept[MOST:]

    def finish(self) -> tuple[SlowOperation, ...]:
        """Return them, the slowest first."""
        return tuple(self._kept)
