"""What the logs say of a run: coverage, parts, tables, and who made requests slow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ssbench.attribution import culprits, kinds, parts, replicas, tables
from ssbench.attribution.culprits import POOLED, Accused, Level
from ssbench.attribution.joined import NOBODY, Joined
from ssbench.attribution.kinds import GROUPS, Compared
from ssbench.attribution.ranks import (
    Difference,
    Places,
    Units,
    deviates,
    difference,
    holm,
    pairs,
    upper_tail,
)
from ssbench.attribution.tables import Coverage, PartRow, Row, SlowOperation

#: So few late replicas are no habit.
_HABIT = 5


@dataclass(frozen=True, slots=True)
class Finding:
    """A sentence's facts. ``kind``: ``slow``, ``together`` (all members of a process or node are), ``late``,
    ``unfelt``, ``untold``, ``507``, ``error``.

    ``level`` is ``proxy``, ``proxy process``, ``node``, ``process`` or ``device``, and ``name`` who it is;
    ``members`` are the devices of a process or node, ``same`` those who cannot be told from it.
    ``group`` is ``reads`` or ``writes`` where those show it best. ``groups`` has the difference for each,
    ``own`` that of the server's own times: of reads, or with ``writes`` of the device's replica to the others
    of the same write. ``detail`` is ``last`` where the servers' own times of
    writes accuse a device: the difference is then to the other replicas of the same write.
    """

    kind: str
    level: str
    name: str
    requests: int = 0
    difference: Difference | None = None
    probability: float | None = None
    group: str | None = None
    groups: dict[str, Difference] = field(default_factory=dict)
    own: Difference | None = None
    members: list[str] = field(default_factory=list)
    same: list[str] = field(default_factory=list)
    seconds: float | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Attribution:
    """Everything that is said of a run."""

    coverage: Coverage
    findings: list[Finding]
    parts: list[PartRow]
    proxies: list[Row]
    nodes: list[Row]
    devices: list[Row]
    partitions: list[Row]
    slowest: list[SlowOperation]
    errors: list[tuple[str, str, int]]
    other_errors: list[tuple[str, str, int]]


def attribute(joined: Joined) -> Attribution:
    """Draw the conclusions."""
    return _Conclusions(joined).all()


class _Conclusions:
    def __init__(self, joined: Joined) -> None:
        operations = joined.operations
        self._joined = joined
        self._complete = kinds.completeness(joined)
        self._fine = ~operations.failed & (operations.latency > 0)
        self._parts = parts.split(joined, self._complete)
        # A retried operation's latency is that of all its attempts, its lines those of the last.
        first_try = self._fine & (operations.retries == 0)
        self._usable = first_try & self._complete.complete & ~self._complete.concurrent
        self._compared = kinds.compare(joined, self._usable, by_proxy=True)
        self._levels = kinds.levels(joined, self._compared)
        self._by_proxy = kinds.compare(joined, first_try & (joined.proxy != NOBODY), by_proxy=False)
        every = np.arange(len(operations.code))
        self._proxy_levels = [
            Level("proxy", self._by_proxy.pairs(every, joined.proxy, len(joined.proxies))),
            Level(
                "proxy process", self._by_proxy.pairs(every, joined.proxy_worker, len(joined.proxy_workers))
            ),
        ]
        self._nodes = kinds.node_names(joined)

    def all(self) -> Attribution:
        joined, lines = self._joined, self._joined.lines
        findings = self._findings()
        named = [each for each in findings if each.kind in {"slow", "late", "507"}]
        accused = {name for each in named for name in (each.name, *each.members)}
        return Attribution(
            coverage=tables.coverage(joined, self._complete, self._usable),
            findings=findings,
            parts=tables.part_rows(joined, self._parts, self._fine),
            proxies=tables.proxy_rows(joined, self._by_proxy, self._proxy_levels[0]),
            nodes=tables.server_rows(
                joined, self._compared, self._levels[2], self._nodes, self._node_of_lines()
            ),
            devices=tables.server_rows(
                joined, self._compared, self._levels[0], [str(each) for each in joined.devices], lines.device
            ),
            partitions=tables.partition_rows(joined),
            slowest=tables.slowest_rows(joined, self._parts, accused),
            errors=tables.error_rows(joined.errors),
            other_errors=tables.error_rows(joined.other_errors),
        )

    def _node_of_lines(self) -> Places:
        node_of = np.array([self._nodes.index(each.node) for each in self._joined.devices], np.int64)
        return node_of[self._joined.lines.device] if len(node_of) else self._joined.lines.device

    def _name(self, level: str, candidate: int) -> str:
        joined = self._joined
        names: dict[str, Sequence[object]] = {
            "proxy": joined.proxies,
            "proxy process": joined.proxy_workers,
            "device": joined.devices,
            "process": joined.processes,
            "node": self._nodes,
        }
        return str(names[level][candidate])

    def _findings(self) -> list[Finding]:
        found: list[Finding] = []
        for compared, levels in ((self._by_proxy, self._proxy_levels), (self._compared, self._levels)):
            verdict = culprits.judge(compared.units, levels, len(GROUPS))
            found += [self._slow(each, levels, compared) for each in verdict.accused]
            found += self._untold(levels[0].name, verdict.untold[0]) if len(compared.units) else []
        found += self._last(found)
        found += self._together(found)
        slow = {each.name for each in found if each.kind == "slow"}
        members = {member for each in found if each.kind == "slow" for member in each.members}
        return [*found, *self._late(), *self._unfelt(slow | members), *self._broken()]

    def _untold(self, level: str, places: list[int]) -> list[Finding]:
        """Name proxies and object servers' devices of which nothing can be said; others seldom matter."""
        devices = self._joined.devices
        names = [
            self._name(level, place)
            for place in places
            if level != "device" or devices[place].server == "object"
        ]
        return [Finding("untold", level, names[0], same=names[1:])] if names else []

    def _slow(self, accused: Accused, levels: list[Level], compared: Compared) -> Finding:
        level = levels[accused.level]
        mask = level.who.of(accused.candidate, len(compared.units))
        group = None if accused.group == POOLED else GROUPS[accused.group]
        return Finding(
            "slow",
            level.name,
            self._name(level.name, accused.candidate),
            requests=accused.with_,
            difference=accused.difference,
            probability=accused.probability,
            group=group,
            groups=_by_group(compared.units, mask),
            own=self._own(accused.candidate, group) if level.name == "device" else None,
            members=[
                self._name(levels[0].name, place)
                for place in (level.members[accused.candidate] if level.members else ())
            ],
            same=[self._name(level.name, place) for place in accused.same],
        )

    def _last(self, found: list[Finding]) -> list[Finding]:
        """Devices whose replicas of writes end last, beside those that the client's time accuses."""
        slow = [each for each in found if each.kind == "slow"]
        names = {name for each in slow for name in (each.name, *each.members, *each.same)}
        devices = range(len(self._joined.devices))
        accused = [place for place in devices if self._name("device", place) in names]
        return [
            Finding(
                "slow",
                "device",
                self._name("device", each.device),
                requests=each.writes,
                difference=each.difference,
                probability=each.probability,
                group="writes",
                detail="last",
            )
            for each in replicas.last(self._joined, self._usable, accused)
        ]

    def _together(self, found: list[Finding]) -> list[Finding]:
        """Name the process, or else the node, of which all devices are slow."""
        slow = {each.name for each in found if each.kind == "slow" and each.level == "device"}
        named: list[Finding] = []
        for level in self._levels[1:]:
            for place, members in enumerate(level.members or ()):
                names = sorted(self._name("device", member) for member in members)
                known = any(set(names) <= set(other.members) for other in named)
                if len(names) > 1 and slow.issuperset(names) and not known:
                    name = self._name(level.name, place)
                    named.append(Finding("together", level.name, name, members=names))
        return named

    def _own(self, device: int, group: str | None) -> Difference | None:
        if group == "writes":
            return replicas.beside(self._joined, self._usable, device)
        units, devices, _ = kinds.compare_servers(self._joined, self._usable)
        mask = devices == device
        return difference(units, mask) if mask.sum() >= _HABIT and not mask.all() else None

    def _late(self) -> list[Finding]:
        """Devices whose replicas of writes are late more often than the others'."""
        late = parts.late(self._joined)
        found = []
        for place in np.flatnonzero(late.counts):
            tail = parts.binomial_tail(
                int(late.counts.sum()), float(late.shares[place]), int(late.counts[place])
            )
            if late.counts[place] >= _HABIT and tail * len(late.counts) < culprits.ALPHA:
                found.append(
                    Finding(
                        "late",
                        "device",
                        self._name("device", int(place)),
                        requests=int(late.counts[place]),
                        probability=tail * len(late.counts),
                        seconds=float(late.waited[place]),
                    )
                )
        return found

    def _unfelt(self, accused: set[str]) -> list[Finding]:
        """Devices that are slow by their own log, though requests with them take no longer."""
        joined = self._joined
        units, device, _ = kinds.compare_servers(joined, self._usable)
        if not len(units):
            return []
        who = pairs(np.arange(len(units)), device, len(joined.devices))
        test = deviates(units, who, len(GROUPS))
        adjusted = holm(np.array([upper_tail(z) for z in test.z[-1]]))
        felt = float(np.median(joined.operations.latency[self._usable]))
        found = []
        for place in np.flatnonzero(adjusted < culprits.ALPHA):
            measured = difference(units, device == place)
            # What is small compared with a request's time is of no interest.
            if (
                measured.median >= culprits.LEAST_SHARE * felt
                and self._name("device", int(place)) not in accused
            ):
                found.append(
                    Finding(
                        "unfelt",
                        "device",
                        self._name("device", int(place)),
                        requests=int(test.with_[-1, place]),
                        difference=measured,
                        probability=float(adjusted[place]),
                    )
                )
        return found

    def _broken(self) -> list[Finding]:
        """Devices that answered 507, and nodes of which the proxies logged errors."""
        joined = self._joined
        lines = joined.lines
        counts = np.bincount(lines.device[lines.status == 507], minlength=len(joined.devices))
        found = [
            Finding("507", "device", self._name("device", int(place)), requests=int(counts[place]))
            for place in np.flatnonzero(counts)
        ]
        by_device: Counter[tuple[str, str]] = Counter()
        for (kind, server, address, device), count in (joined.errors + joined.other_errors).items():
            if address and kind in ("timeout", "connection", "error", "507", "limited"):
                where = f"{address}/{device}" if device else address
                words = {"limited": "error limited", "connection": "no connection"}.get(kind, kind)
                by_device[(f"{server} server {where}".strip(), words)] += count
        return found + [
            Finding("error", "device", name, requests=count, detail=words)
            for (name, words), count in by_device.most_common()
        ]


def _by_group(units: Units, mask: npt.NDArray[np.bool_]) -> dict[str, Difference]:
    found = {}
    for group, name in enumerate(GROUPS):
        at = np.flatnonzero(units.group[units.stratum] == group)
        if mask[at].sum() < _HABIT or mask[at].all():
            continue
        measured = difference(Units(units.seconds[at], units.stratum[at], units.group), mask[at])
        if not np.isnan(measured.median):
            found[name] = measured
    return found
