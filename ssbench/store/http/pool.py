"""The keep-alive connections to one server, and the sweeper that times their waits out.

A name is looked up for each new connection, as other clients do, so that a change of the name takes effect
within a run. Connections are spread over the addresses of a name.
"""

from __future__ import annotations

import errno
import math
import os
import random
import socket
import ssl
from collections.abc import Sequence
from time import monotonic
from typing import Any, NamedTuple

import gevent
import gevent.socket
from gevent.lock import Semaphore

from ssbench.base.errors import UsageError
from ssbench.base.urls import parse_http_url, redact_url, refuse_user_info
from ssbench.store.causes import NAME_RESOLUTION, AttemptError, make_connect_error
from ssbench.store.http.arrival import ask_for_arrivals
from ssbench.store.http.connection import HttpConnection
from ssbench.store.http.sender import TIMED_OUT, make_cancelled_error
from ssbench.store.http.shared import SharedState
from ssbench.store.http.tls import LastTlsSession, TlsConnection

Address = tuple[socket.AddressFamily, Any]

#: What a name was found to mean is used again for so long (seconds): users that connect at once ask once.
NAME_LIFETIME_SECONDS = 1.0

#: An address to which connecting failed is tried after all others for so long (seconds).
_AVOIDED_SECONDS = 10.0


class ServerEndpoint(NamedTuple):
    """A server as a storage URL names it; ``host`` without the brackets of IPv6."""

    scheme: str
    host: str
    port: int


def parse_storage_url(url: str) -> tuple[ServerEndpoint, str, str]:
    """Return server, ``Host`` field and path of a storage URL; raises UsageError."""
    refuse_user_info(url, "storage URL")
    parts = parse_http_url(url)
    if parts is None or not parts.hostname or not url.isascii() or parts.query or parts.fragment:
        raise UsageError(f"storage URL {redact_url(url)}: expected http://HOST[:PORT]/PATH or https://...")
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return ServerEndpoint(parts.scheme, parts.hostname, port), parts.netloc, parts.path.rstrip("/")


class ConnectionPool:
    """At most ``max_connections`` connections to one server, opened on demand, the last used first."""

    def __init__(
        self,
        endpoint: ServerEndpoint,
        shared: SharedState,
        max_connections: int,
        connect_timeout: float,
        tls: ssl.SSLContext | None,
        given: Sequence[str] = (),
        *,
        resumes: bool = False,
    ) -> None:
        self.idle: list[HttpConnection] = []
        #: One place for each request in flight; a request holds one from beginning to end.
        self.places = Semaphore(max_connections)
        self._endpoint = endpoint
        self._shared = shared
        self._connect_timeout = connect_timeout
        self._tls = tls
        #: The TLS session that the next connection continues; None where each begins its own.
        self._session = LastTlsSession() if resumes else None
        self._given = given
        #: Those that were given, or that the host is itself; empty where it is a name, None: not known yet.
        self._numeric: list[Address] | None = None
        #: What the name was found to mean, when, and the lookup that is under way.
        self._addresses: list[Address] = []
        self._found_at = -math.inf
        self._lookup: gevent.Greenlet | None = None
        #: Addresses to which connecting failed, and until when they are tried last.
        self._failed: dict[Address, float] = {}
        #: Workers begin with different addresses.
        self._turn = random.randrange(1 << 16)

    def close(self) -> None:
        """Wake all greenlets that wait for a place. The client must be closing already."""
        self.idle.clear()
        # Connecting fails from now on, so each greenlet that gets this place releases it at once.
        self.places.release()

    def close_idle(self) -> None:
        """Close the connections that are not in use."""
        while self.idle:
            self.idle.pop().close()

    def connect(self) -> HttpConnection:
        """Return a new connection for this greenlet; raises AttemptError."""
        return self._connect_to_any(self._in_turn(self._resolve()))

    def _in_turn(self, addresses: list[Address]) -> list[Address]:
        """Return the addresses in the order in which the next connection tries them.

        Those of the family that the resolver prefers are used in turn, so that connections are spread over
        them; then come those of the other family, and last those that have just failed.
        """
        now = monotonic()
        failed = self._failed = {each: until for each, until in self._failed.items() if until > now}
        preferred = [each for each in addresses if each[0] == addresses[0][0]]
        self._turn += 1
        first = self._turn % max(1, len(preferred))
        others = [each for each in addresses if each[0] != addresses[0][0]]
        ordered = [*preferred[first:], *preferred[:first], *others]
        return sorted(ordered, key=lambda each: each in failed)

    def _connect_to_any(self, addresses: list[Address]) -> HttpConnection:
        """Connect to the first address that works.

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
                    connection.handshake(self._tls, self._endpoint.host, max(2, ticks), self._session)
            except OSError as error:
                last = make_connect_error(error, f"{self._endpoint.host} ({place[0]}) port {place[1]}")
                self._failed[address] = monotonic() + _AVOIDED_SECONDS
                if len(addresses) > 1:
                    self._shared.failed.append(place[0])
                if connection is not None:
                    ticks -= share - connection.ticks_left
                    connection.close()
            except BaseException:
                if connection is not None:
                    connection.close()
                raise
            else:
                if len(addresses) > 1:
                    connection.address = place[0]
                return connection
        raise last

    def _start(self, family: socket.AddressFamily, place: Any) -> HttpConnection:
        if self._shared.closing.is_set():
            raise make_cancelled_error()
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
        connection = HttpConnection(sock, self._shared, self.idle)
        connection.stamped = ask_for_arrivals(sock)
        return connection

    def _resolve(self) -> list[Address]:
        """Return the addresses of the host: an answer that is fresh, or one that is looked up now.

        Connections that are made at the same time wait for the same answer.
        """
        if self._numeric is None:
            self._numeric = self._find_numeric()
        if self._numeric:
            return self._numeric
        if monotonic() - self._found_at < NAME_LIFETIME_SECONDS:
            return self._addresses
        host, closing = self._endpoint.host, self._shared.closing
        if self._lookup is None:
            self._lookup = gevent.spawn(self._look_up)
        lookup = self._lookup
        gevent.wait([lookup, closing], self._connect_timeout, count=1)
        if self._lookup is lookup:
            self._lookup = None
            lookup.kill(block=False)  # without effect once it has ended
        if closing.is_set():
            raise make_cancelled_error()
        found = lookup.value
        if not isinstance(found, list):
            why = (
                found
                if isinstance(found, OSError | UnicodeError)
                else f"no answer in {self._connect_timeout:g} s"
            )
            raise AttemptError(NAME_RESOLUTION, f"{host}: {why}")
        self._addresses, self._found_at = found, monotonic()
        return found

    def _find_numeric(self) -> list[Address]:
        """Return the addresses that were given, or that the host is itself, for which no thread is needed."""
        found = []
        for host in self._given or [self._endpoint.host]:
            try:
                found += socket.getaddrinfo(
                    host, self._endpoint.port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST
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


class TimeoutSweeper:
    """Counts down the ticks of all connections, and wakes those whose time-out has passed."""

    def __init__(self, shared: SharedState, interval: float) -> None:
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
