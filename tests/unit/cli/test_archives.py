"""The folder of earlier runs: where it is, and runs of it by reference."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from archive_folders import Folder, arguments

from ssbench.base.errors import UsageError
from ssbench.cli import archives
from ssbench.cli.master import main


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)


def test_the_folder_is_named_by_the_option_or_the_variable(monkeypatch, tmp_path):
    monkeypatch.delenv(archives.RESULTS_DIR_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    # Where runs leave their files that are told nothing.
    assert archives.open_archive(arguments()).folder == tmp_path / "ssbench"
    monkeypatch.setenv(archives.RESULTS_DIR_VARIABLE, str(tmp_path / "x"))
    assert archives.open_archive(arguments()).folder == tmp_path / "x"
    assert archives.open_archive(arguments(results_dir=tmp_path)).folder == tmp_path
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(UsageError, match="file: is not a folder"):
        archives.choose_folder(arguments(results_dir=file))


def test_only_the_usual_folder_has_earlier_ones(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(archives, "_read_entry", lambda path: Folder(path.parent)._read(path))
    earlier = Folder(tmp_path / "ssbench-results")
    earlier.path.mkdir()
    earlier.write("old.stat.gz", 1)
    assert archives.open_archive(arguments()).find("last") == [earlier.path / "old.stat.gz"]
    assert archives.open_archive(arguments(results_dir=tmp_path / "state")).entries() == []
    # What others may write to is not read.
    earlier.path.chmod(0o777)
    assert archives.open_archive(arguments()).entries() == []


def test_a_report_of_the_last_run(monkeypatch, folder, capsys):
    for number, each in enumerate(["old", "new", "new"]):
        folder.write(f"{number}.stat.gz", number, each)
    monkeypatch.setattr(archives, "open_archive", lambda _: folder.archive)
    assert archives.choose_stat_file(arguments(stats_file=Path("last-1"))) == folder.path / "1.stat.gz"
    assert (
        archives.choose_stat_file(arguments(file=Path("last-1"), stats_file=None))
        == folder.path / "1.stat.gz"
    )
    with pytest.raises(UsageError, match="given twice"):
        archives.choose_stat_file(arguments(file=Path("last"), stats_file=Path("last"), given={"stats_file"}))
    with pytest.raises(UsageError, match="a stat file is expected: FILE, last, last-1 or @LABEL"):
        archives.choose_stat_file(arguments(stats_file=None))
    assert archives.choose_stat_file(arguments(stats_file=Path("x/y.stat"))) == Path("x/y.stat")
    with pytest.raises(
        UsageError, match=r"@new: 2 runs have this label; one is expected: name its file, such as .*gz$"
    ):
        archives.choose_stat_file(arguments(stats_file=Path("@new")))
    with pytest.raises(UsageError, match="old: there is no such file; did you mean @old"):
        archives.resolve_references(arguments(), ["old"])
    for command in ("report-scenario", "export", "attribute"):
        logs = ["--swift-logs", str(folder.path)] if command == "attribute" else []
        assert main([command, "-s", "last-9", *logs]) == 2
        assert "there is no last-9, only 3 runs" in capsys.readouterr().err
