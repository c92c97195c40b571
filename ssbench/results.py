"""Results of operations: rows as they arrive at the master, blocks of columns for all else.

A result is data whether it succeeded or not. The master makes a :data:`ResultRow` of each, which
costs little; :class:`ResultBlock` holds thousands of them as numpy columns, which is what stat
files keep, what statistics count and what an export prints.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, overload

import numpy as np
import numpy.typing as npt

#: The cause of an operation whose worker vanished before it answered.
LOST = "lost worker"

#: The cause of an operation whose result had figures that cannot be.
INVALID = "invalid result"

#: The worker id of an operation of which nobody can say which worker had it.
NO_WORKER = 2**63 - 1

#: The cause of an operation that had not come back when the run stopped waiting for it.
UNFINISHED = "not finished"


class Failure(NamedTuple):
    """Why an operation failed, or what went wrong on its way to success.

    ``cause`` is a short label that is counted ("HTTP 503", "connect timeout", "short body",
    :data:`LOST`), None when the operation succeeded after retries; ``detail`` one line for
    people; ``retried`` maps the cause of each retry to how often it happened.
    """

    cause: str | None
    detail: str
    retried: dict[str, int]


#: (operation code, size-class index, worker id, container number, object number, bytes moved,
#:  first-byte seconds, last-byte seconds, completion in seconds since 1970 by the master's clock,
#:  retries). A latency that does not exist is NaN. Transaction ids and failures go beside the rows:
#:  a tuple of nothing but numbers is packed by :mod:`struct` at half the price of any other way.
ResultRow = tuple[int, int, int, int, int, int, float, float, float, int]

#: What a latency is that was not measured.
NOT_MEASURED = float("nan")


class TextColumn(Sequence[str | None]):
    """A column of texts, None where there is none, decoded from UTF-8 only when looked at.

    A column of a million transaction ids thus costs no million objects. ``lengths`` holds the bytes
    of each text, -1 for None; ``data`` the texts one behind the other. What is no UTF-8 reads as
    U+FFFD.
    """

    __slots__ = ("_data", "_ends", "_lengths")

    def __init__(self, data: bytes, lengths: npt.NDArray[np.int64]) -> None:
        self._data = data
        self._lengths = lengths
        self._ends = np.cumsum(np.maximum(lengths, 0))

    @classmethod
    def of(cls, texts: Iterable[str | None]) -> TextColumn:
        """Make a column of texts in memory."""
        encoded = [None if text is None else text.encode("utf-8", "replace") for text in texts]
        lengths = np.fromiter((-1 if text is None else len(text) for text in encoded), np.int64, len(encoded))
        return cls(b"".join(text for text in encoded if text is not None), lengths)

    def __len__(self) -> int:
        return len(self._lengths)

    @overload
    def __getitem__(self, index: int) -> str | None: ...

    @overload
    def __getitem__(self, index: slice) -> list[str | None]: ...

    def __getitem__(self, index: int | slice) -> str | list[str | None] | None:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        length = int(self._lengths[index])
        if length < 0:
            return None
        end = int(self._ends[index])
        return self._data[end - length : end].decode("utf-8", "replace")

    def __iter__(self) -> Iterator[str | None]:
        start = 0
        for length, end in zip(self._lengths.tolist(), self._ends.tolist(), strict=True):
            yield None if length < 0 else self._data[start:end].decode("utf-8", "replace")
            start = end


@dataclass(frozen=True, slots=True)
class ResultBlock:
    """Some thousands of results as columns of equal length, in order of arrival.

    ``size_class`` indexes the size classes of the run's results. ``worker`` is the worker's id, or
    :data:`NO_WORKER`. Latencies are seconds, NaN where there is none; ``completed`` is seconds
    since 1970; ``size`` is bytes, -1 where it is not known. ``failed`` is True where ``failures``,
    which is keyed by row, has a cause. Container and object are numbers from which names are derived
    (:func:`ssbench.names.container_name`), or texts in formats that keep texts.
    """

    operation: npt.NDArray[np.uint8]
    size_class: npt.NDArray[np.uint16]
    worker: npt.NDArray[np.int64]
    container: npt.NDArray[np.int64] | TextColumn
    object: npt.NDArray[np.int64] | TextColumn
    size: npt.NDArray[np.int64]
    first_byte: npt.NDArray[np.float64]
    last_byte: npt.NDArray[np.float64]
    completed: npt.NDArray[np.float64]
    retries: npt.NDArray[np.int64]
    failed: npt.NDArray[np.bool_]
    trans_ids: TextColumn
    failures: dict[int, Failure]

    def __len__(self) -> int:
        return len(self.operation)
