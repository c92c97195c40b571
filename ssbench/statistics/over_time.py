"""What was done over the time of a run, in bins: operations, failures, bytes and latencies by operation.

Memory does not grow with the run: when there are more than :data:`MAX_BINS` bins, each two become one.
Latencies of a bin are counted in buckets, 32 an octave, so that its percentiles are within 1.6 % of
the exact ones. Percentiles of the whole run are exact (:mod:`ssbench.statistics.latencies`).

A :class:`EventEffect` says what happened before, during and after a command that was run at a moment of a
benchmark. *Before* is all until the first command. The rate has *fallen* after a command if so many seconds
in a row were slower than the slowest second before that chance does it after at most one of twenty commands
that do nothing (:func:`count_slow_seconds`); it is *back* from the first so many seconds in a row on that
were not. The time between is *during*. Seconds count from the command on.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import msgspec
import numpy as np
import numpy.typing as npt

from ssbench.base.record import Count, Offset, PerSecond, Seconds
from ssbench.document.figures import UPPER_RANKS, count_needed_results
from ssbench.document.units import format_number
from ssbench.results.block import ResultBlock
from ssbench.results.run_description import EventFacts
from ssbench.statistics.latencies import measured_latencies

#: More bins than this are never kept.
MAX_BINS = 1024

#: The width of a bin at first, in seconds. It is doubled as often as needed.
FIRST_BIN_WIDTH = 1 / 16

#: In a run of this many seconds or more, bins are of a second or more.
_LONG_RUN_SECONDS = 20.0

#: What a latency band may reach up to, and 50 for none: the first of these percentiles that so many bins can
#: have. A bin needs more than the least, because operations do not come evenly.
_BAND_RANKS = (*UPPER_RANKS, 50)
_MIN_BINS = 16
_ROOM_FACTOR = 1.5
_FEW_BINS = 8

#: Buckets of a heat map are so many of those of percentiles: quarters of an octave.
_BUCKETS_PER_HEAT_BUCKET = 8

#: Buckets of latency: from 2**-20 s, a microsecond, 32 octaves of 32. The upper 17 bits of a float that is
#: not negative are its exponent and this many parts of an octave.
_BUCKET_COUNT = 1024
_BUCKET_SHIFT = 47
_FIRST_BUCKET = int(np.float64(2.0**-20).view(np.uint64)) >> _BUCKET_SHIFT

#: Causes of failures come from workers: from this many on, new ones are counted together.
_MAX_CAUSES = 12
_OTHER_CAUSES = "other causes"

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class BinSeries(msgspec.Struct, frozen=True):
    """A number for each bin. Latencies are of successes, in seconds, NaN where there are too few."""

    count: Ints  # successes
    failed: Ints  # failures
    moved: Ints  # bytes of successes
    p50: Floats
    p99: Floats
    maximum: Floats
    #: The percentile that a band above the median reaches up to (:attr:`BinsOverTime.upper_rank`).
    upper: Floats


class BinsOverTime(msgspec.Struct, frozen=True):
    """Bins in order, without gaps. What ended after the window is in them too."""

    starts: Floats  # where each begins, in seconds after the first send
    seconds: Floats  # the length of each
    operations: Mapping[int | None, BinSeries]  # by code; None: all together
    under_way: Floats  # operations that were under way, on average
    causes: Mapping[str, Ints]  # failures by cause
    upper_rank: int  # 50: there are too few operations for a percentile above the median
    heat_edges: Floats  # seconds, a quarter of an octave apart
    heat: Ints  # latencies of all operations between these edges, a row for each bin


class SpanCounts(msgspec.Struct, frozen=True):
    """What ended in a span of a run. Latencies are of successes, in seconds, None where there are too few."""

    count: int  # successes
    failed: int  # failures
    p50: float | None
    p99: float | None
    causes: Mapping[str, int]  # failures by cause


class _Bin(msgspec.Struct):
    """What ended in a bin, of one operation."""

    count: int = 0
    failed: int = 0
    moved: int = 0
    maximum: float = 0.0
    buckets: Ints = msgspec.field(default_factory=lambda: np.zeros(_BUCKET_COUNT, np.int64))

    def take(self, other: _Bin) -> None:
        self.count += other.count
        self.failed += other.failed
        self.moved += other.moved
        self.maximum = max(self.maximum, other.maximum)
        self.buckets += other.buckets


class _RunBin(msgspec.Struct):
    """What is counted in a bin besides, of all operations: when they began and ended, and why they failed."""

    more: int = 0  # how many more began than ended
    time: float = 0.0  # for how long these were under way until the end of the bin, in seconds
    causes: Counter[str] = msgspec.field(default_factory=Counter)


class OverTimeCollector:
    """Counts results into bins, which are kept by the number of their widths since 1970."""

    def __init__(self) -> None:
        self.width = FIRST_BIN_WIDTH
        self._bins: dict[int, dict[int, _Bin]] = {}
        self._besides: dict[int, _RunBin] = {}
        self._causes: set[str] = set()
        self._first: int | None = None
        self._last = 0

    def add(self, block: ResultBlock) -> None:
        """Count the results of a block, which must not be empty."""
        completed = block.completed
        self._make_room(float(completed.min()), float(completed.max()))
        numbers = np.floor(completed / self.width).astype(np.int64)
        operation, latencies = np.asarray(block.operation), measured_latencies(block)
        for code in np.unique(operation).tolist():
            rows = np.flatnonzero(operation == code)
            self._add(self._bins.setdefault(code, {}), block, rows, numbers[rows], latencies[rows])
        self._add_besides(block, numbers)

    def _add_besides(self, block: ResultBlock, numbers: Ints) -> None:
        started = block.started
        known = np.flatnonzero(started <= block.completed)
        for moments, more in ((started[known], 1), (block.completed[known], -1)):
            places = np.floor(moments / self.width).astype(np.int64)
            found, inverse = np.unique(places, return_inverse=True)
            times = np.bincount(inverse, (places + 1) * self.width - moments)
            counts = np.bincount(inverse)
            for number, count, seconds in zip(found.tolist(), counts.tolist(), times.tolist(), strict=True):
                here = self._besides.setdefault(number, _RunBin())
                here.more += more * count
                here.time += more * seconds
        for row, failure in block.failures.items():
            if failure.cause is not None:
                cause = failure.cause
                if cause not in self._causes and len(self._causes) >= _MAX_CAUSES:
                    cause = _OTHER_CAUSES
                self._causes.add(cause)
                self._besides.setdefault(int(numbers[row]), _RunBin()).causes[cause] += 1

    def _make_room(self, earliest: float, latest: float) -> None:
        """Widen bins until those from the first to the last completion are not too many."""
        while True:
            first, last = int(earliest // self.width), int(latest // self.width)
            if self._first is not None:
                first, last = min(first, self._first), max(last, self._last)
            if last - first < MAX_BINS:
                self._first, self._last = first, last
                return
            self.width *= 2
            if self._first is not None:
                self._first, self._last = self._first // 2, self._last // 2
            self._bins = {code: _halve_bins(bins) for code, bins in self._bins.items()}
            self._besides = _halve_run_bins(self._besides, self.width)

    def _add(
        self,
        bins: dict[int, _Bin],
        block: ResultBlock,
        rows: npt.NDArray[np.intp],
        numbers: Ints,
        latencies: Floats,
    ) -> None:
        """Count some rows, given the number of the bin and the latency of each."""
        low = int(numbers.min())
        places = numbers - low
        span = int(places.max()) + 1
        failed = block.failed[rows]
        known = latencies > 0
        buckets = (latencies[known].view(np.uint64) >> np.uint64(_BUCKET_SHIFT)).astype(
            np.int64
        ) - _FIRST_BUCKET
        keys = places[known] * _BUCKET_COUNT + np.clip(buckets, 0, _BUCKET_COUNT - 1)
        table = np.bincount(keys, minlength=span * _BUCKET_COUNT).reshape(span, _BUCKET_COUNT)
        total = np.bincount(places, minlength=span)
        failures = np.bincount(places, failed, span).astype(np.int64)
        moved = np.bincount(places, np.where(failed, 0, np.maximum(block.size[rows], 0)), span)
        maximum = np.zeros(span)
        np.maximum.at(maximum, places[known], latencies[known])
        for place in np.flatnonzero(total).tolist():
            count, lost = int(total[place]), int(failures[place])
            new = _Bin(count - lost, lost, int(moved[place]), float(maximum[place]), table[place])
            old = bins.get(low + place)
            if old is None:
                new.buckets = table[place].copy()
                bins[low + place] = new
            else:
                old.take(new)

    def count_span(self, start: float, end: float, *, is_last: bool) -> SpanCounts:
        """Return what ended between two moments, in whole bins.

        The bin of a moment counts for the span that begins then; that of the end of all for the last span.
        """
        first = math.floor(start / self.width)
        last = math.ceil(end / self.width) if is_last else math.floor(end / self.width)
        found, causes = _Bin(), Counter[str]()
        for bins in self._bins.values():
            for number, each in bins.items():
                if first <= number < last:
                    found.take(each)
        for number, beside in self._besides.items():
            if first <= number < last:
                causes.update(beside.causes)
        ranks = [_percentile(found, rank) for rank in (50, 99)]
        p50, p99 = (None if np.isnan(each) else float(each) for each in ranks)
        return SpanCounts(found.count, found.failed, p50, p99, dict(causes.most_common()))

    def list_successes(self, start: float, step: float, number: int) -> list[int]:
        """Return the successes of so many steps from a moment on, rounded to whole bins."""
        edges = [round((start + place * step) / self.width) for place in range(number + 1)]
        counts: Counter[int] = Counter()
        for bins in self._bins.values():
            for place, each in bins.items():
                counts[place] += each.count
        return [sum(counts[place] for place in range(first, last)) for first, last in pairwise(edges)]

    def finish(self, start: float, end: float) -> BinsOverTime:
        """Return the bins from the first send to the last completion."""
        width, bins, besides = self.width, self._bins, self._besides
        least = 1.0 if end - start >= _LONG_RUN_SECONDS else 0.0
        # The most frequent operation has a percentile in most bins.
        frequent = max(sum(each.count for each in found.values()) for found in bins.values())
        upper_rank, most = _choose_upper_rank(frequent)
        while width < least or (end - start) / width > most:
            width, bins = 2 * width, {code: _halve_bins(each) for code, each in bins.items()}
            besides = _halve_run_bins(besides, width)
        # A bin before the first send can be there where a worker's clock was corrected.
        first = min(int(start // width), *(min(each) for each in bins.values()))
        numbers = every = np.arange(first, int(end // width) + 1)
        starts = np.where(numbers == start // width, start, numbers * width)
        ends = np.minimum((numbers + 1) * width, end)
        # What is left of a bin at either end is too short for a rate of its own.
        if len(numbers) > 2 and ends[0] - starts[0] < width / 2:
            bins = {code: _fold_bins(each, int(numbers[0]), int(numbers[1])) for code, each in bins.items()}
            starts[1] = starts[0]
            numbers, starts, ends = numbers[1:], starts[1:], ends[1:]
        if len(numbers) > 2 and ends[-1] - starts[-1] < width / 2:
            bins = {code: _fold_bins(each, int(numbers[-1]), int(numbers[-2])) for code, each in bins.items()}
            ends[-2] = ends[-1]
            numbers, starts, ends = numbers[:-1], starts[:-1], ends[:-1]
        # What was counted in a bin that is no more belongs to its neighbour.
        places = np.clip(every, numbers[0], numbers[-1]) - numbers[0]
        seconds = np.maximum(ends - starts, 0.0)
        times = np.bincount(places, _times_under_way(besides, every, width))
        together: dict[int, _Bin] = {}
        for each in bins.values():
            _merge_bins(together, each)
        edges, heat = _make_heat_map(together, numbers)
        by_code: list[tuple[int | None, dict[int, _Bin]]] = [(None, together), *bins.items()]
        return BinsOverTime(
            starts=starts - start,
            seconds=seconds,
            operations={code: _make_series(each, numbers, upper_rank) for code, each in by_code},
            under_way=np.divide(times, seconds, out=np.zeros(len(seconds)), where=seconds > 0),
            causes={
                cause: np.bincount(places, _count_cause(cause, besides, every)).astype(np.int64)
                for cause in sorted(self._causes)
            },
            upper_rank=upper_rank,
            heat_edges=edges,
            heat=heat,
        )


def _choose_upper_rank(count: int) -> tuple[int, float]:
    """Return the upper rank of the band for so many operations, and how many bins may have it."""
    bins = {rank: count / (_ROOM_FACTOR * count_needed_results(rank)) for rank in _BAND_RANKS}
    rank = next((rank for rank, most in bins.items() if most >= _MIN_BINS), _BAND_RANKS[-1])
    return rank, max(_FEW_BINS, bins[rank])


def _make_heat_map(bins: Mapping[int, _Bin], numbers: Ints) -> tuple[Floats, Ints]:
    """Return the edges of buckets of latency that have any, and how many each has in each bin."""
    empty = _Bin()
    rows = [
        bins.get(number, empty).buckets.reshape(-1, _BUCKETS_PER_HEAT_BUCKET).sum(1)
        for number in numbers.tolist()
    ]
    counts = np.array(rows)
    used = np.flatnonzero(counts.any(0))
    if not len(used):
        return np.empty(0), np.empty((len(rows), 0), np.int64)
    low, high = int(used[0]), int(used[-1]) + 1
    edges = [_bucket_edge(place * _BUCKETS_PER_HEAT_BUCKET) for place in range(low, high + 1)]
    return np.array(edges), counts[:, low:high]


def _count_cause(cause: str, besides: Mapping[int, _RunBin], numbers: Ints) -> Ints:
    """Return how often operations failed for a cause in each bin."""
    return np.array(
        [besides[number].causes[cause] if number in besides else 0 for number in numbers.tolist()]
    )


def _times_under_way(besides: Mapping[int, _RunBin], numbers: Ints, width: float) -> Floats:
    """Return for how long operations were under way in each bin, summed up over them, in seconds."""
    level = sum(each.more for number, each in besides.items() if number < numbers[0])
    nothing = _RunBin()
    times = []
    for number in numbers.tolist():
        here = besides.get(number, nothing)
        times.append(max(0.0, level * width + here.time))
        level += here.more
    return np.array(times)


def _halve_run_bins(besides: Mapping[int, _RunBin], width: float) -> dict[int, _RunBin]:
    """Return what was counted besides in bins of twice the width, which is ``width``."""
    wider: dict[int, _RunBin] = {}
    for number, one in besides.items():
        here = wider.setdefault(number // 2, _RunBin())
        here.more += one.more
        here.time += one.time + (0.0 if number % 2 else one.more * width / 2)
        here.causes.update(one.causes)
    return wider


def _merge_bins(into: dict[int, _Bin], bins: Mapping[int, _Bin]) -> None:
    for number, one in bins.items():
        into.setdefault(number, _Bin()).take(one)


def _halve_bins(bins: Mapping[int, _Bin]) -> dict[int, _Bin]:
    """Return bins of twice the width, which are new ones."""
    wider: dict[int, _Bin] = {}
    for number, one in bins.items():
        wider.setdefault(number // 2, _Bin()).take(one)
    return wider


def _fold_bins(bins: Mapping[int, _Bin], one: int, other: int) -> dict[int, _Bin]:
    """Return bins, one of them put into another."""
    folded = dict(bins)
    parts = [folded.pop(number) for number in (one, other) if number in folded]
    if parts:
        folded[other] = _Bin()
        for part in parts:
            folded[other].take(part)
    return folded


def _make_series(bins: Mapping[int, _Bin], numbers: Ints, upper_rank: int) -> BinSeries:
    empty = _Bin()
    rows = [bins.get(number, empty) for number in numbers.tolist()]
    return BinSeries(
        count=np.array([row.count for row in rows], np.int64),
        failed=np.array([row.failed for row in rows], np.int64),
        moved=np.array([row.moved for row in rows], np.int64),
        p50=np.array([_percentile(row, 50) for row in rows]),
        p99=np.array([_percentile(row, 99) for row in rows]),
        maximum=np.array([row.maximum or np.nan for row in rows]),
        upper=np.array([_percentile(row, upper_rank) for row in rows]),
    )


def _percentile(row: _Bin, rank: float) -> float:
    """Return the middle of the bucket that has the percentile, by the rule of exact ones.

    NaN where a table would show none, because the percentile needs more results.
    """
    sums = np.cumsum(row.buckets)
    if sums[-1] < count_needed_results(rank):
        return np.nan
    bucket = int(np.searchsorted(sums, np.ceil(sums[-1] * rank / 100)))
    return min((_bucket_edge(bucket) + _bucket_edge(bucket + 1)) / 2, row.maximum)


def _bucket_edge(bucket: int) -> float:
    return float(np.uint64((bucket + _FIRST_BUCKET) << _BUCKET_SHIFT).view(np.float64))


# -- Commands that were run meanwhile --------------------------------------------------------------


#: Seconds before the first command that there must be to say how slow a second usually is.
_MIN_SECONDS_BEFORE = 10

#: The share of commands without any effect after which the rate seems to have fallen.
_ERROR_SHARE = 0.05


class SpanFigures(msgspec.Struct, frozen=True):
    """What ended in a span of a run, to the width of a bin; percentiles are within 1.6 % of exact ones."""

    start: Offset  # when it begins
    seconds: Seconds  # how long it is
    count: Count  # successes
    failed: Count  # failures
    rate: PerSecond | None  # successes a second; null: no time passed
    p50: Seconds | None  # latency of successes; null: too few
    p99: Seconds | None  # as p50
    causes: Mapping[str, Count]  # failures by cause


class EventEffect(msgspec.Struct, frozen=True):
    """A command that was run during the benchmark, and what happened around it."""

    facts: EventFacts  # how the command went
    start: Offset | None  # when it began; null: it did not
    slowest_before: PerSecond | None  # rate of the slowest second before the first command; null: too few
    #: Seconds from its begin until the rate was back; 0: it did not fall; null: it did not come back before
    #: the next command or the end, or it is not known.
    back_after: Seconds | None
    fell: bool | None  # whether the rate fell; null: there was too little time before to know
    before: SpanFigures | None  # until the first command
    during: SpanFigures | None  # until the rate was back; null: it did not fall
    after: SpanFigures | None  # from then on, until the next command or the end


def count_slow_seconds(before: int, after: int) -> int:
    """Return how many seconds in a row have to be slower than each of so many ``before``.

    Chance makes that many among so many ``after`` with a probability of at most 5 %, where all orders of
    seconds are as likely.
    """
    number = 2
    while after / math.comb(before + number, number) > _ERROR_SHARE:
        number += 1
    return number


def measure_event_effects(
    events: Sequence[EventFacts], over_time: OverTimeCollector, start: float, end: float
) -> tuple[EventEffect, ...]:
    """Return what happened around each of the commands of a run; ``start`` and ``end`` are its window's."""
    begun = sorted((each for each in events if each.began is not None), key=lambda each: each.began or 0.0)
    bounds = [min(max(each.began or 0.0, start), end) for each in begun] + [end]
    found = []
    step = max(1.0, over_time.width)
    usual = [*over_time.list_successes(start, step, int((bounds[0] - start) / step))]
    known = len(usual) >= _MIN_SECONDS_BEFORE

    def measured(since: float, until: float) -> SpanFigures:
        return _measure_span(over_time, start, since, until, is_last=until == end)

    before = measured(start, bounds[0]) if begun else None
    for each, (own, following) in zip(begun, pairwise(bounds), strict=True):
        number = int((following - own) / step)
        counts = [*over_time.list_successes(own, step, number)]
        fell, back = (None, None) if not known else _find_fall(counts, min(usual), len(usual))
        middle = following if fell and back is None else own + (back or 0) * step
        found.append(
            EventEffect(
                facts=each,
                start=own - start,
                slowest_before=min(usual) / step if known else None,
                back_after=None if back is None else back * step,
                fell=fell,
                before=before,
                during=measured(own, middle) if fell else None,
                after=measured(middle, following) if middle < following else None,
            )
        )
    for each in events:
        if each.began is None:
            found.append(EventEffect(each, None, None, None, None, None, None, None))
    return tuple(found)


def _find_fall(counts: Sequence[int], slowest: int, before: int) -> tuple[bool, int | None]:
    """Return whether the rate fell, and after how many steps it was back; None: not until the end."""
    needed = count_slow_seconds(before, max(len(counts), 1))
    slow = [count < slowest for count in counts]
    first = _find_run(slow, needed, 0, wanted=True)
    if first is None:
        return False, 0
    return True, _find_run(slow, needed, first, wanted=False)


def _find_run(values: Sequence[bool], length: int, start: int, *, wanted: bool) -> int | None:
    """Return where the first so many values in a row are as wanted, from a place on."""
    row = 0
    for place in range(start, len(values)):
        row = row + 1 if values[place] is wanted else 0
        if row == length:
            return place - length + 1
    return None


def _measure_span(
    over_time: OverTimeCollector, origin: float, start: float, end: float, *, is_last: bool
) -> SpanFigures:
    counted = over_time.count_span(start, end, is_last=is_last)
    seconds = max(0.0, end - start)
    return SpanFigures(
        start=start - origin,
        seconds=seconds,
        count=counted.count,
        failed=counted.failed,
        rate=counted.count / seconds if seconds else None,
        p50=counted.p50,
        p99=counted.p99,
        causes=counted.causes,
    )


def describe_event_effect(effect: EventEffect) -> Iterator[str]:
    """Yield sentences on what a command did to the rate."""
    if effect.start is None or effect.fell is None:
        return
    slowest = f"{format_number(effect.slowest_before)} ops/s" if effect.slowest_before is not None else ""
    if not effect.fell:
        yield f"the rate did not fall below that of the slowest second before ({slowest})"
    elif effect.back_after is None:
        yield f"the rate fell below that of the slowest second before ({slowest}), and did not recover"
    else:
        yield (
            f"the rate fell below that of the slowest second before ({slowest}), and recovered after"
            f" {format_number(effect.back_after)} s"
        )
