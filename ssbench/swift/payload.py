"""The bytes that are uploaded: random, cheap, never the same twice, never held whole.

A body is a stamp of 16 bytes that no other body has, followed by one block of random bytes read
round and round from an offset that differs for each body. The block's length is a prime, so that
within an object no two chunks of a power of two are alike before 4 MiB times their size. A store
that compresses gains nothing. One that shares equal chunks gains nothing either before some
hundred gigabytes of chunks of 128 KiB; only content-defined chunking would find the block again,
and bytes that are new each time would cost ten times what sending them does.
"""

from __future__ import annotations

import os
import random
import struct

#: The largest prime below 4 MiB.
BLOCK_BYTES = 4194301

STAMP_BYTES = 16

#: The longest piece of a body that is in one piece in memory.
PIECE_BYTES = 1 << 20

#: Coprime to the block: the offsets visit each place once before they come back.
_STRIDE = 2654435761 % BLOCK_BYTES


class Payload:
    """Source of bodies for one process; every process has random bytes of its own, unless there is a seed."""

    def __init__(self, seed: int | None = None) -> None:
        block = os.urandom(BLOCK_BYTES) if seed is None else random.Random(seed).randbytes(BLOCK_BYTES)
        # The block's beginning once more at the end: a piece may begin anywhere.
        self._block = memoryview(block + block[:PIECE_BYTES])
        self._source = os.urandom(8)
        self._count = 0
        self._closed = False
        self._file: int | None = None

    def begin(self) -> tuple[bytes, int]:
        """Return the stamp and the offset of the next body."""
        self._count = count = self._count + 1
        return struct.pack("<Q", count) + self._source, count * _STRIDE % BLOCK_BYTES

    def piece(self, offset: int, limit: int) -> memoryview:
        """Return the bytes from ``offset`` (below BLOCK_BYTES), at most ``limit`` and PIECE_BYTES of them."""
        return self._block[offset : offset + min(limit, PIECE_BYTES)]

    def file(self) -> int | None:
        """Return the descriptor of a memory file that holds the block, for ``sendfile``; None without one."""
        possible = hasattr(os, "memfd_create") and hasattr(os, "sendfile")
        if self._file is None and possible and not self._closed:
            self._file = os.memfd_create("ssbench-payload")
            rest = self._block
            while rest:
                rest = rest[os.write(self._file, rest) :]
        return self._file

    def close(self) -> None:
        """Close the memory file."""
        self._closed = True
        if self._file is not None:
            os.close(self._file)
            self._file = None
