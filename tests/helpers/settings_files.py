"""Files with settings of a test, which has no others."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ssbench.cli.settings import VARIABLE_PREFIX


def enter_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Enter a folder without settings, as a user who has none either; return it."""
    for name in list(os.environ):
        if name.startswith(VARIABLE_PREFIX):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


def write_settings(text: str, path: str | Path = "ssbench.toml") -> None:
    """Write a file with settings, by default that of the current folder."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)


def write_own_settings(text: str) -> None:
    """Write the user's own file, which may set everything."""
    write_settings(text, Path(os.environ["XDG_CONFIG_HOME"], "ssbench", "ssbench.toml"))
