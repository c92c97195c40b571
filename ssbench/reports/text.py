"""The reports of a run as text: the table of ssbench 0.3.9, the sections after it, and the summary.

The summary comes last, so that it is what remains on the screen.
"""

from __future__ import annotations

from ssbench.base.printable import make_printable_lines
from ssbench.document.renderers import text
from ssbench.reports import old_table
from ssbench.reports import sections as of_sections
from ssbench.reports import summary as of_summary
from ssbench.reports.options import ReportOptions
from ssbench.statistics.run_statistics import RunStatistics


def make_table_report(statistics: RunStatistics, options: ReportOptions) -> str:
    """Return the table of ssbench 0.3.9, and further percentiles after it."""
    return _join_texts(
        make_printable_lines(old_table.make_old_table(statistics, options)),
        text.render(of_sections.make_percentiles_document(statistics, options), options),
    )


def make_sections_report(statistics: RunStatistics, options: ReportOptions) -> str:
    """Return the table and all sections after it."""
    return _join_texts(
        make_printable_lines(old_table.make_old_table(statistics, options)),
        text.render(of_sections.make_sections_document(statistics, options), options),
    )


def make_summary_report(statistics: RunStatistics, options: ReportOptions) -> str:
    """Return the summary."""
    return text.render(of_summary.make_summary_document(statistics, options), options)


def make_table_and_summary(statistics: RunStatistics, options: ReportOptions) -> str:
    """Return the table and the summary."""
    return _join_texts(make_table_report(statistics, options), make_summary_report(statistics, options))


def make_full_report(statistics: RunStatistics, options: ReportOptions) -> str:
    """Return the table with all sections, and the summary."""
    return _join_texts(make_sections_report(statistics, options), make_summary_report(statistics, options))


def _join_texts(above: str, below: str) -> str:
    return f"{above}\n{below}" if below else above
