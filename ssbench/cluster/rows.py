"""Storage servers' lines on their way to columns: packed into rows, each line once."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import numpy.typing as npt

from ssbench.cluster.joined import JoinedLines
from ssbench.cluster.ranks import sort_distinct

#: The fields of a line as it comes from a file: those of :class:`~ssbench.cluster.joined.JoinedLines`, and the
#: proxy's process that asked.
LINE_ROW = struct.Struct("<IIIIfHBH")
#: No proxy asked, or more have than have numbers.
NO_WORKER = 0xFFFF
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
        ("worker", "<u2"),
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
    """Rows of several files on their way to :class:`~ssbench.cluster.joined.JoinedLines`."""

    def __init__(self) -> None:
        self._parts: dict[str, list[npt.NDArray[Any]]] = {name: [] for name in _COLUMN_TYPES}

    def add(self, rows: npt.NDArray[np.void]) -> None:
        """Take rows whose devices, processes and partitions are numbered as those of the others."""
        for name, parts in self._parts.items():
            parts.append(rows[name].astype(_COLUMN_TYPES[name]))

    def lines(self) -> tuple[JoinedLines, int]:
        """Return all, without those that say all the same as another one, and how many these are."""
        columns: dict[str, npt.NDArray[Any]] = {}
        for name, kind in _COLUMN_TYPES.items():
            columns[name] = np.concatenate([*self._parts.pop(name), np.zeros(0, kind)])
        kept = _is_first_of_equal(columns)
        duplicates = int(len(kept) - np.count_nonzero(kept))
        if duplicates:
            columns = {name: values[kept] for name, values in columns.items()}
        return JoinedLines(**columns), duplicates


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
