"""The document of a run: what every run has, and of a run with two sides first how they compare."""

from __future__ import annotations

from dataclasses import replace

from msgspec import structs

from ssbench.comparison.compare import Comparison
from ssbench.comparison.comparison_report import list_visible_changes, make_conclusion
from ssbench.comparison.sides import compare_sides
from ssbench.document.elements import Document, Section
from ssbench.reports import run_document
from ssbench.reports.writing import ReportOptions
from ssbench.statistics.run_statistics import RunStatistics


def make_sided_run_document(statistics: RunStatistics, options: ReportOptions) -> Document:
    """Return the document; sides are compared."""
    if not statistics.sides:
        return run_document.make_run_report_document(statistics, options)
    compared: Comparison = (options.compare_sides or compare_sides)(statistics)
    comparison = replace(compared, warnings=())
    found = make_conclusion(comparison)
    said = structs.replace(found, title=f"{comparison.before} to {comparison.after}: {found.title}")
    return run_document.make_run_report_document(
        statistics, options, [Section("Changes", [list_visible_changes(comparison)])], said
    )
