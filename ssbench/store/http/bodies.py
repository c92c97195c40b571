"""What is uploaded, bodies and metadata, and how it is checked: random, cheap, never the same twice.

Swift's ETag is the MD5 of an object's bytes, so it shows whether they arrived as they were sent. The ETag in
the answer to an upload is checked against the MD5 of what was sent, that of a read against the MD5 of what
came. MD5 costs 1.4 ms a MB and 6.4 µs for 4 kB, several times what sending does, so it is not computed for
every body: see :data:`ssbench.scenario.operations.SAMPLE_INTERVAL`. With ``--verify`` it is.
"""

from __future__ import annotations

import hashlib
import os
import random
import re
import struct
from collections.abc import Collection, Iterable, Iterator, Mapping
from hashlib import blake2b, shake_256
from typing import TYPE_CHECKING, Protocol
from zlib import crc32

from ssbench.scenario.operations import (
    LARGE_BYTES,
    LARGE_SAMPLE_INTERVAL,
    OPERATIONS,
    SAMPLE_INTERVAL,
    SMALL_BYTES,
    Header,
    OperationSettings,
)
from ssbench.scenario.structured_values import BodyContent, Metadata

if TYPE_CHECKING:
    from _hashlib import HASH

#: Without a flag, so that it begins with one constant byte, which is looked for as such.
_SAID_MD5 = re.compile(rb'\n[Ee][Tt][Aa][Gg][ \t]*:[ \t]*"?([0-9A-Fa-f]{32})"?[ \t]*[\r\n]').search


def start_md5(data: bytes | memoryview = b"") -> HASH:
    """Return an MD5 that holds ``data``."""
    return hashlib.md5(data, usedforsecurity=False)


def find_md5(head: bytes) -> str | None:
    """Return the MD5 that an answer has as its ETag, in lower case; None where it has none.

    Other ETags, as of stores that are not Swift, say nothing of the bytes.
    """
    found = _SAID_MD5(head)
    return None if found is None else found[1].decode().lower()


class LaterMd5:
    """The MD5 of a body of which the rest, ``left`` bytes of the payload, is added when it is asked for."""

    def __init__(self, digest: HASH, payload: BodySource, offset: int, left: int) -> None:
        self._begun, self._payload, self._rest = digest, payload, (offset, left)

    def hexdigest(self) -> str:
        """Return it."""
        whole = self._begun.copy()
        self._payload.add_to(whole, *self._rest)
        return whole.hexdigest()


class RegularSample:
    """Chooses one body in ``every``, of large ones in ``every_large``, beginning with the first."""

    __slots__ = ("_every", "_every_large", "_large_left", "_left")

    def __init__(self, every: int = SAMPLE_INTERVAL, every_large: int = LARGE_SAMPLE_INTERVAL) -> None:
        self._every, self._every_large = every, every_large
        self._left = self._large_left = 0

    def __call__(self, size: int = 0) -> bool:
        """Return whether this body, of ``size`` bytes (0: not known), is chosen."""
        if size > LARGE_BYTES:
            if self._large_left:
                self._large_left -= 1
                return False
            self._large_left = self._every_large - 1
        else:
            if self._left:
                self._left -= 1
                return False
            self._left = self._every - 1
        return True


class ReceivedDigest:
    """The MD5 of a body that comes; like :class:`BodyComparison`, but any bytes are right."""

    wrong: int | None = None

    def __init__(self) -> None:
        self.md5 = start_md5()
        self._first = self._last = b""
        self._size = 0

    def feed(self, data: bytes) -> None:
        """Receive the next bytes of the body."""
        self.md5.update(data)
        self._first += data[: STAMP_BYTES - len(self._first)]
        self._last = (self._last + data[-STAMP_BYTES:])[-STAMP_BYTES:]
        self._size += len(data)

    def is_of_another(self, path: str) -> bool:
        """Whether the whole body says that it is of another object than that at ``CONTAINER/NAME``."""
        said = object_of_stamp(self._first if self._size > SMALL_BYTES else self._last)
        return said is not None and said != number_object(path)


# -- Bodies ----------------------------------------------------------------------------------------


#: The largest prime below 4 MiB.
BLOCK_BYTES = 4194301

STAMP_BYTES = 16

#: The longest piece of a body that is in one piece in memory.
PIECE_BYTES = 1 << 20

#: How far apart the offsets of small bodies are, and how many they have.
_SMALL_STEP = 16384
_SMALL_OFFSETS = 64

#: So many random bytes tell a place of the block from all others.
_TELLING_BYTES = 24

#: Where a share of bodies is zeros, each so many bytes have theirs, at the end.
_ZEROS_BLOCK_BYTES = 256

#: Each body begins so much further on in the block than the last one: most bytes of one of 64 kB are then in
#: the processor's caches, from where they take 0.8 of the CPU to send. Coprime to the block, so that the
#: offsets visit each place once before they come back. Of the numbers up to 8192 it has equal chunks latest.
_OFFSET_STRIDE = 7918

#: The same for bodies of which the offset follows from the stamp.
_OFFSET_PRIME = 2654435761

_pack_count = struct.Struct("<Q").pack
_pack_numbers = struct.Struct("<IIII").pack
_unpack_numbers = struct.Struct("<IIII").unpack

#: What tells stamps of numbers from other bytes, such as zeros.
_STAMP_MARK = 0x5353424E


#: A body that is to be sent: its first bytes, all of a small one; where in the block those are that follow;
#: and, where it is to be known, the MD5 of the first bytes, which :meth:`BodySource.add_to` continues.
ChosenBody = tuple[bytes, int, "HASH | None"]

#: A body as it is sent: what comes before each so many bytes of it, in order. The last may be no bytes.
BodyFrames = list[tuple[bytes, int]]


class BodyHash(Protocol):
    """Something that is computed of all bytes of a body, as by a hash of :mod:`hashlib`."""

    def update(self, data: bytes | memoryview, /) -> None:
        """Add the next bytes."""

    def digest(self) -> bytes:
        """Return it."""


class BodySource:
    """Source of bodies for one process; every process has random bytes of its own, unless there is a seed.

    A body is never held whole. It is a stamp of 16 bytes that no other body has, followed by one block of
    random bytes read round and round from an offset that differs for each body. In a body of at most 4 kB the
    stamp comes last, and there are few offsets. The block's length is a prime, so that within an object no
    two chunks of a power of two are alike before 4 MiB times their size. A store that compresses gains
    nothing. One that shares equal chunks gains nothing either before some hundred gigabytes of chunks of 128
    KiB; only content-defined chunking would find the block again, and bytes that are new each time would cost
    ten times what sending them does.

    Where it is known of which object a body is, the stamp says so (:func:`object_of_stamp`): one that comes
    with the ETag of its bytes may still be that of another object.

    A share of the bytes may be ``zeros``, which a store that compresses saves; where all are, there is no
    stamp. ``block`` is what is read round and round in place of random bytes, PIECE_BYTES or more.
    """

    def __init__(self, seed: int | None = None, zeros: float = 0.0, *, block: bytes | None = None) -> None:
        if block is None:
            block = _make_random_block(seed)
        self.block_bytes = len(block)
        #: So many bytes are at one place of the block only, as far as that can be.
        self.telling = _TELLING_BYTES
        self._stamped = zeros < 1
        if zeros:
            block = _with_zeros(block, zeros)
            self.telling += _ZEROS_BLOCK_BYTES
        # The block's beginning once more at the end: a piece may begin anywhere.
        self._block = memoryview(block + block[:PIECE_BYTES])
        self._source = os.urandom(8)
        self._source_number = int.from_bytes(self._source[:4], "little")
        self._count = 0
        self._sample = RegularSample()
        self._closed = False
        self._file: int | None = None

    def begin(self, size: int, number: int | None = None) -> ChosenBody:
        """Begin the next body, of ``size`` bytes; ``number`` is the :func:`number_object` of its object."""
        self._count = count = self._count + 1
        if not self._stamped:
            stamp = bytes(STAMP_BYTES)
        elif number is None:
            stamp = _pack_count(count) + self._source
        else:
            place, source = count & 0xFFFFFFFF, self._source_number
            stamp = _pack_numbers(place, source, number, place ^ source ^ number ^ _STAMP_MARK)
        if size > SMALL_BYTES:
            digest = start_md5(stamp) if self._sample(size) else None
            return stamp, count * _OFFSET_STRIDE % BLOCK_BYTES, digest
        offset = count % _SMALL_OFFSETS * _SMALL_STEP
        body = b"".join((self._block[offset : offset + max(0, size - STAMP_BYTES)], stamp[:size]))
        return body, 0, start_md5(body) if self._sample(size) else None

    def pieces(self, offset: int, left: int) -> list[memoryview]:
        """Return as many of the ``left`` bytes from ``offset`` on as one call may send."""
        size = self.block_bytes
        first = self._block[offset : min(offset + left, size)]
        second = self._block[: min(left - len(first), size - len(first))]
        return [first, second] if second else [first]

    def add_to(self, digest: HASH | BodyHash, offset: int, count: int) -> None:
        """Add ``count`` bytes from ``offset`` on to an MD5, or to another hash."""
        while count:
            piece = self.piece(offset, count)
            digest.update(piece)
            count -= len(piece)
            offset = (offset + len(piece)) % self.block_bytes

    def piece(self, offset: int, limit: int) -> memoryview:
        """Return the bytes from ``offset`` (below the block's length), at most ``limit`` and PIECE_BYTES."""
        return self._block[offset : offset + (limit if limit < PIECE_BYTES else PIECE_BYTES)]

    def offset_of(self, stamp: bytes) -> int:
        """Return where in the block the bytes after a stamp begin, in a body that can be verified."""
        return int.from_bytes(stamp, "little") * _OFFSET_PRIME % self.block_bytes

    def holds(self, offset: int, data: bytes | memoryview) -> bool:
        """Whether ``data``, of PIECE_BYTES at most, are the bytes from an offset on."""
        whole: bytes = self._block.obj  # type: ignore[assignment]
        return whole.startswith(data, offset)

    def places(self, data: bytes, at: int) -> list[int]:
        """Return the offset from which on the bytes are as in ``data``; nothing where there is none.

        ``data`` is what a verified body has from ``at`` on, behind its stamp.
        """
        whole: bytes = self._block.obj  # type: ignore[assignment]
        place = whole.find(data[: self.telling])
        return [] if place < 0 else [place % self.block_bytes]

    def difference(self, offset: int, data: bytes) -> int | None:
        """Return where ``data`` first differs from the bytes from an offset on; None where it does not."""
        if self.holds(offset, data):
            return None  # nearly always
        left = data
        while left:
            piece = bytes(self.piece(offset, len(left)))
            if not left.startswith(piece):
                return len(data) - len(left) + _first_difference(left, piece)
            left = left[len(piece) :]
            offset = (offset + len(piece)) % self.block_bytes
        return None

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


def number_stem(stem: str) -> int:
    """Return what to add the number of an object to, of what comes before it in ``CONTAINER/NAME``."""
    return crc32(stem.encode()) >> 1


def number_object(path: str) -> int:
    """Return the number by which stamps tell objects apart, of the one at ``CONTAINER/NAME``."""
    stem = path.rstrip("0123456789")
    return number_stem(stem) + int(path[len(stem) :][-9:] or 0)


def object_of_stamp(stamp: bytes) -> int | None:
    """Return the :func:`number_object` of the object that a body with this stamp is of.

    None where it does not say so: it is of another program, or a version that did not.
    """
    if len(stamp) != STAMP_BYTES:
        return None
    count, source, number, check = _unpack_numbers(stamp)
    found: int = number
    return found if check == count ^ source ^ number ^ _STAMP_MARK else None


def _first_difference(data: bytes, piece: bytes) -> int:
    step = min(len(data), len(piece), PIECE_BYTES)
    differs = int.from_bytes(data[:step]) ^ int.from_bytes(piece[:step])
    return step - (differs.bit_length() + 7) // 8


def _make_random_block(seed: int | None) -> bytes:
    """Return random bytes, which are the same for the same seed."""
    return os.urandom(BLOCK_BYTES) if seed is None else random.Random(seed).randbytes(BLOCK_BYTES)


def _with_zeros(block: bytes, share: float) -> bytes:
    """Return a block of which a share is zeros, evenly spread."""
    count = round(_ZEROS_BLOCK_BYTES * share)
    changed = bytearray(block)
    for place in range(_ZEROS_BLOCK_BYTES - count, len(changed), _ZEROS_BLOCK_BYTES):
        end = min(place + count, len(changed))
        changed[place:end] = bytes(end - place)
    return bytes(changed)


#: Bytes by which a part of a body is looked for in the files.
_COMPARED_BYTES = 64


class FileBodySource(BodySource):
    """Source of bodies that are the bytes of files. Without a verifier they have no stamp."""

    def __init__(self, content: BodyContent) -> None:
        # So that no piece of a long body is short because the files are.
        times = -(-PIECE_BYTES // len(content.data))
        super().__init__(block=content.data * times)
        self._starts = content.starts
        self._count = random.randrange(len(self._starts))
        self.telling = 1

    def begin(self, size: int, number: int | None = None) -> ChosenBody:
        """Begin the next body, with the next file."""
        self._count = count = self._count + 1
        start = self._starts[count % len(self._starts)]
        first = b"" if size > SMALL_BYTES else bytes(self._block[start : start + size])
        return first, 0 if first else start, start_md5(first) if self._sample(size) else None

    def offset_of(self, stamp: bytes) -> int:
        """Return where the file begins that comes after a stamp."""
        return self._starts[int.from_bytes(stamp, "little") % len(self._starts)]

    def places(self, data: bytes, at: int) -> list[int]:
        """Return all places where ``data`` may be that is from ``at`` on in a verified body."""
        places = ((start + at - STAMP_BYTES) % self.block_bytes for start in self._starts)
        begin = data[:_COMPARED_BYTES]
        return [each for each in places if self._block[each : each + len(begin)] == begin]


# -- Bodies that can be checked by the name of their object ----------------------------------------


_NAME_BYTES = 8

#: Of so many bodies at most the MD5 is remembered: 5 MB.
_MOST_KNOWN_MD5S = 20_000


class BodyVerifier:
    """Makes the stamps of bodies, and checks of what comes back. ``payload`` is of the same seed.

    With ``--verify`` anyone who knows the name of an object can check its body. The block then follows from a
    seed, or is of files, so that all workers have the same. The stamp is 8 bytes that follow from the seed
    and the name of the object, and 8 that are its version; the offset at which the block is read follows from
    both.
    """

    def __init__(self, payload: BodySource, seed: int) -> None:
        self.payload = payload
        self._keyed = blake2b(digest_size=_NAME_BYTES, key=struct.pack("<Q", seed % 2**64))
        self._count = int.from_bytes(os.urandom(8), "little")
        #: MD5s of bodies that were read, by their stamps and sizes.
        self._known: dict[tuple[bytes, int], str] = {}

    def begin(self, name: bytes, size: int, version: int | None = None) -> tuple[bytes, int, HASH]:
        """Begin a body of an object: its first bytes, the offset of those that follow, an MD5.

        As :meth:`~ssbench.store.http.bodies.BodySource.begin` does, but the stamp comes first in every body.
        It is of a version below 2**64; None: of the next one of this process.
        """
        if version is None:
            self._count = version = (self._count + 1) % 2**64
        stamp = self.of_name(name) + _pack_count(version)
        return stamp[:size], self.payload.offset_of(stamp), start_md5(stamp[:size])

    def begin_piece(self, name: bytes, version: int, first: int, size: int) -> tuple[bytes, int, HASH]:
        """Do the same for a piece of a version of the body of an object, from its byte ``first`` on."""
        stamp = self.of_name(name) + struct.pack("<Q", version)
        begin = stamp[first : first + size]
        place = self.payload.offset_of(stamp) + max(0, first - STAMP_BYTES)
        return begin, place % self.payload.block_bytes, start_md5(begin)

    def of_name(self, name: bytes) -> bytes:
        """Return what every body of an object begins with."""
        digest = self._keyed.copy()  # half of what making one takes
        digest.update(name)
        return digest.digest()

    def is_of(self, name: bytes, body: memoryview) -> bool:
        """Whether a whole body, of PIECE_BYTES at most, is one of an object.

        One that is shorter than its stamp is left to :meth:`check`.
        """
        stamp = bytes(body[:STAMP_BYTES])
        return (
            len(stamp) == STAMP_BYTES
            and stamp.startswith(self.of_name(name))
            and self.payload.holds(self.payload.offset_of(stamp), body[STAMP_BYTES:])
        )

    def find_md5_of(self, body: memoryview) -> str:
        """Return the MD5 of a whole body of which :meth:`is_of` said that it is right.

        That follows from its stamp and its size, so it is computed once: it takes longer than all else here.
        """
        key = bytes(body[:STAMP_BYTES]), len(body)
        found = self._known.get(key)
        if found is None:
            if len(self._known) == _MOST_KNOWN_MD5S:
                self._known.clear()
            found = self._known[key] = start_md5(body).hexdigest()
        return found

    def check(self, name: bytes, least: int = 0) -> BodyComparison:
        """Return a check of a body of an object, which has this version at least."""
        return BodyComparison(self.payload, self.of_name(name), least)

    def check_part(self, name: bytes, first: int) -> PartComparison:
        """Return a check of the bytes of a body from ``first`` on. The ETag says nothing of a part."""
        return PartComparison(self.payload, self.of_name(name), first)


def version_of_stamp(stamp: bytes) -> int:
    """Return the version of a body that can be verified, of its first bytes."""
    return int.from_bytes(stamp[_NAME_BYTES:STAMP_BYTES], "little")


class BodyComparison:
    """Compares a body, piece by piece, with what was written. ``wrong`` is where it differed first.

    Until then ``md5`` is that of what came. ``older``: it is of an earlier version than ``least``.
    """

    def __init__(self, payload: BodySource, of_name: bytes, least: int = 0) -> None:
        self.wrong: int | None = None
        self.older = False
        self._least = least
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
            self.older = version_of_stamp(self._stamp) < self._least


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


# -- Metadata ----------------------------------------------------------------------------------


#: Number of items, and bytes of the value of each.
MetadataShape = tuple[int, int]

#: The item in which ssbench writes whose an object is.
OWNER_ITEM = "Ssbench-Owner"
_ITEM_PREFIX = "Ssbench-"

#: What a POST sets of an object that was written without metadata.
_POSTED_SHAPE: MetadataShape = (1, 16)

#: The keys of its settings.
_NUMBER_SETTING, _SIZE_SETTING = "metadata", "metadata_bytes"

_VERSION_BYTES = 4

#: Without a flag, so that the constant it begins with is looked for as such.
_LOWER_ITEM_PATTERN = re.compile(rb"\nx-(?:object|amz)-meta-ssbench-\d+[ \t]*:")
_OWNER_PATTERN = re.compile(rb"(?i)\nx-(?:object|amz)-meta-ssbench-owner[ \t]*:([^\r\n]*)")
_ITEM_PATTERN = re.compile(rb"(?i)\nx-(?:object|amz)-meta-ssbench-(\d+)[ \t]*:[ \t]*([^\r\n]*)")


def find_written_shape(metadata: Metadata | None) -> MetadataShape:
    """Return what each upload has, of the key of a scenario."""
    return (0, 0) if metadata is None else (metadata.number, metadata.size)


def find_posting_settings(operations: Iterable[OperationSettings]) -> OperationSettings:
    """Return the settings of the operation that sets metadata, among those of a scenario."""
    name = next(row.name for row in OPERATIONS if _NUMBER_SETTING in row.keys)
    return next((each for each in operations if each.name == name), OperationSettings(name))


def posted_shape(settings: OperationSettings, written: MetadataShape) -> MetadataShape:
    """Return what an operation sets of objects that have been ``written`` with so much."""
    number, size = written if written[0] else _POSTED_SHAPE
    values = settings.values
    return values.get(_NUMBER_SETTING, number), values.get(_SIZE_SETTING, size)


def make_metadata(seed: int, path: str, shape: MetadataShape) -> tuple[Header, ...]:
    """Return the items of a new version of an object at a path (``container/object``).

    The values follow from the seed, the path and the version. The items are ``Ssbench-0`` and so on, in
    hexadecimal digits; a store has its own beginning for names of such fields. The first value begins with
    the version, which is random: so whoever knows the seed can check all of them (``--verify``).
    """
    values = _metadata_values(seed, path, os.urandom(_VERSION_BYTES).hex(), shape)
    return tuple((f"{_ITEM_PREFIX}{number}", value) for number, value in enumerate(values))


def find_owner(head: bytes) -> str | None:
    """Return what the head of an answer says of the owner of an object, None where it does not."""
    found = _OWNER_PATTERN.search(head)
    return None if found is None else found[1].decode("latin-1").strip()


def has_item(head: bytes) -> bool:
    """Whether the head of an answer has any of these fields."""
    return _LOWER_ITEM_PATTERN.search(head.lower()) is not None


def describe_wrong_metadata(
    seed: int, path: str, head: bytes, shapes: Collection[MetadataShape]
) -> str | None:
    """Say what is wrong with the metadata in the head of an answer, which should have one of these shapes."""
    found = {int(number): value.strip() for number, value in _ITEM_PATTERN.findall(head)}
    first = found.get(0, b"").decode("latin-1")
    shape = len(found), len(first)
    if shape not in shapes or found.keys() != set(range(len(found))):
        known = " or ".join(f"{number} of {size} bytes" for number, size in sorted(shapes))
        return f"{shape[0]} items of metadata, the first of {shape[1]} bytes, where {known} were written"
    for number, value in enumerate(_metadata_values(seed, path, first[: 2 * _VERSION_BYTES], shape)):
        if found[number] != value.encode():
            return f"{_ITEM_PREFIX}{number} is another than was written"
    return None


def _metadata_values(seed: int, path: str, version: str, shape: MetadataShape) -> Iterator[str]:
    number, size = shape
    version = version[:size]
    key = struct.pack("<Q", seed % 2**64) + f"{version} {path}".encode("utf-8", "surrogatepass")
    text = version + shake_256(key).hexdigest(number * size // 2 + 1)
    return (text[item * size : (item + 1) * size] for item in range(number))


def find_exceeded_limits(limits: Mapping[str, object], shape: MetadataShape, owner: str) -> Iterator[str]:
    """Say by name which limits of a cluster such metadata exceed, with the item that says whose it is.

    ``limits`` are those of ``swift`` in ``/info``; one that is not there holds nothing back.
    """
    number, size = shape
    of_owner = len(OWNER_ITEM) + len(owner)
    names = sum(len(f"{_ITEM_PREFIX}{each}") for each in range(number))
    needed = {
        "max_meta_count": number + 1,
        "max_meta_value_length": size,
        "max_meta_overall_size": names + number * size + of_owner,
    }
    for name, value in needed.items():
        limit = limits.get(name)
        if type(limit) is int and value > limit:
            yield f"{name} {value:,} (at most {limit:,})"
