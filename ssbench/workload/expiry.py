"""When Swift deletes the objects of a run by itself (``delete_after``).

The clock is passed in. An object counts as expired :func:`margin` seconds early, so that a request for it
reaches Swift in time. Its lifetime is counted from when its write was sent, because Swift counts from the
arrival, which is later. Whether a write that failed was carried out is not known: the earlier of the two
times is used.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

#: An object that never expires.
_NEVER = 2**32 - 1

#: Most seconds by which an object counts as expired too early.
_MOST_MARGIN = 5.0


def margin(delete_after: int) -> float:
    """Return how many seconds before Swift deletes an object it is no longer asked for."""
    return min(_MOST_MARGIN, delete_after / 2)


class Expiry:
    """The time at which each object expires, in 4 bytes an object.

    ``counts`` says for each size class how many object numbers there are at first; those never expire,
    because initial objects are uploaded without ``X-Delete-After``, until an update sets it.
    """

    def __init__(self, delete_after: int, counts: Sequence[int]) -> None:
        self._lifetime = delete_after - margin(delete_after)
        self._expires = [array("I", [_NEVER]) * count for count in counts]
        #: (size class, number) of a write in flight, and when its object expires if it succeeds.
        self._in_flight: dict[tuple[int, int], int] = {}
        self._start: float | None = None

    def handed_out(self, size_class: int, number: int, now: float) -> None:
        """Note that a create (with the next number of its class) or an update is sent."""
        expires = self._expires[size_class]
        if number == len(expires):
            expires.append(_NEVER)
        self._in_flight[size_class, number] = min(int(self._age(now) + self._lifetime), _NEVER)

    def written(self, size_class: int, number: int, ok: bool) -> None:
        """Note that the create or update has ended."""
        expires, new = self._expires[size_class], self._in_flight.pop((size_class, number))
        expires[number] = new if ok else min(new, expires[number])

    def not_written(self, size_class: int, number: int) -> None:
        """Note that the create or update was not sent after all."""
        del self._in_flight[size_class, number]

    def passed(self, size_class: int, number: int, now: float) -> bool:
        """Return whether an object counts as expired."""
        return self._expires[size_class][number] <= self._age(now)

    def _age(self, now: float) -> float:
        # Times are whole seconds since the first of them, which fit in 4 bytes.
        if self._start is None:
            self._start = now
        return now - self._start
