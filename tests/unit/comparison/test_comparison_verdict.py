"""The verdict of a comparison, and conditions on changes."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from compared_runs import group, repeated, run
from golden_words import GoldenWords

from ssbench.base.errors import GateResult
from ssbench.comparison.change import FigureChange
from ssbench.comparison.comparison_verdict import (
    Word,
    check_change_condition,
    judge_change_condition,
    judge_comparison,
)
from ssbench.comparison.run_comparison import compare_runs
from ssbench.comparison.run_figures import FigureSample, RunFigures
from ssbench.document.elements import Tone
from ssbench.scenario.conditions import parse_condition
from ssbench.statistics.run_verdict import Outcome


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


def test_a_condition_is_undecided_where_the_interval_has_its_limit_in_it(golden_words: GoldenWords):
    """A change of -21 % between -69 and +103 % was called a failure of -10 %."""
    before, after = (0.01, 0.02, 0.005, 0.012), (0.011, 0.004, 0.02, 0.0053)
    found = compare_runs([run(p50=value) for value in before], [run(p50=value) for value in after])
    change = found.find("read", None, "p50")
    assert change.low < -0.5
    assert change.high > 0.5
    judged = judge_change_condition(found, parse_condition("read.p50 < -10%", relative=True))
    assert change.change < -0.1
    assert judged.result is GateResult.UNDECIDED
    golden_words(judged.needs)
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


def test_a_condition_on_the_only_size_class_of_an_operation_is_one_on_the_operation(
    golden_words: GoldenWords,
):
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
    golden_words(judge_change_condition(other, parse_condition("read.tiny.p50 > +30%", relative=True)).came)


def in_turn(runs, starts):
    return [replace(each, started=float(start)) for each, start in zip(runs, starts, strict=True)]


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


def in_order(levels, seed):
    """Two groups of eight runs, one after the other, with noise of 1 % from run to run."""
    noise_of = np.random.default_rng(seed)
    runs = [
        replace(run(p50=level * math.exp(noise_of.normal(0, 0.01))), started=float(place))
        for place, level in enumerate(levels)
    ]
    return judge_comparison(compare_runs(runs[:8], runs[8:]))


def test_the_verdict_names_a_drift_that_would_explain_it(golden_words: GoldenWords):
    said = in_order([1.004**place for place in range(16)], 3)
    assert said.word is Word.SLOWER
    golden_words(said.headline)
    # Nothing is good news that may be a drift.
    said = in_order([0.996**place for place in range(16)], 9)
    assert (said.word, said.outcome) == (Word.FASTER, Outcome.WARNED)
    # What these runs exclude is not named.
    said = in_order([1.0] * 8 + [1.1] * 8, 3)
    assert said.word is Word.SLOWER
    assert "or a drift" not in said.headline


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


@pytest.mark.parametrize(("share", "tone"), [(0.3, Tone.DOUBTFUL), (0.005, Tone.GOOD), (0.0, Tone.GOOD)])
def test_what_fails_on_both_sides_is_not_green(share, tone):
    """Latencies and rates are of the others: that they are as before is no good news of the store."""
    sides = (
        [run(p50=factor * (1 + number / 10_000), rate=100 / factor, errors=share) for number in range(8)]
        for factor in (1.0, 0.5)
    )
    found = judge_comparison(compare_runs(*sides))
    assert found.word is Word.FASTER
    assert found.tone is tone
    assert found.headline.endswith("; 30.0 % of operations failed after") is (share == 0.3)


def test_a_small_change_of_errors_is_not_written_as_none():
    after = [run(errors=value) for value in (0.0004, 0.0005, 0.0003, 0.0004)]
    judged = judge_change_condition(
        compare_runs([run(errors=0.0)] * 4, after), parse_condition("errors > +0.01%", relative=True)
    )
    assert judged.result is GateResult.FAILED
    assert judged.came.startswith("+0.04 % (+0.03 to ")


def test_one_other_figure_has_its_share_alone(golden_words: GoldenWords):
    (reason,) = (
        each
        for each in judge_comparison(compare_runs([run(p50=1.0)] * 4, [run(p50=1.0)] * 4)).reasons
        if "Holm" in each
    )
    golden_words(reason)


def mixed(reads, p50, all_p50, number, errors=0.0):
    """A run of 100 operations a second, of which a share are reads; writes take thrice as long."""
    rows = {
        ("READ", None): {"rate": 100 * reads, "p50": p50},
        ("CREATE", None): {"rate": 100 * (1 - reads) * (1 - errors), "p50": 3 * p50, "errors": errors},
        ("ALL", None): {"rate": 100.0, "p50": all_p50, "errors": errors * (1 - reads)},
    }
    chance = 1 + number / 1000
    return RunFigures(
        f"r{number}",
        {
            key: {
                name: FigureSample(value if name == "errors" else value * chance)
                for name, value in row.items()
            }
            for key, row in rows.items()
        },
    )


def test_figures_of_all_operations_say_nothing_where_the_mix_is_another():
    """More reads, fewer writes: the p50 of all falls by a third, though both are a fifth slower."""
    before = [mixed(0.5, 0.010, 0.020, number) for number in range(4)]
    after = [mixed(0.9, 0.012, 0.013, number) for number in range(4)]
    comparison = compare_runs(before, after)
    verdict = judge_comparison(comparison)
    assert verdict.word is Word.UNDECIDED
    assert verdict.headline == "no verdict: the mix differs: 50.0 % READ before, 90.0 % after"

    def judge(text):
        return judge_change_condition(comparison, parse_condition(text, relative=True))

    assert [judge(text).result for text in ("p50 > +10%", "rate < -5%", "read.p50 > +10%", "p50 > 1s")] == [
        GateResult.UNDECIDED,
        GateResult.UNDECIDED,
        GateResult.FAILED,
        GateResult.PASSED,
    ]
    assert "conditions on operations" in judge("p50 > +10%").needs
    # Half of the writes fail: they were sent all the same, and that is worse.
    failing = [mixed(0.5, 0.012, 0.013, number, 0.5 + number / 100) for number in range(4)]
    assert judge_comparison(compare_runs(before, failing)).word is not Word.UNDECIDED
    alike = [mixed(0.55, 0.012, 0.024, number) for number in range(4)]
    assert "slower" in judge_comparison(compare_runs(before, alike)).word


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


def test_conditions_on_what_is_not_compared():
    for wrong in ("read.max > +10%", "errors > 3", "retries > 3"):
        with pytest.raises(ValueError, match="compared"):
            check_change_condition(parse_condition(wrong, relative=True))
