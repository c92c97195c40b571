"""The successes of each second: the same as counted one second at a time."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from ssbench.statistics.timeline import _MAX_GAP_SECONDS, Successes, list_successes


def one_at_a_time(counts: dict[int, int], first: int) -> list[tuple[int, int]]:
    """Return what is expected, with a step for each second."""
    rows: list[tuple[int, int]] = []
    for second in sorted(counts):
        previous, place = rows[-1][0] if rows else 0, second - first + 1
        if place - previous <= _MAX_GAP_SECONDS:
            rows += [(empty, 0) for empty in range(previous + 1, place)]
        rows.append((place, counts[second]))
    return rows


@given(
    counts=st.dictionaries(st.integers(0, 300), st.integers(0, 5)),
    far=st.dictionaries(st.integers(86_300, 86_800), st.integers(1, 5), max_size=2),
    from_zero=st.booleans(),
)
def test_seconds_without_a_success_are_filled_in(
    counts: dict[int, int], far: dict[int, int], from_zero: bool
) -> None:
    every = {**counts, **far}
    first = 0 if from_zero else min(every, default=0)
    found = list_successes(Counter(every), 0 if from_zero else None)
    expected = one_at_a_time(every, first)
    assert list(found) == expected
    assert len(found) == len(expected)
    assert [found[place] for place in range(len(found))] == expected
    assert list(found[3:7]) == expected[3:7]


def test_many_seconds_are_all_there() -> None:
    """More than are made plain numbers at once."""
    found = list_successes(Counter({0: 2, 25_000: 3}))
    assert list(found) == [(1, 2), *((second, 0) for second in range(2, 25_001)), (25_001, 3)]
    assert sum(count for _, count in found) == 5


def test_seconds_of_damaged_files() -> None:
    """They may be before the first one, and further away than any clock shows."""
    assert list(list_successes(Counter({-5: 1, 2: 3}), 0))[:3] == [(-4, 1), (-3, 0), (-2, 0)]
    far = list(list_successes(Counter({-(2**62): 1, 2**62: 1, 2**62 + 5: 2})))
    assert [count for _, count in far] == [1, 1, 2]


def test_the_same_are_equal() -> None:
    one = list_successes(Counter({7: 1, 9: 2}))
    assert one == list_successes(Counter({107: 1, 109: 2}))
    assert one != list_successes(Counter({7: 1, 9: 3}))
    assert isinstance(one[:1], Successes)
