"""What the time of operations went into: waiting until they began, connections, pauses, the last attempt.

Most operations are one attempt over a kept connection. Their latencies are collected once, and blocks that
say nothing of the rest cost nothing.

Operations of an open loop are due at moments of their own, and have response times and lateness
(:class:`DueFigures`). An operation that was due and never began has no response time, but it is known how
long it had waited by the end: its response time is longer than that (it is censored). So a percentile of all
that were due lies between two bounds. The lower one counts each of those as what it had waited, the upper one
as infinite.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec
import numpy as np
import numpy.typing as npt

from ssbench.base.record import Count, Seconds
from ssbench.results.block import ResultBlock
from ssbench.statistics.confidence import Interval
from ssbench.statistics.latencies import Latencies, LatencyCollector, measured_latencies, merge_latencies
from ssbench.statistics.tally import add_up, grow_groups

#: What a block has given in which an operation was more than its last attempt.
_PART_FIELDS = frozenset({"connecting", "pausing", "last_attempt"})

#: The least time that a stat file keeps. Latencies of zero count as not measured, so one that was measured,
#: of an operation that began at the moment when it was due, is this at least.
_MIN_SECONDS = 1e-9


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
        self._last_attempt.add(block, rows, groups, np.fmax(last_attempt[more], _MIN_SECONDS), before)
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
    """Return the parts of several groups together."""
    return sum((each for each in parts if each is not NO_LATENCY_PARTS), NO_LATENCY_PARTS)


_NO_PART = Part()

#: What is shared by all that has none of it.
NO_LATENCY_PARTS = LatencyParts()


# -- Operations that were due ----------------------------------------------------------------------


#: Bounds that differ by no more than this share are one figure.
_BOUND_TOLERANCE = 0.01


class CensoredLatencies(msgspec.Struct, frozen=True):
    """The latencies of successes, and how long those had waited that were due and never began; seconds.

    Figures are lower bounds; :meth:`most` are the upper ones.
    """

    measured: Latencies  # response times in an open loop, else latencies to the last byte
    waited: Latencies  # empty in a closed loop
    together: Latencies  # both

    @classmethod
    def of(cls, measured: Latencies, waited: Latencies) -> CensoredLatencies:
        """Return both together, without copying."""
        return cls(measured, waited, merge_latencies((measured, waited)) if waited.count else measured)

    @property
    def count(self) -> int:
        """How many operations there are, those that never began too."""
        return self.together.count

    @property
    def mean(self) -> float:
        """The least that the mean is; NaN without any operation."""
        return self.together.mean

    def percentile(self, rank: float) -> float:
        """Return the least that a percentile is, 0 < rank <= 100; NaN without any operation."""
        return self.together.percentile(rank)

    def most(self, rank: float | None) -> float:
        """Return the most that a percentile is, or the mean for None; infinite where that is not known."""
        low = self.mean if rank is None else self.percentile(rank)
        if not self.waited.count:
            return low
        high = math.inf if rank is None else self.measured.percentile(rank, endless=self.waited.count)
        return low if high <= low * (1 + _BOUND_TOLERANCE) else high

    def share_within(self, limit: float) -> float:
        """Return the share of operations up to a limit, as far as they are known to be; 0 without any."""
        known = self.measured.share_within(limit) * self.measured.count
        return known / self.count if self.count else 0.0

    def supports(self, rank: float) -> bool:
        """Whether enough operations lie beyond a percentile."""
        return self.together.supports(rank)

    def supported_percentile(self, rank: float) -> float | None:
        """Return the least that a percentile is; None where too few operations lie beyond."""
        return self.percentile(rank) if self.supports(rank) else None

    def interval(self, rank: float) -> Interval | None:
        """Return the 95 % interval of a percentile; None where it is only a bound, or the run was short."""
        return self.measured.interval(rank) if self.percentile(rank) == self.most(rank) else None


def make_uncensored(latencies: Latencies) -> CensoredLatencies:
    """Return latencies of which nothing is missing."""
    return CensoredLatencies(latencies, merge_latencies(()), latencies)


#: An operation that began more than this many seconds after it was due is late.
LATE_START_SECONDS = 1e-3


class DueFigures(msgspec.Struct, frozen=True):
    """What is known of some operations that were due, none in a closed loop."""

    #: Time of successes from when they were due to their last byte.
    response: Latencies = msgspec.field(default_factory=lambda: merge_latencies(()))
    #: Time of all from when they were due to their first attempt.
    lateness: Latencies = msgspec.field(default_factory=lambda: merge_latencies(()))
    late: int = 0  # those later than :data:`LATE_START_SECONDS`
    #: How long those had waited by the end that never began.
    waited: Latencies = msgspec.field(default_factory=lambda: merge_latencies(()))
    #: Latencies of successes that were not due, in a run that has stages with and without a rate.
    undue: Latencies = msgspec.field(default_factory=lambda: merge_latencies(()))

    @property
    def since_due(self) -> CensoredLatencies:
        """Response times, with those that never began; empty in a closed loop."""
        return CensoredLatencies.of(self.response, self.waited)

    def users_latency(self, last_byte: Latencies) -> CensoredLatencies:
        """Return latencies as users met them, of operations with these to the last byte."""
        if not self.response.count and not self.waited.count:
            return CensoredLatencies.of(last_byte, self.waited)
        measured = merge_latencies((self.response, self.undue)) if self.undue.count else self.response
        return CensoredLatencies.of(measured, self.waited)


def merge_due(parts: Iterable[DueFigures]) -> DueFigures:
    """Return what is known of several groups together."""
    parts = list(parts)
    return DueFigures(
        merge_latencies(part.response for part in parts),
        merge_latencies(part.lateness for part in parts),
        sum(part.late for part in parts),
        merge_latencies(part.waited for part in parts),
        merge_latencies(part.undue for part in parts),
    )


class DueCollector:
    """Counts operations that were due, by the number of their group; others are passed over."""

    def __init__(self) -> None:
        self._response = LatencyCollector()
        self._lateness = LatencyCollector()
        self._undue = LatencyCollector()
        self._late = np.empty(0, np.int64)

    def add(
        self,
        block: ResultBlock,
        groups: npt.NDArray[np.intp],
        started: npt.NDArray[np.float64],
        before: int,
        *,
        mixed: bool = False,
    ) -> None:
        """Count a block that has ``before`` results before it; ``groups`` and ``started`` are of its rows.

        With ``mixed`` those that were not due are kept too.
        """
        if mixed:
            others = np.flatnonzero(np.isnan(block.due))
            self._undue.add(block, others, groups[others], measured_latencies(block)[others], before)
        rows = np.flatnonzero(~np.isnan(block.due + started))
        lateness = np.maximum(started[rows] - block.due[rows], _MIN_SECONDS)
        self._late = add_up(self._late, groups[rows[lateness > LATE_START_SECONDS]])
        self._lateness.add(block, rows, groups[rows], lateness, before)
        rows = rows[~block.failed[rows]]
        response = np.maximum(block.completed[rows] - block.due[rows], _MIN_SECONDS)
        self._response.add(block, rows, groups[rows], response, before)

    def finish(self, count: int = 1) -> list[DueFigures]:
        """Return all that was counted of the groups 0 to ``count`` - 1."""
        collectors = (self._response, self._lateness, self._undue)
        late = grow_groups(self._late, count).tolist()
        return [
            DueFigures(response, lateness, late[group], undue=undue)
            for group, (response, lateness, undue) in enumerate(
                zip(*(each.finish(count) for each in collectors), strict=True)
            )
        ]
