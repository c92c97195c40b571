"""What else went wrong: late replicas, answers of 507, errors of the proxies, requests that left no line."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ssbench.cluster import operation_times, suspect_search
from ssbench.cluster.attribution_records import LogFinding
from ssbench.cluster.joined_run import NO_INDEX, OBJECT, OTHER, Device, JoinedRun
from ssbench.cluster.node_addresses import NodeAddresses, ip_of_address
from ssbench.cluster.operation_times import READS, Completeness
from ssbench.cluster.own_times import UsableOperations
from ssbench.cluster.rank_tests import (
    IntegerArray,
    Units,
    binomial_tail,
    make_pairs,
    measure_deviates,
    measure_excess,
    measure_median_interval,
    measure_peer_difference,
    sort_distinct,
    upper_tail,
)
from ssbench.cluster.server_times import Stretch, find_stretch, measure_course
from ssbench.statistics.latencies import select_latencies
from ssbench.statistics.stalls import GapTracker

#: So few late replicas are no habit.
_MIN_LATE_REPLICAS = 5
#: Kinds of errors that proxies log of a device, and from how many devices on a server is spoken of as one.
_LOGGED_ERRORS = ("timeout", "connection", "error", "507", "limited")
_MIN_DEVICES_OF_SERVER = 2


#: When the run was, in seconds since 1970.
RunPeriod = tuple[float, float]


def find_late_devices(joined: JoinedRun, run: RunPeriod) -> list[LogFinding]:
    """Return the devices whose replicas of writes are late more often than the others'."""
    counted, lines = operation_times.find_late_replicas(joined), joined.lines
    found = []
    for place in np.flatnonzero(counted.counts):
        tail = binomial_tail(
            int(counted.counts.sum()), float(counted.shares[place]), int(counted.counts[place])
        )
        if counted.counts[place] >= _MIN_LATE_REPLICAS and tail * len(counted.counts) < suspect_search.ALPHA:
            operation = lines.operation[counted.lines[lines.device[counted.lines] == place]]
            found.append(
                LogFinding(
                    "late",
                    "device",
                    str(joined.devices[place]),
                    requests=int(counted.counts[place]),
                    share=_share_of_operations(joined, operation),
                    probability=min(tail * len(counted.counts), 1.0),
                    seconds=float(counted.waited[place]),
                    stretch=find_stretch(joined.operations.ended[operation], run),
                )
            )
    return found


def find_given_up_replicas(joined: JoinedRun, run: RunPeriod, named: Collection[str]) -> list[LogFinding]:
    """Return the devices with replicas of successful writes that proxies gave up, beside the ``named``."""
    lines, operations = joined.lines, joined.operations
    at = np.flatnonzero((lines.of == OBJECT) & (lines.status == 499) & ~operations.failed[lines.operation])
    found = []
    for place in np.unique(lines.device[at]).tolist():
        operation = lines.operation[at[lines.device[at] == place]]
        name = str(joined.devices[place])
        if len(operation) >= _MIN_LATE_REPLICAS and name not in named:
            share, when = (
                _share_of_operations(joined, operation),
                find_stretch(operations.ended[operation], run),
            )
            found.append(
                LogFinding("499", "device", name, requests=len(operation), share=share, stretch=when)
            )
    return sorted(found, key=lambda each: -each.requests)


def find_complete_stalls(joined: JoinedRun, run: RunPeriod) -> list[LogFinding]:
    """Tell when no operation ended though some were under way: what all wait for is no outlier."""
    operations = joined.operations
    known = ~np.isnan(operations.ended)
    if not known.any():
        return []
    ended, latency = operations.ended[known], operations.latency[known]
    gaps = GapTracker()
    gaps.add(ended, ended - latency)
    found = gaps.stalls(*run, select_latencies(latency[latency > 0]), None)
    if not found:
        return []
    longest = max(found, key=lambda each: each.seconds)
    between = Stretch(longest.start, longest.start + longest.seconds, run[1] - run[0])
    return [LogFinding("stall", "", "", requests=len(found), seconds=longest.seconds, stretch=between)]


def _share_of_operations(joined: JoinedRun, operation: IntegerArray) -> float:
    """Return in which share of the operations something was, by the places of these, some more than once."""
    return len(sort_distinct(operation)) / max(len(joined.operations.code), 1)


def find_broken_devices(joined: JoinedRun, addresses: NodeAddresses, run: RunPeriod) -> list[LogFinding]:
    """Return the devices that answered 507, and those of which the proxies logged errors, each once."""
    lines, ended = joined.lines, joined.operations.ended
    full = np.flatnonzero(lines.status == 507)
    answered = {
        str(joined.devices[place]): lines.operation[full[lines.device[full] == place]]
        for place in np.unique(lines.device[full]).tolist()
    }
    logged: dict[str, Counter[str]] = {name: Counter() for name in answered}
    between: dict[str, list[int]] = {}
    members: dict[str, list[str]] = {}
    counted = joined.errors + joined.other_errors
    whole = _find_whole_servers(counted, addresses)
    for key, count in counted.items():
        kind, server, address, device = key
        if address and kind in _LOGGED_ERRORS:
            where = f"{address}/{device}" if device else address
            name = addresses.name(address, device, server) or f"{server} server {where}".strip()
            if server_name := whole.get(address):
                members.setdefault(server_name, []).append(device)
                name = server_name
            words = {"limited": "error limited", "connection": "no connection"}.get(kind, kind)
            logged.setdefault(name, Counter())[words] += count
            between.setdefault(name, []).extend(joined.error_places.get(key, ()))
    found = []
    served = _count_served(joined)
    for name, each in logged.items():
        operation = answered.get(name)
        found.append(
            LogFinding(
                "error" if operation is None else "507",
                "device",
                name,
                requests=each.total() if operation is None else len(operation),
                share=None if operation is None else _share_of_operations(joined, operation),
                detail=", ".join(f"{words} {_format_times(count)}" for words, count in each.most_common()),
                members=sorted(set(members.get(name, ()))),
                stretch=find_stretch(ended[between[name] if operation is None else operation], run),
                served=None if operation is None else served.get(name, 0),
            )
        )
    found.sort(key=lambda each: (each.kind, -each.requests))
    asked = np.flatnonzero(joined.handoffs > 0)
    if len(asked):
        share, when = _share_of_operations(joined, asked), find_stretch(ended[asked], run)
        found.append(LogFinding("handoff", "proxy", "", requests=len(asked), share=share, stretch=when))
    return found


def _count_served(joined: JoinedRun) -> dict[str, int]:
    """Count the requests that each device served."""
    lines = joined.lines
    counts = np.bincount(lines.device[lines.status < 300], minlength=len(joined.devices))
    return {str(device): int(count) for device, count in zip(joined.devices, counts, strict=True)}


def find_missed_updates(joined: JoinedRun, addresses: NodeAddresses, run: RunPeriod) -> list[LogFinding]:
    """Return the container servers that did not take updates of objects, by the object servers' errors.

    A few such errors come with any busy cluster. How long proxies waited is that of the writes concerned.
    """
    operations = joined.operations
    written = ~operations.failed & ~READS[operations.code]
    found = []
    for key, count in joined.errors.items():
        kind, server, address, device = key
        if kind == "update" and count >= _MIN_LATE_REPLICAS:
            # One write may have several: its replicas may tell the same server. Some writes failed.
            places = joined.not_updated.get((address, device), np.zeros(0, np.int64))
            places = places[written[places]]
            waited = operation_times.measure_wait_beyond_quorum(joined, places)
            found.append(
                LogFinding(
                    "update",
                    "device",
                    addresses.name(address, device, server) or f"{server} server {address}/{device}",
                    requests=count,
                    share=len(places) / max(int(written.sum()), 1),
                    waited=None if math.isnan(waited) else waited,
                    stretch=find_stretch(operations.ended[list(joined.error_places.get(key, ()))], run),
                )
            )
    return sorted(found, key=lambda each: -each.requests)


def find_devices_called_slow(joined: JoinedRun) -> list[LogFinding]:
    """Return the devices whose object servers call requests slow, and which part of them took longest.

    A few such requests are no habit: they do not make a healthy device remarkable.
    """
    found = []
    for (node, device, part), count in joined.slow.items():
        if not part and count >= _MIN_LATE_REPLICAS:
            parts = {name: ms for (*who, name), ms in joined.slow.items() if who == [node, device] and name}
            total = sum(parts.values()) / 1000
            longest = max(parts, key=lambda name: parts[name], default="")
            detail = f"{longest} {parts[longest] / 1000:.1f} s" if longest else ""
            name = str(Device(node, "object", device))
            found.append(
                LogFinding("called slow", "device", name, requests=count, seconds=total, detail=detail)
            )
    return sorted(found, key=lambda each: -(each.seconds or 0.0))


def find_memcached_failures(joined: JoinedRun, run: RunPeriod) -> list[LogFinding]:
    """Tell of a memcached that did not answer proxies; every request then asks further servers."""
    errors = {key: count for key, count in joined.errors.items() if key[0] == "memcached"}
    if sum(errors.values()) < _MIN_LATE_REPLICAS:
        return []
    ended = joined.operations.ended
    places = [place for key in errors for place in joined.error_places.get(key, ())]
    asked = joined.lines.operation[joined.lines.of == OTHER]
    return [
        LogFinding(
            "memcached",
            "",
            min(address for _, _, address, _ in errors),
            same=sorted(address for _, _, address, _ in errors)[1:],
            requests=sum(errors.values()),
            share=_share_of_operations(joined, asked),
            stretch=find_stretch(ended[places], run),
        )
    ]


def _find_whole_servers(
    counted: Counter[tuple[str, str, str, str]], addresses: NodeAddresses
) -> dict[str, str]:
    """Return the names of the servers that did not answer for several devices, by address."""
    devices: dict[str, set[str]] = {}
    servers: dict[str, str] = {}
    others: set[str] = set()
    for kind, server, address, device in counted:
        if kind in ("connection", "timeout") and device:
            devices.setdefault(address, set()).add(device)
            servers[address] = server
        elif kind in _LOGGED_ERRORS and kind != "limited":
            others.add(address)
    found = {}
    for address, names in devices.items():
        if len(names) >= _MIN_DEVICES_OF_SERVER and address not in others:
            known = (addresses.name(address, device, servers[address]) for device in sorted(names))
            node = next((name.rpartition(" on ")[2] for name in known if name), None)
            found[address] = f"{servers[address]} server {f'on {node}' if node else address}"
    return found


def find_unlogged_servers(joined: JoinedRun, addresses: NodeAddresses, by_ring: Iterable[str]) -> list[str]:
    """Return the servers without a log that errors of proxies, other servers, recon or the ring name."""
    named = {
        address: None
        for _, server, address, device in joined.errors + joined.other_errors
        if address and device and server in ("object", "") and addresses.has_no_log(address, device)
    }
    placed = (address for address in by_ring if addresses.node(address) is None)
    found = dict.fromkeys([*addresses.unlogged, *named, *placed])
    with_port = {ip_of_address(address) for address in found}
    return [address for address in found if address not in with_port]


def _format_times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def find_missing_lines(
    joined: JoinedRun,
    usable: UsableOperations,
    complete: Completeness,
    run: RunPeriod,
    silent: Sequence[str] = (),
) -> list[LogFinding]:
    """Tell whether requests of which a storage server or the proxy left no line take longer than others.

    ``silent`` are servers whose logs are there, though they may not have answered.
    """
    reads_of_one = usable.first_try & ~complete.concurrent
    servers = _compare_lacking_lines("device", joined, np.flatnonzero(reads_of_one), ~complete.complete, run)
    return [
        *(replace(each, members=list(silent)) for each in servers),
        *_compare_lacking_lines(
            "proxy", joined, np.flatnonzero(usable.first_try), joined.proxy == NO_INDEX, run
        ),
    ]


def find_silent_devices(joined: JoinedRun, addresses: NodeAddresses) -> list[str]:
    """Return the devices of object servers that did not answer though their log is given.

    That is by the proxies' errors, or else the logs that have no line of the run.
    """
    nodes = {each.node for each in joined.devices} | {each.node for each in joined.files}
    names = {
        name
        for kind, server, address, device in joined.errors
        if kind in ("timeout", "connection") and server == "object" and device
        if (name := addresses.name(address, device, server)) and name.rpartition(" on ")[2] in nodes
    }
    files = (each.path for each in joined.files if not each.of_run and not each.of_daemons)
    return sorted(names) or sorted(files)


def _compare_lacking_lines(
    level: str, joined: JoinedRun, at: IntegerArray, lacks: npt.NDArray[np.bool_], run: RunPeriod
) -> list[LogFinding]:
    """Compare those of some operations that lack a line with the others of their kind."""
    operations, without = joined.operations, lacks[at]
    if not without.any() or without.all():
        return []
    stratum = operation_times.number_strata((operations.code[at], joined.policy[at]), operations.size[at])
    units = Units(operations.latency[at], stratum, np.zeros(int(stratum.max()) + 1, np.int64))
    mine = np.flatnonzero(without)
    z = float(measure_deviates(units, make_pairs(mine, np.zeros(len(mine), np.int64), 1), 1).z[-1, 0])
    measured = measure_peer_difference(units, without)
    probability = upper_tail(z)
    if not probability < suspect_search.ALPHA or not measured.share >= suspect_search.MIN_DELAY_SHARE:
        return []
    return [
        LogFinding(
            "missing",
            level,
            "",
            requests=len(mine),
            share=len(mine) / len(at),
            difference=measured,
            interval=measure_median_interval(units, without),
            request=measured.base,
            probability=probability,
            course=measure_course(
                operations.ended[at[without]], measure_excess(units, without)[without], run
            ),
        )
    ]
