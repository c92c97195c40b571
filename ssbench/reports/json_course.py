"""The course of a run in the report as JSON: its window, each second, bins over time."""

from __future__ import annotations

import math
from collections.abc import Iterable

from ssbench.operations import OPERATIONS
from ssbench.reports import json_records as records
from ssbench.statistics import Course, EachSecond, Interval, OverTime, RunStatistics, Window


def course_of(course: Course | None) -> records.Course | None:
    """Return the course of a run, or of a stage."""
    if course is None:
        return None
    return records.Course(
        window=_window(course.window),
        drain=course.drain,
        busy=number_of(course.busy),
        operations=_each_second(course.operations),
        bytes=_each_second(course.moved),
        steadiness=records.Steadiness(
            drift=interval_of(course.steadiness.drift),
            steady=course.steadiness.steady,
            warm_up=course.steadiness.warm_up,
        ),
        stalls=[records.Stall(start=stall.start, seconds=stall.seconds) for stall in course.stalls],
    )


def over_time_of(over_time: OverTime | None) -> records.OverTime | None:
    """Return the bins of the page's curves."""
    if over_time is None:
        return None
    return records.OverTime(
        starts=over_time.starts.tolist(),
        seconds=over_time.seconds.tolist(),
        operations=[
            records.SeriesOverTime(
                operation=operation.name if operation else "all",
                count=each.count.tolist(),
                failed=each.failed.tolist(),
                bytes=each.moved.tolist(),
                p50=[number_of(value) for value in each.p50.tolist()],
                p99=[number_of(value) for value in each.p99.tolist()],
                max=[number_of(value) for value in each.maximum.tolist()],
            )
            for code, each in over_time.operations.items()
            if (operation := None if code is None else OPERATIONS.get(code)) or code is None
        ],
    )


def _window(window: Window) -> records.Window:
    return records.Window(start=window.start, end=window.end, seconds=window.seconds, whole=window.whole)


def _each_second(each: EachSecond | None) -> records.EachSecond | None:
    if each is None:
        return None
    return records.EachSecond(
        median=each.median,
        slowest=each.slowest,
        slowest_at=each.slowest_at,
        fastest=each.fastest,
        fastest_at=each.fastest_at,
    )


def seconds_of(statistics: RunStatistics) -> Iterable[records.Second]:
    """Yield the successes of each second."""
    whole = int(statistics.course.window.seconds) if statistics.course else None
    for second, count in statistics.requests_by_second:
        yield records.Second(second=second, count=count, partial=None if whole is None else second > whole)


def interval_of(interval: Interval | None) -> records.Interval | None:
    """Return an interval, null for none."""
    if interval is None:
        return None
    return records.Interval(
        low=interval.low, high=number_of(interval.high), effective_size=interval.effective_size
    )


def number_of(value: float) -> float | None:
    """Return a number, null for what is infinite or not defined."""
    return value if math.isfinite(value) else None
