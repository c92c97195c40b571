"""Records of JSON in which log collectors wrap lines: filebeat, fluentd, Docker, journald and others.

No list of products: the message is the text in the record that holds the transaction id, the host is under
one of the names by which collectors call it. A record may be in another one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

_BEGINS = re.compile(rb'\{\s*"')
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
    records = [inner, record] if isinstance(inner, dict) else [record]
    for each in records:
        for path in _HOSTS:
            value = each
            for name in path:
                value = value.get(name) if isinstance(value, dict) else None
            if isinstance(value, str) and value:
                return value.encode("utf-8", "replace")
    return b""
