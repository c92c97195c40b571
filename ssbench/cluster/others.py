"""Requests that are not of the run: how many storage servers had, from whom and in which second.

There may be a hundred million of them. What is kept of a file are counts, 16 bytes for each second in which a
program asked a device anything, and beyond some number of lines one transaction in eight is counted, for
eight.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ssbench.cluster import ids
from ssbench.cluster.ids import Bytes, Numbers
from ssbench.cluster.lines import BackendLine

#: Who was asked, and who asked: node, server, device, program. In lines these are bytes; a node may be text.
RequestParties = tuple[str, str, str, str]
RawParties = tuple[bytes | str, bytes, bytes, bytes]
RequestCodes = npt.NDArray[np.uint64]

#: So many requests of a file are all counted; beyond that those of one transaction in so many.
MAX_COUNTED_REQUESTS, COUNTED_ONE_IN = 100_000, 8
#: A code is the place of who it is, and the second in so many bits.
_SECOND_BITS = 40
#: So many codes are put together at once.
_MERGED_AT_ONCE = 1 << 18

#: The path of an update that a container server receives is that of an object, and so on.
_UPDATE_RECEIVERS = {
    (b"object-server", b"object"): b"container",
    (b"object-updater", b"object"): b"container",
    (b"container-server", b"container"): b"account",
    (b"container-updater", b"container"): b"account",
}
#: The account of the queue of objects that expire, which is no client's.
_EXPIRER_ACCOUNT = b".expiring_objects"
#: Programs that ask for the queue: a proxy inside the expirer, and the expirer itself.
_EXPIRER_PROGRAMS = (b"proxy-server", b"direct-client")
#: What an internal client of a daemon asks for, as its proxy names it: there is no host. So does what an
#: update that an object server then sends to a container server.
_INTERNAL_DELETE = b"DELETE http://localhost/"
_INTERNAL_PROGRAMS = (b"proxy-server", b"object-server")


def name_request_parties(node: bytes | str, line: BackendLine) -> RawParties:
    """Return who was asked, and who asked, by a line that is not of the run.

    Older versions of Swift call the proxy inside the object-expirer as any other. Its deletes have no port
    in their address, and no client asks for its queue.
    """
    asker, server = line.asker, _UPDATE_RECEIVERS.get((line.asker, line.server), line.server)
    if (asker in _EXPIRER_PROGRAMS and line.names.startswith(_EXPIRER_ACCOUNT)) or (
        asker in _INTERNAL_PROGRAMS and line.referer.startswith(_INTERNAL_DELETE)
    ):
        asker = b"object-expirer"
    return node, server, line.device, asker


@dataclass(frozen=True, slots=True)
class OtherRequests:
    """Columns: ``numbers`` of requests by code, in order; ``names`` are those whom codes mean."""

    names: list[RequestParties] = field(default_factory=list)
    codes: RequestCodes = field(default_factory=lambda: np.zeros(0, np.uint64))
    numbers: Numbers = field(default_factory=lambda: np.zeros(0, np.int64))

    def series(self) -> Iterator[tuple[RequestParties, Numbers, Numbers]]:
        """Yield who it is, the seconds since 1970 in order, and the number of requests in each."""
        first = np.arange(len(self.names) + 1, dtype=np.uint64) << np.uint64(_SECOND_BITS)
        ends = np.searchsorted(self.codes, first)
        seconds = (self.codes & np.uint64((1 << _SECOND_BITS) - 1)).astype(np.int64)
        for place, who in enumerate(self.names):
            mine = slice(int(ends[place]), int(ends[place + 1]))
            yield who, seconds[mine], self.numbers[mine]


def merge_other_requests(several: Iterable[OtherRequests]) -> OtherRequests:
    """Put requests of several files together."""
    names: dict[RequestParties, int] = {}
    codes, numbers = [np.zeros(0, np.uint64)], [np.zeros(0, np.int64)]
    for each in several:
        for who, seconds, counts in each.series():
            place = names.setdefault(who, len(names))
            codes.append(seconds.astype(np.uint64) | np.uint64(place << _SECOND_BITS))
            numbers.append(counts)
    return OtherRequests(list(names), *_sum_equal_codes(np.concatenate(codes), np.concatenate(numbers)))


class OtherRequestCounter:
    """Counts the requests of a file as they come."""

    def __init__(self) -> None:
        self._names: dict[RawParties, int] = {}
        self._lines, self._every = 0, 1
        self._new = array("Q")
        self._codes, self._numbers = np.zeros(0, np.uint64), np.zeros(0, np.int64)

    def chosen(self, trans_ids: Bytes) -> npt.NDArray[np.bool_]:
        """Return of which transactions requests are to be added now."""
        if self._every == 1 and self._lines > MAX_COUNTED_REQUESTS:
            self._settle()
            self._every = COUNTED_ONE_IN
        if self._every == 1:
            return np.ones(len(trans_ids), np.bool_)
        return np.asarray(ids.number_ids(trans_ids) % np.uint64(self._every) == 0)

    def add(self, who: RawParties, second: int) -> None:
        """Take a request in a second since 1970."""
        if not 0 <= second < 1 << _SECOND_BITS:
            return
        self._lines += 1
        self._new.append(self._names.setdefault(who, len(self._names)) << _SECOND_BITS | second)
        if len(self._new) >= _MERGED_AT_ONCE:
            self._settle()

    def _settle(self) -> None:
        codes, counts = np.unique(np.frombuffer(self._new, np.uint64), return_counts=True)
        self._codes, self._numbers = _sum_equal_codes(
            np.append(self._codes, codes), np.append(self._numbers, counts * self._every)
        )
        self._new = array("Q")

    def requests(self, text: Callable[[bytes | str], str]) -> OtherRequests:
        """Return all; ``text`` makes texts of words."""
        self._settle()
        names: list[RequestParties] = [
            (text(node), text(server), text(device), text(asker))
            for node, server, device, asker in self._names
        ]
        return OtherRequests(names, self._codes, self._numbers)


def _sum_equal_codes(codes: RequestCodes, numbers: Numbers) -> tuple[RequestCodes, Numbers]:
    """Add the numbers of equal codes."""
    found, place = np.unique(codes, return_inverse=True)
    return found, np.bincount(place, numbers, len(found)).astype(np.int64)
