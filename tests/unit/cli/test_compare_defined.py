"""Comparisons of runs whose scenario defines operations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from result_rows import many

from ssbench.base.errors import ExitCode
from ssbench.cli import master
from ssbench.results.run_description import RunDescription, RunSummary
from ssbench.results.writer import RunResultsWriter
from ssbench.scenario.model import Scenario, SizeClass
from ssbench.scenario.operations import FIRST_DEFINED_CODE, OperationSettings


def write_run(file: Path, seconds: float) -> Path:
    """The stat file of a run of nine seconds whose operations are all of the scenario's own."""
    scenario = Scenario(
        "s",
        (SizeClass("o", 1, 1, 1, {"mine": 1.0}),),
        user_count=1,
        run_seconds=9.0,
        operations=(OperationSettings("mine", defined=("GET", "none", FIRST_DEFINED_CODE)),),
    )
    writer = RunResultsWriter(file, RunDescription(scenario, started=1e9))
    ended = 1e9 + np.linspace(0.01, 9.0, 900)
    writer.add(
        many(range(900), operation=FIRST_DEFINED_CODE, completed=ended, size=1, last_byte=seconds, status=200)
    )
    writer.end(RunSummary(1e9 + 9.0))
    return file


@pytest.mark.parametrize(
    ("condition", "code", "said"),
    [
        ("mine.p50 > 1s", ExitCode.OK, "fail-if mine.p50 > 1s: ok"),
        ("mine.p50 > 15ms", ExitCode.THRESHOLD, "FAILED"),
        ("other.p50 > 1s", ExitCode.USAGE, "'other' is not an operation (create, "),
    ],
)
def test_conditions_know_the_operations_that_the_runs_define(
    condition: str, code: ExitCode, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, after = write_run(tmp_path / "a.stat.gz", 0.01), write_run(tmp_path / "b.stat.gz", 0.02)
    assert master.main(["compare", str(before), "--to", str(after), "--fail-if", condition]) == code
    assert said in "".join(capsys.readouterr())
