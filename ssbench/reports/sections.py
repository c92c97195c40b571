"""All sections that the full report has between the table of ssbench 0.3.9 and the summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from ssbench.document import units
from ssbench.document.columns import plural
from ssbench.document.elements import Document, Element, Note, Section, section_of
from ssbench.reports import confidence, key_figures, load, run_facts, run_tables
from ssbench.reports.beside import cluster_report
from ssbench.reports.options import ReportOptions
from ssbench.scenario.owner import why_replaced
from ssbench.statistics import waits
from ssbench.statistics.run_statistics import RunStatistics

#: Options of run-scenario that change what counts as a failure, and their defaults.
_REQUEST_OPTIONS = {"request_timeout": None, "retries": 10, "retry_404": 0}

#: What is said of counters that are not 0.
_COUNTED = {
    "waited": "small population: {} operations waited for a free object",
    "reused": "{} reads were for what had been read before, as the scenario asks",
    "redrawn": "{} operations took another object: the one drawn was in use",
    "not_begun": "{} operations still waited for a free object at the end; not sent",
    "passed_on": "{} operations of lost workers had not begun, as far as is known; others did them",
    "in_doubt": "{} operations may have been carried out or not: their workers no longer answered at the end",
    "expired": "{} objects were no longer used: their delete_after had passed",
}

#: Causes of failures that are named for a part.
_MOST_CAUSES = 3


def document(statistics: RunStatistics, options: ReportOptions) -> Document:
    """Return the document; of files of ssbench 0.x, which say less, it has only warnings."""
    elements: list[Element] = []
    if statistics.current:
        elements += [
            *section_of("Run", load.asked(statistics)),
            *section_of("Figures", key_figures.elements(statistics)),
            *section_of("Load", load.elements(statistics)),
            *(each for kind in run_tables.PART_KINDS for each in _parts(kind, kind.title, statistics)),
            *section_of("Confidence (95 % intervals)", confidence.elements(statistics)),
            *section_of("Errors", run_facts.errors(statistics)),
            *section_of(waits.TITLE, run_facts.waits_of(statistics)),
            *section_of("Request options", map(Note, _request_options(statistics.run.options))),
            *section_of("Notes", map(Note, _notes(statistics))),
        ]
        if statistics.cluster is not None and (found := cluster_report().section(statistics.cluster)):
            elements.append(found)
    elements += further(statistics, options).elements
    elements += section_of("Warnings", map(Note, run_facts.warnings_of(statistics)))
    return Document("", elements, untitled=True)


def further(statistics: RunStatistics, options: ReportOptions) -> Document:
    """Return further percentiles; an empty document where none are asked for."""
    if not options.more:
        return Document("", (), untitled=True)
    table = key_figures.latency_table(statistics, options.more)
    found = table if table.rows else Note("nothing was measured")
    return Document("", [Section("Further percentiles", [found])], untitled=True)


def _parts(kind: run_tables.PartKind, title: str, statistics: RunStatistics) -> Iterator[Section]:
    """Yield the section of the parts of a kind, with each by itself; nothing of a run without such parts."""
    parts = kind.parts(statistics)
    if parts:
        elements = [*kind.elements(statistics)]
        for part in parts:
            name = f"{kind.one} {part.name}"
            elements += section_of(name, _part(part.numbers))
            elements += _parts(run_tables.STAGES, f"Stages of {name[:1].lower()}{name[1:]}", part.numbers)
        yield Section(title, elements)


def _part(numbers: RunStatistics) -> Iterator[Element]:
    """Yield latencies of each operation of a part, and why some failed."""
    yield key_figures.latency_table(numbers)
    if numbers.errors:
        named = [f"{units.count(cause.count)} x {name}" for name, cause in numbers.errors.items()]
        if len(named) > _MOST_CAUSES:
            named[_MOST_CAUSES:] = [plural(len(named) - _MOST_CAUSES, "more cause")]
        yield Note(f"Failures: {', '.join(named)}")


def _request_options(options: Mapping[str, object]) -> Iterator[str]:
    """Yield what a request was allowed, where that was not the default."""
    for name, default in _REQUEST_OPTIONS.items():
        if options.get(name, default) != default:
            yield f"--{name.replace('_', '-')} {options[name]}"


def _notes(statistics: RunStatistics) -> Iterator[str]:
    count = Counter({name: int(number) for name, number in statistics.counters.items()})
    uploaded, replaced, reused = (count[f"initial_{what}"] for what in ("uploaded", "replaced", "reused"))
    if statistics.run.options.get("noop"):
        yield "no-op run: nothing was sent to Swift; bytes are those that would have been moved"
    if uploaded or replaced or reused:
        verified = bool(statistics.run.options.get("verify"))
        why = why_replaced(replaced, count["initial_of_others"], verified=verified)
        why = f" ({why})" if why else ""
        yield f"initial objects: {uploaded} uploaded, {replaced} replaced{why}, {reused} reused"
    if count["initial_sampled"]:
        yield f"initial objects: as prepared; {count['initial_sampled']} of them, drawn at random, looked at"
    if count["existing"]:
        yield (
            f"{count['existing']} objects that were there already were only read: nothing was prepared or"
            f" written; {count['existing_skipped']} others skipped: their sizes do not fit"
        )
    for name, what in _COUNTED.items():
        if count[name]:
            yield what.format(count[name])
