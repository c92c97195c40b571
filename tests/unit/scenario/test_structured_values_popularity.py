"""Keys of popularity: what a scenario may say of it, and what is told of a wrong one."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent

import pytest

from ssbench.base.errors import ScenarioError
from ssbench.reports import products
from ssbench.results.current import RECORD_HEADER, decode_run, encode_run
from ssbench.results.run_description import RunDescription
from ssbench.scenario.reading import check_scenario_text
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
    ],
)
def test_what_a_scenario_may_say(value: object, expected: Popularity) -> None:
    made = check_scenario_text(
        TEXT + f"popularity: {json.dumps(value)}\nreuse: {{share: 0.5, distance: 1..9}}\n", "x"
    )
    assert (made.popularity, made.reuse) == (expected, Reuse(0.5, 1, 9))
    run = decode_run(encode_run(RunDescription(made))[RECORD_HEADER.size :])
    assert (run.scenario.popularity, run.scenario.reuse) == (expected, Reuse(0.5, 1, 9))
    told = " ".join("".join(products.make_product_parts(products.Product.OUTLOOK, "text", made)).split())
    assert f"objects are chosen by popularity: {expected}" in told
    assert "reads are repeated: 50% of what was read 1 to 9 reads ago" in told


@pytest.mark.parametrize(
    "value",
    [
        *("often", {"zipf": 0}, {"zipf": 11}, {"zipf": 1, "latest": 1}, {"hotspot": 0.2}, 5, []),
        *({"hotspot": {"objects": 0.2, "requests": 1}}, {"hotspot": {"objects": 0.2}}),
    ],
)
def test_a_wrong_popularity_is_told_with_all_other_faults(value: object) -> None:
    text = TEXT.replace("user_count: 1", "user_count: 0") + f"popularity: {json.dumps(value)}\n"
    with pytest.raises(ScenarioError) as caught:
        check_scenario_text(text, "x")
    first, second = str(caught.value).splitlines()
    assert first.startswith("x:7: user_count: expected")
    assert second.startswith("x:8: popularity: expected rotate, uniform, sequential, latest, or a mapping")


@pytest.mark.parametrize(
    "value",
    [
        *(0.5, {"share": 0.5}, {"share": 0, "distance": 1}, {"share": 2, "distance": 1}),
        *({"share": 0.5, "distance": each} for each in (0, "9..1", "1..2..3", "x", True, 2_000_000)),
    ],
)
def test_a_wrong_reuse_is_told(value: object) -> None:
    with pytest.raises(ScenarioError, match="x:8: reuse: expected a mapping with share"):
        check_scenario_text(TEXT + f"reuse: {json.dumps(value)}\n", "x")
    assert REUSE_RULE.expected


def test_the_example_in_the_documentation() -> None:
    text = (Path(__file__).parents[3] / "doc" / "scenarios.rst").read_text("utf-8")
    example = text.partition("\nPopularity\n----------\n")[2].partition("yaml\n")[2].partition("\n``pop")[0]
    made = check_scenario_text(TEXT + dedent(example), "x")
    assert (made.popularity, made.reuse) == (Popularity("zipf", 0.99), Reuse(0.3, 1, 1000))
