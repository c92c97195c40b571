"""Sweeps and searches: what is run next, and what is said of it, on simulated stores."""

from __future__ import annotations

import html
import itertools
import json
import math
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from json_records import valid
from msgspec import structs
from noise import correlated
from planted_load import play
from result_rows import many

from ssbench.base.errors import GateResult, UsageError, combine_gate_results
from ssbench.comparison import capacity_report
from ssbench.comparison.capacity_report import Capacity, _percentiles, conclude_sweep, list_step_heads
from ssbench.comparison.search import (
    FAILS_EVIDENCE,
    HOLDS_EVIDENCE,
    MAX_TRIALS,
    LimitSearch,
    ObjectiveFinding,
    SearchAnswer,
    TrialEvidence,
    judge_objective,
    pool_evidence,
    pool_findings,
    resolve_objective,
    wilson_interval,
)
from ssbench.comparison.sweep import (
    MIN_GAIN,
    Knee,
    SweepStep,
    describe_knee,
    describe_limits,
    describe_missing_gain,
    describe_short_steps,
    estimate_knee,
    explain_stop,
    find_first_best,
    find_knee,
    make_step,
    make_step_scenario,
    measure_gain,
)
from ssbench.comparison.sweep_variables import Sweep, Variable, parse_sweep
from ssbench.document.units import format_milliseconds
from ssbench.reports import products
from ssbench.reports.products import Product
from ssbench.results.block import Failure
from ssbench.results.reading import open_results
from ssbench.results.run_description import RunDescription, RunSummary
from ssbench.results.writer import RunResultsWriter
from ssbench.scenario.conditions import parse_conditions
from ssbench.scenario.model import Scenario, SizeClass, Stage
from ssbench.scenario.operations import OPERATIONS, OperationSettings
from ssbench.statistics.collector import Collector
from ssbench.statistics.confidence import Interval
from ssbench.statistics.delivery import Delivery
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.summary import make_statistics, summarize

text = products.find_writer(Product.CAPACITY, "text")
page = products.find_writer(Product.CAPACITY, "html")


SCENARIO = Scenario("s", (SizeClass("small", 1, 9, 1, {"read": 1.0}),), user_count=8, run_seconds=20.0)


def step(users: float, rate: float, half: float | None = 1.0, **changes: object) -> SweepStep:
    interval = None if half is None else Interval(rate - half, rate + half, 20.0)
    made = SweepStep(users, 20.0, int(users), rate, interval, 0.0, users / rate, 0.01, 0.02, 1000, 0, 0.5)
    return structs.replace(made, **changes)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("users=4,8,16", Sweep(Variable.USERS, (4, 8, 16))),
        ("users=4..512", Sweep(Variable.USERS, (4, 8, 16, 32, 64, 128, 256, 512))),
        ("users=3..20", Sweep(Variable.USERS, (3, 6, 12, 20))),
        ("rate=500, 100", Sweep(Variable.RATE, (100, 500))),
        ("size=4K..16KiB", Sweep(Variable.SIZE, (4096, 8192, 16384))),
        ("workers=1..1", Sweep(Variable.WORKERS, (1,))),
    ],
)
def test_sweeps(text: str, expected: Sweep) -> None:
    assert parse_sweep(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("user=4", "'user' is none of users, rate, size, workers; did you mean users?"),
        ("users", "'users' is not a sweep, such as users=4,8,16"),
        ("users=", "is not a sweep"),
        ("users=0", "'0' is not a number from 1 to 10,000,000"),
        ("users=8..4", "4 is less than 8"),
        ("users=4..", "'' is not a number"),
        ("users=+4", "'+4' is not a number"),
        ("size=4X", "'4X' is not a number"),
        ("users=" + ",".join(map(str, range(1, 99))), "98 steps are more than 64"),
    ],
)
def test_wrong_sweeps(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=r"users|size") as raised:
        parse_sweep(text)
    assert message in str(raised.value)


@given(st.text(max_size=30))
def test_any_text_is_a_sweep_or_wrong(text: str) -> None:
    for each in (text, f"users={text}", f"size={text}"):
        try:
            values = parse_sweep(each).values
        except ValueError:
            continue
        assert values == tuple(sorted(set(values)))


def test_a_sweep_ends_where_more_brings_nothing_for_certain() -> None:
    users = Variable.USERS
    assert explain_stop(users, []) is None
    assert explain_stop(users, [step(4, 100)]) is None
    rising = [step(1, 30), step(2, 60), step(4, 100)]
    assert explain_stop(users, [*rising, step(8, 103, half=3)]) is None  # perhaps it rose by 7 %
    assert "from 4 to 8 users the rate rose by less than 5.0 %" in str(
        explain_stop(users, [*rising, step(8, 102)])
    )
    # The knee needs some steps.
    assert explain_stop(users, [step(4, 100), step(8, 102)]) is None
    assert explain_stop(users, [step(4, 100, None), step(8, 90, None)]) is None
    assert explain_stop(users, [step(4, 100, failed=2)]) == "2 operations failed at 4 users"
    assert explain_stop(Variable.SIZE, [step(4096, 100), step(8192, 50)]) is None
    for variable in (users, Variable.SIZE):
        nothing = structs.replace(step(8192, 1, None), rate=0.0, count=0)
        assert (
            explain_stop(variable, [step(4096, 100), nothing])
            == f"no operation ended at {variable.words(8192)}"
        )


def test_what_is_to_be_known_of_a_sweep() -> None:
    (full,) = describe_limits(Variable.USERS, [step(4, 100), step(8, 200, generator=0.95)])
    assert "The load generator rather than Swift was full at 8 users" in full
    (other,) = describe_limits(
        Variable.USERS, [step(4, 100), step(8, 200, limits=("Users were idle", "More"))]
    )
    assert other == "At 8 users, of the last of them: Users were idle."
    (one,) = describe_limits(Variable.USERS, [step(1, 100, limits=("Late",))])
    assert one == "At 1 user, of the last of them: Late."
    # A search goes up and down.
    searched_steps = [step(8, 200, limits=("Late",)), step(4, 100, limits=("Idle",)), step(8, 1)]
    assert describe_limits(Variable.USERS, searched_steps) == ["At 4, 8 users, of the last of them: Late."]
    (short,) = describe_short_steps([step(4, 100, None), step(8, 200, None)])
    assert "too short to tell how exact" in short
    assert step(64, 640).in_flight == pytest.approx(64)
    assert math.isnan(measure_gain(structs.replace(step(4, 1), rate=0.0), step(8, 100))[0])


def test_of_40_sweeps_over_a_store_that_saturates_few_end_before_it() -> None:
    """The store does 10 ops/s for each user, up to 640; each rate is known to 2 %."""
    early = late = 0
    for seed in range(40):
        draw, steps = random.Random(seed), []
        for users in (4, 8, 16, 32, 64, 128, 256):
            rate = min(10.0 * users, 640.0)
            steps.append(step(users, draw.gauss(rate, rate * 0.01), rate * 0.02))
            if explain_stop(Variable.USERS, steps):
                break
        early += steps[-1].value <= 64
        late += steps[-1].value > 128
    assert early == 0
    assert late <= 4
    assert MIN_GAIN == 0.05


def test_scenarios_of_steps() -> None:
    assert make_step_scenario(SCENARIO, Variable.USERS, 32).user_count == 32
    longer = make_step_scenario(
        replace(SCENARIO, run_seconds=None, operation_count=5), Variable.RATE, 50, 7.0
    )
    assert (longer.rate, longer.run_seconds, longer.operation_count) == (50.0, 7.0, None)
    (size,) = make_step_scenario(SCENARIO, Variable.SIZE, 4096).size_classes
    assert (size.size_min, size.size_max) == (4096, 4096)
    assert make_step_scenario(SCENARIO, Variable.WORKERS, 3) == SCENARIO
    with pytest.raises(UsageError, match="stages"):
        make_step_scenario(replace(SCENARIO, stages=(Stage(1.0),)), Variable.USERS, 3)


# -- searching ----------------------------------------------------------------------------------------


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


# -- the knee of a sweep ------------------------------------------------------------------------------


def swept(rate: Callable[[float], float], values: Sequence[float], seed: int) -> Knee:
    draw = random.Random(seed)
    rates = [rate(value) * math.exp(draw.gauss(0, 0.02)) for value in values]
    found = estimate_knee(values, rates, [0.03] * len(values))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("rate", "where"),
    [
        (lambda n: 46 * min(n, 4), 4.0),  # 184 at 4 users, and at 8
        (lambda n: 20 * n / (1 + (n / 10) ** 4) ** 0.25, 11.8),  # 90 % of the best
        (lambda n: 20 * n / (1 + 0.05 * (n - 1) + 0.002 * n * (n - 1)), 12.2),
    ],
    ids=["hard", "round", "USL"],
)
def test_the_knee_of_a_sweep(rate: Callable[[float], float], where: float) -> None:
    found = [swept(rate, (1, 2, 4, 8, 16, 32, 64), seed) for seed in range(20)]
    assert all(each.reached for each in found)
    assert all(abs(each.value / where - 1) < 0.15 for each in found)
    assert sum(each.low <= where <= each.high for each in found) >= 18
    # With steps that end soon after it.
    few = swept(rate, (2, 4, 8, 16, 32), 1)
    assert few.low <= where <= few.high


@pytest.mark.parametrize(
    "rate",
    [
        lambda n: 20 * math.sqrt(n),
        lambda n: 20 * (1 + math.log2(n)),
        lambda n: 20 * n / (1 + 0.05 * (n - 1)),
        lambda n: {1: 178, 2: 213, 4: 243, 8: 298, 16: 302}.get(round(n), 19 * n),
    ],
    ids=["square root", "logarithm", "contention", "as seen"],
)
def test_a_store_whose_rate_rises_slowly_has_no_certain_knee_and_none_below_all_steps(
    rate: Callable[[float], float],
) -> None:
    for seed in range(12):
        for values in ((1, 2, 4, 8, 16), (1, 2, 4, 8, 16, 32, 64)):
            found = swept(rate, values, seed)
            assert found.value >= 1
            assert found.low == 0 or found.low >= 1
            assert not found.reached or rate(found.value) > 0.85 * max(map(rate, values))
    found = swept(lambda n: 20 * math.sqrt(n), (1, 2, 4, 8, 16), 1)
    assert not found.reached
    assert re.search(
        "still rises by (39|4[0-4])[.]. % at each doubling", describe_knee(Variable.USERS, found, 1)
    )


def test_a_rate_that_is_as_high_at_the_lowest_load_has_its_knee_there_or_below() -> None:
    for seed in range(20):
        found = swept(lambda _: 100.0, (4, 8, 16, 32, 64), seed)
        assert found.reached
        assert found.value == found.low == 4
        assert "The knee is at 4 users or below (95 % sure: at most " in describe_knee(
            Variable.USERS, found, 4
        )


def test_a_rate_that_still_rises_has_no_knee() -> None:
    for seed in range(20):
        found = swept(lambda n: 20 * n, (1, 2, 4, 8, 16, 32), seed)
        assert not found.reached
        assert found.low > 10
    assert estimate_knee([1, 2, 4], [1, 2, 4], [None] * 3) is None
    assert estimate_knee([1, 2, 4, 8], [1, 2, 4, math.inf], [None] * 4) is None
    steps = [step(value, 20.0 * value) for value in (1, 2, 4, 8)]
    found = find_knee(Variable.USERS, steps)
    assert found is not None
    assert "No knee is certain" in describe_knee(Variable.USERS, found, 1)
    assert find_knee(Variable.SIZE, steps) is None


def test_of_a_knee_that_may_be_below_all_steps_nothing_is_said() -> None:
    """Five short steps of a busy store: "if there is one, it is at 0.5 users or beyond"."""
    rates = (18.5, 28.0, 28.0, 29.0, 38.1)
    found = estimate_knee([1, 2, 4, 8, 16], rates, [0.57, None, 0.38, None, None])
    assert found is not None
    assert not found.reached
    assert found.low == 0
    assert "if there is one" not in describe_knee(Variable.USERS, found, 1)


def test_what_is_said_of_a_knee_names_the_first_of_equal_rates() -> None:
    steps = [step(value, 46.0 * min(value, 4)) for value in (1, 2, 4, 8, 16)]
    steps[-1] = structs.replace(steps[-1], rate=184.3)
    found = find_knee(Variable.USERS, steps)
    assert found is not None
    words = describe_knee(Variable.USERS, found, 1)
    assert re.match(r"The knee is at (3\.9|4) users \(95 % sure: 3\.\d to 4\.\d; ", words)
    assert find_first_best(steps).value == 4


# -- the objective ------------------------------------------------------------------------------------


def run(folder: Path, latencies: np.ndarray, failed: int = 0, seconds: float = 20.0) -> RunStatistics:
    path = folder / "run.stat.gz"
    writer = RunResultsWriter(path, RunDescription(SCENARIO))
    count = len(latencies)
    completed = 1e9 + np.linspace(0.5, seconds, count)
    made = many(range(count), operation=1, last_byte=latencies, completed=completed, size=1)
    made.failures.update({row: Failure("HTTP 503", "", {}) for row in range(failed)})
    writer.add(made)
    writer.end(RunSummary(1e9 + seconds))
    return summarize(open_results(path))


def verdict(statistics: RunStatistics, text: str) -> GateResult:
    return combine_gate_results(each.verdict for each in judge_objective(statistics, parse_conditions(text)))


def test_objectives(tmp_path: Path) -> None:
    latencies = np.full(10_000, 0.01)
    latencies[::200] = 0.1  # half a per cent of them
    statistics = run(tmp_path, latencies)
    assert verdict(statistics, "read.p99 <= 50ms") is GateResult.PASSED
    assert verdict(statistics, "read.p99.9 <= 50ms") is GateResult.FAILED
    assert verdict(statistics, "read.p99.5 <= 50ms") is GateResult.UNDECIDED
    assert verdict(statistics, "errors <= 0.1%") is GateResult.PASSED
    assert verdict(statistics, "errors <= 0.01%") is GateResult.UNDECIDED
    assert verdict(statistics, "read.p99 <= 50ms and errors <= 0.01%") is GateResult.UNDECIDED
    assert verdict(statistics, "read.p99.9 <= 50ms and errors <= 0.01%") is GateResult.FAILED
    assert verdict(statistics, "create.p99 <= 50ms") is GateResult.UNDECIDED  # there was none
    assert verdict(statistics, "max <= 200ms") is GateResult.PASSED
    (finding,) = judge_objective(statistics, parse_conditions("read.p99 <= 50ms"))
    assert finding.text.startswith("read.p99 10ms, 99.500% within 50ms (95 % sure: 99.3")


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


def test_a_step_has_the_percentiles_of_the_report_of_its_run() -> None:
    """Of a rate that was not kept they were of what had begun alone, and a condition named both."""
    overloaded = play(lambda sent: sent + 0.0114, [Stage(5.0, (3, 3), (2000.0, 2000.0))])
    found = make_step(2000, overloaded)
    latency = overloaded.total.latency
    assert (found.p50, found.p99) == (latency.percentile(50), latency.percentile(99))
    assert found.p50 != overloaded.total.due.response.percentile(50)
    assert found.at_least == (50, 99)
    shown = text(Capacity("t", Variable.RATE, (found, found), (), "c", GateResult.PASSED))
    assert f">{format_milliseconds(found.p99)}" in shown
    assert ">: at least; some operations that were due never began" in shown
    (finding,) = judge_objective(overloaded, parse_conditions("p99 <= 50ms"))
    assert finding.value == found.p99
    assert finding.text.startswith(f"p99 at least {finding.condition.spell_measured(found.p99)}, ")
    assert "due" not in finding.text
    kept = make_step(20, play(lambda sent: sent + 0.0114, [Stage(60.0, (3, 3), (20.0, 20.0))]))
    assert (kept.at_least, kept.p99) == ((), pytest.approx(0.0114, abs=1e-6))
    assert "at least" not in text(Capacity("t", Variable.RATE, (kept, kept), (), "c", GateResult.PASSED))


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
    ("text", "message"),
    [
        ("read.p99 > 50ms", "use <= or <, as in 'read.p99 <= 50ms'$"),
        ("errors >= 1%", "as in 'errors <= 1%'$"),
        ("rate <= 50", "needs a limit of a latency or of errors"),
        ("read.p99 <= 50ms", "no-op runs have no latencies"),
        ("read.response_p99 <= 50ms", "only runs with a rate have response times"),
        ("create.errors <= 1%", "the scenario has no such operation"),
        ("read.big.errors <= 1%", "'big' is not a size class"),
    ],
)
def test_what_no_search_can_judge(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        resolve_objective(parse_conditions(text), SCENARIO, noop=True)
    known = parse_conditions("errors <= 1% and retries < 5")
    assert resolve_objective(known, SCENARIO, noop=True) == known


def test_a_search_judges_an_operation_that_only_its_scenario_defines() -> None:
    (written,) = parse_conditions("findinfo.p99 <= 50ms", grouped=True)
    assert written.group == "findinfo"  # before the scenario is read
    with pytest.raises(ValueError, match="'findinfo' is not an operation"):
        resolve_objective([written], SCENARIO, noop=False)
    row = OPERATIONS.define(OperationSettings("findinfo", defined=("GET", "none", OPERATIONS.length_by_code)))
    defining = replace(SCENARIO, size_classes=(SizeClass("small", 1, 9, 1, {row.name: 1.0}),))
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


def test_the_table_of_a_search_shows_the_figure_that_is_judged(tmp_path: Path) -> None:
    latencies = np.full(700, 0.0123456)
    latencies[::100] = 0.0545812
    statistics = run(tmp_path, latencies)
    conditions = parse_conditions("read.p99 <= 50ms and errors <= 1%")
    steps = (make_step(6, statistics), make_step(6, statistics), make_step(12, statistics))
    judged = tuple(judge_objective(statistics, conditions))
    found = Capacity(
        "t", Variable.USERS, steps, ("", "", "not judged"), "c", GateResult.PASSED, (), (judged, judged, ())
    )
    lines = [re.split(r"  +", line.strip()) for line in text(found).splitlines()]
    first, second = (lines[place : place + 4] for place, line in enumerate(lines) if line[0] == "users")
    assert first[0][:4] == ["users", "read.p99", "errors", "s"]
    assert first[1][1] == "33.5ms ?"
    assert first[3][:4] == ["12", "-", "-", "19.5"]
    shown = dict(zip(first[0] + second[0], first[1] + second[1], strict=True))
    # Seven of 700 lie beyond p99, which is fewer than it needs.
    assert (shown["p99 ms"], shown["p50 ms"]) == ("-", "12.3")
    made = valid(capacity_report.make_capacity_report(found), "capacity")
    record = made["steps"][0]
    assert (record["value"], record["users"], record["p99"], record["supported"]) == (6, 8, None, 50)
    assert record["p50"] == pytest.approx(0.0123, rel=0.01)
    assert record["in_flight"] == pytest.approx(record["ops_per_second"] * record["mean"])
    assert (made["varied"], made["version"], made["exit_code"]) == ("users", 2, 0)
    assert made["judged_by"] == ["", "", "not judged"]
    assert "ops/s at 6, 12: \u2588\u2588\n" in text(found)
    # What each step was judged by is long: it is folded, and in text there with -v alone.
    assert "not judged" not in text(found)
    shown_page = page(found)
    assert shown_page.index("<summary><h2>How each step was judged") < shown_page.index("not judged")


def test_the_judged_share_of_errors_and_the_failed_operations_have_names_of_their_own(tmp_path: Path) -> None:
    statistics = run(tmp_path, np.full(700, 0.0123456))
    judged = tuple(judge_objective(statistics, parse_conditions("errors <= 1%")))
    step = make_step(4, statistics)
    heads = list_step_heads(
        Capacity("t", Variable.USERS, (step,), ("",), "c", GateResult.PASSED, (), (judged,))
    )
    assert "errors" in heads
    assert len(set(heads)) == len(heads)


@pytest.mark.parametrize("count", [0, 1, 2, 12])
def test_no_line_of_a_table_is_wider_than_a_terminal(tmp_path: Path, count: int) -> None:
    statistics = run(tmp_path, np.full(700, 0.0123456))
    step = structs.replace(
        make_step(100_000, statistics), rate=123_456.0, interval=Interval(100_000.0, 150_000.0, 20.0)
    )
    conditions = [each for n in range(count) for each in parse_conditions(f"read.small.p{80 + n} <= 50ms")]
    judged = tuple(judge_objective(statistics, conditions))
    title = "the most users at which" + " and read.p99 <= 50ms" * count
    found = Capacity(
        title, Variable.USERS, (step, step), ("", ""), "c", GateResult.PASSED, (), (judged, judged)
    )
    lines = text(found).splitlines()
    assert max(map(len, lines)) <= 80
    # Each column is there once, and the value stands before each part of the table.
    shown = [re.split(r"  +", line.strip()) for line in lines if line.strip().startswith("users  ")]
    assert [name for part in shown for name in part[1:]] == list_step_heads(found)[1:]
    assert sum(line.strip().startswith("100000  ") for line in lines) == 2 * len(shown)


def test_the_page_of_a_sweep(tmp_path: Path) -> None:
    few = run(tmp_path, np.full(40, 0.0123456))
    steps = (make_step(1, few), make_step(4, few))
    text = page(Capacity("t", Variable.USERS, steps, (), "c", GateResult.PASSED))
    assert "judged by" not in text
    (against,) = re.findall(r'<figure data-chart="([^"]*)"><figcaption>Throughput against latency', text)
    # Where too few results support p99, p50 is all that there is; the load stands at its points.
    curves = json.loads(html.unescape(against))["curves"]
    assert [(curve["name"], curve["labels"]) for curve in curves] == [("p50", ["1", "4"])]
    (rate,) = re.findall(r'<figure data-chart="([^"]*)"><figcaption>Rate', text)
    assert json.loads(html.unescape(rate))["ticks"] == [1, 4]
    assert "stat file" not in text
    assert _percentiles(steps[0]) == (pytest.approx(0.0123456), pytest.approx(math.nan, nan_ok=True))
    judged = page(Capacity("t", Variable.USERS, steps, ("it held", ""), "c", GateResult.PASSED))
    assert "judged by" in judged
    assert "<div class=long>it held</div>" in judged


def test_the_page_of_a_search_has_the_limit_as_a_line() -> None:
    steps = tuple(step(load, 100.0) for load in (4, 8, 6))
    found = Capacity("t", Variable.USERS, steps, (), "c", GateResult.PASSED, answer=SearchAnswer(6, 5, 7))
    text = page(found)
    (rate,) = re.findall(r'<figure data-chart="([^"]*)"><figcaption>Rate', text)
    drawn = json.loads(html.unescape(rate))
    assert (drawn["marks"], drawn["ticks"]) == ([[6, "limit"]], [4, 6, 8])


def test_large_values_have_all_their_digits() -> None:
    """A sweep over sizes called 1 MiB 1.04858e+06."""
    steps = tuple(step(1 << power, 100.0) for power in (12, 20, 24))
    found = Capacity("t", Variable.SIZE, steps, (), "c", GateResult.PASSED)
    said = text(found)
    assert "e+0" not in said
    assert "ops/s at 4096, 1048576, 16777216: " in said
    assert [line.split()[0] for line in said.splitlines() if line.strip().startswith("1048576 ")] == [
        "1048576"
    ] * sum(line.strip().startswith("bytes ") for line in said.splitlines())
    (against,) = re.findall(
        r'<figure data-chart="([^"]*)"><figcaption>Throughput against latency', page(found)
    )
    labels = json.loads(html.unescape(against))["curves"][0]["labels"]
    assert labels == ["4096", "1048576", "16777216"]
    assert (
        "full at 4096, 16777216 bytes"
        in describe_limits(
            Variable.SIZE,
            [structs.replace(steps[place], generator_full=True, generator=0.95) for place in (0, 2)],
        )[0]
    )
    million = structs.replace(steps[1], value=1e6)
    assert "from 1000000 to 4,194,304 users" in str(
        describe_missing_gain(Variable.USERS, million, step(1 << 22, 100.0))
    )


def test_page_and_conclusion_say_the_same_knee() -> None:
    """The one had 12.3 users, the other 12."""
    steps = tuple(step(load, 46.0 * min(load, 12.3), p50=load / 200) for load in (1, 2, 4, 8, 16, 32, 64))
    found = conclude_sweep("s", Variable.USERS, steps, None, "")
    assert found.headline == "Peak 565.8 ops/s at 16 users"
    assert found.conclusion.startswith(f"{found.headline}. The knee")
    assert "The knee is at 12 users (95 % sure: 12 to 13; " in found.conclusion
    text = page(found)
    assert "The knee is at 12 users (95 %: 12 to 13)." in text
    assert '["knee: 12"]' in html.unescape(text)


def test_the_headline_of_a_sweep_is_one_clause() -> None:
    """It was three sentences, one of which said that the sweep had gone through its values."""
    rising = tuple(step(load, 46.0 * load, p50=load / 200) for load in (1, 2, 4, 8))
    assert conclude_sweep("s", Variable.USERS, rising, None, "").headline == (
        "Peak 368.0 ops/s at 8 users, and still rising"
    )
    flat = conclude_sweep("s", Variable.USERS, rising[:1], None, "interrupted")
    assert flat.headline == "Peak 46.0 ops/s at 1 user"
    assert flat.remarks == ("The sweep ended early: interrupted.",)
    assert conclude_sweep("s", Variable.USERS, (), None, "interrupted").headline == "No step was completed"


def test_the_page_of_a_sweep_marks_the_knee() -> None:
    steps = tuple(step(load, 46.0 * min(load, 4), p50=max(0.02, load / 200)) for load in (1, 2, 4, 8, 16))
    found = find_knee(Variable.USERS, steps)
    assert found is not None
    assert found.reached
    text = page(Capacity("t", Variable.USERS, steps, (), "c", GateResult.PASSED, knee=found))
    figures = re.findall(r'<figure data-chart="([^"]*)"><figcaption>([^<]*)', text)
    charts = {title.strip(): json.loads(html.unescape(data)) for data, title in figures}
    against = charts["Throughput against latency"]
    (at,) = re.findall(r"The knee is at (.+?) users ", describe_knee(Variable.USERS, found, 1))
    assert against["curves"][-1]["labels"] == [f"knee: {at}"]
    assert f"The knee is at {at} users (95 %: " in text
    # On the curve, between the steps beside it.
    (x,), (y,) = against["tables"][-1]
    assert 15 < x < 25
    assert y == pytest.approx(184, rel=0.1)
    # What lies across is told: a first reader took 50, 100 and 200 below a rate for users.
    assert "against latency <small>ops/s, by ms</small>" in text
    assert "Latency <small>ms, by users</small>" in text
    assert charts["Rate"]["marks"] == [[pytest.approx(found.value), "knee"]]
    rising = page(
        Capacity("t", Variable.USERS, steps, (), "c", GateResult.PASSED, knee=replace(found, high=math.inf))
    )
    assert "knee: " not in rising
    assert "It is not certain that the steps went beyond the knee." in rising


# -- a search over a simulated store --------------------------------------------------------------------

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
