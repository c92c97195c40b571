"""Objects that are there already: sorted into size classes, read, and not written."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ssbench.base.errors import UsageError
from ssbench.scenario.chosen_objects import make_population
from ssbench.scenario.draws import Workload
from ssbench.scenario.existing_objects import ExistingObjects, may_write, refuse_writes
from ssbench.scenario.model import Scenario, SizeClass
from ssbench.scenario.operations import OPERATIONS, READ
from ssbench.scenario.population import Population

READS = {"read": 3.0, "list": 1.0}
SMALL = SizeClass("small", 1, 10, 3, READS)
LARGE = SizeClass("large", 11, 1000, 1, {"read": 1.0, "range": 1.0})
SCENARIO = Scenario("s", (SMALL, LARGE), 4, 100, delete_after=60, policy="gold")


def test_objects_are_sorted_into_size_classes_and_keep_their_names() -> None:
    found = ExistingObjects(SCENARIO)
    for name, size in (("a", 5), ("ä/ö", 500), ("b", 10), ("none fits", 5000), ("empty", 0), ("c", 11)):
        found.add("one" if size < 100 else "two", name, size)
    assert (len(found), found.skipped, found.containers) == (4, 2, ["one", "two"])
    scenario = found.scenario()
    small, large = scenario.size_classes
    assert (small.size_min, small.size_max, small.initial_files, small.share) == (5, 10, 2, 3)
    assert (large.size_min, large.size_max, large.initial_files, large.share) == (11, 500, 2, 1)
    assert (scenario.container_count, scenario.delete_after, scenario.policy) == (2, None, None)

    state = make_population(scenario, Workload(scenario, 1))
    found.fill(state)
    jobs = state.next_jobs(4)
    jobs += state.next_jobs(60)
    paths = found.paths(jobs)
    sizes = {path: job[4] for path, job in zip(paths, jobs, strict=True) if job[0] == READ.code}
    assert sizes == {"one/a": 5, "one/b": 10, "two/ä/ö": 500, "one/c": 11}
    listed = OPERATIONS.named("list").code
    assert {path for path, job in zip(paths, jobs, strict=True) if job[0] == listed} <= {"one/", "two/"}
    assert not list(state.leftovers())


def test_one_size_class_has_objects_of_any_size_even_unknown_ones() -> None:
    found = ExistingObjects(replace(SCENARIO, size_classes=(SMALL,)))
    found.add("c", "huge", 10**12)
    found.add("c", "unknown", None)
    (size_class,) = found.scenario().size_classes
    assert (size_class.size_max, size_class.initial_files) == (10**12, 2)
    scenario = found.scenario()
    state: Population = make_population(scenario, Workload(scenario, 1))
    found.fill(state)
    sizes = {job[3]: job[4] for job in state.next_jobs(50) if job[0] == READ.code}
    assert sizes == {1: 10**12, 2: 0}
    with pytest.raises(ValueError, match="not known"):
        ExistingObjects(SCENARIO).add("c", "unknown", None)


def test_a_class_without_objects_is_left_out() -> None:
    found = ExistingObjects(SCENARIO)
    found.add("c", "a", 5)
    assert found.empty_classes() == ["large"]
    scenario = found.scenario()
    state = make_population(scenario, Workload(scenario, 1))
    found.fill(state)
    assert {job[1] for job in state.next_jobs(200)} == {0}
    assert not state.not_sendable


def test_what_writes_is_refused_by_name() -> None:
    wrong = replace(SMALL, crud_profile={"read": 1.0, "post": 1.0, "symlink": 1.0, "slo": 0.0})
    with pytest.raises(UsageError, match=r"write: post, symlink \(what it may have: read, .*conditional"):
        refuse_writes(replace(SCENARIO, size_classes=(wrong, LARGE)))
    refuse_writes(SCENARIO)
    # A row that is added later is for this list or the other one; reads need one request that is safe.
    safe = {"read", "head", "head_container", "head_account", "list", "list_account", "conditional", "range"}
    assert safe <= {row.name for row in OPERATIONS.drawn if not may_write(row)}
    for name in ("create", "update", "delete", "post", "copy", "symlink", "slo", "bulk", "create_only"):
        assert may_write(OPERATIONS.named(name))
