"""The HTTP server of ``--metrics-port``: few connections, each for a short time, whoever connects.

A run must not end because others open connections to it. Each connection is closed after some seconds, and
when there are many the oldest gives way to the next.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from socketserver import TCPServer, ThreadingMixIn
from threading import Lock, Thread
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import CollectorRegistry, make_wsgi_app

#: Seconds that a connection may take from beginning to end, and connections at once.
SECONDS = 5.0
MOST = 16

#: Seconds to wait when no connection can be accepted, which is tried again and again.
_PAUSE = 0.1

#: What starts an answer of a WSGI application, and such an application.
_Start = Callable[..., Any]
_Application = Callable[[dict[str, Any], _Start], Iterable[bytes]]


class MetricsServer(ThreadingMixIn, WSGIServer):
    """Serves a registry at an address and a port (0: any that is free); raises OSError."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, registry: CollectorRegistry, address: str, port: int) -> None:
        found = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        self.address_family = found[0][0]
        self._open: dict[Any, float] = {}
        self._lock = Lock()
        super().__init__((str(found[0][4][0]), port), _Handler)
        self.set_app(_with_head(make_wsgi_app(registry)))
        self._thread = Thread(target=self.serve_forever, name="metrics", daemon=True)
        self._thread.start()

    def server_bind(self) -> None:
        """Bind, without asking for the name of the address, which may take long."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]
        self.setup_environ()

    def end(self) -> None:
        """Stop serving, and close all connections."""
        self.shutdown()
        self.server_close()
        self._close_those_of(float("inf"))
        self._thread.join(1)

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accept a connection; raises OSError."""
        try:
            return super().get_request()
        except OSError:
            time.sleep(_PAUSE)
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread of its own; the oldest gives way where there are many."""
        with self._lock:
            self._open[request] = time.monotonic()
            while len(self._open) > MOST:
                oldest = min(self._open, key=lambda each: self._open[each])
                del self._open[oldest]
                _cut(oldest)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection."""
        with self._lock:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Close what has been open for too long; called twice a second."""
        self._close_those_of(time.monotonic() - SECONDS)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a connection that breaks off."""

    def _close_those_of(self, until: float) -> None:
        with self._lock:
            for request in [each for each, since in self._open.items() if since <= until]:
                del self._open[request]
                _cut(request)


def _cut(request: socket.socket) -> None:
    """End a connection under the thread that serves it, which then closes it."""
    with suppress(OSError):
        request.shutdown(socket.SHUT_RDWR)


class _Handler(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


def _with_head(application: _Application) -> _Application:
    """Return an application that answers HEAD too: as GET, without the body."""

    def answer(environ: dict[str, Any], start: _Start) -> Iterable[bytes]:
        if environ.get("REQUEST_METHOD") != "HEAD":
            return application(environ, start)
        given: list[Any] = []
        body = b"".join(application({**environ, "REQUEST_METHOD": "GET"}, lambda *args: given.extend(args)))
        start(given[0], [*given[1], ("Content-Length", str(len(body)))])
        return [b""]

    return answer
