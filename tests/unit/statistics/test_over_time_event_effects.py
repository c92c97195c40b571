"""What happened around the commands of a run: spans, how long the rate was lower, how often that is wrong."""

from __future__ import annotations

import math

import numpy as np
import pytest
from golden_words import GoldenWords
from result_rows import many

from ssbench.results.block import Failure
from ssbench.results.run_description import EventFacts
from ssbench.statistics.over_time import (
    EventEffect,
    OverTimeCollector,
    count_slow_seconds,
    describe_event_effect,
    measure_event_effects,
)

START = 1_700_000_000.0


def collect(rates: list[int], failed: range = range(0)) -> OverTimeCollector:
    """Return what is counted of a run with so many operations in each second; one fails in some seconds."""
    collector = OverTimeCollector()
    for second, count in enumerate(rates):
        completed = START + second + (np.arange(count) + 0.5) / max(count, 1)
        if count:
            made = many(range(count), operation=1, last_byte=0.01, completed=completed)
            if second in failed:
                made.failures[0] = Failure("HTTP 503", "", {})
            collector.add(made)
    return collector


def measure(rates: list[int], *moments: float, failed: range = range(0)) -> tuple[EventEffect, ...]:
    events = [EventFacts(each, "x", START + each, START + each, 0) for each in moments]
    return measure_event_effects(events, collect(rates, failed), START, START + len(rates))


def test_before_during_and_after_a_fault(golden_words: GoldenWords) -> None:
    (found,) = measure([100, 101] * 10 + [50] * 12 + [100] * 18, 20.0, failed=range(20, 25))
    assert (found.fell, found.back_after, found.slowest_before, found.start) == (True, 12.0, 100.0, 20.0)
    assert found.before is not None
    assert found.during is not None
    assert found.after is not None
    assert (found.before.seconds, found.before.count, found.before.failed) == (20.0, 2010, 0)
    assert (found.during.start, found.during.seconds, found.during.rate) == (
        20.0,
        12.0,
        pytest.approx(49.6, 0.01),
    )
    assert (found.during.failed, found.during.causes) == (5, {"HTTP 503": 5})
    assert (found.after.start, found.after.seconds, found.after.rate) == (32.0, 18.0, 100.0)
    assert found.after.p50 == pytest.approx(0.01, rel=0.016)
    assert found.during.p99 is None  # too few
    golden_words([*describe_event_effect(found)])


def test_a_rate_that_does_not_come_back() -> None:
    (found,) = measure([100] * 20 + [50] * 20, 20.0)
    assert (found.fell, found.back_after, found.after) == (True, None, None)
    assert found.during is not None
    assert found.during.seconds == 20.0
    assert next(iter(describe_event_effect(found))).endswith("and did not recover")


def test_a_rate_that_stays(golden_words: GoldenWords) -> None:
    (found,) = measure([100] * 40, 20.0)
    assert (found.fell, found.back_after, found.during) == (False, 0.0, None)
    golden_words([*describe_event_effect(found)])


def test_the_repair_is_judged_by_the_time_before_the_fault() -> None:
    fault, repair = measure([100] * 20 + [50] * 25 + [100] * 20, 20.0, 40.0)
    assert (fault.back_after, fault.after) == (None, None)
    assert fault.during is not None
    assert fault.during.seconds == 20.0
    assert (repair.fell, repair.back_after) == (True, 5.0)
    assert repair.after is not None
    assert repair.after.seconds == 20.0


def test_too_little_before() -> None:
    (found,) = measure([100] * 5 + [50] * 20, 5.0)
    assert (found.fell, found.back_after, found.slowest_before) == (None, None, None)
    assert found.before is not None
    assert found.before.count == 500
    assert found.after is not None
    assert found.after.count == 1000
    assert [*describe_event_effect(found)] == []


@pytest.mark.parametrize(("seconds", "is_known"), [(9, False), (10, True)])
def test_ten_seconds_before_say_how_slow_a_second_usually_is(seconds: int, is_known: bool) -> None:
    rates = [100] * (seconds - 1) + [90] + [50] * 20
    (found,) = measure(rates, float(seconds))
    assert found.slowest_before == (90.0 if is_known else None)
    assert found.fell is (True if is_known else None)


def test_the_rate_is_back_with_as_many_seconds_in_a_row_as_show_that_it_fell() -> None:
    """Of 20 seconds before and 20 after three in a row are less likely than 1 of 20 by chance."""
    assert 20 / math.comb(23, 3) <= 0.05 < 20 / math.comb(22, 2)
    assert count_slow_seconds(20, 20) == 3
    alike, slow = [100] * 20, [50] * 3
    for after, fell, back in (
        ([50, 50, *[100] * 18], False, 0.0),
        ([100, *slow, *[100] * 16], True, 4.0),
        ([*slow, 100, 100, *slow, *[100] * 12], True, 8.0),
        ([*slow, *[100] * 17], True, 3.0),
        ([*slow, *[50] * 15, 100, 100], True, None),
    ):
        (found,) = measure(alike + after, 20.0)
        assert (found.fell, found.back_after) == (fell, back), after


@pytest.mark.parametrize("before", [10, 30, 1000])
@pytest.mark.parametrize("after", [1, 20, 500])
def test_so_many_slow_seconds_are_the_fewest_that_chance_seldom_makes(before: int, after: int) -> None:
    found = count_slow_seconds(before, after)

    def chance(number: int) -> float:
        return after / math.comb(before + number, number)

    assert chance(found) <= 0.05
    assert found == 2 or chance(found - 1) > 0.05


def test_what_was_before_the_window_or_after_it_is_moved_into_it() -> None:
    events = [EventFacts(each, "x", START + each, START + each, 0) for each in (-5.0, 20.0, 90.0)]
    found = measure_event_effects(events, collect([100] * 40), START, START + 40)
    assert [each.start for each in found] == [0.0, 20.0, 40.0]
    assert [each.after.seconds if each.after else None for each in found] == [20.0, 20.0, None]
    assert {each.before.seconds for each in found if each.before} == {0.0}
    assert {each.before.rate for each in found if each.before} == {None}


def test_a_command_that_did_not_run() -> None:
    (found,) = measure_event_effects([EventFacts(60.0, "x")], collect([100] * 20), START, START + 20)
    assert (found.start, found.before, found.after) == (None, None, None)


def test_after_a_command_that_does_nothing_the_rate_seldom_seems_to_fall() -> None:
    """At most one of twenty, whatever the number of seconds; here with Poisson's scatter."""
    random = np.random.default_rng(5)
    for before, after in ((10, 60), (30, 30), (60, 300)):
        needed = count_slow_seconds(before, after)
        wrong = 0
        for _ in range(1000):
            counts = random.poisson(50, before + after)
            slow = counts[before:] < counts[:before].min()
            runs = np.convolve(slow, np.ones(needed), "valid")
            wrong += bool((runs >= needed).any())
        assert wrong <= 70, (before, after)


def test_a_long_run_has_coarser_seconds() -> None:
    rates = [5] * 3000
    (found,) = measure(rates, 1500.0)
    assert found.fell is False
    assert found.slowest_before == pytest.approx(5.0)
