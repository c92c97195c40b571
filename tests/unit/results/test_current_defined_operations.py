"""Stat files of scenarios that define operations: several in one process, and those of several masters."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from golden_words import GoldenWords
from result_rows import block, row

from ssbench.base.errors import StatFileError
from ssbench.results.current import ResultsFollower
from ssbench.results.merging_masters import MergedResults
from ssbench.results.reading import open_results
from ssbench.results.result_export import write_csv
from ssbench.results.run_description import RunDescription, RunSummary
from ssbench.results.writer import RunResultsWriter
from ssbench.scenario.model import Scenario, SizeClass
from ssbench.scenario.operations import OPERATIONS, OperationSettings
from ssbench.statistics.summary import summarize

STARTED = 1e9


def write(path: Path, name: str, code: int = 128, number: int = 1, rows: int = 10) -> Path:
    """A stat file with results of an operation of this name, and half as many reads."""
    scenario = Scenario(
        "s",
        (SizeClass("tiny", 10, 10, 4, {name: 2.0, "read": 1.0}),),
        4,
        run_seconds=10.0,
        operations=(OperationSettings(name, values={"path": "/info"}, defined=("GET", "none", code)),),
    )
    options = {"part": f"{number}/2", "object_tag": f"part{number}of2"}
    run = RunDescription(
        scenario, version="1.0", seed=number, options=options, host="vm", run_id=number, started=STARTED
    )
    writer = RunResultsWriter(path, run)
    writer.add(
        block(
            [
                row(
                    operation=(code, code, 1)[place % 3],
                    last_byte=0.01,
                    completed=STARTED + place,
                    status=200,
                )
                for place in range(3 * rows)
            ]
        )
    )
    writer.end(RunSummary(STARTED + 11, sent_until=STARTED + 10))
    return path


def count(path: Path) -> dict[str, int]:
    sections = summarize(open_results(path)).sections[1:]
    return {each.operation.name: each.count for each in sections if each.operation}


def test_files_with_operations_of_different_names_are_read_in_turn(tmp_path: Path) -> None:
    before = list(OPERATIONS)
    files = {name: write(tmp_path / f"{name}.stat.gz", name) for name in ("mine", "other")}
    # Open at once: what is read of the one must not tell of the other.
    opened = {name: open_results(path) for name, path in files.items()}
    for name, results in opened.items():
        out = io.BytesIO()
        write_csv(results, out)
        assert out.getvalue().decode().count(name) == 20
    for _ in range(2):
        for name, path in files.items():
            assert count(path) == {"read": 10, name: 20}
    assert list(OPERATIONS) == before


def test_more_files_are_read_than_there_are_codes(tmp_path: Path) -> None:
    for number in range(130):
        path = write(tmp_path / "a.stat.gz", f"mine{number}", rows=1)
        assert count(path) == {"read": 1, f"mine{number}": 2}
        path.unlink()


def test_the_codes_in_a_file_are_its_own(tmp_path: Path) -> None:
    """A process that had read other scenarios before began with a later code."""
    assert count(write(tmp_path / "a.stat.gz", "mine", 177)) == {"read": 10, "mine": 20}
    follower = ResultsFollower(tmp_path / "a.stat.gz")
    assert sum(len(each) for each in follower.blocks()) == 30


def test_files_of_several_masters_are_one_run(tmp_path: Path) -> None:
    write(tmp_path / "between.stat.gz", "other")
    files = [write(tmp_path / f"{number}.stat.gz", "mine", number=number) for number in (1, 2)]
    merged = MergedResults(files)
    count(tmp_path / "between.stat.gz")
    sections = summarize(merged).sections[1:]
    assert {each.operation.name: each.count for each in sections if each.operation} == {
        "read": 20,
        "mine": 40,
    }
    copy = tmp_path / "all.stat.gz"
    with copy.open("wb") as out:
        merged.copy_to(out)
    assert count(copy) == {"read": 20, "mine": 40}


@pytest.mark.parametrize("code", [1, 127])
def test_an_operation_with_a_code_of_ssbench_is_damage(
    code: int, tmp_path: Path, golden_words: GoldenWords
) -> None:
    path = write(tmp_path / "a.stat.gz", "mine", code)
    with golden_words.raises(StatFileError):
        open_results(path)
