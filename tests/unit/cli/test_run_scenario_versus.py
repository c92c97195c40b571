"""What files and variables set is for both ways of ``--versus``, whichever of them it does not fit."""

from __future__ import annotations

from pathlib import Path

import pytest
from asked_commands import ask

from ssbench.cli import run_scenario as command

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
    _, sides, _ = command._make_sides(asked, asked, command._Place())
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
