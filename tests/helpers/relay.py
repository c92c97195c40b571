"""A TCP relay whose directions can be blocked, or delayed, as a firewall or a bad link does."""

from __future__ import annotations

import contextlib
import itertools
import math
import queue
import socket
import threading
import time
from collections.abc import Callable
from types import TracebackType

UP, DOWN = "to the target", "to the client"


class Relay:
    """Listens on ``port`` (any free one) of 127.0.0.1 and forwards to the target's. A context manager.

    What comes from a blocked direction is kept, and forwarded once it is open again, as TCP does after a
    loss of packets. After ``most`` pieces of answers it blocks these by itself, and ``stands`` is set.
    """

    def __init__(self, target: int, delay: float = 0.0, most: float = math.inf) -> None:
        self.target = target
        self.delay = delay
        self.stands = threading.Event()
        self._most = most
        self._answers = itertools.count()
        self._open = {UP: threading.Event(), DOWN: threading.Event()}
        self.unblock()
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._closing = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._start(self._accept)

    def block(self, *directions: str) -> None:
        """Hold back what comes in these directions, or in both."""
        for direction in directions or (UP, DOWN):
            self._open[direction].clear()

    def unblock(self) -> None:
        """Forward in both directions."""
        for event in self._open.values():
            event.set()

    def cut(self) -> None:
        """Break all connections; new ones are taken."""
        for each in list(self._sockets):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _start(self, call: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=call, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                target = socket.create_connection(("127.0.0.1", self.target), timeout=5)
            except OSError:
                client.close()
                continue
            for each in (client, target):
                each.settimeout(None)
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._sockets.append(each)
            for source, sink, direction in ((client, target, UP), (target, client, DOWN)):
                chunks: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()
                self._start(self._read, source, chunks)
                self._start(self._write, sink, chunks, direction)

    def _read(self, source: socket.socket, chunks: queue.SimpleQueue[tuple[float, bytes]]) -> None:
        data = b"?"
        while data:
            try:
                data = source.recv(65536)
            except OSError:
                data = b""
            chunks.put((time.monotonic(), data))

    def _write(
        self, sink: socket.socket, chunks: queue.SimpleQueue[tuple[float, bytes]], direction: str
    ) -> None:
        while True:
            came, data = chunks.get()
            time.sleep(max(0.0, came + self.delay - time.monotonic()))
            if direction == DOWN and not self.stands.is_set() and next(self._answers) >= self._most:
                self.block(DOWN)
                self.stands.set()
            self._open[direction].wait()
            with contextlib.suppress(OSError):
                if data and not self._closing:
                    sink.sendall(data)
                    continue
            with contextlib.suppress(OSError):
                sink.shutdown(socket.SHUT_RDWR)
            return

    def __enter__(self) -> Relay:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing = True
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.unblock()
        self.cut()
        for thread in self._threads:
            thread.join(10)
        for each in self._sockets:
            each.close()
