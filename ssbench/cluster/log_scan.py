"""What one log file says of a run: lines of its requests, packed, with tables of the names in them.

A file is read without regard to others, so that each can be read by a process of its own, where there are
cores and enough to read (:func:`read_log_files`); :mod:`~ssbench.cluster.join` puts them together.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import shutil
import signal
import tempfile
from array import array
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from threading import Thread
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from ssbench.base import interruption
from ssbench.base.errors import StatFileError
from ssbench.cluster import (
    joined_run,
    node_addresses,
)
from ssbench.cluster import (
    log_background as cluster_background,
)
from ssbench.cluster import (
    log_lines as cluster_lines,
)
from ssbench.cluster.joined_run import LOOK, OBJECT, OTHER, UPDATE, FileCount
from ssbench.cluster.log_background import DaemonLine, FileBackground, is_near_window, zone_offset
from ssbench.cluster.log_files import LogFile, LogFileReader
from ssbench.cluster.log_lines import (
    BACKEND_MARK,
    NO_POLICY,
    TRANS_ID,
    BackendLine,
    CutLine,
    ErrorLine,
    Numbers,
    ProxyLine,
    ProxyParser,
    SlowLine,
    TransactionIds,
    make_template_parser,
    parse_access_time,
    parse_line_time,
    parse_swift_line,
)

_KeyT = TypeVar("_KeyT", bound=Hashable)

#: A word of a line, or what the user calls a node.
RawName = bytes | str

#: Where Swift has cut a line.
_CUT_MARK = b" ... "
#: What every access line has, of a storage server or of a proxy.
_ACCESS_LINE = re.compile(rb'"proxy-server \d+"|\d\d/[A-Z][a-z]{2}/\d{4}/\d\d/\d\d/\d\d ')
#: So many access lines at the beginning of a file tell whether its ids are whole.
_MIN_ACCESS_LINES = 10
_MAX_POLICIES = 1 << 15
#: No more lines of requests that are shown one by one are kept of a file.
_MAX_KEPT_LINES = 20_000
#: So many lines of a node tell how its clock differs from the master's.
_MAX_CLOCK_LINES = 100


class AccountUpdate(NamedTuple):
    """An account server's line of a container that the run made."""

    trans_id: bytes
    device: int  # place in the table
    seconds: float


@dataclass(slots=True)
class FileLines:
    """What came of a file; places of operations are those of results, all others index the tables here."""

    count: FileCount
    #: Those of :data:`~ssbench.cluster.joined_run.LINE_ROW`.
    rows: bytearray = field(default_factory=bytearray)
    #: Those of :data:`~ssbench.cluster.joined_run.PROXY_ROW`.
    proxy_rows: bytearray = field(default_factory=bytearray)
    handoffs: array[int] = field(default_factory=lambda: array("L"))
    proxies: list[str] = field(default_factory=list)
    workers: list[str] = field(default_factory=list)
    updaters: list[tuple[str, str]] = field(default_factory=list)  # pids and devices of object servers
    partitions: list[tuple[int, int]] = field(default_factory=list)
    devices: list[tuple[str, str, str]] = field(default_factory=list)
    processes: list[tuple[str, str, str]] = field(default_factory=list)
    errors: Counter[tuple[str, str, str, str]] = field(default_factory=Counter)
    other_errors: Counter[tuple[str, str, str, str]] = field(default_factory=Counter)
    error_places: dict[tuple[str, str, str, str], tuple[int, int]] = field(default_factory=dict)
    kept: list[bytes] = field(default_factory=list)  # whole lines of the requests that are shown one by one
    background: FileBackground = field(default_factory=FileBackground)
    account_updates: list[AccountUpdate] = field(default_factory=list)
    senders: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    slow: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    not_updated: dict[tuple[str, str], list[int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WantedLines:
    """What is looked for in log files."""

    ids: TransactionIds  # those of the run
    marks: tuple[bytes, ...]  # those at the end of the run's other ids
    template: str | None  # that of the proxies' lines
    shown: frozenset[int] = frozenset()  # places of the operations that are shown one by one
    other: bytes | None = None  # id of one that is shown and need not be a result
    #: Seconds since 1970 between which lines of background daemons are taken; None: there are none.
    window: tuple[int, int] | None = None
    #: Ids of the run have its mark, so that those of others are distinguished from what the run does besides
    #: its results, and are counted.
    marked: bool = False


def read_log_file(file: LogFile, wanted: WantedLines) -> FileLines:
    """Read a file. Raises StatFileError when it cannot be read."""
    return _LogScan(file, wanted).all()


class _LogScan:
    def __init__(self, file: LogFile, wanted: WantedLines) -> None:
        self._file, self._wanted = file, wanted
        self._proxy: ProxyParser | None = make_template_parser(wanted.template) if wanted.template else None
        self._rows, self._proxy_rows, self._handoffs = bytearray(), bytearray(), array("L")
        self._proxies: dict[RawName, int] = {}
        self._workers: dict[tuple[bytes, bytes], int] = {}
        self._updaters: dict[tuple[bytes, bytes], int] = {}
        self._partitions: dict[tuple[int, bytes], int] = {}
        self._devices: dict[tuple[RawName, bytes, bytes], int] = {}
        self._processes: dict[tuple[RawName, bytes, bytes], int] = {}
        self._errors: Counter[tuple[str, str, str, str]] = Counter()
        self._other_errors: Counter[tuple[str, str, str, str]] = Counter()
        self._error_places: dict[tuple[str, str, str, str], tuple[int, int]] = {}
        self._kept: list[bytes] = []
        self._others = cluster_background.OtherRequestCounter()
        self._clocks: Counter[RawName] = Counter()
        self._background = FileBackground()
        self._account_updates: list[AccountUpdate] = []
        self._senders: dict[tuple[bytes, bytes], list[int]] = {}
        self._not_updated: dict[tuple[str, str], list[int]] = {}
        self._slow: Counter[tuple[str, str, str]] = Counter()
        self._total = self._of_run = self._cut = self._without = 0
        self._moments: list[tuple[int, int]] = []

    def all(self) -> FileLines:
        reader = LogFileReader(self._file)
        for place, chunk in enumerate(reader.chunks()):
            self._chunk(chunk, first=not place)
        began, ended = zip(*self._moments, strict=True) if self._moments else ((), ())
        self._background.requests = self._others.requests(_decode_word)
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
            [_decode_word(name) for name in self._proxies],
            [f"{_decode_word(address)} {_decode_word(pid)}" for address, pid in self._workers],
            [(_decode_word(pid), _decode_word(device)) for pid, device in self._updaters],
            [(policy, int(number)) for policy, number in self._partitions],
            [_decode_words(words) for words in self._devices],
            [_decode_words(words) for words in self._processes],
            self._errors,
            self._other_errors,
            self._error_places,
            self._kept,
            self._background,
            self._account_updates,
            {
                (_decode_word(address), _decode_word(device)): of
                for (address, device), of in self._senders.items()
            },
            self._slow,
            self._not_updated,
        )

    def _chunk(self, chunk: bytes, *, first: bool) -> None:
        """Take whole lines, many at once; only those of the run are looked at one by one."""
        starts = np.array([match.start() for match in TRANS_ID.finditer(chunk)], np.int64)
        if first:
            access = len(_ACCESS_LINE.findall(chunk))
            self._without = (
                access - len(starts) if access > _MIN_ACCESS_LINES and len(starts) < access / 2 else 0
            )
        of_daemons = [match.start() for match in cluster_lines.DAEMON_MARK.finditer(chunk)]
        if not len(starts) and not of_daemons and _CUT_MARK not in chunk:
            self._total += chunk.count(b"\n")
            return
        buffer = np.frombuffer(chunk, np.uint8)
        ends = np.flatnonzero(buffer == 10)
        self._total += len(ends)
        if of_daemons:
            self._take_daemons(chunk, ends, np.array(of_daemons, np.int64))
        if _CUT_MARK in chunk:
            self._cut += _count_cut_lines(chunk, ends, starts)
        if not len(starts):
            return
        line = np.searchsorted(ends, starts)
        new = np.append(True, line[1:] != line[:-1])  # a line's first id is what it is about
        starts, line = starts[new], line[new]
        found = cluster_lines.gather_ids(buffer, starts)
        if moments := cluster_lines.time_range_of_ids(found):
            self._moments.append(moments)
        places = self._wanted.ids.find(found)
        mine = places >= 0
        begins = np.append(0, ends[:-1] + 1)[line[mine]].tolist()
        for place, begin, end in zip(places[mine].tolist(), begins, ends[line[mine]].tolist(), strict=True):
            self._take(place, chunk[begin:end])
        self._take_unused(chunk, ends, line[places == cluster_lines.UNUSED_ID])
        unknown = np.flatnonzero(places == cluster_lines.UNKNOWN_ID)
        self._take_unknown(chunk, ends, line[unknown], found[unknown], starts[unknown])
        if self._wanted.other and self._wanted.other in chunk:
            self._kept += [
                _line_at(chunk, ends, int(each))
                for each, row in zip(line, found, strict=True)
                if row.tobytes() == self._wanted.other
            ]

    def _take_unknown(
        self, chunk: bytes, ends: Numbers, line: Numbers, found: cluster_lines.Bytes, starts: Numbers
    ) -> None:
        """Take errors of what the run does besides its results, and count what others do."""
        of_run = np.zeros(len(line), np.bool_)
        if self._wanted.marks:
            of_run = _is_marked(np.frombuffer(chunk, np.uint8), starts, self._wanted.marks)
            for number in line[of_run].tolist():
                self._take_other(_line_at(chunk, ends, number))
        if self._wanted.window and self._wanted.marked:
            begin, end = self._wanted.window
            moment = cluster_lines.seconds_of_ids(found)
            wanted = np.flatnonzero(~of_run & (moment >= begin) & (moment <= end))
            for number in line[wanted[self._others.chosen(found[wanted])]].tolist():
                self._take_of_others(_line_at(chunk, ends, number))

    def _take(self, place: int, line: bytes) -> None:
        """Take a line of an operation."""
        self._of_run += 1
        record = parse_swift_line(line, self._proxy)
        if type(record) is BackendLine:
            self._take_backend(place, record)
            self._take_clock(place, self._node(record.host), line)
        elif type(record) is ProxyLine:
            if record.own:
                self._proxy_rows += joined_run.PROXY_ROW.pack(
                    place,
                    _number_of(self._proxies, self._node(record.host)),
                    record.seconds,
                    record.policy if record.policy < _MAX_POLICIES else NO_POLICY,
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
            who = _decode_word(self._node(record.host)), _decode_word(record.device)
            self._slow[(*who, "")] += 1
            for name, seconds in record.parts:
                self._slow[(*who, name)] += round(seconds * 1000)
        elif type(record) is CutLine:
            self._cut += 1
        if place in self._wanted.shown and len(self._kept) < _MAX_KEPT_LINES:
            self._kept.append(line)

    def _take_unused(self, chunk: bytes, ends: Numbers, lines: Numbers) -> None:
        """Count lines of results that are not in the sample, and the errors among them."""
        self._of_run += len(lines)
        for number in lines.tolist():
            line = _line_at(chunk, ends, number)
            if BACKEND_MARK not in line:  # those, which are most, are not read for nothing
                record = parse_swift_line(line, self._proxy)
                if type(record) is ErrorLine:
                    self._errors[_error_key(record)] += 1

    def _take_backend(self, place: int, line: BackendLine) -> None:
        host, server, device, partition, method, status, seconds, asker, sender, pid, policy, _, referer = (
            line
        )
        number = joined_run.NO_ASKER
        if asker == b"proxy-server":
            looks = LOOK if method in {b"GET", b"HEAD"} else OBJECT
            of = looks if server == b"object" else OTHER
            number = _number_of(self._workers, sender)
        elif asker == b"object-server" and server != b"account":
            # The path of an update in a container server is that of the object.
            of, server = UPDATE, b"container"
            sent_by = node_addresses.device_of_referer(referer)
            if sent_by is not None:
                number = _number_of(self._updaters, (sender[1], sent_by))
                self._take_sender(place, sender[0], sent_by)
        else:
            return
        node = self._node(host)
        self._rows += joined_run.LINE_ROW.pack(
            place,
            _number_of(self._devices, (node, server, device)),
            _number_of(self._processes, (node, server, pid)),
            _number_of(self._partitions, (policy, partition)),
            seconds,
            status & 0xFFFF,
            of,
            min(number, joined_run.NO_ASKER),
        )

    def _take_sender(self, place: int, address: bytes, device: bytes) -> None:
        """Take which object server updated a container server for an operation; some operations for each."""
        known = self._senders.setdefault((address, device), [])
        if len(known) < node_addresses.MAX_SENDER_OPERATIONS:
            known.append(place)

    def _take_other(self, line: bytes) -> None:
        record = parse_swift_line(line, self._proxy)
        if type(record) is ErrorLine:
            self._other_errors[_error_key(record)] += 1
        elif type(record) is BackendLine and record.asker == b"container-server" and record.status < 300:
            # The path of an update in an account server is that of the container.
            device = _number_of(self._devices, (self._node(record.host), b"account", record.device))
            trans_id = TRANS_ID.search(line)
            self._account_updates.append(
                AccountUpdate(trans_id[0] if trans_id else b"", device, record.seconds)
            )

    def _take_clock(self, place: int, node: RawName, line: bytes) -> None:
        """Take the time of a line, while too few of the node's are known."""
        if self._wanted.window is None or self._clocks[node] >= _MAX_CLOCK_LINES:
            return
        self._clocks[node] += 1
        second = parse_access_time(line)
        if second is not None:
            self._background.clocks.append((_decode_word(node), place, second))
            written = parse_line_time(line, second)
            if written and not written.zoned:
                self._background.zones[zone_offset(written.seconds, second)] += 1

    def _take_of_others(self, line: bytes) -> None:
        """Count a request of another client than the run."""
        record = parse_swift_line(line) if BACKEND_MARK in line else None
        second = parse_access_time(line) if type(record) is BackendLine else None
        if type(record) is BackendLine and second is not None:
            self._others.add(cluster_background.name_request_parties(self._node(record.host), record), second)

    def _take_daemons(self, chunk: bytes, ends: Numbers, at: Numbers) -> None:
        """Take lines of background daemons, near the seconds of the run."""
        if self._wanted.window is None:
            return
        for number in np.unique(np.searchsorted(ends, at)).tolist():
            line = _line_at(chunk, ends, number)
            said = None if BACKEND_MARK in line else cluster_lines.parse_daemon_line(line)
            written = parse_line_time(line, self._wanted.window[0]) if said else None
            if said and written is None:
                self._background.uncertain.add(_decode_word(self._node(said.host)))
            if said and written and is_near_window(written.seconds, self._wanted.window, zoned=written.zoned):
                words = (
                    _decode_word(self._node(said.host)),
                    _decode_word(said.program),
                    _decode_word(said.device),
                )
                self._background.add(DaemonLine(*words, *written, said.seconds, said.begins))

    def _node(self, host: bytes) -> RawName:
        return host if host and not self._file.named else self._file.node


def _line_at(chunk: bytes, ends: Numbers, number: int) -> bytes:
    return chunk[(int(ends[number - 1]) + 1 if number else 0) : int(ends[number])]


def _is_marked(buffer: cluster_lines.Bytes, starts: Numbers, marks: Sequence[bytes]) -> npt.NDArray[np.bool_]:
    """Return which ids are followed by one of the marks, which are of equal length."""
    at = starts[:, None] + cluster_lines.ID_LENGTH + np.arange(len(marks[0]))
    following = buffer[np.minimum(at, len(buffer) - 1)]
    found = np.any([(following == np.frombuffer(mark, np.uint8)).all(axis=1) for mark in marks], axis=0)
    return np.asarray(found)


def _count_cut_lines(chunk: bytes, ends: Numbers, starts: Numbers) -> int:
    """Count access lines that are cut where their id was."""
    have = set(np.searchsorted(ends, starts).tolist())
    cut, at = 0, chunk.find(_CUT_MARK)
    while at >= 0:
        number = int(np.searchsorted(ends, at))
        line = _line_at(chunk, ends, number)
        cut += number not in have and (b'"proxy-server ' in line or b" HTTP/1" in line)
        at = chunk.find(_CUT_MARK, int(ends[number]))
    return cut


def _error_key(line: ErrorLine) -> tuple[str, str, str, str]:
    device = _decode_word(line.device) if line.device else ""
    return line.kind, _decode_word(line.server), _decode_word(line.address), device


def _decode_word(word: RawName) -> str:
    return word.decode("utf-8", "replace") if isinstance(word, bytes) else word


def _decode_words(words: tuple[RawName, bytes, bytes]) -> tuple[str, str, str]:
    return _decode_word(words[0]), _decode_word(words[1]), _decode_word(words[2])


def _number_of(places: dict[_KeyT, int], thing: _KeyT) -> int:
    """Number things in the order in which they are first seen."""
    return places.setdefault(thing, len(places))


# -- Many files at once ----------------------------------------------------------------------------


#: Processes take half a second to start: less than this many bytes are read sooner without.
_MIN_PARALLEL_BYTES = 64 << 20


def read_log_files(files: Sequence[LogFile], wanted: WantedLines) -> Iterator[FileLines]:
    """Yield what each file says, in the order of the files.

    Raises StatFileError when one cannot be read.
    """
    processes = min(len(files), len(os.sched_getaffinity(0)))
    if processes < 2 or sum(_file_size(file) for file in files) < _MIN_PARALLEL_BYTES:
        yield from (read_log_file(file, wanted) for file in files)
        return
    # The ids are in a file, whose pages all processes share.
    with (
        tempfile.TemporaryDirectory(prefix="ssbench-attribute-") as folder,
        interruption.undo_on_interrupt(partial(shutil.rmtree, folder, ignore_errors=True)),
    ):
        for each in fields(TransactionIds):
            np.save(Path(folder) / f"{each.name}.npy", getattr(wanted.ids, each.name))
        without = replace(wanted, ids=TransactionIds.of(np.zeros(0, np.uint64), np.zeros(0, np.uint32)))
        with ProcessPoolExecutor(
            processes,
            multiprocessing.get_context("spawn"),
            initializer=_begin_reader,
            initargs=(folder, without),
        ) as pool:
            try:
                yield from pool.map(_read_in_process, files)
            except BrokenProcessPool:
                raise StatFileError("a process that read logs was killed: is there enough memory?") from None
            finally:
                pool.shutdown(cancel_futures=True)


def _file_size(file: LogFile) -> int:
    try:
        return file.path.stat().st_size
    except OSError:
        return 0


class _ReaderProcess:
    """What a reading process knows."""

    wanted: WantedLines


def _begin_reader(folder: str, wanted: WantedLines) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent stops them
    Thread(target=_end_with_parent, daemon=True).start()
    columns = (np.load(Path(folder) / f"{each.name}.npy", mmap_mode="r") for each in fields(TransactionIds))
    _ReaderProcess.wanted = replace(wanted, ids=TransactionIds(*columns))


def _end_with_parent() -> None:
    """End this process when its parent has, which ends on the spot; the body of a thread."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)


def _read_in_process(file: LogFile) -> FileLines:
    return read_log_file(file, _ReaderProcess.wanted)
