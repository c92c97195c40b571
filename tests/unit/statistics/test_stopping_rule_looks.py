"""When a run that is to end itself is looked at, and what is said then."""

from __future__ import annotations

import math

import numpy as np
import pytest
from counted import failed
from simulated_steps import RATE, bursty_rates, rates, until_known

from ssbench.results.block import Failure, ResultBlock
from ssbench.results.result_fields import ResultMark
from ssbench.statistics.confidence import mean_interval, t_quantile
from ssbench.statistics.stopping_rule import StoppingRule, StoppingSink, estimate_interval


def test_two_looks_in_a_row_decide_at_their_times_however_late_they_come() -> None:
    steady = np.full(60, 100.0)
    rule = StoppingRule(0.02)
    assert not rule.look(steady[:29])
    assert (rule.interval, rule.next_look) == (None, 30.0)
    assert not rule.look(steady[:37])
    assert (rule.width, rule.next_look) == (0.0, 37.5)
    assert rule.look(steady[:38])
    assert rule.next_look == 37.5 * 1.25
    late = StoppingRule(0.02)
    assert late.look(steady)  # both looks at once
    assert (late.interval, late.next_look) == (rule.interval, rule.next_look)


def test_a_look_sees_the_seconds_up_to_its_time() -> None:
    series = np.where(np.arange(60) < 37, 100.0 + np.arange(60) % 2, 1e6)
    rule = StoppingRule(0.02)
    rule.look(series[:38])
    seen = estimate_interval(series[:37])
    assert seen is not None
    assert rule.interval == seen
    assert rule.width == seen.half_width / series[:37].mean()


def test_a_wide_look_between_two_narrow_ones_begins_anew() -> None:
    rule = StoppingRule(0.02)
    narrow, wide = np.full(46, 100.0), np.where(np.arange(46) % 4 < 2, 10.0, 190.0)
    assert not rule.look(narrow[:30])
    assert not rule.look(wide[:38])
    assert not rule.look(narrow[:46])  # its look would be at 46.9 s
    assert not rule.look(np.full(47, 100.0))
    assert rule.look(np.full(59, 100.0))


def test_a_run_without_successes_is_never_known() -> None:
    rule = StoppingRule(0.02)
    assert not rule.look(np.zeros(60))
    assert rule.width == math.inf


def second_of(
    second: int, count: int = 10, failures: dict[int, Failure] | None = None, **columns: np.ndarray
) -> ResultBlock:
    moments = 1e9 + second + np.linspace(0.0, 0.9, count)
    return ResultBlock(count, {"completed": moments, **columns}, failures=failures or {})


def test_the_first_second_and_the_last_two_are_not_whole() -> None:
    sink = StoppingSink(0.02)
    sink.tick(0.0)
    for second in range(41):
        sink.add(second_of(second, count=7 if second == 0 else 10))
        sink.tick(float(second))
        assert not sink.reached()
    sink.add(second_of(41, count=1))
    sink.add(second_of(41, marks=np.full(10, ResultMark.WARM_UP)))
    sink.tick(41.0)
    assert sink.reached()
    assert sink.sentence() == (
        "The rate is known to +-0.0 % after 37.5 s (as much as 37 independent seconds)"
    )


def test_failures_are_no_part_of_the_rate() -> None:
    """Each second begins with failures: the first is the first in which something succeeded."""
    plain, mixed = StoppingSink(0.02), StoppingSink(0.02)
    mixed.add(second_of(-5, failures=failed(*range(10))))
    for second in range(42):
        count = 10 + second % 3
        plain.add(second_of(second, count))
        mixed.add(second_of(second, count + 3, failures=failed(*range(second % 4, second % 4 + 3))))
    for sink in (plain, mixed):
        sink.tick(42.0)
    assert mixed.sentence() == plain.sentence()
    assert "after 37.5 s" in mixed.sentence()


def test_what_is_said_of_a_rate_that_is_not_known() -> None:
    sink = StoppingSink(0.01)
    assert sink.sentence() == "The run was too short to tell whether its rate is known to 1 %"
    for second in range(36):
        sink.add(second_of(second, count=10 + 20 * (second % 2)))
    sink.tick(36.0)
    assert not sink.reached()
    said = sink.sentence()
    assert said.startswith("The run ended before its rate was known to 1 %: +-")
    assert " % after 30 s (as much as " in said


@pytest.mark.long
@pytest.mark.parametrize(("phi", "target"), [(0.0, 0.02), (0.8, 0.02), (0.9, 0.02), (None, 0.05)])
def test_the_interval_of_a_run_that_ended_itself_has_the_truth(phi: float | None, target: float) -> None:
    """In 95 of 100 runs of an hour, of independent and of autocorrelated noise and of bursts (None)."""
    series = bursty_rates(1, 120, 3600) if phi is None else rates(1, 120, 3600, phi=phi)
    truth = RATE * (1.0157 if phi is None else math.exp(0.05**2 / 2))
    ended, right = until_known(series, truth, target)
    assert ended >= 105
    assert right >= 0.92 * ended


def test_the_interval_is_the_wider_one_of_seconds_and_of_ten_batches() -> None:
    series = 100 + np.random.default_rng(1).normal(0, 5, 43)
    of_seconds = mean_interval(series)
    assert of_seconds is not None
    means = series[3:].reshape(10, 4).mean(axis=1)
    half = t_quantile(0.995, 9) * float(np.std(means, ddof=1)) / math.sqrt(10)
    assert half > of_seconds.half_width
    found = estimate_interval(series)
    assert found is not None
    assert found.half_width == pytest.approx(half)
    assert (found.low + found.high) / 2 == pytest.approx(series.mean())
    alternating = 100 + np.tile([1.0, -1.0], 30)
    assert estimate_interval(alternating) == mean_interval(alternating)


def test_batches_with_much_in_common_tell_nothing() -> None:
    rising = estimate_interval(np.linspace(90.0, 110.0, 60))
    assert rising is not None
    assert math.isinf(rising.half_width)
    assert estimate_interval(np.ones(9)) is None
