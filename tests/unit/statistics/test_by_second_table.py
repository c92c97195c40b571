"""A table of latencies by second against what counting them one by one makes of the same."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssbench.statistics.by_second import BySecond, LatencyTable
from ssbench.statistics.confidence import percentile_ranks, share_ranks

#: Where buckets of latencies begin: 64 in an octave, evenly spaced.
EDGES = [octave * (1 + part / 64) for octave in (0.5, 1.0, 2.0) for part in range(64)] + [4.0]
#: (Second, place of a bucket) of each latency.
Ends = list[tuple[int, int]]

some_ends = st.lists(st.tuples(st.integers(5, 9), st.integers(40, 150)), min_size=1, max_size=40)


def table(ends: Ends) -> LatencyTable:
    """Make a table of several parts; a latency is anywhere in its bucket."""
    parts = []
    for step in range(3):
        own = ends[step::3]
        if own:
            moments = np.array([second + 0.999 * (place % 2) for second, place in own])
            latencies = [EDGES[place] + 0.99 * (place % 3) / 3 * width(place) for _, place in own]
            parts.append(LatencyTable.of(moments, np.array(latencies)))
    return LatencyTable.merged(parts)


def width(place: int) -> float:
    return EDGES[place + 1] - EDGES[place]


def percentile(places: Sequence[int], share: float) -> float:
    """Return where so many of the latencies are below, which lie evenly in their buckets."""
    wanted, counted = share * len(places), 0
    for place, count in sorted(Counter(places).items()):
        if counted + count >= wanted:
            return EDGES[place] + width(place) * (wanted - counted) / count
        counted += count
    raise AssertionError("there are no more")


@given(some_ends, st.sampled_from([0.01, 0.25, 0.5, 0.9, 1.0]))
def test_percentiles_lie_in_their_buckets_where_the_share_is(ends: Ends, share: float) -> None:
    made = table(ends)
    every = [place for _, place in ends]
    assert made.percentile(share) == pytest.approx(percentile(every, share))
    seconds, found, counts = made.percentiles(share)
    assert seconds.tolist() == sorted({second for second, _ in ends})
    of = {each: [place for second, place in ends if second == each] for each in seconds.tolist()}
    assert found == pytest.approx([percentile(places, share) for places in of.values()])
    assert counts.tolist() == [len(places) for places in of.values()]


@given(some_ends, st.sampled_from([0.01, 0.25, 0.5, 0.9, 1.0]))
def test_what_is_below_a_percentile_is_counted_in_each_second(ends: Ends, share: float) -> None:
    made, limit = table(ends), percentile([place for _, place in ends], share)
    first, last = min(ends)[0], max(ends)[0]
    below, every, sums = ([0.0] * (last - first + 1) for _ in range(3))
    for second, place in ends:
        part = (limit - EDGES[place]) / width(place)
        below[second - first] += min(max(part, 0.0), 1.0)
        every[second - first] += 1
        sums[second - first] += (EDGES[place] + EDGES[place + 1]) / 2
    found = made.below(share)
    assert found is not None
    assert found[0] == first
    assert found[1] == pytest.approx(below)
    assert found[2].tolist() == every
    assert float(found[1].sum()) == pytest.approx(share * len(ends))
    assert made.ranks(share) == percentile_ranks(share, *found[1:])
    of_sums = made.sums()
    assert of_sums is not None
    assert of_sums[0] == pytest.approx(sums)
    assert of_sums[1].tolist() == every


@given(some_ends, st.integers(40, 150), st.integers(0, 40))
def test_what_lies_between_two_latencies_is_counted_by_whole_buckets(ends: Ends, low: int, more: int) -> None:
    made, high = table(ends), min(low + more, 150)
    expected = Counter(second for second, place in ends if low <= place <= high)
    assert made.between(EDGES[low], EDGES[high]) == expected
    assert made.between(-1.0, EDGES[high]) == Counter(second for second, place in ends if place <= high)
    found = made.below(1.0)
    assert found is not None
    within = [
        float(made.between(0.0, EDGES[high])[second]) for second in range(min(ends)[0], max(ends)[0] + 1)
    ]
    assert made.ranks_within(EDGES[high]) == share_ranks(np.array(within), found[2])


@given(some_ends, st.integers(4, 10))
def test_a_table_is_cut_between_two_seconds(ends: Ends, second: int) -> None:
    for found, expected in zip(
        (*table(ends).cut(second), table(ends).since(second)),
        (
            [each for each in ends if each[0] < second],
            *([each for each in ends if each[0] >= second],) * 2,
        ),
        strict=True,
    ):
        assert [each.tolist() for each in found._rows()] == [
            each.tolist() for each in table(expected)._rows()
        ]
        assert math.isnan(found.percentile(0.5)) is not bool(expected)


def test_buckets_lie_next_to_each_other() -> None:
    made = LatencyTable.of(np.arange(len(EDGES) - 1.0), np.array(EDGES[:-1]))
    _, buckets, _ = made._rows()
    assert {after - before for before, after in pairwise(buckets.tolist())} == {1}


def test_of_no_results_nothing_follows() -> None:
    nothing = LatencyTable()
    assert nothing.below(0.5) is None
    assert nothing.sums() is None
    assert nothing.ranks_within(1.0) is None
    assert [each.tolist() for each in BySecond().failures()] == [[], []]


def test_failures_are_counted_beside_all_that_ended_in_the_same_second() -> None:
    counted = BySecond(Counter({10: 3, 12: 5}), Counter(), Counter({9: 1, 12: 2, 14: 4}))
    failed, every = counted.failures()
    assert failed.tolist() == [1, 0, 0, 2, 0, 4]
    assert every.tolist() == [1, 3, 0, 7, 0, 4]
    assert [counted.ended(9, last) for last in (9, 10, 12, 13, 15)] == [0, 1, 4, 11, 15]


@given(
    st.lists(st.tuples(st.sampled_from([4, 6, 7, 9, 10**7]), st.integers(40, 150)), min_size=1, max_size=40)
)
def test_a_table_of_intervals_twice_as_long_has_the_same_latencies(ends: Ends) -> None:
    found, expected = (
        each.percentiles(0.5)
        for each in (table(ends).halved(), table([(s // 2, place) for s, place in ends]))
    )
    assert [each.tolist() for each in found] == [pytest.approx(each.tolist()) for each in expected]
