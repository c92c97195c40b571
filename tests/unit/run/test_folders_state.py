"""The folder of the user's in which results stay."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

import pytest
from golden_words import GoldenWords
from processes import free_ports

from ssbench.cli import master
from ssbench.cli.archives import choose_folder_of_last
from ssbench.run import folders
from ssbench.run.folders import earlier_folders, results_folder


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of a user without settings, beside an empty temporary folder."""
    made = tmp_path / "home"
    made.mkdir()
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("HOME", str(made))
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    folders._warn_once.cache_clear()
    return made


def test_it_is_in_the_home_of_the_user(home: Path) -> None:
    folder = results_folder()
    assert folder == home / ".local/state/ssbench" == results_folder()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert earlier_folders() == []


def test_the_variable_names_another(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    assert results_folder() == home / "state/ssbench"
    monkeypatch.setenv("XDG_STATE_HOME", "state")  # a relative one has to be ignored
    assert results_folder() == home / ".local/state/ssbench"


def test_a_link_of_the_user_to_another_disk_is_followed(home: Path, tmp_path: Path) -> None:
    (home / ".local/state").mkdir(parents=True)
    (tmp_path / "disk").mkdir()
    (home / ".local/state/ssbench").symlink_to(tmp_path / "disk")
    (results_folder() / "file").touch()
    assert (tmp_path / "disk/file").exists()


def test_one_that_others_may_write_to_is_not_used(
    home: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    results_folder().chmod(0o770)
    assert results_folder() == results_folder() == tmp_path / "tmp/ssbench-results"
    (line,) = caplog.messages
    assert f"chmod go-w {home}/.local/state/ssbench); {tmp_path}/tmp/ssbench-results is used unless" in line


def test_a_file_in_its_place_is_reported(
    home: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, golden_words: GoldenWords
) -> None:
    (home / ".local/state").mkdir(parents=True)
    (home / ".local/state/ssbench").touch()
    assert results_folder() == tmp_path / "tmp/ssbench-results"
    golden_words(caplog.messages)


@pytest.mark.parametrize("name", ["/nonexistent", "relative", ""])
def test_without_a_home_it_is_in_the_temporary_folder(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", name)
    assert results_folder() == tmp_path / "tmp/ssbench-results"


def test_nothing_is_left_in_the_home_of_another_user(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As under sudo, which may keep HOME."""
    user = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: user)
    results_folder()
    assert list(home.iterdir()) == []


def test_folders_of_earlier_versions_are_those_that_are_safely_ours(tmp_path: Path) -> None:
    temporary = tmp_path / "tmp"
    usual, own = temporary / "ssbench-results", temporary / f"ssbench-results-{os.geteuid()}"
    usual.mkdir(mode=0o700)
    own.mkdir(mode=0o700)
    assert earlier_folders() == [usual, own]
    usual.chmod(0o777)
    assert earlier_folders() == [own]
    own.rmdir()
    own.symlink_to(tmp_path / "home")
    assert earlier_folders() == []


def test_without_any_folder_one_line_says_so(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    golden_words: GoldenWords,
) -> None:
    monkeypatch.setenv("HOME", "/nonexistent")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    work, results = free_ports()
    run = ["run-scenario", "-f", "very_small", "--noop", "--expect-workers", "1"]
    run += ["--zmq-work-port", str(work), "--zmq-results-port", str(results)]
    for arguments in (["list"], ["report-scenario", "last"], run):
        assert master.main(arguments) == 2
        (line,) = [each for each in capsys.readouterr().err.splitlines() if "ERROR" in each]
        golden_words(line)
        if arguments is not run:  # which has sockets before that
            golden_words(line)
            assert "--results-dir names one" in line


def test_a_folder_that_is_there_is_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It needs no temporary folder, of which ``tempfile`` says that there is none."""

    def none() -> str:
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']")

    monkeypatch.setattr(tempfile, "gettempdir", none)
    assert earlier_folders() == []
    assert master.main(["list"]) == 0
    monkeypatch.setenv("HOME", "/nonexistent")
    assert choose_folder_of_last(None) is None
    for more in ("--expect-workers=1", "--workers=1"):  # sockets are in such a folder
        capsys.readouterr()
        assert master.main(["run-scenario", "-f", "very_small", "--noop", more]) == 2
        assert "ERROR:No usable temporary directory found" in capsys.readouterr().err
