"""The operations that took longest, for which the report shows where the time went."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ssbench.cluster.ranks import IntegerArray

#: How many the report shows.
MAX_SLOWEST_OPERATIONS = 20


def find_slowest_operations(latency: npt.NDArray[np.float64]) -> IntegerArray:
    """Return their places, the slowest first; failures, whose latencies are NaN, are left out."""
    known = np.nan_to_num(latency, nan=-1.0)
    order = np.argsort(-known, kind="stable")[:MAX_SLOWEST_OPERATIONS]
    return order[known[order] > 0]
