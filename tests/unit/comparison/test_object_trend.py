"""Rates over the number of objects: planted bends are found, and equal rates are called equal."""

from __future__ import annotations

import math

import numpy as np
import pytest
from golden_words import GoldenWords

from ssbench.comparison.object_trend import (
    ObjectTrend,
    describe_object_trend,
    describe_trend_briefly,
    find_object_trend,
)

#: Half the width of the interval of a step, as a share.
HALF = 0.01


def find(
    random: np.random.Generator, steps: int, *, noise: float = 0.0, change: float = 0.0, bend: float = 0.0
) -> ObjectTrend:
    """What is found of steps from 1,000 objects on, each twice as many, whose rate changes from a bend on."""
    counts = 1000.0 * 2 ** np.arange(steps)
    share = np.maximum(0, np.log(counts / bend)) / math.log(counts[-1] / bend) if bend else 0 * counts
    logs = math.log(1000) + math.log1p(change) * share
    logs = logs + random.normal(0, math.hypot(HALF / 1.96, noise), steps)
    found = find_object_trend([*counts], [*np.exp(logs)], [HALF] * steps)
    assert found is not None
    return found


def test_a_planted_bend_is_found() -> None:
    found = find(np.random.default_rng(1), 11, change=-0.25, bend=60_000)
    assert found.bend == pytest.approx(60_000, rel=0.1)
    assert found.bend_low <= 60_000 <= found.bend_high < 100_000
    assert found.low < -0.25 < found.high < -0.2
    assert describe_trend_briefly(found).startswith("The rate falls from about ")
    assert "with the most of them the rate differs by -2" in describe_object_trend(found)


def test_a_step_is_found_between_two_counts() -> None:
    rates = [1000.0] * 7 + [944.0] * 4  # as where a container becomes too large for a cache
    found = find_object_trend([1000.0 * 2**each for each in range(11)], rates, [0.005] * 11)
    assert found is not None
    assert found.bend is not None
    assert 64_000 < found.bend < 128_000
    assert found.change == pytest.approx(-0.056, abs=0.001)


def test_equal_rates_are_equal_and_what_would_have_been_seen_is_said(golden_words: GoldenWords) -> None:
    found = find(np.random.default_rng(1), 11)
    assert (found.bend, found.change) == (None, 0.0)
    assert found.low == -found.visible == -found.high
    assert 0.03 < found.visible < 0.1
    golden_words(describe_object_trend(found))


@pytest.mark.parametrize(
    ("steps", "half", "needed"), [(8, 0.005, (14, None)), (14, 0.02, (17, 8)), (20, 0.005, (None, None))]
)
def test_what_would_show_a_smaller_change_is_said(
    steps: int, half: float, needed: tuple[int | None, int | None]
) -> None:
    found = find_object_trend([100.0 * 2**each for each in range(steps)], [9.0] * steps, [half] * steps)
    assert found is not None
    assert (found.needed_steps, found.needed_lengths) == needed
    said = describe_object_trend(found)
    assert [f"{needed[0]} steps as long" in said, f"steps {needed[1]} times as long" in said] == [
        each is not None for each in needed
    ]


def test_where_no_series_that_may_be_run_shows_a_change_its_length_and_why_are_said(
    golden_words: GoldenWords,
) -> None:
    """Where runs differ much, nothing was said of what would show one."""
    counts = [100.0 * 2**place for place in range(12)]
    for apart in (0.12, 3.0):
        rates = [100.0 * math.exp(apart * (-1) ** (place // 2)) for place in range(12)]
        found = find_object_trend(counts, rates, [0.01] * 12)
        assert found is not None
        assert found.bend is None
        golden_words(describe_object_trend(found))


@pytest.mark.parametrize(
    ("counts", "errors"),
    [(range(1, 6), [0.01] * 5), (range(1, 9), [None] * 8), ([1, 1, 1, 2, 2, 2], [0.1] * 6)],
)
def test_of_too_few_steps_nothing_is_known(counts: list[int], errors: list[float | None]) -> None:
    assert find_object_trend(counts, [100.0] * len(errors), errors) is None


@pytest.mark.long
@pytest.mark.parametrize(("steps", "noise", "least"), [(6, 0.02, 0.94), (11, 0.0, 0.97), (11, 0.05, 0.94)])
def test_how_often_equal_rates_are_equal(steps: int, noise: float, least: float) -> None:
    random = np.random.default_rng(7)
    flat = [find(random, steps, noise=noise).bend is None for _ in range(400)]
    assert sum(flat) >= least * 400


@pytest.mark.long
@pytest.mark.parametrize(("steps", "noise"), [(8, 0.0), (11, 0.01), (14, 0.02)])
def test_how_often_a_bend_is_found_and_in_its_interval(steps: int, noise: float) -> None:
    random, bend = np.random.default_rng(7), 1000 * 2 ** (0.6 * steps)
    found = [find(random, steps, noise=noise, change=-0.25, bend=bend) for _ in range(400)]
    assert sum(each.bend is not None for each in found) >= 0.97 * 400
    assert sum(each.bend_low <= bend <= each.bend_high for each in found) >= 0.95 * 400
    assert sum(each.low <= -0.25 <= each.high for each in found) >= 0.95 * 400


@pytest.mark.long
@pytest.mark.parametrize(("steps", "noise"), [(8, 0.0), (8, 0.02), (12, 0.01), (24, 0.02)])
def test_writes_slower_by_5_6_percent_are_seen_or_said_to_be_too_small_to_see(
    steps: int, noise: float
) -> None:
    """A container slowed them from 12.58 to 13.29 ms beyond 1.6 million objects."""
    random, change = np.random.default_rng(7), 12.58 / 13.29 - 1
    counts = np.geomspace(1e5, 6.4e6, steps)
    seen = said = 0
    for _ in range(400):
        logs = np.where(counts > 1.6e6, math.log1p(change), 0.0)
        logs += random.normal(0, math.hypot(HALF / 2 / 1.96, noise), steps)
        found = find_object_trend([*counts], [*np.exp(logs)], [HALF / 2] * steps)
        assert found is not None
        seen += found.bend is not None
        is_said = found.bend is None and found.visible > -change
        said += is_said
        assert not is_said or found.needed_steps or found.needed_lengths
    assert seen + said >= 0.95 * 400


@pytest.mark.long
@pytest.mark.parametrize("change", [-0.25, 12.58 / 13.29 - 1])
def test_with_48_steps_a_bend_is_known_to_10_percent(change: float) -> None:
    random, counts, near = np.random.default_rng(7), np.geomspace(1e5, 6.4e6, 48), 0
    for _ in range(200):
        share = np.maximum(0, np.log(counts / 8e5)) / math.log(8) if change == -0.25 else counts > 8e5
        logs = math.log1p(change) * share + random.normal(0, 0.01, len(counts))
        found = find_object_trend([*counts], [*np.exp(logs)], [HALF / 2] * len(counts))
        near += found is not None and found.bend == pytest.approx(8e5, rel=0.1)
    assert near >= 0.95 * 200
