"""Lines inside records: of JSON, which log collectors write, and cells of CSV.

Log collectors (filebeat, fluentd, Docker, journald and others) wrap lines in records of JSON. There is no
list of products: the message is the text in the record in which the caller's pattern is found, the host is
under one of the names by which collectors call it. A record may be in another one.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

#: By what Swift's lines are found: a transaction id without what ``X-Trans-Id-Extra`` or ``trans_id_suffix``
#: append to it. Until Swift 1.8 it had 32 hexadecimal digits and no time.
TRANS_ID = re.compile(rb"tx[0-9a-f]{21}(?:-[0-9a-f]{10}|[0-9a-f]{11})")

_JSON_BEGINS = re.compile(rb'\{\s*"')
#: What a line ends in that may end in a record of JSON.
MAY_END_RECORD = re.compile(rb"\}\]*\s*$")
#: What a cell of CSV has that is a host, and what it does not have: levels, facilities and programs.
_CSV_HOST = re.compile(rb"[A-Za-z][\w.-]*[\w]")
_NO_CSV_HOST = re.compile(
    rb"(?i)^(?:debug|info|notice|warn|warning|err|error|critical|local\d|stdout|stderr|swift|syslog|daemon)$|server$"
)
_FIELD_NAME = re.compile(rb'^\s*"[\w.@-]+"\s*:\s*"')
_PLAIN_NAME = re.compile(r"[^a-z0-9]")
#: Records within records, at most.
_MAX_DEPTH = 3
#: Where a message is, the most telling name first; what has none of these names comes after them.
_MESSAGE_FIELDS = ("MESSAGE", "message", "log", "line", "msg", "original")
#: The names of fields that hold a host, the most telling first: lower case, letters and digits only, those of
#: an inner record after those of the outer one. Several pods of a node may have containers of the same name.
_HOST_NAMES = (
    "podname",
    "k8spodname",
    "pod",
    "host",
    "hostname",
    "hosthostname",
    "nodename",
    "k8snodename",
    "node",
    "instance",
    "agenthostname",
    "agentname",
    "beathostname",
    "sourcename",
    "resourcename",
)
#: These hold other things, too: streams, programs.
_PERHAPS_HOST_NAMES = ("source", "containername", "container", "attrstag", "filename")
#: Records of other records, which do not change what a name in them means.
_WRAPPER_NAMES = frozenset(["labels", "kubernetes", "resource", "attributes", "metadata", "fields"])
#: Names that do not identify a host.
ANY_HOST = re.compile(rb"(?:localhost|127\.0\.0\.1)(?:\.|$)|-$")


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
    ends = line.rstrip()
    # fluent-bit: [0] TAG: [TIME, {"log"=>"..."}]
    ends = ends.rstrip(b"]").rstrip() if ends[-1:] == b"]" else ends
    begin = _JSON_BEGINS.search(ends) if ends[-1:] == b"}" else None
    if begin is None or not depth:
        return []
    try:
        record = msgspec.json.decode(ends[begin.start() :].replace(b'"=>', b'":'))
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
    names = dict(reversed([*_list_plain_names(each)])) if isinstance(each, dict) else {}
    for name in _HOST_NAMES:
        if (found := names.get(name)) and not ANY_HOST.match(found.encode()):
            return found
    perhaps = (names.get(name, "") for name in _PERHAPS_HOST_NAMES)
    return next((found for found in perhaps if found and not _NO_CSV_HOST.search(found.encode())), "")


def _list_plain_names(record: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the texts of a record by plain names, the outermost first."""
    pending: list[tuple[str, Any, int]] = [("", record, 0)]
    for before, value, depth in pending:  # which grows
        if isinstance(value, str):
            yield before, value
        elif isinstance(value, dict) and depth <= _MAX_DEPTH:
            for name, each in value.items():
                plain = _PLAIN_NAME.sub("", name.lower())
                pending.append((before if plain in _WRAPPER_NAMES else before + plain, each, depth + 1))
        elif isinstance(value, list):  # OpenTelemetry: [{"key": "host.name", "value": {"stringValue": ...}}]
            for each in value:
                if isinstance(each, dict) and isinstance(name := each.get("key"), str):
                    inner = each.get("value")
                    text = inner.get("stringValue") if isinstance(inner, dict) else inner
                    pending.append((before + _PLAIN_NAME.sub("", name.lower()), text, depth + 1))


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
    hosts = {cell for cell in found if may_be_host_cell(cell.decode())}
    # Of a record of JSON that is cut, or on several lines, its name stands before the message.
    bare = _FIELD_NAME.sub(b"", message)
    return EnclosedMessage(bare, hosts.pop() if len(hosts) == 1 else b"")


def may_be_host_cell(cell: str) -> bool:
    """Whether a cell of a table may name a host: no level, facility, stream or program."""
    text = cell.encode()
    return _CSV_HOST.fullmatch(text) is not None and not _NO_CSV_HOST.search(text)
