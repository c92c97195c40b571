"""Fields and counters in the documentation: ``python tests/helpers/field_table.py`` writes them anew."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from ssbench.document.figures import COUNTED_FIGURES
from ssbench.results.result_fields import FIELDS, FieldKind

DOCUMENT = Path(__file__).parents[2] / "doc" / "stat-files.rst"

_HEAD = """\
.. csv-table::
   :header: number, field, since, kept as, unit, content, column of an export
   :widths: 8, 14, 6, 12, 14, 44, 20

"""


def field_table() -> str:
    """Return the table; it ends with a line feed."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    steps = [field for field in FIELDS.values() if field.name.startswith("step_")]
    for field in FIELDS.values():
        if field in steps[1:]:
            continue  # the first row stands for all
        number = f"{field.number} and {field.text_number}" if field.text_number else field.number
        kept = "difference" if field.derive and field.kind is FieldKind.NUMBER else field.kind.value
        row = [number, field.name, field.since, kept, field.unit, field.description, field.export]
        if field in steps:
            last = steps[-1]
            row = [f"{number} to {last.number}", f"{field.name} to {last.name}", *row[2:5]]
            row += ["a step of a success, where an operation has steps", f"{field.export} to {last.export}"]
        writer.writerow(row)
    return _HEAD + "".join(f"   {line}\n" for line in text.getvalue().splitlines())


REPORTS = DOCUMENT.parent / "reports.rst"

_BEFORE_COUNTERS = "\n``count``\n    successes\n"
_AFTER_COUNTERS = "\n``--give-up-after '100 errors'``"


def kept_counters() -> str:
    """Return what ``doc/reports.rst`` says of the counters of results."""
    text = REPORTS.read_text("utf-8")
    return text[text.index(_BEFORE_COUNTERS) + len(_BEFORE_COUNTERS) : text.index(_AFTER_COUNTERS)]


def made_counters() -> str:
    """Return what follows from the figures; those that may be shares are told of before."""
    return "".join(
        f"``{each.key}``\n    {each.meaning[0].lower()}{each.meaning[1:]}\n"
        for each in COUNTED_FIGURES.values()
        if each.whole is None
    )


if __name__ == "__main__":
    text = REPORTS.read_text("utf-8")
    old = _BEFORE_COUNTERS + kept_counters()
    REPORTS.write_text(text.replace(old, _BEFORE_COUNTERS + made_counters()), "utf-8")
    before, _, after = DOCUMENT.read_text("utf-8").partition(_HEAD)
    DOCUMENT.write_text(before + field_table() + "\n" + after.partition("\n\n")[2], "utf-8")
