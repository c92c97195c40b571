"""Latencies: exact figures of any number of them, 8 bytes each.

:class:`Latencies` has those of one group of results; :class:`LatencyCollector` collects those of many groups,
of which there may be thousands. So the latencies of all groups are handled together, and what has to be done
for each group is done at the end.
"""

from __future__ import annotations

import math
import struct
import sys
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cache, cached_property
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from ssbench.document.figures import MIN_RESULTS_BEYOND, percentile_by_rule
from ssbench.results.block import ResultBlock, leave_out_delayed
from ssbench.statistics.by_second import LatencyTable
from ssbench.statistics.confidence import Interval
from ssbench.statistics.tally import grow_groups, order_in_groups, take_rows

#: Parts of so many latencies are sorted whole: of thousands of groups each is one, and looked into often.
_SMALL_PART_COUNT = 4096
#: More parts than this are put together, where they are small on average: looking into each of thousands
#: costs more than a copy.
_MAX_SMALL_PARTS = 64

#: More than these are not sorted for a few percentiles.
_MAX_SORTED_COUNT = 1 << 21


class SlowResult(msgspec.Struct, frozen=True):
    """A slow success, with what finds it again in logs. Moments are in seconds since 1970."""

    latency: float  # seconds
    arrival: int  # its place in the order of arrival
    trans_id: str | None
    completed: float
    worker: int
    operation: int
    size_class: int
    container: int | str | None  # a number; a text in old files
    object: int | str | None  # a number; a text in old files
    first_byte: float  # seconds; NaN: it has none
    started: float
    size: int  # bytes; -1: not known
    retries: int
    storage_url: int  # its place among those of the run; -1: not known
    group: int
    master: int
    account: int


class _OrderedParts(tuple[npt.NDArray[np.float64], ...]):
    """Latencies above 0, each part in the order of their upper 16 bits."""

    @cached_property
    def counts(self) -> tuple[int, npt.NDArray[np.int64]]:
        """The least upper bits of all, and how many latencies have no more than these, than one more, ..."""
        first = min(_upper(float(part[0])) for part in self)
        last = max(_upper(float(part[-1])) for part in self)
        edges = (np.arange(first + 1, last + 2) << 48).view(np.float64)
        return first, np.sum([part.searchsorted(edges) for part in self], axis=0)


@cache
def _beyond(rank: float) -> Fraction:
    """Return the share of latencies that lie beyond a percentile, exactly."""
    return (100 - Fraction(str(rank))) / 100


class Latencies(msgspec.Struct, frozen=True):
    """The latencies of some successes, in seconds. The figures are NaN while ``count`` is 0."""

    count: int
    minimum: float
    maximum: float
    mean: float
    deviation: float
    slowest: SlowResult | None  # None: no latency was reported at all, not even a zero
    _parts: _OrderedParts
    by_second: LatencyTable = msgspec.field(default_factory=LatencyTable)

    def percentile(self, rank: float, without: int = 0, endless: int = 0) -> float:
        """Return a percentile, by :func:`~ssbench.document.figures.percentile_by_rule`; 0 < rank <= 100.

        The slowest are left out, as many as ``without`` says; ``endless`` is how many infinite ones are
        added.
        """
        count = self.count - without + endless
        if count <= 0:
            return math.nan
        return percentile_by_rule(
            count, rank, lambda place: self._smallest(place) if place <= self.count else math.inf
        )

    def most(self, rank: float | None) -> float:
        """Return the most that a percentile is, or the mean for None: the figure itself, which is known.

        :class:`~ssbench.statistics.latency_parts.CensoredLatencies` has some that are not.
        """
        return self.mean if rank is None else self.percentile(rank)

    def percentiles(self, ranks: Sequence[float]) -> list[float]:
        """Return many percentiles: what :meth:`percentile` does, faster for all but very many latencies."""
        if not 0 < self.count <= _MAX_SORTED_COUNT:
            return [self.percentile(rank) for rank in ranks]
        ordered = np.sort(np.concatenate(self._parts))
        return [
            percentile_by_rule(self.count, rank, lambda place: float(ordered[place - 1])) for rank in ranks
        ]

    def supported_percentile(self, rank: float) -> float | None:
        """Return the percentile; None where fewer than :data:`MIN_RESULTS_BEYOND` latencies lie beyond it.

        The maximum (rank 100) needs one.
        """
        return self.percentile(rank) if self.supports(rank) else None

    def interval(self, rank: float) -> Interval | None:
        """Return the 95 % interval of a percentile, 0 < rank < 100.

        None of runs that were too short, and where it would reach down to 0, which says nothing. Its bounds
        are latencies that were measured; ``high`` is infinite where there are too few beyond.
        """
        ranks = self.by_second.ranks(rank / 100)
        if ranks is None:
            return None
        low, high = math.floor(ranks.low * self.count), math.ceil(ranks.high * self.count) + 1
        if low < 1:
            return None
        return Interval(
            self._smallest(low),
            self._smallest(high) if high <= self.count else math.inf,
            ranks.effective_size,
        )

    def supports(self, rank: float) -> bool:
        """Whether enough latencies lie beyond a percentile."""
        return bool(self.count) and (rank >= 100 or self.count * _beyond(rank) >= MIN_RESULTS_BEYOND)

    def share_within(self, limit: float) -> float:
        """Return the share of latencies up to a limit; 0 without any."""
        within = sum(int(np.count_nonzero(part <= limit)) for part in self._parts)
        return within / self.count if self.count else 0.0

    def between(self, low: float, high: float) -> int:
        """Return how many latencies are at least ``low`` and less than ``high``, in seconds."""
        return self._below(high) - self._below(low)

    def smallest(self, place: int) -> float:
        """Return the ``place``-th smallest, counted from 1."""
        return self._smallest(place)

    def _below(self, limit: float) -> int:
        # Most of many groups have none that is as long as what is looked for.
        if not self.count or limit <= self.minimum:
            return 0
        if limit > self.maximum:
            return self.count
        if len(self._parts) == 1 and self.count <= _SMALL_PART_COUNT:
            return int(self._parts[0].searchsorted(limit))
        # Only those that share their upper bits with the limit are looked at one by one.
        upper = _upper(limit)
        slices = zip(self._parts, self._places(upper), self._places(upper + 1), strict=True)
        return sum(start + int(np.count_nonzero(part[start:end] < limit)) for part, start, end in slices)

    def histogram(self, per_octave: int = 8) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
        """Return the edges of buckets, and how many latencies lie from one to the next.

        ``per_octave``, how many there are between a latency and its double, is a power of 2, 16 at most.
        """
        if not self.count:
            return np.empty(0), np.empty(0, np.int64)
        # A multiple of the step of the upper bits, whose order the parts have.
        step = (1 << 52) // per_octave
        low, high = (int(np.float64(value).view(np.int64)) // step for value in (self.minimum, self.maximum))
        edges = (np.arange(low, high + 2) * step).view(np.float64)
        return edges, np.diff(sum(part.searchsorted(edges) for part in self._parts))

    def _smallest(self, place: int) -> float:
        """Return the ``place``-th smallest value of all parts together.

        Each part is ordered by the upper 16 bits of its values only, which is enough to find by
        bisection how many are below a number whose other bits are 0. So the upper bits are found first,
        and what shares them with the value looked for is taken from all parts. Bits of floats that
        are not negative have the order of the floats; the 12th to the 16th divide an octave in 16.
        """
        if len(self._parts) == 1 and self.count <= _SMALL_PART_COUNT:
            return float(self._parts[0][place - 1])
        first, counts = self._parts.counts
        low = first + int(counts.searchsorted(place))
        starts = self._places(low)
        slices = zip(self._parts, starts, self._places(low + 1), strict=True)
        candidates = np.concatenate([part[start:end] for part, start, end in slices])
        index = place - sum(starts) - 1
        return float(np.partition(candidates, index)[index])

    def _places(self, upper_bits: int) -> list[int]:
        """Return for each part how many values have lesser upper bits."""
        (least,) = struct.unpack("=d", struct.pack("=Q", upper_bits << 48))
        return [int(part.searchsorted(least)) for part in self._parts]


def order_by_upper_bits(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return values ordered by their upper 16 bits, which are sorted by radix, fast; a few by all bits."""
    if len(values) <= _SMALL_PART_COUNT:
        return np.sort(values)
    return values[_upper_bits(values).argsort(kind="stable")]


def _upper(value: float) -> int:
    """Return the upper 16 bits of a value above 0."""
    found: int = struct.unpack("=Q", struct.pack("=d", value))[0] >> 48
    return found


def _upper_bits(values: npt.NDArray[np.float64]) -> npt.NDArray[np.uint16]:
    return values.view("<u2")[3::4] if sys.byteorder == "little" else values.view(">u2")[::4]


def measured_latencies(block: ResultBlock) -> npt.NDArray[np.float64]:
    """Return the last-byte latencies of a block; NaN of failures, and of what a worker itself delayed."""
    return np.where(block.failed, np.nan, leave_out_delayed(block, block.last_byte))


def make_slow_results(
    block: ResultBlock, rows: npt.NDArray[np.intp], latencies: npt.NDArray[np.float64], before: int
) -> list[SlowResult]:
    """Return the records of operations with these latencies, of a block with ``before`` results before it."""
    columns = (_of_rows(block, name, rows) for name in SlowResult.__struct_fields__[2:])
    return [
        SlowResult(*each) for each in zip(latencies.tolist(), (before + rows).tolist(), *columns, strict=True)
    ]


def _of_rows(block: ResultBlock, name: str, rows: npt.NDArray[np.intp]) -> Sequence[Any]:
    if name == "started" and name not in block.given:  # what is derived is derived for all rows of a block
        column = block.completed[rows] - block.last_byte[rows]
        return [*column.tolist()]
    column = getattr(block, name)
    if isinstance(column, np.ndarray):
        found: list[Any] = column[rows].tolist()
        return found
    return [column[row] for row in rows.tolist()]


def select_latencies(
    values: npt.NDArray[np.float64], ended: npt.NDArray[np.float64] | None = None
) -> Latencies:
    """Return latencies above 0; ``ended`` is when their operations did, where that is known."""
    if not len(values):
        return merge_latencies(())
    table = LatencyTable() if ended is None else LatencyTable.of(ended, values)
    values = order_by_upper_bits(values)
    return Latencies(
        len(values),
        float(values.min()),
        float(values.max()),
        float(values.mean()),
        float(values.std()),
        None,
        _OrderedParts((values,)),
        table,
    )


def select_grouped_latencies(
    groups: npt.NDArray[np.intp], values: npt.NDArray[np.float64], ended: npt.NDArray[np.float64]
) -> dict[int, Latencies]:
    """Return for each of some groups what :func:`select_latencies` does.

    Of latencies above 0, and of their groups.
    """
    counts = np.bincount(groups)
    numbers = np.flatnonzero(counts)
    if len(numbers) == 1:
        return {int(numbers[0]): select_latencies(values, ended)}
    counts = counts[numbers]
    starts = np.cumsum(counts) - counts
    order = order_in_groups(groups)
    if len(values) > _SMALL_PART_COUNT * len(numbers):  # a few large ones are faster one by one
        values, ended = values[order], ended[order]
        return {
            group: select_latencies(values[start : start + count], ended[start : start + count])
            for group, start, count in zip(
                *(each.tolist() for each in (numbers, starts, counts)), strict=True
            )
        }
    tables = LatencyTable.by_group(groups, ended, values)
    values = values[order]
    means = np.add.reduceat(values, starts) / counts
    squares = np.add.reduceat((values - np.repeat(means, counts)) ** 2, starts)
    minima, maxima = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)
    columns = (numbers, starts, counts, minima, maxima, means, np.sqrt(squares / counts))
    return {
        group: Latencies(
            count,
            minimum,
            maximum,
            mean,
            deviation,
            None,
            _OrderedParts((order_by_upper_bits(values[start : start + count]),)),
            tables[group],
        )
        for group, start, count, minimum, maximum, mean, deviation in zip(
            *(each.tolist() for each in columns), strict=True
        )
    }


def merge_latencies(parts: Iterable[Latencies]) -> Latencies:
    """Return latencies together, without copying them.

    Means and sums of squares merge by the formulas of Chan, Golub and LeVeque, "Updating formulae and
    a pairwise algorithm for computing sample variances", 1979.
    """
    parts = [part for part in parts if part is not _NO_LATENCIES]
    if len(parts) <= 1:  # of thousands of groups most have no more
        return parts[0] if parts else _NO_LATENCIES
    found = max(
        (part.slowest for part in parts if part.slowest),
        key=lambda each: (each.latency, -each.arrival),
        default=None,
    )
    parts = [part for part in parts if part.count]
    count = sum(part.count for part in parts)
    if not count:
        return Latencies(0, math.nan, math.nan, math.nan, math.nan, found, _OrderedParts())
    mean = math.fsum(part.mean * part.count for part in parts) / count
    squares = math.fsum(part.count * (part.deviation**2 + (part.mean - mean) ** 2) for part in parts)
    arrays = _OrderedParts(array for part in parts for array in part._parts)
    if len(arrays) > _MAX_SMALL_PARTS and count < _SMALL_PART_COUNT * len(arrays):
        arrays = _OrderedParts((order_by_upper_bits(np.concatenate(arrays)),))
    return Latencies(
        count,
        min(part.minimum for part in parts),
        max(part.maximum for part in parts),
        mean,
        math.sqrt(squares / count),
        found,
        arrays,
        LatencyTable.merged(part.by_second for part in parts),
    )


#: What is shared by all that has no latency at all.
_NO_LATENCIES = Latencies(0, math.nan, math.nan, math.nan, math.nan, None, _OrderedParts())


# -- Collecting the latencies of many groups -------------------------------------------------------


#: How many latencies are put in order together: this many, or this many for each group.
_PART_COUNT = 1 << 17
_PART_COUNT_PER_GROUP = 512


class LatencyCollector:
    """Collects one of the latencies of results, by the number of their group."""

    def __init__(self) -> None:
        #: Groups, latencies, and when their operations ended.
        self._pending: list[
            tuple[npt.NDArray[np.intp], npt.NDArray[np.float64], npt.NDArray[np.float64]]
        ] = []
        self._pending_count = 0
        self._parts: dict[int, list[Latencies]] = {}
        #: The longest latency of each group, -1 where there is none yet.
        self._longest = np.empty(0)
        self._slowest: dict[int, SlowResult] = {}

    def add(
        self,
        block: ResultBlock,
        rows: npt.NDArray[np.intp],
        groups: npt.NDArray[np.intp],
        latencies: npt.NDArray[np.float64],
        before: int,
    ) -> None:
        """Take the latencies of some rows of a block that has ``before`` results before it.

        ``groups`` and ``latencies`` are those of these rows.
        """
        reported = latencies >= 0
        if not reported.all():
            rows, groups, latencies = rows[reported], groups[reported], latencies[reported]
        if not len(rows):
            return
        self._find_slowest(block, rows, groups, latencies, before)
        above = latencies > 0
        if not above.all():
            rows, groups, latencies = rows[above], groups[above], latencies[above]
        self._pending.append((groups, latencies, take_rows(block.completed, rows)))
        self._pending_count += len(rows)
        if self._pending_count >= max(_PART_COUNT, _PART_COUNT_PER_GROUP * len(self._longest)):
            self._make_part()

    def finish(self, count: int = 1) -> list[Latencies]:
        """Return all that was collected of the groups 0 to ``count`` - 1."""
        self._make_part()
        return [self._finished(group) for group in range(count)]

    def _finished(self, group: int) -> Latencies:
        found = merge_latencies(self._parts.get(group, ()))
        longest = self._slowest.get(group)
        return found if longest is None else replace(found, slowest=longest)

    def _find_slowest(
        self,
        block: ResultBlock,
        rows: npt.NDArray[np.intp],
        groups: npt.NDArray[np.intp],
        latencies: npt.NDArray[np.float64],
        before: int,
    ) -> None:
        """Keep the slowest of each group, the first of those that are equally slow."""
        known = grow_groups(self._longest, int(groups.max()) + 1, -1.0)
        self._longest = known.copy()
        np.maximum.at(self._longest, groups, latencies)
        slower = np.flatnonzero((latencies == self._longest[groups]) & (latencies > known[groups]))
        found, first = np.unique(groups[slower], return_index=True)
        records = make_slow_results(block, rows[slower[first]], latencies[slower[first]], before)
        self._slowest.update(zip(found.tolist(), records, strict=True))

    def _make_part(self) -> None:
        """Make parts of what is pending, so that only little is ever there twice."""
        if not self._pending_count:
            return
        groups, values, ended = (np.concatenate(each) for each in zip(*self._pending, strict=True))
        self._pending.clear()
        self._pending_count = 0
        for group, part in select_grouped_latencies(groups, values, ended).items():
            self._parts.setdefault(group, []).append(part)
