"""Requests as waterfalls of text, and as a Chrome trace, which Perfetto and other viewers open."""

from __future__ import annotations

import msgspec

from ssbench.attribution.spans import Request, Span

#: Columns of a terminal, of names and of bars.
_NAMES, _BARS = 46, 22


def lines(request: Request) -> list[str]:
    """Return a waterfall: name, status, milliseconds and a bar for each span."""
    end = max((span.start + span.seconds for span in request.spans), default=0.0)
    what = f"{request.operation.upper()} of {request.size:,} bytes" if request.operation else "request"
    head = f"{what}, {request.trans_id}"
    rows = [f"  {_name(span):<{_NAMES}.{_NAMES}}{_ms(span):>9} {_bar(span, end)}" for span in request.spans]
    notes = []
    if not all(span.placed for span in request.spans):
        notes.append("  ~ when is not known: its line has no time to the millisecond, or of another clock")
    return [head, *rows, *notes]


def _name(span: Span) -> str:
    status = f" {span.status}" if span.status else ""
    return f"{'  ' * span.depth}{'' if span.placed else '~'}{span.name}{status}"


def _ms(span: Span) -> str:
    return "-" if span.kind == "error" else f"{span.seconds * 1e3:,.1f} ms"


def _bar(span: Span, end: float) -> str:
    if end <= 0:
        return ""
    first = min(int(span.start / end * _BARS), _BARS - 1)
    last = min(max(first + 1, round((span.start + span.seconds) / end * _BARS)), _BARS)
    mark = "!" if span.kind == "error" else "." if not span.placed else "="
    return f"{' ' * first}{mark * (last - first)}"


def chrome_trace(requests: list[Request]) -> str:
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
