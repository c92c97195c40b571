"""Runs as rows of suites, or of facts in which they differ; and two suites beside each other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from golden_words import GoldenWords
from result_rows import many
from said import CALLS_TOGETHER
from suite_runs import make_run, row

from ssbench.base.errors import ExitCode, GateResult, UsageError
from ssbench.comparison.comparison_verdict import check_change_condition
from ssbench.comparison.family import judge_family, judge_rows
from ssbench.comparison.suite_rows import (
    SuiteRow,
    compare_rows_between,
    compare_suites,
    read_varied_files,
    split_files_between,
    split_suite_rows,
)
from ssbench.document.figures import FIGURES
from ssbench.results.run_description import RunDescription, RunSummary
from ssbench.results.writer import RunResultsWriter
from ssbench.scenario.conditions import parse_condition
from ssbench.scenario.model import Scenario, SizeClass
from ssbench.scenario.operations import OPERATIONS


def test_two_suites_row_by_row(golden_words: GoldenWords) -> None:
    names = [f"row {place}" for place in range(6)]
    before = [row(name, 4) for name in names]
    after = [
        replace(row(f"{name}'", 4, 1.5 if name == "row 3" else 1.0), name=name)
        for name in [*names[:5], "new"]
    ]
    found = compare_suites(("old", before), ("new", after), 0.01)
    assert [each.name for each in found.rows] == names[:5]
    assert {each.name for each, *_ in found.shown()} == {"row 3"}
    assert found.warnings[:2] == ("only before: row 5", "only after: new")
    assert judge_family(found).headline.startswith("slower: row 3 ")
    conditions = [parse_condition("p50 > +20%", relative=True)]
    assert FIGURES["p50"].compared
    check_change_condition(conditions[0])
    judged_rows = judge_rows(found, conditions)
    failed = [each for each in judged_rows.conditions if each.result is GateResult.FAILED]
    assert [each.condition for each in failed] == ["row 3: p50 > +20%", "row 5: p50 > +20%"]
    golden_words(failed[1].came)  # a suite that ended early is not green
    assert judge_family(judged_rows).exit_code is ExitCode.THRESHOLD
    with golden_words.raises(UsageError):
        judge_rows(found, [parse_condition("read.p50 > +20%", relative=True)])
    with pytest.raises(UsageError, match="no rows of suites in common"):
        compare_suites(("old", before), ("new", [SuiteRow("x", ())]), 0.01)


def test_several_calls_of_a_suite_are_not_taken_for_one_unnoticed(golden_words: GoldenWords) -> None:
    def runs(*calls: str) -> list[SuiteRow]:
        made = [
            replace(make_run(place, number=number), file=f"/r/s.{call}.a-{number}.stat.gz")
            for place, call in enumerate(calls)
            for number in (1, 2)
        ]
        return [SuiteRow("a", tuple(made))]

    early, late = "2026-01-02.030405", "2026-02-03.040506"
    found = compare_suites(("old", runs(early)), ("new", runs(late, early)), 0.01)
    (said,) = (each for each in found.warnings if "calls" in each)
    golden_words(said)
    # Of names of other forms it is said all the same.
    renamed = [SuiteRow("a", tuple(replace(make_run(place), file=f"x{place}.stat.gz") for place in range(3)))]
    found = compare_suites(("old", renamed), ("new", runs(late)), 0.01)
    assert any(each.startswith(f"old: runs of 3 {CALLS_TOGETHER}; to") for each in found.warnings)
    found = compare_suites(("old", runs(early)), ("new", runs(late)), 0.01)
    assert not any("calls" in each for each in found.warnings)


def write_run(file: Path, users: int, think_time: float, number: int, policy: str | None = None) -> Path:
    classes = (SizeClass("o", 1, 1, 1, {"read": 1.0}),)
    scenario = Scenario("s", classes, user_count=users, run_seconds=9.0, think_time=think_time, policy=policy)
    began = 1e9 + 100 * number
    options = {"label": f"with-{think_time}"}
    writer = RunResultsWriter(file, RunDescription(scenario, seed=number, started=began, options=options))
    ended = began + np.linspace(0.01, 9.0, 900)
    code = OPERATIONS.named("read").code
    writer.add(many(range(900), operation=code, completed=ended, size=1, last_byte=0.01))
    writer.end(RunSummary(began + 9.0))
    return file


def test_runs_of_no_suite_are_rows_by_what_differs(tmp_path: Path) -> None:
    """Their labels go along with the think time, and tell no rows apart; seeds never do."""
    files = [
        write_run(tmp_path / f"{users}-{think_time}.stat.gz", users, think_time, 2 * users + bool(think_time))
        for users in (4, 8)
        for think_time in (0.0, 0.5)
    ]
    rows = read_varied_files(files, "think_time")
    assert [each.name for each in rows] == [
        f"runs users={users} think_time={words}" for users in (4, 8) for words in ("none", "0.5")
    ]
    table = split_suite_rows(rows, "think_time")
    assert (table.sides, [*table.rows]) == (("none", "0.5"), ["runs users=4", "runs users=8"])
    assert [run.file for run in table.rows["runs users=8"][1]] == [str(files[3])]
    by_label = split_suite_rows(read_varied_files(files, "label"), "label")
    assert (by_label.sides, [*by_label.rows]) == (("with-0.0", "with-0.5"), [*table.rows])
    # Without such a key all that differs is known, for a message.
    assert read_varied_files(files, "size")[0].words.keys() == {"users", "think_time", "label"}


def test_what_else_differs_between_the_values_of_a_key_is_said(tmp_path: Path) -> None:
    files = [
        write_run(tmp_path / f"{users}-{think_time}.stat.gz", users, think_time, users, policy)
        for users, think_time, policy in ((4, 0.0, None), (4, 0.5, "gold"), (8, 0.0, None), (8, 0.5, "gold"))
    ]
    files.append(write_run(tmp_path / "alone.stat.gz", 16, 0.5, 16, "gold"))
    found = compare_rows_between(split_files_between(files, "think_time"), "think_time", 0.01)
    assert [each.name for each in found.rows] == ["runs users=4", "runs users=8"]
    assert found.warnings == (
        "no runs with think_time=none: runs users=16",
        "policy differs: none before, gold after (all rows)",
    )
