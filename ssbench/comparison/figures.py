"""What is compared of a run: a few figures of each operation and size class."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from ssbench.comparison.facts import facts_of
from ssbench.statistics import Interval, Line, RunStatistics
from ssbench.statistics.censored import Censored
from ssbench.verdict.reasons import of_delivery

#: (operation, size class): "ALL" is all operations, None all classes.
Key = tuple[str, str | None]


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure. ``unit`` divides values for people; ``more_is_faster`` is None where it is a share."""

    name: str
    title: str
    unit: float
    more_is_faster: bool | None

    def spell(self, value: float) -> str:
        """Return a value as people read it, in the unit of the title."""
        value /= self.unit
        return f"{value:.3f}" if value < 10 else f"{value:.2f}" if value < 100 else f"{value:.1f}"


#: Every figure that is compared, by its name, in the order of reports.
FIGURES = {
    each.name: each
    for each in (
        Figure("rate", "ops/s", 1.0, True),
        Figure("mb_per_s", "MB/s", 1e6, True),
        Figure("p50", "p50 ms", 1e-3, False),
        Figure("p95", "p95 ms", 1e-3, False),
        Figure("p99", "p99 ms", 1e-3, False),
        Figure("errors", "errors %", 0.01, None),
    )
}
_RANKS = {"p50": 50.0, "p95": 95.0, "p99": 99.0}


@dataclass(frozen=True, slots=True)
class Sample:
    """A figure of one run. ``half`` is half the width of its interval, of the logarithm; None: not known."""

    value: float
    half: float | None = None


@dataclass(frozen=True, slots=True)
class RunFigures:
    """The figures of a run, and the facts that two runs should have in common to be compared.

    ``started`` is seconds since 1970, None where it is not known.
    """

    name: str
    rows: Mapping[Key, Mapping[str, Sample]]
    facts: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    label: str = ""
    started: float | None = None


def figures_of(statistics: RunStatistics, name: str) -> RunFigures:
    """Return the figures of a run that is called ``name``; classes where an operation has several."""
    rows: dict[Key, Mapping[str, Sample]] = {}
    for section in (*statistics.sections[1:], statistics.total):
        operation = section.operation.name.upper() if section.operation else "ALL"
        lines = section.lines if section.operation and len(section.lines) > 2 else section.lines[:1]
        for line in lines:
            rows[operation, line.size_class] = dict(_samples(line))
    undelivered = (each.text for each in of_delivery(statistics, ()))
    warnings = [f"{name}: {warning}" for warning in (*undelivered, *statistics.warnings)]
    label = statistics.run.options.get("label")
    return RunFigures(
        name,
        rows,
        facts_of(statistics),
        tuple(warnings),
        label if isinstance(label, str) else "",
        statistics.run.started or statistics.start,
    )


def _samples(line: Line) -> list[tuple[str, Sample]]:
    found = []
    if 0 < line.requests_per_second < math.inf:
        found.append(("rate", _sample(line.requests_per_second, line.rate_interval)))
        if line.moved_per_second:
            found.append(("mb_per_s", _sample(line.moved_per_second, line.moved_interval)))
    for name, rank in _RANKS.items():
        if (sample := _percentile(line.latency, rank)) is not None:
            found.append((name, sample))
    if line.count + line.failed:
        found.append(("errors", Sample(line.failed / (line.count + line.failed))))
    return found


def _percentile(latencies: Censored, rank: float) -> Sample | None:
    """Return a percentile; None where too few operations lie beyond, or where it is only a lower bound."""
    value = latencies.supported_percentile(rank)
    return None if value is None or latencies.most(rank) > value else _sample(value, latencies.interval(rank))


def _sample(value: float, interval: Interval | None) -> Sample:
    if interval is None or math.isinf(interval.high) or interval.low <= 0:
        return Sample(value)
    return Sample(value, max(math.log(interval.high / value), math.log(value / interval.low)))
