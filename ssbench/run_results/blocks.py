"""Today's stat file, byte by byte: records, and blocks of results as columns.

The layout is described in ``doc/stat-files.rst``. This module turns rows into records and records
into :class:`~ssbench.results.ResultBlock`; it knows no file and no compression.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import starmap

import msgspec
import numpy as np
import numpy.typing as npt
from isal.isal_zlib import crc32

from ssbench.operations import OPERATIONS
from ssbench.results import Failure, ResultBlock, ResultRow, TextColumn
from ssbench.run_results.damage import DamageError
from ssbench.run_results.description import RunDescription, RunSummary

#: What the decompressed stream begins with; the version of the format and a line feed follow.
MAGIC = b"ssbench results "
VERSION = 1
PREAMBLE = MAGIC + b"%d\n" % VERSION

#: Kinds of record. A reader skips kinds that it does not know.
RUN, ROWS, END = b"RUN ", b"ROWS", b"END "
#: kind, bytes of the payload, CRC-32 of kind and payload.
RECORD_HEADER = struct.Struct("<4sII")
#: No writer makes longer records, so what claims more is damage.
MAX_RECORD_BYTES = 128 * 1024 * 1024
#: A writer begins a new block at this many results.
MAX_ROWS = 65536

_ROWS_HEADER = struct.Struct("<Iq")
_COLUMN_HEADER = struct.Struct("<BB")
_TEXT_HEADER = struct.Struct("<I")
_TEXT_WIDTH = 255


class Column(IntEnum):
    """The columns of a block of results."""

    OPERATION = 1
    SIZE_CLASS = 2
    WORKER = 3
    CONTAINER = 4
    OBJECT = 5
    SIZE = 6
    FIRST_BYTE = 7
    LAST_BYTE = 8
    COMPLETED = 9
    RETRIES = 10
    TRANS_ID_LENGTH = 11
    TRANS_ID = 12
    FAILURES = 13


#: A :data:`ssbench.results.ResultRow` packed; 55 bytes.
PACKED_ROW = struct.Struct("<BHQIIqdddI")
_PACKED_DTYPE = np.dtype(
    [
        ("operation", "u1"),
        ("size_class", "<u2"),
        ("worker", "<u8"),
        ("container", "<u4"),
        ("object", "<u4"),
        ("size", "<i8"),
        ("first_byte", "<f8"),
        ("last_byte", "<f8"),
        ("completed", "<f8"),
        ("retries", "<u4"),
    ]
)
#: The columns that are kept as they are packed.
_PLAIN = {
    Column.OPERATION: "operation",
    Column.SIZE_CLASS: "size_class",
    Column.WORKER: "worker",
    Column.CONTAINER: "container",
    Column.OBJECT: "object",
    Column.SIZE: "size",
    Column.RETRIES: "retries",
}

_json = msgspec.json.Encoder()
_run_decoder = msgspec.json.Decoder(RunDescription)
_failures_decoder = msgspec.json.Decoder(list[tuple[int, str | None, str, dict[str, int]]])


@dataclass(frozen=True, slots=True)
class Closing:
    """The payload of the closing record: how many results were written, and how many could not be."""

    results: int
    results_lost: int
    summary: RunSummary


_closing_decoder = msgspec.json.Decoder(Closing)


@dataclass(slots=True)
class PendingRows:
    """Rows on their way to a block: packed numbers, and beside them the few that have more.

    ``trans_ids`` holds (first row, ids); rows that are in no entry have none. ``failures`` is
    keyed by row.
    """

    rows: int = 0
    packed: bytearray = field(default_factory=bytearray)
    trans_ids: list[tuple[int, Sequence[str | None]]] = field(default_factory=list)
    failures: dict[int, Failure] = field(default_factory=dict)


def record(kind: bytes, payload: bytes) -> bytes:
    """Put the header in front of a payload."""
    return RECORD_HEADER.pack(kind, len(payload), crc32(payload, crc32(kind))) + payload


def run_record(run: RunDescription) -> bytes:
    """Encode the record that begins a file."""
    return record(RUN, _json.encode(_printable(msgspec.to_builtins(run))))


def closing_record(closing: Closing) -> bytes:
    """Encode the record that ends a file."""
    return record(END, _json.encode(_printable(msgspec.to_builtins(closing))))


def decode_run(payload: bytes) -> RunDescription:
    """Decode the payload of a RUN record; raises DamageError."""
    try:
        return _run_decoder.decode(payload)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise DamageError(f"the description of the run: {error}") from None


def decode_closing(payload: bytes) -> Closing:
    """Decode the payload of an END record; raises DamageError."""
    try:
        return _closing_decoder.decode(payload)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise DamageError(f"the summary of the run: {error}") from None


def pack_rows(pending: PendingRows) -> list[bytes]:
    """Turn rows into ROWS records of at most :data:`MAX_ROWS` results each."""
    rows = np.frombuffer(pending.packed, _PACKED_DTYPE)
    trans_ids: list[str | None] = []
    for first, ids in pending.trans_ids:
        trans_ids.extend([None] * (first - len(trans_ids)))
        trans_ids.extend(ids)
    records = []
    for start in range(0, len(rows), MAX_ROWS):
        part = rows[start : start + MAX_ROWS]
        failures = [
            (row - start, *failure)
            for row, failure in pending.failures.items()
            if start <= row < start + MAX_ROWS
        ]
        ids = trans_ids[start : start + MAX_ROWS]
        ids.extend([None] * (len(part) - len(ids) if ids else 0))
        records.append(record(ROWS, _block(part, ids, failures)))
    return records


def _block(
    rows: npt.NDArray[np.void],
    trans_ids: list[str | None],
    failures: list[tuple[int, str | None, str, dict[str, int]]],
) -> bytes:
    """Encode the payload of a ROWS record."""
    completed = np.rint(rows["completed"] * 1e9).astype(np.int64)
    steps = np.diff(completed, prepend=completed[:1])
    parts = [_ROWS_HEADER.pack(len(rows), int(completed[0]))]
    for column, name in _PLAIN.items():
        parts.append(_numbers(column, rows[name]))
    for column, name in ((Column.FIRST_BYTE, "first_byte"), (Column.LAST_BYTE, "last_byte")):
        # fmax prefers the number to NaN, so what was not measured becomes -1 nanosecond, written as 0.
        nanoseconds = np.rint(np.fmax(rows[name], -1e-9) * 1e9)
        parts.append(_numbers(column, (nanoseconds + 1).astype(np.int64)))
    parts.append(_numbers(Column.COMPLETED, (steps << 1) ^ (steps >> 63)))
    if trans_ids:
        text = "".join([text for text in trans_ids if text]).encode("utf-8", "replace")
        lengths = [0 if text is None else len(text) + 1 for text in trans_ids]
        if len(text) != sum(lengths) - sum(length > 0 for length in lengths):  # some are not ASCII
            lengths = [0 if text is None else len(text.encode("utf-8", "replace")) + 1 for text in trans_ids]
        parts.append(_numbers(Column.TRANS_ID_LENGTH, np.array(lengths, np.int64)))
        parts.append(_text(Column.TRANS_ID, text))
    if failures:
        parts.append(_text(Column.FAILURES, _json.encode(failures)))
    return b"".join(parts)


def _numbers(column: Column, values: npt.NDArray[np.int64]) -> bytes:
    """Encode numbers >= 0 in the fewest of 0, 1, 2, 4 or 8 bytes, all first bytes first.

    Bytes of the same weight stand together, so that they compress, at a tenth of the cost of
    compressing them.
    """
    largest = int(values.max())
    width = next(width for width in (0, 1, 2, 4, 8) if largest < 1 << 8 * width)
    header = _COLUMN_HEADER.pack(column, width)
    if width == 0:
        return header
    narrow = np.ascontiguousarray(values, dtype=f"<u{width}")
    return header + narrow.view(np.uint8).reshape(len(values), width).T.tobytes()


def _text(column: Column, data: bytes) -> bytes:
    return _COLUMN_HEADER.pack(column, _TEXT_WIDTH) + _TEXT_HEADER.pack(len(data)) + data


def unpack_rows(payload: bytes, size_classes: int) -> ResultBlock:
    """Decode the payload of a ROWS record of a run with that many size classes; raises DamageError."""
    try:
        return _unpack_rows(payload, size_classes)
    except DamageError:
        raise
    except (struct.error, LookupError, ValueError, msgspec.MsgspecError, RecursionError) as error:
        raise DamageError(f"a block of results: {error}") from None


def _unpack_rows(payload: bytes, size_classes: int) -> ResultBlock:
    count, base = _ROWS_HEADER.unpack_from(payload)
    if not 0 < count <= MAX_ROWS:
        raise DamageError(f"a block of {count:,} results")
    numbers: dict[int, npt.NDArray[np.int64]] = {}
    texts: dict[int, bytes] = {}
    position = _ROWS_HEADER.size
    while position < len(payload):
        column, width = _COLUMN_HEADER.unpack_from(payload, position)
        position += _COLUMN_HEADER.size
        if width == _TEXT_WIDTH:
            (size,) = _TEXT_HEADER.unpack_from(payload, position)
            position += _TEXT_HEADER.size
            texts[column] = payload[position : position + size]
        elif width in (0, 1, 2, 4, 8):
            size = count * width
            numbers[column] = _unshuffle(payload[position : position + size], count, width)
        else:
            raise DamageError(f"a column of width {width}")
        position += size
        if position > len(payload):
            raise DamageError("a column that is longer than its block")

    operation, size_class = numbers[Column.OPERATION], numbers[Column.SIZE_CLASS]
    if operation.max() >= len(OPERATIONS) or size_class.max() >= size_classes:
        raise DamageError("an operation or a size class that does not exist")
    steps = numbers[Column.COMPLETED]
    lengths = numbers.get(Column.TRANS_ID_LENGTH, np.zeros(count, np.int64)) - 1
    trans_ids = texts.get(Column.TRANS_ID, b"")
    if lengths.min() < -1 or np.maximum(lengths, 0).sum(dtype=np.float64) != len(trans_ids):
        raise DamageError("transaction ids of another length than they claim")
    failures = {}
    failed = np.zeros(count, np.bool_)
    for row, cause, detail, retried in _failures_decoder.decode(texts.get(Column.FAILURES, b"[]")):
        if row < 0:
            raise DamageError("a failure of no result")
        failed[row] = cause is not None
        failures[row] = Failure(cause, detail, retried)
    return ResultBlock(
        operation=operation.astype(np.uint8),
        size_class=size_class.astype(np.uint16),
        worker=numbers[Column.WORKER],
        container=numbers[Column.CONTAINER],
        object=numbers[Column.OBJECT],
        size=numbers[Column.SIZE],
        first_byte=_seconds(numbers[Column.FIRST_BYTE]),
        last_byte=_seconds(numbers[Column.LAST_BYTE]),
        completed=(base + np.cumsum((steps >> 1) ^ -(steps & 1))) / 1e9,
        retries=numbers[Column.RETRIES],
        failed=failed,
        trans_ids=TextColumn(trans_ids, lengths),
        failures=failures,
    )


def _unshuffle(data: bytes, count: int, width: int) -> npt.NDArray[np.int64]:
    """Undo :func:`_numbers`. Numbers beyond 2**63 come out negative: no writer makes them."""
    if width == 0:
        return np.zeros(count, np.int64)
    if len(data) != count * width:
        raise DamageError("a column that is longer than its block")
    planes = np.frombuffer(data, np.uint8).reshape(width, count)
    return np.ascontiguousarray(planes.T).view(f"<u{width}").ravel().astype(np.int64)


def _seconds(nanoseconds_and_one: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Latencies in seconds, NaN for 0. Divided, not multiplied: so n/1e9 comes back as written."""
    seconds = (nanoseconds_and_one - 1) / 1e9
    seconds[nanoseconds_and_one <= 0] = np.nan
    return seconds


def _printable(data: object) -> object:
    """Plain data whose texts are UTF-8: a path given on the command line may hold other bytes."""
    match data:
        case str():
            return data.encode("utf-8", "replace").decode()
        case dict():
            return {_printable(key): _printable(value) for key, value in data.items()}
        case list() | tuple():
            return [_printable(value) for value in data]
    return data


def pack_row_numbers(rows: Sequence[ResultRow]) -> bytes:
    """Pack the numbers of rows; 110 ns each, the cheapest way found from tuples to columns."""
    return b"".join(starmap(PACKED_ROW.pack, rows))
