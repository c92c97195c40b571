"""The sections "Figures" and "Confidence" of reports, and how times and names look in all of them.

Confidence is how far rates and percentiles may be from the truth. ``doc/numbers.rst`` defines each figure,
and says how the intervals are made.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

import numpy as np
from msgspec.structs import replace

from ssbench.document.columns import format_clock, keep_unbroken, measure_width
from ssbench.document.elements import Bars, Element, Item, Items, Note, Section, Table, make_columns
from ssbench.document.figures import COUNTED_FIGURES, INTERVAL_RANKS, LATENCY_RANKS
from ssbench.document.units import (
    AT_LEAST,
    format_change,
    format_change_size,
    format_count,
    format_latency,
    format_megabytes,
    format_milliseconds,
    format_number,
    format_percent,
    format_seconds,
)
from ssbench.results.run_description import Gap, HostFacts, RunDescription
from ssbench.scenario.operations import RequestTarget
from ssbench.statistics.confidence import MIN_SECONDS, Interval
from ssbench.statistics.latencies import Latencies, SlowResult
from ssbench.statistics.latency_parts import CensoredLatencies, make_uncensored
from ssbench.statistics.load_generator import LoadGenerator
from ssbench.statistics.run_statistics import FiguresSection, RunStatistics, SectionLine
from ssbench.statistics.stalls import Stall
from ssbench.statistics.steadiness import Course, Steadiness
from ssbench.statistics.stopping_rule import describe_precision
from ssbench.statistics.timeline import EachSecond

#: Users that are busy for less than this share of the window wait for something other than the store.
_BUSY_SHARE = 0.95

#: More stalls than this are counted, and the longest are shown: in the full report, and in the summary.
_MAX_STALLS, _MAX_NOTED_STALLS = 5, 4

#: Parts of a run in the picture of rates over time.
_MIN_BARS, _MAX_BARS = 10, 60

#: An operation has a row for a part of its latencies that is at least this share of them.
_MIN_PART_SHARE = 0.01

#: Workers with a row of their own: those whose loops are latest.
_MAX_WORKER_ROWS = 8


def format_utc(seconds: float | None) -> str:
    """Return seconds since 1970 as ``2013-06-07 17:23:16 UTC``; N/A for None and for no date."""
    if seconds is None:
        return "N/A"
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return "N/A"


def section_name(section: FiguresSection) -> str:
    """Return what reports call the operation of a section, or all of them."""
    return section.operation.name.upper() if section.operation else "ALL"


def format_bounded_percentile(latencies: CensoredLatencies, rank: float) -> str:
    """Return a percentile in milliseconds, with ``>`` before a lower bound; a dash for none."""
    value = latencies.supported_percentile(rank)
    at_least = value is not None and latencies.most(rank) > value
    return (AT_LEAST if at_least else "") + format_milliseconds(value)


def format_object_path(run: RunDescription, slowest: SlowResult) -> str:
    """Return container and object of an operation, as in ``ssbench_000017/tiny_000112``.

    The account is before them where there are several.
    """
    if 0 <= slowest.account < len(run.accounts):
        own = replace(slowest, account=-1)
        return f"{run.accounts[slowest.account]}/{format_object_path(run, own)}"
    scenario, container, name = run.scenario, slowest.container, slowest.object
    operation = scenario.operation_table.get(slowest.operation)
    if operation is not None and not operation.has_object and isinstance(container, int):
        return (
            ""
            if operation.on is RequestTarget.ACCOUNT
            else run.container(container, slowest.group, slowest.master)
        )
    if isinstance(container, int):
        container = run.container(container, slowest.group, slowest.master)
    if isinstance(name, int):
        classes = scenario.size_classes
        known = slowest.size_class < len(classes)
        name = run.name_object(
            classes[slowest.size_class].name if known else "?", name, slowest.group, slowest.master
        )
    return f"{container or '?'}/{name or '?'}"


def format_rank(percentile: float) -> str:
    """Return the rank of a percentile as people write it: 95, 99.9."""
    return f"{percentile:.10g}"


def make_list_note(name: str, texts: Sequence[str], between: str = ", ") -> Note:
    """Return a line of texts, each of which is better not broken."""
    return Note(f"{name}: {between.join(map(keep_unbroken, texts))}")


def make_figure_elements(statistics: RunStatistics) -> Iterator[Element]:
    """Yield the elements; none where no operation is known to have been sent."""
    course = statistics.course
    if course is None:
        return
    total = statistics.total
    yield from map(Note, _window(statistics, course))
    yield _rate_table(statistics, course)
    yield from _second_tables(course)
    yield from _stall_elements(course, statistics.generator.gaps)
    if total.counted["resumed_connections"] or any(
        part.connections for part in statistics.run.scenario.parts
    ):
        yield Note(_connections(total.counted, total.count + total.failed))
    for key, figure in COUNTED_FIGURES.items():
        if figure.has_note and total.counted[key]:
            yield Note(f"{figure.meaning}: {figure.text(total.lines[0], statistics)}")
    yield make_latency_table(statistics)
    if total.delayed.count:
        median, most = (format_latency(total.delayed.supported_percentile(rank)) for rank in (50, 100))
        yield Note(
            f"Left out, because a worker stalled: {format_count(total.delayed.count)}"
            f" (median {median}, max {most})"
        )
    yield _latency_part_table(statistics)
    yield from make_generator_elements(statistics.generator)


def _connections(counted: Mapping[str, int], operations: int) -> str:
    made, resumed, new = (counted[key] for key in ("new_connections", "resumed_connections", "on_new"))
    of_which = f", of which {format_count(resumed)} resumed a TLS session" if resumed else ""
    return (
        f"New connections: {format_count(made)} for {format_count(new)} operations{of_which};"
        f" on kept ones: {format_count(operations - new)}"
    )


def _window(statistics: RunStatistics, course: Course) -> Iterator[str]:
    total, window = statistics.total, course.window
    if window.whole:
        yield (
            f"Window: {format_seconds(window.seconds)} s from the first send to the last completion:"
            " all was sent before anything ended"
        )
    else:
        done = total.count - total.window_totals.count
        failed = total.failed - total.window_totals.failed
        yield f"Window: {format_seconds(window.seconds)} s from the first send to the last moment of sending"
        yield (
            f"Drain: {format_seconds(course.drain)} s after it (succeeded:"
            f" {format_count(done)}, failed: {format_count(failed)})"
        )
    if statistics.warmed_up:
        yield f"Warm-up: its results are left out ({format_count(statistics.warmed_up)})"
    if not course.busy > 0:  # a no-op run
        return
    scenario = statistics.run.scenario
    # In an open loop, and where users think, they are meant to be idle.
    expected = course.busy + course.pausing >= _BUSY_SHARE or scenario.is_open or scenario.thinks
    idle = "" if expected else f" (under {100 * _BUSY_SHARE:g} %: they were idle otherwise)"
    most = "at most " if scenario.is_staged else ""
    # Before further parts of objects their bodies are summed up, where requests say something of these.
    summing = any(part.s3_payload != "unsigned" and part.has_segments for part in scenario.parts)
    why = "between attempts and before parts" if summing else "between attempts"
    pauses = f", pausing {why} {format_percent(course.pausing)} %" if course.pausing > 0 else ""
    busy = f"busy {format_percent(course.busy)} % of the window"
    yield f"Users: {most}{format_count(scenario.user_count)}, {busy}{pauses}{idle}"


def _rate_table(statistics: RunStatistics, course: Course) -> Table:
    rows = []
    for each in (*statistics.sections[1:], statistics.total):
        within, per_second = each.window_totals, course.window.per_second
        ended = within.count + within.failed
        rows.append(
            [
                section_name(each),
                format_count(within.count),
                format_number(per_second(within.count)),
                format_megabytes(per_second(within.moved)),
                format_count(within.failed),
                format_percent(within.failed / ended if ended else 0.0),
                format_number(per_second(within.failed)),
            ]
        )
    heads = ("Within the window", "ops", "ops/s", "MB/s", "failed", "in %", "failed/s")
    return Table(make_columns(*heads), rows)


def _second_tables(course: Course) -> Iterator[Table]:
    if course.operations is None or course.moved is None:
        return
    heads = (f"Whole seconds: {int(course.window.seconds)}", "median", "slowest", "at s", "fastest", "at s")
    rows = [
        _each_second("ops", course.operations, format_number),
        _each_second("MB", course.moved, format_megabytes),
    ]
    yield Table(make_columns(*heads), rows)


def _each_second(name: str, each: EachSecond, text: Callable[[float], str]) -> list[str]:
    median, slowest, fastest = map(text, (each.median, each.slowest, each.fastest))
    return [name, median, slowest, str(each.slowest_at), fastest, str(each.fastest_at)]


def _stall_elements(course: Course, gaps: Sequence[Gap]) -> Iterator[Element]:
    stalls = course.stalls
    if not stalls:
        return
    longest = sorted(sorted(stalls, key=lambda stall: -stall.seconds)[:_MAX_STALLS], key=lambda s: s.start)
    lasted = format_seconds(sum(stall.seconds for stall in stalls))
    more = f"; the {_MAX_STALLS} longest:" if len(stalls) > _MAX_STALLS else ":"
    yield Note(f"Stalls: {len(stalls)}, {lasted} s without a completion{more}")
    texts = (
        f"{format_seconds(stall.seconds)} s from {format_seconds(stall.start)} s on"
        f"{_who_stalled(stall, course.window.start, gaps)}"
        for stall in longest
    )
    yield Items([*map(Item, texts)])


def _who_stalled(stall: Stall, start: float, gaps: Sequence[Gap]) -> str:
    """Name the processes of the load generator that stalled during a stall; empty where none did."""
    begin, end = start + stall.start, start + stall.start + stall.seconds
    parts: dict[str, float] = {}
    for gap in gaps:
        shared = min(end, gap.start + gap.seconds) - max(begin, gap.start)
        if shared > 0:
            who = "the master" if gap.worker_id is None else f"worker {gap.worker_id}"
            parts[who] = parts.get(who, 0.0) + shared
    return "".join(f"; {who} stalled for {format_seconds(lasted)} s of it" for who, lasted in parts.items())


def make_course_elements(statistics: RunStatistics, columns: int) -> Iterator[Element]:
    """Yield how the rate went over time, in so many columns, and stalls: what the summary says of it."""
    yield from _rate_bars(statistics, columns)
    yield from _stall_notes(statistics)


def _rate_bars(statistics: RunStatistics, columns: int) -> Iterator[Bars]:
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


def _stall_notes(statistics: RunStatistics) -> Iterator[Note]:
    stalls = statistics.course.stalls if statistics.course else ()
    if stalls:
        longest = sorted(stalls, key=lambda each: -each.seconds)[:_MAX_NOTED_STALLS]
        texts = [
            f"{format_seconds(each.seconds)} s at {format_clock(each.start)}"
            for each in sorted(longest, key=lambda each: each.start)
        ]
        if len(stalls) > _MAX_NOTED_STALLS:
            texts.append(f"{len(stalls) - _MAX_NOTED_STALLS} more: --report full")
        lasted = sum(each.seconds for each in stalls)
        yield make_list_note(f"stalls: {len(stalls)}, {format_seconds(lasted)} s without a completion", texts)


def make_latency_table(statistics: RunStatistics, ranks: Sequence[float] = LATENCY_RANKS) -> Table:
    """Return a table of percentiles of each latency; without rows where nothing was measured.

    Response times are those of operations that never began too, as lower bounds.
    """
    total = statistics.total
    rows = []
    for each in (*statistics.sections[1:], total):
        for line in lines_of_section(each, total):
            for which, latencies in latencies_of_line(line).items():
                if latencies.count:
                    name = " ".join(filter(None, (section_name(each), which, line.size_class)))
                    cells = (format_bounded_percentile(latencies, rank) for rank in ranks)
                    rows.append([name, format_count(latencies.count), *cells])
    return Table(make_columns("Latency in ms", "n", *percentile_heads(ranks)), rows)


def latencies_of_line(line: SectionLine) -> dict[str, CensoredLatencies]:
    """Return the latencies of a line, by what tables call them; empty ones were not measured."""
    return {
        "first": make_uncensored(line.first_byte),
        "last": make_uncensored(line.last_byte),
        "resp": line.due.since_due,
    }


def lines_of_section(section: FiguresSection, total: FiguresSection) -> Sequence[SectionLine]:
    """Return the line of an operation and those of its size classes, where there are several.

    Operations together have no classes of interest.
    """
    return section.lines[:1] if len(section.lines) == 2 or section is total else section.lines


def percentile_heads(ranks: Sequence[float]) -> list[str]:
    """Return the heads of columns of percentiles."""
    return ["max" if rank == 100 else f"p{rank:g}" for rank in ranks]


def format_percentiles(latencies: Latencies, ranks: Sequence[float]) -> list[str]:
    """Return percentiles in milliseconds; - where too few latencies lie beyond."""
    return [format_milliseconds(latencies.supported_percentile(rank)) for rank in ranks]


def _latency_part_table(statistics: RunStatistics) -> Table:
    """Return what latencies contain besides the last attempt: of all, and of operations with much of it."""
    total = statistics.total
    rows = []
    for each in (*statistics.sections[1:], total):
        latencies = each.lines[0].last_byte
        whole = latencies.mean * latencies.count if latencies.count else math.inf
        for name, part in (("connecting", each.parts.connecting), ("pauses", each.parts.pausing)):
            if part.count and (each is total or part.seconds >= _MIN_PART_SHARE * whole):
                rows.append(
                    [
                        f"{section_name(each)} {name}",
                        format_count(part.count),
                        format_percent(part.count / max(1, latencies.count)),
                        format_percent(part.seconds / whole),
                        format_milliseconds(part.seconds / part.count),
                        format_milliseconds(part.longest),
                    ]
                )
    return Table(make_columns("Part of latencies", "n", "% of ops", "% of time", "mean ms", "max ms"), rows)


def make_generator_elements(own: LoadGenerator) -> Iterator[Element]:
    """Yield CPU and lag of the master and of the workers; nothing of runs in which they are not known."""
    workers = [worker for worker in own.workers if worker.cpu_share is not None or worker.lag_p99 is not None]
    rows = []
    if own.master is not None:
        rows.append(_process("master", own.master.cpu_share, None, None, own.master.lag_max))
    for worker in sorted(workers, key=lambda each: -(each.lag_p99 or 0.0)):
        name = f"worker {worker.worker_id}{f' on {worker.host}' if worker.host else ''}"
        rows.append(_process(name, worker.cpu_share, worker.lag_p50, worker.lag_p99, worker.lag_max))
    columns = make_columns("Load generator", "CPU %", "lag in ms: p50", "p99", "max")
    yield Table(columns, rows, most=_MAX_WORKER_ROWS + (own.master is not None))
    heads = ("cores", "load", "at end", "CPU %: run", "others", "stolen", "waits %: any", "run")
    yield Table(make_columns("Host", *heads), [_machine(each) for each in own.hosts], most=_MAX_WORKER_ROWS)
    for each in own.hosts:
        if each.swift_cpu is not None:
            whole, part = format_percent(each.own_cpu), format_percent(each.swift_cpu)
            yield Note(f"{each.host}: of the run's {whole} % the local Swift used {part} %")
    if own.master is not None and own.master.unread:
        yield Note(
            f"Standard error was not read for {format_seconds(own.master.unread)} s; nothing waited for it"
        )


def _machine(host: HostFacts) -> list[str]:
    loads = ("-" if load is None else f"{load:.1f}" for load in (host.load_begin, host.load_end))
    shares = (host.own_cpu, host.other_cpu, host.stolen, host.pressed, host.denied)
    return [host.host, format_count(host.cores), *loads, *map(format_percent, shares)]


def _process(
    name: str, cpu: float | None, p50: float | None, p99: float | None, longest: float | None
) -> list[str]:
    return [name, format_percent(cpu), *map(format_milliseconds, (p50, p99, longest))]


# -- The section "Confidence" ----------------------------------------------------------------------


_NO_INTERVAL_NOTE = "-: it would reach down to 0, or there are too few operations; a longer run says more"
_OPEN_LOOP_NOTE = "first, last: since an operation was sent; resp: since it was due"
_NOT_BEGUN_NOTE = (
    ". Some operations never began: they are in resp alone, of which a percentile that is known as 'at least'"
    " has no interval"
)
_CONFIDENCE_TABLES = (
    make_columns("Rates", "ops/s", "from", "to", "+- %", "MB/s", "from", "to"),
    make_columns("Latency in ms", *percentile_heads(INTERVAL_RANKS)),
)


def make_precision_notes(statistics: RunStatistics) -> Iterator[Note]:
    """Yield how ``--until`` ended the run; where it did not, a warning says so."""
    if statistics.until and statistics.until[0].reached:
        yield Note(describe_precision(statistics.until))


def make_confidence_elements(statistics: RunStatistics) -> Iterator[Element]:
    """Yield the elements, of a run with stages by stage; none where the run was too short."""
    parts = {f"Stage {stage.name}": stage.numbers for stage in statistics.stages} or {"": statistics}
    shown, dash, due = False, False, statistics.total.due.since_due
    for name, numbers in parts.items():
        course = numbers.course
        if course is not None and _is_long_enough(numbers, course):
            rows = [*_rate_rows(numbers)], [*_latency_rows(numbers)]
            tables = (Table(columns, found) for columns, found in zip(_CONFIDENCE_TABLES, rows, strict=True))
            yield Section(name, [*map(Note, _steadiness(course.steadiness)), *tables])
            dash |= any("-" in row for table in rows for row in table)
            shown = True
    if not shown:
        return
    if due.count:
        yield Note(_OPEN_LOOP_NOTE + _NOT_BEGUN_NOTE * bool(due.waited.count))
    if dash:
        yield Note(_NO_INTERVAL_NOTE)


def _is_long_enough(numbers: RunStatistics, course: Course) -> bool:
    window = course.window
    return len(numbers.total.by_second.series(window.start, window.end)[0]) >= MIN_SECONDS


def _steadiness(found: Steadiness) -> Iterator[str]:
    if found.drift is not None:
        middle = (found.drift.low + found.drift.high) / 2
        yield (
            f"Drift of the rate: {format_change(middle)} % a minute"
            f" ({format_change(found.drift.low)} to {format_change(found.drift.high)})"
            + (": the run was not steady by its end" if found.drifting and not found.step else "")
        )
    if found.step:
        yield (
            f"Step of the rate: from {format_number(found.step.before)} to {format_number(found.step.after)} "
            f"ops/s, {format_seconds(found.step.at)} s after the start"
        )
    for change in found.describe_changes():
        yield f"Change: {change}"
    if found.warm_up:
        yield f"Warm-up: MSER-5 would leave out the first {found.warm_up} s (--warmup)"


def _rate_rows(statistics: RunStatistics) -> Iterator[list[str]]:
    for name, line in _named_lines(statistics):
        rate, interval = line.requests_per_second, line.rate_interval
        part = format_change_size(interval.high / rate - 1) if interval and rate else "-"
        moved = format_megabytes(line.moved_per_second), *_bounds(line.moved_interval, format_megabytes)
        yield [name, format_number(rate), *_bounds(interval, format_number), part, *moved]


def _bounds(interval: Interval | None, text: Callable[[float | None], str]) -> list[str]:
    return [*map(text, (interval.low, interval.high) if interval else (None, None))]


def _latency_rows(statistics: RunStatistics) -> Iterator[list[str]]:
    for name, line in _named_lines(statistics):
        for which, latencies in latencies_of_line(line).items():
            if latencies.count:
                yield [f"{name} {which}", *(_range(latencies, rank) for rank in INTERVAL_RANKS)]


def _range(latencies: CensoredLatencies, rank: float) -> str:
    interval = latencies.interval(rank) if latencies.supports(rank) else None
    if interval is None:
        return "-"
    high = "?" if math.isinf(interval.high) else format_milliseconds(interval.high)
    return f"{format_milliseconds(interval.low)}-{high}"


def _named_lines(statistics: RunStatistics) -> Iterator[tuple[str, SectionLine]]:
    """Yield the lines of all operations, with their names; classes where there are several."""
    for each in (*statistics.sections[1:], statistics.total):
        for line in lines_of_section(each, statistics.total):
            yield " ".join(filter(None, (section_name(each), line.size_class))), line
