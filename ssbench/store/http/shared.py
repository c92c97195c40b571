"""What all connections of a client share, and what the operating system offers them."""

from __future__ import annotations

import mmap
import socket
import sys
from dataclasses import dataclass, field
from typing import Any, Protocol

from gevent.event import Event

from ssbench.store.http.http_response import HEAD_LIMIT
from ssbench.store.http.payload import PIECE_BYTES, BodySource
from ssbench.store.http.verify import BodyVerifier


class TimedConnection(Protocol):
    """A connection whose time is counted by the sweeper; -1: it is not counted."""

    ticks_left: int
    slack: float

    def wake(self, ticks_left: int) -> None:
        """Wake what waits for it, with the reason as ``ticks_left``."""

    def cancel(self) -> None:
        """End what it does, because the client is closed."""


@dataclass(slots=True)
class SharedState:
    """What all connections of a client share; ticks are intervals of the sweeper.

    An attempt has ``request_ticks``; each byte of body that moves gives it ``ticks_per_byte`` back.
    ``closing`` is set when the client is closed; every wait for something else also waits for it.

    ``failed`` has the address of each connection that could not be made to a host with several, until it is
    taken.

    Bytes that are only counted are received into ``sink`` with ``sink_flags``. With MSG_TRUNC the
    kernel drops them, and the sink is memory that is never touched: 0.17 ms of CPU a MB, where
    receiving takes 0.24 in pieces of 1 MB and 0.48 in pieces of 64 kB.
    """

    hub: Any
    payload: BodySource
    block_size: int
    connect_ticks: int
    network_ticks: int
    request_ticks: int
    ticks_per_byte: float
    sink_flags: int
    verifier: BodyVerifier | None = None
    closing: Event = field(default_factory=Event)
    sink: mmap.mmap = field(init=False)
    buffer: bytearray = field(default_factory=lambda: bytearray(HEAD_LIMIT))
    buffers: tuple[bytearray] = field(init=False)
    connections: set[TimedConnection] = field(default_factory=set)
    failed: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.buffers = (self.buffer,)
        self.sink = mmap.mmap(-1, PIECE_BYTES if self.sink_flags else self.block_size)


def discarding_flags() -> int:
    """Return MSG_TRUNC where ``recv`` then counts bytes of a TCP stream and drops them, else 0.

    That is so on Linux (tcp(7)), but not on every system that claims to be Linux, so it is tried.
    """
    if sys.platform != "linux":
        return 0
    try:
        with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as near:
            near.settimeout(2)
            near.connect(server.getsockname())
            far, _ = server.accept()
            with far:
                far.sendall(b"droppedkept")
                untouched = bytearray(7)
                dropped = near.recv_into(untouched, 7, socket.MSG_TRUNC)
                kept = near.recv(11)
    except OSError:
        return 0
    works = dropped == 7 and untouched == bytes(7) and kept == b"kept"
    return socket.MSG_TRUNC if works else 0
