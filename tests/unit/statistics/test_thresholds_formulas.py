"""How certain a figure is, against sums of binomial terms, and intervals that are known."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from statistics import fmean, stdev
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from golden_words import GoldenWords
from said import NEVER_BEGAN
from simulated_conditions import run

from ssbench.base.errors import GateResult
from ssbench.scenario.conditions import parse_condition
from ssbench.statistics.by_second import BySecond, LatencyTable
from ssbench.statistics.confidence import Interval, ShareInterval, mean_interval, ratio_interval, share_ranks
from ssbench.statistics.latencies import select_latencies
from ssbench.statistics.latency_parts import CensoredLatencies
from ssbench.statistics.thresholds import (
    Certainty,
    ConditionJudgment,
    _deciding_operations,
    _find_reach,
    _find_worth,
    _is_beyond,
    _judge_errors,
    _judge_exact,
    _judge_interval,
    _judge_percentile,
    _judge_share,
    _judge_short_run,
    _mean_latency_interval,
    _possible,
    _rate_interval,
    _round_up,
    _share_sides,
    _short_interval,
    _Worth,
    judge_conditions,
    judge_run,
)

INFINITE = math.inf
NEITHER = Certainty(above=False, below=False)
P50 = parse_condition("p50 > 10s")


def terms(count: int, chance: float) -> list[float]:
    return [
        math.comb(count, each) * chance**each * (1 - chance) ** (count - each) for each in range(count + 1)
    ]


@pytest.mark.parametrize("limit", [0.02, 0.3, 0.9])
@pytest.mark.parametrize("count", [1, 12, 40])
def test_a_share_is_certain_where_chance_makes_it_in_one_of_forty(count: int, limit: float) -> None:
    for part in range(count + 1):
        as_many, as_few = math.fsum(terms(count, limit)[part:]), math.fsum(terms(count, limit)[: part + 1])
        sides = as_many <= 0.025, as_few <= 0.025
        assert _share_sides(part / count, count, limit) == sides
        found = _judge_share(part / count, 3 * count, _Worth(count, count), limit)
        assert (found.above, found.below) == sides
        if any(sides):
            assert found.enough is None
    assert _judge_share(0.5, 0, _Worth(), 0.3) == NEITHER


def test_so_many_operations_would_decide_as_errors_of_both_shares_say() -> None:
    """A store at the limit, and one at the share, each within what chance does to them."""
    share, limit = 0.3, 0.32
    errors = 1.96 * math.sqrt(limit * (1 - limit)) + 1.28 * math.sqrt(share * (1 - share))
    assert _deciding_operations(share, limit, 100) == pytest.approx((errors / 0.02) ** 2)
    assert _deciding_operations(share, limit, 1e6) == 1e6
    assert _deciding_operations(0.3, 0.3, 100) is None
    assert _judge_share(share, 100, _Worth(50, 50), limit).enough == pytest.approx(2 * (errors / 0.02) ** 2)
    assert _judge_share(0.3, 100, _Worth(50, 50), 0.3) == NEITHER
    assert [_possible(each) for each in (1e9, 1.001e9, INFINITE)] == [1e9, None, None]
    assert _judge_share(0.3, 100, _Worth(), 0.300_01).enough is None


def test_a_share_is_worth_as_many_operations_as_have_its_interval() -> None:
    known, wide = (pytest.approx(0.16 * (1.96 / half) ** 2) for half in (0.05, 0.1))
    for low in (0.15, 0.0):
        assert _find_worth(0.2, ShareInterval(low, 0.25, 9.0, 0.05, 0.0)) == _Worth(known, known)
    assert _find_worth(0.2, ShareInterval(0.15, 0.25, 900.0, 0.05, 0.0)) == _Worth(known, 900.0)
    drifting = _find_worth(0.2, ShareInterval(0.1, 0.3, 900.0, 0.05, 0.1))
    assert (drifting, drifting.known, drifting.most) == (_Worth(known, 900.0, wide), wide, wide)
    for share, interval in (
        (0.2, None),
        (0.0, ShareInterval(0, 1, 2, 1, 1)),
        (1.0, ShareInterval(0, 2, 2, 1, 1)),
    ):
        assert _find_worth(share, interval) == _Worth()
    assert _find_worth(0.2, ShareInterval(0.2, 0.2, 9.0, 0.0, 0.0)) == _Worth()


def test_a_longer_run_knows_how_much_its_seconds_scatter() -> None:
    """Two hundred operations are worth two as far as a run of some seconds knows; they may be worth 100."""
    assert _judge_share(1.0, 200, _Worth(2.0, 2.0), 0.99).enough == pytest.approx(36_704.4, rel=1e-4)
    # 367 are needed: those of a run 3.7 times as long if its scatter were known. An interval seven times as
    # wide is that of two seconds, of which a run 4.9 times as long has 9.9: its t is 2.27, not 1.96, and
    # 100 * 4.9 * (1.96 / 2.27)^2 = 365.
    assert _judge_share(1.0, 200, _Worth(2.0, 100.0), 0.99).enough == pytest.approx(4.9 * 200, rel=0.02)
    assert _judge_share(1.0, 200, _Worth(2.0, INFINITE), 0.5).enough == 300.0  # half as many again at least


def test_a_longer_run_is_promised_no_narrower_interval_where_long_batches_made_it_wide() -> None:
    needed = math.log(0.025) / math.log(0.99)
    for by_batches in (2.0, 1.0):  # as wide as by the seconds, and wider
        worth = _Worth(2.0, 100.0, by_batches)
        assert _judge_share(1.0, 200, worth, 0.99).enough == pytest.approx(needed * 200 / by_batches)
    # Less wide: what the seconds widen ends with a longer run, what the batches do does not.
    assert _judge_share(1.0, 200, _Worth(2.0, 100.0, 20.0), 0.99).enough == pytest.approx(needed * 200 / 20)


@pytest.mark.parametrize(
    ("low", "high", "found", "certainty"),
    [
        (10.1, 12.0, 11.0, Certainty(above=True, below=False)),
        (8.0, 9.9, 9.0, Certainty(above=False, below=True)),
        (8.0, 12.0, 10.0, NEITHER),  # at the limit no number would tell
        (0.0, INFINITE, 9.0, NEITHER),
        # Half of it is three times as far as the limit is: 9 times (3.24 / 1.96)² as many.
        (6.0, 12.0, 9.0, Certainty(above=False, below=False, enough=9 * (3.24 / 1.96) ** 2 * 1000)),
        (7.9, 10.1, 9.0, Certainty(above=False, below=False, enough=1.1**2 * (3.24 / 1.96) ** 2 * 1000)),
        # An interval that reaches far to one side says nothing of how far it is to the limit on the other.
        (8.0, 900.0, 11.0, Certainty(above=False, below=False, enough=9 * (3.24 / 1.96) ** 2 * 1000)),
        (8.0, INFINITE, 11.0, Certainty(above=False, below=False, enough=9 * (3.24 / 1.96) ** 2 * 1000)),
        (0.1, 10.0, 9.0, Certainty(above=False, below=False, enough=(3.24 / 1.96) ** 2 * 1000)),
    ],
)
def test_an_interval_is_certain_beyond_the_limit(
    low: float, high: float, found: float, certainty: Certainty
) -> None:
    judged = _judge_interval(P50, low, high, 1000, found)
    assert (judged.above, judged.below) == (certainty.above, certainty.below)
    assert judged.enough == (None if certainty.enough is None else pytest.approx(certainty.enough))


@pytest.mark.parametrize(
    ("relation", "most", "holds"),
    [
        (">", 10, False),
        (">=", 10, True),
        ("<", 10, False),
        ("<=", 10, True),
        (">", 11, None),
        ("<=", 11, None),
    ],
)
def test_a_figure_that_is_known_and_at_its_limit_holds_with_a_relation_that_has_it(
    relation: str, most: float, holds: bool | None
) -> None:
    condition = parse_condition(f"count {relation} 10")
    known = _judge_exact(condition, most)
    sides = (known.above, known.below) if relation[0] == ">" else (known.below, known.above)
    assert sides == {True: (True, False), False: (False, True), None: (False, False)}[holds]
    if holds is not None:
        assert _judge_interval(condition, 10, 10, 5, 10) == known


def test_no_drift_reaches_ten_times_beyond_the_least_and_the_greatest_second_nor_its_interval() -> None:
    seconds = 5 + np.sin(np.arange(30.0))
    assert _find_reach(seconds) == pytest.approx((seconds.min() / 10, seconds.max() * 10))
    drifting = np.exp(np.arange(12.0))
    interval = mean_interval(np.arange(12.0))
    assert interval is not None
    assert interval.half_width > 22
    assert _find_reach(drifting) == pytest.approx((math.e**-22, math.e**33), rel=1e-6)  # twice its range
    logs = np.array([0.0, 8, 8, 0, 8, 0, 0, 8, 8, 0, 0, 8])
    known = mean_interval(logs)
    assert known is not None
    half = known.half_width
    assert math.log(10) < half < 16
    wandering = np.exp(logs)
    assert _find_reach(wandering) == pytest.approx((math.exp(-half), math.exp(8 + half)), rel=1e-6)
    # Of others that drift as much as theirs.
    assert _find_reach(seconds, wandering) == pytest.approx(
        (seconds.min() * math.exp(-half), seconds.max() * math.exp(half)), rel=1e-6
    )
    # A second without anything says nothing of how far up.
    assert _find_reach(np.append(seconds, 0.0)) == pytest.approx((0.0, seconds.max() * 10))
    for unknown in (seconds[:9], seconds[:0], np.zeros(12)):
        assert _find_reach(unknown) == (0.0, INFINITE)
    assert [_is_beyond(limit, (1.0, 2.0)) for limit in (0.9, 1.0, 2.0, 2.1)] == [True, False, False, True]


def test_a_short_run_is_known_to_a_factor_of_two_and_to_nine_deviations() -> None:
    assert _short_interval(10.0, 12.0, np.array([10.0, 10.1])) == (5.0, 24.0)
    seconds = [9.9, 10.0, 10.2]
    half = 9 * stdev(seconds) / fmean(seconds)
    assert _short_interval(10.0, 12.0, np.array(seconds)) == pytest.approx((10 * (1 - half), 12 * (1 + half)))
    assert _short_interval(10.0, 12.0, np.array([1.0, 10.0, 30.0])) == (5.0, 24.0)
    assert _short_interval(10.0, 12.0, np.zeros(5)) == (5.0, 24.0)
    limit = parse_condition("p50 > 10s")
    for found, seconds_of in ((20.1, np.ones(2)), (4.9, np.ones(2)), (11.0, np.full(3, 11.0))):
        assert _judge_short_run(limit, found, found, seconds_of, 100) is None
    assert _judge_short_run(limit, 19.9, 19.9, np.ones(2), 100) == Certainty(
        above=False, below=False, enough=500
    )
    assert _judge_short_run(limit, 5.1, 5.1, np.ones(2) * 5, 100) == Certainty(
        above=False, below=False, enough=500
    )
    assert _judge_short_run(limit, 9.0, 9.0, np.arange(8.0), 100) == Certainty(
        above=False, below=False, enough=150
    )
    assert _judge_short_run(limit, 9.0, 9.0, np.empty(0), 100) == NEITHER


def latencies(values: np.ndarray, seconds: np.ndarray) -> Any:
    """Return latencies of known seconds."""
    return SimpleNamespace(
        count=len(values),
        deviation=float(np.std(values)),
        share_within=lambda limit: float((values <= limit).mean()),
        by_second=LatencyTable.of(seconds + 0.5, values),
    )


def noisy(seconds: int, each: int = 40) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(4)
    ended = np.repeat(np.arange(float(seconds)), each)
    level = 0.1 * np.sin(np.arange(seconds) * 1.3)
    return np.exp(level.repeat(each) + random.normal(0, 0.5, len(ended))), ended


def test_the_interval_of_a_mean_latency_is_that_of_its_seconds_or_of_its_latencies() -> None:
    values, ended = noisy(60)
    measured, mean = latencies(values, ended), float(values.mean())
    own = ratio_interval(*measured.by_second.sums())
    assert own is not None
    assert own.half_width > 1.96 * measured.deviation / math.sqrt(len(values))
    expected = mean - own.half_width, mean + own.half_width
    assert _mean_latency_interval(measured, mean, mean) == pytest.approx(expected)
    assert _mean_latency_interval(measured, mean, INFINITE) == (pytest.approx(expected[0]), INFINITE)
    # The same latencies in every second differ among each other only.
    alike = latencies(np.tile([0.5, 1.0, 9.0], 60), np.arange(60.0).repeat(3))
    half = 1.96 * alike.deviation / math.sqrt(180)
    assert _mean_latency_interval(alike, 3.5, 4.0) == pytest.approx((3.5 - half, 4.0 + half))
    # Of few seconds it is three standard errors, and at least what a short run is known to.
    few = latencies(np.tile([0.5, 1.0, 9.0], 2), np.arange(2.0).repeat(3))
    half = 3 * few.deviation / math.sqrt(6)
    assert half > 3.5
    assert _mean_latency_interval(few, 3.5, 4.0) == pytest.approx((0.0, 4.0 + half))
    many = latencies(np.ones(300), np.arange(2.0).repeat(150))
    assert _mean_latency_interval(many, 1.0, 1.25) == (0.5, 2.5)
    nothing = SimpleNamespace(count=0)
    assert _mean_latency_interval(nothing, 1.0, 2.0) == (1.0, 2.0)
    # It does not come near to 0 where no second did.
    wild = latencies(np.repeat([1.0, 100.0], 30), np.arange(12.0).repeat(5))
    sums, every = wild.by_second.sums()
    wide = ratio_interval(sums, every)
    assert wide is not None
    assert wide.low < 0
    low, _ = _mean_latency_interval(wild, 50.5, 50.5)
    assert low == pytest.approx(_find_reach(sums / every)[0])
    assert 0 < low < 0.1


def line(**values: Any) -> Any:
    return SimpleNamespace(
        **{"rate_interval": None, "window": SimpleNamespace(start=0.0, end=12.0), **values}
    )


def condition_of(row: dict[str, Any], text: str = "rate > 10") -> Any:
    condition = parse_condition(text)
    return SimpleNamespace(
        row=SimpleNamespace(**{"key": "rate", "unit": condition.row.unit, **row}),
        limit=condition.limit,
        relation=condition.relation,
    )


def test_the_interval_of_a_rate_is_its_own_or_what_no_drift_reaches() -> None:
    measured = condition_of({"measured_interval": lambda line, run: Interval(7.0, 9.0, 5.0)})
    assert _rate_interval(None, line(), measured, 8.0) == (7.0, 9.0)
    lacking = {"measured_interval": lambda line, run: None}
    entries = condition_of({**lacking, "key": "entries_per_s"})
    of_requests = line(rate_interval=Interval(4.0, 8.0, 5.0), requests_per_second=5.0)
    assert _rate_interval(None, of_requests, entries, 50.0) == (40.0, 80.0)
    counts = Counter({second: 10 + second % 3 for second in range(12)})
    sizes = Counter({second: 100 * count for second, count in counts.items()})
    for unit_of, series in (("rate > 10", counts), ("mb_per_s > 10", sizes)):
        own = condition_of(lacking, unit_of)
        every = np.array([*series.values()], float)
        low, high = (each * 8 / every.mean() for each in _find_reach(every))
        of_run = line(by_second=BySecond(counts, sizes))
        assert _rate_interval(None, of_run, own, 8.0) == pytest.approx((low, high))
        short = line(by_second=BySecond(counts, sizes), window=SimpleNamespace(start=0.0, end=9.0))
        expected = _short_interval(8.0, 8.0, every[:9])
        assert _rate_interval(None, short, own, 8.0) == pytest.approx(expected)
    without = line(by_second=BySecond(counts), window=None)
    assert _rate_interval(None, without, condition_of(lacking), 8.0) == (4.0, 16.0)
    idle = line(by_second=BySecond(Counter({40: 1})))
    assert _rate_interval(None, idle, condition_of(lacking), 0.0) == (0.0, INFINITE)


def test_errors_are_worth_what_their_seconds_show() -> None:
    seconds = np.arange(40)
    failed = Counter({int(each): 3 + 2 * int(each > 19) for each in seconds})
    counts = Counter({int(each): 97 for each in seconds})
    of_run = line(by_second=BySecond(counts, Counter(), failed))
    share = failed.total() / (failed.total() + counts.total())
    series = np.array([*failed.values()], float)
    came = share_ranks(series, series + 97, without_chance=False)
    condition = parse_condition("errors > 4%")
    total = failed.total() + counts.total()
    expected = _judge_share(share, total, _find_worth(share, came), 0.04)
    assert _judge_errors(of_run, condition, share, total) == expected
    assert expected != _judge_share(share, total, _Worth(), 0.04)
    # The odds of the seconds are 3.5 and 5.5 in 97.5; ten times as many are beyond any drift of theirs.
    for limit, is_beyond in ((0.355, False), (0.365, True), (0.0037, False), (0.0035, True)):
        judged = _judge_errors(of_run, replace(condition, limit=limit), share, total)
        assert (judged is None) is is_beyond
    short = line(by_second=BySecond(Counter({1: 97}), Counter(), Counter({1: 3})))
    assert _judge_errors(short, condition, 0.0, 100) is None
    assert _judge_errors(short, condition, 0.03, 100) == Certainty(above=False, below=False, enough=1000)


@pytest.mark.parametrize(("text", "side"), [("p50 > 0.9s", "above"), ("p50 > 1.2s", "below")])
def test_what_never_began_may_be_within_a_limit_or_not(text: str, side: str) -> None:
    values, ended = noisy(60)
    measured, condition = latencies(values, ended), parse_condition(text)
    found = float(np.median(values))
    plain = _judge_percentile(measured, condition, 0.5, found, found)
    within = float((values <= condition.limit).mean())
    worth = _find_worth(within, measured.by_second.ranks_within(condition.limit))
    share = _judge_share(within, len(values), worth, 0.5)
    assert plain == Certainty(above=share.below, below=share.above, enough=share.enough)
    assert getattr(plain, side)
    # As many again never began: they had waited for less than the limit, so that nothing is known.
    waits = select_latencies(np.full(len(values), 0.5))
    both = CensoredLatencies(measured, waits, waits)
    less = _judge_share(within / 2, 2 * len(values), worth, 0.5)
    more = _judge_share((within + 1) / 2, 2 * len(values), worth, 0.5)
    assert _judge_percentile(both, condition, 0.5, found, found) == Certainty(
        above=more.below, below=less.above
    )


def test_numbers_of_operations_are_rounded_up_to_two_digits() -> None:
    numbers = (0.5, 1.0, 9.2, 10.0, 99.5, 100.0, 101.0, 1249.0, 41_000.0, 41_000.1)
    assert [_round_up(each) for each in numbers] == [1, 1, 10, 10, 100, 100, 110, 1300, 41_000, 42_000]


def test_conditions_of_the_scenario_come_first_and_each_once(golden_words: GoldenWords) -> None:
    numbers = run(np.random.default_rng(1), 600, 12)
    scenario = replace(numbers.run.scenario, fail_if=("count < 1", "nonsense", "web.p50 > 1s"))
    numbers = replace(numbers, run=replace(numbers.run, scenario=scenario))
    more = [parse_condition("max > 1h"), parse_condition("count < 1")]
    found = judge_run(numbers, more)
    assert [(each.condition.text, each.result) for each in found] == [
        ("count < 1", GateResult.PASSED),
        ("'nonsense'", GateResult.FAILED),
        ("web.p50 > 1s", GateResult.FAILED),  # the run has no such group
        ("max > 1h", GateResult.PASSED),
    ]
    golden_words(found[1].text)
    assert found[2].text == "web.p50 > 1s: FAILED (not measured)"
    assert [each.value for each in found[1:3]] == [None, None]


def test_a_judgment_says_what_came_of_how_many_and_how_many_would_decide(golden_words: GoldenWords) -> None:
    made = ConditionJudgment(P50, 9.0, GateResult.UNDECIDED, most=9.0, count=1234, enough=5678.0)
    assert made.text == "p50 > 10s: undecided (9s, of 1,234 operations; about 5,700 would decide)"
    golden_words(ConditionJudgment(P50, 9.0, GateResult.UNDECIDED, count=5).text)
    passed = ConditionJudgment(P50, 9.0, GateResult.PASSED, most=9.0, count=5)
    assert (passed.text, passed.at_least) == ("p50 > 10s: ok (9s)", False)
    few = ConditionJudgment(P50, 9.0, GateResult.PASSED, most=9.0, count=5, few=True)
    assert few.text == "p50 > 10s: ok (9s, of 5 operations)"
    bound = ConditionJudgment(P50, 9.0, GateResult.UNDECIDED, most=11.0, count=5)
    assert (bound.text, bound.at_least) == (
        f"p50 > 10s: undecided (at least 9s, because {NEVER_BEGAN})",
        True,
    )
    failed = ConditionJudgment(P50, 11.0, GateResult.FAILED, most=12.0, count=5)
    assert failed.text == "p50 > 10s: FAILED (at least 11s)"
    assert judge_conditions(run(np.random.default_rng(1), 600, 12), [parse_condition("list.p50 > 1s")]) == (
        ConditionJudgment(parse_condition("list.p50 > 1s"), None, GateResult.FAILED),
    )
