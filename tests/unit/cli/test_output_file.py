"""Files of output: which are overwritten, and which cannot be written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from known_reports import TABLE
from known_results import write_known

from ssbench.cli.master import main


@pytest.fixture
def known(tmp_path: Path) -> Path:
    return write_known(tmp_path / "known.stat.gz")


def last_error(capsys: pytest.CaptureFixture[str]) -> str:
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("ERROR:")]
    return line.removeprefix("ERROR:")


OUTPUTS = [["report-scenario", "-f"], ["report-scenario", "-f", "-", "-r"], ["export", "-o"]]


@pytest.mark.parametrize("command", OUTPUTS)
def test_an_output_that_exists_is_overwritten_only_with_force(
    known: Path, tmp_path: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / "my.yaml"
    mine.write_text("mine")
    arguments = [*command, str(mine), "-s", str(known)]
    assert main(arguments) == 2
    assert last_error(capsys) == f"{mine}: exists already; give another name, or --force to overwrite it"
    assert mine.read_text() == "mine"
    link = tmp_path / "link"
    link.symlink_to(mine)
    assert main([*command, str(link), "-s", str(known), "--force"]) == 0
    assert link.is_symlink()
    assert mine.read_text() not in {"mine", ""}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["known.stat.gz", "link", "my.yaml"]


@pytest.mark.parametrize("command", OUTPUTS)
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("/tmp", "/tmp: is not a regular file"),
        ("x" * 300, "File name too long"),
        ("\ud800", "no file can have this name here"),
        ("/nonexistent/x", "/nonexistent/x: cannot be written: No such file or directory"),
    ],
)
def test_an_output_that_cannot_be(
    known: Path, command: list[str], name: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command, name, "-s", str(known)]) == 2
    assert message in last_error(capsys)


def test_two_outputs_need_two_files(known: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "out")
    assert main(["report-scenario", "-s", str(known), "-f", out, "-r", out]) == 2
    assert last_error(capsys) == f"{out}: given for two outputs"


def test_a_pipe_takes_a_report_when_somebody_reads_it(
    known: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert main(["report-scenario", "-s", str(known), "-f", str(pipe)]) == 2
    assert last_error(capsys).startswith(f"{pipe}: cannot be written: ")
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert main(["report-scenario", "-s", str(known), "-f", str(pipe)]) == 0
        assert os.read(reader, 65536).decode() == TABLE
    finally:
        os.close(reader)
