"""The change of one figure: its interval, its word, the order of runs, and Holm's correction."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import noise
import numpy as np
import pytest
from compared_runs import ERRORS, P50, RATE, run, samples
from golden_words import GoldenWords

from ssbench.comparison.change import (
    HEADS,
    NO_DIFFERENCE,
    NO_DRIFT,
    NOISE_SHARE,
    Drift,
    FigureChange,
    FigureDifference,
    apply_holm,
    find_run_order,
    is_any_shown,
    judge_change,
    judge_changes,
    mann_whitney_probability,
    measure_difference,
    share_level,
)
from ssbench.comparison.run_comparison import compare_runs
from ssbench.comparison.run_figures import ALL_KEY, FigureSample
from ssbench.document.figures import CPU_FIGURES, Figure


def compare_figure(
    figure: Figure, before: Sequence[FigureSample], after: Sequence[FigureSample], noise: float = NOISE_SHARE
) -> FigureChange:
    return judge_change(figure, measure_difference(figure, before, after), noise)


def medians(random, runs, change=1.0):
    """The p50 of runs of 20 s at 100/s: noise alike from second to second, and 2 % from run to run."""
    level = np.repeat(noise.correlated(random, runs, 20, 0.8, 0.05), 100, axis=1)
    level += random.normal(0, 0.02, (runs, 1))
    return np.median(change * np.exp(level + random.normal(0, 0.6, level.shape)), axis=1)


def called(random, runs, change=1.0):
    """Of 40 comparisons, how many were called slower, and how many anything else but no difference."""
    words = [
        compare_figure(P50, samples(*medians(random, runs)), samples(*medians(random, runs, change))).word
        for _ in range(40)
    ]
    return words.count("slower"), words.count("faster")


def test_runs_of_one_store_are_seldom_called_different():
    assert sum(called(np.random.default_rng(1), 5)) <= 5


def test_ten_per_cent_are_found():
    slower, faster = called(np.random.default_rng(2), 8, 1.1)
    assert slower >= 36
    assert faster == 0


def test_single_runs_give_no_verdict(golden_words: GoldenWords):
    assert called(np.random.default_rng(3), 1, 1.1) == (0, 0)
    found = compare_runs([run(p50=1.0)], [run(p50=2.0)])
    assert not found.repeated
    golden_words(found.judgment)
    assert found.find("read", None, "p50").word is None


def test_the_interval_of_single_runs_is_within_them():
    change = compare_figure(P50, [FigureSample(1.0, 0.03)], [FigureSample(1.1, 0.04)])
    assert change.change == pytest.approx(0.1)
    assert change.low == pytest.approx(1.1 * math.exp(-0.05) - 1)
    assert change.high == pytest.approx(1.1 * math.exp(0.05) - 1)
    assert compare_figure(P50, [FigureSample(1.0)], [FigureSample(1.1, 0.04)]).low is None
    one_and_two = compare_figure(
        P50, [FigureSample(1.0, 0.03)], [FigureSample(1.1, 0.04), FigureSample(1.1, 0.04)]
    )
    assert one_and_two.high == pytest.approx(1.1 * math.exp(math.hypot(0.03, 0.04 / math.sqrt(2))) - 1)


def test_two_or_three_runs_have_an_interval_and_no_word():
    change = compare_figure(P50, samples(1, 1.01), samples(2, 2.01, 2.02))
    assert change.low > 0.9
    assert change.word is None
    assert "fewer than 4 runs a side" in compare_runs([run(p50=1.0)] * 2, [run(p50=1.0)] * 3).judgment


def test_welch():
    """Against an example worked by hand: logarithms with means 1 and 1.5, variances 1/3 and 5/3."""
    before = [math.exp(value) for value in (0.5, 1.5, 0.5, 1.5)]
    after = [math.exp(value) for value in (0, 1, 2, 3)]
    change = compare_figure(P50, samples(*before), samples(*after))
    error = math.sqrt(1 / 12 + 5 / 12)
    freedom = 0.25 / ((1 / 12) ** 2 / 3 + (5 / 12) ** 2 / 3)
    assert freedom == pytest.approx(4.1538, abs=1e-4)
    half = (math.log1p(change.high) - math.log1p(change.low)) / 2
    assert half == pytest.approx(2.7415 * error, rel=0.002)  # t(0.975) of 4.15 degrees of freedom
    assert change.word == "no difference shown"


@pytest.mark.parametrize(
    ("figure", "factor", "word"),
    [(P50, 1.2, "slower"), (P50, 0.8, "faster"), (RATE, 1.2, "faster"), (RATE, 0.8, "slower")],
)
def test_the_word_depends_on_what_more_means(figure, factor, word):
    before = [1.0, 1.01, 0.99, 1.0]
    after = [value * factor for value in before]
    assert compare_figure(figure, samples(*before), samples(*after)).word == word


def test_changes_within_the_noise_bound_are_none():
    same = samples(*[1.0] * 4)
    assert compare_figure(P50, same, samples(*[1.009] * 4)).word == "no difference shown"
    assert compare_figure(P50, same, samples(*[1.011] * 4)).word == "slower"
    assert compare_figure(P50, same, samples(*[1.011] * 4), noise=0.02).word == "no difference shown"


def test_errors_are_compared_as_shares():
    change = compare_figure(ERRORS, samples(0, 0, 0, 0.001), samples(0.02, 0.021, 0.02, 0.019))
    assert change.word == "more errors"
    assert change.change == pytest.approx(0.01975)
    assert compare_figure(ERRORS, samples(0), samples(0.1)).low is None


def test_mann_whitney_is_exact():
    """Against counting all ways to deal out the ranks."""
    for first, second in ((2, 3), (4, 4), (3, 5)):
        everything = range(first + second)
        counts = []
        for chosen in itertools.combinations(everything, first):
            others = [each for each in everything if each not in chosen]
            counts.append(sum(b > a for a in chosen for b in others))
        for chosen in itertools.combinations(everything, first):
            others = [each for each in everything if each not in chosen]
            above = sum(b > a for a in chosen for b in others)
            least = min(above, first * second - above)
            expected = min(1, 2 * sum(count <= least for count in counts) / len(counts))
            assert mann_whitney_probability(chosen, others) == pytest.approx(expected)
    assert mann_whitney_probability([1] * 41, [2]) is None


def test_cpu_of_servers_is_a_family_of_its_own():
    """How many latencies there are says nothing of whether a server takes more CPU."""
    slow = FigureDifference(1.0, 1.0, 0.05, 0.015, math.inf, sure=True)  # p = 0.008
    equal = replace(slow, middle=0.0)
    cpu = {(ALL_KEY, each.key): equal for each in CPU_FIGURES.values()}
    place, other = (ALL_KEY, "proxy_cpu"), (ALL_KEY, "p99")
    rows = {((f"OP{each}", None), "p50"): equal for each in range(20)}
    found = {(ALL_KEY, "p50"): equal, **rows, **cpu, place: slow, other: slow}
    changes = judge_changes(found, 0.01, HEADS)
    assert [each for each, change in changes.items() if change.differs] == [place]
    levels = share_level(found, HEADS)
    assert (levels[place], levels[other]) == (0.05 / len(CPU_FIGURES), 0.05 / 21)
    assert not any(change.differs for change in judge_changes(found, 0.01).values()), "one family, no heads"


def test_failures_alone_are_no_difference_of_speed():
    other, same = FigureChange(1.0, 2.0, word="slower"), FigureChange(1.0, 1.0, word=NO_DIFFERENCE)
    assert is_any_shown([("p50", same), ("proxy_cpu", other)]) is True
    assert is_any_shown([("p50", same), ("errors", FigureChange(0.0, 0.1, word="more errors"))]) is False
    assert is_any_shown([("p50", FigureChange(1.0, 2.0)), ("errors", same)]) is None


def test_holm():
    assert apply_holm([0.01, 0.04, 0.03, 0.005]) == [True, False, False, True]
    assert apply_holm([0.01, 0.02, 0.02, 0.013]) == [True, True, True, True]
    assert apply_holm([]) == []


def test_the_order_of_runs():
    assert find_run_order([0, 3, 4], [1, 2, 5]).pairs == ((0, 0), (1, 1), (2, 2))
    assert find_run_order([0, 1], [2, 3]).pairs == ()
    assert find_run_order([0, 1], [2, 3]).one_after_the_other
    assert find_run_order([0, None], [2, 3]) is None
    assert find_run_order([0, 0], [2, 3]) is None
    assert find_run_order([0], [1]).pairs == ()
    apart = find_run_order([0, 1, 2], [3, 4, 5])
    assert apart.slope([0.0, 1.0, 2.0], [9.0, 10.0, 11.0]) == pytest.approx(1.0)
    assert apart.carried_over([0.0, 1.0, 2.0], [9.0, 10.0, 11.0]) == Drift(up=pytest.approx(3.0))
    assert apart.drift([0.0, 1.0, 2.0], [9.0, 10.0, 11.0]) == pytest.approx(5.0)
    assert apart.carried_over([2.0, 1.0, 0.0], [11.0, 10.0, 9.0]) == Drift(down=pytest.approx(3.0))
    # A drift that is less than twice its error is not carried over.
    assert apart.carried_over([0.0, 2.0, 1.0], [9.0, 11.0, 10.0]) == NO_DRIFT
    # Of runs of a file it may be there, in either direction.
    sequence = replace(apart, is_sequence=True)
    low, high = sequence.may_carry_over([0.0, 2.0, 1.0], [9.0, 11.0, 10.0])
    assert low < 0 < high
    assert sequence.carried_over([0.0, 2.0, 1.0], [9.0, 11.0, 10.0]) == Drift(high, -low)
