"""Searches: what is run next, and what is said of it, on simulated stores."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from capacity_runs import SCENARIO, run
from golden_words import GoldenWords
from hypothesis import given, settings
from hypothesis import strategies as st
from noise import correlated
from result_rows import many

from ssbench.base.errors import GateResult, combine_gate_results
from ssbench.comparison.search import (
    FAILS_EVIDENCE,
    HOLDS_EVIDENCE,
    MAX_TRIALS,
    LimitSearch,
    ObjectiveFinding,
    SearchAnswer,
    TrialEvidence,
    describe_rare_errors,
    judge_objective,
    pool_evidence,
    pool_findings,
    resolve_objective,
)
from ssbench.comparison.sweep import make_step
from ssbench.results.run_description import RunDescription, RunSummary
from ssbench.scenario.conditions import parse_conditions
from ssbench.scenario.model import SizeClass
from ssbench.scenario.operations import FIRST_DEFINED_CODE, OperationSettings
from ssbench.statistics.collector import Collector
from ssbench.statistics.confidence import wilson_interval
from ssbench.statistics.delivery import Delivery
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.summary import make_statistics


def searched(
    trial: Callable[[int, float], TrialEvidence], start: int = 4, most: int = 10**6, full: int = 10**9
) -> tuple[SearchAnswer, list[tuple[int, float]]]:
    search, tried = LimitSearch(start, 10.0, most=most), []
    while (chosen := search.next()) is not None:
        assert search.next() is chosen
        tried.append((chosen.value, chosen.seconds))
        search.record([trial(chosen.value, chosen.seconds)], no_higher=chosen.value >= full)
    return search.answer(), tried


def up_to(limit: int) -> Callable[[int, float], TrialEvidence]:
    return lambda value, _seconds: HOLDS_EVIDENCE if value <= limit else FAILS_EVIDENCE


def share(limit: float, slope: float = 8.0, size: float = 2000.0) -> Callable[[int, float], TrialEvidence]:
    """The share of operations that are outside rises as the model says it does, to 1 % at the limit."""

    def trial(value: int, seconds: float) -> TrialEvidence:
        outside = 1 / (1 + math.exp(-slope * math.log(value / limit) + math.log(99)))
        return TrialEvidence(1 - outside, size * seconds / 10, 0.99)

    return trial


@pytest.mark.parametrize("start", [1, 4, 50])
@pytest.mark.parametrize("limit", [1, 2, 3, 9, 40, 333, 5000])
def test_the_search_finds_the_limit(limit: int, start: int) -> None:
    """With and without a measure of how far a trial is from the limit."""
    answer, tried = searched(up_to(limit), start)
    assert answer.value is not None
    assert abs(answer.value - limit) <= max(1, 0.1 * limit)
    assert answer.low <= limit <= answer.high
    assert len(tried) < 30
    answer, tried = searched(share(limit + 0.5), start)
    assert answer.value is not None
    assert abs(answer.value - limit) <= max(1, 0.1 * limit)
    assert answer.high / answer.low < 1.3
    assert len(tried) < 25


def test_it_doubles_and_then_tries_where_the_limit_probably_is() -> None:
    _, tried = searched(share(40))
    assert [value for value, _ in tried[:4]] == [4, 8, 16, 32]
    assert all(30 <= value <= 64 for value, _ in tried[4:])
    _, tried = searched(share(3), start=50)
    assert [value for value, _ in tried[:4]] == [50, 25, 12, 6]


def test_the_end_of_the_range_and_a_full_generator() -> None:
    answer, tried = searched(up_to(10**9), most=100)
    assert (answer.value, answer.at_least) == (100, True)
    assert max(value for value, _ in tried) == 100
    answer, tried = searched(up_to(10**9), full=16)
    assert (answer.value, answer.at_least) == (16, True)
    assert max(value for value, _ in tried) == 16


def test_a_limit_below_the_least_load_is_none() -> None:
    answer, tried = searched(lambda _value, _seconds: FAILS_EVIDENCE)
    assert answer.value is None
    assert answer.narrow
    assert [value for value, _ in tried[:3]] == [4, 2, 1]
    assert LimitSearch(4, 10.0, most=9).answer() == SearchAnswer(None)


def test_trials_that_say_little_are_made_longer_and_the_answer_says_how_wide_it_is() -> None:
    few = share(40, slope=2.0, size=30)
    answer, tried = searched(few)
    assert max(seconds for _, seconds in tried) == 40.0
    assert answer.low < 40 < answer.high
    nothing, tried = searched(lambda _value, _seconds: TrialEvidence(1.0, 0.0, 0.99), start=64)
    assert not nothing.narrow
    assert len(tried) <= MAX_TRIALS


def test_a_search_goes_on_where_its_longest_trials_did_not_narrow_the_interval_yet() -> None:
    """Few operations each: that four trials in a row say little is chance."""
    random = np.random.default_rng(9)

    def trial(value: int, seconds: float) -> TrialEvidence:
        planted = share(40.3, slope=4.0, size=200.0)(value, seconds)
        count = round(planted.size)
        return replace(planted, share=random.binomial(count, planted.share) / count)

    answer, _ = searched(trial)
    assert answer.narrow
    assert answer.low <= 40 <= answer.high


def test_a_burst_of_load_from_elsewhere_does_not_lower_the_answer() -> None:
    limit = share(40)
    for burst in range(1, 9):  # this trial and the next one are bad whatever they try
        number = itertools.count(1)

        def trial(value: int, seconds: float, number=number, burst=burst) -> TrialEvidence:
            if next(number) in {burst, burst + 1}:
                return TrialEvidence(0.7, 2000.0, 0.99)
            return limit(value, seconds)

        answer, tried = searched(trial)
        assert answer.value is not None
        assert answer.low * 0.98 <= 40 <= answer.high, (burst, answer, tried)


@pytest.mark.parametrize("size", [2_000, 400_000])
@pytest.mark.parametrize("limit", [33, 50])
def test_a_store_that_is_full_from_one_load_on_has_its_limit_there(limit: int, size: int) -> None:
    """All operations are within the limit, or none, as of a store without any noise."""

    def trial(value: int, seconds: float) -> TrialEvidence:
        return TrialEvidence(float(value <= limit), size * seconds / 10, 0.99)

    answer, _ = searched(trial)
    assert answer.low <= limit <= answer.high
    assert answer.value == pytest.approx(limit, rel=0.07)


def pooled_search(seed: int, runs: int, differ: float) -> SearchAnswer:
    """Search a limit of 40.3, where runs differ as if their loads did by so much."""
    random = np.random.default_rng(seed)

    def trial(value: int, seconds: float) -> TrialEvidence:
        each = []
        for _ in range(runs):
            load = value * math.exp(random.normal(0, differ))
            planted = share(40.3)(load, seconds)
            count = round(planted.size)
            each.append(replace(planted, share=random.binomial(count, planted.share) / count))
        return pool_evidence(each)

    return searched(trial)[0]


@pytest.mark.long
def test_a_store_that_refuses_the_same_share_from_one_load_on_has_its_limit_there() -> None:
    """A line that rises with the load is far from that, and would call the first such trial a disturbance.

    Shares and sizes are those of a run against a planted store.
    """
    found = [
        *(
            (1.0, 258.0, 6000.0),
            (1.0, 12000.0, 12000.0),
            (1.0, 12503.0, 24000.0),
            (0.95083, 40234.0, 48000.0),
        ),
        *((1.0, 46500.0, 46500.0), (0.95014, 53740.0, 96000.0), (0.94897, 10613.0, 94500.0)),
        *((0.95077, 38955.0, 76500.0), (0.94855, 67500.0, 67500.0), (0.95075, 159822.0, 165120.0)),
    ]
    search = LimitSearch(4, 30.0, most=10**7)
    values = []
    for share, size, every in found:
        trial = search.next()
        assert trial is not None
        values.append(trial.value)
        search.record([TrialEvidence(share, size, 0.99), TrialEvidence(share, every, 0.999, of_errors=True)])
    assert values[:5] == [4, 8, 16, 32, 31]
    answer = search.answer()
    assert answer.value == 31
    assert answer.low <= 31 <= answer.high


def test_repeated_runs_of_each_load_make_intervals_that_know_how_much_runs_differ() -> None:
    """Runs that differ by 20 % of the load: single ones cannot tell, and their intervals are too narrow."""
    held = {
        runs: sum(
            answer.low <= 40.3 <= answer.high + 1
            for answer in (pooled_search(seed, runs, 0.2) for seed in range(8, 16))
        )
        for runs in (1, 3)
    }
    assert held[3] >= 7
    assert held[3] > held[1]


def findings(*measured: tuple[float, float]) -> list[list[ObjectiveFinding]]:
    """The judgments of runs with these shares within the limit, of so many operations."""
    (condition,) = parse_conditions("read.p99 <= 50ms")
    runs = []
    for within, value in measured:
        low, high = wilson_interval(within, 5000)
        sure = GateResult.PASSED if low > 0.99 else GateResult.FAILED
        verdict = sure if (low > 0.99) == (high >= 0.99) else GateResult.UNDECIDED
        runs.append([ObjectiveFinding(condition, verdict, "", value, TrialEvidence(within, 5000, 0.99))])
    return runs


@pytest.mark.parametrize(
    ("shares", "verdict"),
    [
        ((0.999, 0.998, 0.999), GateResult.PASSED),
        ((0.90, 0.95, 0.99), GateResult.UNDECIDED),  # one of three is near: all of them do not agree
        ((0.97, 0.971, 0.9895), GateResult.UNDECIDED),
        ((0.998, 0.9965, 0.9921), GateResult.UNDECIDED),
        ((0.987, 0.986, 0.988), GateResult.FAILED),  # the last one alone would not tell
        ((0.9955, 0.9945, 0.992), GateResult.UNDECIDED),
    ],
)
def test_what_several_runs_say_together(shares: tuple[float, ...], verdict: GateResult) -> None:
    (found,) = pool_findings(findings(*((within, 0.04 + place / 100) for place, within in enumerate(shares))))
    assert found.verdict is verdict
    assert found.value == pytest.approx(0.05)
    assert found.text.startswith("read.p99 50ms in 3 runs, of single runs from 40ms to 60ms")
    assert found.evidence.share == pytest.approx(sum(shares) / 3)
    assert found.evidence.size <= 15_000


def test_one_run_is_itself_and_one_without_operations_says_nothing() -> None:
    (single,) = runs = findings((0.999, 0.04))
    assert pool_findings(runs) == single
    nothing = [replace(single[0], value=None, evidence=TrialEvidence(1.0, 0.0, 0.5))]
    (found,) = pool_findings([single, nothing])
    assert found.evidence.size == pytest.approx(5000)
    assert found.value == 0.04


def test_the_limit_of_several_conditions_is_the_lowest() -> None:
    search = LimitSearch(4, 10.0, most=10**6)
    latency, errors = share(40), share(20, slope=20.0)
    while (trial := search.next()) is not None:
        search.record([latency(trial.value, trial.seconds), errors(trial.value, trial.seconds)])
    assert search.answer().value in {18, 19, 20, 21}


@given(
    st.lists(
        st.tuples(st.floats(0, 1), st.floats(0, 1e7), st.floats(0, 1)),
        min_size=MAX_TRIALS,
        max_size=MAX_TRIALS,
    ),
    st.integers(1, 99),
)
@settings(max_examples=10, deadline=None)
def test_a_search_ends_whatever_is_measured(trials: list[tuple[float, float, float]], start: int) -> None:
    rest = iter(trials)
    answer, tried = searched(lambda _value, _seconds: TrialEvidence(*next(rest)), start, most=10**4)
    assert len(tried) <= MAX_TRIALS
    assert answer.value is None or 1 <= answer.value <= 10**4


def verdict(statistics: RunStatistics, text: str) -> GateResult:
    return combine_gate_results(each.verdict for each in judge_objective(statistics, parse_conditions(text)))


def test_objectives(tmp_path: Path, golden_words: GoldenWords) -> None:
    latencies = np.full(10_000, 0.01)
    latencies[::200] = 0.1  # half a per cent of them
    statistics = run(tmp_path, latencies)
    assert verdict(statistics, "read.p99 <= 50ms") is GateResult.PASSED
    assert verdict(statistics, "read.p99.9 <= 50ms") is GateResult.FAILED
    assert verdict(statistics, "read.p99.5 <= 50ms") is GateResult.UNDECIDED
    assert verdict(statistics, "errors <= 0.1%") is GateResult.PASSED
    assert verdict(statistics, "errors <= 0.01%") is GateResult.PASSED  # as far as a run without any tells
    assert verdict(statistics, "read.p99.5 <= 50ms and errors <= 0.01%") is GateResult.UNDECIDED
    assert verdict(statistics, "read.p99.9 <= 50ms and errors <= 0.01%") is GateResult.FAILED
    assert verdict(statistics, "create.p99 <= 50ms") is GateResult.UNDECIDED  # there was none
    assert verdict(statistics, "max <= 200ms") is GateResult.PASSED
    (finding,) = judge_objective(statistics, parse_conditions("read.p99 <= 50ms"))
    golden_words(finding.text)


def test_errors_count_as_outside(tmp_path: Path) -> None:
    statistics = run(tmp_path, np.full(5000, 0.01), failed=100)
    assert verdict(statistics, "read.p99 <= 50ms") is GateResult.FAILED
    assert verdict(statistics, "read.p95 <= 50ms") is GateResult.PASSED
    assert verdict(statistics, "errors <= 0.1%") is GateResult.FAILED
    found = make_step(8, statistics)
    assert (found.failed, found.users, found.value) == (100, 8, 8)


def test_what_was_due_and_never_begun_is_an_error_too(tmp_path: Path) -> None:
    statistics = run(tmp_path, np.full(5000, 0.01))
    assert verdict(statistics, "errors <= 0.1%") is GateResult.PASSED
    behind = replace(statistics, delivery=Delivery(5100, 100, 0))
    (finding,) = judge_objective(behind, parse_conditions("errors <= 0.1%"))
    assert finding.verdict is GateResult.FAILED
    assert finding.text.startswith("errors 0%, 100 never begun (95 % sure: 1.")
    assert verdict(behind, "errors <= 50") is GateResult.FAILED
    assert verdict(behind, "errors <= 100") is GateResult.PASSED
    assert verdict(behind, "errors <= 5%") is GateResult.PASSED


def test_seconds_that_are_bad_together_say_less_than_as_many_bad_operations(tmp_path: Path) -> None:
    apart, together_ = np.full(10_000, 0.01), np.full(10_000, 0.01)
    apart[::250] = 0.1
    together_[5000:5040] = 0.1
    (calm,) = judge_objective(run(tmp_path, apart), parse_conditions("read.p99 <= 50ms"))
    (tmp_path / "run.stat.gz").unlink()
    (bursty,) = judge_objective(run(tmp_path, together_), parse_conditions("read.p99 <= 50ms"))
    assert calm.verdict is GateResult.PASSED
    assert bursty.verdict is GateResult.UNDECIDED


@pytest.mark.parametrize(
    "text",
    [
        "read.p99 > 50ms",
        "errors >= 1%",
        "rate <= 50",
        "read.p99 <= 50ms",
        "read.response_p99 <= 50ms",
        "create.errors <= 1%",
        "read.big.errors <= 1%",
    ],
)
def test_what_no_search_can_judge(text: str, golden_words: GoldenWords) -> None:
    with golden_words.raises(ValueError):
        resolve_objective(parse_conditions(text), SCENARIO, noop=True)
    known = parse_conditions("errors <= 1% and retries < 5")
    assert resolve_objective(known, SCENARIO, noop=True) == known


def test_a_search_judges_an_operation_that_only_its_scenario_defines() -> None:
    (written,) = parse_conditions("findinfo.p99 <= 50ms", grouped=True)
    assert written.group == "findinfo"  # before the scenario is read
    with pytest.raises(ValueError, match="'findinfo' is not an operation"):
        resolve_objective([written], SCENARIO, noop=False)
    defining = replace(
        SCENARIO,
        size_classes=(SizeClass("small", 1, 9, 1, {"findinfo": 1.0}),),
        operations=(OperationSettings("findinfo", defined=("GET", "none", FIRST_DEFINED_CODE)),),
    )
    (known,) = resolve_objective([written], defining, noop=False)
    assert (known.group, known.operation, known.text) == (None, "findinfo", written.text)


def test_wilson() -> None:
    assert wilson_interval(0.5, 0) == (0.0, 1.0)
    assert wilson_interval(0.1, 100) == pytest.approx(
        (0.0552, 0.1744), abs=1e-4
    )  # Newcombe 1998, method 3: 10 of 100
    low, high = wilson_interval(1.0, 1000)
    assert high == 1.0
    assert low == pytest.approx(0.99617, abs=1e-5)


#: The store answers in 10 ms, and does 400 operations a second at most.
FASTEST, CAPACITY, SIGMA, LIMIT = 0.01, 400.0, 0.3, 0.2


def simulated(users: int, seconds: float, random: np.random.Generator) -> RunStatistics:
    """A run against it; its latencies are lognormal, and 5 % slower or faster for some seconds at a time."""
    level = max(FASTEST, users / CAPACITY)
    noise = np.exp(correlated(random, 1, round(seconds) + 1, spread=0.05)[0])
    count = round(users / level * seconds)
    completed = np.linspace(0, seconds, count, endpoint=False)
    latencies = level * noise[completed.astype(int)] * np.exp(SIGMA * random.standard_normal(count))
    collector = Collector()
    collector.add(many(range(count), operation=1, last_byte=latencies, completed=1e9 + completed, size=1))
    facts = SimpleNamespace(
        run=RunDescription(SCENARIO),
        summary=RunSummary(1e9 + seconds, sent_until=1e9 + seconds),
        size_classes=["small"],
        warnings=(),
        current=True,
    )
    return make_statistics(collector, facts)


@pytest.mark.long
def test_searches_over_a_noisy_store_find_its_limit() -> None:
    """99 % of the latencies of N users are within 200 ms up to a number that can be calculated."""
    truth = CAPACITY * LIMIT / math.exp(2.326 * math.hypot(SIGMA, 0.05))
    conditions, answers = parse_conditions(f"read.p99 <= {1000 * LIMIT:g}ms"), []
    for seed in range(8):
        random, search = np.random.default_rng(seed), LimitSearch(4, 20.0, most=10**6)
        while (trial := search.next()) is not None:
            judged = judge_objective(simulated(trial.value, trial.seconds, random), conditions)
            search.record([each.evidence for each in judged])
        answers.append(search.answer().value or 0)
    off = np.array(answers) / truth - 1
    assert np.abs(off).max() <= 0.15, sorted(answers)
    assert abs(np.median(off)) <= 0.05


def search_errors(seed: int, count: float, failing_from: int) -> tuple[SearchAnswer, float]:
    """Search a store of which 0.5 % fail from a load on, and 1 % are too slow from 64.5 on.

    A step of 60 s has ``count`` operations. The second is how long all steps took, in seconds.
    """
    random, search, took = np.random.default_rng(seed), LimitSearch(10, 60.0, most=10**6), 0.0
    while (trial := search.next()) is not None:
        took += trial.seconds
        size = round(count * trial.seconds / 60)
        failed = int(random.binomial(size, 0.005 if trial.value >= failing_from else 0.0))
        slow = random.binomial(size, 1 - share(64.5)(trial.value, 60.0).share)
        search.record(
            [
                TrialEvidence(max(0.0, 1 - (slow + failed) / size), size, 0.99),
                TrialEvidence(1 - failed / size, size, 0.999, of_errors=True),
            ]
        )
    return search.answer(), took


@pytest.mark.long
@pytest.mark.parametrize("count", [900, 6000, 20_000])
def test_no_load_at_which_too_much_failed_is_answered(count: int) -> None:
    """The share of errors begins at once; a line that rises evenly goes on a little above that."""
    answers = [search_errors(seed, count, failing_from=32)[0] for seed in range(6)]
    assert all(answer.narrow and answer.value and 25 <= answer.value <= 32 for answer in answers), answers
    assert all(answer.low <= (answer.value or 0) <= answer.high for answer in answers), answers


def test_a_burst_of_errors_far_below_the_limit_does_not_lower_the_answer() -> None:
    search, number = LimitSearch(10, 60.0, most=10**6), itertools.count(1)
    while (trial := search.next()) is not None:
        failed = 0.02 if next(number) == 2 else 0.0
        latency = share(64.5)(trial.value, 60.0)
        search.record([latency, TrialEvidence(1 - failed, 6000, 0.999, of_errors=True)])
    assert search.answer().value == pytest.approx(64, abs=4)


def test_a_step_without_any_error_meets_a_share_that_it_is_too_short_to_show(tmp_path: Path) -> None:
    (finding,) = judge_objective(run(tmp_path, np.full(800, 0.01)), parse_conditions("errors <= 0.1%"))
    assert finding.verdict is GateResult.PASSED
    assert finding.text == "errors 0% (95 % sure: 0.000% to 0.478%), none of 800 operations"
    assert finding.evidence == TrialEvidence(1.0, 800, 0.999, of_errors=True)
    (tmp_path / "run.stat.gz").unlink()
    few = run(tmp_path, np.full(800, 0.01), failed=1)
    assert verdict(few, "errors <= 0.1%") is GateResult.UNDECIDED  # something speaks against it


def test_the_answer_says_how_many_operations_without_an_error_were_seen(
    tmp_path: Path, golden_words: GoldenWords
) -> None:
    conditions = parse_conditions("read.p99 <= 50ms and errors <= 0.1%")
    found = judge_objective(run(tmp_path, np.full(800, 0.01)), conditions)
    golden_words(describe_rare_errors([found] * 2))
    (enough,) = describe_rare_errors([found] * 5)
    golden_words(enough)
    (tmp_path / "run.stat.gz").unlink()
    assert not describe_rare_errors(
        [judge_objective(run(tmp_path, np.full(800, 0.01), failed=1), conditions)]
    )
    assert not describe_rare_errors([])
