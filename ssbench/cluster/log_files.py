"""Log files: which there are, how the node that wrote each is called, and their lines.

How a file is compressed follows from its first bytes. gzip is read by
:class:`~ssbench.results.reading.StatFileStream`, which also salvages what precedes damage. Logs are read
piece by piece and nothing of them is kept, so that no limit of expansion is needed.

Logs of which an entry is several lines, or all of one, are rewritten as lines as others have them: journald's
export format with the time, host and tag of syslog, documents of JSON and tables of CSV with a record a line,
what ``ansible``, ``dshbak`` and ``tail`` put together below a line for each node with that node in each line
(:mod:`~ssbench.cluster.log_lines`). Colours and what stands for a quotation mark are taken out.
"""

from __future__ import annotations

import bz2
import codecs
import csv
import importlib
import lzma
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec

from ssbench.base.errors import StatFileError, UsageError
from ssbench.base.version import describe_install
from ssbench.cluster.log_lines import TRANS_ID, find_file_node, host_of_record, may_be_host_cell
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
#: What journald has between documents of several lines.
_BETWEEN_DOCUMENTS = re.compile(rb"\}\s*\n\s*\{")
_MESSAGE_BYTES = re.compile(rb'("MESSAGE"\s*:\s*)\[\s*(\d+(?:\s*,\s*\d+)*)\s*\]')
#: Headers naming the node of the following lines: ansible, dshbak and ``clush -b``, ``tail``.
_BLOCK_BEGINS = (
    re.compile(rb"(?m)^(\S+) \| [A-Z!]+ \| rc=\d+ >>[^\n]*\n"),
    re.compile(rb"(?m)^-{4,}\n([^\n]+)\n-{4,}\n"),
    re.compile(rb"(?m)^==> ([^\n]+) <==\n"),
)
#: So many lines at the beginning tell how a table is laid out.
_MAX_CSV_LINES = 500
#: Where an answer of Loki has the labels of lines.
_LABELS_KEY = "stream"

BytePieces = Iterator[bytes]


def find_rewriter(head: bytes) -> Callable[[BytePieces], BytePieces] | None:
    """Return what makes lines of a file that begins so; None where it has lines as others have them."""
    if head.lstrip().startswith(_EXPORT_BEGIN):
        return _rewrite_export
    for begins in _BLOCK_BEGINS:
        if begins.match(head):
            return partial(_rewrite_blocks, begins)
    if _MESSAGE_BYTES.search(head) and not _DOCUMENT_BEGIN.match(head):
        return _rewrite_message_bytes
    whole_line = b"\n" not in head.rstrip() and head[:1] == b"{" and len(TRANS_ID.findall(head)) > 1
    if whole_line or _DOCUMENT_BEGIN.match(head):
        return _rewrite_document
    layout = _find_csv_layout(head)
    return partial(_rewrite_csv, layout) if layout else None


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
        document = _decode_documents(bytes(whole))
    except (ValueError, RecursionError):
        yield bytes(whole)
        return
    for record in _find_log_records(document):
        yield msgspec.json.encode(record) + b"\n"


def _decode_documents(whole: bytes) -> Any:
    """Decode a document, or several in a row, as a list, which journald writes (``json-pretty``)."""
    try:
        return msgspec.json.decode(whole)
    except ValueError:
        return msgspec.json.decode(b"[%b]" % _BETWEEN_DOCUMENTS.sub(b"},{", _spell_message_bytes(whole)))


def _spell_message_bytes(lines: bytes) -> bytes:
    """Convert messages that journald stores as lists of bytes, because they are not valid text."""

    def spell(found: re.Match[bytes]) -> bytes:
        numbers = [int(each) for each in found[2].split(b",")]
        message = bytes(each for each in numbers if each < 256).decode("utf-8", "replace")
        return found[1] + msgspec.json.encode(message)

    return _MESSAGE_BYTES.sub(spell, lines)


def _rewrite_message_bytes(pieces: BytePieces) -> BytePieces:
    return map(_spell_message_bytes, _join_lines(pieces))


def _join_lines(pieces: BytePieces) -> BytePieces:
    """Yield whole lines, many together; each ends with a line feed."""
    rest = b""
    for piece in pieces:
        complete, line_feed, rest = (rest + piece).rpartition(b"\n")
        if line_feed:
            yield complete + line_feed
        rest = rest if len(rest) < _MAX_LINE_BYTES else b""
    if rest:
        yield rest + b"\n"


def _rewrite_blocks(begins: re.Pattern[bytes], pieces: BytePieces) -> BytePieces:
    """Put the node that a block is of before each of its lines."""
    node = b""
    for lines in _join_lines(pieces):
        made, at = [], 0
        for found in (*begins.finditer(lines), None):
            block = lines[at : found.start() if found else len(lines)]
            made += (
                [b"%b: %b" % (node, line) for line in block.splitlines(keepends=True)] if node else [block]
            )
            if found:
                node, at = find_file_node(found[1]), found.end()
        yield b"".join(made)


class _CsvLayout(NamedTuple):
    delimiter: str
    escape: str | None
    header: list[str] | None  # names of columns
    host: int | None  # which column is a host


def _find_csv_layout(head: bytes) -> _CsvLayout | None:
    """Return how lines are divided into cells, one of which holds Swift's line; None without cells."""
    lines = head.decode("utf-8", "replace").split("\n")[:_MAX_CSV_LINES]
    told = [line for line in lines[:-1] if TRANS_ID.search(line.encode())]
    quoted = [line for line in told if '""proxy-server ' in line or '\\"proxy-server ' in line]
    if not quoted or '{"' in quoted[0]:
        return None
    escape = "\\" if '\\"proxy-server ' in quoted[0] else None
    for delimiter in ",;\t|":
        rows = [*_read_cells(quoted, delimiter, escape)]
        widths = Counter(map(len, rows))
        if len(widths) == 1 and len(rows[0]) > 1 and all(_holds_message(row) for row in rows):
            first = next(_read_cells(lines[:1], delimiter, escape), [])
            is_header = len(first) == len(rows[0]) and not TRANS_ID.search(lines[0].encode())
            told_rows = [*_read_cells(told, delimiter, escape)]
            host = (
                None
                if is_header and host_of_record(dict(zip(first, rows[0], strict=True)))
                else (_find_host_column([row for row in told_rows if len(row) == len(rows[0])]))
            )
            return _CsvLayout(delimiter, escape, first if is_header else None, host)
    return None


def _holds_message(row: Sequence[str]) -> bool:
    return any('"proxy-server ' in cell and TRANS_ID.search(cell.encode()) for cell in row)


def _read_cells(lines: Iterable[str], delimiter: str, escape: str | None) -> Iterator[list[str]]:
    with suppress(csv.Error):
        yield from csv.reader(lines, delimiter=delimiter, doublequote=escape is None, escapechar=escape)


def _find_host_column(rows: Sequence[Sequence[str]]) -> int | None:
    """Return the column with the most distinct hosts, among columns whose values all look like hosts."""
    columns = {
        place: len(set(cells))
        for place, cells in enumerate(zip(*rows, strict=True))
        if all(map(may_be_host_cell, cells))
    }
    most = max(columns.values(), default=0)
    best = [place for place, number in columns.items() if number == most]
    return best[0] if len(best) == 1 else None


def _rewrite_csv(layout: _CsvLayout, pieces: BytePieces) -> BytePieces:
    """Make a record of JSON of each line that holds a transaction id."""
    for lines in _join_lines(pieces):
        texts = [
            line for line in lines.decode("utf-8", "replace").split("\n") if TRANS_ID.search(line.encode())
        ]
        made = []
        for row in _read_cells(texts, layout.delimiter, layout.escape):
            message = max((cell for cell in row if TRANS_ID.search(cell.encode())), key=len, default="")
            names = dict(zip(layout.header or (), row, strict=False))
            host = host_of_record(names) or (
                row[layout.host] if layout.host is not None and layout.host < len(row) else ""
            )
            time = next((cell for cell in row if cell[:4].isdigit()), "")
            made.append(msgspec.json.encode({"time": time, "message": message, "hostname": host}))
        yield b"".join(b"%b\n" % each for each in made)


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
    of_folder: bool = False  # a folder of it was given: where it cannot be read, the others are


def find_log_files(arguments: Sequence[str]) -> list[LogFile]:
    """Find the files that the command line names: ``FILE``, ``NODE=FILE``, or a folder with all in it.

    A node is called by the file's name without its endings, with the folder's in front where two have the
    same. Raises UsageError for what is not there.
    """
    found: list[tuple[Path, str | None, bool]] = []
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
        found += [(file, name, path.is_dir()) for file in files]
    unique = dict(sorted(((each[0].resolve(), each) for each in found), key=lambda each: each[0]))
    names = _name_log_files(list(unique))
    return [
        LogFile(path, name or names[resolved], named=name is not None, of_folder=of_folder)
        for resolved, (path, name, of_folder) in unique.items()
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


#: How texts begin that are not in UTF-8, or say that they are.
_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
#: Colours of a terminal, as they are or as rsyslog writes them.
_COLOUR_CODES = re.compile(rb"(?:\x1b|#033)(?:\[[\d;]*[mK]|\([B0])")
#: What stands for a quotation mark, or at the end of a line for nothing, in logs that others have rewritten.
_STAND_INS = {b"&quot;": b'"', b"&#34;": b'"', b"#042": b'"', b"#000": b""}


def _decode_pieces(pieces: BytePieces, coding: str) -> BytePieces:
    decode = codecs.getincrementaldecoder(coding)("replace").decode
    for piece in pieces:
        yield decode(piece).encode()


def _clean_lines(lines: bytes) -> bytes:
    if b"\x1b" in lines or b"#033" in lines:
        lines = _COLOUR_CODES.sub(b"", lines)
    for stand_in, meant in _STAND_INS.items():
        if stand_in in lines:
            lines = lines.replace(stand_in, meant)
    return lines


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
        try:
            for lines in _join_lines(self._pieces()):
                yield _clean_lines(lines)
        finally:
            self._stream.close()

    def _pieces(self) -> Iterator[bytes]:
        """Yield what is read; entries of several lines, or all on one, as lines as others have them."""
        first = self._some()
        every: BytePieces = chain([first] if first else [], iter(self._some, b""))
        for mark, coding in _BYTE_ORDER_MARKS.items():
            if first.startswith(mark):
                every = _decode_pieces(every, coding)
                first = next(every, b"")
                every = chain([first], every)
                break
        rewrite = find_rewriter(first)
        yield from every if rewrite is None else rewrite(every)

    def _some(self) -> bytes:
        """Return about as much as is worth looking at together; what is compressed comes in small pieces."""
        pieces, size = [], 0
        while size < _CHUNK_BYTES and (piece := self._stream.read_some(_CHUNK_BYTES)):
            pieces.append(piece)
            size += len(piece)
        return b"".join(pieces)
