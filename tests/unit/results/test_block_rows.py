"""Packed rows become a block in which every result has its own values."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from result_rows import ALSO, packed, row

from ssbench.results.block import Failure, RowCollector
from ssbench.results.result_fields import UNKNOWN_NUMBER

RESULTS = st.lists(
    st.fixed_dictionaries(
        {
            "object": st.integers(0, 2**32 - 1),
            "size": st.integers(-1, 2**62),
            "last_byte": st.floats(0, 1e6),
            "retries": st.integers(0, 2**32 - 1),
        },
        optional={"account": st.integers(0, 2**16 - 1), "address": st.integers(0, 2**15 - 1)},
    ),
    max_size=30,
)


def fill(made: RowCollector, results: list[dict[str, Any]]) -> None:
    for place, each in enumerate(results):
        for name in each.keys() & {"account", "address"}:
            made.note(name, each[name])
        values = {name: value for name, value in each.items() if name not in {"account", "address"}}
        made.rows.append(packed(made, row(**values)))
        made.trans_ids.append(f"tx{place}" if place % 2 else None)


@given(RESULTS, RESULTS)
def test_values_are_those_that_were_given(first: list[dict[str, Any]], second: list[dict[str, Any]]) -> None:
    made = RowCollector(ALSO)
    for results in (first, second):
        fill(made, results)
        assert len(made) == len(results)
        block = made.take()
        assert len(block) == len(results)
        for name in ("object", "size", "last_byte", "retries"):
            assert getattr(block, name).tolist() == [each[name] for each in results]
        assert block.account.tolist() == [each.get("account", 0) for each in results]
        assert block.address.tolist() == [each.get("address", UNKNOWN_NUMBER) for each in results]
        assert [*block.trans_id] == [f"tx{place}" if place % 2 else None for place in range(len(results))]
        assert ("address" in block.given) is any("address" in each for each in results)
        assert len(made) == 0


def test_common_values_stay_and_the_rest_begins_anew() -> None:
    made = RowCollector(ALSO)
    made.common["group"] = 3
    fill(made, [{"address": 5}])
    made.failures[0] = Failure("reset", "", {})
    assert made.take().failed.tolist() == [True]
    fill(made, [{}, {}])
    block = made.take()
    assert block.group.tolist() == [3, 3]
    assert block.failed.tolist() == [False, False]
    assert block.address.tolist() == [UNKNOWN_NUMBER, UNKNOWN_NUMBER]


def test_few_rows_may_differ_from_what_is_common() -> None:
    made = RowCollector()
    made.common["stage"] = 2
    for place in range(3):
        if place == 1:
            made.note("stage", 7)
        made.rows.append(made.pack(*row()[: -len(ALSO)]))
        made.trans_ids.append(None)
    assert made.take().stage.tolist() == [2, 7, 2]
