"""What the document of traffic warns of."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from logged_traffic import BEGAN, swift_line, write_uses_log
from said import NO_SCAN

from ssbench.document.elements import View
from ssbench.document.renderers.html import find_charts
from ssbench.logs.log_files import LogFile
from ssbench.logs.logged_requests import RequestColumns, read_requests
from ssbench.logs.request_formats import find_request_format
from ssbench.reports.products import Product, find_writer
from ssbench.traffic.traffic_figures import Traffic
from ssbench.traffic.traffic_report import TrafficReport, make_traffic_document, make_traffic_json


@pytest.fixture
def requests(tmp_path: Path) -> RequestColumns:
    log = tmp_path / "log"
    write_uses_log(log, [number % 7 for number in range(300)])
    return read_requests([LogFile(log, "n")], find_request_format("swift"))


def read_log(log: Path) -> Traffic:
    return Traffic(read_requests([LogFile(log, "n")], find_request_format("swift")))


def words_of(report: TrafficReport) -> str:
    return " ".join(find_writer(Product.TRAFFIC, "text")(report).split())


def test_what_is_not_known_is_said(requests: RequestColumns) -> None:
    doubtful = replace(
        requests, whole_seconds=300, unreadable=2, example="x secret", damage=("a.gz: the data are cut off",)
    )
    words = words_of(TrafficReport(Traffic(doubtful), remarks=(NO_SCAN,)))
    for each in (
        "known to a second only, and spread within it: 300 moments",
        "2 lines cannot be read, such as: x secret",
    ):
        assert each in words
    assert "a.gz: the data are cut off" in words
    assert NO_SCAN in words
    shared = words_of(TrafficReport(Traffic(requests), doubtful, shared=True))
    assert "the other: 2 lines cannot be read" in shared
    assert "damaged files: 1" in shared
    assert "secret" not in shared
    assert "a.gz" not in shared


def test_rows_that_say_nothing_are_left_out(requests: RequestColumns) -> None:
    words = words_of(TrafficReport(Traffic(requests)))
    assert "hit ratio by objects, 30 % cached" in words
    assert "list_account" not in words
    assert "lifetime" not in words


def test_requests_of_one_moment_have_no_rate(tmp_path: Path) -> None:
    log = tmp_path / "log"
    write_uses_log(log, [number % 7 for number in range(200)], rate=1e9)
    report = TrafficReport(read_log(log))
    words = words_of(report)
    assert "200 requests; one moment; 1 client" in words
    assert "requests a second" not in words
    assert "at once" not in words
    assert json.loads(make_traffic_json(report))["seconds"] is None
    assert "Requests a second" not in "".join(find_writer(Product.TRAFFIC, "html")(report))


@pytest.mark.parametrize(("seconds", "rate", "points"), [(20.5, 100.0, 20), (631.0, 10.0, 10)])
def test_a_chart_of_rates_does_not_end_in_what_is_not_whole(
    tmp_path: Path, seconds: float, rate: float, points: int
) -> None:
    log = tmp_path / "log"
    write_uses_log(log, [number % 7 for number in range(round(seconds * rate))], rate=rate)
    report = TrafficReport(read_log(log))
    chart = next(find_charts(make_traffic_document(report, View()).elements))
    assert chart.title == "Requests a second"
    assert chart.curves[0].y.tolist() == pytest.approx([rate] * points, rel=0.02)


def test_where_no_object_is_used_there_are_no_uses_of_an_object(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("".join(swift_line(BEGAN + each, "GET", f"/v1/a/c/{each % 3}", 503) for each in range(30)))
    words = words_of(TrafficReport(read_log(log)))
    assert "failed (5xx) 100.00 %" in words
    assert "uses of an object" not in words


def test_a_single_request_has_no_rate_and_no_halves(tmp_path: Path) -> None:
    log = tmp_path / "log"
    write_uses_log(log, [1])
    words = words_of(TrafficReport(read_log(log)))
    assert "1 request; 1 client" in words
    assert "requests a second" not in words
    assert "read 100.00 % - 100.00 %" in words
