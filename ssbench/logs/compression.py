"""What logs are read from: files, compressed or not.

How a file is compressed follows from its first bytes. gzip is read by
:class:`~ssbench.results.reading.StatFileStream`, which also salvages what precedes damage. Logs are read
piece by piece and nothing of them is kept, so that no limit of expansion is needed.
"""

from __future__ import annotations

import bz2
import importlib
import lzma
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from ssbench.base.errors import StatFileError
from ssbench.base.version import describe_zstd_lack
from ssbench.results.reading import StatFileStream

#: How formats begin that are not read.
_UNREAD_FORMATS = {
    b"\x04\x22\x4d\x18": ("lz4", "lz4 -d"),
    b"PK\x03\x04": ("zip", "unzip"),
    b"\x1f\x9d": ("compress", "uncompress"),
    b"7z\xbc\xaf\x27\x1c": ("7-Zip", "7z x"),
    b"\xff\x06\x00\x00sNaPpY": ("snappy", "snzip -d"),
}
#: So much of a compressed file is read at once; it may expand some thousand times.
_PIECE_BYTES = 1 << 13
_ZSTD, _XZ, _BZIP2 = b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\x00", b"BZh"


class LogSource(Protocol):
    """What a log is read from. ``damage`` says, once all before has been read, why compressed data end."""

    damage: str | None

    def read_some(self, most: int) -> bytes:
        """Return some bytes, about ``most`` of them at most; none at the end."""

    def close(self) -> None:
        """Close the file."""


def open_log_source(path: Path) -> LogSource:
    """Open a log file. Raises StatFileError where it cannot be read, or is compressed by what is not read."""
    stream = StatFileStream(path)
    head = stream.peek(10)
    if head.startswith(_ZSTD):
        try:
            return _Decompressed(stream, *_find_zstd(path))
        except StatFileError:
            stream.close()
            raise
    if head.startswith(_XZ):
        return _Decompressed(stream, lzma.LZMADecompressor, lzma.LZMAError)
    if head.startswith(_BZIP2) and head[4:] == b"1AY&SY":
        return _Decompressed(stream, bz2.BZ2Decompressor, OSError)
    for magic, (name, command) in _UNREAD_FORMATS.items():
        if head.startswith(magic):
            stream.close()
            raise StatFileError(
                f"{path}: compressed by {name}, which is not read; unpack it first ({command})"
            )
    return stream


def _find_zstd(path: Path) -> tuple[Callable[[], Any], type[Exception]]:
    """Return what makes decompressors, and their error: of the standard library (3.14), or of a package."""
    with suppress(ImportError):
        module = importlib.import_module("compression.zstd")
        return module.ZstdDecompressor, module.ZstdError
    with suppress(ImportError):
        module = importlib.import_module("zstandard")
        return lambda: module.ZstdDecompressor().decompressobj(), module.ZstdError
    raise StatFileError(f"{path}: {describe_zstd_lack()}")


class _Decompressed:
    """A file of one or more compressed streams, for which ``make`` makes decompressors."""

    def __init__(self, stream: StatFileStream, make: Callable[[], Any], error: type[Exception]) -> None:
        stream.close()
        self.damage: str | None = None
        self._path = stream.path
        self._file = stream.path.open("rb")
        self._make, self._error = make, error
        self._member = make()
        self._inside = False
        self._input = b""

    def read_some(self, most: int) -> bytes:
        """Return what comes of the next piece of the file; ``most`` is not a limit here."""
        while not self.damage and (self._input or self._more()):
            given, self._input = self._input, b""
            try:
                data: bytes = self._member.decompress(given)
            except (self._error, EOFError) as error:
                self.damage = f"the compressed data are damaged: {error}"
                return b""
            self._inside = True
            if self._member.eof:
                # Between streams may be padding.
                self._input = self._member.unused_data.lstrip(b"\0")
                self._member = self._make()
                self._inside = False
            if data:
                return data
        return b""

    def _more(self) -> bool:
        try:
            self._input = self._file.read(_PIECE_BYTES)
        except OSError as error:
            raise StatFileError(f"{self._path}: cannot be read: {error.strerror}") from None
        if not self._input and self._inside:
            self.damage = "the compressed data are cut off"
        return bool(self._input)

    def close(self) -> None:
        self._file.close()
