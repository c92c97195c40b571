"""What was done over time: nothing is lost in bins, however long a run is, and their percentiles are near."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from result_rows import block, many

from ssbench.results.block import Failure
from ssbench.statistics.collector import MAX_SLOW_RESULTS, SlowestCollector
from ssbench.statistics.over_time import FIRST_BIN_WIDTH, MAX_BINS, BinsOverTime, OverTimeCollector

START = 1_700_000_000.3


def counted(
    completed: list[float], latency: float = 0.01, each: int = 1
) -> tuple[BinsOverTime, OverTimeCollector]:
    collector = OverTimeCollector()
    for first in range(0, len(completed), each):
        part = np.array(completed[first : first + each]) + START
        collector.add(many(range(len(part)), operation=1, last_byte=latency, completed=part, size=5))
    return collector.finish(START, START + max(completed)), collector


@given(st.lists(st.floats(0, 10**6), min_size=1, max_size=60), st.integers(1, 7))
def test_nothing_is_lost_and_bins_are_few(completed: list[float], each: int) -> None:
    over_time, collector = counted(completed, each=each)
    series = over_time.operations[1]
    assert series.count.sum() == len(completed)
    assert series.moved.sum() == 5 * len(completed)
    assert over_time.operations[None].count.tolist() == series.count.tolist()
    assert len(over_time.starts) <= MAX_BINS
    assert collector.width % FIRST_BIN_WIDTH == 0
    ends = over_time.starts + over_time.seconds
    assert np.allclose(ends[:-1], over_time.starts[1:], atol=1e-5)
    assert abs(ends[-1] - max(completed)) < 1e-5
    shown = series.p50[~np.isnan(series.p50)]
    assert np.array_equal(np.isnan(series.p50), series.count < 20)
    assert np.array_equal(np.isnan(series.p99), series.count < 1000)
    assert np.all(np.abs(shown / 0.01 - 1) < 0.016)


def test_a_long_run_has_bins_of_a_second_or_more() -> None:
    over_time, _ = counted(np.linspace(0.0, 30.0, 60001).tolist(), each=1000)
    assert over_time.seconds.min() > 0.49
    assert over_time.seconds.max() < 1.51
    assert over_time.seconds[1:-1].tolist() == [1.0] * (len(over_time.starts) - 2)
    assert over_time.operations[1].count[1:-1].tolist() == [2000] * (len(over_time.starts) - 2)


def test_a_short_run_has_finer_bins() -> None:
    for seconds, width in ((5.0, 0.0625), (10.0, 0.125), (19.9, 0.25), (20.0, 1.0)):
        over_time, _ = counted(np.linspace(0.0, seconds, 160_001).tolist(), each=1000)
        assert over_time.seconds[2] == pytest.approx(width)


@pytest.mark.parametrize(
    ("count", "rank", "width"), [(60_001, 99, 1.0), (6_001, 95, 2.0), (3_001, 90, 2.0), (601, 50, 2.0)]
)
def test_bins_are_as_wide_as_their_percentiles_need(count: int, rank: int, width: float) -> None:
    over_time, _ = counted(np.linspace(0.0, 30.0, count).tolist(), each=1000)
    assert over_time.upper_rank == rank
    assert over_time.seconds[1] == width
    assert not np.isnan(over_time.operations[1].upper[1:-1]).any()


def test_the_heat_map_has_each_latency_in_its_bucket() -> None:
    over_time, _ = counted([0.0, 0.1, 5.0], latency=0.01)
    assert over_time.heat.sum() == 3
    assert over_time.heat.sum(1).tolist() == over_time.operations[None].count.tolist()
    low, high = over_time.heat_edges.tolist()
    assert low <= 0.01 < high
    assert high / low < 2**0.5


def test_failures_and_percentiles_of_a_bin() -> None:
    collector = OverTimeCollector()
    latencies = np.arange(1, 1001) / 1000
    collector.add(many(range(1000), operation=1, last_byte=latencies, completed=START, size=1))
    made = many(range(2), operation=3, last_byte=np.nan, completed=START, size=7)
    made.failures.update({0: Failure("x", "", {}), 1: Failure("x", "", {})})
    collector.add(made)
    over_time = collector.finish(START, START + 0.001)
    reads = over_time.operations[1]
    assert reads.count[0] == 1000
    assert abs(reads.p50[0] - 0.5) < 0.01
    assert abs(reads.p99[0] - 0.99) < 0.02
    assert reads.maximum[0] == 1.0
    deletes = over_time.operations[3]
    assert (deletes.count[0], deletes.failed[0], deletes.moved[0]) == (0, 2, 0)
    assert np.isnan(deletes.p50[0])
    assert over_time.operations[None].failed[0] == 2


def test_the_slowest_in_order() -> None:
    collector = SlowestCollector()
    random = np.random.default_rng(1)
    latencies = random.permutation(np.arange(1, 301))
    for first in range(0, 300, 50):
        part = latencies[first : first + 50]
        rows = [(1, 0, 1, 0, 7, 10, 0.1, float(value), 1e9 + value, 200, 0) for value in part]
        made = block(rows, [f"tx{value}" for value in part], {0: Failure("x", "", {})})
        collector.add(made, first)
    failed = set(latencies[::50].tolist())
    expected = [value for value in range(300, 0, -1) if value not in failed][:MAX_SLOW_RESULTS]
    found = collector.finish()
    assert [each.latency for each in found] == expected
    assert [each.trans_id for each in found] == [f"tx{value}" for value in expected]
    assert latencies[found[0].arrival] == expected[0]
    assert found[0].started == 1e9


def test_how_many_operations_were_under_way_and_why_they_failed() -> None:
    collector = OverTimeCollector()
    # One from 0 to 4 s, one from 1 to 3 s, and in each quarter of a second one that takes 0.1 s.
    begins = np.array([0.0, 1.0, *np.arange(0, 4, 0.25)])
    lasts = np.array([4.0, 2.0, *[0.1] * 16])
    made = many(
        range(len(begins)), operation=1, started=1e9 + begins, completed=1e9 + begins + lasts, last_byte=lasts
    )
    made.failures.update({row: Failure(f"cause {row % 2}", "", {}) for row in range(2, 18)})
    collector.add(made)
    found = collector.finish(1e9, 1e9 + 4)
    assert (found.under_way * found.seconds).sum() == pytest.approx(4 + 2 + 1.6, abs=1e-4)
    middle = found.starts + found.seconds / 2
    assert found.under_way[(middle > 1) & (middle < 3)] == pytest.approx(2.4, abs=0.3)
    assert found.under_way[(middle < 0.9) | (middle > 3.1)] == pytest.approx(1.4, abs=0.3)
    assert {cause: int(counts.sum()) for cause, counts in found.causes.items()} == {
        "cause 0": 8,
        "cause 1": 8,
    }
    # The same where bins are made wider while results come, and the number of causes is bounded.
    times = {"started": np.full(40, 1e9 + 5000.0), "completed": np.full(40, 1e9 + 5001.0)}
    later = many(range(40), operation=1, last_byte=np.ones(40), **times)
    later.failures.update({row: Failure(f"another {row}", "", {}) for row in range(40)})
    collector.add(later)
    found = collector.finish(1e9, 1e9 + 5001)
    assert (found.under_way * found.seconds).sum() == pytest.approx(7.6 + 40, rel=0.01)
    assert len(found.causes) == 13
    assert sum(int(counts.sum()) for counts in found.causes.values()) == 56


@pytest.mark.parametrize(
    ("begin", "end", "seconds"),
    [(0.6, 7.4, [1.4, 1.0, 1.0, 1.0, 1.0, 1.4]), (0.5, 7.5, [0.5, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.5])],
)
def test_what_is_left_of_a_bin_at_either_end_is_put_to_the_next_where_it_is_less_than_half(
    begin: float, end: float, seconds: list[float]
) -> None:
    collector = OverTimeCollector()
    ends = 1e9 + np.array([0.9, *range(1, 8), end])
    collector.add(many(range(len(ends)), operation=1, last_byte=0.01, completed=ends, size=5))
    found = collector.finish(1e9 + begin, 1e9 + end)
    assert found.seconds == pytest.approx(seconds, abs=1e-6)
    assert found.starts[0] == 0.0
    assert found.operations[1].count.sum() == len(ends)


def test_the_slowest_are_found_among_those_of_less_than_a_second() -> None:
    collector = SlowestCollector()
    usual = np.arange(1, MAX_SLOW_RESULTS + 1) / 1000
    collector.add(many(range(MAX_SLOW_RESULTS), last_byte=usual), 0)
    collector.add(many(range(2), last_byte=np.array([0.5, 0.0005])), MAX_SLOW_RESULTS)
    assert [each.latency for each in collector.finish()] == [0.5, *usual[:0:-1].tolist()]


@pytest.mark.parametrize(
    ("bins", "width"), [(MAX_BINS, FIRST_BIN_WIDTH), (MAX_BINS + 1, 2 * FIRST_BIN_WIDTH)]
)
def test_bins_are_widened_where_there_is_one_too_many(bins: int, width: float) -> None:
    collector = OverTimeCollector()
    begin = 1_700_000_000.0 // (2 * FIRST_BIN_WIDTH) * 2 * FIRST_BIN_WIDTH
    ends = np.array([begin, begin + (bins - 0.5) * FIRST_BIN_WIDTH])
    collector.add(many(range(2), operation=1, last_byte=0.01, completed=ends, size=5))
    assert collector.width == width


def test_the_least_latencies_are_in_the_first_bucket() -> None:
    collector = OverTimeCollector()
    latencies = np.append(np.full(99, 1e-9), 1.0)
    collector.add(many(range(100), operation=1, last_byte=latencies, completed=np.full(100, START), size=5))
    (p50,) = collector.finish(START - 1, START).operations[None].p50[-1:]
    assert p50 == pytest.approx(2.0**-20 * (1 + 1 / 64), rel=0.001)  # the end of that bucket


def test_the_bin_of_a_moment_counts_for_the_span_that_begins_then() -> None:
    """Failures just after a command stood before it, where it began late in a bin."""
    collector = OverTimeCollector()
    width = collector.width
    moments = 1e9 + np.arange(1, 101) * width / 10
    collector.add(many(range(100), operation=1, completed=moments, last_byte=np.full(100, 0.001)))
    start, middle, end = 1e9, 1e9 + 5.7 * width, 1e9 + 10 * width
    before = collector.count_span(start, middle, is_last=False)
    after = collector.count_span(middle, end, is_last=True)
    assert before.count <= np.count_nonzero(moments < middle)
    assert before.count == np.count_nonzero(moments < 1e9 + 5 * width)
    assert before.count + after.count in {99, 100}  # what ended with the end may be in a bin of its own
