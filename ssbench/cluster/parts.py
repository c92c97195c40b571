"""Where the time of each operation went: client to proxy, the proxy's own, the slowest storage server."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ssbench.cluster.joined import NO_INDEX, OBJECT, JoinedRun
from ssbench.cluster.kinds import READS, Completeness
from ssbench.cluster.ranks import FloatArray, IntegerArray

#: A server's time is this much longer than the proxy's before its replica is called late, in seconds.
LATE_REPLICA_SECONDS = 0.005


@dataclass(frozen=True, slots=True)
class OperationParts:
    """Columns, one place for each operation; seconds, NaN where a line is missing.

    ``client`` is what the client waited beyond the proxy's time: connecting, queueing, the network. It is
    never below 0, though a client can have the last byte a little before the proxy notes it.
    ``backend`` is the longest time of an object server that ended within the proxy's time, ``proxy`` the
    proxy's less that: its own work, and for reads the body. ``slowest`` is the place of that line, or
    :data:`~ssbench.cluster.joined.NO_INDEX`. ``extra`` counts servers beyond the usual number: failed
    attempts, and handoffs in their place.
    """

    client: FloatArray
    proxy: FloatArray
    backend: FloatArray
    slowest: IntegerArray
    extra: IntegerArray


@dataclass(frozen=True, slots=True)
class LateReplicas:
    """Replicas of writes that the proxy did not wait for to the end, for each device.

    ``shares`` are those of each device in all replicas of writes; ``waited`` is the median of the proxy's
    seconds in writes where it was late, NaN for none. ``lines`` are the places of their lines.
    """

    lines: IntegerArray
    counts: IntegerArray
    shares: FloatArray
    waited: FloatArray


def split_operation_times(joined: JoinedRun, complete: Completeness) -> OperationParts:
    """Subtract durations, never moments, since the clocks of hosts differ."""
    count = len(joined.operations.code)
    lines, total = joined.lines, joined.proxy_seconds
    inside = np.flatnonzero(
        (lines.of == OBJECT) & ~(lines.seconds > total[lines.operation] + LATE_REPLICA_SECONDS)
    )
    order = inside[np.lexsort((lines.seconds[inside], lines.operation[inside]))]
    slowest = np.full(count, NO_INDEX, np.int32)
    slowest[lines.operation[order]] = order  # the last one written stays
    backend = np.where(slowest == NO_INDEX, np.nan, np.append(lines.seconds, np.nan)[slowest])
    every = np.bincount(lines.operation[lines.of == OBJECT], minlength=count)
    return OperationParts(
        client=np.maximum(joined.operations.latency - total, 0.0),
        proxy=np.maximum(total - backend, 0.0),
        backend=backend,
        slowest=slowest,
        extra=np.maximum(every - complete.expected, 0).astype(np.int32),
    )


def find_late_replicas(joined: JoinedRun) -> LateReplicas:
    """Find the replicas of successful writes that ended after the proxy had answered."""
    lines, devices = joined.lines, len(joined.devices)
    failed_or_read = READS[joined.operations.code] | joined.operations.failed
    written = (lines.of == OBJECT) & ~failed_or_read[lines.operation]
    total = joined.proxy_seconds[lines.operation]
    is_late = written & ((lines.status == 499) | (lines.seconds > total + LATE_REPLICA_SECONDS))
    waited = [
        np.median(total[is_late & (lines.device == place)]) if place in lines.device[is_late] else np.nan
        for place in range(devices)
    ]
    every = np.bincount(lines.device[written], minlength=devices)
    return LateReplicas(
        np.flatnonzero(is_late),
        np.bincount(lines.device[is_late], minlength=devices),
        every / max(every.sum(), 1),
        np.array(waited),
    )


def median_and_p99(values: npt.NDArray[np.float64]) -> tuple[float, float] | None:
    """Return median and 99th percentile of what is not NaN; None for nothing."""
    known = values[~np.isnan(values)]
    if not len(known):
        return None
    median, high = np.quantile(known, (0.5, 0.99))
    return float(median), float(high)
