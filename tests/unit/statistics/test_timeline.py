"""The window of a run, its rates, its whole seconds and its stalls."""

from __future__ import annotations

import statistics as stdlib

import pytest
from counted import Memory, count, failed, row
from hypothesis import given
from hypothesis import strategies as st
from result_rows import block

from ssbench.results.result_fields import NOT_MEASURED
from ssbench.results.run_description import RunSummary
from ssbench.statistics import latencies, timeline
from ssbench.statistics.summary import summarize


def test_rates_have_one_window_from_the_first_send_to_the_last() -> None:
    rows = [
        row(1, last=1.0, completed=101.0),
        row(1, last=1.0, completed=103.0),
        row(3, last=0.5, completed=103.5),
        row(1, last=1.0, completed=105.0),  # the last send is at 104.0
        row(1, last=6.0, completed=107.0),  # sent at 101.0, hung
        row(1, last=NOT_MEASURED, completed=110.0),
    ]
    numbers = count(rows, failed(5))
    course = numbers.course
    assert course is not None
    assert (course.window.start, course.window.end, course.drain) == (100.0, 104.0, 6.0)
    total, read, delete = numbers.sections
    assert (total.window_totals.count, read.window_totals.count, delete.window_totals.count) == (3, 2, 1)
    assert [each.requests_per_second for each in numbers.sections] == [3 / 4, 2 / 4, 1 / 4]
    assert (total.count, total.failed, total.window_totals.failed) == (5, 1, 0)
    assert (numbers.start, numbers.end, numbers.duration) == (100.0, 110.0, 10.0)


def test_an_outage_at_the_start_is_in_the_window_and_failures_move_no_bytes() -> None:
    run = Memory()
    rows = [row(last=NOT_MEASURED, completed=102.0)] * 2
    rows += [row(last=1.0, completed=103.0 + place) for place in range(3)]
    run.add(block(rows, failures=failed(0, 1), rare={"started": {0: 100.0, 1: 101.5}}))
    numbers = summarize(run)
    assert numbers.course is not None
    assert (numbers.course.window.start, numbers.course.window.end) == (100.0, 104.0)
    assert numbers.total.requests_per_second == 2 / 4
    assert (numbers.total.window_totals.failed, numbers.total.window_totals.moved) == (2, 2)
    cause = numbers.errors["HTTP 503"]
    assert (cause.times.minimum, cause.times.maximum) == (0.5, 2.0)
    # 2.5 s of failures, 2 s of two successes; nothing of the one that was sent last.
    assert numbers.course.busy == 4.5 / (2 * 4)


def test_a_timed_run_sends_until_its_time_is_over_whether_or_not_anything_answers() -> None:
    rows = [row(last=0.5, completed=100.5), row(last=0.5, completed=101.0), row(last=20.0, completed=121.0)]
    numbers = count(rows, summary=RunSummary(ended=0.0, sent_until=110.0))
    course = numbers.course
    assert course is not None
    assert (course.window.seconds, course.drain) == (10.0, 11.0)
    assert numbers.total.requests_per_second == 2 / 10
    assert [(stall.start, stall.seconds) for stall in course.stalls] == []  # p99 is 20 s
    assert course.busy == (1.0 + 9.0) / (2 * 10)


def test_where_all_is_sent_before_anything_ends_the_window_is_the_whole_run() -> None:
    numbers = count([row(last=2.0, completed=102.0), row(last=2.5, completed=103.0)])
    assert numbers.course is not None
    assert numbers.course.window.whole
    assert numbers.total.requests_per_second == 2 / 3
    assert numbers.course.drain == 0.0


def test_whole_seconds() -> None:
    # Sent at 100.25; two in the first second, none in the second, one and three in the others.
    ends = (100.75, 101.0, 102.5, 103.5, 103.75, 104.0, 104.5)
    rows = [row(last=0.5 if place < 6 else 0.25, completed=at) for place, at in enumerate(ends)]
    numbers = count([*rows, row(last=0.125, completed=104.75)])
    course = numbers.course
    assert course is not None
    assert course.window.end == 104.625
    each = course.operations
    assert each is not None
    assert (each.median, each.slowest, each.slowest_at, each.fastest, each.fastest_at) == (1.5, 0, 1, 3, 3)
    assert course.moved == each  # a byte each
    assert tuple(numbers.requests_by_second) == ((1, 2), (2, 0), (3, 1), (4, 3), (5, 2))


@given(
    ends=st.lists(st.integers(1, 40), min_size=1, max_size=30),
    blocks=st.integers(1, 5),
    before=st.sampled_from([1, 1000]),
)
def test_seconds_and_gaps_in_any_order(ends: list[int], blocks: int, before: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(timeline, "_RESULTS_BEFORE_COUNTING", before)
        line = timeline.ResultTimeline()
        rows = [row(last=0.0, completed=1e9)] + [row(last=0.0, completed=1e9 + end / 8) for end in ends]
        for start in range(0, len(rows), blocks):
            part = block(rows[start : start + blocks])
            line.add(part, part.started)
        window = line.window(1e9 + 6)
    assert window is not None
    moments = sorted([0, *ends])
    gaps = [(a / 8, (b - a) / 8) for a, b in zip(moments, [*moments[1:], 48], strict=True)]
    assert [
        (stall.start, stall.seconds) for stall in line.stalls(window, latencies.merge_latencies(()), 1)
    ] == [gap for gap in gaps if gap[1] > 0.5]
    seconds = [sum(moment // 8 == second for moment in moments) for second in range(6)]
    each = line.each_second(window)
    assert each is not None
    assert each[0] == timeline.EachSecond(
        stdlib.median(seconds),
        min(seconds),
        seconds.index(min(seconds)),
        max(seconds),
        seconds.index(max(seconds)),
    )


def test_a_stall_is_longer_than_ten_times_the_99th_percentile() -> None:
    usual = [row(last=0.125, completed=100.125 + place / 8) for place in range(1000)]  # until 225.0
    after = [row(last=0.125, completed=at) for at in (226.0, 227.5, 227.75)]
    course = count([*usual, *after]).course
    assert course is not None
    assert [(stall.start, stall.seconds) for stall in course.stalls] == [(126.0, 1.5)]


def test_a_gap_of_ten_times_the_99th_percentile_is_none() -> None:
    usual = [row(last=0.125, completed=100.125 + place / 8) for place in range(1000)]  # until 225.0
    after = [row(last=0.125, completed=at) for at in (226.25, 227.5625, 227.75)]  # 10 and 10.5 times
    course = count([*usual, *after]).course
    assert course is not None
    assert [(stall.start, stall.seconds) for stall in course.stalls] == [(126.25, 1.3125)]


def test_seconds_count_from_the_first_send_although_its_result_came_late() -> None:
    line = timeline.ResultTimeline()
    for last, completed in ((0.5, 1e9 + 1), (2.0, 1e9 + 2)):
        part = block([row(last=last, completed=completed)])
        line.add(part, part.started)
    assert line.seconds() == {1: 1, 2: 1}


def test_no_result_waits_to_be_counted_once_there_were_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory does not grow with the number of results."""
    monkeypatch.setattr(timeline, "_RESULTS_BEFORE_COUNTING", 4)
    line = timeline.ResultTimeline()
    waiting = []
    for second in range(4):
        part = block([row(last=0.5, completed=1e9 + second + place / 4) for place in (0, 1)])
        line.add(part, part.started)
        waiting.append(sum(len(moments) for moments, _ in line._waiting))
    assert waiting == [2, 0, 0, 0]
    assert line.seconds() == {0: 2, 1: 2, 2: 2, 3: 2}


def test_the_slowest_second_of_a_run_in_which_each_has_some() -> None:
    ends = [second + (place + 1) / 10 for second, count in enumerate((5, 3, 7, 3)) for place in range(count)]
    summary = RunSummary(ended=104.0, sent_until=104.0)
    rows = [row(completed=100 + end, last=0.1) for end in ends]
    course = summarize(Memory(block(rows), summary=summary)).course
    assert course is not None
    each = course.operations
    assert (each.slowest, each.slowest_at, each.fastest, each.fastest_at, each.median) == (3, 1, 7, 2, 4.0)
