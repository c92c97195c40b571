"""Requests as OpenTelemetry traces: OTLP in JSON, which Jaeger and collectors take."""

from __future__ import annotations

import msgspec

from ssbench.attribution.spans import Request, Span

#: What the server of each kind of span is called.
_SERVICES = {
    "client": "ssbench",
    "proxy": "proxy-server",
    "sub-request": "proxy-server",
    "object": "object-server",
    "container": "container-server",
    "account": "account-server",
    "update": "container-server",
    "error": "proxy-server",
}
#: Of OTLP: the kinds of client and server, and the status of an error.
_CLIENT, _SERVER, _ERROR = 3, 2, 2
#: Server errors, and requests that the client gave up.
_FAILED, _GAVE_UP = 500, 499


def traces(requests: list[Request]) -> str:
    """Return a document of OTLP: a trace for each request, a resource for each kind of server in it."""
    by_service: dict[str, list[dict[str, object]]] = {}
    for request in requests:
        parents: dict[int, str] = {}
        for number, span in enumerate(request.spans, 1):
            identity = f"{number:016x}"
            parent = next((parents[depth] for depth in range(span.depth - 1, -1, -1) if depth in parents), "")
            if span.kind != "error":
                parents[span.depth] = identity
            made = _span(request, span, identity, parent)
            by_service.setdefault(_SERVICES[span.kind], []).append(made)
    return msgspec.json.encode(
        {
            "resourceSpans": [
                {
                    "resource": {"attributes": [_attribute("service.name", service)]},
                    "scopeSpans": [{"scope": {"name": "ssbench"}, "spans": spans}],
                }
                for service, spans in by_service.items()
            ]
        }
    ).decode()


def _span(request: Request, span: Span, identity: str, parent: str) -> dict[str, object]:
    trace, began = _identity(request.trans_id)
    start = began + round(span.start * 1e9)
    attributes = [
        _attribute("swift.trans_id", request.trans_id),
        _attribute("ssbench.placed", span.placed),
        *([_attribute("http.response.status_code", span.status)] if span.status else ()),
    ]
    failed = span.kind == "error" or span.status >= _FAILED or span.status == _GAVE_UP
    return {
        "traceId": trace,
        "spanId": identity,
        "parentSpanId": parent,
        "name": f"{request.operation} client".strip() if span.kind == "client" else span.name,
        "kind": _CLIENT if span.kind == "client" else _SERVER,
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(start + round(span.seconds * 1e9)),
        "attributes": attributes,
        "status": {"code": _ERROR} if failed else {},
    }


def _identity(trans_id: str) -> tuple[str, int]:
    """Return the 32 digits of a trace, and its beginning in ns since 1970 by the proxy, to the second."""
    random, hyphen, seconds = trans_id[2:].partition("-")
    if not hyphen:  # until Swift 1.8 an id had no time
        return random, 0
    return f"0{random}{seconds}", int(seconds, 16) * 10**9


def _attribute(key: str, value: str | bool | int) -> dict[str, object]:
    if isinstance(value, bool):
        return {"key": key, "value": {"boolValue": value}}
    if isinstance(value, int):
        return {"key": key, "value": {"intValue": str(value)}}
    return {"key": key, "value": {"stringValue": value}}
