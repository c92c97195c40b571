"""The scenarios that ship with ssbench."""

from __future__ import annotations

import logging
import math
from collections import Counter
from dataclasses import replace

import pytest

from ssbench.document.figures import count_needed_results
from ssbench.scenario.chosen_objects import make_population
from ssbench.scenario.conditions import parse_condition
from ssbench.scenario.draws import Workload
from ssbench.scenario.model import Scenario, make_owner
from ssbench.scenario.scenario_files import list_shipped_scenarios
from ssbench.scenario.scenario_reading import read_scenario

SIZES = {"4kB": 4096, "1MB": 10**6, "100MB": 10**8, "5GB": 5 * 10**9}
USES = {"web", "backup", "media", "archive", "listing", "metadata", "tenants", "versions", "existing"}
APPLICATIONS = {"glance", "registry", "nextcloud", "loki", "tempo", "mimir"}
APPLICATIONS |= {"restic_backup", "restic_restore", "rclone_copy", "rclone_sync", "rclone_down"}
APPLICATIONS |= {"swift_upload", "swift_segments", "swift_download"}
MANY = {
    f"{size}_{count}_{kind}"
    for size, count in (("4kB", "10M"), ("1MB", "1M"))
    for kind in ("put", "get", "delete", "mixed")
}
#: The scenarios of ssbench 0.3.9: profile, operations or seconds, users; of each class the ends of the sizes,
#: the initial objects, and a profile of its own.
OLD = {
    "very_small": (
        "Small test scenario",
        ([10, 75, 15, 0], 500, 4),
        ((0, 0, 300, [60, 15, 20, 5]), (4096, 8192, 100, [10, 80, 9, 1]), (20_000, 40_000, 10)),
    ),
    "zero_byte_upload": ("Zero-byte upload test", ([1, 0, 0, 0], 500, 1), ((0, 0, 1),)),
    "small_test": (
        "Small test scenario",
        ([3, 1, 1, 1], 20, 2),
        ((1000, 16_000, 10), (100_000, 200_000, 10), (1_000_000, 2_000_000, 2)),
    ),
    "medium_test": (
        "Medium test scenario",
        ([4, 3, 1, 1], 100, 5),
        ((1000, 16_000, 20), (100_000, 200_000, 20), (1_000_000, 2_000_000, 2)),
    ),
    "large_test": (
        "Large test scenario",
        ([4, 3, 2, 2], 1000, 5),
        (
            (1000, 16_000, 60),
            (100_000, 200_000, 40),
            (1_000_000, 2_000_000, 15),
            (50_000_000, 100_000_000, 10),
        ),
    ),
    "huge_test": (
        "Large test scenario",
        ([4, 4, 2, 2], 10_000, 24),
        (
            (1000, 16_000, 128),
            (100_000, 200_000, 64),
            (1_000_000, 2_000_000, 64),
            (50_000_000, 100_000_000, 32),
            (100_000_000, 1_000_000_000, 32),
        ),
    ),
    # Its file had no sizes.
    "demo_test": (
        "Demo test scenario",
        ([4, 15, 2, 2], 10_000, 4),
        ((1000, 16_000, 100), (100_000, 200_000, 100), (1_000_000, 2_000_000, 10)),
    ),
}
EC_SIZES = {
    "miniscule": (10, 2048, 1000, 5000),
    "tiny": (409_600, 819_200, 1000, 2000),
    "small": (1_048_576, 5_242_880, 1000, 1500),
    "medium": (5_242_880, 26_214_400, 100, 500),
    "large": (104_857_600, 262_144_000, 15, 100),
    "huge": (1_073_741_824, 5_368_709_120, 5, 0),
}
EC_KINDS = {
    "": ("mixed", [10, 75, 15, 0], 1200),
    "_read_only": ("readonly", [0, 100, 0, 0], 5),
    "_write_only": ("writeonly", [100, 0, 0, 0], 15),
}
EC = {f"ec_{size}_test{kind}" for size in EC_SIZES for kind in EC_KINDS}
NAMES = {"smoke", "small", "medium", "large", "huge", "zero_byte_write", "three_classes", *OLD, *EC}
NAMES |= {f"{size}_{kind}" for size in SIZES for kind in ("read", "write", "mixed")}
NAMES |= USES | APPLICATIONS | MANY

#: Initial objects of a class, at most, where a test draws from them.
FEW = 300


def test_all_are_there():
    assert {name for name, _ in list_shipped_scenarios()} == NAMES


@pytest.mark.parametrize("name", sorted(NAMES))
def test_each_loads_and_says_what_it_is_for(name, caplog):
    with caplog.at_level(logging.WARNING):
        scenario = read_scenario(name)
    assert not caplog.records
    assert scenario.operation_count or scenario.run_seconds
    assert len(dict(list_shipped_scenarios())[name]) > 20
    for size_class in scenario.size_classes:
        assert size_class.size_max <= 5 * 2**30  # the most that Swift takes in one object
    for size_class in (each for part in scenario.parts for each in part.size_classes):
        weights = size_class.weights
        if name.endswith("_delete"):
            assert scenario.operation_count == size_class.initial_files
        else:
            assert weights.get("delete", 0) <= weights.get("create", 0)  # or the objects run out


def few(scenario: Scenario) -> Scenario:
    """Return a scenario with few initial objects, and the shares that it has."""
    return replace(
        scenario,
        size_classes=tuple(
            replace(each, initial_files=min(each.initial_files, FEW), weight=float(each.share))
            for each in scenario.size_classes
        ),
    )


#: Some of 2013 have two objects of a class, which others may be using.
LASTING = NAMES - {name for name in MANY if name.endswith("_delete")} - OLD.keys()


@pytest.mark.parametrize("name", sorted(LASTING))
def test_scenarios_do_not_run_out_of_objects_and_have_operations_for_all(name: str) -> None:
    for part in map(few, read_scenario(name).parts):
        workload = Workload(part, 1)
        population = make_population(part, workload)
        for size_class, _, number, size in workload.initial_objects():
            population.add_initial(size_class, number, size)
        drawn: Counter[str] = Counter()
        users = min(part.user_count, 20)
        table = part.operation_table
        for _ in range(8000 // users):
            jobs = population.next_jobs(users)
            drawn.update(table[job[0]].name for job in jobs)
            for job in jobs:
                population.finished(*job[:4], ok=True)
        assert not population.not_sendable
        used = [each for each in part.size_classes if each.share]
        asked = {name for each in used for name, weight in each.weights.items() if weight}
        assert drawn.keys() == asked


@pytest.mark.parametrize("name", sorted(APPLICATIONS))
def test_applications_have_a_container_and_limits_that_so_many_operations_can_decide(name: str) -> None:
    scenario = read_scenario(name)
    assert {part.container_count for part in scenario.parts} == {1}
    assert scenario.object_names is not None
    conditions = [
        parse_condition(text, scenario.defined_operations, grouped=True) for text in scenario.fail_if
    ]
    assert len(conditions) > 2
    for condition in conditions:
        part = next((each for each in scenario.parts if f"({condition.group})" in each.name), scenario)
        # Of a closed loop with pauses at least one operation of each user in a second.
        count = part.operation_count or (part.rate or part.user_count) * (part.run_seconds or 0)
        found = [(each.share, each.weights, each.name) for each in part.size_classes]
        share = sum(
            of_class * weights.get(condition.operation or "", 0) / sum(weights.values())
            for of_class, weights, own in found
            if condition.size_class in {None, own}
        ) / sum(of_class for of_class, *_ in found)
        rank = condition.rank
        if rank is not None and rank < 100:
            assert count * share > 1.3 * count_needed_results(rank), condition.text


def test_many_objects_are_prepared_once_for_reads_mixed_load_and_deletes() -> None:
    for size, count in (("4kB", "10M"), ("1MB", "1M")):
        prepared = [read_scenario(f"{size}_{count}_{kind}") for kind in ("get", "delete", "mixed")]
        assert len({make_owner(each, each.size_classes[0]) for each in prepared}) == 1
        assert len({(each.container_base, each.container_count) for each in prepared}) == 1
        assert {each.size_classes[0].initial_files for each in prepared} == {
            10_000_000 if size == "4kB" else 1_000_000
        }


@pytest.mark.parametrize(("kind", "operations"), [("read", {"read"}), ("write", {"create"}), ("mixed", None)])
@pytest.mark.parametrize("size", SIZES)
def test_one_size(size, kind, operations):
    (size_class,) = read_scenario(f"{size}_{kind}").size_classes
    assert size_class.size_min == size_class.size_max == SIZES[size]
    names = ("create", "read", "update", "delete")
    used = {name for name, weight in zip(names, size_class.crud_profile, strict=True) if weight}
    assert used == (operations or set(names))


@pytest.mark.parametrize("name", sorted(OLD))
def test_scenarios_of_0_3_9_have_their_figures(name: str, tmp_path, monkeypatch) -> None:
    title, (profile, operations, users), classes = OLD[name]
    monkeypatch.chdir(tmp_path)
    found = read_scenario(f"scenarios/{name}.scenario")  # as in scripts
    assert found == read_scenario(name)
    assert (found.name, found.operation_count, found.user_count) == (title, operations, users)
    assert (found.container_base, found.container_count) == ("ssbench", 100)
    assert [
        (each.size_min, each.size_max, each.initial_files, list(each.crud_profile))
        for each in found.size_classes
    ] == [(least, most, files, *(own or [profile])) for least, most, files, *own in classes]


@pytest.mark.parametrize("kind", EC_KINDS)
@pytest.mark.parametrize("size", EC_SIZES)
def test_scenarios_of_0_3_9_for_erasure_coding(size: str, kind: str, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    least, most, files, operations = EC_SIZES[size]
    base, profile, seconds = EC_KINDS[kind]
    found = read_scenario(f"scenarios/ec_test_scenarios/ec_{size}_test{kind}.scenario")
    assert found == read_scenario(f"ec_{size}_test{kind}")
    (size_class,) = found.size_classes
    assert (size_class.name, size_class.size_min, size_class.size_max) == ("objects", least, most)
    assert (size_class.initial_files, list(size_class.crud_profile)) == (files, profile)
    assert (found.operation_count or 0, found.run_seconds or 0) == (operations, 0 if operations else seconds)
    assert found.container_base == f"ssbench-ectest-{size}-{base}"
    assert (found.container_count, found.user_count) == (100, 4)


def test_smoke():
    scenario = read_scenario("smoke")
    assert [(each.size_min, each.size_max) for each in scenario.size_classes] == [
        (0, 0),
        (4096, 8192),
        (20000, 40000),
    ]
    assert all(
        each.crud_profile[1] >= 75 / 100 * math.fsum(each.crud_profile) for each in scenario.size_classes
    )
    puts = sum(each.initial_files for each in scenario.size_classes) + scenario.container_count
    assert puts + scenario.operation_count < 1000


def test_zero_byte_write():
    (size_class,) = read_scenario("zero_byte_write").size_classes
    assert (size_class.size_max, size_class.crud_profile[1:]) == (0, (0.0, 0.0, 0.0))
