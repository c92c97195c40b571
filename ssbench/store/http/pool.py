"""The keep-alive connections to one server, and the sweeper that times their waits out.

A name is looked up for each new connection, as other clients do, so that a change of the name takes effect
within a run. Connections are spread over the addresses of a name. Those through TLS are a kind of their own
(:class:`TlsConnection`), because received bytes may wait inside OpenSSL.
"""

from __future__ import annotations

import contextlib
import errno
import math
import os
import random
import socket
import ssl
from collections import deque
from collections.abc import Sequence
from time import monotonic
from typing import Any

import gevent
import gevent.socket
from gevent.lock import Semaphore

from ssbench.base.errors import UsageError
from ssbench.store.contract import (
    CONNECT_TIMEOUT,
    NAME_RESOLUTION,
    TLS_ERROR,
    AttemptError,
    make_connect_error,
    make_transfer_error,
)
from ssbench.store.http.connection import (
    CANCELLED,
    READABLE,
    TIMED_OUT,
    HttpConnection,
    SharedState,
    ask_for_arrivals,
    make_cancelled_error,
)
from ssbench.store.http.dialect import ServerEndpoint
from ssbench.store.http.http_response import HEAD_LIMIT, HttpResponse

_RECORD_BYTES = 16384

#: Records decrypted in a row, which takes about a millisecond, before other greenlets run.
_RECORDS_IN_A_ROW = 32

_INTERRUPTING_EVENTS = (TIMED_OUT, CANCELLED)


def make_tls_context(insecure: bool, ca_certificates: str | None) -> ssl.SSLContext:
    """Return a context that trusts the given PEM text, else what the system trusts, or any if ``insecure``.

    Raises UsageError if the text holds no certificates.
    """
    # Without the line break an empty text would be no text, and what the system trusts be trusted.
    text = None if ca_certificates is None else f"{ca_certificates}\n"
    try:
        context = ssl.create_default_context(cadata=text)
    except (ssl.SSLError, ValueError, TypeError) as error:
        raise UsageError(f"CA certificates: expected PEM text, {error}") from None
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


class LastTlsSession:
    """The TLS session of the last connection to a server that had an answer; None before that."""

    latest: ssl.SSLSession | None = None


class TlsConnection(HttpConnection):
    """Asks OpenSSL before it waits, because bytes in the buffer of OpenSSL wake no watcher."""

    __slots__ = ("_early", "_kept", "_records", "resumed")

    _sock: ssl.SSLSocket
    _more = 0

    def __init__(self, sock: socket.socket, shared: SharedState, idle: list[HttpConnection]) -> None:
        super().__init__(sock, shared, idle)
        self._early = 0
        self._records = 0
        self.resumed = False
        #: Where the session is put after the first answer: with TLS 1.3 it comes after the handshake.
        self._kept: LastTlsSession | None = None

    def handshake(
        self, context: ssl.SSLContext, host: str, ticks: int, last: LastTlsSession | None = None
    ) -> None:
        """Do the TLS handshake on the connected socket; raises AttemptError.

        It continues the ``last`` session, and makes its own that one, where sessions are resumed.
        """
        self.ticks_left = ticks
        self._kept = last
        session = None if last is None else last.latest
        try:
            self._sock = context.wrap_socket(
                self._sock, server_hostname=host, do_handshake_on_connect=False, session=session
            )
            while True:
                try:
                    self._sock.do_handshake()
                    self.resumed = bool(self._sock.session_reused)
                    return
                except ssl.SSLWantReadError:
                    event = self._hub.switch()
                except ssl.SSLWantWriteError:
                    event = self._wait_either()
                if event == TIMED_OUT:
                    raise AttemptError(CONNECT_TIMEOUT, "the TLS handshake did not end in time")
                if event == CANCELLED:
                    raise make_cancelled_error()
        except OSError as error:
            if last is not None:
                last.latest = None  # it may be what the server does not take
            raise make_transfer_error(error) from None
        except ValueError as error:  # a name that no certificate can have
            raise AttemptError(TLS_ERROR, f"{host}: {error}") from None

    def _end(self, answer: HttpResponse) -> HttpResponse:
        if self._kept is not None:
            self._kept.latest, self._kept = self._sock.session, None
        return super()._end(answer)

    def _speaks_at_rest(self) -> bool:
        # The server may send session tickets at any time. Those that come here are not used.
        try:
            self._sock.recv_into(self._shared.buffer)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return False
        except OSError:
            return True
        return True

    def _receive(self, _buffers: tuple[bytearray | memoryview] | None = None) -> int:
        if self._early:
            received, self._early = self._early, 0
            return received
        received = self._receive_some()
        if not received:
            raise self._ended()
        return received

    def _receive_sink(self, limit: int, _waits: bool = True) -> int:
        return self._receive_some(limit)

    def _receive_some(self, limit: int = HEAD_LIMIT) -> int:
        shared = self._shared
        if self._records >= _RECORDS_IN_A_ROW:
            self._give_way()
        while True:
            try:
                received = self._sock.recv_into(shared.buffer, min(limit, len(shared.buffer)))
            except ssl.SSLWantReadError:
                self._records = 0
                event = self._hub.switch()
            except ssl.SSLWantWriteError:
                event = self._wait_either()
            except OSError as error:
                raise make_transfer_error(error) from None
            else:
                self._records += 1
                if received:
                    self.received_at = monotonic()
                self.ticks_left = shared.network_ticks
                return received
            if event in _INTERRUPTING_EVENTS:
                raise self._interrupted(event, "answer")

    def _give_way(self) -> None:
        """Let the loop turn once. No watcher may wake us, because all bytes may be inside OpenSSL."""
        self._records = 0
        self.ticks_left = self._shared.network_ticks
        turn = self._hub.loop.run_callback(self._reader.callback, READABLE)
        try:
            event = self._hub.switch()
        finally:
            turn.stop()
        if event in _INTERRUPTING_EVENTS:
            raise self._interrupted(event, "answer")

    def _wait_writable(self) -> bool:
        while True:
            if super()._wait_writable():
                return True
            try:
                self._early = self._sock.recv_into(self._shared.buffer)
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                continue
            if self._early:
                self.received_at = monotonic()
            return False

    def _send_first(self, message: bytes) -> int:
        # After a partial write OpenSSL requires the same bytes again, so they are kept.
        piece = self._shared.payload.piece(self._offset, min(self._left, _RECORD_BYTES))
        self._advance(len(piece))
        joined = b"".join((message, piece))
        self._pending = memoryview(joined)
        with contextlib.suppress(ssl.SSLWantReadError, ssl.SSLWantWriteError):
            self._pending = self._pending[self._sock.send(joined) :]
        return len(message)

    def _send_piece(self) -> int:
        return self._send_copy()


# -- The pool and its sweeper ----------------------------------------------------------------------


Address = tuple[socket.AddressFamily, Any]

#: What a name was found to mean is used again for so long (seconds): users that connect at once ask once.
NAME_LIFETIME_SECONDS = 1.0

#: An address to which connecting failed is tried after all others for so long (seconds).
_AVOIDED_SECONDS = 10.0


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


#: The loop stalled when a tick was late by more than this (seconds). So many of the last stalls are kept.
_STALL_SECONDS, _MAX_STALLS = 0.1, 32


class TimeoutSweeper:
    """Counts down the ticks of all connections, and wakes those whose time-out has passed."""

    def __init__(self, shared: SharedState, interval: float) -> None:
        self._shared = shared
        self._longest = interval + _STALL_SECONDS
        self._swept_at = monotonic()
        #: Times between two ticks, (begin, end), of which the second was late.
        self._stalls: deque[tuple[float, float]] = deque(maxlen=_MAX_STALLS)
        # Without a reference, so that the loop can end when it has nothing else to do.
        self._timer = shared.hub.loop.timer(interval, interval, ref=False)
        self._timer.start(self._sweep)

    def ran_since(self, moment: float) -> float:
        """Return for how many seconds since a moment, by the monotonic clock, the loop is known to have run.

        What came while it did not, because the process was stopped or starved, is read later.
        """
        now = monotonic()
        stalls = [*self._stalls]
        if now - self._swept_at > self._longest:  # its tick may be called back after those of sockets
            stalls.append((self._swept_at, now))
        if len(stalls) >= _MAX_STALLS:
            moment = max(moment, stalls[0][0])  # nothing is known of what was before
        return now - moment - sum(max(0.0, end - max(begin, moment)) for begin, end in stalls)

    def _sweep(self) -> None:
        now = monotonic()
        if now - self._swept_at > self._longest:
            self._stalls.append((self._swept_at, now))
        self._swept_at = now
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
