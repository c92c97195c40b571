"""Making containers, against a server that answers as Swift does, or does not."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import closing

import pytest
from fault_server import FaultServer, Reply, Request
from golden_words import GoldenWords

from ssbench.base.errors import ClusterError, UsageError
from ssbench.store.contract import StoreAccess
from ssbench.store.credentials import Session
from ssbench.store.http.master_requests import describe_failed_containers
from ssbench.store.swift import containers
from ssbench.store.swift.containers import ensure_containers

MISSING, MADE = Reply(404), Reply(201)
TIMEOUTS = (5.0, 10.0)


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(containers, "_RETRY_PAUSES", (0.01, 0.01))


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with FaultServer() as running:
        yield running


def session(server: FaultServer, token: str = "t") -> Session:
    return Session((server.url,), token)


def asked(server: FaultServer) -> list[tuple[str, str]]:
    return [(request.method, request.target.rpartition("/")[2]) for request in server.requests]


def test_one_that_is_there_is_left_and_one_that_is_missing_is_made(server: FaultServer) -> None:
    def rule(request: Request) -> Reply:
        there = request.target.endswith("/there")
        return Reply(204) if there else MISSING if request.method == "HEAD" else MADE

    server.rule = rule
    made: list[None] = []
    ensure_containers(
        StoreAccess(session(server), TIMEOUTS, trans_id_extra="extra"),
        ["there", "new"],
        "gold",
        concurrency=1,
        advance=lambda: made.append(None),
        headers={"X-Container-Read": ".r:*"},
    )
    assert asked(server) == [("HEAD", "there"), ("HEAD", "new"), ("PUT", "new")]
    assert len(made) == 2
    head, put = server.requests[1:]
    assert {request.headers["x-trans-id-extra"] for request in server.requests} == {"extra"}
    assert {request.headers["x-auth-token"] for request in server.requests} == {"t"}
    assert (put.headers["x-storage-policy"], put.headers["x-container-read"]) == ("gold", ".r:*")
    assert not {"x-storage-policy", "x-container-read"} & head.headers.keys()


def test_without_a_policy_none_is_asked_for_or_compared(server: FaultServer) -> None:
    server.script(MISSING, MADE, Reply(204, headers=(("X-Storage-Policy", "any"),)))
    ensure_containers(StoreAccess(session(server), TIMEOUTS), ["new", "there"], concurrency=1)
    assert "x-storage-policy" not in server.requests[1].headers


def test_failures_that_may_pass_are_tried_again_and_told_once(
    server: FaultServer, caplog: pytest.LogCaptureFixture
) -> None:
    # 404 for a PUT: the account is new, and not every account server has it yet.
    server.script(Reply(503), MISSING, Reply(404), MADE)
    with caplog.at_level(logging.WARNING):
        ensure_containers(StoreAccess(session(server), TIMEOUTS), ["new"])
    assert asked(server) == [("HEAD", "new"), ("HEAD", "new"), ("PUT", "new"), ("PUT", "new")]
    (told,) = caplog.messages
    assert "tried again" in told
    assert "1 x HTTP 503" in told
    assert "1 x HTTP 404" in told


def test_no_further_one_is_begun_after_one_that_failed(
    server: FaultServer, golden_words: GoldenWords
) -> None:
    server.default = Reply(403)
    with golden_words.raises(ClusterError):
        ensure_containers(StoreAccess(session(server), TIMEOUTS), ["first", "second"], concurrency=1)
    assert asked(server) == [("HEAD", "first")]


def test_what_stays_unavailable_fails_after_some_attempts(server: FaultServer) -> None:
    server.default = Reply(503)
    with pytest.raises(ClusterError, match="HTTP 503"):
        ensure_containers(StoreAccess(session(server), TIMEOUTS), ["first"])
    assert len(server.requests) == 3


def test_a_storage_url_without_an_account_is_said_to_be_none(
    server: FaultServer, golden_words: GoldenWords
) -> None:
    server.default = Reply(412)
    with golden_words.raises(ClusterError):
        ensure_containers(StoreAccess(session(server), TIMEOUTS), ["first"])


def test_a_policy_that_is_not_there_is_named(server: FaultServer, golden_words: GoldenWords) -> None:
    server.script(MISSING, Reply(400))
    with golden_words.raises(ClusterError):
        ensure_containers(StoreAccess(session(server), TIMEOUTS), ["c"], "gold")


@pytest.mark.parametrize(
    ("known", "same"),
    [
        ([{"name": "silver", "aliases": "silver, Gold"}], True),
        ([{"name": "silver"}, {"name": "gold"}], False),
        ("nonsense", False),
    ],
)
def test_policies_are_the_same_by_their_aliases(
    server: FaultServer, known: object, same: bool, golden_words: GoldenWords
) -> None:
    info = Reply(200, json.dumps({"swift": {"policies": known}}).encode())
    server.script(Reply(204, headers=(("X-Storage-Policy", "Silver"),)), info)
    if same:
        ensure_containers(StoreAccess(session(server), TIMEOUTS), ["c"], "gold")
    else:
        with golden_words.raises(ClusterError):
            ensure_containers(StoreAccess(session(server), TIMEOUTS), ["c"], "gold")
    assert server.requests[1].target == "/info"


def test_names_of_policies_know_no_case(server: FaultServer) -> None:
    server.default = Reply(204, headers=(("X-Storage-Policy", "GOLD"),))
    ensure_containers(StoreAccess(session(server), TIMEOUTS), ["c"], "gold")
    assert len(server.requests) == 1


def test_a_token_that_is_refused_is_renewed_once_for_all(server: FaultServer) -> None:
    server.rule = lambda request: Reply(204 if request.headers["x-auth-token"] == "new" else 401)
    renewed: list[None] = []

    def renew() -> Session:
        renewed.append(None)
        return session(server, "new")

    ensure_containers(StoreAccess(session(server), TIMEOUTS, renew=renew), ["a", "b", "c"], concurrency=1)
    assert len(renewed) == 1
    assert [request.headers["x-auth-token"] for request in server.requests] == ["t", "new", "new", "new"]


def test_without_a_renewal_a_refused_token_fails(server: FaultServer) -> None:
    server.default = Reply(401)
    with pytest.raises(ClusterError, match="HTTP 401"):
        ensure_containers(StoreAccess(session(server), TIMEOUTS), ["a"])


def test_what_the_renewal_raises_ends_it(server: FaultServer) -> None:
    def renew() -> Session:
        raise UsageError("no more")

    server.default = Reply(401)
    with pytest.raises(UsageError, match="no more"):
        ensure_containers(StoreAccess(session(server), TIMEOUTS, renew=renew), ["a"])


def test_what_the_caller_raises_ends_it_while_a_request_is_under_way(server: FaultServer) -> None:
    class StopError(Exception):
        pass

    def check() -> None:
        raise StopError

    server.default = Reply(stall=True)
    with pytest.raises(StopError):
        ensure_containers(StoreAccess(session(server), TIMEOUTS), ["a"], check=check)


def test_each_thread_asks_one_of_the_storage_urls() -> None:
    with FaultServer(default=Reply(204)) as one, FaultServer(default=Reply(204)) as other:
        both = Session((one.url, other.url), "t")
        ensure_containers(StoreAccess(both, TIMEOUTS), ["a", "b"], concurrency=2)
        assert len(one.requests) + len(other.requests) == 2
        for index, server in enumerate((one, other, one)):
            with closing(containers.open_swift_connection(StoreAccess(both, TIMEOUTS), index)) as connection:
                assert connection.url == server.url


def test_many_failures_are_told_by_their_reasons(golden_words: GoldenWords) -> None:
    failures = [(f"c{number}", f"HTTP {500 + number // 2}") for number in range(9)]
    told = describe_failed_containers(failures)
    golden_words(told)
    assert told.endswith("; and 2 other reasons")
    golden_words(describe_failed_containers([("c", "why")]))


@pytest.mark.parametrize("chunked", [False, True])
def test_an_answer_without_end_takes_a_bounded_amount_of_memory(
    server: FaultServer, monkeypatch: pytest.MonkeyPatch, *, chunked: bool
) -> None:
    monkeypatch.setattr(containers, "_MOST_BYTES", 1_000_000)
    lead = b"HTTP/1.1 200 OK\r\n" + (b"Transfer-Encoding: chunked\r\n\r\n" if chunked else b"\r\n")
    piece = b"1000\r\n%b\r\n" % bytes(4096) if chunked else bytes(4096)
    server.rule = lambda request: (
        MISSING if request.method == "HEAD" else Reply(lead=lead, raw=piece, endless=True)
    )
    with pytest.raises(ClusterError, match="bad response"):
        ensure_containers(StoreAccess(session(server), TIMEOUTS), ["c"])


@pytest.mark.parametrize(
    "length",
    [b"Content-Length: %d\r\n\r\n" % 10**30, b"Transfer-Encoding: chunked\r\n\r\n" + b"f" * 20 + b"\r\n"],
)
def test_a_length_beyond_any_memory_is_an_answer_that_is_cut_off(server: FaultServer, length: bytes) -> None:
    cut_off = Reply(raw=b"HTTP/1.1 201 Created\r\n%b" % length + b"abc", drops=True)
    server.rule = lambda request: MISSING if request.method == "HEAD" else cut_off
    with pytest.raises(ClusterError, match="bad response"):
        ensure_containers(StoreAccess(session(server), TIMEOUTS), ["c"])


def test_an_answer_in_pieces_is_read_whole_and_its_connection_is_used_again(
    server: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(containers, "_PIECE", 1000)
    body = bytes(range(256)) * 30
    server.default = Reply(200, body)
    with closing(containers.open_swift_connection(StoreAccess(session(server), TIMEOUTS), 0)) as connection:
        for _ in range(3):
            connection.request("GET", "/v1/AUTH_test")
            assert connection.getresponse().read() == body
    assert server.connections == 1
