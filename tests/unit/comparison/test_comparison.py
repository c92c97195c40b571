"""Comparisons of runs, at the level of their figures."""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import noise
import numpy as np
import pytest

from ssbench.base.errors import GateResult
from ssbench.cli import compare as compare_command
from ssbench.cli.master import main
from ssbench.comparison.change import (
    FigureChange,
    apply_holm,
    compare_figure,
    find_run_order,
    mann_whitney_probability,
)
from ssbench.comparison.compare import compare_runs
from ssbench.comparison.comparison_verdict import (
    Word,
    check_change_condition,
    judge_change_condition,
    judge_comparison,
)
from ssbench.comparison.run_figures import FigureSample, RunFigures
from ssbench.document.elements import Tone
from ssbench.document.figures import COMPARED_FIGURES
from ssbench.reports import products
from ssbench.reports.products import Product
from ssbench.scenario.conditions import parse_condition
from ssbench.statistics.run_verdict import Outcome

KNOWN = Path(__file__).parents[2] / "data" / "version-1-known.stat.gz"

P50, RATE, ERRORS = COMPARED_FIGURES["p50"], COMPARED_FIGURES["rate"], COMPARED_FIGURES["errors"]

text = products.find_writer(Product.COMPARISON, "text")
markdown = products.find_writer(Product.COMPARISON, "markdown")
many = products.find_writer(Product.CONFIGURATIONS, "text")


def run(name="r", facts=None, operation="READ", **values):
    samples = {
        figure: value if isinstance(value, FigureSample) else FigureSample(value)
        for figure, value in values.items()
    }
    return RunFigures(name, {(operation, None): samples, ("ALL", None): samples}, facts or {})


def samples(*values):
    return [FigureSample(value) for value in values]


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


def test_single_runs_give_no_verdict():
    assert called(np.random.default_rng(3), 1, 1.1) == (0, 0)
    found = compare_runs([run(p50=1.0)], [run(p50=2.0)])
    assert not found.repeated
    assert "runs were not repeated: no verdict" in found.judgment
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


def test_one_side_only():
    found = compare_runs([run(p50=1.0)], [run(operation="CREATE", p50=2.0)])
    assert found.find("read", None, "p50").after is None
    assert [row.operation for row in found.rows] == ["READ", "CREATE", "ALL"]
    assert found.find("delete", None, "p50") is None


def test_a_percentile_that_some_runs_lack_is_not_that_of_the_others():
    """Of eight runs only the two fastest had 1,000 operations: their p99 was below the p95 of all."""
    fast, slow = run(rate=60.0, p50=0.4, p99=1.8), run(rate=20.0, p50=1.1)
    found = compare_runs([fast, fast, slow, slow], [fast, fast, fast, slow])
    change = found.find("read", None, "p99")
    assert change is None or (change.before, change.after) == (None, None)
    assert found.find("read", None, "rate").before == pytest.approx(math.sqrt(60 * 20))
    whole = compare_runs([fast, slow], [fast, fast]).find("read", None, "p99")
    assert (whole.before, whole.after) == (None, pytest.approx(1.8))


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


def test_it_warns_of_what_should_have_been_the_same():
    one, two = {"scenario": "a", "users": "4", "seed": "1"}, {"scenario": "a", "users": "8", "seed": "2"}
    found = compare_runs([run(facts=one, p50=1.0)], [run(facts=two, p50=1.0)])
    assert found.warnings == ("users differs: 4 before, 8 after", "seed differs: 1 before, 2 after")
    mixed = compare_runs([run(facts=one, p50=1.0), run(facts=two, p50=1.0)], [run(facts=one, p50=1.0)])
    assert mixed.warnings == ("users differs: 4 and 8 before, 4 after",)
    assert compare_runs([run(facts=one, p50=1.0)], [run(facts=one, p50=1.0)]).warnings == ()


def repeated():
    before = [
        run(f"b{index}", p50=0.010 + index * 1e-5, rate=500.0 + index, errors=0.0) for index in range(4)
    ]
    after = [
        run(f"a{index}", p50=0.012 + index * 1e-5, rate=500.0 - index, errors=0.001) for index in range(4)
    ]
    return compare_runs(before, after)


def test_text():
    lines = text(repeated()).splitlines()
    assert lines[0] == "before: b0 and 3 more (4 runs); after: a0 and 3 more (4 runs)"
    assert lines[1] == "slower: ALL more errors (+0.1 points); ALL p50 (+20.0 %); most: READ p50 (+20.0"
    assert max(map(len, lines)) <= 80
    assert any(line.split()[-1:] == ["none"] for line in lines)
    assert "no verdict" in text(compare_runs([run(p50=1.0)], [run(p50=1.0)]))


def test_columns_with_nothing_in_them_are_left_out():
    found = compare_runs([run(p50=1.0)], [run(p50=2.0)])
    assert text(found).splitlines()[3].split() == ["operation", "figure", "before", "after", "change"]
    assert "| before | after | change |\n|---|---|--:|--:|--:|\n" in markdown(found)
    assert {*products.format_names(Product.COMPARISON)} == {
        "text",
        "csv",
        "markdown",
        "html",
        "json",
        "junit",
    }


@pytest.mark.parametrize(
    ("condition", "result"),
    [
        ("read.p50 > +10%", GateResult.FAILED),
        ("read.p50 > +30%", GateResult.PASSED),
        ("read.p50 > +20%", GateResult.UNDECIDED),
        ("p50 > 11ms", GateResult.FAILED),
        ("rate < -5%", GateResult.PASSED),
        ("errors > 0.05%", GateResult.FAILED),
        ("p50 > 12.015ms", GateResult.UNDECIDED),
        ("rate < 100", GateResult.PASSED),
        ("delete.p50 > +10%", GateResult.FAILED),
        ("read.p99 > +10%", GateResult.UNDECIDED),
        ("delete.p99 > +10%", GateResult.FAILED),
        ("mb_per_s < 1", GateResult.FAILED),
    ],
)
def test_conditions(condition, result):
    parsed = parse_condition(condition, relative=True)
    check_change_condition(parsed)
    assert judge_change_condition(repeated(), parsed).result is result


def test_a_condition_is_undecided_where_the_interval_has_its_limit_in_it():
    """A change of -21 % between -69 and +103 % was called a failure of -10 %."""
    before, after = (0.01, 0.02, 0.005, 0.012), (0.011, 0.004, 0.02, 0.0053)
    found = compare_runs([run(p50=value) for value in before], [run(p50=value) for value in after])
    change = found.find("read", None, "p50")
    assert change.low < -0.5
    assert change.high > 0.5
    judged = judge_change_condition(found, parse_condition("read.p50 < -10%", relative=True))
    assert change.change < -0.1
    assert judged.result is GateResult.UNDECIDED
    assert judged.needs == "a change that is further from its limit"
    near = judge_change_condition(found, parse_condition("read.p50 > +100%", relative=True))
    assert near.needs.endswith("runs a side, if the change stays")
    said = judge_comparison(replace(found, conditions=(judged,)))
    assert (said.word, said.tone) == (Word.UNDECIDED, Tone.DOUBTFUL)
    assert said.headline.startswith("undecided: of 1 condition 1 undecided; no difference shown")


def test_as_many_runs_as_are_asked_for_decide():
    random = np.random.default_rng(4)

    def of(runs):
        sides = [
            [run(p50=float(value)) for value in np.exp(random.normal(level, 0.05, runs))]
            for level in (0, math.log(1.15))
        ]
        return judge_change_condition(compare_runs(*sides), parse_condition("read.p50 > +10%", relative=True))

    asked = [int(found.needs.split()[1]) for _ in range(40) if (found := of(8)).needs.startswith("about")]
    assert np.median(asked) > 8
    decided = [of(60).result is not GateResult.UNDECIDED for _ in range(40)]  # 52 by the formula
    assert sum(decided) >= 34


def test_single_runs_decide_no_condition_on_a_change():
    found = compare_runs([run(p50=FigureSample(1.0, 0.01))], [run(p50=FigureSample(2.0, 0.01))])
    judged = judge_change_condition(found, parse_condition("p50 > +10%", relative=True))
    assert judged.result is GateResult.UNDECIDED
    assert "4 runs a side" in judged.needs
    assert (
        judge_change_condition(found, parse_condition("p50 > 1500ms", relative=True)).result
        is GateResult.FAILED
    )


def test_a_condition_on_the_only_size_class_of_an_operation_is_one_on_the_operation():
    """It failed, as if that had not been measured: there is no row for it."""

    def of(name, factor):
        return [
            replace(run(p50=factor * value), only_classes={"READ": name}) for value in (1.0, 1.01, 0.99, 1.0)
        ]

    found = compare_runs(of("tiny", 1.0), of("tiny", 1.2))
    for condition, result in (
        ("read.tiny.p50 > +10%", GateResult.FAILED),
        ("read.tiny.p50 > +30%", GateResult.PASSED),
        ("read.tiny.p50 > 3s", GateResult.PASSED),
        ("read.big.p50 > +30%", GateResult.FAILED),
        ("read.tiny.p99 > +30%", GateResult.UNDECIDED),
    ):
        assert judge_change_condition(found, parse_condition(condition, relative=True)).result is result, (
            condition
        )
    other = compare_runs(of("tiny", 1.0), of("big", 1.0))
    assert (
        judge_change_condition(other, parse_condition("read.tiny.p50 > +30%", relative=True)).came
        == "was not measured on both sides"
    )


def test_holm():
    assert apply_holm([0.01, 0.04, 0.03, 0.005]) == [True, False, False, True]
    assert apply_holm([0.01, 0.02, 0.02, 0.013]) == [True, True, True, True]
    assert apply_holm([]) == []


def equal_runs(random, count, figures, change=1.0, tilt=0.0):
    """Runs with many figures, each of which differs by 4 % from run to run."""
    return [
        RunFigures(
            "r",
            {
                ("READ", f"class {place}"): {"p50": FigureSample(float(value))}
                for place, value in enumerate(change * np.exp(random.normal(tilt * number, 0.04, figures)))
            },
        )
        for number in range(count)
    ]


def test_many_figures_are_no_more_often_wrong_than_one():
    random = np.random.default_rng(7)
    found = [compare_runs(equal_runs(random, 5, 32), equal_runs(random, 5, 32), 0.0) for _ in range(60)]
    alone = sum(any(change.p <= 0.05 for *_, change in each.changes()) for each in found)
    shown = sum(any(change.differs for *_, change in each.changes()) for each in found)
    assert alone > 30
    assert shown <= 7


def in_turn(runs, starts):
    return [replace(each, started=float(start)) for each, start in zip(runs, starts, strict=True)]


def test_runs_in_turn_are_compared_by_pairs():
    """A drift of 5 % from run to run hides a change of 3 %, but not where the sides were measured in turn."""
    random = np.random.default_rng(8)
    drift = [1.05**place for place in range(16)]
    noise_of = iter(random.normal(0, 0.002, 16))
    values = [
        level * math.exp(next(noise_of)) * (1.03 if place % 2 else 1) for place, level in enumerate(drift)
    ]
    runs = [
        replace(run(p50=value, rate=1 / value), started=float(place)) for place, value in enumerate(values)
    ]
    # A B B A: a pair's second one is not always the same side's.
    before, after = runs[::2], runs[1::2]
    found = compare_runs(before, after)
    assert "pairs of runs" in found.judgment
    change = found.find(None, None, "p50")
    assert change.word == "slower"
    assert change.low > 0.05
    assert compare_runs([replace(each, started=None) for each in before], after).find(
        None, None, "p50"
    ).word == ("no difference shown")
    assert found.drifts["p50"] == pytest.approx(1.05**15 - 1, rel=0.05)
    assert any(
        reason.startswith("Drift from the first run to the last")
        for reason in judge_comparison(found).reasons
    )


def test_a_condition_on_after_is_judged_by_the_mean_of_runs_that_were_measured_in_turn():
    """Between 0.8 and 1.3 s, the mean of four runs was taken for that of one, and found below 1.1 s."""
    values = (1.0, 1.3, 0.8, 1.05)
    before = in_turn([run(p50=0.9)] * 4, range(0, 8, 2))
    found = compare_runs(before, in_turn([run(p50=value) for value in values], range(1, 8, 2)))
    assert "pairs of runs" in found.judgment
    change = found.find(None, None, "p50")
    assert change.after_low < change.after < change.after_high
    assert (
        judge_change_condition(found, parse_condition("p50 > 1100ms", relative=True)).result
        is GateResult.UNDECIDED
    )
    assert (
        judge_change_condition(found, parse_condition("p50 > 3s", relative=True)).result is GateResult.PASSED
    )


def test_what_drifts_within_the_sides_is_no_change_between_them():
    """Six of six comparisons of equal runs, one side after the other, had the second one slower."""
    random = np.random.default_rng(9)
    wrong = wrong_without = 0
    for _ in range(40):
        values = [1.01**place * math.exp(random.normal(0, 0.01)) for place in range(16)]
        runs = [replace(run(p50=value), started=float(place)) for place, value in enumerate(values)]
        wrong += compare_runs(runs[:8], runs[8:]).find(None, None, "p50").differs
        plain = [replace(each, started=None) for each in runs]
        wrong_without += compare_runs(plain[:8], plain[8:]).find(None, None, "p50").differs
    assert wrong <= 4
    assert wrong_without >= 36


def in_order(levels, seed):
    """Two groups of eight runs, one after the other, with noise of 1 % from run to run."""
    noise_of = np.random.default_rng(seed)
    runs = [
        replace(run(p50=level * math.exp(noise_of.normal(0, 0.01))), started=float(place))
        for place, level in enumerate(levels)
    ]
    return judge_comparison(compare_runs(runs[:8], runs[8:]))


def test_the_verdict_names_a_drift_that_would_explain_it():
    said = in_order([1.004**place for place in range(16)], 3)
    assert said.word is Word.SLOWER
    assert re.search(r"; or a drift of 0\.\d % a run, which these runs allow: one side was", said.headline)
    # Nothing is good news that may be a drift.
    said = in_order([0.996**place for place in range(16)], 9)
    assert (said.word, said.outcome) == (Word.FASTER, Outcome.WARNED)
    # What these runs exclude is not named.
    said = in_order([1.0] * 8 + [1.1] * 8, 3)
    assert said.word is Word.SLOWER
    assert "or a drift" not in said.headline


def test_a_drift_is_allowed_for_in_its_own_direction_only():
    """A drift towards faster does not hide that the side measured later is slower."""
    noise = [0.004, -0.004, -0.002, 0.002, 0.002, -0.002, -0.004, 0.004]
    for direction in (1, -1):
        values = [
            math.exp(direction * 0.01 * place + noise[place % 8] + (0.15 if place >= 8 else 0))
            for place in range(16)
        ]
        runs = [
            replace(run(p50=value, rate=1 / value), started=float(place))
            for place, value in enumerate(values)
        ]
        changes = {name: compare_runs(runs[:8], runs[8:]).find(None, None, name) for name in ("p50", "rate")}
        # What the drift explains is in the interval: 0.08 of a difference of 0.23, or of 0.07.
        low, high = (math.log1p(each) for each in (changes["p50"].low, changes["p50"].high))
        middle = math.log1p(changes["p50"].change)
        near, far = sorted((middle - low, high - middle))
        assert far - near == pytest.approx(0.08, abs=0.005)
        assert (middle - low > high - middle) is (direction > 0)
        # A rate falls where latency rises.
        assert math.log1p(changes["rate"].low) == pytest.approx(-high)


def test_the_order_of_runs():
    assert find_run_order([0, 3, 4], [1, 2, 5]).pairs == ((0, 0), (1, 1), (2, 2))
    assert find_run_order([0, 1], [2, 3]).pairs == ()
    assert find_run_order([0, 1], [2, 3]).one_after_the_other
    assert find_run_order([0, None], [2, 3]) is None
    assert find_run_order([0, 0], [2, 3]) is None
    assert find_run_order([0], [1]).pairs == ()
    apart = find_run_order([0, 1, 2], [3, 4, 5])
    assert apart.slope([0.0, 1.0, 2.0], [9.0, 10.0, 11.0]) == pytest.approx(1.0)
    assert apart.carried_over([0.0, 1.0, 2.0], [9.0, 10.0, 11.0]) == pytest.approx(3.0)
    assert apart.drift([0.0, 1.0, 2.0], [9.0, 10.0, 11.0]) == pytest.approx(5.0)
    assert apart.carried_over([2.0, 1.0, 0.0], [11.0, 10.0, 9.0]) == pytest.approx(-3.0)
    # A drift that is less than twice its error is not carried over.
    assert apart.carried_over([0.0, 2.0, 1.0], [9.0, 11.0, 10.0]) == 0.0


def group(*values, of="READ", **more):
    return [run(operation=of, p50=value, rate=1 / value, **more) for value in values]


def test_the_verdict_names_the_largest_change():
    same, steps = (1.0, 1.001, 0.999, 1.0), (0.3, 0.6, 0.1)
    rows = [("READ", "a"), ("READ", "b"), ("READ", "c"), ("ALL", None)]
    sides = [
        [
            RunFigures(
                "r",
                {
                    key: {"p50": FigureSample(value * (1 + step * side))}
                    for key, step in zip(rows, (*steps, 0.05), strict=True)
                },
            )
            for value in same
        ]
        for side in (0, 1)
    ]
    assert (
        judge_comparison(compare_runs(*sides)).headline
        == "slower: ALL p50 (+5.0 %); most: READ b p50 (+60.0 %) and 2 more"
    )


def test_where_only_large_changes_could_be_shown_nothing_is_good():
    """A page was green under "no difference shown", of runs that could have shown 67 %."""
    coarse = compare_runs(group(1.0, 1.3, 0.8, 1.1), group(1.1, 0.8, 1.25, 0.95))
    said = judge_comparison(coarse)
    assert (said.word, said.tone) == (Word.SAME, Tone.DOUBTFUL)
    assert "% or more)" in said.headline
    assert any("would have been shown; more or longer" in reason for reason in said.reasons)
    slower = judge_comparison(compare_runs(group(1.0, 1.3, 0.8, 1.1), group(3.1, 2.8, 3.6, 2.9)))
    assert slower.word is Word.SLOWER
    assert not any("would have been shown" in reason for reason in slower.reasons)
    fine = judge_comparison(compare_runs(group(1.0, 1.01, 1.0, 0.99), group(1.0, 1.01, 1.0, 0.99)))
    assert (fine.word, fine.tone) == (Word.SAME, Tone.GOOD)


def test_a_hopeless_comparison_prints_no_digits_that_say_nothing():
    """``detects`` had fifteen digits, which cut off the names of figures and broke the table in two."""
    hopeless = compare_runs(group(1.0, 900.0, 0.01, 30.0), group(20.0, 0.02, 700.0, 1.0))
    assert judge_comparison(hopeless).headline == "no difference shown (detectable: >1,000 % or more)"
    row = next(line for line in text(hopeless).splitlines() if line.startswith("READ"))
    assert row.split()[-3:] == [">1,000", "%", "none"]


def test_an_interval_of_repeated_runs_that_says_nothing_is_a_dash():
    def table(*values):
        return products.find_writer(Product.REPEATED, "text")(group(*values))

    wide, narrow = table(1.0, 900.0, 0.01, 30.0), table(1.0, 1.3, 0.8, 1.1)
    assert "-: too wide to say anything." in wide
    assert next(line for line in wide.splitlines() if line.startswith("READ")).split()[3] == "-"
    assert "too wide" not in narrow


def test_errors_that_no_interval_judges_make_nothing_green():
    """The two sides of one run have no interval of their errors: one of which a third failed was fine."""
    same = group(1.0, 1.01, 1.0, 0.99)
    found = compare_runs(same, same)

    def with_errors(after):
        change = FigureChange(0.0, after, after)
        return judge_comparison(
            replace(
                found, rows=[replace(each, changes={**each.changes, "errors": change}) for each in found.rows]
            )
        )

    said = with_errors(0.3)
    assert (said.word, said.outcome) == (Word.SAME, Outcome.WARNED)
    assert any(
        reason.startswith("More operations failed: 0.00 % of all before, 30.0 % after.")
        for reason in said.reasons
    )
    for as_good in (0.0005, -0.3):
        assert with_errors(as_good).outcome is Outcome.GOOD


@pytest.mark.parametrize(
    ("p50", "errors", "headline"),
    [
        (
            1.0,
            (0.0, 0.05),
            "worse: ALL more errors (+5.0 points); most: READ more errors (+5.0 points); not shown of",
        ),
        (
            1.0,
            (0.05, 0.0),
            "better: ALL fewer errors (-5.0 points); most: READ fewer errors (-5.0 points)",
        ),
        (
            0.8,
            (0.0, 0.05),
            "worse and better: ALL more errors (+5.0 points); ALL p50 faster (-20.0 %)",
        ),
        (
            1.2,
            (0.0, 0.05),
            "slower: ALL more errors (+5.0 points); ALL p50 (+20.0 %); most: READ p50",
        ),
    ],
)
def test_what_fails_more_often_is_not_called_slower(p50, errors, headline):
    before, after = (
        [run(p50=value, errors=share)] * 4 for value, share in zip((1.0, p50), errors, strict=True)
    )
    said = judge_comparison(compare_runs(before, after))
    assert said.headline.startswith(headline)
    assert said.outcome is (Outcome.GOOD if headline.startswith("better") else Outcome.FAILED)


def test_a_small_change_of_errors_is_not_written_as_none():
    after = [run(errors=value) for value in (0.0004, 0.0005, 0.0003, 0.0004)]
    judged = judge_change_condition(
        compare_runs([run(errors=0.0)] * 4, after), parse_condition("errors > +0.01%", relative=True)
    )
    assert judged.result is GateResult.FAILED
    assert judged.came.startswith("+0.04 % (+0.03 to ")


def test_one_other_figure_has_its_share_alone():
    (reason,) = (
        each
        for each in judge_comparison(compare_runs([run(p50=1.0)] * 4, [run(p50=1.0)] * 4)).reasons
        if "Holm" in each
    )
    assert reason.startswith("The verdict stands on ALL p50 at 5 %; the other figure has 5 % (Holm). ")


def test_what_a_condition_allows_is_no_failure():
    found = repeated()
    judged = [
        judge_change_condition(found, parse_condition(text, relative=True))
        for text in ("p50 > +50%", "p50 > +10%")
    ]
    assert judge_comparison(found).tone is Tone.BAD
    assert judge_comparison(replace(found, conditions=(judged[0],))).tone is Tone.DOUBTFUL
    failed = judge_comparison(replace(found, conditions=tuple(judged)))
    assert (failed.word, failed.tone) == (Word.FAILED, Tone.BAD)


def test_every_format_has_the_same_verdict():
    judged = judge_change_condition(repeated(), parse_condition("p50 > +20%", relative=True))
    found = replace(repeated(), conditions=(judged,))
    headline = judge_comparison(found).headline
    assert headline.startswith("undecided: ")
    assert headline in text(found).replace("\n  ", " ")
    assert headline in markdown(found)
    assert (
        json.loads(products.find_writer(Product.COMPARISON, "json")(found))["verdict"]["headline"] == headline
    )
    assert headline in products.find_writer(Product.COMPARISON, "html")(found).replace("&#39;", "'")
    suite = ElementTree.fromstring(products.find_writer(Product.COMPARISON, "junit")(found))
    assert suite.get("skipped") == "2"
    assert next(suite.iter("skipped")).get("message") == headline


def test_megabytes_are_no_bytes():
    found = compare_runs([run(mb_per_s=4.0)], [run(mb_per_s=5.0)])
    record = json.loads(products.find_writer(Product.COMPARISON, "json")(found))
    assert record["rows"][0]["changes"]["mb_per_s"]["before"] == pytest.approx(4.0)
    row = next(csv.DictReader(io.StringIO(products.find_writer(Product.COMPARISON, "csv")(found))))
    assert (row["Figure"], float(row["After"])) == ("mb_per_s", pytest.approx(5.0))


def test_conditions_on_what_is_not_compared():
    for wrong in ("read.max > +10%", "errors > 3", "retries > 3"):
        with pytest.raises(ValueError, match="compared"):
            check_change_condition(parse_condition(wrong, relative=True))


def test_a_table_of_configurations():
    runs = [
        run(facts={"scenario": "4K", "users": "64"}, rate=rate, p99=0.02, mb_per_s=4.0)
        for rate in (99.0, 101.0)
    ] + [run(facts={"scenario": "1M", "users": "64"}, rate=9.0)]
    lines = many(runs).splitlines()
    assert lines[0].split() == ["scenario", "runs", "GET/s", "all/s", "MB/s", "p99", "ms"]
    assert lines[1].split()[:6] == ["4K", "2", "100.0", "+-1.0", "%", "100.0"]
    assert lines[2].split() == ["1M", "1", "9.00", "9.00", "-", "-"]


def test_texts_of_stat_files_move_no_cursor():
    runs = [run(facts={"scenario": "4K\x1b[2J"}, rate=1.0), run(facts={"scenario": "1M"}, rate=9.0)]
    assert "4K\ufffd[2J" in many(runs)
    found = compare_runs([run("a\x1b", p50=1.0)], [run(p50=2.0)])
    assert "\x1b" not in markdown(found) + text(found)


def test_markdown_shows_names_as_they_are():
    found = compare_runs(
        [run("<img src=x>", operation="A|B", p50=1.0)], [run("@all `x`", operation="A|B", p50=2.0)]
    )
    shown = markdown(found)
    assert r"before: \<img src=x\> (1 run)" in shown
    assert "after: @\u2060all \\`x\\` (1 run)" in shown
    assert r"| A\|B | p50 ms |" in shown


@pytest.mark.parametrize("more", [[], ["--to"], ["whole"]], ids=["two files", "two groups", "a table"])
def test_a_file_that_cannot_be_read_to_its_end_fails(tmp_path, more):
    cut = tmp_path / "cut.stat.gz"
    cut.write_bytes(KNOWN.read_bytes()[:-60])
    words = [str(KNOWN) if each == "whole" else each for each in more]
    assert main(["compare", str(cut), *words, str(KNOWN)]) == 1
    assert main(["compare", str(KNOWN), *words, str(KNOWN)]) == 0


def test_a_file_that_is_given_twice_is_named(capsys):
    assert main(["compare", str(KNOWN), str(KNOWN)]) == 0
    assert f"! {KNOWN.name} was given 2 times\n" in capsys.readouterr().out
    assert main(["compare", *[str(KNOWN)] * 3]) == 0
    assert f"{KNOWN.name} was given 3 times" in capsys.readouterr().err


def test_who_forgets_to_between_two_labels_is_told_of_it(capsys, monkeypatch):
    found = {"@old": [str(KNOWN)] * 2, "@new": [str(KNOWN)] * 2}
    monkeypatch.setattr(
        compare_command.archives,
        "resolve_references",
        lambda _, names: [path for name in names for path in found.get(name, [name])],
    )
    assert main(["compare", "@old", "@new"]) == 0
    assert "What changed: ssbench-master compare @old --to @new\n" in capsys.readouterr().err
    assert main(["compare", "@old", "--to", "@new"]) == 0
    assert "What changed" not in capsys.readouterr().err


def test_one_run_without_sides_is_not_enough(capsys):
    assert main(["compare", str(KNOWN)]) == 2
    assert "two stat files, as in 'ssbench-master compare last-1 last'" in capsys.readouterr().err


def test_a_dash_is_explained_below_the_table() -> None:
    whole, lacking = run("a", p50=0.1, rate=10.0, p99=0.2), run("b", p50=0.1, rate=10.0)
    for shown in (text(compare_runs([whole], [lacking])), many([whole, lacking])):
        assert "-: not measured, too few operations (p99 needs 1,000), or only a lower bound" in shown
        assert max(map(len, shown.splitlines())) <= 80
    assert "-: not measured" not in many([run("a", rate=1.0, mb_per_s=1.0, p99=0.1)])


def test_an_interval_that_says_nothing_is_a_dash() -> None:
    wide = compare_runs([run("a", p50=0.1), run("b", p50=0.9)], [run("c", p50=0.2), run("d", p50=0.8)])
    shown = text(wide)
    assert "-100.0 to" not in shown
    assert "of intervals: too wide to say anything" in " ".join(shown.split())


def test_what_several_runs_warn_of_is_one_line_with_a_count():
    def warned(name, *warnings):
        return replace(run(name, p50=1.0), warnings=tuple(f"{name}: {each}" for each in warnings))

    shared = "The host vm{} was shared: other programs used {} % of its CPU"
    found = compare_runs(
        [warned("a", shared.format(1, "75.2"), "no end"), warned("b", shared.format(1, "8.1"))],
        [warned("c", shared.format(2, "60"))],
    )
    assert found.warnings == (f"a: {shared.format(1, '75.2')} (and alike in 2 more runs)", "a: no end")
