"""The results of a run joined with lines of Swift's logs: columns of operations, and of lines."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ssbench.cluster.background import Background
from ssbench.cluster.ranks import IntegerArray

#: What a storage server's line is of: an object server asked by a proxy; a container server updated by an
#: object server of its object; any other server asked by a proxy.
OBJECT, UPDATE, OTHER = 0, 1, 2

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
class JoinedOperations:
    """The results of the run as columns, one place for each.

    ``subject`` is the same for operations on the same object. Latencies are seconds, NaN for failures
    and for what a worker that stalled delayed itself.
    ``ended`` is when each ended, in seconds since 1970 by the master's clock; NaN where it is not known.
    ``first_byte`` is the latency of the first byte of an answer with a body, NaN for others.
    """

    code: npt.NDArray[np.uint8]
    size: npt.NDArray[np.int64]
    latency: npt.NDArray[np.float64]
    subject: npt.NDArray[np.uint64]
    retries: npt.NDArray[np.int64]
    failed: npt.NDArray[np.bool_]
    ended: npt.NDArray[np.float64]
    first_byte: npt.NDArray[np.float64]


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

    def __len__(self) -> int:
        return len(self.operation)


@dataclass(frozen=True, slots=True)
class FileCount:
    """What was found in a file of a node: all lines, those of the run, those that are cut.

    ``first`` and ``last`` are the seconds since 1970 within transaction ids, None without any. ``damage``
    says why the file could not be read to its end, ``without_id`` how many access lines at its beginning have
    no transaction id, where most have none.
    ``of_daemons`` counts lines of background daemons about that time.
    """

    path: str
    node: str
    lines: int
    of_run: int
    cut: int
    first: int | None
    last: int | None
    damage: str | None = None
    without_id: int = 0
    of_daemons: int = 0


@dataclass(frozen=True, slots=True)
class JoinedRun:
    """Operations, and what the logs say of each.

    ``results`` counts the results of the run, of which the operations are a random sample or all.
    ``proxy`` and ``proxy_worker`` are places in the lists of names, :data:`NO_INDEX` where there is no line;
    ``proxy_seconds`` is then NaN. ``handoffs`` counts the lines that mention one. ``errors`` is by
    (kind, server, address, device), of operations that are results; ``other_errors`` of the other
    requests of the run: initial uploads, attempts that were repeated, clean-up. ``error_places`` are the
    first and the last operation of each of the former. ``trans_ids`` has the ids of
    the slowest operations, without what their end may have in addition; ``kept`` their lines, each with the
    node of its file and whether the user named that. ``background`` is what is not of the run.
    ``senders`` are some of the operations of which an object server, by address and device, updated a
    container server, ``not_updated`` those of which one was not told, by the address and the device of the
    container server. ``slow`` has, by node and device, milliseconds of each part of the requests that an
    object server calls slow, and their number as that of the part without a name.
    ``account_updates`` are devices and seconds of account servers' lines of the
    containers that the run made.
    """

    operations: JoinedOperations
    proxies: list[str]
    proxy_workers: list[str]
    devices: list[Device]
    processes: list[Process]
    partitions: list[tuple[int, int]]
    proxy: IntegerArray
    proxy_worker: IntegerArray
    proxy_seconds: npt.NDArray[np.float64]
    policy: IntegerArray
    lines: JoinedLines
    duplicates: int
    handoffs: IntegerArray
    errors: Counter[tuple[str, str, str, str]]
    other_errors: Counter[tuple[str, str, str, str]]
    files: list[FileCount]
    without_id: int
    began: int | None
    ended: int | None
    results: int
    error_places: dict[tuple[str, str, str, str], tuple[int, int]] = field(default_factory=dict)
    trans_ids: dict[int, str] = field(default_factory=dict)
    kept: list[tuple[str, bool, bytes]] = field(default_factory=list)
    background: Background = field(default_factory=Background)
    senders: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    not_updated: dict[tuple[str, str], IntegerArray] = field(default_factory=dict)
    slow: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    account_updates: tuple[IntegerArray, npt.NDArray[np.float64]] = (np.zeros(0, np.int64), np.zeros(0))
