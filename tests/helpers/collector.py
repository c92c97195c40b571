"""A stand-in for servers that take metrics by HTTP: an OpenTelemetry collector, a Pushgateway."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread


@dataclass
class Taken:
    """What arrived: (method, path, header, body).

    ``status`` is the answer, ``held`` lets answers wait. An ``endless`` answer says more until its reader
    closes the connection; ``read`` is how many bytes it could say.
    """

    port: int = 0
    status: int = 200
    requests: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)
    free: Event = field(default_factory=Event)
    endless: bool = False
    read: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def taking(status: int = 200, *, held: bool = False) -> Iterator[Taken]:
    """Serve one; ``held``: no request is answered until ``free`` is set, which it is at the end."""
    taken = Taken(status=status)
    if not held:
        taken.free.set()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            taken.requests.append(
                (self.command, self.path, {name.lower(): value for name, value in self.headers.items()}, body)
            )
            taken.free.wait(60)
            if taken.endless:
                self._say_on()
                return
            text = b"" if taken.status < 300 else b"no room here"
            self.send_response(taken.status)
            self.send_header("Content-Length", str(len(text)))
            if 300 <= taken.status < 400:
                self.send_header("Location", taken.url + "/elsewhere")
            self.end_headers()
            self.wfile.write(text)

        def _say_on(self) -> None:
            self.close_connection = True
            self.send_response(taken.status)
            self.end_headers()
            with suppress(ConnectionError):
                while taken.read < 1_000_000_000:
                    taken.read += self.wfile.write(bytes(100_000))

        do_PUT = do_POST  # noqa: N815 - as http.server calls it

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    taken.port = server.server_port
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield taken
    finally:
        taken.free.set()
        server.shutdown()
        thread.join()
        server.server_close()
