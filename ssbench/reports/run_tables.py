"""Tables of the figures of a run: one for each way in which it has parts.

These are operations and size classes, workers, sites, storage URLs, stages and groups; and, where there are
several, accounts, addresses and the steps of operations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import msgspec

from ssbench.document.columns import cut_text, describe_too_few, format_plural, keep_unbroken
from ssbench.document.elements import (
    Cell,
    Column,
    Detail,
    Element,
    Item,
    Items,
    Note,
    Table,
    Tone,
    make_columns,
)
from ssbench.document.figures import (
    COUNTED_FIGURES,
    FIGURES,
    LINE_RANKS,
    NARROW_RANKS,
    TABLE_RANKS,
    percentile_figure,
)
from ssbench.document.units import (
    AT_LEAST,
    DASH,
    format_count,
    format_latency,
    format_megabytes,
    format_milliseconds,
    format_number,
    format_percent,
    format_seconds,
)
from ssbench.reports.key_figures import (
    format_bounded_percentile,
    format_percentiles,
    make_list_note,
    section_name,
)
from ssbench.reports.verdict_words import format_delivered_load
from ssbench.results.result_fields import NO_WORKER
from ssbench.statistics.collector import MemberCounts
from ssbench.statistics.confidence import Interval
from ssbench.statistics.counted_figures import MIN_COUNTED, CountedFigures, measure_rates
from ssbench.statistics.latencies import Latencies, merge_latencies
from ssbench.statistics.latency_parts import CensoredLatencies, LatencyParts, Part, make_uncensored
from ssbench.statistics.run_statistics import FiguresSection, RunPart, RunStatistics, SectionLine
from ssbench.statistics.run_verdict import loads_by_group

_LATENCY_HEADS = tuple(percentile_figure(rank).head for rank in TABLE_RANKS)
_FIGURE_HEADS = ("ops", "ops/s", "MB/s", "errors", *_LATENCY_HEADS)

#: More rows than this of a table are only counted in text.
_MAX_ROWS = 64

#: More size classes than these are counted in the summary.
_MAX_CLASSES = 6


def make_operation_table(statistics: RunStatistics) -> Table:
    """Return a row for each operation, and one for all."""
    rows = [
        [section_name(each), *_line_cells(each.lines[0], statistics)]
        for each in (*statistics.sections[1:], statistics.total)
    ]
    # Of all operations it is known only where it is known of each; the reads of old files lack it.
    if rows and any(
        each.count and not each.moved and each.operation and each.operation.returns_object
        for each in statistics.sections
    ):
        rows[-1][1 + [each.head for each in _line_columns()].index("MB/s")] = DASH
    return Table([Column("operation", is_number=False, short=""), *_line_columns()], rows, has_sum=True)


def make_size_class_table(statistics: RunStatistics) -> Table:
    """Return a row for each size class of each operation that has several."""
    rows = [
        [section_name(section), line.size_class or "", *_line_cells(line, statistics)]
        for section in statistics.sections[1:]
        if len(section.lines) > 2 and section.operation
        for line in section.lines[1:]
    ]
    heads = [Column("operation", is_number=False, short=""), *make_columns("size class"), *_line_columns()]
    return Table(heads, rows, keys=2, title="By size class", detail=Detail.VERBOSE)


def make_size_notes(statistics: RunStatistics) -> Iterator[Note]:
    """Yield the most frequent operation of each size class, where there are several."""
    busiest: dict[str, tuple[FiguresSection, SectionLine]] = {}
    for each in statistics.sections[1:]:
        for line in each.lines[1:]:
            name = line.size_class or ""
            if name not in busiest or line.count > busiest[name][1].count:
                busiest[name] = each, line
    if len(busiest) < 2:
        return
    texts = [
        f"{cut_text(name, 20)} {section_name(each)}"
        f" {_percentiles(line)}{format_number(line.requests_per_second)}/s"
        for name, (each, line) in busiest.items()
    ]
    if len(texts) > _MAX_CLASSES:
        texts[_MAX_CLASSES:] = [f"{len(texts) - _MAX_CLASSES} more: -v"]
    yield make_list_note("by size", texts, " | ")


def _percentiles(line: SectionLine) -> str:
    known = [
        f"p{rank} {found} "
        for rank in LINE_RANKS
        if (found := format_bounded_percentile(line.latency, rank)) != DASH
    ]
    return f"{''.join(known)}ms, " if known else ""


def make_listing_notes(statistics: RunStatistics) -> Iterator[Note]:
    """Yield what listings returned, where there were some."""
    figure = FIGURES["entries_per_s"]
    for section in statistics.sections[1:]:
        if entries := section.counted["entries"]:
            each = entries / section.count
            words = (
                f"{figure.text(section, statistics)} {figure.title}, {format_number(each)}"
                f" entries an operation"
            )
            yield Note(f"{section_name(section)}: {words}")


def make_last_attempt_table(statistics: RunStatistics) -> Table:
    """Return the latencies of last attempts, of operations that were more in some cases."""
    rows = [
        [section_name(each), *_percentile_cells(make_uncensored(each.lines[0].last_attempt))]
        for each in (*statistics.sections[1:], statistics.total)
        if each.lines[0].last_attempt.mean < each.lines[0].last_byte.mean
    ]
    return Table(make_columns("last attempt", *_LATENCY_HEADS), rows, detail=Detail.VERBOSE)


def make_latency_note(statistics: RunStatistics) -> Note:
    """Return what the latencies of the tables are, and what a dash stands for."""
    of = "count to the last byte, of successes only"
    if statistics.delivery is not None:
        of = "count from when operations were due, of successes"
        if statistics.not_begun:
            of += f" and of those that never began ({AT_LEAST}: at least, as these still waited at the end)"
    stalled = statistics.total.delayed.count
    left_out = (
        f" The latency of {format_plural(stalled, 'operation')} is left out, because a worker itself stalled."
        if stalled
        else ""
    )
    return Note(
        f"Latencies {of}. A dash means fewer than ten latencies beyond a percentile, or an interval that"
        f" would reach 0 or rest on fewer than {MIN_COUNTED} operations or ten seconds.{left_out}"
    )


def make_mark_notes(statistics: RunStatistics) -> Iterator[Note]:
    """Yield in short what ``-`` in place of a percentile and ``>`` before one stand for, where they do."""
    measured = [each.lines[0].latency for each in statistics.sections if each.lines[0].latency.count]
    if any(each.waited.count for each in measured):
        yield Note(f"{AT_LEAST}: at least; some operations that were due never began")
    ranks = [rank for rank in TABLE_RANKS if not all(each.supports(rank) for each in measured)]
    if ranks:
        yield Note(describe_too_few(ranks))


#: The columns of an operation or a size class before its latencies, each with its cell.
_LINE_COLUMNS: Sequence[tuple[Column, Callable[[SectionLine, RunStatistics], str | Cell]]] = (
    (Column("ops"), lambda line, _: format_count(line.count)),
    (Column("%"), lambda line, run: format_percent(_find_share(line, run.total))),
    (Column("errors"), lambda line, _: _error_cell(line.failed)),
    (Column("ops/s"), lambda line, _: format_number(line.requests_per_second)),
    (Column("95 % interval", detail=Detail.PAGE), lambda line, _: _interval(line.rate_interval)),
    (Column("MB/s"), FIGURES["mb_per_s"].text),
)


def _line_columns() -> list[Column]:
    """Return the columns of what :func:`_line_cells` yields."""
    return [*(column for column, _ in _LINE_COLUMNS), *_latency_columns()]


def _latency_columns() -> Iterator[Column]:
    for place, head in enumerate(_LATENCY_HEADS):
        yield Column(head, short=head.removesuffix(" ms") if place else "ms:p50")


def _line_cells(line: SectionLine, statistics: RunStatistics) -> list[str | Cell]:
    own = [cell(line, statistics) for _, cell in _LINE_COLUMNS]
    return [*own, *_percentile_cells(line.latency)]


def _find_share(line: SectionLine, total: FiguresSection) -> float:
    """Return the share of a line in all operations."""
    everything = total.count + total.failed
    return (line.count + line.failed) / everything if everything else 0.0


def _interval(interval: Interval | None) -> str:
    return (
        DASH
        if interval is None
        else f"{format_number(max(0.0, interval.low))} to {format_number(interval.high)}"
    )


#: What the columns of the parts of latencies are called, by the fields of Parts.
_PART_NAMES = {"connected": "connecting", "paused": "pausing"}


def make_latency_part_table(statistics: RunStatistics) -> Table:
    """Return how much of the latencies was connecting and pauses, and counters; none where nothing was.

    Only what occurred has columns: files of old versions do not say how long anything took.
    """
    sections = (*statistics.sections[1:], statistics.total)
    counters = [each for key, each in COUNTED_FIGURES.items() if statistics.total.counted[key]]
    total = statistics.total.parts
    kinds = {head: name for head, name in _PART_NAMES.items() if getattr(total, name) != Part()}
    rows = [
        [
            section_name(section),
            *(
                cell
                for part in (getattr(section.parts, name) for name in kinds.values())
                for cell in (
                    format_count(part.count),
                    format_seconds(part.seconds),
                    format_milliseconds(part.longest),
                )
            ),
            *(each.text(section.lines[0], statistics) for each in counters),
        ]
        for section in sections
        if section.parts != LatencyParts() or any(section.counted.values())
    ]
    heads = [each for head in kinds for each in (head, "s in all", "longest ms")]
    columns = make_columns(
        "in the latencies of" if kinds else "operation", *heads, *(each.title for each in counters)
    )
    return Table(columns, rows, detail=Detail.PAGE)


def make_worker_tables(statistics: RunStatistics) -> Iterator[Table]:
    """Yield a table with a row for each worker, and one of when the load generator stalled."""
    facts = {each.worker_id: each for each in statistics.fleet}
    rows: list[Sequence[str | Cell]] = []
    for worker_id, figures in _figures_by_key(statistics, "worker"):
        fact = facts.get(worker_id)
        rows.append(
            [
                "unknown" if worker_id == NO_WORKER else str(worker_id),
                fact.host if fact else "",
                *make_figure_cells(statistics, figures),
                format_percent(fact.cpu_share if fact else None),
                *(
                    (format_milliseconds(fact.lag_p99), format_milliseconds(fact.lag_max))
                    if fact
                    else ("-", "-")
                ),
            ]
        )
    seen = {worker_id for worker_id, _ in _figures_by_key(statistics, "worker")}
    rows += [
        [
            str(each.worker_id),
            each.host,
            "0",
            *("-" for _ in _FIGURE_HEADS[1:]),
            format_percent(each.cpu_share),
            format_milliseconds(each.lag_p99),
            format_milliseconds(each.lag_max),
        ]
        for each in statistics.fleet
        if seen and each.worker_id not in seen
    ]
    master = statistics.generator.master
    if master is not None and rows:
        own = [format_percent(master.cpu_share), "-", format_milliseconds(master.lag_max)]
        rows.append(["master", statistics.run.host, *("" for _ in _FIGURE_HEADS), *own])
    load = [
        Column("CPU % of a core", short="CPU"),
        Column("lag p99 ms", short="lag:p99"),
        Column("lag max ms", short="max"),
    ]
    if rows:
        yield Table(
            [*make_columns("worker", "host", texts=2), *make_figure_columns(), *load],
            rows,
            keys=2,
            most=_MAX_ROWS,
        )
        yield _gap_table(statistics)


def _gap_table(statistics: RunStatistics) -> Table:
    """Return when the load generator itself stalled; none where it did not."""
    rows = [
        [
            "master" if gap.worker_id is None else str(gap.worker_id),
            format_seconds(gap.start - (statistics.start or 0.0)),
            format_seconds(gap.seconds),
        ]
        for gap in statistics.generator.gaps
    ]
    return Table(make_columns("stalled: worker", "at s", "for s"), rows)


def make_site_tables(statistics: RunStatistics) -> Iterator[Table]:
    """Yield a table with a row for each site; none where workers name none."""
    names = {worker.worker_id: worker.site for worker in statistics.fleet}
    if "worker" not in statistics.groups.keys or not any(names.values()):
        return
    rows = [
        [name, str(sum(site == name for site in names.values())), *make_figure_cells(statistics, figures)]
        for name, figures in statistics.groups.merged("worker", names).items()
    ]
    yield Table([*make_columns("site", "workers"), *make_figure_columns()], rows)


def _stage_elements(statistics: RunStatistics) -> Iterator[Element]:
    rows = []
    for stage in statistics.stages:
        total, course = stage.numbers.total, stage.numbers.course
        rows.append(
            [
                stage.name,
                str(stage.plan[0]),
                format_number(course.window.seconds if course else None),
                format_count(total.count),
                format_number(total.requests_per_second),
                FIGURES["mb_per_s"].text(total, statistics),
                _error_cell(total.failed),
                *_percentile_cells(total.lines[0].latency),
                format_count(total.due.late) if stage.plan[0].rate else "-",
                "-" if stage.numbers.not_begun is None else format_count(stage.numbers.not_begun),
            ]
        )
    load = Column("load", is_number=False, detail=Detail.PAGE)
    heads = [*make_columns("stage"), load, Column("seconds", short="s"), *make_figure_columns()]
    yield Table([*heads, Column("late"), Column("not begun", short="never")], rows)


def make_storage_url_tables(statistics: RunStatistics) -> Iterator[Table]:
    """Yield a table with a row for each storage URL; none where it is not known of any operation."""
    urls = statistics.run.storage_urls
    found = _figures_by_key(statistics, "storage_url")
    if not any(0 <= place < len(urls) for place, _ in found):
        return
    rows = [
        [
            urls[place] if 0 <= place < len(urls) else "unknown",
            *make_figure_cells(statistics, figures),
        ]
        for place, figures in found
    ]
    yield Table([*make_columns("storage URL"), *make_figure_columns()], rows)


class BreakdownKind(msgspec.Struct, frozen=True):
    """A way in which runs have parts."""

    one: str  # what a part is called
    title: str  # that of the section
    parts: Callable[[RunStatistics], Sequence[RunPart]]  # those that a run has
    elements: Callable[[RunStatistics], Iterator[Element]]  # how the section begins
    detail: Detail = Detail.BRIEF  # which reports have it


def _side_elements(statistics: RunStatistics) -> Iterator[Element]:
    yield _breakdown_table("side", statistics.sides)
    yield Note("To test whether the sides differ, run 'compare' with this stat file alone.")


def make_group_elements(statistics: RunStatistics) -> Iterator[Element]:
    """Yield what each group of users was asked for beside what it delivered, and a row for each operation."""
    if statistics.by_group:
        yield _delivered_items(statistics)
        yield _breakdown_table("group", statistics.by_group)


def _delivered_items(statistics: RunStatistics) -> Items:
    """Return what each group of users was asked for beside what it delivered."""
    loads = zip(statistics.by_group, loads_by_group(statistics), strict=True)
    shown = [
        (group.name, format_delivered_load(each.asked, each.delivered, group.numbers))
        for group, each in loads
    ]
    return Items([Item(f"{name}: {'; '.join(map(keep_unbroken, parts))}") for name, parts in shown])


def _breakdown_table(kind: str, parts: Sequence[RunPart]) -> Table:
    """Return a row for each part and operation, and one for all operations of each."""
    rows = [
        (part.name, section_name(section), *_line_cells(section.lines[0], part.numbers))
        for part in parts
        for section in (*part.numbers.sections[1:], part.numbers.total)
    ]
    heads = [*make_columns(kind), Column("operation", is_number=False, short=""), *_line_columns()]
    return Table(heads, rows, keys=2)


def _figures_by_key(statistics: RunStatistics, key: str) -> list[tuple[int, CountedFigures]]:
    groups = statistics.groups
    return [(value, each) for (value,), each in groups.by(key).items()] if key in groups.keys else []


def make_figure_columns() -> list[Column]:
    """Return the columns of what :func:`make_figure_cells` yields."""
    return [*make_columns(*_FIGURE_HEADS[: -len(_LATENCY_HEADS)], texts=0), *_latency_columns()]


def make_figure_cells(statistics: RunStatistics, figures: CountedFigures) -> Iterator[str | Cell]:
    """Yield the cells of figures."""
    operations_, moved = measure_rates(figures, statistics.course.window if statistics.course else None)
    yield format_count(figures.count)
    yield format_number(operations_)
    yield format_megabytes(moved if figures.moved else None)
    yield _error_cell(figures.failed)
    yield from _percentile_cells(figures.latency)


def _percentile_cells(latencies: CensoredLatencies) -> Iterator[str]:
    for rank in TABLE_RANKS:
        yield format_bounded_percentile(latencies, rank)


def _error_cell(failed: int) -> str | Cell:
    return Cell(format_count(failed), Tone.BAD) if failed else "0"


BY_STAGE = BreakdownKind("Stage", "Stages", lambda run: run.stages, _stage_elements)
BY_SIDE = BreakdownKind("Side", "Sides", lambda run: run.sides, _side_elements, Detail.PAGE)
BY_GROUP = BreakdownKind("Group", "Groups of users", lambda run: run.by_group, make_group_elements)

#: In the order of reports.
BREAKDOWN_KINDS = (BY_STAGE, BY_SIDE, BY_GROUP)


# -- Accounts, addresses and steps -----------------------------------------------------------------


#: Of more than these a table has the slowest and the fastest.
_MAX_MEMBER_ROWS = 12
_MEMBERS_AT_ENDS = 5


def make_account_elements(statistics: RunStatistics) -> Iterator[Element]:
    """Yield what there is to say of the accounts; nothing of a run with one."""
    return _member_elements("account", statistics, statistics.accounts, statistics.run.accounts)


def make_address_elements(statistics: RunStatistics) -> Iterator[Element]:
    """Yield what there is to say of the addresses of hosts; nothing where each has one."""
    return _member_elements("address", statistics, statistics.addresses, statistics.address_names)


def _member_elements(
    what: str, statistics: RunStatistics, found: Sequence[MemberCounts], names: Sequence[str]
) -> Iterator[Element]:
    if not found:
        return
    ordered = sorted(found, key=_member_median, reverse=True)
    found = [each for each in found if each.number >= 0] or found  # those that are known
    counts = [each.figures.count for each in found]
    texts = [f"{min(counts):,} to {max(counts):,} successes each"]
    known = [each for each in ordered if each in found and _member_median(each) >= 0]
    if known:
        slow, fast = known[0], known[-1]
        texts.append(
            f"median {format_latency(_member_median(fast))} to {format_latency(_member_median(slow))} "
            f"(slowest {_member_name(what, slow, names)})"
        )
    if failing := [each for each in found if each.figures.failed]:
        worst = max(failing, key=lambda each: each.figures.failed)
        texts.append(
            f"errors in {len(failing):,}, {worst.figures.failed:,} of them in"
            f" {_member_name(what, worst, names)}"
        )
    number = f"{len(found):,} {what}{'es' if what == 'address' else 's'}" if len(found) > 1 else f"1 {what}"
    yield Note(f"{number}: {'; '.join(map(keep_unbroken, texts))}")
    shown, title = ordered, ""
    if len(ordered) > _MAX_MEMBER_ROWS:
        shown = [*ordered[:_MEMBERS_AT_ENDS], *ordered[-_MEMBERS_AT_ENDS:]]
        title = (
            f"The {_MEMBERS_AT_ENDS} slowest and the {_MEMBERS_AT_ENDS} fastest by median, of"
            f" {len(ordered):,}"
        )
    causes = [Column("errors by cause", is_number=False)] if any(each.errors for each in found) else []
    yield Table(
        [*make_columns(what), *make_figure_columns(), *causes],
        [
            [
                _member_name(what, each, names),
                *make_figure_cells(statistics, each.figures),
                *[_member_errors(each)] * len(causes),
            ]
            for each in shown
        ],
        title=title,
        detail=Detail.VERBOSE,
    )


def _member_median(member: MemberCounts) -> float:
    """Return the median latency of a member in seconds; -1 where there is none."""
    found = member.figures.latency.supported_percentile(50)
    return -1.0 if found is None else found


def _member_name(what: str, member: MemberCounts, names: Sequence[str]) -> str:
    number = member.number
    if 0 <= number < len(names):
        return names[number]
    return "unknown" if number < 0 else f"{what} {number + 1}"


def _member_errors(member: MemberCounts) -> str:
    return ", ".join(f"{times:,} x {cause}" for cause, times in islice(member.errors.items(), 3))


def latencies_by_step(section: FiguresSection, statistics: RunStatistics) -> dict[str, Latencies]:
    """Return what each step of an operation took, by its name; nothing where it has none."""
    if section.operation is None:
        return {}
    names = statistics.run.scenario.steps_of(section.operation)
    return dict(zip(names, section.steps, strict=False))


def make_step_notes(statistics: RunStatistics) -> Iterator[Note]:
    """Yield a note for each operation that has steps: their means, and that of the whole."""
    for section in statistics.sections[1:]:
        if section.operation is not None and (found := latencies_by_step(section, statistics)):
            means = [f"{name} {_mean_of(each)}" for name, each in found.items()]
            whole = _mean_of(_times_with_steps(section))
            yield Note(f"{section_name(section)} by step, mean ms: {', '.join(means)}; in all {whole}")


def make_step_table(statistics: RunStatistics) -> Table:
    """Return a table with a row for each step, and one for the whole; without rows where there are none."""
    rows = []
    for section in statistics.sections[1:]:
        if section.operation is not None and (found := latencies_by_step(section, statistics)):
            for name, each in {**found, "in all": _times_with_steps(section)}.items():
                ends = format_percentiles(each, NARROW_RANKS)
                rows.append([section_name(section), name, format_count(each.count), _mean_of(each), *ends])
    heads = make_columns("ops", "mean ms", *(percentile_figure(rank).head for rank in NARROW_RANKS), texts=0)
    texts = [Column("operation", is_number=False), Column("step", is_number=False)]
    return Table([*texts, *heads], rows, title="By step", keys=2)


def _times_with_steps(section: FiguresSection) -> Latencies:
    """Return the latencies of the operations that have steps: of a size class in segments, not of others."""
    return merge_latencies(line.last_byte for line in section.lines[1:] if line.steps)


def _mean_of(latencies: Latencies) -> str:
    return format_milliseconds(latencies.mean)
