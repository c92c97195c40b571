"""Folders and log files in a temporary folder that others may write to."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from ssbench.run.folders import own_folder
from ssbench.run.run_workers import open_private


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def plant_link(path: Path) -> None:
    path.symlink_to("elsewhere")


def plant_writable_folder(path: Path) -> None:
    path.mkdir()
    path.chmod(0o777)


@pytest.mark.parametrize("plant", [plant_link, plant_writable_folder, Path.touch])
def test_what_is_not_safely_ours_is_left_alone(temporary: Path, plant) -> None:
    assert own_folder("x") == temporary / "x" == own_folder("x")
    plant(temporary / "y")
    ours = temporary / f"y-{os.geteuid()}"
    assert own_folder("y") == ours == own_folder("y")
    assert ours.stat().st_mode & 0o777 == 0o700
    plant(temporary / "z")
    plant(temporary / f"z-{os.geteuid()}")
    assert own_folder("z").parent == temporary
    assert own_folder("z").name not in {"z", f"z-{os.geteuid()}"}


def test_a_log_that_is_not_ours_costs_one_file_for_all_runs(temporary: Path) -> None:
    (temporary / "w.log").symlink_to("elsewhere")
    for _ in range(3):
        descriptor, path = open_private("w.log")
        assert os.write(descriptor, b"a line") == 6
        assert path.read_bytes() == b"a line"
        os.close(descriptor)
    assert sorted(temporary.rglob("*.log")) == [temporary / "ssbench-logs" / "w-1.log", temporary / "w.log"]


def test_runs_at_once_have_logs_of_their_own(temporary: Path) -> None:
    opened = [open_private("w.log") for _ in range(3)]
    assert len({path for _, path in opened}) == 3
    for descriptor, _ in opened:
        os.close(descriptor)
    again = open_private("w.log")
    assert again[1] == opened[0][1]
    os.close(again[0])
