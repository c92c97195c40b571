"""Tables with operations that scenarios define."""

from __future__ import annotations

import pytest

from ssbench.base.errors import UsageError
from ssbench.scenario.operations import (
    MAX_OPERATION_CODE,
    OPERATIONS,
    READ,
    OperationSettings,
)


def settings(name: str, code: int) -> OperationSettings:
    return OperationSettings(name, values={"path": "/"}, defined=("GET", "none", code))


@pytest.mark.parametrize(
    "wrong",
    [
        [settings("a", READ.code)],
        [settings("a", MAX_OPERATION_CODE + 1)],
        [settings("a", 130), settings("b", 130)],
        [settings("a", 130), settings("a", 131)],
    ],
)
def test_codes_of_others_that_cannot_be_are_refused(wrong: list[OperationSettings]) -> None:
    with pytest.raises(ValueError, match="code"):
        OPERATIONS.with_defined(wrong)


def test_an_operation_that_a_scenario_defines_hides_a_later_one_of_ssbench() -> None:
    table = OPERATIONS.with_defined([settings("read", 130)])
    assert table.named("read").code == 130
    assert [row.code for row in table.drawn if row.name == "read"] == [130]
    assert table[READ.code] is READ


def test_two_tables_as_one_have_each_operation_once() -> None:
    ours = OPERATIONS.with_defined([settings("same", 128), settings("ours", 129)])
    theirs = OPERATIONS.with_defined([settings("theirs", 128), settings("same", 140)])
    both, codes = ours.joined_with(theirs)
    assert [(row.name, row.code) for row in both if row.defined] == [
        ("same", 128),
        ("ours", 129),
        ("theirs", 130),
    ]
    assert (codes[128], codes[140], codes[READ.code]) == (130, 128, READ.code)
    many = OPERATIONS.with_defined([settings(f"x{code}", code) for code in range(128, 256)])
    with pytest.raises(UsageError, match="too many operations"):
        ours.joined_with(many)
