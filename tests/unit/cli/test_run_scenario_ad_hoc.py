"""A run without a file: which options go together, and which of those set elsewhere count."""

from __future__ import annotations

from pathlib import Path

import pytest
from asked_commands import ask

from ssbench.cli import master, plans
from ssbench.cli import run_scenario as command
from ssbench.scenario.reading import check_scenario_text


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert master.main(["run-scenario", *words]) == 2
    said = capsys.readouterr().err.strip().splitlines()
    return said[-1]


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_scenario_is_printed_for_f(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--size", "4kB..1MB", "--phases", "put,get", "-u", "4", "-o", "300", "--policy", "gold")
    assert master.main(["run-scenario", "--print-scenario", *words]) == 0
    text = capsys.readouterr().out
    assert text.startswith("# ssbench-master run-scenario -f FILE --phases put,get\n")
    found = check_scenario_text(text, "printed")
    assert (found.user_count, found.operation_count, found.policy) == (4, 300, "gold")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["-f", "small", "--mix", "get"],
            "-f names a scenario, which has sizes and operations: leave out --mix",
        ),
        (["-f", "small", "--size", "4kB"], "leave out --size"),
        (["-f", "small", "--objects", "4"], "leave out --objects"),
        (["-f", "small", "--print-scenario"], "leave out --print-scenario"),
        (["--mix", "get"], "--size is missing"),
        (["--phases", "get"], "--size is missing"),
        (["--size", "4kB"], "--mix and --phases: expected one of them"),
        (["--size", "4kB", "--mix", "get", "--phases", "get"], "--mix and --phases: expected one of them"),
        (["--size", "4kB", "--phases", "get", "--part", "1/2"], "--phases are several runs of one master"),
        (["--size", "4kB", "--phases", "get", "--json", "-"], "expected the name of a file, not -"),
        ([], "-f/--scenario-file is required"),
        (["-f", "small", "--at", "soon", "true"], "--at: 'soon' is not a time"),
        (["-f", "small", "--at", "5", " "], "--at: expected a command that is not empty"),
    ],
)
def test_options_that_do_not_go_together_are_one_line(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in refused(capsys, *words, "--noop")


def test_a_wrong_size_names_the_option(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        master.main(["run-scenario", "--size", "4x", "--mix", "get"])
    said = capsys.readouterr().err
    assert "argument --size: expected a size" in said
    assert "'4x' is not a number of bytes" in said


def test_the_command_line_wins_over_files_of_settings(
    empty_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (empty_folder / "ssbench.toml").write_text("scenario-file = 'small'\n")
    assert master.main(["run-scenario", "--size", "4kB", "--mix", "get", "--print-scenario"]) == 0
    assert "4kB objects" in capsys.readouterr().out
    (empty_folder / "ssbench.toml").write_text("size = '4kB'\nmix = 'get'\n")
    assert "--pause is between the runs" in refused(capsys, "-f", "small", "--pause", "1", "--noop")


def test_the_other_side_may_have_a_file_or_none() -> None:
    def load(*words: str) -> str:
        asked = plans.parse_second_side(ask("run-scenario", "--repeat", "2", *words))
        return command._load_scenario(asked, command._Place())[1].name

    ad_hoc = ["--size", "4kB", "--mix", "get"]
    assert load(*ad_hoc, "--versus=-f very_small") == "Small test scenario"
    assert load(*ad_hoc, "--versus=--size 8kB") == "8kB objects"
    assert load("-f", "very_small", "--versus=--size 1kB --mix put") == "1kB objects"


def test_no_file_and_no_variable_runs_commands(
    empty_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither one of the current folder nor another one has --at; --allow-events is the user's own to set."""
    for text in ("at = ['1', 'touch x']", "allow-events = true"):
        (empty_folder / "ssbench.toml").write_text(f"{text}\n")
        refused(capsys, "-f", "small", "--noop")
    (empty_folder / "ssbench.toml").unlink()
    monkeypatch.setenv("SSBENCH_AT", "1 'touch x'")
    assert ask("run-scenario", "-f", "small", settings=True).at == []


def test_how_exactly_a_search_is_to_answer_is_said_with_its_conditions(
    capsys: pytest.CaptureFixture[str],
) -> None:
    usual, exact = (
        ask("run-scenario", "-f", "x", "--find", f"read.p99 <= 50ms and errors <= 1%{more}").find
        for more in ("", " within 5%")
    )
    assert ([each.text for each in exact.conditions], exact.within) == (
        ["read.p99 <= 50ms", "errors <= 1%"],
        0.05,
    )
    assert usual == exact._replace(within=None)
    with pytest.raises(SystemExit):
        ask("run-scenario", "-f", "x", "--find", "read.p99 <= 50ms within x")
    assert "argument --find: 'x' is not a percentage such as 2%" in capsys.readouterr().err


def test_one_file_can_list_objects_that_exist(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ask("run-scenario", "-f", "x", "--existing", "photos", "--existing", "@names.txt")
    assert asked.existing == ["photos", Path("names.txt")]
    existing = ("--existing", "@a", "--existing", "@b")
    assert master.main(["run-scenario", "-f", "existing", "-s", str(tmp_path / "x"), *existing]) == 2
    assert "--existing: one @FILE is possible, with all objects" in capsys.readouterr().err
