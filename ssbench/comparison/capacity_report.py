"""What a sweep or a search for the highest load has found, and the report of it in several formats.

A :class:`Capacity` has a row for each step, and the result of all steps: in words, and as one of the three of
a gate.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as replace_field
from itertools import repeat
from typing import Literal

import numpy as np
from msgspec.structs import replace

from ssbench.base import record
from ssbench.base.errors import ExitCode, GateResult, combine_gate_results
from ssbench.base.printable import escape_csv_cell
from ssbench.comparison.family import (
    FamilyComparison,
    FamilyRow,
    RowRun,
    SidedRows,
    compare_table,
    describe_sides,
    make_sided_csv_cells,
    make_sided_elements,
    make_sided_record,
)
from ssbench.comparison.object_trend import (
    MIN_TREND_STEPS,
    ObjectTrend,
    describe_object_trend,
    describe_trend_briefly,
    find_object_trend,
)
from ssbench.comparison.paired_sides import SidedRun, compare_sided_rows
from ssbench.comparison.run_table import RunTable
from ssbench.comparison.search import ObjectiveFinding, SearchAnswer
from ssbench.comparison.sweep import (
    MIN_GAIN,
    GroupStep,
    Knee,
    SweepStep,
    describe_knee,
    describe_limits,
    describe_lost,
    describe_short_steps,
    find_first_best,
    find_knee,
    format_knee_load,
    list_rates,
)
from ssbench.comparison.sweep_variables import GroupVariable, Variable, Varied, format_exact
from ssbench.document.columns import format_plural
from ssbench.document.elements import (
    GATE_TONES,
    GREY,
    INK,
    SLATE,
    Bars,
    Chart,
    Column,
    Curve,
    Detail,
    Document,
    Element,
    Note,
    Section,
    Table,
    Verdict,
    View,
)
from ssbench.document.figures import LINE_RANKS, MIN_RESULTS_BEYOND
from ssbench.document.units import (
    AT_LEAST,
    format_change,
    format_count,
    format_given_number,
    format_latency,
    format_megabytes,
    format_milliseconds,
    format_number,
    format_percent,
    format_run_length,
)
from ssbench.reports.csv import format_csv


@dataclass(frozen=True, slots=True)
class Capacity:
    """What was found."""

    title: str
    variable: Varied
    steps: tuple[SweepStep, ...]
    words: tuple[str, ...]  # What each step was judged by; empty in a sweep
    headline: str  # the result of all steps, one clause without a full stop
    result: GateResult  # undecided where the headline is to be doubted
    notes: tuple[str, ...] = ()  # further remarks
    #: For each step the judgment of each condition, none where the step was not judged; empty in a sweep.
    findings: tuple[tuple[ObjectiveFinding, ...], ...] = ()
    knee: Knee | None = None  # that of a sweep, where there were enough steps
    trend: ObjectTrend | None = None  # that of a sweep over objects, where there were enough steps
    latency_trends: Mapping[str, ObjectTrend] = field(default_factory=dict)  # the same of p50 and p99
    answer: SearchAnswer | None = None  # that of a search
    exit_code: ExitCode = ExitCode.OK  # that of the command
    took: str = ""  # how long all took, beside the forecast; empty: not known
    sides: FamilyComparison | None = None  # both sides of each value, of runs that have two
    remarks: tuple[str, ...] = ()  # sentences that say more of the result

    @property
    def conclusion(self) -> str:
        """Return the result of all steps in sentences."""
        return " ".join((f"{self.headline}.", *self.remarks))


def conclude_sweep(
    name: str,
    variable: Varied,
    steps: Sequence[SweepStep],
    ended: str | None,
    why: str,
    sided: Sequence[tuple[float, SidedRun]] = (),
    *,
    is_fill: bool = False,
) -> Capacity:
    """Return what a sweep of the scenario ``name`` has found.

    ``ended`` says why it needed no more steps, ``why`` why it ended early; None and empty where it did not.
    ``sided`` are the runs of each value where they have two sides. ``is_fill``: steps are how objects were
    uploaded. Their rates have no intervals, because all uploads count.
    """
    remarks = []
    if why:
        remarks.append(f"The sweep ended early: {why}.")
    elif ended is not None:
        remarks.append(f"The sweep ended: {ended}.")
    knee = find_knee(variable, steps)
    if knee:
        remarks.append(describe_knee(variable, knee, min(step.value for step in steps)))
    values, rates, errors = list_rates(steps)
    errors = [0.0] * len(steps) if is_fill else errors
    trend = find_object_trend(values, rates, errors) if variable is Variable.OBJECTS else None
    if trend:
        remarks.append(describe_object_trend(trend))
    latency_trends = {} if variable is not Variable.OBJECTS else _find_latency_trends(steps)
    for what, found in latency_trends.items():
        remarks.append(f"{describe_trend_briefly(found, what)}. {describe_object_trend(found, what)}")
    if isinstance(variable, GroupVariable):
        remarks += describe_other_groups(variable, steps)
    sides = None
    if sided:
        rows = [
            (variable.words(value), [run for at, run in sided if at == value])
            for value in sorted({value for value, _ in sided})
        ]
        sides = compare_sided_rows(rows)
        remarks.append(describe_sides(sides))
    notes = describe_lost(variable, steps) + describe_limits(variable, steps)
    notes += describe_short_steps(steps) if variable.is_load else []
    if variable is Variable.OBJECTS and trend is None:
        known = len({each.value for each in steps if each.interval})
        notes.append(
            f"Whether the rate changes is not known: that needs {MIN_TREND_STEPS} steps with an interval of"
            f" the rate, and {known} {'has' if known == 1 else 'have'} one. Give each a minute (-r 60)."
        )
    return Capacity(
        f"{name}: sweep over {variable.value}",
        variable,
        tuple(steps),
        tuple("; ".join(f"{group.name} {_words(group)}" for group in step.groups) for step in steps)
        if isinstance(variable, GroupVariable)
        else (),
        describe_trend_briefly(trend) if trend else _describe_sweep_briefly(variable, steps, knee),
        GateResult.UNDECIDED if why or notes else GateResult.PASSED,
        tuple(notes),
        remarks=tuple(remarks),
        knee=knee,
        sides=sides,
        trend=trend,
        latency_trends=latency_trends,
    )


#: By how much uploads may take longer than their rate asks for, as a share, and in seconds: the last ones
#: end after they were due. Of those that are to take less than some seconds this says nothing.
_LATE_SHARE, _LATE_SECONDS, _LEAST_FILL_SECONDS = 0.02, 1.0, 10.0


def conclude_fill(steps: Sequence[SweepStep], why: str, asked: float | None) -> Capacity:
    """Return how objects were uploaded, at a rate that was ``asked`` for, or as fast as the users could.

    A rate that was asked for says nothing of the store, unless it was not kept. Latencies of uploads are not
    known.
    """
    found = conclude_sweep("fill", Variable.OBJECTS, steps, None, why, is_fill=True)
    if asked is None:
        return found
    words = Variable.OBJECTS.words
    kept = f"the {format_given_number(asked)} a second that were asked for"
    due = [(step, step.count / asked) for step in steps if step.count / asked >= _LEAST_FILL_SECONDS]
    late = [step for step, seconds in due if step.seconds > (1 + _LATE_SHARE) * seconds + _LATE_SECONDS]
    remarks = [f"The sweep ended early: {why}."] if why else []
    if not due:
        headline = f"Whether the uploads kept {kept} is not known"
        remarks.append(f"No step had uploads for {_LEAST_FILL_SECONDS:g} s or more.")
    elif not late:
        headline = f"The uploads kept {kept}"
        remarks.append("How fast the store takes them, a fill without a rate of its own tells.")
    else:
        # A step has the uploads since the one before.
        ends = [0.0, *(step.value for step in steps)]
        spans = [(ends[steps.index(step)], step) for step in late]
        which = "The uploads"
        if late != [step for step, _ in due[-len(late) :]]:
            parts = [f"{format_given_number(begin)} to {words(step.value)}" for begin, step in spans]
            which = f"The uploads from {' and from '.join(parts)}"
        elif spans[0][0]:
            which = f"Beyond {words(spans[0][0])} the uploads"
        headline = f"{which} did not keep {kept}"
        rates = [f"{format_number(step.rate)} up to {words(step.value)}" for step in late]
        remarks.append(f"Uploads a second: {', '.join(rates)}.")
    result = GateResult.UNDECIDED if why or not due else GateResult.PASSED
    return replace_field(
        found, headline=headline, remarks=tuple(remarks), notes=(), result=result, trend=None
    )


def _find_latency_trends(steps: Sequence[SweepStep]) -> dict[str, ObjectTrend]:
    """Return how percentiles of the latency change with the number of objects, where there are enough steps.

    How exact they are shows only in how they scatter around the best shape.
    """
    found = {}
    for place, rank in enumerate(LINE_RANKS):
        values = [_percentiles(step)[place] for step in steps]
        errors = [None if math.isnan(each) else 0.0 for each in values]
        trend = find_object_trend([step.value for step in steps], values, errors, len(LINE_RANKS))
        if trend is not None:
            found[f"p{rank}"] = trend
    return found


def _describe_sweep_briefly(variable: Varied, steps: Sequence[SweepStep], knee: Knee | None) -> str:
    """Return the result of a sweep in one clause: of all users the highest rate, of one group the knee."""
    if not steps:
        return "No step was completed"
    words, last = variable.words, max(step.value for step in steps)
    if isinstance(variable, GroupVariable):
        if knee is None or not knee.reached:
            return f"No knee up to {words(last)}"
        return f"The knee is at {words(format_knee_load(knee.value))}"
    best, first = max(steps, key=lambda step: step.rate), find_first_best(steps)
    peak = f"Peak {format_number(best.rate)} ops/s at {words(best.value)}"
    if first is not best:
        return f"{peak}; {words(first.value)} already reach about the same"
    rises = knee is not None and not knee.reached and knee.rise >= MIN_GAIN and best.value == last
    return f"{peak}, and still rising" if rises else peak


def conclude_search(
    variable: Varied,
    wanted: str,
    answer: SearchAnswer,
    why: str,
    why_not_higher: str,
    tried: Sequence[tuple[float, GateResult]],
) -> tuple[str, list[str], GateResult]:
    """Return what a search for the highest value at which ``wanted`` holds has found, and as what it counts.

    The first is one clause, then come sentences. ``why`` says why it ended early, empty where it did not;
    ``why_not_higher`` why nothing higher was tried. ``tried`` has each value with its judgment.
    """
    words, highest = variable.words, max((value for value, _ in tried), default=0.0)
    between = f"95 % sure: {answer.low:,} to {words(answer.high)}"
    if why:
        known = [f"The limit seems to be at {words(answer.value)} ({between})."] if answer.value else []
        return f"{wanted}: the search ended early ({why})", known, GateResult.UNDECIDED
    if answer.at_least and answer.value is not None:
        why_not = why_not_higher or "the range ended"
        return (
            f"{wanted}: holds up to {words(answer.value)} at least",
            [f"Nothing higher was tried: {why_not}."],
            GateResult.UNDECIDED,
        )
    if not answer.narrow and answer.high > highest:
        # How far beyond the steps the limit may be is only what the search began with.
        return (
            f"{wanted}: undecided from {words(max(1, answer.low))} on",
            [f"{_explain_open_end(variable, tried)} Give the steps more time (-r)."],
            GateResult.UNDECIDED,
        )
    if not answer.narrow:
        return (
            f"{wanted}: undecided between {answer.low:,} and {words(answer.high)}",
            ["The limit is between these (95 % sure). Give the steps more time (-r)."],
            GateResult.UNDECIDED,
        )
    if answer.value is None:
        return f"{wanted}: fails even at {words(1)}", [], GateResult.FAILED
    return f"{wanted}: holds up to {words(answer.value)} ({between})", [], GateResult.PASSED


def _explain_open_end(variable: Varied, tried: Sequence[tuple[float, GateResult]]) -> str:
    """Say why the limit has no upper end; a step that missed it does not show one, as it may be disturbed."""
    words = variable.words
    missed = sorted({value for value, verdict in tried if verdict is GateResult.FAILED})
    if not missed:
        return f"No step, up to {words(max(value for value, _ in tried))}, was certainly too much (95 %)."
    return (
        f"It did not hold in steps at {', '.join(map(words, missed))}, but all steps together do not show"
        " (95 % sure) that the limit is lower."
    )


def describe_other_groups(varied: GroupVariable, steps: Sequence[SweepStep]) -> Iterator[str]:
    """Yield a sentence on each other group: what it did in the first step and in the last.

    Where the 95 % intervals of its rates meet, no difference is shown. Each step is one run.
    """
    if len(steps) < 2:
        return
    first, *_, last = sorted(steps, key=lambda step: step.value)
    after = {group.name: group for group in last.groups}
    for before in first.groups:
        if before.name != varied.group and before.name in after:
            now = after[before.name]
            yield (
                f"{before.name}: {_words(before)} beside {varied.words(first.value)}, {_words(now)} beside"
                f" {varied.words(last.value)} ({_difference(before, now)})."
            )


def _words(group: GroupStep) -> str:
    known = [
        f"p{rank} {AT_LEAST * (rank in group.at_least)}{format_latency(seconds)}"
        for rank, seconds in ((50, group.p50), (99, group.p99))
        if not math.isnan(seconds)
    ]
    return ", ".join([f"{format_number(group.rate)} ops/s", *known])


def _difference(before: GroupStep, now: GroupStep) -> str:
    if before.interval is None or now.interval is None:
        return "the steps were too short for an interval of the rate"
    if before.interval.low <= now.interval.high and now.interval.low <= before.interval.high:
        return "no difference of the rates is shown"
    return f"the rate changed by {format_change(now.rate / before.rate - 1)} %"


class CapacityReport(record.JsonHead, frozen=True, kw_only=True):
    """A sweep, or a search for the highest load: a run for each step.

    ``varied`` says what differs from step to step, of all users or of one ``group`` of them: ``value`` is
    that. ``headline`` is the result of all steps in one clause, ``conclusion`` in sentences, and ``notes``
    are further remarks. ``knee`` is that of a sweep over a load, ``trend`` of one over objects, with
    ``latency_trends`` by the names of percentiles, ``answer`` that of a search. ``judged_by`` says of each
    step what it was judged by; it is empty in a sweep. ``sides`` compares the two sides of ``--ab`` at each
    value.
    """

    format: Literal["ssbench capacity"] = "ssbench capacity"
    version: Literal[2] = 2
    title: str
    varied: Variable
    group: str | None
    headline: str
    conclusion: str
    notes: tuple[str, ...]
    knee: Knee | None
    trend: ObjectTrend | None
    latency_trends: dict[str, ObjectTrend]
    answer: SearchAnswer | None
    steps: tuple[SweepStep, ...]
    judged_by: tuple[str, ...]
    sides: SidedRows | None = None


def make_capacity_json(found: Capacity, *_: object) -> str:
    """Return what was found as one JSON document."""
    return record.format_json(_make_record(found))


def _make_record(found: Capacity) -> CapacityReport:
    varied = found.variable
    return record.make_record_from(
        CapacityReport,
        found,
        varied=varied.variable if isinstance(varied, GroupVariable) else varied,
        group=varied.group if isinstance(varied, GroupVariable) else None,
        judged_by=found.words,
        sides=make_sided_record(found.sides),
    )


# -- Phases ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PhaseCapacities:
    """A sweep or a search of each phase."""

    phases: tuple[tuple[str, Capacity], ...]  # with their names; of those that have begun
    why: str = ""  # why not all of them ended; empty where they did
    exit_code: ExitCode = ExitCode.OK
    took: str = ""  # how long all took, beside the forecast


class PhasesReport(record.JsonHead, frozen=True, kw_only=True):
    """A sweep or a search of each phase, by its name, each as ``ssbench capacity``."""

    format: Literal["ssbench phases"] = "ssbench phases"
    version: Literal[1] = 1
    ended_early: str | None  # why not all of them ended; null where they did
    phases: dict[str, CapacityReport]


def make_phases_document(found: PhaseCapacities, view: View | None = None) -> Document:
    """Return the document: a row for each phase, and a section with its steps."""
    columns = [Column("phase", is_number=False, is_whole=True), Column("result", is_number=False)]
    table = Table(columns, [(name, each.headline) for name, each in found.phases])
    sections = []
    for name, each in found.phases:
        made = make_capacity_document(each, view)
        said = [Note(text) for text in (*each.remarks, *each.notes)]
        sections.append(Section(name, [*said, *made.elements]))
    results = [each.result for _, each in found.phases]
    result = GateResult.UNDECIDED if found.why else combine_gate_results(results)
    count = format_plural(len(found.phases), "phase")
    headline = f"{count}: ended early ({found.why})" if found.why else f"{count}, each to its end"
    what = found.phases[0][1].title.rpartition(": ")[2]
    return Document(
        f"{', '.join(name for name, _ in found.phases)}: {what}",
        [table, *sections],
        Verdict(GATE_TONES[result], headline, ()),
        [found.took] if found.took else [],
    )


def make_phases_csv(found: PhaseCapacities, _view: View | None = None) -> str:
    """Return the steps of all phases as CSV."""
    return _write_csv(
        [
            {"phase": escape_csv_cell(name), **cells}
            for name, each in found.phases
            for cells in _csv_records(each)
        ]
    )


def make_phases_json(found: PhaseCapacities, *_: object) -> str:
    """Return what was found as one JSON document."""
    return record.format_json(
        PhasesReport(
            exit_code=found.exit_code,
            ended_early=found.why or None,
            phases={name: _make_record(each) for name, each in found.phases},
        )
    )


# -- Two sweeps ------------------------------------------------------------------------------------


def compare_sweeps(before: Capacity, after: Capacity, table: RunTable[RowRun]) -> FamilyComparison:
    """Compare two sweeps; the rows of ``table`` are the values of both."""
    found = compare_table(RunTable((f"{before.title} (a)", f"{after.title} (b)"), table.rows))
    sides = (("Before", before, "dashed"), ("After", after, "solid"))
    curves = [
        _draw(title.lower(), [(step.value, step.rate) for step in each.steps], dash=dash)
        for title, each, dash in sides
    ]
    unit = before.variable.unit
    return replace_field(
        found,
        remarks=tuple(f"{title}: {each.conclusion}" for title, each, _ in sides),
        details=(
            Chart("Rate", f"ops/s, by {unit}", curves, axis=unit, digits=1),
            *(Section(title, make_capacity_document(each).elements) for title, each, _ in sides),
        ),
    )


def _draw(
    name: str, points: Sequence[tuple[float, float]], colour: str = SLATE, dash: str = "solid"
) -> Curve:
    """Return a curve through some points."""
    x, y = np.array(points, np.float64).reshape(-1, 2).T
    return Curve(name, x, y, colour, width=2.0, dash=dash, pointed=True)


# -- The report ------------------------------------------------------------------------------------


_BYTES_PER_MEGABYTE = 1e6


STEP_HEADS = (
    "s",
    "ops/s",
    "95 %",
    "MB/s",
    *(f"p{rank} ms" for rank in LINE_RANKS),
    "failed",  # operations; the share of errors is a figure that may be judged
    "flight",
    "CPU %",
)


def format_step_cells(step: SweepStep) -> list[str]:
    """Return what a row says of a step, after its value; the order is that of :data:`STEP_HEADS`."""
    interval = step.interval
    return [
        format_run_length(step.seconds),
        format_number(step.rate),
        f"{format_number(max(0.0, interval.low))}-{format_number(interval.high)}" if interval else "-",
        format_megabytes(step.moved),
        *(
            AT_LEAST * (rank in step.at_least) + format_milliseconds(seconds)
            for rank, seconds in zip(LINE_RANKS, _percentiles(step), strict=True)
        ),
        format_count(step.failed),
        format_number(step.in_flight),
        format_percent(step.generator) + " !" * step.generator_limited,
    ]


def _percentiles(step: SweepStep) -> tuple[float, float]:
    """Return p50 and p99, NaN where too few operations support them."""
    known = step.supported or 0
    return (step.p50 if known >= 50 else math.nan, step.p99 if known >= 99 else math.nan)


#: How the judgment of a figure is marked beside it.
_RESULT_MARKS = {GateResult.PASSED: "ok", GateResult.FAILED: "no", GateResult.UNDECIDED: "?"}


def list_step_heads(found: Capacity) -> list[str]:
    """Return the heads of the columns: the figures that are judged come after the value."""
    judged = next(filter(None, found.findings), ())
    return [found.variable.head, *(each.condition.subject for each in judged), *STEP_HEADS]


def make_step_rows(found: Capacity) -> list[list[str]]:
    """Return the cells of each step, below :func:`list_step_heads`."""
    most = max(map(len, found.findings), default=0)
    findings = found.findings or ((),) * len(found.steps)
    return [
        [format_exact(step.value), *(map(_judged, each) if each else ["-"] * most), *format_step_cells(step)]
        for step, each in zip(found.steps, findings, strict=True)
    ]


def _judged(finding: ObjectiveFinding) -> str:
    if finding.value is None:
        return "-"
    value = AT_LEAST * finding.at_least + finding.condition.spell_measured(finding.value)
    return f"{value} {_RESULT_MARKS[finding.verdict]}"


_WORDS_COLUMN = Column("judged by", is_number=False, is_long=True)


def make_capacity_document(found: Capacity, _view: View | None = None) -> Document:
    """Return the document: the conclusion, and a row for each step."""
    # Of a search the marks beside the figures say it in short.
    marked = any(found.findings)
    judged = any(found.words) and not marked
    columns = [*map(Column, list_step_heads(found)), *([_WORDS_COLUMN] if judged else [])]
    lines = [
        (*row, *([words] if judged else []))
        for row, words in zip(make_step_rows(found), found.words or repeat(""), strict=False)
    ]
    elements: list[Element] = [Table(columns, lines) if lines else Note("No step was completed.")]
    if len(found.steps) > 1:
        values = sorted({step.value for step in found.steps})
        title = f"ops/s at {', '.join(map(format_exact, values))}"
        elements.append(Bars(title, [_mean_rate(found, value) for value in values]))
    elements += map(Note, _legend(found))
    if marked and any(found.words):
        rows = [
            (format_exact(step.value), words) for step, words in zip(found.steps, found.words, strict=True)
        ]
        words_table = Table([Column(found.variable.head), _WORDS_COLUMN], rows)
        elements.append(Section("How each step was judged", [words_table], Detail.VERBOSE, is_folded=True))
    if found.sides is not None:
        elements += make_sided_elements(found.sides, found.variable.head)
    if len(found.steps) > 1:
        elements += _charts(found)
    verdict = Verdict(GATE_TONES[found.result], found.headline, (*found.remarks, *found.notes))
    return Document(found.title, elements, verdict, [found.took] if found.took else [])


def _mean_rate(found: Capacity, value: float) -> float:
    """Return the mean rate of all steps with a value."""
    rates = [step.rate for step in found.steps if step.value == value and math.isfinite(step.rate)]
    return sum(rates) / len(rates) if rates else 0.0


def _legend(found: Capacity) -> Iterator[str]:
    since = ", from when they were due" if found.variable is Variable.RATE else ""
    few = f"- where fewer than {MIN_RESULTS_BEYOND} lie beyond"
    if any(found.findings):
        yield "ok: the condition holds; no: it does not; ?: undecided"
    yield "s: seconds of the step; 95 %: the interval of ops/s"
    yield f"p50, p99: of all operations{since}; {few}"
    if any(step.at_least for step in found.steps):
        yield f"{AT_LEAST}: at least; some operations that were due never began"
    if isinstance(found.variable, GroupVariable):
        yield "ops/s, MB/s, failed: of all groups together"
    users = "" if found.variable is Variable.RATE else ", to be compared with users"
    yield f"flight: operations in flight, ops/s x mean latency (Little's law){users}"
    yield "CPU: of its core, the busiest worker; ! where the generator was full, or late by much of a latency"


def _csv_records(found: Capacity) -> Iterator[dict[str, object]]:
    """Yield the cells of a step, with None for what is not known."""
    for step, words in zip(found.steps, found.words or ("",) * len(found.steps), strict=True):
        p50, p99 = _percentiles(step)
        low, high = (step.interval.low, step.interval.high) if step.interval else (None, None)
        yield {
            found.variable.value: step.value,
            "seconds": step.seconds,
            "users": step.users,
            "operations_per_second": step.rate,
            "operations_per_second_low": low,
            "operations_per_second_high": high,
            "bytes_per_second": step.moved,
            "mean_seconds": step.mean,
            "p50_seconds": p50,
            "p99_seconds": p99,
            "percentile_supported": step.supported,
            "percentiles_at_least": " ".join(map(str, step.at_least)) or None,
            "succeeded": step.count,
            "failed": step.failed,
            "in_flight": step.in_flight,
            "worker_cpu_share": step.generator,
            "generator_full": step.generator_full,
            "generator_limits": "; ".join(step.limits) or None,
            "ended_early": step.ended_early,
            "judged_by": words or None,
            "stat_file": step.file,
            **(make_sided_csv_cells(found.sides, _find_row(found, step)) if found.sides else {}),
        }


def _find_row(found: Capacity, step: SweepStep) -> FamilyRow | None:
    """Return both sides of all runs with the value of a step."""
    name = found.variable.words(step.value)
    return next((row for row in found.sides.rows if row.name == name), None) if found.sides else None


def make_capacity_csv(found: Capacity, _view: View | None = None) -> str:
    """Return the steps as CSV, a line each after the names of the columns; empty where nothing is known."""
    return _write_csv(list(_csv_records(found)))


def _write_csv(records: Sequence[Mapping[str, object]]) -> str:
    """Return records as CSV; the cell of a number that is not finite is empty."""
    lines = [
        [None if isinstance(value, float) and not math.isfinite(value) else value for value in each.values()]
        for each in records
    ]
    return format_csv([records[0] if records else (), *lines])


def _rate_by_latency(steps: Sequence[SweepStep], latencies: Sequence[Curve]) -> list[Curve]:
    """Return the rate over each percentile of latency, with the load at each point."""
    labels = tuple(format_exact(step.value) for step in steps)
    rates_ = np.array([step.rate for step in steps], np.float64)
    against = []
    for each in latencies:
        known = np.flatnonzero(each.y > 0)
        own = tuple(labels[place] for place in known.tolist())
        if len(known):
            against.append(replace(each, x=each.y[known], y=rates_[known], labels=own))
    return against


def _locate_knee(found: Capacity) -> str:
    """Return where the knee is, for beside a chart."""
    knee = found.knee
    if knee is None:
        return "Beyond the knee more load brings latency alone."
    if not knee.reached:
        return "It is not certain that the steps went beyond the knee."
    at = found.variable.words(format_knee_load(knee.value))
    return (
        f"The knee is at {at} (95 %: {format_exact(format_knee_load(knee.low))} to"
        f" {format_exact(format_knee_load(knee.high))})."
    )


def _charts(found: Capacity) -> list[Chart]:
    steps: Sequence[SweepStep] = sorted(found.steps, key=lambda step: step.value)

    def curve(name: str, values: list[float], colour: str = SLATE, dash: str = "solid") -> Curve:
        points = [(step.value, value) for step, value in zip(steps, values, strict=True)]
        return _draw(name, points, colour, dash)

    def chart(title: str, of: str, curves: Sequence[Curve], digits: int = 1) -> Chart:
        known = [each for each in curves if not np.isnan(each.y).all()]
        return Chart(
            title,
            f"{of}, by {unit}" if of else f"by {unit}",
            known,
            axis=unit,
            digits=digits,
            shaded=shaded,
            marks=marks,
            ticks=ticks,
        )

    unit, knee = found.variable.unit, found.knee
    certain = knee is not None and knee.reached
    shaded = [(knee.low, knee.high, GREY)] if knee and certain else []
    marks = [(knee.value, "knee")] if knee and certain else []
    if found.trend and found.trend.bend is not None:
        shaded = [(found.trend.bend_low, found.trend.bend_high, GREY)]
        marks = [(found.trend.bend, "bend")]
    if found.answer and found.answer.value:
        marks.append((found.answer.value, "limit"))
    ticks = sorted({step.value for step in steps})
    bounds = [step.interval for step in steps]
    rates = [
        curve("ops/s", [step.rate for step in steps]),
        curve("95 % from", [each.low if each else math.nan for each in bounds], GREY, "dotted"),
        curve("95 % to", [each.high if each else math.nan for each in bounds], GREY, "dotted"),
    ]
    rates[2:] = [replace(rates[2], down_to=1)]
    latencies = [
        curve("p50", [1000 * _percentiles(step)[0] for step in steps]),
        curve("p99", [1000 * _percentiles(step)[1] for step in steps], dash="dashed"),
    ]
    flight = [
        curve("ops/s x mean latency", [step.in_flight for step in steps]),
        curve("users", [float(step.users) for step in steps], GREY, "dotted"),
    ]
    charts = [
        Chart(
            "Throughput against latency",
            "ops/s, by ms",
            [*_rate_by_latency(steps, latencies), *_find_knee_points(found, steps, latencies[0])],
            axis="ms",
            note=f"At the points: {unit}. {_locate_knee(found)}",
        ),
        chart("Latency", "ms", latencies, 2),
        *_make_side_charts(found),
        chart("Rate", "ops/s", rates),
        chart("Throughput", "MB/s", [curve("MB/s", [s.moved / _BYTES_PER_MEGABYTE for s in steps])], 2),
    ]
    if not np.isnan(flight[0].y).all():
        charts.append(chart("Little's law: operations in flight", "", flight))
    # Of uploads before a step, only the rate is known.
    return [each for each in charts if each.curves]


def _make_side_charts(found: Capacity) -> Iterator[Chart]:
    """Yield the median latency of both sides, where the runs have two."""
    if found.sides is None:
        return
    pairs = [
        (value, change)
        for value in sorted({step.value for step in found.steps})
        for row in found.sides.rows
        if row.name == found.variable.words(value) and (change := row.changes.get("p50")) is not None
    ]
    curves = [
        _draw(
            name, [(value, 1000 * (getattr(change, side) or math.nan)) for value, change in pairs], dash=dash
        )
        for name, side, dash in (
            (found.sides.before, "before", "dashed"),
            (found.sides.after, "after", "solid"),
        )
    ]
    if pairs:
        unit = found.variable.unit
        yield Chart("Latency of both sides (p50)", f"ms, by {unit}", curves, axis=unit, digits=2)


def _find_knee_points(found: Capacity, steps: Sequence[SweepStep], median: Curve) -> Iterator[Curve]:
    """Yield the knee as a point, between the steps beside it; none where it is not certain."""
    knee = found.knee
    known = np.flatnonzero(median.y > 0)
    if knee is None or not knee.reached or len(known) < 2:
        return
    loads = np.log([steps[place].value for place in known.tolist()])
    at = math.log(knee.value)
    if not loads[0] <= at <= loads[-1]:
        return
    x = np.exp(np.interp(at, loads, np.log(median.y[known])))
    y = np.interp(at, loads, [steps[place].rate for place in known.tolist()])
    yield Curve(
        "knee",
        np.array([x]),
        np.array([y]),
        INK,
        markers=True,
        labels=(f"knee: {format_exact(format_knee_load(knee.value))}",),
    )
