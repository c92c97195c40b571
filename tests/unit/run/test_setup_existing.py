"""Objects that exist already: which of them a run reads, and how its workers know their names."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from ssbench.base.errors import ClusterError, UsageError
from ssbench.run.options import ExistingIn, RunOptions
from ssbench.run.setup import _read_names, find_existing_objects
from ssbench.run.tokens import TokenSource
from ssbench.scenario.chosen_objects import make_population
from ssbench.scenario.draws import Workload
from ssbench.scenario.existing_objects import ExistingObjects, may_write, refuse_writes
from ssbench.scenario.model import Scenario, SizeClass, UserGroup
from ssbench.scenario.operations import OPERATIONS, READ
from ssbench.scenario.population import Population
from ssbench.store.stores import STORE

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


def test_a_group_of_users_without_any_object_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its operations could be for none of its size classes."""
    groups = tuple(
        UserGroup(name, tuple(replace(each, weight=float(each is own)) for each in (SMALL, LARGE)), 1)
        for name, own in (("web", SMALL), ("backup", LARGE))
    )
    scenario = replace(SCENARIO, groups=groups)
    listed = [("a", 5), ("b", 7)]
    monkeypatch.setattr(STORE, "objects", lambda *_arguments, **_options: listed)
    tokens = cast(TokenSource, SimpleNamespace(sessions=[None], renewing=lambda _number: None))
    with pytest.raises(ClusterError, match="no object for the group backup in 'c'"):
        find_existing_objects(scenario, RunOptions(), ExistingIn(("c",)), tokens)
    listed.append(("c", 500))
    assert len(find_existing_objects(scenario, RunOptions(), ExistingIn(("c",)), tokens)) == 3


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


def test_names_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "names"
    path.write_bytes("photos/a/b.jpg\n\n/photos/#1 ä \r\n".encode())
    assert list(_read_names(path)) == [("photos", "a/b.jpg"), ("photos", "#1 ä ")]
    path.write_bytes(b"photos/a\nphotos\n")
    with pytest.raises(UsageError, match=r":2: expected CONTAINER/OBJECT.*'photos'"):
        list(_read_names(path))
    path.write_bytes(b"photos/a\nphotos/\xff\n")
    with pytest.raises(UsageError, match=r":2: expected UTF-8"):
        list(_read_names(path))
    with pytest.raises(UsageError, match="cannot be read"):
        list(_read_names(tmp_path / "missing"))
    path.write_bytes(b"a/ok\n../x\n")
    with pytest.raises(UsageError, match=":2: expected CONTAINER/OBJECT"):
        list(_read_names(path))
    path.write_bytes(b"\n\n")
    with pytest.raises(UsageError, match="expected CONTAINER/OBJECT on each line, and there is none"):
        list(_read_names(path))


@pytest.mark.parametrize("name", ["", "a/b", ".", "..", "/", "x" * 257, "ü" * 129, "\udcff"])
def test_what_no_container_can_be_called_is_refused(name: str) -> None:
    # The listing of the container "" would be that of the account: containers, taken for objects.
    with pytest.raises(UsageError, match=r"existing: .* cannot be the name of a container"):
        ExistingIn(("photos", name))
    assert ExistingIn(("ü" * 128, "...", ".a")).containers
