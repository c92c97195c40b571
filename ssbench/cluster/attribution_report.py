"""Which node was slow, by Swift's logs: a document, a section of that of the run, pictures and JSON.

The pictures show devices by evidence, and the course of what is slow over the run. JSON is the attribution
itself, with its answer in words.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Literal

from msgspec.structs import replace

from ssbench.base import record
from ssbench.base.version import __version__
from ssbench.cluster import finding_sentences, request_spans
from ssbench.cluster.attribution_records import (
    Attribution,
    LogFinding,
    PartRow,
    ServerRow,
    SlowRequest,
    make_finding_record,
)
from ssbench.cluster.finding_kinds import (
    FINDING_KINDS,
    BusyServer,
    MeasuredFinding,
    OneOfSeveral,
    SlowServer,
    UnfeltServer,
    list_names,
)
from ssbench.cluster.finding_sentences import (
    ALL_CLEAR,
    LONGER_NOTE,
    SLOWEST_NOTE,
    describe_all_clear,
    describe_attribution,
    is_all_clear,
    list_coverage_facts,
    list_coverage_notes,
)
from ssbench.cluster.rank_tests import PeerDifference
from ssbench.cluster.request_spans import TracedRequest
from ssbench.cluster.server_times import MAX_STANDINGS, OWN_TIME_LEVELS, ServerTimeline, Standing
from ssbench.cluster.suspect_search import MIN_DELAY_SHARE
from ssbench.document import units
from ssbench.document.columns import format_plural
from ssbench.document.elements import (
    Bars,
    Cell,
    Column,
    Detail,
    Document,
    Element,
    Item,
    Items,
    Lines,
    Note,
    Row,
    Section,
    Table,
    Tone,
    Verdict,
    View,
    drop_columns,
    make_columns,
    make_section,
)
from ssbench.document.units import (
    DASH,
    format_change,
    format_milliseconds,
    format_moment,
    format_probability,
    format_time_difference,
)
from ssbench.reports.run_document import make_run_report_document
from ssbench.reports.verdict_words import judge_for_reports
from ssbench.reports.writing import ReportOptions
from ssbench.statistics import waits
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.run_verdict import Outcome
from ssbench.statistics.waits import Wait


def make_picture_sections(attribution: Attribution) -> list[Section]:
    """Return the sections that have something to show."""
    over = [*_draw_courses(attribution), *_draw_timelines(attribution)]
    return [
        *_make_evidence_sections(attribution),
        *make_section("Over the run", over),
    ]


def _make_evidence_sections(attribution: Attribution, *, is_folded: bool = False) -> Iterator[Section]:
    yield from make_section(
        "A typical and a slow request, part by part",
        _draw_time_shares(attribution) if attribution.time_shares else (),
        is_folded=is_folded,
    )
    yield from make_section(
        "Own times against peers', by evidence",
        _draw_standings(attribution) if attribution.standings else (),
        is_folded=is_folded,
    )


def _draw_courses(attribution: Attribution) -> Iterator[Element]:
    for each in attribution.findings:
        if isinstance(each, MeasuredFinding):
            yield from _draw_course(each)


def _draw_time_shares(attribution: Attribution) -> Iterator[Element]:
    columns = (
        Column("", is_number=False, is_whole=True),
        Column("requests", detail=Detail.VERBOSE),
        Column("client ms", short="client"),
        Column("to proxy"),
        Column("proxy"),
        Column("server"),
        Column("update"),
        Column("body"),
        Column("first byte", short="first"),
    )
    rows: list[Row] = [
        [
            f"{each.operation} {each.rank}",
            f"{each.requests:,}",
            *map(
                format_milliseconds,
                (each.latency, each.way, each.proxy, each.server, each.update, each.body, each.first_byte),
            ),
        ]
        for each in attribution.time_shares
    ]
    yield Table(columns, rows)
    yield Note(
        "Each row is an average over requests near that percentile, so that the parts add up: the way to the"
        " proxy, its own time, the slowest object server, the container server that it updated, the body"
        " after the first byte (for writes, part of the servers' time)."
    )


def _draw_standings(attribution: Attribution) -> Iterator[Element]:
    suspects = _suspect_names(attribution)
    most = max(abs(each.difference.median) for each in attribution.standings)
    columns = (
        Column("", is_number=False),
        Column("times", detail=Detail.VERBOSE),
        Column("longer ms", short="ms"),
        Column("95 %"),
        Column("", is_number=False),
        Column("p"),
    )
    rows: list[Row] = [
        [
            Cell(_format_server_name(each), tone=Tone.BAD if each.name in suspects else None),
            f"{each.requests:,}",
            format_time_difference(each.difference.median),
            _format_interval(each),
            Cell(
                tone=Tone.BAD if each.name in suspects else None,
                bar=max(each.difference.median, 0.0) / most if most else 0.0,
            ),
            format_probability(each.probability),
        ]
        for each in attribution.standings
    ]
    yield Table(columns, rows)
    yield Note(
        "Times are those of an object server's reads and deletes, a container server's updates, a proxy's own"
        f" part. Up to {MAX_STANDINGS} are shown. p is of one test; {attribution.comparisons:,} were made, "
        "and only what is said above stands out among so many. A few requests can show a large difference by "
        "chance."
    )


def _draw_course(finding: MeasuredFinding) -> Iterator[Element]:
    course = finding.course
    if course is None:
        return
    longest = max((each.longer or 0.0 for each in course.slices), default=0.0)
    length = course.slices[-1].ends
    values = [max(each.longer or 0.0, 0.0) for each in course.slices]
    name = finding.name or "servers without a log"
    yield Bars(
        name, values, f"0 to {format_moment(length)} s; highest {format_time_difference(longest)} ms longer"
    )
    rows: list[Row] = [
        [
            f"{format_moment(each.begins)} to {format_moment(each.ends)} s",
            f"{each.requests:,}",
            DASH if each.longer is None else format_time_difference(each.longer),
            Cell(bar=value / longest if longest > 0 else 0.0),
        ]
        for each, value in zip(course.slices, values, strict=True)
    ]
    columns = (
        Column("of the run", is_number=False),
        Column("requests"),
        Column("longer ms"),
        Column("", is_number=False),
    )
    yield Table(columns, rows, title=name, detail=Detail.PAGE)


def _draw_timelines(attribution: Attribution) -> Iterator[Element]:
    """Yield a row for each server, the one with the longest times first: its own times, and its writes."""
    found = attribution.timelines
    if not found.servers:
        return
    # Less than what would be named is not drawn as if it were much.
    least = MIN_DELAY_SHARE * (attribution.request or 0.0)
    longest = dict.fromkeys((*OWN_TIME_LEVELS, "last"), least)
    named = _suspect_names(attribution)
    suspects = {_format_server_name(each) for each in found.servers if each.name in named}
    of: dict[str, dict[bool, ServerTimeline]] = {}
    for each in found.servers:
        longest[each.part] = max(longest[each.part], each.longest)
        of.setdefault(_format_server_name(each), {})[each.part == "last"] = each
    rows: list[Row] = []
    for name, own in sorted(of.items(), key=lambda each: -max(one.longest for one in each[1].values())):
        tone = Tone.BAD if name in suspects else None
        cells: list[str | Cell] = [Cell(name, tone=tone)]
        for part in (False, True):
            cells += _draw_strip(own.get(part), longest[own[part].part] if part in own else 0.0, tone)
        rows.append(cells)
    columns = (
        Column("", is_number=False),
        Column("own times", is_number=False, is_whole=True),
        Column("longest ms", short="ms"),
        Column("its writes", is_number=False, is_whole=True),
        Column("longest ms", short="ms"),
    )
    table = Table(columns, rows, title="Each server over the run", most=MAX_STANDINGS)
    has_writes = any(part for own in of.values() for part in own)
    yield table if has_writes else drop_columns(table, (3, 4))
    yield Note(
        f"From 0 to {format_moment(found.edges[-1])} s, in {len(found.edges) - 1} slices: the median in each "
        "slice of what own times took beyond those of all servers, and of what replicas of writes took "
        "beyond the slowest other replica. Bars of one kind have one scale. A slice of few requests can be "
        "long by chance."
    )


def _draw_strip(timeline: ServerTimeline | None, longest: float, tone: Tone | None) -> tuple[Cell, str]:
    if timeline is None:
        return Cell(), DASH
    # A slice without a time is a gap, not a bar of no height.
    scale = longest if longest > 0 else 1.0
    shares = [math.nan if math.isnan(each) else max(each, 0.0) / scale for each in timeline.longer]
    return Cell(bars=shares, tone=tone), format_time_difference(timeline.longest)


def _suspect_names(attribution: Attribution) -> set[str]:
    return {
        name
        for each in attribution.findings
        if isinstance(each, SlowServer | OneOfSeveral | UnfeltServer)
        for name in (each.name, *each.members)
    }


def _format_server_name(standing: Standing | ServerTimeline) -> str:
    return f"proxy {standing.name}" if standing.part == "own part" else standing.name


def _format_interval(standing: Standing) -> str:
    low, high = standing.interval
    return DASH if math.isnan(low) else f"{format_time_difference(low)} to {format_time_difference(high)}"


# -- JSON ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributionReport(Attribution):
    """Which node was slow: the findings, the tables that they rest on, and the ``answer`` in words.

    ``waits`` are those that are as long as a constant of the system.
    """

    format: Literal["ssbench attribution"] = "ssbench attribution"
    version: Literal[1] = 1
    made_by: str = __version__
    if not TYPE_CHECKING:
        findings: list[LogFinding]
    answer: list[str]
    waits: tuple[Wait, ...]


@dataclass(frozen=True, slots=True)
class AttributedRun:
    """What the logs say of a run, and the waits in its latencies that are as long as a constant."""

    found: Attribution
    waits: tuple[Wait, ...] = ()


def make_attribution_json(attributed: AttributedRun, *_: object) -> str:
    """Return an attribution as one JSON document."""
    found = attributed.found
    own = {field.name: getattr(found, field.name) for field in fields(Attribution)}
    own["findings"] = [make_finding_record(each) for each in found.findings]
    return record.format_json(
        AttributionReport(**own, answer=finding_sentences.describe_attribution(found), waits=attributed.waits)
    )


# -- The document, and the section -----------------------------------------------------------------


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
        Section("What stands out", [*map(Note, (*_summarize(found), *describe_attribution(found)))]),
        make_coverage_section(found),
        *make_picture_sections(found),
        *_make_tables(found),
        *make_section(
            waits.WAITS_TITLE, [Items([Item(waits.describe_wait(each)) for each in attributed.waits])]
        ),
    ]
    return Document("Which node was slow", elements, untitled=True)


def _summarize(found: Attribution) -> Iterator[str]:
    """Yield who is slow, and by how much, in a line; nothing where nobody is."""
    if any(each.headline for each in found.findings):
        verdict = make_attribution_verdict(found)
        yield f"{verdict.title} ({'; '.join(verdict.facts)})"


def make_attribution_verdict(attribution: Attribution) -> Verdict:
    """Return the answer: who, by how much, in which share of the requests and since when."""
    tone, headline = _choose_headline(attribution)
    named = [each for each in attribution.findings if each.headline]
    facts = [each.list_facts() for each in named]
    if len(named) > 1:
        facts = [
            [f"{each.name}: {', '.join(known)}"]
            for each, known in zip(named[:_MAX_NAMED], facts[:_MAX_NAMED], strict=True)
            if each.name and known
        ]
    said = [text for each in facts for text in each]
    if not named:
        coverage = attribution.coverage
        said = [f"{coverage.compared:,} of {format_plural(coverage.operations, 'operation')} compared"]
    return Verdict(tone, headline, describe_attribution(attribution), said)


def make_attribution_sections(
    attribution: Attribution, requests: Sequence[TracedRequest] = ()
) -> Iterator[Section]:
    """Yield what a page has of the logs: each server over the run, and folded what that rests on."""
    yield from make_section("Which node was slow", _draw_timelines(attribution))
    yield from make_section("The suspects, slice by slice", _draw_courses(attribution), is_folded=True)
    yield from _make_evidence_sections(attribution, is_folded=True)
    yield from make_section("Times in Swift's logs", _make_tables(attribution), is_folded=True)
    if requests:
        yield make_requests_section(requests)
    yield replace(make_coverage_section(attribution), is_folded=True)


#: Sections of the run that stay open on a page about its logs.
_OPEN_SECTIONS = ("Over time", "Operations")


def make_logged_run_document(
    statistics: RunStatistics,
    options: ReportOptions,
    attribution: Attribution,
    requests: Sequence[TracedRequest] = (),
) -> Document:
    """Return the document of a run with what the logs say of it first; it has one verdict, that of the logs.

    What the run itself was like is said in the line of that verdict.
    """
    outcome = judge_for_reports(statistics, options).outcome
    answer = make_attribution_verdict(attribution)
    above = replace(answer, sentences=[f"The run itself {_OUTCOME_PHRASES[outcome]}.", *answer.sentences])
    made = make_run_report_document(statistics, options, above=above)
    own = [
        replace(each, is_folded=bool(each.title) and each.title not in _OPEN_SECTIONS)
        if isinstance(each, Section)
        else each
        for each in made.elements
    ]
    return replace(made, elements=[*make_attribution_sections(attribution, requests), *own])


#: What is said of the run in the line of the verdict on its logs.
_OUTCOME_PHRASES = {
    Outcome.GOOD: "was good",
    Outcome.WARNED: "was good, but for warnings",
    Outcome.UNDECIDED: "left conditions undecided",
    Outcome.NOT_DELIVERED: "did not deliver the load that was asked for",
    Outcome.FAILED: "failed",
    Outcome.INTERRUPTED: "was interrupted",
}
#: Findings whose facts stand in the verdict.
_MAX_NAMED = 3


def make_coverage_section(attribution: Attribution) -> Section:
    """Return how much of the run the logs cover, and likely reasons of what is missing."""
    facts = [f"{what}: {value}" for what, value in list_coverage_facts(attribution.coverage)]
    return Section("Coverage", [*map(Note, (*facts, *list_coverage_notes(attribution.coverage)))])


def make_requests_section(found: Sequence[TracedRequest]) -> Section:
    """Return the section of single requests, the slowest first: a waterfall of each."""
    blocks = [Lines(request_spans.format_waterfall(each)) for each in found[:_MAX_WATERFALLS]]
    return Section("The slowest requests, server by server", blocks, is_folded=True)


def _choose_headline(attribution: Attribution) -> tuple[Tone, str]:
    named = {
        kind.headline: [
            name for each in attribution.findings if isinstance(each, kind) for name in each.names
        ]
        for kind in FINDING_KINDS
        if kind.headline
    }
    texts = [
        f"{words}: {list_names(names)}" if any(names) else words for words, names in named.items() if names
    ]
    if attribution.overload:
        overloaded = "the load generator was overloaded"
        if any(each.is_certain for each in attribution.findings):
            return Tone.BAD, "; ".join([*texts, overloaded])
        return Tone.DOUBTFUL, "; ".join([f"Inconclusive: {overloaded}", *texts])
    if texts:
        only_busy = all(isinstance(each, BusyServer) for each in attribution.findings if each.headline)
        return Tone.DOUBTFUL if only_busy else Tone.BAD, "; ".join(texts)
    if not attribution.coverage.compared:
        return Tone.DOUBTFUL, "Inconclusive: these logs do not tell"
    if is_all_clear(attribution):
        words = describe_all_clear(attribution)
        return Tone.GOOD if words.startswith(f"{ALL_CLEAR} by ") else Tone.DOUBTFUL, words.partition(":")[0]
    return Tone.DOUBTFUL, "Errors in the logs"


def _make_tables(attribution: Attribution) -> Iterator[Element]:
    slow = {name for each in attribution.findings for name in each.marked}
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
