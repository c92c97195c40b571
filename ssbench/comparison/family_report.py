"""The verdict on many comparisons at once, and the report of it: one table, a row for each of them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

from ssbench.base import record
from ssbench.base.errors import ExitCode, GateResult, UsageError, choose_exit_code
from ssbench.base.printable import escape_csv_cell
from ssbench.comparison.change import (
    FigureChange,
    format_change_cells,
    format_detectable,
    format_signed_change,
)
from ssbench.comparison.compare import Judged
from ssbench.comparison.comparison_report import describe_condition
from ssbench.comparison.comparison_verdict import FINE_ENOUGH_CHANGE, Word, choose_change_word, rate_word
from ssbench.comparison.family import MIN_ROUNDS, FamilyComparison, FamilyRow, list_row_figures
from ssbench.document.columns import format_plural
from ssbench.document.elements import (
    Cell,
    Column,
    Document,
    Element,
    Note,
    Table,
    Tone,
    Verdict,
    View,
    Warnings,
)
from ssbench.document.figures import Figure
from ssbench.document.units import DASH, format_change
from ssbench.reports.run_verdict import tone_of_outcome
from ssbench.scenario.conditions import Condition
from ssbench.statistics.run_verdict import Outcome

#: So many changes are named in the first line.
_MAX_NAMED = 3


class FamilyVerdict(record.JsonRecord, frozen=True, kw_only=True):
    """``headline`` begins with the ``word`` and has the largest changes; ``reasons`` are sentences."""

    word: Word
    outcome: Outcome
    headline: str
    reasons: tuple[str, ...]
    exit_code: ExitCode


def judge_family(found: FamilyComparison) -> FamilyVerdict:
    """Judge all rows by what is shown of any, and by the conditions."""
    shown = found.shown()
    changes = [(list_row_figures()[key], change) for _, key, change in shown]
    word = choose_change_word(changes) if found.is_judged else Word.UNDECIDED
    outcome = rate_word(word)
    results = [each.result for each in found.conditions]
    detectable = found.detectable("p50") or found.detectable("rate")
    if GateResult.FAILED in results:
        word, outcome = Word.FAILED, Outcome.FAILED
    elif GateResult.UNDECIDED in results:
        word, outcome = Word.UNDECIDED, Outcome.UNDECIDED
    elif word is Word.SAME and (detectable is None or detectable > FINE_ENOUGH_CHANGE):
        outcome = Outcome.WARNED
    headline = word.value
    if word is Word.UNDECIDED and not found.is_judged:
        headline = "no verdict"
    elif shown:
        named = [_spell(row, key, change) for row, key, change in shown[:_MAX_NAMED]]
        more = f" and {len(shown) - _MAX_NAMED} more" if len(shown) > _MAX_NAMED else ""
        headline = f"{word.value}: {'; '.join(named)}{more}"
    elif detectable is not None:
        headline = f"{word.value} (detectable: {format_detectable(detectable)} or more)"
    return FamilyVerdict(
        word=word,
        outcome=outcome,
        headline=headline,
        reasons=tuple(_make_reasons(found)),
        exit_code=choose_exit_code(results),
    )


def judge_rows(found: FamilyComparison, conditions: Sequence[Condition]) -> FamilyComparison:
    """Return the comparison with each condition, judged in each row by its interval of 95 %.

    Rows that only the side before has fail it.

    Raises UsageError for one that is about a part of a row.
    """
    judged = []
    for condition in conditions:
        if condition.operation or condition.size_class or condition.group:
            raise UsageError(f"--fail-if {condition.text!r}: rows of suites are compared as a whole")
        if condition.figure not in list_row_figures():
            known = ", ".join(list_row_figures())
            raise UsageError(f"--fail-if {condition.text!r}: of suites only {known} are compared")
        judged += [_judge_row(row, condition) for row in found.rows]
        # A row that was not run after all is no row that is as good as before.
        judged += [
            Judged(f"{name}: {condition.text}", "was not measured after", GateResult.FAILED)
            for name in found.missing
        ]
    return replace(found, conditions=tuple(judged))


def _judge_row(row: FamilyRow, condition: Condition) -> Judged:
    name = f"{row.name}: {condition.text}"
    change = row.changes.get(condition.figure)
    value = None if change is None else change.change if condition.relative else change.after
    if change is None or value is None:
        return Judged(name, "was not measured on both sides", GateResult.FAILED)
    ends = (change.low, change.high) if condition.relative else (change.after_low, change.after_high)
    if ends[0] is None or ends[1] is None:
        return Judged(name, condition.spell(value), GateResult.UNDECIDED, "more rounds")
    spelt = [
        f"{format_change(each)} %" if condition.relative else condition.spell_measured(each)
        for each in (value, *ends)
        if each is not None
    ]
    came = f"{spelt[0]} ({spelt[1]} to {spelt[2]})"
    held = {condition.holds(each) for each in ends if each is not None}
    if len(held) > 1:
        return Judged(name, came, GateResult.UNDECIDED, "more rounds, or longer runs")
    return Judged(name, came, GateResult.FAILED if held.pop() else GateResult.PASSED)


def _spell(row: FamilyRow, key: str, change: FigureChange) -> str:
    figure = list_row_figures()[key]
    return f"{row.name} {figure.title} ({format_signed_change(figure, change)})"


def _make_reasons(found: FamilyComparison) -> Iterator[str]:
    rows = format_plural(len(found.rows), "row")
    if not found.is_judged and found.why_not:
        yield found.why_not
    elif not found.is_judged:
        yield (
            f"{rows} of {min((min(row.runs) for row in found.rows), default=0)} runs a side: a verdict needs"
            f" {MIN_ROUNDS} or more, of a few rows {MIN_ROUNDS + 1} or more. Changes are shown without one."
        )
    else:
        runs = "" if found.why_not else " How much runs differ is known from all rows of a figure together."
        yield (
            f"{rows} with {found.tests} figures share 5 % (Holm): of families in which nothing changed, one"
            f" of twenty shows a change.{runs} Changes within {100 * found.noise:g} % are noise."
        )
        half = [
            f"{format_detectable(value)} of {list_row_figures()[key].title}"
            for key in ("rate", "p50", "p99")
            if (value := found.detectable(key)) is not None
        ]
        if half:
            yield f"Half of the rows would have shown a change of {', '.join(half)}."
    if not found.in_turn:
        yield (
            "One side was measured after the other: what drifted between them looks like a change of all rows"
            " (--versus measures in turn)."
        )
    yield from found.remarks
    yield from map(describe_condition, found.conditions)


def make_family_document(found: FamilyComparison, _view: View | None = None) -> Document:
    """Return the document: the verdict, and a row for each comparison."""
    verdict = judge_family(found)
    elements: list[Element] = [*_make_changes(found, "before", "after")]
    if not found.rows:
        elements[0] = Note("The sides have no row in common.")
    shown = found.shown()
    if shown:
        details = [
            (
                row.name,
                list_row_figures()[key].compared_head,
                list_row_figures()[key].compared_in.text(change.before),
                list_row_figures()[key].compared_in.text(change.after),
                format_signed_change(list_row_figures()[key], change),
                f"{format_change(change.low or 0.0)} to {format_change(change.high or 0.0)}",
                Cell(change.word or "", Tone.GOOD if change.better else Tone.BAD),
            )
            for row, key, change in shown
        ]
        heads = ("before", "after", "change", "95 % interval")
        elements.append(
            Table(
                [
                    Column("row", is_number=False, is_whole=True),
                    Column("figure", is_number=False),
                    *map(Column, heads),
                    Column("", is_number=False),
                ],
                details,
                keys=2,
                title="What changed",
            )
        )
    if found.warnings:
        elements.append(Warnings(found.warnings))
    facts = [f"before: {found.before}", f"after: {found.after}"]
    return Document(
        f"{found.before} to {found.after}",
        elements,
        Verdict(tone_of_outcome(verdict.outcome), verdict.headline, verdict.reasons),
        facts,
        untitled=True,
    )


def _make_changes(found: FamilyComparison, before: str, after: str, title: str = "") -> Iterator[Element]:
    """Yield a table with the changes of each row, and what its cells are."""
    figures = {
        key: figure
        for key, figure in list_row_figures().items()
        if any(_is_worth_showing(figure, row.changes.get(key)) for row in found.rows)
    }
    columns = [
        Column("row", is_number=False, is_whole=True),
        *(
            Column(f"{figure.title.replace('first byte', 'first')}{' points' * figure.is_share}")
            for figure in figures.values()
        ),
    ]
    rows = [
        (row.name, *(_make_cell(figure, row.changes.get(key)) for key, figure in figures.items()))
        for row in found.rows
    ]
    yield Table(columns, rows, title=title)
    yield Note(f"Each cell: the change from {before} to {after}; * it is shown, the others may be luck")


def make_store_elements(found: FamilyComparison) -> list[Element]:
    """Return a table with what changes from a store to another one in each row, and what that rests on."""
    title = f"Stores: {describe_sides(found)}"
    changes = _make_changes(found, found.before, found.after, title)
    return [*changes, *map(Note, judge_family(found).reasons)]


def _is_worth_showing(figure: Figure, change: FigureChange | None) -> bool:
    """Whether there is something of a figure in a row: not of errors where there were none."""
    return change is not None and (not figure.is_share or bool(change.before or change.after))


def _make_cell(figure: Figure, change: FigureChange | None) -> str | Cell:
    if change is None or change.change is None:
        return DASH
    text = format_signed_change(figure, change)
    if not change.differs:
        return text
    return Cell(f"{text} *", Tone.GOOD if change.better else Tone.BAD)


def make_family_csv(found: FamilyComparison, _view: View | None = None) -> str:
    """Return a line for each figure of each row, with values in seconds, per second, and shares."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["row", "runs_before", "runs_after", "figure", *FigureChange.__slots__])
    for row in found.rows:
        for key, change in row.changes.items():
            values = [getattr(change, name) for name in FigureChange.__slots__]
            writer.writerow([escape_csv_cell(row.name), *row.runs, key, *values])
    return out.getvalue()


class FamilyReport(record.JsonHead, frozen=True, kw_only=True):
    """Many comparisons with one verdict: the rows of two suites, or the steps of two sweeps.

    ``changes`` are keyed by figure, as conditions have it; latencies are in seconds, ``errors`` is a share.
    """

    format: Literal["ssbench suites"] = "ssbench suites"
    version: Literal[1] = 1
    before: str
    after: str
    verdict: FamilyVerdict
    rows: tuple[FamilyRow, ...]
    conditions: tuple[Judged, ...]
    warnings: tuple[str, ...]


def make_family_report(found: FamilyComparison, *_: object) -> str:
    """Return all rows as one JSON document."""
    verdict = judge_family(found)
    return record.format_json(
        FamilyReport(
            exit_code=verdict.exit_code,
            before=found.before,
            after=found.after,
            verdict=verdict,
            rows=found.rows,
            conditions=found.conditions,
            warnings=found.warnings,
        )
    )


# -- Two sides in each run -------------------------------------------------------------------------


#: What is shown of two sides in each run, and which figures of it have a change.
_SIDED_KEYS = ("rate", "p50", "p99", "errors")


class SidedRows(record.JsonRecord, frozen=True, kw_only=True):
    """Two sides of each row, such as those of ``--ab`` or two stores; ``rows`` as in "ssbench suites"."""

    before: str
    after: str
    verdict: FamilyVerdict
    rows: tuple[FamilyRow, ...]


def make_sided_record(found: FamilyComparison | None) -> SidedRows | None:
    """Return the sides of all rows as a part of a JSON document."""
    if found is None:
        return None
    return SidedRows(before=found.before, after=found.after, verdict=judge_family(found), rows=found.rows)


def describe_sides(found: FamilyComparison) -> str:
    """Return what came of both sides, in one sentence."""
    return f"{found.after} against {found.before}: {judge_family(found).headline}."


def make_sided_elements(found: FamilyComparison, head: str) -> list[Element]:
    """Return a table with both sides of each row and the change between them, and what it rests on."""
    figures = {
        key: list_row_figures()[key]
        for key in _SIDED_KEYS
        if any(_is_worth_showing(list_row_figures()[key], row.changes.get(key)) for row in found.rows)
    }
    columns = [Column(head, is_number=head != "row", is_whole=True)]
    for key, figure in figures.items():
        columns += [Column(f"{figure.compared_head} {side}") for side in (found.before, found.after)]
        columns += [Column(f"{key} change"), Column("95 % interval")] if key != "rate" else []
    rows = []
    for row in found.rows:
        cells: list[str | Cell] = [row.name]
        for key, figure in figures.items():
            change = row.changes.get(key)
            if change is None:
                cells += [DASH] * (2 if key == "rate" else 4)
                continue
            before, after, _, interval, *_ = format_change_cells(figure, change)
            cells += [
                before,
                after,
                *([_make_cell(figure, change), interval or DASH] if key != "rate" else []),
            ]
        rows.append(tuple(cells))
    title = f"Sides: {describe_sides(found)}"
    notes = [*judge_family(found).reasons]
    shown = ["*: the change is shown, the others may be luck"] if found.shown() else []
    return [Table(columns, rows, title=title), *map(Note, [*shown, *notes])]


def make_sided_csv_cells(found: FamilyComparison, row: FamilyRow | None) -> dict[str, object]:
    """Return the cells of a row in a table of CSV, with values in seconds, per second, and shares."""
    cells: dict[str, object] = {
        "before": escape_csv_cell(found.before),
        "after": escape_csv_cell(found.after),
    }
    for key in _SIDED_KEYS:
        change = row.changes.get(key) if row is not None else None
        names = ("before", "after") if key == "rate" else ("before", "after", "change", "low", "high")
        cells |= {f"{key}_{name}": getattr(change, name, None) for name in names}
    return cells
