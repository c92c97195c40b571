"""One keep-alive connection: it sends a request, and times and counts the answer.

A request is one ``send``, one switch to the hub and one ``recv_into`` a buffer that all connections share, on
a plain non-blocking socket: 15 to 17 µs of CPU for a GET of 4 kB, where wrk takes 11 to 12, of which the
kernel takes 7 to 9. Between requests the io watcher of the socket reports when the server closes it.
:class:`RequestSender` waits and sends; :class:`HttpConnection` receives, and carries out the exchange as a
whole.
"""

from __future__ import annotations

import contextlib
import math
import mmap
import os
import re
import socket
import ssl
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from time import monotonic, time
from typing import TYPE_CHECKING, Any, Protocol

from gevent import getcurrent
from gevent.event import Event

from ssbench.scenario.operations import SMALL_BYTES
from ssbench.store.contract import (
    BAD_RESPONSE,
    CLOSED,
    READ_TIMEOUT,
    REQUEST_TIMEOUT,
    SHORT_BODY,
    WRONG_SIZE,
    AttemptError,
    BodyPiece,
    make_transfer_error,
)
from ssbench.store.http.bodies import (
    PIECE_BYTES,
    STAMP_BYTES,
    BodyFrames,
    BodySource,
    BodyVerifier,
    ChosenBody,
    LaterMd5,
    find_md5,
    find_owner,
    number_object,
    start_md5,
)
from ssbench.store.http.http_response import (
    HEAD_LIMIT,
    BodyCheck,
    CarefulReader,
    HttpResponse,
    KnownHeads,
    ResponseHead,
    find_field,
    find_head_end,
    parse_content_length,
    parse_head,
    parse_status_line,
)

if TYPE_CHECKING:
    from _hashlib import HASH

#: Of asm-generic/socket.h, which all machines use that Python is likely to meet on Linux but these.
_SO_TIMESTAMPNS = 35
_OTHER_ARCHITECTURES = ("alpha", "mips", "parisc", "sparc")

#: Room for one control message with a timespec; the kernel has no other to give.
ANCILLARY_BYTES = socket.CMSG_SPACE(16)

#: Two clocks that differ by more since the request was sent (seconds) did not go alike.
_MAX_CLOCK_STEP = 0.0005

_unpack_timespec = struct.Struct("@qq").unpack


def ask_for_arrivals(sock: socket.socket) -> bool:
    """Let the kernel tell when bytes arrive; return whether it may."""
    # Where the kernel's long has 32 bits, this number gives a timespec of 8 bytes.
    wide = sys.maxsize > 2**32
    if sys.platform != "linux" or not wide or os.uname().machine.startswith(_OTHER_ARCHITECTURES):
        return False
    try:
        sock.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    except OSError:
        return False
    return True


def arrival_time(stamp: bytes, now: float, sent_at: float, wall_offset: float, before: float) -> float:
    """Return when bytes arrived that were read ``now``, by the monotonic clock.

    An answer arrives before its greenlet reads it. Between the two lies what the loop was doing for others,
    which grows with the number of users. So this uses the kernel's time stamp (SO_TIMESTAMPNS). That is of
    the wall clock, which can be stepped: it is believed only where that clock went as the monotonic one did
    since the request was sent.

    ``stamp`` is the kernel's timespec, ``wall_offset`` what the wall clock was ahead of the monotonic one
    when the request was sent, at ``sent_at``. ``before`` is what this returned for the bytes that were read
    before these; no later ones arrived earlier. Returns ``now`` where the stamp cannot be believed.
    """
    seconds, nanoseconds = _unpack_timespec(stamp)
    # Each time the wall clock is read last: a pause before that makes it seem further ahead than it is.
    ahead = time() - now
    if not -_MAX_CLOCK_STEP < ahead - wall_offset < _MAX_CLOCK_STEP:
        # Another process or thread may have had the core between the two readings.
        then = monotonic()
        ahead = time() - then
        if not -_MAX_CLOCK_STEP < ahead - wall_offset < _MAX_CLOCK_STEP:
            return now
    arrived: float = seconds - (ahead if ahead < wall_offset else wall_offset) + nanoseconds * 1e-9
    if not sent_at <= arrived < now:
        return now
    # Two reads may be of one segment, with one stamp: the difference of the clocks is read for each, and
    # varies by some nanoseconds.
    return arrived if arrived > before else before


# -- What all connections share --------------------------------------------------------------------

#: What one read takes at most of an answer from its head on. Of 64 KiB an object of that size did not fit
#: with its head, and took two reads.
BUFFER_BYTES = 1 << 18

#: Of a body of more than so many bytes, which are only counted, the first read takes no more than the head
#: needs, because to drop the rest is cheaper than to copy it: of 64 KiB 0.86 of the CPU, of 32 KiB 1.05.
_DROPPED_BYTES = 48 * 1024
_FIRST_BYTES = 4096


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

    Bytes that are only counted are received into ``sink`` with ``sink_flags``. With MSG_TRUNC the kernel
    drops them, and the sink is memory that is never touched: 0.17 ms of CPU a MB, where receiving takes 0.24
    in pieces of 1 MB and 0.48 in pieces of 64 kB.

    Heads, and bodies that are looked at, are received into ``buffer``.
    """

    hub: Any
    payload: BodySource
    block_size: int
    connect_ticks: int
    network_ticks: int
    request_ticks: int  # those that an attempt has
    ticks_per_byte: float  # those that each byte of body that moves gives back to the attempt
    sink_flags: int
    verifier: BodyVerifier | None = None
    #: Whether the last upload that was to be checked was answered with an MD5 as ETag.
    has_md5s: bool = True
    #: Set when the client is closed; every wait for something else also waits for it.
    closing: Event = field(default_factory=Event)
    sink: mmap.mmap = field(init=False)
    sink_view: memoryview = field(init=False)
    buffer: bytearray = field(default_factory=lambda: bytearray(BUFFER_BYTES))
    buffers: tuple[bytearray] = field(init=False)
    first_buffers: tuple[memoryview] = field(init=False)
    heads: KnownHeads = field(default_factory=KnownHeads)
    connections: set[TimedConnection] = field(default_factory=set)
    #: Address of each connection that could not be made to a host with several, until it is taken.
    failed: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.buffers = (self.buffer,)
        self.first_buffers = (memoryview(self.buffer)[:_FIRST_BYTES],)
        self.sink = mmap.mmap(-1, PIECE_BYTES if self.sink_flags else self.block_size)
        self.sink_view = memoryview(self.sink)

    def sum_up(self, digest: HASH, offset: int, left: int) -> HASH | LaterMd5:
        """Add a piece of the payload to an MD5 while the store is at work, or later where that tells none."""
        if not self.has_md5s:
            return LaterMd5(digest, self.payload, offset, left)
        self.payload.add_to(digest, offset, left)
        return digest

    def choose_body(self, size: int, name: bytes, piece: BodyPiece | None) -> ChosenBody:
        """Return the next body, of ``size`` bytes; with --verify, that of object ``name`` or a piece of it.

        Without, one that begins a piece says of which object it is.
        """
        verifier = self.verifier
        if verifier is None:
            begins = piece is not None and not piece.first
            return self.payload.begin(size, number_object(piece.path) if piece and begins else None)
        if piece is None:
            return verifier.begin(name, size)
        return verifier.begin_piece(piece.path.encode(), piece.version, piece.first, size)


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


# -- Waiting and sending ---------------------------------------------------------------------------


#: What wakes a greenlet that waits for its socket.
READABLE, WRITABLE, TIMED_OUT, CANCELLED = 1, 2, 3, 4

_WOULD_BLOCK = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
_MSG_MORE = getattr(socket, "MSG_MORE", 0)

#: Of a large body so many bytes may be under way to a server on this host. Linux doubles it.
NEAR_BUFFER_BYTES = 1 << 19


#: So large a window is offered at once to a server on this host.
_NEAR_WINDOW_BYTES = 1 << 19


def open_window(sock: socket.socket) -> None:
    """Offer a window of more than the 64 kB or so with which the kernel begins, at the next answers.

    Otherwise the server stops in the middle of a larger answer, until this process has had its turn. The
    kernel makes room for as much as is waited for, and keeps it; unlike SO_RCVBUF that sets no limit.
    """
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, _NEAR_WINDOW_BYTES)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)


def is_same_host(own: str, peer: str) -> bool:
    """Return whether these addresses of a connection are of one host."""
    return own == peer or (own.startswith("127.") and peer.startswith("127."))


#: The state of a connection that only the other side has closed, of linux/tcp_states.h, and where in a
#: ``struct tcp_info`` that is, and how many segments are not acknowledged.
_CLOSE_WAIT = 8
_unpack_tcp_info = struct.Struct("=B23xI").unpack


def is_acknowledged(sock: socket.socket) -> bool:
    """Return whether the other side closed a connection after it had received all that was sent.

    False where that is not known, and where the connection was reset.
    """
    try:
        state, unacknowledged = _unpack_tcp_info(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 28))
    except (AttributeError, OSError, struct.error):  # not on Linux
        return False
    return bool(state == _CLOSE_WAIT and not unacknowledged)


def make_cancelled_error() -> AttemptError:
    """Return the error of a request whose client is closed."""
    return AttemptError(CLOSED, "this client was closed")


class RequestSender:
    """A non-blocking socket that one greenlet at a time uses.

    A wait is one switch to the hub. One io watcher stays armed for the life of the socket; its callback is
    the greenlet that uses it. Nothing here starts a timer, because a ``gevent.Timeout`` for each request
    costs another 5 µs. A wait sets ``ticks_left``, and a sweeper counts it down for all sockets a few times
    in each time-out (:class:`~.pool.TimeoutSweeper`) and wakes the greenlet at 0. Every byte sets
    ``ticks_left`` anew. ``slack`` is counted down beside it for the whole attempt and grows only with the
    bytes of a body, so that a server that sends interim answers, or a byte a second, is given up too. A
    process that was stopped misses ticks but none of its time-outs.

    Every wait goes through the hub, in long transfers too: one piece, one wait; the first piece of a body may
    follow its head without one. So one large object never keeps the others waiting for longer than a piece
    takes.
    """

    __slots__ = (
        "_frames",
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
        "body",
        "check",
        "digest",
        "longest",
        "name",
        "piece",
        "received_at",
        "sending",
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
        #: Seconds until the last request was sent whole, or answered before that; 0: it was sent at once. One
        #: that went the short way keeps that of an earlier request, until it is resumed.
        self.sending = 0.0
        #: The address, where its host has several.
        self.address = ""
        #: Whether the kernel reports when bytes arrive; how far the wall clock was ahead at ``sent_at``.
        self.stamped = False
        #: With --verify: the name of the object.
        self.name = b""
        #: With --verify: what the next body is a piece of.
        self.piece: BodyPiece | None = None
        #: The next body and its frames, where the head of the request says something of it; None: any body.
        self.body: tuple[ChosenBody, BodyFrames] | None = None
        #: The check of the body that is to come; the MD5 of the one that was sent, where it is to be known.
        self.check: BodyCheck | None = None
        self.digest: HASH | LaterMd5 | None = None
        #: The most bytes that the body to come may have; 0: any number.
        self.longest = 0
        self.wall_offset = 0.0
        self.ticks_left = -1
        self.slack = math.inf  # connecting has a time-out of its own
        self._pending: memoryview | None = None
        self._left = self._offset = 0
        #: What comes after these bytes of the body, the next one last.
        self._frames: BodyFrames = []
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
        self.body = None
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
        if self._near and sys.platform == "linux":
            open_window(self._sock)

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
        if self.body is not None:
            message = self._begin_framed(head, *self.body)
        elif size:
            first, self._offset, self.digest = shared.choose_body(size, self.name, self.piece)
            self._left = size - len(first)
            message = head + first
        else:
            self.digest = None
        self.sending = 0.0
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
        if self._unfinished:
            self._send_rest()

    def _begin_framed(self, head: bytes, body: ChosenBody, frames: BodyFrames) -> bytes:
        """Return what is sent first of a request whose body was chosen before; it may be sent once more."""
        first, self._offset, digest = body
        self.digest = None if digest is None else digest.copy()
        self._frames = frames[::-1]
        before, count = self._frames.pop()
        self._left = count - len(first)
        message = head + before + first
        while not self._left and self._frames:
            before, self._left = self._frames.pop()
            message += before
        return message

    @property
    def _unfinished(self) -> bool:
        """Whether something of the request is left to send."""
        return bool(self._left or self._pending or self._frames)

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
        whole = len(piece) == self._left
        ending = self._frames.pop()[0] if whole and len(self._frames) == 1 else b""
        more = 0 if whole and not self._frames else self._more
        sent = self._sock.sendmsg((message, piece, ending) if ending else (message, piece), (), more)
        size = len(message)
        if ending:
            beyond = sent - size - len(piece)
            if beyond < 0:
                self._frames.append((ending, 0))
            else:
                sent -= beyond
                self._pending = memoryview(ending)[beyond:]
        if sent <= size:
            return sent
        self._advance(sent - size)
        return size

    def _advance(self, sent: int) -> None:
        payload = self._shared.payload
        if self.digest is not None:
            if TYPE_CHECKING:
                assert not isinstance(self.digest, LaterMd5)  # of what was sent at once
            payload.add_to(self.digest, self._offset, sent)
        self._left -= sent
        self._offset = (self._offset + sent) % payload.block_bytes

    def _send_rest(self) -> None:
        """Send the rest, piece by piece; return early when the server responds early."""
        shared = self._shared
        self._writer.start(self._reader.callback, WRITABLE)
        try:
            while self._pending or self._left or self._begin_frame():
                if not self._wait_writable():
                    return
                try:
                    if self._pending:
                        flags = self._more if self._left or self._frames else 0
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
            self.sending = monotonic() - self.sent_at

    def _begin_frame(self) -> bool:
        """Go on with what comes after these bytes of the body; return False where that is nothing."""
        if not self._frames:
            return False
        before, self._left = self._frames.pop()
        self._pending = memoryview(before)
        return True

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


# -- Receiving, and the whole exchange -------------------------------------------------------------


#: The body of an error is read to its end up to this size, so that the connection can be reused.
DRAIN_BYTES = 65536

#: So many bytes more than a body may have are read, to say how many there are, and to keep the connection.
_BEYOND = 1024 * 1024

# Of heads in lower case: a pattern without a flag begins with a constant, which is looked for as such.

#: Whether an answer is for an object in segments, of either kind that Swift has.
_SEGMENTED_HEADER = re.compile(rb"\nx-(?:static-large-object|object-manifest) *:").search


class HttpConnection(RequestSender):
    """A connection that one greenlet uses, or that is idle in its pool."""

    __slots__ = (
        "_fault",
        "_received",
        "acknowledged",
        "first_byte_at",
        "idle",
        "raw_head",
        "sampled",
        "unchecked",
    )

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
        #: Whether the body of the answer that is to come the short way is of the sample that is checked.
        self.sampled = False
        #: Of the last answer that came the short way: when it began to arrive; the head of a verified one.
        self.first_byte_at = 0.0
        self.raw_head = b""
        #: Of an exchange that failed: whether the server had its request before it closed the connection.
        self.acknowledged = False

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
            self._fail()
            raise
        return self._end(answer)

    def exchange_briefly(  # noqa: PLR0911 - each of these ways is taken up by resume()
        self,
        message: bytes,
        digest: HASH | None,
        left: int = 0,
        offset: int = 0,
        expected: int = -1,
        name: bytes | None = None,
        sampled: bool = False,
        ending: bytes = b"",
    ) -> ResponseHead | None:
        """Do what :meth:`exchange` does where all is as it nearly always is, in less time.

        ``message`` is a whole request, ``digest`` the MD5 of its body, where that is to be known. ``left``
        bytes of the body from ``offset`` on, PIECE_BYTES at most, come after it, and then ``ending``. Of a
        read ``expected`` is how many bytes of body are right, 0 any number, and ``name``, where the body is
        verified, that of the object; where it is ``sampled``, its MD5 is compared with the ETag. Usual is
        that the request is sent at once, and that there is a usual head, a success, the right body and ETag;
        all but a body that is only counted has to come at once. Then the head is returned, and the connection
        stays with its greenlet until the next exchange, or :meth:`rest`. Where anything else happens None is
        returned, and :meth:`resume` has to be called next, without a wait between.
        """
        shared = self._shared
        self.ticks_left = shared.network_ticks
        self.slack = shared.request_ticks
        self.digest, self.sampled, self._received = digest, sampled, 0
        self.sent_at = now = monotonic()
        self.wall_offset = time() - now
        try:
            if left:
                piece = shared.payload.piece(offset, left)
                sent = self._sock.sendmsg((message, piece, ending) if ending else (message, piece))
            else:
                sent = self._sock.send(message)
        except BlockingIOError:
            sent = 0
        except OSError as error:
            self._send_error, self._left = error, left
            return None
        if sent < len(message) + left + len(ending):
            self._keep_rest(message, sent, left, offset, ending)
            return None
        if left and digest is not None:
            self.digest = shared.sum_up(digest, offset, left)
        try:
            self._received = received = self._receive(
                shared.first_buffers
                if expected > _DROPPED_BYTES and name is None and not sampled
                else shared.buffers
            )
        except AttemptError as fault:
            self._fault = fault
            return None
        except BaseException:  # the greenlet is killed
            self.close()
            raise
        head = shared.heads.parse(shared.buffer, received if received < HEAD_LIMIT else HEAD_LIMIT)
        if head is None or not 200 <= head.status < 300:
            return None
        self.first_byte_at = self.received_at
        missing = head.start + head.length - received
        if missing:
            reads_on = head.status == 200 and expected in {0, head.length} and name is None and not sampled
            return head if reads_on and missing > 0 and self._read_on(missing, head, received) else None
        self.unchecked = False
        if self.digest is not None:
            return head if self._is_acknowledged(self.digest, head) else None
        if sampled:
            return head if self._agrees_with_etag(head, received) else None
        return head if name is None or self._is_as_written(name, head, received) else None

    def _keep_rest(self, message: bytes, sent: int, left: int, offset: int, ending: bytes) -> None:
        """Note what is not sent yet of what :meth:`exchange_briefly` was given."""
        beyond = sent - len(message)
        self._left, self._offset, self._frames = left, offset, [(ending, 0)] if ending else []
        if beyond < 0:
            self._pending = memoryview(message)[sent:]
        elif beyond > left:
            self._pending, self._frames = memoryview(ending)[beyond - left :], []
        self._advance(min(max(0, beyond), left))

    def _read_on(self, missing: int, head: ResponseHead, received: int) -> bool:
        """Read the rest of a body; where that fails :meth:`resume` says why."""
        self.unchecked = False
        try:
            # What filled its buffer is likely to go on.
            self._discard(missing, head.length, None, waits=received not in {_FIRST_BYTES, BUFFER_BYTES})
        except AttemptError as fault:
            fault.trans_id, fault.status = head.trans_id, head.status
            self._fault = fault
            return False
        except BaseException:  # the greenlet is killed
            self.close()
            raise
        return True

    def _is_acknowledged(self, digest: HASH | LaterMd5, head: ResponseHead) -> bool:
        """Whether the ETag of an upload's answer is that of what was sent, or there is none."""
        shared = self._shared
        raw = bytes(shared.buffer[: head.start - 2])
        # Nearly always it is, and takes half as long to find where it is known.
        if shared.has_md5s and digest.hexdigest().encode() in raw:
            return True
        right = self._find_wrong_etag(raw, digest.hexdigest) is None
        shared.has_md5s = not self.unchecked
        return right

    def _agrees_with_etag(self, head: ResponseHead, end: int) -> bool:
        """Whether the body in the shared buffer is that of the ETag, where that says anything of it."""
        buffer = memoryview(self._shared.buffer)
        digest = start_md5(buffer[head.start : end])
        return self._find_wrong_etag(bytes(buffer[: head.start - 2]), digest.hexdigest) is None

    def _is_as_written(self, name: bytes, head: ResponseHead, end: int) -> bool:
        """Whether the body in the shared buffer is one of the object, and the ETag is not that of another."""
        shared = self._shared
        verifier = shared.verifier
        if TYPE_CHECKING:
            assert verifier is not None
        self.raw_head = raw = bytes(shared.buffer[: head.start - 2])
        body = memoryview(shared.buffer)[head.start : end]
        if not verifier.is_of(name, body):
            return False
        return self._find_wrong_etag(raw, partial(verifier.find_md5_of, body)) is None

    def stamp_of_body(self, head: ResponseHead) -> bytes:
        """Return the stamp of a whole body that came the short way, before anything else comes."""
        start = head.start if head.length > SMALL_BYTES else head.start + head.length - STAMP_BYTES
        return bytes(self._shared.buffer[max(start, head.start) : start + STAMP_BYTES])

    def begin_of_body(self) -> bytes:
        """Return the first bytes of a verified body that came the short way, before anything else comes."""
        start = len(self.raw_head) + 2
        return bytes(self._shared.buffer[start : start + STAMP_BYTES])

    def resume(self, method: str) -> HttpResponse:
        """Go on, as :meth:`exchange` does, where :meth:`exchange_briefly` found something unusual."""
        self.sending = 0.0
        try:
            if self._fault is not None:
                fault, self._fault = self._fault, None
                raise fault
            if self._unfinished and self._send_error is None:
                self._send_rest()
            answer = self._read(self._received or self._receive(), method)
        except BaseException:
            self._fail()
            raise
        return self._end(answer)

    def _fail(self) -> None:
        self.acknowledged = is_acknowledged(self._sock)
        self.close()

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
        end = buffer.find(b"\r\n\r\n", 0, min(received, HEAD_LIMIT))
        raw = bytes(buffer[: end + 2])
        answer_head = parse_head(raw, method == "HEAD") if end >= 0 else None
        if answer_head is None or answer_head.status < 200:
            data, answer_head, first_byte_at = self._read_head(bytes(buffer[:received]), method)
            if answer_head is None:
                return self._read_carefully(data, method, first_byte_at)
            raw = data[: answer_head.start]
            received = len(data)
        status, length, trans_id = answer_head.status, answer_head.length, answer_head.trans_id
        keep_alive = not (self._unfinished or self._send_error)
        left = length - (received - answer_head.start)
        good = 200 <= status < 300
        if good and self.check is not None:
            self.check.feed(bytes(memoryview(data or buffer)[answer_head.start : received]))
        if not good and length > DRAIN_BYTES:
            # Even where nothing is left: how much a first read brings is chance.
            keep_alive = False
        elif left:
            try:
                if good:
                    self._look_at_size(length)
                self._discard(left, length, self.check if good else None)
            except AttemptError as fault:
                fault.trans_id, fault.status = trans_id, status
                raise
        if good:
            owner, moved = None, length
            announced: int | None = length
            if method == "HEAD":
                owner = find_owner(raw)
                announced = parse_content_length(find_field(raw, b"content-length"))
                moved = announced or 0
            return HttpResponse(
                status=status,
                size=moved,
                sent_at=self.sent_at,
                first_byte_at=first_byte_at,
                last_byte_at=self.received_at,
                trans_id=trans_id,
                keep_alive=keep_alive,
                wrong_etag=self._wrong_etag(raw),
                owner=owner,
                head=raw,
                unsent=self._unsent(),
                unchecked=self.unchecked,
                unsized=announced is None,
                sending=self.sending,
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

    def _receive(self, buffers: tuple[bytearray | memoryview] | None = None) -> int:
        """Wait, then receive into the shared buffer; return the number of bytes, never 0."""
        while True:
            event = self._hub.switch()
            if event != READABLE:
                raise self._interrupted(event, "answer")
            try:
                if self.stamped:
                    received, told, _, _ = self._sock.recvmsg_into(
                        buffers or self._shared.buffers, ANCILLARY_BYTES
                    )
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

    def _receive_sink(self, limit: int, waits: bool = True) -> int:
        """Wait, then receive and drop up to ``limit`` bytes; return their number, 0 at the end.

        Where it does not wait first, it does where nothing is there.
        """
        shared = self._shared
        while True:
            event = self._hub.switch() if waits else READABLE
            waits = True
            if event != READABLE:
                raise self._interrupted(event, "body")
            try:
                if self.stamped:
                    received, told, _, _ = self._sock.recvmsg_into(
                        (shared.sink_view[:limit],), ANCILLARY_BYTES, shared.sink_flags
                    )
                else:
                    size = min(limit, len(shared.sink))
                    received, told = self._sock.recv_into(shared.sink, size, shared.sink_flags), None
            except BlockingIOError:
                continue
            except OSError as error:
                raise make_transfer_error(error) from None
            now = monotonic()
            self.received_at = (
                arrival_time(told[0][2], now, self.sent_at, self.wall_offset, self.received_at)
                if told
                else now
            )
            self.ticks_left = shared.network_ticks
            return received

    def _discard(self, left: int, length: int, check: BodyCheck | None, *, waits: bool = True) -> None:
        while left > 0:
            if check is None:
                received = self._receive_sink(left + 1, waits)  # one more, to see whether there is more
                waits = True
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
            if self._unfinished:
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
            status=reader.status,
            size=(reader.announced or 0) if method == "HEAD" else reader.size,
            sent_at=self.sent_at,
            first_byte_at=first_byte_at,
            last_byte_at=self.received_at,
            trans_id=reader.trans_id,
            keep_alive=whole
            and reader.keep_alive
            # Not by what came with the first reads: that is chance.
            and (good or reader.size <= DRAIN_BYTES)
            and not (self._unfinished or self._send_error),
            detail="" if good else reader.reason,
            retry_after=None if good else reader.retry_after,
            wrong_etag=self._wrong_etag(reader.head) if good and whole else None,
            owner=reader.owner if method == "HEAD" else None,
            head=reader.head,
            unsent=self._unsent(),
            unchecked=good and whole and self.unchecked,
            unsized=method == "HEAD" and reader.announced is None,
            sending=self.sending,
        )

    def _unsent(self) -> int:
        """Return how many bytes of the request are not sent, at the time of an answer: all of its body."""
        return self._left + len(self._pending or b"") + sum(count for _, count in self._frames)

    def _wrong_etag(self, raw: bytes) -> str | None:
        """Say what is wrong with the ETag of an answer with this head; sets ``unchecked``."""
        self.unchecked = False
        digest = self.check.md5 if self.digest is None and self.check is not None else self.digest
        # Where something is unfinished it answered before it had all.
        return None if digest is None or self._unfinished else self._find_wrong_etag(raw, digest.hexdigest)

    def _find_wrong_etag(self, raw: bytes, sum_up: Callable[[], str]) -> str | None:
        """Do what :meth:`_wrong_etag` does for a body of which ``sum_up`` returns the MD5."""
        said = find_md5(raw)
        self.unchecked = said is None
        if said is not None and said == (expected := sum_up()):
            return None  # nearly always
        if self.digest is None and _SEGMENTED_HEADER(raw.lower()):
            self.unchecked = False
            return None  # its ETag is not the MD5 of its bytes
        if said is None:
            return None
        what = "the bytes that came" if self.digest is None else "the bytes that were sent"
        return f"the answer has the ETag {said}, {what} have the MD5 {expected}"

    def _receive_more(self) -> int:
        """Receive as ``_receive`` does, but return 0 at the end of the connection, which may end a body."""
        try:
            return self._receive()
        except AttemptError as fault:
            if fault.cause == CLOSED:
                return 0
            raise
