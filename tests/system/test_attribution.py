"""Which node was slow: what a run's requests carry, and what Swift's logs of it say."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from fault_server import FaultServer, Reply, Request
from processes import Fleet
from runs import TOKEN, Store, write_scenario

from ssbench.names import run_mark
from ssbench.run_results import open_results


@pytest.mark.parametrize("options", [[], ["--no-trans-id-extra"]])
def test_every_request_carries_the_mark_of_the_run(options: list[str], fleet: Fleet, tmp_path: Path) -> None:
    seen: dict[str, set[str | None]] = {}
    rule = Store()

    def note(request: Request) -> Reply:
        seen.setdefault(request.method, set()).add(request.headers.get("x-trans-id-extra"))
        return rule(request)

    with FaultServer(rule=note) as server:
        scenario = write_scenario(tmp_path, operation_count=60)
        run = fleet.run(scenario, "--workers", 1, "-S", server.url, "-T", TOKEN, "-R", *options)
        assert run.end() == 0, run.err
    with contextlib.closing(open_results(fleet.stats)) as results:
        description = results.run
    assert description.run_id
    mark = None if options else run_mark(description.run_id)
    assert description.options["trans_id_extra"] == mark
    # Containers are made, objects uploaded, read, overwritten and deleted, those of the run removed.
    assert seen == {method: {mark} for method in ("HEAD", "PUT", "GET", "DELETE")}
