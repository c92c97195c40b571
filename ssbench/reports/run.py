"""A run as a document: its verdict, tables of all figures, and for pages charts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ssbench.document import (
    Detail,
    Document,
    Element,
    Item,
    Items,
    Lines,
    Section,
    Table,
    Tiles,
    Tone,
    Verdict,
    Warnings,
)
from ssbench.document.columns import plural
from ssbench.reports import cluster_charts, load, run_charts, run_tables
from ssbench.reports.figures import utc
from ssbench.reports.options import ReportOptions
from ssbench.reports.tiles import tiles
from ssbench.reports.verdict import verdict
from ssbench.statistics import RunStatistics, waits


def document(
    statistics: RunStatistics,
    options: ReportOptions,
    first: Sequence[Element] = (),
    above: Verdict | None = None,
) -> Document:
    """Return the document; pages need statistics that were collected with ``over_time``.

    ``first`` come before what every run has, ``above`` comes before the verdict on the run.
    """
    found = verdict(statistics, options)
    if above is not None:
        sentences = (*above.sentences, f"The run: {found.title}.", *found.sentences)
        found = Verdict(max(above.tone, found.tone, key=[*Tone].index), above.title, sentences)
    lines = [line.strip() for line in load.section(statistics)][2:]
    page = Detail.PAGE
    elements = [
        *_section("", [tiles(statistics)], page),
        *first,
        *_section("Over time", run_charts.over_time(statistics), page),
        *_section("Operations", run_tables.operations(statistics)),
        *_section("Latency", run_charts.latencies(statistics), page),
        *_section("Load", (*run_charts.load(statistics), Lines(lines), run_tables.stages(statistics)), page),
        *_section("Sides", run_tables.sides(statistics), page),
        *_section("Groups of users", run_tables.by_group(statistics)),
        *_section(waits.TITLE, [Items([Item(waits.sentence(wait)) for wait in statistics.waits])]),
        *_section("Errors", run_tables.errors(statistics)),
        Warnings(statistics.warnings),
        *_section("Slowest operations", [run_tables.slowest(statistics)], page),
        *_section("Workers", run_tables.workers(statistics), Detail.VERBOSE),
        *_section("Storage URLs", run_tables.storage_urls(statistics), Detail.VERBOSE),
        *_section("Cluster", cluster_charts.elements(statistics), page),
        *_section("Parameters", run_tables.parameters(statistics), page),
    ]
    return Document(statistics.run.scenario.name, elements, found, _facts(statistics))


def _section(title: str, elements: Iterable[Element], detail: Detail = Detail.BRIEF) -> Iterable[Section]:
    """Yield a section, unless it has nothing to show."""
    shown = [each for each in elements if not _is_empty(each)]
    if shown:
        yield Section(title, shown, detail)


def _is_empty(each: Element) -> bool:
    match each:
        case Table():
            return not each.rows
        case Lines():
            return not each.texts
        case Items():
            return not each.items
        case Tiles():
            return not each.tiles
    return False


def _facts(statistics: RunStatistics) -> list[str]:
    run, scenario = statistics.run, statistics.run.scenario
    facts = [
        plural(scenario.user_count, "user"),
        plural(statistics.worker_count, "worker"),
        f"{statistics.duration:,.1f} s from {utc(statistics.start)}",
        f"policy {scenario.policy}" if scenario.policy else "",
        f"seed {run.seed}" if run.seed is not None else "",
        f"ssbench {run.version}",
    ]
    return [*filter(None, facts)]
