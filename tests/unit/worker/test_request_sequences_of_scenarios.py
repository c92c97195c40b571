"""Sequences that scenarios define: what they ask of a store, and how they end."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from fault_server import FaultServer, Reply, Request
from sent_scenarios import make_sent

from ssbench.fleet.wire import RunParameters, Spent
from ssbench.scenario.operations import (
    EXISTS_CAUSE,
    FOUND_CAUSE,
    OPERATIONS,
    OperationSettings,
    find_sequence_effect,
    resolve_steps,
)
from ssbench.store.contract import RequestOutcome
from ssbench.store.request_options import RequestOptions
from ssbench.worker.worker_run import WorkerRun

SIZE = 30
NAME = "/v1/AUTH_test/base_000002/a/tiny_000007"

Perform = Callable[..., RequestOutcome]


def list_two(prefix: str) -> bytes:
    """A listing of two names that begin so."""
    return json.dumps([{"name": f"{prefix}{each}"} for each in "ab"]).encode()


class OneObject:
    """A store of one object, which has so many bytes; None: there is none."""

    def __init__(self) -> None:
        self.size: int | None = SIZE
        self.answers: dict[str, Reply] = {}  # by method, in place of what is right

    def __call__(self, request: Request) -> Reply:
        if request.method in self.answers:
            return self.answers[request.method]
        if "format=json" in request.target:
            query = parse_qs(urlsplit(request.target).query)
            return Reply(200, body=list_two(query["prefix"][0]))
        if request.target == "/v1/AUTH_test/base_000002":
            return Reply(204)
        if request.method == "PUT":
            # The rule is asked before the body is read.
            self.size = int(request.headers["content-length"])
            return Reply(201, etag=lambda digest: digest)
        return Reply(404) if self.size is None else self.of_object(request, self.size)

    def of_object(self, request: Request, size: int) -> Reply:
        match request.method:
            case "DELETE":
                self.size = None
                return Reply(204)
            case "GET" if "range" in request.headers:
                first, last = map(int, request.headers["range"][6:].split("-"))
                told = ("Content-Range", f"bytes {first}-{last}/{size}")
                return Reply(206, body=b"x" * (last - first + 1), headers=(told,))
            case "GET":
                return Reply(200, body=b"x" * size)
        return Reply(200, claim=size) if request.method == "HEAD" else Reply(202)


@pytest.fixture
def store() -> OneObject:
    return OneObject()


@pytest.fixture
def server(store: OneObject) -> Iterator[FaultServer]:
    with FaultServer(rule=store) as running:
        yield running


@pytest.fixture
def perform(server: FaultServer) -> Perform:
    """Carry out a sequence of these steps; ``others`` are settings of other operations."""

    def carry_out(
        *steps: Any, size: int = SIZE, spent: Spent | None = None, others: tuple[OperationSettings, ...] = ()
    ) -> RequestOutcome:
        effect = find_sequence_effect(resolve_steps(steps)).value
        settings = OperationSettings("mine", values={"steps": [*steps]}, defined=("GET", effect, 200))
        run = WorkerRun(
            RunParameters(
                1,
                storage_urls=[server.url],
                token="t",
                size_classes=["tiny"],
                size_ranges=[(10, 20)],
                signed=["", "", "temp_url_sig=1"],
                requests=RequestOptions(retries=0),
                scenario=make_sent(
                    container_base="base",
                    object_names="a/{class}_{number:06d}",
                    operations=(*others, settings),
                ),
            ),
            4,
        )
        with closing(run):
            found = run.perform((1, 200, 0, 2, 7, size), spent)[0]
            assert found.rare is not None
            return found

    return carry_out


def asked(server: FaultServer) -> list[str]:
    return [f"{each.method} {each.target.removeprefix('/v1/AUTH_test/')}" for each in server.requests]


OBJECT = NAME.removeprefix("/v1/AUTH_test/")


def test_steps_are_on_the_object_of_the_job(perform: Perform, server: FaultServer) -> None:
    found = perform("head_container", "list", "head", {"name": "read", "times": 2}, "tempurl", "post")
    assert (found.cause, found.detail) == (None, "")
    assert asked(server) == [
        "HEAD base_000002",
        "GET base_000002?prefix=a%2Ftiny_000007&format=json&limit=1000",
        f"HEAD {OBJECT}",
        f"GET {OBJECT}",
        f"GET {OBJECT}",
        f"GET {OBJECT}?temp_url_sig=1",
        f"POST {OBJECT}",
    ]
    assert len(found.rare.steps) == 6
    assert found.last_byte == pytest.approx(sum(found.rare.steps))
    assert (found.size, found.rare.entries) == (3 * SIZE + len(list_two("a/tiny_000007")), 2)


def test_a_step_has_the_settings_of_its_operation_and_its_own(perform: Perform, server: FaultServer) -> None:
    others = (
        OperationSettings("list", values={"limit": 5, "prefix": "x"}),
        OperationSettings("range", (("X-A", "b"),), {"length": (7, 7)}),
    )
    lists = [{"name": "list", "prefix": "{folder}", "delimiter": "/"}, "list"]
    found = perform(*lists, "range", {"name": "range", "length": [3, 3]}, others=others)
    assert found.cause is None
    first, second, *ranges = server.requests
    assert first.target.endswith("?prefix=a%2F&delimiter=%2F&format=json&limit=5")
    assert second.target.endswith("?prefix=x&format=json&limit=5")
    assert [each.headers["x-a"] for each in ranges] == ["b", "b"]
    assert found.size == 10 + len(list_two("a/")) + len(list_two("x"))


def test_a_new_object_is_looked_for_written_and_read(
    perform: Perform, server: FaultServer, store: OneObject
) -> None:
    store.size = None
    found = perform("missing", {"name": "missing", "method": "GET"}, "create", "head", "read")
    assert (found.cause, found.size) == (None, 2 * SIZE)
    assert asked(server) == [f"{each} {OBJECT}" for each in ("HEAD", "GET", "PUT", "HEAD", "GET")]
    assert store.size == SIZE


def test_an_object_that_is_replaced_has_another_size_before(perform: Perform, store: OneObject) -> None:
    store.size = 99
    found = perform("head", "read", "update", "read", size=SIZE)
    assert (found.cause, found.size) == (None, 99 + 2 * SIZE)
    found = perform("delete", "missing", "create", "head", size=12)
    assert (found.cause, found.size, store.size) == (None, 12, 12)


@pytest.mark.parametrize(
    ("steps", "cause"),
    [
        (["missing", "create"], EXISTS_CAUSE),
        (["create", "delete", "missing", "create"], FOUND_CAUSE),
        (["delete", "missing"], FOUND_CAUSE),
    ],
)
def test_what_should_be_missing_and_is_not_is_a_failure(
    perform: Perform, store: OneObject, steps: list[str], cause: str
) -> None:
    store.answers["DELETE"] = Reply(204)
    found = perform(*steps)
    assert (found.cause, found.status, found.rare.steps) == (cause, 200, [])


def test_a_step_that_fails_is_the_last(perform: Perform, server: FaultServer, store: OneObject) -> None:
    store.answers["POST"] = Reply(503)
    found = perform("head", "post", "read")
    assert (found.cause, found.size, found.rare.left) == ("HTTP 503", 0, 0)
    assert asked(server) == [f"HEAD {OBJECT}", f"POST {OBJECT}"]


def test_an_object_of_its_own_goes(perform: Perform, server: FaultServer) -> None:
    found = perform("create", "read", "delete")
    assert (found.cause, found.rare.left) == (None, 0)
    (name,) = {each.target for each in server.requests}
    assert name.startswith(f"{NAME}-")
    assert [each.method for each in server.requests] == ["PUT", "GET", "DELETE"]


def test_a_sequence_whose_token_was_refused_is_made_again(perform: Perform, store: OneObject) -> None:
    """Its first attempt may have created the object before."""
    now = time.monotonic()
    spent = (1, now - 5.0, now - 3.0, False)
    found = perform("missing", "create_only", "read", spent=spent)
    assert (found.cause, found.retries) == (None, 1)
    assert found.last_byte is not None
    assert 5.0 < found.last_byte < 8.0
    store.answers["PUT"] = Reply(412)
    assert perform("missing", "create_only", "read", spent=spent).cause is None
    assert perform("missing", "create_only", "read").cause == EXISTS_CAUSE


@pytest.mark.parametrize("method", ["HEAD", "GET"])
def test_an_object_that_no_run_has_is_missing(server: FaultServer, store: OneObject, method: str) -> None:
    settings = OperationSettings("missing", values={"method": method} if method == "GET" else {})
    parameters = RunParameters(
        1,
        storage_urls=[server.url],
        token="t",
        size_classes=["tiny"],
        requests=RequestOptions(retries=0),
        scenario=make_sent(operations=(settings,)),
    )
    run = WorkerRun(parameters, 1)
    code = OPERATIONS.named("missing").code
    store.size = None
    found = run.perform((1, code, 0, 2, 7, 0), None)[0]
    assert (found.cause, found.status, found.size) == (None, 404, 0)
    (request,) = server.requests
    assert request.method == method
    assert "/tiny_000007-" in request.target
    store.size = SIZE
    assert run.perform((1, code, 0, 2, 7, 0), None)[0].cause == FOUND_CAUSE
    run.close()
