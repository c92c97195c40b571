"""Where the time of a typical and of a slow request went: parts that add up to what the client waited.

The median of each part is of another request, so medians do not add up. Instead the parts are averaged over
requests around a percentile of the latency.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ssbench.base.measures import Count, Seconds
from ssbench.cluster.joined import NO_INDEX, UPDATE, JoinedRun
from ssbench.cluster.parts import OperationParts
from ssbench.cluster.ranks import FloatArray
from ssbench.scenario.operation_table import OPERATIONS

#: The requests around a percentile: between these shares of all, by latency.
_RANK_BOUNDS = {"p50": (0.45, 0.55), "p99": (0.98, 1.0)}
#: Parts are reported of at least this many requests, around the median of at least so many.
_MIN_REQUESTS = 5
_MIN_MEDIAN_REQUESTS = 20


@dataclass(frozen=True, slots=True)
class LatencyColumns:
    """The parts of each operation in seconds, which add up to its latency; NaN where a line is missing.

    ``way`` is what the client waited beyond the proxy's time, ``server`` the time of the slowest object
    server less ``update``, that of the container server that it updated. ``body`` is what came after the
    first byte of an answer; nothing of a write, whose body is in the servers' times. ``proxy`` is the rest.
    """

    way: FloatArray
    proxy: FloatArray
    server: FloatArray
    update: FloatArray
    body: FloatArray


@dataclass(frozen=True, slots=True)
class TimeShare:
    """The average of each part over the ``requests`` around a percentile (``rank``) of an operation.

    For ``p50`` these are the middle tenth, for ``p99`` the slowest fiftieth. The parts add up to ``latency``.
    ``first_byte`` is when the answer's body began; None where there is none.
    """

    operation: str
    rank: str
    requests: Count
    latency: Seconds
    way: Seconds
    proxy: Seconds
    server: Seconds
    update: Seconds
    body: Seconds
    first_byte: Seconds | None


def divide_latencies(joined: JoinedRun, split: OperationParts) -> LatencyColumns:
    """Divide each operation's latency."""
    lines, latency = joined.lines, joined.operations.latency
    longest = np.zeros(len(latency))
    updates = np.flatnonzero(lines.of == UPDATE)
    np.maximum.at(longest, lines.operation[updates], lines.seconds[updates])
    # A client may have the last byte before the proxy notes the end: every part lies within its time.
    server = np.minimum(split.backend, latency)
    update = np.minimum(longest, server)
    left = latency - server
    after = np.nan_to_num(latency - joined.operations.first_byte, nan=0.0)
    body = np.clip(after, 0.0, np.minimum(left, split.proxy))
    proxy = np.minimum(split.proxy - body, left - body)
    return LatencyColumns(left - body - proxy, proxy, server - update, update, body)


def average_time_shares(
    joined: JoinedRun, split: OperationParts, fine: npt.NDArray[np.bool_]
) -> list[TimeShare]:
    """Return the parts of typical and of slow requests of each operation; ``fine`` are the successes."""
    parts = divide_latencies(joined, split)
    known = fine & (joined.operations.retries == 0) & (split.slowest != NO_INDEX) & ~np.isnan(parts.way)
    found = []
    for operation in OPERATIONS.drawn:
        at = np.flatnonzero(known & (joined.operations.code == operation.code))
        at = at[np.argsort(joined.operations.latency[at], kind="stable")]
        for rank, around in _RANK_BOUNDS.items():
            low, high = (round(share * len(at)) for share in around)
            if rank == "p50" and len(at) >= _MIN_MEDIAN_REQUESTS and high - low < _MIN_REQUESTS:
                low = len(at) // 2 - _MIN_REQUESTS // 2
                high = low + _MIN_REQUESTS
            if high - low >= _MIN_REQUESTS:
                found.append(_average_parts(operation.name, rank, joined, parts, at[low:high]))
    return found


def _average_parts(
    operation: str,
    rank: str,
    joined: JoinedRun,
    parts: LatencyColumns,
    at: npt.NDArray[np.int64],
) -> TimeShare:
    first_byte = joined.operations.first_byte[at]
    return TimeShare(
        operation=operation,
        rank=rank,
        requests=len(at),
        latency=float(joined.operations.latency[at].mean()),
        first_byte=None if np.isnan(first_byte).any() else float(first_byte.mean()),
        **{name: float(getattr(parts, name)[at].mean()) for name in LatencyColumns.__slots__},
    )
