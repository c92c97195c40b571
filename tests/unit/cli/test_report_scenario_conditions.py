"""Conditions that are given to report-scenario."""

from __future__ import annotations

import pytest
from judged_runs import run
from said import NO_SIZE_CLASS

from ssbench.base.errors import ExitCode
from ssbench.cli.master import main


@pytest.mark.parametrize(
    ("texts", "options", "code"),
    [
        (["p99.9 > 5s"], [], 6),
        (["p99.9 > 5s"], ["--undecided", "fail"], 5),
        (["p99.9 > 5s"], ["--undecided", "pass"], 0),
        (["p99.9 > 5s", "p95 > 5ms"], ["--undecided", "pass"], 5),
        (["p99.9 > 5s", "p95 > 5ms"], [], 5),
        (["p95 > 5s"], ["--undecided", "fail"], 0),
    ],
)
def test_an_undecided_condition_has_an_exit_code_of_its_own(tmp_path, texts, options, code, capsys):
    path = tmp_path / "run.stat.gz"
    run(path, ("errors > 5%",))
    conditions = [word for text in texts for word in ("--fail-if", text)]
    assert main(["report-scenario", "-s", str(path), "--report", "summary", *conditions, *options]) == code
    out, err = capsys.readouterr()
    if "p99.9 > 5s" in texts:
        assert "fail-if p99.9 > 5s: undecided (1s, of 990 operations; about 7,500 would decide" in out
        assert "WARNING:fail-if p99.9 > 5s: undecided" in err


def test_report_scenario_exits_with_5_and_prints_each(tmp_path, capsys):
    path = tmp_path / "run.stat.gz"
    run(path, ("errors > 5%",))
    command = ["report-scenario", "-s", str(path), "--report", "summary"]
    assert main(command) == ExitCode.OK
    assert capsys.readouterr().out.splitlines()[-1] == "fail-if errors > 5%: ok (1%)"
    assert main([*command, "--fail-if", "read.p50 > 100ms", "--fail-if", "rate < 1"]) == ExitCode.THRESHOLD
    out, err = capsys.readouterr()
    assert out.splitlines()[-3:-1] == [
        "fail-if errors > 5%: ok (1%)",
        "fail-if read.p50 > 100ms: FAILED (501ms)",
    ]
    assert "ERROR:fail-if read.p50 > 100ms: FAILED (501ms)\n" in err
    assert "rate < 1" not in err
    assert main([*command[:3], "--csv", "--fail-if", "rate < 1"]) == ExitCode.OK
    assert "INFO:fail-if rate < 1: ok (" in capsys.readouterr().err


def test_a_size_class_that_does_not_exist_is_a_wrong_command_line(tmp_path, capsys):
    path = tmp_path / "run.stat.gz"
    run(path)
    assert main(["report-scenario", "-s", str(path), "--fail-if", "read.smal.p99 > 1s"]) == ExitCode.USAGE
    assert f"'smal' {NO_SIZE_CLASS} (small, big.one); did you mean small?" in capsys.readouterr().err
