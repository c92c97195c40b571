"""A run with a share of new connections, over TLS: its reports count what the server saw."""

from __future__ import annotations

import json
import ssl
from collections import Counter
from pathlib import Path

from fault_server import Certificates, FaultServer
from processes import Fleet
from runs import INITIAL, TOKEN, Store, write_scenario

COUNT = 120


def test_new_and_resumed_connections_of_a_run(
    fleet: Fleet, tmp_path: Path, certificates: Certificates
) -> None:
    authority = tmp_path / "authority.pem"
    authority.write_text(certificates.pem)
    context = certificates.server()
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    scenario = write_scenario(
        tmp_path, operation_count=COUNT, user_count=4, connections={"new": 0.4, "tls_resume": True}
    )
    with FaultServer(rule=Store(), tls=context) as server:
        run = fleet.run(
            scenario,
            *("--workers", 1, "--os-cacert", authority, "-S", server.url, "-T", TOKEN, "--seed", 3),
            "--keep-objects",
        )
        assert run.end() == 0, run.err
    report = fleet.master("report-scenario", "-s", fleet.stats, "--json", tmp_path / "report.json")
    assert report.end() == 0, report.err
    said = json.loads((tmp_path / "report.json").read_text())
    assert said["run"]["scenario"]["connections"] == "new for 40% of operations, TLS sessions resumed"
    figures = next(each["figures"] for each in said["operations"] if each["operation"] == "all")
    # Those of workers: the master has connections of its own for containers, and no kept one was made during
    # the benchmark, unless all four were in use.
    requests = Counter(each.connection for each in server.requests if each.target.count("/") > 3)
    alone = sum(count == 1 for count in requests.values())
    assert abs(figures["new_connections"] - alone) <= 4
    assert abs(alone - 0.4 * COUNT) < 5 * (COUNT * 0.4 * 0.6) ** 0.5
    assert figures["on_kept"] == COUNT - figures["new_connections"]
    assert figures["new_connections"] - 5 <= figures["resumed_connections"] <= figures["new_connections"]
    assert abs(server.resumed - figures["resumed_connections"]) <= 4
    assert len(server.requests) > INITIAL + COUNT
    line = f"New connections: {figures['new_connections']} for {figures['new_connections']} operations"
    assert line in " ".join(run.out.split()) or line in report.out
