"""The summary: what a person reads first, some 25 lines of 80 columns at most.

It is the last thing that is printed, so that it is what remains on the screen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ssbench.document.columns import WIDTH, bars, clock, cut, paragraph, plural, width, wrap
from ssbench.figures import FIGURES
from ssbench.figures.units import milliseconds, rate
from ssbench.operations import OPERATIONS
from ssbench.printable import printable
from ssbench.reports import breakdown, by_group, load, steps
from ssbench.reports.figures import object_path, utc
from ssbench.reports.options import ReportOptions
from ssbench.reports.verdict import judged, title_parts
from ssbench.statistics import Cause, Line, RunStatistics, Section, Slowest
from ssbench.statistics.waits import sentence
from ssbench.verdict import Kind

#: More size classes, causes and warnings than these are counted.
_MOST_CLASSES = 6
_MOST_CAUSES = 5
_MOST_WARNINGS = 6

#: Columns of the picture of rates over time.
_LEAST_BARS, _MOST_BARS = 10, 60

#: Of more stalls than this the longest have their times.
_MOST_STALLS = 4

#: Scenario names are cut, so that there is room for how the run ended.
_MOST_NAME = 40


def report(statistics: RunStatistics, options: ReportOptions) -> str:
    """Return the summary."""
    return "".join(printable(line) + "\n" for line in section(statistics, options))


def section(statistics: RunStatistics, options: ReportOptions) -> Iterator[str]:
    """Yield its lines."""
    yield _title(statistics)
    yield from wrap(_facts(statistics))
    found = judged(statistics, options)
    yield from wrap(title_parts(found, statistics))
    for reason in found.reasons:
        if reason.kind in {Kind.DELIVERY, Kind.MIX}:
            yield from paragraph(f"! {reason.text}" if reason.warns else reason.text)
    yield from breakdown.table(
        ((_name(each), breakdown.of_section(each, statistics)) for each in _sections(statistics)),
    )
    yield from by_group.lines(statistics)
    yield from breakdown.not_known(each.lines[0].latency for each in _sections(statistics))
    if options.verbose:
        yield from breakdown.section(statistics)
    else:
        yield from _sizes(statistics)
    yield from load.brief(statistics)
    yield from _listings(statistics)
    yield from steps.lines(statistics)
    yield from _over_time(statistics, options.encoding)
    yield from _stalls(statistics)
    yield from _failures(statistics)
    yield from _slowest(statistics)
    for wait in statistics.waits:
        yield from paragraph(f"Wait: {sentence(wait)}")
    yield from _warnings(statistics)
    for judgment in found.judgments:
        yield from paragraph(f"fail-if {printable(judgment.text)}")


def _listings(statistics: RunStatistics) -> Iterator[str]:
    """What listings brought, where there were some."""
    figure = FIGURES["entries_per_s"]
    for section_ in statistics.sections[1:]:
        if section_.entries:
            each = section_.entries / section_.count
            words = f"{figure.text(section_, statistics)} {figure.title}, {each:,.1f} entries an operation"
            yield from paragraph(f"{_name(section_)}: {words}")


def _sections(statistics: RunStatistics) -> Sequence[Section]:
    return (*statistics.sections[1:], statistics.total)


def _name(section_: Section) -> str:
    return section_.operation.name.upper() if section_.operation else "ALL"


# -- the head -----------------------------------------------------------------------------------


def _title(statistics: RunStatistics) -> str:
    run = statistics.run
    left = cut(printable(run.scenario.name), _MOST_NAME) + _ending(statistics)
    right = f"ssbench {run.version}"
    room = WIDTH - width(left) - width(right)
    return f"{left}{' ' * room}{right}" if room > 1 else cut(left, WIDTH)


def _ending(statistics: RunStatistics) -> str:
    """How the run ended, where that was not as it should."""
    if statistics.interrupted:
        word = "INTERRUPTED"
    elif statistics.ended_early:
        word = "ENDED EARLY"
    elif not statistics.complete:
        word = "INCOMPLETE"
    else:
        return ""
    return f" - {word} after {_seconds(statistics)}{_of(statistics)}"


def _seconds(statistics: RunStatistics) -> str:
    """Return how long the run took; with tenths, so that the table's whole seconds, cut off, agree."""
    return f"{statistics.duration:,.1f}".removesuffix(".0") + " s"


def _of(statistics: RunStatistics) -> str:
    scenario = statistics.run.scenario
    if scenario.run_seconds is not None:
        return f" of {scenario.run_seconds:g} s"
    ended = statistics.total.count + statistics.total.failed
    return f", {ended:,} of {scenario.operation_count:,} operations" if scenario.operation_count else ""


def _facts(statistics: RunStatistics) -> Iterator[str]:
    """The facts about the run, each a word that is not broken."""
    run, scenario = statistics.run, statistics.run.scenario
    sides = run.sides_as_given
    if sides:
        yield from ("two sides,", *(f"{printable(each)} and" for each in sides[:-1]))
        yield f"{printable(sides[-1])}:"
        yield "figures are of both together;"
    if run.options.get("noop"):
        yield "no-op run: nothing was sent to Swift,"
    elif run.storage_urls and not any("://" in each for each in sides):
        more = len(run.storage_urls) - 1
        yield f"{printable(run.storage_urls[0])}{f' and {more} more' if more else ''},"
    if scenario.policy:
        yield f"policy {printable(scenario.policy)},"
    if statistics.current:
        yield f"{plural(scenario.containers, 'container')},"
    if run.seed is not None:
        yield f"seed {run.seed};"
    hosts = {worker.host for worker in statistics.fleet if worker.host}
    workers = plural(len(statistics.fleet) or statistics.worker_count, "worker")
    words = f"{load.words(scenario)},"
    yield from words.split() if scenario.groups else (words,)
    yield f"{workers} on {plural(len(hosts), 'host')};" if hosts else f"{workers};"
    yield f"{utc(statistics.start)}, {_seconds(statistics)}"


# -- size classes, time -------------------------------------------------------------------------


def _sizes(statistics: RunStatistics) -> Iterator[str]:
    """The most frequent operation of each size class, where there are several."""
    busiest: dict[str, tuple[Section, Line]] = {}
    for each in statistics.sections[1:]:
        for line in each.lines[1:]:
            name = line.size_class or ""
            if name not in busiest or line.count > busiest[name][1].count:
                busiest[name] = each, line
    if len(busiest) < 2:
        return
    texts = [
        f"{cut(printable(name), 20)} {_name(each)} {_percentiles(line)}{rate(line.requests_per_second, 9)}/s"
        for name, (each, line) in busiest.items()
    ]
    if len(texts) > _MOST_CLASSES:
        texts[_MOST_CLASSES:] = [f"{len(texts) - _MOST_CLASSES} more: -v"]
    texts[0] = f"by size: {texts[0]}"
    yield from wrap(texts, len("by size: "), " | ")


def _percentiles(line: Line) -> str:
    known = [
        f"p{rank} {milliseconds(seconds)} "
        for rank in (50, 99)
        if (seconds := line.last_byte.supported_percentile(rank)) is not None
    ]
    return f"{''.join(known)}ms, " if known else ""


def _over_time(statistics: RunStatistics, encoding: str) -> Iterator[str]:
    course = statistics.course
    rows = dict(statistics.requests_by_second)
    # Only whole seconds; of old files it is not known how much of the last one was run.
    whole = int(course.window.seconds) if course else max(rows, default=0) - 1
    if whole < 2:
        return
    if course and course.operations:
        each = course.operations
        behind = (
            f" (median second {each.median:,.0f}, slowest {each.slowest:,.0f} at {clock(each.slowest_at)})"
        )
    else:
        behind = ""
    title = "ops/s over time  "
    room = max(min(WIDTH - len(title) - len(behind), _MOST_BARS), _LEAST_BARS)
    yield f"{title}{bars(_buckets(rows, whole, min(room, whole)), encoding)}{behind}"


def _stalls(statistics: RunStatistics) -> Iterator[str]:
    stalls = statistics.course.stalls if statistics.course else ()
    if not stalls:
        return
    longest = sorted(
        sorted(stalls, key=lambda each: -each.seconds)[:_MOST_STALLS], key=lambda each: each.start
    )
    texts = [f"{each.seconds:.2f} s at {clock(each.start)}" for each in longest]
    if len(stalls) > _MOST_STALLS:
        texts.append(f"{len(stalls) - _MOST_STALLS} more: --report full")
    start = f"stalls: {len(stalls)}, {sum(each.seconds for each in stalls):.2f} s without a completion: "
    texts[0] = start + texts[0]
    yield from wrap(texts, len("stalls: "), ", ")


def _buckets(rows: Mapping[int, int], whole: int, buckets: int) -> list[float]:
    """Return the mean of this many parts of the seconds 1 to ``whole``; seconds not in ``rows`` have 0."""
    sums = np.zeros(buckets)
    for second, number in rows.items():
        if second <= whole:
            sums[(second - 1) * buckets // whole] += number
    edges = -(-np.arange(buckets + 1) * whole // buckets)
    means: list[float] = (sums / np.diff(edges)).tolist()
    return means


# -- what went wrong ----------------------------------------------------------------------------


def _failures(statistics: RunStatistics) -> Iterator[str]:
    indent = len("errors: ")
    causes = list(statistics.errors.items())
    for place, (name, cause) in enumerate(causes[:_MOST_CAUSES]):
        start = " " * indent if place else "errors: "
        yield from wrap(_cause(start, name, cause), indent + 2)
    if len(causes) > _MOST_CAUSES:
        rest = sum(cause.count for _, cause in causes[_MOST_CAUSES:])
        yield f"{' ' * indent}{rest:,} of {plural(len(causes) - _MOST_CAUSES, 'more cause')}: --report full"
    if statistics.retries:
        texts = [f"{times:,} x {printable(name)}" for name, times in statistics.retries.items()]
        yield from paragraph("retries: " + ", ".join(texts[:_MOST_CAUSES]), indent)
    if statistics.warmed_up:
        yield f"left out: {plural(statistics.warmed_up, 'result')} of the warm-up"


def _cause(start: str, name: str, cause: Cause) -> Iterator[str]:
    counts = sorted(cause.operations.items(), key=lambda item: -item[1])
    names = [operation.name.upper() for code, _ in counts if (operation := OPERATIONS.get(code))]
    several = len(names) > 1
    texts = [
        f"{text} {times:,}" if several else text for text, (_, times) in zip(names, counts, strict=False)
    ]
    yield f"{start}{cause.count:,} x {printable(name)}"
    yield ", ".join(texts) + ("," if cause.trans_id else "")
    if cause.trans_id:
        yield f"first {printable(cause.trans_id)}"


def _slowest(statistics: RunStatistics) -> Iterator[str]:
    slowest = statistics.total.lines[0].last_byte.slowest
    if slowest is None or not slowest.latency:
        return
    operation = OPERATIONS.get(slowest.operation)
    name = operation.name.upper() if operation else "operation"
    yield from wrap(_words(slowest, name, statistics), len("slowest "))


def _words(slowest: Slowest, name: str, statistics: RunStatistics) -> Iterator[str]:
    yield f"slowest {name} {milliseconds(slowest.latency)} ms:"
    if slowest.trans_id:
        yield f"{printable(slowest.trans_id)},"
    if statistics.start is not None:
        yield f"at {clock(slowest.completed - slowest.latency - statistics.start)},"
    if slowest.worker >= 0:  # below are those of old files whose ids are texts
        yield f"worker {slowest.worker},"
    yield printable(object_path(statistics.run, slowest))


def _warnings(statistics: RunStatistics) -> Iterator[str]:
    warnings = list(statistics.warnings)
    if statistics.start is None:
        warnings.append("there is no result in this stat file")
    if len(warnings) > _MOST_WARNINGS + 1:
        more = len(warnings) - _MOST_WARNINGS
        warnings[_MOST_WARNINGS:] = [f"{more} more warnings: --report full"]
    for warning in warnings:
        yield from paragraph(f"! {printable(warning)}")
