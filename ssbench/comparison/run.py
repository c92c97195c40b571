"""The document of a run: what every run has, and of a run with two sides first how they compare."""

from __future__ import annotations

from dataclasses import replace

from msgspec import structs

from ssbench.comparison.compare import Comparison
from ssbench.comparison.document import changes, conclusion
from ssbench.comparison.sides import compare_sides
from ssbench.document.elements import Document, Section
from ssbench.reports import run
from ssbench.reports.options import ReportOptions
from ssbench.statistics.run_statistics import RunStatistics


def document(statistics: RunStatistics, options: ReportOptions) -> Document:
    """Return the document; sides are compared."""
    if not statistics.sides:
        return run.document(statistics, options)
    compared: Comparison = (options.compare_sides or compare_sides)(statistics)
    comparison = replace(compared, warnings=())
    found = conclusion(comparison)
    said = structs.replace(found, title=f"{comparison.before} to {comparison.after}: {found.title}")
    return run.document(statistics, options, [Section("Changes", [changes(comparison)])], said)
