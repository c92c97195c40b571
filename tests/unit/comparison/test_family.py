"""Many comparisons with one verdict: the level that they share, and what they know of each other."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from golden_words import GoldenWords
from simulated_runs import reads
from simulated_suites import compare_simulated, make_suite

from ssbench.base.errors import ExitCode
from ssbench.comparison.comparison_verdict import Word
from ssbench.comparison.family import (
    ROW_FIGURE_KEYS,
    RowRun,
    compare_table,
    count_needed_rounds,
    judge_family,
    make_family_csv,
    make_family_json,
    make_row_run,
)
from ssbench.comparison.run_figures import FigureSample
from ssbench.comparison.run_table import RunTable
from ssbench.document.elements import View
from ssbench.reports import products
from ssbench.reports.products import Product
from ssbench.statistics.run_verdict import Outcome


@pytest.mark.long
def test_equal_suites_are_silent_in_nineteen_of_twenty() -> None:
    shown = [compare_simulated(seed, 4, spread=0.5).shown() for seed in range(60)]
    assert sum(map(bool, shown)) <= 6  # of 3, within two standard deviations


@pytest.mark.long
@pytest.mark.parametrize("shares", [{"stores": 0.9}, {"common": 0.9}])
def test_rows_that_are_slow_in_the_same_rounds_are_silent_too(shares: dict[str, float]) -> None:
    """Two stores of one scenario are measured one after the other; all rows feel what the cluster does."""
    shown = [compare_simulated(seed, 3, spread=0.5, **shares).shown() for seed in range(30)]
    assert sum(map(bool, shown)) <= 3


def test_a_row_that_is_slower_at_one_of_two_stores_is_found() -> None:
    found = [
        "row 10"
        in [row.name for row, *_ in compare_simulated(seed, 4, spread=0.5, slow=10, stores=0.9).shown()]
        for seed in range(10)
    ]
    assert sum(found) >= 9


def test_single_failures_are_no_change() -> None:
    """One in each of three rounds, and none before, have no variance, and are not sure at all."""
    sides = [
        [RowRun({"errors": FigureSample(failed / 1000, 1.96 * math.sqrt(failed + 1) / 1000)})] * 3
        for failed in (0, 1)
    ]
    assert not compare_table(RunTable(("a", "b"), {str(row): sides for row in range(20)})).shown()


def test_a_row_ten_percent_slower_is_found_in_eighteen_of_twenty() -> None:
    found = [
        "row 10" in [row.name for row, *_ in compare_simulated(seed, 4, spread=0.5, slow=10).shown()]
        for seed in range(20)
    ]
    assert sum(found) >= 18


def test_all_figures_of_all_rows_share_the_level() -> None:
    found = compare_simulated(1, 4)
    # 20 rows with 7 figures, and errors where there were some.
    assert 140 <= found.tests <= 144
    assert not found.in_turn


def test_a_row_knows_how_much_the_others_differ() -> None:
    """By its own four runs a side, none of 160 figures could be shown: Student's t of 6 is too wide."""
    found = compare_simulated(3, 4, slow=10)
    change = next(row for row in found.rows if row.name == "row 10").changes["p50"]
    assert change.word == "slower"
    assert change.p is not None
    assert change.p < 0.05 / 160


def test_two_runs_a_side_allow_no_word(golden_words: GoldenWords) -> None:
    found = compare_simulated(1, 2, slow=3)
    assert not found.is_judged
    verdict = judge_family(found)
    assert (verdict.word, verdict.outcome, verdict.headline) == (
        Word.UNDECIDED,
        Outcome.UNDECIDED,
        "no verdict",
    )
    golden_words(verdict.reasons[0])


@pytest.mark.parametrize("rows", [1, 2, 3, 6, 7])
def test_so_many_rounds_in_turn_are_needed(rows: int) -> None:
    """A plan that says before its first run that rounds are too few says what its end would."""
    needed = count_needed_rounds(rows)
    for rounds, is_judged in ((needed - 1, False), (needed, True)):
        rng = np.random.default_rng(2)
        sides = (make_suite(rng, [0.01] * rows, rounds, begins=begins) for begins in (0.0, 10.0))
        speeds = (
            [
                [replace(run, figures={**run.figures, "errors": FigureSample(0.0)}) for run in row]
                for row in side
            ]
            for side in sides
        )
        named = {str(place): both for place, both in enumerate(zip(*speeds, strict=True))}
        assert compare_table(RunTable(("a", "b"), named)).is_judged is is_judged


def test_rows_in_turn_are_pairs() -> None:
    """A drift of 30 % a round is no difference."""
    rng = np.random.default_rng(1)
    rows = {}
    for place, (before, after) in enumerate(
        zip(make_suite(rng, [0.01] * 8, 4), make_suite(rng, [0.01] * 8, 4, begins=10.0), strict=True)
    ):
        for runs in (before, after):
            for number, run in enumerate(runs):
                drift = 1.3**number
                runs[number] = type(run)(
                    {
                        key: type(each)(each.value * (drift if "p" in key[-3:] else 1 / drift))
                        for key, each in run.figures.items()
                    },
                    run.started,
                )
        rows[str(place)] = before, after
    found = compare_table(RunTable(("a", "b"), rows))
    assert found.in_turn
    assert not found.shown()
    assert (found.detectable("p50") or 1.0) < 0.1


def test_several_sides_beside_the_first_one_share_the_level() -> None:
    """Their differences are alike, because all have the first side in them; luck shows no more for that."""
    rng = np.random.default_rng(6)
    found = []
    for _ in range(60):
        sides = [make_suite(rng, [0.015] * 4, 4, begins=begins) for begins in (0.0, 10.0, 20.0)]
        table = compare_table(
            RunTable(("4", "8", "16"), {str(row): [each[row] for each in sides] for row in range(4)})
        )
        assert [each.name for each in table.rows[:3]] == ["0: 8", "0: 16", "1: 8"]
        assert table.is_judged
        found.append(bool(table.shown()))
    assert sum(found) <= 5


def test_what_a_side_lacks_is_not_compared() -> None:
    rng = np.random.default_rng(2)
    (before,), (after,) = make_suite(rng, [0.01], 4), make_suite(rng, [0.01], 4)
    after[2] = type(after[2])({key: each for key, each in after[2].figures.items() if key != "p99"})
    changes = compare_table(RunTable(("a", "b"), {"row": (before, after)})).rows[0].changes
    assert "p99" not in changes
    assert "p90" in changes


def test_the_report_has_a_row_for_each_comparison() -> None:
    found = compare_simulated(3, 4, slow=10)
    verdict = judge_family(found)
    assert verdict.headline.startswith("slower: row 10 ")
    assert verdict.exit_code is ExitCode.OK
    text = products.find_writer(Product.SUITES, "text")(found, View())
    line = next(line for line in text.splitlines() if line.startswith("row 10"))
    assert line.count("*") >= 3
    assert "share 5 % (Holm)" in " ".join(text.split())
    lines = make_family_csv(found).splitlines()
    assert lines[0].startswith("row,runs_before,runs_after,figure,before,after,change,low,high,word")
    assert len(lines) == 1 + 20 * 8
    report = json.loads(make_family_json(found))
    assert report["format"] == "ssbench suites"
    assert report["verdict"]["word"] == "slower"
    assert len(report["rows"]) == 20


def test_what_is_kept_of_a_run() -> None:
    statistics = reads(np.random.default_rng(1), 30)
    run = make_row_run(statistics)
    assert set(run.figures) <= set(ROW_FIGURE_KEYS)
    assert {"rate", "p50", "p90", "errors"} <= set(run.figures)
    p50 = statistics.total.lines[0].latency.percentile(50)
    assert math.isclose(run.figures["p50"].value, p50)
    assert (run.figures["errors"].half or 0) > 0
