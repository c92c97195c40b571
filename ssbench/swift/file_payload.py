"""Bodies of the bytes of files: each begins with one, and goes on with those that follow, round and round."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from ssbench.body_files import Content
from ssbench.swift.etags import md5
from ssbench.swift.payload import PIECE_BYTES, SMALL_BYTES, STAMP_BYTES, Payload

if TYPE_CHECKING:
    from _hashlib import HASH

#: Bytes by which a part of a body is looked for in the files.
_COMPARED = 64


class FilePayload(Payload):
    """Source of bodies that are the bytes of files. Without a verifier they have no stamp."""

    def __init__(self, content: Content) -> None:
        # So that no piece of a long body is short because the files are.
        times = -(-PIECE_BYTES // len(content.data))
        super().__init__(block=content.data * times)
        self._starts = content.starts
        self._count = random.randrange(len(self._starts))
        self.telling = 1

    def begin(self, size: int) -> tuple[bytes, int, HASH | None]:
        """Begin the next body, with the next file."""
        self._count = count = self._count + 1
        start = self._starts[count % len(self._starts)]
        if size > SMALL_BYTES:
            return b"", start, md5() if self._sample() else None
        first = bytes(self._block[start : start + size])
        return first, 0, md5(first)

    def offset_of(self, stamp: bytes) -> int:
        """Return where the file begins that comes after a stamp."""
        return self._starts[int.from_bytes(stamp, "little") % len(self._starts)]

    def places(self, data: bytes, at: int) -> list[int]:
        """Return all places where ``data`` may be that is from ``at`` on in a verified body."""
        places = ((start + at - STAMP_BYTES) % self.block_bytes for start in self._starts)
        begin = data[:_COMPARED]
        return [each for each in places if self._block[each : each + len(begin)] == begin]
