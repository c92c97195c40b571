"""A condition is undecided where a run does not tell, and seldom wrong where it does."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from simulated_conditions import outcomes, run, truth

from ssbench.base.errors import GateResult
from ssbench.document import figures
from ssbench.document.figures import FIGURES, Basis
from ssbench.scenario.conditions import parse_condition
from ssbench.statistics.thresholds import Certainty, _judge_share, _Worth, judge_conditions

PASSED, FAILED, UNDECIDED = GateResult.PASSED, GateResult.FAILED, GateResult.UNDECIDED


def only(text: str, operations: int, seconds: int, spread: float = 0.0) -> GateResult:
    (judgment,) = judge_conditions(
        run(np.random.default_rng(2), operations, seconds, 0.8, spread), [parse_condition(text)]
    )
    return judgment.result


@pytest.mark.long
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


@pytest.mark.parametrize(("key", "limit"), [("rate", "98"), ("errors", "2%"), ("p50", "10ms")])
def test_a_figure_that_is_exact_is_decided_whatever_its_unit(
    key: str, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert only(f"{key} > {limit}", 6000, 60, 0.05) is UNDECIDED
    row = replace(FIGURES[key], basis=Basis.EXACT)
    monkeypatch.setattr(figures, "find_figure", lambda _: row)
    found = {only(f"{key} {sign} {limit}", 6000, 60, 0.05) for sign in "<>"}
    assert found == {PASSED, FAILED}


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


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("p50 > 5s", PASSED),
        ("p50 > 100us", FAILED),
        ("p99 > 60s", PASSED),
        ("p99 > 100us", FAILED),
        ("p99.9 > 60s", PASSED),
        ("p99.99 > 60s", UNDECIDED),
        ("mean > 5s", PASSED),
        ("mean > 100us", FAILED),
        ("rate < 5", PASSED),
        ("rate < 50000", FAILED),
        ("mb_per_s < 0.005", PASSED),
        ("errors > 99%", PASSED),
        ("errors > 0.001%", FAILED),
        ("p50 > 20ms", UNDECIDED),
        ("errors > 3%", UNDECIDED),
    ],
)
def test_a_limit_that_no_drift_would_reach_is_decided(text: str, result: GateResult) -> None:
    """Latencies rise threefold, and the rate falls as much, in 20 s; failures from 1 to 4 %.

    Of the drift alone nothing would be known: the seconds are worth two.
    """
    for seed in range(5):
        numbers = run(
            np.random.default_rng(seed), 12_000, 20, drift=math.log(3), errors=np.linspace(0.01, 0.04, 20)
        )
        (judgment,) = judge_conditions(numbers, [parse_condition(text)])
        assert judgment.result is result, (seed, judgment.text)


def test_chance_decides_however_far_the_limit_is() -> None:
    """A percentile needs as many operations as without a drift."""
    for operations, result in ((150, UNDECIDED), (900, PASSED)):
        numbers = run(np.random.default_rng(1), operations, 20, drift=math.log(3))
        (judgment,) = judge_conditions(numbers, [parse_condition("p99 > 60s")])
        assert judgment.result is result


@pytest.mark.long
@pytest.mark.parametrize(("rank", "off"), [(50, 1.02), (50, 0.98), (99, 1.02), (99, 0.98)])
def test_a_short_run_is_seldom_wrong(rank: int, off: float) -> None:
    """What its few seconds have in common is in none of its operations; 2.5 % of 80 is 2."""
    found = outcomes(80, f"p{rank} > {1000 * truth(rank, 0.2) * off:.4f}ms", 1000, 4, 0.8, 0.2)
    assert found[FAILED if off > 1 else PASSED] <= 4


@pytest.mark.parametrize(
    "text", ["p50 > 11.2ms", "p99 > 50ms", "errors > 1.7%", "mean > 13.5ms", "rate < 3400", "mb_per_s < 3.4"]
)
def test_a_short_run_is_known_roughly(text: str) -> None:
    """4,000 operations a second, whose limit is some 12 % off."""
    errors = np.random.default_rng(5).uniform(0.018, 0.022, 30)
    for seconds in (1, 4, 30):
        numbers = run(np.random.default_rng(5), 4000 * seconds, seconds, 0.0, 0.05, errors=errors[:seconds])
        (judgment,) = judge_conditions(numbers, [parse_condition(text)])
        assert judgment.undecided is (seconds < 10), judgment.text
        if seconds == 4 and text.startswith("p"):
            count = f"{judgment.count:,}"
            assert f"of {count} operations; about 40,000 would decide" in judgment.text


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
        forecast = _judge_share(share, count, _Worth(), limit).enough
        assert forecast is not None
        assert math.ceil(forecast) == enough
    assert _judge_share(share, enough, _Worth(), limit) == Certainty(limit < share, limit > share)


def test_operations_that_are_worth_less_are_more() -> None:
    """Each of four is worth one."""
    forecasts = [
        _judge_share(0.0, count, _Worth(count / 4, count / 4), 0.01).enough for count in (100, 600, 1400)
    ]
    assert forecasts == pytest.approx([4 * 367.04] * 3, rel=1e-4)


def test_a_share_of_errors_is_said_to_be_of_the_failed_operations_too() -> None:
    numbers = run(np.random.default_rng(1), 600, 12, errors=0.05)
    (judgment,) = judge_conditions(numbers, [parse_condition("errors > 5%")])
    assert numbers.total.failed > 10
    assert f", of {numbers.total.count + numbers.total.failed} operations;" in judgment.text


def test_a_short_run_of_a_steady_store_asks_for_operations_that_somebody_can_run() -> None:
    """Twelve seconds hardly know how much they scatter: once 600 operations asked for 140,000."""
    forecasts, decided = [], 0
    for seed in range(12):
        (short,) = judge_conditions(
            run(np.random.default_rng(seed), 600, 12), [parse_condition("p99 > 60ms")]
        )
        if not short.undecided:
            continue
        assert short.enough is not None
        forecasts.append(short.enough)
        longer = run(
            np.random.default_rng(100 + seed), round(short.enough), max(12, round(short.enough / 50))
        )
        decided += judge_conditions(longer, [parse_condition("p99 > 60ms")])[0].result is PASSED
    assert len(forecasts) >= 5
    assert max(forecasts) < 10_000
    assert decided >= len(forecasts) / 2


@pytest.mark.parametrize(
    ("failed", "limit"), [(1, 0.01), (6, 0.03), (10, 0.05), (5, 0.01), (130, 0.4), (215, 0.75), (294, 0.99)]
)
def test_nine_of_ten_runs_of_the_operations_that_would_decide_are(failed: int, limit: float) -> None:
    """Where the store goes on as it was in the first 300 operations."""
    share = failed / 300
    known = _judge_share(share, 300, _Worth(), limit)
    assert known.enough is not None
    count = math.ceil(known.enough)
    random = np.random.default_rng(1)
    runs = [_judge_share(each / count, count, _Worth(), limit) for each in random.binomial(count, share, 400)]
    decided = sum(each.below if share < limit else each.above for each in runs)
    assert 0.82 <= decided / len(runs) <= 0.97


@pytest.mark.parametrize("limit", [0.001, 0.01, 0.05, 0.5, 0.9, 0.99])
def test_a_run_of_the_operations_that_would_decide_is_decided(limit: float) -> None:
    """Also where the share is near its limit, or far from normal; it is no order of size too many."""
    for count in (10, 30, 300, 3000):
        for failed in range(1, count, max(1, count // 100)):
            known = _judge_share(failed / count, count, _Worth(), limit)
            if known.enough is None:
                assert known.above or known.below or failed / count == limit
                continue
            decided = _judge_share(failed / count, known.enough, _Worth(), limit)
            assert decided.above or decided.below
            assert known.enough > count
            few = _judge_share(failed / count, known.enough / 6, _Worth(), limit)
            assert not few.above
            assert not few.below
