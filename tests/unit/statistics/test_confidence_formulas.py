"""Formulas of intervals and steps beside the same in another way."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ssbench.statistics.confidence import (
    _fit_levels,
    find_step,
    percentile_ranks,
    remove_step,
    t_quantile,
    t_tail,
    welch_error,
)


@pytest.mark.parametrize("freedom", [1.0, 2.5, 30.0, 1000.0])
@pytest.mark.parametrize("share", [0.5, 0.9, 0.975, 0.9995])
def test_a_quantile_of_students_t_has_its_tail_to_ten_digits(share: float, freedom: float) -> None:
    assert t_tail(t_quantile(share, freedom), freedom) == pytest.approx(1 - share, rel=1e-8)


def test_the_error_of_a_difference_is_welchs() -> None:
    # By hand: variances 1 and 4 of 3 and 5 values.
    before, after = [1.0, 2.0, 3.0], [2.0, 2.0, 4.0, 6.0, 6.0]
    error, freedom = welch_error(before, after)
    assert error == pytest.approx(math.sqrt(1 / 3 + 4 / 5))
    assert freedom == pytest.approx((1 / 3 + 4 / 5) ** 2 / ((1 / 3) ** 2 / 2 + (4 / 5) ** 2 / 4))


def test_how_sure_a_step_is_follows_from_what_two_levels_leave() -> None:
    random = np.random.default_rng(1)
    for count in (20, 37):
        parts = random.normal(0.0, 1.0, count) + np.where(np.arange(count) < 9, 10.0, 11.0)
        found = _fit_levels(parts, 0.0)
        left = float(((parts - found.levels(count)) ** 2).sum())
        gained = float(((parts - parts.mean()) ** 2).sum()) - left
        # A mean, a change and its place were chosen.
        assert found.errors == pytest.approx(math.sqrt(gained / (left / (count - 3))))
        assert found.before == pytest.approx(
            (parts - found.change * (found.levels(count) - found.before) / found.change).mean()
        )


@pytest.mark.parametrize("count", [240, 241, 360, 479, 480, 481])
def test_a_step_with_little_noise_is_found_at_its_second_however_long_the_run_is(count: int) -> None:
    at = count // 3
    series = np.where(np.arange(count) < at, 100.0, 150.0) + 0.01 * np.sin(np.arange(count) ** 2)
    found = find_step(series)
    assert found is not None
    length = math.ceil(count / 240)
    assert found.at == pytest.approx(at, abs=length)
    assert (found.before, found.after) == (pytest.approx(100.0, rel=1e-3), pytest.approx(150.0, rel=1e-3))
    left = remove_step(series)
    assert left.mean() == pytest.approx(series.mean())
    # Nothing is left but near the step, where parts of the run are looked at, not seconds.
    far = np.abs(np.arange(count) - at) > 2 * length
    assert np.ptp(left[far]) < 1.0


def test_shares_do_not_depend_on_the_unit_where_chance_is_not_taken_off() -> None:
    random = np.random.default_rng(2)
    every = random.poisson(100.0, 60).astype(float)
    below = random.poisson(1.0 + 0.9 * np.sin(np.arange(60) / 5)).astype(float)  # slow changes
    one, many = (
        percentile_ranks(0.01, below * times, every * times, without_chance=False) for times in (1, 1000)
    )
    assert one is not None
    assert many is not None
    assert (many.low, many.high) == (pytest.approx(one.low), pytest.approx(one.high))
