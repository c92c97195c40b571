"""Where the time of each operation went, and which requests are compared with which.

Requests are of one kind when operation, storage policy, proxy, size (within a ratio) and the number of nodes
that a write went to are the same. An object that is read often is a kind of its own, since its replicas can
be compared with each other; writes of one object always go to the same devices, so all of them together count
once. Otherwise one hot object would speak for its devices. From joined columns follow the units that are
compared, their kinds (strata) and who took part.

The time of an operation is divided: client to proxy, the proxy's own, the slowest storage server. For a
typical and for a slow request the parts add up to what the client waited. The median of each part is of
another request, so medians do not add up. Instead the parts are averaged over requests around a percentile of
the latency.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ssbench.base.record import Count, Seconds
from ssbench.cluster.joined_run import NO_INDEX, OBJECT, OTHER, SENT_ONCE, UPDATE, JoinedRun
from ssbench.cluster.rank_tests import (
    FloatArray,
    IntegerArray,
    Pairs,
    Units,
    divide_in_slices,
    make_pairs,
    sort_distinct,
)
from ssbench.cluster.suspect_search import CandidateLevel
from ssbench.scenario.operations import MAX_OPERATION_CODE, OPERATIONS, RequestTarget

#: Sizes are distinguished by this many steps an octave, the most that leaves most kinds enough requests.
_STEPS_AN_OCTAVE = (4, 2, 1, 0.5)
_MIN_IN_KIND = 8
#: An object that is read so often within a kind is a kind of its own.
_HOT_READS = 8
#: A number of lines that this share of the writes have is what a complete write has.
_USUAL_SHARE = 0.05

#: Fewer reads without a line of a server are no sign that its log is missing.
_MIN_LACKING_SHARE = 0.02

#: Of more containers none has enough requests.
_MAX_CONTAINERS = 200

#: Groups of operations: what slows only writes is diluted by reads.
GROUPS = ("reads", "writes")

#: Whether an operation is for a container server or an account server, by code.
_CONTAINER, _ACCOUNT = (
    np.isin(np.arange(MAX_OPERATION_CODE + 1), [each.code for each in OPERATIONS if each.on is on])
    for on in (RequestTarget.CONTAINER, RequestTarget.ACCOUNT)
)
#: Whether an operation only reads, so that any replica may answer; by code.
READS = np.isin(
    np.arange(MAX_OPERATION_CODE + 1), [each.code for each in OPERATIONS if each.method in ("GET", "HEAD")]
)


@dataclass(frozen=True, slots=True)
class Completeness:
    """How many object servers' lines each operation has, and should have."""

    found: IntegerArray  # lines that there are
    expected: IntegerArray  # lines that there should be
    #: Reads that several servers answered where one does as a rule: they have further lines because they were
    #: slow, so who took part in them says nothing.
    concurrent: npt.NDArray[np.bool_]

    @property
    def complete(self) -> npt.NDArray[np.bool_]:
        """Which operations have all their lines."""
        return (self.found >= self.expected) & (self.found > 0)


def count_completeness(joined: JoinedRun) -> Completeness:
    """Count the devices whose object server did each operation, and tell how many it takes.

    That is what is usual for an operation in a policy: for reads the most frequent number, for writes the
    highest that is not rare.
    """
    count = len(joined.operations.code)
    lines = joined.lines
    answered = _is_answered(joined)
    did = make_pairs(lines.operation[answered], lines.device[answered], len(joined.devices))
    found = np.bincount(did.unit, minlength=count).astype(np.int32)
    expected = np.ones(count, np.int32)
    fine = ~joined.operations.failed & (found > 0)
    group = joined.operations.code * np.int64(1000) + joined.policy + 1
    for each in np.unique(group[fine]):
        inside = group == each
        numbers = np.bincount(found[inside & fine])
        if READS[each // 1000]:
            expected[inside] = int(np.argmax(numbers))
        else:
            expected[inside] = int(np.flatnonzero(numbers >= _USUAL_SHARE * numbers.sum())[-1])
    concurrent = READS[joined.operations.code] & (expected == 1) & (found > 1)
    return Completeness(found, expected, concurrent)


@dataclass(frozen=True, slots=True)
class ComparedUnits:
    """Units, and the operations that they are of."""

    units: Units
    unit_of: IntegerArray  # that of each operation; :data:`NO_INDEX`: none
    first: IntegerArray  # the first operation of each unit

    def pairs(self, operation: IntegerArray, candidate: IntegerArray, count: int) -> Pairs:
        """Turn who took part in which operation into pairs of units."""
        unit = self.unit_of[operation]
        there = (unit != NO_INDEX) & (candidate != NO_INDEX)
        return make_pairs(unit[there], candidate[there], count)


def lacks_log_of_writes(joined: JoinedRun, complete: Completeness, usable: npt.NDArray[np.bool_]) -> bool:
    """Whether there may be a server without a log that took part in every write.

    Where lines are lost by chance, writes lack one of theirs more often than reads lack their only one.
    Without the log of a server, reads of it have none; of writes it may be missing from all alike.
    """
    reads = usable & READS[joined.operations.code]
    writes = usable & ~READS[joined.operations.code]
    if not reads.any() or not writes.any():
        return False
    of_reads = float((complete.found[reads] == 0).mean())
    of_writes = float((~complete.complete[writes]).mean())
    return of_reads > _MIN_LACKING_SHARE and of_writes < of_reads


def group_by_kind(joined: JoinedRun, usable: npt.NDArray[np.bool_], *, by_proxy: bool) -> ComparedUnits:
    """Sort the usable operations into kinds; with ``by_proxy`` those of two proxies are of two kinds.

    Without, deviates allow for what comes and goes: requests that one proxy serves at the same time wait for
    each other, so that the slower proxy changes by chance during the run.
    """
    operations = joined.operations
    at = np.flatnonzero(usable)
    if not len(at):
        empty = np.zeros(0, np.int64)
        return ComparedUnits(
            Units(np.zeros(0), empty, empty), np.full(len(usable), NO_INDEX, np.int32), empty
        )
    code = operations.code[at].astype(np.int64)
    proxy = joined.proxy[at] + 1 if by_proxy else np.zeros(len(at), np.int64)
    rough = _number_rows(code, joined.policy[at], proxy, _count_nodes_used(joined)[at])
    stratum = _split_by_size(rough, operations.size[at])
    subject = _number_rows(stratum, operations.subject[at])
    reads = READS[code]
    often = np.bincount(subject)[subject] >= _HOT_READS
    stratum = _number_rows(stratum, np.where(reads & often, subject + 1, 0))
    # All writes of an object are one unit, each read is one.
    unit = _number_rows(np.where(reads, np.arange(len(at)), len(at) + subject))
    counts = np.bincount(unit)
    seconds = np.bincount(unit, operations.latency[at]) / counts
    first = np.unique(unit, return_index=True)[1].astype(np.int32)
    group = np.zeros(stratum.max() + 1, np.int64)
    group[stratum] = ~READS[code]
    unit_of = np.full(len(usable), NO_INDEX, np.int32)
    unit_of[at] = unit
    units = Units(
        seconds,
        stratum[first],
        group,
        divide_in_slices(first),
        is_dispersed=not by_proxy,
    )
    return ComparedUnits(units, unit_of, at[first].astype(np.int32))


def _count_nodes_used(joined: JoinedRun) -> IntegerArray:
    """Count the nodes whose object servers did each write; 0 for reads.

    In a small cluster two replicas may be on one node, which then has twice the work: that makes the
    request slower and says nothing of the devices.
    """
    nodes = {name: place for place, name in enumerate(list_node_names(joined))}
    node_of = np.array([nodes[device.node] for device in joined.devices], np.int64)
    mine = _is_answered(joined)
    used = make_pairs(joined.lines.operation[mine], node_of[joined.lines.device[mine]], len(nodes))
    nodes_used = np.bincount(used.unit, minlength=len(joined.operations.code))
    return np.where(READS[joined.operations.code], 0, nodes_used)


def _is_answered(joined: JoinedRun) -> npt.NDArray[np.bool_]:
    """Return which lines are of servers that did what they were asked: object servers, as a rule.

    Listings and the like are for container and account servers.
    """
    lines = joined.lines
    code = joined.operations.code[lines.operation]
    mine = (lines.of == OBJECT) & ~(_CONTAINER | _ACCOUNT)[code]
    for server, codes in (("container", _CONTAINER), ("account", _ACCOUNT)):
        of_server = np.array([device.server == server for device in joined.devices], np.bool_)
        if of_server.any() and codes[code].any():
            mine |= (lines.of == OTHER) & codes[code] & of_server[lines.device]
    answered: npt.NDArray[np.bool_] = mine & (lines.status < 500) & (lines.status != 499)
    return answered


def number_strata(
    columns: tuple[npt.NDArray[np.generic], ...],
    size: npt.NDArray[np.int64],
    subject: IntegerArray | None = None,
) -> IntegerArray:
    """Number the kinds of requests by some columns and by size.

    Whatever is done often with one ``subject`` is of a kind of its own.
    """
    if not len(size):
        return np.zeros(0, np.int64)
    stratum = _split_by_size(_number_rows(*columns), size)
    if subject is None:
        return stratum
    of_kind = _number_rows(stratum, subject)
    return _number_rows(stratum, np.where(np.bincount(of_kind)[of_kind] >= _HOT_READS, of_kind + 1, 0))


def make_candidate_levels(joined: JoinedRun, compared: ComparedUnits) -> list[CandidateLevel]:
    """Return the candidates: devices, processes of storage servers, nodes, containers.

    A node or a process takes part by its object servers: container servers of a few nodes may be in every
    write.
    """
    lines = joined.lines

    def make_levels(telling: npt.NDArray[np.bool_]) -> list[CandidateLevel]:
        unit = compared.unit_of[lines.operation]
        at = np.flatnonzero(telling & (unit != NO_INDEX))
        return make_levels_of_lines(joined, unit[at], at)

    every = np.arange(len(joined.operations.code), dtype=np.int32)
    containers = compared.pairs(every, joined.operations.container, len(joined.containers))
    return [
        make_levels(lines.of != OTHER)[0],
        *make_levels(lines.of == OBJECT)[1:],
        *make_container_level(joined, containers),
    ]


def make_container_level(joined: JoinedRun, who: Pairs) -> list[CandidateLevel]:
    """Return the level of the containers of the run; nothing where these are too many to be compared."""
    return [CandidateLevel("container", who)] if 1 < len(joined.containers) <= _MAX_CONTAINERS else []


def make_levels_of_lines(
    joined: JoinedRun,
    unit: IntegerArray,
    at: IntegerArray,
    make: Callable[[IntegerArray, IntegerArray, int], Pairs] = make_pairs,
) -> list[CandidateLevel]:
    """Return the same, where lines at some places belong to units, of which ``make`` makes pairs."""
    lines = joined.lines
    device, process = lines.device[at], lines.process[at]
    nodes = list_node_names(joined)
    node_of = np.array([nodes.index(each.node) for each in joined.devices], np.int64)
    of_process: list[list[int]] = [[] for _ in joined.processes]
    seen = make_pairs(lines.process, lines.device, len(joined.devices))
    for each, place in zip(seen.unit.tolist(), seen.candidate.tolist(), strict=True):
        of_process[each].append(place)
    of_node = [np.flatnonzero(node_of == place).tolist() for place in range(len(nodes))]
    return [
        CandidateLevel("device", make(unit, device, len(joined.devices))),
        CandidateLevel("process", make(unit, process, len(joined.processes)), of_process),
        CandidateLevel("node", make(unit, node_of[device] if len(node_of) else device, len(nodes)), of_node),
    ]


def list_node_names(joined: JoinedRun) -> list[str]:
    """Return the names of nodes in the order in which :func:`make_candidate_levels` numbers them."""
    return sorted({each.node for each in joined.devices})


def _number_rows(*columns: npt.NDArray[np.generic]) -> IntegerArray:
    """Number the rows of some columns so that equal rows have equal numbers, of 32 bits."""
    numbers = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        _, codes = np.unique(column, return_inverse=True)
        numbers = numbers * (int(codes.max(initial=0)) + 1) + codes
        _, numbers = np.unique(numbers, return_inverse=True)
    return numbers.astype(np.int32)


def _split_by_size(rough: IntegerArray, size: npt.NDArray[np.int64]) -> IntegerArray:
    """Split kinds by size, as finely as leaves nine of ten requests enough others of their kind."""
    octave = np.log2(np.maximum(size, 1))
    for steps in _STEPS_AN_OCTAVE:
        step = np.where(size > 0, np.floor(octave * steps) + 1, 0)
        stratum = _number_rows(rough, step)
        if (np.bincount(stratum)[stratum] >= _MIN_IN_KIND).mean() >= 0.9:
            break
    return stratum


#: So many writes, and so large a share of a device's, prove that a node is several.
_MIN_MERGED_WRITES, _MIN_MERGED_SHARE = 3, 0.005


def find_merged_nodes(joined: JoinedRun) -> dict[str, tuple[str, int]]:
    """Find nodes that are several: one device cannot write two replicas of an object.

    Names of devices repeat on every node, so that the lines of nodes without names, in one file, look like
    those of one node. Return the device of each that proves it most often, and in how many writes it does.
    """
    lines = joined.lines
    mine = np.flatnonzero(
        (lines.of == OBJECT)
        & SENT_ONCE[joined.operations.code[lines.operation]]
        & (lines.status < 300)
        & (joined.operations.retries[lines.operation] == 0)
    )
    devices, partitions = max(len(joined.devices), 1), max(len(joined.partitions), 1)
    # Middleware may write a further object, which is of another partition as a rule.
    key = lines.operation[mine].astype(np.int64) * partitions + lines.partition[mine]
    key = np.sort(key * devices + lines.device[mine])
    twice = np.bincount(sort_distinct(key[1:][key[1:] == key[:-1]]) % devices, minlength=devices)
    every = np.bincount(sort_distinct(key) % devices, minlength=devices)
    found: dict[str, tuple[str, int]] = {}
    for place in np.argsort(-twice, kind="stable").tolist():
        if twice[place] >= max(_MIN_MERGED_WRITES, _MIN_MERGED_SHARE * every[place]):
            device = joined.devices[place]
            found.setdefault(device.node, (device.name, int(twice[place])))
    return dict(sorted(found.items()))


# -- Where the time of each operation went ---------------------------------------------------------


#: A server's time is this much longer than the proxy's before its replica is called late, in seconds.
LATE_REPLICA_SECONDS = 0.005


@dataclass(frozen=True, slots=True)
class OperationParts:
    """Columns, one place for each operation; seconds, NaN where a line is missing."""

    #: What the client waited beyond the proxy's time: connecting, queueing, the network. It is never below 0,
    #: though a client can have the last byte a little before the proxy notes it.
    client: FloatArray
    proxy: FloatArray  # the proxy's time less ``backend``: its own work, and for reads the body
    backend: FloatArray  # the longest time of an object server that ended within the proxy's time
    slowest: IntegerArray  # Place of the line of that server, or :data:`~ssbench.cluster.joined_run.NO_INDEX`
    extra: IntegerArray  # servers beyond the usual number: failed attempts, and handoffs in their place


@dataclass(frozen=True, slots=True)
class LateReplicaTimes:
    """Replicas of writes that the proxy did not wait for to the end, for each device."""

    lines: IntegerArray  # places of their lines
    counts: IntegerArray
    shares: FloatArray  # those of each device in all replicas of writes
    waited: FloatArray  # median of the proxy's seconds in writes where it was late; NaN: there are none


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


def count_load(joined: JoinedRun) -> IntegerArray:
    """Return for each line how many other requests the server had when it began.

    Those are requests to the same device, as near as the moments of results tell; 0 where these are unknown.
    """
    lines, operations = joined.lines, joined.operations
    ended = operations.ended[lines.operation]
    began = ended - np.nan_to_num(operations.latency[lines.operation], nan=0.0)
    found = np.zeros(len(lines), np.int64)
    if len(np.unique(operations.ended)) < len(operations.ended) / 2:
        return found
    order = np.argsort(lines.device, kind="stable")
    bounds = np.flatnonzero(np.diff(lines.device[order])) + 1
    for mine in np.split(order, bounds):
        at = began[mine]
        before = np.searchsorted(np.sort(at), at, side="left")
        over = np.searchsorted(np.sort(ended[mine]), at, side="right")
        found[mine] = np.where(np.isnan(at), 0, before - over)
    return np.maximum(found, 0)


def find_late_replicas(joined: JoinedRun) -> LateReplicaTimes:
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
    return LateReplicaTimes(
        np.flatnonzero(is_late),
        np.bincount(lines.device[is_late], minlength=devices),
        every / max(every.sum(), 1),
        np.array(waited),
    )


def measure_wait_beyond_quorum(joined: JoinedRun, operation: IntegerArray) -> float:
    """Return how long proxies waited, as a rule, after most replicas of some writes had ended (s).

    NaN without any.
    """
    lines = joined.lines
    at = np.flatnonzero((lines.of == OBJECT) & (lines.status < 300) & np.isin(lines.operation, operation))
    at = at[np.lexsort((lines.seconds[at], lines.operation[at]))]
    of, first, counts = np.unique(lines.operation[at], return_index=True, return_counts=True)
    quorum = lines.seconds[at[first + counts // 2]]
    waited = joined.proxy_seconds[of] - quorum
    known = waited[(counts > 1) & ~np.isnan(waited) & ~READS[joined.operations.code[of]]]
    return float(np.median(known)) if len(known) else float("nan")


def median_and_p99(values: npt.NDArray[np.float64]) -> tuple[float, float] | None:
    """Return median and 99th percentile of what is not NaN; None for nothing."""
    known = values[~np.isnan(values)]
    if not len(known):
        return None
    median, high = np.quantile(known, (0.5, 0.99))
    return float(median), float(high)


# -- Where the time of typical and of slow requests went -------------------------------------------


#: The requests around a percentile: between these shares of all, by latency.
_RANK_BOUNDS = {"p50": (0.45, 0.55), "p99": (0.98, 1.0)}
#: Parts are reported of at least this many requests, around the median of at least so many.
_MIN_REQUESTS = 5
_MIN_MEDIAN_REQUESTS = 20


@dataclass(frozen=True, slots=True)
class LatencyColumns:
    """The parts of each operation in seconds, which add up to its latency; NaN where a line is missing."""

    way: FloatArray  # what the client waited beyond the proxy's time
    proxy: FloatArray  # the rest
    server: FloatArray  # time of the slowest object server, less ``update``
    update: FloatArray  # time of the container server that it updated
    #: What came after the first byte of an answer; nothing of a write, whose body is in the servers' times.
    body: FloatArray


@dataclass(frozen=True, slots=True)
class TimeShare:
    """The average of each part of the latency, over the requests around a percentile."""

    operation: str  # its name
    rank: str  # ``p50``: the middle tenth of the requests; ``p99``: the slowest fiftieth
    requests: Count  # that the averages are of
    latency: Seconds  # the sum of the parts
    way: Seconds
    proxy: Seconds
    server: Seconds
    update: Seconds
    body: Seconds
    first_byte: Seconds | None  # when the answer's body began; None: there is none


def divide_latencies(joined: JoinedRun, split: OperationParts) -> LatencyColumns:
    """Divide each operation's latency."""
    lines, latency = joined.lines, joined.operations.latency
    longest = np.zeros(len(latency))
    updates = np.flatnonzero(lines.of == UPDATE)
    np.maximum.at(longest, lines.operation[updates], lines.seconds[updates])
    # A client may have the last byte before the proxy notes the end: every part lies within its time.
    server = np.minimum(split.backend, latency)
    update = np.minimum(longest, server)
    left = latency - server
    after = np.nan_to_num(latency - joined.operations.first_byte, nan=0.0)
    body = np.clip(after, 0.0, np.minimum(left, split.proxy))
    proxy = np.minimum(split.proxy - body, left - body)
    return LatencyColumns(left - body - proxy, proxy, server - update, update, body)


def average_time_shares(
    joined: JoinedRun, split: OperationParts, fine: npt.NDArray[np.bool_]
) -> list[TimeShare]:
    """Return the parts of typical and of slow requests of each operation; ``fine`` are the successes."""
    parts = divide_latencies(joined, split)
    known = fine & (joined.operations.retries == 0) & (split.slowest != NO_INDEX) & ~np.isnan(parts.way)
    found = []
    for operation in joined.operation_table.drawn:
        at = np.flatnonzero(known & (joined.operations.code == operation.code))
        at = at[np.argsort(joined.operations.latency[at], kind="stable")]
        for rank, around in _RANK_BOUNDS.items():
            low, high = (round(share * len(at)) for share in around)
            if rank == "p50" and len(at) >= _MIN_MEDIAN_REQUESTS and high - low < _MIN_REQUESTS:
                low = len(at) // 2 - _MIN_REQUESTS // 2
                high = low + _MIN_REQUESTS
            if high - low >= _MIN_REQUESTS:
                found.append(_average_parts(operation.name, rank, joined, parts, at[low:high]))
    return found


def _average_parts(
    operation: str,
    rank: str,
    joined: JoinedRun,
    parts: LatencyColumns,
    at: npt.NDArray[np.int64],
) -> TimeShare:
    first_byte = joined.operations.first_byte[at]
    return TimeShare(
        operation=operation,
        rank=rank,
        requests=len(at),
        latency=float(joined.operations.latency[at].mean()),
        first_byte=None if np.isnan(first_byte).any() else float(first_byte.mean()),
        **{name: float(getattr(parts, name)[at].mean()) for name in LatencyColumns.__slots__},
    )
