"""The client for objects through TLS."""

from __future__ import annotations

import datetime
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from typing import Any

import gevent
import gevent.pool
import gevent.socket
import pytest
from fault_server import Certificates, FaultServer, Reply
from fresh_client import FreshClient, rest

from ssbench.base.errors import UsageError
from ssbench.store.contract import RequestOutcome
from ssbench.store.http.client import ClientSettings, HttpClient

MakeClient = Callable[..., HttpClient]


@pytest.fixture
def make_client(certificates: Certificates) -> Iterator[MakeClient]:
    clients = []

    def make(**settings: Any) -> HttpClient:
        defaults: dict[str, Any] = {
            "connect_timeout": 2.0,
            "network_timeout": 5.0,
            "max_connections": 4,
            "retries": 1,
            "ca_certificates": certificates.pem,
        }
        clients.append(FreshClient(ClientSettings(**{**defaults, **settings})))
        return clients[-1]

    yield make
    for client in clients:
        client.close()


@pytest.fixture
def server(certificates: Certificates) -> Iterator[FaultServer]:
    with FaultServer(tls=certificates.server()) as running:
        yield running


def ask(client: HttpClient, server: FaultServer, method: str = "GET", size: int = 0) -> RequestOutcome:
    return client.request(server.url, method, "c", "o", "token", size)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("size", [0, 10, 4096, 70_000, 5_000_000])
def test_transfers(
    make_client: MakeClient, certificates: Certificates, version: ssl.TLSVersion, size: int
) -> None:
    context = certificates.server()
    context.minimum_version = context.maximum_version = version
    client = make_client()
    with FaultServer(tls=context, default=Reply(body=bytes(size))) as server:
        for _ in range(2):
            read, written = ask(client, server), ask(client, server, "PUT", size)
            assert (read.cause, read.size, read.retries) == (None, size, 0)
            assert (written.cause, written.retries) == (None, 0)
        assert [len(request.body) for request in server.requests] == [0, size, 0, size]
        assert server.connections == 1


def test_unknown_authority_is_refused(make_client: MakeClient, server: FaultServer) -> None:
    outcome = ask(make_client(ca_certificates=Certificates().pem), server)
    assert (outcome.cause, outcome.retries) == ("TLS certificate", 0)
    assert "issuer" in outcome.detail
    assert not server.requests


@pytest.mark.parametrize("fault", ["expired", "other name"])
def test_wrong_certificate(make_client: MakeClient, certificates: Certificates, fault: str) -> None:
    past = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    context = (
        certificates.server(not_before=past, not_after=past + datetime.timedelta(days=1))
        if fault == "expired"
        else certificates.server("swift.example.org")
    )
    with FaultServer(tls=context) as server:
        outcome = ask(make_client(), server)
        assert (outcome.cause, outcome.retries) == ("TLS certificate", 0)
        assert ask(make_client(insecure=True), server).cause is None
        assert len(server.requests) == 1


def test_insecure_trusts_anyone(make_client: MakeClient, server: FaultServer) -> None:
    assert ask(make_client(insecure=True, ca_certificates=None), server).cause is None


def test_authorities_that_are_none(make_client: MakeClient, server: FaultServer) -> None:
    with pytest.raises(UsageError, match="CA certificates: expected PEM text"):
        ask(make_client(ca_certificates="nonsense"), server)


def test_server_without_tls(make_client: MakeClient) -> None:
    def answer(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        answering = threading.Thread(target=answer, args=(listener,), daemon=True)
        answering.start()
        outcome = make_client().request(f"https://127.0.0.1:{listener.getsockname()[1]}/v1", "GET", "c", "o")
        answering.join(5)
    assert (outcome.cause, outcome.retries) == ("TLS error", 0)
    assert outcome.detail


def test_handshake_times_out(make_client: MakeClient) -> None:
    client = make_client(connect_timeout=0.5, retries=0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        outcome = client.request(f"https://127.0.0.1:{silent.getsockname()[1]}/v1", "GET", "c", "o")
    assert outcome.cause == "connect timeout"


FAULTS = {
    "closed": (Reply(cut=0), {"closed"}),
    # Python's ssl tells a reset as an end when it comes while nobody reads.
    "reset": (Reply(reset=True), {"closed", "reset"}),
    "stall": (Reply(stall=True), {"read timeout"}),
    "stall in the body": (Reply(body=bytes(500_000), stall=True, cut=300_000), {"read timeout"}),
    "short": (Reply(body=bytes(500_000), claim=600_000, drops=True), {"short body"}),
    "garbage": (Reply(raw=b"SSH-2.0\r\n"), {"bad response"}),
    "long": (Reply(body=b"abc", claim=1), {"bad response"}),
}


@pytest.mark.parametrize("kind", FAULTS)
def test_faults(make_client: MakeClient, server: FaultServer, kind: str) -> None:
    reply, causes = FAULTS[kind]
    client = make_client(connect_timeout=20.0, network_timeout=1.0 if reply.stall else 20.0, retries=0)
    server.script(reply)
    assert ask(client, server).cause in causes
    assert ask(client, server).cause is None


@pytest.mark.parametrize(
    "reply",
    [
        Reply(body=bytes(9000), pieces=70, pause=0.02),
        Reply(raw=b"HTTP/1.1 100 Continue\r\n\r\n", endless=True, pause=0.02),
    ],
)
def test_an_attempt_that_drips_ends(make_client: MakeClient, server: FaultServer, reply: Reply) -> None:
    client = make_client(request_timeout=0.4)
    server.script(reply)
    outcome = ask(client, server)
    assert (outcome.cause, outcome.retries) == ("request timeout", 0)
    assert ask(client, server).cause is None


@pytest.mark.parametrize(
    "reply",
    [
        Reply(body=bytes(5000), chunked=True),
        Reply(body=bytes(5000), pieces=100),
        Reply(body=bytes(5000), continues=2),
        Reply(body=bytes(5000), closes=True),
        Reply(body=bytes(5000), unframed=True),
    ],
)
def test_unusual_answers(make_client: MakeClient, server: FaultServer, reply: Reply) -> None:
    client = make_client(max_connections=2)
    server.default = reply
    outcomes = gevent.pool.Pool(4).map(lambda _: ask(client, server), range(8))
    assert {(outcome.cause, outcome.size) for outcome in outcomes} == {(None, 5000)}


def test_answer_before_the_body_is_sent(make_client: MakeClient, server: FaultServer) -> None:
    client = make_client()
    server.script(Reply(507, early=True))
    assert ask(client, server, "PUT", 30_000_000).cause == "HTTP 507"
    assert ask(client, server, "PUT", 10).cause is None


def test_connection_closed_at_rest_is_replaced(make_client: MakeClient, server: FaultServer) -> None:
    client = make_client()
    ask(client, server)
    rest(client, 60)
    server.drop_connections()
    outcome = ask(client, server)
    assert (outcome.cause, outcome.retries) == (None, 0)
    assert server.connections == 2


def test_closing_the_client_ends_what_is_under_way(make_client: MakeClient, server: FaultServer) -> None:
    client = make_client()
    server.default = Reply(stall=True)
    asking = [gevent.spawn(ask, client, server) for _ in range(3)]
    gevent.sleep(0.3)
    client.close()
    gevent.joinall(asking, timeout=60)
    assert [one.value.cause for one in asking] == ["closed"] * 3
    assert not client._shared.connections


def test_large_transfers_do_not_keep_small_ones_waiting(make_client: MakeClient, server: FaultServer) -> None:
    client = make_client()
    server.keep_bodies = False
    large_body = bytes(200_000_000)
    server.rule = lambda request: Reply(body=large_body) if request.target.endswith("/big") else None
    large = gevent.spawn(client.request, server.url, "GET", "c", "big")
    gevent.sleep(0.01)
    small = 0
    while not large.ready():
        assert ask(client, server).cause is None
        small += 1
    assert small >= 2  # one alone may have been asked for before the large one began
    assert large.get(timeout=60).size == 200_000_000
