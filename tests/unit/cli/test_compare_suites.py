"""``compare`` of folders and labels: of suites row by row, of other runs as the two sides."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from result_rows import many
from said import CALLS_TOGETHER, NOTHING_VARIES

from ssbench.base.errors import ExitCode
from ssbench.cli import master
from ssbench.results.run_description import RunDescription, RunSummary
from ssbench.results.writer import RunResultsWriter
from ssbench.scenario.model import Scenario, SizeClass
from ssbench.scenario.operations import OPERATIONS

KNOWN = Path(__file__).parents[2] / "data" / "version-1-known.stat.gz"


def test_folders_without_a_suite_are_sides_of_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        shutil.copy(KNOWN, tmp_path / name / "x.stat.gz")
    folders = [str(tmp_path / name) for name in ("a", "b")]
    assert master.main(["compare", *folders]) == ExitCode.OK
    assert "x (1 run)" in capsys.readouterr().out
    (tmp_path / "a" / "x.stat.gz").unlink()
    assert master.main(["compare", *folders]) == ExitCode.USAGE
    assert "has no stat files" in capsys.readouterr().err


def test_files_are_compared_as_ever(capsys: pytest.CaptureFixture[str]) -> None:
    assert master.main(["compare", str(KNOWN), str(KNOWN)]) == ExitCode.OK
    assert "no verdict" in capsys.readouterr().out


def test_files_that_cannot_be_read_are_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Such as that of a run that was killed before its benchmark began."""
    shutil.copy(KNOWN, tmp_path / "x.stat.gz")
    (tmp_path / "a.stat.gz").touch()
    assert master.main(["compare", str(tmp_path), str(KNOWN)]) == ExitCode.OK
    said = capsys.readouterr().err
    assert said.count("a.stat.gz: an empty file; it is left out") == 1
    (tmp_path / "x.stat.gz").unlink()
    assert master.main(["compare", str(tmp_path), str(KNOWN)]) == ExitCode.USAGE
    assert "has no stat files that can be read" in capsys.readouterr().err


def write_run(file: Path, row: str, number: int, words: Mapping[str, str] | None = None) -> None:
    """Write the stat file of a run of a row."""
    scenario = Scenario("s", (SizeClass("o", 1, 1, 1, {"read": 1.0}),), user_count=1, run_seconds=9.0)
    began = 1e9 + 100 * number
    writer = RunResultsWriter(
        file,
        RunDescription(scenario, started=began, options={"row": row, "round": number, "row_words": words}),
    )
    code, latency = OPERATIONS.named("read").code, 0.01 + 0.0001 * (number**2 % 7)
    ended = began + np.linspace(0.01, 9.0, 900)
    writer.add(many(range(900), operation=code, completed=ended, size=1, last_byte=latency))
    writer.end(RunSummary(began + 9.0))


def test_stat_files_of_several_rows_are_suites(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """So that one of two calls, whose files lie in one folder, can be compared."""
    calls = [[tmp_path / f"s.{call}.{row}.stat.gz" for row in ("kv", "big")] for call in ("one", "two")]
    for files in calls:
        for file, row in zip(files, ("kv", "big"), strict=True):
            write_run(file, row, 1)
    one, two = ([*map(str, files)] for files in calls)
    assert master.main(["compare", *one, "--to", *two]) == ExitCode.OK
    said = " ".join(capsys.readouterr().out.split())
    assert "row ops/s" in said
    assert "calls" not in said
    assert master.main(["compare", str(tmp_path), str(tmp_path)]) == ExitCode.OK
    assert f"runs of 2 {CALLS_TOGETHER}" in " ".join(capsys.readouterr().out.split())
    # Two groups of runs of a row each are compared as runs, and so are others.
    assert master.main(["compare", one[0], two[0], "--to", one[1], two[1]]) == ExitCode.OK
    assert "row ops/s" not in " ".join(capsys.readouterr().out.split())
    assert master.main(["compare", *one, "--to", str(KNOWN), str(KNOWN)]) == ExitCode.OK
    assert "row ops/s" not in " ".join(capsys.readouterr().out.split())


def test_rows_of_one_suite_are_compared_by_a_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for place, users in enumerate((4, 8)):
        for row in ("kv", "web"):
            for number in range(4):
                file = tmp_path / f"s.{row}-{users}-{number}.stat.gz"
                words = {"users": f"users={users}"}
                write_run(file, f"{row} users={users}", 20 * number + place + 2 * (row == "web"), words)
    folder = str(tmp_path)
    assert master.main(["compare", folder, "--between", "users"]) == ExitCode.OK
    said = " ".join(capsys.readouterr().out.split())
    assert "before: users=4; after: 8 no difference shown" in said
    assert "2 rows with " in said
    files = [str(each) for each in sorted(tmp_path.glob("*.stat.gz"))]
    command = ["compare", *files, "--between", "users", "--fail-if", "p50 > -20%"]
    assert master.main(command) == ExitCode.THRESHOLD
    assert "kv: p50 > -20%: FAILED" in " ".join(capsys.readouterr().out.split())
    assert master.main([*command, "--format", "junit"]) == ExitCode.THRESHOLD
    suite = ElementTree.fromstring(capsys.readouterr().out)[0]
    assert [(case.get("name"), [each.tag for each in case]) for case in suite.iter("testcase")] == [
        ("the verdict", ["failure", "system-out"]),
        ("not kv: p50 > -20%", ["failure", "system-out"]),
        ("not web: p50 > -20%", ["failure", "system-out"]),
    ]
    for wrong, why in (
        ([folder, "--between", "size"], "--between size: expected users"),
        ([str(KNOWN), "--between", "users"], f"--between users: all have 4; {NOTHING_VARIES}"),
        ([str(KNOWN), "--between", "usrs"], f"--between usrs: {NOTHING_VARIES}"),
        ([folder, "--between", "policy"], "--between policy: all have none; expected users"),
        ([folder, "--between", "users", "--to", folder], "among all runs that are named: leave out --to"),
    ):
        assert master.main(["compare", *wrong]) == ExitCode.USAGE
        assert why in capsys.readouterr().err


def test_a_key_alone_makes_two_groups_of_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All of their figures are compared then, with as many runs as two groups need."""
    for place, users in enumerate((4, 8)):
        for number in range(4):
            words = {"users": f"users={users}"}
            write_run(
                tmp_path / f"s.{users}-{number}.stat.gz", f"kv users={users}", 2 * number + place, words
            )
    folder = str(tmp_path)
    assert (
        master.main(["compare", folder, "--between", "users", "--fail-if", "read.p50 > +50%"]) == ExitCode.OK
    )
    said = " ".join(capsys.readouterr().out.split())
    assert "READ ops/s" in said
    assert "(4 runs); after: s.8-0 and 3 more (4 runs) no difference shown" in said
