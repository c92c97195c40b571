"""Command lines: what is said of wrong ones, and the short help."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ssbench.cli import master, parser


def call(*arguments: str) -> int:
    """Run ssbench-master; return its exit code."""
    try:
        return master.main(list(arguments))
    except SystemExit as ended:
        return int(ended.code or 0)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run"], "ssbench-master: error: argument SUBCOMMAND: 'run' is not one of run-scenario,"),
        (["run"], "; did you mean run-scenario?"),
        (["repotr-scenario"], "; did you mean report-scenario"),
        (["help", "keygn"], "; did you mean keygen?"),
        (
            ["help", "atuh"],
            "auth, exit-codes, scenarios, suites; did you mean auth? (see 'ssbench-master --help')",
        ),
        (["list", "DIR"], "list: error: unrecognized arguments: DIR (see 'ssbench-master list --help')"),
        (["check-scenario", "-g", "x"], "arguments: -g (see 'ssbench-master check-scenario --help')"),
        (["check-scenario"], "a scenario is expected: FILE ('ssbench-master help scenarios' lists"),
        (["check-scenario", "small", "-f", "web"], "a scenario is given twice, as FILE and with -f; one is"),
        (["qqq"], "local-swift (see 'ssbench-master --help')"),
        # Before it is said that -s is missing.
        (["report-scenario", "--stat-file", "x"], "--stat-file; did you mean --stats-file?"),
        (["report-scenario", "--csx"], "--csx; did you mean --csv? (see"),
        (["config", "--alx"], "--alx; did you mean --all? (see"),
        (["run-scenario", "--user_cuont=3"], "--user-cuont; did you mean --user-count?"),
        (["export", "-s", "x", "-f", "cvs"], "'cvs' is not one of csv, jsonl, parquet; did you mean csv?"),
        (["run-scenario", "--qqqqqq"], "unrecognized arguments: --qqqqqq (see"),
        (["run-scenario", "--users", "4"], "--users; did you mean --user-count? (see"),
        (["run-scenario", "--concurrency", "4"], "--concurrency; did you mean --user-count? (see"),
        (["local-swift", "--time", "4"], "--time; did you mean --duration? (see"),
        (["report-scenario", "--users", "4"], "--users (see"),
        (["report-scenario", "--mix", "get"], "--mix (see"),
        (["run-scenario", "--files", "4"], "--files; the scenario has the key initial_files for that"),
        (["run-scenario", "--obj-size", "4K"], "--obj-size; did you mean -f size=4kB? (see"),
        (["run-scenario", "--output=x"], "--output; did you mean --stats-file or --json? (see"),
        (
            ["run-scenario", "--timeout=1"],
            "--timeout; did you mean --connect-timeout or --network-timeout",
        ),
        (
            ["run-scenario", "--format", "json"],
            "--format; did you mean --json or --csv or --ci? (see",
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
    assert len(flags[0]) == 20
    assert flags[0] < flags[1]
    assert {"--workers", "--run-seconds", "--local-swift"} <= flags[0]
    count = re.search(r"All (\d+) options: ssbench-master run-scenario --help-all", short)[1]
    assert int(count) > 60
    assert short.count("\n") < 75
    assert "-A, -U, -K" in everything


#: Tables of doc/coming-from.rst, whose left columns have options of other tools; ours come after them.
OTHER_TOOLS = re.findall(
    r"^=+  =+\n(?!ssbench)(?:.|\n)*?\n=+  =+\n((?:.|\n)*?)^=+  =+$",
    (Path(__file__).parents[3] / "doc" / "coming-from.rst").read_text(),
    re.MULTILINE,
)


def options_of_other_tools() -> list[str]:
    cells = [line[:33] for table in OTHER_TOOLS for line in table.splitlines()]
    words = {word for cell in cells for code in re.findall("``(.*?)``", cell) for word in code.split()[:1]}
    # COSBench has a file in XML, whose words are tried as options too.
    return sorted(
        {"--obj.randsize", "--rampup", "--totalOps", "--latency", *(w for w in words if w[0] == "-")}
    )


@pytest.mark.parametrize("option", options_of_other_tools())
def test_options_of_other_tools_have_a_hint(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The left columns of what to do coming from another tool: who knows one types it."""
    made = master.find_sub_parsers(master.parser(["run-scenario"]))["run-scenario"]
    if option in made._option_string_actions:
        return
    with pytest.raises(SystemExit):
        master.main(["run-scenario", option, "5"])
    assert re.search(r"; did you mean -|; write -|; the scenario has the key", capsys.readouterr().err)


@pytest.mark.parametrize(("option", "instead"), parser._REPLACED_OPTIONS.items())
def test_an_option_of_before_is_answered_with_that_of_now(
    option: str, instead: str, capsys: pytest.CaptureFixture[str]
) -> None:
    made = master.find_sub_parsers(master.parser(["run-scenario"]))["run-scenario"]
    assert f"--{option}" not in made._option_string_actions
    with pytest.raises(SystemExit):
        master.main(["run-scenario", f"--{option}", "5"])
    assert f"--{option}; write {instead} instead (see" in capsys.readouterr().err


@pytest.mark.parametrize(("word", "meant"), [("evnts", "; did you mean events?"), ("/nowhere", "")])
def test_what_is_allowed_is_a_folder_or_events(
    word: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        master.main(["run-scenario", "-f", "small", "--allow", word])
    assert f"{word!r} is neither a folder nor events{meant}" in capsys.readouterr().err


def test_the_tables_of_other_tools_are_found() -> None:
    assert len(OTHER_TOOLS) == 4
    assert {"--autoterm", "--get-concurrency", "-x", "--obj.size"} <= set(options_of_other_tools())


def test_a_flag_of_0_2_9_that_has_a_value_today(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        master.main(["run-scenario", "-f", "small", "-r"])
    assert "-R leaves the report out, as -r did in ssbench 0.2.9" in capsys.readouterr().err
