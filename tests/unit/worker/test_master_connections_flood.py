"""Messages that fill a worker's memory are left, those of a busy master are not."""

from __future__ import annotations

import logging
import os
import socket
from pathlib import Path

import pytest

from ssbench.base.errors import WireError
from ssbench.worker.master_connections import FloodGuard, bytes_received

MEGABYTE = 1_000_000


class Peer:
    """What came through a connection, and how often it was left."""

    def __init__(self) -> None:
        self.received: int | None = 0
        self.left = 0
        self.flood = FloodGuard(lambda: self.received, self._leave)

    def _leave(self) -> None:
        self.left += 1

    def sends(self, count: int, size: int, taken: int) -> None:
        """Messages of which so many are taken in at once."""
        assert self.received is not None
        self.received += count * (size + 2)
        for _ in range(taken):
            self.flood.take(bytes(size))
        self.flood.look()


def test_empty_messages_that_are_not_taken_in_are_left_at_128_megabytes_of_memory() -> None:
    peer = Peer()
    peer.sends(200, 0, 200)
    for _ in range(19):
        peer.sends(100_000, 0, 200)
    assert not peer.left
    for _ in range(3):
        peer.sends(100_000, 0, 200)
    assert peer.left == 1


def test_large_messages_are_looked_at_one_by_one() -> None:
    peer = Peer()
    peer.flood.take(bytes(MEGABYTE))
    peer.received = 140 * MEGABYTE
    peer.flood.take(bytes(MEGABYTE))
    assert peer.left == 1


def test_a_busy_master_is_not_left() -> None:
    """However much comes, if it is taken in; and whatever waits in between, if it has been read since."""
    peer = Peer()
    for _ in range(2000):
        peer.sends(200, 400, 200)
    for _ in range(10):
        peer.sends(100_000, 0, 200)
        peer.sends(100_000, 0, 200)
        peer.flood.ends()
    assert not peer.left


def test_where_the_bytes_are_not_known_nothing_is_left() -> None:
    peer = Peer()
    peer.received = None
    peer.flood.look()
    peer.flood.look()
    assert not peer.left


def test_the_kernel_counts_what_came_through_a_connection() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname(), 30) as near,
        server.accept()[0] as far,
    ):
        assert bytes_received(far.fileno()) == 0
        near.sendall(bytes(1000))
        far.recv(1000, socket.MSG_WAITALL)
        assert bytes_received(far.fileno()) == 1000
    one, other = socket.socketpair()
    with one, other, Path(os.devnull).open() as file:
        assert [bytes_received(each) for each in (one.fileno(), file.fileno(), -1)] == [None, None, None]


def test_few_invalid_messages_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    flood = Peer().flood
    with caplog.at_level(logging.ERROR):
        for _ in range(1000):
            flood.drop(WireError("wrong"))
    assert caplog.messages == ["Dropped an invalid message: wrong"] * 20
