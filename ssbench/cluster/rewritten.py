"""Logs of which an entry is several lines, or all of one: journald's export format, and documents of JSON.

They are rewritten as lines as others have them: those of journald with the time, host and tag of syslog, what
a document of JSON holds as a record a line (:mod:`~ssbench.cluster.envelopes`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec

from ssbench.cluster.envelopes import host_of_record
from ssbench.cluster.lines import TRANS_ID

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
