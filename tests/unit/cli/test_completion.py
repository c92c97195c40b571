"""The scripts for shells: they know every sub-command and option, and each shell completes with its one."""

from __future__ import annotations

import argparse
import os
import pty
import select
import shutil
import sqlite3
import subprocess
import time
from contextlib import closing
from pathlib import Path

import pytest

from ssbench.cli import completion, master, worker_options
from ssbench.comparison.archive import INDEX_FILE


def options(parser: argparse.ArgumentParser) -> set[str]:
    """The long options that the help shows."""
    return {
        name
        for action in parser._actions
        for name in action.option_strings
        if name.startswith("--") and (action.help != argparse.SUPPRESS or action.dest.startswith("auth_"))
    }


def commands() -> dict[str, argparse.ArgumentParser]:
    made = master.parser(list(master.COMMANDS))
    (action,) = [each for each in made._actions if isinstance(each, argparse._SubParsersAction)]
    return dict(action.choices)


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_every_command_and_option_is_there(shell: str) -> None:
    text = completion.make_completion_script(shell)
    for name, parser in commands().items():
        assert name in text
        for option in options(parser):
            assert (f"-l {option[2:]}" if shell == "fish" else option) in text, (name, option)
    of_worker = completion.make_completion_script(shell, worker=True)
    for option in options(worker_options.parser()):
        assert (f"-l {option[2:]}" if shell == "fish" else option) in of_worker


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_the_shell_reads_its_script(shell: str, tmp_path: Path) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    for is_worker in (False, True):
        path = tmp_path / "script"
        path.write_text(completion.make_completion_script(shell, worker=is_worker))
        done = subprocess.run(
            [program, "-n", str(path)], check=False, capture_output=True, text=True, timeout=60
        )
        assert (done.returncode, done.stderr) == (0, "")


#: What is typed behind ``ssbench-master``, and the one word that it can become.
TYPED = [
    (["report-s"], "report-scenario"),
    (["run-scenario", "--fail"], "--fail-if"),
    (["report-scenario", "--report", "su"], "summary"),
    (["completion", "z"], "zsh"),
    (["run-scenario", "-f", "scen"], "scenario.yaml"),
    (["run-scenario", "-f", "very_s"], "very_small"),
    (["check-scenario", "very_s"], "very_small"),
    (["check-scenario", "-f", "very_s"], "very_small"),
    (["report-scenario", "last-"], "last-1"),
    (["compare", "@bef"], "@before"),
    (["compare", "@before", "--to", "@aft"], "@after"),
    (["list", "--label", "bef"], "before"),
    (["run-scenario", "--os-user-domain-n"], "--os-user-domain-name"),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a file to complete, a history of two labels, and nothing else of the user's own."""
    (tmp_path / "scenario.yaml").touch()
    history = tmp_path / "history"
    history.mkdir()
    with closing(sqlite3.connect(history / INDEX_FILE)) as index:
        index.execute("CREATE TABLE runs (label)")
        labels = [("before",), ("after",), (None,), ("two words",), ("$(touch x)",)]
        index.executemany("INSERT INTO runs VALUES (?)", labels)
        index.commit()
    monkeypatch.setenv("SSBENCH_RESULTS_DIR", str(history))
    return tmp_path


@pytest.fixture
def shells_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder with a program that says at once what ours would take a fifth of a second to say."""
    program = folder / "bin" / "ssbench-master"
    program.parent.mkdir()
    for kind in completion._WORD_KINDS:
        words = "\n".join(completion.list_completion_words(kind))
        (program.parent / kind).write_text(f"{words}\n")
    program.write_text(f'#!/bin/sh\n[ "$1 $2" = "completion --words" ] && exec cat "{program.parent}/$3"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return folder


def test_words_for_the_shell(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert completion.list_completion_words("runs") == ["last", "last-1", "@after", "@before"]
    (folder / "history" / INDEX_FILE).write_text("is no index")
    assert completion.list_completion_words("runs") == ["last", "last-1"]
    assert completion.list_completion_words("labels") == []
    assert master.main(["completion", "--words", "scenarios"]) == 0
    assert "very_small" in capsys.readouterr().out.split()
    assert master.main(["completion"]) == 2
    assert "which shell: bash, zsh, fish?" in capsys.readouterr().err


@pytest.mark.parametrize(("words", "expected"), TYPED)
def test_bash_completes(words: list[str], expected: str, shells_folder: Path) -> None:
    script = shells_folder / "script"
    script.write_text(completion.make_completion_script("bash"))
    program = (
        'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=();'
        ' _shtab_ssbench_master ssbench-master "${COMP_WORDS[-1]}"; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "-c", program, "bash", str(script), "ssbench-master", *words],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        cwd=shells_folder,
    )
    assert done.stdout.split() == [expected], done.stderr


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_completes(shells_folder: Path) -> None:
    script = shells_folder / "script"
    script.write_text(completion.make_completion_script("fish"))
    lines = [" ".join(["ssbench-master", *words]) for words, _ in TYPED]
    done = subprocess.run(
        ["fish", "-c", f"source {script}; for line in $argv; complete -C $line; end", *lines],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        cwd=shells_folder,
        env={**os.environ, "HOME": str(shells_folder), "XDG_CONFIG_HOME": str(shells_folder)},
    )
    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == [word for _, word in TYPED]


class Zsh:
    """An interactive zsh on a terminal, which completes only there."""

    def __init__(self, folder: Path) -> None:
        self._end, terminal = pty.openpty()
        self._process = subprocess.Popen(
            ["zsh", "-f", "-i"],
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            cwd=folder,
            env={**os.environ, "HOME": str(folder), "TERM": "dumb"},
            start_new_session=True,
        )
        os.close(terminal)

    def type(self, text: str, expected: str) -> str:
        """Type, and return what is shown up to the expected text, or in a minute."""
        os.write(self._end, text.encode())
        shown, ends = "", time.monotonic() + 60
        while expected not in shown and (left := ends - time.monotonic()) > 0:
            if select.select([self._end], [], [], left)[0]:
                shown += os.read(self._end, 65536).decode()
        return shown

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._end)


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_completes(shells_folder: Path) -> None:
    (shells_folder / "_ssbench-master").write_text(completion.make_completion_script("zsh"))
    zsh = Zsh(shells_folder)
    try:
        setup = f"PS1=; fpath=({shells_folder} $fpath); autoload -U compinit; compinit -u -D; echo rea''dy\n"
        assert "ready\r\n" in zsh.type(setup, "ready\r\n")
        for words, expected in TYPED:
            # Ctrl-U empties the line.
            line = " ".join(["\x15ssbench-master", *words]) + "\t"
            expected_line = " ".join(["ssbench-master", *words[:-1], expected]) + " "
            assert expected_line in zsh.type(line, expected_line)
    finally:
        zsh.end()


def test_the_command_prints_a_script(capsys: pytest.CaptureFixture[str]) -> None:
    assert master.main(["completion", "fish"]) == 0
    assert capsys.readouterr().out == completion.make_completion_script("fish") + "\n"
    with pytest.raises(SystemExit):
        master.main(["completion", "bsh"])
    assert "'bsh' is not one of bash, zsh, fish; did you mean bash?" in capsys.readouterr().err
