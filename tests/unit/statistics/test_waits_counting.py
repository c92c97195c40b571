"""What waits are counted from: requests near a length, one by one, and how likely as many are by chance."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ssbench.scenario.operations import CREATE, READ
from ssbench.statistics.by_second import LatencyTable
from ssbench.statistics.latencies import Latencies, merge_latencies, select_latencies
from ssbench.statistics.waits import (
    WaitLength,
    _binomial_tail,
    _chance_share,
    _count_leaf,
    _Crowd,
    _drop_lone_classes,
    _information,
    _Leaf,
    _significant,
    _test_leaves,
    _test_whole,
    _Usual,
    _usual_times,
)

#: A wait of a second, which may be 30 ms late.
SECOND = WaitLength(1.0, 0.03, "x", "y")
NOTHING = merge_latencies(())


def latencies(*values: float | tuple[int, float]) -> Latencies:
    """Return latencies; (number, seconds) are as many alike."""
    every = [each if isinstance(each, tuple) else (1, each) for each in values]
    return select_latencies(np.repeat([seconds for _, seconds in every], [count for count, _ in every]))


def leaf(inside: int = 0, below: int = 0, above: int = 0, near: int = 0, **others: object) -> _Leaf:
    given = {"latencies": latencies((near or 1, 1.0)), "chance": 0.1, **others}
    return _Leaf(READ, low=0.0, high=0.0, inside=inside, below=below, above=above, near=near, **given)


@pytest.mark.parametrize("chance", [0.01, 0.2, 0.7])
@pytest.mark.parametrize("trials", [20, 200, 201, 500])
def test_the_tail_is_exact_of_few_and_an_upper_bound_of_many(trials: int, chance: float) -> None:
    terms = [
        math.comb(trials, each) * chance**each * (1 - chance) ** (trials - each) for each in range(trials + 1)
    ]
    for least in range(0, trials + 1, 10):
        exact = math.fsum(terms[least:])
        found = _binomial_tail(trials, chance, least)
        if least <= trials * chance:
            assert found == 1.0
        elif trials <= 200:
            assert found == pytest.approx(exact)
        else:
            divergence = math.fsum(
                part * math.log(part / of) for part, of in _parts(least / trials, chance) if part > 0
            )
            assert found == pytest.approx(math.exp(-trials * divergence))
            assert exact <= found
            assert _information(least / trials, chance) == pytest.approx(divergence)
    assert _information(chance, chance) == 0.0
    assert _information(chance / 2, chance) == 0.0


def _parts(share: float, chance: float) -> list[tuple[float, float]]:
    return [(share, chance), (1 - share, 1 - chance)]


def test_a_window_has_twice_its_share_of_what_is_near_by_chance_at_most() -> None:
    """Near is from two thirds of a length to one and a half times it."""
    assert _chance_share(SECOND, 0.1) == pytest.approx(2 * 0.1 / (1.5 - 1 / 1.5))
    assert _chance_share(WaitLength(2.0, 0.0, "", ""), 0.1) == pytest.approx(0.1 / (1.5 - 1 / 1.5))
    assert _chance_share(SECOND, 5.0) == 1.0


def test_requests_without_a_wait_take_what_tells_most_of_them() -> None:
    values = [*np.linspace(0.01, 0.05, 80), *np.linspace(0.1, 0.45, 20), *[1.0] * 9]
    found = _usual_times(select_latencies(np.array(values)), SECOND)
    fast = sorted(each for each in values if each <= 0.5)
    times = {share: fast[max(1, round(share * len(fast))) - 1] for share in (0.95, 0.8, 0.65, 0.5)}
    usable = {share: most for share, most in times.items() if most <= 0.25}
    assert set(usable) == {0.8, 0.65, 0.5}
    best = max(usable, key=lambda share: _information(share, _chance_share(SECOND, usable[share] + 0.03)))
    assert found == _Usual(
        pytest.approx(usable[best], rel=1e-6), pytest.approx(max(usable.values()), rel=1e-6)
    )
    assert _usual_times(latencies((9, 0.01), (90, 1.0)), SECOND) is None  # ten tell
    assert _usual_times(latencies((10, 0.01), (90, 1.0)), SECOND) == _Usual(0.01, 0.01)
    assert _usual_times(latencies((10, 0.26), (90, 1.0)), SECOND) is None
    assert _usual_times(latencies((10, 0.24)), SECOND) == _Usual(0.24, 0.24)


def test_requests_are_counted_in_the_window_and_beside_it() -> None:
    # All that do not wait take 10 ms: the window is from 0.5 ms before a second to 40 ms after it.
    values = [
        *[0.01] * 50,
        *[0.66, 0.67, 0.957, 0.96, 0.9994],
        *[0.9996, 1.0, 1.0399],
        *[1.0401, 1.08, 1.081, 1.49, 1.51, 9.0],
    ]
    found = _count_leaf(READ, SECOND, select_latencies(np.array(values)), lambda: NOTHING)
    assert found is not None
    assert (found.low, found.high) == (pytest.approx(0.9995), pytest.approx(1.04))
    assert (found.inside, found.below, found.above) == (3, 2, 2)
    assert found.near == 0 + 11  # from two thirds of a second to one and a half
    assert found.chance == pytest.approx(_chance_share(SECOND, 0.0405))
    later = _count_leaf(READ, SECOND, select_latencies(np.array(values)), lambda: NOTHING, 0.05)
    assert later is not None
    assert (later.low, later.inside) == (pytest.approx(0.9495), 6)


def test_where_nothing_is_long_there_is_nothing_to_count_and_of_few_nothing_to_say() -> None:
    found = _count_leaf(READ, SECOND, latencies((10, 0.25)), lambda: NOTHING)
    assert found is not None
    assert (found.inside, found.near, found.latencies.count) == (0, 0, 10)
    assert _count_leaf(READ, SECOND, latencies((9, 0.25)), lambda: NOTHING) is None
    assert _count_leaf(READ, SECOND, latencies((9, 0.01), (5, 1.0)), lambda: NOTHING) is None


@pytest.mark.parametrize(
    ("values", "is_whole"),
    [
        ([(20, 1.01)], True),
        ([(19, 1.01)], False),
        ([(10, 0.1), (20, 1.01)], True),
        ([(11, 0.1), (20, 1.01)], False),  # ten may be fast, or a twentieth
        ([(20, 0.1), (400, 1.01)], True),
        ([(21, 0.1), (400, 1.01)], False),
        ([(5, 0.9), (95, 1.01)], True),
        ([(6, 0.9), (94, 1.01)], False),  # a twentieth may be shorter
        ([(75, 1.149), (25, 1.6)], True),
        ([(74, 1.149), (26, 1.6)], False),  # three quarters are within 15 % of it
        ([(75, 1.151), (25, 1.6)], False),
    ],
)
def test_all_requests_wait_where_hardly_any_is_shorter_and_most_are_about_as_long(
    values: list[tuple[int, float]], is_whole: bool
) -> None:
    every = latencies(*values)
    found = _test_whole(READ, SECOND, every, lambda: NOTHING)
    assert (found is not None) is is_whole
    if found:
        low, high = 0.9995, 1.15
        assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))
        assert found.inside == sum(count for count, seconds in values if low <= seconds <= high)
        assert (found.whole, found.near) == (True, 0)


def test_a_wide_window_needs_others_that_are_fast_and_so_does_a_length_that_round_trips_have() -> None:
    fast, wide = latencies((10, 0.01)), latencies((40, 1.25))
    assert _test_whole(CREATE, SECOND, wide, lambda: NOTHING) is None
    found = _test_whole(CREATE, SECOND, wide, lambda: fast)
    assert found is not None
    assert found.high == pytest.approx(1.3)
    assert _test_whole(CREATE, SECOND, latencies((40, 1.25), (1, 0.9)), lambda: fast) is None
    short = WaitLength(0.4, 0.03, "x", "y")
    assert _test_whole(CREATE, short, latencies((40, 0.5)), lambda: fast) is None
    told = WaitLength(1.0, 0.03, "x", "y", alone=False)
    alike = latencies((40, 1.01))
    assert _test_whole(CREATE, told, alike, lambda: NOTHING) is None
    assert _test_whole(CREATE, told, alike, lambda: fast) is not None


@pytest.mark.parametrize(
    ("inside", "below", "above", "is_crowd"),
    [(5, 0, 0, True), (4, 0, 0, False), (12, 3, 6, True), (11, 3, 0, False), (12, 0, 7, False)],
)
def test_a_crowd_is_four_times_what_is_below_and_twice_what_is_above(
    inside: int, below: int, above: int, is_crowd: bool
) -> None:
    near = 60
    parts = [leaf(inside - 2, below, 0, 20, chance=0.1), leaf(2, 0, above, 40, chance=0.25)]
    (found,) = _test_leaves(SECOND, "read", parts)
    assert found.count == near
    assert found.requests == (inside if is_crowd else 0)
    chance = (20 * 0.1 + 40 * 0.25) / near
    assert found.probability == pytest.approx(_binomial_tail(near, chance, inside) if is_crowd else 1.0)


def test_hardly_any_requests_are_no_test_and_whole_classes_need_none() -> None:
    assert [*_test_leaves(SECOND, "", [leaf(3, near=4)])] == []
    assert len([*_test_leaves(SECOND, "", [leaf(3, near=5)])]) == 1
    (found,) = _test_leaves(SECOND, "", [leaf(3, near=4), leaf(30, whole=True)])
    assert (found.requests, found.probability) == (30, 0.0)
    one, few, others = leaf(20, whole=True), leaf(4), leaf(5)
    assert _drop_lone_classes([one, few], 2) == [few]
    assert _drop_lone_classes([one, others], 2) == [one, others]
    assert _drop_lone_classes([one], 1) == [one]


def test_tests_are_significant_together_by_holms_method() -> None:
    def crowd(probability: float) -> _Crowd:
        return _Crowd(SECOND, "", 1, 1, probability, ())

    for given, count in (
        ([0.0033, 0.5, 0.9], 1),
        ([0.0034, 0.5, 0.9], 0),
        ([0.9, 0.0049, 0.0033], 2),
        ([0.9, 0.0051, 0.0033], 1),
        ([0.0099, 0.001, 0.001], 3),
    ):
        tests = [crowd(each) for each in given]
        assert [each.probability for each in _significant(tests)] == sorted(given)[:count]


@pytest.mark.parametrize(
    ("users", "events"), [(1, 7), (2, 2 + 1 + 1), (3, 2 + 1 + 1), (4, 1 + 1 + 1), (math.inf, 0)]
)
def test_users_wait_once_in_a_pause(users: float, events: int) -> None:
    """Four in one second, one and two in others; a wait that is outside of the window is not counted."""
    moments = np.array([5.1, 5.2, 5.3, 5.4, 7.0, 9.0, 9.9, 9.95])
    values = np.array([1.0] * 7 + [2.0])
    known: Any = SimpleNamespace(by_second=LatencyTable.of(moments, values))
    window = _Leaf(READ, known, 0.9995, 1.04)
    assert _Crowd(SECOND, "", 1, 1, 0.0, (window,)).events(users) == events
    assert _Crowd(SECOND, "", 1, 1, 0.0, ()).events(users) == 0
