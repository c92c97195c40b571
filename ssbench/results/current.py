"""The stat files of ssbench 1, of every version of the format: their bytes, and reading them while they grow.

``doc/stat-files.rst`` has the layout. :func:`encode_rows` turns a :class:`~ssbench.results.block.ResultBlock`
into the payload of a ROWS record, field by field of :data:`~ssbench.results.result_fields.FIELDS`;
:func:`decode_rows` does the reverse. Other records have what is known of the run, as JSON. Each record has a
header with a checksum.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, cast

import msgspec
import numpy as np
import numpy.typing as npt
from isal import isal_zlib
from isal.isal_zlib import crc32

from ssbench.base.untrusted import copy_plain
from ssbench.results.block import Failure, ResultBlock, TextColumn, is_constant_column, make_constant_column
from ssbench.results.cluster_observation import Observation
from ssbench.results.reading import DamageError, Format, RunResults
from ssbench.results.result_fields import FIELDS, FieldKind, ResultField
from ssbench.results.run_description import RunDescription, RunSummary
from ssbench.scenario.operations import (
    MAX_OPERATION_CODE,
    OPERATIONS,
    OperationKind,
    OperationTable,
    remove_secrets,
)

#: A writer begins a new block at this many results.
MAX_BLOCK_ROWS = 65536

_ROWS_HEADER = struct.Struct("<Iq")
_COLUMN_HEADER = struct.Struct("<BB")
_BASE_FORMAT = struct.Struct("<q")
_TEXT_HEADER = struct.Struct("<I")
_TEXT_WIDTH_CODE = 255
#: Added to the width of a column whose numbers are counted from a base that precedes them.
_HAS_BASE_FLAG = 16
_WIDTHS = (0, 1, 2, 4, 8)

_Numbers = npt.NDArray[np.int64]

_NO_CODES: Mapping[int, int] = {}

_encoder = msgspec.json.Encoder()
_failures_decoder = msgspec.json.Decoder(list[tuple[int, str | None, str, dict[str, int]]])


def encode_rows(block: ResultBlock) -> bytes:
    """Return the payload of a ROWS record of 1 to :data:`MAX_BLOCK_ROWS` results."""
    given = block.given
    parts = [_ROWS_HEADER.pack(len(block), int(_nanoseconds(block.completed[:1])[0]))]
    for field in FIELDS.values():
        if field.kind is FieldKind.FAILURES:
            if block.failures:
                failures = [(row, *failure) for row, failure in block.failures.items()]
                parts.append(_encode_text(field.number, _encoder.encode(failures)))
        elif field.name in given:
            parts.extend(_encode_column(field, block))
    return b"".join(parts)


def _encode_column(field: ResultField, block: ResultBlock) -> Iterator[bytes]:
    column = getattr(block, field.name)
    match field.kind:
        case FieldKind.NUMBER if (
            field.derive and field.default is not None and (column == field.default).all()
        ):
            return  # as if it had not been given
        case FieldKind.NUMBER if field.derive:
            yield _encode_numbers(field.number, column.astype(np.int64) - field.derive(block))
        case FieldKind.NUMBER:
            yield _encode_numbers(field.number, column)
        case FieldKind.SECONDS:
            # fmax prefers the number to NaN, so what was not measured becomes -1 nanosecond, written as 0.
            yield _encode_numbers(field.number, _nanoseconds(np.fmax(column, -1e-9)) + 1)
        case FieldKind.COMPLETION:
            moments = _nanoseconds(column)
            yield _encode_numbers(field.number, _zigzag(np.diff(moments, prepend=moments[:1])))
        case FieldKind.MOMENT:
            yield _encode_numbers(field.number, _encode_moments(field, block, column))
        case FieldKind.TEXT:
            lengths, text = _join_texts(column)
            yield _encode_numbers(field.number, lengths)
            yield _encode_text(field.text_number, text)


def _encode_moments(field: ResultField, block: ResultBlock, column: npt.NDArray[np.float64]) -> _Numbers:
    """Return how far moments are from what they are relative to: zigzag + 1, 0 where not known."""
    steps = _nanoseconds(np.nan_to_num(column)) - _reference_moments(field, block)
    return np.where(np.isnan(column), 0, _zigzag(steps) + 1)


def _reference_moments(field: ResultField, block: ResultBlock) -> _Numbers:
    """Return what moments are relative to: what is derived, the completion where that is not known."""
    derived = field.derive(block) if field.derive else block.completed
    return _nanoseconds(np.where(np.isnan(derived), block.completed, derived))


def _join_texts(texts: Sequence[str | None]) -> tuple[_Numbers, bytes]:
    """Return the length of each text + 1, 0 for None, and all texts in one."""
    data = "".join([text for text in texts if text]).encode("utf-8", "replace")
    lengths = [0 if text is None else len(text) + 1 for text in texts]
    if len(data) != sum(lengths) - sum(length > 0 for length in lengths):  # some are not ASCII
        lengths = [0 if text is None else len(text.encode("utf-8", "replace")) + 1 for text in texts]
    return np.array(lengths, np.int64), data


def _encode_numbers(number: int, values: npt.NDArray[Any]) -> bytes:
    """Encode a column of numbers in the fewest of 0, 1, 2, 4 or 8 bytes each, all first bytes first.

    They are counted from the least one where that takes fewer bytes; equal numbers take none. Bytes of the
    same weight stand together, so that they compress, at a tenth of the cost of compressing them.
    """
    if is_constant_column(values):
        lowest = highest = int(values[0])
    else:
        values = np.ascontiguousarray(values)  # of packed rows; all that follows is faster so
        lowest, highest = int(values.min()), int(values.max())
    width = _choose_width(highest - lowest)
    if lowest >= 0 and _choose_width(highest) == width:
        header = _COLUMN_HEADER.pack(number, width)
    else:
        header = _COLUMN_HEADER.pack(number, width | _HAS_BASE_FLAG) + _BASE_FORMAT.pack(lowest)
        if width:
            values = values.astype(np.uint64) - np.array(lowest).astype(np.uint64)  # modulo 2**64
    if width == 0:
        return header
    narrow = np.ascontiguousarray(values, dtype=f"<u{width}")
    return header + narrow.view(np.uint8).reshape(len(values), width).T.tobytes()


def _choose_width(largest: int) -> int:
    return next(width for width in _WIDTHS if largest < 1 << 8 * width)


def _encode_text(number: int, data: bytes) -> bytes:
    return _COLUMN_HEADER.pack(number, _TEXT_WIDTH_CODE) + _TEXT_HEADER.pack(len(data)) + data


def decode_rows(payload: bytes, size_classes: int, operations: OperationTable = OPERATIONS) -> ResultBlock:
    """Decode the payload of a ROWS record of a run with that many size classes; raises DamageError.

    ``operations`` are those that the results may be of.
    """
    try:
        with np.errstate(invalid="ignore"):  # numbers that no writer makes
            return _decode_fields(payload, size_classes, operations)
    except DamageError:
        raise
    except (struct.error, LookupError, ValueError, msgspec.MsgspecError, RecursionError) as error:
        raise DamageError(f"a block of results: {error}") from None


def _decode_fields(payload: bytes, size_classes: int, operations: OperationTable) -> ResultBlock:
    count, base = _ROWS_HEADER.unpack_from(payload)
    if not 0 < count <= MAX_BLOCK_ROWS:
        raise DamageError(f"a block of {count:,} results")
    numbers, spans, texts = _split_columns(payload, count)
    failures = {}
    for row, cause, detail, retried in _failures_decoder.decode(texts.get(FIELDS["failures"].number, b"[]")):
        if not 0 <= row < count:
            raise DamageError("a failure of no result")
        failures[row] = Failure(cause, detail, retried)
    columns: dict[str, Any] = {}
    block = ResultBlock(count, columns, failures)
    for field in FIELDS.values():
        if field.number in numbers:
            column = _decode_column(field, numbers[field.number], texts, base, block)
            columns[field.name] = _check_column(field, column, spans[field.number])
    known = _is_known(operations.drawn)
    for name, values in (("operation", len(known)), ("size_class", size_classes)):
        column = getattr(block, name)
        if column.min() < 0 or column.max() >= values:
            raise DamageError("an operation or a size class that does not exist")
    if not known[block.operation].all():
        raise DamageError("an operation that this version of ssbench does not know")
    if "completed" not in columns:
        raise DamageError("results without their completion")
    return block


def _check_column(field: ResultField, column: Any, span: tuple[int, int]) -> Any:
    """Return a column; raises DamageError where a number in it cannot be one of the field.

    ``span`` is from which number to which its bytes can be. Most columns are of so few bytes that none of
    their numbers needs a look.
    """
    if field.kind is FieldKind.NUMBER:
        least, most = _allowed_range(field)
        if not field.derive and least <= span[0] and span[1] <= most:
            return column
        if column.min() < least or column.max() > most:
            raise DamageError(f"{field.name}: a number that cannot be")
    return column


@cache
def _allowed_range(field: ResultField) -> tuple[int, int]:
    """Return the least and the largest number that a field can have.

    They are those of its type, and for sizes what a float holds exactly; ids of workers may be any.
    """
    bits = 8 * struct.calcsize(field.packed)
    if field.name == "worker":
        return -(2**63), 2**63 - 1
    return (0, 2**bits - 1) if field.packed.isupper() else (-(2 ** min(bits - 1, 53)), 2 ** min(bits - 1, 53))


@cache
def _is_known(operations: tuple[OperationKind, ...]) -> npt.NDArray[np.bool_]:
    """Return for each code whether one of the operations has it."""
    known = np.zeros(MAX_OPERATION_CODE + 1, np.bool_)
    known[[operation.code for operation in operations]] = True
    return known


class _Column(NamedTuple):
    """Where a column stands in a payload."""

    number: int
    width: int
    base: int
    start: int  # where it begins
    data: int  # where its data begin
    end: int  # where it ends

    @property
    def span(self) -> tuple[int, int]:
        """The least and the largest number that a column of this width can have."""
        return self.base, self.base + (1 << 8 * self.width) - 1

    def numbers(self, payload: bytes, count: int) -> _Numbers:
        return _unshuffle(payload[self.data : self.end], count, self.width, self.base)


def _walk_columns(payload: bytes, count: int) -> Iterator[_Column]:
    """Yield the columns of a payload."""
    position = _ROWS_HEADER.size
    while position < len(payload):
        start, base = position, 0
        number, width = _COLUMN_HEADER.unpack_from(payload, position)
        position += _COLUMN_HEADER.size
        if width == _TEXT_WIDTH_CODE:
            (size,) = _TEXT_HEADER.unpack_from(payload, position)
            position += _TEXT_HEADER.size
        elif width & ~_HAS_BASE_FLAG in _WIDTHS:
            if width & _HAS_BASE_FLAG:
                (base,) = _BASE_FORMAT.unpack_from(payload, position)
                position += _BASE_FORMAT.size
                width &= ~_HAS_BASE_FLAG
            size = count * width
        else:
            raise DamageError(f"a column of width {width}")
        data, position = position, position + size
        if position > len(payload):
            raise DamageError("a column that is longer than its block")
        yield _Column(number, width, base, start, data, position)


def _split_columns(
    payload: bytes, count: int
) -> tuple[dict[int, _Numbers], dict[int, tuple[int, int]], dict[int, bytes]]:
    """Return the columns of numbers, from which number to which each can be, and the columns of text."""
    numbers: dict[int, _Numbers] = {}
    spans: dict[int, tuple[int, int]] = {}
    texts: dict[int, bytes] = {}
    for column in _walk_columns(payload, count):
        if column.width == _TEXT_WIDTH_CODE:
            texts[column.number] = payload[column.data : column.end]
        else:
            numbers[column.number] = column.numbers(payload, count)
            spans[column.number] = column.span
    return numbers, spans, texts


def read_first_moment(payload: bytes) -> int:
    """Return when the first result of a payload ended, in nanoseconds since 1970; raises DamageError."""
    return _read_head(payload)[1]


def count_rows(payload: bytes) -> int:
    """Return how many results a payload claims to have; raises DamageError."""
    return _read_head(payload)[0]


def _read_head(payload: bytes) -> tuple[int, int]:
    if len(payload) < _ROWS_HEADER.size:
        raise DamageError("a block of results without a beginning")
    count, base = _ROWS_HEADER.unpack_from(payload)
    return count, base


#: What makes other numbers of those of a column.
ChangeNumbers = Callable[[_Numbers], _Numbers]


def change_columns(payload: bytes, changes: Mapping[str, ChangeNumbers]) -> bytes:
    """Return a payload with other numbers in the columns of these fields; all others are copied.

    Fields must be numbers that are not derived from others. Raises DamageError.
    """
    count, _ = _read_head(payload)
    if not 0 < count <= MAX_BLOCK_ROWS:
        raise DamageError(f"a block of {count:,} results")
    left = {FIELDS[name].number: (FIELDS[name], change) for name, change in changes.items()}
    parts = [payload[: _ROWS_HEADER.size]]
    for column in _walk_columns(payload, count):
        _, change = left.pop(column.number, (None, None))
        if change is None:
            parts.append(payload[column.start : column.end])
        else:
            parts.append(_encode_numbers(column.number, change(column.numbers(payload, count))))
    for field, change in left.values():
        parts.append(
            _encode_numbers(field.number, change(make_constant_column(int(field.default or 0), count)))
        )
    return b"".join(parts)


def _decode_column(
    field: ResultField, numbers: _Numbers, texts: dict[int, bytes], base: int, block: ResultBlock
) -> Any:
    match field.kind:
        case FieldKind.SECONDS:
            return _seconds(numbers)
        case FieldKind.COMPLETION:
            return (base + np.cumsum(_unzigzag(numbers))) / 1e9
        case FieldKind.MOMENT:
            moments = _reference_moments(field, block) + _unzigzag(numbers - 1)
            return np.where(numbers <= 0, np.nan, moments / 1e9)
        case FieldKind.TEXT:
            data = texts.get(field.text_number, b"")
            lengths = numbers - 1
            if lengths.min() < -1 or np.maximum(lengths, 0).sum(dtype=np.float64) != len(data):
                raise DamageError(f"{field.name}: texts of another length than they claim")
            return TextColumn(data, lengths)
    return numbers + field.derive(block) if field.derive else numbers


def _unshuffle(data: bytes, count: int, width: int, base: int) -> _Numbers:
    """Undo :func:`_encode_numbers`. Numbers beyond 2**63 come out negative: no writer makes them."""
    if width == 0:
        return make_constant_column(base, count)
    if len(data) != count * width:
        raise DamageError("a column that is longer than its block")
    planes = np.frombuffer(data, np.uint8).reshape(width, count)
    values = np.ascontiguousarray(planes.T).view(f"<u{width}").ravel().astype(np.int64)
    return values + np.int64(base) if base else values


def _nanoseconds(seconds: npt.NDArray[np.float64]) -> _Numbers:
    return np.rint(seconds * 1e9).astype(np.int64)


def _seconds(nanoseconds_and_one: _Numbers) -> npt.NDArray[np.float64]:
    """Latencies in seconds, NaN for 0. Divided, not multiplied: so n/1e9 comes back as written."""
    seconds: npt.NDArray[np.float64] = (nanoseconds_and_one - 1) / 1e9
    seconds[nanoseconds_and_one <= 0] = np.nan
    return seconds


def _zigzag(values: _Numbers) -> _Numbers:
    """Turn 0, -1, 1, -2, ... into 0, 1, 2, 3, ..."""
    return (values << 1) ^ (values >> 63)


def _unzigzag(values: _Numbers) -> _Numbers:
    return (values >> 1) ^ -(values & 1)


# -- Headers, and the records in JSON --------------------------------------------------------------


#: What the decompressed stream begins with; the version of the format and a line feed follow.
STAT_FILE_MAGIC = b"ssbench results "
STAT_FILE_VERSION = 2
FILE_PREAMBLE = STAT_FILE_MAGIC + b"%d\n" % STAT_FILE_VERSION

#: Kinds of record. A reader skips kinds that it does not know.
RUN_KIND, ROWS_KIND, CLUSTER_KIND, END_KIND = b"RUN ", b"ROWS", b"CLUS", b"END "
#: kind, bytes of the payload, CRC-32 of kind and payload.
RECORD_HEADER = struct.Struct("<4sII")
#: No writer makes longer records, so what claims more is damage.
MAX_RECORD_BYTES = 128 * 1024 * 1024

_run_decoder = msgspec.json.Decoder(RunDescription)
_cluster_decoder = msgspec.json.Decoder(Observation)


@dataclass(frozen=True, slots=True)
class ClosingRecord:
    """The payload of the closing record: how many results were written, and how many could not be."""

    results: int
    results_lost: int
    summary: RunSummary


_closing_decoder = msgspec.json.Decoder(ClosingRecord)


def encode_record(kind: bytes, payload: bytes) -> bytes:
    """Put the header in front of a payload."""
    return RECORD_HEADER.pack(kind, len(payload), crc32(payload, crc32(kind))) + payload


def encode_run(run: RunDescription) -> bytes:
    """Encode the record that begins a file, without the secrets among the header fields of its scenario."""
    return encode_record(RUN_KIND, _encoder.encode(_make_printable(remove_secrets(msgspec.to_builtins(run)))))


def encode_closing(closing: ClosingRecord) -> bytes:
    """Encode the record that ends a file, without what was seen of the cluster."""
    plain = msgspec.to_builtins(replace(closing, summary=replace(closing.summary, cluster=None)))
    del plain["summary"]["cluster"]
    return encode_record(END_KIND, _encoder.encode(_make_printable(plain)))


def encode_cluster(cluster: Observation) -> bytes:
    """Encode what was seen of the cluster."""
    return encode_record(CLUSTER_KIND, _encoder.encode(cluster))


def decode_cluster(payload: bytes) -> Observation | None:
    """Decode the payload of a CLUS record; None where it is of another version of ssbench."""
    try:
        return _cluster_decoder.decode(payload)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def decode_run(payload: bytes) -> RunDescription:
    """Decode the payload of a RUN record; raises DamageError."""
    try:
        run = _run_decoder.decode(payload)
        _ = run.scenario.operation_table  # raises ValueError
        # Files of earlier versions have secrets.
        data, options = copy_plain(remove_secrets(run.scenario.data)), copy_plain(run.options)
        return replace(
            run,
            scenario=replace(run.scenario, data=cast("dict[str, Any]", data)),
            options=cast("dict[str, object]", options),
        )
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise DamageError(f"the description of the run: {error}") from None


def decode_closing(payload: bytes) -> ClosingRecord:
    """Decode the payload of an END record; raises DamageError."""
    try:
        return _closing_decoder.decode(payload)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise DamageError(f"the summary of the run: {error}") from None


def _make_printable(data: object) -> object:
    """Plain data whose texts are UTF-8: a path given on the command line may hold other bytes."""
    match data:
        case str():
            return data.encode("utf-8", "replace").decode()
        case dict():
            return {_make_printable(key): _make_printable(value) for key, value in data.items()}
        case list() | tuple():
            return [_make_printable(value) for value in data]
    return data


# -- Reading a file --------------------------------------------------------------------------------


_ANOTHER_FILE_TEXT = "another stat file follows in this file, as after 'cat A B'"

_GZIP_WINDOW_BITS = 31  # zlib's window of 15 bits, in the gzip format
_CHUNK_BYTES = 4 * 1024 * 1024
#: isal's stubs call the class an instance.
_INFLATE_ERROR = cast("type[Exception]", isal_zlib.error)


class CurrentResults(RunResults):
    """A stat file of ssbench 1."""

    current: ClassVar[bool] = True
    #: Whether something follows the end of the run.
    followed = False

    def _read_run(self) -> RunDescription:
        head = self._stream.peek(len(STAT_FILE_MAGIC) + 8)
        version, line_feed, _ = head[len(STAT_FILE_MAGIC) :].partition(b"\n")
        if not line_feed or not version.isdigit():
            raise DamageError("a stat file of ssbench that is damaged at its beginning")
        if int(version) > STAT_FILE_VERSION:
            raise DamageError(
                f"written in format {int(version)} by a newer ssbench; this one reads up to"
                f" format {STAT_FILE_VERSION}"
            )
        self._stream.read(len(STAT_FILE_MAGIC) + len(version) + 1)
        kind, payload = self._record() or (b"", b"")
        if kind != RUN_KIND:
            raise DamageError("a stat file of ssbench without the description of its run")
        return decode_run(payload)

    def _read_blocks(self) -> Iterator[ResultBlock]:
        size_classes, operations = len(self.size_classes), self.run.scenario.operation_table
        for payload in self.payloads():
            yield decode_rows(payload, size_classes, operations)

    def payloads(self) -> Iterator[bytes]:
        """Yield the payload of each record of results, then read the summary; raises DamageError."""
        cluster, count = None, 0
        while (record := self._record()) is not None:
            kind, payload = record
            if kind == ROWS_KIND:
                count += count_rows(payload)
                yield payload
            elif kind == CLUSTER_KIND:
                cluster = decode_cluster(payload)
                if cluster is None:
                    self.warnings.append(
                        "what was seen of the cluster cannot be read by this version of ssbench"
                    )
            elif kind == END_KIND:
                closing = decode_closing(payload)
                self.summary = replace(closing.summary, cluster=cluster)
                self.results_lost = closing.results_lost
                self.warnings.extend(list_file_warnings(closing, self.run, self.results_read))
                self._warn_of_what_follows()
                if count != closing.results:
                    raise DamageError(f"its end says {closing.results:,} results")
                return
        self.warnings.append(
            "the run is still under way, was killed, or its disk was full: its summary is missing, and"
            " perhaps results"
        )

    def _warn_of_what_follows(self) -> None:
        """Warn of what stands after the end of the run: another run, where files were put together."""
        rest = self._stream.peek(len(STAT_FILE_MAGIC))
        self.followed = bool(rest)
        if rest == STAT_FILE_MAGIC:
            self.warnings.insert(
                0,
                f"{_ANOTHER_FILE_TEXT}: this is about the first of them only; report on each by itself, or "
                "on all with 'report-scenario -s A B'",
            )
        elif rest:
            self.warnings.insert(0, "something that is no part of the run follows its end in the stat file")

    def _record(self) -> tuple[bytes, bytes] | None:
        """Return kind and payload of the next record, None at the end; raises DamageError."""
        header = self._stream.read(RECORD_HEADER.size)
        if not header:
            if self._stream.damage:
                raise DamageError(self._stream.damage)
            return None
        if STAT_FILE_MAGIC.startswith(header):
            raise DamageError(f"{_ANOTHER_FILE_TEXT}, and the first has no end")
        if len(header) < RECORD_HEADER.size:
            raise DamageError("the file is cut off")
        kind, size, checksum = RECORD_HEADER.unpack(header)
        if size > MAX_RECORD_BYTES:
            raise DamageError(f"a record claims {size:,} bytes")
        payload = self._stream.read(size)
        if len(payload) < size:
            raise DamageError("the file is cut off")
        if crc32(payload, crc32(kind)) != checksum:
            raise DamageError("a record does not match its checksum")
        return kind, payload


def list_file_warnings(closing: ClosingRecord, run: RunDescription, results: int) -> Iterator[str]:
    """Yield the warnings of a run that has ended, of which so many results were read."""
    if closing.summary.interrupted:
        scenario = run.scenario
        if scenario.run_seconds is not None:
            yield f"the run was interrupted before its {scenario.run_seconds:g} s were over"
        else:
            yield f"the run was interrupted after {results:,} of {scenario.operation_count:,} operations"
    yield from closing.summary.warnings
    if closing.results_lost:
        yield f"results that could not be written to the stat file: {closing.results_lost:,}"


FORMAT = Format("ssbench 1", lambda head: head.startswith(STAT_FILE_MAGIC), CurrentResults)


class ResultsFollower:
    """Reads on in a stat file of this version of ssbench, which its master is writing.

    ``run`` is None until it is there, ``summary`` until the run has ended; ``results`` is how many were read.
    Raises OSError where the file cannot be opened. The writer may take back what it wrote where a disk is
    full: :meth:`blocks` raises DamageError then, and the file is to be read as a whole when it is complete.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.run: RunDescription | None = None
        self.summary: RunSummary | None = None
        self.warnings: list[str] = []
        self._file = path.open("rb")
        self._member: Any = None
        self._read = 0
        self._data = bytearray()
        self._begun = False
        self.results = 0
        self._cluster: Observation | None = None
        self._operations = OPERATIONS

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def blocks(self) -> Iterator[ResultBlock]:
        """Yield the results that came since this was last called; raises DamageError."""
        while self.summary is None and self._more():
            while (record := self._record()) is not None:
                yield from self._take(*record)
        if self.summary is not None:
            self.close()

    def _more(self) -> bool:
        """Decompress what is new; return whether there was something."""
        if self.path.stat().st_size < self._read:
            raise DamageError("the end of the file was taken back")
        data = self._file.read(_CHUNK_BYTES)
        self._read += len(data)
        found = bool(data)
        try:
            while data:
                if self._member is None:
                    self._member = isal_zlib.decompressobj(_GZIP_WINDOW_BITS)
                self._data += self._member.decompress(data)
                data = self._member.unused_data
                if self._member.eof:
                    self._member = None
        except _INFLATE_ERROR as error:
            raise DamageError(str(error)) from None
        return found

    def _record(self) -> tuple[bytes, bytes] | None:
        """Return kind and payload of the next record; None where it is not whole yet."""
        if not self._begun:
            if len(self._data) < len(FILE_PREAMBLE):
                return None
            if not self._data.startswith(FILE_PREAMBLE):
                raise DamageError("not a stat file of this version of ssbench")
            del self._data[: len(FILE_PREAMBLE)]
            self._begun = True
        if len(self._data) < RECORD_HEADER.size:
            return None
        kind, size, checksum = RECORD_HEADER.unpack_from(self._data)
        if size > MAX_RECORD_BYTES:
            raise DamageError(f"a record claims {size:,} bytes")
        end = RECORD_HEADER.size + size
        if len(self._data) < end:
            return None
        payload = bytes(self._data[RECORD_HEADER.size : end])
        if crc32(payload, crc32(kind)) != checksum:
            raise DamageError("a record does not match its checksum")
        del self._data[:end]
        return kind, payload

    def _take(self, kind: bytes, payload: bytes) -> Iterator[ResultBlock]:
        if kind == RUN_KIND:
            self.run = decode_run(payload)
            self._operations = self.run.scenario.operation_table
        elif kind == ROWS_KIND and self.run is not None:
            block = decode_rows(payload, len(self.run.scenario.size_classes), self._operations)
            self.results += len(block)
            yield block
        elif kind == CLUSTER_KIND:
            self._cluster = decode_cluster(payload)
        elif kind == END_KIND and self.run is not None:
            closing = decode_closing(payload)
            if closing.results != self.results:
                raise DamageError("results were taken back")
            self.summary = replace(closing.summary, cluster=self._cluster)
            self.warnings += list_file_warnings(closing, self.run, self.results)
