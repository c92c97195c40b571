"""Results as columns: what sinks receive, stat files keep, statistics count and an export prints.

A :class:`ResultBlock` holds thousands of results. :class:`RowCollector` makes blocks for the loop of the
master, which has a microsecond or two for a result: each result is a row of some packed numbers. Only what
differs from one result to the next is in the rows. What is the same for all is given once (``common``), what
few results have is kept by the row (``rare``, ``failures``).
"""

from __future__ import annotations

import struct
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import accumulate, chain, repeat
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast, overload

import numpy as np
import numpy.typing as npt

from ssbench.document.figures import COUNTED_FIGURES
from ssbench.results.result_fields import FIELDS, FieldKind, ResultField, ResultMark, row_fields
from ssbench.results.run_description import PrecisionFacts, RunSummary

#: The cause of an operation whose worker vanished before it answered.
LOST_CAUSE = "lost worker"

#: The cause of an operation whose result had figures that cannot be.
INVALID_CAUSE = "invalid result"

#: The cause of an operation that had not come back when the run stopped waiting for it.
UNFINISHED_CAUSE = "not finished"


class Failure(NamedTuple):
    """Why an operation failed, or what went wrong on its way to success."""

    #: A short label that is counted ("HTTP 503", "connect timeout", "short body", :data:`LOST_CAUSE`); None:
    #: the operation succeeded after retries.
    cause: str | None
    detail: str  # one line for people
    retried: dict[str, int]  # how often each cause led to a retry


class _Texts(Sequence[str | None]):
    """A column of texts: what its kinds have in common."""

    __slots__ = ()

    @abstractmethod
    def _at(self, index: int) -> str | None:
        """Return one text."""

    @overload
    def __getitem__(self, index: int) -> str | None: ...

    @overload
    def __getitem__(self, index: slice) -> list[str | None]: ...

    def __getitem__(self, index: int | slice) -> str | list[str | None] | None:
        if isinstance(index, slice):
            return [self._at(i) for i in range(*index.indices(len(self)))]
        return self._at(index)


class TextColumn(_Texts):
    """A column of texts, None where there is none, decoded from UTF-8 only when looked at.

    A column of a million transaction ids thus costs no million objects. ``lengths`` holds the bytes
    of each text, -1 for None; ``data`` the texts one after the other. Invalid UTF-8 reads as U+FFFD.
    """

    __slots__ = ("_data", "_ends", "_lengths")

    def __init__(
        self, data: bytes, lengths: npt.NDArray[np.int64], ends: npt.NDArray[np.int64] | None = None
    ) -> None:
        """Take texts; ``ends`` is where each ends in ``data``, if they are not one after the other."""
        self._data = data
        self._lengths = lengths
        self._ends = np.cumsum(np.maximum(lengths, 0)) if ends is None else ends

    @classmethod
    def of(cls, texts: Iterable[str | None]) -> TextColumn:
        """Make a column of texts in memory."""
        texts = list(texts)
        if None not in texts and (joined := "".join(cast("list[str]", texts))).isascii():
            return cls(joined.encode(), np.fromiter(map(len, cast("list[str]", texts)), np.int64, len(texts)))
        encoded = [None if text is None else text.encode("utf-8", "replace") for text in texts]
        lengths = np.fromiter((-1 if text is None else len(text) for text in encoded), np.int64, len(encoded))
        return cls(b"".join(text for text in encoded if text is not None), lengths)

    @classmethod
    def joined(cls, parts: Iterable[TextColumn]) -> TextColumn:
        """Return several columns as one, without decoding them."""
        parts = list(parts)
        starts = accumulate((len(part._data) for part in parts), initial=0)
        return cls(
            b"".join([part._data for part in parts]),
            np.concatenate([part._lengths for part in parts]),
            np.concatenate([part._ends + start for start, part in zip(starts, parts, strict=False)]),
        )

    def select(self, rows: npt.NDArray[np.intp]) -> TextColumn:
        """Return the texts of some rows, which share their bytes with all others."""
        return TextColumn(self._data, self._lengths[rows], self._ends[rows])

    def beginnings(self, length: int) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
        """Return the bytes of all texts, and where each begins; -1 where it is shorter than ``length``."""
        starts = np.where(self._lengths >= length, self._ends - self._lengths, -1)
        return np.frombuffer(self._data, np.uint8), starts.astype(np.int64)

    def __len__(self) -> int:
        return len(self._lengths)

    def _at(self, index: int) -> str | None:
        length = int(self._lengths[index])
        if length < 0:
            return None
        end = int(self._ends[index])
        return self._data[end - length : end].decode("utf-8", "replace")

    def __iter__(self) -> Iterator[str | None]:
        for length, end in zip(self._lengths.tolist(), self._ends.tolist(), strict=True):
            yield None if length < 0 else self._data[end - length : end].decode("utf-8", "replace")


class NoTexts(_Texts):
    """A column of texts of which there are none."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[None]:
        return repeat(None, self._count)

    def _at(self, index: int) -> None:
        return None


class ResultBlock:
    """Some results as columns of equal length, in order of arrival.

    Each field of :data:`~ssbench.results.result_fields.FIELDS` is an attribute: a numpy array, or for texts a
    sequence of texts and None. Columns that were not given have the field's default. Container and
    object are numbers from which names are derived (:mod:`ssbench.scenario.names`), or texts in formats that
    keep texts.

    ``failures`` is keyed by row; ``failed`` is True where a failure has a cause.
    """

    __slots__ = ("_columns", "_constants", "_count", "_failed", "_packed", "failures")

    def __init__(
        self,
        count: int,
        columns: Mapping[str, Any],
        failures: dict[int, Failure] | None = None,
        packed: npt.NDArray[np.void] | None = None,
    ) -> None:
        """Take columns by the names of their fields; ``packed`` has further ones as its fields."""
        self._count = count
        self._columns = columns
        self._packed = packed
        self.failures = failures or {}
        self._failed: npt.NDArray[np.bool_] | None = None
        #: Columns that were not given, made once: each of thousands of groups asks for them.
        self._constants: dict[str, npt.NDArray[Any]] = {}

    def __len__(self) -> int:
        return self._count

    @property
    def given(self) -> Set[str]:
        """The names of the fields that were given."""
        packed = () if self._packed is None else self._packed.dtype.names or ()
        return self._columns.keys() | packed

    def __getattr__(self, name: str) -> Any:
        """Return the column of a field."""
        if name in self._columns:
            return self._columns[name]
        if self._packed is not None and name in (self._packed.dtype.names or ()):
            return self._packed[name]
        if name not in FIELDS:
            raise AttributeError(f"no field of a result is called {name}")
        return self._default(FIELDS[name])

    @property
    def failed(self) -> npt.NDArray[np.bool_]:
        """Which results are failures."""
        if self._failed is None:
            self._failed = np.zeros(self._count, np.bool_)
            self._failed[[row for row, failure in self.failures.items() if failure.cause is not None]] = True
        return self._failed

    def part(self, start: int, stop: int) -> ResultBlock:
        """Return the results of some rows."""
        columns = {name: column[start:stop] for name, column in self._columns.items()}
        failures = {row - start: failure for row, failure in self.failures.items() if start <= row < stop}
        packed = None if self._packed is None else self._packed[start:stop]
        return ResultBlock(len(range(*slice(start, stop).indices(self._count))), columns, failures, packed)

    def having(self, **columns: npt.NDArray[Any]) -> ResultBlock:
        """Return the same results with further columns, or with others in their place."""
        return ResultBlock(self._count, {**self._columns, **columns}, self.failures, self._packed)

    def select(self, rows: npt.NDArray[np.intp]) -> ResultBlock:
        """Return the results of these rows, in ascending order."""
        columns = {
            name: column[rows] if isinstance(column, np.ndarray) else _choose_rows(column, rows)
            for name, column in self._columns.items()
        }
        places = {int(row): place for place, row in enumerate(rows)}
        failures = {places[row]: failure for row, failure in self.failures.items() if row in places}
        packed = None if self._packed is None else self._packed[rows]
        return ResultBlock(len(rows), columns, failures, packed)

    def _default(self, field: ResultField) -> Any:
        if field.kind is FieldKind.TEXT:
            return NoTexts(self._count)
        if field.default is None and field.derive is not None:
            return field.derive(self)
        if field.name not in self._constants:
            value = 0 if field.default is None else field.default
            self._constants[field.name] = make_constant_column(value, self._count)
        return self._constants[field.name]


def _choose_rows(column: Sequence[str | None], rows: npt.NDArray[np.intp]) -> Sequence[str | None]:
    if isinstance(column, TextColumn):
        return column.select(rows)
    return [column[row] for row in rows.tolist()]


def make_constant_column(value: float, count: int) -> npt.NDArray[Any]:
    """Return a column of one value, which takes the memory of one."""
    return np.broadcast_to(np.asarray(value), count)


def is_constant_column(column: npt.NDArray[Any]) -> bool:
    """Whether a column was made by :func:`make_constant_column`; others may have one value too."""
    return column.strides == (0,)


def join_blocks(blocks: Sequence[ResultBlock]) -> ResultBlock:
    """Return the results of several blocks as one block."""
    if len(blocks) == 1:
        return blocks[0]
    packed = _join_packed(blocks)
    given = {name for block in blocks for name in (block.given if packed is None else block._columns)}
    columns = {name: _join_column(name, blocks) for name in FIELDS if name in given}
    starts = accumulate(map(len, blocks), initial=0)
    failures = {
        start + row: failure
        for start, block in zip(starts, blocks, strict=False)
        for row, failure in block.failures.items()
    }
    return ResultBlock(sum(map(len, blocks)), columns, failures, packed)


def _join_packed(blocks: Sequence[ResultBlock]) -> npt.NDArray[np.void] | None:
    """Return what is packed in all blocks in the same way: one copy instead of one for each column."""
    parts = [block._packed for block in blocks if block._packed is not None]
    if len(parts) < len(blocks) or any(part.dtype != parts[0].dtype for part in parts):
        return None
    return np.frombuffer(b"".join([np.ascontiguousarray(part).data for part in parts]), parts[0].dtype)


def _join_column(name: str, blocks: Sequence[ResultBlock]) -> Any:
    parts = [getattr(block, name) for block in blocks]
    if not isinstance(parts[0], np.ndarray):
        if all(isinstance(part, TextColumn) for part in parts):
            return TextColumn.joined(parts)
        return list(chain.from_iterable(parts))
    if all(map(is_constant_column, parts)) and len({part[:1].tobytes() for part in parts}) == 1:
        return make_constant_column(parts[0][0], sum(map(len, parts)))
    return np.concatenate(parts)


# -- Rows on their way to a block ------------------------------------------------------------------


#: The values of :func:`~ssbench.results.result_fields.row_fields`, in their order.
ResultRow = tuple[float, ...]

_PLACES = {name: place for place, name in enumerate(FIELDS)}


class RowCollector:
    """Collects results until they are taken as a block.

    ``also`` names the fields that rows have after the usual ones. Fields are added to by whoever
    makes the rows: ``rows`` and ``trans_ids`` get one entry a result; ``failures`` and
    ``rare[field]`` are keyed by the place in ``rows``; ``common[field]`` is the value of all rows. A row is
    what ``pack`` makes of the values of the usual fields, and ``pack_also`` of those of the others behind it.
    """

    def __init__(self, also: Sequence[str] = ()) -> None:
        fields = row_fields(tuple(also))
        usual = len(fields) - len(also)
        self.pack, self.pack_also = _make_packer(fields[:usual]), _make_packer(fields[usual:])
        self._dtype = np.dtype([(field.name, _numpy_type(field)) for field in fields])
        self.common: dict[str, float] = {}
        self._begin()

    def _begin(self) -> None:
        self.rows: list[bytes] = []
        self.trans_ids: list[str | None] = []
        self.failures: dict[int, Failure] = {}
        self.rare: dict[str, dict[int, float]] = {}

    def __len__(self) -> int:
        return len(self.rows)

    def note(self, field: str, value: float, row: int | None = None) -> None:
        """Give a row a value that few rows have; None: the next one."""
        self.rare.setdefault(field, {})[len(self.rows) if row is None else row] = value

    def take(self) -> ResultBlock:
        """Return what was collected as a block, and begin anew; ``common`` stays."""
        rows, trans_ids, failures, rare = self.rows, self.trans_ids, self.failures, self.rare
        self._begin()
        count = len(rows)
        packed = np.frombuffer(b"".join(rows), self._dtype)
        columns: dict[str, Any] = {
            name: make_constant_column(value, count) for name, value in self.common.items()
        }
        if trans_ids.count(None) < len(trans_ids):
            columns["trans_id"] = trans_ids
        # In the order of the fields, for the later ones may be derived from those before.
        for name in sorted(rare, key=_PLACES.__getitem__):
            field, values = FIELDS[name], rare[name]
            if field.default is None or name in columns:
                block = ResultBlock(count, columns, packed=packed)
                column = np.array(getattr(block, name), _numpy_type(field))
            else:
                column = np.full(count, field.default, _numpy_type(field))
            column[list(values)] = list(values.values())
            columns[name] = column
        return ResultBlock(count, columns, failures, packed)


def _make_packer(fields: Sequence[ResultField]) -> Callable[..., bytes]:
    return struct.Struct("<" + "".join(field.packed for field in fields)).pack


def _numpy_type(field: ResultField) -> str:
    """Return the numpy type of a packed value: b is i1 there, q is i8."""
    size = struct.calcsize("<" + field.packed)
    kind = "f" if field.packed == "d" else "i" if field.packed.islower() else "u"
    return f"<{kind}{size}"


# -- Receivers of results --------------------------------------------------------------------------


#: Returns what is known of the run in progress: its stat file, and what is in no stat file before its end.
ReadSoFar = Callable[[], tuple[Path, RunSummary] | None]


class Sink(Protocol):
    """Receives results: a stat file, a screen, a counter.

    All methods are called by the thread that runs the master's loop, and none may hold it up: what
    waits for a disk, a terminal or a network does so in a thread of its own.
    """

    def add(self, block: ResultBlock) -> None:
        """Take results in, in order of arrival. The block belongs to all sinks: do not change it."""

    def tick(self, now: float) -> None:
        """Called some times a second with the master's monotonic clock, results or none."""

    def end(self, summary: RunSummary) -> None:
        """No more results come: finish what was begun. This may wait."""


class Goal(Sink, Protocol):
    """A sink that knows when a run has gone on for long enough."""

    def reached(self) -> bool:
        """Whether the run may end before its time."""

    def facts(self) -> tuple[PrecisionFacts, ...]:
        """Return what was asked for, and what is known of it so far."""

    def missing(self) -> str:
        """Say in a few words what is still missing, for the progress line; empty: not known."""


# -- Counters --------------------------------------------------------------------------------------


_Rows = npt.NDArray[np.intp]

_NOT_FOUND_STATUS = 404


@dataclass(frozen=True, slots=True)
class _Counter:
    """How to count something in some rows of a block."""

    #: Fields of which a block has one, or nothing is there to count: most blocks cost nothing.
    given: frozenset[str]
    of: Callable[[ResultBlock, _Rows], npt.NDArray[Any]]  # how many there are in each of some rows of a block
    of_successes: bool = False  # count it in successes only


def _on_new(block: ResultBlock, rows: _Rows) -> npt.NDArray[np.bool_]:
    new: npt.NDArray[np.bool_] = (block.connections[rows] > 0) | (block.connecting[rows] > 0)
    return new


def _sum_field(name: str) -> _Counter:
    """Return how to add up a field."""
    of_successes = FIELDS[name].counts_successes
    return _Counter(frozenset({name}), lambda block, rows: getattr(block, name)[rows], of_successes)


#: The counters that are no sum of the field of their name.
_COMPUTED_COUNTERS = {
    "resent": _Counter(
        frozenset({"attempts"}),
        lambda block, rows: block.attempts[rows] - block.retries[rows] - 1,
    ),
    "new_connections": _Counter(
        frozenset({"connecting", "connections"}), lambda block, rows: block.connections[rows]
    ),
    "resumed_connections": _sum_field("resumed"),
    "on_new": _Counter(frozenset({"connecting", "connections"}), _on_new),
    "missing_names": _Counter(
        frozenset({"expected_entries"}),
        lambda block, rows: np.maximum(block.expected_entries[rows] - block.entries[rows], 0),
        of_successes=True,
    ),
    "vanished": _Counter(
        frozenset({"status"}),
        lambda block, rows: block.status[rows] == _NOT_FOUND_STATUS,
        of_successes=True,
    ),
    "unsent": _Counter(
        frozenset({"expected_size"}),
        lambda block, rows: (block.size[rows] >= 0) & (block.size[rows] < block.expected_size[rows]),
        of_successes=True,
    ),
}

#: Each counter of the table of figures, in its order.
COUNTERS = {key: _COMPUTED_COUNTERS.get(key) or _sum_field(key) for key in COUNTED_FIGURES}


def count_results(block: ResultBlock, rows: _Rows, successes: _Rows) -> dict[str, int]:
    """Return what some rows of a block add to counters; those to which they add nothing may be left out."""
    return {key: int(found.sum()) for key, _, found in counted_rows(block, rows, successes)}


def leave_out_delayed(block: ResultBlock, seconds: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return times of the results of a block; NaN where the worker stalled, as reports leave these out."""
    if "marks" not in block.given:
        return seconds
    return np.where(block.marks & ResultMark.DELAYED != 0, np.nan, seconds)


def counted_rows(
    block: ResultBlock, rows: _Rows, successes: _Rows
) -> Iterator[tuple[str, bool, npt.NDArray[Any]]]:
    """Yield counters to which a block may add, with what each row adds.

    Those that are of successes only, which is the second item, have it of the rows ``successes``.
    """
    given = block.given
    for key, counter in COUNTERS.items():
        if not counter.given.isdisjoint(given):
            yield key, counter.of_successes, counter.of(block, successes if counter.of_successes else rows)


def sum_counters(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Return several together, with all counters that there are."""
    found: Counter[str] = Counter(dict.fromkeys(COUNTERS, 0))
    for part in parts:
        found.update(part)
    return dict(found)
