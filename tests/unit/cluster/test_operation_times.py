"""Which requests are compared with which: kinds, and units of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from joined_runs import joined_run, object_lines, servers, successes

from ssbench.cluster.joined_run import NO_INDEX, OBJECT, OTHER, Device, JoinedLines, JoinedRun
from ssbench.cluster.operation_times import (
    ComparedUnits,
    Completeness,
    _number_rows,
    count_completeness,
    group_by_kind,
    lacks_log_of_writes,
    number_strata,
)
from ssbench.cluster.rank_tests import IntegerArray, Units, divide_in_slices
from ssbench.scenario.operations import CREATE, OPERATIONS, READ, RequestTarget

DISKS = [Device(f"n{number}", "object", f"d{number}") for number in range(4)]


def run(code: list[int], subject: list[int], size: int = 4096, width: int = 1) -> JoinedRun:
    count = len(code)
    every = np.arange(count)
    operations = successes(
        np.array(code), np.full(count, size, np.int64), np.linspace(0.1, 0.2, count), np.array(subject)
    )
    device = (every[:, None] + np.arange(width)).ravel() % 4
    lines = object_lines(
        DISKS,
        np.repeat(every, width),
        device,
        np.zeros(count * width, np.int64),
        np.full(count * width, 0.01),
    )
    return joined_run(operations, lines, DISKS, servers(DISKS), ["p", "q"], every % 2, np.full(count, 0.05))


def sets(numbers: IntegerArray) -> list[list[int]]:
    """Return which places have the same number."""
    return [np.flatnonzero(numbers == each).tolist() for each in dict.fromkeys(numbers.tolist())]


def test_equal_rows_have_equal_numbers_and_others_not() -> None:
    one, other = np.array([5, 5, 1, 1, 9, 5]), np.array([0, 3, 0, 3, 3, 0])
    assert sets(_number_rows(one, other)) == [[0, 5], [1], [2], [3], [4]]
    random = np.random.default_rng(1)
    columns = random.integers(0, 7, (3, 300))
    found = _number_rows(*columns)
    rows = [tuple(each) for each in columns.T.tolist()]
    assert len(set(found.tolist())) == len(set(rows))
    assert len({*zip(found.tolist(), rows, strict=True)}) == len(set(rows))


def test_an_object_that_is_read_often_is_a_kind_of_its_own_and_others_are_not() -> None:
    hot, cold = [0] * 8 + [1] * 9 + [2] * 10, [*range(3, 20), *[20] * 7]
    joined = run([READ.code] * (len(hot) + len(cold)), [*hot, *cold])
    found = group_by_kind(joined, np.ones(len(hot) + len(cold), np.bool_), by_proxy=False)
    assert sets(found.units.stratum) == [
        [*range(8)],
        [*range(8, 17)],
        [*range(17, 27)],
        [*range(27, 27 + len(cold))],
    ]
    own = number_strata((joined.operations.code,), joined.operations.size, joined.operations.subject)
    assert sets(own) == sets(found.units.stratum)


def test_writes_of_one_object_are_one_unit_and_each_read_is_one() -> None:
    joined = run([CREATE.code, CREATE.code, READ.code, READ.code, CREATE.code], [7, 7, 7, 7, 8])
    found = group_by_kind(joined, np.array([True, True, True, True, False]), by_proxy=False)
    assert sets(found.unit_of) == [[0, 1], [2], [3], [4]]
    assert found.unit_of[4] == -1
    latency = joined.operations.latency
    by_unit = dict(zip(found.first.tolist(), found.units.seconds.tolist(), strict=True))
    assert by_unit == pytest.approx({0: (latency[0] + latency[1]) / 2, 2: latency[2], 3: latency[3]})
    assert found.units.group[found.units.stratum].tolist() == [
        int(joined.operations.code[place] == CREATE.code) for place in found.first.tolist()
    ]
    nothing = group_by_kind(joined, np.zeros(5, np.bool_), by_proxy=True)
    assert (len(nothing.units), nothing.unit_of.tolist()) == (0, [-1] * 5)


def test_requests_of_two_proxies_are_of_two_kinds_where_that_is_asked_for() -> None:
    joined = run([READ.code] * 20, [*range(20)])
    usable = np.ones(20, np.bool_)
    assert sets(group_by_kind(joined, usable, by_proxy=True).units.stratum) == [
        [*range(0, 20, 2)],
        [*range(1, 20, 2)],
    ]
    assert sets(group_by_kind(joined, usable, by_proxy=False).units.stratum) == [[*range(20)]]


def test_pairs_are_of_units_and_of_who_is_known() -> None:
    unit_of = np.array([0, NO_INDEX, 1, 0], np.int32)
    none = np.zeros(0, np.int64)
    compared = ComparedUnits(Units(np.zeros(2), np.zeros(2, np.int64), np.zeros(1, np.int64)), unit_of, none)
    found = compared.pairs(np.array([3, 0, 0, 1, 2, 2, 2]), np.array([0, 2, 0, 1, NO_INDEX, 2, 2]), 3)
    assert [*zip(found.unit.tolist(), found.candidate.tolist(), strict=True)] == [(0, 0), (0, 2), (1, 2)]
    assert found.count == 3


@pytest.mark.parametrize(
    ("reads", "writes", "is_lacking"),
    [(2, 0, False), (3, 0, True), (3, 2, True), (3, 3, False), (3, 50, False), (100, 99, True)],
)
def test_a_log_is_lacking_of_which_reads_have_no_line_more_often_than_writes_lack_one(
    reads: int, writes: int, is_lacking: bool
) -> None:
    """Of a hundred reads and of a hundred writes with three replicas so many lack a line."""
    joined = run([READ.code] * 101 + [CREATE.code] * 101, [*range(202)])
    place = np.arange(202) % 101
    is_read = joined.operations.code == READ.code
    found = np.where(is_read, place >= reads, 3 - (place < writes))
    complete = Completeness(found, np.where(is_read, 1, 3), np.zeros(202, np.bool_))
    usable = place < 100
    assert lacks_log_of_writes(joined, complete, usable) is is_lacking
    for some in (is_read, ~is_read):  # one of both tells nothing of the other
        assert not lacks_log_of_writes(joined, complete, usable & some)


def test_slices_have_as_many_units_each() -> None:
    assert divide_in_slices(np.array([30, 10, 20, 40]), 2, 1).tolist() == [1, 0, 0, 1]
    assert np.bincount(divide_in_slices(np.arange(1200))).tolist() == [60] * 20
    assert np.bincount(divide_in_slices(np.arange(100))).tolist() == [20] * 5
    assert divide_in_slices(np.arange(39)).tolist() == [0] * 39


def test_an_operation_is_complete_with_as_many_lines_as_are_usual() -> None:
    joined = run([CREATE.code] * 40, [*range(40)], width=3)
    lines = joined.lines
    lines.status[:2] = [503, 499]  # two of the three replicas of the first
    found = count_completeness(joined)
    assert found.expected.tolist() == [3] * 40
    assert found.found.tolist() == [1] + [3] * 39
    assert found.complete.tolist() == [False] + [True] * 39
    assert not found.concurrent.any()


@pytest.mark.parametrize(("rare", "expected"), [(1, 3), (2, 4), (4, 4)])
def test_a_write_is_complete_with_the_highest_number_of_lines_that_is_not_rare(
    rare: int, expected: int
) -> None:
    joined = run([CREATE.code] * 40, [*range(40)], width=4)
    one_more = joined.lines.operation < rare
    kept = one_more | (np.arange(160) % 4 < 3)
    columns = {name: getattr(joined.lines, name)[kept] for name in JoinedLines.__slots__}
    found = count_completeness(replace(joined, lines=JoinedLines(**columns)))
    assert found.found.tolist() == [4] * rare + [3] * (40 - rare)
    assert found.expected.tolist() == [expected] * 40


@pytest.mark.parametrize(
    ("target", "found"),
    [(RequestTarget.OBJECT, 1), (RequestTarget.CONTAINER, 2), (RequestTarget.ACCOUNT, 3)],
)
def test_an_operation_is_done_by_the_servers_that_it_is_for(target: RequestTarget, found: int) -> None:
    """Each operation has lines of an object server, of two container servers and of three account servers."""
    kinds = ["object", *["container"] * 2, *["account"] * 3]
    devices = [Device(f"n{place}", server, f"x{place}") for place, server in enumerate(kinds)]
    code = next(each.code for each in OPERATIONS if each.on is target)
    every, place = np.arange(9), np.tile(np.arange(6), 9)
    operations = successes(np.full(9, code), np.full(9, 4096, np.int64), np.full(9, 0.1), every)
    lines = object_lines(devices, np.repeat(every, 6), place, 0 * place, np.full(54, 0.01))
    lines.of[:] = np.where(place == 0, OBJECT, OTHER)
    joined = joined_run(operations, lines, devices, servers(devices), ["p"], 0 * every, np.full(9, 0.05))
    complete = count_completeness(joined)
    assert complete.found.tolist() == complete.expected.tolist() == [found] * 9
    lines.status[place == 5] = 503
    lines.status[place == 4] = 499
    answered = {RequestTarget.ACCOUNT: 1}.get(target, found)
    assert count_completeness(joined).found.tolist() == [answered] * 9


def test_reads_that_several_servers_answered_where_one_does_are_concurrent() -> None:
    joined = run([READ.code] * 10, [*range(10)])
    joined.lines.operation[9] = 0
    found = count_completeness(joined)
    assert found.expected.tolist() == [1] * 10
    assert found.concurrent.tolist() == [True] + [False] * 9
    assert found.complete.tolist() == [True] * 9 + [False]


@pytest.mark.parametrize(("each", "steps"), [(8, 4), (4, 4), (2, 2), (1, 1)])
def test_sizes_are_distinguished_as_finely_as_leaves_enough_of_a_kind(each: int, steps: int) -> None:
    """Of so many requests in each eighth of an octave, eight make a kind."""
    size = np.repeat(np.round(2 ** (10 + (np.arange(256) + 0.5) / 8)).astype(np.int64), each)
    found = number_strata((np.ones(len(size), np.int64),), size)
    assert len(set(found.tolist())) == 32 * steps
    assert (np.diff(found) >= 0).all()


def test_objects_without_bytes_are_of_a_size_of_their_own() -> None:
    size = np.repeat(np.array([0, 1, 2, 3], np.int64), 20)
    assert sets(number_strata((np.ones(80, np.int64),), size)) == [
        [*range(20)],
        [*range(20, 40)],
        [*range(40, 60)],
        [*range(60, 80)],
    ]
