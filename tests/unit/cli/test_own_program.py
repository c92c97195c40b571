"""The end of a program, which does not free its objects first."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from golden_words import GoldenWords

PROGRAM = """
import sys
from ssbench.cli import own_program
own_program.end_without_freeing()
import atexit, threading

class Freed:
    def __del__(self):
        print("freed", flush=True)

kept = Freed()
atexit.register(print, "registered")
threading.Timer(0.05, print, ("thread",)).start()
"""


def _run(end: str, stdout: Path | None = None) -> tuple[int, str, str]:
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with (stdout or Path(os.devnull)).open("w") as out:
        made = subprocess.run(
            [sys.executable, "-c", PROGRAM + end],
            stdout=out if stdout else subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env=buffered,
            timeout=60,
        )
    return made.returncode, made.stdout or "", made.stderr


def test_threads_end_and_registered_functions_are_called_but_nothing_is_freed() -> None:
    assert _run("sys.exit(own_program.note_exit_code(7))") == (7, "thread\nregistered\n", "")


def test_without_a_code_all_is_as_usual() -> None:
    assert _run("sys.exit(3)") == (3, "thread\nregistered\nfreed\n", "")


def test_full_standard_output_has_the_exit_code_of_python() -> None:
    code, _, errors = _run("sys.exit(own_program.note_exit_code(0))", Path("/dev/full"))
    assert code == 120
    assert "No space left on device" in errors


@pytest.mark.parametrize("program", ["master", "worker"])
def test_a_help_that_cannot_be_written_is_a_failure(program: str, golden_words: GoldenWords) -> None:
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [sys.executable, "-m", f"ssbench.cli.{program}", "--help"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert ended.returncode == 2
    assert ended.stderr.count("\n") == 1
    golden_words(ended.stderr)


def test_the_module_is_a_program_too() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "ssbench.cli.master"], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "Try it:" in ended.stdout
