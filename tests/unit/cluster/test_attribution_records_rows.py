"""Rows of tables, counts of coverage and parts of latencies, from lines that are known."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from joined_runs import joined_run, object_lines, servers, successes

from ssbench.cluster.attribution_records import (
    SlowRequest,
    make_error_rows,
    make_partition_rows,
    make_slowest_rows,
    measure_coverage,
)
from ssbench.cluster.joined_run import NO_INDEX, UPDATE, Device, JoinedRun, TakenResults
from ssbench.cluster.node_addresses import NodeAddresses
from ssbench.cluster.operation_times import (
    Completeness,
    OperationParts,
    TimeShare,
    average_time_shares,
    count_completeness,
    divide_latencies,
    split_operation_times,
)
from ssbench.scenario.operations import CREATE, READ

DISKS = [Device(f"n{number}", "object", f"d{number}") for number in range(3)]
NAN = float("nan")


def run(
    latency: list[float], proxy: list[float], seconds: list[tuple[float, ...]], code: int = CREATE.code
) -> JoinedRun:
    """Each operation has these lines of object servers, of the first devices."""
    count = len(latency)
    every = np.arange(count)
    operation = np.repeat(every, [len(each) for each in seconds])
    device = np.array([place for each in seconds for place in range(len(each))], np.int64)
    operations = successes(np.full(count, code), np.full(count, 4096, np.int64), np.array(latency), every)
    lines = object_lines(
        DISKS, operation, device, operation % 2, np.array([one for each in seconds for one in each])
    )
    zero = np.zeros(count, np.int64)
    return joined_run(operations, lines, DISKS, servers(DISKS), ["p0"], zero, np.array(proxy))


def split(joined: JoinedRun) -> OperationParts:
    return split_operation_times(joined, count_completeness(joined))


def test_the_slowest_have_their_parts_and_who_took_part() -> None:
    joined = run([0.5, 0.9, 0.7], [0.4, 0.85, NAN], [(0.1, 0.3, 0.2), (0.6, 0.5), ()])
    joined.proxy[2] = NO_INDEX
    joined.handoffs[1] = 2
    joined = replace(joined, trans_ids={1: "tx1"})
    parts = split_operation_times(joined, Completeness(np.zeros(3), np.full(3, 2), np.zeros(3, np.bool_)))
    first, second, third = make_slowest_rows(joined, parts, {"p0", "d2 on n2"})
    approximate = pytest.approx
    assert first == SlowRequest(
        "create",
        0.9,
        approximate(0.05),
        approximate(0.25),
        0.6,
        "p0",
        "d0 on n0",
        "object server 1 on n0",
        0,
        2,
        "tx1",
        ("p0",),
    )
    assert second == SlowRequest("create", 0.7, None, None, None, None, None, None, 0, 0)
    assert third == SlowRequest(
        "create",
        0.5,
        approximate(0.1),
        approximate(0.1),
        0.3,
        "p0",
        "d1 on n1",
        "object server 1 on n1",
        1,
        0,
        None,
        ("p0", "d2 on n2"),
    )


def test_partitions_come_by_their_requests_with_errors_and_times() -> None:
    joined = run([0.5] * 5, [0.4] * 5, [(0.1, 0.3), (0.2,), (0.1, 0.3), (0.2,), (0.1,)])
    joined.lines.status[:3] = 499, 507, 404
    even, odd = make_partition_rows(joined)
    assert (even.name, even.requests, even.errors) == ("0 of policy 0 (d0 on n0, d1 on n1)", 3, 2)
    assert even.seconds == pytest.approx((0.1, 0.3))
    assert (odd.name, odd.requests, odd.errors) == ("1 of policy 0 (d0 on n0)", 2, 0)
    joined.partitions[1] = (-1, 7)
    assert make_partition_rows(joined)[1].name == "7 (d0 on n0)"
    joined.operations.latency[0] = 0.9
    assert make_partition_rows(joined)[0].latency == pytest.approx((0.5, 0.892))


def test_errors_come_by_their_number_and_are_called_as_in_the_logs() -> None:
    counts = Counter(
        {
            ("timeout", "object", "10.0.0.1:6200", "d1"): 2,
            ("507", "", "10.0.0.9:6200", "d9"): 5,
            ("other", "proxy", "", ""): 1,
            ("connection", "object", "10.0.0.9:6200", ""): 3,
        }
    )
    addresses = NodeAddresses(run([0.5], [0.4], [(0.1, 0.1)]), {"10.0.0.1": "n1"})
    assert make_error_rows(counts, addresses) == [
        ("507", "10.0.0.9:6200/d9", 5),
        ("connection", "object 10.0.0.9:6200", 3),
        ("timeout", "d1 on n1 (object 10.0.0.1:6200/d1)", 2),
        ("other", "proxy", 1),
    ]


def test_coverage_counts_successes() -> None:
    joined = run([0.5] * 6, [0.4] * 6, [(0.1, 0.3)] * 5 + [(0.1,)])
    joined.operations.failed[0] = True
    joined.operations.latency[1] = NAN
    joined.operations.retries[2] = 3
    joined.proxy[[0, 3]] = NO_INDEX
    joined.lines.of[2] = UPDATE  # of the second operation
    joined = replace(joined, without_id=4, duplicates=5, taken=TakenResults(60, 6))
    found = measure_coverage(joined, count_completeness(joined), np.arange(6) > 3)
    assert (found.results, found.operations, found.failed, found.without_id) == (60, 6, 1, 4)
    assert (found.retried, found.delayed, found.with_proxy) == (1, 1, 4)
    # Two lines are usual; the second operation has one of an object server, and so has the last.
    assert (found.complete, found.incomplete, found.compared) == (3, 2, 2)
    assert (found.updates, found.duplicates, found.lines) == (1, 5, 0)


@pytest.mark.parametrize(
    ("latency", "first_byte", "update", "parts"),
    [
        (0.5, NAN, 0.0, (0.1, 0.1, 0.3, 0.0, 0.0)),
        (0.5, NAN, 0.2, (0.1, 0.1, 0.1, 0.2, 0.0)),
        (0.5, NAN, 0.35, (0.1, 0.1, 0.0, 0.3, 0.0)),  # no more than the server that waited for it
        (0.5, 0.45, 0.0, (0.1, 0.05, 0.3, 0.0, 0.05)),
        (0.5, 0.2, 0.0, (0.1, 0.0, 0.3, 0.0, 0.1)),  # what servers and the way took is no body
        (0.35, NAN, 0.0, (0.0, 0.05, 0.3, 0.0, 0.0)),  # it had the last byte before its proxy noted that
        (0.2, NAN, 0.1, (0.0, 0.0, 0.1, 0.1, 0.0)),
    ],
)
def test_the_parts_of_a_latency_add_up(
    latency: float, first_byte: float, update: float, parts: tuple[float, ...]
) -> None:
    joined = run([latency], [0.4], [(0.1, 0.3, update)])
    joined.lines.of[2] = UPDATE
    joined.operations.first_byte[0] = first_byte
    found = divide_latencies(joined, split(joined))
    assert tuple(
        float(getattr(found, name)[0]) for name in ("way", "proxy", "server", "update", "body")
    ) == pytest.approx(parts)
    assert sum(parts) == pytest.approx(latency)


def test_typical_and_slow_requests_are_the_middle_tenth_and_the_slowest_fiftieth() -> None:
    count = 300
    latency = [0.4 + 0.001 * (7 * place % count) for place in range(count)]
    joined = run(latency, [0.4] * count, [(0.3,)] * count, READ.code)
    middle, slow = average_time_shares(joined, split(joined), np.ones(count, np.bool_))
    assert middle == TimeShare(
        "read", "p50", 30, *map(pytest.approx, (0.5495, 0.1495, 0.1, 0.3, 0.0, 0.0)), first_byte=None
    )
    assert (slow.rank, slow.requests, slow.latency) == ("p99", 6, pytest.approx(0.6965))
    # One that was tried again has lines of its last attempt only, and a failure is none.
    joined.operations.retries[7 * np.arange(count) % count >= 160] = 1
    (middle,) = average_time_shares(joined, split(joined), np.ones(count, np.bool_))
    assert (middle.requests, middle.latency) == (16, pytest.approx(0.4795))
    fine = 7 * np.arange(count) % count < 50
    (middle,) = average_time_shares(joined, split(joined), fine)
    assert (middle.requests, middle.latency) == (6, pytest.approx(0.4245))
    assert average_time_shares(joined, split(joined), 7 * np.arange(count) % count < 19) == []
