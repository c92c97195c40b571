"""Results as columns: what sinks take, stat files keep, statistics count and an export prints."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import accumulate, chain, repeat
from typing import Any, NamedTuple, cast, overload

import numpy as np
import numpy.typing as npt

from ssbench.results.schema import FIELDS, FieldKind, ResultField

#: The cause of an operation whose worker vanished before it answered.
LOST_CAUSE = "lost worker"

#: The cause of an operation whose result had figures that cannot be.
INVALID_CAUSE = "invalid result"

#: The cause of an operation that had not come back when the run stopped waiting for it.
UNFINISHED_CAUSE = "not finished"


class Failure(NamedTuple):
    """Why an operation failed, or what went wrong on its way to success.

    ``cause`` is a short label that is counted ("HTTP 503", "connect timeout", "short body",
    :data:`LOST_CAUSE`), None when the operation succeeded after retries; ``detail`` one line for
    people; ``retried`` maps the cause of each retry to how often it happened.
    """

    cause: str | None
    detail: str
    retried: dict[str, int]


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

    Each field of :data:`~ssbench.results.schema.FIELDS` is an attribute: a numpy array, or for texts a
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
