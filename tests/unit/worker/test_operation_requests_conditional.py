"""The operation conditional, on stores that heed ``If-None-Match: *``, an ETag alone, or nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fault_server import FaultServer, Reply, Request
from sent_scenarios import make_sent

from ssbench.fleet.wire import RunParameters
from ssbench.scenario.operations import CONDITIONAL, TRY
from ssbench.store.conformance_checks import CHECKS
from ssbench.store.contract import RequestOutcome
from ssbench.store.request_options import RequestOptions
from ssbench.worker import operation_requests
from ssbench.worker.operation_requests import KnownEtags
from ssbench.worker.worker_run import WorkerRun


class Conditions:
    """A store with one ETag for all objects, which heeds some conditions."""

    def __init__(self) -> None:
        self.etag = "e1"
        self.heeds_any = self.heeds_etag = True
        #: So many of the next GETs have the object, whatever they ask for.
        self.lapses = 0
        #: The ETag that HEADs are told of, by a replica that lags; empty: that of all.
        self.lagging = ""
        #: Whether the object is another one at each request.
        self.changes = False

    def __call__(self, request: Request) -> Reply:
        wanted = request.headers.get("if-none-match")
        if self.changes:
            self.etag += "+"
        same = (wanted == "*" and self.heeds_any) or (wanted == f'"{self.etag}"' and self.heeds_etag)
        fields = (("Etag", self.etag),)
        if request.method == "HEAD":
            return Reply(200, headers=(("Etag", self.lagging or self.etag),))
        if self.lapses:
            self.lapses, same = self.lapses - 1, False
        return Reply(304, headers=fields) if same else Reply(200, b"x" * 100, headers=fields)


@pytest.fixture
def store() -> Conditions:
    return Conditions()


@pytest.fixture
def server(store: Conditions) -> Iterator[FaultServer]:
    with FaultServer(rule=store) as running:
        yield running


@pytest.fixture
def run(server: FaultServer) -> Iterator[WorkerRun]:
    parameters = RunParameters(
        1,
        storage_urls=[server.url],
        token="t",
        scenario=make_sent(container_base="base"),
        size_classes=["tiny"],
        size_ranges=[(100, 100)],
        requests=RequestOptions(retries=0),
    )
    made = WorkerRun(parameters, 1)
    yield made
    made.close()


def ask(run: WorkerRun, number: int = 7) -> RequestOutcome:
    return run.perform((1, CONDITIONAL.code, 0, 2, number, 0), None)[0]


def asked(server: FaultServer) -> list[tuple[str, str | None]]:
    return [(each.method, each.headers.get("if-none-match")) for each in server.requests]


def test_any_etag_is_asked_for_where_the_store_heeds_that(run: WorkerRun, server: FaultServer) -> None:
    assert [ask(run).cause, ask(run).cause] == [None, None]
    assert asked(server) == [("GET", "*")] * 2


def test_the_etag_that_is_known_is_sent_to_a_store_that_ignores_any(
    run: WorkerRun, server: FaultServer, store: Conditions
) -> None:
    store.heeds_any = False
    outcomes = [ask(run), ask(run), ask(run, 8), ask(run, 8)]
    assert {(each.cause, each.status) for each in outcomes} == {(None, 304)}
    etag = ("GET", '"e1"')
    # Only the first of all finds out, and the ETag of each object is looked up once.
    assert asked(server) == [("GET", "*"), ("HEAD", None), etag, etag, ("HEAD", None), etag, etag]


def test_the_etag_of_an_object_that_was_written_since_is_that_of_the_answer(
    run: WorkerRun, server: FaultServer, store: Conditions
) -> None:
    store.heeds_any = False
    ask(run)
    store.etag = "e2"
    server.requests.clear()
    assert ask(run).cause is None
    assert asked(server) == [("GET", '"e1"'), ("GET", '"e2"')]


def test_a_replica_that_lags_does_not_make_the_others_ignore_an_etag(
    run: WorkerRun, store: Conditions
) -> None:
    store.heeds_any = False
    ask(run)
    store.etag, store.lagging = "e2", "e1"
    assert ask(run).cause is None


def test_an_object_with_another_etag_each_time_is_a_failure(run: WorkerRun, store: Conditions) -> None:
    store.heeds_any, store.changes = False, True
    found = ask(run)
    assert (found.cause, found.status) == ("HTTP 200", 200)
    store.changes = False
    assert ask(run).cause is None


def test_a_store_that_ignores_an_etag_too_is_a_failure(run: WorkerRun, store: Conditions) -> None:
    store.heeds_any = store.heeds_etag = False
    assert (ask(run).cause, ask(run).cause) == ("condition ignored",) * 2
    store.etag = ""
    assert ask(run, 9).cause == "condition ignored"


def test_a_store_that_ignores_an_etag_now_and_then_fails_as_often(run: WorkerRun, store: Conditions) -> None:
    store.heeds_any = False
    ask(run)
    store.lapses = 1
    assert [ask(run).cause, ask(run).cause] == ["condition ignored", None]


def test_known_etags_take_a_bounded_amount_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operation_requests, "_MAX_ETAGS", 2)
    known = KnownEtags()
    for place, etag in (("a", "1"), ("b", "2"), ("b", "3"), ("c", "4")):
        known.keep(place, etag)
    assert [known.get(place) for place in "abc"] == [None, "3", "4"]


@pytest.mark.parametrize(("heeds", "found"), [(True, (None, "")), (False, ("ignored", "200"))])
def test_a_first_try_says_what_the_store_does(
    run: WorkerRun, store: Conditions, heeds: bool, found: tuple[str | None, str]
) -> None:
    store.heeds_any = heeds
    number = next(place for place, check in enumerate(CHECKS) if check.name == "conditional")
    outcome, _ = run.perform((1, TRY.code, 0, 0, 1, number), None)
    assert (outcome.cause, outcome.detail) == found
    assert outcome.size == 0
    assert outcome.last_byte is not None
