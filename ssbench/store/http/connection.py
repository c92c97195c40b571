"""One keep-alive connection: it sends a request, and times and counts the answer.

A request is one ``send``, one switch to the hub and one ``recv_into`` a buffer that all connections share,
on a plain non-blocking socket: 15 to 17 µs of CPU for a GET of 4 kB, where wrk takes 11 to 12, of which the
kernel takes 7 to 9. Between requests the io watcher of the socket reports when the server closes it.

Waiting and sending are in :mod:`ssbench.store.http.sender`; here are receiving, and the exchange as a whole.
"""

from __future__ import annotations

import re
import socket
from time import monotonic, time
from typing import TYPE_CHECKING

from ssbench.store.causes import (
    BAD_RESPONSE,
    CLOSED,
    SHORT_BODY,
    WRONG_SIZE,
    AttemptError,
    make_transfer_error,
)
from ssbench.store.http.arrival import ANCILLARY_BYTES, arrival_time
from ssbench.store.http.etags import describe_wrong_etag, is_md5
from ssbench.store.http.http_response import (
    HEAD_LIMIT,
    OWNER_NAME,
    BodyCheck,
    CarefulReader,
    HttpResponse,
    ResponseHead,
    find_field,
    find_head_end,
    parse_content_length,
    parse_head,
    parse_status_line,
)
from ssbench.store.http.sender import CANCELLED, READABLE, RequestSender
from ssbench.store.http.shared import SharedState

if TYPE_CHECKING:
    from _hashlib import HASH

#: The body of an error is read to its end up to this size, so that the connection can be reused.
DRAIN_BYTES = 65536

#: So many bytes more than a body may have are read, to say how many there are, and to keep the connection.
_BEYOND = 1024 * 1024

#: Whether an answer is for an object in segments, of either kind that Swift has.
_SEGMENTED_HEADER = re.compile(rb"\n(x-static-large-object|x-object-manifest) *:", re.IGNORECASE).search


class HttpConnection(RequestSender):
    """A connection that one greenlet uses, or that is idle in its pool."""

    __slots__ = ("_fault", "_received", "idle", "unchecked")

    #: Whether it continues the TLS session of an earlier connection.
    resumed = False

    def __init__(self, sock: socket.socket, shared: SharedState, idle: list[HttpConnection]) -> None:
        super().__init__(sock, shared)
        self.idle = idle
        #: What :meth:`resume` finds: bytes received into the shared buffer, or how the attempt failed.
        self._received = 0
        self._fault: AttemptError | None = None
        #: Whether the last answer had no ETag by which a body would have been checked.
        self.unchecked = False

    def rest(self) -> None:
        """Put the connection into its pool, after a complete response."""
        self.ticks_left = -1
        self._reader.callback = self._on_rest
        self.idle.append(self)

    def _on_rest(self, event: int) -> None:
        # Without a request the server can only close the connection, or send what was not asked for. Either
        # way the connection is useless.
        if event == CANCELLED or self._speaks_at_rest():
            self.idle.remove(self)
            self.close()

    def _speaks_at_rest(self) -> bool:
        return True

    def exchange(self, head: bytes, method: str, size: int) -> HttpResponse:
        """Send a request with ``size`` bytes of body and read the response.

        Raises AttemptError. Afterwards the connection is idle in its pool, or closed.
        """
        try:
            self._send(head, size)
            answer = self._read(self._receive(), method)
        except BaseException:  # a fault, or the greenlet is killed
            self.close()
            raise
        return self._end(answer)

    def exchange_briefly(  # noqa: PLR0911 - each of these ways is taken up by resume()
        self, message: bytes, digest: HASH | None, left: int = 0, offset: int = 0
    ) -> ResponseHead | None:
        """Do what :meth:`exchange` does where all is as it nearly always is, in less time.

        ``message`` is a whole request, ``digest`` the MD5 of its body, where that is to be known. ``left``
        bytes of the body from ``offset`` on come after it. Usual is that it is sent at once, and that one
        read brings the whole answer: a usual head, a success, the right ETag. Then the head is returned, and
        the connection stays with its greenlet until the next exchange, or :meth:`rest`.
        Where anything else happens None is returned, and :meth:`resume` has to be called next, without a
        wait between.
        """
        shared = self._shared
        self.ticks_left = shared.network_ticks
        self.slack = shared.request_ticks
        self.digest = digest
        self._received = 0
        self.sent_at = now = monotonic()
        self.wall_offset = time() - now
        try:
            if left:
                self._left, self._offset = left, offset
                sent = self._send_first(message)
            else:
                sent = self._sock.send(message)
        except BlockingIOError:
            sent = 0
        except OSError as error:
            self._send_error = error
            return None
        if sent < len(message):
            self._pending = memoryview(message)[sent:]
            return None
        if left and self._left:
            return None
        try:
            self._received = received = self._receive()
        except AttemptError as fault:
            self._fault = fault
            return None
        except BaseException:  # the greenlet is killed
            self.close()
            raise
        buffer = shared.buffer
        end = buffer.find(b"\r\n\r\n", 0, received)
        if end < 0:
            return None
        raw = bytes(buffer[: end + 2])
        head = parse_head(raw, False)
        if head is None or not 200 <= head.status < 300 or received != head.start + head.length:
            return None
        self.unchecked = digest is not None and digest.hexdigest().encode() not in raw
        if self.unchecked and b"\netag:" in raw.lower():
            return None
        return head

    def resume(self, method: str) -> HttpResponse:
        """Go on, as :meth:`exchange` does, where :meth:`exchange_briefly` found something unusual."""
        try:
            if self._fault is not None:
                fault, self._fault = self._fault, None
                raise fault
            if (self._pending or self._left) and self._send_error is None:
                self._send_rest()
            answer = self._read(self._received or self._receive(), method)
        except BaseException:
            self.close()
            raise
        return self._end(answer)

    def _end(self, answer: HttpResponse) -> HttpResponse:
        if answer.keep_alive:
            self.rest()
        else:
            self.close()
        return answer

    def _read(self, received: int, method: str) -> HttpResponse:
        """Read an answer whose first bytes are in the shared buffer."""
        first_byte_at = self.received_at
        buffer = self._shared.buffer
        data = b""
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
        if good and self.check is not None:
            self.check.feed((data or bytes(buffer[:received]))[answer_head.start :])
        if left:
            if good or left <= DRAIN_BYTES:
                try:
                    if good:
                        self._look_at_size(length)
                    self._discard(left, length, self.check if good else None)
                except AttemptError as fault:
                    fault.trans_id, fault.status = trans_id, status
                    raise
            else:
                keep_alive = False
        if good:
            owner, moved = None, length
            if method == "HEAD":
                owner = find_field(raw, OWNER_NAME)
                moved = parse_content_length(find_field(raw, b"content-length"))
            return HttpResponse(
                status,
                moved,
                self.sent_at,
                first_byte_at,
                self.received_at,
                trans_id,
                keep_alive,
                "",
                None,
                self._wrong_etag(raw, None),
                owner,
                raw,
                self._unsent(),
                self.unchecked,
            )
        return HttpResponse(
            status,
            length,
            self.sent_at,
            first_byte_at,
            self.received_at,
            trans_id,
            keep_alive,
            parse_status_line(raw),
            find_field(raw, b"retry-after"),
        )

    @property
    def answered(self) -> bool:
        """Return whether any byte was received since the request was sent."""
        return self.received_at >= self.sent_at

    # Reading

    def _receive(self) -> int:
        """Wait, then receive into the shared buffer; return the number of bytes, never 0."""
        while True:
            event = self._hub.switch()
            if event != READABLE:
                raise self._interrupted(event, "answer")
            try:
                if self.stamped:
                    received, told, _, _ = self._sock.recvmsg_into(self._shared.buffers, ANCILLARY_BYTES)
                else:
                    received, told = self._sock.recv_into(self._shared.buffer), None
            except BlockingIOError:
                continue
            except OSError as error:
                raise make_transfer_error(error) from None
            if not received:
                raise self._ended()
            now = monotonic()
            self.received_at = (
                arrival_time(told[0][2], now, self.sent_at, self.wall_offset, self.received_at)
                if told
                else now
            )
            self.ticks_left = self._shared.network_ticks
            return received

    def _receive_sink(self, limit: int) -> int:
        """Wait, then receive and drop up to ``limit`` bytes; return their number, 0 at the end."""
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
                raise make_transfer_error(error) from None
            self.received_at = monotonic()
            self.ticks_left = shared.network_ticks
            return received

    def _discard(self, left: int, length: int, check: BodyCheck | None) -> None:
        while left > 0:
            if check is None:
                received = self._receive_sink(left + 1)  # one more, to see whether there is more
            else:
                received = self._receive_more()
                check.feed(bytes(memoryview(self._shared.buffer)[: min(received, left)]))
            if not received:
                raise AttemptError(SHORT_BODY, f"{length - left} of {length} bytes")
            left -= received
            self._moved(received)
        if left < 0:
            raise AttemptError(BAD_RESPONSE, f"{-left} bytes or more beyond a body of {length}")

    def _look_at_size(self, size: int) -> None:
        """Raise AttemptError where a body of ``size`` bytes is too long to be read to its end.

        It may have no end, and no time-out comes while it moves.
        """
        if self.longest and size > self.longest + _BEYOND:
            raise AttemptError(WRONG_SIZE, f"{size} bytes or more of a body of {self.longest} at most")

    def _ended(self) -> AttemptError:
        if self._send_error:
            return make_transfer_error(self._send_error)
        return AttemptError(CLOSED, "the server closed the connection before it had answered")

    def _read_head(self, data: bytes, method: str) -> tuple[bytes, ResponseHead | None, float]:
        """Read a head that came in several packets or after 1xx responses.

        Returns the bytes received, the head, and the time of its first byte. The head is None where h11 has
        to parse it.
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

    def _read_carefully(self, data: bytes, method: str, first_byte_at: float) -> HttpResponse:
        reader = CarefulReader(method, self.check)
        try:
            whole = reader.feed(data)
            good = 200 <= reader.status < 300
            while not whole and (good or not reader.status or reader.size <= DRAIN_BYTES):
                size = reader.size
                received = self._receive_more()
                whole = reader.feed(bytes(self._shared.buffer[:received]))
                self._moved(reader.size - size)
                good = 200 <= reader.status < 300
                if good:
                    self._look_at_size(reader.size)
        except AttemptError as fault:
            fault.trans_id, fault.status = reader.trans_id, reader.status
            raise
        return HttpResponse(
            reader.status,
            reader.announced if method == "HEAD" else reader.size,
            self.sent_at,
            first_byte_at,
            self.received_at,
            reader.trans_id,
            whole and reader.keep_alive and not (self._left or self._pending or self._send_error),
            "" if good else reader.reason,
            None if good else reader.retry_after,
            self._wrong_etag(reader.head, reader.etag) if good and whole else None,
            reader.owner if method == "HEAD" else None,
            reader.head,
            self._unsent(),
            good and whole and self.unchecked,
        )

    def _unsent(self) -> int:
        """Return how many bytes of the request are not sent, at the time of an answer: all of its body."""
        return self._left + len(self._pending or b"")

    def _wrong_etag(self, raw: bytes, etag: str | None) -> str | None:
        """Say what is wrong with the ETag of an answer, given by itself or within its head.

        Sets ``unchecked``.
        """
        self.unchecked = False
        if self.digest is None and self.check is None:
            return None
        if self._left or self._pending:
            return None  # it answered before it had all
        if self.digest is not None:
            expected, what = self.digest.hexdigest(), "the bytes that were sent"
        elif self.check is not None:
            if self.check.md5 is None:
                return None
            expected, what = self.check.md5.hexdigest(), "the bytes that came"
        if expected.encode() in raw:
            return None  # nearly always
        if self.digest is None and _SEGMENTED_HEADER(raw):
            return None  # its ETag is not the MD5 of its bytes
        said = find_field(raw, b"etag") if etag is None else etag
        self.unchecked = not is_md5(said)
        return describe_wrong_etag(said, expected, what)

    def _receive_more(self) -> int:
        """Receive as ``_receive`` does, but return 0 at the end of the connection, which may end a body."""
        try:
            return self._receive()
        except AttemptError as fault:
            if fault.cause == CLOSED:
                return 0
            raise
