"""Reports: each a function from the numbers of a run to a text, registered by its name.

A new report is a function in a module of its own and a row in :data:`REPORTS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TextIO

from ssbench.reports import csv, json, junit, markdown, requests_per_second, summary, text
from ssbench.reports.options import ReportOptions
from ssbench.statistics import RunStatistics

Report = Callable[[RunStatistics, ReportOptions], str]


def _with_summary(first: Report) -> Report:
    """Return a report with the summary after it, so that the summary is what remains on the screen."""

    def report(statistics: RunStatistics, options: ReportOptions) -> str:
        return f"{first(statistics, options)}\n{summary.report(statistics, options)}"

    return report


def _html(statistics: RunStatistics, options: ReportOptions) -> str:
    # Only here: Bokeh takes seconds to import, and need not be installed.
    from ssbench.reports import html  # noqa: PLC0415

    return html.report(statistics, options)


#: Every report by its name.
REPORTS: dict[str, Report] = {
    "both": _with_summary(text.table),
    "full": _with_summary(text.report),
    "table": text.table,
    "summary": summary.report,
    "csv": csv.report,
    "html": _html,
    "json": json.report,
    "junit": junit.report,
    "summary_md": markdown.report,
    "requests_per_second": requests_per_second.report,
}

__all__ = ["REPORTS", "Report", "ReportOptions", "groups_for", "write_report"]


def groups_for(options: ReportOptions) -> tuple[str, ...]:
    """Return by what else :func:`~ssbench.statistics.summarize` is to keep results apart for a report."""
    return ("worker", "storage_url") if options.verbose else ()


def write_report(name: str, statistics: RunStatistics, options: ReportOptions, out: TextIO) -> None:
    """Write the report of that name; characters that the encoding of ``out`` lacks are replaced.

    Raises KeyError where no report has the name.
    """
    encoding = out.encoding or "utf-8"
    report = REPORTS[name](statistics, replace(options, encoding=encoding))
    out.write(report.encode(encoding, "replace").decode(encoding))
    out.flush()
