"""One request as spans: the client's time, and what each server's log says that it did of it.

Moments of different hosts cannot be compared. A span is put where its line's time says if that lies within
the proxy's; else, and where lines have no time or whole seconds only, at the beginning of that, and it is not
``placed``.

Requests are shown as waterfalls of text, as a Chrome trace for Perfetto and others, and by OTLP for Jaeger.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import msgspec

from ssbench.base.record import Seconds
from ssbench.cluster.joined_run import JoinedRun
from ssbench.document.units import DASH, format_latency
from ssbench.logs.envelopes import TRANS_ID, find_json_messages
from ssbench.logs.swift_lines import (
    BackendLine,
    ErrorLine,
    ProxyLine,
    ProxyParser,
    SlowLine,
    parse_swift_line,
)

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
    """A part of a request."""

    #: ``client``, ``proxy``, ``sub-request``, ``object``, ``container``, ``account``, ``update``, ``part`` of
    #: what an object server did, or ``error``, which has no length.
    kind: str
    name: str
    start: Seconds  # seconds after the client's beginning, or the proxy's without one
    seconds: Seconds
    status: int
    depth: int  # how deep it lies within others
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
    known = joined.operation_table.get(code) if code is not None else None
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


# -- How requests are shown ------------------------------------------------------------------------


#: Columns of a terminal, of names and of bars.
_NAME_WIDTH, _BAR_WIDTH = 46, 22

#: What the server of each kind of span is called.
_SERVICES = {
    "client": "ssbench",
    "proxy": "proxy-server",
    "sub-request": "proxy-server",
    "object": "object-server",
    "container": "container-server",
    "account": "account-server",
    "update": "container-server",
    "part": "object-server",
    "error": "proxy-server",
}
#: Of OTLP: the kinds of client and server, and the status of an error.
_OTLP_CLIENT, _OTLP_SERVER, _OTLP_ERROR = 3, 2, 2
#: Server errors, and requests that the client gave up.
_FAILED_STATUS, _GAVE_UP_STATUS = 500, 499


def format_waterfall(request: TracedRequest) -> list[str]:
    """Return a waterfall: name, status, milliseconds and a bar for each span."""
    end = max((span.start + span.seconds for span in request.spans), default=0.0)
    what = f"{request.operation.upper()} of {request.size:,} bytes" if request.operation else "request"
    head = f"{what}, {request.trans_id}"
    rows = [
        f"  {_format_span_name(span):<{_NAME_WIDTH}.{_NAME_WIDTH}}{_format_milliseconds(span):>9}"
        f" {_draw_bar(span, end)}"
        for span in request.spans
    ]
    notes = []
    if not all(span.placed for span in request.spans):
        notes.append("  ~ when is not known: its line has no time to the millisecond, or of another clock")
    return [head, *rows, *notes]


def _format_span_name(span: RequestSpan) -> str:
    status = f" {span.status}" if span.status else ""
    return f"{'  ' * span.depth}{'' if span.placed else '~'}{span.name}{status}"


def _format_milliseconds(span: RequestSpan) -> str:
    return DASH if span.kind == "error" else format_latency(span.seconds)


def _draw_bar(span: RequestSpan, end: float) -> str:
    if end <= 0:
        return ""
    first = min(int(span.start / end * _BAR_WIDTH), _BAR_WIDTH - 1)
    last = min(max(first + 1, round((span.start + span.seconds) / end * _BAR_WIDTH)), _BAR_WIDTH)
    mark = "!" if span.kind == "error" else "." if not span.placed else "="
    return f"{' ' * first}{mark * (last - first)}"


def make_chrome_trace(requests: list[TracedRequest]) -> str:
    """Return a document of the Trace Event Format: a process for each request, a thread for each span.

    Times are microseconds. Spans that overlap on one thread would hide each other, so each has its own.
    """
    events: list[dict[str, object]] = []
    for number, request in enumerate(requests, 1):
        name = f"{request.operation} {request.trans_id}".strip()
        events.append({"ph": "M", "pid": number, "name": "process_name", "args": {"name": name}})
        for thread, span in enumerate(request.spans, 1):
            events.append(
                {"ph": "M", "pid": number, "tid": thread, "name": "thread_name", "args": {"name": span.name}}
            )
            event: dict[str, object] = {
                "ph": "i" if span.kind == "error" else "X",
                "pid": number,
                "tid": thread,
                "name": span.name,
                "cat": span.kind,
                "ts": span.start * 1e6,
                "args": {"status": span.status, "placed": span.placed, "transaction": request.trans_id},
            }
            events.append(event | ({"s": "t"} if span.kind == "error" else {"dur": span.seconds * 1e6}))
    return msgspec.json.encode({"displayTimeUnit": "ms", "traceEvents": events}).decode()


def make_otlp_traces(requests: list[TracedRequest]) -> str:
    """Return a document of OTLP: a trace for each request, a resource for each kind of server in it."""
    by_service: dict[str, list[dict[str, object]]] = {}
    for request in requests:
        parents: dict[int, str] = {}
        for number, span in enumerate(request.spans, 1):
            identity = f"{number:016x}"
            parent = next((parents[depth] for depth in range(span.depth - 1, -1, -1) if depth in parents), "")
            if span.kind != "error":
                parents[span.depth] = identity
            made = _make_otlp_span(request, span, identity, parent)
            by_service.setdefault(_SERVICES[span.kind], []).append(made)
    return msgspec.json.encode(
        {
            "resourceSpans": [
                {
                    "resource": {"attributes": [_make_otlp_attribute("service.name", service)]},
                    "scopeSpans": [{"scope": {"name": "ssbench"}, "spans": spans}],
                }
                for service, spans in by_service.items()
            ]
        }
    ).decode()


def _make_otlp_span(
    request: TracedRequest, span: RequestSpan, identity: str, parent: str
) -> dict[str, object]:
    trace, began = _trace_identity(request.trans_id)
    start = began + round(span.start * 1e9)
    attributes = [
        _make_otlp_attribute("swift.trans_id", request.trans_id),
        _make_otlp_attribute("ssbench.placed", span.placed),
        *([_make_otlp_attribute("http.response.status_code", span.status)] if span.status else ()),
    ]
    failed = span.kind == "error" or span.status >= _FAILED_STATUS or span.status == _GAVE_UP_STATUS
    return {
        "traceId": trace,
        "spanId": identity,
        "parentSpanId": parent,
        "name": f"{request.operation} client".strip() if span.kind == "client" else span.name,
        "kind": _OTLP_CLIENT if span.kind == "client" else _OTLP_SERVER,
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(start + round(span.seconds * 1e9)),
        "attributes": attributes,
        "status": {"code": _OTLP_ERROR} if failed else {},
    }


def _trace_identity(trans_id: str) -> tuple[str, int]:
    """Return the 32 digits of a trace, and its beginning in ns since 1970 by the proxy, to the second."""
    random, hyphen, seconds = trans_id[2:].partition("-")
    if not hyphen:  # until Swift 1.8 an id had no time
        return random, 0
    return f"0{random}{seconds}", int(seconds, 16) * 10**9


def _make_otlp_attribute(key: str, value: str | bool | int) -> dict[str, object]:
    if isinstance(value, bool):
        return {"key": key, "value": {"boolValue": value}}
    if isinstance(value, int):
        return {"key": key, "value": {"intValue": str(value)}}
    return {"key": key, "value": {"stringValue": value}}
