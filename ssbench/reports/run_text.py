"""The reports of a run as text: the table of ssbench 0.3.9, the sections after it, and the summary.

The table is that of ssbench 0.3.9 to the last space, because scripts read it. The sections are what the full
report has besides. The summary, some 25 lines where nothing went wrong, is what a person reads first; it
comes last, so that it is what remains on the screen.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest

import numpy as np

from ssbench.base.errors import ExitCode
from ssbench.base.printable import make_printable, make_printable_lines
from ssbench.document import units
from ssbench.document.columns import cut_text, format_clock, format_plural, keep_unbroken, measure_width
from ssbench.document.elements import Bars, Document, Element, Note, Section, Verdict, Warnings, make_section
from ssbench.document.figures import FIGURES, LINE_RANKS
from ssbench.document.renderers import text
from ssbench.document.units import (
    DASH,
    format_count,
    format_latency,
    format_number,
    format_run_length,
    format_seconds,
)
from ssbench.reports import key_figures, run_facts, run_tables
from ssbench.reports.cluster_parts import find_cluster_report
from ssbench.reports.key_figures import (
    format_bounded_percentile,
    format_object_path,
    format_rank,
    format_utc,
    section_name,
)
from ssbench.reports.run_verdict import judge_for_reports, make_verdict_title, tone_of_outcome
from ssbench.reports.writing import ReportOptions
from ssbench.scenario.key_rules import CRUD_OPERATIONS
from ssbench.scenario.model import Scenario, explain_replacement
from ssbench.scenario.operations import OPERATIONS
from ssbench.statistics import waits
from ssbench.statistics.collector import Cause
from ssbench.statistics.latencies import Latencies
from ssbench.statistics.run_statistics import FiguresSection, RunStatistics, SectionLine
from ssbench.statistics.run_verdict import Kind
from ssbench.statistics.waits import describe_wait

_SIZE_UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")


def make_old_table(statistics: RunStatistics, options: ReportOptions) -> str:
    """Return the table."""
    return "".join(make_printable(line) + "\n" for line in _table_parts(statistics, options))


def _table_parts(statistics: RunStatistics, options: ReportOptions) -> Iterator[str]:
    yield from _table_head(statistics)
    scenario = statistics.run.scenario
    for part, group in zip_longest(scenario.parts, scenario.groups):
        if group:  # which ssbench 0.x did not have: one has other operations than the next
            yield f"Group of users: {group.name}"
        yield from _scenario_lines(part)
    for section in statistics.sections:
        yield from _section_lines(section, options.percentile)
    spread = statistics.workers
    yield (
        f"Distribution of requests per worker-ID: {spread.minimum:6.3f} - {spread.maximum:7.3f} "
        f"(avg: {spread.mean:7.3f}; stddev: {spread.deviation:7.3f})"
    )


def _table_head(statistics: RunStatistics) -> Iterator[str]:
    run = statistics.run
    yield ""
    yield f"{run.scenario.name}  (generated with ssbench version {run.version})"
    yield (
        f"Worker count: {statistics.worker_count:3d}   Concurrency: {run.scenario.user_count:3d}  "
        f"Ran {format_utc(statistics.start)} to {format_utc(statistics.end)} ({int(statistics.duration)}s)"
    )
    if run.scenario.delete_after:
        yield f"Object expiration (X-Delete-After): {run.scenario.expiry} (sec)"
    yield ""


def _scenario_lines(scenario: Scenario) -> Iterator[str]:
    """What the scenario asks for, which is not what happened."""
    columns = {name: name[0].upper() for name in CRUD_OPERATIONS}
    for operation in OPERATIONS.drawn:  # those that only this scenario has get a column of their own
        if operation.name not in CRUD_OPERATIONS and any(
            each.weights.get(operation.name) for each in scenario.size_classes
        ):
            columns[operation.name] = operation.name.upper()
    widths = [max(2, len(title)) for title in columns.values()]
    titles = "  ".join(f"{title:>{width}}" for title, width in zip(columns.values(), widths, strict=True))
    yield f"% Ops   {titles}       Size Range       Size Name"
    whole = sum(size_class.share for size_class in scenario.size_classes)
    average = [0.0 for _ in columns]
    for size_class in scenario.size_classes:
        share = size_class.share / whole if whole else 0.0
        percents = _percents(size_class.weights, columns)
        average = [sum_ + share * percent for sum_, percent in zip(average, percents, strict=True)]
        sizes = _format_size(size_class.size_min)
        if size_class.size_max != size_class.size_min:
            sizes += f" - {_format_size(size_class.size_max)}"
        yield f"{100 * share:3.0f}%   % {_columns(percents, widths)}      {sizes:15s}  {size_class.title}"
    yield "-" * 69
    yield f"         {_columns(average, widths)}      CRUD weighted average"
    yield ""


def _percents(weights: Mapping[str, float], names: Iterable[str]) -> list[float]:
    """Return the percentage of each operation among all of them."""
    total = sum(weights.values())
    return [100 * weights.get(name, 0.0) / total if total else 0.0 for name in names]


def _columns(percents: list[float], widths: list[int]) -> str:
    return "  ".join(f"{percent:{width}.0f}" for percent, width in zip(percents, widths, strict=True))


def _format_size(size: int) -> str:
    """Return a number of bytes in the smallest decimal unit that takes three digits, halves rounded up."""
    rounded = [(2 * size + 1000**power) // (2 * 1000**power) for power in range(len(_SIZE_UNITS))]
    power = next((power for power, number in enumerate(rounded) if number < 1000), len(_SIZE_UNITS) - 1)
    return f"{rounded[power]:3d} {_SIZE_UNITS[power]:>2}"


def _section_lines(section: FiguresSection, percentile: float) -> Iterator[str]:
    yield section.operation.name.upper() if section.operation else "TOTAL"
    retries = section.counted["retries"]
    yield (
        f"       Count: {section.count:5d} ({section.failed:5d} error; {retries:5d} retries: "
        f"{section.retry_rate:5.2f}%)  Average requests per second: {section.requests_per_second:5.1f}"
    )
    label = f"{format_rank(percentile)}%-ile"
    yield f"{'':28}min       max      avg      std_dev  {label:<26}Worst latency TX ID"
    for line in section.lines:
        which = "all obj sizes" if line.size_class is None else f"{line.size_class:>8} objs"
        yield f"       First-byte latency: {_latency_line(line.first_byte, percentile, which)}"
        yield f"       Last-byte  latency: {_latency_line(line.last_byte, percentile, which)}"
    yield ""


def _latency_line(latencies: Latencies, percentile: float, which: str) -> str:
    slowest = latencies.slowest.trans_id if latencies.slowest else ""
    return (
        f"{_format_seconds(latencies.minimum, 6)} - {_format_seconds(latencies.maximum, 7)}  "
        f"{_format_seconds(latencies.mean, 7)}  ({_format_seconds(latencies.deviation, 7)})  "
        f"{_format_seconds(latencies.percentile(percentile), 7)}  ({which})  {slowest}"
    )


def _format_seconds(seconds: float, width: int) -> str:
    return f"{'N/A  ':>{width}}" if math.isnan(seconds) else f"{seconds:{width}.3f}"


# -- The summary -----------------------------------------------------------------------------------


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
    yield from run_tables.make_account_elements(statistics)
    yield from run_tables.make_address_elements(statistics)
    yield from run_tables.make_mark_notes(statistics)
    if options.verbose:
        yield run_tables.make_size_class_table(statistics)
        yield run_tables.make_last_attempt_table(statistics)
        yield from run_tables.make_site_tables(statistics)
        yield from run_tables.make_worker_tables(statistics)
        yield from run_tables.make_storage_url_tables(statistics)
    else:
        yield from _sizes(statistics)
    yield from run_facts.make_open_loop_notes(statistics)
    yield from _listings(statistics)
    yield from run_tables.make_step_notes(statistics)
    yield from _over_time(statistics, options.columns)
    yield from run_facts.make_event_elements(statistics)
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
            words = (
                f"{figure.text(section, statistics)} {figure.title}, {format_number(each)}"
                f" entries an operation"
            )
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
        f"{cut_text(name, 20)} {section_name(each)}"
        f" {_percentiles(line)}{format_number(line.requests_per_second)}/s"
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
        for rank in LINE_RANKS
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


# -- The sections ----------------------------------------------------------------------------------


#: Options of run-scenario that change what counts as a failure, and their defaults.
_REQUEST_DEFAULTS = {"request_timeout": None, "retries": 10, "retry_404": 0}

#: What is said of counters that are not 0.
_COUNTER_WARNINGS = {
    "waited": "small population: {} operations waited for a free object",
    "reused": "{} reads were for what had been read before, as the scenario asks",
    "redrawn": "{} operations took another object: the one drawn was in use",
    "not_begun": "{} operations still waited for a free object at the end; not sent",
    "passed_on": "{} operations of lost workers had not begun, as far as is known; others did them",
    "in_doubt": "{} operations may have been carried out or not: their workers no longer answered at the end",
    "expired": "{} objects were no longer used: their delete_after had passed",
}

#: Causes of failures that are named for a part.
_MAX_PART_CAUSES = 3


def make_sections_document(statistics: RunStatistics, options: ReportOptions) -> Document:
    """Return the document; of files of ssbench 0.x, which say less, it has only warnings."""
    elements: list[Element] = []
    if statistics.current:
        elements += [
            *make_section("Run", run_facts.make_load_notes(statistics)),
            *make_section("Figures", key_figures.make_figure_elements(statistics)),
            *make_section("Load", run_facts.make_load_elements(statistics)),
            *(
                each
                for kind in run_tables.BREAKDOWN_KINDS
                for each in _breakdown_sections(kind, kind.title, statistics)
            ),
            *make_section("Confidence (95 % intervals)", key_figures.make_confidence_elements(statistics)),
            *make_section("Errors", run_facts.make_error_elements(statistics)),
            *make_section(waits.WAITS_TITLE, run_facts.make_wait_items(statistics)),
            *make_section("Request options", map(Note, _request_options(statistics.run.options))),
            *make_section("Notes", map(Note, _section_notes(statistics))),
        ]
        if statistics.cluster is not None and (found := find_cluster_report().section(statistics.cluster)):
            elements.append(found)
    elements += make_percentiles_document(statistics, options).elements
    elements += make_section("Warnings", map(Note, run_facts.find_run_warnings(statistics)))
    return Document("", elements, untitled=True)


def make_percentiles_document(statistics: RunStatistics, options: ReportOptions) -> Document:
    """Return further percentiles; an empty document where none are asked for."""
    if not options.more:
        return Document("", (), untitled=True)
    table = key_figures.make_latency_table(statistics, options.more)
    found = table if table.rows else Note("nothing was measured")
    return Document("", [Section("Further percentiles", [found])], untitled=True)


def _breakdown_sections(
    kind: run_tables.BreakdownKind, title: str, statistics: RunStatistics
) -> Iterator[Section]:
    """Yield the section of the parts of a kind, with each by itself; nothing of a run without such parts."""
    parts = kind.parts(statistics)
    if parts:
        elements = [*kind.elements(statistics)]
        for part in parts:
            name = f"{kind.one} {part.name}"
            elements += make_section(name, _breakdown_elements(part.numbers))
            elements += _breakdown_sections(
                run_tables.BY_STAGE, f"Stages of {name[:1].lower()}{name[1:]}", part.numbers
            )
        yield Section(title, elements)


def _breakdown_elements(numbers: RunStatistics) -> Iterator[Element]:
    """Yield latencies of each operation of a part, and why some failed."""
    yield key_figures.make_latency_table(numbers)
    if numbers.errors:
        named = [f"{units.format_count(cause.count)} x {name}" for name, cause in numbers.errors.items()]
        if len(named) > _MAX_PART_CAUSES:
            named[_MAX_PART_CAUSES:] = [format_plural(len(named) - _MAX_PART_CAUSES, "more cause")]
        yield Note(f"Failures: {', '.join(named)}")


def _request_options(options: Mapping[str, object]) -> Iterator[str]:
    """Yield what a request was allowed, where that was not the default."""
    for name, default in _REQUEST_DEFAULTS.items():
        if options.get(name, default) != default:
            yield f"--{name.replace('_', '-')} {options[name]}"


def _section_notes(statistics: RunStatistics) -> Iterator[str]:
    count = Counter({name: int(number) for name, number in statistics.counters.items()})
    uploaded, replaced, reused = (count[f"initial_{what}"] for what in ("uploaded", "replaced", "reused"))
    if statistics.run.options.get("noop"):
        yield "no-op run: nothing was sent to Swift; bytes are those that would have been moved"
    if uploaded or replaced or reused:
        verified = bool(statistics.run.options.get("verify"))
        why = explain_replacement(replaced, count["initial_of_others"], verified=verified)
        why = f" ({why})" if why else ""
        yield f"initial objects: {uploaded} uploaded, {replaced} replaced{why}, {reused} reused"
    if count["initial_sampled"]:
        yield f"initial objects: as prepared; {count['initial_sampled']} of them, drawn at random, looked at"
    if count["existing"]:
        yield (
            f"{count['existing']} objects that were there already were only read: nothing was prepared or"
            f" written; {count['existing_skipped']} others skipped: their sizes do not fit"
        )
    for name, what in _COUNTER_WARNINGS.items():
        if count[name]:
            yield what.format(count[name])


# -- Reports ---------------------------------------------------------------------------------------


def make_table_report(statistics: RunStatistics, options: ReportOptions) -> str:
    """Return the table of ssbench 0.3.9, and further percentiles after it."""
    return _join_texts(
        make_printable_lines(make_old_table(statistics, options)),
        text.render(make_percentiles_document(statistics, options), options),
    )


def make_sections_report(statistics: RunStatistics, options: ReportOptions) -> str:
    """Return the table and all sections after it."""
    return _join_texts(
        make_printable_lines(make_old_table(statistics, options)),
        text.render(make_sections_document(statistics, options), options),
    )


def make_summary_report(statistics: RunStatistics, options: ReportOptions) -> str:
    """Return the summary."""
    return text.render(make_summary_document(statistics, options), options)


def make_table_and_summary(statistics: RunStatistics, options: ReportOptions) -> str:
    """Return the table and the summary."""
    return _join_texts(make_table_report(statistics, options), make_summary_report(statistics, options))


def make_full_report(statistics: RunStatistics, options: ReportOptions) -> str:
    """Return the table with all sections, and the summary."""
    return _join_texts(make_sections_report(statistics, options), make_summary_report(statistics, options))


def _join_texts(above: str, below: str) -> str:
    return f"{above}\n{below}" if below else above
