"""The section "Confidence": how far rates and percentiles may be from the truth.

``doc/numbers.rst`` says how the intervals are made.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from ssbench.document.elements import Element, Note, Section, Table, columns_of
from ssbench.document.units import change, extent, megabytes, milliseconds, number, seconds
from ssbench.reports.key_figures import heads, lines_of, name_of, times_of
from ssbench.statistics.confidence import MIN_SECONDS, Interval
from ssbench.statistics.due import Censored
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.sections import Line
from ssbench.statistics.steadiness import Course, Steadiness

_RANKS = (50, 90, 95, 99, 99.9)
_NO_INTERVAL = "-: it would reach down to 0, or too few latencies lie beyond; a longer run says more"
_OPEN = "first, last: since an operation was sent; resp: since it was due"
_NOT_BEGUN = (
    ". Some operations never began: they are in resp alone, of which a percentile that is known as 'at least'"
    " has no interval"
)
_COLUMNS = (
    columns_of("Rates", "ops/s", "from", "to", "+- %", "MB/s", "from", "to"),
    columns_of("Latency in ms", *heads(_RANKS)),
)


def elements(statistics: RunStatistics) -> Iterator[Element]:
    """Yield the elements, of a run with stages by stage; none where the run was too short."""
    parts = {f"Stage {stage.name}": stage.numbers for stage in statistics.stages} or {"": statistics}
    shown, dash, due = False, False, statistics.total.due.since_due
    for name, numbers in parts.items():
        course = numbers.course
        if course is not None and _is_long_enough(numbers, course):
            rows = [*_rates(numbers)], [*_latencies(numbers)]
            tables = (Table(columns, found) for columns, found in zip(_COLUMNS, rows, strict=True))
            yield Section(name, [*map(Note, _steadiness(course.steadiness)), *tables])
            dash |= any("-" in row for table in rows for row in table)
            shown = True
    if not shown:
        return
    if due.count:
        yield Note(_OPEN + _NOT_BEGUN * bool(due.waited.count))
    if dash:
        yield Note(_NO_INTERVAL)


def _is_long_enough(numbers: RunStatistics, course: Course) -> bool:
    window = course.window
    return len(numbers.total.by_second.series(window.start, window.end)[0]) >= MIN_SECONDS


def _steadiness(found: Steadiness) -> Iterator[str]:
    if found.drift is not None:
        middle = (found.drift.low + found.drift.high) / 2
        yield (
            f"Drift of the rate: {change(middle)} % a minute"
            f" ({change(found.drift.low)} to {change(found.drift.high)})"
            + ("" if found.steady or found.step else ": the run was not steady by its end")
        )
    if found.step:
        yield (
            f"Step of the rate: from {number(found.step.before)} to {number(found.step.after)} ops/s,"
            f" {seconds(found.step.at)} s after the start"
        )
    if found.warm_up:
        yield f"Warm-up: MSER-5 would leave out the first {found.warm_up} s (--warmup)"


def _rates(statistics: RunStatistics) -> Iterator[list[str]]:
    for name, line in _lines(statistics):
        rate, interval = line.requests_per_second, line.rate_interval
        part = extent(interval.high / rate - 1) if interval and rate else "-"
        moved = megabytes(line.moved_per_second), *_bounds(line.moved_interval, megabytes)
        yield [name, number(rate), *_bounds(interval, number), part, *moved]


def _bounds(interval: Interval | None, text: Callable[[float | None], str]) -> list[str]:
    return [*map(text, (interval.low, interval.high) if interval else (None, None))]


def _latencies(statistics: RunStatistics) -> Iterator[list[str]]:
    for name, line in _lines(statistics):
        for which, latencies in times_of(line).items():
            if latencies.count:
                yield [f"{name} {which}", *(_range(latencies, rank) for rank in _RANKS)]


def _range(latencies: Censored, rank: float) -> str:
    interval = latencies.interval(rank) if latencies.supports(rank) else None
    if interval is None:
        return "-"
    high = "?" if math.isinf(interval.high) else milliseconds(interval.high)
    return f"{milliseconds(interval.low)}-{high}"


def _lines(statistics: RunStatistics) -> Iterator[tuple[str, Line]]:
    """Yield the lines of all operations, with their names; classes where there are several."""
    for each in (*statistics.sections[1:], statistics.total):
        for line in lines_of(each, statistics.total):
            yield " ".join(filter(None, (name_of(each), line.size_class))), line
