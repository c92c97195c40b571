"""What is remarkable about an observed cluster: as data, and in words.

:func:`judge_cluster` is all that decides, :func:`describe_judgments` all that words it. Servers that share a
host and a folder of devices are one *node*: an account, a container and an object server tell of the same
devices.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from ssbench.base.text_values import format_duration
from ssbench.document.units import format_count, format_share
from ssbench.results.cluster_observation import Disk, Observation, Server, State

#: A device is full beyond this share, and replication is late when its last pass ended so long ago (seconds).
FULL_SHARE = 0.9
LATE_REPLICATION_SECONDS = 24 * 3600.0

#: A load above this, by the kernel's count of the last minute, is no rest. Cores are not known.
BUSY_LOAD = 8.0

#: Most of a kind that are named; the rest is counted.
_MAX_NAMED = 5


class JudgmentKind(Enum):
    """What can be remarkable, in this order in reports. ``is_warning``: it makes results doubtful."""

    UNOBSERVED = "unobserved"
    UNANSWERED = "unanswered"
    UNSOUND = "unsound figures"
    NO_INFO = "no info"
    VERSIONS = "versions"
    LOADED = "load"
    NOT_MOUNTED = "not mounted"
    FULL = "full"
    LATE = "late replication"
    PENDING = "async pendings"
    LOST = "no longer mounted"
    FILLED = "filled"
    NO_STATSD = "no statsd"
    STRANGE = "strange statsd lines"
    NAMELESS = "too many statsd names"
    DROPPED = "dropped datagrams"
    MORE_PENDING = "async pendings changed"
    NOT_COUNTED = "async pendings not counted"
    MORE_QUARANTINED = "quarantined changed"

    @property
    def is_warning(self) -> bool:
        """False for what the run changed, which is a result and no doubt about one."""
        return self not in (
            JudgmentKind.MORE_PENDING,
            JudgmentKind.NOT_COUNTED,
            JudgmentKind.MORE_QUARANTINED,
        )


@dataclass(frozen=True, slots=True)
class ClusterJudgment:
    """One remarkable thing."""

    kind: JudgmentKind
    where: str = ""  # a node, a server or a URL
    what: str = ""  # a device, or a kind of replication
    value: float = 0.0  # a share of 1 for what is full, seconds for what is late, a number for the others
    reason: str = ""  # text from the server


@dataclass(frozen=True, slots=True)
class ObservedNode:
    """Servers that share a host and its devices."""

    name: str
    servers: tuple[Server, ...]

    def states(self, moment: Callable[[Server], State | None]) -> list[State]:
        """Return the states of its servers at a moment, of those that have one."""
        return [state for state in map(moment, self.servers) if state is not None]

    def disks(self, moment: Callable[[Server], State | None]) -> dict[str, Disk]:
        """Return its devices by name."""
        return {disk.device: disk for state in self.states(moment) for disk in state.disks or ()}

    def highest(self, moment: Callable[[Server], State | None], field: str) -> float | None:
        """Return the largest that its servers say; they may share the file in which a daemon left it."""
        return max(
            (value for state in self.states(moment) if (value := getattr(state, field)) is not None),
            default=None,
        )


def state_before(server: Server) -> State | None:
    """The moment before the run."""
    return server.before


def state_after(server: Server) -> State | None:
    """The moment after the run."""
    return server.after


def group_nodes(observation: Observation) -> list[ObservedNode]:
    """Group the servers; those that never reported their folder of devices are by themselves."""
    groups: dict[tuple[str, str], list[Server]] = {}
    for server in sorted(observation.servers, key=lambda each: each.kind != "object"):
        root = server.last.root if server.last else None
        groups.setdefault((server.host, root or server.url), []).append(server)
    on_host = Counter(host for host, _ in groups)
    return [
        ObservedNode(host if on_host[host] == 1 else servers[0].name, tuple(servers))
        for (host, _), servers in sorted(groups.items())
    ]


def judge_cluster(observation: Observation) -> list[ClusterJudgment]:
    """Return all that is remarkable, in the order of :class:`JudgmentKind`, the worst of each kind first."""
    found = [*_judge_servers(observation), *_judge_statsd(observation)]
    for node in group_nodes(observation):
        found += [*_judge_before(node), *_judge_changes(node)]
    order = list(JudgmentKind)
    return sorted(found, key=lambda each: (order.index(each.kind), -each.value, each.where, each.what))


def _judge_servers(observation: Observation) -> Iterator[ClusterJudgment]:
    if observation.failure:
        yield ClusterJudgment(JudgmentKind.UNOBSERVED, reason=observation.failure)
    for server in observation.servers:
        if server.unanswered:
            times = (
                "" if server.unanswered == server.asked else f"{server.unanswered} of {server.asked} times: "
            )
            yield ClusterJudgment(
                JudgmentKind.UNANSWERED,
                server.name,
                value=server.unanswered,
                reason=times + (server.failure or ""),
            )
        wrong = {path for state in _states_of(server) for path in state.unsound}
        if wrong:
            yield ClusterJudgment(JudgmentKind.UNSOUND, server.name, ", ".join(sorted(wrong)))
    for proxy in observation.proxies:
        if proxy.failure:
            yield ClusterJudgment(JudgmentKind.NO_INFO, proxy.url, reason=proxy.failure)
    versions = Counter(server.last.version for server in observation.servers if server.last)
    versions.update(proxy.version for proxy in observation.proxies)
    del versions[None]
    if len(versions) > 1:
        yield from (
            ClusterJudgment(JudgmentKind.VERSIONS, what=str(version), value=count)
            for version, count in versions.items()
        )


def _states_of(server: Server) -> list[State]:
    states = (server.before, *server.during, server.after)
    return [state for state in states if state is not None]


def _judge_before(node: ObservedNode) -> Iterator[ClusterJudgment]:
    """Say what was wrong with a node before the run."""
    load = node.highest(state_before, "load")
    if load is not None and load > BUSY_LOAD:
        yield ClusterJudgment(JudgmentKind.LOADED, node.name, value=load)
    for disk in node.disks(state_before).values():
        if not disk.mounted:
            yield ClusterJudgment(JudgmentKind.NOT_MOUNTED, node.name, disk.device)
        elif disk.used_share > FULL_SHARE:
            yield ClusterJudgment(JudgmentKind.FULL, node.name, disk.device, disk.used_share)
    ages: dict[str, float] = {}
    for state in node.states(state_before):
        for kind, age in state.replication_age.items():
            ages[kind] = min(age, ages.get(kind, age))
    for kind, age in ages.items():
        if age > LATE_REPLICATION_SECONDS:
            yield ClusterJudgment(JudgmentKind.LATE, node.name, kind, age)
    if pending := node.highest(state_before, "async_pending"):
        yield ClusterJudgment(JudgmentKind.PENDING, node.name, value=pending)


def _judge_changes(node: ObservedNode) -> Iterator[ClusterJudgment]:
    """Say what the run changed on a node."""
    old, new = node.disks(state_before), node.disks(state_after)
    for device, disk in new.items():
        if device not in old or not old[device].mounted:
            continue
        if not disk.mounted:
            yield ClusterJudgment(JudgmentKind.LOST, node.name, device)
        elif disk.used_share > FULL_SHARE >= old[device].used_share:
            yield ClusterJudgment(JudgmentKind.FILLED, node.name, device, disk.used_share)
    for kind, field in (
        (JudgmentKind.MORE_PENDING, "async_pending"),
        (JudgmentKind.MORE_QUARANTINED, "quarantined"),
    ):
        was, is_now = node.highest(state_before, field), node.highest(state_after, field)
        if was is not None and is_now is not None and was != is_now:
            yield ClusterJudgment(kind, node.name, value=is_now - was)
    counted = node.highest(state_after, "async_counted")
    stores_objects = any(server.kind == "object" for server in node.servers)
    if stores_objects and node.states(state_after) and counted == node.highest(state_before, "async_counted"):
        yield ClusterJudgment(JudgmentKind.NOT_COUNTED, node.name)


def _judge_statsd(observation: Observation) -> Iterator[ClusterJudgment]:
    statsd = observation.statsd
    if statsd is None:
        return
    if not statsd.lines:
        yield ClusterJudgment(JudgmentKind.NO_STATSD, str(statsd.port))
    for kind, times in (
        (JudgmentKind.STRANGE, statsd.strange),
        (JudgmentKind.NAMELESS, statsd.nameless),
        (JudgmentKind.DROPPED, statsd.dropped),
    ):
        if times:
            yield ClusterJudgment(kind, value=times)


#: How a kind is worded: a sentence, and how each judgment appears in it.
_KIND_WORDS: dict[JudgmentKind, tuple[str, Callable[[ClusterJudgment], str]]] = {
    JudgmentKind.UNOBSERVED: ("The cluster was not observed: {}", lambda it: it.reason),
    JudgmentKind.UNANSWERED: ("Recon was not answered by {}", lambda it: f"{it.where} ({it.reason})"),
    JudgmentKind.UNSOUND: (
        "Ignored, as impossible, recon's numbers for {}",
        lambda it: f"{it.what} at {it.where}",
    ),
    JudgmentKind.NO_INFO: ("/info was not answered by {}", lambda it: f"{it.where} ({it.reason})"),
    JudgmentKind.VERSIONS: (
        "The servers have different versions of Swift: {}",
        lambda it: f"{it.what} ({format_count(round(it.value))})",
    ),
    JudgmentKind.LOADED: (
        f"Busy before the run, with a load above {BUSY_LOAD:g}: {{}}",
        lambda it: f"{it.where} ({format_count(round(it.value))})",
    ),
    JudgmentKind.NOT_MOUNTED: ("Not mounted before the run: {}", lambda it: f"{it.what} on {it.where}"),
    JudgmentKind.FULL: (
        f"Over {100 * FULL_SHARE:g} % full before the run: {{}}",
        lambda it: f"{it.what} on {it.where} ({format_share(it.value)})",
    ),
    JudgmentKind.LATE: (
        f"No pass of replication ended in the {format_duration(LATE_REPLICATION_SECONDS)}"
        f" before the run: {{}}",
        lambda it: f"{it.what} on {it.where} ({format_duration(it.value)})",
    ),
    JudgmentKind.PENDING: (
        "Async pendings before the run: {}",
        lambda it: f"{format_count(round(it.value))} on {it.where}",
    ),
    JudgmentKind.LOST: ("No longer mounted after the run: {}", lambda it: f"{it.what} on {it.where}"),
    JudgmentKind.FILLED: (
        f"Over {100 * FULL_SHARE:g} % full since the run: {{}}",
        lambda it: f"{it.what} on {it.where} ({format_share(it.value)})",
    ),
    JudgmentKind.NO_STATSD: ("No statsd line of Swift came to port {}", lambda it: it.where),
    JudgmentKind.STRANGE: (
        "Lines at the statsd port that are not Swift's: {}",
        lambda it: format_count(round(it.value)),
    ),
    JudgmentKind.NAMELESS: (
        "Statsd lines that were not kept, because there are too many names: {}",
        lambda it: format_count(round(it.value)),
    ),
    JudgmentKind.DROPPED: (
        "Statsd datagrams lost because the receive buffer was full: {}",
        lambda it: format_count(round(it.value)),
    ),
    JudgmentKind.MORE_PENDING: ("Async pendings: {}", lambda it: f"{round(it.value):+,} on {it.where}"),
    JudgmentKind.NOT_COUNTED: (
        "Async pendings were not counted during the run (swift-recon-cron does that) on {}",
        lambda it: it.where,
    ),
    JudgmentKind.MORE_QUARANTINED: ("Quarantined: {}", lambda it: f"{round(it.value):+,} on {it.where}"),
}


def describe_judgments(judgments: Iterable[ClusterJudgment], *, warnings: bool) -> list[str]:
    """Return a sentence for each kind: of the warnings, or of what the run changed."""
    of_kind: dict[JudgmentKind, list[ClusterJudgment]] = {}
    for judgment in judgments:
        if judgment.kind.is_warning is warnings:
            of_kind.setdefault(judgment.kind, []).append(judgment)
    return [_describe_kind(kind, found) for kind, found in of_kind.items()]


def _describe_kind(kind: JudgmentKind, found: list[ClusterJudgment]) -> str:
    words, item = _KIND_WORDS[kind]
    named = ", ".join(item(judgment) for judgment in found[:_MAX_NAMED])
    more = f" and {len(found) - _MAX_NAMED:,} more" if len(found) > _MAX_NAMED else ""
    return words.format(named + more)
