"""Entries that are several lines, or all one line, rewritten as lines as others have them.

journald's export format with the time, host and tag of syslog, documents of JSON and tables of CSV with a
record a line, what ``ansible``, ``dshbak`` and ``tail`` put together below a line for each node with that
node in each line (:mod:`~ssbench.logs.envelopes`).
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple

import msgspec

from ssbench.logs.envelopes import TRANS_ID, host_of_record, may_be_host_cell
from ssbench.logs.prefixes import find_file_node

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

#: What is longer than this is no line of Swift, and its rest is dropped.
_MAX_LINE_BYTES = 1 << 16

BytePieces = Iterator[bytes]
#: Returns what makes lines of a file that begins so; None where it has lines as others have them.
RewriterFinder = Callable[[bytes], Callable[[BytePieces], BytePieces] | None]

#: Records of Ceph's ops log on several lines, or in a document of ``radosgw-admin log show``; what each has.
_CEPH_BEGIN = re.compile(rb'\s*(?:\[\s*)?\{\s*(?:\n|"bucket_id")')
_CEPH_TIME = re.compile(rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\.")


def no_rewriter(_: bytes) -> None:
    """Leave all lines as they are."""


def find_ceph_rewriter(head: bytes) -> Callable[[BytePieces], BytePieces] | None:
    """Return what makes lines of records of Ceph's ops log that are not one on each line."""
    return partial(_rewrite_document, needle=_CEPH_TIME) if _CEPH_BEGIN.match(head) else None


def find_rewriter(head: bytes) -> Callable[[BytePieces], BytePieces] | None:
    """Return what makes lines of a file of Swift's that begins so; None where it has lines as others do."""
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


def _rewrite_document(pieces: BytePieces, needle: re.Pattern[bytes] = TRANS_ID) -> BytePieces:
    """Make a line of each record in a document of JSON that ``needle`` is found in.

    What is no document, or too large, stays as it is.
    """
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
    for record in _find_log_records(document, needle):
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
    return map(_spell_message_bytes, join_lines(pieces))


def join_lines(pieces: BytePieces) -> BytePieces:
    """Yield whole lines, many together; each ends with a line feed.

    What is too long for a line is one nevertheless, so that it counts: as much of its beginning.
    """
    rest = b""
    for piece in pieces:
        end = piece.find(b"\n")
        skipped = 0 if len(rest) < _MAX_LINE_BYTES else end if end >= 0 else len(piece)
        complete, line_feed, rest = (rest + piece[skipped:]).rpartition(b"\n")
        if line_feed:
            yield complete + line_feed
        rest = rest[:_MAX_LINE_BYTES]
    if rest:
        yield rest + b"\n"


def _rewrite_blocks(begins: re.Pattern[bytes], pieces: BytePieces) -> BytePieces:
    """Put the node that a block is of before each of its lines."""
    node = b""
    for lines in join_lines(pieces):
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
    for lines in join_lines(pieces):
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


def _find_log_records(document: Any, needle: re.Pattern[bytes]) -> Iterator[dict[str, Any]]:
    """Yield the objects with a text that ``needle`` is found in, with the host named in or around each."""
    pending: list[tuple[Any, str]] = [(document, "")]
    while pending:
        value, host = pending.pop()
        if isinstance(value, dict):
            own = host_of_record(value)
            host = own or host_of_record(value.get(_LABELS_KEY)) or host
            if any(isinstance(each, str) and needle.search(each.encode()) for each in value.values()):
                yield value if own or not host else {**value, "hostname": host}
            else:
                pending += [(each, host) for each in reversed(value.values())]
        elif isinstance(value, list):
            texts = [each for each in value if isinstance(each, str) and needle.search(each.encode())]
            yield from ({"message": text, "hostname": host} for text in texts)
            pending += [(each, host) for each in reversed(value) if not isinstance(each, str)]
