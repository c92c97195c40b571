"""How many requests were completed in each second of a run, as CSV."""

from __future__ import annotations

from ssbench.reports.options import ReportOptions
from ssbench.statistics import RunStatistics


def report(statistics: RunStatistics, _options: ReportOptions) -> str:
    """Return a header and a line for each second of the clock, counted from that of the first completion."""
    rows = [f"{second},{completed}\n" for second, completed in statistics.requests_by_second]
    return '"Seconds Since Start","Requests Completed"\n' + "".join(rows)
