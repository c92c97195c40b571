"""What the time of operations went into: their last attempt, what came before that, connections.

Most operations are one attempt over a kept connection. Their latencies are collected once, and blocks that
say nothing of the rest cost nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np
import numpy.typing as npt

from ssbench.base.measures import Count, Seconds
from ssbench.results.block import ResultBlock
from ssbench.statistics.latencies import Latencies, merge_latencies
from ssbench.statistics.latency_collector import LatencyCollector
from ssbench.statistics.tally import add_up, grow_groups

#: What a block has given in which an operation was more than its last attempt.
_PART_FIELDS = frozenset({"connecting", "pausing", "last_attempt"})

#: Latencies of zero count as not measured.
_MIN_ATTEMPT_SECONDS = 1e-9


class AttemptTimes(msgspec.Struct, frozen=True):
    """Last-byte latencies of operations, what their last attempts took, and connecting of those that did."""

    whole: Latencies
    last_attempt: Latencies
    connecting: Latencies


class AttemptTimesCollector:
    """Collects the three times of operations, by the number of their group."""

    def __init__(self) -> None:
        self._same = LatencyCollector()
        self._whole = LatencyCollector()
        self._last_attempt = LatencyCollector()
        self._connecting = LatencyCollector()

    def add(
        self,
        block: ResultBlock,
        rows: npt.NDArray[np.intp],
        groups: npt.NDArray[np.intp],
        latencies: npt.NDArray[np.float64],
        before: int,
    ) -> None:
        """Take the last-byte latencies of some rows of a block that has ``before`` results before it.

        ``groups`` and ``latencies`` are those of these rows.
        """
        if not block.given & _PART_FIELDS:
            self._same.add(block, rows, groups, latencies, before)
            return
        last_attempt = block.last_attempt[rows]
        more = (last_attempt != latencies) & (latencies > 0)
        self._same.add(block, rows[~more], groups[~more], latencies[~more], before)
        rows, groups, latencies = rows[more], groups[more], latencies[more]
        self._whole.add(block, rows, groups, latencies, before)
        self._last_attempt.add(block, rows, groups, np.fmax(last_attempt[more], _MIN_ATTEMPT_SECONDS), before)
        connecting = block.connecting[rows]
        connected = connecting > 0
        self._connecting.add(block, rows[connected], groups[connected], connecting[connected], before)

    def finish(self, count: int = 1) -> list[AttemptTimes]:
        """Return all that was collected of the groups 0 to ``count`` - 1; what times share is there once."""
        collectors = (self._same, self._whole, self._last_attempt, self._connecting)
        return [
            AttemptTimes(merge_latencies([same, whole]), merge_latencies([same, last_attempt]), connecting)
            for same, whole, last_attempt, connecting in zip(
                *(each.finish(count) for each in collectors), strict=True
            )
        ]


class Part(msgspec.Struct, frozen=True, rename={"longest": "max"}):
    """A part of the time of operations: how many had it, their seconds of it, the most of one."""

    count: Count = 0
    seconds: Seconds = 0.0
    longest: Seconds = 0.0

    def __add__(self, other: Part) -> Part:
        """Return both together."""
        return Part(self.count + other.count, self.seconds + other.seconds, max(self.longest, other.longest))


class LatencyParts(msgspec.Struct, frozen=True):
    """The parts of the time of some successes: new connections, and our own pauses between attempts."""

    connecting: Part = msgspec.field(default_factory=Part)
    pausing: Part = msgspec.field(default_factory=Part)

    def __add__(self, other: LatencyParts) -> LatencyParts:
        """Return both together."""
        return LatencyParts(self.connecting + other.connecting, self.pausing + other.pausing)


class LatencyPartsCollector:
    """Sums up the parts of the time of successes, by the number of their group."""

    def __init__(self) -> None:
        self._connecting = _PartCollector()
        self._pausing = _PartCollector()

    def add(self, block: ResultBlock, rows: npt.NDArray[np.intp], groups: npt.NDArray[np.intp]) -> None:
        """Count some rows of a block, which are of these groups, of successes whose latencies count."""
        if "connecting" in block.given:
            self._connecting.add(block.connecting[rows], groups)
        if "pausing" in block.given:
            self._pausing.add(block.pausing[rows], groups)

    def finish(self, count: int = 1) -> list[LatencyParts]:
        """Return what was counted of the groups 0 to ``count`` - 1."""
        both = zip(self._connecting.finish(count), self._pausing.finish(count), strict=True)
        return [
            NO_LATENCY_PARTS if connecting is pausing is _NO_PART else LatencyParts(connecting, pausing)
            for connecting, pausing in both
        ]


class _PartCollector:
    def __init__(self) -> None:
        self._counts = self._seconds = self._longest = np.empty(0)

    def add(self, seconds: npt.NDArray[np.float64], groups: npt.NDArray[np.intp]) -> None:
        some = seconds > 0
        seconds, groups = seconds[some], groups[some]
        if len(groups):
            self._counts = add_up(self._counts, groups)
            self._seconds = add_up(self._seconds, groups, seconds)
            self._longest = grow_groups(self._longest, len(self._counts))
            np.maximum.at(self._longest, groups, seconds)

    def finish(self, count: int) -> list[Part]:
        columns = (grow_groups(each, count)[:count] for each in (self._counts, self._seconds, self._longest))
        return [
            Part(int(count), seconds, longest) if count else _NO_PART
            for count, seconds, longest in zip(*(each.tolist() for each in columns), strict=True)
        ]


def sum_parts(parts: Iterable[LatencyParts]) -> LatencyParts:
    """Return several together."""
    return sum((each for each in parts if each is not NO_LATENCY_PARTS), NO_LATENCY_PARTS)


_NO_PART = Part()

#: What is shared by all that has none of it.
NO_LATENCY_PARTS = LatencyParts()
