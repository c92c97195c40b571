"""The operations that took longest, for which the report shows where the time went."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ssbench.cluster.ranks import Places

#: How many the report shows.
MOST = 20


def slowest(latency: npt.NDArray[np.float64]) -> Places:
    """Return their places, the slowest first; failures, whose latencies are NaN, are left out."""
    known = np.nan_to_num(latency, nan=-1.0)
    order = np.argsort(-known, kind="stable")[:MOST]
    return order[known[order] > 0]
