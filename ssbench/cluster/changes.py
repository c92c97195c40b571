"""What changed between two runs, by part and by server: what a new disk brought.

A time is compared with those of the same kind (operation, policy, size, and the server whose it is) in the
other run. Requests near each other in time are alike, so a run counts as some slices of it: their medians
are compared (Welch's t). What else the cluster did meanwhile changes for all servers. So a server is
compared with its peers besides: by how much more it changed than they did, slice by slice.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np
import numpy.typing as npt

from ssbench.base.measures import Count, PerhapsNumber, PerhapsSeconds, Seconds
from ssbench.cluster import evidence, kinds, parts, shares
from ssbench.cluster.both import concatenate_runs
from ssbench.cluster.culprits import ALPHA, MIN_DELAY_SHARE
from ssbench.cluster.joined import NO_INDEX, OBJECT, UPDATE, JoinedRun
from ssbench.cluster.ranks import FloatArray, IntegerArray, adjust_by_holm
from ssbench.scenario.operation_table import OPERATIONS
from ssbench.statistics.confidence import t_quantile, t_tail, welch_error

#: A run is divided into so many slices, each of at least so many times.
_MAX_SLICES, _MIN_SLICES, _MIN_IN_SLICE = 20, 4, 6
#: Times are compared where each run has so many of their kind.
_MIN_IN_KIND = 3
_CONFIDENCE_LEVEL = 0.975

#: What is less than this share of the largest change of a part is explained by that: a device's in writes
#: by that of another replica, that of a node by that of one of its devices.
_EXPLAINED_SHARES = {"device": 1 / 3, "node": 3 / 4}

#: Logs have seconds in steps of 0.1 ms: what is less than two of them is no change.
_LOG_RESOLUTION = 2e-4

#: What is said of a change.
LONGER, SHORTER, NO_CHANGE_SHOWN = "longer", "shorter", "no difference shown"


@dataclass(frozen=True, slots=True)
class SliceDifference:
    """A difference in seconds, with its 95 % interval and the probability of one as large by chance."""

    seconds: Seconds
    low: Seconds
    high: Seconds
    probability: PerhapsNumber


@dataclass(frozen=True, slots=True)
class TimeChange:
    """How a time changed from one run to the other.

    ``level`` is ``operation``, ``device``, ``node`` or ``proxy``, ``name`` who it is. ``part`` is of an
    operation ``client`` (all of it) or one of :class:`~ssbench.cluster.shares.LatencyColumns`; of servers
    ``own`` (reads and deletes), ``writes`` (the time beyond that of the fastest replica of the same write)
    or ``updates`` (of containers); of proxies ``own part`` or ``way``.
    ``before`` and ``after`` are medians of so many ``times``. ``beside`` is the change less that of peers,
    None without peers. ``verdict`` judges ``beside``, or the change itself where there are no peers, at
    p < 0.01 (Holm's method for all) and 5 % of the time before.
    """

    level: str
    name: str
    part: str
    times: tuple[Count, Count]
    before: PerhapsSeconds
    after: PerhapsSeconds
    difference: SliceDifference
    beside: SliceDifference | None
    verdict: str

    @property
    def judged(self) -> SliceDifference:
        """What the verdict rests on."""
        return self.beside or self.difference


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """One of the two runs: its file, its operations, and how many of them could be compared."""

    file: str
    operations: Count
    failed: Count
    complete: Count
    compared: Count


@dataclass(frozen=True, slots=True)
class Changes:
    """What changed from one run to another; ``comparisons`` is the number of tests that p allows for.

    ``gone`` and ``new`` are servers that only one of the runs has, ``inconclusive`` those with too few times.
    """

    before: ComparedRun
    after: ComparedRun
    changes: list[TimeChange]
    comparisons: Count
    gone: list[str]
    new: list[str]
    inconclusive: list[str]
    warnings: list[str]


@dataclass(frozen=True, slots=True)
class _ComparedTimes:
    """Times that are compared: whose each is, by level (places in ``names``), and their kinds."""

    part: str
    operation: IntegerArray
    seconds: FloatArray
    stratum: IntegerArray
    who: dict[str, IntegerArray]
    names: dict[str, list[str]]
    has_peers: bool = True

    def chosen(self, mask: npt.NDArray[np.bool_]) -> _ComparedTimes:
        """Return some of them."""
        return replace(
            self,
            operation=self.operation[mask],
            seconds=self.seconds[mask],
            stratum=self.stratum[mask],
            who={level: places[mask] for level, places in self.who.items()},
        )


def compare_joined_runs(
    before: JoinedRun, after: JoinedRun, files: tuple[str, str], warnings: Sequence[str] = ()
) -> Changes:
    """Compare two runs of what should be the same load."""
    joined, first = concatenate_runs(before, after), len(before.operations.code)
    complete = kinds.count_completeness(joined)
    fine = ~joined.operations.failed & (joined.operations.latency > 0)
    first_try = fine & (joined.operations.retries == 0)
    usable = evidence.UsableOperations(first_try, first_try & complete.complete & ~complete.concurrent)
    split = parts.split_operation_times(joined, complete)
    found: list[TimeChange] = []
    inconclusive: dict[str, None] = {}
    for times in (*_operation_times(joined, split, usable), *_server_times(joined, split, usable)):
        times = times.chosen(_is_in_both_runs(times, first))  # noqa: PLW2901 - the others are not used
        excess = times.seconds - _kind_middles(times, first)
        for level, names in times.names.items():
            for place, name in enumerate(names):
                change = _measure_change(times, excess, level, place, first)
                if change:
                    found.append(change)
                elif len(np.unique(times.operation[times.who[level] == place] >= first)) == 2:
                    inconclusive[name] = None
    whole = complete.complete & fine
    sides = [
        ComparedRun(
            file,
            len(part.operations.code),
            int(part.operations.failed.sum()),
            int(whole[chosen].sum()),
            int(usable.compared[chosen].sum()),
        )
        for file, part, chosen in zip(
            files, (before, after), (slice(0, first), slice(first, None)), strict=True
        )
    ]
    known = {change.name for change in found}
    servers = [{str(each) for each in (*part.devices, *part.proxies)} for part in (before, after)]
    judged = _judge_changes(found)
    return Changes(
        sides[0],
        sides[1],
        judged,
        len(judged),
        sorted(servers[0] - servers[1]),
        sorted(servers[1] - servers[0]),
        [name for name in inconclusive if name not in known],
        list(warnings),
    )


def _operation_times(
    joined: JoinedRun, split: parts.OperationParts, usable: evidence.UsableOperations
) -> Iterator[_ComparedTimes]:
    """Yield the client's time of each operation, and each of its parts."""
    operations = joined.operations
    columns = shares.divide_latencies(joined, split)
    names = [operation.name for operation in OPERATIONS.drawn]
    place_of = {operation.code: place for place, operation in enumerate(OPERATIONS.drawn)}
    of_code = np.array(
        [place_of.get(code, NO_INDEX) for code in range(int(operations.code.max(initial=0)) + 1)]
    )
    every = {"client": operations.latency} | {name: getattr(columns, name) for name in columns.__slots__}
    for part, seconds in every.items():
        mask = usable.first_try if part == "client" else usable.compared
        at = np.flatnonzero(mask & ~np.isnan(seconds) & (of_code[operations.code] != NO_INDEX))
        stratum = kinds.number_strata((operations.code[at], joined.policy[at]), operations.size[at])
        who = {"operation": of_code[operations.code[at]]}
        times = _ComparedTimes(part, at, seconds[at], stratum, who, {"operation": names}, has_peers=False)
        has = np.bincount(who["operation"], seconds[at] > 0, len(names))
        # An operation without bodies or updates has no such part.
        yield times.chosen(has[who["operation"]] > 0)


def _server_times(
    joined: JoinedRun, split: parts.OperationParts, usable: evidence.UsableOperations
) -> Iterator[_ComparedTimes]:
    """Yield the times that are one server's own, and those of proxies."""
    lines, operations = joined.lines, joined.operations
    seconds = evidence.subtract_update_times(joined)
    fine = (lines.status < 300) & usable.first_try[lines.operation]
    yield _line_times(joined, "own", np.flatnonzero(evidence.is_own_time(joined, usable)), seconds)
    writes = (
        fine
        & usable.compared[lines.operation]
        & (lines.of == OBJECT)
        & ~kinds.READS[operations.code[lines.operation]]
        & (lines.seconds <= joined.proxy_seconds[lines.operation] + parts.LATE_REPLICA_SECONDS)
    )
    yield _line_times(joined, "writes", *_subtract_fastest(joined, np.flatnonzero(writes), seconds))
    yield _line_times(joined, "updates", np.flatnonzero(fine & (lines.of == UPDATE)), seconds)
    for part, own in (("own part", split.proxy), ("way", split.client)):
        at = np.flatnonzero(usable.first_try & (joined.proxy != NO_INDEX) & ~np.isnan(own))
        columns = (operations.code[at], joined.policy[at], joined.proxy[at])
        stratum = kinds.number_strata(columns, operations.size[at])
        yield _ComparedTimes(
            part, at, own[at], stratum, {"proxy": joined.proxy[at]}, {"proxy": joined.proxies}
        )


def _subtract_fastest(
    joined: JoinedRun, at: IntegerArray, seconds: FloatArray
) -> tuple[IntegerArray, FloatArray]:
    """Return replicas of writes, and all seconds, theirs less those of the fastest other of the write.

    The proxy waits for all, so that their times rise and fall together.
    """
    lines = joined.lines
    order = at[np.lexsort((seconds[at], lines.operation[at]))]
    operation = lines.operation[order]
    starts = np.flatnonzero(np.append(True, operation[1:] != operation[:-1])) if len(order) else order
    sizes = np.diff(np.append(starts, len(order)))
    fastest = np.repeat(starts, sizes)
    place = np.arange(len(order))
    several = np.repeat(sizes, sizes) > 1
    other = np.minimum(np.where(place == fastest, fastest + 1, fastest), max(len(order) - 1, 0))
    beyond = seconds.copy()
    beyond[order] = seconds[order] - seconds[order[other]]
    return order[several], beyond


def _line_times(joined: JoinedRun, part: str, at: IntegerArray, seconds: FloatArray) -> _ComparedTimes:
    lines, operations = joined.lines, joined.operations
    of, device = lines.operation[at], lines.device[at]
    size = np.where(kinds.READS[operations.code[of]], operations.size[of], 0)
    stratum = kinds.number_strata((operations.code[of], joined.policy[of], device), size)
    names = kinds.list_node_names(joined)
    node_of = np.array([names.index(each.node) for each in joined.devices], np.int64)
    who = {"device": device, "node": node_of[device] if len(node_of) else device}
    # A node of which one device is compared has nothing to add.
    several = np.bincount(node_of[np.unique(device)], minlength=len(names)) > 1
    if not several.any():
        del who["node"]
    else:
        who["node"] = np.where(several[who["node"]], who["node"], NO_INDEX)
    every = {"device": [str(each) for each in joined.devices], "node": names}
    return _ComparedTimes(part, of, seconds[at], stratum, who, {level: every[level] for level in who})


def _measure_change(
    times: _ComparedTimes, excess: FloatArray, level: str, place: int, first: int
) -> TimeChange | None:
    """Compare the times of one party in both runs; None for too few."""
    mine = times.who[level] == place
    is_after = times.operation >= first
    sides = [_RunTimes.of(times, excess, mine, chosen) for chosen in (~is_after, is_after)]
    before, after = sides
    if before is None or after is None:
        return None
    beside = None
    if times.has_peers and min(len(before.beside), len(after.beside)) >= _MIN_SLICES:
        beside = _measure_difference(before.beside, after.beside)
    return TimeChange(
        level,
        times.names[level][place],
        times.part,
        (before.times, after.times),
        before.median,
        after.median,
        _measure_difference(before.slices, after.slices),
        beside,
        NO_CHANGE_SHOWN,
    )


@dataclass(frozen=True, slots=True)
class _RunTimes:
    """The times of a party in one run: by slices, and less those of peers in slices that have some."""

    times: int
    median: float
    slices: list[float]
    beside: list[float]

    @classmethod
    def of(
        cls,
        times: _ComparedTimes,
        excess: FloatArray,
        mine: npt.NDArray[np.bool_],
        chosen: npt.NDArray[np.bool_],
    ) -> _RunTimes | None:
        """Divide the run into slices; None for too few times."""
        at, others = np.flatnonzero(mine & chosen), np.flatnonzero(~mine & chosen)
        count = min(_MAX_SLICES, len(at) // _MIN_IN_SLICE)
        if count < _MIN_SLICES:
            return None
        cuts = np.sort(times.operation[at])[np.arange(1, count) * len(at) // count]
        own = _slice_medians(excess[at], times.operation[at], cuts)
        known = [not math.isnan(each) for each in own]
        peers = _slice_medians(excess[others], times.operation[others], cuts) if times.has_peers else own
        beside = [a - b for a, b in zip(own, peers, strict=True) if not math.isnan(a - b)]
        slices = [each for each, there in zip(own, known, strict=True) if there]
        return cls(len(at), float(np.median(times.seconds[at])), slices, beside)


def _is_in_both_runs(times: _ComparedTimes, first: int) -> npt.NDArray[np.bool_]:
    """Return which times are of a kind that both runs have."""
    is_after = times.operation >= first
    count = int(times.stratum.max(initial=-1)) + 1
    fewer = np.minimum(*(np.bincount(times.stratum[side], minlength=count) for side in (is_after, ~is_after)))
    found: npt.NDArray[np.bool_] = fewer[times.stratum] >= _MIN_IN_KIND
    return found


def _kind_middles(times: _ComparedTimes, first: int) -> FloatArray:
    """Return the middle between the medians of both runs, of each time's kind.

    The median of all would lie in the run that has more of a kind, and hide a part of the change.
    """
    is_after = times.operation >= first
    return (_kind_medians(times, ~is_after) + _kind_medians(times, is_after)) / 2


def _kind_medians(times: _ComparedTimes, chosen: npt.NDArray[np.bool_]) -> FloatArray:
    """Return the median of each time's kind among some of them."""
    seconds, stratum = times.seconds[chosen], times.stratum[chosen]
    ordered = np.append(seconds[np.lexsort((seconds, stratum))], np.nan)
    sizes = np.bincount(stratum, minlength=int(times.stratum.max(initial=-1)) + 1)
    starts = np.cumsum(sizes) - sizes
    low, high = starts + np.maximum(sizes - 1, 0) // 2, starts + sizes // 2
    medians: FloatArray = ((ordered[low] + ordered[np.minimum(high, len(seconds))]) / 2)[times.stratum]
    return medians


def _slice_medians(values: FloatArray, moments: IntegerArray, cuts: IntegerArray) -> list[float]:
    """Return the median of each slice of a run; NaN for one with nothing in it."""
    slices = np.searchsorted(cuts, moments, side="right")
    return [
        float(np.median(inside)) if len(inside := values[slices == place]) else math.nan
        for place in range(len(cuts) + 1)
    ]


def _measure_difference(before: Sequence[float], after: Sequence[float]) -> SliceDifference:
    """Return by how much the means of slices differ."""
    error, freedom = welch_error(before, after)
    seconds = fmean(after) - fmean(before)
    half = t_quantile(_CONFIDENCE_LEVEL, freedom) * error
    probability = 2 * t_tail(abs(seconds) / error, freedom) if error else float(not seconds)
    return SliceDifference(seconds, seconds - half, seconds + half, probability)


def _judge_changes(changes: list[TimeChange]) -> list[TimeChange]:
    """Say which of the changes are shown, all tests together."""
    adjusted = adjust_by_holm(np.array([change.judged.probability for change in changes]))
    found = [
        replace(change, verdict=_describe_verdict(change) if probability < ALPHA else NO_CHANGE_SHOWN)
        for change, probability in zip(changes, adjusted.tolist(), strict=True)
    ]
    largest: dict[str, float] = {}
    for change in found:
        if change.verdict != NO_CHANGE_SHOWN:
            largest[change.part] = max(largest.get(change.part, 0.0), abs(change.judged.seconds))
    return [
        replace(change, verdict=NO_CHANGE_SHOWN) if _is_explained(change, largest) else change
        for change in found
    ]


def _describe_verdict(change: TimeChange) -> str:
    seconds, own = change.judged.seconds, change.difference.seconds
    least = max(_LOG_RESOLUTION, MIN_DELAY_SHARE * max(abs(change.before), abs(change.after)))
    # Of two, the one that did not change differs from the other as much.
    if abs(seconds) < least or own * seconds <= 0 or abs(own) < abs(seconds) / 2:
        return NO_CHANGE_SHOWN
    return LONGER if seconds > 0 else SHORTER


def _is_explained(change: TimeChange, largest: Mapping[str, float]) -> bool:
    """Whether the largest change of the same part explains this one."""
    if change.level == "device" and change.part != "writes":
        return False
    return abs(change.judged.seconds) < _EXPLAINED_SHARES.get(change.level, 0.0) * largest.get(
        change.part, 0.0
    )
