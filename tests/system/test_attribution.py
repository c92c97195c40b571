"""Which node was slow: what a run's requests carry, and what Swift's logs of it say."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from attributed_runs import LAYOUT, attributed, attributed_slow, broken
from fault_server import FaultServer, Reply, Request
from processes import Fleet
from runs import TOKEN, Store, write_scenario

from ssbench.local_swift import LocalSwift
from ssbench.results.reading import open_results
from ssbench.scenario.names import run_mark


def test_every_request_carries_the_mark_of_the_run(fleet: Fleet, tmp_path: Path) -> None:
    seen: dict[str, set[str | None]] = {}
    rule = Store()

    def note(request: Request) -> Reply:
        seen.setdefault(request.method, set()).add(request.headers.get("x-trans-id-extra"))
        return rule(request)

    with FaultServer(rule=note) as server:
        scenario = write_scenario(tmp_path, operation_count=60)
        run = fleet.run(scenario, "--workers", 1, "-S", server.url, "-T", TOKEN, "-R")
        assert run.end() == 0, run.err
    with contextlib.closing(open_results(fleet.stats)) as results:
        description = results.run
    assert description.run_id
    mark = run_mark(description.run_id)
    assert description.options["trans_id_extra"] == mark
    # Containers are made, objects uploaded, read, overwritten and deleted, those of the run removed.
    assert seen == {method: {mark} for method in ("HEAD", "PUT", "GET", "DELETE")}


@pytest.fixture(scope="module")
def swift() -> Iterator[LocalSwift]:
    with LocalSwift(layout=LAYOUT) as found:
        yield found


@pytest.fixture
def cluster(swift: LocalSwift) -> Iterator[LocalSwift]:
    """One that is whole again afterwards, whatever the test finds."""
    yield swift
    for target in (*(f"d{number + 1}" for number in range(LAYOUT.devices)), *swift.layout.proxy_names):
        swift.repair(target)


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_device_slow_before_its_server_sees_a_request_is_named(cluster: LocalSwift, tmp_path: Path) -> None:
    found = attributed_slow(cluster, tmp_path, 1, "d3", "request", operations=100)
    assert found["coverage"]["with_proxy"] == found["coverage"]["complete"] == found["coverage"]["operations"]
    (sentence,) = (each for each in found["answer"] if each.startswith("d3 on object-3 is slow: "))
    # On a busy machine it may have too few requests to tell.
    assert "Its own log: " not in sentence
    assert "Its own log " in sentence
    cluster.repair("d3")


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_device_slow_at_commit_is_named(cluster: LocalSwift, tmp_path: Path) -> None:
    # Mostly writes, of which there have to be many beside each pair of other devices.
    found = attributed_slow(cluster, tmp_path, 2, "d1", "commit", operations=120, crud=(10, 3, 1, 1))
    # By its deletes, or by whose replica ends last, or by the client's time, whichever shows it best.
    assert any(each.startswith("d1 on object-1 is slow: ") for each in found["answer"]), found["answer"]
    cluster.repair("d1")


def test_a_device_that_is_not_mounted_is_named(cluster: LocalSwift, tmp_path: Path) -> None:
    cluster.fail("d2")
    # The initial uploads have proxies leave the device alone for a second: the run takes at least two.
    for proxy in cluster.layout.proxy_names:
        cluster.slow(proxy, 0.1)
    found = attributed(cluster, tmp_path, 3, operations=40)
    assert broken(found) == ["d2"]
    assert any(
        each.startswith("d2 on object-2 took no request all through the run: ") for each in found["answer"]
    )
    assert found["coverage"]["complete"] == 40
    assert any(row["extra"] for row in found["parts"])
    for target in ("d2", *cluster.layout.proxy_names):
        cluster.repair(target)
