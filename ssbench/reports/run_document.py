"""A run as a document: its verdict, tables of all figures, and for pages charts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ssbench.document.elements import (
    Detail,
    Document,
    Element,
    Tile,
    Tiles,
    Tone,
    Verdict,
    Warnings,
    make_section,
)
from ssbench.document.figures import BUSY_CPU_SHARE, FIGURES
from ssbench.document.units import DASH, format_number, format_percent, format_seconds
from ssbench.reports import run_charts, run_facts, run_tables
from ssbench.reports.cluster_parts import find_cluster_report
from ssbench.reports.run_verdict import make_verdict_words
from ssbench.reports.writing import ReportOptions
from ssbench.statistics import waits
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.run_verdict import asked_load, delivered_load


def make_run_report_document(
    statistics: RunStatistics,
    options: ReportOptions,
    first: Sequence[Element] = (),
    above: Verdict | None = None,
) -> Document:
    """Return the document; pages need statistics that were collected with ``over_time``.

    ``first`` come before what every run has, ``above`` comes before the verdict on the run.
    """
    found = make_verdict_words(statistics, options)
    if above is not None:
        sentences = (*above.sentences, f"The run: {found.line}.", *found.sentences)
        details = (*above.details, *found.details)
        tone = max(above.tone, found.tone, key=[*Tone].index)
        found = Verdict(tone, above.title, sentences, above.facts, details)
    page = Detail.PAGE
    elements = [
        *make_section("", [make_run_tiles(statistics)], page),
        *first,
        *make_section("Over time", run_charts.make_time_line_charts(statistics), page),
        *make_section("Operations", _operations(statistics)),
        *make_section("Events", run_facts.make_event_elements(statistics)),
        *make_section("Latency", run_charts.make_latency_charts(statistics), page),
        *make_section(
            "Latency by size class", run_charts.make_size_class_charts(statistics), page, is_folded=True
        ),
        *make_section("Load", _load(statistics), page),
        *run_tables.make_breakdown_sections(statistics),
        *make_section("Accounts", run_tables.make_account_elements(statistics)),
        *make_section("Addresses", run_tables.make_address_elements(statistics)),
        *make_section(waits.WAITS_TITLE, run_facts.make_wait_items(statistics)),
        *make_section("Errors", run_facts.make_error_elements(statistics)),
        Warnings(statistics.warnings),
        *make_section("Slowest operations", [run_facts.make_slowest_table(statistics)], page, is_folded=True),
        *make_section("Workers", run_tables.make_worker_tables(statistics), Detail.VERBOSE),
        *make_section("Sites", run_tables.make_site_tables(statistics), Detail.VERBOSE),
        *make_section("Storage URLs", run_tables.make_storage_url_tables(statistics), Detail.VERBOSE),
        *make_section("Cluster", find_cluster_report().elements(statistics), page),
        *make_section("Parameters", run_facts.make_parameter_elements(statistics), page, is_folded=True),
    ]
    return Document(
        statistics.run.scenario.name,
        elements,
        found,
        run_facts.make_run_facts(statistics),
        stamp=run_facts.make_run_stamp(statistics),
    )


def _operations(statistics: RunStatistics) -> Iterator[Element]:
    yield run_tables.make_operation_table(statistics)
    yield run_tables.make_size_class_table(statistics)
    yield run_tables.make_latency_note(statistics)
    yield run_tables.make_step_table(statistics)
    yield run_tables.make_last_attempt_table(statistics)
    yield run_tables.make_latency_part_table(statistics)


def _load(statistics: RunStatistics) -> Iterator[Element]:
    yield from run_charts.make_response_time_charts(statistics)
    yield from run_facts.make_load_elements(statistics)


def make_run_tiles(statistics: RunStatistics) -> Tiles:
    """Return the tiles of a run; none of one without results."""
    return Tiles([] if statistics.start is None else [*_result_tiles(statistics)])


def _result_tiles(statistics: RunStatistics) -> Iterator[Tile]:
    total, over_time = statistics.total, statistics.over_time
    asked, delivered = asked_load(statistics), delivered_load(statistics)
    everything = over_time.operations[None] if over_time else None
    lasted = np.maximum(over_time.seconds, 1e-9) if over_time else np.empty(0)
    courses: dict[str, Sequence[float]] = {}
    if everything is not None and over_time is not None:
        courses = {
            "rate": (everything.count / lasted).tolist(),
            "mb_per_s": (everything.moved / lasted).tolist(),
            "p50": everything.p50.tolist(),
            "p99": everything.p99.tolist(),
            "errors": everything.failed.tolist() if total.failed else [],
            "users": over_time.under_way.tolist(),
        }
    notes = {
        "rate": f"of {format_number(asked.rate)} asked for" if asked.rate else "",
        "errors": f"{format_percent(FIGURES['errors'].share(total, statistics))} % of all"
        if total.failed
        else "",
    }
    for key in ("rate", "mb_per_s", "p50", "p99", "errors"):
        figure = FIGURES[key]
        yield Tile(
            figure.title,
            figure.text(total, statistics),
            "ms" if figure.unit.shown == "ms" and figure.text(total, statistics) != DASH else "",
            notes.get(key, ""),
            Tone.BAD if key == "errors" and total.failed else None,
            courses.get(key, ()),
        )
    if delivered.users is not None:
        yield Tile(
            "users busy",
            format_number(delivered.users),
            f"of {asked.users:g}" if asked.users else "",
            values=courses.get("users", ()),
        )
    yield from _generator_tiles(statistics)


def _generator_tiles(statistics: RunStatistics) -> Iterator[Tile]:
    """Yield how busy the load generator itself was: its busiest process."""
    own = statistics.generator
    shares = [("a worker", each.cpu_share) for each in own.workers]
    shares += [("the master", own.master.cpu_share)] if own.master else []
    known = [(share, who) for who, share in shares if share is not None]
    if not known:
        return
    share, who = max(known)
    stalled = sum(gap.seconds for gap in own.gaps)
    note = f"stalled for {format_seconds(stalled)} s" if stalled else f"of a core: {who}"
    yield Tile(
        "generator CPU",
        format_percent(share),
        "%",
        note,
        _tone(share, limited=bool(own.limits or stalled)),
    )


def _tone(share: float, *, limited: bool) -> Tone | None:
    return Tone.DOUBTFUL if limited or share > BUSY_CPU_SHARE else None
