"""A peer that speaks ZMTP 3 by itself, without a mechanism, and sends what no library would."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time

#: The greeting of ZMTP 3.1 without a mechanism.
GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x01" + b"NULL".ljust(20, b"\0") + bytes(32)

#: Twelve empty messages, and a PING that wants an answer and the connection to end after 10 s of silence.
EMPTY = bytes(2)
PING = b"\x04\x08\x04PING\0\x64x"
FLOOD = (12 * EMPTY + PING) * 400

#: An empty part of a message that goes on.
PART = b"\x01\x00"


def ready(kind: bytes) -> bytes:
    """Return the READY command of a peer with a socket of that kind."""
    body = b"\x05READY\x0bSocket-Type" + struct.pack(">I", len(kind)) + kind + b"\x08Identity" + bytes(4)
    return bytes([4, len(body)]) + body


def shake_hands(peer: socket.socket, kind: bytes) -> None:
    """Greet, say what kind of socket this is, and read what came."""
    peer.settimeout(5)
    peer.sendall(GREETING + ready(kind))
    came = b""
    while b"READY" not in came:
        data = peer.recv(1024)
        if not data:
            raise ConnectionError("the other side closed the connection")
        came += data


def reset(peer: socket.socket) -> None:
    """Close so that a reset follows."""
    with contextlib.suppress(OSError):
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()


def flood_and_reset(host: str, port: int, kind: bytes, pause: float) -> bool:
    """Connect, send :data:`FLOOD`, pause for so many seconds and break off; False where that fails."""
    with contextlib.suppress(OSError):
        peer = socket.create_connection((host, port), timeout=5)
        try:
            shake_hands(peer, kind)
            peer.sendall(FLOOD)
            time.sleep(pause)
            return True
        finally:
            reset(peer)
    return False


class ResettingStrangers:
    """Connect to both ports of a master so many times, send :data:`FLOOD` each time, and break off.

    One more connection to each sends as much as is taken in for about two seconds. ``flooded`` counts those
    that came so far. A context manager.
    """

    def __init__(self, host: str, work_port: int, results_port: int, times: int) -> None:
        self._host = host
        self._kinds = {work_port: b"DEALER", results_port: b"PUSH"}
        self._times = times
        self.flooded = dict.fromkeys(self._kinds, 0)
        self._threads = [
            threading.Thread(target=flood, args=(port,))
            for flood in (self._flood_often, self._flood_without_end)
            for port in self._kinds
        ]

    def _flood_often(self, port: int) -> None:
        for number in range(self._times):
            self.flooded[port] += flood_and_reset(self._host, port, self._kinds[port], number % 12 / 1000)

    def _flood_without_end(self, port: int) -> None:
        with contextlib.suppress(OSError):
            peer = socket.create_connection((self._host, port), timeout=5)
            try:
                shake_hands(peer, self._kinds[port])
                peer.settimeout(1)
                for _ in range(2000):
                    peer.sendall(FLOOD)
            finally:
                reset(peer)

    def wait(self) -> None:
        """Wait until all have come and gone."""
        for thread in self._threads:
            thread.join()

    def __enter__(self) -> ResettingStrangers:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.wait()


class FalseMaster:
    """Listens where a master should, sends :data:`FLOOD` so many times to whoever comes, and breaks off.

    ``came`` counts the connections to each of the ``ports``. A context manager.
    """

    def __init__(self, work_port: int, results_port: int, *, times: int = 1) -> None:
        self.came = {"work": 0, "results": 0}
        self.ports = (work_port, results_port)
        self._times = times
        self._ending = threading.Event()
        self._listeners = [
            socket.create_server(("127.0.0.1", port), backlog=64) for port in (work_port, results_port)
        ]
        self._threads = [
            threading.Thread(target=self._serve, args=each, daemon=True)
            for each in zip(self._listeners, ("work", "results"), (b"ROUTER", b"PULL"), strict=True)
        ]

    def _serve(self, listener: socket.socket, name: str, kind: bytes) -> None:
        while not self._ending.is_set():
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            with contextlib.suppress(OSError):
                shake_hands(peer, kind)
                self.came[name] += 1
                for _ in range(self._times):
                    peer.sendall(FLOOD)
                time.sleep(self.came[name] % 12 / 1000)
            reset(peer)

    def __enter__(self) -> FalseMaster:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        for listener in self._listeners:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        for thread in self._threads:
            thread.join(10)
