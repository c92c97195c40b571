"""What the kernel lets through to listening TCP sockets, and to the connections that they accept.

Linux only; elsewhere nothing happens.
"""

from __future__ import annotations

import contextlib
import ctypes
import socket
import struct

#: An option of Linux that the socket module does not name, and instructions of such a filter: to load a byte
#: of the TCP segment, to jump over so many where it has one of these bits, to return how many bytes pass.
_ATTACH_FILTER = 26
_LOAD_BYTE, _JUMP_IF_SET, _RETURN_CODE = 0x30, 0x45, 0x06

#: The byte of a segment with its flags, and the flag of a reset.
_FLAGS_OFFSET, _RESET_FLAG = 13, 4
_ALL_BYTES = 0xFFFFFFFF


def _filter_program(*instructions: tuple[int, int, int, int]) -> tuple[bytes, object]:
    """Return the value of the option for a filter, and what has to live as long as that is used."""
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in instructions))
    return struct.pack("HP", len(instructions), ctypes.addressof(code)), code


_ACCEPT_NOTHING = _filter_program((_RETURN_CODE, 0, 0, 0))
_ACCEPT_NO_RESETS = _filter_program(
    (_LOAD_BYTE, 0, 0, _FLAGS_OFFSET),
    (_JUMP_IF_SET, 1, 0, _RESET_FLAG),
    (_RETURN_CODE, 0, 0, _ALL_BYTES),
    (_RETURN_CODE, 0, 0, 0),
)


def stop_accepting(listener: int) -> None:
    """Accept no more connections on a listening TCP socket, given its descriptor.

    A peer that connects waits until it is opened again. Unbinding would end all connections that were
    accepted there.
    """
    _attach_filter(listener, _ACCEPT_NOTHING)


def start_accepting(listener: int) -> None:
    """Accept connections, first or again, and have resets of their peers ignored.

    libzmq 4.3.5 aborts the process where a connection is reset while it does not read it, because the queue
    of received messages is full, and has a PING of the peer left in its buffer: the answer would go to a
    connection that it knows to be broken. Without the reset it reads on, until the peer's data ends. A
    connection accepted before the filter is attached does not have it, so attach it before listening.
    """
    _attach_filter(listener, _ACCEPT_NO_RESETS)


def _attach_filter(listener: int, program: tuple[bytes, object]) -> None:
    sock = socket.socket(fileno=listener)
    try:
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, program[0])
    finally:
        sock.detach()
