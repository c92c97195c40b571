"""Storage servers' lines on their way to columns: packed into rows of 23 bytes, each line once."""

from __future__ import annotations

import struct

import numpy as np
import numpy.typing as npt

from ssbench.attribution.joined import Lines
from ssbench.attribution.ranks import distinct

#: The fields of a line, in the order of those of :class:`~ssbench.attribution.joined.Lines`.
ROW = struct.Struct("<IIIIfHB")
_FIELDS = np.dtype(
    [
        ("operation", "<u4"),
        ("device", "<u4"),
        ("process", "<u4"),
        ("partition", "<u4"),
        ("seconds", "<f4"),
        ("status", "<u2"),
        ("of", "u1"),
    ]
)


def unpack(packed: bytearray) -> Lines:
    """Return rows as columns, without those that say all the same as another one."""
    rows = np.frombuffer(packed, _FIELDS)
    kept = _first_of_each(rows)
    return Lines(
        operation=rows["operation"][kept].astype(np.int32),
        device=rows["device"][kept].astype(np.int32),
        process=rows["process"][kept].astype(np.int32),
        partition=rows["partition"][kept].astype(np.int32),
        seconds=rows["seconds"][kept].astype(np.float64),
        status=rows["status"][kept].astype(np.int32),
        of=rows["of"][kept],
    )


def _first_of_each(rows: npt.NDArray[np.void]) -> npt.NDArray[np.bool_]:
    """Return which lines to keep of those that say all the same.

    There are some where a file was given twice, or where a log server has two sources.
    """
    kept = np.ones(len(rows), np.bool_)
    fields = [rows[name] for name in ("seconds", "status", "process", "device", "operation")]
    # As a rule few are alike: only those whose hash is not unique are sorted by all fields.
    hashes = np.zeros(len(rows), np.uint64)
    for values in fields:
        hashes *= np.uint64(0x9E3779B97F4A7C15)
        hashes += values.view(np.uint32) if values.dtype == np.float32 else values
    ordered = np.sort(hashes)
    twice = np.append(distinct(ordered[1:][ordered[1:] == ordered[:-1]]), np.uint64(0))
    maybe = np.flatnonzero(twice[np.searchsorted(twice[:-1], hashes)] == hashes)
    keys = [values[maybe] for values in fields]
    order = np.lexsort(keys)
    alike = np.ones(len(maybe), np.bool_)
    alike[:1] = False
    for key in keys:
        alike[1:] &= key[order[1:]] == key[order[:-1]]
    kept[maybe[order[alike]]] = False
    return kept
