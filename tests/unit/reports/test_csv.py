"""The CSV of a run, of known results and of texts that may do harm."""

from __future__ import annotations

import csv as csv_module
import io
import re
from pathlib import Path

import pytest
from known_results import write_known
from old_formats import msgpack_file, success

from ssbench.cli.master import main
from ssbench.reports import csv
from ssbench.reports.writing import ReportOptions
from ssbench.results.reading import open_results
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.summary import summarize


@pytest.fixture
def known(tmp_path: Path) -> Path:
    return write_known(tmp_path / "known.stat.gz")


def numbers(path: Path) -> RunStatistics:
    return summarize(open_results(path))


def test_the_csv_of_known_results(known: Path) -> None:
    report = csv.make_run_csv(numbers(known), ReportOptions(99.9))
    assert report.count("\n") == 2
    header, data = csv_module.reader(io.StringIO(report))
    columns = dict(zip(header, data, strict=True))
    assert header[:8] == [
        "scenario_name",
        "ssbench_version",
        "worker_count",
        "concurrency",
        "start_time",
        "stop_time",
        "duration",
        "delete_after",
    ]
    assert header[8:15] == [
        "total_count",
        "total_errors",
        "total_retries",
        "total_retry_rate",
        "total_avg_req_per_s",
        "total_first_all_min",
        "total_first_all_max",
    ]
    assert columns["duration"] == "4.0"
    assert columns["total_first_all_99.9_pctile"] == "0.25"
    assert columns["total_last_all_std_dev"] == "0.540062"
    assert columns["read_last_huge_worst_txid"] == "tx2"
    assert columns["create_first_all_min"].strip() == "N/A"
    new = header.index("total_lost")
    assert header[new : new + 5] == ["total_lost", "create_lost", "read_lost", "delete_lost", "not_sendable"]
    assert data[new : new + 5] == ["1", "0", "0", "1", "2"]
    assert header[new + 5 : new + 7] == ["total_bytes", "total_bytes_per_s"]
    assert data[new + 5 : new + 7] == [str(10**12 + 5000), "5000.0"]
    assert columns["read_last_tiny_50_pctile"] == "0.5"
    assert len(set(header)) == len(header)
    assert report.splitlines()[1].startswith('"Known results","1.0",2,4,"2001-09-09 01:46:40 UTC"')


def test_control_characters_of_a_transaction_id_reach_no_csv(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "evil.stat"
    path.write_bytes(msgpack_file([[success(trans_id="tx\x1b[2J\r\n1")]]))
    assert (
        csv.make_run_csv(numbers(path), ReportOptions(95)).splitlines()[1].count('"tx\ufffd[2J\ufffd\ufffd1"')
        > 1
    )
    assert main(["-q", "export", "-s", str(path)]) == 0
    exported = capsys.readouterr().out
    assert "tx\ufffd[2J\ufffd\ufffd1" in exported
    assert not re.search("[\x00-\x09\x0b-\x1f]", exported)
