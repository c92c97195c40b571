"""Several runs over one bench: names of stat files, one seed."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from ssbench.base.errors import StatFileError
from ssbench.run.bench import Bench
from ssbench.run.benchmark_run import RunOutcome
from ssbench.run.options import RunOptions
from ssbench.run.series import Series
from ssbench.scenario.model import Scenario
from ssbench.scenario.reading import read_scenario

SCENARIO = read_scenario("very_small")


class Recorder:
    """Stands for a bench; keeps the options of each run."""

    def __init__(self) -> None:
        self.options: list[RunOptions] = []

    def run(self, _scenario: Scenario, options: RunOptions, **_more: Any) -> RunOutcome:
        self.options.append(options)
        return RunOutcome(run_id=1, seed=options.seed or 0, path=options.stats_file)


def runs(options: RunOptions, *whats: str) -> list[RunOptions]:
    recorder = Recorder()
    series = Series(cast(Bench, recorder), options, "users")
    for what in whats:
        assert series.run(SCENARIO, what).path == recorder.options[-1].stats_file
    return recorder.options


def test_each_run_has_a_file_and_all_have_one_seed(tmp_path: Path) -> None:
    done = runs(RunOptions(stats_file=tmp_path / "s.stat.gz"), "4", "8", "4", "4")
    assert [each.stats_file for each in done] == [
        tmp_path / f"s.users-{label}.stat.gz" for label in ("4", "8", "4.2", "4.3")
    ]
    assert len({each.seed for each in done}) == 1
    assert done[0].seed is not None
    assert [each.seed for each in runs(RunOptions(seed=7), "1", "2")] == [7, 7]


def test_files_of_another_series_are_seen_before_the_first_run(tmp_path: Path) -> None:
    (tmp_path / "s.users-512.stat.gz").touch()
    with pytest.raises(StatFileError, match="users-512"):
        runs(RunOptions(stats_file=tmp_path / "s"), "4")
    assert runs(RunOptions(stats_file=tmp_path / "s", force=True), "4")
