"""What Prometheus scrapes and what a statsd server is sent, against the results that it is made of."""

from __future__ import annotations

import argparse
import http.client
import json
import logging
import math
import re
import socket
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from socketserver import BaseServer

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families
from result_rows import block, row
from runs import wait_until

from ssbench.base.errors import UsageError
from ssbench.cli.parser import Parser
from ssbench.cluster import statsd as swift_statsd
from ssbench.document.figures import COUNTED_FIGURES
from ssbench.monitoring import run_metrics as monitoring_sums
from ssbench.monitoring import run_options, serving
from ssbench.monitoring.prometheus import PrometheusExporter
from ssbench.monitoring.run_metrics import CountingSink, MetricSums, RunMonitor, group_by_fields
from ssbench.monitoring.statsd_sender import StatsdSender
from ssbench.results.block import Failure, ResultBlock
from ssbench.results.result_fields import NOT_MEASURED, UNKNOWN_NUMBER
from ssbench.results.run_description import MasterFacts, RunSummary, WorkerFacts
from ssbench.scenario.model import Scenario, SizeClass

DASHBOARD = Path(__file__).parents[3] / "doc" / "grafana-dashboard.json"
WEIGHTS = (1.0, 1.0, 1.0, 1.0)
CLASSES = (SizeClass('the "tiny"', 1, 1, 1, WEIGHTS), SizeClass("big", 9, 9, 1, WEIGHTS))
SCENARIO = Scenario("metrics", CLASSES, user_count=64, run_seconds=60.0)
READ, CREATE = 1, 0

MASTER = MasterFacts(0.25, 0.125)
WORKERS = (WorkerFacts(1, "a", cpu_share=0.5, lag_p99=0.002), WorkerFacts(2, "b"))
SO_FAR = RunSummary(ended=0.0, workers=WORKERS, master=MASTER)
SOURCE = RunMonitor(lambda: (3, 4), lambda: (Path("/results/night.stat.gz"), SO_FAR))

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def results() -> ResultBlock:
    """100 reads of 1 to 100 ms, a create of a big object, a read that failed, one without an answer."""
    rows = [
        row(operation=READ, size=1000, first_byte=0.0005 * n, last_byte=0.001 * n, completed=1e9, status=200)
        for n in range(1, 101)
    ]
    rows.append(row(operation=CREATE, size_class=1, size=5000, last_byte=70.0, completed=1e9, status=201))
    failed = {"operation": READ, "size": 0, "first_byte": NOT_MEASURED, "last_byte": NOT_MEASURED}
    rows.append(row(**failed, completed=1e9, status=503, retries=2))
    rows.append(row(**failed, completed=1e9, status=UNKNOWN_NUMBER))
    started = {"started": {101: 1e9 - 0.25, 102: 1e9 - 0.5}}
    failures = {101: Failure("HTTP 503", "", {}), 102: Failure("connect timeout", "", {})}
    return block(rows, failures=failures, rare=started)


def scrape(exporter: PrometheusExporter) -> Samples:
    with urllib.request.urlopen(f"http://127.0.0.1:{exporter.port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.fixture
def counting() -> CountingSink:
    return CountingSink(SCENARIO, SOURCE, "before upgrade")


@pytest.fixture
def exporter(counting: CountingSink, monkeypatch: pytest.MonkeyPatch) -> Iterator[PrometheusExporter]:
    # How often it looks whether it is to end.
    monkeypatch.setattr(BaseServer.serve_forever, "__defaults__", (0.01,))
    with PrometheusExporter(counting, "127.0.0.1", 0) as made:
        yield made


def labels(operation: str, size_class: str, **more: str) -> tuple[tuple[str, str], ...]:
    return tuple(sorted({"operation": operation, "size_class": size_class, **more}.items()))


def test_a_scrape_has_what_the_results_had(exporter: PrometheusExporter, counting: CountingSink) -> None:
    counting.tick(0.0)
    for now in (1.0, 2.0):
        counting.add(results())
        counting.tick(now)
    found = scrape(exporter)
    tiny, big = labels("read", 'the "tiny"'), labels("create", "big")
    assert found["ssbench_operations_total", tiny] == 200
    assert found["ssbench_operations_total", big] == 2
    assert found["ssbench_moved_bytes_total", tiny] == 200_000
    assert found["ssbench_retries_total", tiny] == 4
    assert found["ssbench_errors_total", labels("read", 'the "tiny"', cause="HTTP 503")] == 2
    assert found["ssbench_errors_total", labels("read", 'the "tiny"', cause="connect timeout")] == 2
    assert found["ssbench_users", ()] == 64
    assert found["ssbench_workers", ()] == 3
    assert found["ssbench_workers_expected", ()] == 4
    assert found["ssbench_run_start_timestamp_seconds", ()] > 1e9
    assert ("ssbench_run_end_timestamp_seconds", ()) not in found
    for bound, count in (("0.01", 20), ("0.05", 100), ("0.1", 200), ("+Inf", 200)):
        key = labels("read", 'the "tiny"', le=bound)
        assert found["ssbench_latency_seconds_bucket", key] == count
    assert found["ssbench_latency_seconds_bucket", labels("create", "big", le="60.0")] == 0
    assert found["ssbench_latency_seconds_bucket", labels("create", "big", le="+Inf")] == 2
    assert found["ssbench_latency_seconds_sum", tiny] == pytest.approx(2 * 5.05)
    assert found["ssbench_first_byte_latency_seconds_count", tiny] == 200
    assert ("ssbench_first_byte_latency_seconds_count", big) not in found


def test_every_series_exists_before_the_first_result(exporter: PrometheusExporter) -> None:
    found = scrape(exporter)
    for operation in ("create", "read", "update", "delete"):
        for name in ("operations_total", "retries_total", "moved_bytes_total", "latency_seconds_count"):
            assert found[f"ssbench_{name}", labels(operation, "big")] == 0
        for cause in ("HTTP 503", "connect refused"):
            assert found["ssbench_errors_total", labels(operation, "big", cause=cause)] == 0
    assert found["ssbench_first_byte_latency_seconds_count", labels("read", "big")] == 0
    assert ("ssbench_first_byte_latency_seconds_count", labels("create", "big")) not in found
    assert found["ssbench_in_flight", ()] == 0
    assert math.isnan(found["ssbench_master_cpu_ratio", ()])


def test_the_load_generator_and_the_run(exporter: PrometheusExporter, counting: CountingSink) -> None:
    counting.tick(0.0)
    found = scrape(exporter)
    first, second = (tuple({"worker": worker, "host": host}.items()) for worker, host in ("1a", "2b"))
    first, second = tuple(sorted(first)), tuple(sorted(second))
    assert found["ssbench_worker_cpu_ratio", first] == 0.5
    assert found["ssbench_worker_lag_seconds", first] == 0.002
    assert math.isnan(found["ssbench_worker_cpu_ratio", second])
    assert found["ssbench_master_cpu_ratio", ()] == 0.25
    assert found["ssbench_master_lag_seconds", ()] == 0.125
    (info,) = (dict(key) for name, key in found if name == "ssbench_info")
    assert (info["run"], info["label"], info["scenario"]) == ("night", "before upgrade", "metrics")


def test_of_very_many_workers_the_greatest_values_are_told() -> None:
    facts = tuple(
        WorkerFacts(n, "h", cpu_share=n / 1000, lag_p99=None)
        for n in range(monitoring_sums.MAX_LISTED_WORKERS + 1)
    )
    sums = MetricSums(1, facts=facts)
    found = {metric.key: dict(metric.samples(sums)) for metric in monitoring_sums.METRICS}
    assert found["worker.cpu"] == {("busiest", ""): monitoring_sums.MAX_LISTED_WORKERS / 1000}
    assert [*map(math.isnan, found["worker.lag"].values())] == [True]


def test_operations_in_flight_are_the_mean_of_the_last_seconds() -> None:
    """Ten users are busy all the time, with operations of a quarter of a second."""
    counting = CountingSink(SCENARIO, SOURCE)
    counting.tick(0.0)
    for now in np.arange(0.5, 20.5, 0.5):
        rows = [row(operation=READ, last_byte=0.25, completed=1e9, status=200) for _ in range(20)]
        counting.add(block(rows))
        counting.tick(float(now))
        assert counting.shown.in_flight == pytest.approx(10)
    for now in np.arange(20.5, 26.0, 0.5):
        counting.tick(float(now))
    assert counting.shown.in_flight == 0
    counting.end(RunSummary(ended=1.0))
    assert counting.shown.in_flight == 0


def test_the_end_of_a_run_is_a_moment_and_counts_the_rest(
    exporter: PrometheusExporter, counting: CountingSink
) -> None:
    counting.tick(0.0)
    counting.add(results())
    counting.tick(0.1)
    assert scrape(exporter)["ssbench_operations_total", labels("create", "big")] == 0
    counting.end(RunSummary(ended=1234.5))
    found = scrape(exporter)
    assert found["ssbench_operations_total", labels("create", "big")] == 1
    assert found["ssbench_run_end_timestamp_seconds", ()] == 1234.5
    began = found["ssbench_run_start_timestamp_seconds", ()]
    counting.tick(100.0)  # another run begins
    counting.add(results())
    counting.tick(200.0)
    found = scrape(exporter)
    assert found["ssbench_run_start_timestamp_seconds", ()] > began
    assert ("ssbench_run_end_timestamp_seconds", ()) not in found
    assert found["ssbench_operations_total", labels("create", "big")] == 2


def test_causes_from_workers_are_no_more_than_a_server_can_take(
    exporter: PrometheusExporter, counting: CountingSink
) -> None:
    rows = [row(operation=READ, completed=1e9, last_byte=NOT_MEASURED) for _ in range(200)]
    counting.add(block(rows, failures={n: Failure(f"cause\n{n}", "", {}) for n in range(200)}))
    counting.tick(0.0)
    causes = [dict(key)["cause"] for name, key in scrape(exporter) if name == "ssbench_errors_total"]
    assert len({cause for cause in causes if cause.startswith("cause")}) == 50
    assert "other" in causes


def test_every_query_of_the_dashboard_asks_for_what_there_is(
    exporter: PrometheusExporter, counting: CountingSink
) -> None:
    counting.tick(0.0)
    counting.add(results())
    counting.end(replace(SO_FAR, ended=1.0))
    exported = {name for name, _ in scrape(exporter)}
    dashboard = json.loads(DASHBOARD.read_text())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    queries += [annotation["expr"] for annotation in dashboard["annotations"]["list"]]
    queries += [variable["query"] for variable in dashboard["templating"]["list"][1:]]
    assert len(queries) > 10
    asked = {name for query in queries for name in re.findall(r"ssbench_\w+", query)}
    assert asked <= exported
    # What is exported and not asked for: the moments that clients add, the facts, rare counters.
    unasked = exported - asked - {name for name in exported if name.endswith(("_created", "_info"))}
    unasked -= {f"ssbench_{key}_total" for key in COUNTED_FIGURES}
    assert unasked <= {"ssbench_first_byte_latency_seconds_count", "ssbench_first_byte_latency_seconds_sum"}
    for query in queries:
        assert query.count("(") == query.count(")")
        used = set(re.findall(r"by \(([^)]*)\)", query))
        assert {label for each in used for label in each.split(", ")} <= {
            "operation",
            "size_class",
            "cause",
            "le",
        }


def test_head_is_answered_as_get_without_a_body(exporter: PrometheusExporter) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", exporter.port, timeout=30)
    for method in ("HEAD", "GET"):
        connection.request(method, "/metrics")
        answer = connection.getresponse()
        body = answer.read()
        assert answer.status == 200
        assert answer.headers["Content-Type"].startswith("text/plain")
        assert bool(body) is (method == "GET")
        connection.close()


def test_silent_connections_give_way_and_are_closed(
    exporter: PrometheusExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many more than a run could bear: it has not one of them for each for longer than some seconds."""
    before = len(list(Path("/proc/self/fd").iterdir()))
    with ExitStack() as stack:
        silent = []
        for number in range(100):
            made = stack.enter_context(socket.create_connection(("127.0.0.1", exporter.port), 30))
            if number % 2:
                made.sendall(b"GET /metrics HTTP/1.1\r\nX: ")
            silent.append(made)
            # A scrape among them is answered, and by then all before it were accepted.
            assert number % 25 or scrape(exporter)
        scrape(exporter)

        def ours() -> int:
            return len(list(Path("/proc/self/fd").iterdir())) - len(silent) - before

        wait_until(lambda: ours() <= serving.MAX_CONNECTIONS + 1, "silent connections to give way")
        monkeypatch.setattr(serving, "MAX_CONNECTION_SECONDS", 0.1)
        for made in silent:
            while made.recv(4096):  # until it is closed: an error may be answered first
                pass


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "localhost"])
def test_it_listens_at_the_address_that_is_given(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if address == "::1" and not socket.has_dualstack_ipv6():
        pytest.skip("no IPv6 on this host")
    monkeypatch.setattr(BaseServer.serve_forever, "__defaults__", (0.01,))
    with (
        PrometheusExporter(CountingSink(SCENARIO, SOURCE), address, 0) as made,
        socket.create_connection((address, made.port), 30) as connection,
    ):
        connection.sendall(b"HEAD / HTTP/1.0\r\n\r\n")
        assert connection.recv(12) == b"HTTP/1.0 200"


def test_a_port_that_is_taken_is_one_line(exporter: PrometheusExporter) -> None:
    with pytest.raises(
        UsageError, match=r"--metrics-port: cannot listen at 127\.0\.0\.1:\d+: Address already"
    ):
        PrometheusExporter(CountingSink(SCENARIO, SOURCE), "127.0.0.1", exporter.port)


def test_groups_of_wide_values() -> None:
    made = block([row(operation=n % 2, status=100 * n, completed=1.0) for n in range(300)])
    found = {values: list(rows) for values, rows in group_by_fields(made, "operation", "status")}
    assert len(found) == 300
    assert found[1, 29_900] == [299]


# -- statsd -------------------------------------------------------------------------------------


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
        made.bind(("127.0.0.1", 0))
        made.settimeout(10)
        yield made


def received(server: socket.socket) -> list[str]:
    """All lines up to that which says that the run has ended."""
    lines: list[str] = []
    while "ssbench.run.end:1|c" not in lines:
        datagram = server.recv(65536)
        assert len(datagram) <= 1400
        lines += datagram.decode().split("\n")
    return lines


def test_a_statsd_server_gets_lines_as_swift_sends_them(server: socket.socket) -> None:
    with StatsdSender(SCENARIO, SOURCE, *server.getsockname()) as sender:
        sender.tick(0.0)
        sender.add(results())
        sender.end(RunSummary(ended=1.0))
        lines = received(server)
    assert lines[0] == "ssbench.run.start:1|c"
    assert "ssbench.users:64|g" in lines
    assert "ssbench.workers:3|g" in lines
    assert "ssbench.object.GET.200.xfer:100000|c" in lines
    assert "ssbench.object.PUT.201.timing:70000.000|ms" in lines
    assert "ssbench.object.GET.503.timing:250.000|ms" in lines
    assert "ssbench.object.GET.0.timing:500.000|ms" in lines
    assert "ssbench.errors.HTTP_503:1|c" in lines
    assert "ssbench.errors.connect_timeout:1|c" in lines
    # What takes in Swift's lines takes in these, except gauges, of which Swift has none.
    parsed = [swift_statsd.parse_statsd_line(line.encode()) for line in lines if not line.endswith("|g")]
    assert None not in parsed
    counts = Counter(line.name for line in parsed if line)
    assert counts["ssbench.object.GET.200.timing"] == 100
    assert counts["ssbench.object.GET.200.first-byte.timing"] == 100


def test_many_timings_are_sampled(server: socket.socket) -> None:
    rows = [row(operation=READ, last_byte=0.01, completed=1e9, status=200) for _ in range(10_000)]
    with StatsdSender(SCENARIO, SOURCE, *server.getsockname()) as sender:
        sender.add(block(rows))
        sender.end(RunSummary(ended=1.0))
        lines = [line for line in received(server) if ".timing" in line]
    parsed = [swift_statsd.parse_statsd_line(line.encode()) for line in lines]
    assert len(parsed) <= 400
    weights = [line.weight for line in parsed if line and "first" not in line.name]
    assert math.isclose(sum(weights), 10_000, rel_tol=0.01)


def test_gauges_for_statsd_are_those_of_the_table(server: socket.socket) -> None:
    facts = (*WORKERS, WorkerFacts(3, cpu_share=0.7, lag_p99=0.001))
    so_far = Path("x.stat"), RunSummary(ended=0.0, workers=facts, master=MASTER)
    with StatsdSender(SCENARIO, RunMonitor(lambda: (3, 4), lambda: so_far), *server.getsockname()) as sender:
        sender.tick(0.0)
        sender.end(RunSummary(ended=1.0))
        gauges = [line for line in received(server) if line.endswith("|g")]
    assert sorted(gauges[:6]) == [
        "ssbench.in_flight:0|g",
        "ssbench.master.cpu:0.25|g",
        "ssbench.users:64|g",
        "ssbench.worker.cpu:0.7|g",
        "ssbench.worker.lag_meter:0.002|g",
        "ssbench.workers:3|g",
    ]
    # Nothing is known of workers and the master any more.
    assert [line.split(":")[0] for line in gauges[6:]] == [
        "ssbench.in_flight",
        "ssbench.users",
        "ssbench.workers",
    ]


def test_lines_that_cannot_be_sent_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    sender = StatsdSender(SCENARIO, SOURCE, "127.0.0.1", 9)
    with sender, caplog.at_level(logging.WARNING):
        sender._socket.close()
        sender.tick(0.0)
        sender.end(RunSummary(ended=1.0))
    assert caplog.messages == ["statsd: 11 lines could not be sent"]


# -- options ------------------------------------------------------------------------------------


def parse(*arguments: str) -> argparse.Namespace:
    parser = Parser()
    run_options.add_metrics_arguments(parser)
    return parser.parse_args(arguments)


@pytest.mark.parametrize(
    ("arguments", "metrics_port", "statsd"),
    [
        ((), None, None),
        (("--metrics-port", "9102"), ("127.0.0.1", 9102), None),
        (("--metrics-port", "0.0.0.0:9102"), ("0.0.0.0", 9102), None),
        (("--metrics-port", "127.0.0.1:9102"), ("127.0.0.1", 9102), None),
        (("--metrics-port", "[::1]:9102"), ("::1", 9102), None),
        (("--statsd", "graphite"), None, ("graphite", 8125)),
        (("--statsd", "10.0.0.4:1234"), None, ("10.0.0.4", 1234)),
        (("--statsd", "[::1]"), None, ("::1", 8125)),
    ],
)
def test_addresses(
    arguments: tuple[str, ...], metrics_port: tuple[str, int] | None, statsd: tuple[str, int] | None
) -> None:
    found = parse(*arguments)
    assert (found.metrics_port, found.statsd) == (metrics_port, statsd)


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--metrics-port", "0", "'0' is not a port number"),
        ("--metrics-port", "x", "'x' is not a port or ADDRESS:PORT"),
        ("--metrics-port", "h:70000", "'70000' is not a port number"),
        ("--metrics-port", "http://h:1", "is not a port or ADDRESS:PORT"),
        ("--statsd", "udp://h", "is not a host or HOST:PORT"),
        ("--statsd", "h:", "is not a host or HOST:PORT"),
        ("--statsd", "h:x", "'x' is not a port number"),
    ],
)
def test_wrong_addresses(option: str, value: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(option, value)
    assert said in capsys.readouterr().err


def test_a_statsd_host_that_does_not_exist_is_one_line() -> None:
    with pytest.raises(UsageError, match=r"--statsd: no such host\.invalid: "):
        StatsdSender(SCENARIO, SOURCE, "no such host.invalid", 8125)
