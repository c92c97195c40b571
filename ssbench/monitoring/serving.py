"""HTTP servers in a thread: few connections, each for a short time, whoever connects.

A run must not end because others open connections to it. Each connection is closed after some seconds, and
when there are many the oldest gives way to the next. An answer may become a stream, which continues for as
long as its reader reads; of these there are few, and the slowest gives way to the next.
"""

from __future__ import annotations

import fcntl
import socket
import struct
import termios
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from socketserver import ThreadingMixIn
from threading import Lock, Thread
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

#: Seconds that a connection may take from beginning to end, and connections at once.
MAX_CONNECTION_SECONDS = 5.0
MAX_CONNECTIONS = 16

#: Streams at once. One whose reader takes nothing for :data:`MAX_CONNECTION_SECONDS` is closed.
MAX_STREAMS = 8

#: Seconds after which a stream of which something has not arrived is a slow one.
_SLOW_SECONDS = 1.0

#: Seconds that a stream has before it gives way to another one although its reader reads.
_TURN_SECONDS = 5.0

#: What makes a stream of an answer, in the environment of an application: a call that returns whether it may.
STREAM_KEY = "ssbench.stream"

#: Seconds to wait when no connection can be accepted, which is tried again and again.
_PAUSE_SECONDS = 0.1

#: What starts an answer of a WSGI application, and such an application.
StartResponse = Callable[..., Any]
WsgiApplication = Callable[[dict[str, Any], StartResponse], Iterable[bytes]]


def open_listening_socket(address: str, port: int) -> socket.socket:
    """Return a socket that listens at an address and a port (0: any that is free); raises OSError."""
    found = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    listening = socket.socket(found[0][0], socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((str(found[0][4][0]), port))
        listening.listen(BoundedServer.request_queue_size)
    except BaseException:
        listening.close()
        raise
    return listening


@dataclass(slots=True)
class _Stream:
    """When it began, and when all that was sent had arrived for the last time (monotonic clock)."""

    began: float
    arrived: float


class BoundedServer(ThreadingMixIn, WSGIServer):
    """Serves a WSGI application at a socket that listens."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, application: WsgiApplication, listening: socket.socket, name: str) -> None:
        self.address_family = listening.family
        self._open: dict[Any, float] = {}
        self._streams: dict[Any, _Stream] = {}
        self._lock = Lock()
        super().__init__(listening.getsockname()[:2], _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listening
        self.server_address = listening.getsockname()
        # Without asking for the name of the address, which may take long.
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]
        self.setup_environ()
        self.set_app(_answer_head_too(application))
        self._thread = Thread(target=self.serve_forever, name=name, daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Stop serving, and close all connections."""
        self.shutdown()
        self.server_close()
        self._close_those_of(float("inf"))
        with self._lock:
            for request in self._streams:
                _end_connection(request)
        self._thread.join(1)

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accept a connection; raises OSError."""
        try:
            return super().get_request()
        except OSError:
            time.sleep(_PAUSE_SECONDS)
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread of its own; the oldest gives way where there are many."""
        with self._lock:
            self._open[request] = time.monotonic()
            while len(self._open) > MAX_CONNECTIONS:
                oldest = min(self._open, key=lambda each: self._open[each])
                del self._open[oldest]
                _end_connection(oldest)
        super().process_request(request, client_address)

    def stream(self, request: Any) -> bool:
        """Let a connection last for as long as its reader reads; return False where too many do.

        A stream of which something has not arrived for a while gives way, or else the oldest one that has had
        some seconds: whoever reads it connects again.
        """
        now = time.monotonic()
        with self._lock:
            if request not in self._open or not self._make_room(now):
                return False
            del self._open[request]
            self._streams[request] = _Stream(now, now)
        request.settimeout(MAX_CONNECTION_SECONDS)
        return True

    def _make_room(self, now: float) -> bool:
        if len(self._streams) < MAX_STREAMS:
            return True
        self._note_arrivals(now)
        slowest = min(self._streams, key=lambda each: self._streams[each].arrived)
        if now - self._streams[slowest].arrived < _SLOW_SECONDS:
            slowest = min(self._streams, key=lambda each: self._streams[each].began)
            if now - self._streams[slowest].began < _TURN_SECONDS:
                return False
        del self._streams[slowest]
        _end_connection(slowest)
        return True

    def _note_arrivals(self, now: float) -> None:
        for request, stream in self._streams.items():
            if not _count_unread_bytes(request):
                stream.arrived = now

    def shutdown_request(self, request: Any) -> None:
        """Close a connection."""
        with self._lock:
            self._open.pop(request, None)
            self._streams.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Close what has been open for too long; called twice a second."""
        now = time.monotonic()
        self._close_those_of(now - MAX_CONNECTION_SECONDS)
        with self._lock:
            self._note_arrivals(now)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a connection that breaks off."""

    def _close_those_of(self, until: float) -> None:
        with self._lock:
            for request in [each for each, since in self._open.items() if since <= until]:
                del self._open[request]
                _end_connection(request)


def _count_unread_bytes(request: socket.socket) -> int:
    """Return how many bytes were sent that the other side's system has not taken."""
    try:
        return int(struct.unpack("i", fcntl.ioctl(request.fileno(), termios.TIOCOUTQ, bytes(4)))[0])
    except OSError:  # it is closed, or the system does not tell
        return 0


def _end_connection(request: socket.socket) -> None:
    """End a connection under the thread that serves it, which then closes it."""
    with suppress(OSError):
        request.shutdown(socket.SHUT_RDWR)


class _Handler(WSGIRequestHandler):
    server: BoundedServer

    def get_environ(self) -> dict[str, Any]:
        """Return the environment of a request, with what makes a stream of it."""
        environ: dict[str, Any] = super().get_environ()
        environ[STREAM_KEY] = lambda: self.server.stream(self.request)
        return environ

    def address_string(self) -> str:
        """Return the address of a client, without asking for its name."""
        return str(self.client_address[0])

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


def _answer_head_too(application: WsgiApplication) -> WsgiApplication:
    """Return an application that answers HEAD too: as GET, without the body."""

    def answer(environ: dict[str, Any], start: StartResponse) -> Iterable[bytes]:
        if environ.get("REQUEST_METHOD") != "HEAD":
            return application(environ, start)
        given: list[Any] = []
        environ = {**environ, "REQUEST_METHOD": "GET", STREAM_KEY: lambda: False}
        body = b"".join(application(environ, lambda *args: given.extend(args)))
        start(given[0], [*given[1], ("Content-Length", str(len(body)))])
        return [b""]

    return answer
