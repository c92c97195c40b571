"""Deviates that are allowed for: many tests, differences that come and go, few that are slow."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from ssbench.cluster.rank_tests import (
    MIN_TEST_REQUESTS,
    Pairs,
    Regression,
    Units,
    _measure_dispersion,
    _normal_of_t,
    adjust_by_holm,
    interval_of_median,
    make_pairs,
    make_single_pairs,
    measure_deviates,
    sort_distinct,
)

NAN = float("nan")
KINDS = np.array([0, 1, 0])


def units(count: int = 240, slices: int = 8, *, is_dispersed: bool = False) -> Units:
    """Requests of three kinds of two groups, in as many slices of the run."""
    random = np.random.default_rng(6)
    stratum = random.integers(0, 3, count)
    return Units(
        random.lognormal(0, 0.4, count) + stratum,
        stratum,
        KINDS,
        np.arange(count) * slices // count,
        is_dispersed,
    )


def by_turns(made: Units, turns: list[float]) -> tuple[Units, Pairs]:
    """A candidate of a third of the requests, which take longer by so much in each slice."""
    mine = np.arange(len(made)) % 3 == 0
    assert made.slices is not None
    slower = made.seconds + mine * np.array(turns)[made.slices]
    at = np.flatnonzero(mine)
    return replace(made, seconds=slower), make_pairs(at, np.zeros(len(at), np.int64), 1)


def test_probabilities_are_adjusted_for_as_many_as_are_left() -> None:
    """The least of n counts n times, the next n - 1 times, and none less than one before it."""
    found = adjust_by_holm(np.array([[0.01, NAN, 0.4], [0.02, 0.015, 0.9]]))
    expected = [[0.05, NAN, 0.8], [0.06, 0.06, 0.9]]
    assert found == pytest.approx(np.array(expected), nan_ok=True)
    assert adjust_by_holm(np.array([0.5, 0.6])).tolist() == [1.0, 1.0]
    assert np.isnan(adjust_by_holm(np.array([NAN]))).all()
    assert len(adjust_by_holm(np.zeros(0))) == 0
    random = np.random.default_rng(1).random(9) / 20
    ordered, highest, by_value = sorted(random.tolist()), 0.0, {}
    for place, each in enumerate(ordered):
        highest = max(highest, min(each * (9 - place), 1.0))
        by_value[each] = highest
    assert adjust_by_holm(random).tolist() == pytest.approx([by_value[each] for each in random.tolist()])


def dispersion(made: Units, who: Pairs, group: int | None) -> float:
    """Return chi-squared of sums of scores by slice, by its degrees of freedom."""
    regression = Regression(made, 2)
    mask = who.of(0, len(made))
    share = {kind: mask[made.stratum == kind].mean() for kind in range(3)}
    sums, expected = [0.0] * 8, [0.0] * 8
    assert made.slices is not None
    for place in range(len(made)):
        kind, slice_ = int(made.stratum[place]), int(made.slices[place])
        if group in (None, KINDS[kind]):
            chance = float(share[kind])
            sums[slice_] += float(regression.scores[place]) * (float(mask[place]) - chance)
            left = float(regression.left[KINDS[kind]] * regression.variances[kind])
            expected[slice_] += left * chance * (1 - chance)
    mean = sum(sums) / sum(expected)
    found = sum((a - mean * b) ** 2 / b for a, b in zip(sums, expected, strict=True)) / 7
    return max(1.0, found)


@pytest.mark.parametrize("turns", [[0.6] * 8, [2.0, 0.0] * 4, [3.0, 0, 0, 0, 0, 0, 0, 0]])
@pytest.mark.parametrize("group", [None, 0, 1])
def test_what_comes_and_goes_makes_a_deviate_less_by_the_root_of_chi_squared(
    turns: list[float], group: int | None
) -> None:
    made, who = by_turns(units(), turns)
    expected = dispersion(made, who, group)
    found = _measure_dispersion(made, Regression(made, 2), who.of(0, len(made)), group)
    assert found == (pytest.approx(expected), 8)
    row = 2 if group is None else group
    plain = measure_deviates(made, who, 2).z[row, 0]
    allowed = measure_deviates(replace(made, is_dispersed=True), who, 2).z[row, 0]
    if plain > 2:
        assert allowed == pytest.approx(_normal_of_t(plain / math.sqrt(expected), 7))
    else:  # small ones are not worth it
        assert allowed == plain


def test_that_is_measured_over_five_slices_or_not_at_all() -> None:
    for slices, more in ((4, False), (5, True)):
        made, who = by_turns(units(slices=slices), [3.0, *[0.0] * (slices - 1)])
        found, number = _measure_dispersion(made, Regression(made, 2), who.of(0, len(made)), None)
        assert (found > 1, number) == (more, slices)
    assert _measure_dispersion(
        replace(made, slices=None), Regression(made, 2), who.of(0, len(made)), None
    ) == (
        1.0,
        1,
    )


def test_a_kind_is_split_by_who_took_part() -> None:
    made = units(30, 3)
    mask = np.arange(30) % 2 == 0
    found = made.split(mask)
    pairs = {*zip(found.stratum.tolist(), made.stratum.tolist(), mask.tolist(), strict=True)}
    assert len(pairs) == len(set(found.stratum.tolist())) == 6
    assert [int(found.group[kind]) for kind, _, _ in sorted(pairs)] == [
        int(KINDS[old]) for _, old, _ in sorted(pairs)
    ]
    some = made.at(np.array([3, 1]))
    assert some.slices is not None
    assert made.slices is not None
    assert (some.seconds.tolist(), some.stratum.tolist(), some.slices.tolist()) == (
        made.seconds[[3, 1]].tolist(),
        made.stratum[[3, 1]].tolist(),
        made.slices[[3, 1]].tolist(),
    )
    assert replace(made, slices=None).at(np.array([1])).slices is None
    order = made.order.tolist()
    keys = [(int(made.stratum[place]), float(made.seconds[place])) for place in order]
    assert all(before <= after for before, after in pairwise(keys))


@pytest.mark.parametrize("count", [MIN_TEST_REQUESTS, 9, 25, 100])
@pytest.mark.parametrize("others", [10, 1000, math.inf])
def test_the_interval_of_a_median_is_between_two_of_the_values(count: int, others: float) -> None:
    values = np.random.default_rng(2).permutation(np.arange(float(count)))
    reach = 0.98 * math.sqrt(count * (1 + count / others))
    low, high = math.floor(count / 2 - reach), math.ceil(count / 2 + reach)
    expected = float(max(low, 0)), float(min(high, count - 1))
    assert interval_of_median(np.append(values, NAN), others) == expected
    if others == math.inf and count >= 25:  # the binomial distribution of a half, by hand
        inside = math.fsum(math.comb(count, each) / 2**count for each in range(low, high + 1))
        assert 0.95 <= inside < 0.99
    assert all(math.isnan(each) for each in interval_of_median(values[: MIN_TEST_REQUESTS - 1]))


def test_pairs_have_numbers_as_small_as_they_can_be() -> None:
    for count, kind in ((1 << 16, np.uint16), ((1 << 16) + 1, np.int32)):
        for make in (make_pairs, make_single_pairs):
            found = make(np.arange(3), np.array([0, count - 1, 5]), count)
            assert found.candidate.dtype == kind
            assert found.candidate.tolist() == [0, count - 1, 5]
            assert found.unit.tolist() == [0, 1, 2]
    assert sort_distinct(np.array([3, 1, 3, 2, 1])).tolist() == [1, 2, 3]
    assert sort_distinct(np.array([3, 1])).tolist() == [1, 3]
    assert sort_distinct(np.zeros(0, np.int64)).tolist() == []
