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

_BEGINS = re.compile(rb'\{\s*"')
#: What a cell of CSV has that is a host, and what it does not have: levels, facilities and programs.
_HOST = re.compile(rb"[A-Za-z][\w.-]*[\w]")
_NO_HOST = re.compile(
    rb"(?i)^(?:debug|info|notice|warn|warning|err|error|critical|local\d|stdout|stderr|swift|syslog|daemon)$|server$"
)
_NAME = re.compile(rb'^\s*"[\w.@-]+"\s*:\s*"')
#: Records within records, at most.
_DEPTH = 3
#: Where a message is, the most telling name first; what has none of these names comes after them.
_MESSAGES = ("MESSAGE", "message", "log", "line", "msg", "original")
#: Where a host is, as paths of names, in the order of preference.
_HOSTS = (
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


class Opened(NamedTuple):
    """A message, and the host that its record names; empty without one."""

    message: bytes
    host: bytes


def opened(line: bytes, needle: re.Pattern[bytes]) -> list[Opened]:
    """Return what a record of JSON at the end of a line holds that ``needle`` is found in.

    Nothing for a line that is no such record. Of records within records the innermost comes first: a line of
    Swift may itself be one, by its template.
    """
    return _open(line, needle, _DEPTH)


def _open(line: bytes, needle: re.Pattern[bytes], depth: int) -> list[Opened]:
    begin = _BEGINS.search(line) if line.rstrip()[-1:] == b"}" else None
    if begin is None or not depth:
        return []
    try:
        record = msgspec.json.decode(line[begin.start() :])
    except (ValueError, RecursionError):
        return []
    texts = [(name, text) for name, text in _texts(record) if needle.search(text)]
    if not texts:
        return []
    _, message = min(texts, key=lambda each: (_rank(each[0]), -len(each[1])))
    host = _host(record)
    inner = [each._replace(host=each.host or host) for each in _open(message, needle, depth - 1)]
    return [*inner, Opened(message.rstrip(b"\r\n"), host)]


def _rank(name: str) -> int:
    return _MESSAGES.index(name) if name in _MESSAGES else len(_MESSAGES)


def _texts(record: Any) -> Iterator[tuple[str, bytes]]:
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


def _host(record: Any) -> bytes:
    inner = record.get("_source")
    return host_in(inner).encode("utf-8", "replace") or host_in(record).encode("utf-8", "replace")


def host_in(each: Any) -> str:
    """Return the host that a record names under one of the names of collectors; empty without one."""
    if isinstance(each, dict):
        for path in _HOSTS:
            value: Any = each
            for name in path:
                value = value.get(name) if isinstance(value, dict) else None
            if isinstance(value, str) and value:
                return value
    return ""


def cells(line: bytes, needle: re.Pattern[bytes]) -> Opened | None:
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
    hosts = {cell for cell in found if _HOST.fullmatch(cell) and not _NO_HOST.search(cell)}
    # Of a record of JSON that is cut, or on several lines, its name stands before the message.
    bare = _NAME.sub(b"", message)
    return Opened(bare, hosts.pop() if len(hosts) == 1 else b"")
