"""All sections that the full report has between the table of ssbench 0.3.9 and the summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from ssbench.document import units
from ssbench.document.columns import format_plural
from ssbench.document.elements import Document, Element, Note, Section, make_section
from ssbench.reports import confidence, key_figures, load, run_facts, run_tables
from ssbench.reports.beside import find_cluster_report
from ssbench.reports.options import ReportOptions
from ssbench.scenario.owner import explain_replacement
from ssbench.statistics import waits
from ssbench.statistics.run_statistics import RunStatistics

#: Options of run-scenario that change what counts as a failure, and their defaults.
_REQUEST_DEFAULTS = {"request_timeout": None, "retries": 10, "retry_404": 0}

#: What is said of counters that are not 0.
_COUNTER_WARNINGS = {
    "waited": "small population: {} operations waited for a free object",
    "reused": "{} reads were for what had been read before, as the scenario asks",
    "redrawn": "{} operations took another object: the one drawn was in use",
    "not_begun": "{} operations still waited for a free object at the end; not sent",
    "passed_on": "{} operations of lost workers had not begun, as far as is known; others did them",
    "in_doubt": "{} operations may have been carried out or not: their workers no longer answered at the end",
    "expired": "{} objects were no longer used: their delete_after had passed",
}

#: Causes of failures that are named for a part.
_MAX_PART_CAUSES = 3


def make_sections_document(statistics: RunStatistics, options: ReportOptions) -> Document:
    """Return the document; of files of ssbench 0.x, which say less, it has only warnings."""
    elements: list[Element] = []
    if statistics.current:
        elements += [
            *make_section("Run", load.make_load_notes(statistics)),
            *make_section("Figures", key_figures.make_figure_elements(statistics)),
            *make_section("Load", load.make_load_elements(statistics)),
            *(
                each
                for kind in run_tables.BREAKDOWN_KINDS
                for each in _breakdown_sections(kind, kind.title, statistics)
            ),
            *make_section("Confidence (95 % intervals)", confidence.make_confidence_elements(statistics)),
            *make_section("Errors", run_facts.make_error_elements(statistics)),
            *make_section(waits.WAITS_TITLE, run_facts.make_wait_items(statistics)),
            *make_section("Request options", map(Note, _request_options(statistics.run.options))),
            *make_section("Notes", map(Note, _section_notes(statistics))),
        ]
        if statistics.cluster is not None and (found := find_cluster_report().section(statistics.cluster)):
            elements.append(found)
    elements += make_percentiles_document(statistics, options).elements
    elements += make_section("Warnings", map(Note, run_facts.find_run_warnings(statistics)))
    return Document("", elements, untitled=True)


def make_percentiles_document(statistics: RunStatistics, options: ReportOptions) -> Document:
    """Return further percentiles; an empty document where none are asked for."""
    if not options.more:
        return Document("", (), untitled=True)
    table = key_figures.make_latency_table(statistics, options.more)
    found = table if table.rows else Note("nothing was measured")
    return Document("", [Section("Further percentiles", [found])], untitled=True)


def _breakdown_sections(
    kind: run_tables.BreakdownKind, title: str, statistics: RunStatistics
) -> Iterator[Section]:
    """Yield the section of the parts of a kind, with each by itself; nothing of a run without such parts."""
    parts = kind.parts(statistics)
    if parts:
        elements = [*kind.elements(statistics)]
        for part in parts:
            name = f"{kind.one} {part.name}"
            elements += make_section(name, _breakdown_elements(part.numbers))
            elements += _breakdown_sections(
                run_tables.BY_STAGE, f"Stages of {name[:1].lower()}{name[1:]}", part.numbers
            )
        yield Section(title, elements)


def _breakdown_elements(numbers: RunStatistics) -> Iterator[Element]:
    """Yield latencies of each operation of a part, and why some failed."""
    yield key_figures.make_latency_table(numbers)
    if numbers.errors:
        named = [f"{units.format_count(cause.count)} x {name}" for name, cause in numbers.errors.items()]
        if len(named) > _MAX_PART_CAUSES:
            named[_MAX_PART_CAUSES:] = [format_plural(len(named) - _MAX_PART_CAUSES, "more cause")]
        yield Note(f"Failures: {', '.join(named)}")


def _request_options(options: Mapping[str, object]) -> Iterator[str]:
    """Yield what a request was allowed, where that was not the default."""
    for name, default in _REQUEST_DEFAULTS.items():
        if options.get(name, default) != default:
            yield f"--{name.replace('_', '-')} {options[name]}"


def _section_notes(statistics: RunStatistics) -> Iterator[str]:
    count = Counter({name: int(number) for name, number in statistics.counters.items()})
    uploaded, replaced, reused = (count[f"initial_{what}"] for what in ("uploaded", "replaced", "reused"))
    if statistics.run.options.get("noop"):
        yield "no-op run: nothing was sent to Swift; bytes are those that would have been moved"
    if uploaded or replaced or reused:
        verified = bool(statistics.run.options.get("verify"))
        why = explain_replacement(replaced, count["initial_of_others"], verified=verified)
        why = f" ({why})" if why else ""
        yield f"initial objects: {uploaded} uploaded, {replaced} replaced{why}, {reused} reused"
    if count["initial_sampled"]:
        yield f"initial objects: as prepared; {count['initial_sampled']} of them, drawn at random, looked at"
    if count["existing"]:
        yield (
            f"{count['existing']} objects that were there already were only read: nothing was prepared or"
            f" written; {count['existing_skipped']} others skipped: their sizes do not fit"
        )
    for name, what in _COUNTER_WARNINGS.items():
        if count[name]:
            yield what.format(count[name])
