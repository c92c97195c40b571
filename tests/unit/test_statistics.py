"""The numbers of a run, against the rules that say what they mean."""

from __future__ import annotations

import math
import statistics as stdlib
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from result_rows import block

from ssbench.results import LOST, NO_WORKER, NOT_MEASURED, UNKNOWN, Failure, Mark, ResultRow
from ssbench.run_results import RunDescription, RunResultsWriter, RunSummary, open_results
from ssbench.scenario.model import Scenario, SizeClass
from ssbench.statistics import Latencies, Part, RunStatistics, latencies, summarize, timeline

WEIGHTS = (1.0, 1.0, 1.0, 1.0)
SCENARIO = Scenario(
    "s",
    (SizeClass("small", 1, 1, 1, WEIGHTS), SizeClass("big", 9, 9, 1, WEIGHTS)),
    user_count=2,
    operation_count=1,
)


def row(
    operation: int = 1,
    size_class: int = 0,
    last: float = 0.1,
    completed: float = 100.0,
    *,
    first: float = NOT_MEASURED,
    worker: int = 1,
    retries: int = 0,
) -> ResultRow:
    return (operation, size_class, worker, 0, 1, 1, first, last, completed, UNKNOWN, retries)


def count(
    tmp_path: Path,
    rows: Sequence[ResultRow],
    failures: dict[int, Failure] | None = None,
    summary: RunSummary | None = None,
) -> RunStatistics:
    path = tmp_path / "run.stat.gz"
    writer = RunResultsWriter(path, RunDescription(SCENARIO))
    if rows:
        writer.add(block(rows, [f"tx{i}" for i in range(len(rows))], failures))
    writer.end(summary or RunSummary(ended=0.0))
    return summarize(open_results(path))


def percentile_by_the_rule(values: Sequence[float], rank: float) -> float:
    ordered = sorted(values)
    place = len(ordered) * Fraction(str(rank)) / 100
    if place.denominator == 1 and place < len(ordered):
        return (ordered[int(place) - 1] + ordered[int(place)]) / 2
    return ordered[math.ceil(place) - 1]


@pytest.mark.parametrize(
    ("count_", "rank", "expected"),
    [
        (10, 95, 10),
        (10, 50, 5.5),
        (10, 90, 9.5),
        (10, 100, 10),
        (10, 1, 1),
        (1, 50, 1),
        (1000, 99.9, 999.5),
        (7, 50, 4),
    ],
)
def test_percentiles_of_whole_numbers(tmp_path: Path, count_: int, rank: float, expected: float) -> None:
    total = count(tmp_path, [row(last=float(i), completed=1e6) for i in range(1, count_ + 1)]).total
    assert total.lines[0].last_byte.percentile(rank) == expected


NANOSECONDS = st.integers(0, 2**33) | st.integers(0, 40)


@given(
    drawn=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1), NANOSECONDS), min_size=1, max_size=60),
    rank=st.sampled_from([1, 10, 25, 50, 75, 90, 95, 99, 99.9, 100]) | st.floats(1, 100),
    part_size=st.sampled_from([1, 3, 1000]),
)
def test_figures_of_any_latencies(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[tuple[int, int, int]], rank: float, part_size: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(latencies, "_PART_SIZE", part_size)
        rows = [row(op, class_, ns / 1e9, 100.0 + place) for place, (op, class_, ns) in enumerate(drawn)]
        numbers = count(tmp_path_factory.getbasetemp(), rows)
    for section in numbers.sections:
        for line in section.lines:
            own = [
                (ns / 1e9, place)
                for place, (op, class_, ns) in enumerate(drawn)
                if section.operation is None or section.operation.code == op
                if line.size_class is None or line.size_class == SCENARIO.size_classes[class_].name
            ]
            values = [latency for latency, _ in own if latency]
            figures = line.last_byte
            assert figures.count == len(values)
            assert line.first_byte.count == 0
            assert figures.slowest is not None
            slowest, place = max(own, key=lambda entry: (entry[0], -entry[1]))
            assert (figures.slowest.latency, figures.slowest.trans_id) == (slowest, f"tx{place}")
            if values:
                assert (figures.minimum, figures.maximum) == (min(values), max(values))
                assert figures.percentile(rank) == percentile_by_the_rule(values, rank)
                assert figures.mean == pytest.approx(stdlib.fmean(values), rel=1e-12)
                assert figures.deviation == pytest.approx(stdlib.pstdev(values), rel=1e-6, abs=1e-12)
            else:
                assert math.isnan(figures.mean)
                assert math.isnan(figures.percentile(rank))


def test_many_latencies_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latencies, "_PART_SIZE", 5000)
    values = np.rint(np.random.default_rng(1).lognormal(-5, 1, 100_000) * 1e9) / 1e9
    figures = count(tmp_path, [row(last=value) for value in values.tolist()]).total.lines[0].last_byte
    for rank in (1, 50, 95, 99.99, 100):
        assert figures.percentile(rank) == percentile_by_the_rule(values.tolist(), rank)
    assert figures.mean == pytest.approx(values.mean(), rel=1e-12)
    assert figures.deviation == pytest.approx(values.std(), rel=1e-12)


def failed(*rows: int, cause: str = "HTTP 503") -> dict[int, Failure]:
    return {place: Failure(cause, "", {}) for place in rows}


def test_rates_have_one_window_from_the_first_send_to_the_last(tmp_path: Path) -> None:
    rows = [
        row(1, last=1.0, completed=101.0),
        row(1, last=1.0, completed=103.0),
        row(3, last=0.5, completed=103.5),
        row(1, last=1.0, completed=105.0),  # the last send is at 104.0
        row(1, last=6.0, completed=107.0),  # sent at 101.0, hung
        row(1, last=NOT_MEASURED, completed=110.0),
    ]
    numbers = count(tmp_path, rows, failed(5))
    course = numbers.course
    assert course is not None
    assert (course.window.start, course.window.end, course.drain) == (100.0, 104.0, 6.0)
    total, read, delete = numbers.sections
    assert (total.within.count, read.within.count, delete.within.count) == (3, 2, 1)
    assert [each.requests_per_second for each in numbers.sections] == [3 / 4, 2 / 4, 1 / 4]
    assert (total.count, total.failed, total.within.failed) == (5, 1, 0)
    assert (numbers.start, numbers.end, numbers.duration) == (100.0, 110.0, 10.0)


def test_an_outage_at_the_start_is_in_the_window_and_failures_move_no_bytes(tmp_path: Path) -> None:
    path = tmp_path / "run.stat.gz"
    writer = RunResultsWriter(path, RunDescription(SCENARIO))
    rows = [row(last=NOT_MEASURED, completed=102.0)] * 2
    rows += [row(last=1.0, completed=103.0 + place) for place in range(3)]
    writer.add(block(rows, failures=failed(0, 1), rare={"started": {0: 100.0, 1: 101.5}}))
    writer.end(RunSummary(ended=0.0))
    numbers = summarize(open_results(path))
    assert numbers.course is not None
    assert (numbers.course.window.start, numbers.course.window.end) == (100.0, 104.0)
    assert numbers.total.requests_per_second == 2 / 4
    assert (numbers.total.within.failed, numbers.total.within.moved) == (2, 2)
    cause = numbers.errors["HTTP 503"]
    assert (cause.times.minimum, cause.times.maximum) == (0.5, 2.0)
    # 2.5 s of failures, 2 s of two successes; nothing of the one that was sent last.
    assert numbers.course.busy == 4.5 / (2 * 4)


def test_a_timed_run_sends_until_its_time_is_over_whether_or_not_anything_answers(tmp_path: Path) -> None:
    rows = [row(last=0.5, completed=100.5), row(last=0.5, completed=101.0), row(last=20.0, completed=121.0)]
    numbers = count(tmp_path, rows, summary=RunSummary(ended=0.0, sent_until=110.0))
    course = numbers.course
    assert course is not None
    assert (course.window.seconds, course.drain) == (10.0, 11.0)
    assert numbers.total.requests_per_second == 2 / 10
    assert [(stall.start, stall.seconds) for stall in course.stalls] == []  # p99 is 20 s
    assert course.busy == (1.0 + 9.0) / (2 * 10)


def test_where_all_is_sent_before_anything_ends_the_window_is_the_whole_run(tmp_path: Path) -> None:
    numbers = count(tmp_path, [row(last=2.0, completed=102.0), row(last=2.5, completed=103.0)])
    assert numbers.course is not None
    assert numbers.course.window.whole
    assert numbers.total.requests_per_second == 2 / 3
    assert numbers.course.drain == 0.0


def test_whole_seconds(tmp_path: Path) -> None:
    # Sent at 100.25; two in the first second, none in the second, one and three in the others.
    ends = (100.75, 101.0, 102.5, 103.5, 103.75, 104.0, 104.5)
    rows = [row(last=0.5 if place < 6 else 0.25, completed=at) for place, at in enumerate(ends)]
    numbers = count(tmp_path, [*rows, row(last=0.125, completed=104.75)])
    course = numbers.course
    assert course is not None
    assert course.window.end == 104.625
    each = course.operations
    assert each is not None
    assert (each.median, each.slowest, each.slowest_at, each.fastest, each.fastest_at) == (1.5, 0, 1, 3, 3)
    assert course.moved == each  # a byte each
    assert numbers.requests_by_second == ((1, 2), (2, 0), (3, 1), (4, 3), (5, 2))


@given(
    ends=st.lists(st.integers(1, 40), min_size=1, max_size=30),
    blocks=st.integers(1, 5),
    before=st.sampled_from([1, 1000]),
)
def test_seconds_and_gaps_in_any_order(ends: list[int], blocks: int, before: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(timeline, "_BEFORE_COUNTING", before)
        line = timeline.Timeline()
        rows = [row(last=0.0, completed=1e9)] + [row(last=0.0, completed=1e9 + end / 8) for end in ends]
        for start in range(0, len(rows), blocks):
            part = block(rows[start : start + blocks])
            line.add(part, part.started)
        window = line.window(1e9 + 6)
    assert window is not None
    moments = sorted([0, *ends])
    gaps = [(a / 8, (b - a) / 8) for a, b in zip(moments, [*moments[1:], 48], strict=True)]
    assert [(stall.start, stall.seconds) for stall in line.stalls(window, latencies.merge(()), 1)] == [
        gap for gap in gaps if gap[1] > 0.5
    ]
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


def test_a_stall_is_longer_than_ten_times_the_99th_percentile(tmp_path: Path) -> None:
    usual = [row(last=0.125, completed=100.125 + place / 8) for place in range(1000)]  # until 225.0
    after = [row(last=0.125, completed=at) for at in (226.0, 227.5, 227.75)]
    course = count(tmp_path, [*usual, *after]).course
    assert course is not None
    assert [(stall.start, stall.seconds) for stall in course.stalls] == [(126.0, 1.5)]


def test_a_percentile_needs_ten_results_beyond_it(tmp_path: Path) -> None:
    figures = count(tmp_path, [row(last=float(i)) for i in range(1, 1001)]).total.lines[0].last_byte
    assert [figures.supported_percentile(rank) for rank in (50, 99, 99.1, 99.9, 100)] == [
        500.5,
        990.5,
        None,
        None,
        1000.0,
    ]
    nothing = count(tmp_path, []).total.lines[0].last_byte
    assert nothing.supported_percentile(100) is None


def test_resent_requests_are_no_retries(tmp_path: Path) -> None:
    path = tmp_path / "run.stat.gz"
    writer = RunResultsWriter(path, RunDescription(SCENARIO))
    writer.add(block([row(), row(retries=2), row(retries=1)], rare={"attempts": {0: 3, 1: 4}}))
    writer.end(RunSummary(ended=0.0))
    total = summarize(open_results(path)).total
    assert (total.retries, total.resent) == (3, 3)


def test_what_was_held_up_is_in_no_part_of_latencies(tmp_path: Path) -> None:
    path = tmp_path / "run.stat.gz"
    writer = RunResultsWriter(path, RunDescription(SCENARIO))
    rare = {"connecting": {0: 4.0, 1: 0.05}, "attempts": {0: 1}, "marks": {0: int(Mark.HELD_UP)}}
    writer.add(block([row(last=5.0), row(), row()], ["tx0", "tx1", "tx2"], rare=rare))
    writer.end(RunSummary(ended=0.0))
    total = summarize(open_results(path)).total
    last_byte = total.lines[0].last_byte
    assert total.parts.connecting == Part(1, 0.05, 0.05)
    assert total.parts.connecting.seconds < last_byte.mean * last_byte.count


def test_the_warm_up_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "run.stat.gz"
    writer = RunResultsWriter(path, RunDescription(SCENARIO))
    rows = [row(last=9.0, completed=90.0 + place) for place in range(3)]
    rows += [row(last=1.0, completed=101.0 + place) for place in range(3)]
    marks = {"marks": {0: 1, 1: 1, 2: 1}}
    ids = [f"tx{place}" for place in range(6)]
    writer.add(
        block(rows, ids, {1: Failure("HTTP 503", "", {}), 4: Failure(None, "", {"reset": 1})}, rare=marks)
    )
    writer.end(RunSummary(ended=0.0))
    numbers = summarize(open_results(path))
    assert (numbers.warmed_up, numbers.total.count, numbers.errors, numbers.retries) == (
        3,
        3,
        {},
        {"reset": 1},
    )
    assert numbers.total.lines[0].last_byte.maximum == 1.0
    assert numbers.total.lines[0].last_byte.slowest.trans_id == "tx3"
    assert numbers.course.window.start == 100.0


def test_no_time_passed(tmp_path: Path) -> None:
    total = count(tmp_path, [row(last=0.0)]).total
    assert total.requests_per_second == math.inf
    assert total.lines[0].last_byte.count == 0


def test_nothing_at_all(tmp_path: Path) -> None:
    numbers = count(tmp_path, [])
    assert (numbers.start, numbers.end, numbers.duration, numbers.worker_count) == (None, None, 0, 0)
    assert (numbers.total.count, numbers.total.requests_per_second, numbers.total.retry_rate) == (0, 0, 0)
    assert isinstance(numbers.total.lines[0].last_byte, Latencies)
    assert numbers.requests_by_second == ()


def test_failures_only(tmp_path: Path) -> None:
    rows = [row(last=NOT_MEASURED, completed=100.0 + i) for i in range(2)]
    numbers = count(tmp_path, rows, dict.fromkeys(range(2), Failure("timeout", "", {})))
    assert (numbers.start, numbers.end) == (100.0, 101.0)
    assert (numbers.total.count, numbers.total.errors, numbers.total.requests_per_second) == (0, 2, 0)
    assert numbers.workers.maximum == 0


def test_a_failure_enters_no_latency_but_its_retries_count(tmp_path: Path) -> None:
    rows = [row(last=1.0), row(last=5.0, retries=3), row(last=2.0, retries=1)]
    total = count(tmp_path, rows, {1: Failure("HTTP 500", "", {})}).total
    assert total.lines[0].last_byte.maximum == 2.0
    assert (total.retries, total.retry_rate) == (4, 200.0)


def test_causes_are_counted_and_lost_operations_are_no_errors(tmp_path: Path) -> None:
    rows = [row(), *(row(last=NOT_MEASURED) for _ in range(4)), row(last=NOT_MEASURED, worker=NO_WORKER)]
    failures = {
        0: Failure(None, "", {"HTTP 401": 1, "HTTP 503": 2}),
        1: Failure("HTTP 503", "", {"HTTP 503": 10}),
        2: Failure("timeout", "", {}),
        3: Failure("HTTP 503", "", {}),
        4: Failure("timeout", "", {}),
        5: Failure(LOST, "", {}),
    }
    summary = RunSummary(ended=0.0, not_sendable=((1, 1, 7), (99, 0, 1)), warnings=("careful",))
    numbers = count(tmp_path, rows, failures, summary)
    assert {name: (cause.count, cause.trans_id) for name, cause in numbers.errors.items()} == {
        "HTTP 503": (2, "tx1"),
        "timeout": (2, "tx2"),
        LOST: (1, "tx5"),
    }
    assert numbers.retries == {"HTTP 503": 12, "HTTP 401": 1}
    assert (numbers.total.count, numbers.total.errors, numbers.total.lost) == (1, 4, 1)
    assert [(op.name, class_, times) for op, class_, times in numbers.not_sendable] == [("read", "big", 7)]
    assert numbers.worker_count == 1
    assert numbers.warnings == ("careful",)


def test_successes_are_spread_over_workers(tmp_path: Path) -> None:
    rows = [row(worker=1), row(worker=1), row(worker=2**40), row(worker=3, last=NOT_MEASURED)]
    numbers = count(tmp_path, rows, {3: Failure("HTTP 500", "", {})})
    assert numbers.worker_count == 3
    spread = numbers.workers
    assert (spread.minimum, spread.maximum, spread.mean) == (0, 2, 1)
    assert spread.deviation == pytest.approx(math.sqrt(2 / 3))


def test_a_long_time_without_a_request_is_left_out_of_the_seconds(tmp_path: Path) -> None:
    rows = [row(completed=at) for at in (100.0, 103.0, 1e9)]
    by_second = count(tmp_path, rows).requests_by_second
    assert by_second == ((1, 1), (2, 0), (3, 0), (4, 1), (999_999_901, 1))


@given(
    st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=100),
    st.sampled_from([1, 2, 4, 8, 16]),
    st.floats(1e-6, 1e3),
)
def test_histograms_and_shares_are_exact(values: list[float], per_octave: int, limit: float) -> None:
    collector = latencies.LatencyCollector()
    for value in values:
        one = block([row(last=value)])
        collector.add(one, np.array([0]), one.last_byte, 0)
    found = collector.finish()
    edges, counts = found.histogram(per_octave)
    expected, _ = np.histogram(values, np.append(edges[:-1], np.nextafter(edges[-1], 0)))
    assert counts.tolist() == expected.tolist()
    assert counts.sum() == len(values)
    assert counts[0] > 0 < counts[-1]
    ranks = [1.0, 12.5, 50.0, 99.0, 99.9, 100.0]
    assert found.percentiles(ranks) == [found.percentile(rank) for rank in ranks]
    assert np.all(edges[1:] / edges[:-1] <= 1 + 1 / per_octave + 1e-12)
    assert found.share_within(limit) == sum(value <= limit for value in values) / len(values)
