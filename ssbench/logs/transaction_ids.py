"""Transaction ids of Swift, in lines and in results.

Ids of a run are sorted numbers of 64 bits, in which those of log lines are looked up: eight bytes an id, and
twelve more for each of a sample. Two ids have the same number by chance: of ten million results, one of a
billion lines of other requests is taken for one of the run in one of 200 cases.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ssbench.results.block import TextColumn

#: Bytes of an id without what may be appended to it: ``tx``, 21 hexadecimal digits, a hyphen and 10 (until
#: Swift 1.8: 32).
ID_LENGTH = 34
_TIME_OFFSET = 24

#: Where no result has an id; where one has it that is not in the sample.
UNKNOWN_ID, UNUSED_ID = -1, -2

Bytes = npt.NDArray[np.uint8]
Numbers = npt.NDArray[np.int64]

_DIGIT_VALUES = np.full(256, -1, np.int8)
_DIGIT_VALUES[np.frombuffer(b"0123456789abcdef", np.uint8)] = np.arange(16)
_NO_NUMBERS = np.zeros(0, np.uint64)
_POWERS = 16 ** np.arange(9, -1, -1, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class TransactionIds:
    """Numbers of ids in order."""

    numbers: npt.NDArray[np.uint64]
    places: npt.NDArray[np.uint32]  # that of the result which each is of
    #: Those of all results, in order, where ``numbers`` are of a sample of them; empty otherwise.
    every: npt.NDArray[np.uint64]

    @classmethod
    def of(
        cls,
        numbers: npt.NDArray[np.uint64],
        places: npt.NDArray[np.uint32],
        every: npt.NDArray[np.uint64] = _NO_NUMBERS,
    ) -> TransactionIds:
        """Sort them; ``every`` is sorted in its place, as it may be all there is memory for."""
        every.sort()
        order = np.argsort(numbers, kind="stable")
        return cls(numbers[order], places[order], every)

    def find(self, ids: Bytes) -> Numbers:
        """Return the place of each id.

        :data:`UNKNOWN_ID` where it is none of the run's, else :data:`UNUSED_ID`.
        """
        wanted = number_ids(ids)
        found = np.full(len(ids), UNKNOWN_ID, np.int64)
        if len(self.every):
            found[self.every[_find_last(self.every, wanted)] == wanted] = UNUSED_ID
        if len(self.numbers):
            at = _find_last(self.numbers, wanted)
            known = self.numbers[at] == wanted
            found[known] = self.places[at[known]]
        return found


def _find_last(numbers: npt.NDArray[np.uint64], wanted: npt.NDArray[np.uint64]) -> Numbers:
    """Return where each wanted number is, or else might be. Two results can have the same: it is the last."""
    return np.maximum(np.searchsorted(numbers, wanted, side="right").astype(np.int64) - 1, 0)


def gather_ids(chunk: bytes | Bytes, starts: Numbers) -> Bytes:
    """Return the ids that begin at some places of a chunk, one in each row."""
    array = np.frombuffer(chunk, np.uint8) if isinstance(chunk, bytes) else chunk
    return np.asarray(array[starts[:, None] + np.arange(ID_LENGTH)])


def ids_of_column(texts: Any) -> tuple[Bytes, Numbers]:
    """Return the ids of a column of results, and the rows of the results that have one."""
    column = texts if isinstance(texts, TextColumn) else TextColumn.of(texts)
    data, starts = column.beginnings(ID_LENGTH)
    ids = gather_ids(data, starts[starts >= 0])
    rows = np.flatnonzero(starts >= 0)
    hexadecimal = _DIGIT_VALUES[ids] >= 0
    fine = (ids[:, 0] == ord("t")) & (ids[:, 1] == ord("x")) & hexadecimal[:, 2:23].all(axis=1)
    fine &= (hexadecimal[:, 23] | (ids[:, 23] == ord("-"))) & hexadecimal[:, 24:].all(axis=1)
    return ids[fine], rows[fine]


def number_ids(ids: Bytes) -> npt.NDArray[np.uint64]:
    """Return 64 bits of each id, all of whose digits matter."""
    words = np.ascontiguousarray(ids[:, 2:]).view(np.uint64)
    mixed = np.zeros(len(ids), np.uint64)
    for word in words.T:
        mixed = (mixed ^ word) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return mixed


def seconds_of_ids(ids: Bytes) -> Numbers:
    """Return the seconds since 1970 in ids; 0 for those that have none."""
    timed = ids[:, 23] == ord("-")
    return np.where(timed, np.maximum(_DIGIT_VALUES[ids[:, _TIME_OFFSET:]], 0).astype(np.int64) @ _POWERS, 0)


def time_range_of_ids(ids: Bytes) -> tuple[int, int] | None:
    """Return the first and the last second since 1970 in ids; None where none has a time."""
    timed = ids[ids[:, 23] == ord("-")]
    if not len(timed):
        return None
    found = seconds_of_ids(timed)
    return int(found.min()), int(found.max())
