"""Our own processes import this very ssbench."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import ssbench
from ssbench.base import own_processes


def test_a_folder_of_the_same_name_is_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """State and results are in folders of that name, where people work."""
    (tmp_path / "ssbench").mkdir()
    monkeypatch.chdir(tmp_path)
    command = [*own_processes.make_python_command("ssbench.cli.worker"), "--version"]
    said = subprocess.check_output(command, env=own_processes.make_child_environment(), text=True, timeout=60)
    assert ssbench.__version__ in said


def test_secrets_stay_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ST_KEY", "secret")
    assert "ST_KEY" not in own_processes.make_child_environment(["ST_KEY"])
    assert own_processes.make_child_environment()["ST_KEY"] == "secret"
