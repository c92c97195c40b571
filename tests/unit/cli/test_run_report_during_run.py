"""When the report of a run is made of what was counted during it, and when of its whole stat file."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from full_run import RUN, SUMMARY, write_full_run
from result_rows import many
from runs import wait_until

from ssbench.cli import run_report
from ssbench.cli.run_report import StatisticsDuringRun
from ssbench.reports.writing import ReportOptions, make_run_report
from ssbench.results.block import ResultBlock
from ssbench.results.reading import open_results
from ssbench.results.run_description import RunDescription
from ssbench.results.writer import RunResultsWriter
from ssbench.statistics.summary import FollowedStatistics, summarize


@pytest.fixture(autouse=True)
def _eager(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_report, "_BUSY_SHARE", 1e9)
    monkeypatch.setattr(run_report, "_LOOK_SECONDS", 0.01)


@pytest.fixture
def wholly(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that were read as a whole."""
    read: list[Path] = []

    def opened(path: Path) -> object:
        read.append(path)
        return open_results(path)

    monkeypatch.setattr("ssbench.results.reading.open_results", opened)
    return read


def rows(first: int, count: int) -> ResultBlock:
    here = np.arange(first, first + count)
    return many(here, operation=here % 4, completed=1e9 + here / 1000, last_byte=0.001 + here % 6007 / 1e6)


def follow(path: Path, most: float = 1e12) -> StatisticsDuringRun:
    """Follow a file, at a time when there is time."""
    sink = StatisticsDuringRun((), over_time=True)
    sink.so_far = lambda: (path, SUMMARY)
    sink.tick(most)
    return sink


def written(path: Path, run: RunDescription = RUN, then: Callable[[], object] = lambda: None) -> Path:
    """Write a run, with something that happens when the first half is on the disk."""
    writer = RunResultsWriter(path, run)
    before = path.stat().st_size
    writer.add(rows(0, 3000))
    wait_until(lambda: path.stat().st_size > before, "the first half in the file")
    then()
    writer.add(rows(3000, 3000))
    writer.end(SUMMARY)
    return path


def counting() -> bool:
    return any(each.name == "counting" for each in threading.enumerate())


def the_same(sink: StatisticsDuringRun, path: Path) -> bool:
    sink.end(SUMMARY)
    found, expected = (
        make_run_report("json", each, ReportOptions())
        for each in (sink.statistics(path), summarize(open_results(path), over_time=True))
    )
    return found == expected


def test_the_rest_is_read_at_the_end(tmp_path: Path, wholly: list[Path]) -> None:
    path, sinks = tmp_path / "run", list[StatisticsDuringRun]()
    written(path, then=lambda: sinks.append(follow(path)))
    assert the_same(sinks[0], path)
    assert wholly == []


def test_failures_and_lost_workers(tmp_path: Path, wholly: list[Path]) -> None:
    path = write_full_run(tmp_path / "run")
    assert the_same(follow(path), path)
    assert wholly == []


def test_nothing_is_counted_while_the_loop_is_busy(
    tmp_path: Path, wholly: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_full_run(tmp_path / "run")
    monkeypatch.setattr(run_report, "_BUSY_SHARE", 0.0)
    sink = follow(path)
    assert not counting()
    assert the_same(sink, path)
    assert wholly == [path]


def test_a_warm_up_that_is_found_needs_the_whole_file(tmp_path: Path, wholly: list[Path]) -> None:
    path = written(tmp_path / "run", replace(RUN, options={"warmup": "auto"}))
    assert the_same(follow(path), path)
    assert wholly == [path]


def test_what_a_writer_took_back_needs_the_whole_file(
    tmp_path: Path, wholly: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = threading.Event()

    class Counted(FollowedStatistics):
        def some(self) -> bool:
            found = super().some()
            if found:
                counted.set()
            return found

    monkeypatch.setattr("ssbench.statistics.summary.FollowedStatistics", Counted)
    shorter = write_full_run(tmp_path / "shorter").read_bytes()
    path, sinks = tmp_path / "run", list[StatisticsDuringRun]()

    def begin() -> None:
        sinks.append(follow(path))
        assert counted.wait(60)
        sinks[0].end(SUMMARY)

    written(path, then=begin)
    path.write_bytes(shorter)
    assert the_same(sinks[0], path)
    assert wholly == [path]


def test_many_results_are_not_kept_in_memory(
    tmp_path: Path, wholly: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_report, "MAX_RESULTS_IN_MEMORY", 3)
    path = write_full_run(tmp_path / "run")
    sink = follow(path)
    wait_until(lambda: not counting(), "the end of it")
    assert the_same(sink, path)
    assert wholly == [path]


def test_a_pipe_is_left_to_its_reader(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    follow(path)
    assert not counting()
