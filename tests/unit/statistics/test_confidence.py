"""Intervals: held against tables, and against what they promise in simulations."""

from __future__ import annotations

import math

import noise
import numpy as np
import pytest
from simulated_intervals import coverage, warm_ups

from ssbench.statistics.confidence import (
    effective_size,
    estimate_autocorrelation,
    estimate_drift,
    find_warm_up,
    is_steady,
    mean_interval,
    percentile_ranks,
    t_quantile,
    t_tail,
    welch_error,
    wilson_interval,
)

# As tables of Student's t print them.
TABLE = [
    (0.975, 1, 12.706205),
    (0.975, 2, 4.302653),
    (0.975, 5, 2.570582),
    (0.975, 30, 2.042272),
    (0.975, 200, 1.971896),
    (0.975, math.inf, 1.959964),
    (0.995, 1, 63.656741),
    (0.995, 10, 3.169273),
    (0.95, 4, 2.131847),
    (0.5, 7, 0.0),
]


@pytest.mark.parametrize(("share", "freedom", "value"), TABLE)
def test_students_t(share, freedom, value):
    assert t_quantile(share, freedom) == pytest.approx(value, abs=1e-5)


@pytest.mark.parametrize("freedom", [1.3, 2.5, 7.7, 61.4])
def test_the_tail_is_the_integral_of_the_density(freedom):
    angles = np.linspace(math.atan(2.0 / math.sqrt(freedom)), math.pi / 2, 200_001)
    scale = math.gamma((freedom + 1) / 2) / math.gamma(freedom / 2) / math.sqrt(math.pi)
    tail = scale * np.trapezoid(np.cos(angles) ** (freedom - 1), angles)
    assert t_tail(2.0, freedom) == pytest.approx(tail, rel=1e-4)
    assert t_quantile(1 - t_tail(2.0, freedom), freedom) == pytest.approx(2.0, rel=1e-9)


@pytest.mark.parametrize("freedom", [1e6, 1e9, 1e15, 1e30, 1e300, math.inf])
def test_with_many_degrees_of_freedom_t_is_normal(freedom):
    """Its own terms cancel each other, or are infinite by infinite: a tail of nan shows nothing."""
    assert t_quantile(0.975, freedom) == pytest.approx(1.959964, abs=1e-5)
    assert t_tail(2.0, freedom) == pytest.approx(0.0227501, rel=1e-4)
    assert 0 <= t_tail(30.0, freedom) < 1e-100


def _share_right(series, interval_of):
    hits = [
        (interval := interval_of(each)) is not None and interval.low <= 1 <= interval.high for each in series
    ]
    return sum(hits) / len(hits)


def _plain(series):
    half = t_quantile(0.975, len(series) - 1) * series.std(ddof=1) / math.sqrt(len(series))
    mean = series.mean()
    return type(mean_interval(series))(mean - half, mean + half, len(series))


@pytest.mark.parametrize("seconds", [60, 120])
def test_an_interval_has_the_truth_in_it_where_seconds_are_alike(seconds):
    series = 1 + noise.correlated(np.random.default_rng(5), 1000, seconds, 0.8, 0.05)
    assert _share_right(series, mean_interval) >= 0.92
    assert _share_right(series, _plain) < 0.6  # what makes the rest of this module necessary


def test_an_interval_is_hardly_wider_where_seconds_are_not_alike():
    series = 1 + noise.correlated(np.random.default_rng(6), 500, 60, 0.0, 0.05)
    assert 0.94 <= _share_right(series, mean_interval) <= 0.99
    widths = [mean_interval(each).half_width / _plain(each).half_width for each in series]
    assert np.median(widths) < 1.15


def test_of_few_seconds_nothing_is_said():
    assert mean_interval(np.ones(9)) is None
    assert percentile_ranks(0.5, np.ones(9), np.ones(9)) is None
    assert percentile_ranks(0.5, np.zeros(20), np.zeros(20)) is None
    assert estimate_drift(np.ones(29)) is None
    assert estimate_drift(np.zeros(60)) is None
    assert is_steady(np.ones(0))
    assert effective_size(np.ones(0)) == 0


def test_a_series_that_never_changes_has_an_interval_without_width():
    interval = mean_interval(np.full(20, 3.0))
    assert (interval.low, interval.high, interval.effective_size) == (3, 3, 20)


def test_the_ranks_of_a_percentile_of_independent_values_are_binomial():
    random = np.random.default_rng(8)
    every = np.full(400, 100.0)
    interval = percentile_ranks(0.9, random.binomial(100, 0.9, 400).astype(float), every)
    expected = 1.96 * math.sqrt(0.9 * 0.1 / 40_000)
    assert interval.low == pytest.approx(0.9 - expected, rel=0.002)
    assert interval.high - 0.9 == pytest.approx(0.9 - interval.low)
    assert 25_000 <= interval.effective_size <= 40_000


def test_the_ranks_of_a_percentile_are_further_apart_where_seconds_differ():
    random = np.random.default_rng(9)
    shares = np.clip(0.9 + noise.correlated(random, 1, 400, 0.8, 0.03)[0], 0, 1)
    interval = percentile_ranks(0.9, random.binomial(100, shares).astype(float), np.full(400, 100.0))
    assert interval.effective_size < 10_000


@pytest.mark.parametrize(("seconds", "cut"), [(120, 25), (300, 25)])
def test_the_warm_up_is_cut_and_no_more_than_that(seconds, cut):
    random = np.random.default_rng(10)
    level = 1 - 0.5 * np.exp(-np.arange(seconds) / 15)
    series = level + noise.correlated(random, 60, seconds, 0.8, 0.05)
    cuts = [find_warm_up(each) for each in series]
    found = [each for each in cuts if each is not None]
    assert len(found) >= 48
    assert cut <= np.median(found) <= 60
    left = np.mean([each[cut_ or 0 :].mean() for each, cut_ in zip(series, cuts, strict=True)])
    assert left == pytest.approx(1, abs=0.02)


def test_nothing_is_cut_where_nothing_warms_up():
    series = 1 + noise.correlated(np.random.default_rng(11), 100, 120, 0.0, 0.05)
    assert np.median([find_warm_up(each) or 0 for each in series]) == 0
    assert find_warm_up(np.ones(19)) == 0
    assert find_warm_up(np.ones(20)) == 0
    assert find_warm_up(np.ones(100)) == 0
    # Rounding makes the error of the level part a little less than 0.
    assert find_warm_up(np.array([900.1, 901.7, 899.2, 905.3, 880.7] * 2 + [0.1] * 60)) == 10


def test_a_run_that_goes_on_rising_is_not_steady():
    rising = np.linspace(50, 100, 60)
    assert find_warm_up(rising) is None
    # Four batches of five seconds are enough to say so.
    assert [find_warm_up(rising[:seconds]) for seconds in (19, 20)] == [0, None]
    assert not is_steady(rising)
    change = estimate_drift(rising)
    assert change.low == pytest.approx(change.high)
    assert change.low == pytest.approx(50 / 59 * 60 / 75)


@pytest.mark.parametrize(("phi", "least"), [(0.0, 0.93), (0.8, 0.93), (0.95, 0.78)])
def test_an_interval_of_a_percentile_has_the_truth_in_it(phi, least):
    for name, (given, right) in coverage(phi, 60, 80).items():
        assert given >= 72, name  # others would reach down to 0
        assert right >= least * given, name


def test_a_warm_up_is_left_out_where_it_changes_a_figure_and_only_there():
    falsely = warm_ups(120, 0.8, 0.0, range(40))
    assert sum(bool(cut) for cut in falsely) <= 3
    cuts = warm_ups(120, 0.8, 0.5, range(40))
    assert sum(bool(cut) for cut in cuts) >= 36
    assert 15 <= np.median([cut or 0 for cut in cuts]) <= 45


def test_noise_is_seldom_taken_for_drift():
    series = 1 + noise.correlated(np.random.default_rng(12), 400, 60, 0.8, 0.05)
    assert sum(not is_steady(each) for each in series) <= 20


def test_of_no_errors_the_interval_begins_at_none() -> None:
    for size in range(100, 100_000, 700):
        assert wilson_interval(0.0, size)[0] == 0.0
        assert wilson_interval(1.0, size)[1] == 1.0


def test_sides_that_do_not_vary_have_the_freedom_of_both() -> None:
    assert welch_error([1.0, 1.0, 1.0], [2.0, 2.0]) == (0.0, 3.0)


def test_how_far_a_rate_went_decides_whether_it_is_steady() -> None:
    for change, steady in ((0.05, True), (0.10, False)):
        rising = 100 * np.linspace(1, 1 + change, 120) + np.tile([0.1, -0.1], 60)
        assert is_steady(rising) is steady


def test_a_level_that_changes_once_is_seen_by_the_longest_batches() -> None:
    """Neighbours are as different as can be, and still there are only two values: before and after."""
    series = np.tile([1.0, -1.0], 32) + np.repeat([0.0, 2.0], 32)
    variance = 2 * 64 / 63  # of the noise 1, of the levels 1
    assert effective_size(series) == pytest.approx(64 / (32 * 2 / variance))


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.8])
@pytest.mark.parametrize("alike", [1.0, 0.5])
def test_the_effective_size_is_that_of_theory_where_much_is_known(phi: float, alike: float) -> None:
    """Of a process of first order (variance ``alike``), with noise of its own in each value on top."""
    count = 50_000
    series = noise.correlated(np.random.default_rng(3), 1, count, phi, math.sqrt(alike))[0]
    series = series + np.random.default_rng(4).normal(0, math.sqrt(1 - alike), count)
    factor = 1 - alike + alike * (1 + phi) / (1 - phi)
    for known in (0.0, 1 - alike):
        assert effective_size(series, known) == pytest.approx(count / factor, rel=0.12)


def test_wilsons_interval() -> None:
    """As printed tables have it, of 1, 10 and 50 in 100."""
    for share, low, high in ((0.01, 0.0018, 0.0545), (0.1, 0.0552, 0.1744), (0.5, 0.4038, 0.5962)):
        assert wilson_interval(share, 100) == pytest.approx((low, high), abs=5e-5)
        assert wilson_interval(1 - share, 100) == pytest.approx((1 - high, 1 - low), abs=5e-5)
    assert wilson_interval(0.5, 0) == (0.0, 1.0)


def test_what_is_alike_for_longer_than_a_run_shows_in_long_batches() -> None:
    """One that is another in each fifth of a run is as unsure as five values make it, whatever hides that."""
    below = np.repeat([40.0, 60.0, 50.0, 45.0, 55.0], 20) + np.tile([40.0, -40.0], 50)
    interval = percentile_ranks(0.5, below, np.full(100, 100.0))
    deviation = math.sqrt(250 / 4)  # of five means, in hundredths
    assert interval.half_width == pytest.approx(2.776445 * deviation / math.sqrt(5) / 100, rel=1e-5)


def test_any_series_that_changes_is_worth_two_values() -> None:
    assert effective_size(np.arange(20.0)) == 2.0


def test_the_effective_size_of_neighbours_that_are_alike() -> None:
    noise = np.random.default_rng(1).normal(0, 1, 400)
    series = np.convolve(noise, [1, 0.8], "same")  # neighbours are alike by 0.8 / 1.64, others are not
    first = np.corrcoef(series[:-1], series[1:])[0, 1]
    least = 1 + 2 * first  # what is known of a series in which only neighbours are alike
    assert 0.3 * len(series) / least < effective_size(series) < len(series) / least
    plain = np.random.default_rng(5).normal(0, 1, 10_000)
    assert effective_size(plain) > 0.97 * len(plain)


@pytest.mark.parametrize("phi", [0.0, 0.5])
def test_the_correlation_of_few_neighbours_is_not_too_low_on_average(phi: float) -> None:
    series = noise.correlated(np.random.default_rng(1), 400, 20, phi)
    assert np.mean([estimate_autocorrelation(each, 1) for each in series]) == pytest.approx(phi, abs=0.05)


def test_of_a_hundred_values_that_are_much_alike_the_size_is_a_little_too_small() -> None:
    """So that intervals are on the safe side, and hardly wider than they have to be."""
    series = noise.correlated(np.random.default_rng(1), 400, 100, 0.8)
    factor = np.mean([100 / effective_size(each) for each in series])
    assert 9 < factor < 15  # (1 + 0.8) / (1 - 0.8) = 9


def test_the_ranks_of_a_percentile_that_every_second_has_alike_are_those_of_independent_values() -> None:
    ranks = percentile_ranks(0.5, np.full(20, 50.0), np.full(20, 100.0))
    assert ranks is not None
    assert ranks.half_width == pytest.approx(2.093024 * math.sqrt(0.25 / 2000), rel=1e-6)  # t of 19
