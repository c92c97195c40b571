"""One keep-alive connection: sends a request, times and counts the answer.

A request is one ``send``, one switch to the hub and one ``recv_into`` a buffer that all connections
share, on a plain non-blocking socket: 15 to 17 µs of CPU for a GET of 4 kB where wrk takes 11 to 12;
7 to 9 of them are the kernel's. One io watcher stays armed for the connection's life, with the
greenlet that uses the connection as its callback, and between requests it tells when the server
closes.

Nothing here starts a timer: a ``gevent.Timeout`` for each request took another 5 µs. A wait sets
``ticks_left``, a sweeper counts it down for all connections a few times in each time-out
(:class:`ssbench.swift.pool.Sweeper`), and at nought wakes the greenlet. Any byte sets ``ticks_left``
anew; ``slack`` is counted down beside it for the whole attempt and grows only with the bytes of a
body, so that interim answers or a byte a second end too. A process that was stopped misses ticks
and not its time-outs.

Every wait goes through the hub, in long transfers too: one piece, one wait, so that one large
object never keeps the others waiting longer than a piece takes.
"""

from __future__ import annotations

import math
import os
import socket
import ssl
from time import monotonic

from gevent import getcurrent

from ssbench.swift.causes import (
    BAD_RESPONSE,
    CLOSED,
    READ_TIMEOUT,
    REQUEST_TIMEOUT,
    SHORT_BODY,
    AttemptError,
    transfer_fault,
)
from ssbench.swift.http_response import (
    HEAD_LIMIT,
    Answer,
    CarefulReader,
    Head,
    announced_length,
    field_value,
    find_head_end,
    parse_head,
    status_line,
)
from ssbench.swift.payload import BLOCK_BYTES, PIECE_BYTES, STAMP_BYTES
from ssbench.swift.shared import Shared

#: What wakes a greenlet that waits for its connection.
READABLE, WRITABLE, TIMED_OUT, CANCELLED = 1, 2, 3, 4

#: The body of an error is read to its end up to here, so that the connection can be used again.
DRAIN_BYTES = 65536

_WOULD_BLOCK = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
_MSG_MORE = getattr(socket, "MSG_MORE", 0)


def cancelled() -> AttemptError:
    """What ends a request whose client is closed."""
    return AttemptError(CLOSED, "this client was closed")


class Connection:
    """A connected socket in the hands of one greenlet, or at rest in its pool."""

    __slots__ = (
        "_hub",
        "_left",
        "_offset",
        "_pending",
        "_reader",
        "_send_error",
        "_shared",
        "_sock",
        "_writer",
        "idle",
        "received_at",
        "sent_at",
        "slack",
        "ticks_left",
    )

    def __init__(self, sock: socket.socket, shared: Shared, idle: list[Connection]) -> None:
        self._sock = sock
        self._shared = shared
        self._hub = shared.hub
        self.idle = idle
        self.sent_at = self.received_at = 0.0
        self.ticks_left = -1
        self.slack = math.inf  # connecting has a time-out of its own
        self._pending: memoryview | None = None
        self._left = self._offset = 0
        self._send_error: OSError | None = None
        self._reader = shared.hub.loop.io(sock.fileno(), READABLE)
        self._writer = shared.hub.loop.io(sock.fileno(), WRITABLE)
        self._reader.start(getcurrent().switch, READABLE)
        shared.connections.add(self)

    def claim(self) -> None:
        """From now on the current greenlet is woken."""
        self._reader.callback = getcurrent().switch

    def _rest(self) -> None:
        """The answer is whole: wait in the pool for the next request."""
        self.ticks_left = -1
        self._reader.callback = self._on_rest
        self.idle.append(self)

    def _on_rest(self, event: int) -> None:
        # A server that has nothing to say speaks: it closes, or it is out of step. Either way the
        # connection is of no more use.
        if event == CANCELLED or self._speaks_at_rest():
            self.idle.remove(self)
            self.close()

    def _speaks_at_rest(self) -> bool:
        return True

    def close(self) -> None:
        """Close the socket; may be called again."""
        self.ticks_left = -1
        self._reader.close()
        self._writer.close()
        self._sock.close()
        self._shared.connections.discard(self)

    def wake(self, event: int) -> None:
        """Tell the greenlet that its time is over (TIMED_OUT), or the client (CANCELLED)."""
        if self._reader.callback is not None:  # not closed since somebody meant to wake it
            self._reader.callback(event)

    def cancel(self) -> None:
        """Close the connection at rest; one in use is closed by its greenlet, in the loop's next turn."""
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
            raise cancelled()
        number = self._sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if number:
            raise OSError(number, os.strerror(number))
        if self._sock.getsockname() == self._sock.getpeername():
            # A free local port may be given to us as the very port that nobody listens on.
            raise ConnectionRefusedError("connected to itself")

    def _wait_either(self) -> int:
        self._writer.start(self._reader.callback, WRITABLE)
        try:
            event: int = self._hub.switch()
        finally:
            self._writer.stop()
        return event

    def exchange(self, head: bytes, method: str, size: int) -> Answer:
        """Send a request with ``size`` bytes of body, read its answer.

        Raises AttemptError with ``began`` set.
        Afterwards the connection is at rest in its pool, or closed.
        """
        try:
            answer = self._exchange(head, method, size)
        except AttemptError as fault:
            fault.began = self.sent_at
            self.close()
            raise
        except BaseException:  # the greenlet is killed
            self.close()
            raise
        if answer.keep_alive:
            self._rest()
        else:
            self.close()
        return answer

    def _exchange(self, head: bytes, method: str, size: int) -> Answer:
        shared = self._shared
        self._send(head, size)
        received = self._receive()
        first_byte_at = self.received_at
        buffer = shared.buffer
        end = buffer.find(b"\r\n\r\n", 0, received)
        raw = bytes(buffer[: end + 2])
        answer_head = parse_head(raw, method == "HEAD") if end >= 0 else None
        if answer_head is None or answer_head.status < 200:
            data, answer_head, first_byte_at = self._read_head(bytes(buffer[:received]), method)
            if answer_head is None:
                return self._read_carefully(data, method, first_byte_at)
            raw = data[: answer_head.start]
            received = len(data)
        status, length, trans_id = answer_head.status, answer_head.length, answer_head.trans_id
        keep_alive = not (self._left or self._pending or self._send_error)
        left = length - (received - answer_head.start)
        good = 200 <= status < 300
        if left:
            if good or left <= DRAIN_BYTES:
                try:
                    self._discard(left, length)
                except AttemptError as fault:
                    fault.trans_id = trans_id
                    raise
            else:
                keep_alive = False
        if good:
            moved = length if method != "HEAD" else announced_length(field_value(raw, b"content-length"))
            return Answer(
                status, moved, self.sent_at, first_byte_at, self.received_at, trans_id, keep_alive, "", None
            )
        return Answer(
            status,
            length,
            self.sent_at,
            first_byte_at,
            self.received_at,
            trans_id,
            keep_alive,
            status_line(raw),
            field_value(raw, b"retry-after"),
        )

    @property
    def answered(self) -> bool:
        """Whether any byte came since the request was sent."""
        return self.received_at >= self.sent_at

    # Reading

    def _receive(self) -> int:
        """Wait, then receive into the shared buffer; the number of bytes, never 0."""
        while True:
            event = self._hub.switch()
            if event != READABLE:
                raise self._interrupted(event, "answer")
            try:
                received = self._sock.recv_into(self._shared.buffer)
            except BlockingIOError:
                continue
            except OSError as error:
                raise transfer_fault(error) from None
            if not received:
                raise self._ended()
            self.received_at = monotonic()
            self.ticks_left = self._shared.network_ticks
            return received

    def _receive_sink(self, limit: int) -> int:
        """Wait, then receive up to ``limit`` bytes that are only counted; 0 at the end."""
        shared = self._shared
        while True:
            event = self._hub.switch()
            if event != READABLE:
                raise self._interrupted(event, "body")
            try:
                received = self._sock.recv_into(shared.sink, min(limit, len(shared.sink)), shared.sink_flags)
            except BlockingIOError:
                continue
            except OSError as error:
                raise transfer_fault(error) from None
            self.received_at = monotonic()
            self.ticks_left = shared.network_ticks
            return received

    def _discard(self, left: int, length: int) -> None:
        while left > 0:
            received = self._receive_sink(left + 1)  # one more, to see whether there is more
            if not received:
                raise AttemptError(SHORT_BODY, f"{length - left} of {length} bytes")
            left -= received
            self._moved(received)
        if left < 0:
            raise AttemptError(BAD_RESPONSE, f"{-left} bytes or more beyond a body of {length}")

    def _moved(self, count: int) -> None:
        """Give the attempt the time for so many bytes of a body, up to what it had at its beginning."""
        shared = self._shared
        self.slack = min(self.slack + count * shared.ticks_per_byte, shared.request_ticks)

    def _interrupted(self, event: int, what: str) -> AttemptError:
        if event == CANCELLED:
            return cancelled()
        if self.slack <= 0:
            return AttemptError(REQUEST_TIMEOUT, f"the {what} was not whole within the request's time-out")
        return AttemptError(READ_TIMEOUT, f"no byte of the {what} in time")

    def _ended(self) -> AttemptError:
        if self._send_error:
            return transfer_fault(self._send_error)
        return AttemptError(CLOSED, "the server closed the connection before it had answered")

    def _read_head(self, data: bytes, method: str) -> tuple[bytes, Head | None, float]:
        """A head in several packets, or behind answers of 1xx: (what came, head, its first byte).

        The head is None where h11 has to look at it.
        """
        first_byte_at = self.received_at
        interim = 0
        while True:
            end = find_head_end(data)
            if end == -1:
                fresh = not data
                data += self._shared.buffer[: self._receive()]
                first_byte_at = self.received_at if fresh else first_byte_at
                continue
            head = parse_head(data[: end + 2], method == "HEAD") if end >= 0 else None
            if head is None or head.status >= 200:
                return data, head, first_byte_at
            if head.status == 101:
                raise AttemptError(BAD_RESPONSE, "the server changed the protocol")
            interim += head.start
            if interim > HEAD_LIMIT:
                raise AttemptError(BAD_RESPONSE, f"more than {HEAD_LIMIT} bytes of interim answers")
            data = data[head.start :]
            first_byte_at = self.received_at
            if self._left or self._pending:
                self._send_rest()

    def _read_carefully(self, data: bytes, method: str, first_byte_at: float) -> Answer:
        reader = CarefulReader(method)
        try:
            whole = reader.feed(data)
            good = 200 <= reader.status < 300
            while not whole and (good or not reader.status or reader.size <= DRAIN_BYTES):
                size = reader.size
                received = self._receive_more()
                whole = reader.feed(bytes(self._shared.buffer[:received]))
                self._moved(reader.size - size)
                good = 200 <= reader.status < 300
        except AttemptError as fault:
            fault.trans_id = reader.trans_id
            raise
        return Answer(
            reader.status,
            reader.announced if method == "HEAD" else reader.size,
            self.sent_at,
            first_byte_at,
            self.received_at,
            reader.trans_id,
            whole and reader.keep_alive and not (self._left or self._pending or self._send_error),
            "" if good else reader.reason,
            None if good else reader.retry_after,
        )

    def _receive_more(self) -> int:
        """As ``_receive``, with 0 for the end of the connection, which may be the end of a body."""
        try:
            return self._receive()
        except AttemptError as fault:
            if fault.cause == CLOSED:
                return 0
            raise

    # Sending

    _more = _MSG_MORE

    def _send(self, head: bytes, size: int) -> None:
        """Send a request with ``size`` bytes of body; return early when the server answers early."""
        shared = self._shared
        self.ticks_left = shared.network_ticks
        self.slack = shared.request_ticks
        message = head
        if size:
            stamp, self._offset = shared.payload.begin()
            message += stamp[:size]
            self._left = max(0, size - STAMP_BYTES)
        self.sent_at = monotonic()
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

    def _send_first(self, message: bytes) -> int:
        """Send the head and the beginning of the body at once; how much of ``message`` went.

        A body of 1 MB takes 0.21 ms so, 0.28 ms with sendfile alone; beyond, sendfile is cheaper.
        """
        piece = self._shared.payload.piece(self._offset, self._left)
        more = self._more if len(piece) < self._left else 0
        sent = self._sock.sendmsg((message, piece), (), more)
        if sent > len(message):
            self._advance(sent - len(message))
        return min(sent, len(message))

    def _advance(self, sent: int) -> None:
        self._left -= sent
        self._offset = (self._offset + sent) % BLOCK_BYTES

    def _send_rest(self) -> None:
        """Send what did not go at once, piece by piece; ends early when the server answers early."""
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
            # The server may have answered before it closed: the answer tells more.
            self._send_error = error
        finally:
            self._writer.stop()

    def _wait_writable(self) -> bool:
        """False when the server answers, or closes, before the request is whole."""
        event = self._hub.switch()
        if event == TIMED_OUT and self.slack > 0:
            raise AttemptError(READ_TIMEOUT, "the server took no byte of the body in time")
        if event in {TIMED_OUT, CANCELLED}:
            raise self._interrupted(event, "upload")
        return bool(event == WRITABLE)

    def _send_piece(self) -> int:
        """Send from the memory file: 0.1 ms a MB, where sending copies takes 0.2 to 0.3."""
        file = self._shared.payload.file()
        if file is None:
            return self._send_copy()
        return os.sendfile(self._sock.fileno(), file, self._offset, min(self._left, PIECE_BYTES))

    def _send_copy(self) -> int:
        shared = self._shared
        return self._sock.send(shared.payload.piece(self._offset, min(self._left, shared.block_size)))
