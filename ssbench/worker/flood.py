"""What comes to a worker that no master sends: invalid messages, and so many that they fill its memory."""

from __future__ import annotations

import logging
import socket
import sys
import time
from collections.abc import Callable

from ssbench.base.errors import WireError

_log = logging.getLogger(__name__)

#: Bytes of memory that messages may need which wait without end. The jobs that a master sends wait for
#: results, so that those of the largest run need a small part of this.
_MAX_MESSAGE_MEMORY = 128 * 1024 * 1024

#: Bytes that libzmq needs for a message beside its own, and those of its frame on the wire.
_MESSAGE_OVERHEAD, _FRAME_OVERHEAD = 64, 2

#: Messages of more bytes than this may fill the memory in one turn of the event loop.
_LARGE_BYTES = 65_536

#: Where the bytes that a connection has received are in what Linux says of it (``struct tcp_info``).
_TCP_INFO_BYTES = 136
_RECEIVED_OFFSET = 128

#: So many invalid messages are logged one by one in so many seconds; the others are counted.
_MAX_LOGGED, _LOGGED_SECONDS = 20, 10.0


def bytes_received(descriptor: int) -> int | None:
    """Return how many bytes came through a TCP connection, given its descriptor; None where it is none.

    Linux only.
    """
    try:
        connection = socket.socket(fileno=descriptor)
    except (OSError, ValueError):  # ValueError: negative
        return None
    try:
        told = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES)
        return (
            int.from_bytes(told[_RECEIVED_OFFSET:], sys.byteorder) if len(told) == _TCP_INFO_BYTES else None
        )
    except (AttributeError, OSError):
        return None
    finally:
        connection.detach()


class FloodGuard:
    """Notices one, and calls ``leave`` then. ``received`` returns how many bytes came through the connection.

    :meth:`take` is to be called for each message, :meth:`ends` where no more waits, :meth:`look` where more
    wait than are taken in at once.
    """

    def __init__(self, received: Callable[[], int | None], leave: Callable[[], None]) -> None:
        self._received = received
        self._leave = leave
        #: What had come when this was last looked at first, and what was taken in since.
        self._base: int | None = None
        self._count = self._bytes = 0
        self._dropped = 0
        self._since = 0.0

    def take(self, message: bytes) -> None:
        """Count a message."""
        self._count += 1
        self._bytes += len(message)
        if len(message) > _LARGE_BYTES:
            self.look()

    def ends(self) -> None:
        """Note that no message waits."""
        self._base = None

    def look(self) -> None:
        """Estimate how much memory those need that came since messages wait and were not taken in."""
        received = self._received()
        if received is None:
            return
        if self._base is None:
            self._base, self._count, self._bytes = received, 0, 0
            return
        average = self._bytes / max(1, self._count)
        waiting = received - self._base - self._bytes - _FRAME_OVERHEAD * self._count
        if waiting * (average + _MESSAGE_OVERHEAD) / (average + _FRAME_OVERHEAD) > _MAX_MESSAGE_MEMORY:
            self._base = None
            self._leave()

    def drop(self, error: WireError) -> None:
        """Log that a message is dropped, where not too many were."""
        now = time.monotonic()
        if now - self._since > _LOGGED_SECONDS:
            if self._dropped > _MAX_LOGGED:
                _log.error("Dropped %d more invalid messages", self._dropped - _MAX_LOGGED)
            self._dropped, self._since = 0, now
        self._dropped += 1
        if self._dropped <= _MAX_LOGGED:
            _log.error("Dropped an invalid message: %s", error)
