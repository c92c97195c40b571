"""A connection through TLS, whose other end is in the hands of the test."""

from __future__ import annotations

import hashlib
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import gevent
import pytest
from fault_server import Certificates
from golden_words import GoldenWords

from ssbench.base.errors import UsageError
from ssbench.store import contract
from ssbench.store.contract import AttemptError
from ssbench.store.credentials import Session
from ssbench.store.http.bodies import BodySource
from ssbench.store.http.connection import HttpConnection, SharedState
from ssbench.store.http.pool import LastTlsSession, TlsConnection, make_tls_context

GET = b"GET /v1/a/c/o HTTP/1.1\r\nHost: h\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
PATIENCE = 30.0
HOST = "127.0.0.1"


class Tls:
    """``near`` is the client's connection, ``far`` the server's socket, which a thread may use."""

    def __init__(self, context: ssl.SSLContext | None) -> None:
        self.payload = BodySource(1)
        self.shared = SharedState(
            hub=gevent.get_hub(),
            payload=self.payload,
            block_size=65536,
            connect_ticks=100,
            network_ticks=100,
            request_ticks=1000,
            ticks_per_byte=0.001,
            sink_flags=0,
        )
        self.idle: list[HttpConnection] = []
        with socket.create_server((HOST, 0)) as server:
            sock = socket.create_connection(server.getsockname())
            self._plain, _ = server.accept()
        sock.setblocking(False)
        self._plain.settimeout(PATIENCE)
        self.near = TlsConnection(sock, self.shared, self.idle)
        self.near.establish(100)
        self.far: ssl.SSLSocket
        self._greeting = threading.Thread(target=self._greet, args=(context,), daemon=True)
        self._greeting.start()

    def _greet(self, context: ssl.SSLContext | None) -> None:
        if context is not None:
            try:
                self.far = context.wrap_socket(self._plain, server_side=True)
            except OSError:
                self._plain.close()

    def shake(self, context: ssl.SSLContext, host: str = HOST, last: LastTlsSession | None = None) -> None:
        self.near.handshake(context, host, 100, last)
        self._greeting.join(PATIENCE)

    def answer(self, *pieces: bytes) -> threading.Thread:
        """Read a request, and send pieces, each in records of its own."""

        def run() -> None:
            self.far.recv(65536)
            for piece in pieces:
                self.far.sendall(piece)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread

    def close(self) -> None:
        self.near.close()
        self._plain.close()
        if hasattr(self, "far"):
            self.far.close()
        self._greeting.join(PATIENCE)
        self.payload.close()


def leave(far: ssl.SSLSocket) -> None:
    """Say that no more comes, without waiting for the other side to say so."""
    far.settimeout(0)
    with suppress(OSError):
        far.unwrap()


@contextmanager
def made(context: ssl.SSLContext | None) -> Iterator[Tls]:
    both = Tls(context)
    try:
        yield both
    finally:
        both.close()


@pytest.fixture
def client(certificates: Certificates) -> ssl.SSLContext:
    return make_tls_context(False, certificates.pem)


@pytest.fixture
def both(certificates: Certificates, client: ssl.SSLContext) -> Iterator[Tls]:
    with made(certificates.server()) as shaken:
        shaken.shake(client)
        yield shaken


@pytest.mark.parametrize("text", ["", "\n", "no certificate", "-----BEGIN CERTIFICATE-----\nAAAA\n", "é"])
def test_authorities_that_are_none_are_refused(text: str) -> None:
    """With an empty text those of the system were trusted; other characters were a traceback."""
    with pytest.raises(UsageError, match="CA certificates: expected PEM text"):
        make_tls_context(False, text)


def test_without_authorities_those_of_the_system_are_trusted() -> None:
    assert make_tls_context(False, None).verify_mode is ssl.CERT_REQUIRED
    assert make_tls_context(True, None).verify_mode is ssl.CERT_NONE


def test_a_bundle_with_names_in_any_characters(
    certificates: Certificates, tmp_path: Path, golden_words: GoldenWords
) -> None:
    """As curl's has them; it was a traceback of each worker."""
    path = tmp_path / "bundle.pem"
    path.write_text(f"Főtanúsítvány\n=============\n{certificates.pem}", "utf-8")
    session = Session(("https://h/v1/a",), ca_file=str(path))
    with made(certificates.server()) as both:
        both.shake(make_tls_context(False, session.ca_certificates))
    path.write_bytes(b"\x30\x82\xff")
    with golden_words.raises(UsageError):
        assert session.ca_certificates


def test_what_comes_in_one_record_is_read_though_no_more_arrives(both: Tls) -> None:
    """The head and the body wait inside OpenSSL, where they wake no watcher."""
    both.answer(OK + b"hello")
    answer = both.near.exchange(GET, "GET", 0)
    assert (answer.status, answer.size, answer.keep_alive) == (200, 5, True)
    assert both.idle == [both.near]


@pytest.mark.parametrize("size", [1, 7, 30])
def test_however_it_is_cut_it_is_the_same(both: Tls, size: int) -> None:
    whole = OK + b"hello"
    both.answer(*(whole[place : place + size] for place in range(0, len(whole), size)))
    answer = both.near.exchange(GET, "GET", 0)
    assert (answer.status, answer.size) == (200, 5)


def test_a_long_answer_lets_others_run(both: Tls) -> None:
    """All of it may be there, so that nothing has to be waited for."""
    size = 64 * 16384
    turns = 0

    def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            gevent.sleep(0)

    both.answer(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + bytes(size))
    other = gevent.spawn(count)
    switch = both.near._hub.switch
    waits = 0

    class Hub:
        """Counts how often the connection lets others run."""

        loop = both.near._hub.loop

        @staticmethod
        def switch() -> int:
            nonlocal waits
            waits += 1
            return switch()

    both.near._hub = Hub
    answer = both.near.exchange(GET, "GET", 0)
    other.kill()
    assert answer.size == size
    assert waits >= 2
    assert turns >= 2


def test_a_body_arrives_whole_and_its_digest_is_that_of_its_bytes(both: Tls) -> None:
    size = 5_000_000
    received = hashlib.md5()
    head = b"PUT /v1/a/c/o HTTP/1.1\r\n\r\n"

    def read() -> None:
        left = len(head) + size
        skip = len(head)
        while left:
            piece = both.far.recv(min(65536, left))
            left -= len(piece)
            received.update(piece[skip:])
            skip = max(0, skip - len(piece))
        both.far.sendall(
            b"HTTP/1.1 201 Created\r\nETag: %b\r\nContent-Length: 0\r\n\r\n" % received.hexdigest().encode()
        )

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    answer = both.near.exchange(head, "PUT", size)
    reader.join(PATIENCE)
    assert (answer.status, answer.wrong_etag, answer.keep_alive) == (201, None, True)


def test_an_answer_before_the_body_is_sent_is_taken(both: Tls) -> None:
    both.answer(b"HTTP/1.1 507 Full\r\nContent-Length: 0\r\n\r\n")
    answer = both.near.exchange(b"PUT /v1/a/c/o HTTP/1.1\r\n\r\n", "PUT", 50_000_000)
    assert (answer.status, answer.keep_alive) == (507, False)
    assert not both.idle


@pytest.mark.parametrize("end", ["shutdown", "bytes", "cut"])
def test_a_connection_at_rest_ends_with_the_server(both: Tls, end: str) -> None:
    server = both.answer(OK + b"hello")
    both.near.exchange(GET, "GET", 0)
    assert both.idle == [both.near]
    server.join(PATIENCE)  # two threads may not use one TLS socket: it would say nothing at its end
    if end == "bytes":
        both.far.sendall(b"HTTP/1.1 408 Late\r\n\r\n")
    elif end == "cut":
        both.far.shutdown(socket.SHUT_RDWR)
    else:
        threading.Thread(target=leave, args=(both.far,), daemon=True).start()
    with gevent.Timeout(PATIENCE):
        while both.idle:
            gevent.sleep(0.001)
    assert both.near not in both.shared.connections


def test_tickets_that_come_late_do_not_end_a_connection_at_rest(both: Tls) -> None:
    """TLS 1.3: the server may send them whenever it likes."""
    both.answer(OK + b"hello")
    both.near.exchange(GET, "GET", 0)
    assert not both.near._speaks_at_rest()
    assert both.idle == [both.near]


def test_a_session_is_kept_with_the_first_answer_and_continued(
    certificates: Certificates, client: ssl.SSLContext
) -> None:
    last = LastTlsSession()
    server = certificates.server()
    found = []
    for _ in range(3):
        with made(server) as both:
            both.shake(client, last=last)
            both.answer(OK + b"hello")
            both.near.exchange(GET, "GET", 0)
            assert last.latest is not None
            found.append(both.near.resumed)
    assert found == [False, True, True]


def test_a_session_is_forgotten_when_a_handshake_fails(
    certificates: Certificates, client: ssl.SSLContext
) -> None:
    last = LastTlsSession()
    with made(certificates.server()) as both:
        both.shake(client, last=last)
        both.answer(OK + b"hello")
        both.near.exchange(GET, "GET", 0)
    assert last.latest is not None
    with made(None) as both:
        both._plain.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        with pytest.raises(AttemptError) as caught:
            both.shake(client, last=last)
    assert caught.value.cause == contract.TLS_ERROR
    assert last.latest is None


def test_another_name_or_authority_is_a_wrong_certificate(certificates: Certificates) -> None:
    for server, authority in (
        (certificates.server("h.example"), certificates),
        (certificates.server(), None),
    ):
        context = make_tls_context(False, (authority or Certificates()).pem)
        with made(server) as both, pytest.raises(AttemptError) as caught:
            both.shake(context)
        assert caught.value.cause == contract.TLS_CERTIFICATE
    with made(certificates.server("h.example")) as both:
        both.shake(make_tls_context(True, None))
