"""What changed between two runs, by part and by server, from Swift's logs: what a new disk brought.

A time is compared with those of the same kind (operation, policy, size, and the server whose it is) in the
other run. Requests near each other in time are alike, so a run counts as some slices of it: their medians are
compared (Welch's t). What else the cluster did meanwhile changes for all servers. So a server is compared
with its peers besides: by how much more it changed than they did, slice by slice.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from statistics import fmean
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ssbench.base import record
from ssbench.base.record import Count
from ssbench.base.version import __version__
from ssbench.cluster import operation_times, own_times
from ssbench.cluster.finding_kinds import list_names
from ssbench.cluster.joined_run import NO_INDEX, OBJECT, UPDATE, JoinedRun, concatenate_runs
from ssbench.cluster.rank_tests import FloatArray, IntegerArray, adjust_by_holm
from ssbench.cluster.suspect_search import ALPHA, MIN_DELAY_SHARE
from ssbench.comparison.change import FigureChange
from ssbench.document import units
from ssbench.document.elements import (
    Column,
    Detail,
    Document,
    Element,
    Note,
    Row,
    Table,
    Tone,
    Verdict,
    View,
    Warnings,
)
from ssbench.document.units import DASH, format_milliseconds
from ssbench.reports.part_changes import (
    CHANGE_TONES,
    LONGER,
    NO_CHANGE_SHOWN,
    PART_TITLES,
    SHORTER,
    ChangesByPart,
    SliceDifference,
    TimeChange,
    format_slice_difference,
    format_time_counts,
    make_operations_table,
    make_shown_cell,
)
from ssbench.statistics.confidence import t_quantile, t_tail, welch_error

#: A run is divided into so many slices, each of at least so many times.
_MAX_SLICES, _MIN_SLICES, _MIN_IN_SLICE = 20, 4, 6
#: Times are compared where each run has so many of their kind.
_MIN_IN_KIND = 3
_CONFIDENCE_LEVEL = 0.975

#: The client's time of writes, by device; it is no change by itself, as all replicas of a write have it.
_CLIENT_PART = "client of writes"
#: Replicas that wait for one that begins late take no more than so many times as long as that.
_MAX_WAIT_RATIO = 1.5
#: What is less than this share of the largest change of a part is explained by that: a device's in writes
#: by that of another replica, that of a node by that of one of its devices.
_EXPLAINED_SHARES = {"device": 1 / 3, "node": 3 / 4}

#: Logs have seconds in steps of 0.1 ms: what is less than two of them is no change.
_LOG_RESOLUTION = 2e-4


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
    """What changed from one run to another."""

    before: ComparedRun
    after: ComparedRun
    changes: list[TimeChange]
    comparisons: Count  # tests that p allows for
    gone: list[str]  # servers that only the first run has
    new: list[str]  # servers that only the second run has
    inconclusive: list[str]  # servers with too few times
    warnings: list[str]


@dataclass(frozen=True, slots=True)
class _ComparedTimes:
    """Times that are compared."""

    part: str
    operation: IntegerArray
    seconds: FloatArray
    stratum: IntegerArray  # their kinds
    who: dict[str, IntegerArray]  # Whose each is, by level: places in ``names``
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
    complete = operation_times.count_completeness(joined)
    fine = ~joined.operations.failed & (joined.operations.latency > 0)
    first_try = fine & (joined.operations.retries == 0)
    usable = own_times.UsableOperations(first_try, first_try & complete.complete & ~complete.concurrent)
    split = operation_times.split_operation_times(joined, complete)
    found: list[TimeChange] = []
    by_client: dict[str, TimeChange] = {}
    inconclusive: dict[str, None] = {}
    for times in (*_operation_times(joined, split, usable), *_server_times(joined, split, usable)):
        times = times.chosen(_is_in_both_runs(times, first))  # noqa: PLW2901 - the others are not used
        excess = times.seconds - _kind_middles(times, first)
        for level, names in times.names.items():
            for place, name in enumerate(names):
                change = _measure_change(times, excess, level, place, first)
                if change and change.part == _CLIENT_PART:
                    by_client[name] = change
                elif change:
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
    judged = _turn_round(_judge_changes(found), by_client)
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
    joined: JoinedRun, split: operation_times.OperationParts, usable: own_times.UsableOperations
) -> Iterator[_ComparedTimes]:
    """Yield the client's time of each operation, and each of its parts."""
    operations = joined.operations
    columns = operation_times.divide_latencies(joined, split)
    names = [operation.name for operation in joined.operation_table.drawn]
    place_of = {operation.code: place for place, operation in enumerate(joined.operation_table.drawn)}
    of_code = np.array(
        [place_of.get(code, NO_INDEX) for code in range(int(operations.code.max(initial=0)) + 1)]
    )
    every = {"client": operations.latency} | {name: getattr(columns, name) for name in columns.__slots__}
    for part, seconds in every.items():
        mask = usable.first_try if part == "client" else usable.compared
        at = np.flatnonzero(mask & ~np.isnan(seconds) & (of_code[operations.code] != NO_INDEX))
        stratum = operation_times.number_strata((operations.code[at], joined.policy[at]), operations.size[at])
        who = {"operation": of_code[operations.code[at]]}
        times = _ComparedTimes(part, at, seconds[at], stratum, who, {"operation": names}, has_peers=False)
        has = np.bincount(who["operation"], seconds[at] > 0, len(names))
        # An operation without bodies or updates has no such part.
        yield times.chosen(has[who["operation"]] > 0)


def _server_times(
    joined: JoinedRun, split: operation_times.OperationParts, usable: own_times.UsableOperations
) -> Iterator[_ComparedTimes]:
    """Yield the times that are one server's own, and those of proxies."""
    lines, operations = joined.lines, joined.operations
    seconds = own_times.subtract_update_times(joined)
    fine = (lines.status < 300) & usable.first_try[lines.operation]
    yield _line_times(joined, "own", np.flatnonzero(own_times.is_own_time(joined, usable)), seconds)
    writes = (
        fine
        & usable.compared[lines.operation]
        & (lines.of == OBJECT)
        & ~operation_times.READS[operations.code[lines.operation]]
        & (lines.seconds <= joined.proxy_seconds[lines.operation] + operation_times.LATE_REPLICA_SECONDS)
    )
    at = np.flatnonzero(writes)
    yield _line_times(joined, _CLIENT_PART, at, joined.operations.latency[lines.operation])
    yield _line_times(joined, "writes", *_subtract_fastest(joined, at, seconds))
    yield _line_times(joined, "updates", np.flatnonzero(fine & (lines.of == UPDATE)), seconds)
    for part, own in (("own part", split.proxy), ("way", split.client)):
        at = np.flatnonzero(usable.first_try & (joined.proxy != NO_INDEX) & ~np.isnan(own))
        columns = (operations.code[at], joined.policy[at], joined.proxy[at])
        stratum = operation_times.number_strata(columns, operations.size[at])
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
    size = np.where(operation_times.READS[operations.code[of]], operations.size[of], 0)
    stratum = operation_times.number_strata((operations.code[of], joined.policy[of], device), size)
    names = operation_times.list_node_names(joined)
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
    # What kinds are between both runs, so that these and the change are of the same times.
    middle = float(np.median((times.seconds - excess)[mine]))
    beside = None
    if times.has_peers and min(len(before.beside), len(after.beside)) >= _MIN_SLICES:
        beside = _measure_difference(before.beside, after.beside)
    return TimeChange(
        level,
        times.names[level][place],
        times.part,
        (before.times, after.times),
        middle + fmean(before.slices),
        middle + fmean(after.slices),
        _measure_difference(before.slices, after.slices),
        beside,
        NO_CHANGE_SHOWN,
    )


@dataclass(frozen=True, slots=True)
class _RunTimes:
    """The times of a party in one run: by slices, and less those of peers in slices that have some."""

    times: int
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
        return cls(len(at), slices, beside)


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


def _turn_round(changes: list[TimeChange], by_client: Mapping[str, TimeChange]) -> list[TimeChange]:
    """Turn round the change of devices that begin writes later, whose writes seem shorter than they are.

    What passes before a server's clock starts makes the times of all other replicas of the write longer, as
    they wait for it, and its own shorter beside theirs. After a repair it is the other way round.
    """

    def is_contrary(change: TimeChange) -> bool:
        felt = by_client.get(change.name)
        is_shown = change.part == "writes" and change.level == "device" and change.verdict != NO_CHANGE_SHOWN
        return is_shown and felt is not None and felt.judged.seconds * change.judged.seconds < 0

    late = {
        change.name: by_client[change.name]
        for change in changes
        if is_contrary(change) and by_client[change.name].judged.probability < ALPHA
    }
    most = max((abs(each.judged.seconds) for each in late.values()), default=0.0)

    def turn(change: TimeChange) -> TimeChange:
        if change.name in late and change.part == "writes":
            felt = late[change.name]
            return replace(felt, part="before", verdict=LONGER if felt.judged.seconds > 0 else SHORTER)
        waits = change.part == "writes" and abs(change.judged.seconds) < _MAX_WAIT_RATIO * most
        return replace(change, verdict=NO_CHANGE_SHOWN) if waits or is_contrary(change) else change

    return [turn(change) for change in changes]


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


# -- The changes as a document and as JSON ---------------------------------------------------------


#: What is compared of servers, by part.
_SERVER_TITLES = {
    "own": "reads, deletes",
    "writes": "writes",
    "before": "before its clock",
    "updates": "updates",
    "own part": "own part",
    "way": "way to it",
}
_SERVER_SENTENCES = {
    "own": "its reads and deletes take",
    "writes": "its replicas of writes take",
    "before": "it begins writes later, before its own clock starts, so that they take",
    "updates": "container updates with it take",
    "own part": "its own part of requests takes",
    "way": "the way to it takes",
}
_MAX_SENTENCES, _MAX_ROWS = 8, 15
#: With a larger share of the operations not compared, what is said is of the others.
_MAX_MISSING_SHARE = 0.01

_METHOD_NOTE = (
    "A time is compared with those of the same operation, policy, size and server in the other run; before"
    " and after are means of the medians of slices of a run, as if both had as many of each kind, and the"
    " change is their difference. Servers are judged by how much"
    " more they changed than their peers (beside), at p < 0.01 for all comparisons together and 5 % of the"
    " time. The time of a replica of a write is what it takes beyond the fastest other replica of the write."
)
_ONE_RUN_NOTE = (
    "A change that all servers share may be due to other work of the cluster; one run of each cannot tell."
    " Repeat both, and see ssbench-master compare."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangesReport(Changes):
    """What changed between two runs, by part and by server."""

    format: Literal["ssbench attribution changes"] = "ssbench attribution changes"
    version: Literal[1] = 1
    made_by: str = __version__
    answer: list[str]


def make_changes_json(changes: Changes, *_: Any) -> str:
    """Return the changes as one JSON document."""
    own = {field.name: getattr(changes, field.name) for field in fields(Changes)}
    return record.format_json(ChangesReport(**own, answer=describe_changes(changes)))


def make_changes_document(changes: Changes, _view: View) -> Document:
    """Return the verdict, then every change."""
    shown = [change for change in changes.changes if change.verdict != NO_CHANGE_SHOWN]
    # What clients waited differs from run to run.
    tones = {CHANGE_TONES[change.verdict] for change in shown if change.level != "operation"}
    elements: list[Element] = []
    if warnings := [*changes.warnings, *_describe_incomplete(changes)]:
        elements.append(Warnings(warnings))
    operations = [change for change in changes.changes if change.level == "operation"]
    servers = [change for change in changes.changes if change.level != "operation"]
    servers.sort(key=lambda change: (change.verdict == NO_CHANGE_SHOWN, change.judged.probability))
    if operations:
        elements.append(make_operations_table(operations))
    if servers:
        elements.append(_make_servers_table(servers))
    if changes.changes:
        elements += [Note(_METHOD_NOTE), Note(_ONE_RUN_NOTE)]
    return Document(
        "What changed between two runs, by Swift's logs",
        elements,
        Verdict(
            tones.pop() if len(tones) == 1 else Tone.DOUBTFUL, _format_title(shown), describe_changes(changes)
        ),
        [_describe_run("before", changes.before), _describe_run("after", changes.after)],
    )


def make_changes_by_part(
    changes: Changes, cpu: Mapping[str, FigureChange], is_shown: bool | None
) -> ChangesByPart:
    """Return by which part two sides differ; ``cpu`` has the changes of servers' CPU that are shown.

    ``is_shown`` is what the comparison of the sides says, whose verdict none of a part contradicts: slices
    know nothing of what differs from run to run. It is None where there is no verdict.
    """
    if is_shown is False:
        same = [replace(each, verdict=NO_CHANGE_SHOWN) for each in changes.changes]
        changes = replace(changes, changes=same)
    answer = describe_parts(changes, cpu)
    if is_shown is None and any(each.verdict != NO_CHANGE_SHOWN for each in changes.changes):
        answer += _NO_VERDICT_TEXT
    return ChangesByPart(
        answer,
        tuple(change for change in changes.changes if change.level == "operation"),
        (*changes.warnings, *_describe_incomplete(changes)),
    )


_NO_VERDICT_TEXT = ". Without a verdict above, equal sides may differ as much"

#: What makes up the time of an operation, and whose CPU is used there.
_PART_WORDS = {
    "way": ("the way to the proxy", ""),
    "proxy": ("the proxy's own part", "proxy"),
    "server": ("the object servers' part", "object"),
    "update": ("the container updates", "listings"),
    "body": ("the rest of the body", ""),
}
_MAX_PARTS = 2


def describe_parts(changes: Changes, cpu: Mapping[str, FigureChange]) -> str:
    """Return in one sentence by how much the most frequent operation that changed did, and in which part.

    Where none is shown to have changed, it is the most frequent one of which a part has. ``cpu`` are the
    changes of servers' CPU that are shown.
    """
    of_clients = [change for change in changes.changes if change.part == "client"]
    shown = [change for change in of_clients if change.verdict != NO_CHANGE_SHOWN]
    if not of_clients:
        return "Too few requests of one kind to say in which part the sides differ"
    parts = [
        change
        for change in changes.changes
        if change.level == "operation" and change.part in _PART_WORDS and change.verdict != NO_CHANGE_SHOWN
    ]
    in_part = [change for change in of_clients if any(part.name == change.name for part in parts)]
    first = max(shown or in_part or of_clients, key=lambda change: sum(change.times))
    parts = [part for part in parts if part.name == first.name]
    parts.sort(key=lambda change: -abs(change.difference.seconds))
    name = first.name.upper()
    if shown:
        word = "slower" if first.difference.seconds > 0 else "faster"
        text = f"{name} is {format_milliseconds(abs(first.difference.seconds))} ms {word}"
    else:
        text = f"{name}: no difference shown"
    words = []
    for change in parts[:_MAX_PARTS]:
        own, kind = _PART_WORDS[change.part]
        by, interval = format_slice_difference(change.difference)
        words.append(f"{own} {by} ms ({interval})")
        if (used := cpu.get(kind)) and used.before is not None and used.after is not None:
            words.append(f"its CPU {units.format_time_difference(used.after - used.before)} ms an operation")
    if words:
        return f"{text}: {', '.join(words)}"
    return f"{text}; which part makes that is not shown" if shown else f"{text}, nor which part makes one"


def describe_changes(changes: Changes) -> list[str]:
    """Return what changed as sentences; never empty."""
    found = [_describe_client(change) for change in changes.changes if change.part == "client"]
    if not found:
        found = ["Inconclusive: these are too few requests of the same kind in both runs."]
    found += _describe_parts([change for change in changes.changes if change.level == "operation"])
    servers = [change for change in changes.changes if change.level != "operation"]
    shown = [change for change in servers if change.verdict != NO_CHANGE_SHOWN]
    shown.sort(key=lambda change: change.judged.probability)
    found += [_describe_server(change) for change in shown[:_MAX_SENTENCES]]
    if len(shown) > _MAX_SENTENCES:
        found.append(f"{len(shown) - _MAX_SENTENCES} more changes of servers are in the table.")
    if servers and not shown:
        found.append("No device, node or proxy is shown to have changed more than its peers.")
    for names, when in ((changes.gone, "before"), (changes.new, "after")):
        if names:
            found.append(f"Only {when}: {list_names(names)}. Servers whose names changed are not compared.")
    if changes.inconclusive:
        found.append(f"Too few times to compare: {list_names(changes.inconclusive)}.")
    return found


def _format_title(shown: list[TimeChange]) -> str:
    """Return who changed, and what clients waited, which may be for another reason."""
    texts = []
    for words, verdict in (("Shorter", SHORTER), ("Longer", LONGER)):
        mine = [change for change in shown if change.verdict == verdict]
        servers = [
            f"{change.name} ({_SERVER_TITLES[change.part]})" for change in mine if change.level != "operation"
        ]
        clients = [change.name for change in mine if change.part == "client"]
        if servers:
            texts.append(f"{words}: {list_names(servers)}")
        if clients:
            texts.append(f"clients waited {verdict}: {list_names(clients)}")
    text = "; ".join(texts) or "No difference shown"
    return f"{text[:1].upper()}{text[1:]}"


def _describe_client(change: TimeChange) -> str:
    difference = change.difference
    if change.verdict == NO_CHANGE_SHOWN:
        # The interval is that of one comparison, the verdict one of all together.
        among = " among so many comparisons" if difference.low * difference.high > 0 else ""
        alone = ", of this one alone" if among else ""
        return f"{change.name}: no difference shown{among} ({_format_interval(difference)}{alone})."
    share = f"{units.format_change(difference.seconds / change.before)} %, " if change.before > 0 else ""
    return (
        f"{change.name}: {_format_by(difference.seconds)} ({share}{_format_interval(difference)};"
        f" median {units.format_latency(change.before)} before, {units.format_latency(change.after)} after)."
    )


def _describe_parts(changes: list[TimeChange]) -> Iterator[str]:
    """Say which parts of operations changed."""
    for part, words in PART_TITLES.items():
        shown = [
            change
            for change in changes
            if change.part == part != "client" and change.verdict != NO_CHANGE_SHOWN
        ]
        if shown:
            listed = ", ".join(f"{change.name} {_format_by(change.difference.seconds)}" for change in shown)
            yield f"Of that, {words}: {listed}."


def _describe_server(change: TimeChange) -> str:
    kind = f"{change.level} {change.name}" if change.level != "device" else change.name
    beside = " beside its peers" if change.beside else ""
    return (
        f"{kind}: {_SERVER_SENTENCES[change.part]}"
        f" {_format_by(change.judged.seconds)}{beside} ({_format_interval(change.judged)};"
        f" median {units.format_latency(change.before)} before, {units.format_latency(change.after)} after)."
    )


def _format_by(value: float) -> str:
    return f"{units.format_latency(abs(value))} {'more' if value > 0 else 'less'}"


def _format_interval(difference: SliceDifference) -> str:
    return (
        f"95 %: {units.format_time_difference(difference.low)} to"
        f" {units.format_time_difference(difference.high)} ms"
    )


def _describe_incomplete(changes: Changes) -> Iterator[str]:
    for when, side in (("before", changes.before), ("after", changes.after)):
        good = side.operations - side.failed
        if side.complete < (1 - _MAX_MISSING_SHARE) * good:
            yield (
                f"{when}: {good - side.complete:,} of {good:,} operations lack a line of an object server: is"
                " the log of every storage node given?"
            )


def _describe_run(when: str, side: ComparedRun) -> str:
    failed = f", {side.failed:,} failed" if side.failed else ""
    return f"{when}: {side.file}: {side.operations:,} operations{failed}, {side.compared:,} compared"


def _make_servers_table(changes: list[TimeChange]) -> Table:
    columns = (
        Column("server", is_number=False),
        Column("times of", is_number=False, short="of"),
        Column("times", detail=Detail.VERBOSE),
        Column("before ms", short="before"),
        Column("after ms", short="after"),
        Column("change"),
        Column("beside"),
        Column("95 % interval", short="95 %"),
        Column("shown", is_number=False, is_whole=True),
    )
    rows: list[Row] = [
        [
            change.name,
            _SERVER_TITLES[change.part],
            format_time_counts(change),
            format_milliseconds(change.before),
            format_milliseconds(change.after),
            units.format_time_difference(change.difference.seconds),
            *(
                format_slice_difference(change.beside)
                if change.beside
                else (DASH, format_slice_difference(change.difference)[1])
            ),
            make_shown_cell(change),
        ]
        for change in changes
    ]
    return Table(columns, rows, keys=2, title="Own times of servers (ms)", most=_MAX_ROWS)
