"""What the formats of ssbench 0.x have in common: result maps, and the scenario's own content.

Each result of those formats is a map with all its keys. To make a dictionary of each, and to look at every
value by itself, is most of what a report on such a file costs. So usual results of ssbench 0.2.14 to 0.3.9
are decoded many at once (:func:`decode_documents`): msgspec makes records of the few keys that are wanted,
and checks their types on the way. Whatever is unusual is decoded map by map (:class:`OldResultColumns`).
"""

from __future__ import annotations

import math
import struct
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, groupby, islice, pairwise
from typing import Any, NamedTuple, cast

import msgpack
import msgspec
import numpy as np
import numpy.typing as npt

from ssbench.base.untrusted import TooMuchError, copy_plain
from ssbench.results.block import Failure, ResultBlock, TextColumn
from ssbench.results.reading import MAX_SIZE_CLASSES, DamageError, RunResults
from ssbench.results.run_description import RunDescription
from ssbench.scenario.model import Scenario, SizeClass, Weights
from ssbench.scenario.operations import OPERATIONS

#: Besides DecodeError and ValidationError of msgspec: of texts that are not UTF-8, of nesting without end.
_UNUSUAL_ERRORS = (msgspec.MsgspecError, ValueError, RecursionError)

_ARRAY_32_FORMAT = struct.Struct(">BI")
_CODE_OF_ARRAY_32 = 0xDD


class UsualResult(msgspec.Struct, gc=False):
    """What is wanted of a result; those with an exception are not usual."""

    type: str
    size_str: str
    worker_id: int
    completed_at: float
    last_byte_latency: float | None = None
    first_byte_latency: float | None = None
    container: str = ""
    name: str = ""
    size: int | None = None
    retries: int | None = None
    trans_id: str | None = None
    exception: object = msgspec.UNSET


_usual_decoder = msgspec.msgpack.Decoder(list[list[UsualResult]])


def find_document_ends(data: bytes) -> list[int]:
    """Return where each document in ``data`` ends, up to the first that is not whole, or damaged."""
    unpacker = msgpack.Unpacker(max_buffer_size=len(data) or 1)
    unpacker.feed(data)
    ends = []
    try:
        while True:
            unpacker.skip()
            ends.append(unpacker.tell())
    except (ValueError, msgpack.UnpackException, RecursionError):
        return ends


class DecodedDocuments(NamedTuple):
    """Documents that stand together."""

    start: int
    end: int
    documents: int
    results: list[UsualResult] | None  # None: one of them is unusual


def decode_documents(data: bytes, ends: Sequence[int]) -> Iterator[DecodedDocuments]:
    """Yield all documents in ``data``, which should be arrays of maps; ``ends`` is where each ends."""
    head = _ARRAY_32_FORMAT.pack(_CODE_OF_ARRAY_32, len(ends))
    try:
        documents = _usual_decoder.decode(head + data[: ends[-1]])
    except _UNUSUAL_ERRORS:
        yield DecodedDocuments(0, ends[-1], len(ends), None)
        return
    places = zip(pairwise((0, *ends)), documents, strict=True)
    for usual, group in groupby(places, lambda each: all(map(_has_no_exception, each[1]))):
        found = list(group)
        (start, _), (_, end) = found[0][0], found[-1][0]
        results = [result for _, document in found for result in document] if usual else None
        yield DecodedDocuments(start, end, len(found), results)


def _has_no_exception(result: UsualResult) -> bool:
    return result.exception is msgspec.UNSET


# -- Any result maps -------------------------------------------------------------------------------


#: Results a block.
BLOCK_ROWS = 8192

_CODES_BY_TYPE = {operation.stat_type: operation.code for operation in OPERATIONS if operation.stat_type}
#: Fields of old results that hold secrets, and are dropped; genuine ones hold a dozen values.
_SECRET_FIELDS = ("token", "storage_url", "auth_kwargs")
_MAX_SECRETS = 1000
#: Characters of a name, and of what is said of a failure, that are kept.
_MAX_NAME_CHARACTERS = 1024
_MAX_DETAIL_CHARACTERS = 10_000
#: Times beyond the year 5138 are damage; a sum over them would not be a number.
_LATEST_SECOND = 1e11
#: Ids of workers are less than this, sizes and other whole numbers (as exact as floats are), and retries.
_MAX_WORKER_IDS, _MAX_EXACT_NUMBER, _MAX_RETRIES = 2**63, 2**53, 2**32


#: Operation, size class, worker, size, latencies to the first and the last byte, completion, retries.
_Row = tuple[int, int, int, int, float, float, float, int]


class OldResultColumns:
    """Collects result maps into blocks.

    ``size_classes`` and ``worker_names`` are those of the :class:`RunResults` and grow here;
    ``skipped`` counts maps that are no result.
    """

    def __init__(self, size_classes: list[str], worker_names: dict[int, str]) -> None:
        self.skipped = 0
        self._size_classes = size_classes
        self._class_index = {name: index for index, name in enumerate(size_classes)}
        self._worker_names = worker_names
        self._worker_ids: dict[str, int] = {}
        self._clear()

    def _clear(self) -> None:
        self._rows: list[_Row] = []
        self._containers: list[str] = []
        self._objects: list[str] = []
        self._trans_ids: list[str | None] = []
        self._failures: dict[int, Failure] = {}

    def add(self, result: object) -> None:
        """Take a result, or count it as skipped."""
        if not isinstance(result, Mapping):
            self.skipped += 1
            return
        operation = _CODES_BY_TYPE.get(_cut_text(result.get("type")))
        size_class = result.get("size_str")
        size_class = size_class[:_MAX_NAME_CHARACTERS] if isinstance(size_class, str) else None
        worker = result.get("worker_id")
        completed = _read_number(result.get("completed_at"))
        last_byte = _read_latency(result.get("last_byte_latency"))
        exception = result.get("exception")
        if (
            operation is None
            or size_class is None
            or not isinstance(worker, (int, str))
            or not abs(completed) < _LATEST_SECOND
            or (exception is None and math.isnan(last_byte))
            or (size_class not in self._class_index and len(self._size_classes) >= MAX_SIZE_CLASSES)
        ):
            self.skipped += 1
            return
        index = self._class_index.get(size_class)
        if index is None:
            index = self._class_index[size_class] = len(self._size_classes)
            self._size_classes.append(size_class)
        row = (
            operation,
            index,
            self._worker(worker),
            _read_integer(result.get("size"), -1),
            _read_latency(result.get("first_byte_latency")),
            last_byte,
            completed,
            min(_read_integer(result.get("retries"), 0), _MAX_RETRIES - 1),
        )
        if exception is not None:
            self._failures[len(self._rows)] = _make_failure(
                _cut_text(exception, _MAX_DETAIL_CHARACTERS), result
            )
        self._rows.append(row)
        self._containers.append(_cut_text(result.get("container")))
        self._objects.append(_cut_text(result.get("name")))
        trans_id = result.get("trans_id")
        self._trans_ids.append(None if trans_id is None else _cut_text(trans_id))

    def extend(self, results: Sequence[UsualResult]) -> bool:
        """Take results at once; where one of them is unusual, take none and return False."""
        operations = [_CODES_BY_TYPE.get(each.type) for each in results]
        classes = [self._class_index.get(each.size_str) for each in results]
        workers = [each.worker_id for each in results]
        sizes = [-1 if each.size is None else each.size for each in results]
        first = _latencies([each.first_byte_latency for each in results])
        last = _latencies([each.last_byte_latency for each in results])
        completed = [each.completed_at for each in results]
        retries = [each.retries or 0 for each in results]
        containers = [each.container for each in results]
        names = [each.name for each in results]
        trans_ids = [each.trans_id for each in results]
        if (
            not results
            or None in operations
            or None in classes
            or not _are_within(workers, 0, _MAX_WORKER_IDS)
            or not _are_within(sizes, -1, _MAX_EXACT_NUMBER)
            or not _are_within(retries, 0, _MAX_RETRIES)
            or not (np.abs(completed) < _LATEST_SECOND).all()
            or not _are_latencies(np.array(last)).all()
            or not (_are_latencies(known := np.array(first)) | np.isnan(known)).all()
            or max(map(len, chain(containers, names, filter(None, trans_ids)))) > _MAX_NAME_CHARACTERS
        ):
            return False
        rows = zip(operations, classes, workers, sizes, first, last, completed, retries, strict=True)
        self._rows.extend(cast("Iterator[_Row]", rows))
        self._containers += containers
        self._objects += names
        self._trans_ids += trans_ids
        return True

    @property
    def full(self) -> bool:
        """Whether there is enough for a block."""
        return len(self._rows) >= BLOCK_ROWS

    def take(self) -> ResultBlock | None:
        """Return what was collected as a block, None when it is nothing, and begin anew."""
        if not self._rows:
            return None
        operation, size_class, worker, size, first_byte, last_byte, completed, retries = zip(
            *self._rows, strict=True
        )
        block = ResultBlock(
            len(self._rows),
            {
                "operation": np.array(operation, np.uint8),
                "size_class": np.array(size_class, np.uint16),
                "worker": np.array(worker, np.int64),
                "container": TextColumn.of(self._containers),
                "object": TextColumn.of(self._objects),
                "size": np.array(size, np.int64),
                "first_byte": np.array(first_byte),
                "last_byte": np.array(last_byte),
                "completed": np.array(completed),
                "retries": np.array(retries, np.int64),
                "trans_id": TextColumn.of(self._trans_ids),
            },
            self._failures,
        )
        self._clear()
        return block

    def _worker(self, worker: int | str) -> int:
        """Return the id that stands for a worker: its own, or a negative one for a text."""
        if isinstance(worker, int) and 0 <= worker < _MAX_WORKER_IDS:
            return int(worker)
        name = str(worker)[:_MAX_NAME_CHARACTERS]
        if name not in self._worker_ids:
            self._worker_ids[name] = -1 - len(self._worker_ids)
            self._worker_names[self._worker_ids[name]] = name
        return self._worker_ids[name]


class OldRunResults(RunResults):
    """What the readers of these formats share: maps are collected into blocks."""

    def _read_blocks(self) -> Iterator[ResultBlock]:
        columns = OldResultColumns(self.size_classes, self.worker_names)
        damage = None
        try:
            for _ in self._read_rows(columns):
                if columns.full and (block := columns.take()):
                    yield block
        except DamageError as error:
            damage = error
        if block := columns.take():
            yield block
        if columns.skipped:
            self.warnings.append(f"entries that are no whole result and were skipped: {columns.skipped:,}")
        if damage:
            raise damage

    @abstractmethod
    def _read_rows(self, columns: OldResultColumns) -> Iterator[None]:
        """Add each result to ``columns`` and yield; raises DamageError."""


def make_old_run(state: Mapping[str, Any]) -> RunDescription | None:
    """Make the description of a run from what 0.x kept of its scenario, None when it is none.

    ``state`` has ``_scenario_data``, the content of the scenario file, and beside it what the
    command line set, which wins. What is missing or of a wrong type is left at its default.
    """
    data = state.get("_scenario_data")
    if not isinstance(data, Mapping):
        return None

    def setting(key: str) -> Any:
        return state[key] if key in state else kept.get(key)

    try:
        kept = cast("dict[str, Any]", copy_plain(dict(data)))
    except TooMuchError as error:
        raise DamageError(f"its scenario: {error}") from None

    name = setting("name")
    operation_count = setting("operation_count")
    run_seconds = _read_number(setting("run_seconds"))
    delete_after = setting("delete_after")
    scenario = Scenario(
        name="" if name is None else _cut_text(name),
        size_classes=_size_classes(kept),
        user_count=_read_integer(setting("user_count"), 0),
        operation_count=_read_integer(operation_count, 0) if operation_count is not None else None,
        run_seconds=run_seconds if math.isfinite(run_seconds) else None,
        container_base=_cut_text(setting("container_base") or "ssbench"),
        container_count=_read_integer(setting("container_count"), 100),
        container_concurrency=_read_integer(setting("container_concurrency"), 10),
        delete_after=_read_integer(delete_after, 0) if delete_after is not None else None,
        policy=_cut_text(kept.get("policy")) or None,
        data=kept,
    )
    return RunDescription(scenario, version=_cut_text(state.get("version")) or "unknown")


def _size_classes(data: Mapping[str, Any]) -> tuple[SizeClass, ...]:
    """Return the classes in use, in the order of ``sizes``."""
    sizes, initial_files = data.get("sizes"), data.get("initial_files")
    if not isinstance(sizes, (list, tuple)) or not isinstance(initial_files, Mapping):
        return ()
    classes: dict[str, SizeClass] = {}
    for size in sizes:
        if not isinstance(size, Mapping) or not isinstance(size.get("name"), str):
            continue
        files = _read_integer(initial_files.get(size["name"]), 0)
        if files <= 0:
            continue
        smallest = _read_integer(size.get("size_min"), 0)
        classes[size["name"]] = SizeClass(
            size["name"],
            smallest,
            _read_integer(size.get("size_max"), smallest),
            files,
            _weights(size.get("crud_profile")) or _weights(data.get("crud_profile")) or (0.0, 0.0, 0.0, 0.0),
        )
    return tuple(classes.values())


def _weights(profile: object) -> Weights | None:
    if not isinstance(profile, (list, tuple)) or len(profile) != 4:
        return None
    weights = [_read_number(weight) for weight in profile]
    if not all(0 <= weight < 1e15 for weight in weights):
        return None
    return (weights[0], weights[1], weights[2], weights[3])


def _are_within(values: Sequence[int], least: int, beyond: int) -> bool:
    return least <= min(values) and max(values) < beyond


def _latencies(values: Sequence[float | None]) -> list[float]:
    """Return latencies, NaN where there is none."""
    return [math.nan if value is None else value for value in values]


def _are_latencies(seconds: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    return np.asarray((seconds >= 0) & (seconds < _LATEST_SECOND))


def _make_failure(exception: str, result: Mapping[str, Any]) -> Failure:
    """Make a failure of an exception's text, without the secrets that the result holds."""
    secrets: list[str] = []
    pending = [result.get(key) for key in _SECRET_FIELDS]
    looked_at = 0
    while pending:
        looked_at += 1
        if looked_at > _MAX_SECRETS:
            return Failure("unknown", "left out, because it may hold any of too many secrets", {})
        match pending.pop():
            case str() as secret if len(secret) > 2:
                secrets.append(secret)
            case dict() as more:
                pending.extend(islice(more.values(), _MAX_SECRETS))
            case list() | tuple() as more:
                pending.extend(more[:_MAX_SECRETS])
    for secret in sorted(secrets, key=len, reverse=True):
        exception = exception.replace(secret, "***")
    first_line = exception.strip().partition("\n")[0]
    return Failure(first_line[:80] or "unknown", exception, {})


def _cut_text(value: object, most: int = _MAX_NAME_CHARACTERS) -> str:
    """Return a scalar as text, cut; what is none has nothing to show, and perhaps something to hide."""
    return str(value)[:most] if isinstance(value, (str, int, float)) else ""


def _read_number(value: object) -> float:
    """Return a number, NaN for what is none."""
    try:
        return float(value) if isinstance(value, (int, float)) else math.nan
    except OverflowError:
        return math.nan


def _read_latency(value: object) -> float:
    """Return seconds, NaN for what cannot be a latency."""
    seconds = _read_number(value)
    return seconds if 0 <= seconds < _LATEST_SECOND else math.nan


def _read_integer(value: object, default: int) -> int:
    number = _read_number(value)
    return int(number) if 0 <= number < _MAX_EXACT_NUMBER else default
