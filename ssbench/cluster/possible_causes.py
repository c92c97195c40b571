"""What may be why a suspect was slow: what else was at work on it, and what recon and statsd saw of it.

What was at work is compared in the same seconds in which the suspect was slow (:class:`BackgroundWork`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from ssbench.cluster import statsd
from ssbench.cluster.finding_kinds import LateReplicas, SuspectFinding, Work
from ssbench.cluster.joined_run import Device, JoinedRun
from ssbench.cluster.judgments import BUSY_LOAD, FULL_SHARE
from ssbench.cluster.log_background import DaemonPass
from ssbench.cluster.node_addresses import NodeAddresses
from ssbench.document.units import format_count, format_number, format_share
from ssbench.logs.transaction_ids import Numbers
from ssbench.results.cluster_observation import Observation, Server, State

#: Fewer requests of others, or a smaller share of the time, are not reported.
_MIN_REQUESTS = 5
_MIN_TIME_SHARE = 0.01
_DAEMON_PATTERN = re.compile(r"(?:object|container|account)-(?!server$)")
#: Requests of clients that are not of the run.
OTHER_CLIENTS = "other clients"


@dataclass(frozen=True, slots=True)
class _Location:
    """Where a finding is: devices of one node."""

    node: str
    devices: tuple[Device, ...]
    whose: str = ""  # its name where it is one of several


@dataclass(frozen=True, slots=True)
class _RequestTimes:
    """Seconds in which a program asked a device, in order, and how many requests there were before each."""

    seconds: Numbers
    before: Numbers

    def between(self, begins: float, ends: float) -> int:
        """Count the requests between two moments; a line is of some time within its second."""
        first = int(np.searchsorted(self.seconds, begins - 0.5, "left"))
        last = int(np.searchsorted(self.seconds, ends - 0.5, "right"))
        return int(self.before[last] - self.before[first])


@dataclass(frozen=True, slots=True)
class _Period:
    """Seconds since 1970 by the master's clock."""

    begins: float
    ends: float

    @property
    def seconds(self) -> float:
        return self.ends - self.begins


class BackgroundWork:
    """Finds what was not of the run, by device and node, between moments of the run."""

    def __init__(self, joined: JoinedRun, run: tuple[float, float]) -> None:
        """``run`` is from the first result to the last, in seconds since 1970 by the master's clock."""
        self._found = joined.background
        self._run = _Period(*run)
        self._before = _Period(self._run.begins - self._run.seconds, self._run.begins)
        self._devices = joined.devices
        self._nodes = sorted({each.node for each in joined.devices})
        owned: dict[tuple[str, ...], list[Device]] = {}
        for each in joined.devices:
            owned.setdefault((each.node,), []).append(each)
            owned.setdefault((each.node, each.server), []).append(each)
        self._places = {str(each): _Location(each.node, (each,)) for each in joined.devices}
        for process in joined.processes:
            of = owned.get((process.node, process.server), [])
            self._places[str(process)] = _Location(process.node, tuple(of))
        self._places |= {node: _Location(node, tuple(owned[(node,)])) for node in self._nodes}
        self._passes: dict[tuple[str, str], list[DaemonPass]] = {}
        for found in self._found.passes:
            self._passes.setdefault((found.program, found.node), []).append(found)
        self._asked: dict[str, dict[tuple[str, str, str], list[_RequestTimes]]] = {}
        self._first: dict[str, int] = {}
        for (node, server, device, asker), seconds, numbers in self._found.requests.series():
            who = asker if _DAEMON_PATTERN.match(asker) else OTHER_CLIENTS
            asked = _RequestTimes(seconds, np.append(0, np.cumsum(numbers)))
            self._asked.setdefault(who, {}).setdefault((node, server, device), []).append(asked)
            self._first[node] = min(int(seconds[0]), self._first.get(node, int(seconds[0])))

    def beside(self, finding: SuspectFinding | LateReplicas) -> list[Work]:
        """Return what was at work on a suspect, while it was; on each of several that may be it."""
        places = self._of(finding)
        if not places or not self._run.seconds > 0:
            return []
        slow = self._slow(finding)
        return [*self._requests(places, slow), *self._daemons(places, slow)]

    def logs(self, finding: SuspectFinding | LateReplicas) -> list[str] | None:
        """Return the daemons of which lines name the node of a suspect, or each node of several.

        None where no node has any, and where these do not tell what was at work.
        """
        nodes = {place.node for place in self._of(finding)}
        if not nodes or not self._found.programs or not self._run.seconds > 0:
            return None
        if nodes & self._found.uncertain:
            return None
        return sorted(set.intersection(*(set(self._found.programs.get(node, ())) for node in nodes)))

    def _of(self, finding: SuspectFinding | LateReplicas) -> list[_Location]:
        """Return where a finding is; several places where it is about one of these."""
        names = finding.candidates
        # A proxy may be called as a node is.
        if finding.level.startswith("proxy") or not self._places.keys() >= set(names):
            return []
        if len(names) == 1:
            return [self._places[names[0]]]
        return [replace(self._places[name], whose=name) for name in names]

    def _slow(self, finding: SuspectFinding | LateReplicas) -> _Period:
        """Return the part of the run in which a server is slow, of whole seconds as those of log lines."""
        course = finding.course if isinstance(finding, SuspectFinding) else None
        if course is None or course.begins is None or course.ends is None:
            return self._run
        begins = self._run.begins + course.begins
        return _Period(begins, max(self._run.begins + course.ends, begins + 1.0))

    def _requests(self, places: Sequence[_Location], slow: _Period) -> Iterator[Work]:
        here = {each for place in places for each in place.devices}
        for who, asked in self._asked.items():
            rates = [self._rate(asked, place.devices, slow) for place in places]
            counts = [
                rate * slow.seconds * len(place.devices) for rate, place in zip(rates, places, strict=True)
            ]
            if max(counts) < _MIN_REQUESTS:
                continue
            servers = {each.server for each in here}
            others = [each for each in self._devices if each not in here and each.server in servers]
            of_others = [self._rate(asked, (each,), slow) for each in others]
            for place, during in zip(places, rates, strict=True):
                first = self._first.get(place.node, np.inf)
                known = first <= self._at(place.node, self._before.begins) + 1.0
                yield Work(
                    who,
                    "requests",
                    "device",
                    during,
                    self._rate(asked, place.devices, self._before) if known else None,
                    median(of_others) if of_others else None,
                    place.whose,
                )

    def _rate(
        self, asked: dict[tuple[str, str, str], list[_RequestTimes]], devices: Iterable[Device], span: _Period
    ) -> float:
        """Return requests a second, on each of some devices."""
        counts = [
            sum(
                each.between(self._at(device.node, span.begins), self._at(device.node, span.ends))
                for each in asked.get((device.node, device.server, device.name), ())
            )
            for device in devices
        ]
        return sum(counts) / len(counts) / span.seconds

    def _at(self, node: str, moment: float) -> float:
        """Return a moment by the clock of a node; where that is not known, clocks are taken to be equal."""
        return moment + self._found.clocks_ahead.get(node, 0.0)

    def _daemons(self, places: Sequence[_Location], slow: _Period) -> Iterator[Work]:
        nodes = {place.node for place in places}
        for program in sorted({program for program, node in self._passes if node in nodes}):
            # Where all that it says is of whole nodes, these are compared.
            for on in ("device", "node"):
                shares = [self._share_of(program, place, on, slow) for place in places]
                if max(shares) >= _MIN_TIME_SHARE:
                    break
            else:
                continue
            of_peers = [
                self._share(program, node, of, slow)
                for node, of in self._peers(places, on)
                if self._is_told(program, node)
            ]
            for place, during in zip(places, shares, strict=True):
                if during or self._is_told(program, place.node):
                    yield Work(
                        program,
                        "time",
                        on,
                        during,
                        self._share_before(program, place, on),
                        median(of_peers) if of_peers else None,
                        place.whose,
                    )

    def _is_told(self, program: str, node: str) -> bool:
        """Whether lines of a daemon would tell of its work on a node."""
        own = self._found.programs.get(node, ())
        return program.partition(" ")[0] in own and node not in self._found.uncertain

    def _peers(self, places: Sequence[_Location], on: str) -> list[tuple[str, set[str]]]:
        """Return the other nodes, or the nodes and names of the other devices, as passes have them."""
        if on == "node":
            nodes = {place.node for place in places}
            return [(node, {""}) for node in self._nodes if node not in nodes]
        here = {each for place in places for each in place.devices}
        return [(each.node, {each.name}) for each in self._devices if each not in here]

    def _share_of(self, program: str, place: _Location, on: str, span: _Period) -> float:
        names = {each.name for each in place.devices} if on == "device" else {""}
        return self._share(program, place.node, names, span)

    def _share_before(self, program: str, place: _Location, on: str) -> float | None:
        """Return the share of the time before the run; None where it is not known: logs may begin with it."""
        passes = self._passes.get((program, place.node), ())
        first = min((each.begins for each in passes), default=np.inf)
        if first > self._at(place.node, self._before.begins) or place.node in self._found.uncertain:
            return None
        return self._share_of(program, place, on, self._before)

    def _share(self, program: str, node: str, names: set[str], span: _Period) -> float:
        """Return in which share of some seconds a daemon was at work on devices of a node."""
        begins, ends = self._at(node, span.begins), self._at(node, span.ends)
        total, reached = 0.0, begins
        passes = (
            (max(each.begins, begins), min(each.ends, ends))
            for each in self._passes.get((program, node), ())
            if each.device in names
        )
        for start, end in sorted(passes):
            if end > max(start, reached):
                total += end - max(start, reached)
                reached = end
        return total / span.seconds


# -- What recon and statsd saw ---------------------------------------------------------------------


def describe_observed_nodes(cluster: Observation | None, addresses: NodeAddresses) -> dict[str, list[str]]:
    """Return what is remarkable of each node of the logs, in words."""
    found: dict[str, dict[str, None]] = {}
    for server in cluster.servers if cluster else ():
        node = addresses.node(server.name)
        if node is not None:
            found.setdefault(node, {}).update(dict.fromkeys(_describe_server(server)))
    return {node: list(words) for node, words in found.items()}


def describe_observed_devices(cluster: Observation | None, addresses: NodeAddresses) -> dict[str, str]:
    """Return what statsd says of the PUTs of each device of the logs, in words."""
    averages: dict[str, float] = {}
    for metric in cluster.statsd.metrics if cluster and cluster.statsd else ():
        whose = statsd.split_put_metric(metric)
        values = statsd.merge_intervals(metric.intervals)
        name = whose and addresses.of_prefix(whose[0].rstrip("."), whose[1])
        if name and values.count:
            averages[name] = values.total / values.count
    return {
        name: _compare_with_others(average, _averages_without(averages, name))
        for name, average in averages.items()
    }


def _averages_without(averages: dict[str, float], name: str) -> Iterable[float]:
    return [average for other, average in averages.items() if other != name]


def _compare_with_others(average: float, others: Iterable[float]) -> str:
    text = f"its PUTs take {format_number(average)} ms/kB"
    return f"{text} (other devices {format_number(median(others))}, median)" if others else text


def _describe_server(server: Server) -> Iterator[str]:
    states = [state for state in (server.before, *server.during, server.after) if state is not None]
    loads = [state.load for state in states if state.load is not None]
    if loads and max(loads) > BUSY_LOAD:
        yield f"load {format_count(round(max(loads)))}"
    for state in (server.before, server.after):
        for disk in state.disks or () if state else ():
            if not disk.mounted:
                yield f"{disk.device} not mounted"
            elif disk.used_share > FULL_SHARE:
                yield f"{disk.device} {format_share(disk.used_share)} full"
    yield from _describe_pending(states)


def _describe_pending(states: list[State]) -> Iterator[str]:
    counted = [state.async_pending for state in states if state.async_pending is not None]
    most = max(counted, default=0)
    if most:
        yield f"{most:,} async pendings"
