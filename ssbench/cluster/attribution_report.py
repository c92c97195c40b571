"""Which node was slow, by Swift's logs: a document, and a section of that of the run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ssbench.cluster import waterfall
from ssbench.cluster.json_record import Attributed
from ssbench.cluster.pictures import pictures
from ssbench.cluster.ranks import Difference
from ssbench.cluster.records import Attribution
from ssbench.cluster.sentences import listed
from ssbench.cluster.spans import Request
from ssbench.cluster.tables import PartRow, Row, SlowOperation
from ssbench.cluster.texts import (
    CLEAR,
    LONGER,
    SLOWEST,
    answer,
    coverage_facts,
    coverage_notes,
    is_certain,
    is_clear,
    outcome,
)
from ssbench.document import units
from ssbench.document.elements import (
    Cell,
    Column,
    Detail,
    Document,
    Element,
    Item,
    Items,
    Lines,
    Note,
    Section,
    Table,
    Tone,
    Verdict,
    View,
    columns_of,
    section_of,
    without,
)
from ssbench.document.units import DASH, change, milliseconds
from ssbench.statistics import waits

_HEADLINES = (
    ("slow", "Slow"),
    ("one of", "One of these is slow"),
    ("unfelt", "Slow, not waited for"),
    ("late", "Late replicas"),
    ("507", "Answered 507"),
    ("update", "Did not take container updates"),
    ("called slow", "Slow requests by its own log"),
    ("memcached", "No answer of memcached"),
    ("missing", "A server without a line is slow"),
    ("stall", "No operation ended for a time"),
)
#: How many requests are shown one by one.
_WATERFALLS = 10
#: Rows of a table that text shows; JSON has all.
_MOST_ROWS = 20
_MOST_SLOWEST = 5

#: The columns of proxies, nodes, devices and partitions.
_COLUMNS = (
    Column("", is_number=False),
    Column("requests"),
    Column("longer with it ms", short="longer"),
    Column("%", detail=Detail.PAGE),
    Column("errors"),
    Column("own p50 ms", short="own p50"),
    Column("own p99 ms", short="p99"),
    Column("client p50 ms", short="client p50"),
    Column("client p99 ms", short="p99"),
)
_LEGEND = f"{LONGER[:1].upper()}{LONGER[1:]}."


def document(attributed: Attributed, _view: View) -> Document:
    """Return the report on its own: the answer first, then how much the logs cover."""
    found = attributed.found
    elements = [
        Section("What stands out", [*map(Note, answer(found))]),
        coverage(found),
        *pictures(found),
        *_tables(found),
        *section_of(waits.TITLE, [Items([Item(waits.sentence(each)) for each in attributed.waits])]),
    ]
    return Document("Which node was slow", elements, untitled=True)


def section(attribution: Attribution) -> Section:
    """Return the report as a section of that of the run: the answer comes first."""
    tone, headline = _headline(attribution)
    verdict = Verdict(tone, headline, answer(attribution))
    elements = [verdict, *pictures(attribution), coverage(attribution), *_tables(attribution)]
    return Section("Which node was slow", elements)


def coverage(attribution: Attribution) -> Section:
    """Return how much of the run the logs cover, and likely reasons of what is missing."""
    facts = [f"{what}: {value}" for what, value in coverage_facts(attribution.coverage)]
    return Section("Coverage", [*map(Note, (*facts, *coverage_notes(attribution.coverage)))])


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
    texts = [f"{words}: {listed(names)}" if any(names) else words for words, names in named.items() if names]
    if attribution.overload:
        overloaded = "the load generator was overloaded"
        if any(map(is_certain, attribution.findings)):
            return Tone.BAD, "; ".join([*texts, overloaded])
        return Tone.DOUBTFUL, "; ".join([f"{overloaded[:1].upper()}{overloaded[1:]}", *texts])
    if texts:
        return Tone.BAD, "; ".join(texts)
    if not attribution.coverage.compared:
        return Tone.DOUBTFUL, "Inconclusive: these logs do not tell"
    if is_clear(attribution):
        words = outcome(attribution)
        return Tone.GOOD if words.startswith(f"{CLEAR} by ") else Tone.DOUBTFUL, words.partition(":")[0]
    return Tone.DOUBTFUL, "Errors in the logs"


def _tables(attribution: Attribution) -> Iterator[Element]:
    slow = {each.name for each in attribution.findings if each.kind in ("slow", "late", "507")}
    slow |= {name for each in attribution.findings if each.kind == "slow" for name in each.members}
    yield _parts(attribution.parts)
    yield _rows("Proxies (ms)", attribution.proxies, slow)
    yield _rows("Nodes (ms)", attribution.nodes, slow)
    yield _rows("Devices (ms)", attribution.devices, slow)
    yield _rows("Partitions with most requests (ms)", attribution.partitions, slow)
    if attribution.proxies or attribution.devices:
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
        yield Table(columns_of("error", "where", "times", texts=2), cells, title=title, most=_MOST_ROWS)


def _rows(title: str, rows: Sequence[Row], slow: set[str]) -> Table:
    """Return a table of proxies, nodes, devices or partitions; suspects are highlighted."""
    cells: list[Sequence[str | Cell]] = [
        [
            Cell(row.name, Tone.BAD) if row.name in slow else row.name,
            f"{row.requests:,}",
            *_longer(row.longer),
            f"{row.errors:,}",
            *_pair(row.seconds),
            *_pair(row.latency),
        ]
        for row in rows
    ]
    table = Table(_COLUMNS, cells, title=title, most=_MOST_ROWS)
    return table if any(row.longer for row in rows) else without(table, (2, 3))


def _longer(difference: Difference | None) -> tuple[str, str]:
    if difference is None:
        return "-", "-"
    median, base = difference.median, difference.base
    return units.difference(median), change(median / base) if base > 0 else DASH


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
    columns = columns_of("operation", "requests")
    for part, short in (("client", None), ("to proxy", None), ("proxy", None), ("slowest server", "server")):
        columns += [Column(f"{part} p50", short=short or part), Column(f"{part} p99", short="p99")]
    columns.append(Column("more servers", short="more"))
    table = Table(columns, cells, title="Where the time goes (ms)")
    return table if any(row.extra for row in rows) else without(table, [len(columns) - 1])


def _slowest(rows: Sequence[SlowOperation]) -> Table:
    cells = [
        [
            row.operation.upper(),
            Cell(row.trans_id or "", is_code=True),
            *map(milliseconds, (row.latency, row.client, row.proxy_own, row.backend)),
            f"{row.extra:,}",
            row.device or "-",
            row.process or "-",
            row.proxy or "-",
            Cell(listed(row.named), Tone.BAD) if row.named else "-",
        ]
        for row in rows
    ]
    columns = [
        *columns_of("operation", "transaction id", "client", "to proxy", "proxy", texts=2),
        Column("slowest server", short="server"),
        Column("more servers", short="more"),
        *(
            Column(head, is_number=False, short=short, is_whole=True)
            for head, short in (
                ("slowest device", None),
                ("its process", None),
                ("proxy", "by proxy"),
                ("named above", None),
            )
        ),
    ]
    title = "Where the time of the slowest operations went (ms)"
    return Table(columns, cells, keys=2, title=title, most=_MOST_SLOWEST)


def _pair(pair: tuple[float, float] | None) -> tuple[str, str]:
    return ("-", "-") if pair is None else (milliseconds(pair[0]), milliseconds(pair[1]))
