"""Which node was slow, by Swift's logs, as a section of the report in HTML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ssbench.attribution.pictures import pictures
from ssbench.attribution.ranks import Difference
from ssbench.attribution.records import Attribution
from ssbench.attribution.sentences import listed
from ssbench.attribution.tables import PartRow, Row, SlowOperation
from ssbench.attribution.texts import (
    LONGER,
    SLOWEST,
    answer,
    coverage_facts,
    coverage_notes,
    is_clear,
    outcome,
)
from ssbench.document import Tone, html
from ssbench.figures.units import milliseconds
from ssbench.reports import html_tables
from ssbench.reports.html_page import Part, escape

_HEADLINES = (
    ("slow", "Slow"),
    ("one of", "One of these is slow"),
    ("unfelt", "Slow, not waited for"),
    ("late", "Late replicas"),
    ("507", "Answered 507"),
    ("missing", "A server without a log is slow"),
)
_TIMES = ("own p50 ms", "own p99 ms", "client p50 ms", "client p99 ms")
_LEGEND = f"{LONGER[:1].upper()}{LONGER[1:]}."


def part(attribution: Attribution) -> Part:
    """Return the section: the answer in words first, then coverage and tables."""
    tone, headline = _headline(attribution)
    items = "".join(f"<li>{escape(sentence)}" for sentence in answer(attribution))
    verdict = f"<div class='verdict {tone.value}'><strong>{escape(headline)}</strong><ul>{items}</ul></div>"
    shown = str(html.fragment(pictures(attribution)))
    return Part("Which node was slow", body=verdict + shown + "".join(_tables(attribution)))


def _headline(attribution: Attribution) -> tuple[Tone, str]:
    named = {
        words: [
            name for each in attribution.findings if each.kind == kind for name in (each.name, *each.same)
        ]
        for kind, words in _HEADLINES
    }
    texts = [f"{words}: {listed(names)}" for words, names in named.items() if names]
    if attribution.overload:
        return Tone.DOUBTFUL, "; ".join(["The load generator was overloaded", *texts])
    if texts:
        return Tone.BAD, "; ".join(texts)
    if not attribution.coverage.compared:
        return Tone.DOUBTFUL, "Inconclusive: these logs do not tell"
    if is_clear(attribution):
        words = outcome(attribution)
        return Tone.GOOD if words.startswith("No outlier found:") else Tone.DOUBTFUL, words.partition(":")[0]
    return Tone.DOUBTFUL, "Errors in the logs"


def _tables(attribution: Attribution) -> Iterator[str]:
    slow = {each.name for each in attribution.findings if each.kind in ("slow", "late", "507")}
    slow |= {name for each in attribution.findings if each.kind == "slow" for name in each.members}
    facts = [f"{what}: {value}" for what, value in coverage_facts(attribution.coverage)]
    yield _titled("Coverage", html_tables.warnings([*facts, *coverage_notes(attribution.coverage)]))
    yield _titled("Where the time goes (ms)", _parts(attribution.parts))
    for title, rows in (
        ("Proxies", attribution.proxies),
        ("Nodes", attribution.nodes),
        ("Devices", attribution.devices),
        ("Partitions with most requests", attribution.partitions),
    ):
        yield _titled(title, _rows(rows, slow))
    if attribution.devices:
        yield f"<p class=note>{escape(_LEGEND)}</p>"
    if attribution.slowest:
        table = _slowest(attribution.slowest) + f"<p class=note>{escape(SLOWEST)}</p>"
        yield _titled("Where the time of the slowest operations went (ms)", table)
    for title, errors in (
        ("Errors in Swift's logs", attribution.errors),
        (
            "Errors beside the results (initial uploads, repeated attempts, clean-up)",
            attribution.other_errors,
        ),
    ):
        cells = [[escape(kind), escape(where or "-"), f"{count:,}"] for kind, where, count in errors]
        yield _titled(title, html_tables.table(("error", "where", "times"), cells, texts=2) if cells else "")


def _titled(title: str, body: str) -> str:
    return f"<h3>{escape(title)}</h3>{body}" if body else ""


def _rows(rows: Sequence[Row], slow: set[str]) -> str:
    """Return a table of proxies, nodes, devices or partitions; who is named has another colour."""
    compared = any(row.longer for row in rows)
    cells = []
    for row in rows:
        name = escape(row.name)
        cells.append(
            [
                f"<span class=bad-text>{name}</span>" if row.name in slow else name,
                f"{row.requests:,}",
                *(_longer(row.longer) if compared else ()),
                f"{row.errors:,}",
                *_pair(row.seconds),
                *_pair(row.latency),
            ]
        )
    heads = ("", "requests", *(("longer with it ms", "%") if compared else ()), "errors", *_TIMES)
    return html_tables.table(heads, cells) if cells else ""


def _longer(difference: Difference | None) -> tuple[str, str]:
    if difference is None:
        return "-", "-"
    median, base = difference.median, difference.base
    sign = "-" if median < 0 else "+"
    return f"{sign}{milliseconds(abs(median))}", f"{100 * median / base:+.1f}" if base > 0 else "-"


def _parts(rows: Sequence[PartRow]) -> str:
    cells = [
        [
            row.operation.upper(),
            f"{row.requests:,}",
            *(text for pair in (row.latency, row.client, row.proxy, row.backend) for text in _pair(pair)),
            f"{row.extra:,}",
        ]
        for row in rows
    ]
    parts = ("client", "to proxy", "proxy", "slowest server")
    heads = [f"{part} {rank}" for part in parts for rank in ("p50", "p99")]
    return html_tables.table(("operation", "requests", *heads, "more servers"), cells) if cells else ""


def _slowest(rows: Sequence[SlowOperation]) -> str:
    cells = [
        [
            row.operation.upper(),
            escape(row.proxy or "-"),
            escape(row.device or "-"),
            escape(row.process or "-"),
            f"<span class=bad-text>{escape(listed(row.named))}</span>" if row.named else "-",
            html_tables.copied(row.trans_id),
            *map(milliseconds, (row.latency, row.client, row.proxy_own, row.backend)),
            f"{row.extra:,}",
        ]
        for row in rows
    ]
    who = ("operation", "proxy", "slowest device", "its process", "named above", "transaction id")
    parts = ("client", "to proxy", "proxy", "slowest server", "more servers")
    return html_tables.table((*who, *parts), cells, texts=6) if cells else ""


def _pair(pair: tuple[float, float] | None) -> tuple[str, str]:
    return ("-", "-") if pair is None else (milliseconds(pair[0]), milliseconds(pair[1]))
