"""Secrets of the command line are hidden before anything else is imported."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ssbench.base import own_processes
from ssbench.cli import auth_options, master, own_program
from ssbench.store.stores import SECRET_VARIABLES

SECRET_OPTIONS = [
    *(flag for each in auth_options.AUTH_OPTIONS if each.variable in SECRET_VARIABLES for flag in each.flags),
    *(flag for each in auth_options._TOKEN_OPTIONS for flag in each.spelling.split()),
    "--os_password",
]

#: The program itself, but for its parser, which would import the options.
PROGRAM = """
import sys
from pathlib import Path
from ssbench.cli import master
master.parser = lambda argv: sys.exit(Path("/proc/self/cmdline").read_text().replace("\\0", " "))
master.main()
"""


def find_hidden(monkeypatch: pytest.MonkeyPatch, *words: str) -> set[str]:
    hidden: set[str] = set()
    monkeypatch.setattr(own_processes, "hide_arguments", hidden.update)
    own_program.hide_secret_options(words)
    return hidden


@pytest.mark.parametrize("option", SECRET_OPTIONS)
def test_each_option_with_a_secret_is_known_by_its_name(option: str, monkeypatch: pytest.MonkeyPatch) -> None:
    joined = f"{option}=own" if option.startswith("--") else f"{option}own"
    assert find_hidden(monkeypatch, "run-scenario", option, "apart", "-u", "4", joined) == {"apart", "own"}


def test_the_value_of_each_other_option_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    actions = [each for made in master.make_command_parsers().values() for each in made._actions]
    others = {flag for each in actions for flag in each.option_strings}.difference(SECRET_OPTIONS)
    assert {"--os-key", "--zmq-key", "-k", "--user"} <= others
    hidden = {each for each in others if find_hidden(monkeypatch, "run-scenario", each, "value")}
    assert hidden == set()


@pytest.mark.parametrize(
    "word",
    ["--os_key=x", "--zmq-key=x", "--zmq_key", "--key-file", "--keygen", "--key=", "--os-password=", "key"],
)
def test_the_next_word_stays_as_it_is_behind(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_hidden(monkeypatch, "run-scenario", word, "value") <= {""}


def test_a_secret_cannot_be_seen_before_options_are_imported() -> None:
    words = ["run-scenario", "-K", "s3cret", "--os-password=s3cret", "-u", "4"]
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words], capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.stderr.split()[-6:] == ["run-scenario", "-K", "xxxxxx", "--os-password=xxxxxx", "-u", "4"]
