"""Parse HTTP responses: a fast path for the usual head, h11 for all others. Does no input or output.

Nearly every head that Swift or a proxy in front of it sends is HTTP/1.1 with one Content-Length and a
connection that stays open. :func:`parse_head` finds in such a head what a benchmark needs with a few
searches in C (1.4 to 2.2 µs; h11 takes 57) and declines all others: chunked or close-delimited bodies,
``Connection: close``, HTTP/1.0, folded or repeated fields, lone line feeds. Those go through
:class:`CarefulReader`, which uses h11: slow and correct. :class:`KnownHeads` parses those of the same kind
as an earlier one with one match of a pattern (0.6 µs).
"""

from __future__ import annotations

import re
from collections.abc import Callable

import h11
from msgspec import Struct

from ssbench.store.contract import BAD_RESPONSE, CLOSED, SHORT_BODY, AttemptError
from ssbench.store.http.bodies import BodyComparison, PartComparison, ReceivedDigest, find_owner

#: Maximum length of a head in bytes, and of all interim responses together.
HEAD_LIMIT = 65536

#: Where a head ends for a reader that also takes lone line feeds, as h11 does.
_LENIENT_END = re.compile(rb"\n\r?\n")

_STATUSES = {b"HTTP/1.1 %d" % status: status for status in range(100, 1000)}

#: Versions of the protocol in which an answer is read, as h11 has them.
_VERSIONS = (b"1.0", b"1.1")

#: What matters of a usual head in lower case: its length and where its transaction id is; and what
#: makes a head unusual: an empty or folded line, a framing or an end of the connection of another kind.
_FIELD_PATTERN = re.compile(
    rb"\n(?:content-length: (\d{1,18})\r|(x-trans-id|x-openstack-request-id|x-amz-request-id):"
    rb"|(content-length|transfer-encoding|connection(?!: keep-alive\r)|[ \t\r\n]))"
)


class KeptBody:
    """The body of an answer that is kept; ``wrong`` where it has more than ``limit`` bytes."""

    md5 = None

    def __init__(self, limit: int) -> None:
        self.wrong: int | None = None
        self.body = bytearray()
        self._limit = limit

    def feed(self, data: bytes) -> None:
        """Receive the next bytes of the body."""
        if len(self.body) + len(data) > self._limit:
            self.wrong = self._limit
        else:
            self.body += data


#: What looks at the body of an answer as it comes.
BodyCheck = BodyComparison | PartComparison | ReceivedDigest | KeptBody

# Answers and outcomes are made for every request: as msgspec's records they take 0.1 µs each, as named
# tuples 0.3.


class HttpResponse(Struct, frozen=True, gc=False):
    """A whole answer. Times are by ``time.monotonic``."""

    status: int
    size: int  # bytes of body, of a HEAD those of the object
    sent_at: float
    first_byte_at: float
    last_byte_at: float
    trans_id: str | None
    keep_alive: bool
    detail: str = ""  # filled for statuses other than 2xx only
    retry_after: str | None = None  # filled for statuses other than 2xx only
    wrong_etag: str | None = None  # what is wrong with the ETag, where that is known
    owner: str | None = None  # whose the object is, for a HEAD only
    head: bytes = b""  # that of a success, without its last empty line
    unsent: int = 0  # bytes of the request's body that were not sent when the answer came
    unchecked: bool = False  # it has no ETag that is an MD5, by which a body would have been checked
    unsized: bool = False  # it is that of a HEAD, and does not say how many bytes the object has
    sending: float = 0.0  # seconds until the request was sent whole; 0: it was at once


class ResponseHead(Struct, frozen=True, gc=False):
    """A head of the usual kind."""

    status: int
    length: int  # bytes of the body
    start: int  # where the body begins
    trans_id: str | None


def find_head_end(data: bytes) -> int:
    """Return where the empty line that ends a head begins; -1 when more bytes are needed.

    Returns -2 when h11 has to parse the head. Raises AttemptError when it cannot become a response.
    """
    end = data.find(b"\r\n\r\n", 0, HEAD_LIMIT)
    if end >= 0:
        return end
    if data[:5] != b"HTTP/"[: len(data)]:
        raise AttemptError(BAD_RESPONSE, f"not HTTP: {data[:40]!r}")
    if _LENIENT_END.search(data, 0, HEAD_LIMIT):
        return -2
    if len(data) >= HEAD_LIMIT:
        raise AttemptError(BAD_RESPONSE, f"no end of the head within {HEAD_LIMIT} bytes")
    return -1


def parse_head(head: bytes, bodiless: bool) -> ResponseHead | None:
    """Parse a head, given without its empty line; return None if it is not of the usual kind.

    ``bodiless``: the request was a HEAD, whose response has no body whatever its length says.
    Fields that do not matter are not checked.
    """
    status = _STATUSES.get(head[:12])
    if status is None or head[12] not in b" \r":
        return None
    length = -1
    trans_id = None
    lower = head.lower()
    # One pass: 1.6 µs for all of this function, where a search for each field made it 3.7, of 17 in all.
    for digits, identity, unusual in _FIELD_PATTERN.findall(lower):
        if unusual:
            return None
        if identity:
            trans_id = trans_id or _value_at(head, lower.find(b"\n%b:" % identity) + len(identity) + 2)
        elif length >= 0:
            return None
        else:
            length = int(digits)
    if bodiless or status == 204 or status == 304 or status < 200:  # noqa: PLR1714 (a tuple costs more)
        length = 0
    elif length < 0:
        return None
    return ResponseHead(status, length, len(head) + 2, trans_id)


def _value_at(head: bytes, start: int) -> str:
    return head[start : head.find(b"\n", start)].decode("latin-1").strip()


#: So many kinds of heads are known at most: each operation has its own, and so may each server.
_MOST_KNOWN = 8

#: Fields that have the id of a transaction.
_IDENTITIES = (b"x-trans-id", b"x-openstack-request-id", b"x-amz-request-id")
_MATCH_IDENTITY = re.compile(rb" [!-~]+").fullmatch

_MatchHead = Callable[[bytearray, int, int], re.Match[bytes] | None]


class KnownHeads:
    """Parses heads of successes as :func:`parse_head` does, and those of known kinds in less time.

    The answers of a server have the same fields in the same order. Of the first one a pattern is made, which
    leaves open the length, the transaction id, and the values of fields that do not matter.
    """

    def __init__(self) -> None:
        #: What matches a kind, its status, and which of two groups is the length; the other is the id.
        self._known: list[tuple[_MatchHead, int, int]] = []

    def parse(self, data: bytearray, end: int) -> ResponseHead | None:
        """Parse the head with which the first ``end`` bytes begin; None if it is not of the usual kind."""
        for match, status, which in self._known:
            found = match(data, 0, end)
            if found is not None:
                values = found.groups()
                trans_id = values[1 - which]
                return ResponseHead(
                    status, int(values[which] or 0), found.end(), trans_id.decode() if trans_id else None
                )
        place = data.find(b"\r\n\r\n", 0, end)
        head = bytes(data[: place + 2])
        parsed = parse_head(head, False) if place >= 0 else None
        if parsed is not None and 200 <= parsed.status < 300 and len(self._known) < _MOST_KNOWN:
            pattern = _make_head_pattern(head, parsed.status)
            if pattern is not None:
                known = re.compile(pattern)
                self._known.append((known.match, parsed.status, known.groupindex["length"] - 1))
        return parsed


def _make_head_pattern(head: bytes, status: int) -> bytes | None:
    """Return a pattern of heads, with their ends, that have the fields of a usual one; None where it is odd.

    Such heads are usual too. The groups are ``length``, empty where no body follows, and ``trans_id``.
    """
    pattern, *lines = head[:-2].split(b"\r\n")
    pattern = re.escape(pattern[:12]) + rb"(?: .*)?\r\n"
    for line in lines:
        name, colon, value = line.partition(b":")
        kind = name.lower()
        wanted = rb".*"
        if kind == b"content-length":
            wanted = rb" \d{1,18}" if status == 204 else rb" (?P<length>\d{1,18})"
        elif kind == b"connection":
            wanted = re.escape(value)
        elif kind in _IDENTITIES:
            if not _MATCH_IDENTITY(value):
                return None
            if b"<trans_id>" not in pattern:
                wanted = rb" (?P<trans_id>[!-~]+)"
        if not colon or b"\n" in line:
            return None
        pattern += re.escape(name + colon) + wanted + rb"\r\n"
    for group in (rb"(?P<length>", rb"(?P<trans_id>"):
        pattern += b"" if group in pattern else group + b")"
    return pattern + rb"\r\n"


def find_field(head: bytes, name: bytes) -> str | None:
    """Return the value of the first header field called ``name`` (lower case), None if there is none."""
    found = re.search(rb"(?i)\n" + re.escape(name) + rb"[ \t]*:([^\r\n]*)", head)
    return found[1].decode("latin-1").strip() if found else None


def parse_fields(head: bytes) -> dict[str, str]:
    """Return the fields of a head by their names in lower case; of repeated ones the last."""
    lines = (line.partition(":") for line in head.decode("latin-1").splitlines()[1:])
    return {name.strip().lower(): value.strip() for name, colon, value in lines if colon}


def parse_content_length(content_length: str | None) -> int | None:
    """Return the number of bytes that a Content-Length announces; None where there is none."""
    return int(content_length) if content_length is not None and content_length.isdecimal() else None


def parse_status_line(head: bytes) -> str:
    """Return the status and reason as the server sent them, for messages."""
    line = head.split(b"\n", 1)[0].decode("latin-1").strip()
    return line.partition(" ")[2][:200]


class CarefulReader:
    """Reads one whole answer with h11, however it is cut into packets.

    After ``feed`` has said True, ``status``, ``size`` (bytes of body), ``announced`` (what Content-Length
    says, or None), ``trans_id``, ``keep_alive`` (the connection may carry another request), ``reason``,
    ``owner`` and ``retry_after`` are set.
    """

    def __init__(self, method: str, check: BodyCheck | None = None) -> None:
        self._check = check
        self._reader = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD_LIMIT)
        self._reader.send(h11.Request(method=method, target="/", headers=[("Host", "swift")]))
        self._reader.send(h11.EndOfMessage())
        self._fed = 0
        self.status = 0
        self.size = 0
        self.announced: int | None = None
        self.trans_id: str | None = None
        self.keep_alive = False
        self.reason = ""
        self.retry_after: str | None = None
        self.owner: str | None = None
        self.head = b""

    def feed(self, data: bytes) -> bool:
        """Take what came, ``b""`` for the end of the connection; True when the answer is whole.

        Raises AttemptError: bad response, short body, or closed if the connection ended within the head.
        """
        if not data and not self.status:
            raise AttemptError(CLOSED, "the connection ended within the head of the answer")
        try:
            self._reader.receive_data(data)
            whole = self._drain(ended=not data)
        except h11.RemoteProtocolError as error:
            # h11 finds an end that came too early only when the end is passed to it.
            raise AttemptError(SHORT_BODY if self.status and not data else BAD_RESPONSE, str(error)) from None
        self._fed += len(data)
        if not self.status and self._fed > HEAD_LIMIT:
            raise AttemptError(BAD_RESPONSE, f"more than {HEAD_LIMIT} bytes of interim answers")
        return whole

    def _drain(self, ended: bool) -> bool:
        while (event := self._reader.next_event()) is not h11.NEED_DATA:
            if isinstance(event, h11.Response | h11.InformationalResponse):
                if event.http_version not in _VERSIONS:  # h11 takes any two digits
                    version = event.http_version.decode("latin-1")
                    raise AttemptError(BAD_RESPONSE, f"HTTP/{version}, not HTTP/1.0 or HTTP/1.1")
                if isinstance(event, h11.Response):
                    self._note(event)
            elif isinstance(event, h11.Data):
                self.size += len(event.data)
                if self._check is not None and 200 <= self.status < 300:
                    self._check.feed(bytes(event.data))
            elif isinstance(event, h11.EndOfMessage):
                # h11 takes a body without a length for one that is over, of a connection that goes on.
                self.keep_alive = (
                    self._reader.their_state is h11.DONE and self._reader.our_state is h11.DONE and not ended
                )
                if self._reader.trailing_data[0]:
                    raise AttemptError(BAD_RESPONSE, "bytes after the end of the body")
                return True
            elif event is h11.PAUSED or isinstance(event, h11.ConnectionClosed):
                raise AttemptError(BAD_RESPONSE, "the server changed the protocol")
        return False

    def _note(self, response: h11.Response) -> None:
        self.status = response.status_code
        self.reason = f"{response.status_code} {response.reason.decode('latin-1')}".strip()[:200]
        fields = {name: value.decode("latin-1") for name, value in response.headers}
        self.trans_id = next((fields[name] for name in _IDENTITIES if name in fields), None)
        self.retry_after = fields.get(b"retry-after")
        self.announced = parse_content_length(fields.get(b"content-length"))
        self.head = b"\n" + b"".join(b"%b: %b\n" % field for field in response.headers)
        self.owner = find_owner(self.head)
