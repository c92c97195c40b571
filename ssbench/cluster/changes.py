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
from ssbench.cluster.both import both
from ssbench.cluster.culprits import ALPHA, LEAST_SHARE
from ssbench.cluster.joined import NO_INDEX, OBJECT, UPDATE, Joined
from ssbench.cluster.ranks import Floats, Places, holm
from ssbench.scenario.operation_table import OPERATIONS
from ssbench.statistics.confidence import t_quantile, t_tail, welch

#: A run is divided into so many slices, each of at least so many times.
_SLICES, _LEAST_SLICES, _IN_SLICE = 20, 4, 6
#: Times are compared where each run has so many of their kind.
_IN_KIND = 3
_CONFIDENCE = 0.975

#: What is less than this share of the largest change of a part is explained by that: a device's in writes
#: by that of another replica, that of a node by that of one of its devices.
_EXPLAINED = {"device": 1 / 3, "node": 3 / 4}

#: Logs have seconds in steps of 0.1 ms: what is less than two of them is no change.
_RESOLUTION = 2e-4

#: What is said of a change.
LONGER, SHORTER, NOTHING = "longer", "shorter", "no difference shown"


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference in seconds, with its 95 % interval and the probability of one as large by chance."""

    seconds: Seconds
    low: Seconds
    high: Seconds
    probability: PerhapsNumber


@dataclass(frozen=True, slots=True)
class Change:
    """How a time changed from one run to the other.

    ``level`` is ``operation``, ``device``, ``node`` or ``proxy``, ``name`` who it is. ``part`` is of an
    operation ``client`` (all of it) or one of :class:`~ssbench.cluster.shares.Columns`; of servers
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
    difference: Difference
    beside: Difference | None
    verdict: str

    @property
    def judged(self) -> Difference:
        """What the verdict rests on."""
        return self.beside or self.difference


@dataclass(frozen=True, slots=True)
class Side:
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

    before: Side
    after: Side
    changes: list[Change]
    comparisons: Count
    gone: list[str]
    new: list[str]
    inconclusive: list[str]
    warnings: list[str]


@dataclass(frozen=True, slots=True)
class _Times:
    """Times that are compared: whose each is, by level (places in ``names``), and their kinds."""

    part: str
    operation: Places
    seconds: Floats
    stratum: Places
    who: dict[str, Places]
    names: dict[str, list[str]]
    has_peers: bool = True

    def chosen(self, mask: npt.NDArray[np.bool_]) -> _Times:
        """Return some of them."""
        return replace(
            self,
            operation=self.operation[mask],
            seconds=self.seconds[mask],
            stratum=self.stratum[mask],
            who={level: places[mask] for level, places in self.who.items()},
        )


def compare(before: Joined, after: Joined, files: tuple[str, str], warnings: Sequence[str] = ()) -> Changes:
    """Compare two runs of what should be the same load."""
    joined, first = both(before, after), len(before.operations.code)
    complete = kinds.completeness(joined)
    fine = ~joined.operations.failed & (joined.operations.latency > 0)
    first_try = fine & (joined.operations.retries == 0)
    usable = evidence.Usable(first_try, first_try & complete.complete & ~complete.concurrent)
    split = parts.split(joined, complete)
    found: list[Change] = []
    inconclusive: dict[str, None] = {}
    for times in (*_of_operations(joined, split, usable), *_of_servers(joined, split, usable)):
        times = times.chosen(_in_both(times, first))  # noqa: PLW2901 - the others are not used
        excess = times.seconds - _middles(times, first)
        for level, names in times.names.items():
            for place, name in enumerate(names):
                change = _change(times, excess, level, place, first)
                if change:
                    found.append(change)
                elif len(np.unique(times.operation[times.who[level] == place] >= first)) == 2:
                    inconclusive[name] = None
    whole = complete.complete & fine
    sides = [
        Side(
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
    judged = _judged(found)
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


def _of_operations(joined: Joined, split: parts.Parts, usable: evidence.Usable) -> Iterator[_Times]:
    """Yield the client's time of each operation, and each of its parts."""
    operations = joined.operations
    columns = shares.columns(joined, split)
    names = [operation.name for operation in OPERATIONS.drawn]
    place_of = {operation.code: place for place, operation in enumerate(OPERATIONS.drawn)}
    of_code = np.array(
        [place_of.get(code, NO_INDEX) for code in range(int(operations.code.max(initial=0)) + 1)]
    )
    every = {"client": operations.latency} | {name: getattr(columns, name) for name in columns.__slots__}
    for part, seconds in every.items():
        mask = usable.first_try if part == "client" else usable.compared
        at = np.flatnonzero(mask & ~np.isnan(seconds) & (of_code[operations.code] != NO_INDEX))
        stratum = kinds.strata((operations.code[at], joined.policy[at]), operations.size[at])
        who = {"operation": of_code[operations.code[at]]}
        times = _Times(part, at, seconds[at], stratum, who, {"operation": names}, has_peers=False)
        has = np.bincount(who["operation"], seconds[at] > 0, len(names))
        # An operation without bodies or updates has no such part.
        yield times.chosen(has[who["operation"]] > 0)


def _of_servers(joined: Joined, split: parts.Parts, usable: evidence.Usable) -> Iterator[_Times]:
    """Yield the times that are one server's own, and those of proxies."""
    lines, operations = joined.lines, joined.operations
    seconds = evidence.less_updates(joined)
    fine = (lines.status < 300) & usable.first_try[lines.operation]
    yield _of_lines(joined, "own", np.flatnonzero(evidence.is_own(joined, usable)), seconds)
    writes = (
        fine
        & usable.compared[lines.operation]
        & (lines.of == OBJECT)
        & ~kinds.READS[operations.code[lines.operation]]
        & (lines.seconds <= joined.proxy_seconds[lines.operation] + parts.LATE)
    )
    yield _of_lines(joined, "writes", *_beyond_fastest(joined, np.flatnonzero(writes), seconds))
    yield _of_lines(joined, "updates", np.flatnonzero(fine & (lines.of == UPDATE)), seconds)
    for part, own in (("own part", split.proxy), ("way", split.client)):
        at = np.flatnonzero(usable.first_try & (joined.proxy != NO_INDEX) & ~np.isnan(own))
        columns = (operations.code[at], joined.policy[at], joined.proxy[at])
        stratum = kinds.strata(columns, operations.size[at])
        yield _Times(part, at, own[at], stratum, {"proxy": joined.proxy[at]}, {"proxy": joined.proxies})


def _beyond_fastest(joined: Joined, at: Places, seconds: Floats) -> tuple[Places, Floats]:
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


def _of_lines(joined: Joined, part: str, at: Places, seconds: Floats) -> _Times:
    lines, operations = joined.lines, joined.operations
    of, device = lines.operation[at], lines.device[at]
    size = np.where(kinds.READS[operations.code[of]], operations.size[of], 0)
    stratum = kinds.strata((operations.code[of], joined.policy[of], device), size)
    names = kinds.node_names(joined)
    node_of = np.array([names.index(each.node) for each in joined.devices], np.int64)
    who = {"device": device, "node": node_of[device] if len(node_of) else device}
    # A node of which one device is compared has nothing to add.
    several = np.bincount(node_of[np.unique(device)], minlength=len(names)) > 1
    if not several.any():
        del who["node"]
    else:
        who["node"] = np.where(several[who["node"]], who["node"], NO_INDEX)
    every = {"device": [str(each) for each in joined.devices], "node": names}
    return _Times(part, of, seconds[at], stratum, who, {level: every[level] for level in who})


def _change(times: _Times, excess: Floats, level: str, place: int, first: int) -> Change | None:
    """Compare the times of one party in both runs; None for too few."""
    mine = times.who[level] == place
    is_after = times.operation >= first
    sides = [_Half.of(times, excess, mine, chosen) for chosen in (~is_after, is_after)]
    before, after = sides
    if before is None or after is None:
        return None
    beside = None
    if times.has_peers and min(len(before.beside), len(after.beside)) >= _LEAST_SLICES:
        beside = _difference(before.beside, after.beside)
    return Change(
        level,
        times.names[level][place],
        times.part,
        (before.times, after.times),
        before.median,
        after.median,
        _difference(before.slices, after.slices),
        beside,
        NOTHING,
    )


@dataclass(frozen=True, slots=True)
class _Half:
    """The times of a party in one run: by slices, and less those of peers in slices that have some."""

    times: int
    median: float
    slices: list[float]
    beside: list[float]

    @classmethod
    def of(
        cls, times: _Times, excess: Floats, mine: npt.NDArray[np.bool_], chosen: npt.NDArray[np.bool_]
    ) -> _Half | None:
        """Divide the run into slices; None for too few times."""
        at, others = np.flatnonzero(mine & chosen), np.flatnonzero(~mine & chosen)
        count = min(_SLICES, len(at) // _IN_SLICE)
        if count < _LEAST_SLICES:
            return None
        cuts = np.sort(times.operation[at])[np.arange(1, count) * len(at) // count]
        own = _slice_medians(excess[at], times.operation[at], cuts)
        known = [not math.isnan(each) for each in own]
        peers = _slice_medians(excess[others], times.operation[others], cuts) if times.has_peers else own
        beside = [a - b for a, b in zip(own, peers, strict=True) if not math.isnan(a - b)]
        slices = [each for each, there in zip(own, known, strict=True) if there]
        return cls(len(at), float(np.median(times.seconds[at])), slices, beside)


def _in_both(times: _Times, first: int) -> npt.NDArray[np.bool_]:
    """Return which times are of a kind that both runs have."""
    is_after = times.operation >= first
    count = int(times.stratum.max(initial=-1)) + 1
    fewer = np.minimum(*(np.bincount(times.stratum[side], minlength=count) for side in (is_after, ~is_after)))
    found: npt.NDArray[np.bool_] = fewer[times.stratum] >= _IN_KIND
    return found


def _middles(times: _Times, first: int) -> Floats:
    """Return the middle between the medians of both runs, of each time's kind.

    The median of all would lie in the run that has more of a kind, and hide a part of the change.
    """
    is_after = times.operation >= first
    return (_medians(times, ~is_after) + _medians(times, is_after)) / 2


def _medians(times: _Times, chosen: npt.NDArray[np.bool_]) -> Floats:
    """Return the median of each time's kind among some of them."""
    seconds, stratum = times.seconds[chosen], times.stratum[chosen]
    ordered = np.append(seconds[np.lexsort((seconds, stratum))], np.nan)
    sizes = np.bincount(stratum, minlength=int(times.stratum.max(initial=-1)) + 1)
    starts = np.cumsum(sizes) - sizes
    low, high = starts + np.maximum(sizes - 1, 0) // 2, starts + sizes // 2
    medians: Floats = ((ordered[low] + ordered[np.minimum(high, len(seconds))]) / 2)[times.stratum]
    return medians


def _slice_medians(values: Floats, moments: Places, cuts: Places) -> list[float]:
    """Return the median of each slice of a run; NaN for one with nothing in it."""
    slices = np.searchsorted(cuts, moments, side="right")
    return [
        float(np.median(inside)) if len(inside := values[slices == place]) else math.nan
        for place in range(len(cuts) + 1)
    ]


def _difference(before: Sequence[float], after: Sequence[float]) -> Difference:
    """Return by how much the means of slices differ."""
    error, freedom = welch(before, after)
    seconds = fmean(after) - fmean(before)
    half = t_quantile(_CONFIDENCE, freedom) * error
    probability = 2 * t_tail(abs(seconds) / error, freedom) if error else float(not seconds)
    return Difference(seconds, seconds - half, seconds + half, probability)


def _judged(changes: list[Change]) -> list[Change]:
    """Say which of the changes are shown, all tests together."""
    adjusted = holm(np.array([change.judged.probability for change in changes]))
    found = [
        replace(change, verdict=_verdict(change) if probability < ALPHA else NOTHING)
        for change, probability in zip(changes, adjusted.tolist(), strict=True)
    ]
    largest: dict[str, float] = {}
    for change in found:
        if change.verdict != NOTHING:
            largest[change.part] = max(largest.get(change.part, 0.0), abs(change.judged.seconds))
    return [
        replace(change, verdict=NOTHING) if _is_explained(change, largest) else change for change in found
    ]


def _verdict(change: Change) -> str:
    seconds, own = change.judged.seconds, change.difference.seconds
    least = max(_RESOLUTION, LEAST_SHARE * max(abs(change.before), abs(change.after)))
    # Of two, the one that did not change differs from the other as much.
    if abs(seconds) < least or own * seconds <= 0 or abs(own) < abs(seconds) / 2:
        return NOTHING
    return LONGER if seconds > 0 else SHORTER


def _is_explained(change: Change, largest: Mapping[str, float]) -> bool:
    """Whether the largest change of the same part explains this one."""
    if change.level == "device" and change.part != "writes":
        return False
    return abs(change.judged.seconds) < _EXPLAINED.get(change.level, 0.0) * largest.get(change.part, 0.0)
