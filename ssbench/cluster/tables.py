"""The tables of an attribution, and how much of the run the logs cover."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ssbench.cluster.addresses import NodeAddresses
from ssbench.cluster.culprits import CandidateLevel
from ssbench.cluster.doubts import describe_log_faults
from ssbench.cluster.joined import NO_INDEX, OBJECT, OTHER, UPDATE, JoinedRun
from ssbench.cluster.kinds import ComparedUnits, Completeness
from ssbench.cluster.parts import OperationParts, median_and_p99
from ssbench.cluster.ranks import (
    FloatArray,
    IntegerArray,
    PeerDifference,
    Units,
    make_pairs,
    measure_peer_difference,
    sort_distinct,
)
from ssbench.cluster.slowest import find_slowest_operations
from ssbench.scenario.operation_table import OPERATIONS

#: Beyond this many candidates of one kind, only of those with most requests the difference is measured.
_MAX_MEASURED = 100
_MAX_PARTITIONS = 10
#: Most devices of a partition that are named.
_MAX_DEVICES = 5
#: A node may have no request for this many seconds.
_QUIET_SECONDS = 10
#: At most this many nodes whose logs begin late or end early are named.
_MAX_NAMED = 5


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many operations there are, and how many the logs mention. ``complete`` have all object lines.

    ``delayed`` are successes whose worker stalled. ``updates`` counts the lines of container servers that
    received updates of objects. ``results`` are those of the run, of which the operations are a random
    sample where there are too many.
    """

    results: int
    operations: int
    failed: int
    without_id: int
    retried: int
    delayed: int
    with_proxy: int
    complete: int
    incomplete: int
    concurrent: int
    compared: int
    updates: int
    lines: int
    lines_of_run: int
    cut: int
    duplicates: int
    reasons: list[str]


@dataclass(frozen=True, slots=True)
class PartRow:
    """The parts of an operation: (median, 99th percentile) in seconds, None where there are no lines.

    ``extra`` counts those that took more servers than usual: failed attempts and handoffs.
    """

    operation: str
    requests: int
    latency: tuple[float, float] | None
    client: tuple[float, float] | None
    proxy: tuple[float, float] | None
    backend: tuple[float, float] | None
    extra: int


@dataclass(frozen=True, slots=True)
class SlowRequest:
    """One operation: its parts in seconds, its proxy, and the slowest device and process; None if unknown.

    ``extra`` is how many servers it took beyond the usual number, ``handoffs`` how many handoffs the proxy
    says that it asked for. ``named`` are those that are named as slow, late or broken and took part in it:
    the slowest server of a write is often another one, which waited for them.
    """

    operation: str
    latency: float
    client: float | None
    proxy_own: float | None
    backend: float | None
    proxy: str | None
    device: str | None
    process: str | None
    extra: int
    handoffs: int
    trans_id: str | None = None
    named: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ServerRow:
    """A proxy, node, process, device or partition.

    ``seconds`` are (median, 99th percentile) of its own time by its log, ``latency`` those of the client in
    requests that it took part in. ``errors`` are answers of 5xx and 499. ``longer`` is the difference to
    requests of the same kind without it; None where there are none or too few. Of two, whose requests are
    compared with each other's only, the slower one alone has it.
    """

    name: str
    requests: int
    errors: int
    seconds: tuple[float, float] | None
    latency: tuple[float, float] | None
    longer: PeerDifference | None = None


def make_proxy_rows(joined: JoinedRun, compared: ComparedUnits, level: CandidateLevel) -> list[ServerRow]:
    """Return a row for each proxy."""
    operations = joined.operations
    rows = []
    for place, name in enumerate(joined.proxies):
        mask = joined.proxy == place
        rows.append(
            ServerRow(
                name,
                int(mask.sum()),
                int((mask & operations.failed).sum()),
                median_and_p99(joined.proxy_seconds[mask]),
                median_and_p99(operations.latency[mask]),
                _measure_longer(compared.units, level, place),
            )
        )
    return keep_slower_of_two(rows)


def make_server_rows(
    joined: JoinedRun,
    compared: ComparedUnits,
    level: CandidateLevel,
    names: list[str],
    key: IntegerArray,
    evidence: FloatArray,
) -> list[ServerRow]:
    """Return a row for each device or node; ``key`` is who it is in each line.

    Those with most evidence come first: of few requests, a large difference may be by chance.
    """
    lines = joined.lines
    at = np.flatnonzero(lines.of != OTHER)
    at = at[np.argsort(key[at], kind="stable")]
    groups = np.split(at, np.cumsum(np.bincount(key[at], minlength=len(names)))[:-1]) if names else []
    most = sorted(range(len(names)), key=lambda place: -len(groups[place]))[:_MAX_MEASURED]
    rows = []
    order = sorted((place for place in range(len(names)) if len(groups[place])), key=lambda at: -evidence[at])
    for place in order:
        group = groups[place]
        took_part = sort_distinct(lines.operation[group])
        rows.append(
            ServerRow(
                names[place],
                len(took_part),
                _count_failures(lines.status[group]),
                median_and_p99(lines.seconds[group]),
                median_and_p99(joined.operations.latency[took_part]),
                _measure_longer(compared.units, level, place) if place in most else None,
            )
        )
    return keep_slower_of_two(rows)


def keep_slower_of_two(rows: list[ServerRow]) -> list[ServerRow]:
    """Keep the difference of the slower one, where there are two: that of the other is the same, once more.

    Medians of skewed latencies can make both seem slower than the other.
    """
    known = [row.longer.median for row in rows if row.longer is not None]
    if len(rows) != 2 or len(known) != 2:
        return rows
    slower = max(known)
    return [
        row if row.longer is not None and row.longer.median == slower > 0 else replace(row, longer=None)
        for row in rows
    ]


def make_partition_rows(joined: JoinedRun) -> list[ServerRow]:
    """Return a row for each of the partitions with most requests, and which devices they are on."""
    lines = joined.lines
    mine = np.flatnonzero(lines.of == OBJECT)
    did = make_pairs(lines.partition[mine], lines.operation[mine], len(joined.operations.code))
    counts = np.bincount(did.unit, minlength=len(joined.partitions))
    rows = []
    for place in np.argsort(-counts, kind="stable")[:_MAX_PARTITIONS].tolist():
        if not counts[place]:
            break
        policy, number = joined.partitions[place]
        group = mine[lines.partition[mine] == place]
        devices = sorted({str(joined.devices[each]) for each in np.unique(lines.device[group])})
        if len(devices) > _MAX_DEVICES:
            devices[_MAX_DEVICES:] = [f"{len(devices) - _MAX_DEVICES} more"]
        rows.append(
            ServerRow(
                f"{number}{'' if policy < 0 else f' of policy {policy}'} ({', '.join(devices)})",
                int(counts[place]),
                _count_failures(lines.status[group]),
                median_and_p99(lines.seconds[group]),
                median_and_p99(joined.operations.latency[did.candidate[did.unit == place]]),
            )
        )
    return rows


def _count_failures(status: IntegerArray) -> int:
    return int(((status >= 500) | (status == 499)).sum())


def _measure_longer(units: Units, level: CandidateLevel, place: int) -> PeerDifference | None:
    mask = level.who.of(place, len(units))
    if not mask.any() or mask.all():
        return None
    measured = measure_peer_difference(units, mask)
    return None if np.isnan(measured.median) else measured


def make_part_rows(joined: JoinedRun, split: OperationParts, fine: npt.NDArray[np.bool_]) -> list[PartRow]:
    """Return a row for each operation; ``fine`` are the successes."""
    rows = []
    for operation in OPERATIONS.drawn:
        mask = fine & (joined.operations.code == operation.code)
        if mask.any():
            rows.append(
                PartRow(
                    operation.name,
                    int(mask.sum()),
                    median_and_p99(joined.operations.latency[mask]),
                    median_and_p99(split.client[mask]),
                    median_and_p99(split.proxy[mask]),
                    median_and_p99(split.backend[mask]),
                    int((split.extra[mask] > 0).sum()),
                )
            )
    return rows


def make_slowest_rows(joined: JoinedRun, split: OperationParts, suspects: set[str]) -> list[SlowRequest]:
    """Return the successes that took longest, and where their time went; ``suspects`` are names."""
    rows = []
    places = find_slowest_operations(joined.operations.latency)
    theirs = np.flatnonzero(np.isin(joined.lines.operation, places))
    for place in places.tolist():
        line = int(split.slowest[place])
        proxy = joined.proxies[joined.proxy[place]] if joined.proxy[place] != NO_INDEX else None
        own = theirs[joined.lines.operation[theirs] == place]
        took_part = [proxy, *(str(joined.devices[each]) for each in np.unique(joined.lines.device[own]))]
        rows.append(
            SlowRequest(
                OPERATIONS[joined.operations.code[place]].name,
                float(joined.operations.latency[place]),
                _none_if_unknown(split.client[place]),
                _none_if_unknown(split.proxy[place]),
                _none_if_unknown(split.backend[place]),
                proxy,
                None if line == NO_INDEX else str(joined.devices[joined.lines.device[line]]),
                None if line == NO_INDEX else str(joined.processes[joined.lines.process[line]]),
                int(split.extra[place]),
                int(joined.handoffs[place]),
                joined.trans_ids.get(place),
                tuple(each for each in took_part if each in suspects),
            )
        )
    return rows


def _none_if_unknown(seconds: float) -> float | None:
    return None if np.isnan(seconds) else float(seconds)


def make_error_rows(
    counts: Counter[tuple[str, str, str, str]], addresses: NodeAddresses
) -> list[tuple[str, str, int]]:
    """Return kind, device and number of errors; devices are called as in the logs where that is known."""
    rows = []
    for (kind, server, address, device), count in counts.most_common():
        raw = " ".join(word for word in (server, f"{address}/{device}" if device else address) if word)
        name = addresses.name(address, device, server) if address else None
        rows.append((kind, f"{name} ({raw})" if name else raw, count))
    return rows


def measure_coverage(joined: JoinedRun, complete: Completeness, usable: npt.NDArray[np.bool_]) -> Coverage:
    """Count what the logs mention; ``usable`` operations are compared with each other."""
    operations = joined.operations
    fine = ~operations.failed
    with_proxy = joined.proxy != NO_INDEX
    whole = complete.complete
    facts = Coverage(
        results=joined.results,
        operations=len(operations.code),
        failed=int(operations.failed.sum()),
        without_id=joined.without_id,
        retried=int((operations.retries > 0).sum()),
        delayed=int((fine & np.isnan(operations.latency)).sum()),
        with_proxy=int((with_proxy & fine).sum()),
        complete=int((whole & fine).sum()),
        incomplete=int((~whole & fine).sum()),
        concurrent=int(complete.concurrent.sum()),
        compared=int(usable.sum()),
        updates=int((joined.lines.of == UPDATE).sum()),
        lines=sum(file.lines for file in joined.files),
        lines_of_run=sum(file.of_run for file in joined.files),
        cut=sum(file.cut for file in joined.files),
        duplicates=joined.duplicates,
        reasons=[],
    )
    facts.reasons.extend(_explain_missing(joined, facts, complete.found))
    return facts


def _explain_missing(joined: JoinedRun, facts: Coverage, found: IntegerArray) -> list[str]:
    """Tell likely reasons of what is missing."""
    reasons = []
    good = facts.operations - facts.failed
    if not facts.with_proxy:
        reasons.append(
            "no access line of a proxy: give the proxies' logs too; they need proxy-logging in the pipeline,"
            " and --log-format where they have a log_msg_template of their own"
        )
    elif facts.with_proxy < 0.99 * good:
        reasons.append(
            "operations without a proxy's line: is the log of every proxy given, to the run's end?"
        )
    if not found.any():
        reasons.append(
            "no access line of an object server: give the storage nodes' logs too; they need"
            " log_requests = true and log_level = INFO, as is the default"
        )
    elif facts.complete < 0.99 * good:
        reasons.append(
            "operations without all their object servers' lines: is the log of every storage node given?"
            " A device that answers too late, or not at all, logs no line either"
        )
    if facts.cut:
        reasons.append(
            "cut lines: log_max_line_length, or the largest message of the log server, is too small"
        )
    reasons += describe_log_faults(joined)
    missing = min(facts.with_proxy, facts.complete) < 0.99 * good
    return [*reasons, *_explain_log_ends(joined, missing=missing)]


def _explain_log_ends(joined: JoinedRun, *, missing: bool) -> list[str]:
    """Tell which logs do not reach from the beginning of the run to its end, all files of a node together.

    With ``missing`` lines those of single nodes are named too; else they had nothing to do, it seems.
    """
    began, ended = joined.began, joined.ended
    spans: dict[str, list[int]] = {}
    for file in joined.files:
        if file.first is not None and file.last is not None:
            spans.setdefault(file.node, []).extend((file.first, file.last))
    if began is None or ended is None or not spans:
        return []
    late = {node: min(moments) - began for node, moments in spans.items()}
    early = {node: ended - max(moments) for node, moments in spans.items()}
    patience = max(_QUIET_SECONDS, 0.1 * (ended - began))
    reasons = []
    for gaps, verb, what, hint in (
        (late, "begin", "after", "give the rotated files too"),
        (early, "end", "before", "were they copied too early?"),
    ):
        if min(gaps.values()) > 1:
            reasons.append(f"the logs {verb} {min(gaps.values())} s {what} the run: {hint}")
        elif missing:
            reasons.extend(
                f"the log of {node} {verb}s {gap} s {what} the run: {hint}"
                for node, gap in sorted(gaps.items(), key=lambda each: -each[1])[:_MAX_NAMED]
                if gap > patience
            )
    return reasons
