"""Which node was slow, by Swift's logs: a document, and a section of that of the run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ssbench.cluster import waterfall
from ssbench.cluster.json_record import AttributedRun
from ssbench.cluster.pictures import make_picture_sections
from ssbench.cluster.ranks import PeerDifference
from ssbench.cluster.records import Attribution
from ssbench.cluster.sentences import list_names
from ssbench.cluster.spans import TracedRequest
from ssbench.cluster.tables import PartRow, ServerRow, SlowRequest
from ssbench.cluster.texts import (
    ALL_CLEAR,
    LONGER_NOTE,
    SLOWEST_NOTE,
    describe_all_clear,
    describe_attribution,
    is_all_clear,
    is_certain_finding,
    list_coverage_facts,
    list_coverage_notes,
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
    drop_columns,
    make_columns,
    make_section,
)
from ssbench.document.units import DASH, format_change, format_milliseconds
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
_MAX_WATERFALLS = 10
#: Rows of a table that text shows; JSON has all.
_MAX_ROWS = 20
_MAX_SLOWEST_ROWS = 5

#: The columns of proxies, nodes, devices and partitions.
_SERVER_COLUMNS = (
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
_LEGEND = f"{LONGER_NOTE[:1].upper()}{LONGER_NOTE[1:]}."


def make_attribution_document(attributed: AttributedRun, _view: View) -> Document:
    """Return the report on its own: the answer first, then how much the logs cover."""
    found = attributed.found
    elements = [
        Section("What stands out", [*map(Note, describe_attribution(found))]),
        make_coverage_section(found),
        *make_picture_sections(found),
        *_make_tables(found),
        *make_section(
            waits.WAITS_TITLE, [Items([Item(waits.describe_wait(each)) for each in attributed.waits])]
        ),
    ]
    return Document("Which node was slow", elements, untitled=True)


def make_attribution_section(attribution: Attribution) -> Section:
    """Return the report as a section of that of the run: the answer comes first."""
    tone, headline = _choose_headline(attribution)
    verdict = Verdict(tone, headline, describe_attribution(attribution))
    elements = [
        verdict,
        *make_picture_sections(attribution),
        make_coverage_section(attribution),
        *_make_tables(attribution),
    ]
    return Section("Which node was slow", elements)


def make_coverage_section(attribution: Attribution) -> Section:
    """Return how much of the run the logs cover, and likely reasons of what is missing."""
    facts = [f"{what}: {value}" for what, value in list_coverage_facts(attribution.coverage)]
    return Section("Coverage", [*map(Note, (*facts, *list_coverage_notes(attribution.coverage)))])


def make_requests_section(found: Sequence[TracedRequest]) -> Section:
    """Return the section of single requests, the slowest first: a waterfall of each."""
    blocks = [Lines(waterfall.format_waterfall(each)) for each in found[:_MAX_WATERFALLS]]
    return Section("The slowest requests, server by server", blocks)


def _choose_headline(attribution: Attribution) -> tuple[Tone, str]:
    named = {
        words: [
            name for each in attribution.findings if each.kind == kind for name in (each.name, *each.same)
        ]
        for kind, words in _HEADLINES
    }
    texts = [
        f"{words}: {list_names(names)}" if any(names) else words for words, names in named.items() if names
    ]
    if attribution.overload:
        overloaded = "the load generator was overloaded"
        if any(map(is_certain_finding, attribution.findings)):
            return Tone.BAD, "; ".join([*texts, overloaded])
        return Tone.DOUBTFUL, "; ".join([f"{overloaded[:1].upper()}{overloaded[1:]}", *texts])
    if texts:
        return Tone.BAD, "; ".join(texts)
    if not attribution.coverage.compared:
        return Tone.DOUBTFUL, "Inconclusive: these logs do not tell"
    if is_all_clear(attribution):
        words = describe_all_clear(attribution)
        return Tone.GOOD if words.startswith(f"{ALL_CLEAR} by ") else Tone.DOUBTFUL, words.partition(":")[0]
    return Tone.DOUBTFUL, "Errors in the logs"


def _make_tables(attribution: Attribution) -> Iterator[Element]:
    slow = {each.name for each in attribution.findings if each.kind in ("slow", "late", "507")}
    slow |= {name for each in attribution.findings if each.kind == "slow" for name in each.members}
    yield _make_parts_table(attribution.parts)
    yield _make_server_table("Proxies (ms)", attribution.proxies, slow)
    yield _make_server_table("Nodes (ms)", attribution.nodes, slow)
    yield _make_server_table("Devices (ms)", attribution.devices, slow)
    yield _make_server_table("Partitions with most requests (ms)", attribution.partitions, slow)
    if attribution.proxies or attribution.devices:
        yield Note(_LEGEND)
    if attribution.slowest:
        yield _make_slowest_table(attribution.slowest)
        yield Note(SLOWEST_NOTE)
    for title, errors in (
        ("Errors in Swift's logs", attribution.errors),
        (
            "Errors beside the results (initial uploads, repeated attempts, clean-up)",
            attribution.other_errors,
        ),
    ):
        cells = [(kind, where or "-", f"{count:,}") for kind, where, count in errors]
        yield Table(make_columns("error", "where", "times", texts=2), cells, title=title, most=_MAX_ROWS)


def _make_server_table(title: str, rows: Sequence[ServerRow], slow: set[str]) -> Table:
    """Return a table of proxies, nodes, devices or partitions; suspects are highlighted."""
    cells: list[Sequence[str | Cell]] = [
        [
            Cell(row.name, Tone.BAD) if row.name in slow else row.name,
            f"{row.requests:,}",
            *_format_longer(row.longer),
            f"{row.errors:,}",
            *_format_pair(row.seconds),
            *_format_pair(row.latency),
        ]
        for row in rows
    ]
    table = Table(_SERVER_COLUMNS, cells, title=title, most=_MAX_ROWS)
    return table if any(row.longer for row in rows) else drop_columns(table, (2, 3))


def _format_longer(difference: PeerDifference | None) -> tuple[str, str]:
    if difference is None:
        return "-", "-"
    median, base = difference.median, difference.base
    return units.format_time_difference(median), format_change(median / base) if base > 0 else DASH


def _make_parts_table(rows: Sequence[PartRow]) -> Table:
    cells = [
        [
            row.operation.upper(),
            f"{row.requests:,}",
            *(
                text
                for pair in (row.latency, row.client, row.proxy, row.backend)
                for text in _format_pair(pair)
            ),
            f"{row.extra:,}",
        ]
        for row in rows
    ]
    columns = make_columns("operation", "requests")
    for part, short in (("client", None), ("to proxy", None), ("proxy", None), ("slowest server", "server")):
        columns += [Column(f"{part} p50", short=short or part), Column(f"{part} p99", short="p99")]
    columns.append(Column("more servers", short="more"))
    table = Table(columns, cells, title="Where the time goes (ms)")
    return table if any(row.extra for row in rows) else drop_columns(table, [len(columns) - 1])


def _make_slowest_table(rows: Sequence[SlowRequest]) -> Table:
    cells = [
        [
            row.operation.upper(),
            Cell(row.trans_id or "", is_code=True),
            *map(format_milliseconds, (row.latency, row.client, row.proxy_own, row.backend)),
            f"{row.extra:,}",
            row.device or "-",
            row.process or "-",
            row.proxy or "-",
            Cell(list_names(row.named), Tone.BAD) if row.named else "-",
        ]
        for row in rows
    ]
    columns = [
        *make_columns("operation", "transaction id", "client", "to proxy", "proxy", texts=2),
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
    return Table(columns, cells, keys=2, title=title, most=_MAX_SLOWEST_ROWS)


def _format_pair(pair: tuple[float, float] | None) -> tuple[str, str]:
    return ("-", "-") if pair is None else (format_milliseconds(pair[0]), format_milliseconds(pair[1]))
