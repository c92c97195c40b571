"""Deviates and intervals by ranks, against tables and arithmetic."""

from __future__ import annotations

import math
from itertools import product
from statistics import NormalDist, median, variance

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssbench.cluster.rank_tests import (
    MIN_TEST_REQUESTS,
    Pairs,
    Regression,
    Units,
    _normal_of_t,
    binomial_tail,
    centre_scores,
    find_very_slow,
    is_evident,
    make_pairs,
    measure_deviates,
    measure_median_interval,
    measure_peer_difference,
    measure_slow_share,
    measure_tail_deviates,
    scan_binomial_tail,
)


def units(count: int = 120, *, seed: int = 1, slices: bool = False) -> Units:
    """Requests of four kinds, two of each group, with ties; of the fourth there is one."""
    random = np.random.default_rng(seed)
    stratum = random.integers(0, 3, count)
    stratum[-1] = 3
    seconds = np.round(random.lognormal(0, 0.5, count) + stratum, 1)
    return Units(seconds, stratum, np.array([0, 1, 0, 1]), np.arange(count) // 20 if slices else None)


def drawn(count: int, candidates: int, seed: int = 2) -> Pairs:
    random = np.random.default_rng(seed)
    return make_pairs(np.arange(count), random.integers(0, candidates, count), candidates)


def scores_of(seconds: list[float]) -> list[float]:
    """Return ranks by n + 1, those of equal ones their mean, less the mean of all."""
    ordered = sorted(seconds)
    places = {each: [i + 1 for i, other in enumerate(ordered) if other == each] for each in seconds}
    found = [sum(places[each]) / len(places[each]) / (len(seconds) + 1) for each in seconds]
    return [each - sum(found) / len(found) for each in found]


@pytest.mark.parametrize(
    ("t", "freedom", "z"),
    [(2.228, 10, 1.96), (2.042, 30, 1.96), (1.98, 120, 1.96), (-2.228, 10, -1.96)],
)
def test_the_normal_deviate_is_as_probable_as_students(t: float, freedom: int, z: float) -> None:
    """Values of t from printed tables: 5 %, two-sided."""
    assert _normal_of_t(t, freedom) == pytest.approx(z, abs=0.02)


def test_without_a_degree_of_freedom_nothing_is_changed() -> None:
    assert _normal_of_t(3.0, 0) == 3.0


def test_pairs_are_each_once_and_in_order() -> None:
    found = make_pairs(np.array([2, 0, 2, 1, 2]), np.array([1, 0, 1, 2, 0]), 3)
    assert [*zip(found.unit.tolist(), found.candidate.tolist(), strict=True)] == [
        (0, 0),
        (1, 2),
        (2, 0),
        (2, 1),
    ]
    assert found.of(1, 4).tolist() == [False, False, True, False]
    assert len(make_pairs(np.zeros(0, np.int64), np.zeros(0, np.int64), 0).unit) == 0


def test_scores_are_ranks_within_a_kind_less_their_mean() -> None:
    made = units()
    scores, sizes, variances = centre_scores(made)
    for kind in range(4):
        inside = np.flatnonzero(made.stratum == kind)
        expected = scores_of(made.seconds[inside].tolist())
        assert scores[inside] == pytest.approx(expected)
        assert sizes[kind] == len(inside)
        assert variances[kind] == pytest.approx(variance(expected) if len(expected) > 1 else 0.0)


@pytest.mark.parametrize("candidates", [4, 400], ids=["few candidates", "many"])
def test_a_deviate_is_the_sum_of_scores_by_its_standard_deviation(candidates: int) -> None:
    made = units(300)
    who = drawn(len(made), 4)
    found = measure_deviates(made, Pairs(who.unit, who.candidate, candidates), 2)
    assert found.z.shape == (3, candidates)
    scores, sizes, variances = centre_scores(made)
    for place in range(4):
        mask = who.of(place, len(made))
        for row, groups in enumerate(((0,), (1,), (0, 1))):
            total = chance = 0.0
            with_ = without = 0
            for kind in (kind for kind in range(4) if made.group[kind] in groups and variances[kind] > 0):
                inside = made.stratum == kind
                took = int((mask & inside).sum())
                total += float(scores[mask & inside].sum())
                chance += float(variances[kind]) * took * (sizes[kind] - took) / sizes[kind]
                with_, without = with_ + took, without + int(sizes[kind]) - took
            assert (found.with_[row, place], found.without[row, place]) == (with_, without)
            assert found.z[row, place] == pytest.approx(total / math.sqrt(chance))
    assert np.isnan(found.z[:, 4:]).all()


def test_a_test_needs_enough_requests_on_either_side() -> None:
    made = Units(np.arange(40.0), np.zeros(40, np.int64), np.zeros(1, np.int64))
    for count, told in (
        (MIN_TEST_REQUESTS - 1, False),
        (MIN_TEST_REQUESTS, True),
        (40 - MIN_TEST_REQUESTS, True),
        (41 - MIN_TEST_REQUESTS, False),
    ):
        found = measure_deviates(made, make_pairs(np.arange(count), np.zeros(count, np.int64), 1), 1)
        assert np.isnan(found.z).any() != told


@pytest.mark.parametrize("chance", [0.01, 0.3, 0.9])
def test_the_binomial_tail_is_the_sum_of_its_terms(chance: float) -> None:
    for least in (0, 1, 5, 20):
        terms = [
            math.comb(20, each) * chance**each * (1 - chance) ** (20 - each) for each in range(least, 21)
        ]
        assert binomial_tail(20, chance, least) == pytest.approx(math.fsum(terms))


def test_what_is_certain_or_impossible() -> None:
    assert [binomial_tail(9, 0.0, least) for least in (0, 1)] == [1.0, 0.0]
    assert [binomial_tail(9, 1.0, least) for least in (0, 9)] == [1.0, 1.0]


def test_a_scan_has_the_probability_of_all_outcomes_that_are_as_remarkable() -> None:
    chance = np.array([0.1, 0.4, 0.1, 0.25, 0.1, 0.6])

    def weigh(outcome: tuple[int, ...]) -> float:
        return math.prod(p if each else 1 - p for each, p in zip(outcome, chance, strict=False))

    def tail(first: int, least: int) -> float:
        return math.fsum(weigh(each) for each in product((0, 1), repeat=first) if sum(each) >= least)

    outcomes = list(product((0, 1), repeat=len(chance)))
    least = {each: min(tail(first, sum(each[:first])) for first in range(1, 7)) for each in outcomes}
    for outcome in outcomes[::7]:
        expected = math.fsum(weigh(each) for each in outcomes if least[each] <= least[outcome] + 1e-12)
        assert scan_binomial_tail(np.array(outcome, np.bool_), chance) == pytest.approx(expected)


def test_deviates_of_the_very_slowest_are_those_of_the_scan() -> None:
    random = np.random.default_rng(1)
    made = Units(1.0 + random.random(1000), np.zeros(1000, np.int64), np.zeros(1, np.int64))
    mine = np.arange(0, 1000, 10)
    made.seconds[mine[::20]] = 9.0  # five of a hundred, far from each other
    moment = np.arange(1000)
    found = measure_tail_deviates(made, make_pairs(mine, np.zeros(100, np.int64), 1), 1, moment)
    happened = np.isin(find_very_slow(made, moment), mine)
    assert happened[:5].all()
    expected = -NormalDist().inv_cdf(scan_binomial_tail(happened, np.full(len(happened), 0.1)))
    assert np.isnan(found.z[0, 0])
    assert found.z[1, 0] == pytest.approx(expected)
    assert expected > 4
    assert (found.with_[1, 0], found.without[1, 0]) == (100, 900)
    # Those next to each other count as one or two: they may have waited for the first.
    seconds = made.seconds.copy()
    seconds[mine[::20]], seconds[500:505] = 1.5, 9.0
    near = make_pairs(np.arange(450, 550), np.zeros(100, np.int64), 1)
    assert not measure_tail_deviates(Units(seconds, made.stratum, made.group), near, 1, moment).z[1, 0] > 2
    slow = measure_slow_share(made, np.isin(moment, mine))
    assert slow.share == pytest.approx(0.05, abs=0.03)
    assert slow.difference.median > 0.5
    assert slow.times_others > 2


def test_of_a_kind_with_few_nothing_is_very_slow() -> None:
    kinds = np.append(np.zeros(100, np.int64), [1, 1])
    made = Units(np.append(np.ones(100), [1.0, 50.0]), kinds, np.zeros(2, np.int64))
    assert 101 not in find_very_slow(made, np.arange(102))


def test_what_counts_as_evident() -> None:
    assert [is_evident(z) for z in (2.32, 2.33, math.nan)] == [False, True, False]


def test_a_difference_is_to_the_others_of_the_same_kind() -> None:
    made = units(121)
    mask = np.random.default_rng(4).random(121) < 0.3
    mask[-1] = True  # the only one of its kind: with nothing to compare it with
    seconds = made.seconds + 0.5 * mask
    found = measure_peer_difference(Units(seconds, made.stratum, made.group), mask)
    base = {kind: median(seconds[(made.stratum == kind) & ~mask].tolist()) for kind in range(3)}
    every = [each - base[kind] for each, kind in zip(seconds, made.stratum, strict=True) if kind < 3]
    highest = float(np.quantile(every, 0.99))
    compared = [place for place in np.flatnonzero(mask).tolist() if made.stratum[place] < 3]
    beyond = [float(seconds[place]) - base[int(made.stratum[place])] for place in compared]
    assert found.median == pytest.approx(median(beyond))
    assert found.base == pytest.approx(median(base[int(made.stratum[place])] for place in compared))
    others = {
        kind: np.mean(np.minimum(seconds[(made.stratum == kind) & ~mask] - base[kind], highest))
        for kind in range(3)
    }
    means = [
        min(each, highest) - others[int(made.stratum[place])]
        for each, place in zip(beyond, compared, strict=True)
    ]
    assert found.mean == pytest.approx(np.mean(means))
    assert found.share == pytest.approx(max(found.median, found.mean) / found.base)
    assert math.isnan(measure_peer_difference(made, np.ones(121, np.bool_)).median)


def test_the_interval_of_a_median_is_wider_where_the_others_are_few() -> None:
    for others in (25, 100_000):
        seconds = np.append(np.arange(1.0, 26.0), np.zeros(others))
        made = Units(seconds, np.zeros(len(seconds), np.int64), np.zeros(1, np.int64))
        low, high = measure_median_interval(made, np.arange(len(seconds)) < 25)
        reach = 0.98 * math.sqrt(25 * (1 + 25 / others))  # 6.9 and 4.9 places from the middle
        assert (low, high) == (math.floor(12.5 - reach) + 1, math.ceil(12.5 + reach) + 1)
    assert math.isnan(measure_median_interval(made, np.arange(len(seconds)) < MIN_TEST_REQUESTS - 1)[0])
    assert math.isnan(measure_median_interval(made, np.ones(len(seconds), np.bool_))[0])


def test_slices_of_the_run_are_in_the_regression() -> None:
    """Against the residuals of least squares on kinds and slices, in which each unit counts by its kind."""
    made = units(300)
    slices = np.arange(300) // 60
    found = Regression(Units(made.seconds + 2 * (slices > 2), made.stratum, made.group, slices), 2)
    scores, _, variances = centre_scores(Units(made.seconds + 2 * (slices > 2), made.stratum, made.group))
    weight = np.sqrt(variances[made.stratum])
    at = {row: np.flatnonzero((made.group[made.stratum] == row) & (weight > 0)) for row in range(2)}
    who = drawn(300, 4)
    z = found.measure(who).z
    for row, inside in at.items():
        kinds = weight[inside, None] * (made.stratum[inside, None] == np.arange(4))
        design = np.hstack((kinds, weight[inside, None] * (slices[inside, None] == np.arange(5))))

        def left_of(values: np.ndarray, design: np.ndarray = design) -> np.ndarray:
            fitted: np.ndarray = design @ np.linalg.lstsq(design, values, rcond=None)[0]
            return values - fitted

        rest = left_of(scores[inside] / weight[inside])
        freedom = len(inside) - np.linalg.matrix_rank(design)
        for place in range(4):
            column = left_of(weight[inside] * who.of(place, 300)[inside])
            chance = (rest**2).sum() / freedom * (column**2).sum()
            assert z[row, place] == pytest.approx(float(column @ rest) / math.sqrt(chance), rel=1e-3)


def test_what_slows_all_for_a_while_makes_nobody_slow() -> None:
    """A candidate takes part in the slower half of the run only: deviates are standard normal."""
    random = np.random.default_rng(5)
    plain, sliced = [], []
    for _ in range(200):
        seconds = random.lognormal(size=480) * (1 + (np.arange(480) >= 240))
        mine = 240 + random.choice(240, 80, replace=False)
        who = make_pairs(mine, np.zeros(80, np.int64), 1)
        one_kind = np.zeros(480, np.int64), np.zeros(1, np.int64)
        plain.append(measure_deviates(Units(seconds, *one_kind), who, 1).z[0, 0])
        sliced.append(measure_deviates(Units(seconds, *one_kind, np.arange(480) // 40), who, 1).z[0, 0])
    assert np.mean(plain) > 2
    assert abs(np.mean(sliced)) < 0.2
    assert 0.85 < np.std(sliced) < 1.15


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), st.booleans(), st.booleans()), max_size=60))
def test_units_that_are_split_or_chosen_are_in_the_order_of_kinds_and_seconds(
    drawn: list[tuple[int, int, bool, bool]],
) -> None:
    """The order is not sorted anew, which takes most of the time of a large run."""
    columns = np.array(drawn, np.int64).reshape(-1, 4)
    made = Units(columns[:, 1] / 10, columns[:, 0], np.arange(5))
    chosen = np.flatnonzero(columns[:, 3])
    assert len(made.order) == len(drawn)
    split = made.split(columns[:, 2] == 1)
    for each in (split, split.split(columns[:, 3] == 1), made.at(chosen), split.at(chosen)):
        assert sorted(each.order.tolist()) == [*range(len(each))]
        ordered = [*zip(each.stratum[each.order].tolist(), each.seconds[each.order].tolist(), strict=True)]
        assert ordered == sorted(ordered)
    same = [(row[0], row[2]) for row in columns.tolist()]
    kinds = dict(zip(same, split.stratum.tolist(), strict=True))
    assert [kinds[each] for each in same] == split.stratum.tolist()
    assert len(set(kinds.values())) == len(kinds) == len(split.group)
    assert all(split.group[number] == kind for (kind, _), number in kinds.items())


def test_who_is_alone_in_its_kind_has_no_share_of_slow_ones() -> None:
    """Nothing is there to compare it with, which is no warning of NumPy."""
    kinds = np.repeat([0, 1], 20)
    units = Units(np.linspace(0.01, 0.02, 40), kinds, np.zeros(2, np.int64))
    assert math.isnan(measure_slow_share(units, kinds == 1).share)
    assert measure_slow_share(units, np.arange(40) % 2 == 1).share >= 0
