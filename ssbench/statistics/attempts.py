"""What the time of operations went into: their last attempt, what came before that, connections.

Most operations are one attempt over a kept connection. Their latencies are collected once, and blocks that
say nothing of the rest cost nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np
import numpy.typing as npt

from ssbench.measures import Count, Seconds
from ssbench.results import ResultBlock
from ssbench.statistics.latencies import Latencies, LatencyCollector, merge

#: What a block has given in which an operation was more than its last attempt.
_MORE = frozenset({"connecting", "pausing", "last_attempt"})

#: Latencies of zero count as not measured.
_LEAST = 1e-9


class Times(msgspec.Struct, frozen=True):
    """Last-byte latencies of operations, what their last attempts took, and connecting of those that did."""

    whole: Latencies
    last_attempt: Latencies
    connecting: Latencies


class TimesCollector:
    """Collects the three times of an operation and a size class."""

    def __init__(self) -> None:
        self._same = LatencyCollector()
        self._whole = LatencyCollector()
        self._last_attempt = LatencyCollector()
        self._connecting = LatencyCollector()

    def add(
        self,
        block: ResultBlock,
        rows: npt.NDArray[np.intp],
        latencies: npt.NDArray[np.float64],
        before: int,
    ) -> None:
        """Take the last-byte latencies of some rows of a block that has ``before`` results before it."""
        if not block.given & _MORE:
            self._same.add(block, rows, latencies, before)
            return
        last_attempt = block.last_attempt[rows]
        more = (last_attempt != latencies) & (latencies > 0)
        self._same.add(block, rows[~more], latencies[~more], before)
        rows, latencies = rows[more], latencies[more]
        self._whole.add(block, rows, latencies, before)
        self._last_attempt.add(block, rows, np.fmax(last_attempt[more], _LEAST), before)
        connecting = block.connecting[rows]
        connected = connecting > 0
        self._connecting.add(block, rows[connected], connecting[connected], before)

    def finish(self) -> Times:
        """Return all that was collected; what both have in common is there once."""
        same = self._same.finish()
        return Times(
            merge([same, self._whole.finish()]),
            merge([same, self._last_attempt.finish()]),
            self._connecting.finish(),
        )


class Part(msgspec.Struct, frozen=True, rename={"longest": "max"}):
    """A part of the time of operations: how many had it, their seconds of it, the most of one."""

    count: Count = 0
    seconds: Seconds = 0.0
    longest: Seconds = 0.0

    def __add__(self, other: Part) -> Part:
        """Return both together."""
        return Part(self.count + other.count, self.seconds + other.seconds, max(self.longest, other.longest))


class Parts(msgspec.Struct, frozen=True):
    """The parts of the time of some successes: new connections, and our own pauses between attempts."""

    connecting: Part = msgspec.field(default_factory=Part)
    pausing: Part = msgspec.field(default_factory=Part)

    def __add__(self, other: Parts) -> Parts:
        """Return both together."""
        return Parts(self.connecting + other.connecting, self.pausing + other.pausing)


def parts_of(block: ResultBlock, rows: npt.NDArray[np.intp]) -> Parts:
    """Return the parts of the time of some successes of a block, of those whose latencies count."""
    given = block.given
    connecting = _part(block.connecting[rows]) if "connecting" in given else _NO_PART
    pausing = _part(block.pausing[rows]) if "pausing" in given else _NO_PART
    return NONE if connecting is pausing is _NO_PART else Parts(connecting, pausing)


def sum_of(parts: Iterable[Parts]) -> Parts:
    """Return several together."""
    return sum((each for each in parts if each is not NONE), NONE)


def _part(seconds: npt.NDArray[np.float64]) -> Part:
    some = seconds[seconds > 0]
    return Part(len(some), float(some.sum()), float(some.max())) if len(some) else _NO_PART


_NO_PART = Part()

#: What is shared by all that has none of it.
NONE = Parts()
