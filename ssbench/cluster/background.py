"""What else the servers of a run did: requests that are not of the run, and passes of background daemons.

Times are those of each node's own clock; :attr:`Background.ahead` is how far it is ahead of the
master's, by the lines of the run itself. Local time of syslog is turned into UTC by access lines, which
have both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ssbench.cluster import others
from ssbench.cluster.others import OtherRequests

#: So long before a run its background is looked at: as long as the run, within these seconds.
_SECONDS_BEFORE = (30, 600)
#: A pass may begin so many seconds before what is looked at, or end so many after it.
_MAX_PASS_SECONDS = 86_400
#: Most lines of daemons that are kept of a file.
_MAX_LINES = 50_000
#: So many seconds apart are what a line that ends a pass says of its beginning, and the line of that.
_SAME_PASS_SECONDS = 2.0
#: Zones are multiples of this many seconds.
_ZONE_SECONDS = 900


class DaemonLine(NamedTuple):
    """A line of a daemon: see :class:`~ssbench.cluster.daemons.DaemonRecord`.

    ``moment`` is in seconds since 1970; unless ``zoned``, as if local time were UTC.
    """

    node: str
    program: str
    device: str
    moment: float
    zoned: bool
    seconds: float | None
    begins: bool


class DaemonPass(NamedTuple):
    """When a daemon of a node was at work on a device, or on all where ``device`` is empty."""

    node: str
    program: str
    device: str
    begins: float
    ends: float


@dataclass(slots=True)
class FileBackground:
    """What one file says of others' ``requests`` and of daemons.

    ``clocks`` are (node, place of an operation of the run, second of its line); ``zones`` are seconds by
    which local time is ahead of UTC. ``uncertain`` are nodes of which not all lines of daemons are kept.
    """

    requests: OtherRequests = field(default_factory=OtherRequests)
    uncertain: set[str] = field(default_factory=set)
    lines: list[DaemonLine] = field(default_factory=list)
    clocks: list[tuple[str, int, int]] = field(default_factory=list)
    zones: Counter[int] = field(default_factory=Counter)

    def add(self, line: DaemonLine) -> None:
        """Take a line of a daemon."""
        if len(self.lines) < _MAX_LINES:
            self.lines.append(line)
        else:
            self.uncertain.add(line.node)


@dataclass(slots=True)
class Background:
    """What all files say. ``programs`` are the daemons of which any line is given, by node.

    ``uncertain`` are nodes with lines of daemons whose time is not known, or with more than are kept.
    ``ahead`` is in seconds; of nodes without a line of the run it is not known.
    """

    requests: OtherRequests = field(default_factory=OtherRequests)
    passes: list[DaemonPass] = field(default_factory=list)
    programs: dict[str, set[str]] = field(default_factory=dict)
    uncertain: set[str] = field(default_factory=set)
    ahead: dict[str, float] = field(default_factory=dict)


def background_window(began: int, ended: int) -> tuple[int, int]:
    """Return the seconds that are looked at: those of a run, and some before it."""
    before = min(max(ended - began, _SECONDS_BEFORE[0]), _SECONDS_BEFORE[1])
    return began - before, ended + 1


def is_near_window(moment: float, within: tuple[int, int], *, zoned: bool) -> bool:
    """Whether a line of a daemon at a moment may tell of what is within some seconds."""
    far = _MAX_PASS_SECONDS if zoned else 2 * _MAX_PASS_SECONDS
    return within[0] - far <= moment <= within[1] + far


def zone_offset(local: float, utc: float) -> int:
    """Return by how many seconds local time is ahead of UTC, where both are of one line."""
    return round((local - utc) / _ZONE_SECONDS) * _ZONE_SECONDS


def merge_backgrounds(files: Sequence[FileBackground], ended: npt.NDArray[np.float64]) -> Background:
    """Put together what files say; ``ended`` is when each operation of the run did, by the master's clock."""
    found = Background(others.merge_other_requests(each.requests for each in files))
    zones: Counter[int] = sum((each.zones for each in files), Counter())
    ahead: dict[str, list[float]] = {}
    for each in files:
        for node, place, second in each.clocks:
            if not np.isnan(ended[place]):
                # A line has whole seconds, so that its time is half a second early as a rule.
                ahead.setdefault(node, []).append(second + 0.5 - float(ended[place]))
        own = each.zones or zones
        lines = [_shift_to_utc(line, own.most_common(1)[0][0] if own else None) for line in each.lines]
        known = [line for line in lines if line is not None]
        found.uncertain |= each.uncertain
        if len(known) < len(lines) or len(lines) == _MAX_LINES:
            found.uncertain |= {line.node for line in each.lines}
        for line in known:
            found.programs.setdefault(line.node, set()).add(line.program.partition(" ")[0])
        found.passes += _find_passes(known)
    found.ahead = {node: median(values) for node, values in ahead.items()}
    return found


def _shift_to_utc(line: DaemonLine, zone: int | None) -> DaemonLine | None:
    if line.zoned:
        return line
    return None if zone is None else line._replace(moment=line.moment - zone, zoned=True)


def _is_other_device(one: DaemonLine, other: DaemonLine) -> bool:
    """Whether two lines are about devices that are not the same."""
    return bool(one.device and other.device and one.device != other.device)


def _find_passes(lines: Iterable[DaemonLine]) -> list[DaemonPass]:
    """Return the passes that lines of a file tell of; one without an end lasts to the last of the lines."""
    ordered = sorted(lines, key=lambda line: line.moment)
    found = []
    begun: dict[tuple[str, str], list[DaemonLine]] = {}
    for line in ordered:
        of = begun.setdefault((line.node, line.program), [])
        if line.begins:
            # A daemon works on a device once at a time: what it began before was cut short.
            of[:] = [each for each in of if each.device != line.device]
            of.append(line)
        elif line.seconds is not None:
            since = line.moment - line.seconds
            found.append(DaemonPass(line.node, line.program, line.device, since, line.moment))
            of[:] = [
                each
                for each in of
                if abs(each.moment - since) > _SAME_PASS_SECONDS or _is_other_device(each, line)
            ]
    end = ordered[-1].moment if ordered else 0.0
    found += [
        DaemonPass(line.node, line.program, line.device, line.moment, end)
        for of in begun.values()
        for line in of
    ]
    return found
