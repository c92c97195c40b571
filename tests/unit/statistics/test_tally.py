"""Counting whole numbers, near to each other and far apart."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ssbench.statistics.tally import _MAX_SPAN, count_values

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
