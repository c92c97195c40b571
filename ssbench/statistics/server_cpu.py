"""CPU that the servers of a Swift on this machine used for each operation.

It is all that their processes used while operations ended, so work of a server for itself is in it too.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np

from ssbench.base.record import Count, Seconds
from ssbench.results.run_description import ServerCpuSample
from ssbench.statistics.confidence import MIN_SECONDS, Interval, Series, effective_size, ratio_interval


class ServerCpu(msgspec.Struct, frozen=True):
    """CPU of the servers of one kind, for each operation that ended."""

    seconds: Seconds  # for one operation
    interval: Interval | None  # of that; null: the run was too short to tell
    operations: Count  # that ended meanwhile


def select_cpu_samples(
    samples: Sequence[ServerCpuSample], since: float | None = None, side: int | None = None
) -> tuple[ServerCpuSample, ...]:
    """Return the samples of a side, or of all, that began at ``since`` or later."""
    return tuple(
        each
        for each in samples
        if (since is None or each.until - each.seconds >= since) and side in {None, each.side}
    )


def measure_server_cpu(samples: Sequence[ServerCpuSample]) -> Mapping[str, ServerCpu]:
    """Return the CPU for an operation by kind of server; samples of two sides at one time count as one."""
    found = {}
    for kind in _list_kinds(samples):
        [(cpu, operations)] = _sum_by_time(kind, samples)
        if total := float(operations.sum()):
            mean = float(cpu.sum()) / total
            interval = ratio_interval(cpu, operations)
            found[kind] = ServerCpu(mean, interval.around(mean) if interval else None, int(total))
    return found


class CpuDifference(msgspec.Struct, frozen=True):
    """How the CPU for an operation differs between the two sides of a run."""

    before: Seconds  # for one operation of the first side
    after: Seconds  # for one of the second side
    error: float | None  # standard error of the logarithm of their ratio; null: the run was too short
    seconds: float  # how many independent ones it rests on


def compare_server_cpu(
    before: Sequence[ServerCpuSample], after: Sequence[ServerCpuSample]
) -> Mapping[str, CpuDifference]:
    """Return what differs by kind of server; what a second did to both sides is in no difference."""
    found = {}
    for kind in _list_kinds(before):
        (one, ended), (two, ended_after) = _sum_by_time(kind, before, after)
        totals = [float(each.sum()) for each in (one, ended, two, ended_after)]
        if not all(totals):
            continue
        parts = len(one) * (two / totals[2] - ended_after / totals[3] - one / totals[0] + ended / totals[1])
        size = effective_size(parts)
        error = float(np.std(parts, ddof=1)) / math.sqrt(size) if len(parts) >= MIN_SECONDS else None
        found[kind] = CpuDifference(totals[0] / totals[1], totals[2] / totals[3], error, size)
    return found


def _list_kinds(samples: Sequence[ServerCpuSample]) -> Iterator[str]:
    yield from dict.fromkeys(kind for each in samples for kind in each.cpu)


def _sum_by_time(kind: str, *several: Sequence[ServerCpuSample]) -> list[tuple[Series, Series]]:
    """Return the CPU and the operations of samples of one or more, for the times that all of these have."""
    found = []
    for samples in several:
        sums: dict[float, tuple[float, int]] = defaultdict(lambda: (0.0, 0))
        for each in samples:
            cpu, operations = sums[each.until]
            sums[each.until] = cpu + each.cpu.get(kind, 0.0), operations + each.operations
        found.append(sums)
    times = sorted(set.intersection(*map(set, found)))
    columns = [np.array([sums[at] for at in times], np.float64).reshape(-1, 2).T for sums in found]
    return [(cpu, operations) for cpu, operations in columns]
