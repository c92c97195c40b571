"""What is remarkable about an observed cluster: as data, and in words.

:func:`judge` is all that decides, :func:`sentences` all that words it. Servers that share a host and a folder
of devices are one *node*: an account, a container and an object server tell of the same devices.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from ssbench.base.quantities import duration
from ssbench.document.units import count, share
from ssbench.results.observation import Disk, Observation, Server, State

#: A device is full beyond this share, and replication is late when its last pass ended so long ago (seconds).
FULL = 0.9
LATE_REPLICATION = 24 * 3600.0

#: A load above this, by the kernel's count of the last minute, is no rest. Cores are not known.
BUSY = 8.0

#: Most of a kind that are named; the rest is counted.
_NAMED = 5


class Kind(Enum):
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
        return self not in (Kind.MORE_PENDING, Kind.NOT_COUNTED, Kind.MORE_QUARANTINED)


@dataclass(frozen=True, slots=True)
class Judgment:
    """One remarkable thing: ``what`` (a device, a kind of replication) ``where`` (a node, a server, a URL).

    ``value`` is a share of 1 for what is full, seconds for what is late, and a number for the others.
    ``reason`` is text from the server.
    """

    kind: Kind
    where: str = ""
    what: str = ""
    value: float = 0.0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Node:
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


def before(server: Server) -> State | None:
    """The moment before the run."""
    return server.before


def after(server: Server) -> State | None:
    """The moment after the run."""
    return server.after


def nodes(observation: Observation) -> list[Node]:
    """Group the servers; those that never reported their folder of devices are by themselves."""
    groups: dict[tuple[str, str], list[Server]] = {}
    for server in sorted(observation.servers, key=lambda each: each.kind != "object"):
        root = server.last.root if server.last else None
        groups.setdefault((server.host, root or server.url), []).append(server)
    on_host = Counter(host for host, _ in groups)
    return [
        Node(host if on_host[host] == 1 else servers[0].name, tuple(servers))
        for (host, _), servers in sorted(groups.items())
    ]


def judge(observation: Observation) -> list[Judgment]:
    """Return all that is remarkable, in the order of :class:`Kind`, the worst of each kind first."""
    found = [*_of_servers(observation), *_of_statsd(observation)]
    for node in nodes(observation):
        found += [*_at_rest(node), *_changes(node)]
    order = list(Kind)
    return sorted(found, key=lambda each: (order.index(each.kind), -each.value, each.where, each.what))


def _of_servers(observation: Observation) -> Iterator[Judgment]:
    if observation.failure:
        yield Judgment(Kind.UNOBSERVED, reason=observation.failure)
    for server in observation.servers:
        if server.unanswered:
            times = (
                "" if server.unanswered == server.asked else f"{server.unanswered} of {server.asked} times: "
            )
            yield Judgment(
                Kind.UNANSWERED, server.name, value=server.unanswered, reason=times + (server.failure or "")
            )
        wrong = {path for state in _states(server) for path in state.unsound}
        if wrong:
            yield Judgment(Kind.UNSOUND, server.name, ", ".join(sorted(wrong)))
    for proxy in observation.proxies:
        if proxy.failure:
            yield Judgment(Kind.NO_INFO, proxy.url, reason=proxy.failure)
    versions = Counter(server.last.version for server in observation.servers if server.last)
    versions.update(proxy.version for proxy in observation.proxies)
    del versions[None]
    if len(versions) > 1:
        yield from (
            Judgment(Kind.VERSIONS, what=str(version), value=count) for version, count in versions.items()
        )


def _states(server: Server) -> list[State]:
    states = (server.before, *server.during, server.after)
    return [state for state in states if state is not None]


def _at_rest(node: Node) -> Iterator[Judgment]:
    """Say what was wrong with a node before the run."""
    load = node.highest(before, "load")
    if load is not None and load > BUSY:
        yield Judgment(Kind.LOADED, node.name, value=load)
    for disk in node.disks(before).values():
        if not disk.mounted:
            yield Judgment(Kind.NOT_MOUNTED, node.name, disk.device)
        elif disk.used_share > FULL:
            yield Judgment(Kind.FULL, node.name, disk.device, disk.used_share)
    ages: dict[str, float] = {}
    for state in node.states(before):
        for kind, age in state.replication_age.items():
            ages[kind] = min(age, ages.get(kind, age))
    for kind, age in ages.items():
        if age > LATE_REPLICATION:
            yield Judgment(Kind.LATE, node.name, kind, age)
    if pending := node.highest(before, "async_pending"):
        yield Judgment(Kind.PENDING, node.name, value=pending)


def _changes(node: Node) -> Iterator[Judgment]:
    """Say what the run changed on a node."""
    old, new = node.disks(before), node.disks(after)
    for device, disk in new.items():
        if device not in old or not old[device].mounted:
            continue
        if not disk.mounted:
            yield Judgment(Kind.LOST, node.name, device)
        elif disk.used_share > FULL >= old[device].used_share:
            yield Judgment(Kind.FILLED, node.name, device, disk.used_share)
    for kind, field in ((Kind.MORE_PENDING, "async_pending"), (Kind.MORE_QUARANTINED, "quarantined")):
        was, is_now = node.highest(before, field), node.highest(after, field)
        if was is not None and is_now is not None and was != is_now:
            yield Judgment(kind, node.name, value=is_now - was)
    counted = node.highest(after, "async_counted")
    stores_objects = any(server.kind == "object" for server in node.servers)
    if stores_objects and node.states(after) and counted == node.highest(before, "async_counted"):
        yield Judgment(Kind.NOT_COUNTED, node.name)


def _of_statsd(observation: Observation) -> Iterator[Judgment]:
    statsd = observation.statsd
    if statsd is None:
        return
    if not statsd.lines:
        yield Judgment(Kind.NO_STATSD, str(statsd.port))
    for kind, times in (
        (Kind.STRANGE, statsd.strange),
        (Kind.NAMELESS, statsd.nameless),
        (Kind.DROPPED, statsd.dropped),
    ):
        if times:
            yield Judgment(kind, value=times)


#: How a kind is worded: a sentence, and how each judgment appears in it.
_WORDS: dict[Kind, tuple[str, Callable[[Judgment], str]]] = {
    Kind.UNOBSERVED: ("The cluster was not observed: {}", lambda it: it.reason),
    Kind.UNANSWERED: ("Recon was not answered by {}", lambda it: f"{it.where} ({it.reason})"),
    Kind.UNSOUND: (
        "Left out, because no server can have such numbers, what recon says of {}",
        lambda it: f"{it.what} at {it.where}",
    ),
    Kind.NO_INFO: ("/info was not answered by {}", lambda it: f"{it.where} ({it.reason})"),
    Kind.VERSIONS: (
        "The servers have different versions of Swift: {}",
        lambda it: f"{it.what} ({count(round(it.value))})",
    ),
    Kind.LOADED: (
        f"Busy before the run, with a load above {BUSY:g}: {{}}",
        lambda it: f"{it.where} ({count(round(it.value))})",
    ),
    Kind.NOT_MOUNTED: ("Not mounted before the run: {}", lambda it: f"{it.what} on {it.where}"),
    Kind.FULL: (
        f"Over {100 * FULL:g} % full before the run: {{}}",
        lambda it: f"{it.what} on {it.where} ({share(it.value)})",
    ),
    Kind.LATE: (
        f"No pass of replication ended in the {duration(LATE_REPLICATION)} before the run: {{}}",
        lambda it: f"{it.what} on {it.where} ({duration(it.value)})",
    ),
    Kind.PENDING: ("Async pendings before the run: {}", lambda it: f"{count(round(it.value))} on {it.where}"),
    Kind.LOST: ("No longer mounted after the run: {}", lambda it: f"{it.what} on {it.where}"),
    Kind.FILLED: (
        f"Over {100 * FULL:g} % full since the run: {{}}",
        lambda it: f"{it.what} on {it.where} ({share(it.value)})",
    ),
    Kind.NO_STATSD: ("No statsd line of Swift came to port {}", lambda it: it.where),
    Kind.STRANGE: (
        "Lines at the statsd port that are not Swift's: {}",
        lambda it: count(round(it.value)),
    ),
    Kind.NAMELESS: (
        "Statsd lines that were not kept, because there are too many names: {}",
        lambda it: count(round(it.value)),
    ),
    Kind.DROPPED: (
        "Datagrams that the statsd port had no room for: {}",
        lambda it: count(round(it.value)),
    ),
    Kind.MORE_PENDING: ("Async pendings: {}", lambda it: f"{round(it.value):+,} on {it.where}"),
    Kind.NOT_COUNTED: (
        "Async pendings were not counted during the run (swift-recon-cron does that) on {}",
        lambda it: it.where,
    ),
    Kind.MORE_QUARANTINED: ("Quarantined: {}", lambda it: f"{round(it.value):+,} on {it.where}"),
}


def sentences(judgments: Iterable[Judgment], *, warnings: bool) -> list[str]:
    """Return a sentence for each kind: of the warnings, or of what the run changed."""
    of_kind: dict[Kind, list[Judgment]] = {}
    for judgment in judgments:
        if judgment.kind.is_warning is warnings:
            of_kind.setdefault(judgment.kind, []).append(judgment)
    return [_sentence(kind, found) for kind, found in of_kind.items()]


def _sentence(kind: Kind, found: list[Judgment]) -> str:
    words, item = _WORDS[kind]
    named = ", ".join(item(judgment) for judgment in found[:_NAMED])
    more = f" and {len(found) - _NAMED:,} more" if len(found) > _NAMED else ""
    return words.format(named + more)
