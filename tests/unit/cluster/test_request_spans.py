"""One request as a waterfall and as a trace, from genuine lines, through the command line."""

import json
from pathlib import Path

import pytest
from genuine_logs import DATA, attribute, write_stat_file
from said import SLOW_BY_LOG

from ssbench.cli.master import main
from ssbench.cluster.request_spans import RequestSpan, TracedRequest, format_waterfall

CREATED = "tx3f9ca1cf5c5e4993b4a70-006b021e1d"
#: A request that is no result of the run, with a look-up and container updates.
OTHER = "tx2fb49ad9eae8482080275-006b021d3a"


@pytest.fixture
def stat_file(tmp_path: Path) -> Path:
    return write_stat_file(tmp_path / "run.stat.gz")


def waterfall(stat_file: Path, trans_id: str, *options: object) -> list[str]:
    report = stat_file.with_name("report.txt")
    words = ["-q", "attribute", "-s", stat_file, "--force", "-f", report, "--transaction", trans_id, *options]
    assert main([*map(str, words)]) == 0
    return report.read_text().splitlines()


def test_a_request_of_the_run(stat_file: Path) -> None:
    logs = ("--swift-logs", DATA / "run-proxy.log", DATA / "run-object.log")
    head, *rows = waterfall(stat_file, CREATED, *logs)
    assert head == f"CREATE of 8,192 bytes, {CREATED}"
    assert max(map(len, rows)) <= 80
    # By hand: the client 77.8 ms, the proxy 70.2 of them, the servers 43.9 to 57.3 within that.
    names = [row[:48].strip() for row in rows]
    assert names == [
        "client",
        "proxy run-proxy PUT 201",
        "object server d3 on o3 PUT 201",
        "object server d4 on o1 PUT 201",
        "object server d1 on o1 PUT 201",
    ]
    assert [row[48:57].strip() for row in rows] == [
        "77.8 ms",
        "70.2 ms",
        "43.9 ms",
        "50.5 ms",
        "57.3 ms",
    ]
    assert not any("~" in row for row in rows)


def test_what_an_object_server_calls_slow_is_in_the_waterfall_and_a_finding(stat_file: Path) -> None:
    log = stat_file.with_name("slow.log")
    # Its clock is that of the proxy, which has this request from 1795300893.784 s on.
    line = (
        "o1 2026-11-21T22:41:33.850 WARNING object-server: Slow DELETE (0.050s) for /d1/14/AUTH_test/c/o,"
        " status 204, start_time=1795300893.800, diskfile_acquisition=0.040s, metadata_read=0.010s"
        f" (txn: {CREATED})\n"
    )
    log.write_text(line)
    logs = ("--swift-logs", DATA / "run-proxy.log", DATA / "run-object.log", log)
    rows = waterfall(stat_file, CREATED, *logs)
    assert any(
        row.split()[:4] == ["diskfile_acquisition", "d1", "on", "o1"] and "40.0 ms" in row for row in rows
    )
    assert any("metadata_read d1 on o1" in row and "10.0 ms" in row for row in rows)
    said = f"d1 on o1 calls 5 requests {SLOW_BY_LOG} 250.0 ms together"
    # One of them is no habit.
    for times in (1, 5):
        log.write_text(line * times)
        _, found = attribute(stat_file, *logs[1:])
        assert any(each.startswith(said) for each in found["answer"]) is (times == 5), found["answer"]


def test_a_request_with_sub_requests_and_updates(stat_file: Path) -> None:
    logs = [DATA / name for name in ("run-proxy.log", "proxy.log", "object.log", "container.log")]
    text = "\n".join(waterfall(stat_file, f"{OTHER}-suffix", "--swift-logs", *logs))
    assert "  VW HEAD 204" in text
    assert text.count("container update") == text.count("\n        container update") == 3
    assert text.count("object server") == 3


def test_a_request_that_no_log_has(stat_file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    options = ["--swift-logs", str(DATA / "run-proxy.log"), "--transaction", OTHER.replace("2", "3")]
    assert main(["-q", "attribute", "-s", str(stat_file), *options]) == 2
    assert "no line of the logs that could be read has this id" in capfd.readouterr().err
    with pytest.raises(SystemExit) as caught:
        main(["-q", "attribute", "-s", str(stat_file), *options[:2], "--transaction", "tx1"])
    assert caught.value.code == 2


def test_a_trace_of_the_slowest(stat_file: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    logs = ["--swift-logs", str(DATA / "run-proxy.log"), str(DATA / "run-object.log")]
    report = ["-f", str(tmp_path / "report.txt")]
    assert main(["-q", "attribute", "-s", str(stat_file), *report, "--trace", str(trace), *logs]) == 0
    events = json.loads(trace.read_text())["traceEvents"]
    assert len({event["pid"] for event in events}) == 20
    spans = [event for event in events if event["ph"] == "X"]
    clients = [event for event in spans if event["cat"] == "client"]
    assert [event["dur"] for event in clients] == sorted((event["dur"] for event in clients), reverse=True)
    for event in spans:
        # Every part lies in its request, but for what is measured by two clocks.
        (client,) = (each for each in clients if each["pid"] == event["pid"])
        assert event["ts"] >= 0
        assert event["ts"] + event["dur"] <= client["dur"] + 25_000
    assert {event["cat"] for event in spans} == {"client", "proxy", "object"}


def test_the_same_as_opentelemetry_traces(stat_file: Path, tmp_path: Path) -> None:
    traces = tmp_path / "otlp.json"
    logs = [DATA / name for name in ("run-proxy.log", "proxy.log", "object.log", "container.log")]
    rows = waterfall(stat_file, OTHER, "--otlp", traces, "--swift-logs", *logs)
    resources = json.loads(traces.read_text())["resourceSpans"]
    spans = [(each, span) for each in resources for span in each["scopeSpans"][0]["spans"]]
    services = [each["resource"]["attributes"][0]["value"]["stringValue"] for each, _ in spans]
    assert len(spans) == len([row for row in rows[1:] if " ms " in row])
    assert (services.count("object-server"), services.count("container-server")) == (3, 4)
    # The id of the trace is that of the transaction, and begins in the second that this names.
    assert {span["traceId"] for _, span in spans} == {"0" + OTHER[2:].replace("-", "")}
    assert min(int(span["startTimeUnixNano"]) for _, span in spans) // 10**9 == int(OTHER[-10:], 16)
    by_id = {span["spanId"]: span for _, span in spans}
    assert len(by_id) == len(spans)
    (root,) = (span for span in by_id.values() if not span["parentSpanId"])
    assert root["name"].startswith("proxy ")
    for span in by_id.values():
        assert int(span["endTimeUnixNano"]) >= int(span["startTimeUnixNano"])
        assert span is root or span["parentSpanId"] in by_id


def test_lines_in_json_are_read_as_plain_ones(stat_file: Path, tmp_path: Path) -> None:
    """A span is placed by the time of the message, not by that at which it was collected."""
    plain, wrapped = [DATA / "run-proxy.log", DATA / "run-object.log"], []
    for path in plain:
        wrapped.append(tmp_path / path.name)
        messages = path.read_text().splitlines()
        wrapped[-1].write_text(
            "".join(json.dumps({"time": "2026-11-21T23:59:59.000Z", "log": each}) + "\n" for each in messages)
        )
    assert waterfall(stat_file, CREATED, "--swift-logs", *wrapped) == waterfall(
        stat_file, CREATED, "--swift-logs", *plain
    )


def test_bars_begin_and_end_where_their_spans_do() -> None:
    times = [(0.0, 0.22), (0.05, 0.1), (0.19, 0.03), (0.22, 0.0)]
    spans = [RequestSpan("object", "o", start, seconds, 200, 2) for start, seconds in times]
    spans.append(RequestSpan("object", "o", 0.1, 0.02, 200, 2, placed=False))
    spans.append(RequestSpan("error", "e", 0.11, 0.0, 0, 2))
    _, *rows, note = format_waterfall(TracedRequest("tx1", "", -1, tuple(spans)))
    bars = [(row[58:].find(mark), row[58:].count(mark)) for row, mark in zip(rows, "====.!", strict=True)]
    assert bars == [(0, 22), (5, 10), (19, 3), (21, 1), (10, 2), (11, 1)]
    assert note.startswith("  ~ when is not known")
