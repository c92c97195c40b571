"""How many jobs a worker holds ahead of its users."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssbench.fleet.prefetch import (
    MAX_FLEET_PREFETCHED,
    MAX_PREFETCHED,
    FleetScale,
    PrefetchedJobs,
    scale_of_fleet,
)
from ssbench.fleet.wire import GATHERING_SECONDS


def after(ended: int, seconds: float, held: float, times: int = 100) -> PrefetchedJobs:
    ahead = PrefetchedJobs()
    for _ in range(times):
        ahead.observe(ended, seconds, held)
    return ahead


def test_at_first_and_for_slow_operations_next_to_nothing_is_ahead() -> None:
    assert (PrefetchedJobs().low, PrefetchedJobs().high) == (1, 2)
    # One operation ended in the 20 s since the batch was sent, of which its way took 2 ms.
    assert after(1, 20.0, 19.998).high <= 4


def test_what_ends_in_one_turn_is_covered_with_a_reserve() -> None:
    # 400 operations a second, a turn of 100 ms and half more than the time for which results are gathered.
    ahead = after(44, 0.11, 0.01)
    ended = 40 + 400 * 1.5 * GATHERING_SECONDS
    assert ended * 1.25 < ahead.low < ended * 2
    assert ahead.high == 2 * ahead.low


def test_a_longer_turn_is_heeded_at_once_and_a_shorter_one_by_and_by() -> None:
    ahead = after(4, 0.01, 0.0)
    low = ahead.low
    assert ahead.observe(400, 1.0, 0.0)
    grown = ahead.low
    assert grown > 10 * low
    ahead.observe(4, 0.01, 0.0)
    assert 0.8 * grown < ahead.low < grown
    for _ in range(100):
        ahead.observe(4, 0.01, 0.0)
    assert ahead.low <= low + 1


def test_what_is_ahead_has_a_bound() -> None:
    assert after(10**6, 1.0, 0.0).high == MAX_PREFETCHED


def test_a_message_has_so_many_jobs_at_least_as_far_as_that_is_more_than_it_would_have() -> None:
    few = PrefetchedJobs(64)
    assert (few.low, few.high) == (1, 65)
    many, usual = PrefetchedJobs(64), PrefetchedJobs()
    for ahead in (many, usual):
        ahead.observe(400, 0.1, 0.0)
    assert (many.low, many.high) == (usual.low, usual.high)
    assert usual.high - usual.low > 64
    assert PrefetchedJobs(10**6).high == MAX_PREFETCHED


def test_thousands_of_workers_send_fewer_messages_and_hold_no_more_together() -> None:
    assert scale_of_fleet(1) == scale_of_fleet(6)
    assert [round(scale_of_fleet(workers).gathering, 3) for workers in (200, 1000, 100_000)] == [
        0.03,
        0.15,
        0.5,
    ]
    ahead = PrefetchedJobs()
    for _ in range(100):
        ahead.observe(30, 0.6, 0.59, scale_of_fleet(3000))  # 50 a second
    # Three messages a second, or little more.
    assert ahead.high - ahead.low >= 16
    for _ in range(100):
        ahead.observe(10**6, 1.0, 0.0, scale_of_fleet(3000))
    assert ahead.high * 3000 <= MAX_FLEET_PREFETCHED
    assert [scale_of_fleet(workers).ping_seconds for workers in (1, 1000, 2000, 3000, 10_000)] == [
        1.0,
        1.0,
        2.0,
        3.0,
        3.0,
    ]
    assert scale_of_fleet(3000, 2).ping_seconds == 1.0
    # As large as can be: what is left covers 0.16 s at 50 operations a second.
    assert (ahead.low, ahead.high) == (8, 32)


@pytest.mark.parametrize("workers", [1, 5, 12, 40, 400, 3000])
def test_queues_of_all_workers_cover_a_long_turn_of_a_fast_master(workers: int) -> None:
    scale = scale_of_fleet(workers)
    assert scale.most_low / (150_000 / workers) >= 0.1 or scale.most_low == MAX_PREFETCHED // 2
    assert scale.most_low <= scale.most_ahead // 2


def test_a_turn_of_no_time_is_no_measurement() -> None:
    ahead = PrefetchedJobs()
    assert ahead.observe(100, 0.0, 0.0) is False
    assert ahead.observe(100, 1e-7, 0.0) is False
    assert (ahead.low, ahead.high) == (1, 2)
    assert ahead.observe(100, 1e-6, 0.0) is True


def test_the_first_guess_is_what_the_turn_of_a_ping_needs_and_the_first_measurement_bounds_it() -> None:
    ahead = PrefetchedJobs()
    ahead.serve(4, 0.11)  # 100 ms more than what is short, 5 ms a job: 20 for each user
    assert ahead.low == 1 + math.ceil(1.25 * 80 + 2 * math.sqrt(80))
    ahead.serve(8, 0.11)
    assert ahead.low == 1 + math.ceil(1.25 * 160 + 2 * math.sqrt(160))
    # Its jobs take 10 s each: in the 0.1 s on the way no more than 8 * 0.1 / 10 end.
    assert ahead.observe(8, 10.1, 10.0)
    assert ahead.high <= 6
    near = PrefetchedJobs()
    near.serve(4, 0.01)
    assert near.high == PrefetchedJobs().high


def test_each_user_is_expected_to_have_ended_a_job_by_the_first_measurement() -> None:
    ahead = PrefetchedJobs()
    ahead.serve(100, 1.01)
    # One of 100 has ended its job in the 1.9 s that the worker had them; on the way it is 100 * 0.1 / 1.9.
    ahead.observe(1, 2.0, 1.9)
    assert 4.5 < (ahead.low - 1) / 2 < 8
    busy = PrefetchedJobs()
    busy.serve(1, 1.01)
    busy.observe(100, 2.0, 1.9)
    assert abs(busy.low - ahead.low) <= 3  # what ends while results are gathered


def test_what_was_measured_changes_with_the_number_of_users() -> None:
    ahead, same = after(44, 0.11, 0.01), after(44, 0.11, 0.01)
    ahead.serve(4, 9.0)  # the ping says nothing any more
    assert ahead.low == same.low
    ahead.serve(8, 9.0)
    assert ahead.low > 1.7 * same.low
    ahead.serve(0, 9.0)  # for a stage, perhaps
    ahead.serve(4, 9.0)
    assert ahead.low == same.low


@given(st.integers(0, 10**9), st.floats(-1.0, 1e6), st.floats(0.0, 1e9))
def test_whatever_a_worker_says_leaves_something_ahead(ended: int, seconds: float, held: float) -> None:
    ahead = after(ended, seconds, held, 3)
    assert 1 <= ahead.low < ahead.high <= MAX_PREFETCHED


def test_more_counts_all_however_little_it_is_and_less_a_tenth() -> None:
    """Of jobs that end on the way: 10, 10.5, 9.5."""
    ahead, scale = PrefetchedJobs(), FleetScale(gathering=0.0)
    for ended, seconds, held, expected in ((10, 1.0, 0.0, 10.0), (21, 2.0, 1.0, 10.5), (19, 2.0, 1.0, 10.4)):
        ahead.observe(ended, seconds, held, scale)
        assert ahead.low == 1 + math.ceil(1.25 * expected + 2 * math.sqrt(expected))
        assert math.isclose(ahead._ended, expected)


@pytest.mark.parametrize(("workers", "groups", "seconds"), [(2, 10, 0.025), (2, 50, 0.1), (40, 50, 0.3)])
def test_many_groups_send_fewer_messages_and_hold_no_more_together(
    workers: int, groups: int, seconds: float
) -> None:
    scale = scale_of_fleet(workers, groups)
    assert scale.gathering == pytest.approx(seconds)
    assert scale.most_ahead * workers * groups <= MAX_FLEET_PREFETCHED < 2 * MAX_PREFETCHED * workers * groups


def test_a_worker_alone_may_hold_as_many_ahead_as_no_worker_may_exceed() -> None:
    for workers in (0, 1, 2, 12):
        most = min(MAX_PREFETCHED, MAX_FLEET_PREFETCHED // max(workers, 1))
        assert scale_of_fleet(workers).most_ahead == most
    assert scale_of_fleet(MAX_FLEET_PREFETCHED // 2).most_ahead == 2
