"""What was done in each second of the clock, and how long it took, for all that looks at a run over time.

Latencies are counted in 64 parts an octave, 1.1 % wide: a thousand of them in a second need as much
memory as 200, and no more than before where each is another.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from ssbench.statistics.confidence import (
    Interval,
    Series,
    ShareInterval,
    mean_interval,
    percentile_ranks,
    remove_step,
    share_ranks,
)
from ssbench.statistics.tally import count_values, find_starts, number_values, to_whole_numbers

#: The upper bits of a float: sign, exponent and 6 bits that divide an octave.
_BUCKET_BITS = 18
_LOWER_BITS = 64 - _BUCKET_BITS
_BUCKET_MASK = (1 << _BUCKET_BITS) - 1

#: Tables with more places than this are sorted instead of being counted place by place.
_MAX_PLACES = 1 << 21
#: So are those with more places for each key than this: to look at a place takes some 2 ns, to sort a key 70.
_PLACES_PER_KEY = 32

#: What is later than this does not fit in a key; it is in a damaged file.
_LAST_SECOND = float(1 << 44)

#: Moments further apart than this are those of a damaged file; and beyond a day, further apart than so many
#: seconds for each in which something ended. What is kept by the second takes memory for each of them.
_MAX_SPAN_SECONDS = 40 * 86400
_DAY_SECONDS = 86400
_MAX_SECONDS_BETWEEN = 100

_Integers = npt.NDArray[np.int64]

#: Keys in ascending order, each once, as what is to be added to a first one; how often each occurs.
_Part = tuple[int, npt.NDArray[Any], npt.NDArray[Any]]


class BySecond(msgspec.Struct):
    """Successes, the bytes that they moved, and failures, by the second since 1970 in which they ended."""

    counts: Counter[int] = msgspec.field(default_factory=Counter)
    moved: Counter[int] = msgspec.field(default_factory=Counter)
    failed: Counter[int] = msgspec.field(default_factory=Counter)

    def ended(self, first: int, last: int) -> int:
        """Return how many operations ended, failures too, from a second to another, without that."""
        return sum(
            count
            for counts in (self.counts, self.failed)
            for second, count in counts.items()
            if first <= second < last
        )

    def failures(self) -> tuple[Series, Series]:
        """Return how many operations failed in each second of the clock, and how many ended."""
        seconds = self.counts.keys() | self.failed.keys()
        first, last = (min(seconds), max(seconds) + 1) if seconds else (0, 0)
        if not is_plausible_span(last - first, len(seconds)):
            return np.empty(0), np.empty(0)
        failed = _fill_seconds(self.failed, first, last)
        return failed, failed + _fill_seconds(self.counts, first, last)

    def series(self, start: float, end: float) -> tuple[Series, Series]:
        """Return successes and bytes of each whole second of the clock between two moments."""
        first, last = int(np.ceil(start)), int(np.floor(end))
        if not is_plausible_span(last - first, len(self.counts)):
            return np.empty(0), np.empty(0)
        return _fill_seconds(self.counts, first, last), _fill_seconds(self.moved, first, last)

    def intervals(self, start: float, end: float) -> tuple[Interval | None, Interval | None]:
        """Return the intervals of the rate of successes and of bytes; None of runs that were too short.

        They are those of the noise around the levels of a run in which the rate changed from one to another.
        """
        counts, moved = self.series(start, end)
        return mean_interval(remove_step(counts)), mean_interval(remove_step(moved))


def is_plausible_span(span: int, ends: int) -> bool:
    """Whether a run may take so many seconds, in ``ends`` of which something ended."""
    return 0 < span <= min(_MAX_SPAN_SECONDS, max(_DAY_SECONDS, _MAX_SECONDS_BETWEEN * ends))


def merge_seconds(parts: Iterable[BySecond]) -> BySecond:
    """Return several groups together."""
    parts = list(parts)
    return BySecond(
        _merged([part.counts for part in parts]),
        _merged([part.moved for part in parts]),
        _merged([part.failed for part in parts]),
    )


def _merged(parts: Sequence[Counter[int]]) -> Counter[int]:
    """Return counters together, of which there may be thousands."""
    found: Counter[int] = Counter()
    seconds = np.fromiter(chain.from_iterable(parts), np.int64)
    count_values(found, seconds, np.fromiter(chain.from_iterable(part.values() for part in parts), np.int64))
    return found


class BySecondCollector:
    """Counts what ended in each second, by the number of its group."""

    def __init__(self) -> None:
        self._groups: list[BySecond] = []

    def add(
        self,
        groups: npt.NDArray[np.intp],
        completed: npt.NDArray[np.float64],
        moved: npt.NDArray[Any],
        succeeded: npt.NDArray[np.bool_],
    ) -> None:
        """Count operations by when they ended, and the bytes that they moved, 0 of failures."""
        self._groups += [BySecond() for _ in range(int(groups.max()) + 1 - len(self._groups))]
        seconds, names = number_values(np.floor(completed).astype(np.int64))
        places, keys = number_values(groups * len(names) + seconds)
        every, successes = np.bincount(places), np.bincount(places, succeeded)
        sums = np.bincount(places, moved)
        some = np.flatnonzero(every)
        own, seconds = np.divmod(keys[some], len(names))
        columns = (own, names[seconds], successes[some], sums[some], every[some] - successes[some])
        for group, second, count, size, failed in zip(
            *(to_whole_numbers(column).tolist() for column in columns), strict=True
        ):
            found = self._groups[group]
            if count:  # get() is much faster than a missing key of a Counter
                found.counts[second] = found.counts.get(second, 0) + count
                found.moved[second] = found.moved.get(second, 0) + size
            if failed:
                found.failed[second] = found.failed.get(second, 0) + failed

    def finish(self, count: int) -> list[BySecond]:
        """Return what was counted of the groups 0 to ``count`` - 1."""
        return [*self._groups, *(BySecond() for _ in range(count - len(self._groups)))]


def _fill_seconds(counts: Counter[int], first: int, last: int) -> Series:
    seconds = np.fromiter(counts.keys(), np.int64, len(counts))
    values = np.fromiter(counts.values(), np.float64, len(counts))
    inside = (seconds >= first) & (seconds < last)
    dense = np.zeros(last - first)
    dense[seconds[inside] - first] = values[inside]
    return dense


class LatencyTable:
    """How many latencies of each second lie in each bucket; parts are put together when they are needed.

    The keys of a part ascend, and each is there once.
    """

    __slots__ = ("_made", "_parts")

    def __init__(self, parts: Iterable[_Part] = ()) -> None:
        self._parts = tuple(part for part in parts if len(part[1]))
        self._made: tuple[_Integers, _Integers, _Integers] | None = None

    @classmethod
    def of(cls, completed: npt.NDArray[np.float64], latencies: npt.NDArray[np.float64]) -> LatencyTable:
        """Make a table of latencies above 0 and of when they ended."""
        seconds = np.clip(completed, 0, _LAST_SECOND).astype(np.int64)
        buckets = np.ascontiguousarray(latencies).view(np.int64) >> _LOWER_BITS
        return cls([_compact(*_count_keys((seconds << _BUCKET_BITS) | buckets))])

    @classmethod
    def by_group(
        cls,
        groups: npt.NDArray[np.intp],
        completed: npt.NDArray[np.float64],
        latencies: npt.NDArray[np.float64],
    ) -> dict[int, LatencyTable]:
        """Make a table for each of some groups, of latencies above 0 and of when they ended."""
        seconds, values = number_values(np.clip(completed, 0, _LAST_SECOND).astype(np.int64))
        buckets = np.ascontiguousarray(latencies).view(np.int64) >> _LOWER_BITS
        keys, counts = _count_keys(((groups * len(values) + seconds) << _BUCKET_BITS) | buckets)
        groups, seconds = np.divmod(keys >> _BUCKET_BITS, len(values))
        first, keys, counts = _compact((values[seconds] << _BUCKET_BITS) | (keys & _BUCKET_MASK), counts)
        starts = find_starts(groups)
        ends = [*starts[1:].tolist(), len(keys)]
        return {
            group: cls([(first, keys[start:end], counts[start:end])])
            for group, start, end in zip(groups[starts].tolist(), starts.tolist(), ends, strict=True)
        }

    @classmethod
    def merged(cls, tables: Iterable[LatencyTable]) -> LatencyTable:
        """Return several tables together, without copying them."""
        return cls(part for table in tables for part in table._parts)

    def _rows(self) -> tuple[_Integers, _Integers, _Integers]:
        """Return seconds, buckets and counts, in ascending order."""
        if self._made is None:
            if not self._parts:
                empty = np.empty(0, np.int64)
                self._made = empty, empty, empty
            else:
                keys, counts = _add_up(self._parts)
                self._made = keys >> _BUCKET_BITS, keys & _BUCKET_MASK, counts
        return self._made

    def percentiles(self, share: float) -> tuple[_Integers, Series, Series]:
        """Return the seconds that have latencies, that percentile (0 to 1) of each, and how many there were.

        Within a bucket latencies count as evenly spread.
        """
        seconds, buckets, counts = self._rows()
        if not len(seconds):
            return seconds, np.empty(0), np.empty(0)
        starts = find_starts(seconds)
        sums = np.cumsum(counts)
        before = np.concatenate([[0], sums])[starts]
        totals = np.add.reduceat(counts, starts)
        wanted = before + share * totals
        places = np.searchsorted(sums, wanted)
        parts = 1 - (sums[places] - wanted) / counts[places]
        low, high = _bucket_bounds(buckets[places])
        return seconds[starts], low + (high - low) * parts, totals.astype(np.float64)

    def since(self, second: int) -> LatencyTable:
        """Return the table of those that ended in a second since 1970 or later."""
        return self.cut(second)[1]

    def cut(self, second: int) -> tuple[LatencyTable, LatencyTable]:
        """Return the tables of those that ended before a second since 1970, and of those from it on."""
        seconds, buckets, counts = self._rows()
        first = int(np.searchsorted(seconds, second))
        begun, keys, numbers = _compact((seconds << _BUCKET_BITS) | buckets, counts)
        before, after = ((begun, keys[rows], numbers[rows]) for rows in (slice(first), slice(first, None)))
        return LatencyTable([before]), LatencyTable([after])

    def halved(self) -> LatencyTable:
        """Return the table of intervals twice as long: of seconds 2 n and 2 n + 1 as of one, n."""
        seconds, buckets, counts = self._rows()
        first, keys, numbers = _compact((seconds >> 1 << _BUCKET_BITS) | buckets, counts)
        odd = seconds % 2 == 1
        return LatencyTable([(first, keys[each], numbers[each]) for each in (odd, ~odd)])

    def compacted(self) -> LatencyTable:
        """Return the same table in one part."""
        return self.cut(0)[1]

    def between(self, low: float, high: float) -> Counter[int]:
        """Return how many latencies from ``low`` to ``high`` each second has, to the width of a bucket."""
        seconds, buckets, counts = self._rows()
        first, last = np.array([max(low, 0.0), high]).view(np.int64) >> _LOWER_BITS
        inside = (buckets >= first) & (buckets <= last)
        found: Counter[int] = Counter()
        count_values(found, seconds[inside], counts[inside])
        return found

    def percentile(self, share: float) -> float:
        """Return a percentile (0 to 1) of all of them, within the width of a bucket; NaN without any."""
        _, buckets, counts = self._rows()
        if not len(buckets):
            return math.nan
        lowest = int(buckets.min())
        by_bucket = np.bincount(buckets - lowest, counts)
        sums = np.cumsum(by_bucket)
        wanted = min(max(share, 0.0), 1.0) * sums[-1]
        place = min(int(np.searchsorted(sums, wanted)), len(sums) - 1)
        low, high = _bucket_bounds(np.array([lowest + place]))
        part = 1 - (sums[place] - wanted) / by_bucket[place]
        return float(low[0] + (high[0] - low[0]) * part)

    def ranks(self, share: float) -> ShareInterval | None:
        """Return between which shares of all latencies that percentile lies (95 %)."""
        found = self.below(share)
        return None if found is None else percentile_ranks(share, *found[1:])

    def ranks_within(self, limit: float) -> ShareInterval | None:
        """Return the interval (95 %) of the share of latencies up to a limit, to the width of a bucket."""
        found = self.below(1.0)
        if found is None:
            return None
        first, _, every = found
        within = _fill_seconds(self.between(0.0, limit), first, first + len(every))
        return share_ranks(within, every)

    def sums(self) -> tuple[Series, Series] | None:
        """Return the sum of the latencies of each second, to the width of a bucket, and how many there are.

        None where there are none, or where they are those of a damaged file.
        """
        found = self.below(1.0)
        if found is None:
            return None
        first, _, every = found
        seconds, buckets, counts = self._rows()
        low, high = _bucket_bounds(buckets)
        sums = np.bincount(seconds - first, counts * (low + high) / 2, len(every))
        return sums.astype(np.float64), every

    def below(self, share: float) -> tuple[int, Series, Series] | None:
        """Return the first second, and how many latencies each second has up to that percentile, and in all.

        None where there are no latencies, or where they are those of a damaged file.
        """
        seconds, buckets, counts = self._rows()
        span = int(seconds[-1] - seconds[0]) + 1 if len(seconds) else 0
        if not is_plausible_span(span, len(seconds)):
            return None
        by_bucket = np.bincount(buckets - buckets.min(), counts)
        sums = np.cumsum(by_bucket)
        place = min(int(np.searchsorted(sums, share * sums[-1])), len(sums) - 1)
        # Of the bucket in which it lies, as large a part of each second's is below as of all together.
        part = 1 - (sums[place] - share * sums[-1]) / by_bucket[place]
        weights = np.clip(buckets.min() + place - buckets, 0, 1) + part * (buckets == buckets.min() + place)
        offsets = seconds - seconds[0]
        below, every = (
            np.bincount(offsets, each, span).astype(np.float64) for each in (counts * weights, counts)
        )
        return int(seconds[0]), below, every


def _compact(keys: _Integers, counts: _Integers) -> _Part:
    """Return a part in no more bytes than its numbers need."""
    first = (int(keys.min(initial=np.iinfo(np.int64).max)) >> _BUCKET_BITS) << _BUCKET_BITS
    offsets = keys - first
    kind = np.uint32 if offsets.max(initial=0) < 1 << 32 else np.int64
    return first, offsets.astype(kind), counts.astype(np.min_scalar_type(counts.max(initial=0)))


def _count_keys(keys: _Integers) -> tuple[_Integers, _Integers]:
    """Return the different keys in ascending order, and how often each occurs."""
    places = _KeyPlaces([(0, keys, keys)])
    if places.count > _MAX_PLACES:
        found, counts = np.unique(keys, return_counts=True)
        return found, counts
    return places.used(np.bincount(places.of(0, keys)))


def _add_up(parts: Sequence[_Part]) -> tuple[_Integers, _Integers]:
    """Return the keys of parts in ascending order, each once, and their counts."""
    if len(parts) > 1:
        places = _KeyPlaces(parts)
        if places.count <= min(_MAX_PLACES, _PLACES_PER_KEY * sum(len(keys) for _, keys, _ in parts)):
            return places.add_up(parts)
    keys = np.concatenate([first + keys.astype(np.int64) for first, keys, _ in parts])
    counts = np.concatenate([counts for *_, counts in parts]).astype(np.int64)
    if len(parts) == 1:
        return keys, counts
    # Of parts that ascend already; np.unique takes twice the memory.
    order = keys.argsort(kind="stable")
    keys = keys[order]
    starts = find_starts(keys)
    return keys[starts], np.add.reduceat(counts[order], starts)


class _KeyPlaces:
    """The places of keys in an array with one for each bucket of each second between the outermost ones."""

    def __init__(self, parts: Sequence[_Part]) -> None:
        ends = [
            (first + int(keys.min()), first + int(keys.max()), int(buckets.min()), int(buckets.max()))
            for first, keys, buckets in ((first, keys, keys & _BUCKET_MASK) for first, keys, _ in parts)
        ]
        least, most, low, high = zip(*ends, strict=True)
        self._first, self._lowest = min(least) >> _BUCKET_BITS, min(low)
        self._width = max(high) - self._lowest + 1
        self.count = ((max(most) >> _BUCKET_BITS) - self._first + 1) * self._width

    def of(self, first: int, keys: npt.NDArray[Any]) -> _Integers:
        """Return the places of keys."""
        seconds = (keys >> _BUCKET_BITS).astype(np.int64) + ((first >> _BUCKET_BITS) - self._first)
        places: _Integers = seconds * self._width + (keys & _BUCKET_MASK) - self._lowest
        return places

    def add_up(self, parts: Sequence[_Part]) -> tuple[_Integers, _Integers]:
        """Return the keys of parts and the sums of their counts."""
        dense = np.zeros(self.count, np.int64)
        for first, keys, counts in parts:
            dense[self.of(first, keys)] += counts
        return self.used(dense)

    def used(self, dense: _Integers) -> tuple[_Integers, _Integers]:
        """Return the keys whose places are not 0, and what is there."""
        places = np.flatnonzero(dense)
        seconds, buckets = np.divmod(places, self._width)
        return ((seconds + self._first) << _BUCKET_BITS) | (buckets + self._lowest), dense[places]


def _bucket_bounds(buckets: _Integers) -> tuple[Series, Series]:
    """Return where buckets begin and end."""
    return (buckets << _LOWER_BITS).view(np.float64), ((buckets + 1) << _LOWER_BITS).view(np.float64)
