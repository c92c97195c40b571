"""The section "Confidence" of the text report: how far rates and percentiles may be from the truth.

``doc/numbers.rst`` tells how the intervals are made.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from ssbench.figures.units import milliseconds
from ssbench.statistics import Course, Interval, Latencies, Line, RunStatistics, Section, Steadiness
from ssbench.statistics.confidence import MIN_SECONDS

_RANKS = (50, 90, 95, 99, 99.9)
_INDENT = " " * 7
_NO_INTERVAL = "-: it would reach down to 0, or too few latencies lie beyond; a longer run says more"
_MEGABYTE = 1e6


def section(statistics: RunStatistics) -> Iterator[str]:
    """Yield the lines of the section, of a run with stages by stage; none where the run was too short."""
    parts = {stage.name: stage.numbers for stage in statistics.stages} or {"": statistics}
    lines: list[str] = []
    for name, numbers in parts.items():
        course = numbers.course
        if course is None or not _is_long_enough(numbers, course):
            continue
        own = [*_steadiness(course.steadiness), *_rates(numbers), *_latencies(numbers)]
        lines += ["", f"Stage {name}", *own] if name else own
    if lines:
        if any("-" in line.split() for line in lines):
            lines += ["", _NO_INTERVAL]
        yield from ("", "Confidence (95 % intervals)", *((_INDENT + line).rstrip() for line in lines))


def _is_long_enough(numbers: RunStatistics, course: Course) -> bool:
    window = course.window
    return len(numbers.total.by_second.series(window.start, window.end)[0]) >= MIN_SECONDS


def _steadiness(found: Steadiness) -> Iterator[str]:
    if found.drift is not None:
        middle = (found.drift.low + found.drift.high) / 2
        yield (
            f"Drift of the rate: {100 * middle:+.1f} % a minute"
            f" ({100 * found.drift.low:+.1f} to {100 * found.drift.high:+.1f})"
            + ("" if found.steady else ": the run was not steady by its end")
        )
    if found.warm_up:
        yield f"Warm-up: MSER-5 would leave out the first {found.warm_up} s (--warmup)"


def _rates(statistics: RunStatistics) -> Iterator[str]:
    yield ""
    yield f"{'Rates':<24}{'ops/s':>10}{'from':>10}{'to':>10}{'+- %':>7}{'MB/s':>11}{'from':>10}{'to':>10}"
    for name, line in _lines(statistics):
        rate = line.requests_per_second
        yield (
            f"{name:<24.24}{rate:>10.1f}{_range(line.rate_interval, 1, 1)}"
            f"{_per_cent(line.rate_interval, rate):>7}{line.moved_per_second / _MEGABYTE:>11.3f}"
            f"{_range(line.moved_interval, _MEGABYTE, 3)}"
        )


def _range(interval: Interval | None, unit: float, decimals: int) -> str:
    bounds = ("-", "-") if interval is None else (interval.low, interval.high)
    return "".join(
        f"{each if isinstance(each, str) else f'{each / unit:.{decimals}f}':>10}" for each in bounds
    )


def _per_cent(interval: Interval | None, value: float) -> str:
    return f"{100 * (interval.high / value - 1):.1f}" if interval and value else "-"


def _latencies(statistics: RunStatistics) -> Iterator[str]:
    if not statistics.total.lines[0].last_byte.count:
        return
    yield ""
    yield f"{'Latency in ms':<23}" + "".join(f"{f'p{rank:g}':>14}" for rank in _RANKS)
    for name, line in _lines(statistics):
        for which, latencies in (("first", line.first_byte), ("last", line.last_byte)):
            if latencies.count:
                bounds = "".join(f"{_bounds(latencies, rank):>14}" for rank in _RANKS)
                yield f"{f'{name[:16]} {which}':<23}{bounds}"


def _bounds(latencies: Latencies, rank: float) -> str:
    interval = latencies.interval(rank) if latencies.supports(rank) else None
    if interval is None:
        return "-"
    high = "?" if math.isinf(interval.high) else milliseconds(interval.high)
    return f"{milliseconds(interval.low)}-{high}"


def _lines(statistics: RunStatistics) -> Iterator[tuple[str, Line]]:
    """Yield the lines of all operations, with their names; classes where there are several."""
    for each in (*statistics.sections[1:], statistics.total):
        # Operations together have no classes of interest.
        for line in each.lines[:1] if len(each.lines) == 2 or each is statistics.total else each.lines:
            yield f"{_name(each)} {line.size_class or ''}".rstrip(), line


def _name(each: Section) -> str:
    return each.operation.name.upper() if each.operation else "ALL"
