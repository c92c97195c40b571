"""Lines of Swift's logs as records: access lines of proxies and storage servers, and errors.

Pure functions of bytes. A prefix may precede the message, words of the form ``key=value`` may follow it, and
a record of JSON may hold it (an envelope); a line is recognised by the shape of its
message. No field that can hold a token is kept.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable
from typing import NamedTuple

from ssbench.base.errors import UsageError
from ssbench.logs.envelopes import MAY_END_RECORD, TRANS_ID, find_csv_message, find_json_messages
from ssbench.logs.prefixes import HOST_LABEL, host_of_prefix, split_fetched

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
    if MAY_END_RECORD.search(line, max(len(line) - 8, 0)):
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
