"""What a run may wait for with ``--until``, and for how long."""

from __future__ import annotations

from pathlib import Path

import pytest
from asked_commands import ask
from golden_words import GoldenWords
from result_rows import many

from ssbench.base.errors import UsageError
from ssbench.base.version import __version__
from ssbench.cli import run_scenario, suite
from ssbench.plans.rows_work import make_suite_cells
from ssbench.results.run_description import PrecisionFacts, RunDescription, RunSummary
from ssbench.results.writer import RunResultsWriter
from ssbench.run.bench_options import BenchOptions, recorded_options
from ssbench.scenario.suite_file import read_suite

GROUPS = """
name: shared
sizes: [{name: tiny, size: 1}]
initial_files: {tiny: 10}
run_seconds: 20
groups:
- {name: web, users: 2, crud_profile: {read: 1}}
- {name: batch, users: 1, crud_profile: {create: 1}}
"""

STAGED = """
name: staged
sizes: [{name: tiny, size: 1}]
initial_files: {tiny: 1}
crud_profile: {read: 1}
user_count: 2
stages: [{seconds: 60, users: 1}, {seconds: 60, users: 2}]
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in (("groups", GROUPS), ("staged", STAGED)):
        (tmp_path / f"{name}.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SSBENCH_CONFIG", "")
    return tmp_path


def load(*words: str) -> tuple[list[str], float | None, int | None]:
    """Return what the run waits for, and its limits in seconds and operations."""
    asked, scenario = run_scenario.load_asked_scenario(
        ask("run-scenario", "--workers", "1", *words), run_scenario.RunPlace()
    )
    return [each.text for each in asked.goals], scenario.run_seconds, scenario.operation_count


AD_HOC = ("-f", "size=4kB mix=read=9,create=1")


def test_several_goals_are_those_of_all_uses() -> None:
    found, _, _ = load(*AD_HOC, "--until", "2%", "--until", "read.p99 5% and create.4kB.first_mean 3%")
    assert found == ["rate 2%", "read.p99 5%", "create.4kB.first_mean 3%"]


@pytest.mark.parametrize(
    ("words", "limits"),
    [
        (AD_HOC, (3600.0, None)),
        ((*AD_HOC, "-r", "90"), (90.0, None)),
        ((*AD_HOC, "-o", "500"), (None, 500)),
        (("-f", "groups.yaml"), (3600.0, None)),
        # It would run out of objects.
        (("-f", "size=4kB mix=read=1,delete=1"), (None, 1000)),
    ],
)
def test_there_is_always_a_limit(words: tuple[str, ...], limits: tuple[float | None, int | None]) -> None:
    assert load(*words, "--until", "2%")[1:] == limits


def test_figures_of_a_group_and_of_a_given_rate() -> None:
    assert load("-f", "groups.yaml", "--until", "web.read.tiny.p99 5%")[0] == ["web.read.tiny.p99 5%"]
    assert load(*AD_HOC, "--rate", "5", "--until", "read.response_p99 5%")[0] == ["read.response_p99 5%"]


@pytest.mark.parametrize(
    "words",
    [
        (*AD_HOC, "--until", "2%", "--rate", "5"),
        (*AD_HOC, "--until", "p50 2% and mb_per_s 2%", "--rate", "5"),
        ("-f", "staged.yaml", "--until", "p50 2%"),
        (*AD_HOC, "--until", "delete.p50 2%"),
        (*AD_HOC, "--until", "reed.p50 2%"),
        (*AD_HOC, "--until", "read.tiny.p50 2%"),
        ("-f", "groups.yaml", "--until", "wbe.read.p50 2%"),
        (*AD_HOC, "--noop", "--until", "2% and p50 2%"),
    ],
)
def test_what_a_run_cannot_wait_for(words: tuple[str, ...], golden_words: GoldenWords) -> None:
    with pytest.raises(UsageError) as error:
        load(*words)
    golden_words(str(error.value))


SUITE = """
name: rows
seconds: 100
scenarios:
  plain: {sizes: [{name: tiny, size: 1}], initial_files: {tiny: 10}, profile: {read: 1}, user_count: 2}
rows:
  shared: {scenario: groups.yaml}
  closed: {scenario: plain}
  open: {scenario: plain, set: {rate: 5}}
"""


def bind(folder: Path, *words: str) -> dict[str, list[str]]:
    """Return what each row of a suite waits for."""
    (folder / "rows.yaml").write_text(SUITE)
    asked = ask("suite", "rows.yaml", "--workers", "1", *words)
    made = make_suite_cells(read_suite(asked.suite), asked.options)
    cells = suite._bind_goals_of_rows(asked, made)
    return {cell.row: [each.text for each in cell.options.until] for cell in cells}


def test_each_row_of_a_suite_waits_for_the_figures_that_it_has(
    folder: Path, caplog: pytest.LogCaptureFixture, golden_words: GoldenWords
) -> None:
    caplog.set_level("INFO")
    assert bind(folder, "--until", "2% and create.p50 3%", "--until", "p99 5%") == {
        "shared": ["rate 2%", "create.p50 3%", "p99 5%"],
        "closed": ["rate 2%", "p99 5%"],
        "open": ["p99 5%"],
    }
    said = [each for each in caplog.messages if "--until" in each]
    golden_words(said)
    assert set(map(tuple, bind(folder).values())) == {()}


def test_a_suite_does_not_wait_for_what_no_row_has(folder: Path) -> None:
    with pytest.raises(UsageError, match="the scenario has no delete"):
        bind(folder, "--until", "2% and delete.p50 3%")


def test_a_phase_waits_for_what_it_does_alone(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    words = ("-f", "size=1kB", "--phases", "put,get", "--noop", "--workers", "1", "-r", "50")
    asked = ask("run-scenario", *words, "--until", "create.rate 5% and rate 2%")
    asked, sides, _ = run_scenario._make_sides(asked, asked, run_scenario.RunPlace())
    found = run_scenario._split_phases(asked.phases or (), sides)
    goals = {name: [each.text for each in side.options.until] for name, [side] in found}
    assert goals == {"put": ["create.rate 5%", "rate 2%"], "get": ["rate 2%"]}
    assert "Phase get does not wait for create.rate: it has no create" in caplog.text


def test_how_long_earlier_runs_of_rows_needed_is_said(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    (folder / "rows.yaml").write_text(SUITE)
    asked = ask("suite", "rows.yaml", "--workers", "1", "--until", "2%", "--results-dir", str(folder))
    made = make_suite_cells(read_suite(asked.suite), asked.options)
    ways = [(each.scenario, each.options) for each in suite._bind_goals_of_rows(asked, made)]
    fleet = BenchOptions(workers=1)
    run_scenario._say_until_forecast(asked.results_dir, fleet, ways)
    assert "earlier" not in caplog.text
    for number, row in enumerate(("closed", "another")):
        kept = recorded_options(fleet, ways[1][1], "mark") | {"row": row}
        about = RunDescription(made[1].scenario, __version__, started=1e9, options=kept)
        writer = RunResultsWriter(folder / f"{row}.stat.gz", about)
        writer.add(many(range(10), completed=1e9))
        known = PrecisionFacts("rate", 0.02, 0.018, 75.0 + 100 * number, reached=True)
        writer.end(RunSummary(1e9 + 100, until=(known,)))
    run_scenario._say_until_forecast(asked.results_dir, fleet, ways)
    assert "--until ended 1 earlier run of 1 of 2 rows after 1 min 15 s" in caplog.text
