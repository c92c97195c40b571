"""How messages name the program, so that the words can be pasted into a shell."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from ssbench.cli import own_program


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program in a folder that PATH has."""
    folder = tmp_path / "with a space"
    folder.mkdir()
    made = folder / "ssbench-master"
    made.write_text("#!/bin/sh\n")
    made.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    return made


def test_a_program_on_the_path_is_called_by_its_name(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [str(program), "run-scenario"])
    assert own_program.quote_own_command() == "ssbench-master"


def test_another_is_called_as_it_was(program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of the same name on PATH is not the one that the user called."""
    other = tmp_path / "a b" / program.name
    other.parent.mkdir()
    other.write_bytes(program.read_bytes())
    monkeypatch.setattr(sys, "argv", [str(other)])
    assert shlex.split(own_program.quote_own_command()) == [str(other)]
    other.unlink()
    assert shlex.split(own_program.quote_own_command()) == [str(other)]
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(sys, "argv", [str(program)])
    assert shlex.split(own_program.quote_own_command()) == [str(program)]


def test_a_link_to_the_one_on_the_path_is_that_one(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = tmp_path / program.name
    link.symlink_to(program)
    monkeypatch.setattr(sys, "argv", [str(link)])
    assert own_program.quote_own_command() == "ssbench-master"


def test_a_module_is_called_as_a_module(tmp_path: Path) -> None:
    """With the words before it, and without those behind it: python -m MODULE, or a script."""
    script = tmp_path / "say.py"
    script.write_text("from ssbench.cli import own_program\nprint(own_program.quote_own_command())\n")
    for words in (["-X", "utf8", "say.py"], ["-m", "say"]):
        called = [sys.executable, *words, "run-scenario", "-f", "x y"]
        found = subprocess.run(called, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60)
        assert shlex.split(found.stdout) == [sys.executable, *words]


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["last"], ["last"]),
        (["a b.stat.gz", "$HOME"], ["a b.stat.gz", "$HOME"]),
        (["-x.stat.gz"], ["--stats-file=-x.stat.gz"]),
        (["it's"], ["it's"]),
    ],
)
def test_what_prints_the_report_again(
    program: Path, monkeypatch: pytest.MonkeyPatch, names: list[str], words: list[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [str(program)])
    assert shlex.split(own_program.make_report_command(*names)) == [
        "ssbench-master",
        "report-scenario",
        *words,
    ]
