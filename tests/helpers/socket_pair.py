"""A connection of the fast client whose other end is in the hands of a test."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import gevent

from ssbench.store.http.bodies import BodySource
from ssbench.store.http.connection import HttpConnection, SharedState, discarding_flags


@dataclass
class Pair:
    """``near`` is the client's connection, ``far`` a blocking socket, ``idle`` the pool of the former."""

    near: HttpConnection
    far: socket.socket
    idle: list[HttpConnection]
    shared: SharedState

    def later(self, *steps: bytes | Callable[[], object]) -> gevent.Greenlet:
        """Send bytes, or call, one after the other, each when the client has nothing left to do."""

        def run() -> None:
            for step in steps:
                gevent.sleep(0.002)
                if callable(step):
                    step()
                else:
                    self.far.sendall(step)

        return gevent.spawn(run)


@contextmanager
def pair(*, request_ticks: int = 1000) -> Iterator[Pair]:
    """Connect both ends over TCP on this host."""
    payload = BodySource(1)
    shared = SharedState(
        hub=gevent.get_hub(),
        payload=payload,
        block_size=65536,
        connect_ticks=100,
        network_ticks=100,
        request_ticks=request_ticks,
        ticks_per_byte=0.001,
        sink_flags=discarding_flags(),
    )
    with socket.create_server(("127.0.0.1", 0)) as server:
        sock = socket.create_connection(server.getsockname())
        far, _ = server.accept()
    sock.setblocking(False)
    far.settimeout(5)
    idle: list[HttpConnection] = []
    near = HttpConnection(sock, shared, idle)
    try:
        near.establish(100)
        yield Pair(near, far, idle, shared)
    finally:
        near.close()
        far.close()
        payload.close()
