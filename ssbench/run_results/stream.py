"""The decompressed bytes of a stat file, whatever it is wrapped in, up to where it is damaged."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import cast

from isal import isal_zlib

from ssbench.errors import StatFileError

_GZIP_MAGIC = b"\x1f\x8b"
_GZIP = 31  # zlib's window of 15 bits, in the gzip format
_CHUNK = 64 * 1024
_MAX_OUTPUT = 1024 * 1024
#: Compressed data may expand to so many bytes, and beyond that to so many times what was read of the file.
#: Results that all failed with the same long text expand 130 times; the most that gzip can do is 1,032.
_MAX_FREE = 64 * 1024 * 1024
_MAX_EXPANSION = 500
#: isal's stubs call the class an instance.
_INFLATE_ERRORS = (cast("type[Exception]", isal_zlib.error), EOFError)

#: Called with the bytes read so far and the bytes that there are, of the file as it is on the disk.
Progress = Callable[[int, int], None]


class Stream:
    """Reads a stat file from its beginning; gzip (of any number of members) is recognized by content.

    Raises StatFileError when the file cannot be opened or read. ``damage`` says, once everything
    before has been read, where and why the compressed data break off; None while they do not.
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
        self._compressed = self._file.peek(2)[:2] == _GZIP_MAGIC
        self._member = isal_zlib.decompressobj(_GZIP)
        self._member_start = 0
        self._fed = 0  # bytes of the file given to the present member
        self._input = b""
        self._output = bytearray()
        self._expanded = 0
        self._done = False

    def first_pass(self) -> Stream:
        """Open the file once more, to be read before the rest of this one; progress counts both."""
        progress = self._progress
        if progress is None:
            return Stream(self.path)
        self._progress = lambda done, total: progress(total + done, 2 * total)
        return Stream(self.path, lambda done, total: progress(done, 2 * total))

    def close(self) -> None:
        """Close the file; reading is over."""
        self._file.close()

    def peek(self, size: int) -> bytes:
        """Return the next bytes without taking them; fewer at the end."""
        self._fill(size)
        return bytes(self._output[:size])

    def read(self, size: int) -> bytes:
        """Return the next ``size`` bytes; fewer at the end or before damage."""
        self._fill(size)
        data = bytes(self._output[:size])
        del self._output[:size]
        return data

    def read_some(self, most: int) -> bytes:
        """Return from 1 to ``most`` bytes, as many as are at hand; none at the end."""
        if not self._output:
            self._fill(1)
        return self.read(min(most, len(self._output)))

    def _fill(self, size: int) -> None:
        while len(self._output) < size and not self._done:
            self._more()

    def _more(self) -> None:
        """Decompress some more into the output."""
        if not self._input:
            try:
                self._input = self._file.read(_CHUNK)
            except OSError as error:
                raise StatFileError(f"{self.path}: cannot be read: {error.strerror}") from None
            if self._progress:
                self._progress(self._file.tell(), self.size)
        if not self._input:
            self._done = True
            if self._compressed and self._fed:
                self.damage = "the compressed data are cut off"
        elif not self._compressed:
            self._output += self._input
            self._input = b""
        else:
            self._inflate()

    def _inflate(self) -> None:
        given = self._input
        if not self._fed:  # between members may be padding, as tapes and some copies leave it
            given = given.lstrip(b"\0")
            self._member_start += len(self._input) - len(given)
            self._input = given
            if not given:
                return
        try:
            more = self._member.decompress(given, _MAX_OUTPUT)
        except _INFLATE_ERRORS:
            self._salvage(given)
            return
        self._output += more
        self._expanded += len(more)
        if self._expanded > max(_MAX_FREE, _MAX_EXPANSION * self._file.tell()):
            self.damage = f"the compressed data expand to more than {_MAX_EXPANSION} times their size"
            self._done = True
            return
        if self._member.eof:
            self._input = self._member.unused_data
            self._member_start += self._fed + len(given) - len(self._input)
            self._fed = 0
            self._member = isal_zlib.decompressobj(_GZIP)
        else:
            self._input = self._member.unconsumed_tail
            self._fed += len(given) - len(self._input)

    def _salvage(self, given: bytes) -> None:
        """Take what precedes the damage in a piece of input that did not decompress whole.

        The decompressor keeps what it had before an error to itself, so the member is decompressed
        again up to that piece, and the piece byte by byte.
        """
        self._done = True
        position = 0
        member = isal_zlib.decompressobj(_GZIP)
        self._file.seek(self._member_start)
        left = self._fed
        with suppress(*_INFLATE_ERRORS):
            while left:
                member_input = self._file.read(min(left, _CHUNK))
                left -= len(member_input)
                while member_input:
                    member.decompress(member_input, _MAX_OUTPUT)
                    member_input = member.unconsumed_tail
            for position in range(len(given)):
                self._output += member.decompress(given[position : position + 1])
        where = self._member_start + self._fed + position
        self.damage = f"the compressed data are damaged at or before byte {where:,} of the file"
