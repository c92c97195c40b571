"""Reports: each a function from the numbers of a run to a text, registered by its name.

A new report is a function in a module of its own and a row in :data:`REPORTS`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TextIO

from ssbench.reports import csv, json, markdown, requests_per_second, text
from ssbench.reports.options import ReportOptions
from ssbench.statistics import RunStatistics

Report = Callable[[RunStatistics, ReportOptions], str]

#: Every report by its name.
REPORTS: dict[str, Report] = {
    "text": text.report,
    "csv": csv.report,
    "json": json.report,
    "summary_md": markdown.report,
    "requests_per_second": requests_per_second.report,
}

__all__ = ["REPORTS", "Report", "ReportOptions", "write_report"]


def write_report(name: str, statistics: RunStatistics, options: ReportOptions, out: TextIO) -> None:
    """Write the report of that name; characters that the encoding of ``out`` lacks are replaced.

    Raises KeyError where no report has the name.
    """
    report = REPORTS[name](statistics, options)
    encoding = out.encoding or "utf-8"
    out.write(report.encode(encoding, "replace").decode(encoding))
    out.flush()
