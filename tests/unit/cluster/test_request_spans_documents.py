"""One request as documents that other programs read: every field of spans that are known."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from ssbench.cluster.request_spans import (
    RequestSpan,
    TracedRequest,
    _parse_moment,
    format_waterfall,
    make_chrome_trace,
    make_otlp_traces,
)

ID = "tx0123456789abcdef01234-0000000005"
SPANS = (
    RequestSpan("client", "client", 0.0, 0.5, 0, 0),
    RequestSpan("proxy", "proxy p1 PUT", 0.1, 0.4, 201, 1),
    RequestSpan("object", "object server d1", 0.125, 0.25, 499, 2),
    RequestSpan("update", "container update c1", 0.25, 0.0625, 503, 3, placed=False),
    RequestSpan("part", "fsync d1", 0.3, 0.05, 0, 3),
    RequestSpan("error", "timeout d2", 0.375, 0.0, 0, 2),
    RequestSpan("object", "object server d3", 0.4, 0.05, 498, 2),
)
REQUEST = TracedRequest(ID, "create", 8192, SPANS)


def read_otlp(*requests: TracedRequest) -> dict[str, list[dict[str, Any]]]:
    found = {}
    for each in json.loads(make_otlp_traces([*requests]))["resourceSpans"]:
        (service,) = each["resource"]["attributes"]
        (scope,) = each["scopeSpans"]
        assert (service["key"], scope["scope"]) == ("service.name", {"name": "ssbench"})
        found[service["value"]["stringValue"]] = scope["spans"]
    return found


def test_a_span_of_opentelemetry_has_all_that_is_known() -> None:
    found = read_otlp(REQUEST)
    assert found["container-server"] == [
        {
            "traceId": "00123456789abcdef012340000000005",
            "spanId": "0000000000000004",
            "parentSpanId": "0000000000000003",
            "name": "container update c1",
            "kind": 2,
            "startTimeUnixNano": "5250000000",
            "endTimeUnixNano": "5312500000",
            "attributes": [
                {"key": "swift.trans_id", "value": {"stringValue": ID}},
                {"key": "ssbench.placed", "value": {"boolValue": False}},
                {"key": "http.response.status_code", "value": {"intValue": "503"}},
            ],
            "status": {"code": 2},
        }
    ]


def test_spans_of_opentelemetry_lie_within_each_other_and_errors_contain_nothing() -> None:
    found = {int(span["spanId"], 16): span for spans in read_otlp(REQUEST).values() for span in spans}
    assert [found[number]["parentSpanId"][-1:] for number in range(1, 8)] == [
        "",
        "1",
        "2",
        "3",
        "3",
        "2",
        "2",
    ]
    assert [found[number]["kind"] for number in range(1, 8)] == [3, 2, 2, 2, 2, 2, 2]
    # Failed is what was given up or answered 500 or more, and what the proxy calls an error.
    assert [number for number in range(1, 8) if found[number]["status"]] == [3, 4, 6]
    assert found[1]["name"] == "create client"
    assert [len(found[number]["attributes"]) for number in range(1, 8)] == [2, 3, 3, 3, 2, 2, 3]
    assert {name: len(spans) for name, spans in read_otlp(REQUEST, REQUEST).items()} == {
        "ssbench": 2,
        "proxy-server": 4,
        "object-server": 6,
        "container-server": 2,
    }


def test_an_old_id_has_no_moment() -> None:
    old = TracedRequest("tx" + "a" * 32, "", -1, SPANS[:1])
    (span,) = read_otlp(old)["ssbench"]
    assert (span["traceId"], span["startTimeUnixNano"], span["name"]) == ("a" * 32, "0", "client")


def test_a_chrome_trace_has_a_thread_for_each_span() -> None:
    events = json.loads(make_chrome_trace([TracedRequest("tx1", "", -1, ()), REQUEST]))["traceEvents"]
    assert events[:3] == [
        {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "tx1"}},
        {"ph": "M", "pid": 2, "name": "process_name", "args": {"name": f"create {ID}"}},
        {"ph": "M", "pid": 2, "tid": 1, "name": "thread_name", "args": {"name": "client"}},
    ]
    assert len(events) == 2 + 2 * len(SPANS)
    of_update, of_error = events[9], events[13]
    assert of_update == {
        "ph": "X",
        "pid": 2,
        "tid": 4,
        "name": "container update c1",
        "cat": "update",
        "ts": 250_000.0,
        "args": {"status": 503, "placed": False, "transaction": ID},
        "dur": 62_500.0,
    }
    assert (of_error["ph"], of_error["tid"], of_error["ts"], of_error["s"]) == ("i", 6, 375_000.0, "t")
    assert "dur" not in of_error


def test_a_waterfall_shows_what_contains_what() -> None:
    assert format_waterfall(REQUEST) == [
        f"CREATE of 8,192 bytes, {ID}",
        "  client                                         500.0 ms ======================",
        "    proxy p1 PUT 201                             400.0 ms     ==================",
        "      object server d1 499                       250.0 ms      ===========",
        "        ~container update c1 503                  62.5 ms            ...",
        "        fsync d1                                  50.0 ms              ==",
        "      timeout d2                                        -                 !",
        "      object server d3 498                        50.0 ms                  ===",
        "  ~ when is not known: its line has no time to the millisecond, or of another clock",
    ]
    assert format_waterfall(TracedRequest("tx1", "", -1, ())) == ["request, tx1"]


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        (b"2026-11-21T22:44:33.250 stor1", 1795301073.25),
        (b"<142>1 2026-11-21T22:44:33.250Z stor1", 1795301073.25),
        (b"2026-11-22 00:44:33,250+02:00", 1795301073.25),
        (b"2026-11-21T17:44:33.250000123-0500", 1795301073.25),
        (b"2026-13-21T22:44:33.250Z", None),
        (b"2026-11-21T22:44:33Z", None),  # only to the second
        (b"Nov 21 22:44:33 stor1", None),
    ],
)
def test_the_moment_of_a_line_is_by_its_zone_whatever_the_zone_here_is(
    text: bytes, moment: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert _parse_moment(text) == moment
    finally:
        monkeypatch.undo()
        time.tzset()
