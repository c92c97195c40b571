"""What each row of the table of operations asks of a server."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator

import pytest
from chi_square import misfit
from fault_server import FaultServer, Reply
from golden_words import GoldenWords
from runs import Store
from sent_scenarios import make_sent

from ssbench.fleet.wire import RunParameters, Spent
from ssbench.scenario.operations import (
    CREATE,
    DELETE,
    HEAD,
    OPERATIONS,
    READ,
    REMOVE,
    UPDATE,
    UPLOAD_IF_MISSING,
    OperationKind,
)
from ssbench.store.contract import RequestOutcome
from ssbench.store.request_options import RequestOptions
from ssbench.worker import operation_requests
from ssbench.worker.operation_requests import JobTarget, find_builder
from ssbench.worker.worker_run import WorkerRun, make_job_result

OBJECT = "/v1/AUTH_test/base_000002/tiny_000007"


@pytest.fixture
def rule() -> Store:
    return Store()


@pytest.fixture
def server(rule: Store) -> Iterator[FaultServer]:
    with FaultServer(rule=rule) as running:
        yield running


@pytest.fixture
def run(server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[WorkerRun]:
    parameters = RunParameters(
        1,
        storage_urls=[f"{server.url}"],
        token="t",
        scenario=make_sent(container_base="base", delete_after=60),
        size_classes=["tiny"],
        size_ranges=[(100, 200)],
        requests=RequestOptions(retries=0),
    )
    made = WorkerRun(parameters, 1)
    yield made
    made.close()


def perform(
    run: WorkerRun, operation: OperationKind, size: int = 0, history: Spent | None = None
) -> RequestOutcome:
    outcome, url = run.perform((1, operation.code, 0, 2, 7, size), history)
    assert url == 0
    return outcome


def asked(server: FaultServer) -> list[tuple[str, str, int, str | None]]:
    return [
        (each.method, each.target, len(each.body), each.headers.get("x-delete-after"))
        for each in server.requests
    ]


@pytest.mark.parametrize(
    ("operation", "size", "request_line", "moved"),
    [
        (CREATE, 150, ("PUT", OBJECT, 150, "60"), 150),
        (UPDATE, 120, ("PUT", OBJECT, 120, "60"), 120),
        (READ, 0, ("GET", OBJECT, 0, None), 130),
        (DELETE, 0, ("DELETE", OBJECT, 0, None), 0),
        (HEAD, 0, ("HEAD", OBJECT, 0, None), 0),
    ],
)
def test_plain_operations(
    run: WorkerRun,
    server: FaultServer,
    rule: Store,
    operation: OperationKind,
    size: int,
    request_line,
    moved: int,
) -> None:
    rule.sizes[OBJECT] = 130
    outcome = perform(run, operation, size)
    assert asked(server) == [request_line]
    assert (outcome.cause, outcome.size) == (None, moved)
    assert server.requests[0].headers["x-auth-token"] == "t"


@pytest.mark.parametrize("there", [129, 131])
def test_a_read_returns_as_many_bytes_as_the_object_has(run: WorkerRun, rule: Store, there: int) -> None:
    rule.sizes[OBJECT] = there
    outcome = perform(run, READ, 130)
    assert (outcome.cause, outcome.size, outcome.status) == ("wrong size", 0, 200)
    assert perform(run, READ, there).cause is None
    assert perform(run, DELETE, 130).cause is None  # its bytes are those of another draw


@pytest.mark.parametrize("there", [0, 129, 131])
def test_a_head_tells_of_the_size_that_the_object_has(
    run: WorkerRun, rule: Store, there: int, golden_words: GoldenWords
) -> None:
    rule.sizes[OBJECT] = there
    outcome = perform(run, HEAD, 130)
    assert (outcome.cause, outcome.size, outcome.status) == ("wrong size", 0, 200)
    golden_words(outcome.detail)
    rule.sizes[OBJECT] = 130
    assert (perform(run, HEAD, 130).cause, perform(run, HEAD).cause) == (None, None)


@pytest.mark.parametrize("operation", [HEAD, OPERATIONS.named("check")])
@pytest.mark.parametrize("reads", ["the usual way", "carefully"])
def test_a_head_need_not_tell_of_a_size(
    run: WorkerRun, server: FaultServer, operation: OperationKind, reads: str
) -> None:
    more = "Transfer-Encoding: chunked\r\n" if reads == "carefully" else ""
    raw = f"HTTP/1.1 200 OK\r\n{more}\r\n"
    server.rule = lambda _: Reply(raw=raw.encode())
    outcome = perform(run, operation, 130)
    assert (outcome.cause, outcome.size, outcome.status) == (None, 0, 200)


@pytest.mark.parametrize("operation", [CREATE, READ, DELETE, HEAD])
def test_the_history_of_a_job_counts(run: WorkerRun, rule: Store, operation: OperationKind) -> None:
    rule.sizes[OBJECT] = 1
    now = time.monotonic()
    outcome = perform(run, operation, 1, history=(3, now - 500.0, now - 100.0, False))
    assert outcome.retries == 3
    assert outcome.last_byte is not None
    assert outcome.completed - outcome.last_byte == pytest.approx(now - 500.0, abs=1e-6)
    assert outcome.rare is not None
    assert 100.0 <= outcome.rare.pausing <= outcome.completed - (now - 100.0)


@pytest.mark.parametrize(("in_doubt", "cause"), [(True, None), (False, "HTTP 404")])
def test_a_delete_that_a_lost_worker_may_have_begun_finds_nothing(
    run: WorkerRun, in_doubt: bool, cause: str | None
) -> None:
    outcome = perform(run, DELETE, history=(0, None, None, in_doubt))
    assert (outcome.cause, outcome.status) == (cause, 404)
    assert perform(run, READ, history=(0, None, None, in_doubt)).cause == "HTTP 404"


@pytest.mark.parametrize(
    ("there", "methods", "size"),
    [(None, ["HEAD", "PUT"], 150), (99, ["HEAD", "PUT"], 150), (100, ["HEAD"], 100), (200, ["HEAD"], 200)],
)
def test_an_initial_object_is_uploaded_unless_one_of_a_size_of_its_class_is_there(
    run: WorkerRun, server: FaultServer, rule: Store, there: int | None, methods: list[str], size: int
) -> None:
    if there is not None:
        rule.sizes[OBJECT] = there
    outcome = perform(run, UPLOAD_IF_MISSING, 150)
    assert [each.method for each in server.requests] == methods
    assert (outcome.cause, outcome.found, outcome.size) == (None, there, size)
    assert all(expires is None for *_, expires in asked(server))


def test_an_initial_object_is_not_uploaded_where_its_head_fails(
    run: WorkerRun, server: FaultServer, rule: Store
) -> None:
    rule.fault = lambda _request: Reply(403)
    assert perform(run, UPLOAD_IF_MISSING, 150).cause == "HTTP 403"
    assert [each.method for each in server.requests] == ["HEAD"]


def test_only_the_clean_up_may_find_nothing(run: WorkerRun, server: FaultServer) -> None:
    assert perform(run, REMOVE).cause is None
    assert perform(run, DELETE).cause == "HTTP 404"
    assert [each.method for each in server.requests] == ["DELETE", "DELETE"]


def test_a_row_may_have_a_builder_of_its_own(server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    def twice(target: JobTarget) -> RequestOutcome:
        operation_requests.send_request(target)
        return operation_requests.send_request(target)

    monkeypatch.setitem(operation_requests.REQUEST_BUILDERS, READ.code, twice)
    once = RequestOptions(retries=0)
    twofold = WorkerRun(RunParameters(1, storage_urls=[server.url], size_classes=["tiny"], requests=once), 1)
    assert perform(twofold, READ).cause == "HTTP 404"
    assert [each.method for each in server.requests] == ["GET", "GET"]
    twofold.close()


def test_every_row_has_a_builder() -> None:
    found = {row.name: find_builder(row).__name__ for row in OPERATIONS}
    assert (
        found.items()
        >= {
            "create": "write_object",
            "read": "send_request",
            "update": "write_object",
            "delete": "send_request",
            "upload_if_missing": "upload_if_missing",
            "remove": "remove_object",
        }.items()
    )
    assert {name for name, function in found.items() if function == "check_object_size"} == {
        "head",
        "head_account",
        "head_container",
    }


def test_a_code_without_a_row_is_an_error_of_the_job(
    run: WorkerRun, server: FaultServer, golden_words: GoldenWords
) -> None:
    outcome, _ = run.perform((1, 77, 0, 2, 7, 0), None)
    golden_words((outcome.cause, outcome.detail))
    assert not server.requests


def test_texts_of_the_server_are_cut_for_the_wire() -> None:
    outcome = RequestOutcome(0, None, None, 1.0, 0, 0, "t" * 5000, "HTTP 500", "d" * 5000)
    result = make_job_result(5, outcome, 2)
    assert (result.job_id, result.storage_url) == (5, 2)
    assert (result.trans_id, result.detail) == ("t" * 500, "d" * 500)


def test_lives_of_objects_are_drawn_evenly_between_their_ends(run: WorkerRun) -> None:
    random.seed(11)

    def drawn(least: int | None, most: int | None, times: int) -> Counter[int | None]:
        parameters = RunParameters(1, scenario=make_sent(delete_after=least, delete_after_most=most))
        target = JobTarget(CREATE, run.client, parameters, "", "c", "o", 1, 0, (0, None, None, False), None)
        return Counter(target.delete_after for _ in range(times))

    counts = drawn(60, 79, 20_000)
    assert counts.keys() == set(range(60, 80))
    assert misfit([*counts.values()], [1 / 20] * 20) < 1
    assert drawn(60, None, 1).keys() == {60}
    assert drawn(None, None, 1).keys() == {None}
