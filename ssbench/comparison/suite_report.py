"""What a suite has found: a table with a row for each variant, as text, page, CSV and JSON; one verdict.

Each figure is the mean over the rounds, with the 95 % interval of that (Student's t) where there are several.
A condition of a row is judged in each round; where these do not agree, the interval over the rounds decides.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Literal

import msgspec
import numpy as np

from ssbench.base import record
from ssbench.base.errors import (
    ExitCode,
    GateResult,
    Undecided,
    choose_exit_code,
    choose_worst_code,
    combine_gate_results,
)
from ssbench.base.printable import escape_csv_cell
from ssbench.base.record import Seconds
from ssbench.comparison.change import MIN_RUNS_FOR_WORD, FigureChange
from ssbench.comparison.comparison_report import describe_condition, make_condition_case
from ssbench.comparison.comparison_verdict import TableVerdict, Word, judge_change_condition
from ssbench.comparison.family import (
    FamilyComparison,
    SidedRows,
    list_row_figures,
    make_sided_elements,
    make_sided_record,
    make_value_elements,
)
from ssbench.comparison.paired_sides import compare_sided_rows
from ssbench.comparison.run_comparison import Judged, compare_runs, join_alike_warnings
from ssbench.comparison.run_table import list_sides
from ssbench.comparison.suite_rows import SuiteRow, compare_suite_table, name_rows, split_suite_rows
from ssbench.document.columns import format_plural
from ssbench.document.elements import (
    CURVE_COLOURS,
    GATE_TONES,
    Cell,
    Chart,
    Column,
    Curve,
    Document,
    Element,
    Note,
    Table,
    View,
    Warnings,
)
from ssbench.document.figures import Figure
from ssbench.document.units import DASH, Unit, format_seconds
from ssbench.reports.csv import format_csv
from ssbench.reports.junit import JUnitCase, make_junit_suite
from ssbench.reports.part_changes import ChangesByPart
from ssbench.scenario.suite_file import STORE_KEY
from ssbench.statistics.confidence import mean_half_width, wilson_interval
from ssbench.statistics.run_verdict import Outcome

_MILLISECONDS = 1000.0


@dataclass(frozen=True, slots=True)
class SuiteFindings:
    """What came of a suite."""

    name: str
    rows: tuple[SuiteRow, ...]
    rounds: int = 1  # how often each row was to be run
    why: str = ""  # why it ended before all runs were made; empty where it did not
    code: ExitCode = ExitCode.OK  # how the suite ended
    took: str = ""  # how long all took, beside the forecast
    undecided: Undecided = Undecided.REPORT  # what conditions count as that are undecided
    in_turn: bool = True  # all rows are run before any of them is run again
    kind: str = "Suite"  # what its title begins with
    scale: str = ""  # what sizes were multiplied by, such as 1/64; empty: they are as they were
    left_out: int = 0  # rows of the suite that were not chosen
    between: str = ""  # the key whose values are compared; empty: none was asked for
    #: By which part two stores differ in a row, where each is a Swift whose logs were at hand.
    by_part: Mapping[str, ChangesByPart] = field(default_factory=dict)
    #: The conditions of each row, judged over all of its rounds.
    judged: tuple[tuple[Judged, ...], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        rows = {row.name: row for row in self.rows}
        judged = tuple((*judge_row(row, self.rounds), *_judge_costs(row, rows)) for row in self.rows)
        object.__setattr__(self, "judged", judged)

    def judged_rows(self) -> Iterator[tuple[SuiteRow, tuple[Judged, ...]]]:
        """Yield each row with its judged conditions."""
        return zip(self.rows, self.judged, strict=True)

    def compare_sides(self) -> FamilyComparison | None:
        """Return both sides of each row, where all runs have two (``--ab``); otherwise None."""
        rows = [
            (row.name, [run.sided for run in row.runs if run.sided is not None])
            for row in self.rows
            if row.runs
        ]
        has_sides = bool(rows) and all(runs for _, runs in rows)
        return compare_sided_rows(rows) if has_sides else None

    def compare_values(self) -> dict[str, FamilyComparison]:
        """Return what changes with ``between``, and from one store to the other where there are two."""
        stores = list_sides([row.words for row in self.rows], STORE_KEY)
        keys = dict.fromkeys([*([STORE_KEY] if len(stores) == 2 else []), *filter(None, [self.between])])
        found = {key: compare_suite_table(split_suite_rows(self.rows, key)) for key in keys}
        return {key: each for key, each in found.items() if each.rows}

    def list_store_rows(self) -> Iterator[tuple[str, tuple[str, str], list[tuple[str, FigureChange]]]]:
        """Yield the rows that two stores have: their names at both, and the changes of all figures."""
        compared = self.compare_values().get(STORE_KEY)
        if compared is None:
            return
        for each in compared.rows:
            one, two = (
                next(row.name for row in self.rows if (row.short_name, row.store) == (each.name, store))
                for store in (compared.before, compared.after)
            )
            yield each.name, (one, two), [*each.changes.items()]


# -- One row ---------------------------------------------------------------------------------------


class MeanFigure(msgspec.Struct, frozen=True):
    """A figure over the rounds: its mean, and the 95 % interval of that; null of a single round."""

    mean: float
    low: float | None = None
    high: float | None = None


def find_mean(figure: Figure, values: Sequence[float]) -> MeanFigure | None:
    """Return the mean of a figure over rounds, the geometric one but of shares; None without any."""
    if not values:
        return None
    scaled = [*values] if figure.is_share else [math.log(value) for value in values]
    middle = fmean(scaled)
    plain = (lambda value: value) if figure.is_share else math.exp
    if len(scaled) < 2:
        return MeanFigure(plain(middle))
    half = mean_half_width(scaled)
    low = plain(middle - half)
    return MeanFigure(plain(middle), max(0.0, low) if figure.is_share else low, plain(middle + half))


def find_row_means(row: SuiteRow) -> dict[str, MeanFigure]:
    """Return the figures of a row that all of its runs have."""
    found = {}
    for key, figure in list_row_figures().items():
        values = [run.figures.figures[key].value for run in row.runs if key in run.figures.figures]
        mean = find_mean(figure, values) if len(values) == len(row.runs) else None
        if mean is not None:
            found[key] = mean
    return found


class RowEvent(msgspec.Struct, frozen=True):
    """A command that was run in each round of a row, and what it did in each of these."""

    command: str
    at: Seconds  # when it was to begin
    exit_codes: tuple[int | None, ...]  # null: it was not started, or did not end before the run
    fell: tuple[bool | None, ...]  # whether the rate fell; null: too little time before to know
    #: Seconds until the rate was back; 0: it did not fall; null: not before the next command or the end.
    back_after: tuple[Seconds | None, ...]


def collect_row_events(row: SuiteRow) -> list[RowEvent]:
    """Return the commands of a row, each with its effects in all of the runs."""
    return [
        RowEvent(
            command=effects[0].facts.command,
            at=effects[0].facts.at,
            exit_codes=tuple(each.facts.exit_code for each in effects),
            fell=tuple(each.fell for each in effects),
            back_after=tuple(each.back_after for each in effects),
        )
        for effects in zip(*(run.events for run in row.runs), strict=False)
    ]


def judge_row(row: SuiteRow, rounds: int = 1) -> list[Judged]:
    """Judge each condition of a row over all of its rounds.

    Where fewer than ``rounds`` were run, only a condition that is good in each of them is good.
    """
    found = []
    for judgments in zip(*(run.conditions for run in row.runs), strict=False):
        condition = judgments[0].condition
        values = [each.value for each in judgments if each.value is not None]
        results = {each.result for each in judgments}
        came = condition.spell_measured(fmean(values)) if values else "not measured"
        result = results.pop() if len(results) == 1 else GateResult.UNDECIDED
        counts = [each.count or 0 for each in judgments]
        if (
            result is GateResult.UNDECIDED
            and condition.unit is Unit.SHARE
            and not any(values)
            and any(counts)
        ):
            # No round has enough operations to tell that so few fail; all of them together may have.
            high = wilson_interval(0.0, float(sum(counts)))[1]
            result = result if condition.holds(high) else GateResult.PASSED
        elif results and len(values) == len(judgments) > 1:
            # The rounds do not agree: their mean decides, where it is certain enough.
            half = mean_half_width(values)
            held = {condition.holds(fmean(values) + sign * half) for sign in (-1, 1)}
            if len(held) == 1:
                result = GateResult.FAILED if held.pop() else GateResult.PASSED
        needs = "more rounds, or longer runs" if result is GateResult.UNDECIDED else ""
        is_open = any(each.result is not GateResult.PASSED for each in judgments)
        if len(row.runs) < rounds and result is GateResult.PASSED and is_open:
            result, needs = GateResult.UNDECIDED, "the rounds that were not run"
        found.append(Judged(condition.text, came, result, needs))
    return found


def _judge_costs(row: SuiteRow, rows: Mapping[str, SuiteRow]) -> Iterator[Judged]:
    """Judge what groups of users cost the others: a row against those without the groups."""
    for each in row.costs:
        without = rows[each.name_row_without(row.name)]
        if not (row.runs and without.runs):
            yield Judged(each.text, "not measured", GateResult.UNDECIDED, "runs with the group and without")
            continue
        compared = compare_runs([run.run for run in without.runs], [run.run for run in row.runs])
        found = replace(judge_change_condition(compared, each.condition), condition=each.text)
        if found.undecided and min(len(row.runs), len(without.runs)) < MIN_RUNS_FOR_WORD:
            found = replace(found, needs=f"{MIN_RUNS_FOR_WORD} rounds or more")
        yield found


# -- The whole suite -------------------------------------------------------------------------------


def judge_suite(found: SuiteFindings) -> TableVerdict:
    """Judge all rows by their conditions, and by how their runs ended."""
    conditions = [(row.name, each) for row, judged in found.judged_rows() for each in judged]
    codes = [run.code for row in found.rows for run in row.runs]
    gates = choose_exit_code([each.result for _, each in conditions], found.undecided)
    code = choose_worst_code([found.code, *codes, gates])
    bad = [row.name for row, judged in found.judged_rows() if _has_failed(row, judged)]
    skipped = [row for row in found.rows if row.skipped]
    missing = [row.name for row in found.rows if len(row.runs) < found.rounds and not row.skipped]
    unclear = [each for _, each in conditions if each.undecided]
    made = sum(len(row.runs) for row in found.rows)
    counted = f"{format_plural(len(found.rows), 'row')}, {format_plural(made, 'run')}"
    outcome = _describe_outcome(found, bad, missing, [each for _, each in conditions])
    left = f"; {format_plural(len(skipped), 'row')} skipped" if skipped else ""
    headline = f"{counted}: {outcome}{left}"
    word, rated = Word.PASSED, Outcome.WARNED if _count_warned(found) else Outcome.GOOD
    if bad:
        word, rated = Word.FAILED, Outcome.FAILED
    elif unclear or found.why or missing or skipped:
        word, rated = Word.UNDECIDED, Outcome.UNDECIDED
    open_rows: dict[str, list[str]] = {}  # alike of many rows where nothing failed, and runs are short
    for name, each in conditions:
        if each.result is not GateResult.PASSED:
            open_rows.setdefault(describe_condition(each), []).append(name)
    reasons = [f"{name_rows(rows)}: {text}" for text, rows in open_rows.items()]
    if found.why and bad:
        reasons.insert(0, f"The suite ended early: {found.why}.")
    if missing:
        reasons.append(f"Fewer than {format_plural(found.rounds, 'run')}: {', '.join(missing)}.")
    for why in dict.fromkeys(row.skipped for row in skipped):
        reasons.append(f"Skipped: {name_rows([row.name for row in skipped if row.skipped == why])}: {why}")
    for row in found.rows:
        reasons += [
            f"{row.name}: {why}" for why in dict.fromkeys(why for run in row.runs for why in run.reasons)
        ]
    return TableVerdict(word=word, outcome=rated, headline=headline, reasons=tuple(reasons), exit_code=code)


def _describe_outcome(
    found: SuiteFindings, bad: Sequence[str], missing: Sequence[str], conditions: Sequence[Judged]
) -> str:
    """Return what a headline says after the numbers of rows and runs."""
    if bad:
        return f"{len(bad)} failed ({', '.join(bad[:3])}{', ...' * (len(bad) > 3)})"
    if found.why:
        return f"ended early ({found.why})"
    warned = _count_warned(found)
    if unclear := sum(each.undecided for each in conditions):
        text = f"{format_plural(unclear, 'condition')} undecided"
    elif missing:
        text = f"{format_plural(len(missing), 'row')} with fewer than {format_plural(found.rounds, 'run')}"
    elif _has_open_runs(found.rows):
        text = "no condition holds, by all rounds together"
    elif warned:
        text = "no condition holds" if conditions else "nothing failed"
    else:
        text = "all as they should be"
    return text + warned


def _count_warned(found: SuiteFindings) -> str:
    """Return what a headline says of runs with warnings, nothing without any."""
    warned = sum(bool(run.warnings) for row in found.rows for run in row.runs)
    return f"; {format_plural(warned, 'run')} with warnings" if warned else ""


def _has_open_runs(rows: Iterable[SuiteRow]) -> bool:
    """Whether a condition holds or is undecided in some run by itself."""
    results = {each.result for row in rows for run in row.runs for each in run.conditions}
    return bool(results - {GateResult.PASSED})


def _has_failed(row: SuiteRow, judged: Iterable[Judged]) -> bool:
    conditions = combine_gate_results(each.result for each in judged)
    return conditions is GateResult.FAILED or any(run.code is not ExitCode.OK for run in row.runs)


# -- The report ------------------------------------------------------------------------------------


def make_suite_document(found: SuiteFindings, _view: View | None = None) -> Document:
    """Return the document: the verdict, and a row for each variant."""
    verdict = judge_suite(found)
    means = [find_row_means(row) for row in found.rows]
    figures = {
        key: figure
        for key, figure in list_row_figures().items()
        if any(key in own and (own[key].mean or not figure.is_share) for own in means)
    }
    judged = found.judged
    with_stores = any(row.store for row in found.rows)
    columns = [
        Column("row", is_number=False, is_whole=True),
        *([Column("store", is_number=False)] if with_stores else []),
        *(Column(figure.compared_head.replace("first byte", "first")) for figure in figures.values()),
        *([Column("gate", is_number=False)] if any(judged) else []),
    ]
    rows = [
        (
            Cell(row.short_name, page=row.page) if row.page else row.short_name,
            *([row.store or DASH] if with_stores else []),
            *(_make_cell(figure, own.get(key)) for key, figure in figures.items()),
            *([_SKIPPED_CELL if row.skipped else _make_gate_cell(conditions)] if any(judged) else []),
        )
        for row, own, conditions in zip(found.rows, means, judged, strict=True)
    ]
    # A table in blocks repeats its keys.
    elements: list[Element] = [Table(columns, rows, keys=2 if with_stores else 1)]
    counts = sorted(len(row.runs) for row in found.rows if len(row.runs) > 1)
    if counts:
        count = " to ".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
        elements.append(
            Note(f"+-: half the 95 % interval of the mean of {count} rounds, as a share of the mean")
        )
    if any(
        each.result is GateResult.PASSED and _has_open_runs([row])
        for row, conditions in zip(found.rows, judged, strict=True)
        for each in conditions
    ):
        elements.append(Note("gate: by all rounds of a row together where a run by itself is not ok"))
    if found.rounds > 1 and not found.in_turn and len(found.rows) > 1:
        elements.append(Note(_NEIGHBOURS_NOTE))
    elements += [
        Note(f"{row.name}: {describe_row_event(each)}")
        for row in found.rows
        for each in collect_row_events(row)
    ]
    if (sides := found.compare_sides()) is not None:
        elements += make_sided_elements(sides, "row")
    for key, values in found.compare_values().items():
        elements += make_value_elements("Stores" if key == STORE_KEY else key, values)
    elements += [Note(f"{name}, by the logs of both: {each.answer}") for name, each in found.by_part.items()]
    elements += _make_charts(found.rows, means)
    warnings = join_alike_warnings(
        (row.name, [f"{row.name}: {warning}" for warning in run.warnings])
        for row in found.rows
        for run in row.runs
    )
    if warnings:
        elements.append(Warnings(warnings))
    facts = [
        *([found.took] if found.took else []),
        *([f"scale {found.scale}: sizes of objects are multiplied by that"] if found.scale else []),
        *(
            [f"{format_plural(found.left_out, 'row')} of the suite left out (--rows)"]
            if found.left_out
            else []
        ),
        *_describe_stores(found.rows),
    ]
    return Document(f"{found.kind} {found.name}", elements, verdict.element, facts)


def _describe_stores(rows: Iterable[SuiteRow]) -> Iterator[str]:
    """Yield where the stores are that rows name."""
    urls: dict[str, dict[str, None]] = {}
    for row in rows:
        if row.store:
            urls.setdefault(row.store, {}).update((run.storage_url, None) for run in row.runs)
    for name, of_runs in urls.items():
        yield f"store {name}: {', '.join(filter(None, of_runs)) or 'not known'}"


#: Said of suites whose rounds do not go through all rows.
_NEIGHBOURS_NOTE = (
    "The rounds of a row followed each other (order: one after another): intervals exclude any drift from"
    " row to row, so rows may differ by more; rounds in turn include it"
)


def describe_row_event(event: RowEvent) -> str:
    """Return in words what a command did to the rate, in all rounds."""
    wrong = sum(code != 0 for code in event.exit_codes)
    name = f"{event.command} (at {event.at:g} s)"
    if wrong:
        name += f", which failed or did not end in {wrong} of {format_plural(len(event.exit_codes), 'run')}"
    known = [fell for fell in event.fell if fell is not None]
    if not known:
        return f"{name}: too few seconds before to tell whether the rate fell"
    fell = sum(known)
    text = f"{name}: the rate fell in {fell} of {format_plural(len(known), 'run')}"
    if not fell:
        return text
    back = sorted(each for each, was in zip(event.back_after, event.fell, strict=True) if was and each)
    if back:
        text += (
            f", and recovered after {' to '.join(dict.fromkeys(map(format_seconds, (back[0], back[-1]))))} s"
        )
    if late := fell - len(back):
        text += f", in {late} not before the next command or the end"
    return text


_SKIPPED_CELL = Cell("skipped", GATE_TONES[GateResult.UNDECIDED])


def _make_cell(figure: Figure, mean: MeanFigure | None) -> str:
    if mean is None:
        return DASH
    text = figure.compared_in.text(mean.mean)
    if mean.low is None or mean.high is None or not mean.mean:
        return text
    half = (mean.high - mean.low) / 2 if figure.is_share else math.sqrt(mean.high / mean.low) - 1
    if figure.is_share:
        return f"{text} +-{figure.compared_in.text(half)}"
    percent = 100 * half
    return f"{text} +-{f'{percent:.2g}' if percent < 100 else '100+'}%"


def _make_gate_cell(conditions: Sequence[Judged]) -> str | Cell:
    if not conditions:
        return ""
    result = combine_gate_results(each.result for each in conditions)
    return Cell(result.value, GATE_TONES[result], short="?" if result is GateResult.UNDECIDED else "")


def _make_charts(rows: Sequence[SuiteRow], means: Sequence[Mapping[str, MeanFigure]]) -> Iterator[Chart]:
    """Yield one chart of all rows, the rate against the median latency; points have the numbers of rows."""
    curves = []
    places: dict[str, int] = {}  # variants of a row have its colour
    for number, (row, own) in enumerate(zip(rows, means, strict=True), 1):
        place = places.setdefault(row.name.partition(" ")[0], len(places))
        if "p50" in own and "rate" in own:
            curves.append(
                Curve(
                    f"{number} {row.name}",
                    np.array([own["p50"].mean * _MILLISECONDS]),
                    np.array([own["rate"].mean]),
                    CURVE_COLOURS[place % len(CURVE_COLOURS)],
                    markers=True,
                    labels=(str(number),),
                )
            )
    if curves:
        yield Chart("Throughput against latency (p50)", "ops/s, by ms", curves, axis="ms", log=True)


def make_suite_csv(found: SuiteFindings, _view: View | None = None) -> str:
    """Return a line for each row: seconds, per second, shares, with the ends of intervals."""
    keys = list_row_figures()
    heads = [name for key in keys for name in (key, f"{key}_low", f"{key}_high")]
    with_stores = any(row.store for row in found.rows)
    lines: list[list[object]] = [["row", *["store"] * with_stores, "runs", *heads, "result"]]
    for row, judged in found.judged_rows():
        own = find_row_means(row)
        cells = [
            value
            for key in keys
            for value in ((own[key].mean, own[key].low, own[key].high) if key in own else (None,) * 3)
        ]
        result = (
            GateResult.FAILED
            if _has_failed(row, judged)
            else combine_gate_results(each.result for each in judged)
        )
        named = [escape_csv_cell(row.store)] * with_stores
        came = "skipped" if row.skipped else result.value
        lines.append([escape_csv_cell(row.name), *named, len(row.runs), *cells, came])
    return format_csv(lines)


def make_suite_junit(found: SuiteFindings, _view: View | None = None) -> str:
    """Return JUnit XML with a case for each row, and one for each of its conditions."""
    cases = []
    for row, judged in found.judged_rows():
        reasons = "; ".join(dict.fromkeys(reason for run in row.runs for reason in run.reasons))
        failed = ("failed", reasons) if reasons else None
        cases.append(JUnitCase(row.name, failed, reasons, row.skipped))
        cases += [make_condition_case(f"{row.name}: not {each.condition}", each) for each in judged]
    verdict = judge_suite(found)
    return make_junit_suite(found.name, cases, [verdict.headline, *verdict.reasons])


class SuiteRowRecord(record.JsonRecord, frozen=True, kw_only=True):
    """A row: its figures by their keys (seconds, per second, shares), its conditions, and its stat files."""

    name: str
    store: str | None  # the name of the store of its runs; null where the row names none
    storage_urls: tuple[str, ...]  # where they went
    figures: dict[str, MeanFigure]
    skipped: str | None  # why it was not run where the others were; null: it was to be run
    events: tuple[RowEvent, ...]  # commands that were run meanwhile
    conditions: tuple[Judged, ...]
    stat_files: tuple[str, ...]
    warnings: tuple[str, ...]


class SuiteVerdict(record.JsonRecord, frozen=True, kw_only=True):
    """``headline`` says how many rows are good; ``reasons`` are sentences."""

    result: GateResult
    headline: str
    reasons: tuple[str, ...]
    exit_code: ExitCode


_WORD_RESULTS = {Word.FAILED: GateResult.FAILED, Word.UNDECIDED: GateResult.UNDECIDED}


class SuiteReport(record.JsonHead, frozen=True, kw_only=True):
    """A suite: a row for each variant."""

    format: Literal["ssbench suite"] = "ssbench suite"
    version: Literal[1] = 1
    name: str
    rounds: int
    scale: str | None  # what sizes were multiplied by, such as 1/64; those in names result from it
    left_out: int  # rows of the suite that were not chosen
    verdict: SuiteVerdict
    rows: tuple[SuiteRowRecord, ...]
    sides: SidedRows | None = None  # those of ``--ab`` in each row
    stores: SidedRows | None = None  # two stores, by the rows that are run at both
    between: SidedRows | None = None  # the values of the key of ``--between``, by the rows that have it
    by_part: dict[str, ChangesByPart]  # where two stores differ, by rows, from the logs of two Swifts


def make_suite_json(found: SuiteFindings, *_: object) -> str:
    """Return a suite as one JSON document."""
    verdict, compared = judge_suite(found), found.compare_values()
    return record.format_json(
        SuiteReport(
            exit_code=verdict.exit_code,
            name=found.name,
            rounds=found.rounds,
            scale=found.scale or None,
            left_out=found.left_out,
            verdict=record.make_record_from(
                SuiteVerdict, verdict, result=_WORD_RESULTS.get(verdict.word, GateResult.PASSED)
            ),
            rows=tuple(
                SuiteRowRecord(
                    name=row.name,
                    store=row.store or None,
                    storage_urls=tuple(dict.fromkeys(run.storage_url for run in row.runs if run.storage_url)),
                    figures=find_row_means(row),
                    skipped=row.skipped or None,
                    events=tuple(collect_row_events(row)),
                    conditions=judged,
                    stat_files=tuple(run.file for run in row.runs),
                    warnings=tuple(dict.fromkeys(each for run in row.runs for each in run.warnings)),
                )
                for row, judged in found.judged_rows()
            ),
            sides=make_sided_record(found.compare_sides()),
            by_part=dict(found.by_part),
            stores=make_sided_record(compared.get(STORE_KEY)),
            between=make_sided_record(compared.get(found.between)),
        )
    )
