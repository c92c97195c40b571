"""The page of a run with two sides: how they compare, then what every report has. Needs Bokeh."""

from __future__ import annotations

from dataclasses import replace

from ssbench.comparison.document import changes, conclusion
from ssbench.comparison.sides import compare_sides
from ssbench.document.html import fragment
from ssbench.reports import html
from ssbench.reports.html_page import Part
from ssbench.reports.options import ReportOptions
from ssbench.statistics import RunStatistics


def report_of_sides(statistics: RunStatistics, options: ReportOptions) -> str:
    """Return the report; the statistics must have been collected with ``over_time``, grouped by ``group``."""
    comparison = replace(compare_sides(statistics), warnings=())
    found = conclusion(comparison)
    said = replace(found, title=f"{comparison.before} to {comparison.after}: {found.title}")
    return html.report(statistics, options, [Part("Changes", body=fragment([changes(comparison)]))], said)
