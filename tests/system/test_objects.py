"""The client for objects against servers that misbehave, and against a real Swift."""

from __future__ import annotations

import dataclasses
import hashlib
import socket
import time
import zlib
from collections.abc import Callable, Iterator
from typing import Any, cast

import gevent
import gevent.pool
import gevent.socket
import pytest
import swiftclient
from awake import awake
from fault_server import FaultServer, Reply, black_hole
from fresh_client import FreshClient, rest
from hypothesis import given, settings
from hypothesis import strategies as st

from ssbench.base.errors import UsageError
from ssbench.local_swift import LocalSwift
from ssbench.store import contract as store_causes
from ssbench.store.contract import RareFields, RequestOutcome
from ssbench.store.http import bodies as bodies_module
from ssbench.store.http import client as client_module
from ssbench.store.http import connection as http_connection
from ssbench.store.http import pool
from ssbench.store.http.client import ClientSettings, HttpClient
from ssbench.store.http.connection import HttpConnection
from ssbench.store.http.pool import ConnectionPool

MakeClient = Callable[..., HttpClient]


@pytest.fixture
def make_client() -> Iterator[MakeClient]:
    """Clients with short time-outs and few retries, closed at the end."""
    clients = []

    def make(**settings: Any) -> HttpClient:
        defaults = {"connect_timeout": 20.0, "network_timeout": 5.0, "max_connections": 8, "retries": 3}
        clients.append(FreshClient(ClientSettings(**{**defaults, **settings})))
        return clients[-1]

    yield make
    for client in clients:
        client.close()


@pytest.fixture
def client(make_client: MakeClient) -> HttpClient:
    return make_client()


@pytest.fixture(params=["near", "kernel", "copying"])
def either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """To a server on this host, and as to others, with and without what only Linux has.

    That is MSG_TRUNC, and sendfile from a memory file.
    """
    if request.param != "near":
        monkeypatch.setattr(http_connection, "is_same_host", lambda *_: False)
    if request.param == "copying":
        monkeypatch.setattr(client_module, "discarding_flags", lambda: 0)
        monkeypatch.delattr("os.memfd_create")


def get(client: HttpClient, server: FaultServer, **more: Any) -> RequestOutcome:
    return client.request(server.url, "GET", "c", "o", "token", **more)


def put(client: HttpClient, server: FaultServer, size: int, **more: Any) -> RequestOutcome:
    return client.request(server.url, "PUT", "c", "o", "token", size, **more)


# What is sent


@pytest.mark.parametrize("size", [0, 1, 15, 16, 17, 4096, 65536, 65537, 9_000_000])
@pytest.mark.usefixtures("either_way")
def test_uploads_exactly_so_many_bytes(client: HttpClient, fault_server: FaultServer, size: int) -> None:
    outcome = put(client, fault_server, size)
    assert (outcome.cause, outcome.size, outcome.retries) == (None, size, 0)
    assert outcome.first_byte is None
    assert outcome.last_byte is not None
    (seen,) = fault_server.requests
    assert (seen.method, seen.headers["content-length"], len(seen.body)) == ("PUT", str(size), size)


@pytest.mark.parametrize("size", [8, 4096, 65536, 5_000_000])
@pytest.mark.usefixtures("either_way")
def test_bodies_do_not_compress_and_differ(client: HttpClient, fault_server: FaultServer, size: int) -> None:
    for _ in range(3):
        put(client, fault_server, size)
    bodies = [request.body for request in fault_server.requests]
    assert len(set(bodies)) == 3
    if size > 8:
        assert all(len(zlib.compress(body[: 1 << 20])) >= min(size, 1 << 20) for body in bodies)
        chunks = [body[at : at + 4096] for body in bodies for at in range(0, size, 4096)]
        assert len(set(chunks)) == len(chunks)


def test_a_body_longer_than_the_block_repeats_it_out_of_step(
    client: HttpClient, fault_server: FaultServer
) -> None:
    size = 3 * bodies_module.BLOCK_BYTES
    put(client, fault_server, size)
    body = fault_server.requests[0].body
    chunks = {body[at : at + 65536] for at in range(0, size, 65536)}
    assert len(chunks) == -(-size // 65536)


def test_request_line_and_headers(client: HttpClient, fault_server: FaultServer) -> None:
    client.request(fault_server.url, "PUT", "c d", "größe/a b?%", "tök".encode("ascii", "ignore").decode(), 3)
    client.request(fault_server.url, "PUT", "c", "plain_000001", None, 3, delete_after=77)
    first, second = fault_server.requests
    assert first.target == "/v1/AUTH_test/c%20d/gr%C3%B6%C3%9Fe/a%20b%3F%25"
    assert first.headers["x-auth-token"] == "tk"
    assert first.headers["host"] == f"127.0.0.1:{fault_server.port}"
    assert first.headers["user-agent"].startswith("ssbench/")
    assert "x-delete-after" not in first.headers
    assert second.target == "/v1/AUTH_test/c/plain_000001"
    assert second.headers["x-delete-after"] == "77"
    assert "x-auth-token" not in second.headers


def test_new_token_is_used(client: HttpClient, fault_server: FaultServer) -> None:
    for token in ("one", "two", "one"):
        client.request(fault_server.url, "GET", "c", "o", token)
    assert [request.headers["x-auth-token"] for request in fault_server.requests] == ["one", "two", "one"]


@pytest.mark.parametrize("token", ["a\r\nX-Evil: 1", "a\nb", "tök"])
def test_token_that_no_header_may_hold(client: HttpClient, fault_server: FaultServer, token: str) -> None:
    with pytest.raises(UsageError, match="the token holds characters"):
        client.request(fault_server.url, "GET", "c", "o", token)
    assert not fault_server.requests


@pytest.mark.parametrize(
    "url",
    [
        "",
        "ftp://h/v1",
        "http://",
        "http:///v1",
        "http://h:99999/v1",
        "http://h:x/",
        "http://h/a b",
        "http://h/?q",
    ],
)
def test_bad_storage_url(client: HttpClient, url: str) -> None:
    with pytest.raises(UsageError, match=r"storage URL.*expected http://"):
        client.request(url, "GET", "c", "o")


@pytest.mark.parametrize("url", ["http://user:hidden@h/v1", "http://user:hid/den@h/v1"])
def test_a_password_in_a_storage_url_is_refused_without_showing_it(client: HttpClient, url: str) -> None:
    with pytest.raises(UsageError, match=r"storage URL 'http://\*\*\*@h/v1'") as caught:
        client.request(url, "GET", "c", "o")
    assert "hid" not in str(caught.value)


def test_urls_of_one_server_share_connections(client: HttpClient, fault_server: FaultServer) -> None:
    for account in ("AUTH_a", "AUTH_b/"):
        client.request(fault_server.url.replace("AUTH_test", account), "GET", "c", "o")
    assert fault_server.connections == 1
    assert [request.target for request in fault_server.requests] == ["/v1/AUTH_a/c/o", "/v1/AUTH_b/c/o"]


def test_ipv6(client: HttpClient) -> None:
    with FaultServer(host="::1") as server:
        assert get(client, server).cause is None
        assert server.requests[0].headers["host"] == f"[::1]:{server.port}"


# What is measured


def test_latency_runs_from_the_request_to_first_and_last_byte(
    client: HttpClient, fault_server: FaultServer
) -> None:
    fault_server.default = Reply(body=bytes(3000), delay=0.1, pieces=1500, pause=0.1)
    before = time.monotonic()
    outcome = get(client, fault_server)
    after = time.monotonic()
    assert outcome.size == 3000
    assert outcome.first_byte is not None
    assert outcome.last_byte is not None
    assert 0.1 <= outcome.first_byte <= outcome.last_byte - 0.1
    assert outcome.last_byte <= after - before
    assert before <= outcome.completed <= after


def test_latency_counts_from_the_first_attempt(client: HttpClient, fault_server: FaultServer) -> None:
    fault_server.script(Reply(503, delay=0.15), Reply(200, body=b"x"))
    began = time.monotonic() - 5.0
    outcome = get(client, fault_server, prior=(1, began, None, False))
    assert outcome.retries == 2
    assert outcome.retried == {"HTTP 503": 1}
    assert outcome.first_byte is not None
    assert 5.15 < outcome.first_byte <= time.monotonic() - began


def test_connecting_and_pauses_are_told_and_are_part_of_the_latency(
    client: HttpClient, fault_server: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = ConnectionPool.connect
    spans = []

    def slow(pool: ConnectionPool) -> Any:
        began = time.monotonic()
        gevent.sleep(0.1)
        connection = connect(pool)
        spans.append(time.monotonic() - began)
        return connection

    monkeypatch.setattr(ConnectionPool, "connect", slow)
    fault_server.script(Reply(503, delay=0.2, closes=True), Reply(body=b"x", delay=0.05), Reply(body=b"x"))
    outcome = get(client, fault_server)
    assert outcome.last_byte is not None
    assert outcome.first_byte is not None
    rare = outcome.rare
    assert rare is not None
    assert rare.last_attempt is not None
    assert len(spans) == 2
    assert sum(spans) <= rare.connecting < outcome.first_byte
    assert (
        rare.pausing >= 0.9 * store_causes.FIRST_PAUSE_SECONDS / 2
    )  # the clock of timers stands still between turns
    assert rare.last_attempt >= 0.05
    assert 0.2 + rare.last_attempt + rare.pausing + rare.connecting <= outcome.last_byte
    kept = get(client, fault_server)
    assert kept.rare == RareFields()


def test_connecting_that_fails_is_told(client: HttpClient, fault_server: FaultServer) -> None:
    fault_server.stop()
    outcome = get(client, fault_server)
    assert outcome.spent is not None
    assert outcome.rare is not None
    assert 0 < outcome.rare.connecting < outcome.rare.connecting + outcome.rare.pausing <= outcome.spent


@pytest.mark.parametrize("name", ["X-Trans-Id", "x-openstack-request-id", "X-TRANS-ID"])
@pytest.mark.parametrize("status", [200, 404, 500])
def test_transaction_id(make_client: MakeClient, fault_server: FaultServer, name: str, status: int) -> None:
    fault_server.default = Reply(status, headers=((name, "tx1234-AB"),))
    assert get(make_client(retries=0), fault_server).trans_id == "tx1234-AB"


@pytest.mark.parametrize(
    "reply",
    [
        Reply(body=b"abc", claim=9, drops=True),
        Reply(body=b"abcdefgh", claim=3),
        Reply(body=bytes(500_000), stall=True, cut=300_000),
        Reply(body=bytes(5000), chunked=True, cut=3000),
        Reply(body=bytes(5000), chunked=True, stall=True, cut=3000),
    ],
)
def test_transaction_id_of_a_body_that_fails(
    make_client: MakeClient, fault_server: FaultServer, reply: Reply
) -> None:
    fault_server.default = dataclasses.replace(reply, headers=(("X-Trans-Id", "tx1234-AB"),))
    outcome = get(make_client(retries=0, network_timeout=1.0 if reply.stall else 20.0), fault_server)
    assert outcome.cause is not None
    assert outcome.trans_id == "tx1234-AB"


# Retries


@pytest.mark.parametrize("status", [408, 429, 498, 503])
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "HEAD"])
def test_statuses_that_are_tried_again(
    client: HttpClient, fault_server: FaultServer, method: str, status: int
) -> None:
    fault_server.script(Reply(status, body=b"busy"), Reply(status, chunked=True, body=b"busy"))
    outcome = client.request(fault_server.url, method, "c", "o", size=10 if method == "PUT" else 0)
    assert (outcome.cause, outcome.retries, outcome.retried) == (None, 2, {f"HTTP {status}": 2})


@pytest.mark.parametrize(
    ("method", "retry_404", "tries"),
    [("GET", 0, 1), ("DELETE", 0, 1), ("GET", 2, 3), ("DELETE", 2, 3), ("HEAD", 2, 1), ("PUT", 2, 1)],
)
def test_not_found_is_tried_again_on_read_and_delete_where_that_is_asked_for(
    make_client: MakeClient, fault_server: FaultServer, method: str, retry_404: int, tries: int
) -> None:
    client = make_client(retry_404=retry_404, retries=0)
    fault_server.default = Reply(404, reason="Not Found", body=b"gone")
    outcome = client.request(fault_server.url, method, "c", "o")
    assert (outcome.cause, outcome.detail) == ("HTTP 404", "404 Not Found")
    assert (outcome.first_byte, outcome.last_byte, outcome.size) == (None, None, 0)
    assert len(fault_server.requests) == tries == outcome.retries + 1
    assert fault_server.connections == 1


def test_404_and_other_retries_have_limits_of_their_own(
    make_client: MakeClient, fault_server: FaultServer
) -> None:
    client = make_client(retry_404=1, retries=2)
    fault_server.script(Reply(404), Reply(503), Reply(404))
    outcome = get(client, fault_server)
    assert (outcome.cause, outcome.retried) == ("HTTP 404", {"HTTP 404": 1, "HTTP 503": 1})


def test_missing_is_success_where_that_is_said(client: HttpClient, fault_server: FaultServer) -> None:
    fault_server.default = Reply(404)
    outcome = client.request(fault_server.url, "DELETE", "c", "o", missing_ok=True)
    assert (outcome.cause, outcome.retries) == (None, 0)


@pytest.mark.parametrize("status", [302, 304, 400, 403, 412, 413, 500, 502, 507, 999])
def test_statuses_that_are_final(client: HttpClient, fault_server: FaultServer, status: int) -> None:
    fault_server.default = Reply(status, headers=(("Location", "http://127.0.0.1:1/"),))
    outcome = get(client, fault_server)
    assert (outcome.cause, outcome.retries, len(fault_server.requests)) == (f"HTTP {status}", 0, 1)


@pytest.mark.parametrize(("prior", "tries"), [(0, 4), (2, 2), (3, 1), (9, 1)])
def test_retries_end(client: HttpClient, fault_server: FaultServer, prior: int, tries: int) -> None:
    fault_server.default = Reply(503)
    outcome = get(client, fault_server, prior=(prior, None, None, False))
    assert (outcome.cause, len(fault_server.requests)) == ("HTTP 503", tries)
    assert outcome.retries == max(3, prior)
    assert (outcome.status, outcome.resent) == (503, 0)


def test_401_goes_back_for_a_new_token(client: HttpClient, fault_server: FaultServer) -> None:
    fault_server.script(Reply(503), Reply(401), Reply(401))
    began = time.monotonic() - 1.0
    outcome = get(client, fault_server, prior=(0, began, None, False))
    assert outcome.unauthorized
    assert (outcome.cause, outcome.retries, outcome.retried) == ("HTTP 401", 1, {"HTTP 503": 1})
    assert outcome.last_byte is not None
    assert 1.0 < outcome.last_byte <= time.monotonic() - began
    # However few retries are allowed: without a new token all that follows fails too.
    outcome = get(client, fault_server, prior=(3, None, None, False))
    assert outcome.unauthorized
    assert (outcome.cause, outcome.retries) == ("HTTP 401", 3)


def test_retry_after_is_honoured(client: HttpClient, fault_server: FaultServer) -> None:
    fault_server.script(Reply(429, retry_after="1"))
    outcome = get(client, fault_server)
    assert outcome.last_byte is not None
    assert 1.0 <= outcome.last_byte < 9  # the longest pause there is, but for one of this process, is 10 s


# Answers that are unusual, and good

UNUSUAL = {
    "chunked": Reply(body=bytes(5000), chunked=True),
    "gzip": Reply(body=b"a" * 5000, gzipped=True),
    "byte by byte": Reply(body=bytes(5000), pieces=1),
    "head cut": Reply(body=bytes(5000), pieces=30),
    "100": Reply(body=bytes(5000), continues=3),
    "100 in pieces": Reply(body=bytes(5000), continues=3, pieces=7),
    "100 chunked": Reply(body=bytes(5000), continues=3, chunked=True),
    "close": Reply(body=bytes(5000), closes=True),
    "HTTP/1.0": Reply(body=bytes(5000), version="HTTP/1.0"),
    "unframed": Reply(body=bytes(5000), unframed=True),
    "unframed 1.0": Reply(body=bytes(5000), unframed=True, version="HTTP/1.0"),
    "lone line feeds": Reply(raw=b"HTTP/1.1 200 OK\nContent-Length: 5\n\nabcde"),
    "no reason": Reply(raw=b"HTTP/1.1 200\r\nContent-Length: 5\r\n\r\nabcde"),
    "spaces": Reply(raw=b"HTTP/1.1 200 OK\r\ncontent-length:5  \r\nConnection: Keep-Alive\r\n\r\nabcde"),
}


@pytest.mark.parametrize("kind", UNUSUAL)
def test_unusual_answers(make_client: MakeClient, fault_server: FaultServer, kind: str) -> None:
    """More of them than there are connections, so that none may be lost from the pool."""
    client = make_client(max_connections=2)
    reply = fault_server.default = UNUSUAL[kind]
    size = len(reply.encode().partition(b"\n\n")[2] or reply.body or b"abcde")
    if reply.gzipped:
        size = len(reply.encode().partition(b"\r\n\r\n")[2])
    workers = gevent.pool.Pool(5)
    outcomes = workers.map(lambda _: get(client, fault_server), range(10))
    assert {(outcome.cause, outcome.size, outcome.retries) for outcome in outcomes} == {(None, size, 0)}
    kept = not (reply.closes or reply.unframed or reply.version == "HTTP/1.0")
    assert fault_server.connections == (2 if kept else 10)


@pytest.mark.parametrize("reply", [Reply(204), Reply(200, claim=4096), Reply(404, claim=9)])
def test_head_has_no_body(make_client: MakeClient, fault_server: FaultServer, reply: Reply) -> None:
    client = make_client(retries=0)
    fault_server.default = reply
    for _ in range(3):
        outcome = client.request(fault_server.url, "HEAD", "c", "o")
        assert outcome.cause == (None if reply.status < 300 else "HTTP 404")
        assert outcome.size == (4096 if reply.status == 200 else 0)  # what the object has
    assert fault_server.connections == 1


@pytest.mark.usefixtures("either_way")
def test_large_body_is_counted(client: HttpClient, fault_server: FaultServer) -> None:
    fault_server.default = Reply(body=bytes(20_000_000))
    for _ in range(2):
        outcome = get(client, fault_server)
        assert (outcome.cause, outcome.size) == (None, 20_000_000)
    assert fault_server.connections == 1


# Answers that are wrong

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
WRONG: dict[str, tuple[Reply, str]] = {
    "short": (Reply(body=b"abc", claim=9, drops=True), "short body"),
    "short, large": (Reply(body=bytes(200_000), claim=900_000, drops=True), "short body"),
    "short, chunked": (Reply(body=bytes(5000), chunked=True, cut=3000), "short body"),
    "long": (Reply(body=b"abcdefgh", claim=3), "bad response"),
    "long, large": (Reply(body=bytes(200_000), claim=150_000), "bad response"),
    "long, empty": (Reply(body=b"abcdefgh", claim=0), "bad response"),
    "garbage": (Reply(raw=b"SSH-2.0-OpenSSH_9.2\r\n"), "bad response"),
    "garbage head": (Reply(raw=b"HTTP/1.1 abc def\r\n\r\n"), "bad response"),
    "negative length": (Reply(raw=b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n"), "bad response"),
    "two lengths": (
        Reply(raw=b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcde"),
        "bad response",
    ),
    "bad chunk": (
        Reply(raw=b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n"),
        "bad response",
    ),
    "endless head": (
        Reply(raw=b"HTTP/1.1 200 OK\r\n" + b"X-More: yes\r\n" * 100, endless=True),
        "bad response",
    ),
    "endless line": (Reply(raw=b"HTTP/1.1 200 OK" + b"x" * 1000, endless=True), "bad response"),
    "endless interim answers": (Reply(raw=CONTINUE, endless=True), "bad response"),
    "endless unusual ones": (Reply(raw=CONTINUE.replace(b"\r", b""), endless=True), "bad response"),
    "101": (Reply(raw=b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"), "bad response"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_wrong_answers_are_errors_and_not_tried_again(
    client: HttpClient, fault_server: FaultServer, kind: str
) -> None:
    reply, cause = WRONG[kind]
    fault_server.script(reply)
    outcome = get(client, fault_server)
    assert (outcome.cause, outcome.retries, outcome.size) == (cause, 0, 0)
    assert outcome.detail
    assert get(client, fault_server).cause is None
    assert fault_server.connections == 2


@pytest.mark.parametrize("size", [0, 1, 4095, 4097, 100_000])
@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_of_another_size_than_the_object_is_an_error_and_not_tried_again(
    client: HttpClient, fault_server: FaultServer, size: int, chunked: bool
) -> None:
    fault_server.script(Reply(body=bytes(size), chunked=chunked, headers=(("X-Trans-Id", "tx1"),)))
    outcome = get(client, fault_server, expected=4096)
    assert (outcome.cause, outcome.status, outcome.trans_id) == ("wrong size", 200, "tx1")
    assert outcome.detail == f"{size} bytes of an object of 4096"
    assert (outcome.size, outcome.last_byte, outcome.retries) == (0, None, 0)
    assert outcome.spent is not None
    fault_server.script(Reply(body=bytes(4096)), Reply(body=bytes(size)))
    assert get(client, fault_server, expected=4096).cause is None
    assert get(client, fault_server, expected=0).cause is None
    assert fault_server.connections == 1


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
@pytest.mark.parametrize("framing", ["chunked", "unframed", "a length beyond any disk"])
def test_a_body_without_an_end_is_not_read_to_its_end(
    client: HttpClient,
    fault_server: FaultServer,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    framing: str,
) -> None:
    monkeypatch.setattr(client_module, "_MOST_SAID", 4096)
    fields, piece = {
        "chunked": (b"Transfer-Encoding: chunked\r\n", b"10000\r\n%b\r\n" % bytes(65536)),
        "unframed": (b"", bytes(65536)),
        "a length beyond any disk": (b"Content-Length: %d\r\n" % 10**15, bytes(65536)),
    }[framing]
    lead = b"HTTP/1.1 200 OK\r\nX-Trans-Id: tx1\r\n%b\r\n" % fields
    fault_server.script(Reply(lead=lead, raw=piece, endless=True))
    with gevent.Timeout(20):
        outcome = client.request(fault_server.url, method, "c", "o", "token", expected=4096)
    assert (outcome.cause, outcome.status, outcome.trans_id) == ("wrong size", 200, "tx1")
    assert outcome.detail.endswith(" bytes or more of a body of 4096 at most")
    assert (outcome.size, outcome.last_byte, outcome.retries) == (0, None, 0)
    assert get(client, fault_server).cause is None
    assert fault_server.connections == 2


BROKEN = {
    "closed": (Reply(cut=0), "closed"),
    "closed in the head": (Reply(cut=20), "closed"),
    "reset": (Reply(reset=True), "reset"),
    "reset in the body": (Reply(body=bytes(500_000), cut=300_000, reset=True), "reset"),
    "stall": (Reply(stall=True), "read timeout"),
    "stall in the head": (Reply(stall=True, cut=20), "read timeout"),
    "stall in the body": (Reply(body=bytes(500_000), stall=True, cut=300_000), "read timeout"),
    "stall in chunks": (Reply(body=bytes(5000), chunked=True, stall=True, cut=3000), "read timeout"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_broken_connections_are_tried_again(
    make_client: MakeClient, fault_server: FaultServer, kind: str
) -> None:
    client = make_client(network_timeout=1.0 if "stall" in kind else 20.0)
    reply, cause = BROKEN[kind]
    fault_server.script(reply, Reply(body=b"abc"))
    outcome = get(client, fault_server)
    assert (outcome.cause, outcome.retries, outcome.size) == (None, 1, 3)
    assert outcome.retried in ({cause: 1}, {"reset": 1})


@pytest.mark.parametrize("kind", BROKEN)
def test_broken_connections_end_as_errors(
    make_client: MakeClient, fault_server: FaultServer, kind: str
) -> None:
    client = make_client(network_timeout=0.2 if "stall" in kind else 20.0, retries=1)
    fault_server.default, cause = BROKEN[kind]
    outcome = get(client, fault_server)
    assert (outcome.cause, outcome.retries) == (cause, 1)
    assert outcome.retried == {cause: 1}
    assert outcome.detail
    assert outcome.status == (200 if kind.endswith(("body", "chunks")) else 0)
    least, most = (0.4 if "stall" in kind else 0.0), 10.0  # two time-outs, a pause between
    assert outcome.spent is not None
    assert least < outcome.spent < most


@pytest.mark.parametrize("chunked", [False, True])
def test_slow_but_steady_is_no_timeout(
    make_client: MakeClient, fault_server: FaultServer, chunked: bool
) -> None:
    # A busy machine may add to each pause what is left to the time limit.
    client = make_client(network_timeout=2.0, request_timeout=2.2)
    fault_server.default = Reply(body=bytes(100_000), chunked=chunked, pieces=10_000, pause=0.25)
    outcome = get(client, fault_server)
    assert (outcome.cause, outcome.retries) == (None, 0)
    assert outcome.last_byte is not None
    assert outcome.last_byte > 2.2


def test_server_that_takes_no_body(make_client: MakeClient, fault_server: FaultServer) -> None:
    client = make_client(network_timeout=0.3, retries=0)
    fault_server.rule = lambda _: Reply(stall=True, early=True)
    outcome = put(client, fault_server, 50_000_000)
    assert outcome.cause == "read timeout"
    assert "took no byte" in outcome.detail


#: What never stops to move and comes to no end in time.
DRIPPING = {
    "head": Reply(body=b"abc", pieces=1, pause=0.02),
    "body": Reply(body=bytes(9000), pieces=70, pause=0.02),
    "chunks": Reply(body=bytes(9000), chunked=True, pieces=70, pause=0.02),
    "unframed": Reply(body=bytes(9000), unframed=True, pieces=70, pause=0.02),
    "error": Reply(500, body=bytes(9000), pieces=70, pause=0.02),
    "100": Reply(raw=CONTINUE, endless=True, pause=0.02),
    "100 before the body": Reply(raw=CONTINUE, endless=True, pause=0.02, early=True),
}


@pytest.mark.parametrize("kind", DRIPPING)
def test_an_attempt_that_drips_ends(make_client: MakeClient, fault_server: FaultServer, kind: str) -> None:
    client = make_client(request_timeout=0.4)
    fault_server.script(DRIPPING[kind])
    began = time.monotonic()
    outcome = put(client, fault_server, 20_000_000) if DRIPPING[kind].early else get(client, fault_server)
    assert time.monotonic() - began < 30
    assert (outcome.cause, outcome.retries, outcome.last_byte) == ("request timeout", 0, None)
    assert "the request's time-out" in outcome.detail
    assert get(client, fault_server).cause is None
    assert fault_server.connections == 2


FRAGMENTS = [
    CONTINUE,
    b"HTTP/1.1 200 OK\r\n",
    b"HTTP/1.1 102 \r\nX-Trans-Id: tx1\r\n\r\n",
    b"Content-Length: 1000000\r\n\r\n",
    b"Transfer-Encoding: chunked\r\n\r\n",
    b"Connection: close\r\n\r\n",
    b"1\r\nx\r\n",
    b"X-A: b\r\n",
    b" folded\r\n",
    b"\r\n",
    b"x",
]


@settings(max_examples=20)
@given(
    start=st.lists(st.sampled_from(FRAGMENTS), max_size=3).map(b"".join),
    again=st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=3).map(b"".join),
    upload=st.booleans(),
)
def test_whatever_a_server_says_for_ever_the_attempt_ends(start: bytes, again: bytes, upload: bool) -> None:
    client = FreshClient(ClientSettings(request_timeout=0.15, network_timeout=30, retries=0))
    with FaultServer() as server:
        server.default = Reply(raw=again, lead=start, endless=True, pause=0.02)
        began = time.monotonic()
        outcome = put(client, server, 100) if upload else get(client, server)
        assert time.monotonic() - began < 30
        client.close()
    assert outcome.cause in {None, "request timeout", "bad response", "HTTP 102"}


def test_a_server_that_takes_no_body_for_the_request_time_out(
    make_client: MakeClient, fault_server: FaultServer
) -> None:
    client = make_client(request_timeout=0.3)
    fault_server.rule = lambda _: Reply(stall=True, early=True)
    outcome = put(client, fault_server, 50_000_000)
    assert (outcome.cause, outcome.retries) == ("request timeout", 0)
    assert "the upload was not whole" in outcome.detail


def test_an_upload_that_flows_outlasts_the_request_time_out(
    make_client: MakeClient, fault_server: FaultServer
) -> None:
    # The kernel takes more in steps of megabytes, so this server seems to pause for up to a second.
    client = make_client(request_timeout=3.0)
    fault_server.script(Reply(sips=500_000, pause=0.1))
    outcome = put(client, fault_server, 20_000_000)
    assert (outcome.cause, outcome.retries) == (None, 0)
    assert outcome.last_byte is not None
    assert outcome.last_byte > 3


# Connections


def test_connection_is_kept(client: HttpClient, fault_server: FaultServer) -> None:
    for size in (0, 10, 100_000):
        put(client, fault_server, size)
        get(client, fault_server)
    assert fault_server.connections == 1


def test_no_more_connections_than_allowed(make_client: MakeClient, fault_server: FaultServer) -> None:
    client = make_client(max_connections=3)
    fault_server.default = Reply(body=b"x", delay=0.02)
    outcomes = gevent.pool.Pool(20).map(lambda _: get(client, fault_server), range(40))
    assert all(outcome.cause is None for outcome in outcomes)
    assert fault_server.connections == 3


def test_connection_closed_at_rest_is_replaced(client: HttpClient, fault_server: FaultServer) -> None:
    get(client, fault_server)
    rest(client, 60)
    fault_server.drop_connections()
    outcome = get(client, fault_server)
    assert (outcome.cause, outcome.retries, outcome.retried) == (None, 0, None)
    assert fault_server.connections == 2


def test_connections_at_rest_are_noticed_to_close(client: HttpClient, fault_server: FaultServer) -> None:
    get(client, fault_server)
    (connection,) = client._shared.connections
    fault_server.drop_connections()
    deadline = time.monotonic() + 60
    while client._shared.connections and time.monotonic() < deadline:
        gevent.sleep(0.01)
    assert connection not in client._shared.connections
    assert not cast(HttpConnection, connection).idle


@pytest.mark.parametrize("size", [10, 100_000])
def test_a_connection_found_closed_after_a_rest_is_no_retry(
    client: HttpClient, fault_server: FaultServer, size: int
) -> None:
    fault_server.script(Reply(), Reply(reset=True), Reply())
    put(client, fault_server, size)
    rest(client, 60)
    outcome = put(client, fault_server, size)
    assert (outcome.cause, outcome.retries, outcome.retried, outcome.resent) == (None, 0, None, 1)
    assert (fault_server.connections, len(fault_server.requests)) == (2, 3)


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("fault", [Reply(cut=0), Reply(reset=True), Reply(stall=True)])
def test_a_delete_that_finds_nothing_after_a_lost_answer_is_a_success(
    make_client: MakeClient, fault_server: FaultServer, kept: bool, fault: Reply
) -> None:
    client = make_client(network_timeout=1.0 if fault.stall else 20.0)
    if kept:
        get(client, fault_server)
    fault_server.script(fault, Reply(404))
    outcome = client.request(fault_server.url, "DELETE", "c", "o", "token")
    assert (outcome.cause, outcome.status) == (None, 404)
    assert outcome.retries + outcome.resent == 1


@pytest.mark.parametrize("before", [Reply(503), Reply(404)])
def test_a_delete_that_finds_nothing_after_another_answer_has_failed(
    make_client: MakeClient, fault_server: FaultServer, before: Reply
) -> None:
    fault_server.default = Reply(404)
    fault_server.script(before)
    client = make_client(retry_404=1)
    assert client.request(fault_server.url, "DELETE", "c", "o", "token").cause == "HTTP 404"
    fault_server.script(Reply(cut=0))
    assert get(client, fault_server).cause == "HTTP 404"


def test_latency_counts_from_what_was_sent_on_the_closed_connection(
    client: HttpClient, fault_server: FaultServer
) -> None:
    fault_server.script(Reply(), Reply(reset=True, delay=0.2), Reply())
    get(client, fault_server)
    rest(client, 60)
    outcome = get(client, fault_server)
    assert (outcome.retries, outcome.resent) == (0, 1)
    assert outcome.first_byte is not None
    assert outcome.first_byte > 0.2


def test_a_fresh_connection_that_breaks_is_a_retry(client: HttpClient, fault_server: FaultServer) -> None:
    fault_server.script(Reply(), Reply(reset=True), Reply(cut=0), Reply())
    get(client, fault_server)
    rest(client, 60)
    outcome = get(client, fault_server)
    assert (outcome.cause, outcome.retries, outcome.retried) == (None, 1, {"closed": 1})


def test_server_that_comes_back(make_client: MakeClient, fault_server: FaultServer) -> None:
    client = make_client(retries=8)
    get(client, fault_server)
    rest(client, 60)
    fault_server.stop()
    asking = gevent.spawn(get, client, fault_server)
    gevent.sleep(0.2)
    fault_server.start()
    outcome = asking.get(timeout=60)
    assert outcome.cause is None
    assert outcome.retries == outcome.retried["connect refused"] > 0


@pytest.mark.parametrize("status", [401, 413, 507])
@pytest.mark.parametrize("size", [10, 30_000_000])
@pytest.mark.usefixtures("either_way")
def test_answer_before_the_body_is_sent(
    client: HttpClient, fault_server: FaultServer, status: int, size: int
) -> None:
    fault_server.script(Reply(status, early=True), Reply(201))
    outcome = put(client, fault_server, size)
    assert outcome.cause == f"HTTP {status}"
    assert put(client, fault_server, 10).cause is None
    fault_server.stop()
    assert fault_server.ignored < 20_000_000


def test_refused(make_client: MakeClient, fault_server: FaultServer) -> None:
    fault_server.stop()
    outcome = get(make_client(retries=2), fault_server)
    assert (outcome.cause, outcome.retries, outcome.retried) == (
        "connect refused",
        2,
        {"connect refused": 2},
    )


def test_connecting_times_out(make_client: MakeClient) -> None:
    client = make_client(connect_timeout=0.3, retries=0)
    with black_hole() as port:
        began = time.monotonic()
        outcome = client.request(f"http://127.0.0.1:{port}/v1", "GET", "c", "o")
        assert outcome.cause == "connect timeout"
        assert 0.25 < time.monotonic() - began < 30


def test_no_such_host(make_client: MakeClient) -> None:
    outcome = make_client(retries=0).request("http://no-such-host.invalid/v1", "GET", "c", "o")
    assert outcome.cause == "name resolution"


@pytest.mark.parametrize("dead", ["silent", "refusing"])
def test_one_dead_address_of_several(
    make_client: MakeClient, monkeypatch: pytest.MonkeyPatch, dead: str
) -> None:
    """The name is made up, for want of a name server; the addresses behind it are real."""
    client = make_client(connect_timeout=4, retries=0)
    asked = []

    def resolve(host: str, port: int, **_: object) -> list[Any]:
        asked.append(host)
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))
            for address in ("127.0.0.1", "127.0.0.2")
        ]

    monkeypatch.setattr(gevent.socket, "getaddrinfo", resolve)
    with (
        black_hole() as port,
        FaultServer(host="127.0.0.2", port=port if dead == "silent" else 0) as server,
        awake() as clock,
    ):
        url = f"http://two.test:{server.port}/v1"
        first = client.request(url, "GET", "c", "o")
        assert (first.cause, first.retries) == (None, 0)
        assert clock() < 4  # its share of the time-out, and no more
        for seconds in (4, 2):  # by then each was tried, and the one that works comes first
            rest(client, 60)
            server.drop_connections()
            began = clock()
            assert client.request(url, "GET", "c", "o").cause is None
            assert clock() - began < seconds
    assert set(asked) == {"two.test"}


def resolves(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    """Let any name have these addresses, for want of a name server."""
    monkeypatch.setattr(
        gevent.socket,
        "getaddrinfo",
        lambda _host, port, **_: [
            (
                socket.AF_INET6 if ":" in address else socket.AF_INET,
                socket.SOCK_STREAM,
                6,
                "",
                (address, port),
            )
            for address in addresses
        ],
    )


def test_connections_are_spread_over_the_addresses_of_a_name(
    make_client: MakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = make_client(max_connections=6, retries=0)
    resolves(monkeypatch, "127.0.0.1", "127.0.0.2", "::1")
    with FaultServer(default=Reply(delay=0.05)) as one, FaultServer(host="127.0.0.2", port=one.port) as two:
        url = f"http://two.test:{one.port}/v1"
        asking = [gevent.spawn(client.request, url, "GET", "c", "o") for _ in range(6)]
        gevent.joinall(asking, timeout=60)
        assert [each.value.cause for each in asking] == [None] * 6
        assert (one.connections, two.connections) == (3, 3)


def test_a_name_is_looked_up_again_for_a_new_connection(
    make_client: MakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = make_client(retries=0)
    with FaultServer() as old, FaultServer(host="127.0.0.2", port=old.port) as new:
        url = f"http://two.test:{old.port}/v1"
        resolves(monkeypatch, "127.0.0.1")
        assert client.request(url, "GET", "c", "o").cause is None
        resolves(monkeypatch, "127.0.0.2")
        assert client.request(url, "GET", "c", "o").cause is None  # by the connection that there is
        assert (old.connections, new.connections) == (1, 0)
        monkeypatch.setattr(pool, "NAME_LIFETIME_SECONDS", 0.0)
        rest(client, 60)
        old.drop_connections()
        assert client.request(url, "GET", "c", "o").cause is None
        assert (old.connections, new.connections) == (1, 1)


def test_killed_request_gives_its_place_back(make_client: MakeClient, fault_server: FaultServer) -> None:
    client = make_client(max_connections=1)
    fault_server.script(Reply(stall=True))
    asking = gevent.spawn(get, client, fault_server)
    gevent.sleep(0.1)
    asking.kill(timeout=5)
    assert asking.dead
    assert not client._shared.connections
    assert get(client, fault_server).cause is None


def test_closing_the_client_ends_what_is_under_way(
    make_client: MakeClient, fault_server: FaultServer
) -> None:
    client = make_client(max_connections=3)
    fault_server.rule = lambda request: (
        Reply(503, retry_after="1") if request.target.endswith("busy") else None
    )
    fault_server.default = Reply(stall=True)
    asking = [gevent.spawn(get, client, fault_server) for _ in range(5)]
    asking.append(gevent.spawn(client.request, fault_server.url, "GET", "c", "busy"))
    asking.append(gevent.spawn(put, client, fault_server, 50_000_000))
    gevent.sleep(0.2)
    client.close()
    gevent.joinall(asking, timeout=60)
    assert all(one.dead for one in asking)
    assert {one.value.cause for one in asking} <= {"closed", "HTTP 503"}
    assert not client._shared.connections


def test_closing_the_client_wakes_whoever_waits(
    make_client: MakeClient, fault_server: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = make_client(max_connections=1)
    fault_server.default = Reply(429, retry_after="10")
    asking = [gevent.spawn(get, client, fault_server) for _ in range(3)]  # two end up in their pauses
    resolve = gevent.socket.getaddrinfo
    # For want of a name server that does not answer.
    monkeypatch.setattr(
        gevent.socket,
        "getaddrinfo",
        lambda host, *more, **kw: gevent.sleep(60) if host == "slow.test" else resolve(host, *more, **kw),
    )
    # One waits for the address, the others for its place.
    asking += [gevent.spawn(client.request, "http://slow.test/v1", "GET", "c", "o") for _ in range(5)]
    deadline = time.monotonic() + 60
    while len(fault_server.requests) < 3 and time.monotonic() < deadline:
        gevent.sleep(0.01)
    gevent.sleep(0.05)
    assert not any(one.ready() for one in asking)
    client.close()
    with awake() as clock:
        gevent.joinall(asking, timeout=60)
        assert clock() < 1
    assert [one.value.cause for one in asking if one.value] == ["HTTP 429"] * 3 + ["closed"] * 5


def test_closing_the_client_while_a_request_ends_by_itself(
    make_client: MakeClient, fault_server: FaultServer, capsys: pytest.CaptureFixture[str]
) -> None:
    client = make_client(max_connections=1)
    fault_server.default = Reply(stall=True)
    asking = gevent.spawn(get, client, fault_server)
    gevent.sleep(0.1)
    asking.kill(block=False)  # done before what close() asks for
    client.close()
    asking.join(timeout=60)
    gevent.sleep(0)
    assert asking.dead
    assert not client._shared.connections
    assert capsys.readouterr().err == ""


def test_large_transfers_do_not_keep_small_ones_waiting(
    make_client: MakeClient, fault_server: FaultServer
) -> None:
    client = make_client()
    fault_server.keep_bodies = False
    large_body = bytes(20_000_000)
    fault_server.rule = lambda request: Reply(body=large_body) if request.target.endswith("/big") else None
    large = [
        gevent.spawn(client.request, fault_server.url, "PUT", "c", "o", None, 60_000_000),
        gevent.spawn(client.request, fault_server.url, "GET", "c", "big"),
    ]
    gevent.sleep(0.01)
    small = 0
    while not any(one.ready() for one in large):
        assert get(client, fault_server).cause is None
        small += 1
    assert small > 3
    assert [one.get(timeout=60).cause for one in large] == [None, None]


def test_many_faults_and_every_request_ends_once(make_client: MakeClient, fault_server: FaultServer) -> None:
    client = make_client(max_connections=6, network_timeout=0.3, retries=30)
    faults = [reply for reply, _ in BROKEN.values()] + [
        Reply(503),
        Reply(429, closes=True),
        Reply(drops=True),
    ]
    fault_server.script(*faults, *faults, *faults)
    outcomes = gevent.pool.Pool(12).map(lambda _: get(client, fault_server), range(60))
    assert [outcome.cause for outcome in outcomes] == [None] * 60
    assert all(
        outcome.retries == sum((outcome.retried or {}).values()) and outcome.completed for outcome in outcomes
    )
    assert len(client._shared.connections) <= 6


# What an answer says of the bytes


def md5(data: bytes) -> str:
    return hashlib.md5(data).hexdigest()


@pytest.mark.parametrize("verify_seed", [None, 7])
@pytest.mark.usefixtures("either_way")
def test_the_etag_of_an_upload_is_the_md5_of_what_was_sent(
    make_client: MakeClient, fault_server: FaultServer, verify_seed: int | None
) -> None:
    client = make_client(verify_seed=verify_seed)
    for size in (1, 16, 17, 79, 80, 81, 4095, 4096, 4097, 65536, 9_000_000):
        for etag in (str, str.upper, '"{}"'.format, "{}-3".format, lambda _: "none", lambda _: md5(b"else")):
            fault_server.default = Reply(201, etag=etag)
            payload = client._shared.payload
            payload._sample._left = payload._sample._large_left = 0  # the next is looked at
            outcome = put(client, fault_server, size)
            if etag("x") != md5(b"else"):
                assert outcome.cause is None
                continue
            assert (outcome.cause, outcome.retries, outcome.status) == ("wrong ETag", 0, 201)
            assert md5(fault_server.requests.pop().body) in outcome.detail


def test_of_uploads_and_of_reads_the_first_and_each_128th_is_checked(
    client: HttpClient, fault_server: FaultServer
) -> None:
    wrong = md5(b"other bytes than these")
    fault_server.default = Reply(201, headers=(("ETag", wrong),))
    causes = [put(client, fault_server, 5500 - 40 * place).cause for place in range(130)]
    assert [place for place, cause in enumerate(causes) if cause == "wrong ETag"] == [0, 128]
    for reply in (Reply(body=b"x" * 9), Reply(body=b"x" * 200_000), Reply(body=b"x" * 5000, chunked=True)):
        client.sample._left = 0  # they do not say how long they will be
        fault_server.default = dataclasses.replace(reply, headers=(("ETag", wrong),))
        causes = [get(client, fault_server).cause for _ in range(3)]
        assert causes == ["wrong ETag", None, None]
        client.sample._left = 0
        fault_server.default = dataclasses.replace(reply, headers=(("Etag", f'"{md5(reply.body)}"'),))
        assert get(client, fault_server).cause is None


@pytest.mark.parametrize("closes", [False, True])
def test_a_part_of_an_object_is_no_success_of_a_read(
    client: HttpClient, fault_server: FaultServer, closes: bool
) -> None:
    headers = (("Content-Range", "bytes 0-9/100"),)
    fault_server.default = Reply(206, body=b"x" * 10, headers=headers, closes=closes)
    outcome = get(client, fault_server)
    assert (outcome.cause, outcome.status, outcome.retries) == ("HTTP 206", 206, 0)
    assert put(client, fault_server, 10).cause is None  # of other methods any 2xx is one


# What a HEAD tells


@pytest.mark.parametrize("closes", [False, True])  # the usual way, and by h11
def test_a_head_tells_the_size_of_an_object(
    client: HttpClient, fault_server: FaultServer, closes: bool
) -> None:
    fault_server.default = Reply(200, body=b"x" * 4321, closes=closes)
    found = client.request(fault_server.url, "HEAD", "c", "o", "t")
    assert (found.cause, found.size) == (None, 4321)
    fault_server.default = Reply(200, body=b"x" * 17)
    assert client.request(fault_server.url, "GET", "c", "o", "t").size == 17  # nothing is left behind


# A real Swift


@pytest.mark.parametrize("size", [0, 1, 4096, 3_000_000])
def test_life_of_an_object_in_swift(
    client: HttpClient, account: swiftclient.Connection, container_base: str, size: int
) -> None:
    account.put_container(container_base)
    url, token = account.get_auth()
    created = client.request(url, "PUT", container_base, "o", token, size, delete_after=3600)
    assert (created.cause, created.size) == (None, size)
    headers, first = account.get_object(container_base, "o")
    assert len(first) == size
    assert "x-delete-at" in headers
    assert client.request(url, "PUT", container_base, "o", token, size).cause is None
    headers, second = account.get_object(container_base, "o")
    assert "x-delete-at" not in headers
    assert (first == second) == (size == 0)
    read = client.request(url, "GET", container_base, "o", token)
    assert (read.cause, read.size, read.retries) == (None, size, 0)
    assert read.trans_id is not None
    assert read.trans_id.startswith("tx")
    assert client.request(url, "HEAD", container_base, "o", token).size == size
    assert client.request(url, "DELETE", container_base, "o", token).cause is None
    gone = client.request(url, "DELETE", container_base, "o", token)
    assert (gone.cause, gone.retries) == ("HTTP 404", 0)
    assert client.request(url, "DELETE", container_base, "o", token, missing_ok=True).cause is None
    assert client.request(url, "GET", container_base, "o", "wrong").unauthorized


def test_many_at_once_in_swift(swift: LocalSwift, client: HttpClient, container_base: str) -> None:
    account = swiftclient.Connection(swift.auth_url, swift.user, swift.key, retries=1)
    account.put_container(container_base)
    url, token = account.get_auth()
    account.close()

    def life(number: int) -> list[str | None]:
        name = f"o_{number:06d}"
        return [
            client.request(url, method, container_base, name, token, 2000 if method == "PUT" else 0).cause
            for method in ("PUT", "GET", "PUT", "DELETE")
        ]

    assert gevent.pool.Pool(8).map(life, range(24)) == [[None] * 4] * 24
