"""The table of fields, and everything that follows from it."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path

import numpy as np
import pytest
import result_rows
from field_table import DOCUMENT, field_table

from ssbench.results import current, export
from ssbench.results.block import (
    Failure,
    ResultBlock,
    RowCollector,
    is_constant_column,
    join_blocks,
    make_constant_column,
)
from ssbench.results.reading import DamageError, open_results
from ssbench.results.result_fields import FIELDS, NOT_MEASURED, FieldKind, ResultField, row_fields
from ssbench.results.run_description import RunDescription, RunSummary
from ssbench.results.writer import RunResultsWriter
from ssbench.scenario.model import Scenario, SizeClass
from ssbench.statistics.collector import Collector

ROOT = Path(__file__).parents[3]
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
    export.write_csv(open_results(path), out)
    assert [row["disk_number"] for row in csv.DictReader(io.StringIO(out.getvalue().decode()))] == [
        "7",
        "",
        "300",
    ]
    out = io.BytesIO()
    export.write_json_lines(open_results(path), out)
    assert b'"disk_number":300' in out.getvalue()
    assert "disk" in field_table()

    monkeypatch.delitem(FIELDS, "disk")  # as an older version reads it
    (block,) = open_results(path).blocks()
    with pytest.raises(AttributeError, match="no field of a result is called disk"):
        _ = block.disk


def test_fields_that_were_not_given_have_their_defaults() -> None:
    rows = [result_rows.row(completed=100.0, last_byte=2.5, size=7, retries=2), result_rows.row()]
    block = result_rows.block(rows, failures={1: Failure("timeout", "", {})})
    assert block.started[0] == 97.5
    assert math.isnan(block.started[1])
    assert np.isnan(block.due).all()
    assert block.attempts.tolist() == [3, 1]
    assert block.expected_size.tolist() == [7, -1]
    assert (block.stage.tolist(), block.storage_url.tolist()) == ([0, 0], [-1, -1])
    assert (list(block.trans_id), block.trans_id[0:2]) == ([None] * 2, [None] * 2)
    assert block.failed.tolist() == [False, True]


def test_what_few_results_have_and_what_all_have() -> None:
    rows = [result_rows.row(completed=float(place), retries=place, size=0) for place in range(3)]
    block = result_rows.block(
        rows, common={"stage": 4}, rare={"started": {1: 0.25}, "expected_size": {2: 9}, "attempts": {0: 5}}
    )
    assert block.stage.tolist() == [4, 4, 4]
    assert np.isnan(block.started).tolist() == [True, False, True]
    assert block.started[1] == 0.25
    assert block.expected_size.tolist() == [0, 0, 9]
    assert block.attempts.tolist() == [5, 2, 3]


def test_rows_begin_anew_after_a_block_was_taken() -> None:
    rows = RowCollector()
    for text in ("a", None):
        rows.rows.append(result_rows.packed(rows, result_rows.row()[: len(row_fields())]))
        rows.trans_ids.append(text)
        rows.failures[0] = Failure(text, "", {})
        block = rows.take()
        assert (list(block.trans_id), len(rows)) == ([text], 0)
        assert block.failed.tolist() == [text is not None]


def test_blocks_are_joined_and_cut() -> None:
    first = result_rows.block([result_rows.row(object=1)] * 2, ["a", None], common={"stage": 1})
    second = result_rows.block(
        [result_rows.row(object=2)], failures={0: Failure("x", "", {})}, common={"stage": 1, "storage_url": 3}
    )
    joined = join_blocks([first, second])
    assert len(joined) == 3
    assert joined.object.tolist() == [1, 1, 2]
    assert list(joined.trans_id) == ["a", None, None]
    assert is_constant_column(joined.stage)
    assert joined.storage_url.tolist() == [-1, -1, 3]
    assert "due" not in joined.given
    assert joined.failures == {2: Failure("x", "", {})}
    part = joined.part(1, 3)
    assert (len(part), part.object.tolist(), list(part.trans_id)) == (2, [1, 2], [None, None])
    assert part.failures == {1: Failure("x", "", {})}
    assert join_blocks([first]) is first


@pytest.mark.parametrize("value", [0, 5, -1, 2**53])
def test_a_column_of_one_value_takes_no_more_than_that_value(value: int) -> None:
    rows = [result_rows.row(completed=float(place)) for place in range(1000)]
    plain = len(current.encode_rows(result_rows.block(rows)))
    for column in (make_constant_column(value, 1000), np.full(1000, value)):
        block = result_rows.block(rows)
        block = ResultBlock(1000, {**{name: getattr(block, name) for name in block.given}, "size": column})
        assert len(current.encode_rows(block)) <= plain + 8
        assert current.decode_rows(current.encode_rows(block), 1).size.tolist() == [value] * 1000


def test_results_without_their_completion_are_damage() -> None:
    block = result_rows.block([result_rows.row()])
    payload = current.encode_rows(block)
    start = payload.index(bytes([FIELDS["completed"].number, 0]), 12)
    with pytest.raises(DamageError, match="without their completion"):
        current.decode_rows(payload[:start] + payload[start + 2 :], 1)


def test_not_measured_is_not_a_number() -> None:
    assert math.isnan(NOT_MEASURED)


def test_the_usual_status_takes_no_room() -> None:
    operations = [0, 1, 2, 3] * 250
    usual = [result_rows.row(operation=code, status=(201, 200, 201, 204)[code]) for code in operations]
    unknown = [result_rows.row(operation=code) for code in operations]
    failed = [*usual[:-1], result_rows.row(operation=3, status=503)]
    sizes = []
    for rows in (usual, unknown, failed):
        block = result_rows.block(rows)
        payload = current.encode_rows(block)
        sizes.append(len(payload))
        assert current.decode_rows(payload, 1).status.tolist() == block.status.tolist()
    assert abs(sizes[0] - sizes[1]) <= 2
    assert sizes[2] > sizes[0]
