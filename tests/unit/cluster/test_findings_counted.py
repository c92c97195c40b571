"""What is counted in the logs beside times: late replicas, answers of 499 and 507, errors, slow requests."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from joined_runs import joined_run, object_lines, servers, successes

from ssbench.cluster.finding_kinds import (
    BrokenDevice,
    CalledSlow,
    GivenUpReplicas,
    HandoffRequests,
    LoggedErrors,
    MemcachedFailure,
)
from ssbench.cluster.findings import (
    find_broken_devices,
    find_devices_called_slow,
    find_given_up_replicas,
    find_late_devices,
    find_memcached_failures,
    find_missed_updates,
    find_missing_lines,
    find_silent_devices,
    find_unlogged_servers,
)
from ssbench.cluster.joined_run import NO_INDEX, Device, FileCount, JoinedRun
from ssbench.cluster.node_addresses import NodeAddresses
from ssbench.cluster.operation_times import Completeness
from ssbench.cluster.own_times import UsableOperations
from ssbench.cluster.rank_tests import PeerDifference
from ssbench.cluster.server_times import Stretch
from ssbench.scenario.operations import CREATE

#: Writes, of which one ends each second, so that moments are numbers of writes.
WRITES = 60


def run(devices: int = 3) -> JoinedRun:
    """Every write has a replica on each device, of 10 ms; proxies answer after 20 ms."""
    disks = [Device(f"n{number}", "object", f"d{number}") for number in range(devices)]
    every = np.arange(WRITES)
    operations = successes(
        np.full(WRITES, CREATE.code), np.ones(WRITES, np.int64), np.full(WRITES, 0.03), every, rate=1.0
    )
    lines = object_lines(
        disks,
        np.repeat(every, devices),
        np.tile(np.arange(devices), WRITES),
        np.zeros(WRITES * devices, np.int64),
        np.full(WRITES * devices, 0.01),
    )
    return joined_run(
        operations, lines, disks, servers(disks), ["p"], np.zeros(WRITES, np.int64), np.full(WRITES, 0.02)
    )


def period(joined: JoinedRun) -> tuple[float, float]:
    return float(joined.operations.ended[0]), float(joined.operations.ended[-1])


def replicas(joined: JoinedRun, device: int, first: int, count: int) -> np.ndarray:
    """Return the places of the lines of a device in some writes, one after another."""
    wrote = joined.lines.operation
    return np.flatnonzero((joined.lines.device == device) & (wrote >= first) & (wrote < first + count))


def test_a_device_is_late_whose_replicas_are_so_more_often_than_by_chance() -> None:
    joined = run()
    joined.lines.seconds[replicas(joined, 1, 10, 4)] = 0.0251
    joined.lines.status[replicas(joined, 1, 30, 3)] = 499
    (found,) = find_late_devices(joined, period(joined))
    assert (found.kind, found.level, found.name, found.requests) == ("late", "device", "d1 on n1", 7)
    assert found.share == 7 / WRITES
    assert found.seconds == 0.02  # what their proxies waited
    assert found.stretch == Stretch(10.0, 32.0, 59.0)
    # All seven are of the one of three devices, which may have been any of the three.
    assert found.probability == pytest.approx(3 * (1 / 3) ** 7)


@pytest.mark.parametrize(
    ("devices", "late", "is_found"), [(3, 5, False), (3, 6, True), (6, 5, True), (6, 4, False)]
)
def test_few_late_replicas_are_no_habit_and_may_be_chance(devices: int, late: int, is_found: bool) -> None:
    joined = run(devices)
    joined.lines.status[replicas(joined, 0, 0, late)] = 499
    found = find_late_devices(joined, period(joined))
    assert [each.name for each in found] == ["d0 on n0"] * is_found
    given_up = find_given_up_replicas(joined, period(joined), [each.name for each in found])
    assert [(each.name, each.requests) for each in given_up] == [("d0 on n0", late)] * (
        late >= 5 and not is_found
    )


def test_replicas_of_all_devices_that_are_late_alike_are_given_up_and_not_late() -> None:
    joined = run()
    for device, count in enumerate((5, 7, 6)):
        joined.lines.status[replicas(joined, device, 20, count)] = 499
    assert find_late_devices(joined, period(joined)) == []
    assert find_given_up_replicas(joined, period(joined), ["d2 on n2"]) == [
        GivenUpReplicas("device", "d1 on n1", 7, 7 / WRITES, stretch=Stretch(20.0, 26.0, 59.0)),
        GivenUpReplicas("device", "d0 on n0", 5, 5 / WRITES, stretch=Stretch(20.0, 24.0, 59.0)),
    ]
    joined.operations.failed[:] = True
    assert find_given_up_replicas(joined, period(joined), []) == []


def test_answers_of_507_and_errors_are_counted_for_each_device_once() -> None:
    joined = run()
    joined.lines.status[replicas(joined, 2, 5, 3)] = 507
    joined.lines.status[replicas(joined, 1, 0, WRITES)] = 507
    key = ("timeout", "object", "10.0.0.9:6200", "d9")
    errors = Counter(
        {key: 4, ("connection", "object", "10.0.0.9:6200", "d9"): 6, ("other", "object", "x", "d"): 9}
    )
    joined = replace(joined, errors=errors, error_places={key: (2, 8)})
    joined = replace(joined, other_errors=Counter({("507", "object", "10.0.0.8:6200", "d8"): 1}))
    found = find_broken_devices(joined, NodeAddresses(joined, {}), period(joined))
    assert found == [
        BrokenDevice("device", "d1 on n1", WRITES, 1.0, stretch=Stretch(0.0, 59.0, 59.0), served=0),
        BrokenDevice("device", "d2 on n2", 3, 3 / WRITES, stretch=Stretch(5.0, 7.0, 59.0), served=WRITES - 3),
        LoggedErrors(
            "device",
            "object server 10.0.0.9:6200/d9",
            10,
            detail="no connection 6 times, timeout 4 times",
            stretch=Stretch(2.0, 8.0, 59.0),
        ),
        LoggedErrors("device", "object server 10.0.0.8:6200/d8", 1, detail="507 once"),
    ]


@pytest.mark.parametrize("other", [None, "507", "limited"])
def test_a_server_of_which_several_devices_do_not_answer_is_named_as_one(other: str | None) -> None:
    joined = run()
    errors = Counter(
        {("timeout", "object", "10.0.0.9:6200", "d8"): 1, ("connection", "object", "10.0.0.9:6200", "d9"): 2}
    )
    if other:
        errors[other, "object", "10.0.0.9:6200", "d7"] += 1
    found = find_broken_devices(replace(joined, errors=errors), NodeAddresses(joined, {}), period(joined))
    whole = "object server 10.0.0.9:6200"
    if other == "507":  # it answers
        assert sorted(each.name for each in found) == [f"{whole}/d{number}" for number in (7, 8, 9)]
    else:
        (one,) = found
        assert (one.name, one.requests) == (whole, 3 + bool(other))
        assert one.members == ["d7", "d8", "d9"][not other :]


def test_handoffs_come_last_with_their_share() -> None:
    joined = run()
    joined.handoffs[[3, 9]] = 1, 2
    (found,) = find_broken_devices(joined, NodeAddresses(joined, {}), period(joined))
    assert found == HandoffRequests("proxy", "", 2, 2 / WRITES, stretch=Stretch(3.0, 9.0, 59.0))


def test_what_servers_call_slow_has_the_part_that_took_longest() -> None:
    slow = Counter(
        {
            ("n1", "d1", ""): 5,
            ("n1", "d1", "open"): 250,
            ("n1", "d1", "fsync"): 1250,
            ("n2", "d1", ""): 6,
            ("n2", "d1", "open"): 2000,
            ("n3", "d3", ""): 4,
            ("n3", "d3", "open"): 9000,
            ("n4", "d4", ""): 5,
        }
    )
    assert find_devices_called_slow(replace(run(), slow=slow)) == [
        CalledSlow("device", "d1 on n2", 6, seconds=2.0, detail="open 2.0 s"),
        CalledSlow("device", "d1 on n1", 5, seconds=1.5, detail="fsync 1.2 s"),
        CalledSlow("device", "d4 on n4", 5, seconds=0.0),
    ]


def test_errors_of_memcached_are_counted_over_all_its_servers() -> None:
    one, other = ("memcached", "", "10.0.0.2:11211", ""), ("memcached", "", "10.0.0.1:11211", "")
    counts = Counter({one: 3, other: 2, ("timeout", "object", "10.0.0.9:6200", "d9"): 7})
    joined = replace(run(), errors=counts, error_places={one: (4, 6), other: (5, 8)})
    assert find_memcached_failures(joined, period(joined)) == [
        MemcachedFailure(
            "",
            "10.0.0.1:11211",
            5,
            share=0.0,
            same=["10.0.0.2:11211"],
            stretch=Stretch(4.0, 8.0, 59.0),
        )
    ]
    assert find_memcached_failures(replace(joined, errors=counts - Counter({one: 1})), period(joined)) == []


def test_updates_that_a_container_server_did_not_take_have_what_their_writes_waited() -> None:
    joined = run()
    joined.lines.seconds[replicas(joined, 0, 0, WRITES)] = 0.005
    key, few = ("update", "container", "10.0.0.9:6201", "c1"), ("update", "container", "10.0.0.9:6201", "c2")
    joined = replace(
        joined,
        errors=Counter({key: 5, few: 4}),
        error_places={key: (1, 4)},
        not_updated={("10.0.0.9:6201", "c1"): np.array([1, 2, 4])},
    )
    joined.operations.failed[2] = True
    (found,) = find_missed_updates(joined, NodeAddresses(joined, {}), period(joined))
    assert (found.name, found.requests) == ("container server 10.0.0.9:6201/c1", 5)
    assert found.share == 2 / (WRITES - 1)
    assert found.waited == pytest.approx(0.02 - 0.01)  # after two of three replicas
    assert found.stretch == Stretch(1.0, 4.0, 59.0)


@pytest.mark.parametrize(
    ("longer", "lacking", "is_found"),
    [
        (0.03, 20, True),
        (0.03, 11, True),  # eight of them are compared, and seven of ten
        (0.03, 10, False),
        (0.001, 20, False),
        (0.03, 0, False),
        (0.03, WRITES, False),
    ],
)
def test_writes_that_lack_a_line_are_compared_with_the_others(
    longer: float, lacking: int, is_found: bool
) -> None:
    """Fewer than eight tell nothing, nor does what is little beside a request of 30 ms."""
    joined = run()
    lacks = np.arange(WRITES) % 3 == 2
    lacks = lacks & (np.cumsum(lacks) <= lacking) if lacking < WRITES else np.ones(WRITES, np.bool_)
    joined.operations.latency[lacks] += longer
    usable = np.arange(WRITES) >= 10
    of_server = (
        Completeness(np.where(lacks, 2, 3), np.full(WRITES, 3), np.zeros(WRITES, np.bool_)),
        joined.proxy,
    )
    of_proxy = (
        Completeness(np.full(WRITES, 3), np.full(WRITES, 3), np.zeros(WRITES, np.bool_)),
        np.where(lacks, NO_INDEX, joined.proxy),
    )
    for level, (complete, proxy) in (("device", of_server), ("proxy", of_proxy)):
        found = find_missing_lines(
            replace(joined, proxy=proxy),
            UsableOperations(usable, usable),
            complete,
            period(joined),
            ["n9.log"],
        )
        assert [(each.kind, each.level, each.name) for each in found] == [("missing", level, "")] * is_found
        for each in found:
            mine = int((lacks & usable).sum())
            assert (each.requests, each.share) == (mine, mine / 50)
            assert each.members == (["n9.log"] if level == "device" else [])
            assert each.difference == PeerDifference(*(pytest.approx(one) for one in (longer, longer, 0.03)))
            assert each.interval == pytest.approx((longer, longer))
            assert each.request == pytest.approx(0.03)
            if lacking == 20:
                assert each.course is not None
                assert [one.longer for one in each.course.slices] == pytest.approx([longer] * (mine // 5))


def test_servers_are_silent_that_did_not_answer_or_else_the_logs_without_a_line_of_the_run() -> None:
    joined = run()
    files = [
        FileCount("both.log", "n0", 9, 9, 0, 1, 2),
        FileCount("daemons.log", "n1", 9, 0, 0, None, None, of_daemons=3),
        FileCount("z.log", "n2", 9, 0, 0, None, None),
        FileCount("nothing.log", "n3", 0, 0, 0, None, None),
    ]
    hosts = {"10.0.0.1": "n1", "10.0.0.3": "n3", "10.0.0.9": "n9"}
    errors = {
        ("timeout", "object", "10.0.0.1:6200", "d1"): 1,
        ("connection", "object", "10.0.0.3:6200", "d3"): 1,
        ("connection", "object", "10.0.0.9:6200", "d9"): 1,  # of its node there is no log
        ("507", "object", "10.0.0.1:6200", "d5"): 1,
        ("timeout", "container", "10.0.0.1:6201", "c1"): 1,
        ("timeout", "object", "10.0.0.1:6200", ""): 1,
    }
    with_errors = replace(joined, files=files, errors=Counter(errors))
    addresses = NodeAddresses(with_errors, hosts)
    named = [addresses.name(address, device, "object") for _, _, address, device in [*errors][:2]]
    assert find_silent_devices(with_errors, addresses) == sorted(each for each in named if each)
    without = replace(joined, files=files)
    assert find_silent_devices(without, NodeAddresses(without, {})) == ["nothing.log", "z.log"]
    assert find_unlogged_servers(
        without, NodeAddresses(without, hosts), ["10.0.0.1:6200", "10.0.0.7:6200"]
    ) == ["10.0.0.7:6200"]
