"""The summary: what a person reads first, some 25 lines where nothing went wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ssbench.base.errors import ExitCode
from ssbench.document.columns import cut_text, format_clock, format_plural, keep_unbroken, measure_width
from ssbench.document.elements import Bars, Document, Element, Note, Verdict, Warnings
from ssbench.document.figures import FIGURES
from ssbench.document.units import (
    DASH,
    format_count,
    format_latency,
    format_number,
    format_run_length,
    format_seconds,
)
from ssbench.reports import load, members, run_facts, run_tables
from ssbench.reports.key_figures import format_bounded_percentile, format_object_path, section_name
from ssbench.reports.options import ReportOptions
from ssbench.reports.verdict import judge_for_reports, make_verdict_title, tone_of_outcome
from ssbench.scenario.operation_table import OPERATIONS
from ssbench.statistics.causes import Cause
from ssbench.statistics.reasons import Kind
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.sections import FiguresSection, SectionLine
from ssbench.statistics.waits import describe_wait

#: More size classes, causes and warnings than these are counted.
_MAX_CLASSES = 6
_MAX_CAUSES = 5
_MAX_WARNINGS = 6

#: Parts of a run in the picture of rates over time.
_MIN_BARS, _MAX_BARS = 10, 60

#: Of more stalls than this the longest have their times.
_MAX_STALLS = 4

#: Scenario names are cut, so that there is room for how the run ended.
_MAX_NAME_CHARACTERS = 40


def make_summary_document(statistics: RunStatistics, options: ReportOptions) -> Document:
    """Return the document."""
    found = judge_for_reports(statistics, options)
    conclusion = Verdict(
        tone_of_outcome(found.outcome),
        "; ".join(map(keep_unbroken, make_verdict_title(found, statistics).split("; "))),
        [f"fail-if {judgment.text}" for judgment in found.judgments],
    )
    elements: list[Element] = [
        Warnings([reason.text]) if reason.warns else Note(reason.text)
        for reason in found.reasons
        if reason.group is not None
        or reason.kind in {Kind.DELIVERY, Kind.MIX, Kind.RETRIES}
        # Failures are in the first line, and have rows of their own; what answers lacked is nowhere else.
        or (reason.kind is Kind.OPERATIONS and reason.warns and reason.exit_code is ExitCode.OK)
    ]
    elements += _elements(statistics, options)
    name = cut_text(statistics.run.scenario.name, _MAX_NAME_CHARACTERS) + _ending(statistics)
    return Document(name, elements, conclusion, run_facts.make_run_facts(statistics))


def _elements(statistics: RunStatistics, options: ReportOptions) -> Iterator[Element]:
    yield run_tables.make_operation_table(statistics)
    yield from run_tables.make_group_elements(statistics)
    yield from members.make_account_elements(statistics)
    yield from members.make_address_elements(statistics)
    yield from run_tables.make_mark_notes(statistics)
    if options.verbose:
        yield run_tables.make_size_class_table(statistics)
        yield run_tables.make_last_attempt_table(statistics)
        yield from run_tables.make_site_tables(statistics)
        yield from run_tables.make_worker_tables(statistics)
        yield from run_tables.make_storage_url_tables(statistics)
    else:
        yield from _sizes(statistics)
    yield from load.make_open_loop_notes(statistics)
    yield from _listings(statistics)
    yield from members.make_step_notes(statistics)
    yield from _over_time(statistics, options.columns)
    yield from _stalls(statistics)
    yield from _failures(statistics)
    yield from _slowest(statistics)
    for wait in statistics.waits:
        yield Note(f"Wait: {describe_wait(wait)}")
    warnings = run_facts.find_run_warnings(statistics)
    if len(warnings) > _MAX_WARNINGS + 1:
        warnings[_MAX_WARNINGS:] = [f"{len(warnings) - _MAX_WARNINGS} more warnings: --report full"]
    yield Warnings(warnings)


def _ending(statistics: RunStatistics) -> str:
    """Return how the run ended, where that was not as it should."""
    if statistics.interrupted:
        word = "INTERRUPTED"
    elif statistics.ended_early:
        word = "ENDED EARLY"
    elif not statistics.complete:
        word = "INCOMPLETE"
    else:
        return ""
    scenario, ended = statistics.run.scenario, statistics.total.count + statistics.total.failed
    whole = (
        f", {format_count(ended)} of {format_count(scenario.operation_count)} operations"
        if scenario.operation_count
        else ""
    )
    whole = whole if scenario.run_seconds is None else f" of {scenario.run_seconds:g} s"
    return f" - {word} after {format_run_length(statistics.lasted)} s{whole}"


def _listings(statistics: RunStatistics) -> Iterator[Note]:
    """Yield what listings returned, where there were some."""
    figure = FIGURES["entries_per_s"]
    for section in statistics.sections[1:]:
        if entries := section.counted["entries"]:
            each = entries / section.count
            words = f"{figure.text(section, statistics)} {figure.title}, {format_number(each)} entries an operation"
            yield Note(f"{section_name(section)}: {words}")


def _sizes(statistics: RunStatistics) -> Iterator[Note]:
    """Yield the most frequent operation of each size class, where there are several."""
    busiest: dict[str, tuple[FiguresSection, SectionLine]] = {}
    for each in statistics.sections[1:]:
        for line in each.lines[1:]:
            name = line.size_class or ""
            if name not in busiest or line.count > busiest[name][1].count:
                busiest[name] = each, line
    if len(busiest) < 2:
        return
    texts = [
        f"{cut_text(name, 20)} {section_name(each)} {_percentiles(line)}{format_number(line.requests_per_second)}/s"
        for name, (each, line) in busiest.items()
    ]
    if len(texts) > _MAX_CLASSES:
        texts[_MAX_CLASSES:] = [f"{len(texts) - _MAX_CLASSES} more: -v"]
    yield _listed("by size", texts, " | ")


def _listed(name: str, texts: Sequence[str], between: str = ", ") -> Note:
    """Return a line of texts, each of which is better not broken."""
    return Note(f"{name}: {between.join(map(keep_unbroken, texts))}")


def _percentiles(line: SectionLine) -> str:
    known = [
        f"p{rank} {found} "
        for rank in (50, 99)
        if (found := format_bounded_percentile(line.latency, rank)) != DASH
    ]
    return f"{''.join(known)}ms, " if known else ""


def _over_time(statistics: RunStatistics, columns: int) -> Iterator[Bars]:
    course = statistics.course
    rows = dict(statistics.requests_by_second)
    # Only whole seconds; of old files it is not known how much of the last one was run.
    whole = int(course.window.seconds) if course else max(rows, default=0) - 1
    if whole < 2:
        return
    heading, note = "ops/s over time", ""
    if course and course.operations:
        each = course.operations
        median, slowest = (format_count(round(ended)) for ended in (each.median, each.slowest))
        note = f"median second {median}, slowest {slowest} at {format_clock(each.slowest_at)}"
    room = max(min(columns - measure_width(f"{heading}:  ({note})"), _MAX_BARS), _MIN_BARS)
    yield Bars(heading, _buckets(rows, whole, min(room, whole)), note)


def _buckets(rows: Mapping[int, int], whole: int, buckets: int) -> list[float]:
    """Return the mean of this many parts of the seconds 1 to ``whole``; seconds not in ``rows`` have 0."""
    sums = np.zeros(buckets)
    for second, ended in rows.items():
        if second <= whole:
            sums[(second - 1) * buckets // whole] += ended
    edges = -(-np.arange(buckets + 1) * whole // buckets)
    means: list[float] = (sums / np.diff(edges)).tolist()
    return means


def _stalls(statistics: RunStatistics) -> Iterator[Note]:
    stalls = statistics.course.stalls if statistics.course else ()
    if stalls:
        longest = sorted(stalls, key=lambda each: -each.seconds)[:_MAX_STALLS]
        texts = [
            f"{format_seconds(each.seconds)} s at {format_clock(each.start)}"
            for each in sorted(longest, key=lambda each: each.start)
        ]
        if len(stalls) > _MAX_STALLS:
            texts.append(f"{len(stalls) - _MAX_STALLS} more: --report full")
        lasted = sum(each.seconds for each in stalls)
        yield _listed(f"stalls: {len(stalls)}, {format_seconds(lasted)} s without a completion", texts)


def _failures(statistics: RunStatistics) -> Iterator[Note]:
    causes = list(statistics.errors.items())
    for name, cause in causes[:_MAX_CAUSES]:
        yield Note(f"errors: {_cause(name, cause)}")
    if len(causes) > _MAX_CAUSES:
        rest = sum(cause.count for _, cause in causes[_MAX_CAUSES:])
        more = format_plural(len(causes) - _MAX_CAUSES, "more cause")
        yield Note(f"errors: {format_count(rest)} of {more}: --report full")
    if statistics.retries:
        texts = [f"{format_count(times)} x {name}" for name, times in statistics.retries.items()]
        yield _listed("retries", texts[:_MAX_CAUSES])
    if statistics.warmed_up:
        yield Note(f"left out: {format_plural(statistics.warmed_up, 'result')} of the warm-up")


def _cause(name: str, cause: Cause) -> str:
    counts = sorted(cause.operations.items(), key=lambda item: -item[1])
    names = {operation.name.upper(): times for code, times in counts if (operation := OPERATIONS.get(code))}
    texts = [f"{text} {format_count(times)}" if len(names) > 1 else text for text, times in names.items()]
    first = f", first {cause.trans_id}" if cause.trans_id else ""
    return f"{format_count(cause.count)} x {name} {', '.join(texts)}{first}"


def _slowest(statistics: RunStatistics) -> Iterator[Note]:
    slowest = statistics.total.lines[0].last_byte.slowest
    if slowest is None or not slowest.latency:
        return
    operation = OPERATIONS.get(slowest.operation)
    texts = [slowest.trans_id] if slowest.trans_id else []
    if statistics.start is not None:
        texts.append(f"at {format_clock(slowest.completed - slowest.latency - statistics.start)}")
    if slowest.worker >= 0:  # below are those of old files whose ids are texts
        texts.append(f"worker {slowest.worker}")
    texts.append(format_object_path(statistics.run, slowest))
    name = operation.name.upper() if operation else "operation"
    yield _listed(f"slowest {name} {format_latency(slowest.latency)}", texts)
