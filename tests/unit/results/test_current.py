"""Rows as bytes: values that are alike take no room, and results without their completion are damage."""

from __future__ import annotations

import numpy as np
import pytest
import result_rows

from ssbench.results import current
from ssbench.results.block import (
    ResultBlock,
    make_constant_column,
)
from ssbench.results.reading import DamageError
from ssbench.results.result_fields import FIELDS


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
