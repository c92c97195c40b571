"""A share of jobs has new connections, and TLS sessions are resumed: what both ends count is the same."""

from __future__ import annotations

import ssl
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent

import gevent
import pytest
from fault_server import Certificates, FaultServer, Reply
from sent_scenarios import make_sent

from ssbench.base.errors import ScenarioError
from ssbench.document.elements import View
from ssbench.document.renderers import text
from ssbench.fleet.wire import Job, JobBatch, RunParameters
from ssbench.reports import scenario_outlook
from ssbench.scenario.model import Scenario, SentScenario
from ssbench.scenario.operations import CREATE, DELETE, READ, UPLOAD_IF_MISSING
from ssbench.scenario.scenario_reading import check_scenario_text
from ssbench.scenario.structured_values import ConnectionSettings
from ssbench.store.contract import BriefResult, JobResult, RareFields
from ssbench.store.request_options import RequestOptions
from ssbench.worker.engine import GreenletEngine
from ssbench.worker.worker_run import FreshConnections, WorkerRun

FILE = """
name: connections
sizes: [{name: a, size: 1MB}]
initial_files: {a: 1}
profile: {create: 1}
run_seconds: 1
"""


def scenario(connections: str) -> Scenario:
    return check_scenario_text(f"{FILE}user_count: 1\nconnections: {connections}\n", "file")


def test_what_a_scenario_says() -> None:
    assert [
        scenario(each).connections for each in ("null", "kept", "{new: 0}", "new", "{tls_resume: true}")
    ] == [
        None,
        ConnectionSettings(),
        ConnectionSettings(),
        ConnectionSettings(1.0),
        ConnectionSettings(0.0, tls_resume=True),
    ]
    found = scenario("{new: 0.1, tls_resume: true}")
    assert found.connections == ConnectionSettings(0.1, tls_resume=True)
    view = View(columns=100)
    said = text.render(scenario_outlook.make_outlook_document(found, view), view)
    assert "connections: new for 10% of operations, TLS sessions resumed" in said
    for wrong in ("closed", "{}", "{new: 1.1}", "{new: -1}", "{new: true}", "{tls_resume: 1}", "{news: 1}"):
        with pytest.raises(ScenarioError, match="file:8: connections: expected kept, new, or a mapping with"):
            scenario(wrong)


def test_a_group_has_connections_of_its_own() -> None:
    groups = "groups:\n- {name: web, users: 1, connections: new}\n- {name: backup, users: 1}\n"
    parts = check_scenario_text(f"{FILE}connections: {{new: 0.5}}\n{groups}", "file").parts
    assert [part.connections for part in parts] == [ConnectionSettings(1.0), ConnectionSettings(0.5)]


def test_the_example_in_the_documentation() -> None:
    doc = (Path(__file__).parents[3] / "doc" / "scenarios.rst").read_text("utf-8")
    example = doc.partition("\nConnections\n---")[2].partition("yaml\n")[2].partition("\nBy default")[0]
    found = check_scenario_text(f"{FILE}user_count: 1\n{dedent(example)}", "file")
    assert found.connections == ConnectionSettings(0.1, tls_resume=True)


def with_new(share: float, *, tls_resume: bool = False) -> SentScenario:
    return make_sent(connections=ConnectionSettings(share, tls_resume=tls_resume))


@contextmanager
def running(
    server: FaultServer, slots: int = 4, **changes: object
) -> Iterator[tuple[GreenletEngine, list[JobResult]]]:
    results: list[JobResult] = []

    def ended(_batch_id: int, some: Sequence[BriefResult], _refused: int | None = None) -> None:
        results.extend(each for each in some if isinstance(each, JobResult))

    parameters = {
        "size_classes": ["a"],
        "storage_urls": [server.url],
        "requests": RequestOptions(retries=1, network_timeout=30, connect_timeout=30),
        "seed": 5,
    }
    engine = GreenletEngine(RunParameters(1, **(parameters | changes)), slots, ended)
    try:
        yield engine, results
    finally:
        engine.close()


def carry_out(engine: GreenletEngine, results: list[JobResult], jobs: list[Job]) -> list[JobResult]:
    """Let an engine carry out jobs, and wait for them."""
    gevent.get_hub().loop.run_callback(engine.submit, JobBatch(1, jobs))  # as a worker does
    with gevent.Timeout(60):
        while len(results) < len(jobs):
            gevent.sleep(0.005)
    return results


def jobs(count: int, first: int = 1) -> list[Job]:
    kinds = (CREATE, READ, DELETE)
    return [(first + each, kinds[each % 3].code, 0, 0, each, 0 if each % 3 else 10) for each in range(count)]


def apart(share: float, seed: int) -> FreshConnections:
    run = WorkerRun(RunParameters(1, scenario=with_new(share), seed=seed), 1)
    try:
        assert run.apart is not None
        return run.apart
    finally:
        run.close()


def test_which_jobs_they_are_follows_from_the_seed() -> None:
    many = jobs(20_000)
    ours = apart(0.1, 5)
    chosen = [job[0] for job in many if ours.has(job)]
    # Five standard deviations of a binomial distribution.
    assert abs(len(chosen) - 2000) < 5 * (20_000 * 0.1 * 0.9) ** 0.5
    again, other = apart(0.1, 5), apart(0.1, 6)
    assert chosen == [job[0] for job in many if again.has(job)]
    assert chosen != [job[0] for job in many if other.has(job)]
    every = apart(1.0, 5)
    assert all(map(every.has, many))
    # Initial uploads are no part of the benchmark.
    assert not any(every.has((number, UPLOAD_IF_MISSING.code, 0, 0, 1, 1)) for number in range(99))


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("verify_seed", [None, 7])
def test_as_many_connections_as_jobs_that_have_one(
    fault_server: FaultServer, share: float, verify_seed: int | None
) -> None:
    fault_server.default = Reply(body=b"")
    with running(fault_server, scenario=with_new(share), verify_seed=verify_seed) as (engine, results):
        many = jobs(120)
        found = {each.job_id: each for each in carry_out(engine, results, many)}
        assert {each.cause for each in found.values()} == {None}
        made = {number: rare.connections for number, each in found.items() if (rare := each.rare) is not None}
        assert sum(made.values()) == fault_server.connections
        by_connection = Counter(request.connection for request in fault_server.requests)
        chosen = (
            set() if engine._run.apart is None else {job[0] for job in many if engine._run.apart.has(job)}
        )
        assert {made[number] for number in chosen} <= {1}
        # The others share as many connections as there are users; each of these has one request.
        assert len(by_connection) - len(chosen) <= (4 if share < 1 else 0)
        assert sum(count == 1 for count in by_connection.values()) >= len(chosen)
        # Nothing but kept connections is open.
        assert len(engine._run.client._shared.connections) == len(by_connection) - len(chosen)


def test_a_job_that_fails_and_one_that_is_retried(fault_server: FaultServer) -> None:
    fault_server.script(Reply(503, retry_after="0"), Reply(404))
    with running(fault_server, slots=1, scenario=with_new(1.0)) as (engine, results):
        retried, failed = carry_out(
            engine, results, [(1, DELETE.code, 0, 0, 1, 0), (2, DELETE.code, 0, 0, 2, 0)]
        )
        assert [each.cause for each in (retried, failed)] == ["HTTP 404", None]
        assert [(each.rare or RareFields()).connections for each in (retried, failed)] == [2, 1]
        assert fault_server.connections == 3
        assert not engine._run.client._shared.connections


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("resume", [False, True])
def test_tls_sessions_are_resumed_where_that_is_asked_for(
    certificates: Certificates, version: ssl.TLSVersion, resume: bool
) -> None:
    context = certificates.server()
    context.minimum_version = context.maximum_version = version
    with (
        FaultServer(tls=context) as server,
        running(
            server,
            slots=1,
            scenario=with_new(0.5, tls_resume=resume),
            ca_certificates=certificates.pem,
        ) as (engine, results),
    ):
        found = carry_out(engine, results, jobs(30))
        assert {each.cause for each in found} == {None}
        made = sum(each.rare.connections for each in found if each.rare is not None)
        resumed = sum(each.rare.resumed for each in found if each.rare is not None)
        assert made == server.connections > 5
        # The first connection of each kind, kept or not, begins a session.
        assert resumed == server.resumed == (made - 2 if resume else 0)


def test_a_server_that_forgets_sessions_is_no_failure(certificates: Certificates) -> None:
    with (
        FaultServer(tls=certificates.server()) as server,
        running(
            server, slots=1, scenario=with_new(1.0, tls_resume=True), ca_certificates=certificates.pem
        ) as (
            engine,
            results,
        ),
    ):
        assert {each.cause for each in carry_out(engine, results, jobs(3))} == {None}
        assert server.resumed == 2
        server.tls = certificates.server()  # other keys of tickets, as after a restart
        results.clear()
        assert {each.cause for each in carry_out(engine, results, jobs(3, first=10))} == {None}
        assert (server.resumed, server.connections) == (4, 6)
