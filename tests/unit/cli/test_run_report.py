"""What is said of the stat file of a run."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from asked_commands import ask

from ssbench.cli.run_report import PrintedRunReport
from ssbench.run.benchmark_run import RunOutcome


@pytest.mark.parametrize(("options", "named"), [((), "last"), (("--phases", "create,read"), "PATH")])
def test_a_run_of_several_phases_is_reported_again_by_its_path(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    options: tuple[str, ...],
    named: str,
) -> None:
    """``last`` is only the last of them."""
    caplog.set_level(logging.INFO)
    monkeypatch.setattr("ssbench.cli.archives.choose_folder_of_last", lambda _: tmp_path)
    words = ["run-scenario", "-R", *options]
    path = tmp_path / "x.stat.gz"
    report = PrintedRunReport(ask(*words), judges=False)
    report.print(RunOutcome(run_id=1, seed=1, path=path))
    assert caplog.messages[-1].endswith(f" report-scenario {path if named == 'PATH' else named}")
