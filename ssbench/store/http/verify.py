"""Bodies that can be checked by anyone who knows their object's name (``--verify``).

The block of a :class:`~.payload.Payload` then follows from a seed, or is of files, so that all
workers have the same. A body's stamp is 8 bytes that follow from the seed and the name of its object, and 8
that are its version; the offset at which the block is read follows from both.
"""

from __future__ import annotations

import os
import struct
from hashlib import blake2b
from typing import TYPE_CHECKING

from ssbench.store.http.etags import start_md5
from ssbench.store.http.payload import STAMP_BYTES, BodySource

if TYPE_CHECKING:
    from _hashlib import HASH

_NAME_BYTES = 8


class BodyVerifier:
    """Makes the stamps of bodies, and checks of what comes back. ``payload`` is of the same seed."""

    def __init__(self, payload: BodySource, seed: int) -> None:
        self.payload = payload
        self._key = struct.pack("<Q", seed % 2**64)
        self._count = int.from_bytes(os.urandom(8), "little")

    def begin(self, name: bytes, size: int) -> tuple[bytes, int, HASH]:
        """Begin the next body of an object: its first bytes, the offset of those that follow, an MD5.

        As :meth:`~ssbench.store.http.payload.BodySource.begin` does, but the stamp comes first in every body.
        """
        self._count = (self._count + 1) % 2**64
        stamp = self.of_name(name) + struct.pack("<Q", self._count)
        return stamp[:size], self.payload.offset_of(stamp), start_md5(stamp[:size])

    def of_name(self, name: bytes) -> bytes:
        """Return what every body of an object begins with."""
        return blake2b(name, digest_size=_NAME_BYTES, key=self._key).digest()

    def check(self, name: bytes) -> BodyComparison:
        """Return a check of a body of an object."""
        return BodyComparison(self.payload, self.of_name(name))

    def check_part(self, name: bytes, first: int) -> PartComparison:
        """Return a check of the bytes of a body from ``first`` on. The ETag says nothing of a part."""
        return PartComparison(self.payload, self.of_name(name), first)


class BodyComparison:
    """Compares a body, piece by piece, with what was written. ``wrong`` is where it differed first.

    Until then ``md5`` is that of what came.
    """

    def __init__(self, payload: BodySource, of_name: bytes) -> None:
        self.wrong: int | None = None
        self.md5: HASH = start_md5()
        self._payload = payload
        self._of_name = of_name
        self._stamp = b""
        self._offset = 0
        self._seen = 0

    def feed(self, data: bytes) -> None:
        """Receive the next bytes of the body."""
        if self.wrong is not None:
            return
        self.md5.update(data)
        if self._seen < STAMP_BYTES:
            part, data = data[: STAMP_BYTES - self._seen], data[STAMP_BYTES - self._seen :]
            self._take_stamp(part)
        if data and self.wrong is None:
            place = self._payload.difference(self._offset, data)
            self.wrong = None if place is None else self._seen + place
            self._seen += len(data)
            self._offset = (self._offset + len(data)) % self._payload.block_bytes

    def _take_stamp(self, part: bytes) -> None:
        self._stamp += part
        self._seen += len(part)
        if self._stamp[:_NAME_BYTES] != self._of_name[: len(self._stamp)]:
            self.wrong = 0
        elif self._seen == STAMP_BYTES:
            self._offset = self._payload.offset_of(self._stamp)


class PartComparison:
    """Compares a part of a body, piece by piece, with what was written.

    What comes after the stamp has to be in the block from some place on and without a break. That place
    follows from a version, of which the part says nothing.
    """

    md5 = None

    def __init__(self, payload: BodySource, of_name: bytes, first: int) -> None:
        self._payload = payload
        self._of_name = of_name
        self._at = first
        self._begin = b""
        #: Where in the block the next bytes may be; None before that is known.
        self._offsets: list[int] | None = None
        self._wrong: int | None = None

    @property
    def wrong(self) -> int | None:
        """Where it differed first."""
        if self._wrong is None and self._offsets is None and self._begin:
            self._look()
        return self._wrong

    def feed(self, data: bytes) -> None:
        """Receive the next bytes of the part."""
        if self._at < STAMP_BYTES:
            stamp, data = data[: STAMP_BYTES - self._at], data[STAMP_BYTES - self._at :]
            expected = self._of_name[self._at : self._at + len(stamp)]
            if not stamp.startswith(expected):
                self._wrong = self._at
            self._at += len(stamp)
        if self._offsets is None:
            self._begin += data
            if len(self._begin) < self._payload.telling:
                return
            data = self._begin
            self._look()
        if data and self._wrong is None and self._offsets:
            found = {offset: self._payload.difference(offset, data) for offset in self._offsets}
            size = self._payload.block_bytes
            self._offsets = [(each + len(data)) % size for each, place in found.items() if place is None]
            if not self._offsets:
                self._wrong = self._at + max(place for place in found.values() if place is not None)
            self._at += len(data)

    def _look(self) -> None:
        self._offsets = self._payload.places(self._begin, self._at)
        if not self._offsets and self._wrong is None:
            self._wrong = self._at
