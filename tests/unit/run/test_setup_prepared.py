"""Initial objects that are prepared: their sizes, and what is uploaded where some of them are there."""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext
from dataclasses import replace

import pytest
from golden_words import GoldenWords

from ssbench.base.errors import ClusterError, UsageError
from ssbench.run.bars import TransferAmount
from ssbench.run.bench import Bench
from ssbench.run.bench_options import BenchOptions, ExistingIn, RunOptions, RunSide
from ssbench.run.group_run import GroupRun, make_run_parameters
from ssbench.run.setup import CHECKED_OBJECTS, FoundObjects, refuse_other_objects
from ssbench.scenario.draws import Workload
from ssbench.scenario.master_shares import MasterShare
from ssbench.scenario.model import Scenario, SizeClass, UserGroup, make_upload_scenario
from ssbench.scenario.names import object_name, parse_object_name
from ssbench.scenario.operations import CREATE, UPDATE, UPLOAD_IF_MISSING, OperationSettings
from ssbench.scenario.structured_values import ConnectionSettings

A = SizeClass("a", 10, 10**6, 5000, (0, 1, 0, 0))
B = SizeClass("b_1", 10, 10**6, 20, (0, 1, 0, 0))
SCENARIO = Scenario("s", (A, B), 4, 10, container_count=3)


def objects(scenario: Scenario, seed: int, *, prepared: bool = True) -> dict[tuple[int, int], int]:
    initial = Workload(scenario, seed, prepared=prepared).initial_objects()
    return {(index, number): size for index, _, number, size in initial}


def test_sizes_of_prepared_objects_are_the_same_for_all_seeds_and_numbers_of_objects() -> None:
    found = objects(SCENARIO, 1)
    assert found == objects(SCENARIO, 2)
    more = replace(SCENARIO, size_classes=(replace(A, initial_files=9000), B), container_count=7)
    assert objects(more, 3).items() > found.items()
    assert objects(SCENARIO, 1, prepared=False) != objects(SCENARIO, 2, prepared=False)
    assert len(set(objects(SCENARIO, 1).values())) > 4000
    first = [found[0, number] for number in range(1, 4)]
    # They stay: objects that an earlier version prepared are those of a later one.
    assert first == GOLDEN


GOLDEN = [364673, 123095, 401415]


def test_what_is_there_is_looked_at_and_the_rest_is_uploaded() -> None:
    part = GroupRun(SCENARIO, 1, None, prepared=True)
    initial = list(part.workload.initial_objects())
    found = FoundObjects(part)
    names = {0: "a", 1: "b_1"}
    for index, container, number, size in initial:
        if number == 7:
            found.add(container, object_name(names[index], number), size + 1)
        elif number != 8:
            found.add(container + (number == 9), object_name(names[index], number), size)
    for stranger in ("a_0000001", "a_5001", "a_005001", "a", "other_000001", "_000001", "a_000000"):
        found.add(0, stranger, 5)
    tasks = list(found.tasks())
    assert [task[1:] for task in tasks] == initial
    uploaded = {(task[1], task[3]) for task in tasks if task[0] == CREATE.code}
    assert uploaded == {(index, number) for index in (0, 1) for number in (7, 8, 9)}
    assert {task[0] for task in tasks} == {CREATE.code, UPLOAD_IF_MISSING.code}
    assert found.replaced == 2
    # Those that a run with other containers left elsewhere stay beside the ones in their places.
    assert found.others == 7 + 2


def test_objects_in_segments_of_another_size_are_replaced_with_their_segments() -> None:
    static = SizeClass("a", 10, 100, 9, (0, 1, 0, 0), segment_size=5)
    dynamic = SizeClass("b", 50, 50, 9, (0, 1, 0, 0), segment_size=5, segments="dynamic")
    part = GroupRun(Scenario("s", (static, dynamic), 4, 10), 1, None, prepared=True)
    found = FoundObjects(part)
    for index, container, number, size in part.workload.initial_objects():
        # Listings say that an object whose segments are dynamic has no bytes.
        listed = {1: size, 2: size + 1 if not index else 0}.get(number)
        if listed is not None:
            found.add(container, object_name("ab"[index], number), listed)
    codes = {(task[1], task[3]): task[0] for task in found.tasks()}
    assert [codes[0, number] for number in (1, 2, 3)] == [UPLOAD_IF_MISSING.code, UPDATE.code, CREATE.code]
    assert [codes[1, number] for number in (2, 3)] == [UPLOAD_IF_MISSING.code, CREATE.code]


def test_what_a_scenario_says_of_creates_is_not_for_initial_objects() -> None:
    """Those that are missing are uploaded by creates, all of which had new connections, and might expire."""
    create = OperationSettings("create", (("X-Delete-After", "60"),), {"etag": True})
    group = UserGroup("web", (A, B), 4, connections=ConnectionSettings(1.0))
    scenario = replace(
        SCENARIO, connections=ConnectionSettings(0.5), operations=(create,), delete_after=9, groups=(group,)
    )
    for part in make_upload_scenario(scenario).parts:
        parameters = make_run_parameters(1, None, part, RunOptions(), [])
        sent = parameters.scenario
        assert (sent.connections, sent.operations, sent.delete_after) == (None, (), None)
        assert [each.initial_files for each in part.size_classes] == [5000, 20]


@pytest.mark.parametrize(
    "options",
    [
        RunOptions(part=MasterShare(1, 2)),
        RunOptions(sides=(RunSide("a", policy="a"), RunSide("b", policy="b"))),
        RunOptions(existing=ExistingIn(("c",))),
        RunOptions(prepared=True),
    ],
)
def test_options_that_prepare_would_pass_over_are_refused(
    options: RunOptions, golden_words: GoldenWords
) -> None:
    with golden_words.raises(UsageError):
        Bench(BenchOptions(workers=1, local_swift=True)).prepare(SCENARIO, options)


def test_the_number_in_a_name() -> None:
    assert parse_object_name(object_name("a_b", 12)) == ("a_b", 12)
    assert parse_object_name(object_name("a", 1234567)) == ("a", 1234567)
    for name in ("a_0000012", "a_12", "a", "", "_000001"):
        assert parse_object_name(name) == ("", 0)


def test_how_much_is_left_counts_bytes_and_requests() -> None:
    amount = TransferAmount(1000.0, 10.0)
    assert amount.left(0, 100) == 1
    amount.moved = 500
    assert amount.left(50, 100) == 0.5
    amount.bytes_ -= 500  # what was left was there already
    assert amount.left(100, 100) == 0
    assert TransferAmount(0.0, 0.0).left(0, 0) == 0
    assert amount.text(2.0) == "500 bytes, 250 bytes/s"


def test_what_is_trusted_is_there_but_for_a_sample() -> None:
    count = 20 * CHECKED_OBJECTS
    part = GroupRun(Scenario("s", (replace(A, initial_files=count),), 4, 10), 1, None, prepared=True)
    found = FoundObjects(part, trusted=True)
    initial = list(part.workload.initial_objects())
    for _, container, number, size in initial[: count // 2]:
        found.add(container, object_name("a", number), size)
    for number in (count + 1, count + 2):
        found.add(0, object_name("a", number), 10)
    assert found.others == 2
    codes = Counter(task[0] for task in found.tasks())
    # Those that are missing are uploaded; every tenth of the others is looked at.
    assert codes == {CREATE.code: count // 2, UPLOAD_IF_MISSING.code: CHECKED_OBJECTS}
    assert found.unseen == found.guess_unseen() == count // 2 - CHECKED_OBJECTS
    assert found.uploads_began is not None


@pytest.mark.parametrize(
    ("others", "total", "is_refused"), [(100, 1, False), (101, 1000, True), (101, 1010, False)]
)
def test_a_fill_accepts_few_other_objects(others: int, total: int, is_refused: bool) -> None:
    with pytest.raises(ClusterError, match="other objects") if is_refused else nullcontext():
        refuse_other_objects(others, total)
