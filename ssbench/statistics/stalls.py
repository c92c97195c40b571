"""Stalls: times in which operations were under way and none ended, for longer than chance explains.

``doc/numbers.rst`` defines them. Memory grows with the time of the run only, by four entries a second:
the operations that a gap may have delayed are kept where no operation ended just before, few of each gap.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from ssbench.base.record import Offset, Seconds
from ssbench.results.run_description import Gap
from ssbench.statistics.latencies import Latencies
from ssbench.statistics.tally import find_starts

#: A gap without a completion is a stall when it is longer than this (seconds) ...
STALL_SECONDS = 0.5

#: ... and than this many times the 99th percentile of latency, of operations that stalls did not delay ...
STALL_PERCENTILES = 10

#: ... or than this many times the median, where at most this share of runs whose operations do not wait for
#: each other has such a gap by chance.
STALL_MEDIANS = 3
_CHANCE_SHARE = 0.02

#: A stall that only the percentile shows is longer than this many times the median of the slowest kind of
#: operation: where few users are all busy with large objects, none ends for a while.
STALL_KIND_MEDIANS = 3

#: Several stalls that only the percentile shows may not have delayed more than this share of the operations;
#: one may have delayed half.
_MAX_DELAYED_SHARE = 0.05

#: The first and the last completion of each such part of a second are kept. A gap that is longer than two of
#: them has one in it that is empty.
_BIN_SECONDS = 0.25

#: So many operations of a part that follows an empty one are kept, those that ended first.
_KEPT_OPERATIONS = 64

#: With more parts than this that have operations, those that follow no long gap are dropped.
_MAX_PARTS = 4096

#: Buckets an octave in which latencies are counted.
_BUCKETS_PER_OCTAVE = 16


class Stall(msgspec.Struct, frozen=True):
    """A time without a completion."""

    start: Offset
    seconds: Seconds
    #: For how much of it the store surely had a request: not that in which all users were in pauses before a
    #: retry, or lost with their workers.
    asked: Seconds


#: Stalls of the store are a reason for the verdict where they are together more than this share of a run, or
#: where one is longer than this (seconds) and than :data:`STALL_PERCENTILES` times the 99th percentile.
_NOTABLE_SHARE = 0.01
_NOTABLE_SECONDS = 1.0


def find_store_stalls(
    stalls: Iterable[Stall], start: float, gaps: Sequence[Gap], workers: Iterable[int]
) -> Iterator[Stall]:
    """Yield the stalls that the load generator does not explain, each without the time that it does.

    Nor are pauses before retries the store's, and nothing is known of it where all workers were lost.
    ``start`` is when stalls count from, in seconds since 1970; ``gaps`` are the times in which the master or
    one of these ``workers`` stalled. One of several workers does not stop the others.
    """
    spans = {worker: [gap for gap in gaps if gap.worker_id == worker] for worker in (None, *workers)}
    masters = spans.pop(None)
    for stall in stalls:
        begin, end = start + stall.start, start + stall.start + stall.seconds
        edges = {begin, end}
        for gap in gaps:
            edges |= {each for each in (gap.start, gap.start + gap.seconds) if begin < each < end}
        own = 0.0
        for since, until in pairwise(sorted(edges)):
            middle = (since + until) / 2
            if _is_within(masters, middle) or (
                spans and all(_is_within(each, middle) for each in spans.values())
            ):
                own += until - since
        left = min(stall.seconds - own, stall.asked)
        if left > STALL_SECONDS:
            yield Stall(stall.start, left, left)


def _is_within(gaps: Iterable[Gap], moment: float) -> bool:
    return any(gap.start <= moment < gap.start + gap.seconds for gap in gaps)


def are_notable(stalls: Sequence[Stall], seconds: float, p99: float) -> bool:
    """Whether stalls matter in a run of so many ``seconds`` with this 99th percentile (NaN: none)."""
    if not stalls:
        return False
    longest = max(each.seconds for each in stalls)
    is_long = longest >= _NOTABLE_SECONDS and longest > STALL_PERCENTILES * p99
    return is_long or sum(each.seconds for each in stalls) > _NOTABLE_SHARE * seconds


class _Gap(msgspec.Struct, frozen=True):
    """A time without a completion. Moments are in seconds since 1970."""

    start: float
    end: float
    sent: npt.NDArray[np.float64]  # when operations were sent that it delayed, of the first to end
    delayed: int  # about how many it delayed
    unknown: bool  # there were some of which the moment is not known
    asked: float  # seconds for which the store surely had a request, as far as those kept tell

    @property
    def seconds(self) -> float:
        return self.end - self.start

    def under_way(self) -> _Gap:
        """Return the part of it in which operations were under way, as far as that is known."""
        if self.unknown:
            return self
        start = max(self.start, float(self.sent.min())) if len(self.sent) else self.end
        asked = min(self.asked, self.end - start)
        return _Gap(start, self.end, self.sent, self.delayed, unknown=False, asked=asked)


class _Kept(msgspec.Struct):
    """Operations that ended in a part of a second: (end, sent, idle) of the first, and how many there are."""

    operations: list[tuple[float, float, float]]
    count: int


def _small_order(keys: npt.NDArray[np.float64]) -> npt.NDArray[Any]:
    """Return numbers in the order of these, which are whole: small ones, which numpy sorts by radix."""
    offsets = keys - keys.min()
    return np.asarray(offsets, np.uint16) if offsets.max() < 1 << 16 else offsets


class GapTracker:
    """Follows completions, failures too, for the times without any."""

    def __init__(self) -> None:
        #: The first and the last completion of each part of a second, by its number since 1970.
        self._parts: dict[int, tuple[float, float]] = {}
        self._kept: dict[int, _Kept] = {}
        self._most_kept = _MAX_PARTS

    def add(
        self,
        completed: npt.NDArray[np.float64],
        started: npt.NDArray[np.float64],
        idle: npt.NDArray[np.float64] | float = 0.0,
    ) -> None:
        """Take completions and when these operations were sent (NaN: not known); at least one.

        ``idle`` are the seconds of each for which the store had no request of it; inf: that is not known.
        """
        keys = np.floor(completed / _BIN_SECONDS)
        # Only the parts are put in order, which is fast, because completions nearly are.
        order = _small_order(keys).argsort(kind="stable")
        keys, ended = keys[order], completed[order]
        idle = np.broadcast_to(idle, completed.shape)
        starts = find_starts(keys)
        for key, first, last, start, end in zip(
            map(int, keys[starts].tolist()),
            np.minimum.reduceat(ended, starts).tolist(),
            np.maximum.reduceat(ended, starts).tolist(),
            starts.tolist(),
            np.append(starts[1:], len(keys)).tolist(),
            strict=True,
        ):
            known = self._parts.get(key)
            self._parts[key] = (min(first, known[0]), max(last, known[1])) if known else (first, last)
            if known is None:
                self._drop(key + 1)
                self._drop(key + 2)
            if self._may_follow_a_gap(key):
                own = np.argsort(ended[start:end], kind="stable")
                rows = order[start:end][own]
                self._keep(key, ended[start:end][own], started[rows], idle[rows])

    def stalls(
        self,
        start: float,
        end: float,
        latencies: Latencies,
        users: int | None,
        kinds: Iterable[Latencies] = (),
    ) -> tuple[Stall, ...]:
        """Return the stalls between two moments, of a run with these latencies of successes.

        ``users`` always have an operation under way; None where they are idle at times by intention, so that
        nothing need be under way. ``kinds`` are the same latencies by kind of operation.
        """
        gaps = [gap for gap in self._gaps(start, end) if gap.seconds > STALL_SECONDS]
        if users is None:
            gaps = [part for gap in gaps if (part := gap.under_way()).seconds > STALL_SECONDS]
        found = _find_stalls(gaps, latencies, users or 0, kinds)
        return tuple(Stall(gap.start - start, gap.seconds, gap.asked) for gap in found)

    def _may_follow_a_gap(self, key: int) -> bool:
        return key - 1 not in self._parts or key - 2 not in self._parts

    def _drop(self, key: int) -> None:
        if key in self._kept and not self._may_follow_a_gap(key):
            del self._kept[key]

    def _keep(self, key: int, *columns: npt.NDArray[np.float64]) -> None:
        """Keep the first of some operations, in order: when each ended, was sent, and was idle."""
        kept = self._kept.setdefault(key, _Kept([], 0))
        kept.count += len(columns[0])
        kept.operations += zip(*(each[:_KEPT_OPERATIONS].tolist() for each in columns), strict=True)
        kept.operations.sort(key=lambda each: each[0])
        del kept.operations[_KEPT_OPERATIONS:]
        if len(self._kept) > self._most_kept:
            self._kept = {
                key: kept for key, kept in self._kept.items() if self._is_long(key) or self._is_long(key - 1)
            }
            self._most_kept = max(_MAX_PARTS, 2 * len(self._kept))

    def _is_long(self, key: int) -> bool:
        """Whether a gap that may be a stall ends in a part."""
        if key not in self._parts or key - 1 in self._parts:
            return False
        before = self._parts.get(key - 2)
        return before is None or self._parts[key][0] - before[1] > STALL_SECONDS

    def _gaps(self, start: float, end: float) -> Iterator[_Gap]:
        """Yield the times between the completions of different parts, in order."""
        previous = start
        for key in sorted(self._parts):
            first, last = self._parts[key]
            yield self._gap(previous, min(first, end), key)
            previous = min(last, end)
        yield self._gap(previous, end, None)

    def _gap(self, start: float, end: float, key: int | None) -> _Gap:
        sent: list[float] = []
        delayed = 0
        unknown = False
        asked = 0.0
        if key is not None and end - start > STALL_SECONDS:
            for kept in (self._kept.get(key), self._kept.get(key + 1)):
                if kept is None:
                    continue
                unknown |= any(math.isnan(began) for _, began, _ in kept.operations)
                own = [began for ended, began, _ in kept.operations if began < end <= ended]
                sent += own
                for ended, began, idle in kept.operations:
                    if ended >= end:
                        asked = max(asked, end - (start if math.isnan(began) else max(start, began)) - idle)
                delayed += kept.count if len(own) == _KEPT_OPERATIONS else len(own)
        return _Gap(start, end, np.array(sent), delayed, unknown, asked)


class _Survival:
    """The share of latencies that are longer than a time, within what their buckets tell."""

    def __init__(self, latencies: Latencies) -> None:
        self._edges, counts = latencies.histogram(_BUCKETS_PER_OCTAVE)
        # One more than there are, so that what was never seen is not impossible.
        beyond = np.append(counts[::-1].cumsum()[::-1], 0)
        self._logs = np.append(
            np.log((beyond + 1) / (latencies.count + 1)), math.log(1 / (latencies.count + 1))
        )

    def at_most(self, seconds: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the logarithm of what the share is at most."""
        return self._logs[np.maximum(self._edges.searchsorted(seconds, "right") - 1, 0)]

    def at_least(self, seconds: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the logarithm of what the share is at least."""
        return self._logs[self._edges.searchsorted(seconds, "left")]


def _find_stalls(
    gaps: Sequence[_Gap], latencies: Latencies, users: int, kinds: Iterable[Latencies] = ()
) -> list[_Gap]:
    """Return the gaps that are stalls, in order. Each of them delayed ``users`` or more."""
    if not latencies.count or not gaps:
        return [*gaps]
    survival = _Survival(latencies)
    needed = math.log(latencies.count / _CHANCE_SHARE)
    least = STALL_MEDIANS * latencies.percentile(50)
    found = [gap.seconds > least and _expected_completions(gap, survival) > needed for gap in gaps]
    waited = sum(gap.delayed for gap, is_found in zip(gaps, found, strict=True) if is_found)
    others = [
        (gap.seconds, max(gap.delayed, users))
        for gap, is_found in zip(gaps, found, strict=True)
        if not is_found
    ]
    slowest = max((each.percentile(50) for each in kinds if each.count), default=0.0)
    bound = max(_find_bounds(sorted(others, reverse=True), latencies, waited), STALL_KIND_MEDIANS * slowest)
    return [gap for gap, is_found in zip(gaps, found, strict=True) if is_found or gap.seconds > bound]


def _expected_completions(gap: _Gap, survival: _Survival) -> float:
    """Return how many completions were to be expected in a gap, by the latencies of the run.

    It is the sum of the hazards of what was under way: e to the power of minus this is the probability that
    none of them ends, where operations do not wait for each other.
    """
    before, after = np.maximum(gap.start - gap.sent, 0.0), gap.end - gap.sent
    return float(np.maximum(survival.at_least(before) - survival.at_most(after), 0.0).sum())


def _find_bounds(gaps: Sequence[tuple[float, int]], latencies: Latencies, waited: int) -> float:
    """Return what gaps have to exceed to be stalls: (seconds, operations delayed), the longest first.

    An operation that a stall delayed took as long as the stall, and in a short run one in a hundred may have.
    So the slowest are left out: as many as the stalls that are known delayed (``waited``), and as many as the
    longest gap did, then the two longest, the four longest and so on, for as long as these are stalls then.
    """
    bound = STALL_PERCENTILES * latencies.percentile(99, without=min(waited, latencies.count - 1))
    stalls = 1
    while stalls <= len(gaps):
        delayed = sum(operations for _, operations in gaps[:stalls])
        most = latencies.count * (0.5 if stalls == 1 else _MAX_DELAYED_SHARE)
        if delayed > min(most, latencies.count - waited - 1):
            break
        without = STALL_PERCENTILES * latencies.percentile(99, without=delayed + waited)
        if gaps[stalls - 1][0] > without:
            bound = without
        stalls *= 2
    return bound
