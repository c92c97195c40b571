"""The keep-alive connections to one server, and the sweeper that times their waits out."""

from __future__ import annotations

import errno
import os
import socket
import ssl
from typing import Any, NamedTuple

import gevent
import gevent.socket
from gevent.lock import Semaphore

from ssbench.errors import UsageError
from ssbench.swift.arrival import ask_for_arrivals
from ssbench.swift.causes import NAME_RESOLUTION, AttemptError, connect_fault
from ssbench.swift.connection import Connection
from ssbench.swift.sender import TIMED_OUT, cancelled
from ssbench.swift.shared import Shared
from ssbench.swift.tls import TlsConnection
from ssbench.swift.urls import parse_http_url, refuse_user_info, shown

Address = tuple[socket.AddressFamily, Any]


class Endpoint(NamedTuple):
    """A server as a storage URL names it; ``host`` without the brackets of IPv6."""

    scheme: str
    host: str
    port: int


def parse_storage_url(url: str) -> tuple[Endpoint, str, str]:
    """Return server, ``Host`` field and path of a storage URL; raises UsageError."""
    refuse_user_info(url, "storage URL")
    parts = parse_http_url(url)
    if parts is None or not parts.hostname or not url.isascii() or parts.query or parts.fragment:
        raise UsageError(f"storage URL {shown(url)}: expected http://HOST[:PORT]/PATH or https://...")
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return Endpoint(parts.scheme, parts.hostname, port), parts.netloc, parts.path.rstrip("/")


class Pool:
    """At most ``max_connections`` connections to one server, opened on demand, the last used first."""

    def __init__(
        self,
        endpoint: Endpoint,
        shared: Shared,
        max_connections: int,
        connect_timeout: float,
        tls: ssl.SSLContext | None,
    ) -> None:
        self.idle: list[Connection] = []
        #: One place for each request in flight; a request holds one from beginning to end.
        self.places = Semaphore(max_connections)
        self._endpoint = endpoint
        self._shared = shared
        self._connect_timeout = connect_timeout
        self._tls = tls
        self._addresses: list[Address] = []

    def close(self) -> None:
        """Wake all greenlets that wait for a place. The client must be closing already."""
        self.idle.clear()
        # Connecting fails from now on, so each greenlet that gets this place releases it at once.
        self.places.release()

    def connect(self) -> Connection:
        """Return a new connection for this greenlet; raises AttemptError."""
        return self._connect_to_any(self._resolve())

    def _connect_to_any(self, addresses: list[Address]) -> Connection:
        """Connect to the first address that works; the next time it is tried first.

        Each address has its share of the time that is left, so that a dead one does not use it up.
        """
        ticks = self._shared.connect_ticks
        last = AttemptError(NAME_RESOLUTION, f"{self._endpoint.host}: no address")
        for position, address in enumerate(addresses):
            share = max(2, ticks // (len(addresses) - position))
            family, place = address
            connection = None
            try:
                connection = self._start(family, place)
                connection.establish(share)
                if isinstance(connection, TlsConnection) and self._tls:
                    connection.handshake(self._tls, self._endpoint.host, max(2, ticks))
            except OSError as error:
                last = connect_fault(error, f"{self._endpoint.host} ({place[0]}) port {place[1]}")
                if connection is not None:
                    ticks -= share - connection.ticks_left
                    connection.close()
            except BaseException:
                if connection is not None:
                    connection.close()
                raise
            else:
                if position:
                    self._addresses = [address, *(other for other in addresses if other != address)]
                return connection
        raise last

    def _start(self, family: socket.AddressFamily, place: Any) -> Connection:
        if self._shared.closing.is_set():
            raise cancelled()
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            number = sock.connect_ex(place)
            if number not in {0, errno.EINPROGRESS}:
                raise OSError(number, os.strerror(number))
        except BaseException:
            sock.close()
            raise
        if self._tls:
            return TlsConnection(sock, self._shared, self.idle)
        connection = Connection(sock, self._shared, self.idle)
        connection.stamped = ask_for_arrivals(sock)
        return connection

    def _resolve(self) -> list[Address]:
        """Return the addresses of the host, which are looked up once."""
        if not self._addresses:
            self._addresses = self._numeric()
        if not self._addresses:
            host, closing = self._endpoint.host, self._shared.closing
            lookup = gevent.spawn(self._look_up)
            try:
                gevent.wait([lookup, closing], self._connect_timeout, count=1)
            finally:
                lookup.kill(block=False)  # without effect once it has ended
            if closing.is_set():
                raise cancelled()
            if not lookup.ready():
                raise AttemptError(NAME_RESOLUTION, f"{host}: no answer in {self._connect_timeout:g} s")
            found = lookup.get()
            if isinstance(found, Exception):
                raise AttemptError(NAME_RESOLUTION, f"{host}: {found}")
            self._addresses = found
        return list(self._addresses)

    def _numeric(self) -> list[Address]:
        """Return the address that the host is itself, so that no thread has to look it up; else nothing."""
        try:
            found = socket.getaddrinfo(
                self._endpoint.host,
                self._endpoint.port,
                type=socket.SOCK_STREAM,
                flags=socket.AI_NUMERICHOST,
            )
        except (OSError, UnicodeError):
            return []
        return [(family, address) for family, _, _, _, address in found]

    def _look_up(self) -> list[Address] | Exception:
        """Return the addresses or the error, because gevent prints an exception that leaves a greenlet."""
        try:
            found = gevent.socket.getaddrinfo(
                self._endpoint.host, self._endpoint.port, type=socket.SOCK_STREAM
            )
        except (OSError, UnicodeError) as error:
            return error
        return [(family, address) for family, _, _, _, address in found]


class Sweeper:
    """Counts down the ticks of all connections, and wakes those whose time-out has passed."""

    def __init__(self, shared: Shared, interval: float) -> None:
        self._shared = shared
        # Without a reference, so that the loop can end when it has nothing else to do.
        self._timer = shared.hub.loop.timer(interval, interval, ref=False)
        self._timer.start(self._sweep)

    def _sweep(self) -> None:
        late = []
        for connection in self._shared.connections:
            if connection.ticks_left > 0:
                connection.ticks_left -= 1
                connection.slack -= 1
                if not connection.ticks_left or connection.slack <= 0:
                    late.append(connection)
        for connection in late:
            if connection.ticks_left >= 0:  # a greenlet woken before it may have closed it
                connection.wake(TIMED_OUT)

    def close(self) -> None:
        """Stop counting."""
        self._timer.close()
