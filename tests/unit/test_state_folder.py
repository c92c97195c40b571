"""The folder of the user's in which results stay."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from ssbench.run import state_folder
from ssbench.run.state_folder import earlier_folders, results_folder


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of a user without settings, beside an empty temporary folder."""
    made = tmp_path / "home"
    made.mkdir()
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("HOME", str(made))
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    state_folder._warn_once.cache_clear()
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
    assert f"chmod go-w {home}/.local/state/ssbench); {tmp_path}/tmp/ssbench-results is, where" in line


def test_a_file_in_its_place_is_reported(
    home: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (home / ".local/state").mkdir(parents=True)
    (home / ".local/state/ssbench").touch()
    assert results_folder() == tmp_path / "tmp/ssbench-results"
    assert "is not used for results: File exists" in caplog.text


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
