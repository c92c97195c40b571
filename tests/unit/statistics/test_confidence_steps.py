"""Whether the rate of a run changed from one level to another: found where it did, and not in noise."""

from __future__ import annotations

import numpy as np
import pytest
from simulated_steps import RATE, rates

from ssbench.statistics.confidence import find_step, mean_interval, remove_step


@pytest.mark.parametrize(
    ("seconds", "change", "phi"),
    [(32, 1.0, 0.8), (32, -0.3, 0.8), (32, -0.3, 0.0), (60, 1.0, 0.8), (60, -0.3, 0.8), (60, -0.2, 0.8)]
    + [(120, change, 0.8) for change in (1.0, -0.3, -0.2)],
)
def test_a_step_is_found_where_noise_allows_it(seconds: int, change: float, phi: float) -> None:
    found = [find_step(each) for each in rates(1, 60, seconds, change=change, phi=phi)]
    steps = [each for each in found if each is not None]
    assert len(steps) >= 55
    assert np.median([abs(each.at - seconds / 2) for each in steps]) <= 0.7
    assert np.median([each.before for each in steps]) == pytest.approx(RATE, rel=0.03)
    assert np.median([each.after / each.before for each in steps]) == pytest.approx(1 + change, rel=0.03)


@pytest.mark.parametrize("length", [1, 2])
def test_a_short_stall_is_no_step(length: int) -> None:
    (series,) = rates(6, 1, 32, spread=0.01)
    series[12 : 12 + length] = 0
    assert find_step(series) is None


def test_what_has_no_noise_at_all() -> None:
    assert find_step(np.full(60, 100.0)) is None
    assert find_step(np.zeros(60)) is None
    assert find_step(np.repeat([100.0, 80.0], 10)) is not None
    assert find_step(np.repeat([100.0, 80.0], 9)) is None
    # Of these levels rounding leaves a constant: the mean is no longer 0, and nothing differs from it.
    series = np.repeat([7.0, 0.0], [14, 153])
    assert find_step(series) is not None
    assert find_step(np.empty(0)) is None


def test_a_step_is_so_long_after_the_start_as_its_series_begins_later() -> None:
    series = np.repeat([100.0, 80.0], [12, 10])
    found = [find_step(series, offset) for offset in (0.0, 0.25)]
    assert [each and each.at for each in found] == [12.0, 12.25]


def test_a_long_run_is_looked_at_in_parts() -> None:
    (series,) = rates(7, 1, 3600, change=-0.2)
    found = find_step(series, 0.25)
    assert found is not None
    assert found.at == pytest.approx(1800.25, abs=15)
    left = remove_step(series)
    assert left.mean() == pytest.approx(series.mean())
    assert left.std() < 0.07 * RATE < series.std()


def test_the_interval_of_a_rate_with_a_step_is_that_of_the_noise_around_both_levels() -> None:
    for series in rates(8, 20, 60, change=1.0):
        plain, found = mean_interval(series), mean_interval(remove_step(series))
        assert plain is not None
        assert found is not None
        assert found.low <= 1.5 * RATE * 1.05
        assert found.half_width < 0.2 * series.mean() < plain.half_width
