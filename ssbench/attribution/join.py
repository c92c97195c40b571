"""Joins the results of a run with lines of Swift's logs by transaction id, into columns.

Only what has an id of the run is kept, 23 bytes a line, so that ten million lines fit in memory. No
clock is read: what is kept of a line are durations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from ssbench.attribution import rows
from ssbench.attribution.files import LogFile, Reader
from ssbench.attribution.joined import (
    NOBODY,
    OBJECT,
    OTHER,
    UPDATE,
    Device,
    FileCount,
    Joined,
    Operations,
    Process,
)
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
from ssbench.attribution.slowest import slowest
from ssbench.names import run_mark
from ssbench.results import ResultBlock, TextColumn
from ssbench.run_results import RunResults

Thing = TypeVar("Thing", bound=Hashable)

#: A word of a line, or what the user calls a node.
Name = bytes | str

#: Where the time is in an id, with the hyphen in front. Old ids have no time and a digit there.
_TIME_AT = 23
_AFTER_HYPHEN = b"."


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
        self._rows = bytearray()
        self._proxies: dict[Name, int] = {}
        self._workers: dict[tuple[bytes, bytes], int] = {}
        self._partitions: dict[tuple[int, bytes], int] = {}
        self._devices: dict[tuple[Name, bytes, bytes], int] = {}
        self._processes: dict[tuple[Name, bytes, bytes], int] = {}
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
                (
                    block.operation,
                    block.size,
                    latency,
                    _subjects(block),
                    block.retries,
                    block.failed.copy(),
                    block.completed,
                )
            )
        if not parts:
            parts.append(tuple(np.zeros(0, kind) for kind in ("u1", "i8", "f8", "u8", "i8", "?", "f8")))
        return Operations(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def add(self, file: LogFile, proxy: ProxyParser | None = None) -> None:
        """Take in the lines of a file; ``proxy`` reads access lines that are not of the default layout.

        Raises StatFileError when it cannot be read.
        """
        reader = Reader(file)
        search, place_of, mark = TRANS_ID.search, self._ids.get, self.run_mark
        total = of_run = cut = 0
        first, last = _AFTER_HYPHEN, b""
        for number, lines in reader.chunks():
            total += number
            for line in lines:
                match = search(line)
                if match is None:
                    cut += b" ... " in line and (b'"proxy-server ' in line or b" HTTP/1" in line)
                    continue
                trans_id = match[0]
                moment = trans_id[_TIME_AT:]
                if moment < first:  # noqa: PLR1730 - faster than min
                    first = moment
                if last < moment < _AFTER_HYPHEN:
                    last = moment
                place = place_of(trans_id)
                if place is not None:
                    of_run += 1
                    cut += self._take(place, line, file, proxy)
                elif mark and line.startswith(mark, match.end()):
                    self._take_other(line, proxy)
        moments = _moment(first), _moment(last)
        self._files.append(FileCount(str(file.path), file.node, total, of_run, cut, *moments, reader.damage))

    def _take(self, place: int, line: bytes, file: LogFile, proxy: ProxyParser | None) -> bool:
        """Take in a line of an operation; return whether it is cut."""
        record = parse(line, proxy)
        if type(record) is BackendLine:
            self._take_backend(place, record, file)
        elif type(record) is ProxyLine:
            self._take_proxy(place, record, file)
        elif type(record) is ErrorLine:
            self._handoffs[place] += record.kind == "handoff"
            self._errors[_error_key(record)] += 1
        return type(record) is CutLine

    def _take_backend(self, place: int, line: BackendLine, file: LogFile) -> None:
        host, server, device, partition, _, status, seconds, asker, sender, pid, policy = line
        if asker == b"proxy-server":
            of = OBJECT if server == b"object" else OTHER
            self._worker[place] = _place(self._workers, sender)
        elif asker == b"object-server" and server != b"account":
            # The path of an update in a container server is that of the object.
            of, server = UPDATE, b"container"
        else:
            return
        node = _node(host, file)
        self._rows += rows.ROW.pack(
            place,
            _place(self._devices, (node, server, device)),
            _place(self._processes, (node, server, pid)),
            _place(self._partitions, (policy, partition)),
            seconds,
            status & 0xFFFF,
            of,
        )
        if of == OBJECT and policy != NO_POLICY:
            self._policy[place] = policy

    def _take_proxy(self, place: int, line: ProxyLine, file: LogFile) -> None:
        # What a proxy asks on behalf of a request lies within the request: the longest is the client's.
        if line.own and not line.seconds <= self._seconds[place]:
            self._seconds[place] = line.seconds
            self._proxy[place] = _place(self._proxies, _node(line.host, file))
            if line.policy != NO_POLICY:
                self._policy[place] = line.policy

    def _take_other(self, line: bytes, proxy: ProxyParser | None) -> None:
        record = parse(line, proxy)
        if type(record) is ErrorLine:
            self._other_errors[_error_key(record)] += 1

    def joined(self) -> Joined:
        """Return everything as columns; nothing can be added after that."""
        moments = {trans_id[_TIME_AT:] for trans_id in self._ids if trans_id[_TIME_AT:] < _AFTER_HYPHEN}
        trans_ids = self._ids_of_slowest()
        self._ids.clear()
        lines = rows.unpack(self._rows)
        duplicates = len(self._rows) // rows.ROW.size - len(lines)
        self._rows = bytearray()
        return Joined(
            operations=self._operations,
            proxies=[_text(name) for name in self._proxies],
            proxy_workers=[f"{_text(address)} {_text(pid)}" for address, pid in self._workers],
            devices=[Device(*map(_text, words)) for words in self._devices],
            processes=[Process(*map(_text, words)) for words in self._processes],
            partitions=[(policy, int(number)) for policy, number in self._partitions],
            proxy=self._proxy,
            proxy_worker=self._worker,
            proxy_seconds=self._seconds,
            policy=self._policy,
            lines=lines,
            duplicates=duplicates,
            handoffs=self._handoffs,
            errors=self._errors,
            other_errors=self._other_errors,
            files=self._files,
            without_id=self._without_id,
            began=_moment(min(moments, default=b"")),
            ended=_moment(max(moments, default=b"")),
            trans_ids=trans_ids,
        )

    def _ids_of_slowest(self) -> dict[int, str]:
        places = set(slowest(self._operations.latency).tolist())
        return {place: _text(trans_id) for trans_id, place in self._ids.items() if place in places}


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


def _place(places: dict[Thing, int], thing: Thing) -> int:
    """Number things in the order in which they are first seen."""
    return places.setdefault(thing, len(places))


def _moment(text: bytes) -> int | None:
    """Return the seconds since 1970 that follow a hyphen; None where there is nothing."""
    return int(text[1:], 16) if len(text) > 1 else None
