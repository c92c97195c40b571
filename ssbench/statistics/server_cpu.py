"""CPU that the servers of a Swift on this machine used for each operation.

It is all that their processes used while operations ended, so work of a server for itself is in it too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from ssbench.base.record import Count, Seconds
from ssbench.results.run_description import ServerCpuSample
from ssbench.statistics.confidence import Interval, ratio_interval


class ServerCpu(msgspec.Struct, frozen=True):
    """CPU of the servers of one kind, for each operation that ended."""

    seconds: Seconds  # for one operation
    interval: Interval | None  # of that; null: the run was too short to tell
    operations: Count  # that ended meanwhile


def measure_server_cpu(
    samples: Sequence[ServerCpuSample], since: float | None = None
) -> Mapping[str, ServerCpu]:
    """Return the CPU for an operation by kind of server, of samples that began at ``since`` or later."""
    used = [each for each in samples if since is None or each.until - each.seconds >= since]
    operations = np.array([each.operations for each in used], np.float64)
    total = float(operations.sum())
    found = {}
    for kind in dict.fromkeys(kind for each in used for kind in each.cpu) if total else ():
        cpu = np.array([each.cpu.get(kind, 0.0) for each in used], np.float64)
        mean = float(cpu.sum()) / total
        interval = ratio_interval(cpu, operations)
        found[kind] = ServerCpu(mean, interval.around(mean) if interval else None, int(total))
    return found
