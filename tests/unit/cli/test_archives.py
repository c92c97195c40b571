"""The folder of earlier runs: where it is, and runs of it by reference."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from archive_folders import Folder, arguments
from golden_words import GoldenWords
from result_rows import many

from ssbench.base.errors import UsageError
from ssbench.base.version import __version__
from ssbench.cli import archives
from ssbench.cli.master import main
from ssbench.comparison.archive import UntilRun
from ssbench.comparison.run_figures import collect_described_facts
from ssbench.comparison.sweep import make_step_scenario
from ssbench.comparison.sweep_variables import Variable
from ssbench.results.run_description import PrecisionFacts, RunDescription, RunSummary
from ssbench.results.writer import RunResultsWriter
from ssbench.run.bench_options import BenchOptions, RunOptions, recorded_options
from ssbench.scenario.conditions import parse_precisions
from ssbench.scenario.consistency import override
from ssbench.scenario.scenario_reading import read_scenario
from ssbench.scenario.value_rules import Precision


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)


def test_the_folder_is_named_by_the_option_or_the_variable(monkeypatch, tmp_path):
    monkeypatch.delenv(archives.RESULTS_DIR_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    # Where runs leave their files that are told nothing.
    assert archives.open_archive(None).folder == tmp_path / "ssbench"
    monkeypatch.setenv(archives.RESULTS_DIR_VARIABLE, str(tmp_path / "x"))
    assert archives.open_archive(None).folder == tmp_path / "x"
    assert archives.open_archive(tmp_path).folder == tmp_path
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(UsageError, match="file: is not a folder"):
        archives.choose_folder(file)


def test_only_the_usual_folder_has_earlier_ones(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(archives, "_read_entry", lambda path: Folder(path.parent)._read(path))
    earlier = Folder(tmp_path / "ssbench-results")
    earlier.path.mkdir()
    earlier.write("old.stat.gz", 1)
    assert archives.open_archive(None).find("last") == [earlier.path / "old.stat.gz"]
    assert archives.open_archive(tmp_path / "state").entries() == []
    # What others may write to is not read.
    earlier.path.chmod(0o777)
    assert archives.open_archive(None).entries() == []


def test_a_report_of_the_last_run(monkeypatch, folder, capsys, golden_words: GoldenWords):
    for number, each in enumerate(["old", "new", "new"]):
        folder.write(f"{number}.stat.gz", number, each)
    monkeypatch.setattr(archives, "open_archive", lambda _: folder.archive)
    assert archives.choose_stat_file(arguments(stats_file=Path("last-1"))) == folder.path / "1.stat.gz"
    assert (
        archives.choose_stat_file(arguments(file=Path("last-1"), stats_file=None))
        == folder.path / "1.stat.gz"
    )
    with pytest.raises(UsageError, match="given twice"):
        archives.choose_stat_file(arguments(file=Path("last"), stats_file=Path("last"), given={"stats_file"}))
    with golden_words.raises(UsageError):
        archives.choose_stat_file(arguments(stats_file=None))
    assert archives.choose_stat_file(arguments(stats_file=Path("x/y.stat"))) == Path("x/y.stat")
    with golden_words.raises(UsageError):
        archives.choose_stat_file(arguments(stats_file=Path("@new")))
    with golden_words.raises(UsageError):
        archives.resolve_references(None, ["old"])
    for command in ("report-scenario", "export", "attribute"):
        logs = ["--swift-logs", str(folder.path)] if command == "attribute" else []
        assert main([command, "-s", "last-9", *logs]) == 2
        assert "there is no last-9, only 3 runs" in capsys.readouterr().err


def describe(users: int = 4, *, noop: bool = False, **scenario: object) -> RunDescription:
    """Describe a run, or one that is to be made."""
    own = override(read_scenario("very_small"), user_count=users, **scenario)
    options = recorded_options(BenchOptions(workers=1), RunOptions(noop=noop), None)
    return RunDescription(own, __version__, options=options, started=1e9)


def write_run(
    folder: Path, name: str, seconds: float, about: RunDescription, *, reached: bool = True
) -> None:
    """Write the stat file of a run with --until 2%."""
    writer = RunResultsWriter(folder / f"{name}.stat.gz", about)
    writer.add(many(range(10), completed=1e9))
    known = PrecisionFacts("rate", 0.02, 0.018, seconds, reached)
    writer.end(RunSummary(1e9 + seconds, until=(known,)))


GOALS = parse_precisions("2%")


def forecast(folder: Path, *runs: RunDescription, goals: Sequence[Precision] = GOALS) -> str:
    ways = [
        UntilRun(each.scenario.name, tuple(collect_described_facts(each).items()), tuple(goals))
        for each in runs
    ]
    return archives.describe_until_forecast(folder, ways)


def test_how_long_earlier_runs_took_that_until_ended(tmp_path: Path, golden_words: GoldenWords) -> None:
    own = describe()
    assert forecast(tmp_path, own) == ""
    write_run(tmp_path, "a", 62.0, own)
    write_run(tmp_path, "other", 500.0, describe(8))
    write_run(tmp_path, "bound", 300.0, own, reached=False)
    said = f"--until ended 1 earlier run of {own.scenario.name} with 4 users after 1 min 2 s"
    assert forecast(tmp_path, own) == said
    write_run(tmp_path, "b", 130.0, own)
    said = f"--until ended 2 earlier runs of {own.scenario.name} with 4 users after 1 min 2 s to 2 min 10 s"
    assert forecast(tmp_path, own) == said
    for other in ("1%", "p99 2%", "rate 2% and p99 2%"):
        assert forecast(tmp_path, own, goals=parse_precisions(other)) == ""
    assert forecast(tmp_path, own, goals=()) == ""
    # Of the rows of a suite, the two sides of --versus and so on; one that is there twice is one way to run.
    golden_words(forecast(tmp_path, own, describe(8), describe(16), describe(8)))


LARGER = make_step_scenario(read_scenario("very_small"), Variable.SIZE, 123_456)


@pytest.mark.parametrize(
    "other",
    [
        describe(rate=100.0),
        describe(noop=True),
        replace(describe(), version="1"),
        replace(describe(), scenario=replace(LARGER, user_count=4)),
    ],
)
def test_earlier_runs_count_that_have_all_in_common(tmp_path: Path, other: RunDescription) -> None:
    """Those of another rate or size, or of other options, did so."""
    write_run(tmp_path, "a", 62.0, other)
    assert forecast(tmp_path, describe()) == ""
    assert "after 1 min 2 s" in forecast(tmp_path, other)


def test_the_stores_of_earlier_runs_are_named(tmp_path: Path) -> None:
    """Where a run goes is known when it begins."""
    own = describe(run_seconds=600.0)
    for number, url in enumerate(("http://a/v1/x", "http://b/v1/x"), 1):
        write_run(tmp_path, str(number), 60.0 * number, replace(own, seed=number, storage_urls=(url,)))
    assert "with 4 users (http://a/v1/x and http://b/v1/x) after" in forecast(tmp_path, describe())
