"""What an attribution says: the records that texts, the page and JSON are made of.

The tables are made here too, with how much of the run the logs cover. What is wrong with the logs themselves
is said in sentences that name the file or the node (:func:`describe_log_faults`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields, replace

import numpy as np
import numpy.typing as npt

from ssbench.cluster import operation_times
from ssbench.cluster.finding_kinds import ClusterFinding, Work
from ssbench.cluster.joined_run import (
    NO_INDEX,
    OBJECT,
    OTHER,
    UPDATE,
    JoinedRun,
    TakenResults,
    find_slowest_operations,
)
from ssbench.cluster.node_addresses import NodeAddresses
from ssbench.cluster.operation_times import (
    ComparedUnits,
    Completeness,
    OperationParts,
    TimeShare,
    median_and_p99,
)
from ssbench.cluster.rank_tests import (
    FloatArray,
    IntegerArray,
    PeerDifference,
    Shown,
    Units,
    make_pairs,
    measure_peer_difference,
    sort_distinct,
)
from ssbench.cluster.server_times import DifferenceCourse, Standing, Stretch, Timelines
from ssbench.cluster.suspect_search import CandidateLevel
from ssbench.document.columns import format_plural
from ssbench.results.cluster_observation import Observation


def describe_log_faults(joined: JoinedRun) -> list[str]:
    """Return what is wrong, nothing where all is as it should be."""
    return [*_describe_merged_nodes(joined), *describe_cut_files(joined), *_describe_missing_ids(joined)]


def _describe_merged_nodes(joined: JoinedRun) -> list[str]:
    return [
        f"{node} is several nodes: in {count:,} writes {device} has two lines. Give lines that do not name"
        " their host in a file for each node, or as NODE=FILE; until then no device of it can be judged"
        for node, (device, count) in operation_times.find_merged_nodes(joined).items()
    ]


def _describe_missing_ids(joined: JoinedRun) -> list[str]:
    return [
        f"{file.path}: access lines without a whole transaction id (tx, 21 hexadecimal digits, -, 10 more):"
        " was it cut off or masked? Such lines cannot be joined with a request"
        for file in joined.files
        if file.without_id and file.cut_at is None
    ]


def describe_cut_files(joined: JoinedRun) -> list[str]:
    """Return which files have lines that are cut at one length, before their transaction id."""
    return [
        f"{file.path}: {file.cut:,} of {file.lines:,} lines are cut at {file.cut_at:,} characters, before"
        " their transaction id: take the log file itself, or journalctl --no-pager -o short-iso"
        for file in joined.files
        if file.cut_at is not None
    ]


# -- Tables, and how much the logs cover -----------------------------------------------------------


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
class Coverage(TakenResults):
    """How many operations there are, and how many of them the logs mention."""

    failed: int
    without_id: int  # of which no transaction id is known
    retried: int  # that took more than one attempt
    delayed: int  # successes whose worker stalled
    with_proxy: int  # successes of which a proxy has a line
    complete: int  # successes that have all object lines
    incomplete: int  # successes that lack object lines
    concurrent: int  # reads that more than one server answered
    compared: int
    updates: int  # lines of container servers that received updates of objects
    lines: int  # read
    lines_of_run: int  # those with a transaction id of the run
    cut: int  # lines that end in the middle
    duplicates: int  # lines that say all the same as another
    reasons: list[str]  # why lines may be missing


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
    """One operation; its parts are in seconds. None is what is not known."""

    operation: str
    latency: float
    client: float | None  # what the proxy did not see
    proxy_own: float | None  # less what it waited for
    backend: float | None  # of the slowest server
    proxy: str | None
    device: str | None  # of its slowest line
    process: str | None  # of its slowest line
    extra: int  # servers that it took beyond the usual number
    handoffs: int  # handoffs that the proxy says it asked for
    trans_id: str | None = None
    #: Those named as slow, late or broken that took part in it: the slowest server of a write is often
    #: another one, which waited for them.
    named: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ServerRow:
    """A proxy, node, process, device or partition."""

    name: str
    requests: int  # that it took part in
    errors: int  # answers of 5xx and 499
    seconds: tuple[float, float] | None  # median and 99th percentile of its own time by its log
    latency: tuple[float, float] | None  # those of the client, in requests that it took part in
    #: Difference to requests of the same kind without it; None: there are none or too few. Of two, whose
    #: requests are compared with each other's only, the slower one alone has it.
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
    for operation in joined.operation_table.drawn:
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
                operation=joined.operation_table[joined.operations.code[place]].name,
                latency=float(joined.operations.latency[place]),
                client=_none_if_unknown(split.client[place]),
                proxy_own=_none_if_unknown(split.proxy[place]),
                backend=_none_if_unknown(split.backend[place]),
                proxy=proxy,
                device=None if line == NO_INDEX else str(joined.devices[joined.lines.device[line]]),
                process=None if line == NO_INDEX else str(joined.processes[joined.lines.process[line]]),
                extra=int(split.extra[place]),
                handoffs=int(joined.handoffs[place]),
                trans_id=joined.trans_ids.get(place),
                named=tuple(each for each in took_part if each in suspects),
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
        results=joined.taken.results,
        operations=joined.taken.operations,
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
    if facts.cut > sum(file.cut for file in joined.files if file.cut_at is not None):
        reasons.append(
            "cut lines: log_max_line_length, or the largest message of the log server, is too small"
        )
    if unread := [file for file in joined.files if file.unread]:
        files = format_plural(len(unread), "file")
        reasons.append(f"{files} could not be read: {unread[0].path} is {unread[0].unread}")
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


# -- Findings --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AttributionFacts:
    """What is known of a run besides its results and logs."""

    #: Nodes by address (:func:`ssbench.cluster.node_addresses.parse_node_addresses`).
    hosts: dict[str, str] = field(default_factory=dict)
    cluster: Observation | None = None  # what recon said
    overload: tuple[str, ...] = ()  # sentences that say how the load generator changed what was measured
    unlogged: tuple[str, ...] = ()  # addresses of object servers that the ring has and that have no log


@dataclass(frozen=True, slots=True)
class LogFinding:
    """The facts of a sentence; times are in seconds.

    ``kind`` is one of

    - ``slow``: a suspect; ``one of``: it, or one of ``same``, which no evidence distinguishes;
    - ``busy``: it takes longer, but not evidently so beside requests that found as many others there;
    - ``together``: all members of a process or node are suspects;
    - ``late``: proxies answered without its replicas, after ``seconds``;
    - ``unfelt``: slow by its own clock, but clients did not wait for it;
    - ``499``: proxies gave up its replicas of writes, though not more often than others';
    - ``fails``: more of the requests that it served failed than of others;
    - ``507``, ``error``: its answers, or what proxies say of it (``detail``);
    - ``update``: a container server that did not take updates of object servers;
    - ``called slow``: its server wrote lines of slow requests, of ``seconds`` together; ``detail`` is the
      part that took longest;
    - ``memcached``: proxies had no answer of it, and asked account and container servers;
    - ``handoff``: proxies asked for other devices than a partition's own;
    - ``missing``: requests with servers, or a proxy, that left no line take longer; ``members`` are those
      that did not answer by the proxies' errors, or logs without a line of the run;
    - ``stall``: no operation ended for ``seconds``, the longest of so many times;
    - ``inconclusive``: it and ``same`` could not be compared with others.
    """

    kind: str
    level: str  # ``proxy``, ``proxy process``, ``node``, ``process`` or ``device``
    name: str  # who it is
    requests: int = 0  # requests, or times, that it rests on
    #: Share of the run's requests in which it took part; of account updates, of these
    share: float | None = None
    #: The time that shows it best (:mod:`ssbench.cluster.own_times`; ``last``: replicas of writes that end
    #: last; ``told``: container servers that these were told to; ``account updates``: of containers that the
    #: run made).
    part: str = ""
    group: str | None = None  # ``reads`` or ``writes`` where these alone show it
    #: Which share of its times are longer, where that is of few; ``difference`` is then of these.
    rare: float | None = None
    sizes: str = ""  # sizes of the objects of which it is, in words, where that is not of all
    difference: PeerDifference | None = None  # by how much that time is longer
    interval: tuple[float, float] | None = None  # 95 % interval of ``difference``
    request: float | None = None  # median of the requests concerned
    probability: float | None = None  # adjusted for all tests
    own: dict[str, Shown] = field(default_factory=dict)  # differences of the times that are its own, by part
    #: Differences of the client's time, for reads and for writes
    felt: dict[str, PeerDifference] = field(default_factory=dict)
    members: list[str] = field(default_factory=list)  # devices of a process, node or server
    same: list[str] = field(default_factory=list)  # names that the evidence fits as well
    ties: list[str] = field(default_factory=list)  # those whose own times rule them out
    seconds: float | None = None  # a time, by the kind
    detail: str = ""  # what else is said, by the kind
    course: DifferenceCourse | None = None  # how ``difference`` went over the run
    #: From when to when there were late replicas, answers of 507, errors or handoffs
    stretch: Stretch | None = None
    beside: list[str] = field(default_factory=list)  # what recon saw of its node
    statsd: str = ""  # what StatsD says of its node
    work: list[Work] = field(default_factory=list)  # what else was at work there
    #: Daemons of which lines are given of its node, or of each node of several; None: none are of any node.
    daemons: list[str] | None = None
    #: What proxies waited, as a rule, for object servers that told a container server of an object.
    waited: float | None = None
    times_as_busy: float | None = None  # requests that it served, by the median of its peers
    served: int | None = None  # requests that a device served which answered 507, or failed, to others
    failures: int | None = None  # requests that failed, of all servers


def make_finding_record(finding: ClusterFinding) -> LogFinding:
    """Return what JSON has of a finding: what its kind does not know has its default."""
    return LogFinding(finding.kind, **{field.name: getattr(finding, field.name) for field in fields(finding)})


@dataclass(frozen=True, slots=True)
class Lead:
    """Who is nearest to being a suspect, where there is none."""

    name: str
    part: str  # the time that shows it best
    group: str | None  # ``reads`` or ``writes`` where it is of these alone
    difference: PeerDifference
    probability: float  # adjusted for all tests of its kind of party
    is_of_few: bool = False  # only a few of its times are longer; ``difference`` is of these


@dataclass(frozen=True, slots=True)
class Attribution:
    """Everything that is said of a run. Delays are in seconds."""

    coverage: Coverage
    findings: list[ClusterFinding]
    comparisons: int  # tests that p values allow for
    overload: list[str]
    #: Servers that proxies, other servers, recon or the ring name and that have no log here.
    unlogged: list[str]
    #: The least delay of any device's reads and deletes that would have been found; None: no delay would have
    #: been.
    detectable: float | None
    detectable_at_end: float | None  # the same of a delay at the end of its writes, as at commit
    detectable_of_updates: float | None  # the same of a container server's updates
    detectable_of_proxies: float | None  # the same of a proxy's own part
    request: float | None  # median of a request; None: there is none
    in_writes: float  # share of the writes that a device takes part in, as a rule
    merged: list[str]  # nodes whose lines are those of several: no device of them can be judged
    has_queues: bool  # half of the requests found others waiting at their servers
    lead: Lead | None
    standings: list[Standing]  # by own times, the most evident first
    timelines: Timelines  # all servers over the run
    parts: list[PartRow]
    time_shares: list[TimeShare]
    proxies: list[ServerRow]
    nodes: list[ServerRow]
    devices: list[ServerRow]
    partitions: list[ServerRow]
    slowest: list[SlowRequest]
    errors: list[tuple[str, str, int]]
    other_errors: list[tuple[str, str, int]]
