"""Where the time of a typical and of a slow request went: parts that add up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from simulated_cluster import Cause, Shape, simulate

from ssbench.cluster import findings
from ssbench.cluster.joined_run import JoinedRun
from ssbench.cluster.operation_times import LatencyColumns, TimeShare

SHAPE = Shape(devices=12, nodes=4, requests=1500, sigma=0.3)


def shares_of(joined: JoinedRun) -> dict[tuple[str, str], TimeShare]:
    return {(each.operation, each.rank): each for each in findings.make_attribution(joined).time_shares}


def test_the_parts_of_each_operation_add_up() -> None:
    joined = simulate(1, Cause(), SHAPE)
    found = shares_of(joined)
    assert {rank for _, rank in found} == {"p50", "p99"}
    for each in found.values():
        parts = [getattr(each, name) for name in LatencyColumns.__slots__]
        assert min(parts) >= 0
        assert sum(parts) == pytest.approx(each.latency)
    latency = joined.operations.latency[joined.operations.code == 1]
    assert found["read", "p50"].latency == pytest.approx(np.median(latency), rel=0.02)
    assert found["read", "p99"].latency == pytest.approx(np.sort(latency)[-len(latency) // 50 :].mean())
    # No first byte was measured, so the proxy has the bodies, and no operation has a body of its own.
    assert {each.first_byte for each in found.values()} == {None}
    assert {each.body for each in found.values()} == {0.0}


@pytest.mark.parametrize(
    ("cause", "part", "operation"),
    [
        (Cause(devices=tuple(range(12)), seconds=0.05), "server", "read"),
        (Cause(container=0, seconds=0.05), "update", "create"),
        (Cause(proxy=0, seconds=0.05), "proxy", "read"),
        (Cause(proxy=0, seconds=0.05, where="before"), "way", "read"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_a_delay_is_in_its_own_part_of_slow_requests(cause: Cause, part: str, operation: str) -> None:
    slow, usual = (shares_of(simulate(2, each, SHAPE))[operation, "p99"] for each in (cause, Cause()))
    more = {name: getattr(slow, name) - getattr(usual, name) for name in LatencyColumns.__slots__}
    assert max(more, key=lambda name: more[name]) == part
    assert more[part] == pytest.approx(0.05, abs=0.025)


def test_the_body_of_a_read_is_what_follows_its_first_byte() -> None:
    joined = simulate(3, Cause(devices=tuple(range(12)), seconds=0.05, where="body"), SHAPE)
    operations = joined.operations
    reads = operations.code == 1
    first_byte = np.where(reads, operations.latency - 0.05, np.nan)
    found = shares_of(replace(joined, operations=replace(operations, first_byte=first_byte)))
    assert found["read", "p50"].body == pytest.approx(0.05)
    assert found["read", "p50"].first_byte == pytest.approx(found["read", "p50"].latency - 0.05)
    assert found["create", "p50"].first_byte is None


def test_a_client_that_is_done_before_its_proxy_has_no_negative_part() -> None:
    joined = simulate(4, Cause(), SHAPE)
    seconds = joined.proxy_seconds.copy()
    seconds[::3] = joined.operations.latency[::3] + 0.004
    found = shares_of(replace(joined, proxy_seconds=seconds))
    assert found
    for each in found.values():
        assert min(getattr(each, name) for name in LatencyColumns.__slots__) >= 0


def test_few_requests_have_no_tail() -> None:
    few = simulate(5, Cause(), replace(SHAPE, requests=120))
    assert {rank for _, rank in shares_of(few)} == {"p50"}


def test_the_typical_requests_of_a_few_are_those_in_the_middle() -> None:
    joined = simulate(4, Cause(), replace(SHAPE, devices=4, nodes=3, requests=40, writes=0.0))
    latency = np.sort(joined.operations.latency)
    assert 20 <= len(latency) < 50  # a tenth of them is fewer than five
    middle = len(latency) // 2
    assert shares_of(joined)["read", "p50"].latency == pytest.approx(latency[middle - 2 : middle + 3].mean())
