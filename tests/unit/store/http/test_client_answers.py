"""Which answers are successes, and what is wrong with the others."""

from __future__ import annotations

import math
import time

import gevent
import pytest
from fault_server import FaultServer, Reply
from fresh_client import FreshClient

from ssbench.store.contract import CLOSED, WRONG_CONTENT, WRONG_ETAG, WRONG_SIZE, StoreRequest
from ssbench.store.http import client as client_module
from ssbench.store.http import pool
from ssbench.store.http.client import ClientSettings, HttpClient
from ssbench.store.http.http_response import HttpResponse


def answer(status: int = 200, size: int = 10, **more: object) -> HttpResponse:
    values = {"trans_id": "tx1", "keep_alive": True, "detail": "", "retry_after": None} | more
    return HttpResponse(status, size, 0.0, 0.1, 0.2, **values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("request_", "good", "bad"),
    [
        (StoreRequest(method="GET", container="c", name="o"), 200, 206),
        (StoreRequest(method="GET", container="c", name="o", part=(0, 4)), 206, 200),
        (StoreRequest(method="GET", container="c"), 204, 404),
        (StoreRequest(method="PUT", container="c", name="o"), 201, 412),
        (StoreRequest(method="GET", container="c", name="o", success=frozenset({304})), 304, 200),
    ],
)
def test_successes(request_: StoreRequest, good: int, bad: int) -> None:
    assert client_module.is_success_status(good, request_)
    assert not client_module.is_success_status(bad, request_)


def test_a_404_after_a_delete_that_was_not_answered_says_that_it_was_done() -> None:
    delete = StoreRequest(method="DELETE", container="c", name="o")
    assert client_module.is_already_done(404, delete, unanswered=True, in_doubt=False)
    assert not client_module.is_already_done(404, delete, unanswered=False, in_doubt=False)
    assert client_module.is_already_done(
        404, StoreRequest(method="HEAD", missing_ok=True), unanswered=False, in_doubt=False
    )
    copy = StoreRequest(method="PUT", done_before=frozenset({412}))
    assert client_module.is_already_done(412, copy, unanswered=False, in_doubt=True)
    assert not client_module.is_already_done(412, copy, unanswered=False, in_doubt=False)


def test_a_refusal_has_the_name_that_its_operation_gives_it() -> None:
    named = client_module.make_refusal_error(
        answer(403), StoreRequest(method="GET", causes={403: "not public"})
    )
    assert (named.cause, named.status, named.trans_id) == ("not public", 403, "tx1")
    assert client_module.make_refusal_error(answer(503), StoreRequest(method="GET")).cause == "HTTP 503"


@pytest.mark.parametrize(
    ("found", "part", "cause"),
    [
        (answer(size=9), None, WRONG_SIZE),
        (answer(wrong_etag="other"), None, WRONG_ETAG),
        (answer(206), (5, 14), WRONG_CONTENT),
        (answer(206, head=b"HTTP/1.1 206\r\nContent-Range: bytes 0-9/50"), (5, 14), WRONG_CONTENT),
    ],
)
def test_wrong_bodies(found: HttpResponse, part: tuple[int, int] | None, cause: str) -> None:
    wrong = client_module.find_body_error(found, StoreRequest(method="GET", expected=10, part=part), None)
    assert wrong is not None
    assert wrong.cause == cause


def test_right_bodies() -> None:
    assert client_module.find_body_error(answer(), StoreRequest(method="GET", expected=10), None) is None
    part = answer(206, head=b"HTTP/1.1 206\r\nContent-Range: bytes 5-14/50")
    assert client_module.find_body_error(part, StoreRequest(method="GET", part=(5, 14)), None) is None


@pytest.mark.parametrize(("patience", "cause", "resent"), [(math.inf, None, 1), (0.05, CLOSED, 0)])
def test_a_server_that_ends_a_connection_late_had_begun_with_the_request(
    monkeypatch: pytest.MonkeyPatch, patience: float, cause: str | None, resent: int
) -> None:
    monkeypatch.setattr(client_module, "_STALE_SECONDS", patience)
    monkeypatch.setattr(pool, "_STALL_SECONDS", math.inf)
    client = FreshClient(ClientSettings(retries=0))
    try:
        with FaultServer() as server:
            server.script(Reply(), Reply(delay=0.2, cut=0))
            outcomes = [client.request(f"{server.url}/v1/a", "DELETE", "c", "o") for _ in range(2)]
    finally:
        client.close()
    assert [outcomes[0].cause, outcomes[1].cause, outcomes[1].resent] == [None, cause, resent]


def test_an_end_that_a_stopped_worker_reads_late_is_that_of_a_stale_connection() -> None:
    client = FreshClient(ClientSettings(retries=0))
    try:
        with FaultServer() as server:
            server.script(Reply(), Reply(cut=0))
            client.request(f"{server.url}/v1/a", "DELETE", "c", "o")

            def stall() -> None:
                until = time.monotonic() + 20
                while len(server.requests) < 2 and time.monotonic() < until:
                    time.sleep(0.01)
                time.sleep(1.2)  # the loop does not turn

            blocker = gevent.spawn(stall)
            # Without a turn of the loop before it is sent.
            outcome = HttpClient.request(client, f"{server.url}/v1/a", "DELETE", "c", "o")
            blocker.join()
    finally:
        client.close()
    assert (outcome.cause, outcome.resent) == (None, 1)


def test_it_is_known_until_when_there_was_something_to_send() -> None:
    client = FreshClient(ClientSettings())
    try:
        with FaultServer() as server:
            first, kept, large = (
                client.request(f"{server.url}/v1/a", "PUT", "c", "o", size=size)
                for size in (10, 10, 20_000_000)
            )
            server.script(Reply(503, retry_after="0"))
            retried = client.request(f"{server.url}/v1/a", "PUT", "c", "o", size=10)
    finally:
        client.close()
    assert kept.rare is not None
    assert kept.rare.sending == 0
    for outcome in (first, large, retried):
        assert outcome.rare is not None
        assert outcome.last_byte is not None
        assert 0 < outcome.rare.sending <= outcome.last_byte
    assert retried.rare is not None
    assert retried.rare.sending >= retried.rare.pausing > 0
