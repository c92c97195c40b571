"""The scripts for shells: they know every sub-command and option, and bash completes with its one."""

from __future__ import annotations

import argparse
import shutil
import subprocess
from pathlib import Path

import pytest

from ssbench.cli import completion, master, worker


def options(parser: argparse.ArgumentParser) -> set[str]:
    """The long options that the help shows."""
    return {
        name
        for action in parser._actions
        for name in action.option_strings
        if name.startswith("--") and action.help != argparse.SUPPRESS
    }


def commands() -> dict[str, argparse.ArgumentParser]:
    made = master.parser(list(master.COMMANDS))
    (action,) = [each for each in made._actions if isinstance(each, argparse._SubParsersAction)]
    return dict(action.choices)


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_every_command_and_option_is_there(shell: str) -> None:
    text = completion.script(shell)
    for name, parser in commands().items():
        assert name in text
        for option in options(parser):
            assert (f"-l {option[2:]}" if shell == "fish" else option) in text, (name, option)
    of_worker = completion.script(shell, worker=True)
    for option in options(worker.parser()):
        assert (f"-l {option[2:]}" if shell == "fish" else option) in of_worker


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_the_shell_reads_its_script(shell: str, tmp_path: Path) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    for is_worker in (False, True):
        path = tmp_path / "script"
        path.write_text(completion.script(shell, worker=is_worker))
        done = subprocess.run(
            [program, "-n", str(path)], check=False, capture_output=True, text=True, timeout=30
        )
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["report-s"], {"report-scenario"}),
        (["run-scenario", "--fail"], {"--fail-if"}),
        (["report-scenario", "--report", "su"], {"summary"}),
        (["completion", "z"], {"zsh"}),
        (["run-scenario", "-f", "scen"], {"scenario.yaml"}),
    ],
)
def test_bash_completes(words: list[str], expected: set[str], tmp_path: Path) -> None:
    (tmp_path / "scenario.yaml").touch()
    script = tmp_path / "script"
    script.write_text(completion.script("bash"))
    program = (
        'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=();'
        ' _shtab_ssbench_master ssbench-master "${COMP_WORDS[-1]}"; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "-c", program, "bash", str(script), "ssbench-master", *words],
        check=False,
        capture_output=True,
        text=True,
        timeout=30,
        cwd=tmp_path,
    )
    assert set(done.stdout.split()) == expected, done.stderr


def test_the_command_prints_a_script(capsys: pytest.CaptureFixture[str]) -> None:
    assert master.main(["completion", "fish"]) == 0
    assert capsys.readouterr().out == completion.script("fish") + "\n"
    with pytest.raises(SystemExit):
        master.main(["completion", "bsh"])
    assert "'bsh' is not one of bash, zsh, fish; did you mean bash?" in capsys.readouterr().err
