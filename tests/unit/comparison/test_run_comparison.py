"""Comparisons of runs, at the level of their figures: rows, pairs, drifts, and what they warn of."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from compared_runs import run

from ssbench.comparison.comparison_verdict import judge_comparison
from ssbench.comparison.run_comparison import compare_runs, join_alike_warnings
from ssbench.comparison.run_figures import FigureSample, RunFigures


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


def test_it_warns_of_what_should_have_been_the_same():
    one, two = {"scenario": "a", "users": "4", "seed": "1"}, {"scenario": "a", "users": "8", "seed": "2"}
    found = compare_runs([run(facts=one, p50=1.0)], [run(facts=two, p50=1.0)])
    assert found.warnings == ("users differs: 4 before, 8 after", "seed differs: 1 before, 2 after")
    mixed = compare_runs([run(facts=one, p50=1.0), run(facts=two, p50=1.0)], [run(facts=one, p50=1.0)])
    assert mixed.warnings == ("users differs: 4 and 8 before, 4 after",)
    assert compare_runs([run(facts=one, p50=1.0)], [run(facts=one, p50=1.0)]).warnings == ()


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


@pytest.mark.long
def test_many_figures_are_no_more_often_wrong_than_one():
    random = np.random.default_rng(7)
    found = [compare_runs(equal_runs(random, 5, 32), equal_runs(random, 5, 32), 0.0) for _ in range(60)]
    alone = sum(any(change.p <= 0.05 for *_, change in each.changes()) for each in found)
    shown = sum(any(change.differs for *_, change in each.changes()) for each in found)
    assert alone > 30
    assert shown <= 7


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


def test_what_several_runs_warn_of_is_one_line_with_a_count():
    def warned(name, *warnings):
        return replace(run(name, p50=1.0), warnings=tuple(f"{name}: {each}" for each in warnings))

    shared = "The host vm{} was shared: other programs used {} % of its CPU"
    found = compare_runs(
        [warned("a", shared.format(1, "75.2"), "no end"), warned("b", shared.format(1, "8.1"))],
        [warned("c", shared.format(2, "60"))],
    )
    assert found.warnings == (f"a: {shared.format(1, '75.2')}; likewise in 2 more runs", "a: no end")


def test_what_one_run_warns_of_several_groups_or_workers_stays_apart():
    late = "group web{}: {} operations due began late"
    overloaded = "Load generator overloaded: worker {} was late"
    runs = [
        ("a", [late.format(1, 20), late.format(2, 30), overloaded.format(1), overloaded.format(2)]),
        ("b", [late.format(2, 40), overloaded.format(3)]),
        ("c", [late.format(3, 40)]),
    ]
    assert join_alike_warnings((name, [f"{name}: {each}" for each in texts]) for name, texts in runs) == [
        f"a: {late.format(1, 20)}",
        f"a: {late.format(2, 30)}; likewise in 1 more run",
        f"a: {overloaded.format(1)}; likewise in 1 more run",
        f"a: {overloaded.format(2)}",
        f"c: {late.format(3, 40)}",
    ]
