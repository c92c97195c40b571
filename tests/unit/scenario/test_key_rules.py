"""Rules of keys: weights, lives, loads and stages."""

from __future__ import annotations

import pytest
from golden_words import GoldenWords
from said import FROM_ONE, NO_THINK_TIME, SECONDS_ABOVE_ZERO
from scenario_texts import EXPECTED, YAML, faults_of, with_stages

from ssbench.scenario.consistency import override
from ssbench.scenario.scenario_reading import read_scenario

#: What is said of a key of a scenario that is a rate.
WANTED_RATE = "expected a number of operations a second"


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        *((each, "four numbers of 0 or more") for each in ("{}", "{read: 0}", "{read: -1}", "{read: yes}")),
        ("{reed: 1}", "names of operations, not 'reed'; did you mean read?"),
        ("{1: 1}", "names of operations, not 1 (there are bulk, conditional, "),
        (
            "{sequence: 1}",
            "sequence needs steps: operations: [{name: sequence, steps: [create, post, read]}]",
        ),
    ],
)
def test_wrong_weights_by_name(write, weights, said):
    (fault,) = faults_of(write(YAML.replace("[0, 9, 0, 1]", weights)))
    assert said in fault


def test_quantities_with_units(write):
    text = YAML.replace("size_min: 4096", "size_min: 4K").replace("size_max: 65536", "size_max: 66 kB")
    text = text.replace("operation_count: 500", "run_seconds: 1m30s\ndelete_after: 1h")
    scenario = read_scenario(write(text))
    tiny = scenario.size_classes[0]
    assert (tiny.size_min, tiny.size_max) == (4096, 66_000)
    assert (scenario.run_seconds, scenario.delete_after) == (90.0, 3600)


@pytest.mark.parametrize(
    ("stages", "expected"),
    [
        ("stages: 5\n", "stages: expected a list of one stage or more, not 5"),
        ("stages: []\n", "stages: expected a list of one stage or more, not []"),
        ("stages: [5]\n", "stages[0]: expected a mapping, not 5"),
        ("stages: [{users: 3}]\n", f"stages[0].seconds: missing, {SECONDS_ABOVE_ZERO}"),
        ("stages: [{seconds: 3}]\n", "stages[0]: expected users, rate or both"),
        ("stages: [{seconds: 3, users: 0}]\n", "stages[0].users: expected 1 or more; 0 is for the first"),
        ("stages: [{seconds: 3, users: -1}]\n", f"stages[0].users: {FROM_ONE}"),
        ("stages: [{seconds: 3, users: 0..4}]\n", f"stages[0].users: {FROM_ONE}"),
        ("stages: [{seconds: 3, users: 1..2.5}]\n", f"stages[0].users: {FROM_ONE}"),
        ("stages: [{seconds: 3, users: 1-2}]\n", f"stages[0].users: {FROM_ONE}"),
        ("stages: [{seconds: 3, users: yes}]\n", f"stages[0].users: {FROM_ONE}"),
        ("stages: [{seconds: 3, users: 1.., rate: 2}]\n", "stages[0].users: expected a whole number from 1"),
        ("stages: [{seconds: 3, rate: 0..0}]\n", f"stages[0].rate: {WANTED_RATE}"),
        (
            "stages: [{seconds: 3, rate: 1..inf}]\n",
            f"stages[0].rate: {WANTED_RATE}",
        ),
        ("stages: [{seconds: 0, users: 1}]\n", f"stages[0].seconds: {SECONDS_ABOVE_ZERO}"),
        ("stages: [{seconds: 3, user: 1}]\n", "stages[0].user: unknown key"),
        (
            "stages: [{seconds: 3, users: 99}]\n",
            "stages[0].users: expected at most user_count, which is 64, not 99",
        ),
        ("stages: [{seconds: 3, users: 1}]\nwarmup: 3\n", "warmup: expected less than the run takes"),
        (
            "stages: [{seconds: 3, rate: 1}]\nthink_time: 3\n",
            f"{NO_THINK_TIME} a rate",
        ),
    ],
)
def test_wrong_stages(write, stages, expected):
    faults = faults_of(write(with_stages(stages)))
    assert any(expected in fault for fault in faults), faults
    assert len(faults) == (2 if "user: 1" in stages else 1), faults


@pytest.mark.parametrize(
    "text",
    [
        "rate: 0",
        "rate: fast",
        "arrivals: odd",
        "arrivals: [even]",
        "warmup: -1",
        "think_time: 5x",
    ],
)
def test_wrong_loads(write, text, golden_words: GoldenWords):
    (fault,) = faults_of(write(YAML + text + "\n"))
    golden_words(fault)
    assert fault.startswith("19: ")


def test_five_numbers_and_both_names_of_a_profile(write, golden_words: GoldenWords):
    five = read_scenario(write(YAML.replace("[3, 4, 2, 2]", "[3, 4, 2, 2, 9]"))).size_classes[0]
    assert five.weights["list"] == 9
    assert read_scenario(write(YAML.replace("crud_profile", "profile"))).size_classes == EXPECTED.size_classes
    (fault,) = faults_of(write(f"{YAML}\nprofile: [1, 1, 1, 1]\n"))
    golden_words(fault)


@pytest.mark.parametrize(
    ("life", "least", "most"),
    [("60", 60, None), ("1m", 60, None), ("1m..1h", 60, 3600), ("60..90", 60, 90), ("0", None, None)],
)
def test_objects_live_so_long(write, life, least, most):
    scenario = read_scenario(write(f"{YAML}\ndelete_after: {life}\n"))
    assert (scenario.delete_after, scenario.delete_after_most) == (least, most)
    changed = override(scenario, delete_after=5)
    assert (changed.delete_after, changed.delete_after_most) == (5, None)


@pytest.mark.parametrize("life", ["1h..1m", "0..5", "5..", "-1", "x..5", "[1, 2]"])
def test_wrong_lives(write, life):
    (fault,) = faults_of(write(f"{YAML}\ndelete_after: {life}\n"))
    assert "delete_after: " in fault
