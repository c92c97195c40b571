"""The formats of stat files: what the reader of each offers, which of them a file has, and its bytes.

Every reader is a :class:`RunResults`; a :class:`DamageError` says that a file breaks off. Another format is
another module with a ``FORMAT``, and a line in :data:`_MODULES`. It is imported when a file has none of the
formats before it.

A :class:`StatFileStream` has the decompressed bytes, whatever they are wrapped in, up to where the file is
damaged. A thread reads ahead while what was read before is worked on (:func:`iterate_ahead`).
"""

from __future__ import annotations

import math
import os
import queue
import stat
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import BinaryIO, ClassVar, NamedTuple, Self, TypeVar, cast

import msgspec
import numpy as np
import numpy.typing as npt
from isal import isal_zlib

from ssbench.base import interruption
from ssbench.base.errors import StatFileError
from ssbench.base.untrusted import TooMuchError, check_memory
from ssbench.results.block import ResultBlock
from ssbench.results.run_description import RunDescription, RunSummary

_Item = TypeVar("_Item")


class _LastItem:
    """Stands behind the last item; ``error`` is what ended them early."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


def iterate_ahead(items: Iterator[_Item], most: int) -> Generator[_Item]:
    """Yield items of an iterator that a thread goes through, at most so many ahead.

    Raises what the iterator raises, in its place. The thread ends with this generator, closed or at its end.
    It gains time where the iterator lets other threads run, as decompression does.
    """
    ready = queue.Queue[_Item | _LastItem](most)
    closed = False

    def go_through() -> None:
        try:
            for item in items:
                ready.put(item)
                if closed:
                    return
        except BaseException as error:  # noqa: BLE001 - it is raised where the items are used
            ready.put(_LastItem(error))
        else:
            ready.put(_LastItem())

    thread = Thread(target=go_through, name="read ahead", daemon=True)
    thread.start()
    try:
        while not isinstance(item := ready.get(), _LastItem):
            yield item
        if item.error is not None:
            raise item.error
    finally:
        closed = True
        with suppress(queue.Empty):  # so that the thread can put what it has in hand
            while True:
                ready.get_nowait()
        thread.join()


_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_WINDOW_BITS = 31  # zlib's window of 15 bits, in the gzip format
_PIECE_BYTES = 64 * 1024
_MAX_PIECE_BYTES = 1024 * 1024
#: So many pieces are decompressed ahead, of a megabyte each at most, in files of so many bytes or more.
_MAX_PIECES_AHEAD = 32
_LARGE_FILE_BYTES = 1024 * 1024
#: isal's stubs call the class an instance.
_INFLATE_ERRORS = (cast("type[Exception]", isal_zlib.error), EOFError)

#: Called with the bytes read so far and the bytes that there are, of the file as it is on the disk.
Progress = Callable[[int, int], None]


class _Piece(NamedTuple):
    """Some of what is in a file."""

    data: bytes
    #: So many bytes of the file were read for it.
    position: int
    #: Where and why the compressed data break off behind it, if they do.
    damage: str | None = None


_Pieces = Generator[_Piece]


class StatFileStream:
    """Reads a stat file from its beginning; gzip (of any number of members) is recognized by content.

    Raises StatFileError when the file cannot be opened or read. ``damage`` says, once everything
    before is at hand, where and why the compressed data break off; None while they do not.
    What is compressed in a large file is decompressed ahead, by a thread that ends with :meth:`close`.
    There is no bound on how far data expand: gzip's is 1,032 times, results that all failed alike come near
    that, and only some megabytes are there at once.
    """

    def __init__(self, path: Path, progress: Progress | None = None) -> None:
        self.path = path
        self.damage: str | None = None
        self._progress = progress
        try:
            if not stat.S_ISREG(path.stat().st_mode):
                raise StatFileError(f"{path}: not a file")
            self._file = path.open("rb")
        except OSError as error:
            raise StatFileError(f"{path}: cannot be read: {error.strerror}") from None
        except ValueError as error:  # a NUL in the name
            raise StatFileError(f"{str(path)!r}: cannot be read: {error}") from None
        #: Bytes of the file, as it is on the disk.
        self.size = os.fstat(self._file.fileno()).st_size
        compressed = self._file.peek(2)[:2] == _GZIP_MAGIC
        self._pieces = _Gunzip(self._file).pieces() if compressed else _read_plain(self._file)
        if compressed and self.size >= _LARGE_FILE_BYTES:
            self._pieces = iterate_ahead(self._pieces, _MAX_PIECES_AHEAD)
        self._ready = deque[bytes | memoryview]()
        self._held = 0  # bytes that are ready
        self._done = False

    def first_pass(self) -> StatFileStream:
        """Open the file once more, to be read before the rest of this one; progress counts both."""
        progress = self._progress
        if progress is None:
            return StatFileStream(self.path)
        self._progress = lambda done, total: progress(total + done, 2 * total)
        return StatFileStream(self.path, lambda done, total: progress(done, 2 * total))

    def close(self) -> None:
        """Close the file; reading is over."""
        self._pieces.close()
        self._file.close()

    def peek(self, size: int) -> bytes:
        """Return the next bytes without taking them; fewer at the end."""
        self._fill(size)
        data = self._join(size)
        self._ready.appendleft(data)
        self._held += len(data)
        return data

    def read(self, size: int) -> bytes:
        """Return the next ``size`` bytes; fewer at the end or before damage."""
        self._fill(size)
        return self._join(size)

    def read_some(self, most: int) -> bytes:
        """Return from 1 to ``most`` bytes, as many as are at hand; none at the end."""
        self._fill(1)
        return self._join(min(most, self._held))

    def _join(self, size: int) -> bytes:
        """Take this many of the bytes at hand, or all; each is copied once, however large a record is."""
        parts: list[bytes | memoryview] = []
        left = min(size, self._held)
        self._held -= left
        while left:
            piece = self._ready.popleft()
            if len(piece) > left:
                view = memoryview(piece)
                piece = view[:left]
                self._ready.appendleft(view[left:])
            parts.append(piece)
            left -= len(piece)
        return b"".join(parts)

    def _fill(self, size: int) -> None:
        while self._held < size and not self._done:
            try:
                piece = next(self._pieces)
            except StopIteration:
                self._done = True
            except OSError as error:
                raise StatFileError(f"{self.path}: cannot be read: {error.strerror}") from None
            else:
                self.damage = piece.damage
                self._ready.append(piece.data)
                self._held += len(piece.data)
                if self._progress:
                    self._progress(piece.position, self.size)


def _read_plain(file: BinaryIO) -> _Pieces:
    while piece := file.read(_PIECE_BYTES):
        yield _Piece(piece, file.tell())


class _Gunzip:
    """Decompresses a file."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._damage: str | None = None
        self._member = isal_zlib.decompressobj(_GZIP_WINDOW_BITS)
        self._member_start = 0
        self._fed = 0  # bytes of the file given to the present member

    def pieces(self) -> _Pieces:
        """Yield what it holds, up to damage; raises OSError."""
        while given := self._file.read(_PIECE_BYTES):
            position = self._file.tell()
            while given:
                data, given = self._inflate(given)
                yield _Piece(data, position, self._damage)
            if self._damage:
                return
        if self._fed:
            yield _Piece(b"", self._file.tell(), "the compressed data are cut off")

    def _inflate(self, given: bytes) -> tuple[bytes, bytes]:
        """Return what some of the file holds, and what is left of that; there may be damage then."""
        if not self._fed:  # between members may be padding, as tapes and some copies leave it
            padded = len(given)
            given = given.lstrip(b"\0")
            self._member_start += padded - len(given)
            if not given:
                return b"", b""
        try:
            more = self._member.decompress(given, _MAX_PIECE_BYTES)
        except _INFLATE_ERRORS:
            return self._salvaged(given), b""
        if self._member.eof:
            left = self._member.unused_data
            self._member_start += self._fed + len(given) - len(left)
            self._fed = 0
            self._member = isal_zlib.decompressobj(_GZIP_WINDOW_BITS)
        else:
            left = self._member.unconsumed_tail
            self._fed += len(given) - len(left)
        return more, left

    def _salvaged(self, given: bytes) -> bytes:
        """Return what precedes the damage in a piece of input that did not decompress whole.

        The decompressor keeps what it had before an error to itself, so the member is decompressed
        again up to that piece, and the piece byte by byte.
        """
        saved = bytearray()
        position = 0
        member = isal_zlib.decompressobj(_GZIP_WINDOW_BITS)
        self._file.seek(self._member_start)
        left = self._fed
        with suppress(*_INFLATE_ERRORS):
            while left:
                member_input = self._file.read(min(left, _PIECE_BYTES))
                left -= len(member_input)
                while member_input:
                    member.decompress(member_input, _MAX_PIECE_BYTES)
                    member_input = member.unconsumed_tail
            for position in range(len(given)):
                saved += member.decompress(given[position : position + 1])
        where = self._member_start + self._fed + position
        self._damage = f"the compressed data are damaged at or before byte {where:,} of the file"
        return bytes(saved)


# -- Formats ---------------------------------------------------------------------------------------


_CHUNK_BYTES = 1024 * 1024

#: Size classes and workers of a run; each takes a millisecond or so of a report.
MAX_SIZE_CLASSES = 2_000
_MAX_WORKERS = 50_000
#: Seconds in which something ended, a year of them; each takes 200 bytes and 18 microseconds.
_MAX_SECONDS = 366 * 86400


class DamageError(ValueError):
    """What follows cannot be read; what was read before is kept. The text is for a warning."""


class RunResults(ABC):
    """The results of a run, read from a stat file, once, block by block.

    ``run`` is there from the start; ``size_classes`` (names; blocks index it) and ``worker_names``
    (of negative worker ids, which stand for ids that are texts) may grow with each block;
    ``summary`` and ``warnings`` are whole when the last block has been read. ``summary`` is None in
    old formats and when a run did not end. ``damaged`` is whether not all of the file could be read.
    """

    #: False for the formats of ssbench 0.x, of which only the old table is printed.
    current: ClassVar[bool] = False
    #: How many results could not be written; known at the end.
    results_lost = 0

    def __init__(self, stream: StatFileStream) -> None:
        self.path = stream.path
        self.summary: RunSummary | None = None
        self.warnings: list[str] = []
        self.worker_names: dict[int, str] = {}
        self.results_read = 0
        self.damaged = False
        self._stream = stream
        self._workers = _Distinct(_MAX_WORKERS)
        self._seconds = _Distinct(_MAX_SECONDS)
        try:
            self.run = self._read_run()
            if len(self.run.scenario.size_classes) > MAX_SIZE_CLASSES:
                raise DamageError(f"more than {MAX_SIZE_CLASSES:,} size classes")
        except DamageError as error:
            raise StatFileError(f"{self.path}: {stream.damage or error}") from None
        self.size_classes = [size_class.name for size_class in self.run.scenario.size_classes]

    @property
    def is_whole(self) -> bool:
        """Whether all could be read, of a run that has ended; known when the last block has been read."""
        return not self.damaged and (self.summary is not None or not self.current)

    def again(self) -> Self:
        """Open the file once more, from its beginning; raises StatFileError."""
        return type(self)(StatFileStream(self.path))

    def close(self) -> None:
        """Close the file; :meth:`blocks` does so too at its end."""
        self._stream.close()

    def blocks(self) -> Iterator[ResultBlock]:
        """Yield the results in order of arrival, until the end or the first damage.

        What was read before damage is kept, and a warning says so; raises StatFileError when
        nothing was, and where this computer lacks the memory for what is made of them.
        """
        damage: str | None = None
        try:
            for block in self._read_blocks():
                self._check(block)
                self.results_read += len(block)
                yield block
                interruption.raise_if_interrupted()
                limit_memory(self.path, self.results_read)
            while self._stream.read_some(_CHUNK_BYTES):
                pass  # to the end, where the checksum of compressed data is
        except DamageError as error:
            damage = self._stream.damage or str(error)
        finally:
            self.close()
        damage = damage or self._stream.damage
        if damage and not self.results_read:
            raise StatFileError(f"{self.path}: {damage}; no result stands before that")
        if damage:
            self.damaged = True
            self.warnings.insert(0, f"{damage}: this is about the {self.results_read:,} results before that")

    def _check(self, block: ResultBlock) -> None:
        """Raise DamageError where a file claims what is not genuine and costs much.

        Not by the number of results: of those of a no-op run, which differ in little, a byte has 41 and more.
        """
        if not self._workers.add(block.worker):
            raise DamageError(f"results of more than {_MAX_WORKERS:,} workers")
        if not self._seconds.add(block.completed):
            raise DamageError(f"results that ended in more than {_MAX_SECONDS:,} seconds")

    @abstractmethod
    def _read_run(self) -> RunDescription:
        """Read the beginning of the stream; raises DamageError."""

    @abstractmethod
    def _read_blocks(self) -> Iterator[ResultBlock]:
        """Read the rest of the stream; raises DamageError."""


def limit_memory(path: Path, results: int) -> None:
    """Raise StatFileError where what was made of so many results takes more memory than reading may."""
    try:
        check_memory()
    except TooMuchError as error:
        raise StatFileError(f"{path}: {error} for its results, of which {results:,} were read") from None


class _Distinct:
    """Counts distinct numbers, rounded down, up to ``most``; quick where they lie close together."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lowest, self._highest = math.inf, -math.inf
        self._seen: set[float] = set()

    def add(self, numbers: npt.NDArray[np.int64] | npt.NDArray[np.float64]) -> bool:
        """Return whether there are no more than the most with these."""
        self._lowest = min(self._lowest, float(np.floor(numbers.min())))
        self._highest = max(self._highest, float(np.floor(numbers.max())))
        if not self._seen and self._highest - self._lowest < self._most:
            return True
        # Ids of workers may be larger than floats can hold exactly.
        whole = np.floor(numbers) if numbers.dtype.kind == "f" else numbers
        self._seen.update(np.unique(whole).tolist())
        return len(self._seen) <= self._most


class Format(msgspec.Struct, frozen=True):
    """A format of stat files."""

    name: str
    recognises: Callable[[bytes], bool]  # is given the first bytes of the decompressed file
    reader: type[RunResults]


#: The modules of every format that can be read; the first that recognises a file reads it.
_MODULES = ("current", "legacy.msgpack_stream", "legacy.python2_pickle")

_HEAD_LENGTH = 64


def open_results(path: Path, progress: Progress | None = None) -> RunResults:
    """Open a stat file of any format, compressed or not, recognized by its content.

    ``progress`` is called now and then with the bytes read and those that there are. Raises
    StatFileError when it is no stat file, or damaged before its first result.
    """
    stream = StatFileStream(path, progress)
    try:
        head = stream.peek(_HEAD_LENGTH)
        for format_ in _formats():
            if format_.recognises(head):
                return format_.reader(stream)
        what = stream.damage or ("not a stat file of ssbench" if head else "an empty file")
        raise StatFileError(f"{path}: {what}")
    except BaseException:
        stream.close()
        raise


def is_stat_file(path: Path) -> bool:
    """Return whether a file begins as a stat file of any version does."""
    try:
        stream = StatFileStream(path, None)
    except StatFileError:
        return False
    try:
        head = stream.peek(_HEAD_LENGTH)
        return any(format_.recognises(head) for format_ in _formats())
    finally:
        stream.close()


def _formats() -> Iterator[Format]:
    for name in _MODULES:
        format_: Format = import_module(f"ssbench.results.{name}").FORMAT
        yield format_
