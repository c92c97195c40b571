"""What else the servers of a run did: requests that are not of the run, and passes of background daemons.

Of requests, how many each storage server had, from whom and in which second. There may be a hundred million
of them. What is kept of a file are counts, 16 bytes for each second in which a program asked a device
anything, and beyond some number of lines one transaction in eight is counted, for eight.

Times are those of each node's own clock. :attr:`Background.clocks_ahead` is the one estimate of how far that
is ahead of the master's, by lines of the run itself, of which :mod:`ssbench.cluster.join` takes the times.
Local time of syslog is turned into UTC by access lines, which have both.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ssbench.logs import transaction_ids
from ssbench.logs.swift_lines import BackendLine
from ssbench.logs.transaction_ids import Bytes, Numbers

#: Who was asked, and who asked: node, server, device, program. In lines these are bytes; a node may be text.
RequestParties = tuple[str, str, str, str]
RawParties = tuple[bytes | str, bytes, bytes, bytes]
RequestCodes = npt.NDArray[np.uint64]

#: So many requests of a file are all counted; beyond that those of one transaction in so many.
MAX_COUNTED_REQUESTS, COUNTED_ONE_IN = 100_000, 8
#: A code is the place of who it is, and the second in so many bits.
_SECOND_BITS = 40
#: So many codes are put together at once.
_MERGED_AT_ONCE = 1 << 18

#: The path of an update that a container server receives is that of an object, and so on.
_UPDATE_RECEIVERS = {
    (b"object-server", b"object"): b"container",
    (b"object-updater", b"object"): b"container",
    (b"container-server", b"container"): b"account",
    (b"container-updater", b"container"): b"account",
}
#: The account of the queue of objects that expire, which is no client's.
_EXPIRER_ACCOUNT = b".expiring_objects"
#: Programs that ask for the queue: a proxy inside the expirer, and the expirer itself.
_EXPIRER_PROGRAMS = (b"proxy-server", b"direct-client")
#: What an internal client of a daemon asks for, as its proxy names it: there is no host. So does what an
#: update that an object server then sends to a container server.
_INTERNAL_DELETE = b"DELETE http://localhost/"
_INTERNAL_PROGRAMS = (b"proxy-server", b"object-server")


def name_request_parties(node: bytes | str, line: BackendLine) -> RawParties:
    """Return who was asked, and who asked, by a line that is not of the run.

    Older versions of Swift call the proxy inside the object-expirer as any other. Its deletes have no port
    in their address, and no client asks for its queue.
    """
    asker, server = line.asker, _UPDATE_RECEIVERS.get((line.asker, line.server), line.server)
    if (asker in _EXPIRER_PROGRAMS and line.names.startswith(_EXPIRER_ACCOUNT)) or (
        asker in _INTERNAL_PROGRAMS and line.referer.startswith(_INTERNAL_DELETE)
    ):
        asker = b"object-expirer"
    return node, server, line.device, asker


@dataclass(frozen=True, slots=True)
class OtherRequests:
    """Counts of requests as columns."""

    names: list[RequestParties] = field(default_factory=list)  # whom codes mean
    codes: RequestCodes = field(default_factory=lambda: np.zeros(0, np.uint64))  # in order
    numbers: Numbers = field(default_factory=lambda: np.zeros(0, np.int64))  # requests of each code

    def series(self) -> Iterator[tuple[RequestParties, Numbers, Numbers]]:
        """Yield who it is, the seconds since 1970 in order, and the number of requests in each."""
        first = np.arange(len(self.names) + 1, dtype=np.uint64) << np.uint64(_SECOND_BITS)
        ends = np.searchsorted(self.codes, first)
        seconds = (self.codes & np.uint64((1 << _SECOND_BITS) - 1)).astype(np.int64)
        for place, who in enumerate(self.names):
            mine = slice(int(ends[place]), int(ends[place + 1]))
            yield who, seconds[mine], self.numbers[mine]


def merge_other_requests(several: Iterable[OtherRequests]) -> OtherRequests:
    """Put requests of several files together."""
    names: dict[RequestParties, int] = {}
    codes, numbers = [np.zeros(0, np.uint64)], [np.zeros(0, np.int64)]
    for each in several:
        for who, seconds, counts in each.series():
            place = names.setdefault(who, len(names))
            codes.append(seconds.astype(np.uint64) | np.uint64(place << _SECOND_BITS))
            numbers.append(counts)
    return OtherRequests(list(names), *_sum_equal_codes(np.concatenate(codes), np.concatenate(numbers)))


class OtherRequestCounter:
    """Counts the requests of a file as they come."""

    def __init__(self) -> None:
        self._names: dict[RawParties, int] = {}
        self._lines, self._every = 0, 1
        self._new = array("Q")
        self._codes, self._numbers = np.zeros(0, np.uint64), np.zeros(0, np.int64)

    def chosen(self, trans_ids: Bytes) -> npt.NDArray[np.bool_]:
        """Return of which transactions requests are to be added now."""
        if self._every == 1 and self._lines > MAX_COUNTED_REQUESTS:
            self._settle()
            self._every = COUNTED_ONE_IN
        if self._every == 1:
            return np.ones(len(trans_ids), np.bool_)
        return np.asarray(transaction_ids.number_ids(trans_ids) % np.uint64(self._every) == 0)

    def add(self, who: RawParties, second: int) -> None:
        """Take a request in a second since 1970."""
        if not 0 <= second < 1 << _SECOND_BITS:
            return
        self._lines += 1
        self._new.append(self._names.setdefault(who, len(self._names)) << _SECOND_BITS | second)
        if len(self._new) >= _MERGED_AT_ONCE:
            self._settle()

    def _settle(self) -> None:
        codes, counts = np.unique(np.frombuffer(self._new, np.uint64), return_counts=True)
        self._codes, self._numbers = _sum_equal_codes(
            np.append(self._codes, codes), np.append(self._numbers, counts * self._every)
        )
        self._new = array("Q")

    def requests(self, text: Callable[[bytes | str], str]) -> OtherRequests:
        """Return all; ``text`` makes texts of words."""
        self._settle()
        names: list[RequestParties] = [
            (text(node), text(server), text(device), text(asker))
            for node, server, device, asker in self._names
        ]
        return OtherRequests(names, self._codes, self._numbers)


def _sum_equal_codes(codes: RequestCodes, numbers: Numbers) -> tuple[RequestCodes, Numbers]:
    """Add the numbers of equal codes."""
    found, place = np.unique(codes, return_inverse=True)
    return found, np.bincount(place, numbers, len(found)).astype(np.int64)


# -- Passes of daemons, and all files together -----------------------------------------------------


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
    """A line of a daemon: see :class:`~ssbench.logs.daemon_lines.DaemonRecord`."""

    node: str
    program: str
    device: str
    moment: float  # seconds since 1970; unless ``zoned``, as if local time were UTC
    zoned: bool
    seconds: float | None
    begins: bool


class DaemonPass(NamedTuple):
    """When a daemon of a node was at work on a device."""

    node: str
    program: str
    device: str  # empty: on all of them
    begins: float
    ends: float


@dataclass(slots=True)
class FileBackground:
    """What one file says of others' requests and of daemons."""

    requests: OtherRequests = field(default_factory=OtherRequests)
    uncertain: set[str] = field(default_factory=set)  # nodes of which not all lines of daemons are kept
    lines: list[DaemonLine] = field(default_factory=list)
    #: (node, place of an operation of the run, second of its line).
    clocks: list[tuple[str, int, int]] = field(default_factory=list)
    zones: Counter[int] = field(default_factory=Counter)  # seconds by which local time is ahead of UTC

    def add(self, line: DaemonLine) -> None:
        """Take a line of a daemon."""
        if len(self.lines) < _MAX_LINES:
            self.lines.append(line)
        else:
            self.uncertain.add(line.node)


@dataclass(slots=True)
class Background:
    """What all files say."""

    requests: OtherRequests = field(default_factory=OtherRequests)
    passes: list[DaemonPass] = field(default_factory=list)
    #: The daemons of which any line is given, by node.
    programs: dict[str, set[str]] = field(default_factory=dict)
    #: Nodes with lines of daemons whose time is not known, or with more than are kept.
    uncertain: set[str] = field(default_factory=set)
    #: By how many seconds the clock of each node is ahead of the master's, the median of some lines. Of nodes
    #: without a line of the run it is not known.
    clocks_ahead: dict[str, float] = field(default_factory=dict)


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
    found = Background(merge_other_requests(each.requests for each in files))
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
    found.clocks_ahead = {node: median(values) for node, values in ahead.items()}
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
