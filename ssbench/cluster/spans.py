"""One request as spans: the client's time, and what each server's log says that it did of it.

Moments of different hosts cannot be compared. A span is put where its line's time says if that lies within
the proxy's; else, and where lines have no time or whole seconds only, at the beginning of that, and it is not
``placed``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from ssbench.base.measures import Seconds
from ssbench.cluster.envelopes import find_json_messages
from ssbench.cluster.joined import JoinedRun
from ssbench.cluster.lines import (
    TRANS_ID,
    BackendLine,
    ErrorLine,
    ProxyLine,
    ProxyParser,
    SlowLine,
    parse_swift_line,
)
from ssbench.scenario.operation_table import OPERATIONS

#: Clocks of hosts that are kept in step differ by less than this, in seconds.
_MAX_SKEW_SECONDS = 0.02
#: The time before a message, to the millisecond at least.
_MOMENT_PATTERN = re.compile(rb"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.,]\d{3,9})(Z|[+-]\d\d:?\d\d)?")
#: Beginning and end of a proxy's request, in seconds since 1970.
_BEGIN_AND_END = re.compile(rb" (\d{9,11}\.\d{6,9}) (\d{9,11}\.\d{6,9})(?: |$)")
_SOURCE_PATTERN = re.compile(rb" \d{1,7}\.\d{4,9} (\S+) ")
#: Who contains whom: the client a proxy's request, that its sub-requests and storage servers, an object
#: server the updates of container servers.
_KIND_DEPTHS = {
    "client": 0,
    "proxy": 1,
    "sub-request": 2,
    "object": 2,
    "container": 2,
    "account": 2,
    "update": 3,
    "part": 3,
    "error": 2,
}


@dataclass(frozen=True, slots=True)
class RequestSpan:
    """A part of a request: ``start`` is seconds after the client's beginning (or the proxy's without one).

    ``kind`` is ``client``, ``proxy``, ``sub-request``, ``object``, ``container``, ``account``, ``update``,
    ``part`` of what an object server did, or ``error``, which has no length. ``depth`` is how deep it lies
    within others.
    """

    kind: str
    name: str
    start: Seconds
    seconds: Seconds
    status: int
    depth: int
    placed: bool = True


@dataclass(frozen=True, slots=True)
class TracedRequest:
    """A request and its spans, the client's first, the others in the order of their beginning."""

    trans_id: str
    operation: str
    size: int
    spans: tuple[RequestSpan, ...]


@dataclass(frozen=True, slots=True)
class _LineSpan:
    """A line's span; ``ended`` is by the clock of its host, None where that is not known well enough."""

    span: RequestSpan
    ended: float | None


def trace_requests(joined: JoinedRun, proxy: ProxyParser | None = None) -> list[TracedRequest]:
    """Return the requests whose lines were kept, those that took longest first."""
    lines: dict[str, list[tuple[str, bool, bytes]]] = {}
    for kept in joined.kept:
        match = TRANS_ID.search(kept[2])
        if match:
            lines.setdefault(match[0].decode(), []).append(kept)
    places = {trans_id: place for place, trans_id in joined.trans_ids.items()}
    found = [_trace_request(joined, each, places.get(each), own, proxy) for each, own in lines.items()]
    return sorted(found, key=lambda request: -request.spans[0].seconds)


def _trace_request(
    joined: JoinedRun,
    trans_id: str,
    place: int | None,
    lines: Sequence[tuple[str, bool, bytes]],
    proxy: ProxyParser | None,
) -> TracedRequest:
    # The same line may be in two files.
    found = list(dict.fromkeys(each for line in lines for each in _spans_of_line(*line, proxy)))
    latency = float(joined.operations.latency[place]) if place is not None else None
    code = int(joined.operations.code[place]) if place is not None else None
    known = OPERATIONS.get(code) if code is not None else None
    return TracedRequest(
        trans_id,
        known.name if known else "",
        int(joined.operations.size[place]) if place is not None else -1,
        tuple(_lay_out_spans(found, latency)),
    )


def _lay_out_spans(found: list[_LineSpan], latency: float | None) -> Iterator[RequestSpan]:
    """Put spans where they belong: what the client waited beyond the proxy's time before that, as a rule."""
    own = max(
        (each for each in found if each.span.kind == "proxy"), key=lambda e: e.span.seconds, default=None
    )
    begins = 0.0
    if latency is not None and not math.isnan(latency):
        begins = max(0.0, latency - own.span.seconds) if own else 0.0
        yield RequestSpan("client", "client", 0.0, latency, 0, 0)
    seconds = own.span.seconds if own else max((each.span.seconds for each in found), default=0.0)
    if own:
        yield replace(own.span, start=begins)
    origin = own.ended - seconds if own and own.ended is not None else None
    rest = [_put_span(each, begins, seconds, origin) for each in found if each is not own]
    yield from sorted(rest, key=lambda span: (span.start, span.depth))


def _put_span(each: _LineSpan, begins: float, seconds: float, origin: float | None) -> RequestSpan:
    if each.ended is not None and origin is not None:
        start = each.ended - each.span.seconds - origin
        # A replica, or its update, may end after the proxy has answered.
        if -_MAX_SKEW_SECONDS <= start <= seconds + _MAX_SKEW_SECONDS:
            return replace(each.span, start=begins + max(0.0, start))
    return replace(each.span, start=begins, placed=False)


def _spans_of_line(node: str, named: bool, line: bytes, proxy: ProxyParser | None) -> list[_LineSpan]:
    record = parse_swift_line(line, proxy)
    messages = (
        [each.message for each in find_json_messages(line, TRANS_ID)] if line.rstrip()[-1:] == b"}" else []
    )
    text = b" ".join([*messages, line])
    host = node if named or not getattr(record, "host", b"") else record.host.decode("utf-8", "replace")  # type: ignore[union-attr]
    if isinstance(record, ProxyLine):
        return [_span_of_proxy(record, text, host)]
    if isinstance(record, BackendLine):
        return [_span_of_backend(record, text, host)]
    if isinstance(record, SlowLine):
        return _spans_of_parts(record, host)
    if isinstance(record, ErrorLine):
        who = " ".join(
            filter(
                None, (record.kind, record.server.decode(), record.address.decode(), record.device.decode())
            )
        )
        name = f"{who} ({record.detail})" if record.detail else who
        return [_LineSpan(_make_line_span("error", name, 0.0, 0), _parse_moment(text))]
    return []


def _spans_of_parts(record: SlowLine, host: str) -> list[_LineSpan]:
    """Return a span for each part of a request that its object server calls slow, one after the other."""
    found, ended = [], record.began
    for name, seconds in record.parts:
        ended += seconds
        where = f"{name} {record.device.decode('utf-8', 'replace')} on {host}"
        found.append(_LineSpan(_make_line_span("part", where, seconds, 0), ended))
    return found


def _span_of_proxy(record: ProxyLine, text: bytes, host: str) -> _LineSpan:
    method = record.method.decode() or "request"
    both = _BEGIN_AND_END.search(text)
    ended = float(both[2]) if both else _parse_moment(text)
    if record.own:
        return _LineSpan(
            _make_line_span("proxy", f"proxy {host} {method}", record.seconds, record.status), ended
        )
    source = _SOURCE_PATTERN.search(text)
    name = f"{source[1].decode('ascii', 'replace')} {method}" if source else f"sub-request {method}"
    return _LineSpan(_make_line_span("sub-request", name, record.seconds, record.status), ended)


def _span_of_backend(record: BackendLine, text: bytes, host: str) -> _LineSpan:
    update = record.asker in (b"object-server", b"object-updater")
    kind = "update" if update else record.server.decode()
    what = "container update" if kind == "update" else f"{kind} server"
    name = f"{what} {record.device.decode('utf-8', 'replace')} on {host} {record.method.decode()}"
    return _LineSpan(_make_line_span(kind, name, record.seconds, record.status), _parse_moment(text))


def _make_line_span(kind: str, name: str, seconds: float, status: int) -> RequestSpan:
    return RequestSpan(kind, name, 0.0, seconds, status, _KIND_DEPTHS[kind])


def _parse_moment(text: bytes) -> float | None:
    """Return the moment in front of a line, if it is known to the millisecond."""
    match = _MOMENT_PATTERN.search(text)
    if match is None:
        return None
    stamp = match[1].decode().replace(",", ".")
    try:
        moment = datetime.fromisoformat(stamp[:26] + (match[2] or b"").decode())
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
