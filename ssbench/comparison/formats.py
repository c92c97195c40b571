"""A comparison as data: CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import asdict

from ssbench.comparison.change import Change
from ssbench.comparison.compare import Comparison
from ssbench.comparison.verdict import verdict
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


def as_json(comparison: Comparison, _view: View | None = None) -> str:
    """Return everything, with values in seconds, operations or megabytes a second, and shares."""
    said = verdict(comparison)
    record = {
        "version": 2,
        "verdict": {**asdict(said), "outcome": said.outcome.value},
        **asdict(comparison),
        "conditions": [{**asdict(each), "result": each.result.value} for each in comparison.conditions],
    }
    return json.dumps(record, indent=1, allow_nan=False) + "\n"
