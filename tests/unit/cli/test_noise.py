"""``ssbench-master noise``: of runs that are there, and how many runs it makes."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from full_run import write_full_run
from golden_words import GoldenWords
from json_records import valid
from said import NO_NUMBER

from ssbench.base.errors import ExitCode
from ssbench.cli.master import main


def write_csv(path: Path, runs: int, spread: float = 0.02) -> Path:
    random = np.random.default_rng(1)
    lines = ["run,figure,value"]
    for number in range(runs):
        for figure, value in (("rate", 500.0), ("p50", 0.01)):
            lines.append(f"{number},{figure},{value * np.exp(random.normal(0, spread)):.6g}")
    path.write_text("\n".join(lines) + "\n")
    return path


def test_runs_of_another_tool(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write_csv(tmp_path / "runs.csv", 12)
    assert main(["noise", str(file), "--json", str(tmp_path / "noise.json")]) == ExitCode.OK
    shown = capsys.readouterr().out
    assert "Noise: 12 equal runs" in shown
    assert "pairs of runs in turn show a change of 5 % of ops/s and p50 in 9 of 10" in " ".join(shown.split())
    assert "neither settings nor drift are known" in " ".join(shown.split())
    found = valid((tmp_path / "noise.json").read_text(), "noise")
    assert found["runs"] == 12
    assert found["price"]["seconds"] is None
    assert found["price"]["pairs"] >= 4
    assert [each["figure"] for each in found["figures"]] == ["rate", "p50"]
    assert found["figures"][0]["by_change"]["pairs"] == 66


def test_a_smaller_change_costs_more(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(write_csv(tmp_path / "runs.csv", 12))
    prices = []
    for change in ("10%", "5%", "2.5%"):
        assert main(["noise", file, "--detect", change, "--json", "-"]) == ExitCode.OK
        prices.append(json.loads(capsys.readouterr().out)["price"]["pairs"])
    assert prices == sorted(set(prices))


def test_few_runs_are_undecided(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(write_csv(tmp_path / "runs.csv", 4))
    assert main(["noise", file]) == ExitCode.UNDECIDED
    shown = " ".join(capsys.readouterr().out.split())
    assert "undecided: 4 equal runs do not tell how much runs differ; 6 or more do" in shown
    assert "5 % red" in shown  # what was counted
    assert "in 15 min" not in shown
    assert main(["noise", file, "--json", "-"]) == ExitCode.UNDECIDED
    found = json.loads(capsys.readouterr().out)
    assert (found["price"], found["verdict"]["decided"], found["exit_code"]) == (None, False, 6)


def test_outputs_after_one_that_cannot_be_written(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    golden_words: GoldenWords,
) -> None:
    file, found, full = write_csv(tmp_path / "runs.csv", 8), tmp_path / "noise.json", "/dev/full"
    monkeypatch.setattr(sys, "stdout", None)  # closed
    options = ["--html", full, "--json", str(found)]
    assert main(["noise", str(file), *options]) == ExitCode.USAGE
    assert valid(found.read_text(), "noise")["runs"] == 8
    said = capsys.readouterr().err
    golden_words(said)


@pytest.mark.parametrize("name", ["text", "markdown", "html"])
def test_the_formats(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["noise", str(write_csv(tmp_path / "runs.csv", 8)), "--format", name]) == ExitCode.OK
    assert "in 15 min" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name existing runs, or give -f/--scenario-file to make some"),
        (["-f", "very_small", "-o", "10"], "equal runs are timed: give -r/--run-seconds instead of -o"),
        (
            ["FILE", "-f", "very_small"],
            "existing runs are read, and none are made: leave out --scenario-file",
        ),
        (["FILE", "--minutes", "5"], "existing runs are read, and none are made: leave out --minutes"),
        (["TWO"], "has 2 sides, expected runs that are equal"),
        (["-f", "very_small", "--minutes", "x"], f"'x' {NO_NUMBER} minutes"),
        (
            ["-f", "very_small", "--noop", "--workers", "1", "--minutes", "1", "-r", "60"],
            "--minutes 1: 0 runs of 60 s do not tell how much runs differ; 6 or more do",
        ),
    ],
)
def test_what_is_refused(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write_csv(tmp_path / "runs.csv", 8)
    two = tmp_path / "two.csv"
    two.write_text("run,figure,value,side\n1,rate,1,a\n1,rate,1,b\n")
    names = {"FILE": str(file), "TWO": str(two)}
    try:
        assert main(["noise", *(names.get(each, each) for each in arguments)]) == ExitCode.USAGE
    except SystemExit as error:
        assert error.code == ExitCode.USAGE  # noqa: PT017 - by argparse
    assert message in capsys.readouterr().err


def test_a_file_that_is_given_twice_counts_once(tmp_path: Path) -> None:
    file = str(write_csv(tmp_path / "runs.csv", 4))
    assert main(["noise", file, file]) == ExitCode.UNDECIDED


def test_runs_that_did_not_end_as_they_should_are_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], golden_words: GoldenWords
) -> None:
    good = [str(write_full_run(tmp_path / f"good-{number}.stat.gz")) for number in range(2)]
    bad = str(write_full_run(tmp_path / "bad.stat.gz", interrupted=True))
    assert main(["noise", *good, bad]) == ExitCode.UNDECIDED
    shown = " ".join(capsys.readouterr().out.split())
    assert "Noise: 2 equal runs" in shown
    assert "bad did not end as it should, and is left out." in shown
    assert main(["noise", good[0]]) == ExitCode.UNDECIDED
    shown = " ".join(capsys.readouterr().out.split())
    golden_words(shown)
    assert main(["noise", bad]) == ExitCode.USAGE
    assert "found none" in capsys.readouterr().err
