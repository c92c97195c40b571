"""The first screen, the help, and what is said of a wrong command line."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from ssbench.base import errors
from ssbench.cli import auth_options, master, worker


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
    assert "run-scenario -f very_small --local-swift" in screen
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


def test_a_host_of_the_worker_with_a_port_is_refused(capsys):
    with pytest.raises(SystemExit) as end:
        worker.main(["--zmq-host", "master-host:13579", "1"])
    assert end.value.code == 2
    assert "expected a host or an IP address alone (the ports are --zmq-work-port" in capsys.readouterr().err


def test_the_help_of_the_worker_begins_with_an_example(capsys):
    with pytest.raises(SystemExit):
        worker.main(["--help"])
    assert capsys.readouterr().out.startswith("example: ssbench-worker")


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


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run"], "ssbench-master: error: argument SUBCOMMAND: 'run' is not one of run-scenario,"),
        (["run"], "; did you mean run-scenario?"),
        (["repotr-scenario"], "; did you mean report-scenario"),
        (["help", "keygn"], "; did you mean keygen?"),
        (["help", "atuh"], "local-swift, auth, exit-codes; did you mean auth? (see 'ssbench-master --help')"),
        (["list", "DIR"], "list: error: unrecognized arguments: DIR (see 'ssbench-master list --help')"),
        (["check-scenario", "-g", "x"], "arguments: -g (see 'ssbench-master check-scenario --help')"),
        (["check-scenario"], "a scenario is expected: FILE (run-scenario --list-scenarios lists shipped"),
        (["check-scenario", "small", "-f", "web"], "a scenario is given twice, as FILE and with -f; one is"),
        (["qqq"], "local-swift (see 'ssbench-master --help')"),
        # Before it is said that -s is missing.
        (["report-scenario", "--stat-file", "x"], "--stat-file; did you mean --stats-file?"),
        (["run-scenario", "--user_cuont=3"], "--user-cuont; did you mean --user-count?"),
        (["export", "-s", "x", "-f", "cvs"], "'cvs' is not one of csv, jsonl, parquet; did you mean csv?"),
        (["run-scenario", "--qqqqqq"], "unrecognized arguments: --qqqqqq (see"),
        (["run-scenario", "--users", "4"], "--users; did you mean --user-count? (see"),
        (["run-scenario", "--concurrency", "4"], "--concurrency; did you mean --user-count? (see"),
        (["local-swift", "--time", "4"], "--time; did you mean --duration? (see"),
        (["report-scenario", "--users", "4"], "--users (see"),
        (["run-scenario", "--files", "4"], "--files; the scenario has the key initial_files for that"),
        (["run-scenario", "--obj-size", "4K"], "--obj-size; did you mean --size? (see"),
        (["run-scenario", "--output=x"], "--output; did you mean --stats-file or --json? (see"),
        (
            ["run-scenario", "--timeout=1"],
            "--timeout; did you mean --connect-timeout or --network-timeout",
        ),
        (
            ["run-scenario", "--format", "json"],
            "--format; did you mean --json or --csv or --summary-md? (see",
        ),
        (
            ["run-scenario", "-t", "30"],
            "unrecognized arguments: -t; did you mean --run-seconds or --workers? (see",
        ),
        (["run-scenario", "-X", "30"], "unrecognized arguments: -X (see"),
        # The value of an option of one letter may follow it at once, as in 0.3.9; it was no option at all.
        (["run-scenario", "-u3", "-r5x"], "argument -r/--run-seconds: '5x' is not a time above 0"),
        # What has a space is the value of the option before it.
        (
            ["run-scenario", "--versus", "-u 3", "-r5x"],
            "argument -r/--run-seconds: '5x' is not a time above 0",
        ),
        (["run-scenario", "-vqr5x"], "argument -r/--run-seconds: '5x' is not a time above 0"),
        (["run-scenario", "--secure"], "--secure (see"),
        (["run-scenario", "--insecur"], "--insecur; did you mean --insecure? (see"),
        (["run-scenario", "small"], "unrecognized arguments: small; did you mean -f small? (see"),
        (["version"], "; did you mean --version? (see"),
        (["conformance", "--local-swift"], "; 'ssbench-master local-swift' starts one for all commands (see"),
        (["find"], "; did you mean run-scenario --find? (see"),
        (["attribute", "last"], "--swift-logs, as in: ssbench-master attribute last --swift-logs proxy.log"),
        (["run-scenario", "--sweep", "users=1", "--sweep", "rate=1"], "argument --sweep: given twice; one"),
        (["run-scenario", "--sweep", "users=4-512"], "; did you mean users=4..512? (see"),
    ],
    ids=str,
)
def test_a_wrong_command_line_is_one_line_with_what_was_meant(arguments, said, capsys):
    assert call(*arguments) == 2
    text = capsys.readouterr().err
    assert said in text
    assert text.count("\n") == 1


def test_suggestions():
    known = ["very_small", "small", "4kB_read", "4kB_write"]
    assert errors.find_similar("smal", known)[0] == "small"
    assert errors.find_similar("4KB_READ", known)[0] == "4kB_read"
    assert errors.find_similar("4k", known) == ["4kB_read", "4kB_write"]
    assert errors.find_similar("huge", known) == []
    assert errors.did_you_mean("smal", known).startswith("; did you mean small")
    assert errors.did_you_mean("huge", known) == ""


def test_urls_of_a_variable_that_the_shell_did_not_split(capsys):
    # zsh splits no variables, and in sh they are quoted.
    words = ["run-scenario", "-f", "small", "-S", "http://a/v1/x  http://b/v1/x", "-S", "http://c/v1/x"]
    arguments = master.parser(words).parse_args(
        [*words, "-T", "t", "--recon", "http://d http://e", "http://f"]
    )
    found = auth_options.make_credentials(arguments, {}).storage_urls
    assert found == ("http://a/v1/x", "http://b/v1/x", "http://c/v1/x")
    assert arguments.recon == [["http://d", "http://e"], ["http://f"]]
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


def test_each_exit_code_is_ranked_and_explained(capsys):
    call("help", "exit-codes")
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= 80
    readme = (Path(__file__).parents[3] / "README.rst").read_text("utf-8").partition("Exit codes\n")[2]
    codes = [*errors.ExitCode]
    assert [int(code) for code in re.findall(r"^ +(\d+)  \S", said, re.MULTILINE)] == codes
    assert [int(code) for code in re.findall(r"^(\d+)  +\S", readme, re.MULTILINE)] == codes
    assert sorted(errors.SEVERITY) == codes


def test_the_short_help_has_what_people_use_and_leads_to_the_rest(capsys):
    call("run-scenario", "--help")
    short = capsys.readouterr().out
    call("run-scenario", "--help-all")
    everything = capsys.readouterr().out
    call("help", "run-scenario", "--help-all")
    assert capsys.readouterr().out == everything
    shown = [
        set(re.findall(r"^  (?:-\w [A-Z]*,? ?)?(--[\w-]+)|^  -\w[ A-Z]*, (--[\w-]+)", text, re.MULTILINE))
        for text in (short, everything)
    ]
    flags = [{one or two for one, two in each} for each in shown]
    assert len(flags[0]) == 17
    assert flags[0] < flags[1]
    assert {"--workers", "--run-seconds", "--local-swift"} <= flags[0]
    count = re.search(r"All (\d+) options: ssbench-master run-scenario --help-all", short)[1]
    assert int(count) > 60
    assert short.count("\n") < 75
    # What is not shown is not lost.
    assert call("run-scenario", "--list-scenarios") == 0
    assert "-A, -U, -K" in everything


@pytest.mark.parametrize("command", ["run-scenario --list-scenarios", "suite --list-suites"])
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
