"""``compare`` of folders and labels: of suites row by row, of other runs not at all."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ssbench.base.errors import ExitCode
from ssbench.cli import master

KNOWN = Path(__file__).parents[2] / "data" / "version-1-known.stat.gz"


def test_a_folder_without_a_suite_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        shutil.copy(KNOWN, tmp_path / name / "x.stat.gz")
    folders = [str(tmp_path / name) for name in ("a", "b")]
    assert master.main(["compare", *folders]) == ExitCode.USAGE
    assert "is a folder without a suite; give its stat files to compare runs" in capsys.readouterr().err
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
    assert master.main(["compare", str(tmp_path), str(tmp_path)]) == ExitCode.USAGE
    said = capsys.readouterr().err
    assert "a.stat.gz: an empty file; it is left out" in said
    assert "is a folder without a suite" in said
