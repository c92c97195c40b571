"""A run without a file: which options go together, and which of those set elsewhere count."""

from __future__ import annotations

from pathlib import Path

import pytest
from asked_commands import ask
from golden_words import GoldenWords

from ssbench.cli import master, plans
from ssbench.cli import run_scenario as command
from ssbench.scenario.scenario_files import read_scenario_text
from ssbench.scenario.scenario_reading import check_scenario_text


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert master.main(["run-scenario", *words]) == 2
    said = capsys.readouterr().err.strip().splitlines()
    return said[-1]


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_scenario_of_a_line_is_printed_for_f(capsys: pytest.CaptureFixture[str]) -> None:
    line = "size=4kB..1MB mix=put,get user_count=4 operation_count=300 policy=gold"
    assert master.main(["check-scenario", line, "--print"]) == 0
    found = check_scenario_text(capsys.readouterr().out, "printed")
    assert (found.user_count, found.operation_count, found.policy) == (4, 300, "gold")
    assert master.main(["check-scenario", "very_small", "--print"]) == 0
    assert capsys.readouterr().out == read_scenario_text("very_small")
    assert master.main(["check-scenario", line]) == 0
    assert "4kB" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        ["-f", "mix=get"],
        ["-f", "size=4kB"],
        ["-f", "size=4kB mix=get", "--phases", "get"],
        ["-f", "size=4x mix=get"],
        ["-f", "size=4kB mix=get objects=0"],
        ["-f", "size=4kB mix=get user_coun=4"],
        ["-f", "size=4kB mix=get user_count=x"],
        ["-f", "size=4kB mix=gett"],
        ["-f", "size=4kB 'mix=get"],
        ["-f", "size=4kB", "--phases", "get", "--part", "1/2"],
        ["-f", "size=4kB", "--phases", "get", "--json", "-"],
        ["--phases", "get"],
        [],
        ["-f", "small", "--at", "soon", "true"],
        ["-f", "small", "--at", "5", " "],
    ],
)
def test_options_that_do_not_go_together_are_one_line(
    words: list[str], capsys: pytest.CaptureFixture[str], golden_words: GoldenWords
) -> None:
    golden_words(refused(capsys, *words, "--noop"))


def test_a_file_that_is_called_like_a_line_is_a_file(empty_folder: Path) -> None:
    (empty_folder / "size=4kB").write_text(read_scenario_text("very_small"))
    asked = ask("run-scenario", "-f", "size=4kB")
    assert command.load_asked_scenario(asked, command.RunPlace())[1].name == "Small test scenario"


def test_the_command_line_says_how_long_the_scenario_of_a_line_is() -> None:
    def limits(*words: str) -> tuple[float | None, int | None]:
        asked = ask("run-scenario", "-f", "size=4kB mix=get run_seconds=1m", *words)
        found = command.load_asked_scenario(asked, command.RunPlace())[1]
        return found.run_seconds, found.operation_count

    assert [limits(), limits("-r", "5"), limits("-o", "7")] == [(60, None), (5, None), (None, 7)]


def test_the_other_side_may_have_a_file_or_a_line() -> None:
    def load(*words: str) -> str:
        asked = plans.parse_second_side(ask("run-scenario", "--repeat", "2", *words))
        return command.load_asked_scenario(asked, command.RunPlace())[1].name

    line = ["-f", "size=4kB mix=get"]
    assert load(*line, "--versus=-f very_small") == "Small test scenario"
    assert load(*line, "--versus=-f 'size=8kB mix=get'") == "8kB objects"
    assert load("-f", "very_small", "--versus=-f 'size=1kB mix=put'") == "1kB objects"


def test_no_file_and_no_variable_runs_commands(
    empty_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither one of the current folder nor another one has --at; --allow is the user's own to set."""
    for text in ("at = ['1', 'touch x']", "allow = ['events']"):
        (empty_folder / "ssbench.toml").write_text(f"{text}\n")
        refused(capsys, "-f", "small", "--noop")
    (empty_folder / "ssbench.toml").unlink()
    monkeypatch.setenv("SSBENCH_AT", "1 'touch x'")
    assert ask("run-scenario", "-f", "small", settings=True).at == []


def test_how_exactly_a_search_is_to_answer_is_said_with_its_conditions(
    capsys: pytest.CaptureFixture[str],
    golden_words: GoldenWords,
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
    golden_words(capsys.readouterr().err)


def test_one_file_can_list_objects_that_exist(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ask("run-scenario", "-f", "x", "--existing", "photos", "--existing", "@names.txt")
    assert asked.existing == ["photos", Path("names.txt")]
    existing = ("--existing", "@a", "--existing", "@b")
    assert master.main(["run-scenario", "-f", "existing", "-s", str(tmp_path / "x"), *existing]) == 2
    assert "--existing: one @FILE is possible, with all objects" in capsys.readouterr().err
