"""Keys of popularity: what a scenario may say of it, and what is told of a wrong one."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent

import pytest
from golden_words import GoldenWords

from ssbench.base.errors import ScenarioError
from ssbench.reports import products
from ssbench.results.current import RECORD_HEADER, decode_run, encode_run
from ssbench.results.run_description import RunDescription
from ssbench.scenario.scenario_reading import check_scenario_text
from ssbench.scenario.structured_values import REUSE_RULE, Popularity, Reuse

TEXT = """
name: popular
sizes: [{name: one, size: 1kB}]
initial_files: {one: 10}
profile: {read: 1}
operation_count: 1
user_count: 1
"""


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("latest", Popularity("latest", 0.99)),
        ({"zipf": 1}, Popularity("zipf", 1.0)),
        ({"hotspot": {"objects": 0.2, "requests": 0.8}}, Popularity("hotspot", 0.0, 0.2, 0.8)),
        ({"counts": [[1, 70], [4.5, 30]]}, Popularity("counts", bands=((1.0, 70.0), (4.5, 30.0)))),
    ],
)
def test_what_a_scenario_may_say(value: object, expected: Popularity, golden_words: GoldenWords) -> None:
    made = check_scenario_text(
        TEXT + f"popularity: {json.dumps(value)}\nreuse: {{share: 0.5, distance: 1..9}}\n", "x"
    )
    assert (made.popularity, made.reuse) == (expected, Reuse(0.5, 1, 9))
    run = decode_run(encode_run(RunDescription(made))[RECORD_HEADER.size :])
    assert (run.scenario.popularity, run.scenario.reuse) == (expected, Reuse(0.5, 1, 9))
    told = " ".join("".join(products.make_product_parts(products.Product.OUTLOOK, "text", made)).split())
    golden_words(told)
    assert "reads are repeated: 50% of what was read 1 to 9 reads ago" in told


@pytest.mark.parametrize(
    "value",
    [
        *("often", {"zipf": 0}, {"zipf": 11}, {"zipf": 1, "latest": 1}, {"hotspot": 0.2}, 5, []),
        *({"hotspot": {"objects": 0.2, "requests": 1}}, {"hotspot": {"objects": 0.2}}),
        *({"counts": []}, {"counts": [3]}, {"counts": [[4, 1], [1, 1]]}, {"counts": [[0.5, 1]]}),
        *({"counts": [[1, 0]]}, {"counts": [[1, 1]], "zipf": 1}),
    ],
)
def test_a_wrong_popularity_is_told_with_all_other_faults(value: object, golden_words: GoldenWords) -> None:
    text = TEXT.replace("user_count: 1", "user_count: 0") + f"popularity: {json.dumps(value)}\n"
    with pytest.raises(ScenarioError) as caught:
        check_scenario_text(text, "x")
    first, second = str(caught.value).splitlines()
    assert first.startswith("x:7: user_count: expected")
    golden_words(second)


@pytest.mark.parametrize(
    "value",
    [
        *(0.5, {"share": 0.5}, {"share": 0, "distance": 1}, {"share": 2, "distance": 1}),
        *({"share": 0.5, "distance": each} for each in (0, "9..1", "1..2..3", "x", True, 2_000_000)),
    ],
)
def test_a_wrong_reuse_is_told(value: object, golden_words: GoldenWords) -> None:
    with golden_words.raises(ScenarioError):
        check_scenario_text(TEXT + f"reuse: {json.dumps(value)}\n", "x")
    assert REUSE_RULE.expected


def test_the_example_in_the_documentation() -> None:
    text = (Path(__file__).parents[3] / "doc" / "scenarios.rst").read_text("utf-8")
    example = text.partition("\nPopularity\n----------\n")[2].partition("yaml\n")[2].partition("\n``pop")[0]
    made = check_scenario_text(TEXT + dedent(example), "x")
    assert (made.popularity, made.reuse) == (Popularity("zipf", 0.99), Reuse(0.3, 1, 1000))


def test_classes_of_reuse_are_said_and_kept() -> None:
    text = (
        TEXT
        + "popularity: {counts: [[1, 70], [4, 30]]}\n"
        + "reuse: {classes: [[1, [1, 5]], [4, [0, 1]]], created: 0.2, deleted: 0.1}\n"
    )
    made = check_scenario_text(text, "x")
    assert made.reuse == Reuse(0.0, 1, 1, ((1.0, (1.0, 5.0)), (4.0, (0.0, 1.0))), 0.2, 0.1)
    run = decode_run(encode_run(RunDescription(made))[RECORD_HEADER.size :])
    assert run.scenario.reuse == made.reuse


@pytest.mark.parametrize(
    "value", ["[]", "[[1, []]]", "[[1, [0]]]", "[[4, [1]], [1, [1]]]", "[[1, 1]]", "[[1, [-1]]]", "[1]"]
)
def test_wrong_classes_of_reuse(value: str) -> None:
    with pytest.raises(ScenarioError, match="x:9: reuse: expected"):
        check_scenario_text(TEXT + f"popularity: {{counts: [[1, 1]]}}\nreuse: {{classes: {value}}}\n", "x")


@pytest.mark.parametrize("value", ["1", "-0.1", "many", "0.6, deleted: 0.6", "0.1, deleted: x"])
def test_a_wrong_share_of_created_or_deleted_objects(value: str) -> None:
    text = TEXT + f"popularity: {{counts: [[1, 1]]}}\nreuse: {{classes: [[1, [1]]], created: {value}}}\n"
    with pytest.raises(ScenarioError, match="x:9: reuse: expected"):
        check_scenario_text(text, "x")


def test_classes_of_reuse_need_counts_also_in_a_group() -> None:
    with pytest.raises(ScenarioError, match=r"reuse: expected popularity: \{counts"):
        check_scenario_text(TEXT + "reuse: {classes: [[1, [1]]]}\n", "x")
    group = "groups: [{name: one, users: 1, profile: {read: 1}, reuse: {classes: [[1, [1]]]}%s}]\n"
    text = TEXT.replace("user_count: 1\n", "").replace("profile: {read: 1}\n", "")
    text = text.replace("operation_count: 1", "run_seconds: 1")
    with pytest.raises(ScenarioError, match=r"reuse: expected popularity: \{counts"):
        check_scenario_text(text + group % "", "x")
    check_scenario_text(text + group % ", popularity: {counts: [[1, 1]]}", "x")
