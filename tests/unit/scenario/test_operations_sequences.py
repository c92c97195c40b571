"""Sequences that scenarios define: their steps, what they do to objects, and how they are drawn."""

from __future__ import annotations

import json
from collections import Counter
from itertools import islice
from typing import Any

import pytest
from chi_square import misfit
from golden_words import GoldenWords

from ssbench.base.errors import ScenarioError, UsageError
from ssbench.run.result_rows import ListingMinimums
from ssbench.scenario.draws import Workload
from ssbench.scenario.existing_objects import refuse_writes
from ssbench.scenario.forecast import forecast_scenario
from ssbench.scenario.model import Scenario
from ssbench.scenario.operations import (
    MAX_STEPS,
    OPERATIONS,
    Effect,
    OperationSettings,
    find_sequence_effect,
    resolve_steps,
)
from ssbench.scenario.population import Population
from ssbench.scenario.scenario_reading import check_scenario_text

PULL = {"name": "pull", "steps": ["list", {"name": "read", "times": 3}]}
PUSH = {"name": "push", "steps": ["missing", "create", "head"]}


def read(operations: list[Any], profile: dict[str, float], **keys: Any) -> Scenario:
    data = {
        "name": "s",
        "sizes": [{"name": "tiny", "size_min": 10, "size_max": 20}],
        "initial_files": {"tiny": 20},
        "operation_count": 100,
        "user_count": 4,
        "profile": profile,
        "operations": operations,
    }
    return check_scenario_text(json.dumps(data | keys), "s")


def faults_of(operations: list[Any], profile: dict[str, float], **keys: Any) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        read(operations, profile, **keys)
    return str(caught.value).splitlines()


@pytest.mark.parametrize(
    ("steps", "effect"),
    [
        (["list", "head", "range"], Effect.READS),
        (["list", "head_container"], Effect.READS),
        (["head", "post"], Effect.CHANGES),
        (["head", "update", "post"], Effect.REWRITES),
        (["delete", "missing", "create"], Effect.REWRITES),
        (["head", "delete", "missing"], Effect.REMOVES),
        (["head_container", "missing", "create", "read"], Effect.ADDS),
        (["create", "update", "delete"], Effect.NONE),
        (["missing", "head_container"], Effect.NONE),
    ],
)
def test_what_a_sequence_does_follows_from_its_steps(steps: list[str], effect: Effect) -> None:
    assert find_sequence_effect(resolve_steps(steps)) is effect
    found = read([{"name": "mine", "steps": steps}], {"mine": 1})
    row = OPERATIONS.of(found.operations[0])
    assert (row.effect, row.defined, row.makes_objects) == (effect, True, effect is Effect.NONE)
    assert found.operation_table.named("mine") == row


@pytest.mark.parametrize(
    "steps",
    [
        7,
        [],
        ["read"] * (MAX_STEPS + 1),
        ["grab"],
        ["slo"],
        [["read"]],
        [{"times": 3}],
        [{"name": "read", "times": 0}],
        [{"name": "read", "length": 3}],
        [{"name": "post", "metadata": 3}],
        [{"name": "range", "length": "9..3"}],
        [{"name": "missing", "method": "PUT"}],
        ["delete", "read"],
        ["missing", "read"],
        ["read", "create"],
        ["create", "missing"],
        [{"name": "delete", "times": 2}],
    ],
)
def test_wrong_steps_are_one_fault(steps: Any, golden_words: GoldenWords) -> None:
    (fault,) = faults_of([{"name": "mine", "steps": steps}], {"mine": 1})
    golden_words(fault)
    assert "operations[0].steps: " in fault


@pytest.mark.parametrize(
    "steps", [["read", "head"], ["head_container", "missing"], ["head", "delete", "create"]]
)
def test_a_sequence_on_an_object_of_its_own_creates_it(steps: list[str], golden_words: GoldenWords) -> None:
    (fault,) = faults_of([{"name": "sequence", "steps": steps}], {"sequence": 1})
    golden_words(fault)
    found = read([{"name": "sequence", "steps": ["missing", "list", "create", "read"]}], {"sequence": 1})
    assert OPERATIONS.of(found.operations[0]).name == "sequence"


def test_names_of_sequences_are_as_those_of_other_operations_of_a_scenario(golden_words: GoldenWords) -> None:
    (fault,) = faults_of([{"name": "Mine", "steps": ["read"]}], {"read": 1})
    golden_words(fault)
    (fault,) = faults_of([PULL | {"headers": {"A": "b"}}], {"pull": 1})
    assert "operations[0].headers: unknown key" in fault
    (fault,) = faults_of([{"name": "read", "steps": ["head"]}], {"read": 1})
    assert "operations[0].steps: unknown key" in fault


def test_a_part_of_an_empty_object_cannot_be_read_in_a_sequence_either(golden_words: GoldenWords) -> None:
    sizes = [{"name": "tiny", "size_min": 0, "size_max": 20}]
    for name, steps in (("mine", ["head", "range"]), ("sequence", ["create", "range"])):
        (fault,) = faults_of([{"name": name, "steps": steps}], {name: 1}, sizes=sizes)
        golden_words(fault)


def test_steps_have_names_settings_and_words() -> None:
    step = {"name": "range", "times": 2, "length": "1kB..2kB"}
    found = read([{"name": "range", "offset": 3}, {"name": "mine", "steps": ["head", step]}], {"mine": 1})
    assert found.steps_of(found.operation_table.named("mine")) == ("head", "2 x range")
    mine = next(each for each in found.operations if each.name == "mine")
    assert str(mine) == "mine (steps head, 2 x range (length 1000 to 2000))"
    *_, last = resolve_steps(mine.values["steps"], found.operations)
    assert (last.times, last.settings.values) == (2, {"offset": (3, 3), "length": (1000, 2000)})


def test_requests_and_bytes_of_a_sequence_are_those_of_its_steps() -> None:
    listing = {"name": "list", "pages": 7}
    found = read([listing, {"name": "mine", "steps": ["list", PULL["steps"][1], "update"]}], {"mine": 1})
    mine = next(each for each in found.operations if each.name == "mine")
    most = OPERATIONS.of(mine).most_requests(mine, found.operations)
    assert most >= 7 + 3 + 1
    told = forecast_scenario(found)
    assert (told.sent_bytes, told.received_bytes) == (15, 45)


def test_weights_of_sequences_are_the_shares_of_their_draws() -> None:
    weights = {"pull": 5, "push": 2, "read": 2, "change": 1}
    found = read([PULL, PUSH, {"name": "change", "steps": ["head", "update"]}], weights)
    drawn = Counter(code for code, *_ in islice(Workload(found, 11).draws(), 40_000))
    counts = [drawn[found.operation_table.named(name).code] for name in weights]
    assert misfit(counts, [weight / 10 for weight in weights.values()]) < 1
    sizes = {
        code: {bool(size) for each, _, _, size in islice(Workload(found, 11).draws(), 999) if each == code}
        for code in drawn
    }
    sending = {found.operation_table.named(name).code for name in ("push", "change")}
    assert sizes == {code: {code in sending} for code in drawn}


def test_a_sequence_of_the_same_name_in_another_scenario_is_another_one() -> None:
    first = read([{"name": "same", "steps": ["head"]}], {"same": 1})
    second = read([{"name": "same", "steps": ["create"]}], {"same": 1})
    for found in (first, second, first):
        (settings,) = found.operations
        assert settings.defined is not None
        (code,) = {code for code, *_ in islice(Workload(found, 1).draws(), 50)}
        assert code == settings.defined[2]
    assert first.operation_table.named("same").effect is Effect.READS
    assert second.operation_table.named("same").effect is Effect.ADDS
    assert not [row for row in OPERATIONS if row.name == "same"]


def test_what_sequences_do_to_the_objects_that_exist() -> None:
    steps = {
        "push": ["missing", "create", "read"],
        "look": ["list", "read"],
        "mark": ["read", "post"],
        "drop": ["read", "delete"],
        "swap": ["read", "update"],
    }
    found = read([{"name": name, "steps": each} for name, each in steps.items()], dict.fromkeys(steps, 1))
    state = Population(found, Workload(found, 3))
    for number in range(1, 21):
        state.add_initial(0, number, 100 + number)
    names = {found.operation_table.named(name).code: name for name in steps}
    sizes = {number: 100 + number for number in range(1, 21)}
    for _ in range(60):
        for code, _, container, number, size in state.next_jobs(3):
            name = names[code]
            if name == "push":
                assert number not in sizes
                sizes[number] = size
            elif name == "swap":
                assert 10 <= size <= 20
                sizes[number] = size
            else:
                # What it reads has this size.
                assert size == sizes[number]
                if name == "drop":
                    del sizes[number]
            state.finished(code, 0, container, number, ok=True)
    created = {number for _, _, number in state.leftovers()}
    assert created == {number for number in sizes if number > 20}


def test_runs_over_what_exists_take_sequences_that_only_read(golden_words: GoldenWords) -> None:
    refuse_writes(read([PULL], {"pull": 1}))
    for steps in (["missing", "create"], ["head", "post"], ["read", "tempurl"], ["create", "delete"]):
        with golden_words.raises(UsageError):
            refuse_writes(read([{"name": "mine", "steps": steps}], {"mine": 1}))


def test_listings_are_not_judged_while_objects_are_deleted_and_created_anew() -> None:
    for steps, judged in ((["delete", "create"], False), (["head", "delete"], True)):
        found = read([{"name": "mine", "steps": steps}], {"mine": 1, "list": 1})
        assert (ListingMinimums.of(found, {0: 5}) is not None) == judged


def test_a_sequence_that_no_steps_describe_is_no_operation() -> None:
    for steps in ([], ["grab"], [7], ["read", "create"]):
        with pytest.raises(ValueError, match=r"mine|step|create"):
            OPERATIONS.with_defined(
                [OperationSettings("mine", values={"steps": steps}, defined=("GET", "reads", 128))]
            )
