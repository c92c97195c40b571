"""The connection through TLS, where received bytes may wait inside OpenSSL."""

from __future__ import annotations

import contextlib
import socket
import ssl
from time import monotonic

from ssbench.base.errors import UsageError
from ssbench.store.causes import CONNECT_TIMEOUT, TLS_ERROR, AttemptError, make_transfer_error
from ssbench.store.http.connection import HttpConnection
from ssbench.store.http.http_response import HEAD_LIMIT, HttpResponse
from ssbench.store.http.sender import CANCELLED, READABLE, TIMED_OUT, make_cancelled_error
from ssbench.store.http.shared import SharedState

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

    def _receive(self) -> int:
        if self._early:
            received, self._early = self._early, 0
            return received
        received = self._receive_some()
        if not received:
            raise self._ended()
        return received

    def _receive_sink(self, limit: int) -> int:
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
