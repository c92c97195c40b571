"""``conformance``: what it makes in an account."""

from __future__ import annotations

import pytest
from fault_server import FaultServer, Reply, Request

from ssbench.cli import master
from ssbench.scenario.names import longer_base_pattern
from ssbench.store import conformance_checks


def test_a_clean_up_takes_its_containers(
    fault_server: FaultServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those that it has left where it was killed."""
    containers = set()

    def answer(request: Request) -> Reply:
        name = request.target.partition("?")[0].split("/")[3:]
        if request.method == "PUT" and len(name) == 1:
            containers.update(name)
        return Reply(201 if request.method == "PUT" else 404)

    fault_server.rule = answer
    few = [each for each in conformance_checks.CHECKS if each.name in {"create", "public", "versions"}]
    monkeypatch.setattr(conformance_checks, "CHECKS", few)
    master.main(["conformance", "-S", fault_server.url, "-T", "token"])
    assert "versions" in capsys.readouterr().out
    assert len(containers) == 3
    found = [longer_base_pattern("ssbench", None).match(name) for name in containers]
    assert {match["base"] for match in found if match} == {"ssbench-conformance-"}
    assert all(found)
