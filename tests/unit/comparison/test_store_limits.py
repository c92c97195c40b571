"""Limits as the runs of a cell say them, and conditions on these."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from capacity_runs import step as whole_step
from golden_words import GoldenWords

from ssbench.base.errors import GateResult
from ssbench.comparison.search import SearchAnswer
from ssbench.comparison.store_limits import (
    EnvelopeCell,
    EnvelopeStep,
    LoggedRun,
    add_logged_run,
    conclude_cell,
    judge_envelope_condition,
    parse_envelope_condition,
)
from ssbench.scenario.conditions import parse_conditions

OK, NO = GateResult.PASSED, GateResult.FAILED


def make_cell(
    answer: SearchAnswer,
    *runs: tuple[int, float, GateResult],
    failed: float = 0.0,
    refusals: dict[str, int] | None = None,
    refuses_from: int = 1,
    condition: str = "p99 <= 50ms",
    **how: Any,
) -> EnvelopeCell:
    """Return the cell of runs (users, operations a second, whether the condition holds).

    Where it does not, with ``refuses_from`` users or more, a share ``failed`` of the operations fails and
    there are ``refusals``, which without failures are requests that are sent again.
    """
    steps = [
        EnvelopeStep(
            users,
            10.0,
            rate,
            0.05,
            rate * 4000,
            0.01,
            0.02,
            0.005,
            100,
            failed * is_refused,
            result,
            refusals=(refusals or {}) if is_refused else {},
            sent_again=sum((refusals or {}).values()) * (is_refused and not failed),
        )
        for users, rate, result in runs
        for is_refused in [result is NO and users >= refuses_from]
    ]
    pairs = [(each, whole_step(each.users, each.rate)) for each in steps]
    return conclude_cell("4kB.read", 4000, "read", parse_conditions(condition), pairs, answer, **how)


def test_the_rate_is_that_of_the_most_users_between_those_that_were_run() -> None:
    answer = SearchAnswer(20, 16, 25)
    cell = make_cell(answer, (1, 10.0, OK), (10, 100.0, OK), (40, 400.0, NO))
    assert (cell.users, cell.users_low, cell.users_high) == (20, 16, 25)
    assert cell.rate == pytest.approx(200)
    assert cell.moved == pytest.approx(200 * 4000)
    assert cell.limit is not None
    assert cell.half is not None
    assert (cell.limit.users, cell.half.users) == (10, 10)
    assert cell.bounded_by == "the store: latency"


def test_more_runs_near_the_limit_say_more_of_its_rate() -> None:
    answer = SearchAnswer(20, 16, 25)
    one = make_cell(answer, (10, 100.0, OK), (20, 200.0, OK), (40, 400.0, NO))
    assert 108 < one.rate_low < 118  # runs may differ by 40 %
    assert 340 < one.rate_high < 370
    six = make_cell(answer, (10, 100.0, OK), *[(20, 200.0, OK)] * 6, (40, 400.0, NO))
    assert 157 < six.rate_low < 160  # that of 16 users, and a little
    assert 250 < six.rate_high < 255
    assert six.rate == pytest.approx(200)


@pytest.mark.parametrize("noise", [0.1, 0.2])
def test_the_interval_of_a_rate_holds_where_runs_differ(noise: float) -> None:
    held = 0
    for seed in range(60):
        levels = 1000 * np.exp(np.random.default_rng(seed).normal(0, noise, 8))
        users = [10, 17, 18, 19, 20, 21, 22, 40]
        runs = [(each, float(rate), OK) for each, rate in zip(users, levels, strict=True)]
        cell = make_cell(SearchAnswer(20, 18, 22), *runs[:-1], (40, float(levels[-1]), NO))
        held += cell.rate_low <= 1000 <= cell.rate_high
    assert held >= 56


def make_cell_of_six_runs(noise: float, seed: int) -> EnvelopeCell:
    """Return the cell of a store that is full from 8 users on, at 1,000 a second, of runs of unlike loads."""
    levels = np.exp(np.random.default_rng(seed).normal(0, noise, 6))
    runs = [
        (users, 1000 * min(1, users / 8) * level, NO if users == 64 else OK)
        for users, level in zip((1, 4, 8, 16, 32, 64), levels, strict=True)
    ]
    return make_cell(SearchAnswer(40, 34, 46), *runs)


def test_runs_of_other_loads_tell_by_how_much_runs_differ() -> None:
    cell = make_cell_of_six_runs(0.0, 1)
    assert cell.rate_high < 1.5 * cell.rate_low  # 2.9 times where nothing is known of it
    cells = [make_cell_of_six_runs(0.2, seed) for seed in range(30)]
    assert sum(each.rate_low <= 1000 <= each.rate_high for each in cells) >= 28


def test_the_rate_of_a_limit_is_not_that_of_failing_runs_just_beyond_it() -> None:
    answer = SearchAnswer(31, 30, 31)
    runs = *[(30, 300.0, OK)] * 4, *[(33, 100.0, NO)] * 4
    cell = make_cell(answer, (1, 10.0, OK), (16, 160.0, OK), *runs, failed=0.5)
    assert cell.rate_low <= 310 <= cell.rate_high


def test_no_rate_is_claimed_for_more_users_than_were_run() -> None:
    cell = make_cell(SearchAnswer(20, 8, 4000), (1, 10.0, OK), (10, 100.0, OK), (40, 400.0, NO))
    assert cell.rate_low < 80
    assert math.isinf(cell.rate_high)


def test_where_the_interval_is_wider_than_what_was_tried_its_middle_is_not_the_limit() -> None:
    runs = (1, 10.0, OK), (16, 119.0, OK), (32, 120.0, NO)
    cell = make_cell(SearchAnswer(147, 12, 1_435_254), *runs)
    assert (cell.users, cell.users_low, cell.is_vague) == (16, 12, True)
    assert cell.limit is not None
    assert cell.limit.users == 16
    assert not make_cell(SearchAnswer(20, 16, 25), *runs).is_vague


def test_a_limit_that_was_not_reached_is_at_least_the_most_that_was_tried() -> None:
    cell = make_cell(SearchAnswer(900, 70, 5000), (1, 10.0, OK), (64, 640.0, OK))
    assert (cell.users, cell.at_least, cell.rate_high) == (64, True, math.inf)
    assert cell.bounded_by == "not reached in the time"


def test_what_was_not_tried_has_no_limit() -> None:
    for runs, why in [((), "not tried"), (((1, 10.0, OK),), "one user alone was tried")]:
        cell = make_cell(SearchAnswer(None), *runs)
        assert (cell.users, cell.at_least, cell.bounded_by) == (None, False, why)
        judged = judge_envelope_condition(parse_envelope_condition("envelope.4kB.read.rate < 1"), [cell])
        assert judged.result is GateResult.UNDECIDED


@pytest.mark.parametrize(
    ("failed", "refusals", "why"),
    [
        (0.5, {"HTTP 498": 80, "HTTP 503": 20}, "the rate limit of the store (HTTP 498)"),
        (0.0, {"HTTP 498": 80}, "the rate limit of the store (HTTP 498)"),
        (0.5, {"HTTP 503": 80}, "the store: requests fail (HTTP 503)"),
        (0.0, {"HTTP 503": 80}, "the store: requests are sent again (HTTP 503)"),
        (0.0, {}, "the store: latency"),
    ],
)
def test_what_a_store_answers_beyond_its_limit_is_named(
    failed: float, refusals: dict[str, int], why: str
) -> None:
    runs = (1, 10.0, OK), (10, 100.0, OK), (40, 400.0, NO)
    assert make_cell(SearchAnswer(20, 16, 25), *runs, failed=failed, refusals=refusals).bounded_by == why


def test_the_run_beyond_a_limit_is_the_nearest_at_which_it_does_not_hold() -> None:
    runs = [(10, 100.0, OK), (15, 150.0, NO), (24, 200.0, NO), (40, 400.0, NO)]
    cell = make_cell(SearchAnswer(20, 16, 25), *runs)
    assert cell.beyond is not None
    assert cell.beyond.users == 24
    assert make_cell(SearchAnswer(None), (1, 10.0, OK), (10, 100.0, OK)).beyond is None


@pytest.mark.parametrize(
    ("failed", "refusals", "bounded_by"),
    [
        (0.0, {}, "the store: latency; by its logs d1 on n1, p1"),
        (0.2, {"HTTP 503": 20}, "the store: requests fail (HTTP 503); by its logs d2 on n2"),
        (0.0, {"HTTP 503": 80}, "the store: requests are sent again (HTTP 503)"),
        (0.2, {"HTTP 498": 20}, "the rate limit of the store (HTTP 498)"),
    ],
)
def test_logs_name_who_bounds_it_within_the_store(
    failed: float, refusals: dict[str, int], bounded_by: str
) -> None:
    logged = LoggedRun(
        file="e.stat.gz", headline="Slow: d1 on n1 and p1", slow=("d1 on n1", "p1"), failing=("d2 on n2",)
    )
    runs = [(10, 100.0, OK), (40, 400.0, NO)]
    cell = add_logged_run(
        make_cell(SearchAnswer(20, 16, 25), *runs, failed=failed, refusals=refusals), logged
    )
    assert cell.bounded_by == bounded_by
    assert cell.by_logs is logged


def test_failures_that_a_condition_allows_are_not_what_bounds_it() -> None:
    runs = (1, 10.0, OK), (10, 100.0, OK), (40, 400.0, NO)
    found = [
        make_cell(
            SearchAnswer(20, 16, 25),
            *runs,
            failed=0.03,
            refusals={"HTTP 503": 3},
            condition=f"p99 <= 50ms{errors}",
        )
        for errors in ("", " and errors <= 0.1%", " and errors <= 5%")
    ]
    assert [each.limited_by for each in found] == ["failures", "failures", "latency"]
    assert found[-1].bounded_by == "the store: latency"


@pytest.mark.parametrize("failed", [0.0, 0.5])
def test_what_happens_far_beyond_a_limit_is_not_what_bounds_it(failed: float) -> None:
    runs = (1, 10.0, OK), (20, 200.0, OK), (24, 220.0, NO), (64, 300.0, NO)
    answer, refusals = SearchAnswer(20, 18, 23), {"HTTP 503": 80}
    far = make_cell(answer, *runs, failed=failed, refusals=refusals, refuses_from=64)
    assert (far.limited_by, far.bounded_by) == ("latency", "the store: latency")
    near = make_cell(answer, *runs, failed=failed, refusals=refusals, refuses_from=24)
    assert near.limited_by == ("failures" if failed else "retries")


def test_503_over_s3_may_be_a_rate_limit_too() -> None:
    """Swift's s3api answers so for its own 498."""
    runs = (1, 10.0, OK), (10, 100.0, OK), (40, 400.0, NO)
    refusals = {"HTTP 503": 80}
    cell = make_cell(SearchAnswer(20, 16, 25), *runs, failed=0.5, refusals=refusals, slows_by_503=True)
    assert cell.bounded_by == "the store: requests fail (HTTP 503, over S3 also the answer of a rate limit)"


def test_a_limit_on_a_host_with_other_work_is_not_said_to_be_that_of_the_store() -> None:
    steps = [
        EnvelopeStep(users, 10.0, 10.0 * users, 0.05, 4e4, 0.01, 0.02, 0.005, 100, 0.0, result)
        for users, result in [(1, OK), (10, OK), (40, NO)]
    ]
    taken = ("on host-1 other programs used 80 % of its CPU",)
    for shared, why in [(10, "the store: latency"), (40, "the store: latency, on a shared host")]:
        pairs = [
            (each, whole_step(each.users, each.rate, shared=taken * (each.users == shared))) for each in steps
        ]
        cell = conclude_cell(
            "4kB.read", 4000, "read", parse_conditions("p99 <= 50ms"), pairs, SearchAnswer(20, 16, 25)
        )
        assert cell.bounded_by == why


def test_a_full_network_card_bounds_the_load_generator_and_not_the_store() -> None:
    steps = [
        EnvelopeStep(
            users,
            10.0,
            1000.0,
            0.05,
            1e9,
            0.01,
            0.02,
            0.005,
            100,
            0.0,
            result,
            full_networks=("host-1",) if users > 1 else (),
        )
        for users, result in [(1, OK), (10, OK), (40, NO)]
    ]
    pairs = [(each, whole_step(each.users, each.rate)) for each in steps]
    cell = conclude_cell(
        "1MB.read", 10**6, "read", parse_conditions("p99 <= 50ms"), pairs, SearchAnswer(20, 16, 25)
    )
    assert cell.bounded_by == "the network card of host-1"


def test_where_it_holds_at_no_load_a_condition_on_the_rate_is_decided() -> None:
    cell = make_cell(SearchAnswer(None), (1, 10.0, OK), (4, 10.0, NO), (2, 10.0, NO), failed=0.5)
    assert (cell.users, cell.bounded_by) == (None, "the store: requests fail, from one user on")
    judged = judge_envelope_condition(parse_envelope_condition("envelope.4kB.read.rate < 1"), [cell])
    assert judged.result is GateResult.FAILED


@pytest.mark.parametrize(
    "text", ["4kB.read.rate < 5", "envelope.4kB.read.p99 < 5", "envelope.4kB.read.rate < 1.2.3"]
)
def test_what_is_no_condition(text: str, golden_words: GoldenWords) -> None:
    with golden_words.raises(ValueError):
        parse_envelope_condition(text)
