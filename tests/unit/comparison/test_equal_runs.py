"""What equal runs say: planted variances, naive rules beside direct counting, whether a price is right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from golden_words import GoldenWords
from simulated_equal_runs import ALL, PlantedNoise, compare_as_planned, simulate_equal_run, simulate_noise
from simulated_runs import reads

from ssbench.comparison.equal_runs import (
    MIN_EQUAL_RUNS,
    EqualRun,
    FigureNoise,
    NoiseFindings,
    make_equal_run,
    measure_noise,
)
from ssbench.statistics.confidence import t_tail, welch_error


def of_figure(found: NoiseFindings, key: str) -> FigureNoise:
    return next(each for each in found.figures if each.key == key)


def test_what_differs_within_runs_is_told_from_what_differs_between_them() -> None:
    random = np.random.default_rng(1)
    noise = PlantedNoise(between=0.03, second=0.1)
    found = [of_figure(simulate_noise(random, noise), "p50") for _ in range(300)]
    assert np.mean([each.within for each in found]) == pytest.approx(0.1**2 / 20, rel=0.05)
    assert np.mean([each.between for each in found]) == pytest.approx(0.03**2, rel=0.1)
    assert np.mean([each.total for each in found]) == pytest.approx(0.03**2 + 0.1**2 / 20, rel=0.05)
    # Half as long, only the former is twice as much.
    halved = np.mean([each.of_length(0.5) for each in found])
    assert halved == pytest.approx(0.03**2 + 0.1**2 / 10, rel=0.05)


def test_a_drift_is_in_what_differs_and_not_between_neighbours() -> None:
    random = np.random.default_rng(1)
    found = [of_figure(simulate_noise(random, PlantedNoise(drift=0.01)), "p50") for _ in range(50)]
    own = 0.02**2 + 0.05**2 / 20
    assert np.mean([each.total for each in found]) > 8 * own
    assert np.mean([each.in_turn for each in found]) == pytest.approx(own, rel=0.2)


def test_statistics_of_a_run_have_its_halves() -> None:
    random = np.random.default_rng(1)
    # Noise of 5 % a second with an autocorrelation of 0.8, and of 2 % from run to run.
    found = measure_noise([make_equal_run(reads(random, 60), str(each)) for each in range(60)], 0.05)
    assert {each.key for each in found.figures} == {"rate", "mb_per_s", "p50", "p95", "p99"}
    assert found.seconds == pytest.approx(60, abs=0.1)
    for key in ("rate", "p50"):
        each = of_figure(found, key)
        assert each.within is not None
        assert 0.012 < each.within**0.5 < 0.026  # sqrt(0.05 ** 2 * 9 / 60) is 0.019
        assert each.between is not None
        assert 0.01 < each.between**0.5 < 0.03


def pairs(random: np.random.Generator, noise: PlantedNoise, count: int = 1500) -> list[Sequence[EqualRun]]:
    return [[simulate_equal_run(random, noise, place) for place in (0, 1)] for _ in range(count)]


@pytest.mark.parametrize("noise", [PlantedNoise(0.03, 0.05), PlantedNoise(0.01, 0.2)], ids=str)
def test_how_often_naive_rules_are_wrong_agrees_with_counting(noise: PlantedNoise) -> None:
    random = np.random.default_rng(1)
    found = [simulate_noise(random, noise, 30) for _ in range(12)]
    single = pairs(random, noise)
    changes = [
        two.figures.rows[ALL]["rate"].value / one.figures.rows[ALL]["rate"].value - 1 for one, two in single
    ]
    counted = np.mean([abs(change) > 0.05 for change in changes])
    reds = [each.red_by_change(of_figure(each, "rate")) for each in found]
    assert np.mean([each.share or 0.0 for each in reds]) == pytest.approx(counted, abs=0.04)
    assert np.mean([each.red / each.pairs for each in reds]) == pytest.approx(counted, abs=0.04)
    assert {each.pairs for each in reds} == {30 * 29 // 2}

    def differs(one: EqualRun, two: EqualRun) -> bool:
        error, freedom = welch_error(one.rates, two.rates)
        return 2 * t_tail(abs(np.mean(one.rates) - np.mean(two.rates)) / error, freedom) <= 0.05

    counted = np.mean([differs(one, two) for one, two in single])
    by_seconds = [red for each in found if (red := each.red_by_seconds()) is not None]
    assert np.mean([each.share or 0.0 for each in by_seconds]) == pytest.approx(counted, abs=0.04)
    assert np.mean([each.red / each.pairs for each in by_seconds]) == pytest.approx(counted, abs=0.04)
    # Longer runs of the same store.
    long = [[simulate_equal_run(random, noise, place, 300) for place in (0, 1)] for _ in range(200)]
    expected = np.mean([each.share_long or 0.0 for each in by_seconds])
    assert expected == pytest.approx(np.mean([differs(one, two) for one, two in long]), abs=0.12)


@pytest.mark.long
@pytest.mark.parametrize(
    ("noise", "count"),
    [
        (PlantedNoise(0.02, 0.05), 24),
        (PlantedNoise(0.04, 0.02), 24),
        (PlantedNoise(0.02, 0.05, drift=0.01), 24),
        (PlantedNoise(0.03, 0.05), 8),
    ],
    ids=str,
)
def test_the_price_of_5_per_cent_is_right(noise: PlantedNoise, count: int) -> None:
    random = np.random.default_rng(3)
    shown = wrong = compared = 0
    for _ in range(40):
        found = simulate_noise(random, noise, count)
        price = found.price(found.heads)
        assert price is not None
        for _ in range(3):
            compared += 1
            changed = compare_as_planned(random, noise, price, 1.05)
            shown += sum(change.differs for _, _, change in changed.changes()) / 2
            equal = compare_as_planned(random, noise, price, 1.0)
            wrong += any(change.differs for _, _, change in equal.changes())
    assert compared == 120
    assert 0.8 <= shown / compared < 1
    assert wrong / compared <= 0.05


def test_a_cheaper_plan_shows_less() -> None:
    random = np.random.default_rng(3)
    noise = PlantedNoise(0.03, 0.05)
    shown = compared = 0
    for _ in range(30):
        found = simulate_noise(random, noise)
        price = found.price(found.heads)
        assert price is not None
        cheaper = replace(price, pairs=max(2, price.pairs // 3))
        for _ in range(3):
            compared += 1
            changed = compare_as_planned(random, noise, cheaper, 1.05)
            shown += sum(change.differs for _, _, change in changed.changes()) / 2
    assert shown / compared < 0.7


def test_what_a_time_shows_and_what_a_change_costs_fit_together() -> None:
    found = simulate_noise(np.random.default_rng(2), PlantedNoise(0.02, 0.05))
    rate = of_figure(found, "rate")
    shown = [found.detection(rate, 60.0 * minutes) for minutes in (5, 15, 60)]
    assert [each.minutes for each in shown] == [5, 15, 60]
    sizes = [each.change or 0.0 for each in shown]
    assert sizes == sorted(sizes, reverse=True)
    for each in shown:
        assert 2 * each.pairs * ((each.seconds or 0.0) + 1) <= 60 * each.minutes + 1
        price = replace(found, wanted=each.change or 0.0).price([rate])
        assert price is not None
        assert (price.total or 0.0) <= 60 * each.minutes * 1.11
    prices = [replace(found, wanted=change).price([rate]) for change in (0.1, 0.05, 0.025)]
    assert [each.pairs for each in prices if each] == sorted(each.pairs for each in prices if each)
    assert found.detection(rate, 60.0).change is None  # too short for four pairs
    assert replace(found, wanted=0.0101).price([rate]) is None  # within what is noise


def test_few_runs_say_that_nothing_is_known() -> None:
    random = np.random.default_rng(1)
    few = simulate_noise(random, PlantedNoise(), MIN_EQUAL_RUNS - 1)
    assert not few.is_decided
    assert few.price(few.heads) is None
    assert few.detection(few.heads[0], 3600.0).change is None
    red = few.red_by_change(few.heads[0])
    assert (red.pairs, red.share, red.share_long) == (10, None, None)
    by_seconds = few.red_by_seconds()
    assert by_seconds is not None
    assert (by_seconds.pairs, by_seconds.share) == (10, None)
    assert simulate_noise(random, PlantedNoise(), MIN_EQUAL_RUNS).is_decided
    # Runs of as many days have no neighbours.
    runs = [simulate_equal_run(random, PlantedNoise(), 5000 * day) for day in range(12)]
    days = measure_noise(runs, 0.05)
    assert not days.is_decided
    assert days.red_by_change(days.heads[0]).share is not None  # which such runs tell


def test_runs_whose_pairs_drew_the_same_operations_are_compared_within_these() -> None:
    random = np.random.default_rng(1)
    runs = [simulate_equal_run(random, PlantedNoise(), place) for place in range(12)]
    paired = [
        replace(run, figures=replace(run.figures, facts={"seed": str(place // 2)}))
        for place, run in enumerate(runs)
    ]
    rate = of_figure(measure_noise(paired, 0.05), "rate")
    logs = np.log([run.figures.rows[ALL]["rate"].value for run in runs])
    assert rate.in_turn == pytest.approx(np.mean((logs[1::2] - logs[::2]) ** 2) / 2)
    assert rate.freedom == 6
    others = of_figure(measure_noise(runs, 0.05), "rate")
    assert others.in_turn == pytest.approx(np.mean([(two - one) ** 2 for one, two in pairwise(logs)]) / 2)
    assert 6 < others.freedom < 9


def test_runs_that_are_not_equal_are_named(golden_words: GoldenWords) -> None:
    random = np.random.default_rng(1)
    runs = [simulate_equal_run(random, PlantedNoise(), place) for place in range(6)]
    other = [
        replace(run, figures=replace(run.figures, facts={"users": str(4 + place // 3), "seed": str(place)}))
        for place, run in enumerate(runs)
    ]
    golden_words(measure_noise(other, 0.05).warnings)


def test_results_without_their_course_have_plans_of_their_own_length() -> None:
    random = np.random.default_rng(1)
    runs = [
        replace(simulate_equal_run(random, PlantedNoise(), place), halves={}, rates=()) for place in range(9)
    ]
    found = measure_noise(runs, 0.05)
    assert found.red_by_seconds() is None
    assert {each.within for each in found.figures} == {None}
    price = found.price(found.heads)
    assert price is not None
    assert price.seconds == 20
    unknown = measure_noise([replace(run, seconds=None) for run in runs], 0.05)
    price = unknown.price(unknown.heads)
    assert price is not None
    assert (price.seconds, price.total) == (None, None)
    assert unknown.detection(unknown.heads[0], 3600.0).change is None
