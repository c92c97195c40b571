"""What else was at work on a suspect, in the same seconds: what may be why."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from ssbench.attribution.background import Pass
from ssbench.attribution.joined import Device, Joined
from ssbench.attribution.records import Finding, Work

#: Fewer requests of others, or a smaller share of the time, are not reported.
_FEW_REQUESTS = 5
_LITTLE_TIME = 0.01
_DAEMON = re.compile(r"(?:object|container|account)-(?!server$)")
#: Requests of clients that are not of the run.
CLIENTS = "other clients"


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a finding is: devices of one node."""

    node: str
    devices: tuple[Device, ...]


@dataclass(frozen=True, slots=True)
class _Span:
    """Seconds since 1970 by the master's clock."""

    begins: float
    ends: float

    @property
    def seconds(self) -> float:
        return self.ends - self.begins


class AtWork:
    """Tells what was not of the run, by device and node, between moments of the run."""

    def __init__(self, joined: Joined, run: tuple[float, float]) -> None:
        """``run`` is from the first result to the last, in seconds since 1970 by the master's clock."""
        self._found = joined.background
        self._run = _Span(*run)
        self._before = _Span(self._run.begins - self._run.seconds, self._run.begins)
        self._devices = joined.devices
        self._nodes = sorted({each.node for each in joined.devices})
        owned: dict[tuple[str, ...], list[Device]] = {}
        for each in joined.devices:
            owned.setdefault((each.node,), []).append(each)
            owned.setdefault((each.node, each.server), []).append(each)
        self._places = {str(each): _Place(each.node, (each,)) for each in joined.devices}
        for process in joined.processes:
            of = owned.get((process.node, process.server), [])
            self._places[str(process)] = _Place(process.node, tuple(of))
        self._places |= {node: _Place(node, tuple(owned[(node,)])) for node in self._nodes}
        self._passes: dict[tuple[str, str], list[Pass]] = {}
        for found in self._found.passes:
            self._passes.setdefault((found.program, found.node), []).append(found)
        self._asked: dict[str, dict[tuple[str, str, str], Counter[int]]] = {}
        self._first: dict[str, int] = {}
        for (node, server, device, asker, second), count in self._found.requests.items():
            who = asker if _DAEMON.match(asker) else CLIENTS
            self._asked.setdefault(who, {}).setdefault((node, server, device), Counter())[second] += count
            self._first[node] = min(second, self._first.get(node, second))

    def beside(self, finding: Finding) -> list[Work]:
        """Return what was at work on a suspect, while it was."""
        place = self._place(finding)
        if place is None or not self._run.seconds > 0:
            return []
        slow = self._slow(finding)
        return [*self._requests(place, slow), *self._daemons(place, slow)]

    def logs(self, finding: Finding) -> list[str] | None:
        """Return the daemons of which lines name the node of a suspect.

        None where no node has any, and where these do not tell what was at work.
        """
        place = self._place(finding)
        if place is None or not self._found.programs or not self._run.seconds > 0:
            return None
        if place.node in self._found.uncertain:
            return None
        return sorted(self._found.programs.get(place.node, ()))

    def _place(self, finding: Finding) -> _Place | None:
        # A proxy may be called as a node is.
        return None if finding.level.startswith("proxy") else self._places.get(finding.name)

    def _slow(self, finding: Finding) -> _Span:
        """Return the part of the run in which a server is slow, of whole seconds as those of log lines."""
        course = finding.course
        if course is None or course.begins is None or course.ends is None:
            return self._run
        begins = self._run.begins + course.begins
        return _Span(begins, max(self._run.begins + course.ends, begins + 1.0))

    def _requests(self, place: _Place, slow: _Span) -> Iterable[Work]:
        for who, asked in self._asked.items():
            during = self._rate(asked, place.devices, slow)
            if during * slow.seconds * len(place.devices) < _FEW_REQUESTS:
                continue
            servers = {each.server for each in place.devices}
            others = [each for each in self._devices if each not in place.devices and each.server in servers]
            rates = [self._rate(asked, (each,), slow) for each in others]
            known = self._first[place.node] <= self._at(place.node, self._before.begins) + 1.0
            yield Work(
                who,
                "requests",
                "device",
                during,
                self._rate(asked, place.devices, self._before) if known else None,
                median(rates) if rates else None,
            )

    def _rate(
        self, asked: dict[tuple[str, str, str], Counter[int]], devices: tuple[Device, ...], span: _Span
    ) -> float:
        """Return requests a second, on each of some devices."""
        count = 0
        for each in devices:
            begins, ends = self._at(each.node, span.begins), self._at(each.node, span.ends)
            seconds = asked.get((each.node, each.server, each.name), Counter())
            # A line is of some time within its second.
            count += sum(number for second, number in seconds.items() if begins <= second + 0.5 <= ends)
        return count / len(devices) / span.seconds

    def _at(self, node: str, moment: float) -> float:
        """Return a moment by the clock of a node; where that is not known, clocks are taken to be equal."""
        return moment + self._found.ahead.get(node, 0.0)

    def _daemons(self, place: _Place, slow: _Span) -> Iterable[Work]:
        own = {each.name for each in place.devices}
        for program in sorted(program for program, node in self._passes if node == place.node):
            names, on = own, "device"
            during = self._share(program, place.node, names, slow)
            if during < _LITTLE_TIME:
                names, on = {""}, "node"
                during = self._share(program, place.node, names, slow)
            if during < _LITTLE_TIME:
                continue
            if on == "device":
                peers = [(each.node, {each.name}) for each in self._devices if each not in place.devices]
            else:
                peers = [(node, {""}) for node in self._nodes if node != place.node]
            shares = [
                self._share(program, node, of, slow)
                for node, of in peers
                if program.partition(" ")[0] in self._found.programs.get(node, ())
                and node not in self._found.uncertain
            ]
            # Whether it worked before its first line is not known: logs may begin with the run.
            first = min(each.begins for each in self._passes[program, place.node])
            known = (
                first <= self._at(place.node, self._before.begins) and place.node not in self._found.uncertain
            )
            yield Work(
                program,
                "time",
                on,
                during,
                self._share(program, place.node, names, self._before) if known else None,
                median(shares) if shares else None,
            )

    def _share(self, program: str, node: str, names: set[str], span: _Span) -> float:
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
