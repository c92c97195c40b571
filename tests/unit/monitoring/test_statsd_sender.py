"""What a statsd server is sent, against the results that it is made of."""

from __future__ import annotations

import logging
import math
import socket
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from golden_words import GoldenWords
from metric_results import MASTER, READ, SCENARIO, SOURCE, WORKERS, results
from result_rows import block, row

from ssbench.base.errors import UsageError
from ssbench.cluster import statsd as swift_statsd
from ssbench.monitoring.run_metrics import RunMonitor
from ssbench.monitoring.statsd_sender import StatsdSender
from ssbench.results.result_fields import ResultMark
from ssbench.results.run_description import RunSummary, WorkerFacts


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


def test_a_statsd_server_gets_lines_as_swift_sends_them(
    server: socket.socket, golden_words: GoldenWords
) -> None:
    with StatsdSender(SCENARIO, SOURCE, *server.getsockname()) as sender:
        sender.tick(0.0)
        sender.add(results())
        sender.end(RunSummary(ended=1.0))
        lines = received(server)
    golden_words(lines[0])
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


def test_timings_that_reports_leave_out_are_not_sent(server: socket.socket) -> None:
    """Of a worker that stalled meanwhile."""
    rows = [
        row(operation=READ, size=10, first_byte=0.5, last_byte=each, completed=1e9, status=200)
        for each in (1.0, 8.0)
    ]
    with StatsdSender(SCENARIO, SOURCE, *server.getsockname()) as sender:
        sender.add(block(rows, rare={"marks": {1: int(ResultMark.DELAYED)}}))
        sender.end(RunSummary(ended=1.0))
        lines = [line for line in received(server) if ".GET." in line]
    assert lines == [
        "ssbench.object.GET.200.timing:1000.000|ms",
        "ssbench.object.GET.200.first-byte.timing:500.000|ms",
        "ssbench.object.GET.200.xfer:20|c",
    ]


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


def test_a_statsd_host_that_does_not_exist_is_one_line() -> None:
    with pytest.raises(UsageError, match=r"--metrics statsd: no such host\.invalid: "):
        StatsdSender(SCENARIO, SOURCE, "no such host.invalid", 8125)
