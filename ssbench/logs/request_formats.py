"""The formats of logs of which requests are read: a row each, and a small reader of its lines.

Swift's proxies write either the layout of their version or a template; s3api requests are in the same lines,
with paths that begin with a bucket. HAProxy and nginx write what they are configured to: their own format
text says where everything is (:func:`make_template_reader`). What is not asked about, such as tokens, is not
looked at.
"""

from __future__ import annotations

import math
import re
from calendar import timegm
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import msgspec

from ssbench.base.errors import UsageError
from ssbench.logs.envelopes import MAY_END_RECORD, find_json_messages
from ssbench.logs.request_paths import RequestPlace, decode_path, name_kind, split_path
from ssbench.logs.rewriting import RewriterFinder, find_ceph_rewriter, find_rewriter, no_rewriter

#: The size of an object, or a duration, that a line does not say.
UNKNOWN_SIZE = -1
UNKNOWN_SECONDS = float("nan")


class LoggedRequest(NamedTuple):
    """What a line says of a request of a client."""

    began: float  # seconds since 1970
    seconds: float  # how long it took; NaN: not known
    kind: str  # one of REQUEST_KINDS of logged_requests
    status: int
    size: int  # bytes of the object; UNKNOWN_SIZE: the line does not say
    moved: int  # bytes of bodies, in both directions
    account: bytes
    container: bytes
    name: bytes  # of the object, decoded; empty: it is about none
    source: bytes = b""  # who asked, such as an address
    whole: bool = False  # ``began`` is known to a second only


#: Reads a line: None for one that is no request of a client. Raises ValueError for one that should be.
LineReader = Callable[[bytes], LoggedRequest | None]


@dataclass(frozen=True, slots=True)
class RequestFormat:
    """How the requests of a log are read."""

    name: str
    title: str
    read: LineReader
    #: Finds what makes lines of entries of several lines.
    find_rewriter: RewriterFinder = no_rewriter
    doubts: tuple[str, ...] = ()  # sentences on what its lines do not say
    replay_doubts: tuple[str, ...] = ()  # sentences on what that makes of a replay


_MONTHS = {
    name: number
    for number, name in enumerate(
        (b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"), 1
    )
}
#: 06/Feb/2019:00:00:38 +0000, with slashes at Swift and with milliseconds at HAProxy.
_DATE = re.compile(
    rb"(\d\d)/([A-Z][a-z]{2})/(\d{4})[:/](\d\d)[:/](\d\d)[:/](\d\d)(?:\.(\d{1,6}))?(?: ([+-])(\d\d)(\d\d))?"
)
_ISO_DATE = re.compile(
    rb"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:Z|([+-])(\d\d):?(\d\d))?"
)
_OK = (200, 201)
#: What a manifest is uploaded with, which is not as large as its object, and what asks for one.
_MANIFEST = b"multipart-manifest="
#: None takes longer, in seconds: 30 years.
_MAX_SECONDS = 1e9
#: No request moves more; both directions together are still numbers of 64 bits.
_MAX_BYTES = 1 << 60
_NOT_MODIFIED = 304
_LEAST_STATUS = 100


@lru_cache(maxsize=4096)
def parse_log_date(text: bytes) -> float:
    """Return the seconds since 1970 of a date in a log, in UTC unless it has a zone; raises ValueError."""
    if found := _DATE.fullmatch(text):
        day, name, year, hour, minute, second, fraction, sign, zone_hours, zone_minutes = found.groups()
        month = _MONTHS.get(name, 0)
    elif found := _ISO_DATE.fullmatch(text):
        year, number, day, hour, minute, second, fraction, sign, zone_hours, zone_minutes = found.groups()
        month = int(number)
    if not found or not 1 <= month <= 12 or not int(year):
        raise ValueError("expected a date")
    seconds = timegm((int(year), month, int(day), int(hour), int(minute), int(second)))
    if sign:
        zone = int(zone_hours) * 3600 + int(zone_minutes) * 60
        seconds += zone if sign == b"-" else -zone
    return seconds + (float(b"0." + fraction) if fraction else 0.0)


def _count(text: bytes) -> int:
    """Return a number of bytes; ``-`` is none."""
    return 0 if text == b"-" or not text else int(text)


def _make_request(
    began: float,
    seconds: float,
    method: bytes,
    place: RequestPlace,
    status: int,
    received: int,
    sent: int,
    source: bytes,
    size: int = UNKNOWN_SIZE,
    *,
    whole: bool = False,
) -> LoggedRequest:
    """Return a request; without a ``size`` that of the object is what was sent or received as a whole.

    What was received or sent may be UNKNOWN_SIZE.
    """
    if not 0 <= began < 1e11 or not _LEAST_STATUS <= status <= 999 or seconds < 0 or seconds > _MAX_SECONDS:
        raise ValueError("expected a time and a status")
    if max(received, sent, size) > _MAX_BYTES:
        raise ValueError("expected fewer bytes")
    kind = name_kind(method, place, status)
    if size == UNKNOWN_SIZE and status in _OK and _MANIFEST not in place.query:
        size = received if kind == "put" else sent if kind == "read" else UNKNOWN_SIZE
    moved = max(received, 0) + max(sent, 0)
    account, container, name, _ = place
    return LoggedRequest(began, seconds, kind, status, size, moved, account, container, name, source, whole)


# -- Swift -----------------------------------------------------------------------------------------


_SWIFT_DATE = re.compile(rb" \d\d/[A-Z][a-z]{2}/\d{4}/\d\d/\d\d/\d\d ")
#: Words from the date on, of the oldest version, of those that have the start and of those with a policy.
_LEAST_WORDS, _WORDS_WITH_START, _WORDS_WITH_POLICY, _WORDS_WITH_USER = 14, 18, 19, 20
#: Paths that are not those of a store.
_OWN_PATH = re.compile(rb"(?:/swift)?/(?:auth/|(?:info|healthcheck)(?:[?%]|$))")
_SWIFT_ENCODINGS = 2
#: What log_max_line_length puts in the place of a line's middle. No field of an access line is that.
_CUT_OUT = b"..."
_CUT_OUT_WORD = re.compile(rb" \.\.\. ")
#: A proxy's access line in another layout, which no error (``Trying to GET /v1/...: Timeout``) and no request
#: of a load balancer (within quotation marks) looks like; and the end of a line whose middle, with its date,
#: was taken out.
_UNDATED_REQUEST = re.compile(
    rb"(?<!\S)(?<!to )(?:GET|PUT|HEAD|POST|DELETE|COPY) /v1/\S+ (?:.* )?\d{3}(?= |$)"
    rb"| \.\.\. (?:.* )?\d{9,10}\.\d{9} \d{9,10}\.\d{9}(?= |$)"
)
#: What these have, and few others: it is found sooner.
_MAY_BE_UNDATED = re.compile(rb" (?:/v1/|\.\.\. )")


def read_swift_line(line: bytes) -> LoggedRequest | None:
    """Read a proxy's access line in the default layout of any version."""
    found = _SWIFT_DATE.search(line)
    if found is None:
        if _MAY_BE_UNDATED.search(line) and _is_undated_request(line):
            raise ValueError("expected a date")
        return None
    if b"}" in line[-8:] and MAY_END_RECORD.search(line, len(line) - 8):
        for record in find_json_messages(line, _SWIFT_DATE):
            return read_swift_line(record.message + b" ")
    words = line[found.start() + 1 :].split(b" ")
    if len(words) < _LEAST_WORDS or not words[3].startswith(b"HTTP/"):
        raise ValueError("expected more words")
    timed = len(words) >= _WORDS_WITH_START
    if _CUT_OUT in words or (not timed and _lacks_end(words)):
        raise ValueError("expected a whole line")
    path = words[2]
    has_source = len(words) > _LEAST_WORDS and words[_LEAST_WORDS] not in (b"-", b"")
    if has_source or _OWN_PATH.match(path):
        return None
    seconds = float(words[13])
    names_account = path.startswith(b"/v1/")
    has_user = not names_account and len(words) >= _WORDS_WITH_USER
    account = _find_account(words[_WORDS_WITH_USER - 1]) if has_user else b""
    place = split_path(path, _SWIFT_ENCODINGS, account)
    # An upload has the policy of its container; one that copies (X-Copy-From) has none, and no bytes.
    copies = words[1] == b"PUT" and place.name and words[4] == b"201" and words[8] == b"-"
    copies = copies and words[_WORDS_WITH_POLICY - 1 : _WORDS_WITH_POLICY] == [b"-"]
    return _make_request(
        float(words[16]) if timed else parse_log_date(words[0]) - seconds,
        seconds,
        b"COPY" if copies and names_account else words[1],
        place,
        int(words[4]),
        _count(words[8]),
        _count(words[9]),
        line[: found.start()].rsplit(b" ", 2)[-2:][0],
        whole=not timed,
    )


def _is_undated_request(line: bytes) -> bool:
    return _UNDATED_REQUEST.search(line, 0, _MAX_TEMPLATE_BYTES) is not None


def _lacks_end(words: Sequence[bytes]) -> bool:
    """Whether an access line, in words from its date on, lost its end: words that each has, or decimals.

    One that ends in a whole word is as an older version writes it.
    """
    if len(words) == _LEAST_WORDS:
        return words[-1][-5:-4] != b"."
    # No version ends in the start.
    return len(words) < _LEAST_WORDS or (len(words) == _WORDS_WITH_START - 1 and words[-1] != b"")


def _find_account(user: bytes) -> bytes:
    """Return the account of a request of s3api, whose path names none, by its user; empty for nobody.

    That is ``ACCOUNT:USER`` with tempauth, and the access key with Keystone. What others append is none.
    """
    return b"" if user == b"-" or user[:1] == b"(" or b"=" in user else user.partition(b":")[0]


# -- S3 and Ceph -----------------------------------------------------------------------------------


_S3_LINE = re.compile(
    rb'(\S+) (\S+) \[([^]]{20,32})\] (\S+) \S+ \S+ (\S+) (\S+) (?:"((?:[^"\\]|\\.)*)"|-)'
    rb" (\d{3}|-) \S+ (\d+|-) (\d+|-) (\d+|-)(?: (\d+|-)(?:ms)?)?(?= |$)"
)
#: An operation in the words of AWS; other stores have words of their own.
_S3_OPERATION = re.compile(rb"(REST|WEBSITE|SOAP|BATCH)\.([A-Z]+)\.([A-Z_]+)")
#: What operations of an S3 access log are called on objects, and on what has objects in it.
_S3_OBJECT_WORDS = {b"OBJECT", b"PART", b"COPY"}
_S3_LIST_WORDS = {b"BUCKET", b"BUCKETVERSIONS", b"SERVICE"}


def read_s3_line(line: bytes) -> LoggedRequest | None:
    """Read a server access line of S3. What lifecycle rules do is not a client's.

    Operations that are not in the words of AWS are told by the request, durations without a total time by the
    time until the answer begins, and bytes sent by the size where a store does not count them.
    """
    found = _S3_LINE.match(line)
    if found is None:
        if not line.strip():
            return None
        raise ValueError("expected an access line of S3")
    owner, bucket, date, source, operation, key, request, status, sent, size, total, first = found.groups()
    if status == b"-" or operation.startswith(b"S3."):
        return None
    name = b"" if key == b"-" else decode_path(key, 2)
    query = b""
    if aws := _S3_OPERATION.fullmatch(operation):
        method, what = aws[2], aws[3]
        if what.endswith(b"_GET"):
            return None  # what a copy reads, which has a line of its own
        if what == b"COPY":
            method = b"COPY"
        elif what not in (_S3_OBJECT_WORDS if name else _S3_LIST_WORDS):
            method = b"OTHER"
    else:
        method, _, path = (request or b"-").partition(b" ")
        query = path.partition(b" ")[0].partition(b"?")[2]
    whole = _count(size)
    is_upload = method in (b"PUT", b"POST")
    is_read = method == b"GET" and bool(name) and status == b"200"
    milliseconds = first if total == b"-" and first else total
    return _make_request(
        parse_log_date(date),
        UNKNOWN_SECONDS if milliseconds == b"-" else int(milliseconds) / 1e3,
        method,
        RequestPlace(owner, b"" if bucket == b"-" else bucket, name, query),
        int(status),
        whole if is_upload else 0,
        whole if is_read and not _count(sent) else 0 if is_upload and sent == size else _count(sent),
        b"" if source == b"-" else source,
        whole if size != b"-" else UNKNOWN_SIZE,
        whole=True,
    )


#: Of others the size is 0, whatever the object has.
_SIZED_CEPH_METHODS = {b"GET", b"HEAD", b"PUT"}


class _CephRecord(msgspec.Struct):
    """What is read of a record of Ceph's ops log."""

    time: str
    uri: str
    http_status: str | int
    bucket: str = ""
    operation: str = ""
    bytes_sent: int = 0
    bytes_received: int = 0
    object_size: int = UNKNOWN_SIZE
    total_time: float = UNKNOWN_SECONDS  # milliseconds; microseconds before Mimic
    user: str = ""
    remote_addr: str = ""


_decode_ceph = msgspec.json.Decoder(_CephRecord).decode
#: What a record has, and how it looks within one of a container's log.
_CEPH_KEY, _ENCLOSED_CEPH_KEY = b'"http_status"', b'\\"http_status\\"'
_BEAST_LINE = re.compile(
    rb"beast: 0x[0-9a-f]+: (\S+) - ([^[]*) \[([^]]+)\]"
    rb' \\?"([A-Z]+) (\S+) HTTP/[\d.]+\\?" (\d{3}) (\d+)(?:.* latency=(\d+\.\d+)s)?'
)
#: A line of the gateway's own log: behind its time are a thread and a level; or it is of a request.
_CEPH_NEWS = re.compile(rb"\b[0-9a-f]{12,16} +-?\d+ |\breq(?:=0x| \d)")


def read_ceph_line(line: bytes) -> LoggedRequest | None:
    """Read a record of Ceph's RGW ops log, a line of a list that may not end, or a line of its log."""
    if b"beast: 0x" in line:
        return _read_beast_line(line)
    is_enclosed = _ENCLOSED_CEPH_KEY in line
    if not is_enclosed and _CEPH_KEY not in line and _CEPH_NEWS.search(line):
        return None
    text = line[max(line.find(b"{"), 0) :].strip().lstrip(b"[,").rstrip(b",]").strip()
    if not text:
        return None
    if is_enclosed:
        text = next((each.message for each in find_json_messages(text, re.compile(_CEPH_KEY))), b"")
    record = _decode_ceph(text)
    if record.uri.startswith("/"):
        method, path, unit = record.operation.encode(), record.uri.encode(), 1e6
    else:
        method, _, rest = record.uri.encode().partition(b" ")
        path, unit = rest.rpartition(b" ")[0], 1e3
    if record.operation == "copy_obj":
        method = b"COPY"
    if _is_of_ceph(path):
        return None
    user = record.user.encode()
    place = split_path(path, 1, user)
    bucket = record.bucket.encode().rpartition(b"/")[2]  # that of a tenant has its name before it
    if bucket and place.container.rpartition(b":")[2] != bucket:  # a bucket in the name of the host
        place = RequestPlace(user, bucket, decode_path(path.partition(b"?")[0][1:], 1), place.query)
    status = int(record.http_status)
    has_size = method in _SIZED_CEPH_METHODS and status < 400 and status != _NOT_MODIFIED
    return _make_request(
        parse_log_date(record.time.encode()),
        record.total_time / unit,
        method,
        RequestPlace(user, *place[1:]),
        status,
        record.bytes_received,
        record.bytes_sent,
        record.remote_addr.encode(),
        record.object_size if has_size and place.name else UNKNOWN_SIZE,
    )


def _is_of_ceph(path: bytes) -> bool:
    """Whether a request is one of administrators, of another zone or of a health check."""
    return path.startswith(b"/admin/") or b"rgwx-" in path or _OWN_PATH.match(path) is not None


def _read_beast_line(line: bytes) -> LoggedRequest | None:
    """Read what a gateway says of each request. Its one number of bytes is of both bodies together."""
    found = _BEAST_LINE.search(line)
    if found is None:
        raise ValueError("expected an access line of Ceph's gateway")
    source, user, date, method, path, status, moved, seconds = found.groups()
    if _is_of_ceph(path):
        return None
    is_upload = method in (b"PUT", b"POST")
    user = b"" if user == b"-" else user
    return _make_request(
        parse_log_date(date),
        float(seconds) if seconds else UNKNOWN_SECONDS,
        method,
        split_path(path, 1, user),
        int(status),
        int(moved) if is_upload else 0,
        0 if is_upload else int(moved),
        source,
        whole=b"." not in date,
    )


_IBM_METHODS = {b"GET", b"PUT", b"HEAD", b"DELETE", b"COPY"}


def read_ibm_cos_line(line: bytes) -> LoggedRequest | None:
    """Read a line of IBM's traces (SNIA IOTTA, 2019): ``ms REST.GET.OBJECT id size [first last]``."""
    words = line.split()
    if not words:
        return None
    method = words[1].split(b".")[1] if len(words) >= 3 and words[1].count(b".") == 2 else b""
    if method not in _IBM_METHODS or not words[0].isdigit() or len(words) > 6:
        raise ValueError("expected a line of IBM's traces")
    size = int(words[3]) if len(words) > 3 else UNKNOWN_SIZE
    first, last = (int(word) for word in words[4:6]) if len(words) == 6 else (0, size - 1)
    is_part = method == b"GET" and len(words) == 6 and (first > 0 or last < size - 1)
    moved = max(last - first + 1, 0) if method == b"GET" and size >= 0 else 0
    return _make_request(
        int(words[0]) / 1e3,
        UNKNOWN_SECONDS,
        method,
        RequestPlace(b"", b"", words[2], b""),
        206 if is_part else 200,
        max(size, 0) if method == b"PUT" else 0,
        moved,
        b"",
        size,
    )


# -- Lines that follow a configured text -----------------------------------------------------------


class _TemplateSyntax(NamedTuple):
    """How a program's format text names fields, and what those are of a request."""

    field: re.Pattern[str]
    meanings: Mapping[str, str]  # of a field's name; one of _SHAPES
    encodings: int  # how often paths are encoded


_DATE_SHAPE = (
    r"\d\d/[A-Z][a-z]{2}/\d{4}[:/]\d\d[:/]\d\d[:/]\d\d(?:\.\d{1,6})?(?: [+-]\d{4})?"
    r"|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"
)
#: What fields that are read look like; others hold no blank.
_SHAPES = {
    "start": r"\d{1,11}(?:\.\d+)?",
    "end": r"\d{1,11}\.\d+",
    "start_date": _DATE_SHAPE,
    "end_date": _DATE_SHAPE,
    "seconds": r"\d{1,9}(?:\.\d+)?|-",
    "milliseconds": r"[+-]?\d{1,12}",
    "method": r"[A-Z]+",
    "path": r"[^\s\"]*",
    # What is no HTTP is <BADREQ> of HAProxy, and of nginx bytes, or nothing.
    "request": r"[A-Z]+ [^\s\"]*(?: HTTP/[\d.]+)?|<BADREQ>|\\x[^\"]*|",
    "status": r"\d{3}|-1|0",
    "received": r"\d+|-",
    "sent": r"[+]?\d+|-",
    "client": r"[^\s\"]{0,255}?",
    "account": r"\S*",
    "container": r"\S*",
    "object": r"\S*",
    "middleware": r"[^\s\"]*",
    "user": r"[^\s\"]*",
}
#: Those of others: within quotation marks, before a tab (LTSV), and without either.
_QUOTED_SHAPE, _TABBED_SHAPE, _BARE_SHAPE = r"(?:[^\"]|\\\")*", r"[^\t]*", r"[^\s\"]{0,255}?"
#: Fields of nginx that may be about several servers, one after another.
_LIST_FIELD = re.compile(r"upstream_|\w*_x_forwarded_for$")
_LIST_SHAPE = rf"{_BARE_SHAPE}(?:(?:,| :) {_BARE_SHAPE}){{0,4}}?"
#: Headers that HAProxy captures, with the blank before them; where there are none, there is no blank.
_CAPTURES, _CAPTURED_SHAPE = ("hr", "hs"), r"(?: \{[^{}\"]*\})?"
#: Longer lines are not searched.
_MAX_TEMPLATE_BYTES = 1 << 14

_SWIFT_SYNTAX = _TemplateSyntax(
    re.compile(r"\{(\w+)(?:\.\w+)?\}"),
    {
        "client_ip": "client",
        "method": "method",
        "path": "path",
        "account": "account",
        "container": "container",
        "object": "object",
        "status_int": "status",
        "bytes_recvd": "received",
        "bytes_sent": "sent",
        "request_time": "seconds",
        "source": "middleware",
        "access_user_id": "user",
        "start_time": "start",
        "end_time": "end",
    },
    _SWIFT_ENCODINGS,
)
_HAPROXY_SYNTAX = _TemplateSyntax(
    re.compile(r"%(?:\{[^}]*\})?(\[[^\]]*\]|[A-Za-z]+)"),
    {
        "ci": "client",
        "t": "start_date",
        "T": "start_date",
        "Tl": "start_date",
        "tr": "start_date",
        "trg": "start_date",
        "trl": "start_date",
        "Ts": "start",
        "Tt": "milliseconds",
        "Ta": "milliseconds",
        "ST": "status",
        "B": "sent",
        "U": "received",
        "HM": "method",
        "HU": "path",
        "HP": "path",
        "HPO": "path",
        "r": "request",
    },
    1,
)
_NGINX_SYNTAX = _TemplateSyntax(
    re.compile(r"\$\{?(\w+)\}?"),
    {
        "remote_addr": "client",
        "time_local": "end_date",
        "time_iso8601": "end_date",
        "msec": "end",
        "request_time": "seconds",
        "request": "request",
        "request_method": "method",
        "request_uri": "path",
        "status": "status",
        "body_bytes_sent": "sent",
        "bytes_sent": "sent",
        "request_length": "received",
    },
    1,
)
#: ``option httplog``.
HAPROXY_DEFAULT = (
    "%ci:%cp [%tr] %ft %b/%s %TR/%Tw/%Tc/%Tr/%Ta %ST %B %CC %CS %tsc %ac/%fc/%bc/%sc/%rc %sq/%bq"
    " %hr %hs %{+Q}r"
)
#: ``combined``.
NGINX_DEFAULT = (
    '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer"'
    ' "$http_user_agent"'
)


#: What configurations of HAProxy and nginx write with a backslash before it.
_ESCAPED = re.compile(r"\\([ \"\\t])")
#: A scheme and a host before a path, as HTTP/2 and proxies have it.
_AUTHORITY = re.compile(rb"^[a-z]+://[^/?]*")
#: Fields of Swift that together say as much as the path, also as hashes.
_PARTS_OF_PATH = ("account", "container", "object")
#: What is not known without some of these fields.
_DOUBTS = (
    (("seconds", "milliseconds"), "lines do not say how long a request took"),
    (("sent",), "lines do not say how many bytes were sent, so that sizes of what was read are not known"),
    (("received",), "lines do not say how many bytes were received, so that sizes of uploads are not known"),
)
#: Fields of bytes that are not those of bodies alone.
_WITH_HEADERS = {"B", "U", "bytes_sent", "request_length"}
_HASHED_NAME = "{object.anonymized}"
_NO_SOURCE = "lines have no {source}: requests that Swift's middleware makes are counted as those of users"


#: What HAProxy says of its servers among requests, and of connections that it does not log as requests.
_SERVER_NEWS = re.compile(
    rb"erver \S+/\S+ (?:is|was|failed|succeeded)\b|ackend \S+ has no server available|: Connect from \S+ to "
)


def make_template_reader(template: str, syntax: _TemplateSyntax) -> tuple[LineReader, tuple[str, ...]]:
    """Return a reader of lines that follow a template, and sentences on what these do not say.

    Raises UsageError where the template lacks what is needed.
    """
    expression, seen = _compile_template(template, syntax)
    _check_fields(seen)
    own_source = "middleware" in seen
    may_be_cut = syntax is _SWIFT_SYNTAX and not _CUT_OUT_WORD.search(template.encode())
    has_version = "HTTP" in template or "request" in seen

    def read(line: bytes) -> LoggedRequest | None:
        is_short = len(line) <= _MAX_TEMPLATE_BYTES
        found = expression.search(line) if is_short else None
        if found is None and is_short and MAY_END_RECORD.search(line, max(len(line) - 8, 0)):
            for record in find_json_messages(line, expression):
                return read(record.message)
        if b"/<STATS> " in line:
            return None  # HAProxy's own page
        if found is None:
            if _SERVER_NEWS.search(line) or b"/" not in line or (b"HTTP" not in line and has_version):
                return None
            raise ValueError("expected a line of the format")
        if may_be_cut and _CUT_OUT_WORD.search(found[0]):
            raise ValueError("expected a whole line")
        get = found.groupdict(b"-").get
        if own_source and get("middleware") not in (b"-", b""):
            return None
        return _read_template_fields(get, syntax)

    doubts = [*_list_doubts(seen, syntax)]
    if _HASHED_NAME in template:
        doubts.append("names of objects are hashed: nothing is known of the order of listings")
    return read, tuple(doubts)


def _compile_template(template: str, syntax: _TemplateSyntax) -> tuple[re.Pattern[bytes], dict[str, str]]:
    """Return what finds a line, with groups that are called as what they mean, and its fields by these."""
    pattern, at = "", 0
    seen: dict[str, str] = {}  # fields by what they mean
    template = _ESCAPED.sub(lambda found: "\t" if found[1] == "t" else found[1], template)
    template = template.replace("%Ts.%ms", "%Ts")  # one number
    for found in syntax.field.finditer(template):
        name, literal = found[1], template[at : found.start()]
        meaning = syntax.meanings.get(name, "")
        if found[0] == "{end_time.datetime}":
            meaning = "end_date"
        if name in _CAPTURES:
            pattern += re.escape(literal.removesuffix(" ")) + _CAPTURED_SHAPE
            at = found.end()
            continue
        marked = "+Q" in found[0]  # HAProxy puts it in quotation marks
        between = '"' if marked else literal[-1:] + template[found.end() : found.end() + 1]
        shape = _SHAPES.get(meaning) or _find_shape(name, between)
        if meaning == "path" and found[0] != "{path}" and syntax is _SWIFT_SYNTAX:
            meaning = ""  # hashed as a whole it does not tell an object from a container
        new = meaning and meaning not in seen
        group = f"(?P<{meaning}>{shape})" if new else f"(?:{shape})"
        # A line that is too long for syslog ends within the request.
        pattern += re.escape(literal) + (f'"{group}(?:"|$)' if marked else group)
        if new:
            seen[meaning] = name
        at = found.end()
    pattern += re.escape(template[at:])
    # Words of syslog and of containers may be before it.
    return re.compile(rb"(?:^|(?<=[\s\"]))" + pattern.encode() + rb"(?=\s|$)"), seen


def _find_shape(name: str, between: str) -> str:
    """Return what a field looks like that is not read; it stands ``between`` these two characters, if any."""
    if between.startswith('"'):
        return _QUOTED_SHAPE
    if between.endswith("\t"):
        return _TABBED_SHAPE
    return _LIST_SHAPE if _LIST_FIELD.match(name) else _BARE_SHAPE


def _check_fields(seen: Mapping[str, str]) -> None:
    """Raise UsageError where a template lacks what is needed; ``seen`` are its fields by their meaning."""
    lacking = []
    if not seen.keys() & {"start", "end", "start_date", "end_date"}:
        lacking.append("a time")
    parts_of_path = {"account", "container", "object"} <= seen.keys()
    if "request" not in seen and not ("method" in seen and ("path" in seen or parts_of_path)):
        lacking.append("the method and the path")
    if "status" not in seen:
        lacking.append("the status")
    if lacking:
        raise UsageError(f"--log-format has no field for {' and '.join(lacking)}")


def _list_doubts(seen: Mapping[str, str], syntax: _TemplateSyntax) -> Iterator[str]:
    """Yield what a template's lines do not say; ``seen`` are its fields by their meaning."""
    yield from (text for fields, text in _DOUBTS if not seen.keys() & set(fields))
    own = sorted(_WITH_HEADERS & set(seen.values()))
    if own and "source" not in syntax.meanings:  # Swift counts bodies alone
        yield f"{' and '.join(own)}: headers are counted too, so sizes are some hundred bytes too large"
    if "source" in syntax.meanings and "middleware" not in seen:
        yield _NO_SOURCE


def _join_place(get: Callable[[str, bytes], bytes]) -> RequestPlace:
    """Return what a request is about by fields of their own: hashes perhaps, - where there is none."""
    account, container, name = (
        b"" if (part := get(field, b"-")) == b"-" else part for field in _PARTS_OF_PATH
    )
    return RequestPlace(account, container, name, b"")


def _read_template_fields(
    get: Callable[[str, bytes], bytes], syntax: _TemplateSyntax
) -> LoggedRequest | None:
    status = int(get("status", b""))
    if not b"A" <= get("request", b"A")[:1] <= b"Z" or status < _LEAST_STATUS:
        return None  # something came that was no request, or there was no answer
    seconds = get("seconds", b"-")
    milliseconds = get("milliseconds", b"-")
    lasted = (
        float(seconds)
        if seconds != b"-"
        else int(milliseconds) / 1e3
        if milliseconds not in (b"-", b"-1")
        else UNKNOWN_SECONDS
    )
    since_end = 0.0 if math.isnan(lasted) else lasted
    whole = False
    if (text := get("start", b"-")) != b"-":
        began, whole = float(text), b"." not in text
    elif (text := get("end", b"-")) != b"-":
        began = float(text) - since_end
    elif (text := get("start_date", b"-")) != b"-":
        began, whole = parse_log_date(text), b"." not in text
    else:
        text = get("end_date", b"-")
        began, whole = parse_log_date(text) - since_end, b"." not in text
    request = get("request", b"").split(b" ")
    method = get("method", request[0])
    path = _AUTHORITY.sub(b"", get("path", request[1] if len(request) > 1 else b""), count=1)
    if (path and path[:1] != b"/") or _OWN_PATH.match(path):
        return None  # of a server as a whole: OPTIONS *, CONNECT
    user = get("user", b"-")
    place = split_path(path, syntax.encodings, _find_account(user)) if path else _join_place(get)
    # A template may have no field for either.
    received, sent = (
        _count(text.lstrip(b"+")) if (text := get(name, b"")) else UNKNOWN_SIZE
        for name in ("received", "sent")
    )
    return _make_request(
        began,
        lasted,
        method,
        place,
        status,
        received,
        sent,
        get("client", b""),
        whole=whole,
    )


# -- The table -------------------------------------------------------------------------------------


REQUEST_FORMATS = {
    each.name: each
    for each in (
        RequestFormat(
            "swift",
            "access lines of Swift's proxies",
            read_swift_line,
            find_rewriter,
            replay_doubts=(
                "a proxy logs when it began with a request, which came earlier if it was busy: the replay may"
                " have shorter queues than the users made",
            ),
        ),
        RequestFormat("rgw", "a log of Ceph RGW", read_ceph_line, find_ceph_rewriter),
        RequestFormat("s3", "server access lines of S3", read_s3_line),
        RequestFormat("haproxy", "lines of HAProxy", lambda _: None),
        RequestFormat("nginx", "access lines of nginx", lambda _: None),
        RequestFormat("ibm-cos", "traces of IBM COS", read_ibm_cos_line),
    )
}
_SYNTAXES = {"swift": _SWIFT_SYNTAX, "haproxy": _HAPROXY_SYNTAX, "nginx": _NGINX_SYNTAX}
_DEFAULT_TEMPLATES = {"haproxy": HAPROXY_DEFAULT, "nginx": NGINX_DEFAULT}


def find_request_format(name: str, template: str | None = None) -> RequestFormat:
    """Return the format of a name in :data:`REQUEST_FORMATS`, with the text of its configuration if any.

    Raises UsageError for a format that has none.
    """
    form = REQUEST_FORMATS[name]
    text = _DEFAULT_TEMPLATES.get(name) if template is None else template
    if text is None:
        return form
    if name not in _SYNTAXES:
        raise UsageError(f"--log-format is for --format {', '.join(_SYNTAXES)}, not for {name}")
    read, doubts = make_template_reader(text, _SYNTAXES[name])
    return replace(form, read=read, doubts=doubts)


_STORAGE_LINE = re.compile(rb"\b(account|container|object)-server: ")


def suggest_format(line: bytes, option: str = "--format {}") -> str:
    """Return which format would read a line, as a word of advice; empty where none would.

    ``option`` is how a user asks for one.
    """
    if _CUT_OUT_WORD.search(line):
        return "log_max_line_length has taken out the middle of lines: give logs of whole lines"
    found = _SWIFT_DATE.search(line)
    if found and _lacks_end(line[found.start() + 1 :].split(b" ")):
        return "the end of the line is missing: give logs of whole lines, which syslog has not cut"
    if _STORAGE_LINE.search(line):  # as nginx writes them: requests of the proxies, not of users
        return "storage servers wrote it: give the log of the proxies"
    for name in REQUEST_FORMATS:
        try:
            if find_request_format(name).read(line) is not None:
                return f"{option.format(name)} reads it"
        except (ValueError, OverflowError):
            continue
    if _is_undated_request(line):
        return "a proxy with a log_msg_template wrote it: give that as --log-format, or template of --replay"
    return ""
