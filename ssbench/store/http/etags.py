"""ETags: Swift's is the MD5 of an object's bytes, so it shows whether they arrived as they were sent.

The ETag in the answer to an upload is checked against the MD5 of what was sent, that of a read against the
MD5 of what came. MD5 costs 1.4 ms a MB and 6.4 µs for 4 kB, several times what sending does, so it is not
computed for every body: see :data:`SAMPLE_INTERVAL`. With ``--verify`` it is.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _hashlib import HASH

#: Of uploads that :class:`~ssbench.store.http.payload.BodySource` has no MD5 of, and of reads, one in so many is
#: checked: the first, and then each time that so many more were made.
SAMPLE_INTERVAL = 128

#: The same of uploads of more than LARGE_BYTES, of which MD5 would be a tenth of all that they cost.
LARGE_SAMPLE_INTERVAL = 1024
LARGE_BYTES = 65536

_MATCH_MD5 = re.compile("[0-9a-f]{32}").fullmatch


def start_md5(data: bytes = b"") -> HASH:
    """Return an MD5 that holds ``data``."""
    return hashlib.md5(data, usedforsecurity=False)


def describe_wrong_etag(etag: str | None, expected: str, what: str) -> str | None:
    """Say that the ETag of an answer is not ``expected``, the MD5 of ``what``; None where it is.

    An ETag that is no MD5, as of stores that are not Swift, says nothing of the bytes.
    """
    said = _stripped(etag)
    if said == expected or not _MATCH_MD5(said):
        return None
    return f"the answer has the ETag {said}, {what} have the MD5 {expected}"


def is_md5(etag: str | None) -> bool:
    """Return whether the ETag of an answer is there and an MD5."""
    return _MATCH_MD5(_stripped(etag)) is not None


def _stripped(etag: str | None) -> str:
    return "" if etag is None else etag.strip().strip('"').lower()


class RegularSample:
    """Chooses one in ``every``, beginning with the first."""

    __slots__ = ("_every", "_left")

    def __init__(self, every: int = SAMPLE_INTERVAL) -> None:
        self._every = every
        self._left = 0

    def is_next(self) -> bool:
        """Return whether the next one is chosen; count it where it is not."""
        if self._left:
            self._left -= 1
            return False
        return True

    def __call__(self) -> bool:
        """Return whether this one is chosen."""
        if not self.is_next():
            return False
        self._left = self._every - 1
        return True


class ReceivedDigest:
    """The MD5 of a body that comes; like :class:`~.verify.Check`, but any bytes are right."""

    wrong: int | None = None

    def __init__(self) -> None:
        self.md5 = start_md5()
        self.feed: Callable[[bytes], None] = self.md5.update
