"""Which node was slow: what a run's requests carry, and what Swift's logs of it say."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from attributed_runs import LAYOUT, attributed, slow
from fault_server import FaultServer, Reply, Request
from processes import Fleet
from runs import TOKEN, Store, write_scenario

from ssbench.local_swift import LocalSwift
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


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalSwift]:
    with LocalSwift(layout=LAYOUT) as swift:
        yield swift


def test_a_slow_device_is_named_and_nobody_without_one(cluster: LocalSwift, tmp_path: Path) -> None:
    # Far more than the least that can be found: other tests load the machine. Nobody is named in 99 of 100
    # runs, so not in two one after the other.
    assert [] in (slow(attributed(cluster, tmp_path, seed, operations=240)) for seed in (1, 2))
    cluster.slow("d3", 0.1, where="request")
    found = attributed(cluster, tmp_path, 3, operations=240)
    assert slow(found) == ["d3"]
    assert found["coverage"]["with_proxy"] == found["coverage"]["complete"] == 240
    (sentence,) = (each for each in found["answer"] if each.startswith("d3 on object-3: "))
    assert "its own log does not show it" in sentence
    cluster.repair("d3")


def test_a_device_that_is_not_mounted_is_named(cluster: LocalSwift, tmp_path: Path) -> None:
    cluster.fail("d2")
    found = attributed(cluster, tmp_path, 4, operations=200)
    assert any(each.startswith("d2 on object-2: answered 507 to ") for each in found["answer"])
    assert found["coverage"]["complete"] == 200
    assert any(row["extra"] for row in found["parts"])
    cluster.repair("d2")
