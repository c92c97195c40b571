"""Requests as waterfalls of text, as a Chrome trace for Perfetto and others, and by OTLP for Jaeger."""

from __future__ import annotations

import msgspec

from ssbench.cluster.spans import RequestSpan, TracedRequest
from ssbench.document.units import DASH, format_latency

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
        f"  {_format_span_name(span):<{_NAME_WIDTH}.{_NAME_WIDTH}}{_format_milliseconds(span):>9} {_draw_bar(span, end)}"
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
