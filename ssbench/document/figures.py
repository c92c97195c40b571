"""The table of figures: what each is called, what it is a number of, and how it is found in a run.

A figure is a row. Conditions, comparisons, sweeps and reports look it up by its key with :func:`find_figure`,
and so one that is added here is in all of them. It is named here and computed where it is counted
(:mod:`ssbench.statistics`). This module knows the shape of those numbers (:class:`OperationSource` and the
other protocols), and not the numbers themselves.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import cache
from typing import Any, Protocol

from ssbench.document.units import AT_LEAST, Unit


class IntervalSource(Protocol):
    """A 95 % interval."""

    @property
    def low(self) -> float: ...  # noqa: D102
    @property
    def high(self) -> float: ...  # noqa: D102


class LatencySource(Protocol):
    """Some latencies, in seconds; their mean and maximum are NaN without any."""

    @property
    def count(self) -> int: ...  # noqa: D102
    @property
    def mean(self) -> float: ...  # noqa: D102

    def percentile(self, rank: float) -> float: ...  # noqa: D102
    def most(self, rank: float | None) -> float: ...  # noqa: D102
    def share_within(self, limit: float) -> float: ...  # noqa: D102
    def interval(self, rank: float) -> IntervalSource | None: ...  # noqa: D102


class OrderedValues(Protocol):
    """Values in ascending order."""

    def __len__(self) -> int: ...
    def __getitem__(self, place: int, /) -> float: ...


class DueSource(Protocol):
    """What is known of operations that were due."""

    @property
    def since_due(self) -> LatencySource: ...  # noqa: D102


class OperationSource(Protocol):
    """The numbers of an operation, a size class, or of all operations."""

    @property
    def count(self) -> int: ...  # noqa: D102
    @property
    def failed(self) -> int: ...  # noqa: D102
    @property
    def counted(self) -> Mapping[str, int]: ...  # noqa: D102
    @property
    def requests_per_second(self) -> float: ...  # noqa: D102
    @property
    def moved(self) -> int: ...  # noqa: D102
    @property
    def moved_per_second(self) -> float: ...  # noqa: D102
    @property
    def rate_interval(self) -> IntervalSource | None: ...  # noqa: D102
    @property
    def moved_interval(self) -> IntervalSource | None: ...  # noqa: D102
    @property
    def latency(self) -> LatencySource: ...  # noqa: D102
    @property
    def first_byte(self) -> LatencySource: ...  # noqa: D102
    @property
    def last_byte(self) -> LatencySource: ...  # noqa: D102
    @property
    def due(self) -> DueSource: ...  # noqa: D102


class CpuSource(Protocol):
    """The CPU of servers of one kind for an operation."""

    @property
    def seconds(self) -> float: ...  # noqa: D102
    @property
    def interval(self) -> IntervalSource | None: ...  # noqa: D102


class RunSource(Protocol):
    """The run that a line belongs to."""

    @property
    def server_cpu(self) -> Mapping[str, CpuSource]: ...  # noqa: D102
    @property
    def due(self) -> int | None: ...  # noqa: D102
    @property
    def not_begun(self) -> int | None: ...  # noqa: D102


# -- Limits beyond which figures say more of the load generator than of the store ------------------


#: A process that used more of a core than this was itself the limit, where users were idle.
BUSY_CPU_SHARE = 0.9


# -- The table -------------------------------------------------------------------------------------

#: Of which servers of a local Swift the CPU is a figure.
SERVER_KINDS = ("proxy", "listings", "object")

#: A percentile with fewer results beyond it says more of chance than of the store.
MIN_RESULTS_BEYOND = 10

# The ranks of the percentiles that each kind of view shows; 100 is the maximum.

#: A line of text, a row of a list or of a sweep.
LINE_RANKS = (50, 99)
#: A narrow table: of steps, or of what a run does now.
NARROW_RANKS = (50, 95, 99, 100)
#: The tables of a report.
TABLE_RANKS = (50, 95, 99, 99.9, 100)
#: A table of latencies alone.
LATENCY_RANKS = (50, 75, 90, 95, 99, 99.9, 99.99, 100)
#: A table of intervals.
INTERVAL_RANKS = (50, 90, 95, 99, 99.9)
#: The CSV of today's files, besides the percentile that is asked for.
CSV_RANKS = (50, 95, 99, 99.9)
#: JSON, besides those that are asked for.
JSON_RANKS = (1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9, 99.99)
#: A sentence or a band has the median, and the first of these that there are enough results for.
UPPER_RANKS = (99, 95, 90)


@dataclass(frozen=True, slots=True)
class Range:
    """The 95 % interval of a figure, in its unit. ``high`` is infinite where too few results lie beyond."""

    low: float
    high: float


class Basis(Enum):
    """How certain a figure of a run is, for conditions."""

    EXACT = "exact"  # it is what it is, also as a share of its whole
    COUNT = "count"  # exact, but as a share of its whole a sample of what a store does
    SPREAD = "spread"  # as much as latencies and seconds agree


class Scope(Enum):
    """The smallest group of operations of which a figure is known."""

    RUN = "run"
    OPERATION = "operation"
    SIZE_CLASS = "size class"


Number = Callable[[OperationSource, RunSource], float | None]
Count = Callable[[OperationSource, RunSource], int]


@dataclass(frozen=True, slots=True)
class Figure:
    """A row of the table."""

    key: str  # name in conditions and JSON, without the unit
    title: str  # the name that people read, without the unit
    unit: Unit  # that of all values
    basis: Basis  # how certain it is
    #: Its value for a line of a run, whether or not enough results support it; None where there is none.
    measured: Number
    #: The 95 % interval of that.
    measured_interval: Callable[[OperationSource, RunSource], Range | None] = lambda _line, _run: None
    results: Count = lambda line, _run: line.count  # how many results there are
    needs: int = 0  # how many results it needs
    more_is_better: bool | None = None  # None: neither is
    words: tuple[str, str] = ("less", "more")  # for a change for the better, and for one for the worse
    whole: Count | None = None  # where given, the value may be asked for as a share of this
    compared: bool = False  # it is in comparisons
    scope: Scope = Scope.SIZE_CLASS
    rank: float | None = None  # that of a percentile, 100 of the maximum
    #: Which latency it is of: ``last`` (the latency of verdicts), ``first`` (byte), ``response`` (from the
    #: moment it was due), ``service`` (from when it was sent); empty for other figures.
    kind: str = ""
    measured_most: Number | None = None  # the most that the value may be where it is a lower bound
    #: The latencies themselves; None for other figures.
    times: Callable[[OperationSource], LatencySource] | None = None
    #: What a counter of results counts, for reports, JSON Schema and metrics; empty for other figures.
    meaning: str = ""
    has_note: bool = False  # the full text report has a line for it where there are some

    @property
    def head(self) -> str:
        """Its title with the unit in which it is shown: ``p99 ms``."""
        return self.title if self.unit.shown in self.title else f"{self.title} {self.unit.shown}"

    @property
    def compared_in(self) -> Unit:
        """The unit in which runs are compared: a count is compared as a share of its whole."""
        return self.unit if self.whole is None else Unit.SHARE

    @property
    def is_share(self) -> bool:
        """Whether runs are compared by the difference of shares, and not by a ratio."""
        return self.compared_in is Unit.SHARE

    @property
    def compared_head(self) -> str:
        """Its title with the unit in which runs are compared: ``errors %``."""
        unit = self.compared_in.shown
        return self.title if unit in self.title else f"{self.title} {unit}"

    def word(self, change: float) -> str:
        """Return the word for a change."""
        return self.words[(change > 0) is not self.more_is_better]

    def value(self, line: OperationSource, run: RunSource) -> float | None:
        """Return the value; None, which is shown as a dash, where there is none or too few support it."""
        return self.measured(line, run) if self.is_supported(line, run) else None

    def interval(self, line: OperationSource, run: RunSource) -> Range | None:
        """Return the 95 % interval of the value; None where that or its interval is not known."""
        return self.measured_interval(line, run) if self.is_supported(line, run) else None

    def most(self, line: OperationSource, run: RunSource) -> float | None:
        """Return the most that the value may be: more than the value where that is known to be at least so.

        Infinite where nothing is known of it; None where there is no value. Whether enough results support
        it does not matter.
        """
        return (self.measured_most or self.measured)(line, run)

    def at_least(self, line: OperationSource, run: RunSource) -> bool:
        """Whether the value is only a lower bound, because operations that were due never began."""
        value, most = self.measured(line, run), self.most(line, run)
        return value is not None and most is not None and most > value

    def share(self, line: OperationSource, run: RunSource) -> float | None:
        """Return the value as a share of its whole; None where that is 0, and for a figure without one."""
        value, whole = self.value(line, run), self.whole(line, run) if self.whole else 0
        return None if value is None or not whole else value / whole

    def is_supported(self, line: OperationSource, run: RunSource) -> bool:
        """Whether there are as many results as it needs."""
        return self.results(line, run) >= self.needs

    def text(self, line: OperationSource, run: RunSource) -> str:
        """Return the value as reports show it, without its unit; with ``>`` before a lower bound."""
        value = self.value(line, run)
        return (AT_LEAST if value is not None and self.at_least(line, run) else "") + self.unit.text(value)


_MEGABYTE = 1e6


def _make_range(found: IntervalSource | None, unit: float = 1.0) -> Range | None:
    return None if found is None else Range(found.low / unit, found.high / unit)


#: Where latencies are, by the prefix of their keys: the kind, what titles begin with, how they are found.
_LATENCY_KINDS: dict[str, tuple[str, str, Callable[[OperationSource], LatencySource]]] = {
    "": ("last", "", lambda line: line.latency),
    "first_": ("first", "first byte ", lambda line: line.first_byte),
    "response_": ("response", "response ", lambda line: line.due.since_due),
    "service_": ("service", "service ", lambda line: line.last_byte),
}
_LATENCY_KEY_PATTERN = re.compile(
    r"(|first_|response_|service_)(?:mean|max|p(\d{1,3}(?:\.\d{1,6})?))\Z", re.ASCII
)


def count_needed_results(rank: float) -> int:
    """Return how many results the percentile of a rank below 100 needs."""
    return math.ceil(100 * MIN_RESULTS_BEYOND / (100 - Fraction(str(rank))))


def _latency_figure(name: str, rank: float | None, prefix: str = "", *, compared: bool = False) -> Figure:
    """Return the row of a percentile, or of the mean where there is no rank."""
    kind, title, times = _LATENCY_KINDS[prefix]

    def measured(line: OperationSource, _run: RunSource) -> float | None:
        found = times(line)
        seconds = found.mean if rank is None else found.percentile(rank)
        return None if math.isnan(seconds) else seconds

    def most(line: OperationSource, _run: RunSource) -> float | None:
        seconds = times(line).most(rank)
        return None if math.isnan(seconds) else seconds

    def interval(line: OperationSource, _run: RunSource) -> Range | None:
        return None if rank is None or rank >= 100 else _make_range(times(line).interval(rank))

    return Figure(
        prefix + name,
        title + name,
        Unit.SECONDS,
        Basis.EXACT if rank == 100 else Basis.SPREAD,
        measured,
        interval,
        lambda line, _: times(line).count,
        needs=1 if rank is None or rank >= 100 else count_needed_results(rank),
        more_is_better=False,
        words=("faster", "slower"),
        compared=compared,
        rank=rank,
        kind=kind,
        measured_most=most,
        times=times,
    )


def _cpu_figure(kind: str) -> Figure:
    """Return the row of the CPU of servers of one kind for an operation."""

    def measured(_line: OperationSource, run: RunSource) -> float | None:
        return run.server_cpu[kind].seconds if kind in run.server_cpu else None

    def interval(_line: OperationSource, run: RunSource) -> Range | None:
        return _make_range(run.server_cpu[kind].interval) if kind in run.server_cpu else None

    return Figure(
        f"{kind}_cpu",
        f"{kind} CPU",
        Unit.SECONDS,
        Basis.SPREAD,
        measured,
        interval,
        more_is_better=False,
        words=("less", "more"),
        compared=True,
        scope=Scope.RUN,
    )


def _counter_figure(key: str, title: str, meaning: str, **more: Any) -> Figure:
    """Return the row of the counter of results that has this key."""
    return Figure(
        key, title, Unit.COUNT, Basis.COUNT, lambda line, _: line.counted[key], meaning=meaning, **more
    )


def _entries_per_second(line: OperationSource, _run: RunSource) -> float | None:
    entries = line.counted["entries"]
    return line.requests_per_second * entries / line.count if entries else None


#: The table, in the order of reports. Latencies of other ranks and kinds are figures too: see
#: :func:`find_figure`.
FIGURES = {
    each.key: each
    for each in (
        Figure(
            "rate",
            "ops/s",
            Unit.PER_SECOND,
            Basis.SPREAD,
            lambda line, _: line.requests_per_second,
            lambda line, _: _make_range(line.rate_interval),
            more_is_better=True,
            words=("faster", "slower"),
            compared=True,
        ),
        Figure(
            "mb_per_s",
            "MB/s",
            Unit.MEGABYTES_PER_SECOND,
            Basis.SPREAD,
            lambda line, _: line.moved_per_second / _MEGABYTE if line.moved else None,
            lambda line, _: _make_range(line.moved_interval, _MEGABYTE),
            more_is_better=True,
            words=("faster", "slower"),
            compared=True,
        ),
        Figure(
            "entries_per_s",
            "entries/s",
            Unit.PER_SECOND,
            Basis.SPREAD,
            _entries_per_second,
            more_is_better=True,
            words=("faster", "slower"),
        ),
        _latency_figure("p50", 50, compared=True),
        _latency_figure("p95", 95, compared=True),
        _latency_figure("p99", 99, compared=True),
        _latency_figure("mean", None),
        _latency_figure("max", 100),
        Figure(
            "errors",
            "errors",
            Unit.COUNT,
            Basis.COUNT,
            lambda line, _: line.failed,
            more_is_better=False,
            words=("fewer errors", "more errors"),
            whole=lambda line, _: line.count + line.failed,
            compared=True,
        ),
        _counter_figure(
            "retries",
            "retries",
            "Attempts after the first one",
            more_is_better=False,
            words=("fewer retries", "more retries"),
            whole=lambda line, _: line.count,
            scope=Scope.OPERATION,
        ),
        _counter_figure(
            "resent",
            "sent again",
            "Sent again because a kept connection had gone stale (reconnect)",
            has_note=True,
            more_is_better=False,
            words=("fewer sent again", "more sent again"),
            whole=lambda line, _: line.count + line.failed,
        ),
        _counter_figure(
            "repeated",
            "maybe twice",
            "Uploads sent again that the store may have carried out twice (successes)",
            has_note=True,
            more_is_better=False,
            words=("fewer uploads done twice", "more uploads done twice"),
        ),
        _counter_figure("new_connections", "connections", "Connections that were made"),
        _counter_figure(
            "resumed_connections", "TLS resumed", "Connections that continued an earlier TLS session"
        ),
        _counter_figure("on_new", "on new", "Operations that made a connection"),
        _counter_figure("entries", "entries", "Entries of listings that succeeded"),
        _counter_figure(
            "missing_names",
            "missing",
            "Names that listings lacked, of objects that existed before and after (successes)",
            has_note=True,
            more_is_better=False,
            words=("fewer missing names", "more missing names"),
        ),
        _counter_figure(
            "vanished",
            "found nothing",
            "Deletes that found nothing after an answer or a worker was lost (successes)",
            has_note=True,
        ),
        _counter_figure(
            "unsent",
            "not sent whole",
            "Uploads answered before their body was sent (successes; bytes are those that were sent)",
            has_note=True,
        ),
        _counter_figure(
            "unchecked",
            "no ETag",
            "Answers without an MD5 as ETag: bodies were checked by their length alone (successes)",
            has_note=True,
        ),
        Figure("count", "ops", Unit.COUNT, Basis.COUNT, lambda line, _: line.count),
        Figure(
            "undelivered",
            "never begun",
            Unit.COUNT,
            Basis.EXACT,
            lambda _, run: run.not_begun,
            more_is_better=False,
            words=("fewer never begun", "more never begun"),
            whole=lambda _, run: run.due or 0,
            scope=Scope.RUN,
        ),
        *(_cpu_figure(kind) for kind in SERVER_KINDS),
    )
}

#: The counters of results, which every report has.
COUNTED_FIGURES = {key: each for key, each in FIGURES.items() if each.meaning}

#: The figures of servers' CPU, each by the kind of its servers.
CPU_FIGURES = {kind: FIGURES[f"{kind}_cpu"] for kind in SERVER_KINDS}
CPU_KEYS = tuple(figure.key for figure in CPU_FIGURES.values())

#: The figures that runs are compared by.
COMPARED_FIGURES = {key: each for key, each in FIGURES.items() if each.compared}

#: Those of them that are percentiles, with their ranks, in ascending order.
COMPARED_RANKS = {key: each.rank for key, each in COMPARED_FIGURES.items() if each.rank is not None}

#: What is proposed for a key that is none.
LIKELY_KEYS = (
    *FIGURES,
    "p99.9",
    "first_p50",
    "first_p99",
    "first_mean",
    "first_max",
    "response_p99",
    "service_p99",
)


@cache
def find_figure(key: str) -> Figure | None:
    """Return the figure of a key, such as ``rate``, ``p99.9`` or ``first_max``; None where there is none."""
    if key in FIGURES:
        return FIGURES[key]
    found = _LATENCY_KEY_PATTERN.match(key)
    if found is None or (found[2] is not None and not 0 < float(found[2]) <= 100):
        return None
    rank = float(found[2]) if found[2] else 100.0 if key.endswith("max") else None
    return _latency_figure(key.removeprefix(found[1]), rank, found[1])


@cache
def percentile_figure(rank: float) -> Figure:
    """Return a percentile of the latency of verdicts; the maximum for 100."""
    return FIGURES["max"] if rank == 100 else _latency_figure(f"p{rank:.10g}", rank)


def percentile_of(ordered: OrderedValues, rank: float) -> float | None:
    """Return a percentile of values in ascending order; None where too few support it.

    The maximum (rank 100) needs one value.
    """
    if len(ordered) < (1 if rank >= 100 else count_needed_results(rank)):
        return None
    return percentile_by_rule(len(ordered), rank, lambda place: float(ordered[place - 1]))


def percentile_by_rule(count: int, rank: float, smallest: Callable[[int], float]) -> float:
    """Return the percentile of this many values, given what finds the n-th smallest of them.

    N-th percentile of n values, r = n * N / 100: the mean of the r-th and the (r+1)-th smallest where
    r is whole, else the ceil(r)-th smallest; the maximum for N = 100.
    """
    place = count * Fraction(str(rank)) / 100
    if place.denominator == 1 and place < count:
        return (smallest(int(place)) + smallest(int(place) + 1)) / 2
    return smallest(math.ceil(place))
