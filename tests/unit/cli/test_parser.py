"""Command lines: what is said of wrong ones, and the short help."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from golden_words import GoldenWords

from ssbench.cli import master, parser


def call(*arguments: str) -> int:
    """Run ssbench-master; return its exit code."""
    try:
        return master.main(list(arguments))
    except SystemExit as ended:
        return int(ended.code or 0)


@pytest.mark.parametrize(
    "arguments",
    [
        ["run"],
        ["repotr-scenario"],
        ["help", "keygn"],
        ["help", "atuh"],
        ["list", "DIR"],
        ["check-scenario", "-g", "x"],
        ["check-scenario"],
        ["check-scenario", "small", "-f", "web"],
        ["qqq"],
        # Before it is said that -s is missing.
        ["report-scenario", "--stat-file", "x"],
        ["report-scenario", "--csx"],
        ["config", "--alx"],
        ["run-scenario", "--user_cuont=3"],
        ["export", "-s", "x", "-f", "cvs"],
        ["run-scenario", "--qqqqqq"],
        ["run-scenario", "--users", "4"],
        ["run-scenario", "--concurrency", "4"],
        ["local-swift", "--time", "4"],
        ["report-scenario", "--users", "4"],
        ["report-scenario", "--mix", "get"],
        ["run-scenario", "--files", "4"],
        ["run-scenario", "--obj-size", "4K"],
        ["run-scenario", "--output=x"],
        ["run-scenario", "--timeout=1"],
        ["run-scenario", "--format", "json"],
        ["run-scenario", "-t", "30"],
        ["run-scenario", "-X", "30"],
        # The value of an option of one letter may follow it at once, as in 0.3.9; it was no option at all.
        ["run-scenario", "-u3", "-r5x"],
        # What has a space is the value of the option before it.
        ["run-scenario", "--versus", "-u 3", "-r5x"],
        ["run-scenario", "-vqr5x"],
        ["run-scenario", "--secure"],
        ["run-scenario", "--insecur"],
        ["run-scenario", "small"],
        ["version"],
        ["conformance", "--local-swift"],
        ["find"],
        ["attribute", "last"],
        ["run-scenario", "--sweep", "users=1", "--sweep", "rate=1"],
        ["run-scenario", "--repeat", "2", "--versus=--rate 9", "--versus=--label b"],
        ["run-scenario", "--html", "a.html", "--html", "b.html"],
        ["run-scenario", "-f", "smoke", "--metrics", "web", "web:8080"],
        ["run-scenario", "--sweep", "users=4-512"],
    ],
    ids=str,
)
def test_a_wrong_command_line_is_one_line_with_what_was_meant(arguments, capsys, golden_words: GoldenWords):
    assert call(*arguments) == 2
    text = capsys.readouterr().err
    golden_words(text)
    assert text.count("\n") == 1


def test_the_last_number_word_or_value_of_a_letter_counts() -> None:
    twice = ["-u", "1", "-u", "2", "--rate", "1", "--rate", "2", "--progress", "line", "--progress", "none"]
    twice += ["-s", "a", "-s", "b", "--zmq-bind-ip", "::1", "--zmq-bind-ip", "127.0.0.1", "--label", "a"]
    found = master.parser(["run-scenario"]).parse_args(["run-scenario", *twice, "--label", "a"])
    assert (found.user_count, found.rate, found.progress) == (2, 2.0, "none")
    assert (found.stats_file, found.zmq_bind_ip, found.label) == (Path("b"), "127.0.0.1", "a")


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
def test_options_of_other_tools_have_a_hint(
    option: str, capsys: pytest.CaptureFixture[str], golden_words: GoldenWords
) -> None:
    """The left columns of what to do coming from another tool: who knows one types it."""
    made = master.find_sub_parsers(master.parser(["run-scenario"]))["run-scenario"]
    if option in made._option_string_actions:
        return
    with pytest.raises(SystemExit):
        master.main(["run-scenario", option, "5"])
    golden_words(capsys.readouterr().err)


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
    word: str, meant: str, capsys: pytest.CaptureFixture[str], golden_words: GoldenWords
) -> None:
    with pytest.raises(SystemExit):
        master.main(["run-scenario", "-f", "small", "--allow", word])
    golden_words(capsys.readouterr().err)


def test_the_tables_of_other_tools_are_found() -> None:
    assert len(OTHER_TOOLS) == 4
    assert {"--autoterm", "--get-concurrency", "-x", "--obj.size"} <= set(options_of_other_tools())


def test_a_flag_of_0_2_9_that_has_a_value_today(
    capsys: pytest.CaptureFixture[str], golden_words: GoldenWords
) -> None:
    with pytest.raises(SystemExit):
        master.main(["run-scenario", "-f", "small", "-r"])
    golden_words(capsys.readouterr().err)
