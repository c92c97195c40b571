"""Who served what failed."""

from dataclasses import replace

import numpy as np
import pytest
from golden_words import GoldenWords
from simulated_cluster import Cause, Shape, fail_reads, simulate

from ssbench.cluster.failing_servers import find_failing_servers
from ssbench.cluster.finding_sentences import ALL_CLEAR, describe_attribution
from ssbench.cluster.findings import make_attribution
from ssbench.cluster.operation_times import READS

SHAPE = Shape(devices=12, nodes=4, requests=900, ring="grown")


def test_a_device_with_old_objects_is_named(golden_words: GoldenWords) -> None:
    joined = simulate(1, Cause(), SHAPE)
    found = make_attribution(fail_reads(joined, joined.lines.device == 1, 0.3))
    (one,) = (each for each in found.findings if each.kind == "fails")
    assert (one.level, one.name, one.requests) == ("device", "d1 on n1", one.failures)
    said = describe_attribution(found)[0]
    golden_words(said)
    assert "% of its own failed, from " in said


def test_a_node_is_named_where_all_its_devices_fail() -> None:
    joined = simulate(2, Cause(), SHAPE)
    (one,) = find_failing_servers(fail_reads(joined, np.isin(joined.lines.device, (1, 5, 9)), 0.3), 0.01)
    assert one.level in ("node", "process")


def test_two_devices_are_named() -> None:
    joined = simulate(3, Cause(), SHAPE)
    joined = fail_reads(joined, np.isin(joined.lines.device, (1, 6)), 0.4)
    found = find_failing_servers(joined, 0.01)
    assert {(each.level, each.place) for each in found} == {("device", 1), ("device", 6)}
    assert [each.every for each in found] == [np.count_nonzero(joined.operations.failed)] * 2


@pytest.mark.parametrize("share", [0.0, 0.02, 0.1])
def test_failures_of_all_are_nobodys(share: float) -> None:
    for seed in range(10):
        joined = simulate(seed, Cause(), SHAPE)
        assert (
            find_failing_servers(fail_reads(joined, np.ones(len(joined.lines), np.bool_), share), 0.01) == []
        )


def test_too_few_failures_are_nobodys_and_no_all_clear() -> None:
    joined = simulate(1, Cause(), SHAPE)
    reads = np.flatnonzero(READS[joined.operations.code])
    for count in (2, 3):
        failed = np.zeros(len(joined.operations.code), np.bool_)
        failed[reads[:count]] = True
        latency = np.where(failed, np.nan, joined.operations.latency)
        operations = replace(joined.operations, failed=failed, latency=latency)
        said = describe_attribution(make_attribution(replace(joined, operations=operations)))[0]
        assert said.startswith(f"{count} operations failed, and the logs do not show which server's fault ")
        assert ALL_CLEAR in said


def test_four_failures_of_one_of_twelve_devices_are_its_own() -> None:
    joined = simulate(1, Cause(), SHAPE)
    chosen = np.flatnonzero(
        (joined.lines.device == 1) & READS[joined.operations.code[joined.lines.operation]]
    )
    failed = np.zeros(len(joined.operations.code), np.bool_)
    failed[joined.lines.operation[chosen[:4]]] = True
    operations = replace(joined.operations, failed=failed)
    (one,) = find_failing_servers(replace(joined, operations=operations), 0.01)
    assert (one.level, one.place, len(one.failures)) == ("device", 1, 4)


def test_an_object_that_is_lost_is_no_servers_fault() -> None:
    """Each read of it fails, and all come to its devices."""
    joined = simulate(1, Cause(), SHAPE)
    operations = joined.operations
    reads = joined.lines.operation[joined.lines.device == 1]
    reads = reads[READS[operations.code[reads]]][:8]
    subject, failed = operations.subject.copy(), np.zeros(len(operations.code), np.bool_)
    failed[reads] = True
    apart = replace(joined, operations=replace(operations, failed=failed))
    assert [(each.level, each.place) for each in find_failing_servers(apart, 0.01)] == [("device", 1)]
    subject[reads] = subject[reads[0]]
    lost = replace(apart, operations=replace(apart.operations, subject=subject))
    assert find_failing_servers(lost, 0.01) == []


def test_a_proxy_that_fails_one_object_alone_is_named() -> None:
    joined = simulate(1, Cause(), SHAPE)
    operations = joined.operations
    reads = np.flatnonzero(READS[operations.code] & (joined.proxy == 1))[:30]
    subject, failed = operations.subject.copy(), np.zeros(len(operations.code), np.bool_)
    failed[reads], subject[reads] = True, 7
    found = find_failing_servers(
        replace(joined, operations=replace(operations, failed=failed, subject=subject)), 0.01
    )
    assert [(each.level, each.place) for each in found] == [("proxy", 1)]
