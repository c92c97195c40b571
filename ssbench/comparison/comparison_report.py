"""A comparison as a document, as CSV, as JSON, and as JUnit XML for CI.

The document has its verdict, every change, and for pages the runs laid over each other: rates over time,
latency by percentile. JUnit has cases for the verdict and for each condition.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

import numpy as np
from msgspec.structs import replace

from ssbench.base import record
from ssbench.base.errors import GateResult
from ssbench.base.printable import escape_csv_cell
from ssbench.base.version import __version__
from ssbench.comparison.change import NO_DIFFERENCE, NOT_KNOWN_NOTE, FigureChange, format_change_cells
from ssbench.comparison.comparison_verdict import TableVerdict, judge_comparison
from ssbench.comparison.run_comparison import ComparedSide, Comparison, ComparisonRow, Judged
from ssbench.document.columns import format_plural
from ssbench.document.elements import (
    SLATE,
    Cell,
    Chart,
    Column,
    Curve,
    Detail,
    Document,
    DrawnInterval,
    Element,
    IntervalRow,
    Intervals,
    Note,
    Section,
    Table,
    Tone,
    Verdict,
    View,
    Warnings,
    drop_columns,
    make_section,
)
from ssbench.document.figures import COMPARED_FIGURES, CPU_FIGURES
from ssbench.document.units import DASH, format_change_size
from ssbench.document.units import format_change as in_percent
from ssbench.reports import run_charts
from ssbench.reports.csv import format_csv
from ssbench.reports.junit import JUnitCase, make_junit_suite
from ssbench.reports.key_figures import format_utc
from ssbench.reports.part_changes import make_part_elements
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.run_verdict import Outcome

#: Runs of a side that are drawn; the table is of all.
MAX_DRAWN_RUNS = 8


@dataclass(frozen=True, slots=True)
class RunCurves:
    """What is drawn of a run, which is small: its rate over time, and latency by percentile by operation."""

    name: str
    rate: Curve | None
    latencies: Mapping[str, Curve]


def make_run_curves(statistics: RunStatistics, name: str) -> RunCurves:
    """Return the curves of a run whose statistics were counted with ``over_time``."""
    rate = None
    over_time = statistics.over_time
    if over_time is not None:
        seconds = np.maximum(over_time.seconds, 1e-9)
        rate = Curve(
            name, run_charts.bin_middles(over_time), over_time.operations[None].count / seconds, SLATE
        )
    return RunCurves(
        name,
        rate,
        {
            section.operation.name.upper(): curve
            for section in statistics.sections[1:]
            if section.operation
            and (
                curve := run_charts.make_percentile_curve(
                    name, section.lines[0].latency.measured, run_charts.curve_colour(section.operation)
                )
            )
        },
    )


def make_side_curves(statistics: RunStatistics) -> tuple[list[RunCurves], ...]:
    """Return the curves of each of the two sides of a run."""
    return tuple([make_run_curves(side.numbers, side.name)] for side in statistics.sides)


def draw_run_curves(before: Sequence[RunCurves], after: Sequence[RunCurves]) -> list[Element]:
    """Return charts of the runs of two sides laid over each other; none where there are no curves.

    A colour is an operation; runs before are dashed. Of several runs a side each is called by its number: the
    names of files are longer than the charts, and stand below.
    """
    sides = (("before", before[:MAX_DRAWN_RUNS], "dashed"), ("after", after[:MAX_DRAWN_RUNS], "solid"))
    several = max(len(before), len(after)) > 1
    runs = [
        (f"{side} {number}" if several else run.name[:60], run, dash)
        for side, own, dash in sides
        for number, run in enumerate(own, 1)
    ]
    rates = [replace(run.rate, dash=dash, name=name) for name, run, dash in runs if run.rate is not None]
    operations = dict.fromkeys(operation for _, run, _ in runs for operation in run.latencies)
    charts: list[Element] = [Chart("All operations", "ops/s", rates, digits=1)] if rates else []
    for operation in operations:
        laid = [
            replace(run.latencies[operation], dash=dash, name=name)
            for name, run, dash in runs
            if operation in run.latencies
        ]
        charts.append(
            Chart(f"{operation}: latency by percentile", "ms", laid, axis="percentile", log=True, digits=2)
        )
    if charts and several:
        charts.append(Note("; ".join(f"{name}: {run.name}" for name, run, _ in runs)))
    return charts


# -- CSV, JUnit and JSON ---------------------------------------------------------------------------


def make_comparison_csv(comparison: Comparison, _view: View | None = None) -> str:
    """Return a line a figure, with values in seconds, operations or megabytes a second, and shares."""
    titles = [name.replace("_", " ").capitalize() for name in FigureChange.__slots__]
    lines: list[list[object]] = [["Operation", "Size class", "Figure", *titles]]
    for row in comparison.rows:
        for figure, change in row.changes.items():
            values = asdict(change).values()
            lines.append([row.operation, escape_csv_cell(row.size_class or ""), figure, *values])
    return format_csv(lines)


def make_comparison_junit(comparison: Comparison, _view: View | None = None) -> str:
    """Return the document; what is undecided is a case that was skipped."""
    return make_verdict_junit(
        _name_junit_suite(comparison),
        judge_comparison(comparison),
        comparison.conditions,
        [f"{comparison.before} to {comparison.after}"],
        comparison.warnings,
    )


def make_verdict_junit(
    name: str, said: TableVerdict, conditions: Iterable[Judged], facts: Iterable[str], warnings: Iterable[str]
) -> str:
    """Return JUnit XML with a case for a verdict, and one for each condition."""
    failed = (said.word.value, said.headline) if said.outcome is Outcome.FAILED else None
    skipped = said.headline if said.outcome is Outcome.UNDECIDED else ""
    cases = [JUnitCase("the verdict", failed, said.headline, skipped)]
    cases += [make_condition_case(f"not {each.condition}", each) for each in conditions]
    words = [*facts, said.headline, *said.reasons, *(f"Warning: {warning}" for warning in warnings)]
    return make_junit_suite(name, cases, words)


def make_condition_case(name: str, judged: Judged) -> JUnitCase:
    """Return the case of a condition; what is undecided was skipped."""
    text = f"{judged.came}{f'; it needs {judged.needs}' if judged.needs else ''}"
    failed = ("threshold", text) if judged.result is GateResult.FAILED else None
    return JUnitCase(name, failed, text, f"undecided: {text}" if judged.undecided else "")


def _name_junit_suite(comparison: Comparison) -> str:
    """Return a name that is the same for the next runs, so that a CI service can follow its cases.

    Names of files have dates in them.
    """
    scenarios = {side.scenario for side in comparison.sides} - {""}
    labels = [side.label for side in comparison.sides] or [comparison.before, comparison.after]
    parts = [
        *(scenarios if len(scenarios) == 1 else ()),
        *([" and ".join(labels)] if all(labels) and labels[0] != labels[1] else []),
    ]
    return f"comparison of {', '.join(parts)}" if parts else "comparison"


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonReport(Comparison):
    """A comparison of runs, with its verdict.

    ``changes`` are keyed by figure, as conditions (``--fail-if``) have it: ``rate`` is operations a second,
    ``mb_per_s`` megabytes a second; latencies are in seconds, ``errors`` is a share of 1.
    """

    format: Literal["ssbench comparison"] = "ssbench comparison"
    version: Literal[2] = 2
    made_by: str = __version__
    verdict: TableVerdict


def make_comparison_json(comparison: Comparison, *_: Any) -> str:
    """Return a comparison as one JSON document."""
    own = {field.name: getattr(comparison, field.name) for field in fields(Comparison)}
    return record.format_json(ComparisonReport(**own, verdict=judge_comparison(comparison)))


# -- The document ----------------------------------------------------------------------------------


_COLUMNS = (
    Column("operation", is_number=False),
    Column("size class", is_number=False, short=""),
    Column("figure", is_number=False),
    Column("before"),
    Column("after"),
    Column("change"),
    Column("95 % interval"),
    Column("detects"),
    Column("", is_number=False, short="shown"),
    Column("change with its interval", is_number=False, detail=Detail.PAGE),
)
#: Those of them that are left out where no row has anything in them.
_OPTIONAL_COLUMNS = (1, 6, 7, 8, 9)

#: The axis of the chart of changes ends at this change at the latest, and at its inverse: 4 and 1/4.
_MAX_REACH = 3.0

#: Ratios that an axis may show, with their texts, from the closest to 1 on; a wider axis has powers of two.
_CLOSE_RATIOS = ((0.6, "-40 %"), (0.8, "-20 %"), (1.0, "0"), (1.25, "+25 %"), (1.6, "+60 %"))

#: The servers that a figure of CPU is of.
_CPU_KINDS = {figure.key: kind for kind, figure in CPU_FIGURES.items()}

#: Where there is little room, these words are said of a change; the others by their first word.
_SHORT_WORDS = {NO_DIFFERENCE: "none"}
_TONES = {
    word: tone
    for each in COMPARED_FIGURES.values()
    for word, tone in zip(each.words, (Tone.GOOD, Tone.BAD), strict=True)
}


@dataclass(frozen=True, slots=True)
class ComparisonView(View):
    """What a comparison is written for, with what is drawn of the runs of each side."""

    before: Sequence[RunCurves] = ()
    after: Sequence[RunCurves] = ()


def make_comparison_document(comparison: Comparison, view: View) -> Document:
    """Return the document; it has charts where the view has curves."""
    table = list_visible_changes(comparison)
    drawn_changes = draw_change_intervals(comparison)
    elements: list[Element] = [
        *([Section("What changed", [drawn_changes], Detail.PAGE)] if drawn_changes.rows else []),
        table,
    ]
    if any(not isinstance(row, Note) and DASH in row for row in table.rows):
        elements.append(Note(NOT_KNOWN_NOTE))
    if comparison.by_part is not None:
        elements += make_part_elements(comparison.by_part)
    if isinstance(view, ComparisonView) and (drawn := draw_run_curves(view.before, view.after)):
        elements.append(Section("The runs over each other", drawn, Detail.PAGE))
    if comparison.warnings:
        elements.append(Warnings(comparison.warnings))
    facts = [
        f"{side}: {name}" + (f" ({format_plural(count, 'run')})" if count else "")
        for side, name, count in zip(
            ("before", "after"), (comparison.before, comparison.after), comparison.runs, strict=True
        )
    ]
    names = comparison.before, comparison.after
    labels = [side.label or name for side, name in zip(comparison.sides, names, strict=False)] or names
    return Document(
        " to ".join(labels),
        [*make_section("", [_tabulate_sides(comparison)], Detail.PAGE), *elements],
        make_conclusion(comparison),
        [*comparison.noop, *facts],
        untitled=True,
    )


def _tabulate_sides(comparison: Comparison) -> Table:
    """Return what both sides are: when, where and what was measured."""
    return Table(
        [Column(head, is_number=False) for head in ("side", "label", "measured", "scenario", "storage URL")],
        [
            (name, side.label or DASH, _spell_times(side), side.scenario or DASH, side.storage_url or DASH)
            for name, side in zip(("before", "after"), comparison.sides, strict=False)
        ],
    )


def _spell_times(side: ComparedSide) -> str:
    if side.first is None:
        return DASH
    more = f" to {format_utc(side.last)}" if side.last != side.first else ""
    return f"{format_utc(side.first)}{more}"


def make_conclusion(comparison: Comparison) -> Verdict:
    """Return the verdict; its reasons, and what was found of its conditions."""
    found = judge_comparison(comparison)
    return Verdict(
        found.tone,
        found.headline,
        [*found.findings, *map(describe_condition, comparison.conditions)],
        details=[each for each in found.reasons if each not in found.findings],
    )


def describe_condition(judged: Judged) -> str:
    """Return the line of a condition."""
    needs = f"; it needs {judged.needs}" if judged.needs else ""
    return f"fail-if {judged.condition}: {judged.result.value} ({judged.came}){needs}"


def list_visible_changes(comparison: Comparison) -> Table:
    """Return a row for each change that is visible."""
    reach = _reach(comparison.rows, comparison.noise)
    rows = [
        (
            *_name_change(row, figure),
            *_change_cells(figure, change),
            _span(figure, change, comparison.noise, reach),
        )
        for row in comparison.rows
        for figure, change in _visible_changes(row)
    ]
    empty = [place for place in _OPTIONAL_COLUMNS if not any(row[place] for row in rows)]
    return drop_columns(Table(_COLUMNS, rows, keys=2), empty)


def _name_change(row: ComparisonRow, figure: str) -> tuple[str | Cell, str, str | Cell]:
    """Return the operation, the size class and the figure; text has no room for all of a server's CPU."""
    head, kind = COMPARED_FIGURES[figure].compared_head, _CPU_KINDS.get(figure)
    if kind is None:
        return row.operation, row.size_class or "", head
    short = head.removeprefix(kind).lstrip()
    return Cell(row.operation, short=kind), row.size_class or "", Cell(head, short=short)


def draw_change_intervals(comparison: Comparison) -> Intervals:
    """Return the changes of whole operations, each with its interval, on one axis."""
    whole = [row for row in comparison.rows if row.size_class is None]
    reach = min(_reach(whole, comparison.noise), _MAX_REACH)
    rows = [
        IntervalRow(
            row.operation,
            COMPARED_FIGURES[figure].compared_head,
            span.span,
            f"{in_percent(change.change)} %",
            _TONES.get(change.word or ""),
        )
        for row in whole
        for figure, change in _visible_changes(row)
        if isinstance(span := _span(figure, change, comparison.noise, reach), Cell)
        if span.span is not None and change.change is not None
    ]
    size = format_change_size(comparison.noise)
    band = f"Shaded: changes up to {size} %, which differences between runs explain. "
    return Intervals(
        "after / before, 95 % interval",
        rows,
        [*_choose_ticks(reach)],
        f"{band if comparison.noise else ''}An arrow: the interval goes on beyond the axis.",
    )


def _choose_ticks(reach: float) -> Iterator[tuple[float, str]]:
    """Yield changes that the axis shows, with their texts; none so near an end that its text were cut off."""
    end = 0.93 * math.log1p(reach)
    if reach > 1.2:
        most = int(end / math.log(2))
        for power in range(-most, most + 1):
            yield 2.0**power - 1, f"1/{2**-power}" if power < 0 else f"{2**power}"
    elif reach > 0.25:
        yield from ((ratio - 1, text) for ratio, text in _CLOSE_RATIOS if abs(math.log(ratio)) <= end)
    else:
        power_of_ten = 10 ** math.floor(math.log10(reach))
        step = next(
            each * power_of_ten for each in (0.2, 0.5, 1.0, 2.0, 5.0) if reach / (each * power_of_ten) < 4
        )
        most = int(0.93 * reach / step)
        yield from (
            (step * place, f"{100 * step * place:+,.10g} %" if place else "0")
            for place in range(-most, most + 1)
            if abs(math.log1p(step * place)) <= end
        )


def _reach(rows: Sequence[ComparisonRow], noise: float) -> float:
    """Return how far intervals are drawn to both sides: to their ends, or thrice the largest change."""
    known = [
        (abs(change.change), abs(change.low), abs(change.high))
        for row in rows
        for figure, change in _visible_changes(row)
        if not COMPARED_FIGURES[figure].is_share
        if change.change is not None and change.low is not None and change.high is not None
    ]
    largest = max((change for change, *_ in known), default=0.0)
    ends = max((end for each in known for end in each), default=0.0)
    return 1.1 * max(min(ends, 3 * largest), 2 * noise, 0.01)


def _span(figure: str, change: FigureChange, noise: float, reach: float) -> Cell | str:
    """Return the picture of a change with its interval; nothing where that is not known."""
    if (
        change.change is None
        or change.low is None
        or change.high is None
        or COMPARED_FIGURES[figure].is_share
    ):
        return ""
    tone = _TONES.get(change.word or "")
    return Cell(tone=tone, span=DrawnInterval(change.low, change.change, change.high, noise, reach))


def _change_cells(figure: str, change: FigureChange) -> list[str | Cell]:
    *numbers, word = format_change_cells(COMPARED_FIGURES[figure], change)
    short = _SHORT_WORDS.get(word, word.partition(" ")[0])
    return [*numbers, Cell(word, _TONES.get(word), short=short) if word else ""]


def _visible_changes(row: ComparisonRow) -> Iterator[tuple[str, FigureChange]]:
    """Yield the changes of a row; shares, such as errors, only where there were some."""
    for figure, change in row.changes.items():
        if not COMPARED_FIGURES[figure].is_share or change.before or change.after:
            yield figure, change
