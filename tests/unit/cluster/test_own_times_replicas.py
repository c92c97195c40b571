"""Whose replica of a write ends last, by the servers' own times within each write."""

from __future__ import annotations

import math

import numpy as np
import pytest
from joined_runs import joined_run, object_lines, servers, successes

from ssbench.cluster.joined_run import Device, JoinedRun
from ssbench.cluster.own_times import WriteReplicas
from ssbench.scenario.operations import CREATE, READ

#: Who has the replicas of a write, and of how many writes: eight are without d1, and eight without d2.
SETS = [((0, 1, 2), 40), ((0, 2, 3), 8), ((0, 1, 3), 8), ((1, 2, 3), 40)]


def run(
    slow: dict[int, float], sets: list[tuple[tuple[int, ...], int]] = SETS, code: int = CREATE.code
) -> JoinedRun:
    random = np.random.default_rng(1)
    disks = [Device(f"n{number}", "object", f"d{number}") for number in range(4)]
    wrote = np.array([each for each, count in sets for _ in range(count)])
    count, width = wrote.shape
    seconds = random.uniform(0.010, 0.011, wrote.shape)
    for device, more in slow.items():
        seconds[wrote == device] += more
    proxy = seconds.max(1) + 0.001
    every = np.arange(count)
    operations = successes(np.full(count, code), np.ones(count, np.int64), proxy + 0.001, every)
    lines = object_lines(
        disks, np.repeat(every, width), wrote.ravel(), np.zeros(count * width, np.int64), seconds.ravel()
    )
    return joined_run(operations, lines, disks, servers(disks), ["p"], np.zeros(count, np.int64), proxy)


def replicas(joined: JoinedRun) -> WriteReplicas:
    return WriteReplicas(joined, np.ones(len(joined.operations.code), np.bool_), joined.lines.seconds)


def test_the_device_that_writes_wait_for_is_named() -> None:
    (last,) = replicas(run({0: 0.02})).last([])
    assert (last.device, len(last.operation)) == (0, 56)
    assert np.median(last.beyond) == last.difference.median
    assert last.difference.median == pytest.approx(0.02, abs=0.001)
    assert last.difference.mean == pytest.approx(0.02, abs=0.001)
    # A request takes two milliseconds more than its slowest replica.
    assert last.difference.base == pytest.approx(0.0325 - 0.02, abs=0.001)
    assert last.probability < 1e-6


def test_writes_with_one_that_is_a_suspect_already_tell_nothing() -> None:
    assert replicas(run({0: 0.02})).last([0]) == []
    assert [each.device for each in replicas(run({0: 0.02})).last([3])] == [0]


def test_it_is_last_in_writes_without_any_one_of_the_others_too() -> None:
    # In half of the writes without d1 it is not.
    joined = run({0: 0.02})
    lines = joined.lines
    without = np.flatnonzero((lines.device == 0) & (lines.operation >= 40) & (lines.operation < 48))
    lines.seconds[without[::2]] = 0.001
    assert replicas(joined).last([]) == []


def test_little_or_nothing_names_nobody() -> None:
    assert replicas(run({})).last([]) == []
    assert replicas(run({0: 0.0002})).last([]) == []
    assert replicas(run({0: 0.02}, code=READ.code)).last([]) == []
    assert replicas(run({0: 0.02}, [((0, 1, 2), 7)])).last([]) == []


def test_deviates_are_of_those_that_end_last_by_what_matters() -> None:
    found = replicas(run({0: 0.02})).latest([0, 1])
    ranks = np.arange(1, 57)  # of 56 writes it ends last in all
    assert found == {0: pytest.approx(ranks.sum() / math.sqrt((ranks**2).sum()))}


def test_how_a_device_stands_beside_the_others_of_its_writes() -> None:
    joined = run({0: 0.02})
    beside = replicas(joined).beside(0)
    assert beside is not None
    assert (beside.evident, round(beside.median, 3)) == (True, 0.02)
    other = replicas(joined).beside(1)
    assert other is not None
    assert other.median < 0
    assert not other.evident
    assert replicas(run({}, [((0, 1, 2), 40)])).beside(3) is None


def test_replicas_that_the_proxy_did_not_wait_for_are_not_used() -> None:
    joined = run({0: 0.02}, [((0, 1, 2), 40)])
    joined.proxy_seconds[:] = 0.012
    assert replicas(joined).beside(0) is None
