"""The section "Confidence": how far rates and percentiles may be from the truth.

``doc/numbers.rst`` says how the intervals are made.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from ssbench.document.elements import Element, Note, Section, Table, make_columns
from ssbench.document.units import (
    format_change,
    format_change_size,
    format_megabytes,
    format_milliseconds,
    format_number,
    format_seconds,
)
from ssbench.reports.key_figures import latencies_of_line, lines_of_section, percentile_heads, section_name
from ssbench.statistics.confidence import MIN_SECONDS, Interval
from ssbench.statistics.due import CensoredLatencies
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.sections import SectionLine
from ssbench.statistics.steadiness import Course, Steadiness

_CONFIDENCE_RANKS = (50, 90, 95, 99, 99.9)
_NO_INTERVAL_NOTE = "-: it would reach down to 0, or too few latencies lie beyond; a longer run says more"
_OPEN_LOOP_NOTE = "first, last: since an operation was sent; resp: since it was due"
_NOT_BEGUN_NOTE = (
    ". Some operations never began: they are in resp alone, of which a percentile that is known as 'at least'"
    " has no interval"
)
_CONFIDENCE_TABLES = (
    make_columns("Rates", "ops/s", "from", "to", "+- %", "MB/s", "from", "to"),
    make_columns("Latency in ms", *percentile_heads(_CONFIDENCE_RANKS)),
)


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
            + ("" if found.steady or found.step else ": the run was not steady by its end")
        )
    if found.step:
        yield (
            f"Step of the rate: from {format_number(found.step.before)} to {format_number(found.step.after)} ops/s,"
            f" {format_seconds(found.step.at)} s after the start"
        )
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
                yield [f"{name} {which}", *(_range(latencies, rank) for rank in _CONFIDENCE_RANKS)]


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
