"""The folder of earlier runs: where it is, and runs of it by reference."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from archive_folders import Folder, arguments
from golden_words import GoldenWords
from result_rows import many

from ssbench.base.errors import UsageError
from ssbench.cli import archives
from ssbench.cli.master import main
from ssbench.results.run_description import PrecisionFacts, RunDescription, RunSummary
from ssbench.results.writer import RunResultsWriter
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


def write_run(folder: Path, name: str, seconds: float, *, reached: bool = True, users: int = 4) -> None:
    """Write the stat file of a run with --until 2%."""
    scenario = override(read_scenario("very_small"), user_count=users)
    writer = RunResultsWriter(folder / f"{name}.stat.gz", RunDescription(scenario, started=1e9))
    writer.add(many(range(10), completed=1e9))
    known = PrecisionFacts("rate", 0.02, 0.018, seconds, reached)
    writer.end(RunSummary(1e9 + seconds, until=(known,)))


def test_how_long_earlier_runs_took_that_until_ended(tmp_path: Path, golden_words: GoldenWords) -> None:
    goals = parse_precisions("2%")
    title = read_scenario("very_small").name

    def forecast(users: int = 4, goals: Sequence[Precision] = goals, *more: tuple[str, int]) -> str:
        runs = [(title, users, goals), *((*each, goals) for each in more)]
        return archives.describe_until_forecast(tmp_path, runs)

    assert forecast() == ""
    write_run(tmp_path, "a", 62.0)
    write_run(tmp_path, "other", 500.0, users=8)
    write_run(tmp_path, "bound", 300.0, reached=False)
    said = f"--until ended 1 earlier run of {title} with 4 users after 1 min 2 s"
    assert forecast() == said
    write_run(tmp_path, "b", 130.0)
    said = f"--until ended 2 earlier runs of {title} with 4 users after 1 min 2 s to 2 min 10 s"
    assert forecast() == said
    for other in ("1%", "p99 2%", "rate 2% and p99 2%"):
        assert forecast(4, parse_precisions(other)) == ""
    assert forecast(4, ()) == ""
    # Of the rows of a suite, the two sides of --versus and so on; one that is there twice is one way to run.
    golden_words(forecast(4, goals, (title, 8), (title, 16), (title, 8)))
