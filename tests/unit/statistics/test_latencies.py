"""Latencies against numpy, and what is kept of them, from values in memory."""

from __future__ import annotations

import math

import numpy as np
import pytest
from counted import failed, row
from hypothesis import given
from hypothesis import strategies as st
from result_rows import block

from ssbench.results.result_fields import ResultMark
from ssbench.statistics import latencies
from ssbench.statistics import latencies as module
from ssbench.statistics.latencies import (
    Latencies,
    LatencyCollector,
    measured_latencies,
    merge_latencies,
    select_grouped_latencies,
    select_latencies,
)

values = st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=60)


def of(*seconds: float) -> Latencies:
    return select_latencies(np.array(seconds))


@given(values, values)
def test_merged_they_are_as_if_they_had_never_been_apart(one: list[float], other: list[float]) -> None:
    both, every = merge_latencies([of(*one), of(*other)]), np.array([*one, *other])
    assert (both.count, both.minimum, both.maximum) == (len(every), every.min(), every.max())
    assert both.mean == pytest.approx(every.mean())
    assert both.deviation == pytest.approx(every.std(), abs=1e-9 + 1e-6 * every.max())
    ordered = np.sort(every)
    assert [both.smallest(place + 1) for place in range(len(every))] == ordered.tolist()
    for low, high in ((0.0, 1.0), (every.min(), every.max()), (every[0], every.max() * 2)):
        assert both.between(low, high) == np.count_nonzero((every >= low) & (every < high))
    limit = float(every[0])
    assert both.share_within(limit) == pytest.approx(np.mean(every <= limit))
    edges, counts = both.histogram()
    assert counts.tolist() == np.histogram(every, edges)[0].tolist()
    assert edges[0] <= every.min()
    assert edges[-1] > every.max()


def test_many_small_parts_become_one() -> None:
    seconds = np.random.default_rng(1).exponential(1.0, module._MAX_SMALL_PARTS + 2)
    merged = merge_latencies(of(each) for each in seconds)
    assert len(merged._parts) == 1
    assert [merged.smallest(place + 1) for place in range(len(seconds))] == np.sort(seconds).tolist()


def test_nothing_has_no_figures() -> None:
    nothing = merge_latencies([])
    for made in (nothing, of(), merge_latencies([nothing, nothing])):
        assert made.count == 0
        assert math.isnan(made.mean)
        assert math.isnan(made.percentile(50))
        assert made.share_within(1.0) == 0.0
        assert made.between(0.0, 1.0) == 0
        assert [len(each) for each in made.histogram()] == [0, 0]
        assert made.interval(50) is None
        assert not made.supports(100)
        assert made.supported_percentile(50) is None
        assert [math.isnan(each) for each in made.percentiles([50, 99])] == [True, True]


def test_ten_have_to_lie_beyond_a_percentile_and_one_at_the_maximum() -> None:
    thousand = of(*range(1, 1001))
    assert thousand.supports(99)
    assert not of(*range(1, 1000)).supports(99)
    assert not thousand.supports(99.1)
    assert thousand.supported_percentile(99) == thousand.percentile(99)
    assert thousand.supported_percentile(99.1) is None
    assert of(1.0).supported_percentile(100) == 1.0


def test_some_are_left_out_and_others_have_no_end() -> None:
    made = of(*range(1, 101))
    assert made.percentile(100) == 100.0
    assert made.percentile(100, without=1) == 99.0
    assert made.percentile(100, endless=1) == math.inf
    assert made.percentile(50, endless=90) == made.percentile(95)
    assert math.isnan(made.percentile(50, without=100))
    assert (made.most(None), made.most(50)) == (made.mean, made.percentile(50))
    assert made.percentiles([1, 50, 99.9, 100]) == [made.percentile(rank) for rank in (1, 50, 99.9, 100)]


def collected(*columns: tuple[list[float], list[float]], before: int = 0) -> Latencies:
    collector = LatencyCollector()
    for seconds, ends in columns:
        made = block(
            [row(last=each, completed=end) for each, end in zip(seconds, ends, strict=True)],
            [f"tx{before + place}" for place in range(len(seconds))],
        )
        collector.add(made, np.arange(len(seconds)), np.zeros(len(seconds), np.intp), made.last_byte, before)
        before += len(seconds)
    (found,) = collector.finish()
    return found


def test_zeros_and_what_was_not_measured_do_not_count_but_a_zero_may_be_the_slowest() -> None:
    made = collected(([0.0, math.nan, 0.5], [1.0, 2.0, 3.0]))
    assert (made.count, made.mean) == (1, 0.5)
    assert made.slowest is not None
    assert (made.slowest.trans_id, made.slowest.arrival) == ("tx2", 2)
    zeros = collected(([0.0, 0.0], [1.0, 2.0]))
    assert zeros.count == 0
    assert zeros.slowest is not None
    assert zeros.slowest.arrival == 0
    assert collected(([math.nan], [1.0])).slowest is None
    assert collected().count == 0


def test_of_equally_slow_ones_the_first_is_kept() -> None:
    made = collected(([0.25, 0.5, 0.5], [1.0, 2.0, 3.0]), ([0.5, 0.125], [4.0, 5.0]), before=10)
    assert made.slowest is not None
    assert (made.slowest.arrival, made.slowest.trans_id) == (11, "tx11")
    assert (made.slowest.completed, made.slowest.started) == (2.0, 1.5)
    later = collected(([0.5], [9.0]), before=99)
    assert merge_latencies([later, made]).slowest == made.slowest


def test_parts_are_made_of_many_and_lose_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latencies, "_PART_COUNT", 3)
    monkeypatch.setattr(latencies, "_PART_COUNT_PER_GROUP", 1)
    made = collected(([0.1, 0.2], [1.0, 1.5]), ([0.3, 0.4], [2.0, 2.5]), ([0.5], [3.0]))
    assert len(made._parts) == 2
    assert (made.count, made.maximum) == (5, 0.5)
    assert made.by_second.percentile(1.0) == pytest.approx(0.5, rel=0.05)


def test_failures_and_what_was_held_up_are_not_measured() -> None:
    made = block(
        [row(last=0.1), row(last=0.2), row(last=0.3)],
        failures=failed(0),
        rare={"marks": {2: int(ResultMark.DELAYED)}},
    )
    assert [math.isnan(each) for each in measured_latencies(made)] == [True, False, True]
    assert not np.isnan(made.last_byte).any()


def test_when_the_slowest_began_is_what_its_worker_says_where_it_does() -> None:
    made = block([row(last=0.5, completed=9.0)], rare={"started": {0: 7.0}})
    collector = LatencyCollector()
    collector.add(made, np.arange(1), np.zeros(1, np.intp), made.last_byte, 0)
    found = collector.finish()[0].slowest
    assert found is not None
    assert (found.started, found.completed) == (7.0, 9.0)


@pytest.mark.parametrize("rank", [1.0, 50.0, 99.0, 99.9])
def test_an_interval_is_of_the_latencies_at_both_ends_of_its_ranks(rank: float) -> None:
    """One more of them at its upper end: so many are certainly not beyond it."""
    random = np.random.default_rng(3)
    seconds = random.lognormal(-4, 0.6, 2000)
    found = select_latencies(seconds, 1e9 + np.arange(2000) // 100)
    ranks = found.by_second.ranks(rank / 100)
    assert ranks is not None
    ordered = [*np.sort(seconds).tolist(), math.inf]
    low, high = math.floor(ranks.low * 2000), min(math.ceil(ranks.high * 2000), 2000)
    interval = found.interval(rank)
    if low < 1:
        assert interval is None
    else:
        assert interval is not None
        assert (interval.low, interval.high) == (ordered[low - 1], ordered[high])
        assert interval.low <= found.percentile(rank) <= interval.high
        assert interval.effective_size == ranks.effective_size
    assert select_latencies(seconds).interval(rank) is None


@pytest.mark.parametrize("count", [40, 20_000])
@pytest.mark.parametrize("groups", [1, 3])
def test_groups_have_the_latencies_that_each_has_alone(count: int, groups: int) -> None:
    random = np.random.default_rng(4)
    group = 2 * random.integers(0, groups, count)
    seconds, ended = random.lognormal(-4, 0.6, count), random.uniform(100, 130, count)
    found = select_grouped_latencies(group, seconds, ended)
    assert sorted(found) == sorted(set(group.tolist()))
    for number, each in found.items():
        alone = select_latencies(seconds[group == number], ended[group == number])
        assert (each.count, each.minimum, each.maximum) == (alone.count, alone.minimum, alone.maximum)
        assert (each.mean, each.deviation) == pytest.approx((alone.mean, alone.deviation), rel=1e-12)
        ranks = [1.0, 50.0, 99.0]
        assert each.percentiles(ranks) == alone.percentiles(ranks)
        assert [column.tolist() for column in each.by_second._rows()] == [
            column.tolist() for column in alone.by_second._rows()
        ]
