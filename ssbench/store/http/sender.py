"""A connected socket and its time-outs, and the half of a connection that sends.

A wait is one switch to the hub. One io watcher stays armed for the life of the socket; its callback is
the greenlet that uses it. Nothing here starts a timer, because a ``gevent.Timeout`` for each request costs
another 5 µs. A wait sets ``ticks_left``, and a sweeper counts it down for all sockets a few times in each
time-out (:class:`~.pool.Sweeper`) and wakes the greenlet at 0. Every byte sets ``ticks_left``
anew. ``slack`` is counted down beside it for the whole attempt and grows only with the bytes of a body, so
that a server that sends interim answers, or a byte a second, is given up too. A process that was stopped
misses ticks but none of its time-outs.

Every wait goes through the hub, in long transfers too: one piece, one wait. So one large object never
keeps the others waiting for longer than a piece takes.
"""

from __future__ import annotations

import math
import os
import socket
import ssl
from time import monotonic, time
from typing import TYPE_CHECKING

from gevent import getcurrent

from ssbench.store.causes import CLOSED, READ_TIMEOUT, REQUEST_TIMEOUT, AttemptError
from ssbench.store.http.etags import start_md5
from ssbench.store.http.http_response import BodyCheck
from ssbench.store.http.payload import PIECE_BYTES
from ssbench.store.http.shared import SharedState

if TYPE_CHECKING:
    from _hashlib import HASH

#: What wakes a greenlet that waits for its socket.
READABLE, WRITABLE, TIMED_OUT, CANCELLED = 1, 2, 3, 4

_WOULD_BLOCK = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
_MSG_MORE = getattr(socket, "MSG_MORE", 0)

#: Of a large body so many bytes may be under way to a server on this host. Linux doubles it.
NEAR_BUFFER_BYTES = 1 << 19


def is_same_host(own: str, peer: str) -> bool:
    """Return whether these addresses of a connection are of one host."""
    return own == peer or (own.startswith("127.") and peer.startswith("127."))


def make_cancelled_error() -> AttemptError:
    """Return the error of a request whose client is closed."""
    return AttemptError(CLOSED, "this client was closed")


class RequestSender:
    """A non-blocking socket that one greenlet at a time uses."""

    __slots__ = (
        "_hub",
        "_left",
        "_near",
        "_offset",
        "_pending",
        "_reader",
        "_send_error",
        "_shared",
        "_sock",
        "_writer",
        "address",
        "check",
        "digest",
        "etag",
        "longest",
        "name",
        "received_at",
        "sent_at",
        "slack",
        "stamped",
        "ticks_left",
        "wall_offset",
    )

    _more = _MSG_MORE

    def __init__(self, sock: socket.socket, shared: SharedState) -> None:
        self._sock = sock
        self._shared = shared
        self._hub = shared.hub
        self.sent_at = self.received_at = 0.0
        #: The address, where its host has several.
        self.address = ""
        #: Whether the kernel reports when bytes arrive; how far the wall clock was ahead at ``sent_at``.
        self.stamped = False
        #: With --verify: the name of the object.
        self.name = b""
        #: Whether the next body is announced with its MD5.
        self.etag = False
        #: The check of the body that is to come; the MD5 of the one that was sent, where it is to be known.
        self.check: BodyCheck | None = None
        self.digest: HASH | None = None
        #: The most bytes that the body to come may have; 0: any number.
        self.longest = 0
        self.wall_offset = 0.0
        self.ticks_left = -1
        self.slack = math.inf  # connecting has a time-out of its own
        self._pending: memoryview | None = None
        self._left = self._offset = 0
        #: Whether the server is on this host.
        self._near = False
        self._send_error: OSError | None = None
        self._reader = shared.hub.loop.io(sock.fileno(), READABLE)
        self._writer = shared.hub.loop.io(sock.fileno(), WRITABLE)
        self._reader.start(getcurrent().switch, READABLE)
        shared.connections.add(self)

    def claim(self) -> None:
        """Wake the current greenlet from now on; check no body unless that is asked for."""
        self._reader.callback = getcurrent().switch
        self.check = None
        self.etag = False
        self.longest = 0

    def close(self) -> None:
        """Close the socket; may be called again."""
        self.ticks_left = -1
        self._reader.close()
        self._writer.close()
        self._sock.close()
        self._shared.connections.discard(self)

    def wake(self, event: int) -> None:
        """Wake the greenlet: its time-out has passed (TIMED_OUT), or its client is closed (CANCELLED)."""
        if self._reader.callback is not None:  # it may have been closed in the meantime
            self._reader.callback(event)

    def cancel(self) -> None:
        """Close an idle connection; let the greenlet of a busy one close it in the next turn of the loop."""
        if self.ticks_left < 0:
            self.close()
        else:
            self._hub.loop.run_callback(self.wake, CANCELLED)

    def establish(self, ticks: int) -> None:
        """Wait until the socket is connected; raises OSError."""
        self.ticks_left = ticks
        event = self._wait_either()
        if event == TIMED_OUT:
            raise TimeoutError("no answer to connecting")
        if event == CANCELLED:
            raise make_cancelled_error()
        number = self._sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if number:
            raise OSError(number, os.strerror(number))
        own, peer = self._sock.getsockname(), self._sock.getpeername()
        if own == peer:
            # The kernel may choose, as our local port, the very port to which we connect.
            raise ConnectionRefusedError("connected to itself")
        self._near = is_same_host(own[0], peer[0])

    def _wait_either(self) -> int:
        self._writer.start(self._reader.callback, WRITABLE)
        try:
            event: int = self._hub.switch()
        finally:
            self._writer.stop()
        return event

    def _moved(self, count: int) -> None:
        """Extend the attempt's time-out for ``count`` bytes of a body, up to its initial value."""
        shared = self._shared
        self.slack = min(self.slack + count * shared.ticks_per_byte, shared.request_ticks)

    def _interrupted(self, event: int, what: str) -> AttemptError:
        if event == CANCELLED:
            return make_cancelled_error()
        if self.slack <= 0:
            return AttemptError(REQUEST_TIMEOUT, f"the {what} was not whole within the request's time-out")
        return AttemptError(READ_TIMEOUT, f"no byte of the {what} in time")

    def _send(self, head: bytes, size: int) -> None:
        """Send a request with ``size`` bytes of body; return early when the server responds early."""
        shared = self._shared
        self.ticks_left = shared.network_ticks
        self.slack = shared.request_ticks
        message = head
        if size:
            verifier = shared.verifier
            first, self._offset, self.digest = (
                shared.payload.begin(size) if verifier is None else verifier.begin(self.name, size)
            )
            self._left = size - len(first)
            message = (self._with_etag(head, first) if self.etag else head) + first
        else:
            self.digest = None
        self.sent_at = monotonic()
        if self.stamped:
            self.wall_offset = time() - self.sent_at
        try:
            sent = self._send_first(message) if self._left else self._sock.send(message)
        except _WOULD_BLOCK:
            sent = 0
        except OSError as error:
            self._send_error = error
            sent = len(message)
        if sent < len(message):
            self._pending = memoryview(message)[sent:]
        if self._pending or self._left:
            self._send_rest()

    def _with_etag(self, head: bytes, first: bytes) -> bytes:
        """Return a head with the MD5 of the whole body, which is made for that once more."""
        digest = start_md5(first) if self.digest is None else self.digest.copy()
        self._shared.payload.add_to(digest, self._offset, self._left)
        return b"%bETag: %b\r\n\r\n" % (head[:-2], digest.hexdigest().encode())

    def _send_first(self, message: bytes) -> int:
        """Send the head and the beginning of the body at once; return how much of ``message`` was sent.

        A body of 1 MB takes 0.21 ms this way, 0.28 ms with sendfile alone. For more, sendfile is cheaper.

        For a server on this host the kernel lets the send buffer grow to 4 MB and more, of each connection.
        What is under way then leaves the processor's caches before it is read: 0.26 ms of CPU a MB in place
        of 0.17, and half of it more in the server. To one that is far a buffer without limit is needed.
        """
        if self._near and self._left > PIECE_BYTES:
            self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, NEAR_BUFFER_BYTES)
        piece = self._shared.payload.piece(self._offset, self._left)
        more = self._more if len(piece) < self._left else 0
        sent = self._sock.sendmsg((message, piece), (), more)
        if sent > len(message):
            self._advance(sent - len(message))
        return min(sent, len(message))

    def _advance(self, sent: int) -> None:
        payload = self._shared.payload
        if self.digest is not None:
            payload.add_to(self.digest, self._offset, sent)
        self._left -= sent
        self._offset = (self._offset + sent) % payload.block_bytes

    def _send_rest(self) -> None:
        """Send the rest, piece by piece; return early when the server responds early."""
        shared = self._shared
        self._writer.start(self._reader.callback, WRITABLE)
        try:
            while self._pending or self._left:
                if not self._wait_writable():
                    return
                try:
                    if self._pending:
                        flags = self._more if self._left else 0
                        self._pending = self._pending[self._sock.send(self._pending, flags) :]
                    else:
                        sent = self._send_piece()
                        self._advance(sent)
                        self._moved(sent)
                except _WOULD_BLOCK:
                    continue
                self.ticks_left = shared.network_ticks
        except OSError as error:
            # The server may have responded before it closed. The response says more than this error.
            self._send_error = error
        finally:
            self._writer.stop()

    def _wait_writable(self) -> bool:
        """Return False when the server responds or closes before the whole request is sent."""
        event = self._hub.switch()
        if event == TIMED_OUT and self.slack > 0:
            raise AttemptError(READ_TIMEOUT, "the server took no byte of the body in time")
        if event in {TIMED_OUT, CANCELLED}:
            raise self._interrupted(event, "upload")
        return bool(event == WRITABLE)

    def _send_piece(self) -> int:
        """Send as much as there is room for, or the next piece of the memory file.

        To send from the file takes 0.13 to 0.17 ms of CPU a MB, to copy 0.19 to 0.21. But a server on this
        host gets the pages of the file as they are, and needs a fifth more CPU to read them than to read
        copies, so that it takes less in all.
        """
        payload = self._shared.payload
        if self._near:
            return self._sock.sendmsg(payload.pieces(self._offset, self._left))
        file = payload.file()
        if file is None:
            return self._send_copy()
        return os.sendfile(self._sock.fileno(), file, self._offset, min(self._left, PIECE_BYTES))

    def _send_copy(self) -> int:
        shared = self._shared
        return self._sock.send(shared.payload.piece(self._offset, min(self._left, shared.block_size)))
