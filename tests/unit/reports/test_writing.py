"""Reports of each kind say the same of lost operations."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from known_results import write_known

from ssbench.reports import csv, run_text
from ssbench.reports.writing import ReportOptions
from ssbench.reports.writing import make_run_report as make_report
from ssbench.results.reading import open_results
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.summary import summarize


@pytest.fixture
def known(tmp_path: Path) -> Path:
    return write_known(tmp_path / "known.stat.gz")


def numbers(path: Path) -> RunStatistics:
    return summarize(open_results(path))


def test_each_output_counts_a_lost_operation_among_the_errors(known: Path) -> None:
    """The old table said 1 error, and the summary 2."""
    found = numbers(known)
    table = re.findall(r"Count: +\d+ \( *(\d+) error", run_text.make_table_report(found, ReportOptions(95)))
    rows = re.findall(
        r"^[A-Z]+ +\d+ +[\d.]+ +(\d+)", run_text.make_summary_report(found, ReportOptions(95)), re.MULTILINE
    )
    names, values = (line.split(",") for line in csv.make_run_csv(found, ReportOptions(95)).splitlines())
    columns = [value for name, value in zip(names, values, strict=True) if name.endswith('_errors"')]
    page = make_report("summary_md", found, ReportOptions(95)).partition("#### Operations\n\n")[2]
    marked = [line.split("|")[4].strip() for line in page.partition("\n\n")[0].splitlines()[2:]]
    assert table == columns == ["2", "0", "1", "1"]
    assert rows == marked == ["0", "1", "1", "2"]
    assert sum(cause.count for cause in found.errors.values()) == found.total.failed == 2
