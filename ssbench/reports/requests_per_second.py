"""How many requests were completed in each second of a run, as CSV."""

from __future__ import annotations

from ssbench.reports.options import ReportOptions
from ssbench.statistics import RunStatistics


def report(statistics: RunStatistics, _options: ReportOptions) -> str:
    """Return a header and a line for each second, counted from the first send.

    Seconds that reach beyond the window of the run are marked as partial. Files of ssbench 0.x have the
    seconds of the clock, from that of the first completion on, and no such mark.
    """
    head = '"Seconds Since Start","Requests Completed"'
    if not statistics.current:
        rows = [f"{second},{completed}\n" for second, completed in statistics.requests_by_second]
        return f"{head}\n{''.join(rows)}"
    whole = int(statistics.course.window.seconds) if statistics.course else 0
    rows = [
        f"{second},{completed},{int(second > whole)}\n" for second, completed in statistics.requests_by_second
    ]
    return f'{head},"Partial"\n{"".join(rows)}'
