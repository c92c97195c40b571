"""Swift's statsd lines: parsed, and summed up in bounded memory.

A line is ``NAME:VALUE|TYPE`` or ``NAME:VALUE|TYPE|@RATE``, where RATE is the share of values that are sent.
Swift sends timers (``ms``) and counters (``c``), one in each datagram. Timers go into buckets whose bounds
grow by a sixteenth of a power of two, so a percentile is at most 3 % off.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from dataclasses import dataclass, field

from ssbench.results.cluster_observation import MAX_METRIC_NUMBERS, Metric, MetricInterval, Statsd

#: Names that are kept; a Swift of a thousand devices sends some two thousand.
MAX_NAMES = 4000
#: Longer datagrams than this are not Swift's (bytes).
MAX_DATAGRAM = 8192

_STATSD_LINE = re.compile(
    rb"([A-Za-z0-9_.~%/+@-]{1,200}):(-?[0-9]{1,15}(?:\.[0-9]{1,15})?(?:e[+-]?[0-9]{1,2})?)\|(ms|c)"
    rb"(?:\|@([0-9]*\.?[0-9]+(?:e-?[0-9]{1,2})?))?"
)
_MAX_VALUE = 1e15
#: Timers are counted as if they were between these (ms), so that there are only this many buckets.
_MIN_TIMER, _MAX_TIMER = 2.0**-10, 2.0**20
_MIN_RATE = 1e-4
_BUCKETS_A_DOUBLING = 16
#: How object servers call the timers of PUTs, in ms for each kB; the device is between.
_PUT_PREFIX, _TIMING_SUFFIX = "object-server.PUT.", ".timing"


@dataclass(frozen=True, slots=True)
class StatsdValue:
    """A value of a timer or of a counter."""

    name: str
    timer: bool
    value: float  # milliseconds of a timer, or what a counter grew by
    weight: float  # how many such values it stands for


def parse_statsd_line(line: bytes) -> StatsdValue | None:
    """Return what a line says, None where it is not one of Swift's."""
    match = _STATSD_LINE.fullmatch(line)
    if match is None:
        return None
    name, number, kind, sampled = match.groups()
    value, rate = float(number), float(sampled) if sampled else 1.0
    timer = kind == b"ms"
    if not abs(value) <= _MAX_VALUE or (timer and value < 0) or not _MIN_RATE <= rate <= 1:
        return None
    return StatsdValue(name.decode(), timer, value, 1 / rate)


def split_put_metric(metric: Metric) -> tuple[str, str] | None:
    """Return what precedes Swift's own name of a metric, and the device whose PUTs it is of, if any."""
    source, there, rest = metric.name.partition(_PUT_PREFIX)
    if not (there and metric.timer and rest.endswith(_TIMING_SUFFIX)) or rest == "errors.timing":
        return None
    return source, rest.removesuffix(_TIMING_SUFFIX)


def bucket_of(value: float) -> int:
    """Return the number of the bucket that a time belongs to (ms)."""
    mantissa, exponent = math.frexp(min(max(value, _MIN_TIMER), _MAX_TIMER))
    return exponent * _BUCKETS_A_DOUBLING + int((mantissa - 0.5) * 2 * _BUCKETS_A_DOUBLING)


def bucket_middle(number: int) -> float:
    """Return the middle of a bucket (ms)."""
    exponent, step = divmod(number, _BUCKETS_A_DOUBLING)
    return math.ldexp(0.5 + (step + 0.5) / (2 * _BUCKETS_A_DOUBLING), exponent)


def merge_intervals(intervals: tuple[MetricInterval, ...], at: float = 0.0) -> MetricInterval:
    """Return all of the intervals as one."""
    buckets: defaultdict[int, float] = defaultdict(float)
    for each in intervals:
        for number, count in each.buckets.items():
            buckets[number] += count
    return MetricInterval(
        at,
        total=math.fsum(each.total for each in intervals),
        count=math.fsum(each.count for each in intervals),
        buckets=dict(buckets),
    )


def timer_percentile(interval: MetricInterval, rank: float) -> float:
    """Return the value, in ms, that ``rank`` percent of a timer's values do not exceed; NaN without any."""
    left = math.fsum(interval.buckets.values()) * rank / 100
    for number in sorted(interval.buckets):
        left -= interval.buckets[number]
        if left <= 1e-9:
            return bucket_middle(number)
    return math.nan


@dataclass(slots=True)
class _Cell:
    total: float = 0.0
    count: float = 0.0
    buckets: defaultdict[int, float] = field(default_factory=lambda: defaultdict(float))

    @property
    def size(self) -> int:
        return 1 + len(self.buckets)

    def add(self, line: StatsdValue) -> None:
        self.total += line.value * line.weight
        if line.timer:
            self.count += line.weight
            self.buckets[bucket_of(line.value)] += line.weight

    def merge(self, other: _Cell) -> None:
        self.total += other.total
        self.count += other.count
        for number, count in other.buckets.items():
            self.buckets[number] += count


class Aggregator:
    """Sums up lines by name and interval; ``seconds``, its length, doubles when there are too many."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._cells: dict[tuple[str, bool], dict[int, _Cell]] = {}
        self._size = 0
        self._lines = self._strange = self._nameless = 0

    def datagram(self, data: bytes, at: float) -> None:
        """Receive a datagram of one or more lines that came ``at`` seconds after the beginning."""
        for text in data.splitlines() or [b""]:
            line = parse_statsd_line(text)
            if line is None:
                self._strange += 1
            else:
                self._add(line, at)

    def _add(self, line: StatsdValue, at: float) -> None:
        key = line.name, line.timer
        cells = self._cells.get(key)
        if cells is None:
            if len(self._cells) >= MAX_NAMES:
                self._nameless += 1
                return
            cells = self._cells[key] = {}
        place = int(at / self.seconds)
        cell = cells.get(place)
        if cell is None:
            cell = cells[place] = _Cell()
            self._size += 1
        self._size -= len(cell.buckets)
        cell.add(line)
        self._size += len(cell.buckets)
        self._lines += 1
        while self._size > MAX_METRIC_NUMBERS and any(len(each) > 1 for each in self._cells.values()):
            self._halve()

    def _halve(self) -> None:
        """Merge pairs of intervals."""
        self.seconds *= 2
        self._size = 0
        for key, cells in self._cells.items():
            halved: dict[int, _Cell] = {}
            for place, cell in cells.items():
                if place // 2 in halved:
                    halved[place // 2].merge(cell)
                else:
                    halved[place // 2] = cell
            self._cells[key] = halved
            self._size += sum(cell.size for cell in halved.values())

    def result(self, port: int, dropped: int) -> Statsd:
        """Return all that came in; ``dropped`` datagrams did not fit into the buffer of ``port``."""
        metrics = tuple(
            Metric(
                name,
                timer,
                tuple(
                    MetricInterval(place * self.seconds, cell.total, cell.count, dict(cell.buckets))
                    for place, cell in sorted(cells.items())
                ),
            )
            for (name, timer), cells in sorted(self._cells.items())
        )
        return Statsd(port, self.seconds, self._lines, self._strange, self._nameless, dropped, metrics)
