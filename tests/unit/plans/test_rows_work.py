"""Runs that are rows of one table: which there are, and who writes their pages."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from simulated_runs import reads

from ssbench.base.errors import UsageError
from ssbench.comparison.family import count_needed_rounds
from ssbench.comparison.suite_rows import KeptRun, SuiteRow
from ssbench.plans.plan_work import PlanSide
from ssbench.plans.rows_work import PhasesWork, SuiteWork, make_suite_cells
from ssbench.run.bench_options import RunOptions, SuitePlace
from ssbench.run.plan import DoneTrial, EndedRun, PlanEnd
from ssbench.scenario.scenario_reading import read_scenario
from ssbench.scenario.suite_file import read_suite

SCENARIO = read_scenario("very_small")


def test_a_suite_has_a_way_to_run_for_each_row() -> None:
    suite = read_suite("quick")
    cells = make_suite_cells(suite, RunOptions(seed=7))
    assert [cell.row for cell in cells] == [each.name for each in suite.variants]
    assert [cell.scenario for cell in cells] == [each.scenario for each in suite.variants]
    assert {cell.options.seed for cell in cells} == {7}
    first = suite.variants[0]
    assert cells[0].options.suite_place == SuitePlace(suite.name, first.name, row_words=first.words)
    others = [replace(each.scenario, accounts=2) for each in suite.variants]
    assert [cell.scenario for cell in make_suite_cells(suite, RunOptions(), others)] == others
    work = SuiteWork(suite, cells, 0.0, None)
    assert work.forecast().startswith(f"{len(cells)} rows, {len(cells) * suite.rounds} runs")


def test_a_suite_says_before_its_runs_what_cannot_be_compared() -> None:
    suite = read_suite("quick")
    cells = make_suite_cells(suite, RunOptions())
    with pytest.raises(UsageError, match="--between users: expected profile"):
        SuiteWork(suite, cells, 0.0, None, between="users")
    compared = len(cells) - len({each.row for each in suite.variants})  # all values but the first of each row
    rounds = count_needed_rounds(compared)
    short, enough = (
        SuiteWork(replace(suite, rounds=each), cells, 0.0, None, between="profile").find_shortage()
        for each in (rounds - 1, rounds)
    )
    assert short == f"--rounds {rounds - 1}: a verdict on {compared} rows needs {rounds} rounds or more"
    assert enough == SuiteWork(suite, cells, 0.0, None).find_shortage() == ""


def test_a_row_without_a_run_has_no_page(tmp_path: Path) -> None:
    written: list[tuple[str, str]] = []

    def write(file: str, name: str) -> str:
        written.append((file, name))
        return f"{name}.html"

    work = PhasesWork([("read", [PlanSide(SCENARIO, RunOptions())])], None, 0.0, write)
    (cell,) = work.rule.cells
    row = SuiteRow("read", ())
    assert work._write_page(row, cell) == row
    assert not written


def test_phases_have_names_of_their_own_on_both_sides() -> None:
    sides = [PlanSide(SCENARIO, RunOptions())] * 2
    work = PhasesWork([("put", sides), ("get", sides)], 2, 0.0, None)
    assert [cell.name for cell in work.rule.cells] == ["a.put", "b.put", "a.get", "b.get"]
    assert [cell.row for cell in work.rule.cells] == ["put", "put", "get", "get"]


def test_rounds_of_phases_are_not_taken_for_several_calls() -> None:
    """That is said of files of suites that lie in one folder."""
    work = PhasesWork([("get", [PlanSide(SCENARIO, RunOptions())] * 2)], 3, 0.0, None)
    statistics = reads(np.random.default_rng(1), 20)
    end: PlanEnd[KeptRun] = PlanEnd()
    while (trial := work.rule.next(end.done)) is not None:
        path = Path(f"x.{trial.label}.stat.gz")
        end.done.append(DoneTrial(trial, path, work.rule.keep(trial, statistics, EndedRun(path))))
    found = work.conclude(end, "").found
    assert [row.runs for row in found.rows] == [(3, 3)]
    assert not any("calls" in each for each in found.warnings)
