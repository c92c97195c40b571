"""What one log file says of a run: lines of its requests, packed, with tables of the names in them.

A file is read without regard to others, so that each can be read by a process of its own;
:mod:`~ssbench.cluster.join` puts them together.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from ssbench.cluster import by_update, daemons, ids, others, rows
from ssbench.cluster.background import FileBackground, Line, near, zone
from ssbench.cluster.files import LogFile, Reader
from ssbench.cluster.ids import Ids, Numbers
from ssbench.cluster.joined import OBJECT, OTHER, UPDATE, FileCount
from ssbench.cluster.lines import (
    BACKEND_LINE,
    NO_POLICY,
    TRANS_ID,
    BackendLine,
    CutLine,
    ErrorLine,
    ProxyLine,
    ProxyParser,
    SlowLine,
    parse,
    template_parser,
)
from ssbench.cluster.stamps import access_time, stamp

Thing = TypeVar("Thing", bound=Hashable)

#: A word of a line, or what the user calls a node.
Name = bytes | str

#: Where Swift has cut a line.
_CUT = b" ... "
#: What every access line has, of a storage server or of a proxy.
_ACCESS = re.compile(rb'"proxy-server \d+"|\d\d/[A-Z][a-z]{2}/\d{4}/\d\d/\d\d/\d\d ')
#: So many access lines at the beginning of a file tell whether its ids are whole.
_TELLING = 10
_POLICIES = 1 << 15
#: No more lines of requests that are shown one by one are kept of a file.
_MOST_KEPT = 20_000
#: So many lines of a node tell how its clock differs from the master's.
_CLOCKS = 100


class AccountUpdate(NamedTuple):
    """An account server's line of a container that the run made; ``device`` is a place in the table."""

    trans_id: bytes
    device: int
    seconds: float


@dataclass(slots=True)
class FileLines:
    """What came of a file; places of operations are those of results, all others index the tables here.

    ``proxy_rows`` are of :data:`~ssbench.cluster.rows.PROXY_ROW`, ``rows`` of
    :data:`~ssbench.cluster.rows.ROW`. ``kept`` are whole lines of the requests that are shown one by one.
    """

    count: FileCount
    rows: bytearray = field(default_factory=bytearray)
    proxy_rows: bytearray = field(default_factory=bytearray)
    handoffs: array[int] = field(default_factory=lambda: array("L"))
    proxies: list[str] = field(default_factory=list)
    workers: list[str] = field(default_factory=list)
    partitions: list[tuple[int, int]] = field(default_factory=list)
    devices: list[tuple[str, str, str]] = field(default_factory=list)
    processes: list[tuple[str, str, str]] = field(default_factory=list)
    errors: Counter[tuple[str, str, str, str]] = field(default_factory=Counter)
    other_errors: Counter[tuple[str, str, str, str]] = field(default_factory=Counter)
    error_places: dict[tuple[str, str, str, str], tuple[int, int]] = field(default_factory=dict)
    kept: list[bytes] = field(default_factory=list)
    background: FileBackground = field(default_factory=FileBackground)
    account_updates: list[AccountUpdate] = field(default_factory=list)
    senders: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    slow: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    not_updated: dict[tuple[str, str], list[int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is looked for: ids of the run, the marks at the end of its other ids, the proxies' template.

    ``shown`` are the places of the operations that are shown one by one, ``other`` the id of one that need
    not be a result. ``window`` are the seconds since 1970 between which lines of background daemons are
    taken; None for no such lines. With ``marked`` ids of the run have its mark, so that those of others are
    distinguished from what the run does besides its results, and are counted.
    """

    ids: Ids
    marks: tuple[bytes, ...]
    template: str | None
    shown: frozenset[int] = frozenset()
    other: bytes | None = None
    window: tuple[int, int] | None = None
    marked: bool = False


def read(file: LogFile, wanted: Wanted) -> FileLines:
    """Read a file. Raises StatFileError when it cannot be read."""
    return _Taking(file, wanted).all()


class _Taking:
    def __init__(self, file: LogFile, wanted: Wanted) -> None:
        self._file, self._wanted = file, wanted
        self._proxy: ProxyParser | None = template_parser(wanted.template) if wanted.template else None
        self._rows, self._proxy_rows, self._handoffs = bytearray(), bytearray(), array("L")
        self._proxies: dict[Name, int] = {}
        self._workers: dict[tuple[bytes, bytes], int] = {}
        self._partitions: dict[tuple[int, bytes], int] = {}
        self._devices: dict[tuple[Name, bytes, bytes], int] = {}
        self._processes: dict[tuple[Name, bytes, bytes], int] = {}
        self._errors: Counter[tuple[str, str, str, str]] = Counter()
        self._other_errors: Counter[tuple[str, str, str, str]] = Counter()
        self._error_places: dict[tuple[str, str, str, str], tuple[int, int]] = {}
        self._kept: list[bytes] = []
        self._others = others.Counting()
        self._clocks: Counter[Name] = Counter()
        self._background = FileBackground()
        self._account_updates: list[AccountUpdate] = []
        self._senders: dict[tuple[bytes, bytes], list[int]] = {}
        self._not_updated: dict[tuple[str, str], list[int]] = {}
        self._slow: Counter[tuple[str, str, str]] = Counter()
        self._total = self._of_run = self._cut = self._without = 0
        self._moments: list[tuple[int, int]] = []

    def all(self) -> FileLines:
        reader = Reader(self._file)
        for place, chunk in enumerate(reader.chunks()):
            self._chunk(chunk, first=not place)
        began, ended = zip(*self._moments, strict=True) if self._moments else ((), ())
        self._background.requests = self._others.requests(_text)
        return FileLines(
            FileCount(
                str(self._file.path),
                self._file.node,
                self._total,
                self._of_run,
                self._cut,
                min(began, default=None),
                max(ended, default=None),
                reader.damage,
                self._without,
                len(self._background.lines),
            ),
            self._rows,
            self._proxy_rows,
            self._handoffs,
            [_text(name) for name in self._proxies],
            [f"{_text(address)} {_text(pid)}" for address, pid in self._workers],
            [(policy, int(number)) for policy, number in self._partitions],
            [_texts(words) for words in self._devices],
            [_texts(words) for words in self._processes],
            self._errors,
            self._other_errors,
            self._error_places,
            self._kept,
            self._background,
            self._account_updates,
            {(_text(address), _text(device)): of for (address, device), of in self._senders.items()},
            self._slow,
            self._not_updated,
        )

    def _chunk(self, chunk: bytes, *, first: bool) -> None:
        """Take whole lines, many at once; only those of the run are looked at one by one."""
        starts = np.array([match.start() for match in TRANS_ID.finditer(chunk)], np.int64)
        if first:
            access = len(_ACCESS.findall(chunk))
            self._without = access - len(starts) if access > _TELLING and len(starts) < access / 2 else 0
        of_daemons = [match.start() for match in daemons.MAY_BE.finditer(chunk)]
        if not len(starts) and not of_daemons and _CUT not in chunk:
            self._total += chunk.count(b"\n")
            return
        buffer = np.frombuffer(chunk, np.uint8)
        ends = np.flatnonzero(buffer == 10)
        self._total += len(ends)
        if of_daemons:
            self._take_daemons(chunk, ends, np.array(of_daemons, np.int64))
        if _CUT in chunk:
            self._cut += _cut_without_id(chunk, ends, starts)
        if not len(starts):
            return
        line = np.searchsorted(ends, starts)
        new = np.append(True, line[1:] != line[:-1])  # a line's first id is what it is about
        starts, line = starts[new], line[new]
        found = ids.gather(buffer, starts)
        if moments := ids.moments(found):
            self._moments.append(moments)
        places = self._wanted.ids.find(found)
        mine = places >= 0
        begins = np.append(0, ends[:-1] + 1)[line[mine]].tolist()
        for place, begin, end in zip(places[mine].tolist(), begins, ends[line[mine]].tolist(), strict=True):
            self._take(place, chunk[begin:end])
        self._take_unused(chunk, ends, line[places == ids.UNUSED])
        unknown = np.flatnonzero(places == ids.UNKNOWN)
        self._take_unknown(chunk, ends, line[unknown], found[unknown], starts[unknown])
        if self._wanted.other and self._wanted.other in chunk:
            self._kept += [
                _line(chunk, ends, int(each))
                for each, row in zip(line, found, strict=True)
                if row.tobytes() == self._wanted.other
            ]

    def _take_unknown(
        self, chunk: bytes, ends: Numbers, line: Numbers, found: ids.Bytes, starts: Numbers
    ) -> None:
        """Take errors of what the run does besides its results, and count what others do."""
        of_run = np.zeros(len(line), np.bool_)
        if self._wanted.marks:
            of_run = _marked(np.frombuffer(chunk, np.uint8), starts, self._wanted.marks)
            for number in line[of_run].tolist():
                self._take_other(_line(chunk, ends, number))
        if self._wanted.window and self._wanted.marked:
            begin, end = self._wanted.window
            moment = ids.seconds(found)
            wanted = np.flatnonzero(~of_run & (moment >= begin) & (moment <= end))
            for number in line[wanted[self._others.chosen(found[wanted])]].tolist():
                self._take_of_others(_line(chunk, ends, number))

    def _take(self, place: int, line: bytes) -> None:
        """Take a line of an operation."""
        self._of_run += 1
        record = parse(line, self._proxy)
        if type(record) is BackendLine:
            self._take_backend(place, record)
            self._take_clock(place, self._node(record.host), line)
        elif type(record) is ProxyLine:
            if record.own:
                self._proxy_rows += rows.PROXY_ROW.pack(
                    place,
                    _place(self._proxies, self._node(record.host)),
                    record.seconds,
                    record.policy if record.policy < _POLICIES else NO_POLICY,
                )
        elif type(record) is ErrorLine:
            if record.kind == "handoff":
                self._handoffs.append(place)
            key = _error_key(record)
            self._errors[key] += 1
            first, last = self._error_places.get(key, (place, place))
            self._error_places[key] = min(first, place), max(last, place)
            if record.kind == "update":
                self._not_updated.setdefault(key[2:], []).append(place)
        elif type(record) is SlowLine:
            who = _text(self._node(record.host)), _text(record.device)
            self._slow[(*who, "")] += 1
            for name, seconds in record.parts:
                self._slow[(*who, name)] += round(seconds * 1000)
        elif type(record) is CutLine:
            self._cut += 1
        if place in self._wanted.shown and len(self._kept) < _MOST_KEPT:
            self._kept.append(line)

    def _take_unused(self, chunk: bytes, ends: Numbers, lines: Numbers) -> None:
        """Count lines of results that are not in the sample, and the errors among them."""
        self._of_run += len(lines)
        for number in lines.tolist():
            line = _line(chunk, ends, number)
            if BACKEND_LINE not in line:  # those, which are most, are not read for nothing
                record = parse(line, self._proxy)
                if type(record) is ErrorLine:
                    self._errors[_error_key(record)] += 1

    def _take_backend(self, place: int, line: BackendLine) -> None:
        host, server, device, partition, _, status, seconds, asker, sender, pid, policy, _, referer = line
        worker = rows.NO_WORKER
        if asker == b"proxy-server":
            of = OBJECT if server == b"object" else OTHER
            worker = min(_place(self._workers, sender), rows.NO_WORKER)
        elif asker == b"object-server" and server != b"account":
            # The path of an update in a container server is that of the object.
            of, server = UPDATE, b"container"
            self._take_sender(place, sender[0], referer)
        else:
            return
        node = self._node(host)
        self._rows += rows.ROW.pack(
            place,
            _place(self._devices, (node, server, device)),
            _place(self._processes, (node, server, pid)),
            _place(self._partitions, (policy, partition)),
            seconds,
            status & 0xFFFF,
            of,
            worker,
        )

    def _take_sender(self, place: int, address: bytes, referer: bytes) -> None:
        """Take which object server updated a container server for an operation; some operations for each."""
        device = by_update.device_of(referer)
        if device is not None:
            known = self._senders.setdefault((address, device), [])
            if len(known) < by_update.MOST:
                known.append(place)

    def _take_other(self, line: bytes) -> None:
        record = parse(line, self._proxy)
        if type(record) is ErrorLine:
            self._other_errors[_error_key(record)] += 1
        elif type(record) is BackendLine and record.asker == b"container-server" and record.status < 300:
            # The path of an update in an account server is that of the container.
            device = _place(self._devices, (self._node(record.host), b"account", record.device))
            trans_id = TRANS_ID.search(line)
            self._account_updates.append(
                AccountUpdate(trans_id[0] if trans_id else b"", device, record.seconds)
            )

    def _take_clock(self, place: int, node: Name, line: bytes) -> None:
        """Take the time of a line, while too few of the node's are known."""
        if self._wanted.window is None or self._clocks[node] >= _CLOCKS:
            return
        self._clocks[node] += 1
        second = access_time(line)
        if second is not None:
            self._background.clocks.append((_text(node), place, second))
            written = stamp(line, second)
            if written and not written.zoned:
                self._background.zones[zone(written.seconds, second)] += 1

    def _take_of_others(self, line: bytes) -> None:
        """Count a request of another client than the run."""
        record = parse(line) if BACKEND_LINE in line else None
        second = access_time(line) if type(record) is BackendLine else None
        if type(record) is BackendLine and second is not None:
            self._others.add(others.words(self._node(record.host), record), second)

    def _take_daemons(self, chunk: bytes, ends: Numbers, at: Numbers) -> None:
        """Take lines of background daemons, near the seconds of the run."""
        if self._wanted.window is None:
            return
        for number in np.unique(np.searchsorted(ends, at)).tolist():
            line = _line(chunk, ends, number)
            said = None if BACKEND_LINE in line else daemons.parse(line)
            written = stamp(line, self._wanted.window[0]) if said else None
            if said and written is None:
                self._background.uncertain.add(_text(self._node(said.host)))
            if said and written and near(written.seconds, self._wanted.window, zoned=written.zoned):
                words = (_text(self._node(said.host)), _text(said.program), _text(said.device))
                self._background.add(Line(*words, *written, said.seconds, said.begins))

    def _node(self, host: bytes) -> Name:
        return host if host and not self._file.named else self._file.node


def _line(chunk: bytes, ends: Numbers, number: int) -> bytes:
    return chunk[(int(ends[number - 1]) + 1 if number else 0) : int(ends[number])]


def _marked(buffer: ids.Bytes, starts: Numbers, marks: Sequence[bytes]) -> npt.NDArray[np.bool_]:
    """Return which ids are followed by one of the marks, which are of equal length."""
    at = starts[:, None] + ids.LENGTH + np.arange(len(marks[0]))
    following = buffer[np.minimum(at, len(buffer) - 1)]
    found = np.any([(following == np.frombuffer(mark, np.uint8)).all(axis=1) for mark in marks], axis=0)
    return np.asarray(found)


def _cut_without_id(chunk: bytes, ends: Numbers, starts: Numbers) -> int:
    """Count access lines that are cut where their id was."""
    have = set(np.searchsorted(ends, starts).tolist())
    cut, at = 0, chunk.find(_CUT)
    while at >= 0:
        number = int(np.searchsorted(ends, at))
        line = _line(chunk, ends, number)
        cut += number not in have and (b'"proxy-server ' in line or b" HTTP/1" in line)
        at = chunk.find(_CUT, int(ends[number]))
    return cut


def _error_key(line: ErrorLine) -> tuple[str, str, str, str]:
    device = _text(line.device) if line.device else ""
    return line.kind, _text(line.server), _text(line.address), device


def _text(word: Name) -> str:
    return word.decode("utf-8", "replace") if isinstance(word, bytes) else word


def _texts(words: tuple[Name, bytes, bytes]) -> tuple[str, str, str]:
    return _text(words[0]), _text(words[1]), _text(words[2])


def _place(places: dict[Thing, int], thing: Thing) -> int:
    """Number things in the order in which they are first seen."""
    return places.setdefault(thing, len(places))
