"""A run that is under way, or was killed: each command that reads its file says so, and ends with 1."""

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
from ssbench.scenario.operations import OPERATIONS


def write_run(file: Path) -> None:
    """Write the stat file of a run of nine seconds."""
    scenario = Scenario("s", (SizeClass("o", 1, 1, 1, {"read": 1.0}),), user_count=1, run_seconds=9.0)
    writer = RunResultsWriter(file, RunDescription(scenario, started=1e9))
    ended = 1e9 + np.linspace(0.01, 9.0, 900)
    code = OPERATIONS.named("read").code
    writer.add(many(range(900), operation=code, completed=ended, size=1, last_byte=0.01))
    writer.end(RunSummary(1e9 + 9.0))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["report-scenario", "-s", "killed", "--report", "summary"], "INCOMPLETE"),
        (["export", "-s", "killed", "-o", "-"], "killed.stat.gz: the run is under way, or was killed"),
        (["compare", "whole", "killed"], "killed: the run is under way, or was killed"),
        (["compare", "killed", "--to", "whole", "--format", "csv"], ""),
        (["noise", "whole", "killed"], "killed did not end as it should, and is left out"),
    ],
    ids=" ".join,
)
def test_it_is_said_and_the_exit_code_is_1(
    arguments: list[str],
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = {name: tmp_path / f"{name}.stat.gz" for name in ("whole", "killed")}
    write_run(files["whole"])
    monkeypatch.setattr(RunResultsWriter, "_append_closing", lambda *_: True)
    write_run(files["killed"])
    for killed, code in ((True, ExitCode.FAILED), (False, ExitCode.OK)):
        words = [
            str(files.get(word if killed else word.replace("killed", "whole"), word)) for word in arguments
        ]
        found = master.main(words)
        out = " ".join("".join(capsys.readouterr()).split())
        assert found == code or (not killed and arguments[0] == "noise")
        assert (said in out) is (killed or not said), out
