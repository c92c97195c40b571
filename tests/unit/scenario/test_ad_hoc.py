"""Scenarios without a file: what the command line says becomes the text of one."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest
import yaml
from golden_words import GoldenWords

from ssbench.base.errors import ScenarioError, UsageError
from ssbench.scenario import ad_hoc
from ssbench.scenario.ad_hoc import AdHocLoad, LoadPhase, parse_mix, parse_phases
from ssbench.scenario.consistency import override
from ssbench.scenario.model import SCENARIO_KEYS, SCENARIO_RULES
from ssbench.scenario.scenario_reading import check_scenario_text


def load(
    mix: str = "", phases: str = "", size: str = "4kB", objects: int | None = None, **keys: Any
) -> AdHocLoad:
    return AdHocLoad(
        size=size,
        weights=parse_mix(mix) if mix else {},
        phases=parse_phases(phases) if phases else (),
        objects=objects,
        values=keys,
    )


def test_containers_of_a_line_may_follow_from_its_objects() -> None:
    """The usual 20 were as given, and refused beside it."""
    line = ad_hoc.parse_scenario_line("size=4kB mix=get objects=100 objects_per_container=30")
    assert ad_hoc.make_ad_hoc_scenario(line).container_count == 4
    changes = [("objects_per_container", 50)]
    assert ad_hoc.make_ad_hoc_scenario(load("get", objects=100), changes).container_count == 2


def test_operations_have_the_names_of_other_programs_too() -> None:
    assert parse_mix("put,GET, delete") == {"create": 1.0, "read": 1.0, "delete": 1.0}
    assert parse_mix("read=9,create=1,list=0.5") == {"read": 9.0, "create": 1.0, "list": 0.5}
    assert parse_phases("put,head") == (LoadPhase("put", "create"), LoadPhase("head", "head"))


@pytest.mark.parametrize(
    "text",
    [
        "gett",
        "",
        "put,create",
        "get=0",
        "get=nan",
        "get=many",
    ],
)
def test_a_wrong_mix_is_one_line(text: str, golden_words: GoldenWords) -> None:
    with pytest.raises(ValueError, match=r"^[^\n]*$") as found:
        parse_mix(text)
    golden_words(str(found.value))


def test_a_phase_that_is_there_twice() -> None:
    with pytest.raises(ValueError, match="twice"):
        parse_phases("get,read")


def test_the_text_is_a_scenario_that_says_all_of_it() -> None:
    text = ad_hoc.write_ad_hoc_text(
        load(
            "read=9,create=1",
            size="4kB..1MB",
            user_count=3,
            run_seconds=30.0,
            rate=50.0,
            fail_if=["read.p99 > 1s"],
        )
    )
    found = check_scenario_text(text, "printed.yaml")
    (only,) = found.size_classes
    assert (only.name, only.size_min, only.size_max) == ("4kB-1MB", 4000, 1_000_000)
    assert only.weights == {"read": 9.0, "create": 1.0}
    assert (found.user_count, found.run_seconds, found.rate) == (3, 30.0, 50.0)
    assert found.fail_if == ("read.p99 > 1s",)
    # The command line overrides it as it does a file.
    assert override(found, user_count=5, operation_count=7).operation_count == 7


def test_the_same_objects_serve_every_mix() -> None:
    """Their owner has the scenario's name, which therefore does not name operations."""
    names = {ad_hoc.make_ad_hoc_scenario(load(each)).name for each in ("get", "put,get", "head")}
    assert names == {"4kB objects"}


@pytest.mark.parametrize(
    ("mix", "phases", "keys", "objects"),
    [
        ("put", "", {"operation_count": 500}, 1),
        ("get", "", {"run_seconds": 5.0}, 100),
        ("get", "", {"user_count": 500, "run_seconds": 5.0}, 1000),
        ("delete", "", {"operation_count": 300}, 300),
        ("", "put,get,delete", {"operation_count": 300}, 300),
        ("", "put,get", {"operation_count": 300}, 100),
        # 1,000 more deletions than creations are expected, and chance has a standard deviation of 51.6.
        ("put=1,delete=2", "", {"operation_count": 3000}, 1207),
    ],
)
def test_initial_objects_suffice(mix: str, phases: str, keys: dict[str, Any], objects: int) -> None:
    (only,) = ad_hoc.make_ad_hoc_scenario(load(mix, phases, **keys)).size_classes
    assert only.initial_files == pytest.approx(objects, abs=10)
    (only,) = ad_hoc.make_ad_hoc_scenario(load(mix, phases, objects=7, **keys)).size_classes
    assert only.initial_files == 7


def test_how_long_a_run_is_that_does_not_say_so() -> None:
    assert ad_hoc.make_ad_hoc_scenario(load("put,get,delete")).run_seconds == 30
    assert ad_hoc.make_ad_hoc_scenario(load(phases="get,delete")).operation_count == 1000


def test_deletions_for_a_time_need_a_number_of_objects(golden_words: GoldenWords) -> None:
    with golden_words.raises(UsageError):
        ad_hoc.make_ad_hoc_scenario(load(phases="put,delete", run_seconds=5.0))
    assert ad_hoc.make_ad_hoc_scenario(load(phases="put,delete", run_seconds=5.0, objects=9)).run_seconds == 5


@pytest.mark.parametrize(
    ("line", "wrong"),
    [("size=4kB size=5kB mix=put", "size is there twice"), ("sise=4kB mix=put", "sise is not size, mix, ")],
)
def test_a_key_of_a_line_that_is_wrong_is_named_before_one_that_lacks(line: str, wrong: str) -> None:
    with pytest.raises(UsageError, match=wrong):
        ad_hoc.parse_scenario_line(line)


def test_each_key_of_scenarios_means_in_a_line_what_it_means_in_a_file() -> None:
    for key in SCENARIO_KEYS:
        if key.name in SCENARIO_RULES and key.example is not None:
            setting = shlex.quote(f"{key.name}={json.dumps(key.example)}")
            text = ad_hoc.write_ad_hoc_text(ad_hoc.parse_scenario_line(f"size=4kB mix=put,get {setting}"))
            assert yaml.safe_load(text)[key.name] == key.example


def test_times_between_two_can_be_given_in_a_line() -> None:
    line = "size=4kB mix=put,get delete_after=1m..90s"
    scenario = ad_hoc.read_named_scenario(line)
    assert (scenario.delete_after, scenario.delete_after_most) == (60, 90)


def test_an_operation_that_needs_a_key_is_a_fault() -> None:
    with pytest.raises(ScenarioError, match="sequence needs"):
        ad_hoc.make_ad_hoc_scenario(load("sequence"))


# -- phases ----------------------------------------------------------------------------------------


def test_each_phase_has_its_operation_and_its_conditions() -> None:
    scenario = ad_hoc.make_ad_hoc_scenario(
        load(phases="put,get", fail_if=["read.p99 > 1s", "errors > 1%", "create.p50 > 2s"])
    )
    (put, first), (get, second) = ad_hoc.split_into_phases(scenario, parse_phases("put,get"))
    assert (put.name, get.name) == ("put", "get")
    assert [each.weights for each in first.size_classes] == [{"create": 1.0}]
    assert [each.weights for each in second.size_classes] == [{"read": 1.0}]
    assert (first.fail_if, second.fail_if) == (
        ("errors > 1%", "create.p50 > 2s"),
        ("read.p99 > 1s", "errors > 1%"),
    )
    assert first.name == second.name == scenario.name


def test_groups_of_users_have_operations_of_their_own(golden_words: GoldenWords) -> None:
    scenario = check_scenario_text(
        "{name: a, run_seconds: 5, sizes: [{name: s, size: 4kB}], initial_files: {s: 9},"
        " groups: [{name: g, users: 1, profile: {read: 1}}]}",
        "file",
    )
    with golden_words.raises(UsageError):
        [*ad_hoc.split_into_phases(scenario, parse_phases("get"))]


def test_a_phase_of_an_operation_that_the_scenario_does_not_prepare() -> None:
    scenario = ad_hoc.make_ad_hoc_scenario(load("get"))
    with pytest.raises(UsageError, match="--phases: sequence needs"):
        [*ad_hoc.split_into_phases(scenario, parse_phases("sequence"))]
