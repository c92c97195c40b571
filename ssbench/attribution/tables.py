"""The tables of an attribution, and how much of the run the logs cover."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ssbench.attribution.culprits import Level
from ssbench.attribution.join import NOBODY, OBJECT, OTHER, Joined
from ssbench.attribution.kinds import Compared, Completeness
from ssbench.attribution.parts import Parts, quantiles
from ssbench.attribution.ranks import Difference, Places, Units, difference, pairs
from ssbench.operations import OPERATIONS

#: Beyond so many candidates of one kind, only of those with most requests the difference is measured.
_MEASURED = 100
_HOT_PARTITIONS = 10
_SLOWEST = 20
#: Most devices of a partition that are named.
_DEVICES = 5


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many operations there are, and how many the logs mention. ``complete`` have all object lines."""

    operations: int
    failed: int
    without_id: int
    retried: int
    with_proxy: int
    complete: int
    incomplete: int
    concurrent: int
    compared: int
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
class SlowOperation:
    """One operation: its parts in seconds, its proxy, and the slowest device and process; None if unknown.

    ``extra`` is how many servers it took beyond the usual number, ``handoffs`` how many handoffs the proxy
    says that it asked for.
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


@dataclass(frozen=True, slots=True)
class Row:
    """A proxy, node, process, device or partition.

    ``seconds`` are (median, 99th percentile) of its own time by its log, ``latency`` those of the client in
    requests that it took part in. ``errors`` are answers of 5xx and 499. ``longer`` is the difference to
    requests of the same kind without it; None where there are none or too few.
    """

    name: str
    requests: int
    errors: int
    seconds: tuple[float, float] | None
    latency: tuple[float, float] | None
    longer: Difference | None = None


def proxy_rows(joined: Joined, compared: Compared, level: Level) -> list[Row]:
    """Return a row for each proxy."""
    operations = joined.operations
    rows = []
    for place, name in enumerate(joined.proxies):
        mask = joined.proxy == place
        rows.append(
            Row(
                name,
                int(mask.sum()),
                int((mask & operations.failed).sum()),
                quantiles(joined.proxy_seconds[mask]),
                quantiles(operations.latency[mask]),
                _longer(compared.units, level, place),
            )
        )
    return rows


def server_rows(joined: Joined, compared: Compared, level: Level, names: list[str], key: Places) -> list[Row]:
    """Return a row for each device or node; ``key`` is who it is in each line. The worst come first."""
    lines = joined.lines
    at = np.flatnonzero(lines.of != OTHER)
    at = at[np.argsort(key[at], kind="stable")]
    groups = np.split(at, np.cumsum(np.bincount(key[at], minlength=len(names)))[:-1]) if names else []
    most = sorted(range(len(names)), key=lambda place: -len(groups[place]))[:_MEASURED]
    rows = []
    for place in (place for place in range(len(names)) if len(groups[place])):
        group = groups[place]
        took_part = np.unique(lines.operation[group])
        rows.append(
            Row(
                names[place],
                len(took_part),
                _failures(lines.status[group]),
                quantiles(lines.seconds[group]),
                quantiles(joined.operations.latency[took_part]),
                _longer(compared.units, level, place) if place in most else None,
            )
        )
    return sorted(rows, key=lambda row: -(row.longer.median if row.longer else -np.inf))


def partition_rows(joined: Joined) -> list[Row]:
    """Return a row for each of the partitions with most requests, and which devices they are on."""
    lines = joined.lines
    mine = np.flatnonzero(lines.of == OBJECT)
    did = pairs(lines.partition[mine], lines.operation[mine], len(joined.operations.code))
    counts = np.bincount(did.unit, minlength=len(joined.partitions))
    rows = []
    for place in np.argsort(-counts, kind="stable")[:_HOT_PARTITIONS].tolist():
        if not counts[place]:
            break
        policy, number = joined.partitions[place]
        group = mine[lines.partition[mine] == place]
        devices = sorted({str(joined.devices[each]) for each in np.unique(lines.device[group])})
        if len(devices) > _DEVICES:
            devices[_DEVICES:] = [f"{len(devices) - _DEVICES} more"]
        rows.append(
            Row(
                f"{number}{'' if policy < 0 else f' of policy {policy}'} ({', '.join(devices)})",
                int(counts[place]),
                _failures(lines.status[group]),
                quantiles(lines.seconds[group]),
                quantiles(joined.operations.latency[did.candidate[did.unit == place]]),
            )
        )
    return rows


def _failures(status: Places) -> int:
    return int(((status >= 500) | (status == 499)).sum())


def _longer(units: Units, level: Level, place: int) -> Difference | None:
    mask = level.who.of(place, len(units))
    if not mask.any() or mask.all():
        return None
    measured = difference(units, mask)
    return None if np.isnan(measured.median) else measured


def part_rows(joined: Joined, split: Parts, fine: npt.NDArray[np.bool_]) -> list[PartRow]:
    """Return a row for each operation; ``fine`` are the successes."""
    rows = []
    for operation in OPERATIONS.drawn:
        mask = fine & (joined.operations.code == operation.code)
        if mask.any():
            rows.append(
                PartRow(
                    operation.name,
                    int(mask.sum()),
                    quantiles(joined.operations.latency[mask]),
                    quantiles(split.client[mask]),
                    quantiles(split.proxy[mask]),
                    quantiles(split.backend[mask]),
                    int((split.extra[mask] > 0).sum()),
                )
            )
    return rows


def slowest_rows(joined: Joined, split: Parts) -> list[SlowOperation]:
    """Return the successes that took longest, and where their time went."""
    latency = np.nan_to_num(joined.operations.latency, nan=-1.0)
    rows = []
    for place in np.argsort(-latency, kind="stable")[:_SLOWEST].tolist():
        if latency[place] <= 0:
            break
        line = int(split.slowest[place])
        rows.append(
            SlowOperation(
                OPERATIONS[joined.operations.code[place]].name,
                float(latency[place]),
                _known(split.client[place]),
                _known(split.proxy[place]),
                _known(split.backend[place]),
                joined.proxies[joined.proxy[place]] if joined.proxy[place] != NOBODY else None,
                None if line == NOBODY else str(joined.devices[joined.lines.device[line]]),
                None if line == NOBODY else str(joined.processes[joined.lines.process[line]]),
                int(split.extra[place]),
                int(joined.handoffs[place]),
            )
        )
    return rows


def _known(seconds: float) -> float | None:
    return None if np.isnan(seconds) else float(seconds)


def error_rows(counts: Counter[tuple[str, str, str, str]]) -> list[tuple[str, str, int]]:
    """Return kind, node and number of errors."""
    return [
        (
            kind,
            " ".join(word for word in (server, f"{address}/{device}" if device else address) if word),
            count,
        )
        for (kind, server, address, device), count in counts.most_common()
    ]


def coverage(joined: Joined, complete: Completeness, usable: npt.NDArray[np.bool_]) -> Coverage:
    """Count what the logs mention; ``usable`` operations are compared with each other."""
    operations = joined.operations
    fine = ~operations.failed
    with_proxy = joined.proxy != NOBODY
    whole = complete.complete
    facts = Coverage(
        operations=len(operations.code),
        failed=int(operations.failed.sum()),
        without_id=joined.without_id,
        retried=int((operations.retries > 0).sum()),
        with_proxy=int((with_proxy & fine).sum()),
        complete=int((whole & fine).sum()),
        incomplete=int((~whole & fine).sum()),
        concurrent=int(complete.concurrent.sum()),
        compared=int(usable.sum()),
        lines_of_run=sum(file.of_run for file in joined.files),
        cut=sum(file.cut for file in joined.files),
        duplicates=joined.duplicates,
        reasons=[],
    )
    facts.reasons.extend(_reasons(joined, facts, complete.found))
    return facts


def _reasons(joined: Joined, facts: Coverage, found: Places) -> list[str]:
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
            " A device that answers too late or not at all leaves none either"
        )
    if facts.cut:
        reasons.append(
            "cut lines: log_max_line_length, or the largest message of the log server, is too small"
        )
    first = min((file.first for file in joined.files if file.first is not None), default=None)
    last = max((file.last for file in joined.files if file.last is not None), default=None)
    if joined.began is not None and first is not None and joined.began < first - 1:
        reasons.append(f"the logs begin {first - joined.began} s after the run: give the rotated files too")
    if joined.ended is not None and last is not None and joined.ended > last + 1:
        reasons.append(f"the logs end {joined.ended - last} s before the run: were they copied too early?")
    return reasons
