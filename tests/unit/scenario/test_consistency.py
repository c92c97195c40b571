"""Values of a scenario that contradict each other, in a file or on the command line, which overrides it."""

from __future__ import annotations

import pytest
from golden_words import GoldenWords
from scenario_texts import EXPECTED, YAML, faults_of, with_stages

from ssbench.base.errors import ScenarioError, UsageError
from ssbench.scenario.consistency import explain_idle_arrivals, override
from ssbench.scenario.scenario_reading import read_scenario


def test_a_file_need_not_say_how_long_it_runs_where_the_command_line_does(write):
    path = write("\n".join(line for line in YAML.splitlines() if "operation_count" not in line))
    with pytest.raises(ScenarioError, match="operation_count: missing"):
        read_scenario(path)
    scenario = override(read_scenario(path, limited=True), run_seconds=3.0)
    assert (scenario.run_seconds, scenario.operation_count) == (3.0, None)
    scenario = override(read_scenario(path, limited=True), operation_count=7)
    assert (scenario.run_seconds, scenario.operation_count) == (None, 7)


def test_random_arrivals_without_a_rate_are_said_to_change_nothing(write, golden_words: GoldenWords):
    assert explain_idle_arrivals(EXPECTED) is None
    idle = read_scenario(write(YAML + "arrivals: poisson\n"))
    said = explain_idle_arrivals(idle)
    assert said is not None
    golden_words(said)
    assert explain_idle_arrivals(override(idle, rate=5.0)) is None


def test_override(caplog, golden_words: GoldenWords):
    assert override(EXPECTED) == EXPECTED
    changed = override(EXPECTED, user_count=3, container_count=9, policy="gold", delete_after=5)
    assert (changed.user_count, changed.container_count, changed.policy, changed.delete_after) == (
        3,
        9,
        "gold",
        5,
    )
    assert override(changed, delete_after=0).delete_after is None
    assert override(changed, operation_count=8).operation_count == 8
    timed = override(EXPECTED, operation_count=8, run_seconds=2.5)
    golden_words(caplog.messages)
    assert (timed.run_seconds, timed.operation_count) == (2.5, None)
    counted = override(timed, operation_count=8)
    assert (counted.run_seconds, counted.operation_count) == (None, 8)


@pytest.mark.parametrize(
    ("key", "said"), [("user_cont", "user_cont: .*; did you mean user_count"), ("seed", "seed: no key")]
)
def test_override_takes_only_keys_that_options_replace(key: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        override(EXPECTED, **{key: 3})


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("policy", "a/b"),
        ("policy", "a\nX: b"),
        ("user_count", 0),
        ("container_count", 2**40),
        ("run_seconds", 0.0),
    ],
)
def test_override_takes_only_what_a_file_may_say(option, value):
    with pytest.raises(UsageError, match=f"^{option}: expected .*, not "):
        override(EXPECTED, **{option: value})


def test_think_time(write, golden_words: GoldenWords):
    scenario = read_scenario(write(YAML + "think_time: 200ms\n"))
    assert scenario.think_time == 0.2
    assert override(scenario, think_time=0.0).think_time == 0
    with golden_words.raises(UsageError):
        override(scenario, rate=5.0)


@pytest.mark.parametrize("key", ["run_seconds", "operation_count", "rate"])
def test_stages_leave_no_room_for_another_load(write, key, golden_words: GoldenWords):
    scenario = read_scenario(write(with_stages()))
    with golden_words.raises(UsageError):
        override(scenario, **{key: 5})
    (fault,) = faults_of(write(with_stages() + f"{key}: 5\n"))
    golden_words(fault)


def test_fewer_users_than_a_stage_asks_for(write, golden_words: GoldenWords):
    with golden_words.raises(UsageError):
        override(read_scenario(write(with_stages())), user_count=8)


def test_a_warm_up_is_shorter_than_the_run(write, golden_words: GoldenWords):
    scenario = read_scenario(write(YAML))
    with golden_words.raises(UsageError):
        override(scenario, run_seconds=5.0, warmup=5.0)
    assert override(scenario, warmup=5.0).warmup == 5  # of a run that ends by its number of operations
