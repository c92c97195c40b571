"""One keep-alive connection: what it makes of an answer, however that comes, and when it is used again."""

from __future__ import annotations

import hashlib
import socket
import sys
from collections.abc import Iterator

import gevent
import gevent.socket
import pytest
from socket_pair import Pair, pair

from ssbench.store import contract
from ssbench.store.contract import AttemptError
from ssbench.store.http.client import AttemptTotals
from ssbench.store.http.connection import CANCELLED, DRAIN_BYTES, TIMED_OUT

GET = b"GET /v1/a/c/o HTTP/1.1\r\nHost: h\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Trans-Id: tx1\r\n\r\n"


@pytest.fixture
def both() -> Iterator[Pair]:
    with pair() as made:
        yield made


def test_an_answer_puts_the_connection_into_its_pool(both: Pair) -> None:
    both.later(OK + b"hello")
    answer = both.near.exchange(GET, "GET", 0)
    assert (answer.status, answer.size, answer.trans_id, answer.keep_alive) == (200, 5, "tx1", True)
    assert answer.sent_at <= answer.first_byte_at <= answer.last_byte_at
    assert both.far.recv(1000) == GET
    assert both.idle == [both.near]
    assert both.near.ticks_left == -1


@pytest.mark.parametrize("size", [1, 7, 40, 60])
def test_however_it_is_cut_it_is_the_same(both: Pair, size: int) -> None:
    whole = b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b"hello"
    both.later(*(whole[place : place + size] for place in range(0, len(whole), size)))
    answer = both.near.exchange(GET, "GET", 0)
    assert (answer.status, answer.size, answer.trans_id) == (200, 5, "tx1")
    assert both.idle == [both.near]


def test_chunks_end_where_they_say(both: Pair) -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    both.later(head, b"3\r\nabc\r\n", b"2\r\nde\r\n0\r\n\r\n")
    answer = both.near.exchange(GET, "GET", 0)
    assert (answer.status, answer.size, answer.keep_alive) == (200, 5, True)


def test_an_error_has_its_reason_and_its_body_is_passed_over(both: Pair) -> None:
    both.later(b"HTTP/1.1 503 Busy\r\nContent-Length: 3\r\nRetry-After: 7\r\n\r\nno!")
    answer = both.near.exchange(GET, "GET", 0)
    assert (answer.status, answer.retry_after, answer.keep_alive) == (503, "7", True)
    assert "Busy" in answer.detail
    both.near.claim()
    both.idle.clear()
    both.later(OK + b"hello")
    assert both.near.exchange(GET, "GET", 0).status == 200


@pytest.mark.parametrize(
    ("sent", "cause"),
    [
        (b"", contract.CLOSED),
        (b"HTTP/1.1 200", contract.CLOSED),
        (OK + b"hel", contract.SHORT_BODY),
        (OK + b"hello, world", contract.BAD_RESPONSE),
        (b"HTTP/1.1 101 Switching Protocols\r\n\r\n", contract.BAD_RESPONSE),
        (b"250 this is no HTTP\r\n\r\n", contract.BAD_RESPONSE),
    ],
)
def test_what_is_no_whole_answer_is_named_and_closes(both: Pair, sent: bytes, cause: str) -> None:
    both.later(sent, lambda: both.far.shutdown(socket.SHUT_WR))
    with pytest.raises(AttemptError) as error:
        both.near.exchange(GET, "GET", 0)
    assert error.value.cause == cause
    assert both.idle == []
    assert both.near not in both.shared.connections
    if sent.startswith(OK):
        assert (error.value.status, error.value.trans_id) == (200, "tx1")


@pytest.mark.parametrize(
    ("event", "slack", "cause"),
    [
        (TIMED_OUT, 1.0, contract.READ_TIMEOUT),
        (TIMED_OUT, 0.0, contract.REQUEST_TIMEOUT),
        (CANCELLED, 1.0, contract.CLOSED),
    ],
)
def test_who_is_woken_without_an_answer_gives_up(both: Pair, event: int, slack: float, cause: str) -> None:
    def wake() -> None:
        both.near.slack = slack
        both.near.wake(event)

    both.later(wake)
    with pytest.raises(AttemptError) as error:
        both.near.exchange(GET, "GET", 0)
    assert error.value.cause == cause
    assert both.near not in both.shared.connections


def test_a_server_that_closes_an_idle_connection_takes_it_out_of_the_pool(both: Pair) -> None:
    both.later(OK + b"hello")
    both.near.exchange(GET, "GET", 0)
    both.far.close()
    with gevent.Timeout(60):
        while both.idle:
            gevent.sleep(0.001)
    assert both.near not in both.shared.connections


def test_the_short_way_and_where_it_is_left(both: Pair) -> None:
    both.later(OK + b"hello")
    head = both.near.exchange_briefly(GET, None)
    assert head is not None
    assert (head.status, head.length, head.trans_id) == (200, 5, "tx1")
    assert both.idle == []  # it stays with its greenlet
    for answer, status in ((OK + b"hel", 200), (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", 404)):
        both.later(answer)
        assert both.near.exchange_briefly(GET, None) is None
        both.later(*([b"lo"] if status == 200 else []))
        found = both.near.resume("GET")
        assert (found.status, found.keep_alive) == (status, True)
        both.near.claim()
        both.idle.clear()


@pytest.mark.parametrize("expected", [0, 5])
def test_the_short_way_reads_on_where_a_body_comes_in_parts(both: Pair, expected: int) -> None:
    both.later(OK + b"he", b"l", b"lo")
    head = both.near.exchange_briefly(GET, None, 0, 0, expected)
    assert head is not None
    assert (head.status, head.length, head.trans_id) == (200, 5, "tx1")
    assert both.near.sent_at <= both.near.first_byte_at < both.near.received_at
    assert both.idle == []
    both.later(OK + b"hello")
    assert both.near.exchange_briefly(GET, None, 0, 0, expected) is not None
    assert both.near.first_byte_at == both.near.received_at


@pytest.mark.parametrize(
    ("rest", "cause"), [((b"l",), contract.SHORT_BODY), ((b"l", b"lo, world"), contract.BAD_RESPONSE)]
)
def test_what_is_wrong_with_a_later_part_is_told_on_resuming(
    both: Pair, rest: tuple[bytes, ...], cause: str
) -> None:
    both.later(OK + b"he", *rest, lambda: both.far.shutdown(socket.SHUT_WR))
    assert both.near.exchange_briefly(GET, None, 0, 0, 5) is None
    with pytest.raises(AttemptError) as error:
        both.near.resume("GET")
    assert (error.value.cause, error.value.status, error.value.trans_id) == (cause, 200, "tx1")
    assert both.near not in both.shared.connections


@pytest.mark.parametrize(
    ("event", "slack", "cause"),
    [
        (TIMED_OUT, 1.0, contract.READ_TIMEOUT),
        (TIMED_OUT, 0.0, contract.REQUEST_TIMEOUT),
        (CANCELLED, 1.0, contract.CLOSED),
    ],
)
def test_the_short_way_waits_no_longer_for_a_later_part(
    both: Pair, event: int, slack: float, cause: str
) -> None:
    def wake() -> None:
        both.near.slack = slack
        both.near.wake(event)

    both.later(OK + b"he", wake)
    assert both.near.exchange_briefly(GET, None, 0, 0, 5) is None
    with pytest.raises(AttemptError) as error:
        both.near.resume("GET")
    assert error.value.cause == cause
    assert both.near not in both.shared.connections


def test_who_is_killed_while_a_body_comes_in_parts_closes_the_connection(both: Pair) -> None:
    sent = both.later(OK + b"he")
    asking = gevent.spawn(both.near.exchange_briefly, GET, None, 0, 0, 5)
    both.near._reader.callback = asking.switch
    sent.get(timeout=60)
    with gevent.Timeout(60):
        while not both.near.first_byte_at:
            gevent.sleep(0.001)
    asking.kill(timeout=60)
    assert both.near not in both.shared.connections


def test_the_short_way_reads_on_for_no_other_size_and_no_other_status(both: Pair) -> None:
    for first, expected, status in ((OK, 6, 200), (OK.replace(b"200", b"206"), 5, 206), (OK, -1, 200)):
        both.later(first + b"he")
        assert both.near.exchange_briefly(GET, None, 0, 0, expected) is None
        both.later(b"llo")
        answer = both.near.resume("GET")
        assert (answer.status, answer.size) == (status, 5)
        both.near.claim()
        both.idle.clear()


def test_an_answer_of_64_kib_is_one_read(both: Pair) -> None:
    """With its head it is larger than that."""
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 65536\r\n\r\n"
    asking = gevent.spawn(both.near.exchange_briefly, GET, None)
    both.near._reader.callback = asking.switch
    gevent.sleep(0)
    both.far.sendall(head + bytes(65536))  # before the loop turns
    found = asking.get(timeout=60)
    assert found is not None
    assert found.length == 65536


def test_a_head_of_more_than_64_kib_is_none_though_there_is_room(both: Pair) -> None:
    head = OK[:-2] + b"X-A: " + b"a" * 70_000 + b"\r\n\r\n"
    both.later(head + b"hello")
    assert both.near.exchange_briefly(GET, None, 0, 0, 5) is None
    with pytest.raises(AttemptError) as error:
        both.near.resume("GET")
    assert error.value.cause == contract.BAD_RESPONSE


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize(("size", "kept"), [(DRAIN_BYTES, True), (DRAIN_BYTES + 1, False)])
def test_the_connection_of_a_long_error_is_closed_even_where_one_read_brings_all_of_it(
    both: Pair, size: int, kept: bool, at_once: bool
) -> None:
    head, body = b"HTTP/1.1 500 X\r\nContent-Length: %d\r\n\r\n" % size, bytes(size)
    asking = gevent.spawn(both.near.exchange, GET, "GET", 0)
    both.near._reader.callback = asking.switch
    gevent.sleep(0)
    if at_once:
        both.far.sendall(head + body)  # before the loop turns
    else:
        both.later(head, body)
    assert asking.get(timeout=60).keep_alive is kept


@pytest.mark.skipif(sys.platform != "linux", reason="others have no such option, or another")
def test_a_server_on_this_host_is_offered_a_large_window_that_may_still_grow(both: Pair) -> None:
    assert both.near._sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) >= 1 << 20
    assert both.near._sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT) == 1


@pytest.mark.parametrize("answers_early", [False, True])
def test_the_short_way_is_left_where_there_is_no_room_for_the_body(both: Pair, answers_early: bool) -> None:
    both.near._sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 20_000)
    first, offset, digest = both.shared.payload.begin(1_000_000)
    assert digest is not None
    message = b"PUT /v1/a/c/o HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n" + first
    head = both.near.exchange_briefly(message, digest, 1_000_000 - len(first), offset)
    assert head is None
    received = bytearray()

    def serve() -> None:
        if not answers_early:
            while len(received) < len(message) - len(first) + 1_000_000:
                gevent.socket.wait_read(both.far.fileno())
                received.extend(both.far.recv(1 << 16))
        etag = hashlib.md5(received.partition(b"\r\n\r\n")[2]).hexdigest()
        both.far.sendall(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\nEtag: %b\r\n\r\n" % etag.encode())

    serving = gevent.spawn(serve)
    answer = both.near.resume("PUT")
    serving.get(timeout=60)
    assert (answer.status, answer.wrong_etag) == (201, None)
    assert answer.keep_alive is not answers_early
    # Of the body, so that what is counted as moved is what was sent.
    assert (answer.unsent > 500_000) is answers_early
    assert answers_early or answer.unsent == 0
    outcome = AttemptTotals(0).success(answer, 1_000_000)
    assert outcome.size == 1_000_000 - answer.unsent


@pytest.mark.parametrize("right", [True, False])
def test_the_etag_of_an_upload_is_that_of_the_bytes(both: Pair, right: bool) -> None:
    def answer() -> None:
        body = both.far.recv(4096).partition(b"\r\n\r\n")[2]
        assert len(body) == 100
        etag = hashlib.md5(body).hexdigest() if right else "0" * 32
        both.far.sendall(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\nEtag: %b\r\n\r\n" % etag.encode())

    both.later(answer)
    found = both.near.exchange(b"PUT /v1/a/c/o HTTP/1.1\r\nContent-Length: 100\r\n\r\n", "PUT", 100)
    assert (found.status, found.keep_alive) == (201, True)
    said = f"the answer has the ETag {'0' * 32}, the bytes that were sent have the MD5 "
    assert found.wrong_etag is None if right else (found.wrong_etag or "").startswith(said)
