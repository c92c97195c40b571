"""How times of two runs are compared, against medians and sums taken one by one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import fmean, median

import numpy as np
import pytest
from joined_runs import joined_run, object_lines, servers, successes
from simulated_cluster import Cause, Shape, simulate

from ssbench.cluster.changes import (
    _EXPLAINED_SHARES,
    _LOG_RESOLUTION,
    _MAX_SLICES,
    _MIN_IN_KIND,
    _MIN_IN_SLICE,
    _MIN_SLICES,
    _ComparedTimes,
    _describe_verdict,
    _is_explained,
    _is_in_both_runs,
    _judge_changes,
    _kind_middles,
    _RunTimes,
    _slice_medians,
    _subtract_fastest,
    compare_joined_runs,
)
from ssbench.cluster.joined_run import Device
from ssbench.reports.part_changes import (
    LONGER,
    NO_CHANGE_SHOWN,
    SHORTER,
    SliceDifference,
    TimeChange,
)
from ssbench.scenario.operations import CREATE

NAN = float("nan")
#: Operations of the second run begin here.
FIRST = 500


def times(stratum: Sequence[int], after: Sequence[int], *, has_peers: bool = True) -> _ComparedTimes:
    """Times of so many kinds, some of each run, whose seconds are their places."""
    count = len(stratum)
    operation = np.arange(count) + FIRST * np.array(after)
    return _ComparedTimes(
        "own", operation, np.arange(float(count)) ** 2, np.array(stratum), {}, {}, has_peers=has_peers
    )


def test_a_kind_counts_that_both_runs_have_often_enough() -> None:
    numbers = {0: (_MIN_IN_KIND, _MIN_IN_KIND), 1: (_MIN_IN_KIND - 1, 50), 2: (50, _MIN_IN_KIND - 1)}
    stratum = [kind for kind, each in numbers.items() for number in each for _ in range(number)]
    after = [side for each in numbers.values() for side, number in enumerate(each) for _ in range(number)]
    found = _is_in_both_runs(times(stratum, after), FIRST)
    assert found.tolist() == [kind == 0 for kind in stratum]


@pytest.mark.parametrize("before", [1, 2, 5, 8])
def test_the_middle_of_a_kind_is_that_between_the_medians_of_both_runs(before: int) -> None:
    stratum, after = [0, 1] * 10, [0] * (2 * before) + [1] * (20 - 2 * before)
    made = times(stratum, after)
    middles = [
        fmean(
            median(at**2 for at in range(20) if stratum[at] == kind and after[at] == side) for side in (0, 1)
        )
        for kind in (0, 1)
    ]
    assert _kind_middles(made, FIRST).tolist() == pytest.approx([middles[kind] for kind in stratum])


def test_slices_have_the_median_of_what_is_from_their_cut_on() -> None:
    values, moments = np.array([5.0, 1.0, 2.0, 9.0, 7.0]), np.array([10, 11, 19, 20, 40])
    assert _slice_medians(values, moments, np.array([20, 30, 40])) == [
        2.0,
        9.0,
        pytest.approx(NAN, nan_ok=True),
        7.0,
    ]
    assert _slice_medians(values, moments, np.zeros(0, np.int64)) == [5.0]


@pytest.mark.parametrize("has_peers", [True, False])
def test_a_run_is_divided_in_slices_of_as_many_times_of_a_party(has_peers: bool) -> None:
    count = 3 * _MIN_IN_SLICE * _MIN_SLICES
    made = times([0] * count, [0] * count, has_peers=has_peers)
    mine = np.arange(count) % 3 == 1
    excess = np.sin(np.arange(count))
    every = np.ones(count, np.bool_)
    found = _RunTimes.of(made, excess, mine, every)
    assert found is not None
    slices = np.array_split(np.flatnonzero(mine), _MIN_SLICES)
    own = [median(excess[each].tolist()) for each in slices]
    assert found.times == count // 3
    assert found.slices == pytest.approx(own)
    ends = [0, *(int(each[0]) for each in slices[1:]), count]
    peers = [median(excess[at] for at in range(begin, end) if at % 3 != 1) for begin, end in pairwise(ends)]
    expected = [a - b for a, b in zip(own, peers, strict=True)] if has_peers else [0.0] * _MIN_SLICES
    assert found.beside == pytest.approx(expected)
    less = mine.copy()
    less[1] = False
    assert _RunTimes.of(made, excess, less, every) is None  # one is too few
    alone = _RunTimes.of(replace(made, has_peers=True), excess, every, every)
    assert alone is not None
    assert alone.beside == []
    assert len(alone.slices) == min(_MAX_SLICES, count // _MIN_IN_SLICE)


def test_replicas_are_compared_with_the_fastest_other_of_their_write() -> None:
    disks = [Device(f"n{number}", "object", f"d{number}") for number in range(3)]
    operation = np.array([0, 0, 0, 1, 2, 2, 1])
    seconds = np.array([0.3, 0.1, 0.2, 0.5, 0.7, 0.7, 9.0])
    every = np.arange(3)
    operations = successes(np.full(3, CREATE.code), every, np.ones(3), every)
    zero = np.zeros(7, np.int64)
    lines = object_lines(disks, operation, zero, zero, seconds)
    joined = joined_run(operations, lines, disks, servers(disks), ["p"], 0 * every, np.ones(3))
    at, beyond = _subtract_fastest(joined, np.arange(6), seconds)
    assert sorted(at.tolist()) == [0, 1, 2, 4, 5]  # the last line of all is not looked at
    assert beyond[[0, 1, 2, 4, 5]] == pytest.approx([0.2, -0.1, 0.1, 0.0, 0.0])
    nothing, _ = _subtract_fastest(joined, np.zeros(0, np.int64), seconds)
    assert len(nothing) == 0


def by(seconds: float, probability: float = 0.0) -> SliceDifference:
    return SliceDifference(seconds, seconds - 0.001, seconds + 0.001, probability)


def change(
    own: float, beside: float | None, *, level: str = "device", part: str = "own", p: float = 0.0
) -> TimeChange:
    judged = None if beside is None else by(beside, p)
    return TimeChange(level, "d", part, (9, 9), 0.1, 0.2, by(own, p), judged, NO_CHANGE_SHOWN)


@pytest.mark.parametrize(
    ("own", "beside", "verdict"),
    [
        (0.0101, None, LONGER),
        (0.0099, None, NO_CHANGE_SHOWN),  # a twentieth of the longer of both medians is 10 ms
        (-0.0101, None, SHORTER),
        (0.05, 0.0101, LONGER),
        (0.05, 0.0099, NO_CHANGE_SHOWN),
        (0.0101, 0.02, LONGER),
        (0.0099, 0.02, NO_CHANGE_SHOWN),  # half of it and more is a change of its peers
        (-0.0101, 0.0101, NO_CHANGE_SHOWN),
        (-0.0101, -0.02, SHORTER),
        (0.0, 0.02, NO_CHANGE_SHOWN),
    ],
)
def test_a_change_is_shown_that_matters_and_is_its_own(
    own: float, beside: float | None, verdict: str
) -> None:
    assert _describe_verdict(change(own, beside)) == verdict


@pytest.mark.parametrize(("seconds", "verdict"), [(0.99, NO_CHANGE_SHOWN), (1.01, LONGER)])
def test_what_logs_do_not_resolve_is_no_change(seconds: float, verdict: str) -> None:
    tiny = replace(change(seconds * _LOG_RESOLUTION, None), before=0.0, after=0.0)
    assert _describe_verdict(tiny) == verdict


@pytest.mark.parametrize("level", ["device", "node", "proxy", "operation"])
@pytest.mark.parametrize("part", ["own", "writes"])
def test_a_change_is_explained_by_one_of_the_same_part_that_is_so_much_larger(level: str, part: str) -> None:
    share = _EXPLAINED_SHARES.get(level, 0.0)
    if level == "device" and part != "writes":
        share = 0.0
    for times_of, is_explained in ((0.99, share > 0), (1.01, False)):
        made = change(-0.08 * times_of * share, None, level=level, part=part)
        assert _is_explained(made, {part: 0.08, "updates": 99.0}) is is_explained
    assert not _is_explained(change(0.01, None, level=level, part=part), {"updates": 99.0})


def test_all_changes_are_judged_together() -> None:
    """By Holm's method: of three the least probability counts three times."""
    parts = [(0.0033, LONGER), (0.0034, NO_CHANGE_SHOWN)]
    for probability, verdict in parts:
        found = _judge_changes([change(0.05, None, p=each) for each in (0.5, probability, 0.9)])
        assert [each.verdict for each in found] == [NO_CHANGE_SHOWN, verdict, NO_CHANGE_SHOWN]
    share = _EXPLAINED_SHARES["node"]
    large, node = change(0.05, None), change(0.049 * share, None, level="node")
    small = replace(node, before=0.001, after=0.001)
    assert [each.verdict for each in _judge_changes([large, small])] == [LONGER, NO_CHANGE_SHOWN]
    # One that is not shown itself explains nothing.
    unclear = change(0.05, None, p=0.5)
    assert [each.verdict for each in _judge_changes([unclear, small])] == [NO_CHANGE_SHOWN, LONGER]


def test_failed_operations_and_those_held_up_are_not_compared() -> None:
    before, after = (simulate(seed, Cause(), Shape(devices=4, nodes=3, requests=300)) for seed in (1, 2))
    whole = compare_joined_runs(before, after, ("a", "b"), ["careful"])
    before.operations.failed[:10] = True
    before.operations.latency[10:15] = NAN
    before.operations.retries[15:18] = 1
    found = compare_joined_runs(before, after, ("a", "b"))
    assert (found.before.failed, found.before.operations, found.before.file) == (10, 300, "a")
    assert found.before.complete == whole.before.complete - 15 == 285
    assert found.before.compared <= whole.before.compared - 18 + 2
    assert found.after == whole.after
    assert (whole.warnings, found.warnings) == (["careful"], [])

    def clients(changes: list[TimeChange]) -> int:
        return sum(each.times[0] for each in changes if (each.level, each.part) == ("operation", "client"))

    assert 0 < clients(found.changes) <= clients(whole.changes) - 15
    assert not any(math.isnan(each.before) for each in found.changes)
