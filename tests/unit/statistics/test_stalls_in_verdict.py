"""Stalls of the store as a reason for the verdict, and what conditions on percentiles say of them."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from golden_words import GoldenWords
from msgspec.structs import replace as replace_struct
from planted import CREATE, Met, operations, statistics_of
from planted_load import Store, play

from ssbench.reports import junit
from ssbench.reports.writing import ReportOptions, make_run_report
from ssbench.results.block import LOST_CAUSE
from ssbench.results.run_description import Gap, WorkerFacts
from ssbench.scenario.conditions import parse_condition
from ssbench.scenario.model import Stage
from ssbench.statistics.run_statistics import RunPart, RunStatistics
from ssbench.statistics.run_verdict import Kind, Outcome, verdict_of
from ssbench.statistics.stalls import STALL_SECONDS, Stall, find_store_stalls
from ssbench.statistics.thresholds import judge_conditions

MS = 1e-3


def stopped(begins: float, ends: float, usual: float = 5 * MS) -> Store:
    """Return a store that is stopped for a time: what is under way then goes on after it."""

    def store(sent: float) -> float:
        ended = max(sent, ends) + usual if sent >= begins else sent + usual
        return ended + (ends - begins) if sent < begins < ended else ended

    return store


def closed(store: Store, users: int = 10, seconds: float = 12) -> RunStatistics:
    return replace(play(store, [Stage(seconds, (users, users))]), warnings=())


def stall_of(numbers: RunStatistics) -> str | None:
    return next((each.text for each in verdict_of(numbers).reasons if each.kind is Kind.STALL), None)


def test_a_store_that_answers_nothing_for_five_of_twelve_seconds_is_not_good() -> None:
    numbers = closed(stopped(4, 9))
    found = verdict_of(numbers)
    assert found.outcome is Outcome.WARNED
    assert found.exit_code == 0
    text = " ".join(make_run_report("summary", numbers, ReportOptions()).split())
    assert (
        "! The store did not answer for 5.0 s of 12 (41.7 %), from second 4.0 on; a closed loop counts that"
        " as 10 slow operations at most; without it the rate is 2,001/s" in text.replace("! the", "! The")
    )
    case = re.search(r'name="the store answered all along"[^/]*?<skipped message="([^"]*)', junit_of(numbers))
    assert case is not None
    assert "did not answer for 5.0 s" in case[1]


def junit_of(numbers: RunStatistics) -> str:
    return junit.make_run_junit(numbers, ReportOptions())


def test_a_stall_until_the_end_of_a_run_is_one_too(golden_words: GoldenWords) -> None:
    golden_words(stall_of(closed(stopped(8.8, 60), seconds=10)) or "")


def test_several_stalls_are_counted_together(golden_words: GoldenWords) -> None:
    one, other = stopped(4, 5), stopped(8, 10)
    numbers = closed(lambda sent: one(sent) if sent < 6 else other(sent))
    golden_words(stall_of(numbers) or "")
    assert "as 20 slow operations at most" in (stall_of(numbers) or "")


def test_an_open_loop_counts_what_was_due() -> None:
    numbers = play(stopped(4, 9), [Stage(12, (100, 100), (50, 50))])
    text = stall_of(numbers)
    assert text is not None
    assert "closed loop" not in text


def test_a_stall_of_a_group_is_one_of_it_alone(golden_words: GoldenWords) -> None:
    """Other users have answers meanwhile."""
    numbers = closed(stopped(99, 100))
    own = RunPart("backup", numbers.run.scenario.plan, closed(stopped(4, 9)))
    (text,) = (each.text for each in verdict_of(replace(numbers, by_group=(own,))).reasons)
    golden_words(text)
    both = replace(closed(stopped(4, 9)), by_group=(own,))
    assert [each.group for each in verdict_of(both).reasons if each.kind is Kind.STALL] == [None]


@pytest.mark.parametrize(("ends", "is_reason"), [(101.5, True), (100.8, False)])
def test_a_short_one_of_a_long_run_is_no_reason(ends: float, *, is_reason: bool) -> None:
    """Each is less than a hundredth of 250 s, and more than ten times p99."""
    numbers = closed(stopped(100, ends, 20 * MS), users=2, seconds=250)
    assert numbers.course is not None
    assert len(numbers.course.stalls) == 1
    assert bool(stall_of(numbers)) is is_reason


def test_conditions_on_percentiles_of_a_closed_loop_say_that_they_do_not_see_it(
    golden_words: GoldenWords,
) -> None:
    numbers = closed(stopped(4, 9))
    conditions = [parse_condition(each) for each in ("p99 > 100ms", "max > 9s", "p99 > 1ms", "rate < 1")]
    p99, most, failed, rate = (each.text for each in judge_conditions(numbers, conditions))
    golden_words(p99)
    assert not any("do not show" in each for each in (most, failed, rate))
    (healthy,) = judge_conditions(closed(stopped(99, 100)), conditions[:1])
    assert healthy.text == "p99 > 100ms: ok (5ms)"
    (opened,) = judge_conditions(play(stopped(4, 9), [Stage(12, (99, 99), (50, 50))]), conditions[:1])
    assert "do not show" not in opened.text


def test_a_rate_far_above_its_limit_is_certain_although_seconds_had_none() -> None:
    """It was undecided: nothing was known of a rate beyond its least second."""
    numbers = closed(stopped(4, 9, usual=60 * MS))
    found = judge_conditions(numbers, [parse_condition(f"rate < {limit}") for limit in (1, 2, 50, 5000)])
    assert [each.result.value for each in found] == ["ok", "ok", "undecided", "FAILED"]
    assert found[0].value == pytest.approx(97, rel=0.05)


def test_a_percentile_that_shows_the_stall_does_not_say_otherwise() -> None:
    """Half of all operations waited for it."""
    numbers = closed(stopped(1, 9, 0.5), users=3, seconds=10)
    (judgment,) = judge_conditions(numbers, [parse_condition("p99 > 20s")])
    assert "do not show" not in judgment.text


# -- Whose stall it was ----------------------------------------------------------------------------


def generated(numbers: RunStatistics, workers: int, *gaps: tuple[int | None, float, float]) -> RunStatistics:
    """Return the numbers of a run whose master (None) or workers stalled from a second to another."""
    assert numbers.course is not None
    start = numbers.course.window.start
    own = replace_struct(
        numbers.generator, gaps=tuple(Gap(who, start + begins, ends - begins) for who, begins, ends in gaps)
    )
    fleet = tuple(WorkerFacts(each) for each in range(workers))
    return replace(numbers, generator=own, fleet=fleet)


@pytest.mark.parametrize(
    ("workers", "gaps", "left"),
    [
        (1, [(0, 4.0, 9.01)], None),  # the only worker
        (2, [(None, 3.9, 9.01)], None),  # the master
        (2, [(0, 4.0, 9.01)], "5.0"),  # one of two does not stop the other
        (2, [(0, 4.0, 9.01), (1, 3.99, 9.01)], None),
        (2, [(0, 4.0, 7.0), (1, 6.0, 9.01)], "4.0"),  # both for a second
        (1, [(0, 4.0, 6.0), (0, 6.0, 8.8)], None),  # what is left is too short
        (1, [(0, 4.0, 6.0)], "3.0"),
        (1, [(0, 1.0, 3.0), (0, 10.0, 11.0)], "5.0"),  # at other times
    ],
)
def test_what_the_load_generator_explains_is_not_the_stores(
    workers: int, gaps: list[tuple[int | None, float, float]], left: str | None
) -> None:
    text = stall_of(generated(closed(stopped(4, 9)), workers, *gaps))
    if left is None:
        assert text is None
    else:
        assert f"did not answer for {left} s" in (text or "")


def test_what_is_left_of_a_stall_is_longer_than_a_stall_has_to_be() -> None:
    stalls = [Stall(10.0, 2.0, asked=2.0)]
    assert [*find_store_stalls(stalls, 0.0, [Gap(1, 10.0, 2.0 - STALL_SECONDS)], [1])] == []
    (left,) = find_store_stalls(stalls, 0.0, [Gap(1, 9.0, 2.0)], [1])
    assert (left.start, left.seconds) == (10.0, 1.0)


RETRIED = {"HTTP 503": 1}


@pytest.mark.parametrize(
    "met",
    [
        Met(5.0, retried=RETRIED, pausing=4.99),  # the store answered that it is to be asked later
        Met(5.0, cause=LOST_CAUSE, status=-1),  # nobody knows what the store did
        Met(0.01, idle=5.0),  # no worker heard of what was to be done next
    ],
    ids=["pausing", "lost", "not sent"],
)
def test_a_store_that_is_asked_nothing_does_not_stall(met: Met, golden_words: GoldenWords) -> None:
    def store(place: int, sent: float, *, waiting: int = 0) -> Met:
        if not 4 <= sent < 4.02:
            return Met(0.01)
        return Met(5.0) if place % 8 < waiting else met

    def reason(waiting: int) -> str | None:
        numbers = statistics_of(operations(partial(store, waiting=waiting), 8, 12), 8, 12)
        assert numbers.course is not None
        assert len(numbers.course.stalls) == 1
        return stall_of(numbers)

    assert reason(0) is None
    # One that waits for the store is enough.
    golden_words(reason(1) or "")


# -- No stall --------------------------------------------------------------------------------------


@pytest.mark.parametrize("users", [1, 2, 4])
def test_few_users_that_are_busy_with_large_objects_are_no_stall(users: int) -> None:
    """One in 200 takes 3 s: far above ten times p99 of all, and what it takes each time."""
    for seed in range(3):
        random = np.random.default_rng(seed)

        def store(_place: int, _sent: float, random: np.random.Generator = random) -> Met:
            if random.random() < 0.005:
                return Met(3 * random.lognormal(0, 0.3), CREATE, 1)
            return Met(0.01 * random.lognormal(0, 0.6))

        numbers = statistics_of(operations(store, users, 60), users, 60)
        assert numbers.course is not None
        assert numbers.course.stalls == ()
