"""Whose replica of a write ends last, by the servers' own times within each write."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from joined_runs import joined_run, object_lines, servers, successes

from ssbench.cluster.joined_run import NO_INDEX, UPDATE, Device, JoinedLines, JoinedRun
from ssbench.cluster.own_times import ReplicaEnds, find_told_servers, measure_replica_ends
from ssbench.cluster.suspect_search import Suspect, find_suspects
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


def replicas(joined: JoinedRun) -> ReplicaEnds:
    return measure_replica_ends(joined, np.ones(len(joined.operations.code), np.bool_), joined.lines.seconds)


def last(measure: ReplicaEnds) -> list[Suspect]:
    return find_suspects([measure]).suspects


def told(joined: JoinedRun, server_of: np.ndarray, sender: np.ndarray) -> JoinedRun:
    """Have each replica tell one of three container servers, which take a millisecond."""
    lines, count = joined.lines, len(joined.lines)
    more = {
        "operation": lines.operation,
        "device": len(joined.devices) + server_of,
        "process": lines.process,
        "partition": lines.partition,
        "seconds": np.full(count, 0.001),
        "status": lines.status,
        "of": np.full(count, UPDATE, np.uint8),
        "sender": sender,
    }
    columns = {name: np.concatenate((getattr(lines, name), more[name])) for name in JoinedLines.__slots__}
    containers = [Device(f"n{each}", "container", f"c{each}") for each in range(3)]
    return replace(joined, devices=[*joined.devices, *containers], lines=JoinedLines(**columns))


def test_the_device_that_writes_wait_for_is_named() -> None:
    measure = replicas(run({0: 0.02}))
    (found,) = last(measure)
    assert (found.candidate, found.with_, found.rivals) == (0, 56, ())
    beyond = measure.excess(measure.levels[0], 0, 0)
    assert np.median(beyond) == found.difference.median
    assert found.difference.median == pytest.approx(0.02, abs=0.001)
    assert found.difference.mean == pytest.approx(0.02, abs=0.001)
    # A request takes two milliseconds more than its slowest replica.
    assert found.difference.base == pytest.approx(0.0325 - 0.02, abs=0.001)
    assert found.probability < 1e-6


def test_writes_with_one_that_is_a_suspect_already_tell_nothing() -> None:
    measure = replicas(run({0: 0.02}))
    (found,) = last(measure)
    assert last(measure.hold(found)) == []
    assert [each.candidate for each in last(measure.hold(replace(found, candidate=3)))] == [0]


def test_it_is_last_in_writes_without_any_one_of_the_others_too() -> None:
    # In half of the writes without d1 it is not.
    joined = run({0: 0.02})
    lines = joined.lines
    without = np.flatnonzero((lines.device == 0) & (lines.operation >= 40) & (lines.operation < 48))
    lines.seconds[without[::2]] = 0.001
    assert last(replicas(joined)) == []


#: Every pair of the four devices has twelve writes.
PAIRS = [((first, other), 12) for other in range(4) for first in range(other)]


def waiting(slow: set[int], sets: list[tuple[tuple[int, ...], int]]) -> JoinedRun:
    """Two replicas of which one waits for the other, if that is on a device of ``slow``: 20 ms."""
    joined = run({}, sets)
    lines = joined.lines
    is_slow = np.isin(lines.device, list(slow)).reshape(-1, 2)
    lines.seconds[(is_slow[:, ::-1] & ~is_slow).ravel()] += 0.02
    joined.proxy_seconds[:] = 0.04
    return joined


def test_of_two_replicas_either_may_be_slow() -> None:
    """Beside one partner a device is last where it is slow at the end, or the partner before its clock."""
    for joined in (run({0: 0.02}, [((0, 1), 40), ((2, 3), 40)]), waiting({1}, [((0, 1), 40), ((2, 3), 40)])):
        (found,) = last(replicas(joined))
        assert (found.candidate, found.rivals) == (0, (1,))


def test_of_two_replicas_one_is_named_that_is_last_beside_three_others() -> None:
    (found,) = last(replicas(run({0: 0.02}, PAIRS)))
    assert (found.candidate, found.rivals) == (0, ())


@pytest.mark.parametrize("slow", [{1}, {1, 3}])
def test_of_two_replicas_partners_of_slow_ones_are_not_named(slow: set[int]) -> None:
    assert {each.candidate for each in last(replicas(waiting(slow, PAIRS)))} == set()


def test_little_or_nothing_names_nobody() -> None:
    assert last(replicas(run({}))) == []
    assert last(replicas(run({0: 0.0002}))) == []
    assert last(replicas(run({0: 0.02}, code=READ.code))) == []
    assert last(replicas(run({0: 0.02}, [((0, 1, 2), 7)]))) == []


def test_deviates_are_those_of_signed_ranks() -> None:
    z = replicas(run({0: 0.02})).test()[0].z[0]
    ranks = np.arange(1, 57)  # of 56 writes it ends last in all
    assert z[0] == pytest.approx(ranks.sum() / math.sqrt((ranks**2).sum()))
    assert (z[1:] < 0).all()


def test_how_a_device_stands_beside_the_others_of_its_writes() -> None:
    measure = replicas(run({0: 0.02}))
    device = measure.levels[0]
    assert round(measure.difference(device, 0, 0).median, 3) == 0.02
    assert measure.difference(device, 1, 0).median < 0
    none = replicas(run({}, [((0, 1, 2), 40)]))
    assert math.isnan(none.difference(none.levels[0], 3, 0).median)


def test_replicas_that_the_proxy_did_not_wait_for_are_not_used() -> None:
    joined = run({0: 0.02}, [((0, 1, 2), 40)])
    joined.proxy_seconds[:] = 0.012
    assert np.isnan(replicas(joined).test()[0].z).all()


@pytest.mark.parametrize("proxy", [0.05, 0.012], ids=["waited for", "given up"])
def test_the_container_server_of_which_object_servers_wait_is_named(proxy: float) -> None:
    joined = run({})
    joined.proxy_seconds[:] = proxy
    server = np.random.default_rng(2).permuted(np.tile(np.arange(3), (96, 1)), axis=1).ravel()
    joined.lines.seconds[server == 1] += 0.02
    (found,) = last(replicas(told(joined, server, joined.lines.device)))
    assert (found.candidate, found.with_) == (5, 96)
    assert found.difference.median == pytest.approx(0.02, abs=0.001)
    # Where it is not known who told it, nothing is known.
    assert last(replicas(told(joined, server, np.full(len(server), NO_INDEX)))) == []


def test_a_device_that_always_tells_the_same_container_server_is_one_of_both() -> None:
    joined = run({0: 0.02})
    server = np.tile(np.arange(3), 96)  # the devices of a write are in the order of their numbers
    (found,) = last(replicas(told(joined, server, joined.lines.device)))
    assert {found.candidate, *found.rivals} == {0, 4}


def test_which_update_a_replica_sent() -> None:
    joined = told(run({}, [((0, 1, 2), 2)]), np.array([2, 1, 0] * 2), np.array([0, 1, 2, 0, NO_INDEX, 2]))
    assert find_told_servers(joined).tolist() == [6, 7, 8, 9, NO_INDEX, 11] + [NO_INDEX] * 6


@pytest.mark.parametrize(("other", "matters"), [(0.0299, False), (0.020, True)])
def test_what_clients_wait_for_a_replica_is_what_it_takes_beyond_the_slowest_other(
    other: float, matters: bool
) -> None:
    joined = run({}, [((0, 1, 2), 40)])
    for device, seconds in enumerate((0.030, 0.010, other)):
        joined.lines.seconds[joined.lines.device == device] = seconds
    joined.proxy_seconds[:], joined.operations.latency[:] = 0.04, 0.045
    measure = replicas(joined)
    level = measure.levels[0]
    measured = measure.difference(level, 0, 0)
    assert measured.median == pytest.approx(0.030 - (0.010 + other) / 2)
    assert measured.median > 0.2 * np.median(measure.latency)
    assert measure.accepts(level, 0, 0, measured) is matters
