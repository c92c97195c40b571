"""The numbers of a run, counted from the columns of its results.

One model, :class:`RunStatistics`, feeds every report. What the numbers mean:

- Requests a second: successes / (latest completion, failures' too - earliest start of a success),
  a start being a completion less the last-byte latency.
- Latencies are of successes only. Missing ones and zeros (no-op runs) do not count.
- Deviation: the square root of the population variance.
- N-th percentile of n values, r = n * N / 100: the mean of the r-th and the (r+1)-th smallest where
  r is whole, else the ceil(r)-th smallest; the maximum for N = 100. It is exact.

Memory: 16 bytes a result, for its two latencies. Everything else is folded in block by block.
"""

from __future__ import annotations

import math
import struct
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from ssbench.operations import OPERATIONS, Operation
from ssbench.results import LOST, NO_WORKER, ResultBlock
from ssbench.run_results import RunDescription, RunResults

#: Longer stretches without a completion do not go into the requests of each second one by one.
_MAX_GAP_SECONDS = 86400
#: So many latencies are put in order together.
_PART_SIZE = 1 << 18
_UPPER_BITS_OF_INFINITY = 0x7FF0


@dataclass(frozen=True, slots=True)
class Slowest:
    """The slowest operation of some: seconds, its place in the order of arrival, its transaction id."""

    latency: float
    arrival: int
    trans_id: str | None


@dataclass(frozen=True, slots=True)
class Latencies:
    """The latencies of some successes, in seconds.

    ``slowest`` is None where no latency was reported at all, not even a zero. The other figures
    are NaN while ``count`` is 0.
    """

    count: int
    minimum: float
    maximum: float
    mean: float
    deviation: float
    slowest: Slowest | None
    _parts: tuple[npt.NDArray[np.float64], ...] = field(repr=False)

    def percentile(self, rank: float) -> float:
        """Return the percentile by the rule at the head of this module; 0 < rank <= 100."""
        if not self.count:
            return math.nan
        place = self.count * Fraction(str(rank)) / 100
        if place.denominator == 1 and place < self.count:
            return (self._smallest(int(place)) + self._smallest(int(place) + 1)) / 2
        return self._smallest(math.ceil(place))

    def _smallest(self, place: int) -> float:
        """Return the ``place``-th smallest value of all parts together.

        Each part is ordered by the upper 16 bits of its values only, which is enough to find by
        bisection how many are below a number whose other bits are 0. So the upper bits are bisected,
        and what shares them with the value looked for is taken from all parts. Bits of floats that
        are not negative have the order of the floats; the 12th to the 16th divide an octave in 16.
        """
        low, high = 0, _UPPER_BITS_OF_INFINITY - 1
        while low < high:
            middle = (low + high) // 2
            if sum(self._places(middle + 1)) >= place:
                high = middle
            else:
                low = middle + 1
        starts = self._places(low)
        slices = zip(self._parts, starts, self._places(low + 1), strict=True)
        candidates = np.concatenate([part[start:end] for part, start, end in slices])
        index = place - sum(starts) - 1
        return float(np.partition(candidates, index)[index])

    def _places(self, upper_bits: int) -> list[int]:
        """Return for each part how many values have lesser upper bits."""
        (least,) = struct.unpack("=d", struct.pack("=Q", upper_bits << 48))
        return [int(part.searchsorted(least)) for part in self._parts]


def _upper_bits(values: npt.NDArray[np.float64]) -> npt.NDArray[np.uint16]:
    return values.view("<u2")[3::4] if sys.byteorder == "little" else values.view(">u2")[::4]


@dataclass(frozen=True, slots=True)
class Line:
    """The latencies of one size class of an operation, or of all of them (``size_class`` is None)."""

    size_class: str | None
    first_byte: Latencies
    last_byte: Latencies


@dataclass(frozen=True, slots=True)
class Section:
    """The figures of an operation, or of all of them (``operation`` is None).

    ``lost`` counts operations whose worker vanished; they are neither in ``count`` nor in ``errors``.
    ``requests_per_second`` is infinite where no time passed.
    """

    operation: Operation | None
    count: int
    errors: int
    lost: int
    retries: int
    requests_per_second: float
    lines: tuple[Line, ...]

    @property
    def retry_rate(self) -> float:
        """Retries, those of failures too, for each hundred successes; 0 without any."""
        return 100 * self.retries / self.count if self.count else 0.0


@dataclass(frozen=True, slots=True)
class Spread:
    """How evenly something is spread."""

    minimum: float
    maximum: float
    mean: float
    deviation: float


@dataclass(slots=True)
class Cause:
    """How often something was the cause, and the transaction id of the first such operation."""

    count: int = 0
    trans_id: str | None = None


@dataclass(frozen=True, slots=True)
class RunStatistics:
    """Every number that a report shows.

    ``start`` and ``end`` are seconds since 1970, None without a result. ``sections`` begins with
    all operations together and goes on with each that has results. ``requests_by_second`` holds
    (second of the clock since that of the first completion, counted from 1; successes completed in
    it). ``workers`` spreads successes over workers. ``errors`` and ``retries`` are keyed by cause.
    ``not_sendable`` holds (operation, size class, how often), ``counters`` what else the run counted.
    ``current`` tells that the file is of
    today's format, which knows more than those of old.
    """

    run: RunDescription
    current: bool
    start: float | None
    end: float | None
    sections: tuple[Section, ...]
    requests_by_second: tuple[tuple[int, int], ...]
    worker_count: int
    workers: Spread
    errors: dict[str, Cause]
    retries: dict[str, int]
    not_sendable: tuple[tuple[Operation, str, int], ...]
    warnings: tuple[str, ...]
    counters: dict[str, float] = field(default_factory=dict)

    @property
    def total(self) -> Section:
        """All operations together."""
        return self.sections[0]

    @property
    def duration(self) -> float:
        """Seconds from the start of the first success to the last completion."""
        return 0.0 if self.start is None or self.end is None else max(0.0, self.end - self.start)


def summarize(results: RunResults) -> RunStatistics:
    """Read all results and count them; raises StatFileError as :meth:`RunResults.blocks` does."""
    collector = _Collector()
    for block in results.blocks():
        collector.add(block)
    return collector.finish(results)


class _LatencyCollector:
    """Collects the first-byte or the last-byte latencies of an operation and a size class."""

    def __init__(self) -> None:
        self._pending: list[npt.NDArray[np.float64]] = []
        self._pending_count = 0
        self._parts: list[Latencies] = []
        self._slowest: Slowest | None = None

    def add(
        self,
        block: ResultBlock,
        rows: npt.NDArray[np.intp],
        latencies: npt.NDArray[np.float64],
        before: int,
    ) -> None:
        """Take the latencies of some rows of a block that has ``before`` results before it."""
        reported = np.flatnonzero(latencies >= 0)
        if not len(reported):
            return
        values = latencies[reported]
        place = int(values.argmax())
        if self._slowest is None or values[place] > self._slowest.latency:
            row = int(rows[reported[place]])
            self._slowest = Slowest(float(values[place]), before + row, block.trans_ids[row])
        values = values[values > 0]
        self._pending.append(values)
        self._pending_count += len(values)
        if self._pending_count >= _PART_SIZE:
            self._make_part()

    def finish(self) -> Latencies:
        """Return all that was collected."""
        self._make_part()
        return replace(_merge(self._parts), slowest=self._slowest)

    def _make_part(self) -> None:
        """Make a part of what is pending, so that only little is ever there twice."""
        if not self._pending_count:
            return
        values = np.concatenate(self._pending)
        self._pending.clear()
        self._pending_count = 0
        values = values[_upper_bits(values).argsort(kind="stable")]  # 16 bits are sorted by radix, fast
        low, high = float(values.min()), float(values.max())
        mean, deviation = float(values.mean()), float(values.std())
        self._parts.append(Latencies(len(values), low, high, mean, deviation, None, (values,)))


@dataclass(slots=True)
class _Group:
    """What is counted of an operation and a size class."""

    count: int = 0
    errors: int = 0
    lost: int = 0
    retries: int = 0
    start: float = math.inf
    end: float = -math.inf
    first_byte: _LatencyCollector = field(default_factory=_LatencyCollector)
    last_byte: _LatencyCollector = field(default_factory=_LatencyCollector)

    def add(self, block: ResultBlock, rows: npt.NDArray[np.intp], before: int) -> None:
        completed = block.completed[rows]
        self.retries += int(block.retries[rows].sum())
        self.end = max(self.end, float(completed.max()))
        if block.failures:
            failed = block.failed[rows]
            self.errors += int(failed.sum())
            rows, completed = rows[~failed], completed[~failed]
            if not len(rows):
                return
        self.count += len(rows)
        last_byte = block.last_byte[rows]
        self.start = min(self.start, float((completed - np.fmax(last_byte, 0.0)).min()))
        self.first_byte.add(block, rows, block.first_byte[rows], before)
        self.last_byte.add(block, rows, last_byte, before)


class _Collector:
    """Folds blocks into groups of operation and size class, and counts what is not of a group."""

    def __init__(self) -> None:
        self._groups: dict[tuple[int, int], _Group] = {}
        self._workers: Counter[int] = Counter()
        self._seconds: Counter[int] = Counter()
        self._errors: dict[str, Cause] = {}
        self._retries: Counter[str] = Counter()
        self._results = 0
        self._first_completed = math.inf

    def add(self, block: ResultBlock) -> None:
        classes = int(block.size_class.max()) + 1
        keys = block.operation.astype(np.uint32) * classes + block.size_class
        if keys.max() < 1 << 16:
            keys = keys.astype(np.uint16)  # which numpy sorts by radix
        order = np.argsort(keys, kind="stable")
        sorted_keys = keys[order]
        starts = np.flatnonzero(np.diff(sorted_keys, prepend=sorted_keys[:1] + 1))
        for key, rows in zip(sorted_keys[starts].tolist(), np.split(order, starts[1:]), strict=True):
            group = self._groups.setdefault(divmod(key, classes), _Group())
            group.add(block, rows, self._results)
        self._results += len(block)
        self._first_completed = min(self._first_completed, float(block.completed.min()))

        succeeded, known = ~block.failed, block.worker != NO_WORKER
        _count(self._workers, block.worker[known], succeeded[known])
        _count(self._seconds, np.floor(block.completed[succeeded]).astype(np.int64))
        for row, failure in block.failures.items():
            if failure.cause is not None:
                cause = self._errors.setdefault(failure.cause, Cause())
                cause.count += 1
                cause.trans_id = cause.trans_id or block.trans_ids[row]
                if failure.cause == LOST:
                    key = (int(block.operation[row]), int(block.size_class[row]))
                    self._groups[key].lost += 1
                    self._groups[key].errors -= 1
            self._retries.update(failure.retried)

    def finish(self, results: RunResults) -> RunStatistics:
        names = results.size_classes
        leaves = {
            key: (group, Line(names[key[1]], group.first_byte.finish(), group.last_byte.finish()))
            for key, group in sorted(self._groups.items(), key=lambda item: item[0][::-1])
        }
        sections = [_section(None, leaves.values())]
        for operation in OPERATIONS:
            own = [leaf for (code, _), leaf in leaves.items() if code == operation.code]
            if own:
                sections.append(_section(operation, own))
        start = min((group.start for group in self._groups.values()), default=math.inf)
        if math.isinf(start):  # no success
            start = self._first_completed
        end = max((group.end for group in self._groups.values()), default=0.0)
        summary = results.summary
        return RunStatistics(
            run=results.run,
            current=results.current,
            start=start if self._results else None,
            end=end if self._results else None,
            sections=tuple(sections),
            requests_by_second=_by_second(self._seconds),
            worker_count=len(self._workers),
            workers=_spread(list(self._workers.values())),
            errors=dict(sorted(self._errors.items(), key=lambda item: (-item[1].count, item[0]))),
            retries=dict(sorted(self._retries.items(), key=lambda item: (-item[1], item[0]))),
            not_sendable=tuple(
                (OPERATIONS[code], names[size_class], times)
                for code, size_class, times in (summary.not_sendable if summary else ())
                if code < len(OPERATIONS) and size_class < len(names)
            ),
            warnings=tuple(results.warnings),
            counters=summary.counters if summary else {},
        )


def _section(operation: Operation | None, leaves: Iterable[tuple[_Group, Line]]) -> Section:
    """Sum up groups; they come in the order of size classes."""
    leaves = list(leaves)
    groups = [group for group, _ in leaves]
    count = sum(group.count for group in groups)
    end = max((group.end for group in groups), default=0.0)
    seconds = end - min((group.start for group in groups), default=0.0)
    by_class: dict[str | None, list[Line]] = {None: [line for _, line in leaves]}
    for _, line in leaves:
        by_class.setdefault(line.size_class, []).append(line)
    return Section(
        operation=operation,
        count=count,
        errors=sum(group.errors for group in groups),
        lost=sum(group.lost for group in groups),
        retries=sum(group.retries for group in groups),
        requests_per_second=0.0 if not count else count / seconds if seconds > 0 else math.inf,
        lines=tuple(
            Line(
                size_class,
                _merge([line.first_byte for line in lines]),
                _merge([line.last_byte for line in lines]),
            )
            for size_class, lines in by_class.items()
        ),
    )


def _merge(parts: list[Latencies]) -> Latencies:
    """Take latencies together, without copying them.

    Means and sums of squares merge by the formulas of Chan, Golub and LeVeque, "Updating formulae and
    a pairwise algorithm for computing sample variances", 1979.
    """
    slowest = max(
        (part.slowest for part in parts if part.slowest),
        key=lambda slowest: (slowest.latency, -slowest.arrival),
        default=None,
    )
    parts = [part for part in parts if part.count]
    count = sum(part.count for part in parts)
    if not count:
        return Latencies(0, math.nan, math.nan, math.nan, math.nan, slowest, ())
    mean = math.fsum(part.mean * part.count for part in parts) / count
    squares = math.fsum(part.count * (part.deviation**2 + (part.mean - mean) ** 2) for part in parts)
    arrays = tuple(array for part in parts for array in part._parts)
    return Latencies(
        count,
        min(part.minimum for part in parts),
        max(part.maximum for part in parts),
        mean,
        math.sqrt(squares / count),
        slowest,
        arrays,
    )


def _count(
    counter: Counter[int], values: npt.NDArray[np.int64], weights: npt.NDArray[np.bool_] | None = None
) -> None:
    """Count each value in a counter; with weights, only those that are True, and the others as 0."""
    if not len(values):
        return
    lowest, highest = int(values.min()), int(values.max())
    if highest - lowest < 1 << 16:
        present = np.bincount(values - lowest)
        counts = present if weights is None else np.bincount(values - lowest, weights).astype(np.int64)
        for value in np.flatnonzero(present).tolist():
            counter[value + lowest] += int(counts[value])
    else:
        found, inverse = np.unique(values, return_inverse=True)
        for value, times in zip(found.tolist(), np.bincount(inverse, weights).tolist(), strict=True):
            counter[value] += int(times)


def _by_second(seconds: Counter[int]) -> tuple[tuple[int, int], ...]:
    """Return (second, count) from the first second on, empty ones too except in very long gaps."""
    rows: list[tuple[int, int]] = []
    first = min(seconds, default=0)
    for second in sorted(seconds):
        previous = rows[-1][0] if rows else 0
        place = second - first + 1
        if place - previous <= _MAX_GAP_SECONDS:
            rows.extend((empty, 0) for empty in range(previous + 1, place))
        rows.append((place, seconds[second]))
    return tuple(rows)


def _spread(counts: list[int]) -> Spread:
    if not counts:
        return Spread(0.0, 0.0, 0.0, 0.0)
    values = np.array(counts, np.float64)
    return Spread(float(values.min()), float(values.max()), float(values.mean()), float(values.std()))
