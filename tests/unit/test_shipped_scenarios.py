"""The scenarios that ship with ssbench."""

from __future__ import annotations

import logging
import math
from collections import Counter

import pytest

from ssbench.operations import OPERATIONS
from ssbench.scenario.reading import load
from ssbench.scenario.shipped import shipped
from ssbench.workload.chosen import population_of
from ssbench.workload.draws import Workload

SIZES = {"4kB": 4096, "1MB": 10**6, "100MB": 10**8, "5GB": 5 * 10**9}
USES = {"web", "backup", "media", "listing", "metadata", "tenants", "existing"}
NAMES = {"very_small", "small", "medium", "large", "huge", "zero_byte_upload", *USES} | {
    f"{size}_{kind}" for size in SIZES for kind in ("read", "write", "mixed")
}


def test_all_are_there():
    assert {name for name, _ in shipped()} == NAMES


@pytest.mark.parametrize("name", sorted(NAMES))
def test_each_loads_and_says_what_it_is_for(name, caplog):
    with caplog.at_level(logging.WARNING):
        scenario = load(name)
    assert not caplog.records
    assert scenario.operation_count or scenario.run_seconds
    assert len(dict(shipped())[name]) > 20
    for size_class in scenario.size_classes:
        assert size_class.size_max <= 5 * 2**30  # the most that Swift takes in one object
        weights = size_class.weights
        assert weights.get("delete", 0) <= weights.get("create", 0)  # or the objects run out


@pytest.mark.parametrize("name", sorted(USES))
def test_scenarios_of_uses_do_not_run_out_of_objects_and_have_operations_for_all(name: str) -> None:
    for part in load(name).parts:
        workload = Workload(part, 1)
        population = population_of(part, workload)
        for size_class, _, number, size in workload.initial_objects():
            population.add_initial(size_class, number, size)
        drawn: Counter[str] = Counter()
        for _ in range(500):
            jobs = population.next_jobs(part.user_count)
            drawn.update(OPERATIONS[job[0]].name for job in jobs)
            for job in jobs:
                population.finished(*job[:4], ok=True)
        assert not population.not_sendable
        asked = {name for each in part.size_classes for name, weight in each.weights.items() if weight}
        assert drawn.keys() == asked


@pytest.mark.parametrize(("kind", "operations"), [("read", {"read"}), ("write", {"create"}), ("mixed", None)])
@pytest.mark.parametrize("size", SIZES)
def test_one_size(size, kind, operations):
    (size_class,) = load(f"{size}_{kind}").size_classes
    assert size_class.size_min == size_class.size_max == SIZES[size]
    names = ("create", "read", "update", "delete")
    used = {name for name, weight in zip(names, size_class.crud_profile, strict=True) if weight}
    assert used == (operations or set(names))


def test_very_small():
    scenario = load("very_small")
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


def test_zero_byte_upload():
    (size_class,) = load("zero_byte_upload").size_classes
    assert (size_class.size_max, size_class.crud_profile[1:]) == (0, (0.0, 0.0, 0.0))
