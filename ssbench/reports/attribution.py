"""Which node was slow, by Swift's logs, as a section of the document of the run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ssbench.attribution import waterfall
from ssbench.attribution.pictures import pictures
from ssbench.attribution.ranks import Difference
from ssbench.attribution.records import Attribution
from ssbench.attribution.sentences import listed
from ssbench.attribution.spans import Request
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
from ssbench.document import (
    Cell,
    Element,
    Item,
    Items,
    Lines,
    Note,
    Section,
    Table,
    Tone,
    Verdict,
    columns_of,
)
from ssbench.figures.units import milliseconds

_HEADLINES = (
    ("slow", "Slow"),
    ("one of", "One of these is slow"),
    ("unfelt", "Slow, not waited for"),
    ("late", "Late replicas"),
    ("507", "Answered 507"),
    ("missing", "A server without a log is slow"),
)
#: How many requests are shown one by one.
_WATERFALLS = 10
_TIMES = ("own p50 ms", "own p99 ms", "client p50 ms", "client p99 ms")
_LEGEND = f"{LONGER[:1].upper()}{LONGER[1:]}."


def section(attribution: Attribution) -> Section:
    """Return the section: the answer in words first, then coverage and tables."""
    tone, headline = _headline(attribution)
    verdict = Verdict(tone, headline, answer(attribution))
    return Section("Which node was slow", [verdict, *pictures(attribution), *_elements(attribution)])


def requests(found: Sequence[Request]) -> Section:
    """Return the section of single requests, the slowest first: a waterfall of each."""
    blocks = [Lines(waterfall.lines(each)) for each in found[:_WATERFALLS]]
    return Section("The slowest requests, server by server", blocks)


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


def _elements(attribution: Attribution) -> Iterator[Element]:
    slow = {each.name for each in attribution.findings if each.kind in ("slow", "late", "507")}
    slow |= {name for each in attribution.findings if each.kind == "slow" for name in each.members}
    facts = [f"{what}: {value}" for what, value in coverage_facts(attribution.coverage)]
    lines = [*facts, *coverage_notes(attribution.coverage)]
    yield Section("Coverage", [Items([Item(each) for each in lines])])
    yield _parts(attribution.parts)
    for title, rows in (
        ("Proxies", attribution.proxies),
        ("Nodes", attribution.nodes),
        ("Devices", attribution.devices),
        ("Partitions with most requests", attribution.partitions),
    ):
        yield _rows(title, rows, slow)
    if attribution.devices:
        yield Note(_LEGEND)
    if attribution.slowest:
        yield _slowest(attribution.slowest)
        yield Note(SLOWEST)
    for title, errors in (
        ("Errors in Swift's logs", attribution.errors),
        (
            "Errors beside the results (initial uploads, repeated attempts, clean-up)",
            attribution.other_errors,
        ),
    ):
        cells = [(kind, where or "-", f"{count:,}") for kind, where, count in errors]
        yield Table(columns_of("error", "where", "times", texts=2), cells, title=title)


def _rows(title: str, rows: Sequence[Row], slow: set[str]) -> Table:
    """Return a table of proxies, nodes, devices or partitions; who is named has another colour."""
    compared = any(row.longer for row in rows)
    cells: list[Sequence[str | Cell]] = []
    for row in rows:
        cells.append(
            [
                Cell(row.name, Tone.BAD) if row.name in slow else row.name,
                f"{row.requests:,}",
                *(_longer(row.longer) if compared else ()),
                f"{row.errors:,}",
                *_pair(row.seconds),
                *_pair(row.latency),
            ]
        )
    heads = ("", "requests", *(("longer with it ms", "%") if compared else ()), "errors", *_TIMES)
    return Table(columns_of(*heads), cells, title=title)


def _longer(difference: Difference | None) -> tuple[str, str]:
    if difference is None:
        return "-", "-"
    median, base = difference.median, difference.base
    sign = "-" if median < 0 else "+"
    return f"{sign}{milliseconds(abs(median))}", f"{100 * median / base:+.1f}" if base > 0 else "-"


def _parts(rows: Sequence[PartRow]) -> Table:
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
    shown = columns_of("operation", "requests", *heads, "more servers")
    return Table(shown, cells, title="Where the time goes (ms)")


def _slowest(rows: Sequence[SlowOperation]) -> Table:
    cells = [
        [
            row.operation.upper(),
            row.proxy or "-",
            row.device or "-",
            row.process or "-",
            Cell(listed(row.named), Tone.BAD) if row.named else "-",
            Cell(row.trans_id or "", is_code=True),
            *map(milliseconds, (row.latency, row.client, row.proxy_own, row.backend)),
            f"{row.extra:,}",
        ]
        for row in rows
    ]
    who = ("operation", "proxy", "slowest device", "its process", "named above", "transaction id")
    parts = ("client", "to proxy", "proxy", "slowest server", "more servers")
    title = "Where the time of the slowest operations went (ms)"
    return Table(columns_of(*who, *parts, texts=6), cells, title=title)


def _pair(pair: tuple[float, float] | None) -> tuple[str, str]:
    return ("-", "-") if pair is None else (milliseconds(pair[0]), milliseconds(pair[1]))
