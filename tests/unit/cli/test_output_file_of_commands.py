"""Commands that read and print end alike where standard output takes nothing, or its reader is gone."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from golden_words import GoldenWords

from ssbench.base.errors import ExitCode
from ssbench.cli.master import main

KNOWN = str(Path(__file__).parents[2] / "data" / "version-1-known.stat.gz")
COMMANDS = (
    "help exit-codes",
    "--help",
    "help scenarios",
    "help suites",
    "check-scenario very_small",
    "report-scenario FILE",
    "report-scenario FILE --json -",
    "compare FILE FILE",
    "noise FILE",
    "noise FILE --json -",
    "list --results-dir FOLDER",
    "export FILE",
    "schema report",
    "config",
    "completion bash",
)


def _run(words: str, tmp_path: Path) -> int:
    """Return the exit code of a command."""
    known = {"FILE": KNOWN, "FOLDER": str(tmp_path)}
    try:
        return main(["-q"] * words.startswith("run") + [known.get(word, word) for word in words.split()])
    except SystemExit as ended:  # --help
        return int(ended.code or 0)


@pytest.fixture(autouse=True)
def usual(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("words", COMMANDS)
def test_a_full_disk_under_standard_output(
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    golden_words: GoldenWords,
) -> None:
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert _run(words, tmp_path) == ExitCode.USAGE
    last = capsys.readouterr().err.splitlines()[-1]
    golden_words(last)


@pytest.mark.parametrize("words", COMMANDS)
def test_a_reader_that_is_gone(words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of ``| head -1``: the exit code is that of what was found."""
    usual = _run(words, tmp_path)
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as pipe:  # noqa: PTH123 - a descriptor
        monkeypatch.setattr(sys, "stdout", pipe)
        assert _run(words, tmp_path) == usual


@pytest.mark.parametrize("words", [words for words in COMMANDS if words != "--help"])
def test_standard_output_that_is_closed(
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    golden_words: GoldenWords,
) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    assert _run(words, tmp_path) == ExitCode.USAGE
    golden_words(capsys.readouterr().err)
