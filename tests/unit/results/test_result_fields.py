"""The table of fields, and everything that follows from it."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path

import pytest
import result_rows
from field_table import DOCUMENT, field_table

from ssbench.results import result_export
from ssbench.results.block import (
    RowCollector,
)
from ssbench.results.reading import open_results
from ssbench.results.result_fields import FIELDS, NOT_MEASURED, FieldKind, ResultField, row_fields
from ssbench.results.run_description import RunDescription, RunSummary
from ssbench.results.writer import RunResultsWriter
from ssbench.scenario.model import Scenario, SizeClass
from ssbench.statistics.collector import Collector

SCENARIO = Scenario("s", (SizeClass("tiny", 1, 1, 1, (1, 1, 1, 1)),), user_count=1, operation_count=1)


def test_no_number_of_a_field_is_used_twice() -> None:
    numbers = [number for field in FIELDS.values() for number in (field.number, field.text_number) if number]
    assert len(set(numbers)) == len(numbers)
    assert all(0 < number < 256 for number in numbers)
    assert {field.name for field in FIELDS.values()} == set(FIELDS)


def test_the_documentation_has_the_table() -> None:
    # After a change: python tests/helpers/field_table.py
    assert field_table() in DOCUMENT.read_text("utf-8")


@pytest.mark.parametrize("in_row", [True, False])
def test_a_new_field_is_one_row_in_the_table(
    in_row: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    field = ResultField(
        "disk", 200, FieldKind.NUMBER, "number", 3, "disk_number", "of a disk", "h", in_row, -1
    )
    monkeypatch.setitem(FIELDS, "disk", field)
    results = RowCollector(also=() if in_row else ("disk",))
    usual = len(row_fields()) - in_row
    results.rows += [
        result_rows.packed(results, (*result_rows.row(completed=1e9 + place)[:usual], disk))
        for place, disk in enumerate((7, -1, 300))
    ]
    results.trans_ids += [None] * 3
    path = tmp_path / "run.stat.gz"
    writer = RunResultsWriter(path, RunDescription(SCENARIO))
    writer.add(results.take())
    writer.end(RunSummary(ended=0.0))

    (block,) = open_results(path).blocks()
    assert block.disk.tolist() == [7, -1, 300]
    collector = Collector(by=["disk"])
    collector.add(block)
    assert {key: figures.count for key, figures in collector.groups().by("disk").items()} == {
        (-1,): 1,
        (7,): 1,
        (300,): 1,
    }
    out = io.BytesIO()
    result_export.write_csv(open_results(path), out)
    assert [row["disk_number"] for row in csv.DictReader(io.StringIO(out.getvalue().decode()))] == [
        "7",
        "",
        "300",
    ]
    out = io.BytesIO()
    result_export.write_json_lines(open_results(path), out)
    assert b'"disk_number":300' in out.getvalue()
    assert "disk" in field_table()

    monkeypatch.delitem(FIELDS, "disk")  # as an older version reads it
    (block,) = open_results(path).blocks()
    with pytest.raises(AttributeError, match="no field of a result is called disk"):
        _ = block.disk


def test_not_measured_is_not_a_number() -> None:
    assert math.isnan(NOT_MEASURED)
