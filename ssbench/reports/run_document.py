"""What a run says: one table of statements, from which the summary, the full report and pages are made.

A statement has up to four forms: a few words for the summary, what takes their place with ``-v``, its details
in the full report, and what pages and Markdown show. All reports have statements in the order of
:data:`RUN_STATEMENTS`. What comes before them all, the verdict and what was run where, is made by
:mod:`.run_verdict` and :func:`.run_facts.make_run_facts`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ssbench.document.columns import cut_text, format_plural, keep_unbroken
from ssbench.document.elements import (
    Detail,
    Document,
    Element,
    Note,
    Table,
    Tone,
    Verdict,
    Warnings,
    make_section,
)
from ssbench.document.units import format_count, format_run_length
from ssbench.reports import key_figures, run_charts, run_facts, run_tables
from ssbench.reports.run_tables import BreakdownKind
from ssbench.reports.verdict_words import (
    judge_for_reports,
    make_verdict_title,
    make_verdict_words,
    tone_of_outcome,
)
from ssbench.reports.writing import ReportOptions
from ssbench.statistics import waits
from ssbench.statistics.run_statistics import RunStatistics

#: A form of a statement: its elements, none where there is nothing to say of a run.
StatementForm = Callable[[RunStatistics, ReportOptions], Iterable[Element]]

#: What makes an element, or several, of the numbers of a run.
_Maker = Callable[[RunStatistics], Element | Iterable[Element]]

#: More warnings than these are counted in the summary.
_MAX_WARNINGS = 6

#: Causes of failures that are named for a part of a run.
_MAX_PART_CAUSES = 3

#: Scenario names are cut, so that there is room for how the run ended.
_MAX_NAME_CHARACTERS = 40

#: Workers that a page shows without being asked.
_MAX_UNFOLDED_WORKERS = 12


def _form(*makers: _Maker) -> StatementForm:
    """Return the form that has what the makers make, one after the other."""

    def make(statistics: RunStatistics, options: ReportOptions) -> Iterator[Element]:
        for maker in makers:
            made = maker(statistics)
            yield from made if isinstance(made, Iterable) else (made,)

    return make


@dataclass(frozen=True, slots=True)
class RunStatement:
    """Something that is said of runs, in the forms that it has."""

    title: str  # of its section; the summary has none
    short: StatementForm | None = None  # in the summary
    verbose: StatementForm | None = None  # in the summary with -v; None: as without
    full: StatementForm | None = None  # in the full report
    page: StatementForm | None = None  # on pages and in Markdown
    detail: Detail = Detail.BRIEF  # which of pages and Markdown have it
    is_folded: Callable[[RunStatistics], bool] = lambda _: False  # on pages
    #: Whether the full report has it of files of ssbench 0.x too, which say less.
    of_old_files: bool = False


def _state_breakdown(kind: BreakdownKind) -> RunStatement:
    """Return the statement on a way in which runs have parts."""
    return RunStatement(
        kind.title,
        short=_form(lambda run: _make_short_breakdown(kind, run) if kind.parts(run) else ())
        if kind.detail is Detail.BRIEF
        else None,
        full=_form(lambda run: _make_breakdown_details(kind, run)),
        page=_form(lambda run: kind.elements(run) if kind.parts(run) else ()),
        detail=kind.detail,
    )


def _make_short_breakdown(kind: BreakdownKind, statistics: RunStatistics) -> Iterator[Element]:
    """Yield the parts of a kind; a table says in its first column what they are, and needs no heading."""
    elements = [*kind.elements(statistics)]
    if not isinstance(elements[0], Table):
        yield Note(f"{kind.title}:")
    yield from elements


def _make_breakdown_details(kind: BreakdownKind, statistics: RunStatistics) -> Iterator[Element]:
    """Yield what there is of the parts of a kind, with each by itself; nothing of a run without such."""
    parts = kind.parts(statistics)
    if not parts:
        return
    yield from kind.elements(statistics)
    for part in parts:
        name = f"{kind.one} {part.name}"
        yield from make_section(name, _make_part_details(part.numbers))
        stages = run_tables.BY_STAGE
        yield from make_section(
            f"{stages.title} of {name[:1].lower()}{name[1:]}", _make_breakdown_details(stages, part.numbers)
        )


def _make_part_details(numbers: RunStatistics) -> Iterator[Element]:
    """Yield latencies of each operation of a part, and why some failed."""
    yield key_figures.make_latency_table(numbers)
    if numbers.errors:
        named = [f"{format_count(cause.count)} x {name}" for name, cause in numbers.errors.items()]
        if len(named) > _MAX_PART_CAUSES:
            named[_MAX_PART_CAUSES:] = [format_plural(len(named) - _MAX_PART_CAUSES, "more cause")]
        yield Note(f"Failures: {', '.join(named)}")


def _make_short_warnings(statistics: RunStatistics) -> Warnings:
    warnings = run_facts.find_run_warnings(statistics)
    if len(warnings) > _MAX_WARNINGS + 1:
        warnings[_MAX_WARNINGS:] = [f"{len(warnings) - _MAX_WARNINGS} more warnings: --report full"]
    return Warnings(warnings)


def _make_percentiles(statistics: RunStatistics, options: ReportOptions) -> Iterator[Element]:
    """Yield further percentiles; nothing where none are asked for."""
    if options.more:
        table = key_figures.make_latency_table(statistics, options.more)
        yield table if table.rows else Note("nothing was measured")


#: What is said of runs, in the order of all reports.
RUN_STATEMENTS = (
    RunStatement("Run", full=_form(run_facts.make_load_notes)),
    RunStatement("Over time", page=_form(run_charts.make_time_line_charts), detail=Detail.PAGE),
    RunStatement(
        "Operations",
        short=_form(
            run_tables.make_operation_table,
            run_tables.make_mark_notes,
            run_facts.make_open_loop_notes,
            run_tables.make_size_notes,
            run_tables.make_listing_notes,
            run_tables.make_step_notes,
        ),
        verbose=_form(
            run_tables.make_operation_table,
            run_tables.make_mark_notes,
            run_tables.make_size_class_table,
            run_tables.make_last_attempt_table,
            run_facts.make_open_loop_notes,
            run_tables.make_listing_notes,
            run_tables.make_step_notes,
        ),
        page=_form(
            run_tables.make_operation_table,
            run_tables.make_size_class_table,
            run_tables.make_latency_note,
            run_tables.make_step_table,
            run_tables.make_last_attempt_table,
            run_tables.make_latency_part_table,
        ),
    ),
    RunStatement(
        "Replay", short=_form(run_facts.make_replay_elements), page=_form(run_facts.make_replay_elements)
    ),
    RunStatement(
        "Figures",
        short=lambda run, options: key_figures.make_course_elements(run, options.columns),
        full=_form(key_figures.make_figure_elements),
    ),
    RunStatement(
        "Events", short=_form(run_facts.make_event_elements), page=_form(run_facts.make_event_elements)
    ),
    RunStatement("Latency", page=_form(run_charts.make_latency_charts), detail=Detail.PAGE),
    RunStatement(
        "Latency by size class",
        page=_form(run_charts.make_size_class_charts),
        detail=Detail.PAGE,
        is_folded=lambda _: True,
    ),
    RunStatement(
        "Confidence (95 % intervals)",
        short=_form(key_figures.make_precision_notes),
        full=_form(key_figures.make_precision_notes, key_figures.make_confidence_elements),
    ),
    RunStatement(
        "Load",
        full=_form(run_facts.make_load_elements),
        page=_form(run_charts.make_response_time_charts, run_facts.make_load_elements),
        detail=Detail.PAGE,
    ),
    *map(_state_breakdown, run_tables.BREAKDOWN_KINDS),
    RunStatement(
        "Accounts",
        short=_form(run_tables.make_account_elements),
        page=_form(run_tables.make_account_elements),
    ),
    RunStatement(
        "Addresses",
        short=_form(run_tables.make_address_elements),
        page=_form(run_tables.make_address_elements),
    ),
    RunStatement(
        "Sites",
        verbose=_form(run_tables.make_site_tables),
        page=_form(run_tables.make_site_tables),
        detail=Detail.VERBOSE,
    ),
    RunStatement(
        "Workers",
        verbose=_form(run_tables.make_worker_tables),
        page=_form(run_tables.make_worker_tables),
        detail=Detail.VERBOSE,
        is_folded=lambda run: len(run.fleet) > _MAX_UNFOLDED_WORKERS,
    ),
    RunStatement(
        "Storage URLs",
        verbose=_form(run_tables.make_storage_url_tables),
        page=_form(run_tables.make_storage_url_tables),
        detail=Detail.VERBOSE,
    ),
    RunStatement(
        "Cluster",
        full=_form(lambda run: run_charts.find_cluster_report().make_observation_notes(run.cluster)),
        page=_form(lambda run: run_charts.find_cluster_report().make_observation_elements(run)),
        detail=Detail.PAGE,
    ),
    RunStatement(
        waits.WAITS_TITLE,
        short=_form(run_facts.make_wait_notes),
        full=_form(run_facts.make_wait_items),
        page=_form(run_facts.make_wait_items),
    ),
    RunStatement(
        "Errors",
        short=_form(run_facts.make_error_notes),
        full=_form(run_facts.make_error_elements),
        page=_form(run_facts.make_error_elements),
    ),
    RunStatement(
        "Slowest operations",
        short=_form(run_facts.make_slowest_notes),
        page=_form(run_facts.make_slowest_table),
        detail=Detail.PAGE,
        is_folded=lambda _: True,
    ),
    RunStatement("Request options", full=_form(run_facts.make_request_option_notes)),
    RunStatement("Notes", full=_form(run_facts.make_count_notes)),
    RunStatement("Further percentiles", full=_make_percentiles, of_old_files=True),
    RunStatement(
        "Warnings",
        short=_form(_make_short_warnings),
        full=_form(lambda run: map(Note, run_facts.find_run_warnings(run))),
        page=_form(lambda run: Warnings(run.warnings)),
        of_old_files=True,
    ),
    RunStatement(
        "Parameters",
        page=_form(run_facts.make_parameter_elements),
        detail=Detail.PAGE,
        is_folded=lambda _: True,
    ),
)


def make_run_report_document(
    statistics: RunStatistics,
    options: ReportOptions,
    first: Sequence[Element] = (),
    above: Verdict | None = None,
) -> Document:
    """Return what pages and Markdown show; pages need statistics that were collected with ``over_time``.

    ``first`` come before what every run has, ``above`` comes before the verdict on the run.
    """
    found = make_verdict_words(statistics, options)
    if above is not None:
        sentences = (*above.sentences, f"The run: {found.line}.", *found.sentences)
        details = (*above.details, *found.details)
        tone = max(above.tone, found.tone, key=[*Tone].index)
        found = Verdict(tone, above.title, sentences, above.facts, details)
    elements: list[Element] = [
        *make_section("", [run_charts.make_run_tiles(statistics)], Detail.PAGE),
        *first,
    ]
    for each in RUN_STATEMENTS:
        said = [*each.page(statistics, options)] if each.page else []
        if any(isinstance(element, Warnings) for element in said):
            elements += said  # they stand in no section: each renderer has a place for them
        else:
            elements += make_section(each.title, said, each.detail, is_folded=each.is_folded(statistics))
    return Document(
        statistics.run.scenario.name,
        elements,
        found,
        run_facts.make_run_facts(statistics),
        stamp=run_facts.make_run_stamp(statistics),
    )


def make_summary_verdict(statistics: RunStatistics, options: ReportOptions) -> Verdict:
    """Return the verdict of the summary."""
    found = judge_for_reports(statistics, options)
    return Verdict(
        tone_of_outcome(found.outcome),
        "; ".join(map(keep_unbroken, make_verdict_title(found, statistics).split("; "))),
        [f"fail-if {judgment.text}" for judgment in found.judgments],
    )


def make_summary_document(statistics: RunStatistics, options: ReportOptions) -> Document:
    """Return the summary: the verdict, what speaks against the run, and each statement in a few words."""
    found = judge_for_reports(statistics, options)
    elements: list[Element] = [
        Warnings([reason.text]) if reason.warns else Note(reason.text)
        for reason in found.reasons
        if reason.in_summary
    ]
    for each in RUN_STATEMENTS:
        form = (each.verbose if options.verbose else None) or each.short
        if form is not None:
            elements += form(statistics, options)
    name = cut_text(statistics.run.scenario.name, _MAX_NAME_CHARACTERS) + _describe_end(statistics)
    conclusion = make_summary_verdict(statistics, options)
    return Document(name, elements, conclusion, run_facts.make_run_facts(statistics))


def _describe_end(statistics: RunStatistics) -> str:
    """Return how the run ended, where that was not as it should."""
    if statistics.interrupted:
        word = "INTERRUPTED"
    elif statistics.ended_early:
        word = "ENDED EARLY"
    elif not statistics.complete:
        word = "INCOMPLETE"
    else:
        return ""
    scenario, ended = statistics.run.scenario, statistics.total.count + statistics.total.failed
    whole = (
        f", {format_count(ended)} of {format_count(scenario.operation_count)} operations"
        if scenario.operation_count
        else ""
    )
    whole = whole if scenario.run_seconds is None else f" of {scenario.run_seconds:g} s"
    return f" - {word} after {format_run_length(statistics.lasted)} s{whole}"


def make_full_document(statistics: RunStatistics, options: ReportOptions) -> Document:
    """Return the details of each statement; of files of ssbench 0.x, which say less, hardly any."""
    elements: list[Element] = []
    for each in RUN_STATEMENTS:
        if each.full is not None and (statistics.current or each.of_old_files):
            elements += make_section(each.title, each.full(statistics, options))
    return Document("", elements, untitled=True)


def make_percentiles_document(statistics: RunStatistics, options: ReportOptions) -> Document:
    """Return further percentiles; an empty document where none are asked for."""
    found = make_section("Further percentiles", _make_percentiles(statistics, options))
    return Document("", [*found], untitled=True)
