"""What is concluded beside suspects: who is nearest to one, when nothing ended, who was not compared."""

from __future__ import annotations

from dataclasses import replace
from statistics import median

import numpy as np
import pytest
from joined_runs import joined_run, object_lines, servers, successes
from simulated_cluster import Cause, Shape, simulate

from ssbench.cluster.attribution_records import AttributionFacts
from ssbench.cluster.finding_kinds import (
    ClusterFinding,
    LoggedErrors,
    MissedUpdates,
    OneOfSeveral,
    SlowServer,
    SuspectFinding,
)
from ssbench.cluster.findings import _Conclusions, find_complete_stalls, make_attribution
from ssbench.cluster.joined_run import OBJECT, Device, JoinedRun
from ssbench.cluster.operation_times import READS, count_load
from ssbench.cluster.rank_tests import MIN_TEST_REQUESTS
from ssbench.cluster.server_times import Stretch
from ssbench.cluster.suspect_search import (
    POOLED,
    SOME_REQUESTS,
    Measure,
    SuspectVerdict,
    adjust_all_tests,
    find_suspects,
)
from ssbench.scenario.operations import READ

SMALL = Shape(devices=4, nodes=3, requests=400)


def searched(joined: JoinedRun) -> tuple[list[Measure], SuspectVerdict]:
    measures = _Conclusions(joined, AttributionFacts())._measures
    return measures, find_suspects(measures)


@pytest.mark.parametrize("seed", [1, 2])
def test_the_lead_is_whose_test_is_least_likely_by_chance_of_those_that_take_longer(seed: int) -> None:
    joined = simulate(seed, Cause(), SMALL)
    measures, verdict = searched(joined)
    assert verdict.suspects == []
    found = []
    for place, index, test, adjusted in adjust_all_tests(measures, verdict.tests):
        measure = measures[place]
        for row in range(len(test.z)):
            group = POOLED if row == len(measure.groups) else row
            for candidate, z in enumerate(test.z[row].tolist()):
                if z > 1.64:
                    measured = measure.difference(measure.levels[index], candidate, group)
                    if measured.median > 0 or measured.mean > 0:
                        found.append((float(adjusted[row, candidate]), -z, measured, measure.tail))
    probability, _, measured, is_of_few = min(found, key=lambda each: each[:2])
    lead = make_attribution(joined).lead
    assert lead is not None
    assert (lead.probability, lead.difference, lead.is_of_few) == (probability, measured, is_of_few)
    slow = make_attribution(simulate(seed, Cause(devices=(1,)), SMALL))
    assert slow.lead is None  # there is a suspect


def test_as_many_tests_are_told_as_could_tell_and_the_share_of_writes_is_that_of_a_usual_device() -> None:
    joined = simulate(1, Cause(), SMALL)
    measures, verdict = searched(joined)
    found = make_attribution(joined)
    assert found.comparisons == sum(int(np.isfinite(test.z).sum()) for each in verdict.tests for test in each)
    # Each write has three of the four devices.
    lines, operations = joined.lines, joined.operations
    writes = ~READS[operations.code]
    wrote = [
        len(
            set(lines.operation[(lines.of == OBJECT) & (lines.device == place)].tolist())
            & set(np.flatnonzero(writes).tolist())
        )
        for place in range(4)
    ]
    assert found.in_writes == pytest.approx(median(wrote) / writes.sum(), rel=0.02)
    assert found.request == pytest.approx(measures[-2].request)


def run(device: list[int], count: int, disks: int = 2) -> JoinedRun:
    """Reads of which each has a line of one device, by turns."""
    devices = [Device(f"n{number}", "object", f"d{number}") for number in range(disks)]
    every = np.arange(count)
    operations = successes(
        np.full(count, READ.code), np.full(count, 4096, np.int64), 0.03 + 1e-4 * (every * every % 7), every
    )
    who = np.resize(device, count)
    lines = object_lines(devices, every, who, 0 * every, 0.01 + 1e-4 * (every * every % 7))
    return joined_run(operations, lines, devices, servers(devices), ["p"], 0 * every, np.full(count, 0.02))


@pytest.mark.parametrize(
    ("device", "count", "names"),
    [
        ([0], 40, {("device", "d0 on n0"), ("proxy", "p")}),  # there is no other
        ([0, 1], 40, {("proxy", "p")}),
        ([0] * 7 + [1] * 33, 40, {("device", "d1 on n1"), ("proxy", "p")}),  # seven are too few beside it
        ([0] * 8 + [1] * 32, 40, {("proxy", "p")}),
        ([0], MIN_TEST_REQUESTS - 1, set()),  # it did hardly anything
        ([0], MIN_TEST_REQUESTS, {("device", "d0 on n0"), ("proxy", "p")}),
    ],
)
def test_who_served_some_requests_and_could_not_be_compared_is_named(
    device: list[int], count: int, names: set[tuple[str, str]]
) -> None:
    found = [each for each in make_attribution(run(device, count)).findings if each.kind == "inconclusive"]
    assert {(each.level, name) for each in found for name in (each.name, *each.same)} == names


def test_nothing_ended_for_a_time_while_operations_were_under_way() -> None:
    joined = run([0, 1], 100)
    operations = joined.operations
    operations.ended[50:] += 3.0
    operations.latency[50:55] = 3.1
    begin = float(operations.ended[0])
    (found,) = find_complete_stalls(joined, (begin, float(operations.ended[-1])))
    length = float(operations.ended[-1]) - begin
    assert (found.kind, found.level, found.name, found.requests) == ("stall", "", "", 1)
    assert found.seconds == pytest.approx(3.02, abs=0.001)
    assert found.stretch == Stretch(
        pytest.approx(49 / 50, abs=0.001), pytest.approx(4.0, abs=0.001), pytest.approx(length)
    )
    operations.latency[50:55] = 0.03  # nothing was under way
    assert find_complete_stalls(joined, (begin, begin + length)) == []
    operations.ended[:] = np.nan
    assert find_complete_stalls(joined, (np.nan, np.nan)) == []


def test_container_servers_that_writes_waited_for_are_said_first_and_once() -> None:
    joined = simulate(1, Cause(), SMALL)
    conclusions = _Conclusions(joined, AttributionFacts())
    updates = [
        MissedUpdates("device", "c1", waited=1.0),
        MissedUpdates("device", "c2", waited=0.001),
        MissedUpdates("device", "c3"),
    ]
    found = [SlowServer("device", "c1", part=part) for part in ("total", "told", "own")] + [
        SlowServer("device", "c2", part="total")
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ssbench.cluster.findings.find_missed_updates", lambda *_: updates)
        assert conclusions._beside_updates(found) == [updates[0], found[2], found[3], *updates[1:]]
    assert conclusions._beside_updates(found) == found


def test_what_recon_saw_stands_beside_a_finding_on_its_node() -> None:
    conclusions = _Conclusions(simulate(1, Cause(), SMALL), AttributionFacts())
    conclusions._beside = {"n1": ["load 9"], "n2": ["full"]}
    conclusions._statsd = {"d1 on n1": "errors"}
    work = _NoWork()
    for finding, beside, statsd in (
        (SlowServer("device", "d1 on n1"), ["load 9"], "errors"),
        (SlowServer("node", "n2"), ["full"], ""),
        (LoggedErrors("device", "d3 on n0", detail="one"), [], ""),
        (
            OneOfSeveral("device", "d1 on n1", same=["d2 on n2", "d4 on n1"]),
            ["load 9 on n1", "full on n2"],
            "d1 on n1: errors",
        ),
    ):
        found = conclusions._with_surroundings(finding, work)
        expected = replace(finding, beside=beside, statsd=statsd)
        if isinstance(expected, SuspectFinding):
            expected = replace(expected, work=[finding.name], daemons=["daemon"])
        assert found == expected


class _NoWork:
    """Tells whose work was asked for."""

    def beside(self, finding: ClusterFinding) -> list[str]:
        return [finding.name]

    def logs(self, finding: ClusterFinding) -> list[str]:
        return ["daemon"]


def test_a_request_found_as_many_others_as_the_busiest_of_its_servers_had() -> None:
    joined = simulate(1, Cause(), replace(SMALL, rate=500.0))
    load = count_load(joined)
    (total,) = (
        each
        for each in searched(joined)[0]
        if each.part == "total" and each.levels[0].name == "device" and each.kind != SOME_REQUESTS
    )
    assert total.load is not None
    assert load.max() > 1
    for operation, most in zip(total.operation.tolist(), total.load.tolist(), strict=True):
        assert most == load[joined.lines.operation == operation].max()
