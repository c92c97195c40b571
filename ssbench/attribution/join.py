"""Joins the results of a run with lines of Swift's logs by transaction id, into columns.

Only what has an id of the run is kept, 22 bytes a line, so that ten million lines fit in memory. No
clock is read: what is kept of a line are durations.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from ssbench.attribution.files import LogFile, Reader
from ssbench.attribution.lines import (
    NO_POLICY,
    TRANS_ID,
    BackendLine,
    CutLine,
    ErrorLine,
    ProxyLine,
    ProxyParser,
    parse,
)
from ssbench.names import run_mark
from ssbench.results import ResultBlock, TextColumn
from ssbench.run_results import RunResults

#: Of whom a storage server's line is: an object server asked by a proxy; a container server told by an
#: object server of its object; any other server asked by a proxy.
OBJECT, UPDATE, OTHER = 0, 1, 2

Thing = TypeVar("Thing", bound=Hashable)

#: A word of a line, or what the user calls a node.
Name = bytes | str

#: No server or device, in columns of places.
NOBODY = -1


@dataclass(frozen=True, slots=True, order=True)
class Device:
    """A device of a node, of the ``object``, ``container`` or ``account`` server there."""

    node: str
    server: str
    name: str

    def __str__(self) -> str:
        kind = "" if self.server == "object" else f"{self.server} server's "
        return f"{kind}{self.name} on {self.node}"


@dataclass(frozen=True, slots=True, order=True)
class Process:
    """A process of a storage server."""

    node: str
    server: str
    pid: str

    def __str__(self) -> str:
        return f"{self.server} server {self.pid} on {self.node}"


@dataclass(frozen=True, slots=True)
class Operations:
    """The results of the run as columns, one place for each.

    ``subject`` is the same for operations on the same object. Latencies are seconds, NaN for failures.
    """

    code: npt.NDArray[np.uint8]
    size: npt.NDArray[np.int64]
    latency: npt.NDArray[np.float64]
    subject: npt.NDArray[np.uint64]
    retries: npt.NDArray[np.int64]
    failed: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Lines:
    """Storage servers' lines as columns; each indexes operations, devices, processes, partitions."""

    operation: npt.NDArray[np.int64]
    device: npt.NDArray[np.int64]
    process: npt.NDArray[np.int64]
    partition: npt.NDArray[np.int64]
    seconds: npt.NDArray[np.float64]
    status: npt.NDArray[np.int64]
    of: npt.NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.operation)

    def where(self, mask: npt.NDArray[np.bool_]) -> Lines:
        """Return those lines of which the mask is True."""
        return Lines(
            self.operation[mask],
            self.device[mask],
            self.process[mask],
            self.partition[mask],
            self.seconds[mask],
            self.status[mask],
            self.of[mask],
        )


@dataclass(frozen=True, slots=True)
class FileCount:
    """What was found in a file: all lines, those of the run, those that are cut.

    ``first`` and ``last`` are the seconds since 1970 within transaction ids, None without any. ``damage``
    says why the file could not be read to its end.
    """

    path: str
    lines: int
    of_run: int
    cut: int
    first: int | None
    last: int | None
    damage: str | None = None


@dataclass(frozen=True, slots=True)
class Joined:
    """Operations, and what the logs say of each.

    ``proxy`` and ``proxy_worker`` are places in the lists of names, :data:`NOBODY` where there is no line;
    ``proxy_seconds`` is then NaN. ``handoffs`` counts the lines that mention one. ``errors`` is by
    (kind, server, address, device), of operations that are results; ``other_errors`` of the other
    requests of the run: initial uploads, attempts that were repeated, clean-up.
    """

    operations: Operations
    proxies: list[str]
    proxy_workers: list[str]
    devices: list[Device]
    processes: list[Process]
    partitions: list[tuple[int, int]]
    proxy: npt.NDArray[np.int64]
    proxy_worker: npt.NDArray[np.int64]
    proxy_seconds: npt.NDArray[np.float64]
    policy: npt.NDArray[np.int64]
    lines: Lines
    duplicates: int
    handoffs: npt.NDArray[np.int64]
    errors: Counter[tuple[str, str, str, str]]
    other_errors: Counter[tuple[str, str, str, str]]
    files: list[FileCount]
    without_id: int
    began: int | None
    ended: int | None


class _Places(Generic[Thing]):
    """Numbers things in the order in which they are first seen."""

    def __init__(self) -> None:
        self.places: dict[Thing, int] = {}

    def place(self, thing: Thing) -> int:
        place = self.places.get(thing)
        if place is None:
            place = self.places[thing] = len(self.places)
        return place


@dataclass(slots=True)
class _Columns:
    """Lines on their way to :class:`Lines`."""

    operation: array[int] = field(default_factory=lambda: array("I"))
    device: array[int] = field(default_factory=lambda: array("I"))
    process: array[int] = field(default_factory=lambda: array("I"))
    partition: array[int] = field(default_factory=lambda: array("I"))
    seconds: array[float] = field(default_factory=lambda: array("f"))
    status: array[int] = field(default_factory=lambda: array("H"))
    of: array[int] = field(default_factory=lambda: array("B"))


class Join:
    """Takes the results of a run, then its logs file by file; :meth:`joined` is what came of it."""

    def __init__(self, results: RunResults) -> None:
        self._ids: dict[bytes, int] = {}
        self.run_mark = None if results.run.run_id is None else f"-{run_mark(results.run.run_id)}".encode()
        self._without_id = 0
        self._operations = self._read(results)
        count = len(self._operations.code)
        self._proxy = np.full(count, NOBODY, np.int64)
        self._worker = np.full(count, NOBODY, np.int64)
        self._seconds = np.full(count, np.nan)
        self._policy = np.full(count, NO_POLICY, np.int64)
        self._handoffs = np.zeros(count, np.int64)
        self._columns = _Columns()
        self._proxies = _Places[Name]()
        self._workers = _Places[tuple[bytes, bytes]]()
        self._partitions = _Places[tuple[int, bytes]]()
        self._devices = _Places[tuple[Name, bytes, bytes]]()
        self._processes = _Places[tuple[Name, bytes, bytes]]()
        self._errors: Counter[tuple[str, str, str, str]] = Counter()
        self._other_errors: Counter[tuple[str, str, str, str]] = Counter()
        self._files: list[FileCount] = []

    @property
    def identified(self) -> int:
        """How many operations have a transaction id."""
        return len(self._ids)

    def _read(self, results: RunResults) -> Operations:
        parts: list[tuple[npt.NDArray[np.generic], ...]] = []
        count = 0
        for block in results.blocks():
            for place, text in enumerate(block.trans_id, count):
                match = TRANS_ID.match(text.encode()) if text else None
                if match:
                    self._ids[match[0]] = place
                else:
                    self._without_id += 1
            count += len(block)
            latency = np.where(block.failed, np.nan, block.last_byte)
            parts.append(
                (block.operation, block.size, latency, _subjects(block), block.retries, block.failed.copy())
            )
        if not parts:
            parts.append(tuple(np.zeros(0, kind) for kind in ("u1", "i8", "f8", "u8", "i8", "?")))
        return Operations(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def add(self, file: LogFile, proxy: ProxyParser | None = None) -> None:
        """Take in the lines of a file; ``proxy`` reads access lines that are not of the default layout.

        Raises StatFileError when it cannot be read.
        """
        reader = Reader(file)
        search, place_of, mark = TRANS_ID.search, self._ids.get, self.run_mark
        total = of_run = cut = 0
        first, last = b"g", b""
        for chunk in reader.chunks():
            total += len(chunk)
            for line in chunk:
                match = search(line)
                if match is None:
                    cut += b" ... " in line and (b'"proxy-server ' in line or b" HTTP/1" in line)
                    continue
                trans_id = match[0]
                moment = trans_id[24:]
                first = min(first, moment)
                last = max(last, moment)
                place = place_of(trans_id)
                if place is None:
                    if mark and line.startswith(mark, match.end()):
                        self._take_other(line, proxy)
                    continue
                of_run += 1
                record = parse(line, proxy)
                if type(record) is BackendLine:
                    self._take_backend(place, record, file)
                elif type(record) is ProxyLine:
                    self._take_proxy(place, record, file)
                elif type(record) is ErrorLine:
                    self._handoffs[place] += record.kind == "handoff"
                    self._errors[_error_key(record)] += 1
                elif type(record) is CutLine:
                    cut += 1
        moments = _moment(first), _moment(last)
        self._files.append(FileCount(str(file.path), total, of_run, cut, *moments, reader.damage))

    def _take_backend(self, place: int, line: BackendLine, file: LogFile) -> None:
        if line.asker == b"proxy-server":
            of = OBJECT if line.server == b"object" else OTHER
            worker = self._workers.place((line.proxy[0], line.proxy[1]))
            self._worker[place] = worker
        elif line.asker == b"object-server" and line.server != b"account":
            # The path of an update in a container server is that of the object.
            of = UPDATE
            line = line._replace(server=b"container")
        else:
            return
        node = _node(line.host, file)
        columns = self._columns
        columns.operation.append(place)
        columns.device.append(self._devices.place((node, line.server, line.device)))
        columns.process.append(self._processes.place((node, line.server, line.pid)))
        columns.partition.append(self._partitions.place((line.policy, line.partition)))
        columns.seconds.append(line.seconds)
        columns.status.append(line.status & 0xFFFF)
        columns.of.append(of)
        if of == OBJECT and line.policy != NO_POLICY:
            self._policy[place] = line.policy

    def _take_proxy(self, place: int, line: ProxyLine, file: LogFile) -> None:
        # What a proxy asks on behalf of a request lies within the request: the longest is the client's.
        if line.own and not line.seconds <= self._seconds[place]:
            self._seconds[place] = line.seconds
            self._proxy[place] = self._proxies.place(_node(line.host, file))
            if line.policy != NO_POLICY:
                self._policy[place] = line.policy

    def _take_other(self, line: bytes, proxy: ProxyParser | None) -> None:
        record = parse(line, proxy)
        if type(record) is ErrorLine:
            self._other_errors[_error_key(record)] += 1

    def joined(self) -> Joined:
        """Return everything as columns."""
        columns = self._columns
        lines = Lines(
            operation=np.array(columns.operation, np.int64),
            device=np.array(columns.device, np.int64),
            process=np.array(columns.process, np.int64),
            partition=np.array(columns.partition, np.int64),
            seconds=np.array(columns.seconds, np.float64),
            status=np.array(columns.status, np.int64),
            of=np.array(columns.of, np.uint8),
        )
        everything = len(lines)
        lines = _without_duplicates(lines)
        moments = [trans_id[24:] for trans_id in self._ids]
        return Joined(
            operations=self._operations,
            proxies=[_text(name) for name in self._proxies.places],
            proxy_workers=[f"{_text(address)} {_text(pid)}" for address, pid in self._workers.places],
            devices=[Device(*map(_text, words)) for words in self._devices.places],
            processes=[Process(*map(_text, words)) for words in self._processes.places],
            partitions=[(policy, int(number)) for policy, number in self._partitions.places],
            proxy=self._proxy,
            proxy_worker=self._worker,
            proxy_seconds=self._seconds,
            policy=self._policy,
            lines=lines,
            duplicates=everything - len(lines),
            handoffs=self._handoffs,
            errors=self._errors,
            other_errors=self._other_errors,
            files=self._files,
            without_id=self._without_id,
            began=_moment(min(moments, default=b"")),
            ended=_moment(max(moments, default=b"")),
        )


def _without_duplicates(lines: Lines) -> Lines:
    """Drop lines that say all the same: a file that was given twice, a log server with two sources."""
    if not len(lines):
        return lines
    keys = (lines.seconds, lines.status, lines.process, lines.device, lines.operation)
    order = np.lexsort(keys)
    new = np.zeros(len(lines), np.bool_)
    for key in keys:
        new[order[1:]] |= key[order[1:]] != key[order[:-1]]
    new[order[0]] = True
    return lines.where(new)


def _subjects(block: ResultBlock) -> npt.NDArray[np.uint64]:
    """Number the objects of a block so that the same object has the same number in every block."""
    if isinstance(block.container, TextColumn) or isinstance(block.object, TextColumn):
        pairs = zip(block.container, block.object, strict=True)
        return np.array([hash(pair) & 0xFFFFFFFFFFFFFFFF for pair in pairs], np.uint64)
    container, size_class = block.container.astype(np.uint64), block.size_class.astype(np.uint64)
    mixed: npt.NDArray[np.uint64] = container * np.uint64(0x9E3779B97F4A7C15)
    mixed += size_class * np.uint64(0xC2B2AE3D27D4EB4F) + block.object.astype(np.uint64)
    return mixed


def _error_key(line: ErrorLine) -> tuple[str, str, str, str]:
    device = _text(line.device) if line.device else ""
    return line.kind, _text(line.server), _text(line.address), device


def _node(host: bytes, file: LogFile) -> Name:
    return host if host and not file.named else file.node


def _text(word: Name) -> str:
    return word.decode("utf-8", "replace") if isinstance(word, bytes) else word


def _moment(digits: bytes) -> int | None:
    """Return the seconds since 1970 that an id ends in; None for ids of Swift before 1.9."""
    return int(digits, 16) if len(digits) == 10 else None
