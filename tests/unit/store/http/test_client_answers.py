"""Which answers are successes, and what is wrong with the others."""

from __future__ import annotations

import math
import select
import time

import gevent
import pytest
from fault_server import Certificates, FaultServer, Reply
from fresh_client import FreshClient

from ssbench.store.contract import CLOSED, RESET, WRONG_CONTENT, WRONG_ETAG, WRONG_SIZE, StoreRequest
from ssbench.store.http import client as client_module
from ssbench.store.http import pool
from ssbench.store.http.client import ClientSettings, HttpClient
from ssbench.store.http.connection import HttpConnection
from ssbench.store.http.dialect import is_success_status
from ssbench.store.http.http_response import HttpResponse


def answer(status: int = 200, size: int = 10, **more: object) -> HttpResponse:
    values = {"trans_id": "tx1", "keep_alive": True, "detail": "", "retry_after": None} | more
    return HttpResponse(status, size, 0.0, 0.1, 0.2, **values)


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
    assert is_success_status(good, request_)
    assert not is_success_status(bad, request_)


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


@pytest.mark.parametrize(("patience", "cause", "resent"), [(math.inf, None, 1), (0.05, RESET, 0)])
def test_a_server_that_ends_a_connection_late_had_begun_with_the_request(
    monkeypatch: pytest.MonkeyPatch, patience: float, cause: str | None, resent: int
) -> None:
    monkeypatch.setattr(client_module, "_STALE_SECONDS", patience)
    monkeypatch.setattr(pool, "_STALL_SECONDS", math.inf)
    client = FreshClient(ClientSettings(retries=0))
    try:
        with FaultServer() as server:
            server.script(Reply(), Reply(delay=0.2, reset=True))
            first = client.request(f"{server.url}/v1/a", "DELETE", "c", "o")
            client.rest(60)
            second = client.request(f"{server.url}/v1/a", "DELETE", "c", "o")
    finally:
        client.close()
    assert [first.cause, second.cause, second.resent] == [None, cause, resent]


#: Whether over TLS, how the server ends the connection, for how long that was at rest, and the cause of a
#: retry; None: it was stale.
DROPS = (
    (False, Reply(cut=0), 0.0, CLOSED),
    (False, Reply(reset=True), 0.0, RESET),
    (False, Reply(cut=0), 60.0, CLOSED),  # its kernel says that it had the request
    (False, Reply(reset=True), 60.0, None),
    (True, Reply(cut=0), 0.0, CLOSED),
    (True, Reply(reset=True), 60.0, None),
)


@pytest.mark.parametrize(("tls", "fault", "seconds", "cause"), DROPS)
@pytest.mark.parametrize(("method", "size"), [("PUT", 10), ("PUT", 3_000_000), ("GET", 0)])
def test_a_request_that_a_server_drops_is_retried_and_one_that_was_late_for_a_time_out_sent_again(
    tls: bool, fault: Reply, seconds: float, cause: str | None, method: str, size: int
) -> None:
    client = FreshClient(ClientSettings(insecure=True))
    try:
        with FaultServer(tls=Certificates().server() if tls else None) as server:
            client.request(f"{server.url}/v1/a", "DELETE", "c", "o")
            client.rest(seconds)
            server.script(fault)
            outcome = client.request(f"{server.url}/v1/a", method, "c", "o", size=size)
            assert len(server.requests) == 3
    finally:
        client.close()
    assert outcome.cause is None
    assert outcome.rare is not None
    found = (outcome.retried, outcome.retries, outcome.resent, outcome.rare.repeated)
    assert found == ((None, 0, 1, 0) if cause is None else ({cause: 1}, 1, 0, int(method == "PUT")))


@pytest.mark.parametrize(("seconds", "resent"), [(0.0, 0), (60.0, 1)])
def test_what_is_sent_after_the_server_ended_a_connection_at_rest_finds_it_stale(
    seconds: float, resent: int
) -> None:
    client = FreshClient(ClientSettings())
    try:
        with FaultServer() as server:
            client.request(f"{server.url}/v1/a", "DELETE", "c", "o")
            (connection,) = client._shared.connections
            assert isinstance(connection, HttpConnection)
            client.rest(seconds)
            server.drop_connections()
            assert select.select([connection._sock], [], [], 60)[0]  # its end is here, and the loop stands
            outcome = HttpClient.request(client, f"{server.url}/v1/a", "PUT", "c", "o", size=10)
            assert len(server.requests) == 2
    finally:
        client.close()
    assert (outcome.cause, outcome.resent, outcome.retries) == (None, resent, 1 - resent)


def test_an_upload_that_another_worker_may_have_done_may_be_done_twice() -> None:
    client = FreshClient(ClientSettings())
    try:
        with FaultServer() as server:
            outcome = client.request(
                f"{server.url}/v1/a", "PUT", "c", "o", size=10, prior=(0, None, None, True)
            )
    finally:
        client.close()
    assert outcome.rare is not None
    assert outcome.rare.repeated == 1


def test_an_end_that_a_stopped_worker_reads_late_is_that_of_a_stale_connection() -> None:
    client = FreshClient(ClientSettings(retries=0))
    try:
        with FaultServer() as server:
            server.script(Reply(), Reply(reset=True))
            client.request(f"{server.url}/v1/a", "DELETE", "c", "o")
            client.rest(60)

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
