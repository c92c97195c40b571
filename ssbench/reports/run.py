"""A run as a document: its verdict, tables of all figures, and for pages charts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ssbench.document import Detail, Document, Element, Tone, Verdict, Warnings, section_of
from ssbench.reports import (
    cluster_charts,
    load,
    members,
    parameters,
    run_charts,
    run_facts,
    run_tables,
    steps,
    time_line,
)
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
    page = Detail.PAGE
    elements = [
        *section_of("", [tiles(statistics)], page),
        *first,
        *section_of("Over time", time_line.charts(statistics), page),
        *section_of("Operations", _operations(statistics)),
        *section_of("Latency", run_charts.latencies(statistics), page),
        *section_of("Load", _load(statistics), page),
        *run_tables.part_sections(statistics),
        *section_of("Accounts", members.accounts(statistics)),
        *section_of("Addresses", members.addresses(statistics)),
        *section_of(waits.TITLE, run_facts.waits_of(statistics)),
        *section_of("Errors", run_facts.errors(statistics)),
        Warnings(statistics.warnings),
        *section_of("Slowest operations", [run_facts.slowest(statistics)], page),
        *section_of("Workers", run_tables.workers(statistics), Detail.VERBOSE),
        *section_of("Sites", run_tables.sites(statistics), Detail.VERBOSE),
        *section_of("Storage URLs", run_tables.storage_urls(statistics), Detail.VERBOSE),
        *section_of("Cluster", cluster_charts.elements(statistics), page),
        *section_of("Parameters", parameters.elements(statistics), page),
    ]
    return Document(statistics.run.scenario.name, elements, found, run_facts.facts(statistics))


def _operations(statistics: RunStatistics) -> Iterator[Element]:
    yield run_tables.operations(statistics)
    yield run_tables.by_size(statistics)
    yield run_tables.note(statistics)
    yield steps.table(statistics)
    yield run_tables.last_attempts(statistics)
    yield run_tables.parts(statistics)


def _load(statistics: RunStatistics) -> Iterator[Element]:
    yield from run_charts.load(statistics)
    yield from load.elements(statistics)
