"""The first screen, the help, and what is said of a wrong command line."""

from __future__ import annotations

import inspect
import os
import re
from importlib import import_module
from pathlib import Path

import pytest
from asked_commands import ask

from ssbench.base import errors
from ssbench.cli import auth_options, master


def call(*arguments: str) -> int:
    """Run ssbench-master; return its exit code."""
    try:
        return master.main(list(arguments))
    except SystemExit as ended:
        return int(ended.code or 0)


def test_without_a_command_it_says_what_to_try(capsys):
    assert call() == 0
    screen = capsys.readouterr().out
    assert 8 <= screen.count("\n") <= 10
    assert max(map(len, screen.splitlines())) <= 80
    assert "run-scenario -f smoke --local-swift" in screen
    for command in master.COMMANDS:
        assert command in screen


@pytest.mark.parametrize("command", master.COMMANDS)
def test_the_help_of_a_command_begins_with_an_example_of_it(command, capsys):
    assert call("help", command) == 0
    by_word = capsys.readouterr().out
    assert by_word.startswith(f"example: ssbench-master {command}")
    assert call(command, "--help") == 0
    assert capsys.readouterr().out == by_word
    assert "--os-password" not in by_word


def test_a_command_is_the_module_of_its_name():
    others = {
        name for name, module in master._MODULES.items() if not module.endswith(f".{name.replace('-', '_')}")
    }
    assert others == {"run-scenario"}


def test_every_default_is_written_in_one_way(capsys):
    for command in master.COMMANDS:
        call(command, "--help")
        text = capsys.readouterr().out.lower()
        assert text.count("default:") == text.count("(default:"), command
        assert "defaults to" not in text


@pytest.mark.parametrize(
    "arguments", [("help", "auth"), ("--help", "auth"), ("run-scenario", "--help", "auth")], ids=" ".join
)
def test_authentication_has_a_page_of_its_own(arguments, capsys):
    assert call(*arguments) == 0
    page = capsys.readouterr().out
    for option in ("--auth-url", "--storage-url", "--token", "--insecure", "--os-password", "--os-cloud"):
        assert f" {option}" in page
    assert "--user-count" not in page
    assert max(map(len, page.splitlines())) <= 80


def test_urls_of_a_variable_that_the_shell_did_not_split(capsys):
    # zsh splits no variables, and in sh they are quoted.
    words = ["run-scenario", "-f", "small", "-S", "http://a/v1/x  http://b/v1/x", "-S", "http://c/v1/x"]
    arguments = ask(*words, "-T", "t", "--observe", "http://d http://e", "http://f")
    found = auth_options.make_credentials(arguments, {}).storage_urls
    assert found == ("http://a/v1/x", "http://b/v1/x", "http://c/v1/x")
    assert arguments.cluster.observe == [["http://d", "http://e"], ["http://f"]]
    assert call("run-scenario", "-f", "small", "-S", "") == 2
    assert "expected a URL" in capsys.readouterr().err


def test_a_help_has_the_exit_codes_of_its_command(capsys):
    codes = {}
    for command in ("list", "compare", "kill-workers", "run-scenario"):
        call("help", command)
        last = capsys.readouterr().out.splitlines()[-1]
        codes[command] = re.findall(r"\d+", last)
    assert codes == {
        "list": ["0", "2", "130"],
        "compare": ["0", "1", "2", "5", "6", "130"],
        "kill-workers": ["0", "1", "2", "130"],
        "run-scenario": ["0", "1", "2", "3", "4", "5", "6", "7", "130"],
    }


@pytest.mark.parametrize("command", master.COMMANDS)
def test_a_help_has_each_code_that_the_module_of_its_command_names(command, capsys):
    """The export of a file that was cut ended with 1, of which its help said nothing."""
    module = import_module(master._MODULES.get(command, f"ssbench.cli.{command.replace('-', '_')}"))
    named = {
        errors.ExitCode[name] for name in re.findall(r"\bExitCode\.([A-Z_]+)", inspect.getsource(module))
    }
    call("help", command)
    last = capsys.readouterr().out.splitlines()[-1]
    assert {str(int(each)) for each in named} <= {*re.findall(r"\d+", last)}


def test_each_exit_code_is_ranked_and_explained(capsys):
    call("help", "exit-codes")
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= 80
    readme = (Path(__file__).parents[3] / "README.rst").read_text("utf-8").partition("Exit codes\n")[2]
    codes = [*errors.ExitCode]
    assert [int(code) for code in re.findall(r"^ +(\d+)  \S", said, re.MULTILINE)] == codes
    assert [int(code) for code in re.findall(r"^(\d+)  +\S", readme, re.MULTILINE)] == codes
    assert sorted(errors.SEVERITY) == codes


@pytest.mark.parametrize("command", ["help scenarios", "help suites"])
def test_a_list_fits_a_terminal_and_has_a_line_for_each_elsewhere(
    command: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert call(*command.split()) == 0
    piped = capfd.readouterr().out
    assert all(re.match(r"\w+ +\S", line) for line in piped.splitlines())
    assert max(map(len, piped.splitlines())) > 80
    monkeypatch.setattr(os, "get_terminal_size", lambda *_: os.terminal_size((80, 24)))
    assert call(*command.split()) == 0
    shown = capfd.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    assert shown.split() == piped.split()
    assert {line[:22] for line in shown.splitlines() if line.startswith(" ")} == {" " * 22}


def test_every_help_has_a_complete_one(capsys):
    call("compare", "--help")
    usual = capsys.readouterr().out
    call("compare", "--help-all")
    assert capsys.readouterr().out == usual
    assert "--help-all" not in usual
