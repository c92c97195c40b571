"""Joins the results of a run with lines of Swift's logs by transaction id, into columns.

Only what has an id of the run is kept, so that ten million lines fit in memory, and counts of what others did
(:mod:`~ssbench.cluster.log_background`). What is kept of a line of the run are durations.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import shutil
import signal
import tempfile
from array import array
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from ssbench.base import interruption
from ssbench.base.errors import StatFileError
from ssbench.cluster import joined_run, log_background, node_addresses
from ssbench.cluster.joined_run import (
    LOOK,
    NO_INDEX,
    OBJECT,
    OTHER,
    SENT_ONCE,
    UPDATE,
    Device,
    FileCount,
    JoinedOperations,
    JoinedRun,
    Process,
    TakenResults,
    find_slowest_operations,
)
from ssbench.cluster.joined_run import MAX_SLOWEST_OPERATIONS as SLOWEST
from ssbench.cluster.log_background import DaemonLine, FileBackground, is_near_window, zone_offset
from ssbench.logs import daemon_lines, transaction_ids
from ssbench.logs.envelopes import TRANS_ID
from ssbench.logs.line_times import parse_access_time, parse_line_time
from ssbench.logs.log_files import LogFile, LogFileReader
from ssbench.logs.swift_lines import (
    BACKEND_MARK,
    NO_POLICY,
    BackendLine,
    CutLine,
    ErrorLine,
    ProxyLine,
    ProxyParser,
    SlowLine,
    make_template_parser,
    parse_swift_line,
)
from ssbench.logs.transaction_ids import Numbers, TransactionIds
from ssbench.results.block import ResultBlock, TextColumn
from ssbench.results.reading import RunResults
from ssbench.scenario.names import run_mark
from ssbench.statistics.latencies import measured_latencies

_KeyT = TypeVar("_KeyT", bound=Hashable)


# -- One file --------------------------------------------------------------------------------------


#: A word of a line, or what the user calls a node.
RawName = bytes | str

#: Where Swift has cut a line.
_CUT_MARK = b" ... "
#: What every access line has, of a storage server or of a proxy.
_ACCESS_LINE = re.compile(rb'"proxy-server \d+"|\d\d/[A-Z][a-z]{2}/\d{4}/\d\d/\d\d/\d\d ')
#: So many access lines at the beginning of a file tell whether its ids are whole.
_MIN_ACCESS_LINES = 10
#: They are cut at one length where so many of those without an id have this length.
_MIN_CUT_SHARE = 0.8
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
    shown: frozenset[int]  # places of the operations that are shown one by one
    other: bytes | None  # id of one that is shown and need not be a result
    #: Seconds since 1970 between which lines of background daemons are taken; None: there are none.
    window: tuple[int, int] | None
    #: Ids of the run have its mark, so that those of others are distinguished from what the run does besides
    #: its results, and are counted.
    marked: bool


def read_log_file(file: LogFile, wanted: WantedLines) -> FileLines:
    """Read a file. Raises StatFileError when it cannot be read, unless a folder of it was given."""
    try:
        return _LogScan(file, wanted).all()
    except StatFileError as error:
        if not file.of_folder:
            raise
        unread = str(error).removeprefix(f"{file.path}: ")
        return FileLines(FileCount(str(file.path), file.node, 0, 0, 0, None, None, unread=unread))


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
        self._others = log_background.OtherRequestCounter()
        self._clocks: Counter[RawName] = Counter()
        self._background = FileBackground()
        self._account_updates: list[AccountUpdate] = []
        self._senders: dict[tuple[bytes, bytes], list[int]] = {}
        self._not_updated: dict[tuple[str, str], list[int]] = {}
        self._slow: Counter[tuple[str, str, str]] = Counter()
        self._total = self._of_run = self._cut = self._without = 0
        self._cut_at: int | None = None
        self._moments: list[tuple[int, int]] = []

    def all(self) -> FileLines:
        reader = LogFileReader(self._file)
        for place, chunk in enumerate(reader.chunks()):
            interruption.raise_if_interrupted()
            self._chunk(chunk, first=not place)
        began, ended = zip(*self._moments, strict=True) if self._moments else ((), ())
        self._background.requests = self._others.requests(_decode_word)
        return FileLines(
            count=FileCount(
                path=str(self._file.path),
                node=self._file.node,
                lines=self._total,
                of_run=self._of_run,
                cut=self._cut,
                first=min(began, default=None),
                last=max(ended, default=None),
                damage=reader.damage,
                without_id=self._without,
                of_daemons=len(self._background.lines),
                cut_at=self._cut_at,
            ),
            rows=self._rows,
            proxy_rows=self._proxy_rows,
            handoffs=self._handoffs,
            proxies=[_decode_word(name) for name in self._proxies],
            workers=[f"{_decode_word(address)} {_decode_word(pid)}" for address, pid in self._workers],
            updaters=[(_decode_word(pid), _decode_word(device)) for pid, device in self._updaters],
            partitions=[(policy, int(number)) for policy, number in self._partitions],
            devices=[_decode_words(words) for words in self._devices],
            processes=[_decode_words(words) for words in self._processes],
            errors=self._errors,
            other_errors=self._other_errors,
            error_places=self._error_places,
            kept=self._kept,
            background=self._background,
            account_updates=self._account_updates,
            senders={
                (_decode_word(address), _decode_word(device)): of
                for (address, device), of in self._senders.items()
            },
            slow=self._slow,
            not_updated=self._not_updated,
        )

    def _chunk(self, chunk: bytes, *, first: bool) -> None:
        """Take whole lines, many at once; only those of the run are looked at one by one."""
        starts = np.array([match.start() for match in TRANS_ID.finditer(chunk)], np.int64)
        if first:
            access = len(_ACCESS_LINE.findall(chunk))
            self._without = (
                access - len(starts) if access > _MIN_ACCESS_LINES and len(starts) < access / 2 else 0
            )
            self._cut_at = _find_cut_length(chunk, starts) if self._without else None
        if self._cut_at is not None:
            self._cut += int(np.count_nonzero(_lengths_without_id(chunk, starts) == self._cut_at))
        of_daemons = [match.start() for match in daemon_lines.DAEMON_MARK.finditer(chunk)]
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
        found = transaction_ids.gather_ids(buffer, starts)
        if moments := transaction_ids.time_range_of_ids(found):
            self._moments.append(moments)
        places = self._wanted.ids.find(found)
        mine = places >= 0
        begins = np.append(0, ends[:-1] + 1)[line[mine]].tolist()
        for place, begin, end in zip(places[mine].tolist(), begins, ends[line[mine]].tolist(), strict=True):
            self._take(place, chunk[begin:end])
        self._take_unused(chunk, ends, line[places == transaction_ids.UNUSED_ID])
        unknown = np.flatnonzero(places == transaction_ids.UNKNOWN_ID)
        self._take_unknown(chunk, ends, line[unknown], found[unknown], starts[unknown])
        if self._wanted.other and self._wanted.other in chunk:
            self._kept += [
                _line_at(chunk, ends, int(each))
                for each, row in zip(line, found, strict=True)
                if row.tobytes() == self._wanted.other
            ]

    def _take_unknown(
        self, chunk: bytes, ends: Numbers, line: Numbers, found: transaction_ids.Bytes, starts: Numbers
    ) -> None:
        """Take errors of what the run does besides its results, and count what others do."""
        of_run = np.zeros(len(line), np.bool_)
        if self._wanted.marks:
            of_run = _is_marked(np.frombuffer(chunk, np.uint8), starts, self._wanted.marks)
            for number in line[of_run].tolist():
                self._take_other(_line_at(chunk, ends, number))
        if self._wanted.window and self._wanted.marked:
            begin, end = self._wanted.window
            moment = transaction_ids.seconds_of_ids(found)
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
            self._others.add(log_background.name_request_parties(self._node(record.host), record), second)

    def _take_daemons(self, chunk: bytes, ends: Numbers, at: Numbers) -> None:
        """Take lines of background daemons, near the seconds of the run."""
        if self._wanted.window is None:
            return
        for number in np.unique(np.searchsorted(ends, at)).tolist():
            line = _line_at(chunk, ends, number)
            said = None if BACKEND_MARK in line else daemon_lines.parse_daemon_line(line)
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


def _is_marked(
    buffer: transaction_ids.Bytes, starts: Numbers, marks: Sequence[bytes]
) -> npt.NDArray[np.bool_]:
    """Return which ids are followed by one of the marks, which are of equal length."""
    at = starts[:, None] + transaction_ids.ID_LENGTH + np.arange(len(marks[0]))
    following = buffer[np.minimum(at, len(buffer) - 1)]
    found = np.any([(following == np.frombuffer(mark, np.uint8)).all(axis=1) for mark in marks], axis=0)
    return np.asarray(found)


def _lengths_without_id(chunk: bytes, starts: Numbers) -> Numbers:
    """Return how long each of the lines is that have no transaction id."""
    ends = np.flatnonzero(np.frombuffer(chunk, np.uint8) == 10)
    has = np.zeros(len(ends), np.bool_)
    has[np.searchsorted(ends, starts)] = True
    lengths: Numbers = np.diff(ends, prepend=-1) - 1
    return lengths[~has]


def _find_cut_length(chunk: bytes, starts: Numbers) -> int | None:
    """Return at which length lines were cut before their id; None where they end at no one length.

    ``systemctl status``, terminals and pagers cut at their width.
    """
    lengths = _lengths_without_id(chunk, starts)
    longest = int(lengths.max(initial=0))
    return longest if np.mean(lengths == longest) > _MIN_CUT_SHARE else None


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

#: Between two looks whether a signal came.
_WAIT_SECONDS = 0.1


def read_log_files(files: Sequence[LogFile], wanted: WantedLines) -> Iterator[FileLines]:
    """Yield what each file says, in the order of the files.

    Raises StatFileError when one cannot be read.

    Each log file is read without regard to others, so that a process of its own can do it, where there are
    cores and enough to read. What it says of the run, packed, with tables of the names in it, is a
    :class:`FileLines`; :class:`LogJoin` puts them together.
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
                read = [pool.submit(_read_in_process, file) for file in files][::-1]
                while read:
                    while not wait(read[-1:], _WAIT_SECONDS).done:
                        interruption.raise_if_interrupted()
                    yield read.pop().result()
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


# -- A sample of the results -----------------------------------------------------------------------


_SAMPLE_SEED = 1
SampleColumn = npt.NDArray[Any]


class ResultSample:
    """Takes columns of results, block by block, and keeps at most ``most`` rows and the slowest ones.

    They are a random sample of those of the run, so that memory hardly grows with the run: by 8 bytes for
    each transaction id. Each time that more results have come together than are asked for, half of them are
    dropped at random, and from there on half as many are taken. So every result of the run is in the sample
    with the same probability, wherever it stands in the run, and the sample has between half of the number
    and all of it. Only the slowest results are taken always: they are too few to matter in a figure, and a
    report shows them one by one.

    It keeps all rows where ``most`` is None.
    """

    def __init__(self, most: int | None) -> None:
        self._most = most
        self._random = np.random.default_rng(_SAMPLE_SEED)
        self._share = 1.0
        self._taken = 0
        self._parts: list[list[SampleColumn]] = []
        self._slowest = np.zeros(0)
        self.seen = 0

    def add(self, latency: npt.NDArray[np.float64], columns: list[SampleColumn]) -> None:
        """Take some of the rows of a block; latencies are NaN for failures."""
        rows = np.arange(self.seen, self.seen + len(latency))
        self.seen += len(latency)
        known = latency[~np.isnan(latency)]
        self._slowest = np.sort(np.append(self._slowest, known))[-SLOWEST - 1 :]
        columns = [rows, latency, *columns]
        if self._share < 1:
            columns = self._some(columns, self._share)
        self._parts.append(columns)
        self._taken += len(columns[0])
        while self._most is not None and self._taken > self._most + SLOWEST:
            self._parts = [self._some(self._together(), 0.5)]
            self._share /= 2
            self._taken = len(self._parts[0][0])

    @property
    def limit(self) -> float:
        """The latency above which a result is among the slowest of those so far."""
        return float(self._slowest[0]) if len(self._slowest) > SLOWEST else -1.0

    def _some(self, columns: list[SampleColumn], share: float) -> list[SampleColumn]:
        latency = columns[1]
        taken = (latency > self.limit) | (self._random.random(len(latency)) < share)
        return [column[taken] for column in columns]

    def _together(self) -> list[SampleColumn]:
        return [np.concatenate(parts) for parts in zip(*self._parts, strict=True)]

    def columns(self) -> list[SampleColumn]:
        """Return the number of each row that was taken in the run, its latency, and its other columns."""
        return self._together()


# -- Results and lines -----------------------------------------------------------------------------


class LogJoin:
    """Takes the results of a run, then its logs; :meth:`joined` is what came of it.

    ``template`` is the proxies' ``log_msg_template``, where they have one. Of ``transaction``, which need not
    be a result, all lines are kept, as of the slowest operations. Of more than ``most`` results a random
    sample is taken; None takes all. ``group`` is the place of the group of users, or of
    the side, whose results alone are taken.
    """

    def __init__(
        self,
        results: RunResults,
        template: str | None = None,
        transaction: str | None = None,
        most: int | None = None,
        group: int | None = None,
    ) -> None:
        self.run_marks = tuple(f"-{run_mark(each)}".encode() for each in results.run.run_ids)
        self._without_id = 0
        #: How many operations have a transaction id.
        self.identified = 0
        self._candidates: dict[int, str] = {}
        self._moments: list[tuple[int, int]] = []
        self._containers: dict[str, int] = {}
        self._marked = False
        self._operations, found = self._read(results, most, group)
        shown, other = set(find_slowest_operations(self._operations.latency).tolist()), None
        if transaction:
            other = transaction[: transaction_ids.ID_LENGTH].encode()
            place = int(found.find(transaction_ids.gather_ids(other, np.zeros(1, np.int64)))[0])
            if place >= 0:  # what is not in the sample is looked for as what is no result
                self._candidates[place] = other.decode()
                shown.add(place)
                other = None
        self._wanted = WantedLines(
            found, self.run_marks, template, frozenset(shown), other, self._window(), self._marked
        )
        count = len(self._operations.code)
        self._proxy = np.full(count, NO_INDEX, np.int32)
        self._worker = np.full(count, NO_INDEX, np.int32)
        self._seconds = np.full(count, np.nan)
        self._policy = np.full(count, NO_POLICY, np.int32)
        self._handoffs = np.zeros(count, np.int32)
        self._columns = joined_run.LineColumns()
        self._proxies: dict[str, int] = {}
        self._workers: dict[str, int] = {}
        self._updaters: dict[tuple[str, str], int] = {}
        self._partitions: dict[tuple[int, int], int] = {}
        self._devices: dict[tuple[str, str, str], int] = {}
        self._processes: dict[tuple[str, str, str], int] = {}
        self._errors: Counter[tuple[str, str, str, str]] = Counter()
        self._other_errors: Counter[tuple[str, str, str, str]] = Counter()
        self._error_places: dict[tuple[str, str, str, str], tuple[int, int]] = {}
        self._files: list[FileCount] = []
        self._kept: list[tuple[str, bool, bytes]] = []
        self._backgrounds: list[FileBackground] = []
        self._senders: dict[tuple[str, str], list[int]] = {}
        self._not_updated: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        self._slow: Counter[tuple[str, str, str]] = Counter()
        # The same line may be in two files.
        self._account_updates: dict[tuple[bytes, int, float], None] = {}

    def _window(self) -> tuple[int, int] | None:
        """Return the seconds between which lines of background daemons are taken; None for no such lines."""
        seconds = [second for pair in self._moments for second in pair]
        return log_background.background_window(min(seconds), max(seconds)) if seconds else None

    def _read(
        self, results: RunResults, most: int | None, group: int | None
    ) -> tuple[JoinedOperations, TransactionIds]:
        taken = ResultSample(most)
        every = bytearray()  # grows in its place, however many results there are
        for every_group in results.blocks():
            block = every_group
            if group is not None:
                block = every_group.select(np.flatnonzero(every_group.group == group))
            found, at = transaction_ids.ids_of_column(block.trans_id)
            if moments := transaction_ids.time_range_of_ids(found):
                self._moments.append(moments)
            self._without_id += len(block) - len(at)
            self.identified += len(at)
            numbers = np.zeros(len(block), np.uint64)
            numbers[at] = transaction_ids.number_ids(found)
            every += numbers[at].tobytes()
            latency = measured_latencies(block)
            before = taken.seen
            taken.add(
                latency,
                [
                    block.operation,
                    block.size,
                    _number_subjects(block),
                    block.retries,
                    block.failed.copy(),
                    block.completed,
                    np.where(np.isnan(latency), np.nan, block.first_byte),
                    self._number_containers(results, block),
                    numbers,
                ],
            )
            self._remember_slowest(block, latency, before, taken.limit)
        if not taken.seen:
            kinds = ("u1", "i8", "u8", "i8", "?", "f8", "f8", "i4", "u8")
            taken.add(np.zeros(0), [np.zeros(0, kind) for kind in kinds])
        rows_taken, latency, code, size, *others, numbers = taken.columns()
        self._candidates = {
            place: self._candidates[row]
            for row, place in zip(self._candidates, _positions_in(rows_taken, self._candidates), strict=True)
            if place != NO_INDEX
        }
        self._taken = TakenResults(taken.seen, len(rows_taken))
        self._operation_table = results.run.scenario.operation_table
        has_id = np.flatnonzero(numbers)
        known = TransactionIds.of(
            numbers[has_id],
            has_id.astype(np.uint32),
            np.frombuffer(bytearray() if self._taken.are_all else every, np.uint64),
        )
        return JoinedOperations(code, size, latency, *others), known

    def _number_containers(self, results: RunResults, block: ResultBlock) -> npt.NDArray[np.int32]:
        """Number the containers of the run in the order in which they are first seen."""
        names: list[str | None]
        if isinstance(block.container, TextColumn):
            each, names = np.arange(len(block)), list(block.container)
        else:
            rows = np.stack((block.container, block.group, block.master))
            kinds, each = np.unique(rows, axis=1, return_inverse=True)
            names = [results.run.container(*of) for of in zip(*kinds.tolist(), strict=True)]
        places = [
            NO_INDEX if name is None else self._containers.setdefault(name, len(self._containers))
            for name in names
        ]
        return np.array(places, np.int32)[each.ravel()]

    def _remember_slowest(
        self, block: ResultBlock, latency: npt.NDArray[np.float64], before: int, limit: float
    ) -> None:
        """Keep the ids of what can be among the slowest operations of the run: none below a ``limit``."""
        for row in find_slowest_operations(latency).tolist():
            text = block.trans_id[row]
            if text and latency[row] >= limit:
                self._marked |= text.endswith(tuple(mark.decode() for mark in self.run_marks))
                self._candidates[before + row] = text[: transaction_ids.ID_LENGTH]

    def read(self, files: Sequence[LogFile]) -> None:
        """Read the lines of all log files. Raises StatFileError when one cannot be read."""
        for file, found in zip(files, read_log_files(files, self._wanted), strict=True):
            self._add(file, found)

    def _add(self, file: LogFile, found: FileLines) -> None:
        """Number what a file names as what the others do, and take its lines."""
        self._files.append(found.count)
        self._errors += found.errors
        for key, (first, last) in found.error_places.items():
            known = self._error_places.get(key, (first, last))
            self._error_places[key] = min(first, known[0]), max(last, known[1])
        self._other_errors += found.other_errors
        self._slow += found.slow
        self._backgrounds.append(found.background)
        self._kept += [(file.node, file.named, line) for line in found.kept]
        np.add.at(self._handoffs, np.array(found.handoffs, np.int64), 1)
        lines = joined_run.unpack_line_rows(found.rows)
        known = lines["asker"] != joined_run.NO_ASKER
        asked, updated = known & (lines["of"] != UPDATE), known & (lines["of"] == UPDATE)
        workers = _number_all(self._workers, found.workers)
        self._worker[lines["operation"][asked]] = workers[lines["asker"][asked]]
        updaters = np.minimum(_number_all(self._updaters, found.updaters), joined_run.NO_ASKER)
        lines["asker"][updated] = updaters[lines["asker"][updated]]
        # Before a DELETE s3api looks at the object, and so may other middleware: that is the proxy's time.
        looked = lines["of"] == LOOK
        lines["of"][looked] = OBJECT
        lines = lines[~(looked & SENT_ONCE[self._operations.code[lines["operation"]]])]
        for name, numbers in (
            ("device", _number_all(self._devices, found.devices)),
            ("process", _number_all(self._processes, found.processes)),
            ("partition", _number_all(self._partitions, found.partitions)),
        ):
            lines[name] = numbers[lines[name]]
        for trans_id, device, seconds in found.account_updates:
            self._account_updates[trans_id, self._devices[found.devices[device]], seconds] = None
        policies = np.array([policy for policy, _ in self._partitions], np.int64)
        policy = policies[lines["partition"]] if len(policies) else np.zeros(0, np.int64)
        known = (lines["of"] == OBJECT) & (policy != NO_POLICY)
        self._policy[lines["operation"][known]] = policy[known]
        self._columns.add(lines)
        for sent, operations in found.senders.items():
            known_of = self._senders.setdefault(sent, [])
            known_of += operations[: node_addresses.MAX_SENDER_OPERATIONS - len(known_of)]
        for who, operations in found.not_updated.items():
            self._not_updated[who] += operations
        proxied = joined_run.unpack_proxy_rows(found.proxy_rows)
        place = proxied["operation"]
        longer = ~(proxied["seconds"] <= self._seconds[place])
        place, proxied = place[longer], proxied[longer]
        self._seconds[place] = proxied["seconds"]
        self._proxy[place] = _number_all(self._proxies, found.proxies)[proxied["proxy"]]
        known = proxied["policy"] != NO_POLICY
        self._policy[place[known]] = proxied["policy"][known]

    def joined(self) -> JoinedRun:
        """Return everything as columns; nothing can be added after that."""
        devices = [Device(*words) for words in self._devices]
        processes = [Process(*words) for words in self._processes]
        lines, duplicates = self._columns.lines(devices, processes, list(self._updaters))
        began, ended = zip(*self._moments, strict=True) if self._moments else ((), ())
        return JoinedRun(
            operations=self._operations,
            operation_table=self._operation_table,
            taken=self._taken,
            proxies=list(self._proxies),
            proxy_workers=list(self._workers),
            devices=devices,
            processes=processes,
            partitions=list(self._partitions),
            proxy=self._proxy,
            proxy_worker=self._worker,
            proxy_seconds=self._seconds,
            policy=self._policy,
            lines=lines,
            duplicates=duplicates,
            handoffs=self._handoffs,
            errors=self._errors,
            other_errors=self._other_errors,
            # Of a sample of the results, the first and the last operation are not those of all.
            error_places=self._error_places if self._taken.are_all else {},
            files=self._files,
            without_id=self._without_id,
            began=min(began, default=None),
            ended=max(ended, default=None),
            trans_ids={
                place: text for place, text in self._candidates.items() if place in self._wanted.shown
            },
            kept=self._kept,
            senders=self._senders,
            not_updated={who: np.unique(places) for who, places in self._not_updated.items()},
            slow=self._slow,
            account_updates=(
                np.array([place for _, place, _ in self._account_updates], np.int64),
                np.array([seconds for _, _, seconds in self._account_updates], np.float64),
            ),
            containers=list(self._containers),
            background=log_background.merge_backgrounds(self._backgrounds, self._operations.ended),
        )


def _positions_in(rows_taken: npt.NDArray[np.int64], rows_wanted: Collection[int]) -> list[int]:
    """Return where each row is among those that were taken, in their order; :data:`NO_INDEX` for no place."""
    wanted = np.array([*rows_wanted], np.int64)
    if not len(rows_taken):
        return [NO_INDEX] * len(wanted)
    at = np.minimum(np.searchsorted(rows_taken, wanted), len(rows_taken) - 1)
    places: list[int] = np.where(rows_taken[at] == wanted, at, NO_INDEX).tolist()
    return places


def _number_subjects(block: ResultBlock) -> npt.NDArray[np.uint64]:
    """Number the objects of a block so that the same object has the same number in every block."""
    if isinstance(block.container, TextColumn) or isinstance(block.object, TextColumn):
        pairs = zip(block.container, block.object, strict=True)
        return np.array([hash(pair) & 0xFFFFFFFFFFFFFFFF for pair in pairs], np.uint64)
    container, size_class = block.container.astype(np.uint64), block.size_class.astype(np.uint64)
    mixed: npt.NDArray[np.uint64] = container * np.uint64(0x9E3779B97F4A7C15)
    mixed += size_class * np.uint64(0xC2B2AE3D27D4EB4F) + block.object.astype(np.uint64)
    return mixed


def _number_all(places: dict[_KeyT, int], things: Sequence[_KeyT]) -> npt.NDArray[np.int64]:
    """Number things in the order in which they are first seen; return the number of each."""
    return np.array([places.setdefault(thing, len(places)) for thing in things], np.int64)
