"""The results of a run joined with lines of Swift's logs: columns of operations, and of lines.

Lines are packed into rows on their way to columns, each line once. Two runs can be put together as one, in
which the same servers have the same places (:func:`concatenate_runs`).
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ssbench.cluster.log_background import Background
from ssbench.cluster.rank_tests import IntegerArray, sort_distinct
from ssbench.scenario.operations import MAX_OPERATION_CODE, OPERATIONS, OperationTable

#: What a storage server's line is of: an object server asked by a proxy; a container server updated by an
#: object server of its object; any other server asked by a proxy.
OBJECT, UPDATE, OTHER = 0, 1, 2
#: In rows of a file alone: an object server asked by a proxy for a GET or HEAD, which is no part of a write.
LOOK = 3

#: Operations that send each device one request that writes.
SENT_ONCE = np.isin(
    np.arange(MAX_OPERATION_CODE + 1),
    [each.code for each in OPERATIONS if each.method in ("PUT", "POST", "DELETE")],
)

#: No server or device, in columns of places.
NO_INDEX = -1


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
class TakenResults:
    """Which results of a run are joined with logs."""

    results: int  # of the run
    operations: int  # a random sample of the results where these are too many

    @property
    def are_all(self) -> bool:
        """Whether each result is."""
        return self.operations == self.results

    def describe_taken(self) -> str | None:
        """Say which they are; None where they are all."""
        if self.are_all:
            return None
        return (
            f"this is about a random sample of {self.operations:,} of {self.results:,} results; only errors"
            " of proxies and lines of the run are counted in full (--sample all takes every result)"
        )


@dataclass(frozen=True, slots=True)
class JoinedOperations:
    """The taken results of the run as columns, one place for each. Latencies are in seconds."""

    code: npt.NDArray[np.uint8]
    size: npt.NDArray[np.int64]
    latency: npt.NDArray[np.float64]  # NaN for failures and for what a worker that stalled delayed itself
    subject: npt.NDArray[np.uint64]  # the same for operations on the same object
    retries: npt.NDArray[np.int64]
    failed: npt.NDArray[np.bool_]
    ended: npt.NDArray[np.float64]  # In seconds since 1970 by the master's clock; NaN: not known
    first_byte: npt.NDArray[np.float64]  # Latency of the first byte of an answer with a body; NaN for others
    container: IntegerArray  # Place in ``containers`` of the run; :data:`NO_INDEX`: of none


@dataclass(frozen=True, slots=True)
class JoinedLines:
    """Storage servers' lines as columns; each indexes operations, devices, processes, partitions.

    The numbers have 32 bits, for memory: their products can be too large for that.
    """

    operation: IntegerArray
    device: IntegerArray
    process: IntegerArray
    partition: IntegerArray
    seconds: npt.NDArray[np.float64]
    status: IntegerArray
    of: npt.NDArray[np.uint8]
    #: Of an update of a container server the device of the object server that sent it; :data:`NO_INDEX`: not
    #: known, or no update.
    sender: IntegerArray

    def __len__(self) -> int:
        return len(self.operation)


@dataclass(frozen=True, slots=True)
class FileCount:
    """What was found in a file of a node."""

    path: str
    node: str
    lines: int  # all of them
    of_run: int  # those of the run
    cut: int  # those that are cut
    first: int | None  # Earliest time within transaction ids, in seconds since 1970; None: there are no ids
    last: int | None  # the latest, likewise
    damage: str | None = None  # why the file could not be read to its end
    without_id: int = 0  # access lines at its beginning without a transaction id, where most have none
    of_daemons: int = 0  # lines of background daemons about that time
    unread: str | None = None  # why not a byte of it could be read
    cut_at: int | None = None  # length of the lines without an id, where all are cut at the same one


@dataclass(frozen=True, slots=True)
class JoinedRun:
    """Operations, and what the logs say of each. Errors are by (kind, server, address, device)."""

    operations: JoinedOperations
    proxies: list[str]
    proxy_workers: list[str]
    devices: list[Device]
    processes: list[Process]
    partitions: list[tuple[int, int]]
    proxy: IntegerArray  # Place in ``proxies``; :data:`NO_INDEX`: there is no line
    proxy_worker: IntegerArray  # place in ``proxy_workers``, likewise
    proxy_seconds: npt.NDArray[np.float64]  # NaN where there is no line
    policy: IntegerArray
    lines: JoinedLines
    duplicates: int
    handoffs: IntegerArray  # lines that mention one
    errors: Counter[tuple[str, str, str, str]]  # those of operations that are results
    #: Those of the other requests of the run: initial uploads, attempts that were repeated, clean-up.
    other_errors: Counter[tuple[str, str, str, str]]
    files: list[FileCount]
    without_id: int
    began: int | None
    ended: int | None
    taken: TakenResults  # which results the operations are
    #: The first and the last operation of each of ``errors``.
    error_places: dict[tuple[str, str, str, str], tuple[int, int]] = field(default_factory=dict)
    #: Ids of the slowest operations, without what their end may have in addition.
    trans_ids: dict[int, str] = field(default_factory=dict)
    #: Lines of these, each with the node of its file and whether the user named that.
    kept: list[tuple[str, bool, bytes]] = field(default_factory=list)
    background: Background = field(default_factory=Background)  # what is not of the run
    containers: list[str] = field(default_factory=list)  # names of those that operations were in
    #: Some of the operations of which an object server, by address and device, updated a container server.
    senders: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    #: Operations of which a container server, by address and device, was not told.
    not_updated: dict[tuple[str, str], IntegerArray] = field(default_factory=dict)
    #: Milliseconds of each part of the requests that an object server calls slow, by node and device; their
    #: number is that of the part without a name.
    slow: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    #: Devices and seconds of account servers' lines of the containers that the run made.
    account_updates: tuple[IntegerArray, npt.NDArray[np.float64]] = (np.zeros(0, np.int64), np.zeros(0))
    operation_table: OperationTable = OPERATIONS  # what the codes of operations mean


#: How many the report shows.
MAX_SLOWEST_OPERATIONS = 20


def find_slowest_operations(latency: npt.NDArray[np.float64]) -> IntegerArray:
    """Return the places of the slowest operations, in order; failures (NaN) are left out."""
    known = np.nan_to_num(latency, nan=-1.0)
    order = np.argsort(-known, kind="stable")[:MAX_SLOWEST_OPERATIONS]
    return order[known[order] > 0]


# -- Packed lines ----------------------------------------------------------------------------------


#: The fields of a line as it comes from a file: those of :class:`~ssbench.cluster.joined_run.JoinedLines`,
#: and who asked: the proxy's process, or of an update the object server's process and device.
LINE_ROW = struct.Struct("<IIIIfHBH")
#: Nobody known asked, or more have than have numbers.
NO_ASKER = 0xFFFF
#: A proxy's line: operation, proxy, seconds, policy.
PROXY_ROW = struct.Struct("<IHdh")
_PROXY_FIELDS = np.dtype([("operation", "<u4"), ("proxy", "<u2"), ("seconds", "<f8"), ("policy", "<i2")])
#: The columns of lines, and their types.
_COLUMN_TYPES: dict[str, type[np.generic]] = {
    "operation": np.int32,
    "device": np.int32,
    "process": np.int32,
    "partition": np.int32,
    "seconds": np.float64,
    "status": np.int32,
    "of": np.uint8,
    "asker": np.int32,
}
_ROW_FIELDS = np.dtype(
    [
        ("operation", "<u4"),
        ("device", "<u4"),
        ("process", "<u4"),
        ("partition", "<u4"),
        ("seconds", "<f4"),
        ("status", "<u2"),
        ("of", "u1"),
        ("asker", "<u2"),
    ]
)


def unpack_line_rows(packed: bytearray) -> npt.NDArray[np.void]:
    """Return rows of a file as an array with a field for each column, which can be written to."""
    return np.frombuffer(packed, _ROW_FIELDS)


def unpack_proxy_rows(packed: bytearray) -> npt.NDArray[np.void]:
    """Return rows of proxies, the longest of each operation only.

    What a proxy asks on behalf of a request lies within the request: the longest is the client's.
    """
    rows = np.frombuffer(packed, _PROXY_FIELDS)
    rows = rows[np.lexsort((rows["seconds"], rows["operation"]))]
    last = np.ones(len(rows), np.bool_)
    last[:-1] = rows["operation"][1:] != rows["operation"][:-1]
    return rows[last]


class LineColumns:
    """Rows of several files on their way to :class:`~ssbench.cluster.joined_run.JoinedLines`."""

    def __init__(self) -> None:
        self._parts: dict[str, list[npt.NDArray[Any]]] = {name: [] for name in _COLUMN_TYPES}

    def add(self, rows: npt.NDArray[np.void]) -> None:
        """Take rows whose devices, processes and partitions are numbered as those of the others."""
        for name, parts in self._parts.items():
            parts.append(rows[name].astype(_COLUMN_TYPES[name]))

    def lines(
        self, devices: Sequence[Device], processes: Sequence[Process], senders: Sequence[tuple[str, str]]
    ) -> tuple[JoinedLines, int]:
        """Return all, without those that say all the same as another one, and how many these are.

        ``senders`` are the processes and devices of object servers that updated container servers.
        """
        columns: dict[str, npt.NDArray[Any]] = {}
        for name, kind in _COLUMN_TYPES.items():
            columns[name] = np.concatenate([*self._parts.pop(name), np.zeros(0, kind)])
        kept = _is_first_of_equal(columns)
        duplicates = int(len(kept) - np.count_nonzero(kept))
        if duplicates:
            columns = {name: values[kept] for name, values in columns.items()}
        asker = columns.pop("asker")
        sender = np.full(len(asker), NO_INDEX, np.int32)
        lines = JoinedLines(**columns, sender=sender)
        _match_senders(lines, asker, devices, processes, senders)
        return lines, duplicates


def _match_senders(
    lines: JoinedLines,
    asker: IntegerArray,
    devices: Sequence[Device],
    processes: Sequence[Process],
    senders: Sequence[tuple[str, str]],
) -> None:
    """Find for each update the device of that name and process which did the same operation."""
    updates = np.flatnonzero((lines.of == UPDATE) & (asker != NO_ASKER))
    if not len(updates):
        return
    pids = {pid: place for place, pid in enumerate(dict.fromkeys(pid for pid, _ in senders))}
    names = {name: place for place, name in enumerate(dict.fromkeys(name for _, name in senders))}
    of_pid = np.array([pids.get(each.pid, NO_INDEX) for each in processes], np.int64)
    of_name = np.array([names.get(each.name, NO_INDEX) for each in devices], np.int64)
    at = np.flatnonzero(lines.of == OBJECT)
    at = at[(of_pid[lines.process[at]] != NO_INDEX) & (of_name[lines.device[at]] != NO_INDEX)]
    count = len(pids) * len(names)
    key = of_pid[lines.process[at]] * len(names) + of_name[lines.device[at]]
    key += lines.operation[at].astype(np.int64) * count
    order = np.argsort(key, kind="stable")
    key = np.append(key[order], [-1, -1])
    sent_by = np.array([pids[pid] * len(names) + names[name] for pid, name in senders], np.int64)
    wanted = sent_by[asker[updates]] + lines.operation[updates].astype(np.int64) * count
    place = np.searchsorted(key[:-2], wanted)
    single = (key[place] == wanted) & (key[place + 1] != wanted)  # pids of two nodes may be the same
    lines.sender[updates[single]] = lines.device[at[order[place[single]]]]


def _is_first_of_equal(rows: dict[str, npt.NDArray[Any]]) -> npt.NDArray[np.bool_]:
    """Return which lines to keep of those that say all the same.

    There are some where a file was given twice, or where a log server has two sources.
    """
    kept = np.ones(len(rows["seconds"]), np.bool_)
    columns = [rows[name] for name in ("seconds", "status", "process", "device", "operation")]
    # As a rule few are alike: only those whose hash is not unique are sorted by all fields.
    hashes = np.zeros(len(kept), np.uint64)
    for values in columns:
        hashes *= np.uint64(0x9E3779B97F4A7C15)
        hashes += values.view(np.uint64) if values.dtype == np.float64 else values.astype(np.uint64)
    ordered = np.sort(hashes)
    twice = np.append(sort_distinct(ordered[1:][ordered[1:] == ordered[:-1]]), np.uint64(0))
    maybe = np.flatnonzero(twice[np.searchsorted(twice[:-1], hashes)] == hashes)
    keys = [values[maybe] for values in columns]
    order = np.lexsort(keys)
    alike = np.ones(len(maybe), np.bool_)
    alike[:1] = False
    for key in keys:
        alike[1:] &= key[order[1:]] == key[order[:-1]]
    kept[maybe[order[alike]]] = False
    return kept


# -- Two runs as one -------------------------------------------------------------------------------


_ItemT = TypeVar("_ItemT")


def concatenate_runs(before: JoinedRun, after: JoinedRun) -> JoinedRun:
    """Put the operations of one run behind those of the other.

    Devices, processes and proxies of the same names are the same. Objects are not: those of two runs may
    share a number, so each operation has an object of its own.
    """
    devices, device_of = _merge_lists(before.devices, after.devices)
    processes, process_of = _merge_lists(before.processes, after.processes)
    partitions, partition_of = _merge_lists(before.partitions, after.partitions)
    proxies, proxy_of = _merge_lists(before.proxies, after.proxies)
    workers, worker_of = _merge_lists(before.proxy_workers, after.proxy_workers)
    first = len(before.operations.code)
    moved = {
        "operation": after.lines.operation + first,
        "device": device_of[after.lines.device],
        "process": process_of[after.lines.process],
        "partition": partition_of[after.lines.partition],
        "sender": _renumber(after.lines.sender, device_of),
    }
    lines = {
        name: np.concatenate((getattr(before.lines, name), moved.get(name, getattr(after.lines, name))))
        for name in JoinedLines.__slots__
    }
    operations = {
        field.name: _concatenate_field(before.operations, after.operations, field.name)
        for field in fields(JoinedOperations)
    }
    containers, container_of = _merge_lists(before.containers, after.containers)
    operations["container"] = np.concatenate(
        (before.operations.container, _renumber(after.operations.container, container_of))
    )
    operations["subject"] = np.arange(len(operations["code"]), dtype=np.uint64)
    table, code_of = before.operation_table.joined_with(after.operation_table)
    operations["code"] = np.concatenate(
        (before.operations.code, np.array(code_of, np.uint8)[after.operations.code])
    )
    return JoinedRun(
        operations=JoinedOperations(**operations),
        proxies=proxies,
        proxy_workers=workers,
        devices=devices,
        processes=processes,
        partitions=partitions,
        proxy=np.concatenate((before.proxy, _renumber(after.proxy, proxy_of))),
        proxy_worker=np.concatenate((before.proxy_worker, _renumber(after.proxy_worker, worker_of))),
        proxy_seconds=_concatenate_field(before, after, "proxy_seconds"),
        policy=_concatenate_field(before, after, "policy"),
        lines=JoinedLines(**lines),
        duplicates=before.duplicates + after.duplicates,
        handoffs=_concatenate_field(before, after, "handoffs"),
        errors=before.errors + after.errors,
        other_errors=before.other_errors + after.other_errors,
        files=[*before.files, *after.files],
        without_id=before.without_id + after.without_id,
        began=before.began,
        ended=after.ended,
        containers=containers,
        operation_table=table,
        taken=TakenResults(
            before.taken.results + after.taken.results, before.taken.operations + after.taken.operations
        ),
    )


def _concatenate_field(before: object, after: object, name: str) -> npt.NDArray[Any]:
    return np.concatenate((getattr(before, name), getattr(after, name)))


def _merge_lists(
    before: Sequence[_ItemT], after: Sequence[_ItemT]
) -> tuple[list[_ItemT], npt.NDArray[np.int64]]:
    """Return what is in either, and the places there of those after."""
    places = {thing: place for place, thing in enumerate(dict.fromkeys([*before, *after]))}
    return list(places), np.array([places[thing] for thing in after], np.int64)


def _renumber(places: IntegerArray, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    found = np.full(len(places), NO_INDEX, np.int64)
    known = places != NO_INDEX
    found[known] = numbers[places[known]]
    return found
