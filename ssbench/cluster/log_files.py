"""Log files: which there are, how the node that wrote each is called, and their lines.

How a file is compressed follows from its first bytes. gzip is read by
:class:`~ssbench.results.reading.StatFileStream`, which also salvages what precedes damage. Logs are read
piece by piece and nothing of them is kept, so that no limit of expansion is needed.

Logs of which an entry is several lines, or all of one, are rewritten as lines as others have them: journald's
export format with the time, host and tag of syslog, documents of JSON with a record a line
(:mod:`~ssbench.cluster.log_lines`).
"""

from __future__ import annotations

import bz2
import importlib
import lzma
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

import msgspec

from ssbench.base.errors import StatFileError, UsageError
from ssbench.base.version import describe_install
from ssbench.cluster.log_lines import TRANS_ID, host_of_record
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
    raise StatFileError(
        f"{path}: compressed by zstd: {describe_install('zstandard', 'zstd')}, or unpack it first (zstd -d)"
    )


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


# -- Entries of several lines ----------------------------------------------------------------------


#: A document is read as a whole, and so much at most, in bytes.
MAX_DOCUMENT_BYTES = 1 << 27
_EXPORT_BEGIN = b"__CURSOR="
#: What begins a list of JSON, or an object on several lines.
_DOCUMENT_BEGIN = re.compile(rb"\s*(?:\[\s*[\[{\"]|\{\s*\n)")
#: Where an answer of Loki has the labels of lines.
_LABELS_KEY = "stream"

BytePieces = Iterator[bytes]


def find_rewriter(head: bytes) -> Callable[[BytePieces], BytePieces] | None:
    """Return what makes lines of a file that begins so; None where it has lines as others have them."""
    if head.lstrip().startswith(_EXPORT_BEGIN):
        return _rewrite_export
    whole_line = b"\n" not in head.rstrip() and head[:1] == b"{" and len(TRANS_ID.findall(head)) > 1
    return _rewrite_document if whole_line or _DOCUMENT_BEGIN.match(head) else None


def _rewrite_export(pieces: BytePieces) -> BytePieces:
    """Make a line of each entry of journald: fields of a line each, and an empty line."""
    rest = b""
    for piece in pieces:
        *entries, rest = (rest + piece).split(b"\n\n")
        yield b"".join(map(_format_export_line, entries))
        rest = rest if len(rest) < MAX_DOCUMENT_BYTES else b""
    yield _format_export_line(rest)


def _format_export_line(entry: bytes) -> bytes:
    fields = dict(field.split(b"=", 1) for field in entry.split(b"\n") if b"=" in field)
    message = fields.get(b"MESSAGE")
    if message is None:
        return b""
    microseconds = fields.get(b"__REALTIME_TIMESTAMP", b"")
    time = b"-"
    if microseconds.isdigit() and len(microseconds) < 18:
        time = (
            datetime.fromtimestamp(int(microseconds) / 1e6, UTC).isoformat(timespec="microseconds").encode()
        )
    tag = fields.get(b"SYSLOG_IDENTIFIER", b"journal")
    return b"%b %b %b: %b\n" % (time, fields.get(b"_HOSTNAME", b"-"), tag, message)


def _rewrite_document(pieces: BytePieces) -> BytePieces:
    """Make a line of each record in a document of JSON; of what is none, or too large, of each line of it."""
    whole = bytearray()
    for piece in pieces:
        whole += piece
        if len(whole) > MAX_DOCUMENT_BYTES:
            yield bytes(whole)
            yield from pieces
            return
    try:
        document = msgspec.json.decode(whole)
    except (ValueError, RecursionError):
        yield bytes(whole)
        return
    for record in _find_log_records(document):
        yield msgspec.json.encode(record) + b"\n"


def _find_log_records(document: Any) -> Iterator[dict[str, Any]]:
    """Yield the objects that have a line of Swift, each with the host that it or what is around it names."""
    pending: list[tuple[Any, str]] = [(document, "")]
    while pending:
        value, host = pending.pop()
        if isinstance(value, dict):
            own = host_of_record(value)
            host = own or host_of_record(value.get(_LABELS_KEY)) or host
            if any(isinstance(each, str) and TRANS_ID.search(each.encode()) for each in value.values()):
                yield value if own or not host else {**value, "hostname": host}
            else:
                pending += [(each, host) for each in reversed(value.values())]
        elif isinstance(value, list):
            texts = [each for each in value if isinstance(each, str) and TRANS_ID.search(each.encode())]
            yield from ({"message": text, "hostname": host} for text in texts)
            pending += [(each, host) for each in reversed(value) if not isinstance(each, str)]


# -- The files -------------------------------------------------------------------------------------


#: So much is read at once.
_CHUNK_BYTES = 1 << 18
#: What is longer than this is no line of Swift, and dropped.
_MAX_LINE_BYTES = 1 << 16
_ROTATED_ENDING = re.compile(r"(\.(?:gz|zst|xz|bz2)|\.log|\.txt|\.\d+|-\d{8})+$")


@dataclass(frozen=True, slots=True)
class LogFile:
    """A file of log lines."""

    path: Path
    node: str  # who wrote the lines that name no host
    named: bool = False  # the user said so, and it holds for all lines


def find_log_files(arguments: Sequence[str]) -> list[LogFile]:
    """Find the files that the command line names: ``FILE``, ``NODE=FILE``, or a folder with all in it.

    A node is called by the file's name without its endings, with the folder's in front where two have the
    same. Raises UsageError for what is not there.
    """
    found: list[tuple[Path, str | None]] = []
    for argument in arguments:
        node, equals, rest = argument.partition("=")
        path, name = Path(argument), None
        if not path.exists() and equals and node and "/" not in node:
            path, name = Path(rest), node
        try:
            files = sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]
            if not path.exists():
                raise UsageError(f"{path}: no such log file")
        except OSError as error:
            raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
        if not files:
            raise UsageError(f"{path}: this folder holds no files")
        found += [(file, name) for file in files]
    unique = dict(sorted(((path.resolve(), (path, name)) for path, name in found), key=lambda each: each[0]))
    names = _name_log_files(list(unique))
    return [
        LogFile(path, name, named=True) if name else LogFile(path, names[resolved])
        for resolved, (path, name) in unique.items()
    ]


def _name_log_files(paths: list[Path]) -> dict[Path, str]:
    """Name files after themselves, with as many folders in front as tell apart those of several folders.

    The files of one folder that differ in their endings only are one log, rotated.
    """
    logs = {path: (*path.parent.parts, _file_stem(path)) for path in paths}
    names: dict[tuple[str, ...], str] = {}
    for length in range(1, max(map(len, logs.values()), default=1) + 1):
        ends = Counter(log[-length:] for log in set(logs.values()))
        names |= {
            log: "/".join(log[-length:])
            for log in logs.values()
            if log not in names and ends[log[-length:]] == 1
        }
    return {path: names[log] for path, log in logs.items()}


def _file_stem(path: Path) -> str:
    return _ROTATED_ENDING.sub("", path.name) or path.name


class LogFileReader:
    """The lines of a log file, compressed or not; ``damage`` says where and why compressed data end."""

    def __init__(self, file: LogFile) -> None:
        """Open the file; raises StatFileError, which says that it cannot be read."""
        self._stream = open_log_source(file.path)

    @property
    def damage(self) -> str | None:
        """What is wrong with the file, once all before has been read."""
        return self._stream.damage

    def chunks(self) -> Iterator[bytes]:
        """Yield the lines, many together; each ends with a line feed."""
        rest = b""
        try:
            for data in self._pieces():
                complete, line_feed, rest = (rest + data).rpartition(b"\n")
                if line_feed:
                    yield complete + line_feed
                rest = rest if len(rest) < _MAX_LINE_BYTES else b""
            if rest:
                yield rest + b"\n"
        finally:
            self._stream.close()

    def _pieces(self) -> Iterator[bytes]:
        """Yield what is read; entries of several lines, or all on one, as lines as others have them."""
        first = self._some()
        rewrite = find_rewriter(first)
        every = chain([first] if first else [], iter(self._some, b""))
        yield from every if rewrite is None else rewrite(every)

    def _some(self) -> bytes:
        """Return about as much as is worth looking at together; what is compressed comes in small pieces."""
        pieces, size = [], 0
        while size < _CHUNK_BYTES and (piece := self._stream.read_some(_CHUNK_BYTES)):
            pieces.append(piece)
            size += len(piece)
        return b"".join(pieces)
