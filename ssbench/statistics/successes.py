"""How many operations succeeded in each second of a run; runs of weeks have millions of seconds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np
import numpy.typing as npt

#: Longer stretches without a success do not go in one second at a time.
_MAX_GAP_SECONDS = 86400

#: No second of a file that is not damaged is further away.
_MAX_SECOND = 1 << 60

#: So many are made plain numbers at once.
_SECONDS_AT_ONCE = 10_000


class Successes(Sequence[tuple[int, int]]):
    """(Second, successes in it), in order, in 16 bytes each; seconds are counted from 1."""

    def __init__(self, seconds: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> None:
        self._seconds = seconds
        self._counts = counts

    def __len__(self) -> int:
        return len(self._seconds)

    @overload
    def __getitem__(self, place: int) -> tuple[int, int]: ...

    @overload
    def __getitem__(self, place: slice) -> Successes: ...

    def __getitem__(self, place: int | slice) -> tuple[int, int] | Successes:
        if isinstance(place, slice):
            return Successes(self._seconds[place], self._counts[place])
        return int(self._seconds[place]), int(self._counts[place])

    def __iter__(self) -> Iterator[tuple[int, int]]:
        for start in range(0, len(self), _SECONDS_AT_ONCE):
            part = slice(start, start + _SECONDS_AT_ONCE)
            yield from zip(self._seconds[part].tolist(), self._counts[part].tolist(), strict=True)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Successes):
            return NotImplemented
        return np.array_equal(self._seconds, other._seconds) and np.array_equal(self._counts, other._counts)

    __hash__ = None  # type: ignore[assignment]


def list_successes(counts: Counter[int], first: int | None = None) -> Successes:
    """Return the successes of each second from the first on, those without any too except in very long gaps.

    ``counts`` is keyed by seconds of any clock. Without ``first`` it begins with the first that has any.
    """
    if not counts:
        return Successes(np.empty(0, np.int64), np.empty(0, np.int64))
    known = sorted(counts)
    places = (
        np.clip(known, -_MAX_SECOND, _MAX_SECOND)
        - min(max(known[0] if first is None else first, -_MAX_SECOND), _MAX_SECOND)
        + 1
    )
    # What lies between the one before and each is filled, unless it is too much.
    before = np.concatenate([[0], places[:-1]])
    begins = np.where(places - before <= _MAX_GAP_SECONDS, np.minimum(before + 1, places), places)
    lengths = places - begins + 1
    ends = np.cumsum(lengths)
    seconds = np.arange(int(ends[-1])) + np.repeat(begins - (ends - lengths), lengths)
    filled = np.zeros(len(seconds), np.int64)
    filled[ends - 1] = [counts[second] for second in known]
    return Successes(seconds, filled)
