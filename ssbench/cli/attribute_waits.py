"""Waits as long as a constant of the system, among the operations that ``attribute`` joins with logs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ssbench.attribution.joined import Joined
    from ssbench.statistics import Wait


def waits(joined: Joined) -> tuple[Wait, ...]:
    """Return the waits in the latencies of the run, operations of a size within a factor of 4 together."""
    import numpy as np

    from ssbench.statistics.latencies import merge, plain
    from ssbench.statistics.waits import waits_in

    operations = joined.operations
    latency = operations.latency
    size = (np.log2(np.maximum(operations.size, 1)) // 2).astype(np.int64)
    key = operations.code * np.int64(100) + size
    known = latency > 0
    leaves = {
        (int(each) // 100, int(each) % 100): (plain(latency[known & (key == each)]), merge(()))
        for each in np.unique(key[known])
    }
    return waits_in(leaves)
