"""An HTTP server that misbehaves as told, on a thread for each connection.

::

    with FaultServer() as server:
        server.script(Reply(503), Reply(503, retry_after="1"), Reply(200, body=b"x" * 4096))
        ...  # ask server.url; what it saw is in server.requests

Each request takes the next reply of the script; when that is used up, ``server.default`` answers.
``server.rule`` may map a request to a reply and comes before both. Replies are data: see
:class:`Reply` for what can go wrong.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import socket
import ssl
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import trustme


@dataclass(frozen=True)
class Reply:
    """One answer and what is wrong with it.

    ``claim`` is the Content-Length sent instead of the true one (a short or long body); ``cut``
    closes the connection after so many bytes of the whole answer, ``reset`` with an RST; ``delay``
    seconds pass before the answer; ``stall`` never goes on after what was sent so far (``cut``
    bytes, or nothing). ``pieces`` sends so many bytes at a time with ``pause`` seconds between.
    ``early`` answers before the body of the request is read, and then closes. ``raw`` is sent
    instead of an answer, behind ``lead``; ``endless`` repeats it for ever (``pause`` seconds between,
    or as fast as it is taken). ``sips`` reads the body of a request so many bytes at a time,
    ``pause`` seconds between. ``continues`` sends so many ``100 Continue`` before. ``closes``: says
    ``Connection: close`` and does; ``drops`` closes without having said so. ``unframed``: no length, the
    end of the connection is the end of the body. ``etag`` makes the ETag from the MD5 of the request's body.
    """

    status: int = 200
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    reason: str = "Reason"
    version: str = "HTTP/1.1"
    claim: int | None = None
    cut: int | None = None
    reset: bool = False
    delay: float = 0.0
    stall: bool = False
    pieces: int = 0
    pause: float = 0.0
    early: bool = False
    raw: bytes | None = None
    lead: bytes = b""
    endless: bool = False
    sips: int = 0
    continues: int = 0
    closes: bool = False
    drops: bool = False
    unframed: bool = False
    chunked: bool = False
    gzipped: bool = False
    retry_after: str | None = None
    etag: Callable[[str], str] | None = None

    def encode(self, head_only: bool = False) -> bytes:
        if self.raw is not None:
            return self.raw
        body = gzip.compress(self.body) if self.gzipped else self.body
        headers = [f"{name}: {value}" for name, value in self.headers]
        if self.gzipped:
            headers.append("Content-Encoding: gzip")
        if self.retry_after is not None:
            headers.append(f"Retry-After: {self.retry_after}")
        if self.closes:
            headers.append("Connection: close")
        if self.chunked:
            headers.append("Transfer-Encoding: chunked")
            chunks = [body[start : start + 1000] for start in range(0, len(body), 1000)]
            body = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"
        elif not self.unframed and self.status != 204:
            headers.append(f"Content-Length: {len(body) if self.claim is None else self.claim}")
        head = "\r\n".join([f"{self.version} {self.status} {self.reason}", *headers, "", ""]).encode()
        return b"HTTP/1.1 100 Continue\r\n\r\n" * self.continues + head + (b"" if head_only else body)


class Request(NamedTuple):
    """A request as it arrived; ``headers`` by lower-case name, ``connection`` counts connections."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    connection: int


class _GoneError(Exception):
    """The connection ends here."""


@dataclass
class FaultServer:
    """The server; ``keep_bodies`` keeps what was uploaded, else only its length is kept as zeros.

    ``tls`` makes it an HTTPS server. ``requests`` lists what came, ``connections`` how many were
    made, ``resumed`` those that continued a TLS session, ``ignored`` the
    bytes of bodies that came after an early answer.
    """

    host: str = "127.0.0.1"
    port: int = 0
    default: Reply = Reply()
    rule: Callable[[Request], Reply | None] = lambda _request: None
    tls: ssl.SSLContext | None = None
    keep_bodies: bool = True
    requests: list[Request] = field(default_factory=list)
    connections: int = 0
    resumed: int = 0
    ignored: int = 0

    def __post_init__(self) -> None:
        self._script: deque[Reply] = deque()
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._listener: socket.socket | None = None

    # Life

    def __enter__(self) -> FaultServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Listen; on the same port again after a stop."""
        self._stopping.clear()
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        self._listener = socket.create_server((self.host, self.port), family=family, backlog=512)
        self.port = self._listener.getsockname()[1]
        self._spawn(self._accept, self._listener)

    def stop(self) -> None:
        """Close the port and all connections."""
        self._stopping.set()
        if self._listener is not None:
            with contextlib.suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            self._listener = None
        self.drop_connections()
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive(), "a thread of the fault server hangs"
        self._threads.clear()

    def drop_connections(self) -> None:
        """Close what is open, as a server does with connections that were idle too long."""
        with self._lock:
            opened = list(self._open)
        for connection in opened:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    @property
    def url(self) -> str:
        """A storage URL."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}/v1/AUTH_test"

    def script(self, *replies: Reply) -> None:
        """Answer the next requests like this, one each."""
        with self._lock:
            self._script.extend(replies)

    # Serving

    def _spawn(self, target: Callable[..., None], *args: Any) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self, listener: socket.socket) -> None:
        while not self._stopping.is_set():
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with self._lock:
                self.connections += 1
                number = self.connections
            self._spawn(self._serve, connection, number)

    def _serve(self, connection: socket.socket, number: int) -> None:
        try:
            connection.settimeout(30)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.tls is not None:
                connection = self.tls.wrap_socket(connection, server_side=True)
            with self._lock:
                self.resumed += bool(getattr(connection, "session_reused", False))
                self._open.add(connection)
            with connection.makefile("rb") as stream:
                while not self._stopping.is_set():
                    self._answer(connection, stream, number)
        except (OSError, ValueError, _GoneError):
            pass
        finally:
            with self._lock:
                self._open.discard(connection)
            connection.close()

    def _answer(self, connection: socket.socket, stream: Any, number: int) -> None:
        line = stream.readline(65536).decode("latin-1").split()
        if len(line) != 3:
            raise _GoneError
        headers: dict[str, str] = {}
        while (field_line := stream.readline(65536).decode("latin-1").strip()) != "":
            name, _, value = field_line.partition(":")
            headers[name.lower()] = value.strip()
        request = Request(line[0], line[1], headers, b"", number)
        reply = self.rule(request)
        with self._lock:
            if reply is None:
                reply = self._script.popleft() if self._script else self.default
        if not reply.early:
            request = request._replace(body=self._read_body(stream, headers, reply))
        if reply.etag is not None:
            etag = reply.etag(hashlib.md5(request.body).hexdigest())
            reply = replace(reply, headers=(*reply.headers, ("ETag", etag)))
        with self._lock:
            self.requests.append(request)
        self._send(connection, reply, request)

    def _read_body(self, stream: Any, headers: dict[str, str], reply: Reply) -> bytes:
        kept = []
        left = int(headers.get("content-length", 0))
        while left:
            piece = stream.read(min(left, reply.sips or 1 << 16))
            self._wait(reply.pause if reply.sips else 0)
            if not piece:
                raise _GoneError
            left -= len(piece)
            kept.append(piece if self.keep_bodies else bytes(len(piece)))
        return b"".join(kept)

    def _send(self, connection: socket.socket, reply: Reply, request: Request) -> None:
        self._wait(reply.delay)
        data = reply.encode(request.method == "HEAD")
        if reply.cut is not None or reply.reset or reply.stall:
            data = data[: reply.cut or 0]
        connection.sendall(reply.lead)
        step = reply.pieces or len(data) or 1
        for start in range(0, len(data), step):
            connection.sendall(data[start : start + step])
            self._wait(reply.pause if start + step < len(data) else 0)
        while reply.endless and not self._stopping.is_set():
            connection.sendall(data if reply.pause else data * 100)
            self._wait(reply.pause)
        if reply.stall:
            self._stopping.wait(60)
            raise _GoneError
        if reply.reset:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()
        if (
            reply.cut is not None
            or reply.reset
            or reply.closes
            or reply.drops
            or reply.unframed
            or reply.early
            or reply.version != "HTTP/1.1"
        ):
            if reply.early:
                # Closing with unread bytes would reset the connection and lose the answer.
                connection.shutdown(socket.SHUT_WR)
                with contextlib.suppress(OSError):
                    while ignored := len(connection.recv(1 << 16)):
                        self.ignored += ignored
            raise _GoneError

    def _wait(self, seconds: float) -> None:
        if seconds and self._stopping.wait(seconds):
            raise _GoneError


@contextlib.contextmanager
def black_hole(host: str = "127.0.0.1", port: int = 0) -> Iterator[int]:
    """A port that neither accepts nor refuses: its queue of connections is full; yields the port."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(0)
        for _ in range(4):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]


class Certificates:
    """A certificate authority; ``pem`` is what a client has to trust."""

    def __init__(self) -> None:
        self._authority = trustme.CA()
        self.pem = self._authority.cert_pem.bytes().decode()

    def server(self, *names: str, **options: Any) -> ssl.SSLContext:
        """For a server called ``names`` (default 127.0.0.1); options as of ``trustme.CA.issue_cert``."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._authority.issue_cert(*(names or ("127.0.0.1",)), **options).configure_cert(context)
        return context
