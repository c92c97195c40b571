"""Lines of Swift's logs as records: access lines of proxies and storage servers, errors, daemons.

Pure functions of bytes. A prefix may precede the message, words of the form ``key=value`` may follow it, and
a record of JSON may hold it (an envelope); a line is recognised by the shape of its
message. No field that can hold a token is kept.

Lines of background daemons say which one was at work, on which device, and for how long. They are read for
messages of Swift 2.1 to 2.38. A message without a duration still shows that logs of its daemon are given.

Ids of a run are sorted numbers of 64 bits, in which those of log lines are looked up: eight bytes an id, and
twelve more for each of a sample. Two ids have the same number by chance: of ten million results, one of a
billion lines of other requests is taken for one of the run in one of 200 cases.

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
import string
import time
from calendar import timegm
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from ssbench.base.errors import UsageError
from ssbench.results.block import TextColumn

_JSON_BEGINS = re.compile(rb'\{\s*"')
_MAY_END_RECORD = re.compile(rb"\}\]*\s*$")
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
        if (found := names.get(name)) and not _ANY_HOST.match(found.encode()):
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


# -- Words before the message ----------------------------------------------------------------------


_LEVEL_WORD = re.compile(
    rb"(?i)\[?(?:\w+\.)?(?:debug|info|notice|warn|warning|err|error|crit|critical|alert|emerg)\]?"
)
_TIME_WORD = re.compile(rb"\d[-\d]*[T:]\d|\d{2}:\d{2}|\d{4}-\d{2}-\d{2}")
_ISO_BEGIN = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:")
_DATE_WORD = re.compile(
    rb"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec|Mon|Tue|Wed|Thu|Fri|Sat|Sun),?|\d{1,4}"
)
_NAME_WORD = re.compile(rb"[A-Za-z0-9](?:[\w.-]*\w)?")
#: A label or a trailing word that names a host.
HOST_LABEL = re.compile(rb'\b(?:host|hostname|_HOSTNAME|nodename|node_name|node)="?([\w.:-]+)')
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_CRI_WORDS = ((b"stdout", b"stderr"), (b"F", b"P"))
#: What pdsh, clush and grep put before the lines of others: ``NODE: ``, ``PATH:`` or ``PATH:NUMBER:``.
_FETCHED_FROM = re.compile(
    rb"([\w.-]*\w): (?=\S)"
    rb"|([^\s:\"\[{]*/[^\s:\"\[{]+|[\w@%+-][\w@%+.-]*\.(?:log|txt|\d+|gz|zst|xz|bz2|json)):(?:\d+:)?(?! )"
)
#: Names of programs before a message, which are not nodes.
_PROGRAM = re.compile(
    rb"(?i)(?:swift[-.])?(?:swift|proxy|account|container|object)"
    rb"(?:-(?:server|access|updater|replicator|auditor|reconstructor|expirer|reaper|sharder)\S*)?$|.*server$"
)
#: Names that do not identify a host.
_ANY_HOST = re.compile(rb"(?:localhost|127\.0\.0\.1)(?:\.|$)|-$")
#: What :func:`find_log_files` leaves out of the name of a file.
_LOG_ENDING = re.compile(rb"\.(?:log|txt|json|gz|zst|xz|bz2|\d)$|\.log\b")
_FILE_ENDING = re.compile(rb"(?:\.(?:gz|zst|xz|bz2)|\.log|\.txt|\.json|\.\d+|-\d{8})+$")


class FetchedLine(NamedTuple):
    """A line without the prefix of the program that fetched it; ``node`` is empty if the prefix named"
    " none."""

    node: bytes
    line: bytes


def split_fetched(line: bytes) -> FetchedLine:
    """Take off the name of the node, or of the file, that the line was fetched from."""
    node = b""
    for _ in range(2):  # pdsh ... grep -H
        found = _FETCHED_FROM.match(line)
        if found is None or (found[1] and _PROGRAM.match(found[1])):
            break
        node = node or found[1] or find_file_node(found[2])
        line = line[found.end() :]
    return FetchedLine(node, line)


def find_file_node(path: bytes) -> bytes:
    """Return the name of the node of a log file: its path without endings."""
    return _FILE_ENDING.sub(b"", path) if b"/" in path or _LOG_ENDING.search(path) else path


def host_of_prefix(prefix: Sequence[bytes]) -> bytes:
    """Return the host that the words before a message name; empty where they name none.

    Every node may call itself localhost.
    """
    host = _find_host(prefix)
    return b"" if _ANY_HOST.match(host) else host


def _find_host(prefix: Sequence[bytes]) -> bytes:
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
    if b"{" in first + b"".join(prefix[1:2]):  # logcli
        labels = _LABEL.findall(b" ".join(prefix).decode("utf-8", "replace"))
        return host_of_record(dict(labels)).encode()
    # stern: POD CONTAINER
    is_name = len(prefix) <= 2 and all(map(_NAME_WORD.fullmatch, prefix)) and _may_be_host(first)
    return first if is_name and not _PROGRAM.match(first) else b""


def _host_by_tag(prefix: Sequence[bytes]) -> bytes:
    """Return the word before the first that ends in a colon, which is the tag of syslog.

    A program that itself writes a tag (a container under systemd) has two. Between them may be a priority,
    and before that, in lines of log handlers, the time.
    """
    for place, word in enumerate(prefix):
        if word[-1:] == b":" and not _TIME_WORD.match(word):
            before = list(prefix[:place])
            is_leveled = bool(before) and _is_level(before[-1])
            while before and (_is_level(before[-1]) or (is_leveled and _TIME_WORD.match(before[-1]))):
                before.pop()
            return before[-1] if before and _may_be_host(before[-1]) else b""
    # RFC 5424 without a priority: TIME HOST APPLICATION PROCESS MESSAGE-ID DATA
    after = next((place for place, word in enumerate(prefix) if _ISO_BEGIN.match(word)), len(prefix))
    return prefix[after + 1] if len(prefix) - after >= 6 and _may_be_host(prefix[after + 1]) else b""


def _is_level(word: bytes) -> bool:
    return _LEVEL_WORD.fullmatch(word) is not None


@lru_cache(maxsize=4096)
def _may_be_host(word: bytes) -> bool:
    return bool(word) and not (_is_level(word) or _TIME_WORD.match(word) or _DATE_WORD.fullmatch(word))


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
    return timegm(words)


def _zone_seconds(zone: bytes | None) -> int:
    """Return by how many seconds a zone is ahead of UTC."""
    if zone is None or zone == b"Z":
        return 0
    seconds = int(zone[1:3]) * 3600 + int(zone[-2:]) * 60
    return -seconds if zone[:1] == b"-" else seconds


# -- Lines of requests -----------------------------------------------------------------------------


#: A transaction id without what ``X-Trans-Id-Extra`` or ``trans_id_suffix`` append to it. Until Swift 1.8
#: it had 32 hexadecimal digits and no time.
TRANS_ID = re.compile(rb"tx[0-9a-f]{21}(?:-[0-9a-f]{10}|[0-9a-f]{11})")

#: The line names no policy.
NO_POLICY = -1


class ProxyLine(NamedTuple):
    """A proxy's access line."""

    host: bytes  # that of the prefix; empty: there is none
    method: bytes
    status: int
    seconds: float  # request_time
    own: bool  # True for a request of the client, False for one that middleware made on its behalf
    policy: int


class BackendLine(NamedTuple):
    """A storage server's access line."""

    host: bytes
    server: bytes  # ``object``, ``container`` or ``account``, by the path
    device: bytes
    partition: bytes
    method: bytes
    status: int
    seconds: float  # trans_time
    #: Program that sent the request (``proxy-server``, ``object-server``, ``object-expirer``, ...); empty:
    #: none is named.
    asker: bytes
    proxy: tuple[bytes, bytes]  # (address, pid) of who sent it
    pid: bytes
    policy: int
    names: bytes  # the rest of the path, from the account on
    referer: bytes  # the request that the asker did so for


class ErrorLine(NamedTuple):
    """An error that names a transaction."""

    host: bytes
    #: ``timeout``, ``connection``, ``507``, ``limited``, ``error``, ``handoff``, ``refusal`` (the proxy gave
    #: an error to the client), ``update`` (a container server did not take the update of an object server),
    #: ``memcached`` (which did not answer a proxy) or ``client``.
    kind: str
    server: bytes
    address: bytes  # IP:PORT
    device: bytes  # empty: none is named
    detail: str


class SlowLine(NamedTuple):
    """What an object server says of a slow request, since Swift 2.38."""

    host: bytes
    method: bytes
    device: bytes
    status: int
    seconds: float  # those of the whole
    began: float  # seconds since 1970 by its clock
    parts: tuple[tuple[str, float], ...]  # seconds by name


class CutLine(NamedTuple):
    """An access line of which a part is missing, or that is of no known layout."""


SwiftLine = ProxyLine | BackendLine | ErrorLine | SlowLine | CutLine
ProxyParser = Callable[[bytes], ProxyLine | CutLine | None]

_CUT_LINE = CutLine()
#: Of a line, so much is searched for an error; an access line is no longer than the other.
_MAX_ERROR_BYTES = 8192
_MAX_ACCESS_BYTES = 65536
_PROXY_DATE = re.compile(rb" \d\d/[A-Z][a-z]{2}/\d{4}/\d\d/\d\d/\d\d ")
#: Seconds as Swift writes them; a number that was cut is none.
_SECONDS_PATTERN = rb"(\d{1,7}\.\d{4,9})"
_PROXY_LINE = re.compile(
    rb" \d\d/[A-Z][a-z]{2}/\d{4}/\d\d/\d\d/\d\d (\S+) \S+ \S+ (\d{1,3}) (?:\S+ ){6}tx[0-9a-f]{21}\S* \S+ "
    + _SECONDS_PATTERN
    + rb"(?: (\S+)(?: \S+ \S+ \S+ (\S+))?)?(?= |$)"
)
#: Possessive (+), so that nothing is remembered to try again. Daemons that ask through a proxy of their own
#: are called ``Swift Object Expirer`` and so on.
_BACKEND_LINE = re.compile(
    rb' \[[^]"[]*+] "([A-Z]{1,20}+) /([^/ "]++)/(\d{1,10}+)/([^ "]*+)" (\d{1,3}+) \S++ "([^"]*+)"'
    rb' "tx[0-9a-f]{21}[^"]*+" "(Swift [A-Za-z ]{1,40}+|[^ "]*+)(?: (\d{0,10}+))?" '
    + _SECONDS_PATTERN
    + rb'(?: "[^"]*+"(?: (\d++|-)(?: (\d++|-))?)?)?(?: \(txn: |( [\w.@-]{1,64}+=.*)?\s*$)'
)
#: What an access line of a storage server has, and no other line.
BACKEND_MARK = b'] "'
#: By the slashes in the path after device and partition.
_SERVER_KINDS = (b"account", b"container", b"object")

_NODE_PATTERN = rb"(\[[0-9A-Fa-f:.]+\]:\d+|[^\s:/\[\]]+:\d+)(?:/(\S+?))?"
_ERROR_PATTERNS = (
    (
        re.compile(
            rb"ERROR with (\w+) server " + _NODE_PATTERN + rb"(?: \[\S+\])? re: .*?: ([^:]*?)(?: \(txn: |$)"
        ),
        "",
    ),
    (
        re.compile(
            rb"Node will be error limited for [\d.]+s: ()"
            + _NODE_PATTERN
            + rb"(?:, error: (.*?))?(?: \(txn: |$)"
        ),
        "limited",
    ),
    (re.compile(rb"ERROR Insufficient Storage ()" + _NODE_PATTERN + rb"()(?: |$)"), "507"),
    (re.compile(rb"Node error limited ()([^\s/]+:\d+) \((\S+?)\)()"), "limited"),
    (
        re.compile(
            rb"ERROR (container) update failed with " + _NODE_PATTERN + rb" .*?: ([^:]*?)(?: \(txn: |$)"
        ),
        "update",
    ),
    (
        re.compile(
            rb"ERROR (Container) update failed \(saving[^)]*\): \d+ response from "
            + _NODE_PATTERN
            + rb"()(?: |$)"
        ),
        "update",
    ),
    # ALL if no server is left to try.
    (re.compile(rb"(?:Error|Timeout) \w+ to (memcached): (\S+?)()(): "), "memcached"),
    (re.compile(rb"()()()Handoff requested \((\d+)\)"), "handoff"),
    (re.compile(rb"(Account|Container|Object)()() \w+ (returning \d{3}[^(]*)"), "refusal"),
    (re.compile(rb"()()()(Client disconnected|ERROR Client read timeout)"), "client"),
)


_SLOW_LINE = re.compile(
    rb"Slow ([A-Z]{1,20}) \((\d{1,7}\.\d{3})s\) for /([^/ ]+)/.*?, status (\d{3}),"
    rb" start_time=(\d{1,11}\.\d{3}),((?: \w+=\d{1,7}\.\d{3}s,?)*)"
)
_SLOW_PARTS = re.compile(rb" (\w+)=(\d+\.\d+)s")


def parse_swift_line(line: bytes, proxy: ProxyParser | None = None) -> SwiftLine | None:
    """Return what a line that holds a transaction id says; None for lines that say nothing of interest.

    ``proxy`` reads proxies' access lines, that of the default layout unless one was made by
    :func:`make_template_parser`.
    """
    if len(line) > _MAX_ACCESS_BYTES:
        return _CUT_LINE
    if _MAY_END_RECORD.search(line, max(len(line) - 8, 0)):
        found = _parse_enclosed(line, proxy)
        if found is not None:
            return found
    found = _parse_message(line, proxy)
    has_no_host = isinstance(found, ProxyLine) and not found.host
    if found is None or has_no_host or isinstance(found, CutLine):
        cell = find_csv_message(line, TRANS_ID)
        inner = _parse_message(cell.message, proxy) if cell else None
        if cell and inner is not None:
            return _name_host(inner, cell.host)
    return found


def _parse_enclosed(line: bytes, proxy: ProxyParser | None) -> SwiftLine | None:
    """Return what the line in a record of JSON says; a host in the line wins over that of the record."""
    for record in find_json_messages(line, TRANS_ID):
        found = _parse_message(record.message, proxy)
        if found is not None:
            return _name_host(found, record.host)
    return None


def _name_host(found: SwiftLine, outer: bytes) -> SwiftLine:
    """Return a line with the host of the record around it, unless it names one itself."""
    return found if isinstance(found, CutLine) or found.host else found._replace(host=outer)


def _parse_message(line: bytes, proxy: ProxyParser | None) -> SwiftLine | None:
    node, line = split_fetched(line)
    found = _parse_bare_message(line, proxy)
    return found if found is None else _name_host(found, node)


def _parse_bare_message(line: bytes, proxy: ProxyParser | None) -> SwiftLine | None:
    if BACKEND_MARK in line:
        return _parse_backend(line)
    found = (proxy or parse_default_proxy_line)(line)
    if found is not None:
        # log_max_line_length puts this where it cuts; no field holds a blank, so nothing else does.
        return _CUT_LINE if b" ... " in line else found
    if slow := _SLOW_LINE.search(line, 0, _MAX_ERROR_BYTES):
        return _parse_slow(line[: slow.start()], slow)
    for pattern, kind in _ERROR_PATTERNS:
        match = pattern.search(line, 0, _MAX_ERROR_BYTES)
        if match:
            return _parse_error(line[: match.start()], match, kind)
    cut = b" ... " in line and (b'"proxy-server ' in line or b" HTTP/1" in line)
    return _CUT_LINE if cut else None


def _parse_policy(word: bytes | None) -> int:
    """Return the index of a policy; :data:`NO_POLICY` for what is none."""
    return int(word) if word and len(word) < 10 and word.isdigit() else NO_POLICY


def _parse_backend(line: bytes) -> BackendLine | CutLine:
    match = _BACKEND_LINE.search(line)
    words = line[: match.start()].split() if match else []
    if match is None or len(words) < 3:
        return _CUT_LINE
    method, device, partition, names, status, referer, asker, asker_pid, seconds, pid, policy, tail = (
        match.groups()
    )
    return BackendLine(
        host_of_prefix(words[:-3]) or _host_after_message(tail),
        _SERVER_KINDS[min(names.count(b"/"), 2)],
        device,
        partition,
        method,
        int(status),
        float(seconds),
        _parse_program(asker),
        (words[-3], asker_pid or b""),
        pid or b"-",
        _parse_policy(policy),
        names,
        referer,
    )


def _parse_program(agent: bytes) -> bytes:
    """Return the program that a User-Agent names; that of a daemon as its logs and its command have it."""
    if agent[:6] == b"Swift ":
        return agent[6:].replace(b" ", b"-").lower()
    return b"" if agent == b"-" else agent


def _host_after_message(tail: bytes | None) -> bytes:
    """Return the host that words like ``host=storage1`` after a message name; empty without one."""
    found = HOST_LABEL.search(tail) if tail else None
    return found[1] if found else b""


def parse_default_proxy_line(line: bytes) -> ProxyLine | CutLine | None:
    """Read an access line of a proxy in the default layout of any version; None where it is none."""
    match = _PROXY_LINE.search(line)
    if match is None:
        return _CUT_LINE if _PROXY_DATE.search(line) else None
    method, status, seconds, source, policy = match.groups()
    return ProxyLine(
        host_of_prefix(line[: match.start()].split()[:-2]) or _host_after_message(line[match.end() :]),
        method,
        int(status),
        float(seconds),
        source in (b"-", None),
        _parse_policy(policy),
    )


_FIELD_SHAPES = {
    "transaction_id": rb"tx[0-9a-f]{21}\S*?",
    "request_time": rb"\d{1,7}\.\d{4,9}",
    "status_int": rb"\d{3}",
    "method": rb"[A-Z]+",
}


def _split_template(template: str) -> list[tuple[str, str]]:
    """Split a template as ``str.format`` does, where ``{{`` is a brace: texts, each with a field or none."""
    try:
        return [(literal, field or "") for literal, field, _, _ in string.Formatter().parse(template)]
    except ValueError as error:
        raise UsageError(f"no template of Swift: {error}") from None


def make_template_parser(template: str) -> ProxyParser:
    """Return a reader of lines that a proxy with this ``log_msg_template`` writes.

    Raises UsageError when the template lacks what the join needs.
    """
    pieces = _split_template(template)
    names = {field.partition(".")[0] for _, field in pieces}
    if missing := [name for name in ("transaction_id", "request_time", "source") if name not in names]:
        raise UsageError(
            f"the template has no {' and no '.join(f'{{{name}}}' for name in missing)};"
            " without it a line cannot be joined with a request"
        )
    pattern, seen = rb"", set[str]()
    for literal, field in pieces:
        pattern += re.escape(literal.encode())
        if field:
            # Fields are percent-encoded, so none holds a blank or a quotation mark. {end_time.datetime} is
            # not {end_time}, and what occurs twice is read once.
            shape = _FIELD_SHAPES.get(field.partition(".")[0], rb'[^\s"]*')
            new = field not in seen and field.isidentifier()
            pattern += b"(?P<%b>%b)" % (field.encode(), shape) if new else b"(?:%b)" % shape
            seen.add(field)
    for name in ("transaction_id", "request_time", "source"):
        if name not in seen:
            raise UsageError(f"the template has {{{name}}} only in another form than {{{name}}}")
    expression = re.compile(rb"(?<!\S)" + pattern + rb"(?=\s|$)")

    def read(line: bytes) -> ProxyLine | None:
        match = expression.search(line)
        if match is None:
            return None
        found = match.groupdict()
        policy = found.get("policy_index", b"-")
        return ProxyLine(
            host_of_prefix(line[: match.start()].split()),
            found.get("method", b""),
            int(found.get("status_int", b"0")),
            float(found["request_time"]),
            found["source"] in (b"-", b""),
            _parse_policy(policy),
        )

    return read


def _parse_slow(before: bytes, match: re.Match[bytes]) -> SlowLine:
    method, seconds, device, status, began, parts = match.groups()
    found = tuple((name.decode(), float(each)) for name, each in _SLOW_PARTS.findall(parts))
    return SlowLine(
        host_of_prefix(before.split()), method, device, int(status), float(seconds), float(began), found
    )


def _parse_error(before: bytes, match: re.Match[bytes], kind: str) -> ErrorLine:
    server, address, device, detail = (group or b"" for group in match.groups())
    text = detail.decode("ascii", "replace").strip()
    if "Insufficient Storage" in text:
        kind = "507"
    elif not kind:
        lower = text.lower()
        kind = "timeout" if "timeout" in lower else "connection" if "connection" in lower else "error"
    return ErrorLine(host_of_prefix(before.split()), kind, server.lower(), address, device, text)


# -- Lines of daemons ------------------------------------------------------------------------------


_DAEMON_KINDS = rb"updater|replicator|auditor|reconstructor|expirer|sharder|reaper"
#: Finds what may be a line of a daemon quickly, since it begins with a fixed character.
DAEMON_MARK = re.compile(rb"-(?:%b)(?![\w-])" % _DAEMON_KINDS)
_DAEMON_PROGRAM = re.compile(rb"(?<![\w./-])((?:object|container|account)-(?:%b))(?![\w./-])" % _DAEMON_KINDS)
#: What a line says about how long it took; the unit is that of the second group.
_DAEMON_SECONDS = re.compile(
    rb"(?: completed| progress| in|, Total time|Pass so far|Pass completed in| complete(?: \(once\))?\.) ?"
    rb"(?:on \S+ in |on \S+: |: |\()?(\d{1,9}(?:\.\d{1,9})?) ?(s\b|seconds|minutes|,)"
)
_DAEMON_RSYNC = re.compile(rb"Successful rsync of \S+ to \S+ \((\d{1,9}\.\d+)\)")
_DAEMON_BEGINS = re.compile(
    rb": (?:Begin |Beginning |Starting object re\w+ pass|Object update sweep starting|"
    rb"Container sharder cycle starting|Pass beginning)"
)
#: Device and what follows it in a path of a node's disk, or a sweep's device.
_DISK_PATH = re.compile(rb"/([^/\s]+)/(?:objects|containers|accounts|async_pending|tmp)[-/\w]*")
_DAEMON_SWEEP = re.compile(rb"sweep (?:starting on|completed on|progress on|of) (?:/\S*/)?([^/\s:]+)")
#: The auditor has two processes, of which one looks at objects without content.
_AUDITOR_MODE = re.compile(rb"\((ALL|ZBF)(?: - (?:parallel, )?([^)\s]+))?\)")


class DaemonRecord(NamedTuple):
    """A line of a daemon."""

    host: bytes  # that of its prefix
    program: bytes
    device: bytes  # empty: it names none, or all
    seconds: float | None  # those that it had been at work for; None: the line does not say
    begins: bool  # a pass begins


def parse_daemon_line(line: bytes) -> DaemonRecord | None:
    """Return what a line of a daemon says; None for lines of others."""
    program = _DAEMON_PROGRAM.search(line)
    if program is None:
        return None
    host, name, device = _host_of_daemon(line, program.start()), program[1], _device_of_daemon(line)
    if mode := _AUDITOR_MODE.search(line):
        name += b" " + mode[1]
        device = device or (mode[2] if mode[2] and b"," not in mode[2] else b"")
    if rsync := _DAEMON_RSYNC.search(line):
        return DaemonRecord(host, name, device, float(rsync[1]), begins=False)
    if lasted := _DAEMON_SECONDS.search(line):
        seconds = float(lasted[1]) * (60 if lasted[2] == b"minutes" else 1)
        return DaemonRecord(host, name, device, seconds, begins=False)
    return DaemonRecord(host, name, device, None, begins=_DAEMON_BEGINS.search(line) is not None)


def _host_of_daemon(line: bytes, tag: int) -> bytes:
    """Return the host that the words before the daemon's name tell, or the record of JSON that it is in."""
    for record in find_json_messages(line, _DAEMON_PROGRAM):
        return record.host
    node, before = split_fetched(line[:tag])
    return host_of_prefix([*before.split(), b"tag:"]) or node


def _device_of_daemon(line: bytes) -> bytes:
    found = _DAEMON_SWEEP.search(line) or _DISK_PATH.search(line)
    return found[1] if found and found[1] != b"all" else b""


# -- Transaction ids of a run ----------------------------------------------------------------------


#: Bytes of an id without what may be appended to it: ``tx``, 21 hexadecimal digits, a hyphen and 10 (until
#: Swift 1.8: 32).
ID_LENGTH = 34
_TIME_OFFSET = 24

#: Where no result has an id; where one has it that is not in the sample.
UNKNOWN_ID, UNUSED_ID = -1, -2

Bytes = npt.NDArray[np.uint8]
Numbers = npt.NDArray[np.int64]

_DIGIT_VALUES = np.full(256, -1, np.int8)
_DIGIT_VALUES[np.frombuffer(b"0123456789abcdef", np.uint8)] = np.arange(16)
_NO_NUMBERS = np.zeros(0, np.uint64)
_POWERS = 16 ** np.arange(9, -1, -1, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class TransactionIds:
    """Numbers of ids in order."""

    numbers: npt.NDArray[np.uint64]
    places: npt.NDArray[np.uint32]  # that of the result which each is of
    #: Those of all results, in order, where ``numbers`` are of a sample of them; empty otherwise.
    every: npt.NDArray[np.uint64]

    @classmethod
    def of(
        cls,
        numbers: npt.NDArray[np.uint64],
        places: npt.NDArray[np.uint32],
        every: npt.NDArray[np.uint64] = _NO_NUMBERS,
    ) -> TransactionIds:
        """Sort them; ``every`` is sorted in its place, as it may be all there is memory for."""
        every.sort()
        order = np.argsort(numbers, kind="stable")
        return cls(numbers[order], places[order], every)

    def find(self, ids: Bytes) -> Numbers:
        """Return the place of each id.

        :data:`UNKNOWN_ID` where it is none of the run's, else :data:`UNUSED_ID`.
        """
        wanted = number_ids(ids)
        found = np.full(len(ids), UNKNOWN_ID, np.int64)
        if len(self.every):
            found[self.every[_find_last(self.every, wanted)] == wanted] = UNUSED_ID
        if len(self.numbers):
            at = _find_last(self.numbers, wanted)
            known = self.numbers[at] == wanted
            found[known] = self.places[at[known]]
        return found


def _find_last(numbers: npt.NDArray[np.uint64], wanted: npt.NDArray[np.uint64]) -> Numbers:
    """Return where each wanted number is, or else might be. Two results can have the same: it is the last."""
    return np.maximum(np.searchsorted(numbers, wanted, side="right").astype(np.int64) - 1, 0)


def gather_ids(chunk: bytes | Bytes, starts: Numbers) -> Bytes:
    """Return the ids that begin at some places of a chunk, one in each row."""
    array = np.frombuffer(chunk, np.uint8) if isinstance(chunk, bytes) else chunk
    return np.asarray(array[starts[:, None] + np.arange(ID_LENGTH)])


def ids_of_column(texts: Any) -> tuple[Bytes, Numbers]:
    """Return the ids of a column of results, and the rows of the results that have one."""
    column = texts if isinstance(texts, TextColumn) else TextColumn.of(texts)
    data, starts = column.beginnings(ID_LENGTH)
    ids = gather_ids(data, starts[starts >= 0])
    rows = np.flatnonzero(starts >= 0)
    hexadecimal = _DIGIT_VALUES[ids] >= 0
    fine = (ids[:, 0] == ord("t")) & (ids[:, 1] == ord("x")) & hexadecimal[:, 2:23].all(axis=1)
    fine &= (hexadecimal[:, 23] | (ids[:, 23] == ord("-"))) & hexadecimal[:, 24:].all(axis=1)
    return ids[fine], rows[fine]


def number_ids(ids: Bytes) -> npt.NDArray[np.uint64]:
    """Return 64 bits of each id, all of whose digits matter."""
    words = np.ascontiguousarray(ids[:, 2:]).view(np.uint64)
    mixed = np.zeros(len(ids), np.uint64)
    for word in words.T:
        mixed = (mixed ^ word) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return mixed


def seconds_of_ids(ids: Bytes) -> Numbers:
    """Return the seconds since 1970 in ids; 0 for those that have none."""
    timed = ids[:, 23] == ord("-")
    return np.where(timed, np.maximum(_DIGIT_VALUES[ids[:, _TIME_OFFSET:]], 0).astype(np.int64) @ _POWERS, 0)


def time_range_of_ids(ids: Bytes) -> tuple[int, int] | None:
    """Return the first and the last second since 1970 in ids; None where none has a time."""
    timed = ids[ids[:, 23] == ord("-")]
    if not len(timed):
        return None
    found = seconds_of_ids(timed)
    return int(found.min()), int(found.max())
