"""A run is scraped and sends datagrams while it goes on."""

from __future__ import annotations

import re
import signal
import socket
import urllib.request
from contextlib import ExitStack
from pathlib import Path

from processes import Fleet, free_ports, limited
from runs import outcome, wait_until, write_scenario

from ssbench.errors import ExitCode


def test_a_run_is_scraped_and_tells_a_statsd_server(fleet: Fleet, tmp_path: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(30)
        (port,) = free_ports(1)
        run = fleet.run(
            write_scenario(tmp_path),
            # At a rate, because without one no-op operations take all the CPU there is.
            *("--noop", "--workers", 1, "-r", 600, "--rate", 100, "--metrics-port", f"127.0.0.1:{port}"),
            *("--statsd", f"127.0.0.1:{server.getsockname()[1]}"),
            environment=limited(tmp_path, 128),
        )
        run.wait_for(re.escape(f"Metrics for Prometheus: http://127.0.0.1:{port}/metrics"))

        def operations() -> float:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
                return sum(
                    map(float, re.findall(r"(?m)^ssbench_operations_total\S* (.*)$", answer.read().decode()))
                )

        wait_until(lambda: operations() > 100, "counted operations")
        with ExitStack() as stack:
            # More that say nothing than the run may have descriptors; others are answered, and it ends well.
            for _ in range(200):
                stack.enter_context(socket.create_connection(("127.0.0.1", port), 30))
            scraped = operations()
            run.signal(signal.SIGINT)
            run.wait_for("Interrupted")
        lines: list[str] = []
        while "ssbench.run.end:1|c" not in lines:
            lines += server.recv(65536).decode().split("\n")
        assert run.end() == ExitCode.INTERRUPTED, run.err
    assert lines[0] == "ssbench.run.start:1|c"
    assert "ssbench.workers:1|g" in lines
    assert 100 < scraped <= outcome(fleet.stats).count
