"""The seconds and the bins of a run in the report as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

from ssbench.base.record import make_record_from
from ssbench.reports import json_records as records
from ssbench.scenario.operation_table import OPERATIONS
from ssbench.statistics.over_time import BinsOverTime
from ssbench.statistics.run_statistics import RunStatistics


def make_over_time_record(over_time: BinsOverTime | None) -> records.OverTimeRecord | None:
    """Return the bins of the page's curves."""
    if over_time is None:
        return None
    return make_record_from(
        records.OverTimeRecord,
        over_time,
        operations=[
            make_record_from(records.SeriesOverTime, each, operation=operation.name if operation else "all")
            for code, each in over_time.operations.items()
            if (operation := None if code is None else OPERATIONS.get(code)) or code is None
        ],
    )


class SecondRecords(Sequence[records.Second]):
    """The successes of each second; each is made when it is asked for, because there may be millions."""

    def __init__(self, statistics: RunStatistics) -> None:
        self._seconds = statistics.requests_by_second
        self._whole = int(statistics.course.window.seconds) if statistics.course else None

    def __len__(self) -> int:
        return len(self._seconds)

    @overload
    def __getitem__(self, place: int) -> records.Second: ...

    @overload
    def __getitem__(self, place: slice) -> list[records.Second]: ...

    def __getitem__(self, place: int | slice) -> records.Second | list[records.Second]:
        if isinstance(place, slice):
            return [self._second(*each) for each in self._seconds[place]]
        return self._second(*self._seconds[place])

    def _second(self, second: int, count: int) -> records.Second:
        partial = None if self._whole is None else second > self._whole
        return records.Second(second=second, count=count, partial=partial)
