"""What is compared of a run: a few figures of each operation and size class."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ssbench.comparison.facts import collect_run_facts
from ssbench.comparison.failures import failure_half_width
from ssbench.document.figures import COMPARED_FIGURES, Figure, Range
from ssbench.statistics.reasons import find_delivery_reasons
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.sections import FiguresSection, SectionLine

#: (operation, size class): "ALL" is all operations, None all classes. Those of a group of users have its name
#: before them, as in conditions: "backup.READ", "backup.ALL".
FigureKey = tuple[str, str | None]


def make_operation_key(operation: str | None, group: str | None = None) -> str:
    """Return what an operation is called in a key, of a group of users or of all; None is all operations."""
    name = operation.upper() if operation else "ALL"
    return f"{group}.{name}" if group else name


#: Every figure that is compared, by its key, in the order of reports.
COMPARABLE_FIGURES = COMPARED_FIGURES


@dataclass(frozen=True, slots=True)
class FigureSample:
    """A figure of one run.

    ``half`` is half the width of its 95 % interval, of the logarithm (of shares: of the value); None: not
    known.
    """

    value: float
    half: float | None = None


@dataclass(frozen=True, slots=True)
class RunFigures:
    """The figures of a run, and the facts that two runs should have in common to be compared.

    ``started`` is seconds since 1970, None where it is not known. ``only_classes`` has the size class of each
    operation that has one, whose figures are those of the operation and stand in no row of their own.
    """

    name: str
    rows: Mapping[FigureKey, Mapping[str, FigureSample]]
    facts: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    label: str = ""
    started: float | None = None
    only_classes: Mapping[str, str] = field(default_factory=dict)


def runs_with_figure(runs: Sequence[RunFigures], key: FigureKey, figure: Figure) -> Sequence[RunFigures]:
    """Return the runs that have a figure; none where it is a percentile that only some of them have.

    Those without it had too few operations for it, mostly because they were slow. The mean of the others is
    too good, and a 99th percentile of fast runs can be below a 95th percentile of all.
    """
    found = [run for run in runs if figure.key in run.rows.get(key, {})]
    return [] if figure.rank is not None and len(found) < len(runs) else found


def make_run_figures(statistics: RunStatistics, name: str) -> RunFigures:
    """Return the figures of a run that is called ``name``; classes where an operation has several."""
    rows: dict[FigureKey, Mapping[str, FigureSample]] = {}
    for operation, section, numbers in _sections(statistics):
        lines = section.lines if section.operation and len(section.lines) > 2 else section.lines[:1]
        for line in lines:
            rows[operation, line.size_class] = dict(_samples(line, numbers))
    undelivered = (each.text for each in find_delivery_reasons(statistics, ()))
    warnings = [f"{name}: {warning}" for warning in (*undelivered, *statistics.warnings)]
    label = statistics.run.options.get("label")
    return RunFigures(
        name,
        rows,
        collect_run_facts(statistics),
        tuple(warnings),
        label if isinstance(label, str) else "",
        statistics.run.started or statistics.start,
        classes_by_operation(statistics),
    )


def classes_by_operation(statistics: RunStatistics) -> dict[str, str]:
    """Return the size class of each operation that has one."""
    return {
        operation: section.lines[1].size_class or ""
        for operation, section, _ in _sections(statistics)
        if section.operation and len(section.lines) == 2
    }


def _sections(statistics: RunStatistics) -> Iterator[tuple[str, FiguresSection, RunStatistics]]:
    """Yield the operations of each group of users, then those of all, with what they are called."""
    parts = [*((group.name, group.numbers) for group in statistics.by_group), (None, statistics)]
    for group, numbers in parts:
        for section in (*numbers.sections[1:], numbers.total):
            yield (
                make_operation_key(section.operation.name if section.operation else None, group),
                section,
                numbers,
            )


def _samples(line: SectionLine, run: RunStatistics) -> Iterator[tuple[str, FigureSample]]:
    for key, figure in COMPARABLE_FIGURES.items():
        if figure.is_share:
            share = figure.share(line, run)
            if share is not None:
                yield key, FigureSample(share, failure_half_width(line))
        elif (value := figure.value(line, run)) and math.isfinite(value) and not figure.at_least(line, run):
            yield key, _sample(value, figure.interval(line, run))


def _sample(value: float, interval: Range | None) -> FigureSample:
    if interval is None or math.isinf(interval.high) or interval.low <= 0:
        return FigureSample(value)
    return FigureSample(value, max(math.log(interval.high / value), math.log(value / interval.low)))
