"""CPU that the servers of a Swift on this machine used for each operation.

It is all that their processes used while operations ended, so work of a server for itself is in it too.

A PUT takes several times as much as a GET, and how many of each end in a second is chance. Both sides of a
run draw the same operations, so that this is not in their difference: there each operation weighs what its
kind costs in this run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from ssbench.base.record import Count, Seconds
from ssbench.results.run_description import ServerCpuSample
from ssbench.statistics.confidence import MIN_SECONDS, Interval, Series, ratio_interval

#: A run is divided into parts of so many seconds where that makes this many.
_PART_SECONDS, _MIN_PARTS, _MAX_PARTS = 5, 4, 20

#: Seconds of equal sides differ by no more than this, a share of their mean, by rounding.
_ROUNDING = 1e-9

#: The least variance of means of parts, by that of seconds which do not depend on each other. Operations that
#: are counted a second late make less of it, and so does chance: without this limit equal Swifts were called
#: different in 1 of 21 recorded runs of 12 s, and what was added to one was named no more often.
_MIN_EXCESS = 0.7


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
    """How the CPU for an operation differs between both sides, had they as many operations of each kind."""

    before: Seconds  # for one operation of the first side
    after: Seconds  # for one of the second side
    middle: float  # logarithm of their ratio
    error: float | None  # standard error of that; null: the run was too short
    freedom: float  # degrees of freedom of the error


def compare_server_cpu(
    before: Sequence[ServerCpuSample], after: Sequence[ServerCpuSample]
) -> Mapping[str, CpuDifference]:
    """Return what differs by kind of server; what a second did to both sides is in no difference."""
    differences: dict[str, tuple[float, float, float]] = {}
    parts: dict[str, Series] = {}
    counts = _count_by_time(before, after)
    for kind in _list_kinds(before):
        sides = _sum_by_time(kind, before, after)
        totals = [(float(cpu.sum()), float(operations.sum())) for cpu, operations in sides]
        if not all(cpu > 0 and operations > 0 for cpu, operations in totals):
            continue
        costs = _estimate_costs(np.vstack(counts), np.concatenate([each[0] for each in sides]))
        if not all((own @ costs).any() for own in counts):  # all that a side did would cost nothing
            costs = np.ones(len(costs))
        shares = []  # of its CPU, and of what its operations should cost, in each second of a side
        expected = []
        for (cpu, _), (total, _), own in zip(sides, totals, counts, strict=True):
            weights = own @ costs
            expected.append(total / float(weights.sum()))
            shares.append(cpu / total - weights / weights.sum())
        parts[kind] = len(shares[0]) * (shares[1] - shares[0])
        ratio = expected[1] / expected[0]
        middle = math.sqrt(math.prod(cpu / operations for cpu, operations in totals))
        differences[kind] = middle / math.sqrt(ratio), middle * math.sqrt(ratio), math.log(ratio)
    errors, freedom = _estimate_errors([*parts.values()])
    return {
        kind: CpuDifference(*each, error, freedom)
        for (kind, each), error in zip(differences.items(), errors, strict=True)
    }


def _estimate_errors(several: Sequence[Series]) -> tuple[Sequence[float | None], float]:
    """Return the standard errors of the means of some series of seconds, and their degrees of freedom.

    The error of each is that of its seconds, were they independent, times a factor that all have in common:
    the mean of how much the variance of means of equal parts of the run exceeds that (batch means; Law and
    Carson, 1979). An operation that is counted in the second after that in which it was done makes two
    seconds differ, and no part of several. The variance of parts of independent seconds, by that of all, is a
    multiple of a beta variable, whose variance gives the degrees of freedom; so many series say as much of
    the factor as their number by the squares of their correlations. Fewer than ten seconds have no error.

    How uncertain the difference of two sides is follows from means of a few seconds. A short run has few of
    these: with four means the error of servers of one kind came out as half or twice of what it should be.
    But how much more, or less, means of seconds scatter than seconds that do not depend on each other is much
    the same for all servers of a run; so that is estimated of all kinds together.
    """
    count = len(several[0]) if several else 0
    if count < MIN_SECONDS:
        return [None] * len(several), 1.0
    alone = [float(np.std(each, ddof=1)) / math.sqrt(count) for each in several]
    known = [place for place, error in enumerate(alone) if error > _ROUNDING]
    if not known:
        return alone, count - 1.0
    part_count = min(max(count // _PART_SECONDS, _MIN_PARTS), _MAX_PARTS)
    excess = 0.0
    for place in known:
        means = [float(each.mean()) for each in np.array_split(several[place], part_count)]
        excess += float(np.var(means, ddof=1)) / part_count / alone[place] ** 2 / len(known)
    correlations = np.corrcoef([several[place] for place in known])
    worth = len(known) ** 2 / float(np.square(correlations).sum())
    of_seconds = 2 / (count - 1)
    of_factor = 2 * (count - part_count) / ((part_count - 1) * (count + 1)) / worth
    freedom = 2 / ((1 + of_seconds) * (1 + of_factor) - 1)
    return [error * math.sqrt(max(_MIN_EXCESS, excess)) for error in alone], freedom


def _estimate_costs(counts: npt.NDArray[np.float64], cpu: Series) -> Series:
    """Return what an operation of each kind costs, by least squares of seconds with so many of each.

    None costs less than nothing; where that leaves no kind, all cost the same.
    """
    kinds = [*np.flatnonzero(counts.sum(axis=0))]
    while kinds:
        found = np.linalg.lstsq(counts[:, kinds], cpu, rcond=None)[0]
        if (found > 0).all():
            costs = np.zeros(counts.shape[1])
            costs[kinds] = found
            return costs
        kinds = [kind for kind, cost in zip(kinds, found, strict=True) if cost > 0]
    return np.ones(counts.shape[1])


def _list_kinds(samples: Sequence[ServerCpuSample]) -> Iterator[str]:
    yield from dict.fromkeys(kind for each in samples for kind in each.cpu)


def _sum_by_time(kind: str, *several: Sequence[ServerCpuSample]) -> list[tuple[Series, Series]]:
    """Return the CPU and the operations of samples of one or more, for the times that all of these have."""
    times = _list_common_times(several)
    found = []
    for samples in several:
        sums = dict.fromkeys(times, (0.0, 0))
        for each in samples:
            if each.until in sums:
                cpu, operations = sums[each.until]
                sums[each.until] = cpu + each.cpu.get(kind, 0.0), operations + each.operations
        cpu_column, operation_column = np.array([*sums.values()], np.float64).reshape(-1, 2).T
        found.append((cpu_column, operation_column))
    return found


def _count_by_time(*several: Sequence[ServerCpuSample]) -> list[npt.NDArray[np.float64]]:
    """Return how many operations of each kind ended, a row for each time that all have.

    The first kind is that of older files, which do not know it.
    """
    places = {at: place for place, at in enumerate(_list_common_times(several))}
    codes = sorted({code for samples in several for each in samples for code in each.by_operation})
    found = []
    for samples in several:
        counts = np.zeros((len(places), 1 + len(codes)))
        for each in samples:
            if each.until in places:
                own = [each.by_operation.get(code, 0) for code in codes]
                counts[places[each.until]] += [each.operations - sum(own), *own]
        found.append(counts)
    return found


def _list_common_times(several: Sequence[Sequence[ServerCpuSample]]) -> list[float]:
    return sorted(set.intersection(*({each.until for each in samples} for samples in several)))
