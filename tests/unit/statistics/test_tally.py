"""Counting whole numbers, near to each other and far apart."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ssbench.statistics.tally import (
    _MAX_SPAN,
    add_up,
    count_values,
    find_starts,
    grow_groups,
    number_values,
    order_in_groups,
    take_rows,
    to_whole_numbers,
)

NEAR = st.integers(-50, 50)
FAR = st.one_of(NEAR, st.integers(-(2**40), 2**40), st.just(_MAX_SPAN))


@given(values=st.lists(st.one_of(NEAR, FAR), max_size=40), before=st.dictionaries(NEAR, st.integers(1, 9)))
def test_it_counts_as_a_counter_does(values: list[int], before: dict[int, int]) -> None:
    found, expected = Counter(before), Counter(before)
    count_values(found, np.array(values, np.int64))
    expected.update(values)
    assert found == expected


@given(pairs=st.lists(st.tuples(FAR, st.integers(0, 1000)), max_size=40))
def test_it_adds_up_weights_also_those_of_0(pairs: list[tuple[int, int]]) -> None:
    found: Counter[int] = Counter()
    expected: dict[int, int] = {}
    count_values(
        found, np.array([value for value, _ in pairs], np.int64), np.array([each for _, each in pairs])
    )
    for value, weight in pairs:
        expected[value] = expected.get(value, 0) + weight
    assert dict(found) == expected


@given(st.lists(FAR, min_size=1, max_size=40))
def test_numbers_are_equal_where_values_are_and_in_their_order(values: list[int]) -> None:
    numbers, known = number_values(np.array(values, np.int64))
    assert known[numbers].tolist() == values
    assert known.tolist() == sorted(set(known.tolist()))
    assert numbers.min() >= 0
    assert numbers.max() < len(known)
    ordered = np.sort(np.array(values))
    firsts = [place for place, each in enumerate(ordered.tolist()) if each not in ordered[:place].tolist()]
    assert find_starts(ordered).tolist() == firsts


def test_values_that_lie_close_together_are_numbered_with_those_between_them() -> None:
    for values, numbered in (([5, 3, 5], [3, 4, 5]), ([7], [7]), ([-_MAX_SPAN, 2, 0], [-_MAX_SPAN, 0, 2])):
        numbers, known = number_values(np.array(values, np.int64))
        assert known.tolist() == numbered
        assert known[numbers].tolist() == values


@given(st.lists(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9)), max_size=8), max_size=4))
def test_groups_are_added_up_as_they_come(parts: list[list[tuple[int, int]]]) -> None:
    sums, counts, expected, number = np.empty(0), np.empty(0), Counter[int](), Counter[int]()
    for part in parts:
        groups = np.array([group for group, _ in part], np.intp)
        sums = add_up(sums, groups, np.array([weight for _, weight in part], np.int64))
        counts = add_up(counts, groups)
        for group, weight in part:
            expected[group] += weight
            number[group] += 1
    size = max(expected, default=-1) + 1
    assert sums.tolist() == [expected[group] for group in range(size)]
    assert counts.tolist() == [number[group] for group in range(size)]
    assert grow_groups(sums, size + 2, -1).tolist() == [*sums.tolist(), -1, -1]
    assert grow_groups(sums, 1) is sums or len(sums) == 0


def test_rows_follow_each_other_in_their_groups() -> None:
    for large in (0, (1 << 16) - 3, 1 << 16):
        groups = np.array([2, 0, 2, 1, 0, 2], np.intp) + large
        assert order_in_groups(groups).tolist() == [1, 4, 3, 0, 2, 5]
    column = np.array([5, 6, 7])
    every = take_rows(column, np.arange(3))
    assert (every.tolist(), take_rows(column, np.array([2, 0])).tolist()) == ([5, 6, 7], [7, 5])
    every[0] = 9
    assert column[0] == 5
    assert to_whole_numbers(np.array([1e300, -1e300, 3.0, 2.0**62])).tolist() == [2**62, -(2**62), 3, 2**62]
