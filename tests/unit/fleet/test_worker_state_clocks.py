"""What follows from heartbeats: how a worker's clocks go, and how busy it was; by numbers that are known."""

from __future__ import annotations

import math

import pytest

from ssbench.base.host import HostCounters
from ssbench.fleet.wire import LAG_BUCKETS, lag_limit
from ssbench.fleet.worker_state import (
    CLOCK_WINDOW_SECONDS,
    MAX_WORKER_GAPS,
    ClockOffset,
    WorkerClock,
    WorkerClocks,
    WorkerLoad,
)


def test_the_offset_is_in_the_middle_of_what_the_nearest_ping_allows() -> None:
    offset = ClockOffset()
    offset.observe(10.0, 110.3)
    assert offset.seconds == offset.most == pytest.approx(100.3)
    # 0.1 s there and 0.2 s back: it errs by half of what these differ.
    offset.observe(10.1, 110.3, asked=110.0)
    assert (offset.seconds, offset.most, offset.half) == pytest.approx((100.05, 100.2, 0.15))
    offset.observe(11.02, 111.04, asked=111.0)
    assert (offset.seconds, offset.most, offset.half) == pytest.approx((100.0, 100.02, 0.02))
    for late in (0.1, 5.0):  # nothing follows from what took longer
        offset.observe(12.0, 112.0 + late)
        offset.observe(12.0, 112.0 + late, asked=112.0 - late)
    assert (offset.seconds, offset.most, offset.half) == pytest.approx((100.0, 100.02, 0.02))


def test_only_the_last_one_or_two_windows_count() -> None:
    offset = ClockOffset()
    begins = 100.0
    offset.observe(begins - 100.02, begins)
    offset.observe(begins + CLOCK_WINDOW_SECONDS - 0.1 - 100.5, begins + CLOCK_WINDOW_SECONDS - 0.1)
    assert offset.most == pytest.approx(100.02)
    second = begins + CLOCK_WINDOW_SECONDS
    offset.observe(second - 100.5, second)
    assert offset.most == pytest.approx(100.02)  # by the window before
    offset.observe(second + 1 - 100.7, second + 1)
    third = second + CLOCK_WINDOW_SECONDS
    offset.observe(third - 100.6, third)
    assert offset.most == pytest.approx(100.5)


def test_a_clock_that_moved_begins_anew_and_keeps_the_shortest_way() -> None:
    offset = ClockOffset()
    offset.observe(10.0, 110.1, asked=109.9)
    offset.observe(11.0, 151.3, asked=150.7)  # it stalled for 40 s
    assert offset.half == pytest.approx(0.1)
    assert offset.most == pytest.approx(140.3)
    assert 139.7 + 0.1 <= offset.seconds <= 140.3 - 0.1


def test_the_moment_that_due_times_count_from_stays_until_clocks_drift_apart() -> None:
    clock = WorkerClock()
    clock.offset.observe(10.0, 110.0)
    assert clock.start_of(500.0) == 400.0
    clock.offset.observe(10.0, 109.995)
    assert clock.start_of(500.0) == 400.0
    clock.offset.observe(10.0, 109.98)
    assert clock.start_of(500.0) == pytest.approx(400.02)
    clock.offset.half = 0.25
    clock.forget()
    assert (clock.offset.most, clock.offset.half) == (math.inf, 0.25)


def beat(clocks: WorkerClocks, clock: float, received: float, asked: float | None) -> None:
    clocks.observe(clock, received, asked, None)


def test_the_slope_is_the_least_that_both_ends_allow() -> None:
    clocks = WorkerClocks()
    beat(clocks, 0.0, 100.1, 99.9)
    beat(clocks, 1.0, 101.01, 100.99)
    beat(clocks, 2.0, 102.5, None)
    assert clocks.slope is None
    beat(clocks, 9.0, 110.05, 109.0)
    assert clocks.slope is None  # less than ten seconds
    beat(clocks, 15.0, 115.2, 115.1)
    beat(clocks, 16.0, 116.18, 116.12)
    # Offsets of 99.99 to 100.01 s around the first second, and of 100.12 to 100.18 s around the last.
    assert clocks.slope == pytest.approx((100.12 - 100.01) / (115.2 - 100.1))
    beat(clocks, 20.0, 120.25, 119.99)
    # Of a worker that gains, no more is sure than that it does.
    assert clocks.slope == pytest.approx(0.0)


@pytest.mark.parametrize(("difference", "offset"), [(0.5, 0.3), (0.1, 0.0), (-0.1, -0.1), (-0.5, -0.5)])
def test_a_time_of_day_is_off_by_what_the_way_does_not_explain(difference: float, offset: float) -> None:
    clocks = WorkerClocks()
    clocks.observe(0.0, 100.0, None, difference)
    assert clocks.wall_offset is None  # without a ping
    clocks.observe(0.0, 100.0, 99.8, difference)
    assert clocks.wall_offset == pytest.approx(offset)
    clocks.observe(0.0, 100.0, 99.8, None)
    clocks.observe(1.0, 101.0, 100.0, difference + 0.7)  # later on its way
    assert clocks.wall_offset == pytest.approx(offset)
    clocks.observe(2.0, 102.0, 101.9, difference + 10.0)  # it was set
    assert clocks.wall_offset is None


def heard(*beats: tuple[float, float, float], lag: list[int] | None = None) -> WorkerLoad:
    load = WorkerLoad()
    for clock, cpu, lag_max in beats:
        load.observe(clock, cpu, lag or [], lag_max)
    return load


def test_a_share_of_a_core_is_that_between_the_first_and_the_last_heartbeat() -> None:
    assert heard().cpu_share is None
    assert heard((1.0, 5.0, 0.0)).cpu_share is None
    assert heard((1.0, 5.0, 0.0), (1.499, 5.1, 0.0)).cpu_share is None
    assert heard((1.0, 5.0, 0.0), (1.5, 5.1, 0.0)).cpu_share == pytest.approx(0.2)
    load = heard((1.0, 5.0, 9.0), (2.0, 5.1, 0.3), (5.0, 6.0, 0.2))
    assert (load.cpu_share, load.lag_max) == (0.25, 0.3)  # the first one tells of what was before
    load.clear()
    assert (load.cpu_share, load.lag_max) == (None, 0.0)


def test_what_was_taken_is_not_taken_again() -> None:
    load = heard((1.0, 5.0, 0.0), (2.0, 5.5, 0.3), (3.0, 5.75, 0.1))
    assert load.take_recent() == (0.375, 0.3)
    assert load.take_recent() is None
    load.observe(3.25, 5.9, [], 0.2)
    assert load.take_recent() is None
    load.observe(3.5, 6.0, [], 0.1)
    assert load.take_recent() == (0.5, 0.2)
    assert load.cpu_share == 0.4


@pytest.mark.parametrize(
    ("lag", "percentile", "bucket"),
    [
        ([0, 500, 0, 500], 50, 1),
        ([0, 499, 0, 501], 50, 3),
        ([0, 990, 0, 10], 99, 1),
        ([0, 989, 0, 11], 99, 3),
        ([0, 999, 0, 1], 100, 3),
        ([7], 1, 0),
    ],
)
def test_a_percentile_of_lateness_is_the_end_of_its_bucket(
    lag: list[int], percentile: float, bucket: int
) -> None:
    assert heard((1.0, 5.0, 0.0), lag=lag).lag_percentile(percentile) is None
    load = heard((1.0, 5.0, 0.0), (2.0, 5.5, 0.0), lag=lag)
    assert load.lag_percentile(percentile) == lag_limit(bucket)
    load.observe(3.0, 6.0, [0] * LAG_BUCKETS + [9])  # of a newer worker
    assert load.lag_percentile(percentile) == lag_limit(bucket)


def test_a_stall_that_goes_on_is_one() -> None:
    load = WorkerLoad()
    assert load.stood_still(5.0, (100.0, 101.0), room=9) == 1
    assert load.stood_still(5.0, (100.0, 103.0), room=0) == 0
    assert load.stood_still(8.0, (104.0, 105.0), room=0) == 0
    assert (load.gaps, load.gaps_dropped) == ([(100.0, 103.0)], 1)
    kept = sum(load.stood_still(10.0 + each, (200.0, 201.0), room=1) for each in range(MAX_WORKER_GAPS))
    assert (kept, len(load.gaps), load.gaps_dropped) == (MAX_WORKER_GAPS - 1, MAX_WORKER_GAPS, 2)


def test_a_machine_is_read_first_and_last() -> None:
    load = WorkerLoad()
    assert load.host is None
    readings = [HostCounters(2, float(each)) for each in range(3)]
    for clock, each in zip((1.0, 4.0, 8.0), readings, strict=True):
        load.observe(clock, 0.0, [], machine=each)
    load.observe(9.0, 0.0, [])
    assert load.host == (7.0, readings[0], readings[2])


def test_the_window_before_a_clock_stalled_is_forgotten() -> None:
    """In the window after that only its own bounds count."""
    offset = ClockOffset()
    offset.observe(10.0, 110.0)
    second = 110.0 + CLOCK_WINDOW_SECONDS
    offset.observe(second - 140.0, second, asked=second - 0.2)  # the worker's stood still for 40 s
    assert offset.most == pytest.approx(140.0)
    offset.observe(second + 1 - 139.95, second + 1, asked=second + 0.9)
    assert offset.most == pytest.approx(139.95)
    assert 139.8 <= offset.seconds <= 139.95


def test_after_a_clock_stalled_each_message_narrows_the_bounds_since_then() -> None:
    offset = ClockOffset()
    offset.observe(10.0, 110.0)
    second = 110.0 + CLOCK_WINDOW_SECONDS
    offset.observe(second - 140.0, second, asked=second - 0.2)  # 139.8 to 140.0
    offset.observe(second + 1 - 139.9, second + 1.6, asked=second + 1)  # 139.9 to 140.5
    assert offset.most == pytest.approx(140.0)
    assert offset.seconds == pytest.approx(139.95)


def test_a_shorter_way_is_known_although_it_tells_nothing_new_of_the_offset() -> None:
    offset = ClockOffset()
    offset.observe(10.0, 110.1, asked=109.9)
    offset.observe(11.0, 111.28, asked=111.08)
    assert offset.half == pytest.approx(0.1)
    known = offset.seconds
    offset.observe(12.0, 112.13, asked=112.03)
    assert (offset.half, offset.seconds, offset.most) == pytest.approx((0.05, known, 100.1))
