"""What files and variables set is for both ways of ``--versus``, whichever of them it does not fit."""

from __future__ import annotations

from pathlib import Path

import pytest
from asked_commands import ask
from golden_words import GoldenWords

from ssbench.base.errors import UsageError
from ssbench.cli import run_scenario as command
from ssbench.cli import unfit_options
from ssbench.cli.asked import fit_options

CLOSED = """\
name: closed
sizes: [{name: tiny, size_min: 100, size_max: 100, crud_profile: {read: 1}}]
initial_files: {tiny: 20}
user_count: 3
"""
STAGED = CLOSED + "stages: [{seconds: 2, users: 2}, {seconds: 2, users: 3}]\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in {
        "closed": f"{CLOSED}operation_count: 5\n",
        "staged": STAGED,
        "open": f"{CLOSED}operation_count: 5\nrate: 100\n",
    }.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SSBENCH_CONFIG", "")
    return tmp_path


def make_sides(*words: str) -> list[tuple[float | None, list[str]]]:
    """Return the seconds and the goals of both ways to run."""
    argv = ["run-scenario", "--noop", "--workers", "1", "--repeat", "1", *words]
    asked = ask(*argv, settings=True)
    _, sides, _ = command._make_sides(asked, asked, command.RunPlace())
    return [(side.scenario.run_seconds, [each.text for each in side.options.until]) for side in sides]


@pytest.mark.parametrize(
    ("first", "second", "seconds"), [("staged", "closed", [4.0, 7.0]), ("closed", "staged", [7.0, 4.0])]
)
def test_a_time_that_does_not_fit_the_stages_of_one_way_is_kept_for_the_other(
    first: str, second: str, seconds: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSBENCH_RUN_SECONDS", "7")
    found = make_sides("-f", f"{first}.yaml", f"--versus=-f {second}.yaml")
    assert [each for each, _ in found] == seconds


@pytest.mark.parametrize(
    ("first", "second", "goals"),
    [("open", "closed", [[], ["rate 20%"]]), ("closed", "open", [["rate 20%"], []])],
)
def test_a_goal_that_does_not_fit_the_rate_of_one_way_is_kept_for_the_other(
    first: str,
    second: str,
    goals: list[list[str]],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("SSBENCH_UNTIL", "20")
    caplog.set_level("INFO")
    found = make_sides("-f", f"{first}.yaml", "-r", "45", f"--versus=-f {second}.yaml")
    assert [goal for _, goal in found] == goals
    assert sum("--until is ignored" in each for each in caplog.messages) == 1


def test_the_name_of_the_scenario_is_said_once_and_that_of_another_one_too(
    caplog: pytest.LogCaptureFixture, folder: Path
) -> None:
    (folder / "other.yaml").write_text(f"{CLOSED.replace('closed', 'other')}operation_count: 5\n")
    caplog.set_level("INFO")
    for words, names in (("", ["closed"]), ("-f other.yaml", ["closed", "other"])):
        caplog.clear()
        make_sides("-f", "closed.yaml", f"--versus={words}")
        assert [each.rpartition(" ")[2] for each in caplog.messages if each.startswith("ssbench ")] == names


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("SSBENCH_PART", "1/2@2100-01-01T00:00:00", ()),
        ("SSBENCH_FAIL_IF", "errors > 1%", ("--sweep", "users=2")),
    ],
)
def test_what_does_not_fit_many_runs_is_set_for_no_way(
    variable: str, value: str, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    given = ask(
        *("run-scenario", "--noop", "--workers", "1", "--repeat", "1", "-f", "closed.yaml"),
        *("--versus=--set think_time=1", *words),
        settings=True,
    )
    asked = fit_options(given, unfit_options.UNFIT_FOR_CALL, None)
    _, sides, _ = command._make_sides(asked, given, command.RunPlace())
    assert [each.scenario.think_time for each in sides] == [0.0, 1.0]
    assert {each.options.part for each in sides} == {None}
    assert [[*each.scenario.fail_if] for each in sides] == [[], []]


@pytest.mark.parametrize(
    "words",
    [
        ("--versus=--existing old",),
        ("--versus=--swift-config object-server:app:splice=yes",),
        ("--versus=-u 2", "--sweep", "users=2"),
    ],
)
def test_what_does_not_fit_the_second_way_is_refused(
    words: tuple[str, ...], golden_words: GoldenWords
) -> None:
    with golden_words.raises(UsageError):
        make_sides("-f", "closed.yaml", *words)
