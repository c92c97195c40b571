"""Results as columns: defaults, what few of them have, blocks that are taken, joined and cut."""

from __future__ import annotations

import math

import numpy as np
import result_rows

from ssbench.results.block import (
    Failure,
    RowCollector,
    is_constant_column,
    join_blocks,
)
from ssbench.results.result_fields import row_fields


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
