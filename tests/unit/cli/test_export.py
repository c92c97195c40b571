"""The sub-command export: where it cannot write, and what it lacks."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from golden_words import GoldenWords
from known_results import write_known
from old_formats import msgpack_file, success

from ssbench.cli.master import main
from ssbench.results.reading import open_results
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.summary import summarize


@pytest.fixture
def known(tmp_path: Path) -> Path:
    return write_known(tmp_path / "known.stat.gz")


def numbers(path: Path) -> RunStatistics:
    return summarize(open_results(path))


def last_error(capsys: pytest.CaptureFixture[str]) -> str:
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("ERROR:")]
    return line.removeprefix("ERROR:")


def test_an_export_that_fails_leaves_no_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], golden_words: GoldenWords
) -> None:
    path = tmp_path / "cut.stat"
    path.write_bytes(msgpack_file([[success()]])[:-40])
    assert main(["export", "-s", str(path), "-o", str(tmp_path / "out.csv")]) == 2
    golden_words(last_error(capsys))
    assert [each.name for each in tmp_path.iterdir()] == ["cut.stat"]


def test_export_as_parquet_without_pyarrow(
    known: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    before = list(tmp_path.iterdir())
    assert main(["export", "-s", str(known), "-o", str(tmp_path / "out.parquet")]) == 2
    assert capsys.readouterr().err == (
        "ERROR:Parquet needs pyarrow: pip install pyarrow (or '.[parquet]' in a clone of ssbench)\n"
    )
    assert list(tmp_path.iterdir()) == before


@pytest.mark.parametrize("output", ["KNOWN", "/nonexistent/out", "/dev/full"])
def test_export_to_where_it_cannot_go(known: Path, output: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "-s", str(known), "-o", output.replace("KNOWN", str(known))]) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith("ERROR:")
    assert numbers(known).total.count == 3
