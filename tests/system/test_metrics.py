"""A run is scraped and sends datagrams while it is running."""

from __future__ import annotations

import re
import signal
import socket
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from threading import Thread

import pytest
from collector import taking
from processes import Fleet, free_ports, limited
from runs import outcome, wait_until, write_scenario

from ssbench.base.errors import ExitCode

pytest.importorskip("opentelemetry.exporter.otlp.proto.http")


def test_a_run_is_scraped_and_tells_a_statsd_server(fleet: Fleet, tmp_path: Path) -> None:
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server,
        taking() as gateway,
    ):
        server.bind(("127.0.0.1", 0))
        server.settimeout(60)
        (port,) = free_ports(1)
        run = fleet.run(
            write_scenario(tmp_path),
            # At a rate, because without one no-op operations take all the CPU there is.
            *("--noop", "--workers", 1, "-r", 600, "--rate", 100, "--metrics", f"127.0.0.1:{port}"),
            *(f"statsd://127.0.0.1:{server.getsockname()[1]}", f"push+{gateway.url}", "--label", "new disks"),
            environment=limited(tmp_path, 128),
        )
        run.wait_for(re.escape(f"Metrics for Prometheus: http://127.0.0.1:{port}/metrics"))

        def operations() -> float:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
                return sum(
                    map(float, re.findall(r"(?m)^ssbench_operations_total\S* (.*)$", answer.read().decode()))
                )

        lines: list[str] = []

        def listen() -> None:
            # All the time: datagrams that find no room in the socket are dropped, that of the end too.
            while "ssbench.run.end:1|c" not in lines:
                lines.extend(server.recv(65536).decode().split("\n"))

        listening = Thread(target=listen, daemon=True)
        listening.start()
        # Some seconds of them: how busy a worker is follows from two of its heartbeats.
        wait_until(lambda: operations() > 250, "counted operations")
        with ExitStack() as stack:
            # More that say nothing than the run may have descriptors; others are answered, and it ends well.
            for _ in range(200):
                stack.enter_context(socket.create_connection(("127.0.0.1", port), 30))
            scraped = operations()
            run.signal(signal.SIGINT)
            run.wait_for("Interrupted")
        assert run.end() == ExitCode.INTERRUPTED, run.err
        listening.join(60)
    assert "ssbench.run.end:1|c" in lines
    assert lines[0] == "ssbench.run.start:1|c"
    assert "ssbench.workers:1|g" in lines
    count = outcome(fleet.stats).count
    assert 250 < scraped <= count
    pushed = gateway.requests[-1][3].decode()
    assert sum(map(float, re.findall(r"(?m)^ssbench_operations_total\S* (.*)$", pushed))) == count
    assert 'label="new disks"' in pushed
    assert re.search(r'(?m)^ssbench_worker_cpu_ratio\{.*worker="0".*\} 0\.', pushed)


def test_a_collector_gets_the_counts_of_a_run_and_a_dead_one_changes_nothing(
    fleet: Fleet, tmp_path: Path
) -> None:
    name = "opentelemetry.proto.collector.metrics.v1.metrics_service_pb2"
    parser = pytest.importorskip(name, reason="pip install '.[otlp]'")
    scenario = write_scenario(tmp_path)
    with taking() as collector:
        run = fleet.run(scenario, "--noop", "--workers", 1, "-o", 200, "--metrics", f"otlp+{collector.url}")
        assert run.end() == ExitCode.OK, run.err
    exported = parser.ExportMetricsServiceRequest.FromString(collector.requests[-1][3])
    metrics = {each.name: each for each in exported.resource_metrics[0].scope_metrics[0].metrics}
    assert sum(point.as_int for point in metrics["ssbench.operations"].sum.data_points) == 200
    dead = fleet.run(
        scenario, "--noop", "--workers", 1, "-o", 200, "--metrics", f"otlp+{collector.url}", "--force"
    )
    assert dead.end() == ExitCode.OK, dead.err
    assert re.search(
        r"--metrics: \d of \d deliveries to \S+ were not made \(.*\); the last one too", dead.err
    )
