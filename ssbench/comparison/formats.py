"""A comparison as CSV."""

from __future__ import annotations

import csv
import io
from dataclasses import asdict

from ssbench.comparison.change import Change
from ssbench.comparison.compare import Comparison
from ssbench.document import View
from ssbench.printable import cell


def as_csv(comparison: Comparison, _view: View | None = None) -> str:
    """Return a line a figure, with values in seconds, operations or megabytes a second, and shares."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["Operation", "Size class", "Figure", *(_title(name) for name in Change.__slots__)])
    for row in comparison.rows:
        for figure, change in row.changes.items():
            values = asdict(change).values()
            writer.writerow([row.operation, cell(row.size_class or ""), figure, *values])
    return out.getvalue()


def _title(name: str) -> str:
    return name.replace("_", " ").capitalize()
