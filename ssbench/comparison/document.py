"""A comparison as a document: its verdict, every change, and for pages the runs laid over each other."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ssbench.comparison.change import NO_DIFFERENCE, FigureChange
from ssbench.comparison.compare import Comparison, ComparisonRow, Judged
from ssbench.comparison.curves import RunCurves, draw_run_curves
from ssbench.comparison.figures import COMPARABLE_FIGURES
from ssbench.comparison.texts import NOT_KNOWN_NOTE, format_change_cells
from ssbench.comparison.verdict import judge_comparison
from ssbench.document.columns import format_plural
from ssbench.document.elements import (
    Cell,
    Column,
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
)
from ssbench.document.units import DASH, format_change_size
from ssbench.document.units import format_change as in_percent

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

#: The axis of the chart of changes ends here: less than 0 nothing can become.
_MAX_REACH = 2.0

#: Where there is little room, these words are said of a change; the others by their first word.
_SHORT_WORDS = {NO_DIFFERENCE: "none"}
_TONES = {
    word: tone
    for each in COMPARABLE_FIGURES.values()
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
    title = f"{comparison.before} to {comparison.after}"
    return Document(title, elements, make_conclusion(comparison), facts, untitled=True)


def make_conclusion(comparison: Comparison) -> Verdict:
    """Return the verdict; its reasons, and what was found of its conditions."""
    found = judge_comparison(comparison)
    return Verdict(
        found.tone, found.headline, [*found.reasons, *map(describe_condition, comparison.conditions)]
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
            row.operation,
            row.size_class or "",
            COMPARABLE_FIGURES[figure].compared_head,
            *_change_cells(figure, change),
            _span(figure, change, comparison.noise, reach),
        )
        for row in comparison.rows
        for figure, change in _visible_changes(row)
    ]
    empty = [place for place in _OPTIONAL_COLUMNS if not any(row[place] for row in rows)]
    return drop_columns(Table(_COLUMNS, rows, keys=2), empty)


def draw_change_intervals(comparison: Comparison) -> Intervals:
    """Return the changes of whole operations, each with its interval, on one axis."""
    whole = [row for row in comparison.rows if row.size_class is None]
    reach = min(_reach(whole, comparison.noise), _MAX_REACH)
    rows = [
        IntervalRow(
            row.operation,
            COMPARABLE_FIGURES[figure].compared_head,
            span.span,
            f"{in_percent(change.change)} %",
            _TONES.get(change.word or ""),
        )
        for row in whole
        for figure, change in _visible_changes(row)
        if isinstance(span := _span(figure, change, comparison.noise, reach), Cell)
        if span.span is not None and change.change is not None
    ]
    power = 10 ** math.floor(math.log10(reach))
    step = next(each * power for each in (0.2, 0.5, 1.0, 2.0, 5.0) if reach / (each * power) < 4)
    most = int(0.95 * reach / step)  # the text of one at the very end would be cut off
    places = range(-most, most + 1)
    band = f"Shaded: changes up to {format_change_size(comparison.noise)} %, which differences between runs explain. "
    return Intervals(
        "change, 95 % interval",
        rows,
        [(step * place, f"{100 * step * place:+,.10g} %" if place else "0") for place in places],
        f"{band if comparison.noise else ''}An interval that goes beyond the axis is cut off.",
    )


def _reach(rows: Sequence[ComparisonRow], noise: float) -> float:
    """Return how far intervals are drawn to both sides: to their ends, or thrice the largest change."""
    known = [
        (abs(change.change), abs(change.low), abs(change.high))
        for row in rows
        for figure, change in _visible_changes(row)
        if not COMPARABLE_FIGURES[figure].is_share
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
        or COMPARABLE_FIGURES[figure].is_share
    ):
        return ""
    tone = _TONES.get(change.word or "")
    return Cell(tone=tone, span=DrawnInterval(change.low, change.change, change.high, noise, reach))


def _change_cells(figure: str, change: FigureChange) -> list[str | Cell]:
    *numbers, word = format_change_cells(COMPARABLE_FIGURES[figure], change)
    short = _SHORT_WORDS.get(word, word.partition(" ")[0])
    return [*numbers, Cell(word, _TONES.get(word), short=short) if word else ""]


def _visible_changes(row: ComparisonRow) -> Iterator[tuple[str, FigureChange]]:
    """Yield the changes of a row; shares, such as errors, only where there were some."""
    for figure, change in row.changes.items():
        if not COMPARABLE_FIGURES[figure].is_share or change.before or change.after:
            yield figure, change
