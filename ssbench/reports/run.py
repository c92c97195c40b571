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
    section_of,
)
from ssbench.document.figures import FIGURES
from ssbench.document.limits import BUSY_CPU
from ssbench.document.units import number, percent, seconds
from ssbench.reports import load, members, parameters, run_charts, run_facts, run_tables, time_line
from ssbench.reports.beside import cluster_report
from ssbench.reports.options import ReportOptions
from ssbench.reports.verdict import verdict
from ssbench.statistics import waits
from ssbench.statistics.asked import asked_of, delivered_of
from ssbench.statistics.run_statistics import RunStatistics


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
        *section_of("Cluster", cluster_report().elements(statistics), page),
        *section_of("Parameters", parameters.elements(statistics), page),
    ]
    return Document(statistics.run.scenario.name, elements, found, run_facts.facts(statistics))


def _operations(statistics: RunStatistics) -> Iterator[Element]:
    yield run_tables.operations(statistics)
    yield run_tables.by_size(statistics)
    yield run_tables.note(statistics)
    yield members.steps(statistics)
    yield run_tables.last_attempts(statistics)
    yield run_tables.parts(statistics)


def _load(statistics: RunStatistics) -> Iterator[Element]:
    yield from run_charts.load(statistics)
    yield from load.elements(statistics)


def tiles(statistics: RunStatistics) -> Tiles:
    """Return them; none of a run without results."""
    return Tiles([] if statistics.start is None else [*_tiles(statistics)])


def _tiles(statistics: RunStatistics) -> Iterator[Tile]:
    total, over_time = statistics.total, statistics.over_time
    asked, delivered = asked_of(statistics), delivered_of(statistics)
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
        "rate": f"of {number(asked.rate)} asked for" if asked.rate else "",
        "errors": f"{percent(FIGURES['errors'].share(total, statistics))} % of all" if total.failed else "",
    }
    for key in ("rate", "mb_per_s", "p50", "p99", "errors"):
        figure = FIGURES[key]
        yield Tile(
            figure.title,
            figure.text(total, statistics),
            "ms" if figure.unit.shown == "ms" else "",
            notes.get(key, ""),
            Tone.BAD if key == "errors" and total.failed else None,
            courses.get(key, ()),
        )
    if delivered.users is not None:
        yield Tile(
            "users busy",
            number(delivered.users),
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
    note = f"stalled for {seconds(stalled)} s" if stalled else f"of a core: {who}"
    yield Tile(
        "generator CPU",
        percent(share),
        "%",
        note,
        _tone(share, limited=bool(own.limits or stalled)),
    )


def _tone(share: float, *, limited: bool) -> Tone | None:
    return Tone.DOUBTFUL if limited or share > BUSY_CPU else None
