"""The seconds and the bins of a run in the report as JSON."""

from __future__ import annotations

from collections.abc import Iterable

from ssbench.operations import OPERATIONS
from ssbench.reports import json_records as records
from ssbench.statistics import OverTime, RunStatistics


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
                p50=each.p50.tolist(),
                p99=each.p99.tolist(),
                max=each.maximum.tolist(),
            )
            for code, each in over_time.operations.items()
            if (operation := None if code is None else OPERATIONS.get(code)) or code is None
        ],
    )


def seconds_of(statistics: RunStatistics) -> Iterable[records.Second]:
    """Yield the successes of each second."""
    whole = int(statistics.course.window.seconds) if statistics.course else None
    for second, count in statistics.requests_by_second:
        yield records.Second(second=second, count=count, partial=None if whole is None else second > whole)
