"""Reads stat files as tests of old formats and of damage do."""

from __future__ import annotations

import re
from pathlib import Path

import msgpack
from old_formats import state

from ssbench.base.errors import StatFileError
from ssbench.reports import csv, json, run_text
from ssbench.reports.writing import ReportOptions
from ssbench.results.reading import RunResults, open_results
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.summary import summarize


def read(data: bytes, tmp_path: Path) -> RunStatistics:
    path = tmp_path / "file.stat"
    path.write_bytes(data)
    return summarize(open_results(path))


def rows(path: Path) -> tuple[RunResults, int]:
    results = open_results(path)
    return results, sum(len(block) for block in results.blocks())


def opened(path: Path) -> RunResults | None:
    """Return results that were read to their end, None when they were refused in one line."""
    try:
        results, _ = rows(path)
    except StatFileError as error:
        if not re.fullmatch(rf"{re.escape(str(path))}: .+", str(error)):
            raise
        return None
    return results


BOMB = msgpack.packb(state(), use_bin_type=False)


def assert_read_or_refused(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "fuzzed"
    path.write_bytes(data)
    if not opened(path):
        return
    statistics = summarize(open_results(path))
    assert run_text.make_sections_report(statistics, ReportOptions(99.9)).count("\n") >= 10
    assert csv.make_run_csv(statistics, ReportOptions(100)).count("\n") == 2
    assert "".join(json.make_run_json(statistics, ReportOptions(95))).startswith("{")
    assert csv.make_requests_per_second_csv(statistics, ReportOptions())
