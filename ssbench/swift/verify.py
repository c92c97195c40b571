"""Bodies that can be checked by anyone who knows their object's name (``--verify``).

The block of a :class:`~ssbench.swift.payload.Payload` then follows from a seed, so that all workers have the
same. A body's stamp is 8 bytes that follow from the seed and the name of its object, and 8 that are its
version; the offset at which the block is read follows from both.
"""

from __future__ import annotations

import os
import struct
from hashlib import blake2b
from typing import TYPE_CHECKING

from ssbench.swift.etags import md5
from ssbench.swift.payload import BLOCK_BYTES, PIECE_BYTES, STAMP_BYTES, Payload

if TYPE_CHECKING:
    from _hashlib import HASH

_NAME_BYTES = 8

_PRIME = 2654435761


class Verifier:
    """Makes the stamps of bodies, and checks of what comes back. ``payload`` is of the same seed."""

    def __init__(self, payload: Payload, seed: int) -> None:
        self.payload = payload
        self._key = struct.pack("<Q", seed % 2**64)
        self._count = int.from_bytes(os.urandom(8), "little")

    def begin(self, name: bytes, size: int) -> tuple[bytes, int, HASH]:
        """Begin the next body of an object: its first bytes, the offset of those that follow, an MD5.

        As :meth:`~ssbench.swift.payload.Payload.begin` does, but the stamp comes first in every body.
        """
        self._count = (self._count + 1) % 2**64
        stamp = self.of_name(name) + struct.pack("<Q", self._count)
        return stamp[:size], offset_of(stamp), md5(stamp[:size])

    def of_name(self, name: bytes) -> bytes:
        """Return what every body of an object begins with."""
        return blake2b(name, digest_size=_NAME_BYTES, key=self._key).digest()

    def check(self, name: bytes) -> Check:
        """Return a check of a body of an object."""
        return Check(self.payload, self.of_name(name))

    def check_part(self, name: bytes, first: int) -> PartCheck:
        """Return a check of the bytes of a body from ``first`` on. The ETag says nothing of a part."""
        return PartCheck(self.payload, self.of_name(name), first)


def offset_of(stamp: bytes) -> int:
    """Return where in the block the bytes after a stamp begin."""
    return int.from_bytes(stamp, "little") * _PRIME % BLOCK_BYTES


class Check:
    """Compares a body, piece by piece, with what was written. ``wrong`` tells where it differed first.

    Until then ``md5`` is that of what came.
    """

    def __init__(self, payload: Payload, of_name: bytes) -> None:
        self.wrong: int | None = None
        self.md5: HASH = md5()
        self._payload = payload
        self._of_name = of_name
        self._stamp = b""
        self._offset = 0
        self._seen = 0

    def feed(self, data: bytes) -> None:
        """Take in the next bytes of the body."""
        if self.wrong is not None:
            return
        self.md5.update(data)
        if self._seen < STAMP_BYTES:
            part, data = data[: STAMP_BYTES - self._seen], data[STAMP_BYTES - self._seen :]
            self._take_stamp(part)
        while data and self.wrong is None:
            piece = bytes(self._payload.piece(self._offset, len(data)))
            if not data.startswith(piece):
                self.wrong = self._seen + _first_difference(data, piece)
                return
            data = data[len(piece) :]
            self._seen += len(piece)
            self._offset = (self._offset + len(piece)) % BLOCK_BYTES

    def _take_stamp(self, part: bytes) -> None:
        self._stamp += part
        self._seen += len(part)
        if self._stamp[:_NAME_BYTES] != self._of_name[: len(self._stamp)]:
            self.wrong = 0
        elif self._seen == STAMP_BYTES:
            self._offset = offset_of(self._stamp)


class PartCheck:
    """Compares a part of a body, piece by piece, with what was written.

    What comes after the stamp has to be in the block, which follows from the seed, from some place on and
    without a break. That place follows from a version, of which the part says nothing.
    """

    md5 = None

    def __init__(self, payload: Payload, of_name: bytes, first: int) -> None:
        self._payload = payload
        self._of_name = of_name
        self._at = first
        self._begin = b""
        self._offset: int | None = None
        self._wrong: int | None = None

    @property
    def wrong(self) -> int | None:
        """Where it differed first."""
        if self._wrong is None and self._offset is None and self._begin:
            self._look()
        return self._wrong

    def feed(self, data: bytes) -> None:
        """Take in the next bytes of the part."""
        if self._at < STAMP_BYTES:
            stamp, data = data[: STAMP_BYTES - self._at], data[STAMP_BYTES - self._at :]
            expected = self._of_name[self._at : self._at + len(stamp)]
            if not stamp.startswith(expected):
                self._wrong = self._at
            self._at += len(stamp)
        if self._offset is None:
            self._begin += data
            if len(self._begin) < self._payload.telling:
                return
            data = self._begin
            self._look()
        while data and self._wrong is None and self._offset is not None:
            piece = bytes(self._payload.piece(self._offset, len(data)))
            if not data.startswith(piece):
                self._wrong = self._at + _first_difference(data, piece)
                return
            data = data[len(piece) :]
            self._at += len(piece)
            self._offset = (self._offset + len(piece)) % BLOCK_BYTES

    def _look(self) -> None:
        self._offset = self._payload.find(self._begin[: self._payload.telling])
        if self._offset is None and self._wrong is None:
            self._wrong = self._at


def _first_difference(data: bytes, piece: bytes) -> int:
    step = min(len(data), len(piece), PIECE_BYTES)
    return next((place for place in range(step) if data[place] != piece[place]), step)
