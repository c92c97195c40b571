"""Reports: one file a format, each a function of :class:`ssbench.statistics.RunStatistics`."""

from __future__ import annotations

from typing import TextIO

from ssbench.reports import csv as csv_report
from ssbench.reports import text as text_report
from ssbench.statistics import RunStatistics


def print_report(statistics: RunStatistics, *, pctile: float, csv: bool, out: TextIO) -> None:
    """Print the report of a run, as text or as CSV.

    ``pctile`` is the percentile to show, above 0 and up to 100. What the encoding of ``out`` does
    not have is replaced.
    """
    report = csv_report.report(statistics, pctile) if csv else text_report.report(statistics, pctile)
    encoding = out.encoding or "utf-8"
    out.write(report.encode(encoding, "replace").decode(encoding))
    out.flush()
