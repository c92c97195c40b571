"""Many comparisons at once: rows that each have runs before and after, and one verdict and report on all.

The rows of two suites, or the steps of two sweeps, are a family. Of 20 rows with 8 figures each, 8 differ at
5 % where nothing changed. So all tests share one level: luck shows a change anywhere in one of twenty
families (Holm, 1979).

Few rounds do not say how much runs differ, but all rows together do
(:mod:`~ssbench.comparison.row_variances`). One verdict (:func:`judge_family`) and one report are on all of
them: a table with a row for each.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import Literal

from ssbench.base import record
from ssbench.base.errors import GateResult, UsageError, choose_exit_code
from ssbench.base.printable import escape_csv_cell
from ssbench.comparison.change import (
    NOISE_SHARE,
    FigureChange,
    FigureDifference,
    RunOrder,
    find_run_order,
    format_change_cells,
    format_detectable,
    format_signed_change,
    judge_changes,
    list_tested,
    measure_difference,
)
from ssbench.comparison.comparison_report import describe_condition, make_verdict_junit
from ssbench.comparison.comparison_verdict import (
    FINE_ENOUGH_CHANGE,
    OUTCOMES,
    TableVerdict,
    Word,
    choose_change_word,
    judge_conditions_first,
    judge_interval,
)
from ssbench.comparison.noise_floor import SwiftStarts
from ssbench.comparison.row_variances import MIN_FREEDOM, estimate_common_share, moderate_variances
from ssbench.comparison.run_comparison import Judged
from ssbench.comparison.run_figures import (
    FigureSample,
    binomial_half_width,
    failure_half_width,
    list_local_urls,
)
from ssbench.comparison.run_table import RunTable
from ssbench.document.columns import format_plural
from ssbench.document.elements import Cell, Column, Document, Element, Note, Table, Tone, View, Warnings
from ssbench.document.figures import CPU_KEYS, Figure, find_figure
from ssbench.document.units import DASH, format_change
from ssbench.reports.csv import format_csv
from ssbench.scenario.conditions import Condition
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.run_verdict import Outcome

#: The figures of a row, of all of its operations.
ROW_FIGURE_KEYS = (
    *("rate", "mb_per_s", "p50", "p90", "p99", "first_p50", "first_p99", "errors"),
    *CPU_KEYS,
)

#: Fewer runs of each side of a row allow no word.
MIN_ROUNDS = 3


def count_needed_rounds(rows: int) -> int:
    """Return how many rounds of two ways in turn allow a verdict on so many rows."""
    return max(MIN_ROUNDS, 1 + math.ceil(MIN_FREEDOM / max(1, rows)))


def list_row_figures() -> dict[str, Figure]:
    """Return the rows of the table of figures that a family compares, by their keys."""
    return {key: figure for key in ROW_FIGURE_KEYS if (figure := find_figure(key)) is not None}


@dataclass(frozen=True, slots=True)
class RowRun:
    """What is kept of a run of a row."""

    figures: Mapping[str, FigureSample]  # by their keys; without those that the run has too few results for
    started: float | None = None  # seconds since 1970; None: not known
    local_swift: tuple[str, ...] = ()  # the storage URLs of the Swift on this machine that it used


def make_row_run(statistics: RunStatistics) -> RowRun:
    """Return what is kept of a run."""
    found: dict[str, FigureSample] = {}
    line = statistics.total.lines[0]
    for key, figure in list_row_figures().items():
        value = figure.share(line, statistics) if figure.is_share else figure.value(line, statistics)
        if value is None or not math.isfinite(value) or figure.at_least(line, statistics):
            continue
        if figure.is_share:
            # Rounds with one failure each, or none, are alike by chance.
            found[key] = FigureSample(value, failure_half_width(line) or binomial_half_width(line))
        elif value > 0:
            found[key] = FigureSample(value)
    return RowRun(found, statistics.run.started or statistics.start, list_local_urls(statistics))


@dataclass(frozen=True, slots=True)
class FamilyRow:
    """The changes of one row, by the keys of figures."""

    name: str
    runs: tuple[int, int]  # before and after
    changes: Mapping[str, FigureChange]


@dataclass(frozen=True, slots=True)
class FamilyComparison:
    """The changes of all rows, judged together."""

    before: str  # name of the side
    after: str  # name of the side
    rows: tuple[FamilyRow, ...]
    noise: float
    tests: int  # figures of rows that share the level
    in_turn: bool  # each run before has one after beside it, so that a drift is no difference
    warnings: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()  # further sentences, below those of the verdict
    conditions: tuple[Judged, ...] = ()  # those that were asked for, each in each row
    why_not: str = ""  # why there is no verdict, of two sides in each run; empty: too few runs
    missing: tuple[str, ...] = ()  # rows that are there before, and not after
    details: tuple[Element, ...] = ()  # what reports show of the sides, below their changes

    @property
    def is_judged(self) -> bool:
        """Whether there were enough runs for a verdict."""
        return self.tests > 0

    def shown(self) -> list[tuple[FamilyRow, str, FigureChange]]:
        """Return the changes that were shown, the largest first."""
        found = [
            (row, key, change) for row in self.rows for key, change in row.changes.items() if change.differs
        ]
        return sorted(found, key=lambda each: -_size(each[2]))

    def detectable(self, key: str) -> float | None:
        """Return the change of a figure that half of the rows would have shown; None: not known."""
        found = [
            change.detectable
            for row in self.rows
            if (change := row.changes.get(key)) is not None and change.detectable is not None
        ]
        return median(found) if found else None


def _size(change: FigureChange) -> float:
    """Return how large a change is, alike for more and for less."""
    return abs(math.log1p(max(change.change or 0.0, -0.999999)))


#: A row: its name, and its runs before and after.
_RowRuns = tuple[str, Sequence[RowRun], Sequence[RowRun]]


def compare_table(
    table: RunTable[RowRun], noise: float = NOISE_SHARE, warnings: Sequence[str] = ()
) -> FamilyComparison:
    """Compare the first side of all rows with each other one; rows that one of both lacks are left out."""
    figures = list_row_figures()
    before, *others = table.sides
    asked: list[_RowRuns] = [
        (f"{name}: {side}" if len(others) > 1 else name, first, second)
        for name, (first, *rest) in table.rows.items()
        for side, second in zip(others, rest, strict=True)
    ]
    rows = [(name, first, second) for name, first, second in asked if first and second]
    orders = [_find_order(first, second) for _, first, second in rows]
    starts = [SwiftStarts.of(*([run.local_swift for run in runs] for runs in row[1:])) for row in rows]
    found: dict[tuple[int, str], FigureDifference] = {}
    for key, figure in figures.items():
        measured = {
            place: _measure(figure, first, second, order)
            for place, ((_, first, second), order) in enumerate(zip(rows, orders, strict=True))
        }
        known = {
            place: replace(each, sure=each.between_runs and min(map(len, rows[place][1:])) >= MIN_ROUNDS)
            for place, each in measured.items()
            if each is not None
        }
        residuals = (
            [] if figure.is_share else [_list_residuals(key, rows[each], orders[each]) for each in known]
        )
        moderated = known if figure.is_share else moderate_variances(known, estimate_common_share(residuals))
        found |= {(place, key): starts[place].allow_for(figure, each) for place, each in moderated.items()}
    return judge_differences(
        FamilyComparison(
            before,
            ", ".join(others),
            tuple(FamilyRow(name, (len(first), len(second)), {}) for name, first, second in rows),
            noise,
            0,
            all(order is not None and order.pairs for order in orders),
            tuple(warnings),
            list_start_remarks(starts),
            missing=tuple(name for name, first, second in asked if first and not second),
        ),
        found,
    )


def list_start_remarks(starts: Iterable[SwiftStarts]) -> tuple[str, ...]:
    """Return what is said of the Swifts of some rows, which mostly have the same ones."""
    return tuple(dict.fromkeys(f"{text}." for each in starts if (text := each.describe())))


def judge_differences(
    family: FamilyComparison, found: Mapping[tuple[int, str], FigureDifference]
) -> FamilyComparison:
    """Return a family with its changes: of each row, by its place, and figure what was measured."""
    changes: list[dict[str, FigureChange]] = [{} for _ in family.rows]
    for (row, key), change in judge_changes(found, family.noise, figures=list_row_figures()).items():
        changes[row][key] = change
    rows = tuple(replace(row, changes=own) for row, own in zip(family.rows, changes, strict=True))
    return replace(family, rows=rows, tests=len(list_tested(found)))


def _find_order(before: Sequence[RowRun], after: Sequence[RowRun]) -> RunOrder | None:
    """Return the order of runs that were measured in turn; None for all others."""
    order = find_run_order([run.started for run in before], [run.started for run in after])
    return order if order is not None and order.pairs else None


def _measure(
    figure: Figure, before: Sequence[RowRun], after: Sequence[RowRun], order: RunOrder | None
) -> FigureDifference | None:
    """Return the difference of a figure; None where a run of either side lacks it."""
    sides = [
        [run.figures[figure.key] for run in runs if figure.key in run.figures] for runs in (before, after)
    ]
    if not all(sides) or [len(side) for side in sides] != [len(before), len(after)]:
        return None
    measured = measure_difference(figure, sides[0], sides[1], order)
    if order is not None or not measured.between_runs or figure.is_share:
        return measured
    # Welch's degrees of freedom depend on the variances themselves; those of one common variance do not.
    values = [[math.log(sample.value) for sample in side] for side in sides]
    freedom = len(values[0]) + len(values[1]) - 2
    within = sum((value - fmean(side)) ** 2 for side in values for value in side) / freedom
    error = math.sqrt(within * (1 / len(values[0]) + 1 / len(values[1])))
    return replace(measured, error=error, freedom=float(freedom))


def _list_residuals(key: str, row: _RowRuns, order: RunOrder | None) -> list[float]:
    """Return how the logarithms of a figure in the runs of a row differ from the mean of their side.

    Of runs in turn these are the differences of pairs. Empty where a run lacks it.
    """
    sides = [[run.figures[key].value for run in runs if key in run.figures] for runs in row[1:]]
    if [*map(len, sides)] != [*map(len, row[1:])] or min(map(len, sides)) < 2:
        return []
    scaled = [[math.log(value) for value in side] for side in sides]
    if order is not None:
        scaled = [[scaled[1][two] - scaled[0][one] for one, two in order.pairs]]
    return [value - fmean(side) for side in scaled for value in side]


# -- The verdict and the report --------------------------------------------------------------------


#: So many changes are named in the first line.
_MAX_NAMED = 3


def judge_family(found: FamilyComparison) -> TableVerdict:
    """Judge all rows by what is shown of any, and by the conditions."""
    shown = found.shown()
    changes = [(list_row_figures()[key], change) for _, key, change in shown]
    word = choose_change_word(changes) if found.is_judged else Word.UNDECIDED
    outcome = OUTCOMES[word]
    results = [each.result for each in found.conditions]
    detectable = found.detectable("p50") or found.detectable("rate")
    if word is Word.SAME and (detectable is None or detectable > FINE_ENOUGH_CHANGE):
        outcome = Outcome.WARNED
    word, outcome = judge_conditions_first(word, outcome, results)
    headline = word.value
    if word is Word.UNDECIDED and not found.is_judged:
        headline = "no verdict"
    elif shown:
        named = [_spell(row, key, change) for row, key, change in shown[:_MAX_NAMED]]
        more = f" and {len(shown) - _MAX_NAMED} more" if len(shown) > _MAX_NAMED else ""
        headline = f"{word.value}: {'; '.join(named)}{more}"
    elif detectable is not None:
        headline = f"{word.value} (detectable: {format_detectable(detectable)} or more)"
    return TableVerdict(
        word=word,
        outcome=outcome,
        headline=headline,
        reasons=tuple(_make_reasons(found)),
        exit_code=choose_exit_code(results),
    )


def judge_rows(found: FamilyComparison, conditions: Sequence[Condition]) -> FamilyComparison:
    """Return the comparison with each condition too, judged in each row by its interval of 95 %.

    Rows that only the side before has fail it. Raises UsageError for one that is about a part of a row.
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
    return replace(found, conditions=(*found.conditions, *judged))


def _judge_row(row: FamilyRow, condition: Condition) -> Judged:
    name = f"{row.name}: {condition.text}"
    change = row.changes.get(condition.figure)
    value = None if change is None else change.change if condition.relative else change.after
    if change is None or value is None:
        return Judged(name, "was not measured on both sides", GateResult.FAILED)
    ends = (change.low, change.high) if condition.relative else (change.after_low, change.after_high)
    known = [each for each in ends if each is not None]
    if len(known) < len(ends):
        return Judged(name, condition.spell(value), GateResult.UNDECIDED, "more rounds")
    spelt = [
        f"{format_change(each)} %" if condition.relative else condition.spell_measured(each)
        for each in (value, *known)
    ]
    came = f"{spelt[0]} ({spelt[1]} to {spelt[2]})"
    return judge_interval(condition.holds, known, name, came, "more rounds, or longer runs")


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
            f" {count_needed_rounds(len(found.rows))} or more. Changes are shown without one."
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
                (figure := list_row_figures()[key]).compared_head,
                figure.compared_in.text(change.before),
                figure.compared_in.text(change.after),
                format_signed_change(figure, change),
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
    elements += found.details
    facts = [f"before: {found.before}", f"after: {found.after}"]
    return Document(f"{found.before} to {found.after}", elements, verdict.element, facts, untitled=True)


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
    yield Note(f"Each cell: the change from {before} to {after}; * significant, the others may be chance")


def make_value_elements(title: str, found: FamilyComparison) -> list[Element]:
    """Return a table with what changes from a value of a key to others in each row, and its reasons."""
    changes = _make_changes(found, found.before, found.after, f"{title}: {describe_sides(found)}")
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
    lines: list[list[object]] = [["row", "runs_before", "runs_after", "figure", *FigureChange.__slots__]]
    for row in found.rows:
        for key, change in row.changes.items():
            values = [getattr(change, name) for name in FigureChange.__slots__]
            lines.append([escape_csv_cell(row.name), *row.runs, key, *values])
    return format_csv(lines)


def make_family_junit(found: FamilyComparison, _view: View | None = None) -> str:
    """Return JUnit XML with a case for the verdict, and one for each condition of each row."""
    sides = f"{found.before} to {found.after}"
    # Labels are the same each night, names of folders and files may have dates in them.
    name = f"comparison of {sides}" if sides.startswith("@") else "comparison row by row"
    return make_verdict_junit(name, judge_family(found), found.conditions, [sides], found.warnings)


class FamilyReport(record.JsonHead, frozen=True, kw_only=True):
    """Many comparisons with one verdict: the rows of two suites, or the steps of two sweeps.

    ``changes`` are keyed by figure, as conditions have it; latencies are in seconds, ``errors`` is a share.
    """

    format: Literal["ssbench suites"] = "ssbench suites"
    version: Literal[1] = 1
    before: str
    after: str
    verdict: TableVerdict
    rows: tuple[FamilyRow, ...]
    conditions: tuple[Judged, ...]
    warnings: tuple[str, ...]


def make_family_json(found: FamilyComparison, *_: object) -> str:
    """Return all rows as one JSON document."""
    verdict = judge_family(found)
    return record.format_json(
        record.make_record_from(FamilyReport, found, exit_code=verdict.exit_code, verdict=verdict)
    )


# -- Two sides in each run -------------------------------------------------------------------------


#: What is shown of two sides in each run, and which figures of it have a change.
_SIDED_KEYS = ("rate", "p50", "p99", "errors")


class SidedRows(record.JsonRecord, frozen=True, kw_only=True):
    """Two sides of each row, such as those of ``--ab`` or two stores; ``rows`` as in "ssbench suites"."""

    before: str
    after: str
    verdict: TableVerdict
    rows: tuple[FamilyRow, ...]


def make_sided_record(found: FamilyComparison | None) -> SidedRows | None:
    """Return the sides of all rows as a part of a JSON document."""
    if found is None:
        return None
    return record.make_record_from(SidedRows, found, verdict=judge_family(found))


def describe_sides(found: FamilyComparison) -> str:
    """Return what came of both sides, in one sentence."""
    return f"{found.after} against {found.before}: {judge_family(found).headline}."


def make_sided_elements(found: FamilyComparison, head: str) -> list[Element]:
    """Return a table with both sides of each row and the change between them, and what it rests on."""
    figures = {
        key: list_row_figures()[key]
        for key in (*_SIDED_KEYS, *CPU_KEYS)
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
            cells += [before, after]
            cells += [_make_cell(figure, change), interval or DASH] if key != "rate" else []
        rows.append(tuple(cells))
    title = f"Sides: {describe_sides(found)}"
    notes = [*judge_family(found).reasons]
    shown = ["*: significant, the others may be chance"] if found.shown() else []
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
