"""Operations that scenarios define: each has its own, and nothing that is read changes those of others."""

from __future__ import annotations

from dataclasses import replace

import pytest
from golden_words import GoldenWords

from ssbench.base.errors import ScenarioError
from ssbench.scenario.conditions import parse_condition
from ssbench.scenario.model import Scenario
from ssbench.scenario.operations import (
    FIRST_DEFINED_CODE,
    MAX_OPERATION_CODE,
    OPERATIONS,
    Effect,
)
from ssbench.scenario.scenario_reading import check_scenario_data

MOST = MAX_OPERATION_CODE + 1 - FIRST_DEFINED_CODE


def check(*operations: dict[str, object], **changes: object) -> Scenario:
    """The scenario that defines these operations, and draws the first of them."""
    return check_scenario_data(
        {
            "name": "s",
            "sizes": [{"name": "tiny", "size_min": 10, "size_max": 20}],
            "initial_files": {"tiny": 20},
            "operation_count": 100,
            "user_count": 4,
            "operations": [*operations],
            "profile": {operations[0]["name"]: 1},
            **changes,
        }
    )


def get(name: str, **more: object) -> dict[str, object]:
    return {"name": name, "method": "GET", "path": "/info", **more}


def test_any_number_of_scenarios_may_define_operations_in_one_process() -> None:
    before = list(OPERATIONS), OPERATIONS.drawn
    for number in range(MOST + 12):
        found = check(get(f"mine{number}"))
        assert [row.code for row in found.operation_table if row.defined] == [FIRST_DEFINED_CODE]
    assert (list(OPERATIONS), OPERATIONS.drawn) == before


def test_each_scenario_has_its_own_operation_of_a_name_whichever_was_read_last() -> None:
    looks = check(get("mine"))
    changes = check(
        get("other"), {"name": "mine", "method": "POST", "path": "/{object}", "effect": "changes"}
    )
    for _ in range(2):
        first, second = (each.operation_table.named("mine") for each in (looks, changes))
        assert (first.method, first.effect) == ("GET", Effect.NONE)
        assert (second.method, second.effect) == ("POST", Effect.CHANGES)
        assert changes.operation_table[FIRST_DEFINED_CODE].name == "other"
        assert looks.operation_table[FIRST_DEFINED_CODE] == first
        check(get("mine", body="x"))
    assert looks.operation_table is looks.operation_table
    assert replace(looks, operations=changes.operations).operation_table.named("mine").method == "POST"
    with pytest.raises(KeyError):
        OPERATIONS.named("mine")


def test_a_scenario_may_define_as_many_operations_as_there_are_codes(golden_words: GoldenWords) -> None:
    names = [f"mine{number}" for number in range(MOST)]
    found = check(*map(get, names))
    assert [row.name for row in found.operation_table if row.defined] == names
    assert found.operation_table.drawn[-1].code == MAX_OPERATION_CODE
    with golden_words.raises(ScenarioError):
        check(*map(get, [*names, "more"]))


def test_conditions_and_weights_know_the_operations_of_their_scenario_alone(
    golden_words: GoldenWords,
) -> None:
    conditions = ["mine.p99 > 1s", "mine.tiny.p50 > 1s"]
    scenario = check(get("mine"), fail_if=conditions)
    found = [parse_condition(text, scenario.defined_operations, grouped=True) for text in scenario.fail_if]
    assert [(each.group, each.operation) for each in found] == [(None, "mine")] * 2
    with pytest.raises(ScenarioError, match="'mine' is not an operation"):
        check(get("other"), fail_if=conditions[:1])
    with golden_words.raises(ScenarioError):
        check(get("other"), profile={"mine": 1})
