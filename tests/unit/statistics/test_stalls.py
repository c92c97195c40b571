"""Stalls: those that are planted are found, and no others."""

from __future__ import annotations

import numpy as np
import pytest
from simulated_stalls import all_found, stalls_of

from ssbench.statistics import stalls as module
from ssbench.statistics.latencies import merge_latencies, select_latencies
from ssbench.statistics.stalls import GapTracker

LOADS = [{"rate": rate} for rate in (5, 20, 100)] + [{"users": 1, "median": 0.01}, {"users": 8}]


@pytest.mark.parametrize("load", LOADS, ids=str)
def test_each_stall_of_either_loop_is_found(load: dict[str, float]) -> None:
    for seed in range(3):
        assert all_found(stalls_of(seed, **load))


@pytest.mark.long
@pytest.mark.parametrize("load", [{"rate": 1}, *LOADS], ids=str)
def test_none_is_found_where_there_is_none(load: dict[str, float]) -> None:
    assert sum(bool(stalls_of(seed, stops=False, **load)) for seed in range(10)) <= 1


def test_nothing_stalls_while_nothing_is_under_way() -> None:
    gaps = GapTracker()
    ended = np.array([1.0, 4.0, 9.0])
    gaps.add(ended, ended - 0.75)
    found = gaps.stalls(0.25, 9.0, merge_latencies(()), None)
    assert [(stall.start, stall.seconds) for stall in found] == [(0.0, 0.75), (3.0, 0.75), (8.0, 0.75)]
    assert len(gaps.stalls(0.25, 9.0, merge_latencies(()), 1)) == 3  # of users that are never idle


def test_an_operation_whose_beginning_is_not_known_may_have_been_under_way() -> None:
    gaps = GapTracker()
    gaps.add(np.array([1.0, 4.0]), np.array([0.9, np.nan]))
    (stall,) = gaps.stalls(0.9, 4.0, merge_latencies(()), None)
    assert (stall.start, stall.seconds) == (pytest.approx(0.1), 3.0)


def test_one_such_operation_among_others_is_enough() -> None:
    gaps = GapTracker()
    gaps.add(np.array([1.0, 4.0, 4.1]), np.array([0.9, np.nan, 4.05]))
    assert [stall.seconds for stall in gaps.stalls(0.9, 4.1, merge_latencies(()), None)] == [3.0]
    gaps = GapTracker()
    gaps.add(np.array([1.0, 4.0, 4.1]), np.array([0.9, 3.95, 4.05]))  # sent when it was nearly over
    assert gaps.stalls(0.9, 4.1, merge_latencies(()), None) == ()


def test_results_that_come_late_close_a_gap() -> None:
    gaps = GapTracker()
    gaps.add(np.array([1.0, 4.0]), np.array([0.0, 0.5]))
    assert len(gaps.stalls(0.0, 4.0, merge_latencies(()), None)) == 2
    between = np.arange(0.5, 4.0, 0.25)
    gaps.add(between, between - 0.5)
    assert gaps.stalls(0.0, 4.0, merge_latencies(()), None) == ()
    assert not gaps._kept.keys() - {2, 3}  # the first two parts of a second that have any


def test_what_is_kept_does_not_grow_with_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MAX_PARTS", 8)
    gaps = GapTracker()
    gaps._most_kept = 8
    for second in np.arange(100.0):
        ended = np.array([second / 2.5])  # each follows an empty part, and no gap that matters
        gaps.add(ended, ended - 0.25)
    assert len(gaps._kept) <= 8
    gaps.add(np.array([50.0]), np.array([45.0]))
    assert [stall.seconds for stall in gaps.stalls(0.0, 50.0, merge_latencies(()), None)] == [5.0]


def test_a_gap_that_begins_and_ends_in_parts_two_apart_may_be_a_stall() -> None:
    gaps = GapTracker()
    gaps.add(np.array([1.0, 1.74]), np.array([0.9, 0.95]))
    assert [stall.seconds for stall in gaps.stalls(0.9, 1.74, merge_latencies(()), None)] == [
        pytest.approx(0.74)
    ]


def test_operations_that_had_long_to_go_make_no_stall() -> None:
    """Of many that are under way each may be expected not to end, whatever the others take."""
    gaps = GapTracker()
    ended = np.concatenate([[1.0], np.linspace(1.7, 1.9, 20)])
    gaps.add(ended, np.concatenate([[0.9], np.full(20, -10.3)]))
    slow = np.linspace(10.0, 20.0, 300)
    latencies = merge_latencies([select_latencies(np.full(700, 0.1)), select_latencies(slow)])
    assert gaps.stalls(0.9, 1.9, latencies, None) == ()


def test_what_one_stall_delayed_does_not_hide_it() -> None:
    latencies = merge_latencies([select_latencies(np.full(980, 0.01)), select_latencies(np.full(20, 3.0))])
    assert latencies.percentile(99) == pytest.approx(3.0, rel=0.02)
    assert module._find_bounds([(3.0, 20)], latencies, 0) == pytest.approx(0.1, rel=0.02)
    assert module._find_bounds([(3.0, 500)], latencies, 0) == pytest.approx(0.1, rel=0.02)
    assert module._find_bounds([(3.0, 501)], latencies, 0) == pytest.approx(30, rel=0.02)  # more than half


def test_what_stalls_delayed_is_never_all() -> None:
    latencies = merge_latencies([select_latencies(np.full(2, 0.01)), select_latencies(np.full(8, 3.0))])
    assert module._find_bounds([(3.0, 2)], latencies, 8) == pytest.approx(0.1, rel=0.02)


@pytest.mark.parametrize(("sent", "seconds"), [(1.5, []), (1.25, [0.75]), (0.5, [1.0])])
def test_a_gap_is_as_long_as_an_operation_was_under_way_in_it_and_longer_than_half_a_second(
    sent: float, seconds: list[float]
) -> None:
    gaps = GapTracker()
    gaps.add(np.array([1.0, 2.0, 2.5]), np.array([0.875, sent, 2.25]))
    found = gaps.stalls(0.875, 2.5, merge_latencies(()), None)
    assert [stall.seconds for stall in found] == seconds
    assert [stall.start + stall.seconds for stall in found] == [2.0 - 0.875] * len(seconds)
