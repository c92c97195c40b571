"""Changes of a value each second: how evident they are, by dense algebra; and which are found in noise."""

from __future__ import annotations

import math
import re

import noise
import numpy as np
import pytest
from golden_words import GoldenWords
from simulated_steps import RATE, bursty_rates, changed_rates, middle_third, rates

from ssbench.statistics.by_second import LatencyTable
from ssbench.statistics.level_changes import (
    _FADINGS,
    ChangeShape,
    _Whitened,
    find_change,
    measure_step_evidence,
)
from ssbench.statistics.steadiness import Steadiness, judge_steadiness

SECOND = np.arange(400)


def likelihood(series: np.ndarray, columns: list[np.ndarray], fading: float) -> tuple[float, np.ndarray]:
    """Return the logarithm of the likelihood, less a constant, and the coefficients, by dense algebra."""
    count = len(series)
    covariance = fading ** np.abs(np.subtract.outer(np.arange(count), np.arange(count))) / (1 - fading**2)
    inverse = np.linalg.inv(covariance)
    design = np.stack([np.ones(count), *columns], axis=1)
    found = np.linalg.solve(design.T @ inverse @ design, design.T @ inverse @ series)
    left = series - design @ found
    _, determinant = np.linalg.slogdet(covariance)
    return -count / 2 * math.log(left @ inverse @ left / count) - determinant / 2, found


def evidence(series: np.ndarray, column: np.ndarray) -> tuple[float, float]:
    fadings = _FADINGS.ravel().tolist()
    without = max(likelihood(series, [], each)[0] for each in fadings)
    best, found = max((likelihood(series, [column], each) for each in fadings), key=lambda each: each[0])
    return 2 * (best - without), float(found[1])


@pytest.mark.parametrize(
    ("first", "last", "part"),
    [(0, 3, 1.0), (0, 12, 1.0), (5, 24, 1.0), (5, 24, 0.5), (9, 15, 1.0), (9, 15, 0.25), (6, 8, 1.0)],
)
def test_a_level_is_as_evident_as_dense_algebra_says(first: int, last: int, part: float) -> None:
    series = noise.correlated(np.random.default_rng(first), 1, 24, 0.7)[0]
    series -= series.mean()
    column = ((np.arange(24) >= first) & (np.arange(24) < last)).astype(float)
    if first:
        column[first] = part
    found, place, change = _Whitened(series).try_levels(np.array([first]), np.array([last]), part)
    assert (found, change) == pytest.approx(evidence(series, column))
    assert place == 0


def test_a_curve_is_as_evident_as_dense_algebra_says() -> None:
    series = noise.correlated(np.random.default_rng(8), 1, 24, 0.7)[0]
    curve = np.log(np.arange(24) + 1.0)
    curve -= curve.mean()
    assert _Whitened(series - series.mean()).try_curve(curve) == pytest.approx(evidence(series, curve))


def test_the_most_evident_of_several_is_found() -> None:
    series = np.where(np.arange(30) < 12, 0.0, 1.0) + noise.correlated(
        np.random.default_rng(1), 1, 30, 0.0, 0.1
    )
    first = np.arange(5, 26)
    found, place, change = _Whitened(series[0] - series.mean()).try_levels(first, np.full_like(first, 30))
    assert first[place] == 12
    assert change == pytest.approx(1, abs=0.1)
    assert measure_step_evidence(series[0]) == pytest.approx(found)


def judged(series: np.ndarray) -> Steadiness:
    return judge_steadiness(series, 0.0, LatencyTable())


def shape_of(found: Steadiness) -> ChangeShape | None:
    return ChangeShape.STEP if found.step else found.change.shape if found.change else None


@pytest.mark.parametrize(
    ("levels", "shape"),
    [
        (np.where(SECOND[:19] < 10, 1, 1 / 3), ChangeShape.STEP),
        (np.where(SECOND[:12] < 6, 1, 2), ChangeShape.STEP),
        (np.linspace(1, 0.25, 23), ChangeShape.SLOPE),
        (np.linspace(1, 0.25, 24), ChangeShape.SLOPE),
        (np.linspace(1, 2.5, 44), ChangeShape.SLOPE),
        (np.where(SECOND[:32] < 2, 1 + 0.29 * 32 / 2, 1), ChangeShape.BURST),
        (np.where(SECOND[:32] < 3, 1 + 0.29 * 32 / 3, 1), ChangeShape.BURST),
        *((middle_third(seconds, 1.5), ChangeShape.PASSING) for seconds in (18, 19, 24, 60, 120, 360)),
        (middle_third(60, 0.5), ChangeShape.PASSING),
    ],
)
def test_each_shape_is_found_and_named(levels: np.ndarray, shape: ChangeShape) -> None:
    found = [judged(each) for each in changed_rates(1, 20, levels)]
    assert sum(shape_of(each) is shape for each in found) >= 19
    assert not any(each.steady for each in found if shape_of(each))


@pytest.mark.long
@pytest.mark.parametrize("seconds", [12, 19, 24, 44])
@pytest.mark.parametrize("phi", [0.0, 0.8, 0.9])
def test_steady_runs_of_few_seconds_are_called_steady(seconds: int, phi: float) -> None:
    assert sum(not judged(each).steady for each in rates(4, 200, seconds, phi=phi)) <= 8


@pytest.mark.long
@pytest.mark.parametrize("seconds", [24, 32, 60])
def test_bursts_are_seldom_taken_for_levels(seconds: int) -> None:
    """As seldom as steps were taken for them before other shapes were looked for: 4 to 7 of 100."""
    assert sum(not judged(each).steady for each in bursty_rates(1, 200, seconds)) <= 18


@pytest.mark.parametrize(
    ("levels", "numbers"),
    [
        (np.linspace(1, 0.25, 24), [1000, 250]),
        (np.where(SECOND[:32] < 3, 4, 1), [4000, 3.5, 1000, 4]),
        (middle_third(60, 1.5), [1500, 20.5, 40.5, 1000]),
        (np.where(SECOND[:19] < 10, 1, 1 / 3), [1000, 333, 10.5]),
    ],
)
def test_what_is_said_has_moments_and_levels(
    levels: np.ndarray, numbers: list[float], golden_words: GoldenWords
) -> None:
    ripple = 1 + 0.001 * np.cos(2.5 * np.arange(len(levels)))
    words = judge_steadiness(np.round(RATE * levels * ripple), 0.5, LatencyTable()).warning() or ""
    number = r"\d[\d,.]*"
    golden_words(re.sub(number, "N", words))
    found = [float(each.replace(",", "")) for each in re.findall(number, words)]
    assert found == pytest.approx(numbers, rel=0.01)


def test_a_stall_is_no_level() -> None:
    (series,) = rates(6, 1, 30, spread=0.01)
    series[10:18] = 0
    assert judged(series).change is None


@pytest.mark.parametrize("series", [np.zeros(30), np.full(30, 7.0), np.ones(9), np.empty(0)])
def test_nothing_changes_where_nothing_is_different_or_too_little_is_known(series: np.ndarray) -> None:
    found = judged(series)
    assert (found.change, found.latency, found.steady) == (None, None, True)
    assert find_change(series) is None


# -- Latencies -------------------------------------------------------------------------------------


def latencies(level: np.ndarray, each: int = 60) -> LatencyTable:
    second = np.repeat(np.arange(len(level)), each)
    random = np.random.default_rng(2)
    return LatencyTable.of(1e9 + second + 0.5, level[second] * random.lognormal(0, 0.6, len(second)))


@pytest.mark.parametrize("seconds", [19, 60, 300])
def test_latencies_that_rise_at_a_constant_rate_are_said(seconds: int, golden_words: GoldenWords) -> None:
    (level,) = noise.correlated(np.random.default_rng(3), 1, seconds, 0.8, 0.1)
    table = latencies(0.005 * np.linspace(1, 20, seconds) * np.exp(level))
    found = judge_steadiness(np.full(seconds, 60.0), 1e9, table)
    assert not found.steady
    assert found.latency is not None
    assert found.latency.shape is ChangeShape.SLOPE
    assert found.latency.before == pytest.approx(0.005, rel=0.5)
    assert found.latency.after == pytest.approx(0.1, rel=0.3)
    golden_words(found.warning() or "")


def test_a_step_of_latencies_has_its_moment() -> None:
    table = latencies(np.where(SECOND[:40] < 25, 0.01, 0.03))
    found = judge_steadiness(np.full(40, 60.0), 1e9, table).latency
    assert found is not None
    assert (found.shape, found.start) == (ChangeShape.STEP, 25.0)
    assert (found.before, found.after) == (pytest.approx(0.01, rel=0.1), pytest.approx(0.03, rel=0.1))


def test_latencies_that_stay_or_are_too_few_are_not_called_changed() -> None:
    levels = noise.correlated(np.random.default_rng(4), 100, 60, 0.9, 0.1)
    found = [judge_steadiness(np.full(60, 60.0), 1e9, latencies(0.01 * np.exp(each))) for each in levels]
    assert sum(each.latency is not None for each in found) <= 2
    rising = latencies(0.005 * np.linspace(1, 20, 40))
    assert judge_steadiness(np.full(60, 40.0), 1e9, rising).latency is None  # a third of the seconds has none
    assert judge_steadiness(np.full(60, 40.0), 1e9, latencies(np.linspace(1, 1.2, 60))).latency is None
