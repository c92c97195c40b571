"""Listening sockets that accept no more for a while; connections that came in through them stay."""

from __future__ import annotations

import contextlib
import ctypes
import socket
import struct

#: Options of Linux that the socket module does not name, and the filter that lets no packet in.
_ATTACH_FILTER = 26
_DETACH_FILTER = 27
_NOTHING = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0))
_PROGRAM = struct.pack("HP", 1, ctypes.addressof(_NOTHING))


def refuse(listener: int) -> None:
    """Accept no more connections on a listening TCP socket, given its descriptor.

    A peer that connects waits until it is opened again. Unbinding would end all connections that were
    accepted there. Linux only; elsewhere nothing happens.
    """
    _set(listener, _ATTACH_FILTER, _PROGRAM)


def accept(listener: int) -> None:
    """Undo :func:`refuse`."""
    _set(listener, _DETACH_FILTER, bytes(4))


def _set(listener: int, option: int, value: bytes) -> None:
    sock = socket.socket(fileno=listener)
    try:
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, option, value)
    finally:
        sock.detach()
