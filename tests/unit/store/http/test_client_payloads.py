"""Uploads whose requests say something of their bodies: SHA-256, chunks with CRC32, MD5."""

from __future__ import annotations

import base64
import hashlib
import re
from binascii import crc32
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, get_args

import pytest
from fault_server import Certificates, FaultServer, Reply, Request
from fresh_client import FreshClient
from sent_scenarios import make_sent

from ssbench.scenario.value_rules import PayloadMode
from ssbench.store.contract import RequestOutcome, StoreRequest
from ssbench.store.http import client as client_module
from ssbench.store.http import connection as connection_module
from ssbench.store.http.bodies import PIECE_BYTES
from ssbench.store.http.client import ClientSettings
from ssbench.store.http.connection import HttpConnection
from ssbench.store.s3.signing import CHUNK_BYTES, AccessKey

TOKEN = AccessKey(access="a", secret="s").pack()
SIZES = [0, 1, 4096, 4097, PIECE_BYTES, PIECE_BYTES + 1, 2 * CHUNK_BYTES + 9]


def unframe(request: Request) -> bytes:
    """Return the body of a request, of which all that is said is true."""
    said, body = request.headers["x-amz-content-sha256"], request.body
    if said == "STREAMING-UNSIGNED-PAYLOAD-TRAILER":
        whole = b""
        while (found := re.match(rb"([0-9a-f]+)\r\n", body)) and found[1] != b"0":
            count, body = int(found[1], 16), body[found.end() :]
            whole += body[:count]
            assert body[count : count + 2] == b"\r\n"
            body = body[count + 2 :]
        checksum = base64.b64encode(crc32(whole).to_bytes(4, "big")).decode()
        assert body == f"0\r\nx-amz-checksum-crc32:{checksum}\r\n\r\n".encode()
        assert request.headers["x-amz-decoded-content-length"] == str(len(whole))
        body = whole
    elif said != "UNSIGNED-PAYLOAD":
        assert said == hashlib.sha256(body).hexdigest()
    if "content-md5" in request.headers:
        assert request.headers["content-md5"] == base64.b64encode(hashlib.md5(body).digest()).decode()
    return body


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with FaultServer() as running:
        yield running


@contextmanager
def client_of(payload: PayloadMode, **settings: Any) -> Iterator[FreshClient]:
    made = FreshClient(ClientSettings(scenario=make_sent(s3_payload=payload), **settings))
    try:
        yield made
    finally:
        made.close()


def put(client: FreshClient, server: FaultServer, size: int, **fields: Any) -> RequestOutcome:
    request = StoreRequest(method="PUT", container="b-0", name="a", size=size, **fields)
    return client.perform(f"s3+{server.url.rpartition('/v1')[0]}", request, TOKEN)


@pytest.mark.parametrize("payload", get_args(PayloadMode))
@pytest.mark.parametrize("near", [True, False])
@pytest.mark.parametrize("etag", [True, False])
def test_what_is_said_of_a_body_is_true(
    server: FaultServer, payload: PayloadMode, near: bool, etag: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    establish = HttpConnection.establish

    def establish_there(self: HttpConnection, ticks: int) -> None:
        establish(self, ticks)
        self._near = near

    monkeypatch.setattr(HttpConnection, "establish", establish_there)
    with client_of(payload, verify_seed=1) as client:
        for size in SIZES:
            outcome = put(client, server, size, etag=etag)
            assert (outcome.cause, outcome.size) == (None, size), outcome
    assert server.connections == 1
    assert [len(unframe(each)) for each in server.requests] == SIZES
    assert all(
        ("content-md5" in each.headers) == (etag and size > 0)
        for each, size in zip(server.requests, SIZES, strict=True)
    )


@pytest.mark.parametrize("payload", ["signed", "chunked"])
def test_it_is_the_same_over_tls(payload: PayloadMode) -> None:
    with FaultServer(tls=Certificates().server()) as server, client_of(payload, insecure=True) as client:
        for size in SIZES:
            assert put(client, server, size).cause is None
        assert [len(unframe(each)) for each in server.requests] == SIZES


@pytest.mark.parametrize("payload", ["signed", "chunked"])
def test_each_attempt_has_a_body_of_its_own(server: FaultServer, payload: PayloadMode) -> None:
    server.script(*[Reply(503, retry_after="0")] * 2)
    with client_of(payload, verify_seed=1) as client:
        outcome = put(client, server, 3 * PIECE_BYTES)
    assert (outcome.cause, outcome.retried) == (None, {"HTTP 503": 2})
    assert len({unframe(each) for each in server.requests}) == 3


@pytest.mark.parametrize("payload", ["signed", "chunked"])
def test_a_connection_that_had_gone_stale_gets_the_same_body_again(
    server: FaultServer, payload: PayloadMode
) -> None:
    with client_of(payload) as client:
        assert put(client, server, 10).cause is None
        client.rest(60)
        server.script(Reply(reset=True))
        outcome = put(client, server, 5000)
    assert (outcome.cause, outcome.resent, server.connections) == (None, 1, 2)
    _, first, second = server.requests
    assert unframe(first) == unframe(second)


@pytest.mark.parametrize("payload", ["signed", "chunked"])
def test_what_sums_take_is_no_part_of_a_latency(
    server: FaultServer, payload: PayloadMode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock stands still but for sums, which take a second a piece."""
    now = 1000.0

    def add(original: Callable[..., None]) -> Callable[..., None]:
        def add_slowly(self: Any, *arguments: Any) -> None:
            nonlocal now
            now += 1.0
            original(self, *arguments)

        return add_slowly

    with client_of(payload) as client:
        put(client, server, 10)  # it is connected
        source = type(client.payload)
        monkeypatch.setattr(source, "add_to", add(source.add_to))
        for module in (client_module, connection_module):
            monkeypatch.setattr(module, "monotonic", lambda: now)
        # None of these has its MD5 computed besides.
        outcomes = [put(client, server, 2 * PIECE_BYTES) for _ in range(2)]
        server.script(Reply(503, retry_after="0"))
        again = put(client, server, 2 * PIECE_BYTES)
    # Those of later attempts are pauses of the worker's own.
    assert again.retries == 1
    assert again.rare is not None
    assert again.rare.pausing >= 2.0
    last = outcomes[-1]
    assert last.cause is None
    assert last.rare is not None
    assert last.rare.pausing == 0
    assert last.summing >= 2.0
    assert last.last_byte is not None
    assert last.last_byte < 1.0


@pytest.mark.parametrize("payload", ["signed", "chunked"])
def test_an_answer_before_all_was_sent_counts_what_was_sent(
    server: FaultServer, payload: PayloadMode
) -> None:
    size = 64 * PIECE_BYTES
    server.rule = lambda _request: Reply(early=True)
    with client_of(payload) as client:
        outcome = put(client, server, size)
    assert outcome.cause is None
    assert 0 < outcome.size < size


@pytest.mark.parametrize("payload", ["signed", "chunked"])
def test_a_wrong_etag_is_one_of_the_object_not_of_its_chunks(
    server: FaultServer, payload: PayloadMode
) -> None:
    said = []
    server.default = Reply(etag=lambda digest: said.append(digest) or digest)
    with client_of(payload, verify_seed=1) as client:
        outcome = put(client, server, 5000)
    (request,) = server.requests
    right = hashlib.md5(unframe(request)).hexdigest()
    assert (outcome.cause is None) == (said == [right]) == (payload == "signed"), outcome
