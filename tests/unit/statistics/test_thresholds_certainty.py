"""A condition is undecided where a run does not tell, and seldom wrong where it does."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from simulated_conditions import outcomes, run, truth

from ssbench.base.errors import GateResult
from ssbench.scenario.conditions import parse_condition
from ssbench.statistics.thresholds import Certainty, _judge_share, judge_conditions

PASSED, FAILED, UNDECIDED = GateResult.PASSED, GateResult.FAILED, GateResult.UNDECIDED


def only(text: str, operations: int, seconds: int, spread: float = 0.0) -> GateResult:
    (judgment,) = judge_conditions(
        run(np.random.default_rng(2), operations, seconds, 0.8, spread), [parse_condition(text)]
    )
    return judgment.result


@pytest.mark.parametrize(("off", "wrong"), [(1.1, FAILED), (0.9, PASSED)])
def test_a_median_of_few_operations_is_seldom_wrong(off: float, wrong: GateResult) -> None:
    """The true one is 10 % off the limit; 2.5 % of 120 is 3."""
    found = outcomes(120, f"p50 > {1000 * truth(50, 0) * off:.4f}ms", 40, 4)
    assert found[wrong] <= 6
    assert found[UNDECIDED] > 60


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("p50 > 12ms", PASSED),
        ("p50 > 8ms", FAILED),
        ("p50 < 12ms", FAILED),
        ("p50 > 10ms", UNDECIDED),
        ("p99 > 60ms", PASSED),
        ("p99 > 30ms", FAILED),
        ("p99 > 41ms", UNDECIDED),
        ("p99.99 > 1s", UNDECIDED),
        ("p99 > 1s", PASSED),
        ("mean > 14ms", PASSED),
        ("mean > 10ms", FAILED),
        ("mean > 12ms", UNDECIDED),
        ("errors > 1%", FAILED),
        ("errors > 4%", PASSED),
        ("errors > 2%", UNDECIDED),
        ("errors > 0", FAILED),
        ("errors > 0%", FAILED),
        ("errors > 100%", PASSED),
        ("count > 1", FAILED),
        ("max > 1ms", FAILED),
        ("max > 1m", PASSED),
        ("rate < 50", PASSED),
        ("rate < 150", FAILED),
        ("rate < 98", UNDECIDED),
    ],
)
def test_three_outcomes(text: str, result: GateResult) -> None:
    """6,000 operations in 60 s, half at most 10 ms, of which 2 % fail."""
    assert only(text, 6000, 60, 0.05) is result


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("errors > 1%", UNDECIDED),
        ("rate < 2", PASSED),
        ("rate < 9", UNDECIDED),
        ("rate < 40", FAILED),
        ("mean > 1s", PASSED),
    ],
)
def test_runs_of_few_seconds(text: str, result: GateResult) -> None:
    assert only(text, 40, 4) is result


def test_undecided_says_how_many_operations_would_tell() -> None:
    (judgment,) = judge_conditions(run(np.random.default_rng(3), 400, 10), [parse_condition("p50 > 10.5ms")])
    found = re.fullmatch(
        r"p50 > 10\.5ms: undecided \([\d.]+ms, of \d+ operations; about ([\d,]+) would decide\)",
        judgment.text,
    )
    assert found is not None
    enough = int(found[1].replace(",", ""))
    assert enough >= 600
    if enough < 60_000:
        (again,) = judge_conditions(
            run(np.random.default_rng(4), 3 * enough, 60), [parse_condition("p50 > 10.5ms")]
        )
        assert not again.undecided


@pytest.mark.parametrize(
    ("share", "limit", "counts", "enough"),
    [
        (0.0, 0.01, (1, 100, 150, 300, 349, 367), 368),
        (0.0, 0.001, (100, 3000, 3687), 3688),
        (1.0, 0.99, (1, 100, 367), 368),
        (1.0, 0.5, (1, 5), 6),
    ],
)
def test_the_operations_that_would_decide_stay_while_nothing_changes(
    share: float, limit: float, counts: tuple[int, ...], enough: int
) -> None:
    for count in counts:
        forecast = _judge_share(share, count, math.inf, limit).enough
        assert forecast is not None
        assert math.ceil(forecast) == enough
    assert _judge_share(share, enough, math.inf, limit) == Certainty(limit < share, limit > share)


def test_operations_that_are_worth_less_are_more() -> None:
    """Each of four is worth one."""
    forecasts = [_judge_share(0.0, count, count / 4, 0.01).enough for count in (100, 600, 1400)]
    assert forecasts == pytest.approx([4 * 367.04] * 3, rel=1e-4)


@pytest.mark.parametrize("limit", [0.001, 0.01, 0.05, 0.5, 0.9, 0.99])
def test_a_run_of_the_operations_that_would_decide_is_decided(limit: float) -> None:
    """Also where the share is near its limit, or far from normal; it is no order of size too many."""
    for count in (10, 30, 300, 3000):
        for failed in range(1, count, max(1, count // 100)):
            known = _judge_share(failed / count, count, math.inf, limit)
            if known.enough is None:
                assert known.above or known.below or failed / count == limit
                continue
            decided = _judge_share(failed / count, known.enough, math.inf, limit)
            assert decided.above or decided.below
            assert known.enough > count
            few = _judge_share(failed / count, known.enough / 6, math.inf, limit)
            assert not few.above
            assert not few.below
