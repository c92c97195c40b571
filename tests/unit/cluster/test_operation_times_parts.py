"""The parts of a request's time, and what is late."""

from __future__ import annotations

import math

import numpy as np
import pytest
from joined_runs import joined_run, object_lines, servers, successes

from ssbench.cluster.attribution_records import make_part_rows
from ssbench.cluster.joined_run import NO_INDEX, Device, JoinedRun
from ssbench.cluster.operation_times import (
    LATE_REPLICA_SECONDS,
    Completeness,
    find_late_replicas,
    measure_wait_beyond_quorum,
    median_and_p99,
    split_operation_times,
)
from ssbench.scenario.operations import CREATE, READ

DISKS = [Device("n", "object", f"d{number}") for number in range(3)]


def run(seconds: list[list[float]], proxy: float, latency: float, code: int = CREATE.code) -> JoinedRun:
    """Operations with these seconds of their object servers."""
    count = len(seconds)
    operation = np.array([place for place, each in enumerate(seconds) for _ in each], np.int64)
    device = np.array([place for each in seconds for place in range(len(each))], np.int64)
    every = np.arange(count)
    operations = successes(np.full(count, code), np.ones(count, np.int64), np.full(count, latency), every)
    lines = object_lines(
        DISKS,
        operation,
        device,
        np.zeros(len(device), np.int64),
        np.array([one for each in seconds for one in each]),
    )
    return joined_run(
        operations, lines, DISKS, servers(DISKS), ["p"], np.zeros(count, np.int64), np.full(count, proxy)
    )


def complete(joined: JoinedRun, expected: int) -> Completeness:
    count = len(joined.operations.code)
    found = np.bincount(joined.lines.operation, minlength=count)
    return Completeness(found, np.full(count, expected), np.zeros(count, np.bool_))


def test_parts_are_differences_to_the_slowest_server_that_was_waited_for() -> None:
    joined = run([[0.1, 0.3], [0.2], [], [0.4, 0.9]], proxy=0.5, latency=0.6)
    parts = split_operation_times(joined, complete(joined, 1))
    assert parts.client == pytest.approx([0.1] * 4)
    assert parts.backend == pytest.approx([0.3, 0.2, math.nan, 0.4], nan_ok=True)
    assert parts.proxy == pytest.approx([0.2, 0.3, math.nan, 0.1], nan_ok=True)
    assert parts.slowest.tolist() == [1, 2, NO_INDEX, 3]
    assert parts.extra.tolist() == [1, 0, 0, 1]


def test_no_part_is_less_than_nothing_and_up_to_a_limit_a_server_may_end_after_its_proxy() -> None:
    joined = run([[0.5 + LATE_REPLICA_SECONDS], [0.5 + 2 * LATE_REPLICA_SECONDS]], proxy=0.5, latency=0.4)
    parts = split_operation_times(joined, complete(joined, 1))
    assert parts.client.tolist() == [0.0, 0.0]
    assert parts.backend == pytest.approx([0.5 + LATE_REPLICA_SECONDS, math.nan], nan_ok=True)
    assert parts.proxy == pytest.approx([0.0, math.nan], nan_ok=True)


def test_late_replicas_are_counted_by_device() -> None:
    joined = run([[0.1, 0.1, 0.5], [0.1, 0.1, 0.9], [0.1, 0.6, 0.1]], proxy=0.2, latency=0.3)
    joined.lines.status[0] = 499
    found = find_late_replicas(joined)
    assert found.counts.tolist() == [1, 1, 2]
    assert found.shares == pytest.approx([1 / 3] * 3)
    assert found.waited == pytest.approx([0.2] * 3)
    none = find_late_replicas(run([[0.1, 0.9]], proxy=0.2, latency=0.3, code=READ.code))
    assert none.counts.tolist() == [0, 0, 0]
    assert none.shares.tolist() == [0.0, 0.0, 0.0]
    assert np.isnan(none.waited).all()


def test_a_row_for_each_operation_with_those_that_took_more_servers() -> None:
    joined = run([[0.1], [0.1, 0.1], [0.1, 0.1, 0.1], [0.2]], proxy=0.5, latency=0.6)
    joined.operations.code[3] = READ.code
    (create, read) = make_part_rows(
        joined, split_operation_times(joined, complete(joined, 1)), np.ones(4, np.bool_)
    )
    assert (create.operation, create.requests, create.extra) == ("create", 3, 2)
    assert (read.operation, read.requests, read.extra) == ("read", 1, 0)
    assert create.backend == pytest.approx((0.1, 0.1))
    (only,) = make_part_rows(
        joined, split_operation_times(joined, complete(joined, 1)), np.array([False, False, False, True])
    )
    assert only.operation == "read"


def test_quantiles_are_of_what_is_known() -> None:
    assert median_and_p99(np.array([math.nan])) is None
    assert median_and_p99(np.append(np.arange(101.0), math.nan)) == (50.0, 99.0)


def test_proxies_wait_beyond_the_replica_that_makes_a_majority() -> None:
    joined = run(
        [[0.1, 0.3, 0.2], [0.1, 0.4, 0.15], [0.3], [0.1, 0.2], [0.1, 0.1, 0.1]], proxy=0.5, latency=0.6
    )
    every = np.arange(5)

    def wait(*operations: int) -> float:
        return measure_wait_beyond_quorum(joined, every[[*operations]])

    assert wait(0) == pytest.approx(0.3)  # after the second of three
    assert wait(0, 1) == pytest.approx((0.3 + 0.35) / 2)
    assert wait(3) == pytest.approx(0.3)  # after both of two
    assert math.isnan(wait(2))  # one line tells nothing of the others
    assert wait(2, 0) == wait(0)
    joined.proxy_seconds[1] = math.nan
    assert wait(0, 1) == wait(0)
    joined.operations.code[4] = READ.code
    assert math.isnan(wait(4))
    joined.lines.status[joined.lines.operation == 3] = 503
    assert math.isnan(wait(3))
    assert math.isnan(wait())
