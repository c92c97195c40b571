"""The summary: what a person reads first, some 25 lines where nothing went wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ssbench.base.errors import ExitCode
from ssbench.document.columns import clock, cut, plural, unbroken, width
from ssbench.document.elements import Bars, Document, Element, Note, Verdict, Warnings
from ssbench.document.figures import FIGURES
from ssbench.document.units import DASH, count, duration, number, run_length, seconds
from ssbench.reports import load, members, run_facts, run_tables
from ssbench.reports.key_figures import bounded, name_of, object_path
from ssbench.reports.options import ReportOptions
from ssbench.reports.verdict import judged, title, tone_of
from ssbench.scenario.operation_table import OPERATIONS
from ssbench.statistics.causes import Cause
from ssbench.statistics.reasons import Kind
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.sections import Line, Section
from ssbench.statistics.waits import sentence

#: More size classes, causes and warnings than these are counted.
_MOST_CLASSES = 6
_MOST_CAUSES = 5
_MOST_WARNINGS = 6

#: Parts of a run in the picture of rates over time.
_LEAST_BARS, _MOST_BARS = 10, 60

#: Of more stalls than this the longest have their times.
_MOST_STALLS = 4

#: Scenario names are cut, so that there is room for how the run ended.
_MOST_NAME = 40


def document(statistics: RunStatistics, options: ReportOptions) -> Document:
    """Return the document."""
    found = judged(statistics, options)
    conclusion = Verdict(
        tone_of(found.outcome),
        "; ".join(map(unbroken, title(found, statistics).split("; "))),
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
    name = cut(statistics.run.scenario.name, _MOST_NAME) + _ending(statistics)
    return Document(name, elements, conclusion, run_facts.facts(statistics))


def _elements(statistics: RunStatistics, options: ReportOptions) -> Iterator[Element]:
    yield run_tables.operations(statistics)
    yield from run_tables.groups(statistics)
    yield from members.accounts(statistics)
    yield from members.addresses(statistics)
    yield from run_tables.marks(statistics)
    if options.verbose:
        yield run_tables.by_size(statistics)
        yield run_tables.last_attempts(statistics)
        yield from run_tables.sites(statistics)
        yield from run_tables.workers(statistics)
        yield from run_tables.storage_urls(statistics)
    else:
        yield from _sizes(statistics)
    yield from load.brief(statistics)
    yield from _listings(statistics)
    yield from members.steps_in_brief(statistics)
    yield from _over_time(statistics, options.columns)
    yield from _stalls(statistics)
    yield from _failures(statistics)
    yield from _slowest(statistics)
    for wait in statistics.waits:
        yield Note(f"Wait: {sentence(wait)}")
    warnings = run_facts.warnings_of(statistics)
    if len(warnings) > _MOST_WARNINGS + 1:
        warnings[_MOST_WARNINGS:] = [f"{len(warnings) - _MOST_WARNINGS} more warnings: --report full"]
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
        f", {count(ended)} of {count(scenario.operation_count)} operations"
        if scenario.operation_count
        else ""
    )
    whole = whole if scenario.run_seconds is None else f" of {scenario.run_seconds:g} s"
    return f" - {word} after {run_length(statistics.lasted)} s{whole}"


def _listings(statistics: RunStatistics) -> Iterator[Note]:
    """Yield what listings returned, where there were some."""
    figure = FIGURES["entries_per_s"]
    for section in statistics.sections[1:]:
        if entries := section.counted["entries"]:
            each = entries / section.count
            words = f"{figure.text(section, statistics)} {figure.title}, {number(each)} entries an operation"
            yield Note(f"{name_of(section)}: {words}")


def _sizes(statistics: RunStatistics) -> Iterator[Note]:
    """Yield the most frequent operation of each size class, where there are several."""
    busiest: dict[str, tuple[Section, Line]] = {}
    for each in statistics.sections[1:]:
        for line in each.lines[1:]:
            name = line.size_class or ""
            if name not in busiest or line.count > busiest[name][1].count:
                busiest[name] = each, line
    if len(busiest) < 2:
        return
    texts = [
        f"{cut(name, 20)} {name_of(each)} {_percentiles(line)}{number(line.requests_per_second)}/s"
        for name, (each, line) in busiest.items()
    ]
    if len(texts) > _MOST_CLASSES:
        texts[_MOST_CLASSES:] = [f"{len(texts) - _MOST_CLASSES} more: -v"]
    yield _listed("by size", texts, " | ")


def _listed(name: str, texts: Sequence[str], between: str = ", ") -> Note:
    """Return a line of texts, each of which is better not broken."""
    return Note(f"{name}: {between.join(map(unbroken, texts))}")


def _percentiles(line: Line) -> str:
    known = [f"p{rank} {found} " for rank in (50, 99) if (found := bounded(line.latency, rank)) != DASH]
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
        median, slowest = (count(round(ended)) for ended in (each.median, each.slowest))
        note = f"median second {median}, slowest {slowest} at {clock(each.slowest_at)}"
    room = max(min(columns - width(f"{heading}:  ({note})"), _MOST_BARS), _LEAST_BARS)
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
        longest = sorted(stalls, key=lambda each: -each.seconds)[:_MOST_STALLS]
        texts = [
            f"{seconds(each.seconds)} s at {clock(each.start)}"
            for each in sorted(longest, key=lambda each: each.start)
        ]
        if len(stalls) > _MOST_STALLS:
            texts.append(f"{len(stalls) - _MOST_STALLS} more: --report full")
        lasted = sum(each.seconds for each in stalls)
        yield _listed(f"stalls: {len(stalls)}, {seconds(lasted)} s without a completion", texts)


def _failures(statistics: RunStatistics) -> Iterator[Note]:
    causes = list(statistics.errors.items())
    for name, cause in causes[:_MOST_CAUSES]:
        yield Note(f"errors: {_cause(name, cause)}")
    if len(causes) > _MOST_CAUSES:
        rest = sum(cause.count for _, cause in causes[_MOST_CAUSES:])
        more = plural(len(causes) - _MOST_CAUSES, "more cause")
        yield Note(f"errors: {count(rest)} of {more}: --report full")
    if statistics.retries:
        texts = [f"{count(times)} x {name}" for name, times in statistics.retries.items()]
        yield _listed("retries", texts[:_MOST_CAUSES])
    if statistics.warmed_up:
        yield Note(f"left out: {plural(statistics.warmed_up, 'result')} of the warm-up")


def _cause(name: str, cause: Cause) -> str:
    counts = sorted(cause.operations.items(), key=lambda item: -item[1])
    names = {operation.name.upper(): times for code, times in counts if (operation := OPERATIONS.get(code))}
    texts = [f"{text} {count(times)}" if len(names) > 1 else text for text, times in names.items()]
    first = f", first {cause.trans_id}" if cause.trans_id else ""
    return f"{count(cause.count)} x {name} {', '.join(texts)}{first}"


def _slowest(statistics: RunStatistics) -> Iterator[Note]:
    slowest = statistics.total.lines[0].last_byte.slowest
    if slowest is None or not slowest.latency:
        return
    operation = OPERATIONS.get(slowest.operation)
    texts = [slowest.trans_id] if slowest.trans_id else []
    if statistics.start is not None:
        texts.append(f"at {clock(slowest.completed - slowest.latency - statistics.start)}")
    if slowest.worker >= 0:  # below are those of old files whose ids are texts
        texts.append(f"worker {slowest.worker}")
    texts.append(object_path(statistics.run, slowest))
    name = operation.name.upper() if operation else "operation"
    yield _listed(f"slowest {name} {duration(slowest.latency)}", texts)
