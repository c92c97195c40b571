"""Intervals, warm-up, drift and steps against the same in plain sums, of series of several kinds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean, stdev, variance

import noise
import numpy as np
import pytest

from ssbench.statistics import confidence
from ssbench.statistics.confidence import (
    Interval,
    _find_levels,
    _fit_levels,
    _is_line,
    beta_share,
    effective_size,
    estimate_autocorrelation,
    estimate_climb,
    estimate_drift,
    find_step,
    find_warm_up,
    is_steady,
    mean_interval,
    percentile_ranks,
    ratio_interval,
    remove_step,
    share_ranks,
    t_quantile,
)

Values = Sequence[float]


def series_of_all_kinds() -> dict[str, np.ndarray]:
    """Return series of which each is judged by another of the estimates."""
    random = np.random.default_rng(3)
    times = np.arange(64)
    alike, more = noise.correlated(random, 2, 64, 0.8, 1.0)
    return {
        "independent": 10 + random.normal(0, 1, 61),
        "short": 10 + random.normal(0, 1, 10),
        "alike": 10 + alike,
        "alike under noise": 20 + more + random.normal(0, 1.5, 64),
        "drifting": 10 + times / 32 + random.normal(0, 0.05, 64),
        "slow waves": 10 + np.sin(times / 9) + random.normal(0, 0.7, 64),
        "by turns": 10 + (-1.0) ** times + random.normal(0, 0.1, 64),
        "nearly a step": 10 + 3 * (times > 31) + random.normal(0, 0.4, 64),
    }


ALL = series_of_all_kinds()
every_kind = pytest.mark.parametrize("kind", ALL)


def correlation(values: Values, lag: int) -> float:
    mean = fmean(values)
    off = [each - mean for each in values]
    return math.fsum(a * b for a, b in zip(off, off[lag:], strict=False)) / math.fsum(a * a for a in off)


@every_kind
@pytest.mark.parametrize("lag", [1, 2, 3])
def test_an_autocorrelation_is_what_is_estimated_and_what_that_is_too_low_by(kind: str, lag: int) -> None:
    found = estimate_autocorrelation(ALL[kind], lag)
    too_low = (1 + 4 * found) / len(ALL[kind])
    assert found - too_low == pytest.approx(correlation(ALL[kind].tolist(), lag))


def mean_of_batches(values: Values) -> float:
    """Return by how much batches of 2, 4, 8 ... values say less than independent ones."""
    most, size = 1.0, 1
    while most > 0.2 * size and len(values) >= 4 * size:
        size *= 2
        means = [fmean(values[at : at + size]) for at in range(0, len(values) - size + 1, size)]
        most = max(most, size * variance(means) / variance(values))
    return most


def factors(values: np.ndarray, own_noise: float = 0.0) -> dict[str, float]:
    count = len(values)
    first, second = (estimate_autocorrelation(values, lag) for lag in (1, 2))
    error = math.sqrt(max(0.0, 1 - first**2) / count)
    neighbour = min(max(first + error / 2, 0.0), 0.95)
    found = {
        "neighbours": (1 + neighbour) / (1 - neighbour),
        "batches": mean_of_batches(values.tolist()),
    }
    if first > error / 2:
        found["next but one"] = 1 + 2 * first / (1 - min(max(second / first, first), 0.9))
    share = 1 - own_noise / variance(values.tolist())
    if own_noise > 0 and share > 0:
        alike = min(max(first / share, 0.0), 1.0)
        alike = min(alike + math.sqrt((1 - alike**2) / count) / share / 2, 0.97)
        found["common"] = 1 + share * ((1 + alike) / (1 - alike) - 1)
    return found


@every_kind
@pytest.mark.parametrize("part", [0.0, 0.6, 0.95, 1.1])
def test_values_say_as_much_as_the_least_of_four_estimates(kind: str, part: float) -> None:
    values = ALL[kind]
    own = part * variance(values.tolist())
    expected = max(2.0, len(values) / max(factors(values, own).values()))
    assert effective_size(values, own) == pytest.approx(expected)


def test_each_of_the_estimates_decides_somewhere() -> None:
    found = (factors(each, part * float(np.var(each))) for each in ALL.values() for part in (0.0, 0.6))
    assert {max(each, key=lambda name: each[name]) for each in found} == {
        "neighbours",
        "batches",
        "next but one",
        "common",
    }


def test_few_values_or_equal_ones_count_as_they_are() -> None:
    assert effective_size(np.arange(9.0)) == 9
    assert effective_size(np.full(50, 7.0)) == 50
    assert effective_size(np.arange(10.0)) == 2
    assert effective_size(np.array([1.0])) == 1


@pytest.mark.parametrize(("a", "b"), [(1, 1), (3, 7), (20, 2)])
def test_the_beta_function_is_the_tail_of_the_binomial_distribution(a: int, b: int) -> None:
    trials = a + b - 1
    for chance in (0.0, 0.01, 0.3, 0.5, 0.95, 1.0):
        terms = (
            math.comb(trials, each) * chance**each * (1 - chance) ** (trials - each)
            for each in range(a, a + b)
        )
        assert beta_share(chance, a, b) == pytest.approx(math.fsum(terms), abs=1e-12)


def half_width_of_batches(values: Values) -> float:
    """Return how far the mean may be off by those of the last five batches, as long as they can be."""
    length = len(values) // 5
    last = values[len(values) - 5 * length :]
    means = [fmean(last[at : at + length]) for at in range(0, 5 * length, length)]
    return 2.776445 * stdev(means) / math.sqrt(5)


def approximate(found: Interval | None) -> tuple[float, ...]:
    assert found is not None
    return found.low, found.high, found.effective_size


@every_kind
def test_intervals_of_means_are_students_with_effective_seconds(kind: str) -> None:
    values = ALL[kind]
    size = effective_size(values)
    half = t_quantile(0.975, size - 1) * stdev(values.tolist()) / math.sqrt(size)
    expected = fmean(values) - half, fmean(values) + half, size
    assert approximate(mean_interval(values)) == pytest.approx(expected, rel=1e-3)
    assert mean_interval(values[:9]) is None


@every_kind
def test_the_interval_of_a_ratio_is_that_of_what_its_seconds_have_too_much(kind: str) -> None:
    every = 50 + 10 * np.cos(np.arange(len(ALL[kind])))
    sums = every * ALL[kind]
    mean = math.fsum(sums) / math.fsum(every)
    left = [a - mean * b for a, b in zip(sums, every, strict=True)]
    size = effective_size(np.array(left))
    own = t_quantile(0.975, size - 1) * stdev(left) / math.sqrt(size)
    half = max(own, half_width_of_batches(left)) / fmean(every)
    assert approximate(ratio_interval(sums, every)) == pytest.approx(
        (mean - half, mean + half, size), rel=1e-3
    )
    assert ratio_interval(sums[:9], every[:9]) is None
    assert ratio_interval(0 * sums, 0 * every) is None


@every_kind
@pytest.mark.parametrize("without_chance", [True, False])
def test_the_interval_of_a_share_is_that_of_as_many_as_its_seconds_are_worth(
    kind: str, without_chance: bool
) -> None:
    every = np.round(200 + 100 * np.cos(np.arange(len(ALL[kind]))))
    below = np.round(every * ALL[kind] / ALL[kind].max() / 2)
    total, share = math.fsum(every), math.fsum(below) / math.fsum(every)
    left = [a - share * b for a, b in zip(below, every, strict=True)]
    binomial = share * (1 - share)
    seconds = effective_size(np.array(left), binomial * fmean(every) if without_chance else 0.0)
    size = min(total, binomial * total**2 * seconds / variance(left) / len(every) ** 2)
    half = max(
        t_quantile(0.975, seconds - 1) * math.sqrt(binomial / size),
        half_width_of_batches(left) / fmean(every),
    )
    expected = max(0.0, share - half), share + half, size
    for found in (
        percentile_ranks(share, below, every, without_chance=without_chance),
        share_ranks(below, every, without_chance=without_chance),
    ):
        assert approximate(found) == pytest.approx(expected, rel=1e-3)
    assert share_ranks(below[:9], every[:9]) is None
    assert share_ranks(0 * below, 0 * every) is None
    exact = share_ranks(every / 4, every)
    assert exact is not None
    assert exact.effective_size == total  # no second differs from another


def test_both_ways_of_long_batches_are_the_wider_ones_somewhere() -> None:
    wider = set()
    for values in ALL.values():
        left = values - values.mean()
        size = effective_size(left)
        own = t_quantile(0.975, size - 1) * stdev(left.tolist()) / math.sqrt(size)
        wider.add(own > half_width_of_batches(left.tolist()))
    assert wider == {True, False}


@every_kind
def test_the_warm_up_is_the_shortest_cut_that_leaves_about_the_least_error(kind: str) -> None:
    for values in (ALL[kind], ALL[kind] * np.where(np.arange(len(ALL[kind])) < 12, 0.7, 1.0)):
        means = [fmean(values[at : at + 5]) for at in range(0, len(values) - 4, 5)]
        if len(means) < 4:
            assert find_warm_up(values) == 0
            continue
        errors = []
        for cut in range((len(means) + 1) // 2):
            left = means[cut:]
            errors.append(math.fsum((each - fmean(left)) ** 2 for each in left) / len(left) ** 2)
        cut = next(place for place, each in enumerate(errors) if each <= 1.1 * min(errors))
        assert find_warm_up(values) == (None if cut and cut == len(errors) - 1 else 5 * cut)


@every_kind
def test_a_drift_is_the_slope_of_the_line_that_fits_best(kind: str) -> None:
    values = ALL[kind]
    if len(values) < 30:
        assert estimate_drift(values) is None
        return
    slope, begin = np.polyfit(np.arange(len(values)), values, 1)
    left = values - begin - slope * np.arange(len(values))
    size = effective_size(left)
    spread = math.sqrt((len(values) ** 2 - 1) / 12)
    for share in (0.95, 0.999):
        error = math.sqrt(float((left**2).mean()) / size) / spread
        half = t_quantile((1 + share) / 2, max(1.0, size - 2)) * error
        bounds = [60 * each / fmean(values) for each in (slope - half, slope + half)]
        assert approximate(estimate_drift(values, share)) == pytest.approx((*bounds, size), rel=1e-3)
    # By the interval of 99.9 % it changes by 5 % of its mean at most, or it is not steady.
    is_flat = bounds[0] <= 0 <= bounds[1] or abs(slope) * len(values) <= 0.05 * fmean(values)
    assert is_steady(values) == is_flat
    assert is_steady(values[:44])
    assert estimate_drift(values[:29]) is None
    assert estimate_drift(0 * values) is None


@pytest.mark.parametrize(("rise", "is_rising"), [(3.2, False), (3.4, True), (-9.0, False)])
def test_a_queue_rises_by_the_mean_of_its_steps_where_that_is_evident(rise: float, is_rising: bool) -> None:
    """Of ten steps one standard error is 1 here, and Student's t of 99 % is 3.25 of them."""
    off = np.array([-1.0, 1.0] * 5) * math.sqrt(9.0)
    series = np.concatenate(([5.0], 5.0 + np.cumsum(off + rise)))
    assert stdev((off + rise).tolist()) / math.sqrt(10) == pytest.approx(1.0)
    assert estimate_climb(series) == pytest.approx(rise if is_rising else 0.0)


def test_six_values_are_enough_to_rise() -> None:
    assert estimate_climb(np.arange(6.0)) == 1.0
    assert estimate_climb(np.arange(5.0)) == 0.0


# -- Steps -----------------------------------------------------------------------------------------


def fit_by_least_squares(parts: np.ndarray, fading: float) -> tuple[int, float, float, float, float]:
    """Return place, fraction, level, change and its standard errors of the best of all steps.

    Both sides are turned into values with independent noise by the root of the inverse of its covariance.
    """
    count = len(parts)
    distance = np.abs(np.arange(count)[:, None] - np.arange(count))
    covariance = fading**distance / (1 - fading**2)
    root = np.linalg.cholesky(np.linalg.inv(covariance)).T
    found = []
    for fraction in (1.0, 0.75, 0.5, 0.25):
        for place in range(5, count - 4):
            column = np.where(
                np.arange(count) > place, 1.0, np.where(np.arange(count) == place, fraction, 0.0)
            )
            design = root @ np.column_stack((np.ones(count), column))
            (level, change), left, *_ = np.linalg.lstsq(design, root @ parts, rcond=None)
            own = np.linalg.inv(design.T @ design)[1, 1]
            error = math.sqrt(own * float(left[0]) / (count - 3))
            found.append((float(left[0]), place, fraction, level, change, abs(change) / error))
    return min(found)[1:]


@pytest.mark.parametrize("fading", [0.0, 0.6, 0.95])
@pytest.mark.parametrize("kind", ["nearly a step", "alike", "drifting"])
def test_a_step_is_where_generalized_least_squares_put_it(kind: str, fading: float) -> None:
    parts = ALL[kind][20:45]
    fit = _fit_levels(parts, fading)
    place, fraction, level, change, errors = fit_by_least_squares(parts, fading)
    assert (fit.place, fit.fraction) == (place, fraction)
    assert (fit.before, fit.change, fit.errors) == pytest.approx((level, change, errors))
    expected = [level] * place + [level + fraction * change] + [level + change] * (len(parts) - place - 1)
    assert fit.levels(len(parts)) == pytest.approx(expected)
    line = np.polyval(np.polyfit(np.arange(len(parts)), parts, 1), np.arange(len(parts)))
    squares = [float(((parts - each) ** 2).sum()) for each in (line, np.array(expected))]
    assert _is_line(parts, fit) is (squares[0] < squares[1])


@pytest.mark.parametrize(
    ("seconds", "parts"), [(239, 239), (240, 240), (241, 120), (480, 240), (481, 160), (3600, 240)]
)
def test_a_long_run_is_looked_at_in_as_many_parts_as_are_allowed(
    seconds: int, parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[np.ndarray] = []
    monkeypatch.setattr(confidence, "_find_levels", seen.append)
    series = np.arange(float(seconds))
    find_step(series)
    remove_step(series)
    length = math.ceil(seconds / 240)
    for each in seen:
        assert len(each) == parts
        assert each[0] == pytest.approx((length - 1) / 2)
        assert {after - before for before, after in pairwise(each.tolist())} == {length}
    assert len(seen) == 2


def steps(change: float, *, ripple: float = 1.0, stray: int = 0, count: int = 40) -> np.ndarray:
    """Two levels around 100 with a ripple; some seconds of one are at the other."""
    times = np.arange(count)
    found = 100 + change * (times >= count // 2) + ripple * (-1.0) ** times
    found[3 : 3 + 3 * stray : 3] += change
    return np.asarray(found)


@pytest.mark.parametrize(("change", "is_step"), [(5.0, False), (5.4, True), (-4.6, False), (-5.1, True)])
def test_a_step_is_by_a_twentieth_of_the_mean_at_least(change: float, is_step: bool) -> None:
    assert (find_step(steps(change, ripple=0.1)) is not None) is is_step


@pytest.mark.parametrize(("stray", "is_step"), [(4, True), (5, False)])
def test_four_fifths_of_each_level_are_on_its_side(stray: int, is_step: bool) -> None:
    for series in (steps(30.0, ripple=0.0, stray=stray), steps(30.0, ripple=0.0, stray=stray)[::-1]):
        found = find_step(series)
        assert (found is not None) is is_step


@pytest.mark.parametrize("count", [20, 40, 90])
def test_a_step_is_so_many_standard_deviations_of_what_it_leaves(count: int) -> None:
    """As long as it is no seven of its standard errors, which noise that fades has more rarely."""
    random = np.random.default_rng(8)
    least, decided = 2.2 + 6 / math.sqrt(count), set()
    for _ in range(60):
        level = noise.correlated(random, 1, count, 0.7, 8.0)[0]
        parts = 100 + level + 28.0 * (np.arange(count) >= count // 2)
        found, fading = _fit_levels(parts, 0.0), 0.0
        for _ in range(3):
            left = parts - found.levels(count)
            fading = min(max(estimate_autocorrelation(left, 1) + 1 / (count - 4), 0.0), 0.95)
            found = _fit_levels(parts, fading)
        deviations = abs(found.change) / float(np.std(parts - found.levels(count)))
        is_step = found.errors >= 7 or (found.errors >= 4.5 and deviations >= least)
        assert (_find_levels(parts) is not None) is is_step
        decided.add((found.errors >= 7, found.errors >= 4.5, deviations >= least))
    assert len(decided) >= 3
