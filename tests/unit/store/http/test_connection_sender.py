"""The half of a connection that sends: bodies piece by piece, early answers, time-outs."""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Iterator

import gevent
import pytest
from golden_words import GoldenWords
from socket_pair import Pair, pair

from ssbench.scenario.operations import SMALL_BYTES
from ssbench.store import contract
from ssbench.store.contract import AttemptError
from ssbench.store.http.bodies import BLOCK_BYTES, PIECE_BYTES, STAMP_BYTES
from ssbench.store.http.connection import CANCELLED, NEAR_BUFFER_BYTES, TIMED_OUT, is_same_host

#: More than the buffers of both ends take, so that the client has to wait for its reader.
LARGE = 24_000_000
HEAD = b"PUT /v1/a/c/o HTTP/1.1\r\n\r\n"
CREATED = b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n"


@pytest.fixture
def both() -> Iterator[Pair]:
    with pair() as made:
        yield made


def read_all(both: Pair, size: int) -> gevent.Greenlet:
    """Read a whole request, as the client sends it; the greenlet's value is its body."""
    received = bytearray()

    def read() -> bytes:
        both.far.setblocking(False)
        while len(received) < size:
            try:
                received.extend(both.far.recv(1 << 20))
            except BlockingIOError:
                gevent.sleep(0.0005)
        return bytes(received[len(HEAD) :])

    return gevent.spawn(read)


@pytest.mark.parametrize("size", [1, 100, SMALL_BYTES, SMALL_BYTES + 1, 3_000_000])
@pytest.mark.parametrize("near", [True, False])
def test_a_body_is_sent_whole_to_servers_near_and_far(both: Pair, size: int, near: bool) -> None:
    both.near._near = near
    reading = read_all(both, len(HEAD) + size)
    reading.link_value(lambda _: both.far.sendall(CREATED + b"\r\n"))
    answer = both.near.exchange(HEAD, "PUT", size)
    body = reading.get(timeout=5)
    assert (answer.status, answer.keep_alive, len(body)) == (201, True, size)
    if size > SMALL_BYTES:  # a stamp, then the block of the process from some place on, again and again
        rest, block = body[STAMP_BYTES:], bytes(both.shared.payload._block)
        start = block.find(rest[:32])
        assert (block[start:BLOCK_BYTES] + block[:BLOCK_BYTES] * 4)[: len(rest)] == rest
    digest = both.near.digest
    if digest is not None:
        assert digest.hexdigest() == hashlib.md5(body).hexdigest()
    else:
        assert size > SMALL_BYTES  # of large ones only some are summed up


@pytest.mark.parametrize(
    ("size", "near", "bounded"),
    [(PIECE_BYTES, True, False), (LARGE, True, True), (LARGE, False, False)],
)
def test_only_a_large_body_to_a_server_near_has_a_bounded_buffer(
    both: Pair, size: int, near: bool, bounded: bool
) -> None:
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, NEAR_BUFFER_BYTES)
        bound = other.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
    both.near._near = near
    reading = read_all(both, len(HEAD) + size)
    reading.link_value(lambda _: both.far.sendall(CREATED + b"\r\n"))
    assert both.near.exchange(HEAD, "PUT", size).status == 201
    assert len(reading.get(timeout=60)) == size
    assert (both.near._sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) == bound) is bounded


def test_no_two_bodies_are_alike(both: Pair) -> None:
    bodies = set()
    for _ in range(5):
        reading = read_all(both, len(HEAD) + 1000)
        reading.link_value(lambda _: both.far.sendall(CREATED + b"\r\n"))
        both.near.claim()
        both.near.exchange(HEAD, "PUT", 1000)
        both.idle.clear()
        bodies.add(reading.get(timeout=5))
    assert len(bodies) == 5


def test_an_answer_before_all_was_sent_ends_the_upload(both: Pair) -> None:
    both.later(b"HTTP/1.1 507 Insufficient Storage\r\nContent-Length: 0\r\n\r\n")
    answer = both.near.exchange(HEAD, "PUT", LARGE)
    assert (answer.status, answer.keep_alive) == (507, False)
    assert both.near._left > 0
    assert both.idle == []


@pytest.mark.parametrize(
    ("event", "slack", "cause"),
    [
        (TIMED_OUT, 5.0, contract.READ_TIMEOUT),
        (TIMED_OUT, 0.0, contract.REQUEST_TIMEOUT),
        (CANCELLED, 5.0, contract.CLOSED),
    ],
)
def test_a_server_that_takes_no_more_is_given_up(both: Pair, event: int, slack: float, cause: str) -> None:
    def wake() -> None:
        both.near.slack = slack
        both.near.wake(event)

    both.later(wake)
    with pytest.raises(AttemptError) as error:
        both.near.exchange(HEAD, "PUT", LARGE)
    assert error.value.cause == cause
    assert both.near not in both.shared.connections


def test_a_server_that_closes_in_the_middle_resets(both: Pair) -> None:
    both.later(both.far.close)
    with pytest.raises(AttemptError) as error:
        both.near.exchange(HEAD, "PUT", LARGE)
    assert error.value.cause in {contract.RESET, contract.CLOSED}


def test_bytes_of_a_body_give_an_attempt_more_time_up_to_all_of_it() -> None:
    with pair(request_ticks=50) as both:
        both.near.slack = 10.0
        both.near._moved(20_000)
        assert both.near.slack == 30.0
        both.near._moved(1_000_000)
        assert both.near.slack == 50.0


def test_an_idle_connection_is_cancelled_at_once_a_busy_one_by_its_greenlet(
    both: Pair, golden_words: GoldenWords
) -> None:
    both.near.ticks_left = -1
    both.near.cancel()
    assert both.near not in both.shared.connections
    with pair() as other:
        other.later(other.near.cancel)
        with golden_words.raises(AttemptError):
            other.near.exchange(b"GET / HTTP/1.1\r\n\r\n", "GET", 0)
        assert other.near not in other.shared.connections


def test_what_connecting_ended_with_is_raised() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        place = server.getsockname()
    with pair() as both:
        refused = socket.socket()
        refused.setblocking(False)
        assert refused.connect_ex(place) != 0
        connection = type(both.near)(refused, both.shared, [])
        with pytest.raises(ConnectionRefusedError):
            connection.establish(100)
        connection.close()


def test_addresses_of_one_host() -> None:
    assert is_same_host("127.0.0.1", "127.0.0.2")
    assert is_same_host("10.0.0.1", "10.0.0.1")
    assert is_same_host("::1", "::1")
    assert not is_same_host("10.0.0.1", "127.0.0.1")
    assert not is_same_host("10.0.0.1", "10.0.0.2")
