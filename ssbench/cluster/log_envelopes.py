"""What is around the message of a log line: records of JSON, the words before it, and times.

Log collectors (filebeat, fluentd, Docker, journald and others) wrap lines in records of JSON. There is no
list of products: the message is the text in the record that holds the transaction id, the host is under one
of the names by which collectors call it. A record may be in another one.

The words before a message say who wrote it. They are those of syslog (traditional, RFC 3339, RFC 5424), of
journald, of a container runtime (CRI), of ``docker compose``, ``kubectl --prefix`` or ``logcli``, or of a log
handler. When it was written follows from these words or from the record of JSON.
"""

from __future__ import annotations

import csv
import re
import time
from calendar import timegm
from collections.abc import Iterator, Sequence
from functools import lru_cache
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


# -- Words before the message ----------------------------------------------------------------------


_LEVEL_WORDS = frozenset([b"DEBUG", b"INFO", b"NOTICE", b"WARNING", b"WARN", b"ERROR", b"CRITICAL"])
_TIME_WORD = re.compile(rb"\d[-\d]*[T:]\d|\d{2}:\d{2}|\d{4}-\d{2}-\d{2}")
_ISO_BEGIN = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:")
#: A label or a trailing word that names a host.
HOST_LABEL = re.compile(rb'\b(?:host|hostname|_HOSTNAME|nodename|node_name|node)="?([\w.:-]+)')
_CRI_WORDS = ((b"stdout", b"stderr"), (b"F", b"P"))


def host_of_prefix(prefix: Sequence[bytes]) -> bytes:
    """Return the host that the words before a message name; empty where they name none."""
    if len(prefix) >= 3 and prefix[1] in _CRI_WORDS[0] and prefix[2] in _CRI_WORDS[1]:
        prefix = prefix[3:]
    if not prefix:
        return b""
    if prefix[0][:1] == b"<" and len(prefix) >= 4 and _TIME_WORD.search(prefix[1]):  # RFC 5424
        return b"" if prefix[2] == b"-" else prefix[2]
    return _host_by_collector(prefix) or _host_by_tag(prefix)


def _host_by_collector(prefix: Sequence[bytes]) -> bytes:
    first = prefix[0]
    if prefix[1:2] == [b"|"]:  # docker compose
        return first
    if first[:5] == b"[pod/":  # kubectl: [pod/NAME/CONTAINER]
        return first[5:].partition(b"/")[0].rstrip(b"]")
    label = HOST_LABEL.search(b" ".join(prefix)) if b"{" in first + b"".join(prefix[1:2]) else None  # logcli
    return label[1] if label else b""


def _host_by_tag(prefix: Sequence[bytes]) -> bytes:
    """Return the word before the first that ends in a colon, which is the tag of syslog.

    A program that itself writes a tag (a container under systemd) has two.
    """
    for place, word in enumerate(prefix):
        if word[-1:] == b":" and not _TIME_WORD.match(word):
            before = prefix[place - 1] if place else b""
            if before in _LEVEL_WORDS:
                before = prefix[0]
            return before if _may_be_host(before) else b""
    # RFC 5424 without a priority: TIME HOST APPLICATION PROCESS MESSAGE-ID DATA
    after = next((place for place, word in enumerate(prefix) if _ISO_BEGIN.match(word)), len(prefix))
    return prefix[after + 1] if len(prefix) - after >= 6 and _may_be_host(prefix[after + 1]) else b""


@lru_cache(maxsize=4096)
def _may_be_host(word: bytes) -> bool:
    return bool(word) and word not in _LEVEL_WORDS and not _TIME_WORD.match(word)


# -- When a line was written -----------------------------------------------------------------------


_MONTH_NUMBERS = {
    name: place + 1
    for place, name in enumerate(
        (b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec")
    )
}
#: As journald writes it in JSON, in microseconds.
_JOURNALD_TIME = re.compile(rb'"__REALTIME_TIMESTAMP"\s*:\s*"?(\d{10})(\d{6})\b')
_ISO_TIME = re.compile(
    rb"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?\s?(Z|[+-]\d\d:?\d\d)?", re.ASCII
)
#: Traditional syslog: no year, no zone. What is further on in the line is part of the message.
_SYSLOG_TIME = re.compile(rb"([A-Z][a-z]{2}) ([ \d]\d) (\d\d):(\d\d):(\d\d)\b")
_BEGINNING_BYTES = 48
#: An access line of a storage server has the time at its end, always in UTC.
_ACCESS_TIME = re.compile(rb"\[(\d\d)/([A-Z][a-z]{2})/(\d{4}):(\d\d):(\d\d):(\d\d) \+0000\]")


class LineTime(NamedTuple):
    """Seconds since 1970; unless ``zoned`` as if local time were UTC."""

    seconds: float
    zoned: bool


def parse_line_time(line: bytes, near: float) -> LineTime | None:
    """Return when a line was written; None where it does not say. A missing year is that of ``near``."""
    if found := _JOURNALD_TIME.search(line):
        return LineTime(int(found[1]) + int(found[2]) / 1e6, zoned=True)
    is_json = line[:1] == b"{"
    found = None if is_json else _SYSLOG_TIME.search(line, 0, _BEGINNING_BYTES)
    if found and found[1] in _MONTH_NUMBERS:
        month, (day, hour, minute, second) = _MONTH_NUMBERS[found[1]], map(int, found.groups()[1:])
        year = time.gmtime(near).tm_year
        years = (_utc_seconds(each, month, day, hour, minute, second) for each in (year - 1, year, year + 1))
        return LineTime(min(years, key=lambda seconds: abs(seconds - near)), zoned=False)
    # Further on it is part of the message, as in the name of an object.
    if found := _ISO_TIME.search(line) if is_json else _ISO_TIME.search(line, 0, 2 * _BEGINNING_BYTES):
        *words, fraction, zone = found.groups()
        if not (1 <= int(words[1]) <= 12 and int(words[0])):
            return None
        seconds = _utc_seconds(*map(int, words)) + (float(b"0." + fraction) if fraction else 0.0)
        return LineTime(seconds - _zone_seconds(zone), zoned=zone is not None)
    return None


def parse_access_time(line: bytes) -> int | None:
    """Return the seconds since 1970 in an access line of a storage server; None where there is none."""
    found = _ACCESS_TIME.search(line)
    return _parse_access_text(found[0]) if found else None


@lru_cache(maxsize=1024)
def _parse_access_text(text: bytes) -> int | None:
    found = _ACCESS_TIME.match(text)
    if found is None or found[2] not in _MONTH_NUMBERS:
        return None
    day, _, year, hour, minute, second = found.groups()
    if not int(year):
        return None
    return _utc_seconds(int(year), _MONTH_NUMBERS[found[2]], int(day), int(hour), int(minute), int(second))


def _utc_seconds(*words: int) -> int:
    return timegm((*words, 0, 0, 0))


def _zone_seconds(zone: bytes | None) -> int:
    """Return by how many seconds a zone is ahead of UTC."""
    if zone is None or zone == b"Z":
        return 0
    seconds = int(zone[1:3]) * 3600 + int(zone[-2:]) * 60
    return -seconds if zone[:1] == b"-" else seconds
