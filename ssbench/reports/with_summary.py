"""Reports with the summary after them, so that the summary is what remains on the screen."""

from __future__ import annotations

from ssbench.reports import summary, text
from ssbench.reports.options import ReportOptions
from ssbench.statistics import RunStatistics


def table(statistics: RunStatistics, options: ReportOptions) -> str:
    """Return the table of ssbench 0.3.9, and the summary."""
    return f"{text.table(statistics, options)}\n{summary.report(statistics, options)}"


def full(statistics: RunStatistics, options: ReportOptions) -> str:
    """Return the table with all sections, and the summary."""
    return f"{text.report(statistics, options)}\n{summary.report(statistics, options)}"
