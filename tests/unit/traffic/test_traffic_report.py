"""What the document of traffic warns of."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from logged_traffic import write_uses_log
from said import NO_SCAN

from ssbench.logs.log_files import LogFile
from ssbench.logs.logged_requests import RequestColumns, read_requests
from ssbench.logs.request_formats import find_request_format
from ssbench.reports.products import Product, find_writer
from ssbench.traffic.traffic_report import TrafficReport


@pytest.fixture
def requests(tmp_path: Path) -> RequestColumns:
    log = tmp_path / "log"
    write_uses_log(log, [number % 7 for number in range(300)])
    return read_requests([LogFile(log, "n")], find_request_format("swift"))


def words_of(report: TrafficReport) -> str:
    return " ".join(find_writer(Product.TRAFFIC, "text")(report).split())


def test_what_is_not_known_is_said(requests: RequestColumns) -> None:
    doubtful = replace(
        requests, whole_seconds=300, unreadable=2, example="x secret", damage=("a.gz: the data are cut off",)
    )
    words = words_of(TrafficReport(doubtful, remarks=(NO_SCAN,)))
    for each in (
        "known to a second only, and spread within it: 300 moments",
        "2 lines cannot be read, such as: x secret",
    ):
        assert each in words
    assert "a.gz: the data are cut off" in words
    assert NO_SCAN in words
    shared = words_of(TrafficReport(requests, doubtful, shared=True))
    assert "the other: 2 lines cannot be read" in shared
    assert "damaged files: 1" in shared
    assert "secret" not in shared
    assert "a.gz" not in shared


def test_rows_that_say_nothing_are_left_out(requests: RequestColumns) -> None:
    words = words_of(TrafficReport(requests))
    assert "hit ratio by objects, 30 % cached" in words
    assert "list_account" not in words
    assert "lifetime" not in words


def test_a_single_request_has_no_rate_and_no_halves(tmp_path: Path) -> None:
    log = tmp_path / "log"
    write_uses_log(log, [1])
    words = words_of(TrafficReport(read_requests([LogFile(log, "n")], find_request_format("swift"))))
    assert "1 request; 1 client" in words
    assert "requests a second" not in words
    assert "read 100.00 % - 100.00 %" in words
