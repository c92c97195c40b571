"""When in a run a difference of milliseconds was, and who had which own times then: times that are known."""

from __future__ import annotations

import numpy as np
import pytest

from ssbench.cluster.server_times import (
    DifferenceCourse,
    OwnTimes,
    ServerTimeline,
    Slice,
    Stretch,
    Timelines,
    _find_slow_part,
    find_stretch,
    make_timelines,
    measure_course,
)

NAN = float("nan")


def find_part(
    before: float, inside: float, first: int, end: int, count: int = 1000
) -> tuple[int, int] | None:
    """Look at requests that take so much more (s) before and after a part of the run, and in it.

    Of two, the first takes as much less than that as the second takes more.
    """
    beyond = np.full(count, before)
    beyond[first:end] = inside
    beyond += np.repeat(np.arange(1.0, count // 2 + 1), 2) * np.tile((-1e-9, 1e-9), count // 2)
    return _find_slow_part(np.arange(count), beyond)


@pytest.mark.parametrize("unit", [1.0, 0.001], ids=["seconds", "milliseconds"])
@pytest.mark.parametrize(("before", "is_found"), [(0.0, True), (2.4, True), (2.6, False), (9.0, False)])
def test_outside_a_part_a_difference_is_less_than_a_quarter_whatever_its_size(
    before: float, is_found: bool, unit: float
) -> None:
    found = find_part(before * unit, 10.0 * unit, 301, 500)
    assert found == ((301, 500) if is_found else None)


@pytest.mark.parametrize(
    ("first", "end", "is_found"),
    [(501, 505, False), (501, 510, True), (101, 900, True), (99, 900, False)],
)
def test_a_part_is_of_some_requests_and_of_no_more_than_four_fifths_of_the_run(
    first: int, end: int, is_found: bool
) -> None:
    assert find_part(0.0, 0.01, first, end) == ((first, end) if is_found else None)


def test_when_few_requests_take_long_is_not_told_by_when_all_take_a_little_longer() -> None:
    random = np.random.default_rng(1)
    beyond = random.normal(0.0, 0.00005, 800) + np.where(np.arange(800) < 200, 0.0002, 0.0)
    assert _find_slow_part(np.arange(800), beyond) is not None
    assert _find_slow_part(np.arange(800), beyond + np.where(random.random(800) < 0.04, 0.03, 0.0)) is None


def test_a_part_of_a_short_run_may_be_chance() -> None:
    # Five of ten, as far apart as they can be, have a deviate of 2.6; of sixteen and sixteen it is 4.8.
    assert find_part(0.0, 0.01, 0, 5, count=10) is None
    assert find_part(0.0, 0.01, 16, 32, count=32) == (16, 32)
    assert find_part(0.0, 0.01, 28, 32, count=32) is None  # four are too few


def test_a_course_has_the_median_of_each_slice() -> None:
    moments = 100.0 + np.arange(20.0)
    beyond = np.arange(20.0)
    assert measure_course(moments, beyond, (100.0, 120.0)) == DifferenceCourse(
        [
            Slice(0.0, 5.0, 5, 2.0),
            Slice(5.0, 10.0, 5, 7.0),
            Slice(10.0, 15.0, 5, 12.0),
            Slice(15.0, 20.0, 5, 17.0),
        ]
    )
    # What is at the end of the run is of its last slice, and a slice may have none.
    moments[:10] = 120.0
    found = measure_course(moments, beyond, (100.0, 120.0))
    assert found is not None
    assert [(each.requests, each.longer) for each in found.slices] == [
        (0, None),
        (0, None),
        (5, 12.0),
        (15, 9.0 - 2.0),
    ]


def test_there_is_no_course_of_few_times_or_of_a_moment() -> None:
    moments, beyond = np.arange(10.0), np.zeros(10)
    assert measure_course(moments, beyond, (0.0, 10.0)) is not None
    assert measure_course(moments[:9], beyond[:9], (0.0, 10.0)) is None
    assert measure_course(np.append(moments[:9], NAN), beyond, (0.0, 10.0)) is None
    assert measure_course(moments, np.append(beyond[:9], NAN), (0.0, 10.0)) is None
    assert measure_course(moments, beyond, (10.0, 10.0)) is None
    assert measure_course(moments, beyond, (NAN, NAN)) is None
    many = measure_course(np.linspace(0.0, 10.0, 1000), np.zeros(1000), (0.0, 10.0))
    assert many is not None
    assert len(many.slices) == 24


def test_a_slow_part_begins_and_ends_with_requests_of_it_in_seconds_of_the_run() -> None:
    order = np.random.default_rng(1).permutation(200)
    before = np.where(order % 2, 0.001, -0.001)
    beyond = np.where((order >= 51) & (order < 120), 0.01, before)
    found = measure_course(1000.0 + order, beyond, (1000.0, 1199.0))
    assert found is not None
    assert (found.begins, found.ends) == (51.0, 119.0)


def test_a_stretch_is_from_the_first_to_the_last_that_is_known() -> None:
    moments = np.array([107.0, NAN, 103.0, 105.0])
    assert find_stretch(moments, (100.0, 160.0)) == Stretch(3.0, 7.0, 60.0)
    assert find_stretch(moments[1:2], (100.0, 160.0)) is None
    assert find_stretch(moments, (NAN, NAN)) is None


def own(part: str, who: list[int], moment: list[float], beyond: list[float]) -> OwnTimes:
    return OwnTimes(part, np.array(who), np.array(moment), np.array(beyond))


def test_a_timeline_has_each_servers_median_in_each_slice() -> None:
    first = own(
        "own",
        [0] * 12 + [2] * 8 + [1],
        [100.0 + place for place in range(12)] + [100.0] * 8 + [NAN],
        [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 5, 1, 2, 9, 4, 3, 6, 8, 99],
    )
    ends = own("last", [2], [112.0], [0.5])
    nothing = own("updates", [3, 3], [NAN, 101.0], [1.0, NAN])
    found = make_timelines([first, ends, nothing], (100.0, 112.0), lambda level, who: f"{level} {who}")
    assert found == Timelines(
        [0.0, 6.0, 12.0],
        [
            ServerTimeline("device 0", "own", [6, 6], [3.5, 9.5]),
            ServerTimeline("device 2", "own", [8, 0], [4.5, pytest.approx(NAN, nan_ok=True)]),
            ServerTimeline("device 2", "last", [0, 1], [pytest.approx(NAN, nan_ok=True), 0.5]),
        ],
    )
    assert [each.longest for each in found.servers] == [9.5, 4.5, 0.5]
    assert ServerTimeline("", "own", [0], [NAN]).longest == 0.0


@pytest.mark.parametrize(
    ("times", "slices"), [(9, 0), (10, 2), (14, 2), (15, 3), (79, 15), (80, 16), (500, 16)]
)
def test_slices_are_as_many_as_have_five_times_of_a_server_each(times: int, slices: int) -> None:
    one = own("own part", [0] * times + [1] * times, [*range(times), *range(times)], [0.0] * (2 * times))
    found = make_timelines([one], (0.0, float(times)), lambda level, who: f"{level} {who}")
    assert max(len(found.edges) - 1, 0) == slices
    assert [each.name for each in found.servers] == ["proxy 0", "proxy 1"][: slices and 2]
    assert all(sum(each.times) == times for each in found.servers)
    assert make_timelines([one], (5.0, 5.0), str).servers == []
