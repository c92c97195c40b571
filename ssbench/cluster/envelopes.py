"""Records of JSON in which log collectors wrap lines: filebeat, fluentd, Docker, journald and others.

No list of products: the message is the text in the record that holds the transaction id, the host is under
one of the names by which collectors call it. A record may be in another one.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

_JSON_BEGINS = re.compile(rb'\{\s*"')
#: What a cell of CSV has that is a host, and what it does not have: levels, facilities and programs.
_CSV_HOST = re.compile(rb"[A-Za-z][\w.-]*[\w]")
_NO_CSV_HOST = re.compile(
    rb"(?i)^(?:debug|info|notice|warn|warning|err|error|critical|local\d|stdout|stderr|swift|syslog|daemon)$|server$"
)
_FIELD_NAME = re.compile(rb'^\s*"[\w.@-]+"\s*:\s*"')
#: Records within records, at most.
_MAX_DEPTH = 3
#: Where a message is, the most telling name first; what has none of these names comes after them.
_MESSAGE_FIELDS = ("MESSAGE", "message", "log", "line", "msg", "original")
#: Where a host is, as paths of names, in the order of preference.
_HOST_FIELDS = (
    ("host", "name"),
    ("host", "hostname"),
    ("host",),
    ("hostname",),
    ("_HOSTNAME",),
    ("HOSTNAME",),
    ("labels", "host"),
    ("labels", "hostname"),
    ("labels", "node_name"),
    ("labels", "instance"),
    ("kubernetes", "host"),
    ("kubernetes", "node_name"),
    ("kubernetes", "node", "name"),
    ("agent", "hostname"),
    ("agent", "name"),
    ("beat", "hostname"),
    ("node",),
    ("source",),
)


class EnclosedMessage(NamedTuple):
    """A message, and the host that its record names; empty without one."""

    message: bytes
    host: bytes


def find_json_messages(line: bytes, needle: re.Pattern[bytes]) -> list[EnclosedMessage]:
    """Return what a record of JSON at the end of a line holds that ``needle`` is found in.

    Nothing for a line that is no such record. Of records within records the innermost comes first: a line of
    Swift may itself be one, by its template.
    """
    return _open_record(line, needle, _MAX_DEPTH)


def _open_record(line: bytes, needle: re.Pattern[bytes], depth: int) -> list[EnclosedMessage]:
    begin = _JSON_BEGINS.search(line) if line.rstrip()[-1:] == b"}" else None
    if begin is None or not depth:
        return []
    try:
        record = msgspec.json.decode(line[begin.start() :])
    except (ValueError, RecursionError):
        return []
    texts = [(name, text) for name, text in _record_texts(record) if needle.search(text)]
    if not texts:
        return []
    _, message = min(texts, key=lambda each: (_rank_field(each[0]), -len(each[1])))
    host = _record_host(record)
    inner = [each._replace(host=each.host or host) for each in _open_record(message, needle, depth - 1)]
    return [*inner, EnclosedMessage(message.rstrip(b"\r\n"), host)]


def _rank_field(name: str) -> int:
    return _MESSAGE_FIELDS.index(name) if name in _MESSAGE_FIELDS else len(_MESSAGE_FIELDS)


def _record_texts(record: Any) -> Iterator[tuple[str, bytes]]:
    """Yield all texts of a record with their names."""
    pending = [("", record)]
    while pending:
        name, value = pending.pop()
        if isinstance(value, str):
            yield name, value.encode("utf-8", "replace")
        elif isinstance(value, dict):
            pending += value.items()
        elif isinstance(value, list):
            pending += [(name, each) for each in value]


def _record_host(record: Any) -> bytes:
    inner = record.get("_source")
    return host_of_record(inner).encode("utf-8", "replace") or host_of_record(record).encode(
        "utf-8", "replace"
    )


def host_of_record(each: Any) -> str:
    """Return the host that a record names under one of the names of collectors; empty without one."""
    if isinstance(each, dict):
        for path in _HOST_FIELDS:
            value: Any = each
            for name in path:
                value = value.get(name) if isinstance(value, dict) else None
            if isinstance(value, str) and value:
                return value
    return ""


def find_csv_message(line: bytes, needle: re.Pattern[bytes]) -> EnclosedMessage | None:
    """Return the message in a line of CSV, or in a text with escaped quotation marks; None without one.

    The host is the only other cell that may be one.
    """
    escaped = b'\\"' in line
    if not escaped and b'""' not in line and b',"' not in line:
        return None
    row = csv.reader(
        [line.decode("utf-8", "replace").strip()],
        doublequote=not escaped,
        escapechar="\\" if escaped else None,
    )
    try:
        found = [cell.encode("utf-8", "replace") for cell in next(row, [])]
    except csv.Error:
        return None
    message = max((cell for cell in found if needle.search(cell)), key=len, default=None)
    if message is None:
        return None
    hosts = {cell for cell in found if _CSV_HOST.fullmatch(cell) and not _NO_CSV_HOST.search(cell)}
    # Of a record of JSON that is cut, or on several lines, its name stands before the message.
    bare = _FIELD_NAME.sub(b"", message)
    return EnclosedMessage(bare, hosts.pop() if len(hosts) == 1 else b"")
