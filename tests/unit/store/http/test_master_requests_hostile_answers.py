"""Answers of a store that has gone mad, to all that the master asks: one clear line, or something usable."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from asked_by_master import ASKED_BY_MASTER, TIMEOUTS, origin_of, s3_session, swift_session
from fault_server import FaultServer, Reply
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ssbench.base.errors import SsbenchError
from ssbench.cluster.recon import Sampler, ask_info, make_pool
from ssbench.run import account_cleaner
from ssbench.run.account_cleaner import AccountCleaner, CleanUpSettings
from ssbench.store.contract import AttemptError, Listing, StoreAccess, StoreRequest
from ssbench.store.http import master_requests
from ssbench.store.http.client import ClientSettings
from ssbench.store.stores import make_store_client
from ssbench.store.swift import containers
from ssbench.store.swift.store import SwiftStore

LONG_NUMBER = b"9" * 5000


def chunked(chunks: bytes) -> Reply:
    return Reply(raw=b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks, drops=True)


def with_head(*lines: str) -> Reply:
    head = "\r\n".join(("HTTP/1.1 200 OK", *lines, "", "")).encode("latin-1")
    return Reply(raw=head + b"[]", drops=True)


HOSTILE = {
    "negative chunk": chunked(b"-5\r\nhello\r\n0\r\n\r\n"),
    "chunk of a huge size": chunked(b"f" * 400 + b"\r\nhello"),
    "chunk size of no number": chunked(b"zz\r\n"),
    "chunk size with underscores": chunked(b"1_0\r\nhello\r\n0\r\n\r\n"),
    "chunk size without end": chunked(b"5" * 200_000),
    "chunk that is cut": chunked(b"50\r\nhello"),
    "chunk size of other digits": chunked("٥\r\nhello\r\n0\r\n\r\n".encode()),
    "negative length": with_head("Content-Length: -5"),
    "length of no number": with_head("Content-Length: five"),
    "length of 5,000 digits": with_head(f"Content-Length: {LONG_NUMBER.decode()}"),
    "two lengths": with_head("Content-Length: 2", "Content-Length: 3"),
    "encoding of a name": with_head("Content-Encoding: gzip", "Content-Length: 2"),
    "encoding of all": with_head("Content-Encoding: gzip, deflate, gzip, br, zstd", "Content-Length: 2"),
    "charset of nowhere": with_head("Content-Type: application/json; charset=nowhere", "Content-Length: 2"),
    "charset of a codec": with_head("Content-Type: text/html; charset=zlib", "Content-Length: 2"),
    "a header of no form": with_head("no header", "Content-Length: 2"),
    "a header of no bytes": with_head(": x", "\xff\xfe: \xff", "Content-Length: 2"),
    "300 headers": with_head(*(f"X-{number}: 1" for number in range(300)), "Content-Length: 2"),
    "a long line": with_head(f"X-Long: {'x' * 200_000}", "Content-Length: 2"),
    "status 0": Reply(raw=b"HTTP/1.1 0 Zero\r\n\r\n", drops=True),
    "status 99999": Reply(raw=b"HTTP/1.1 99999 Many\r\n\r\n", drops=True),
    "status -5": Reply(raw=b"HTTP/1.1 -05 Minus\r\n\r\n", drops=True),
    "status of letters": Reply(raw=b"HTTP/1.1 abc\r\n\r\n", drops=True),
    "HTTP/9.9": Reply(raw=b"HTTP/9.9 200 OK\r\nContent-Length: 2\r\n\r\n[]", drops=True),
    "HTTP/0.9": Reply(raw=b"[]", drops=True),
    "nothing": Reply(cut=0),
    "switching": Reply(raw=b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", drops=True),
    "not modified": Reply(304),
    "authentication of no scheme": Reply(401, headers=(("WWW-Authenticate", "\xff, =,,"),)),
    "a cookie of no form": Reply(
        200, b"[]", (("Set-Cookie", "\xff=;;; expires=9999999999999999; max-age=x"),)
    ),
    "a redirect": Reply(302, headers=(("Location", "http://[::1"),)),
    "a date of no day": Reply(
        200, b"[]", (("Date", "Mon, 99 Foo 99999 99:99:99 XXX"), ("Last-Modified", "0"))
    ),
    "a count of 5,000 digits": Reply(
        200,
        b"[]",
        (("X-Container-Object-Count", LONG_NUMBER.decode()), ("X-Account-Container-Count", "-1")),
    ),
    "a count of no number": Reply(200, b"[]", (("X-Container-Object-Count", "many"),)),
    "a retry after no number": Reply(503, headers=(("Retry-After", "-" + LONG_NUMBER.decode()),)),
    "a listing with a number of 5,000 digits": Reply(
        200, b'[{"name": "ssbench_000000", "count": %b, "bytes": %b}]' % (LONG_NUMBER, LONG_NUMBER)
    ),
    "a number with an exponent": Reply(200, b'[{"name": "ssbench_000000", "count": 1e999, "bytes": 1e999}]'),
    "not a number": Reply(200, b'[{"name": "ssbench_000000", "count": NaN, "bytes": Infinity}]'),
    "nested deeply": Reply(200, b"[" * 100_000),
    "half a character": Reply(200, b'[{"name": "\\ud800", "count": 1, "bytes": 1}]'),
    "UTF-16": Reply(200, json.dumps([{"name": "a"}]).encode("utf-16")),
    "bytes of no text": Reply(200, b"\xff\xfe\x00"),
    "a mapping": Reply(200, b'{"token": null, "access": 5, "credential": []}'),
    "entities": Reply(
        200,
        b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;">]>'
        b"<ListBucketResult>&b;</ListBucketResult>",
    ),
    "XML with a number of 5,000 digits": Reply(
        200,
        b"<ListBucketResult><Contents><Key>a</Key><Size>%b</Size></Contents></ListBucketResult>"
        % LONG_NUMBER,
    ),
    "XML of another charset": Reply(200, b'<?xml version="1.0" encoding="nowhere"?><ListBucketResult/>'),
    "XML nested deeply": Reply(200, b"<a>" * 50_000),
    "XML without a name": Reply(200, b"<ListBucketResult><Contents/></ListBucketResult>"),
    "an error without fields": Reply(400, b"<Error/>"),
}


#: What operations ask.
REQUESTS = (
    StoreRequest(method="GET", container="bucket", name="o", keep=1000),
    StoreRequest(method="HEAD", container="bucket", name="o"),
    StoreRequest(method="PUT", container="bucket", name="o", body=b"x"),
    StoreRequest(method="GET", container="bucket", listing=Listing(limit=5, prefix="o"), keep=100_000),
)


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(containers, "_RETRY_PAUSES", (0.0,))
    monkeypatch.setattr(master_requests, "_RETRY_PAUSES", (0.0,))


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with FaultServer() as running:
        yield running


def ask(asked: str, server: FaultServer) -> None:
    """Ask it: all that may be raised is an error of normal life, of one line."""
    try:
        ASKED_BY_MASTER[asked](server)
    except (SsbenchError, AttemptError) as error:
        text = str(error)
        if "\n" in text or not text or len(text) > 2_000:
            raise AssertionError(f"{asked}: not one clear line: {text!r}") from error


@pytest.mark.parametrize("answer", HOSTILE)
def test_a_hostile_answer_is_one_clear_line(server: FaultServer, answer: str) -> None:
    server.default = HOSTILE[answer]
    for asked in ASKED_BY_MASTER:
        server.requests.clear()
        ask(asked, server)
        assert server.requests, asked


#: JSON of all types, with the names that answers have.
NAMES = [
    *("token", "access", "catalog", "serviceCatalog", "endpoints", "url", "publicURL", "interface"),
    *("type", "expires_at", "expires", "id", "user", "project", "name", "count", "bytes", "subdir"),
    *("credential", "secret", "run", "ended", "kept"),
]
FIELD_NAMES = [
    *("X-Storage-Url", "X-Auth-Token", "X-Subject-Token", "X-Storage-Policy", "Date", "Last-Modified"),
    *("X-Container-Object-Count", "Location", "Content-Type", "X-Account-Meta-Temp-Url-Key"),
]
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3), st.just("2099-01-01T00:00:00Z")
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(NAMES), inner, max_size=5)
    ),
    max_leaves=12,
)
FIELDS = st.lists(
    st.tuples(st.sampled_from(FIELD_NAMES), st.text("\x01\x7f\xff a:/%0[]@;=", max_size=8)), max_size=4
).map(tuple)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(status=st.sampled_from([200, 201, 204, 302, 400, 404, 409]), value=VALUES, fields=FIELDS)
@pytest.mark.parametrize("asked", ASKED_BY_MASTER)
def test_json_of_any_types_is_one_clear_line(
    server: FaultServer, asked: str, status: int, value: Any, fields: tuple[tuple[str, str], ...]
) -> None:
    server.default = Reply(status, json.dumps(value).encode() if status != 204 else b"", fields)
    ask(asked, server)


@pytest.mark.parametrize("answer", HOSTILE)
def test_requests_of_workers_have_an_outcome(server: FaultServer, answer: str) -> None:
    server.default = HOSTILE[answer]
    how = ClientSettings(connect_timeout=5.0, network_timeout=5.0, retries=0)
    with closing(make_store_client(how)) as client:
        for session in (swift_session(server), s3_session(server)):
            for request in REQUESTS:
                outcome = client.perform(session.storage_url, request, session.token)
                assert outcome.cause is not None or 200 <= outcome.status < 300


@pytest.mark.parametrize("answer", HOSTILE)
def test_a_clean_up_ends(server: FaultServer, answer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(account_cleaner, "_DELETION_PAUSES", (0.0,))
    server.default = HOSTILE[answer]
    for session in (swift_session(server), s3_session(server)):
        result = AccountCleaner(session, CleanUpSettings(2, 5.0, 5.0)).run(["ssbench-000000"])
        assert result.failed or result.containers == 1


@pytest.mark.parametrize("answer", HOSTILE)
def test_recon_of_a_mad_server_is_a_failure_in_the_record(server: FaultServer, answer: str) -> None:
    server.default = HOSTILE[answer]
    assert ask_info(make_pool(), origin_of(server)).failure
    sampler = Sampler([origin_of(server)], 60.0, 0.0)
    sampler.before(30.0)
    sampler.after(30.0)
    assert [each.asked for each in sampler.servers()] == [2]


@pytest.mark.parametrize("answer", HOSTILE)
def test_what_a_mad_server_can_do_is_not_known(server: FaultServer, answer: str) -> None:
    server.default = HOSTILE[answer]
    assert not SwiftStore().capabilities(StoreAccess(swift_session(server), TIMEOUTS)).known
    SwiftStore().clock(swift_session(server))
