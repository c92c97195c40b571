"""The reports of a run as text: the table of ssbench 0.3.9, the sections after it, and the summary.

The summary comes last, so that it is what remains on the screen.
"""

from __future__ import annotations

from ssbench.base.printable import shown
from ssbench.document.renderers import text
from ssbench.reports import old_table
from ssbench.reports import sections as of_sections
from ssbench.reports import summary as of_summary
from ssbench.reports.options import ReportOptions
from ssbench.statistics.run_statistics import RunStatistics


def table(statistics: RunStatistics, options: ReportOptions) -> str:
    """Return the table of ssbench 0.3.9, and further percentiles after it."""
    return _after(
        shown(old_table.table(statistics, options)),
        text.render(of_sections.further(statistics, options), options),
    )


def sections(statistics: RunStatistics, options: ReportOptions) -> str:
    """Return the table and all sections after it."""
    return _after(
        shown(old_table.table(statistics, options)),
        text.render(of_sections.document(statistics, options), options),
    )


def summary(statistics: RunStatistics, options: ReportOptions) -> str:
    """Return the summary."""
    return text.render(of_summary.document(statistics, options), options)


def both(statistics: RunStatistics, options: ReportOptions) -> str:
    """Return the table and the summary."""
    return _after(table(statistics, options), summary(statistics, options))


def full(statistics: RunStatistics, options: ReportOptions) -> str:
    """Return the table with all sections, and the summary."""
    return _after(sections(statistics, options), summary(statistics, options))


def _after(above: str, below: str) -> str:
    return f"{above}\n{below}" if below else above
