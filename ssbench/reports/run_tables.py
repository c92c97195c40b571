"""Tables of the figures of a run: operations and classes, workers, sites, storage URLs, stages, groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from ssbench.document.columns import plural, too_few, unbroken
from ssbench.document.elements import (
    Cell,
    Column,
    Detail,
    Element,
    Item,
    Items,
    Note,
    Section,
    Table,
    Tone,
    columns_of,
    section_of,
)
from ssbench.document.figures import COUNTED, FIGURES
from ssbench.document.units import AT_LEAST, DASH, count, megabytes, milliseconds, number, percent, seconds
from ssbench.reports.key_figures import bounded, name_of
from ssbench.reports.verdict import delivered
from ssbench.results.schema import NO_WORKER
from ssbench.statistics.asked import loads_by_group
from ssbench.statistics.attempts import Part, Parts
from ssbench.statistics.confidence import Interval
from ssbench.statistics.due import Censored, known
from ssbench.statistics.figures import Figures, rates
from ssbench.statistics.run_statistics import RunPart, RunStatistics
from ssbench.statistics.sections import Line

_LATENCIES = ("p50 ms", "p95 ms", "p99 ms", "p99.9 ms", "max ms")
_FIGURES = ("ops", "ops/s", "MB/s", "errors", *_LATENCIES)
_RANKS = (50, 95, 99, 99.9, 100)

#: More rows than this of a table are only counted in text.
_MOST_ROWS = 64


def operations(statistics: RunStatistics) -> Table:
    """Return a row for each operation, and one for all."""
    rows = [
        [name_of(each), *_of_line(each.lines[0], statistics)]
        for each in (*statistics.sections[1:], statistics.total)
    ]
    # Of all operations it is known only where it is known of each; the reads of old files lack it.
    if rows and any(
        each.count and not each.moved and each.operation and each.operation.returns_object
        for each in statistics.sections
    ):
        rows[-1][_heads().index("MB/s")] = DASH
    return Table([Column("operation", is_number=False, short=""), *_columns()], rows, has_sum=True)


def by_size(statistics: RunStatistics) -> Table:
    """Return a row for each size class of each operation that has several."""
    rows = [
        [name_of(section), line.size_class or "", *_of_line(line, statistics)]
        for section in statistics.sections[1:]
        if len(section.lines) > 2 and section.operation
        for line in section.lines[1:]
    ]
    heads = [Column("operation", is_number=False, short=""), *columns_of("size class"), *_columns()]
    return Table(heads, rows, keys=2, title="By size class", detail=Detail.VERBOSE)


def last_attempts(statistics: RunStatistics) -> Table:
    """Return the latencies of last attempts, of operations that were more in some cases."""
    rows = [
        [name_of(each), *_percentiles(known(each.lines[0].last_attempt))]
        for each in (*statistics.sections[1:], statistics.total)
        if each.lines[0].last_attempt.mean < each.lines[0].last_byte.mean
    ]
    return Table(columns_of("last attempt", *_LATENCIES), rows, detail=Detail.VERBOSE)


def note(statistics: RunStatistics) -> Note:
    """Return what the latencies of the tables are, and what a dash stands for."""
    of = "are those of the last byte, of successes"
    if statistics.delivery is not None:
        of = "count from when operations were due, of successes"
        if statistics.not_begun:
            of += f" and of those that never began ({AT_LEAST}: at least, as these still waited at the end)"
    stalled = statistics.total.delayed.count
    left_out = (
        f" The latency of {plural(stalled, 'operation')} is left out, because a worker itself stalled."
        if stalled
        else ""
    )
    return Note(
        f"Latencies {of}. A dash stands where fewer than ten"
        " latencies lie beyond a percentile, or where a run was too short for an interval."
        f"{left_out}"
    )


def marks(statistics: RunStatistics) -> Iterator[Note]:
    """Yield in short what ``-`` in place of a percentile and ``>`` before one stand for, where they do."""
    measured = [each.lines[0].latency for each in statistics.sections if each.lines[0].latency.count]
    if any(each.waited.count for each in measured):
        yield Note(f"{AT_LEAST}: at least; some operations that were due never began")
    ranks = [rank for rank in _RANKS if not all(each.supports(rank) for each in measured)]
    if ranks:
        yield Note(too_few(ranks))


def _heads() -> list[str]:
    return [each.head for each in _columns()]


def _columns() -> list[Column]:
    """Return the columns of what :func:`_of_line` yields."""
    return [
        *columns_of("ops", "%", "errors", "ops/s", texts=0),
        Column("95 % interval", detail=Detail.PAGE),
        Column("MB/s"),
        *_latency_columns(),
    ]


def _latency_columns() -> Iterator[Column]:
    for place, head in enumerate(_LATENCIES):
        yield Column(head, short=head.removesuffix(" ms") if place else "ms:p50")


def _of_line(line: Line, statistics: RunStatistics) -> list[str | Cell]:
    everything = statistics.total.count + statistics.total.failed
    return [
        count(line.count),
        percent((line.count + line.failed) / everything if everything else 0.0),
        _errors(line.failed),
        number(line.requests_per_second),
        _interval(line.rate_interval),
        FIGURES["mb_per_s"].text(line, statistics),
        *_percentiles(line.latency),
    ]


def _interval(interval: Interval | None) -> str:
    return DASH if interval is None else f"{number(max(0.0, interval.low))} to {number(interval.high)}"


#: What the columns of the parts of latencies are called, by the fields of Parts.
_PARTS = {"connected": "connecting", "paused": "pausing"}


def parts(statistics: RunStatistics) -> Table:
    """Return how much of the latencies was connecting and pauses, and counters; none where nothing was.

    Only what occurred has columns: files of old versions do not say how long anything took.
    """
    sections = (*statistics.sections[1:], statistics.total)
    counters = [each for key, each in COUNTED.items() if statistics.total.counted[key]]
    total = statistics.total.parts
    kinds = {head: name for head, name in _PARTS.items() if getattr(total, name) != Part()}
    rows = [
        [
            name_of(section),
            *(
                cell
                for part in (getattr(section.parts, name) for name in kinds.values())
                for cell in (count(part.count), seconds(part.seconds), milliseconds(part.longest))
            ),
            *(each.text(section.lines[0], statistics) for each in counters),
        ]
        for section in sections
        if section.parts != Parts() or any(section.counted.values())
    ]
    heads = [each for head in kinds for each in (head, "s in all", "longest ms")]
    columns = columns_of(
        "in the latencies of" if kinds else "operation", *heads, *(each.title for each in counters)
    )
    return Table(columns, rows, detail=Detail.PAGE)


def workers(statistics: RunStatistics) -> Iterator[Table]:
    """Yield a table with a row for each worker, and one of when the load generator stalled."""
    facts = {each.worker_id: each for each in statistics.fleet}
    rows: list[Sequence[str | Cell]] = []
    for worker_id, figures in _by(statistics, "worker"):
        fact = facts.get(worker_id)
        rows.append(
            [
                "unknown" if worker_id == NO_WORKER else str(worker_id),
                fact.host if fact else "",
                *figures_of(statistics, figures),
                percent(fact.cpu_share if fact else None),
                *((milliseconds(fact.lag_p99), milliseconds(fact.lag_max)) if fact else ("-", "-")),
            ]
        )
    seen = {worker_id for worker_id, _ in _by(statistics, "worker")}
    rows += [
        [
            str(each.worker_id),
            each.host,
            "0",
            *("-" for _ in _FIGURES[1:]),
            percent(each.cpu_share),
            milliseconds(each.lag_p99),
            milliseconds(each.lag_max),
        ]
        for each in statistics.fleet
        if seen and each.worker_id not in seen
    ]
    master = statistics.generator.master
    if master is not None and rows:
        own = [percent(master.cpu_share), "-", milliseconds(master.lag_max)]
        rows.append(["master", statistics.run.host, *("" for _ in _FIGURES), *own])
    load = [
        Column("CPU % of a core", short="CPU"),
        Column("lag p99 ms", short="lag:p99"),
        Column("lag max ms", short="max"),
    ]
    if rows:
        yield Table(
            [*columns_of("worker", "host", texts=2), *figure_columns(), *load], rows, keys=2, most=_MOST_ROWS
        )
        yield _gaps(statistics)


def _gaps(statistics: RunStatistics) -> Table:
    """Return when the load generator itself stalled; none where it did not."""
    rows = [
        [
            "master" if gap.worker_id is None else str(gap.worker_id),
            seconds(gap.start - (statistics.start or 0.0)),
            seconds(gap.seconds),
        ]
        for gap in statistics.generator.gaps
    ]
    return Table(columns_of("stalled: worker", "at s", "for s"), rows)


def sites(statistics: RunStatistics) -> Iterator[Table]:
    """Yield a table with a row for each site; none where workers name none."""
    names = {worker.worker_id: worker.site for worker in statistics.fleet}
    if "worker" not in statistics.groups.keys or not any(names.values()):
        return
    rows = [
        [name, str(sum(site == name for site in names.values())), *figures_of(statistics, figures)]
        for name, figures in statistics.groups.merged("worker", names).items()
    ]
    yield Table([*columns_of("site", "workers"), *figure_columns()], rows)


def _stages(statistics: RunStatistics) -> Iterator[Element]:
    rows = []
    for stage in statistics.stages:
        total, course = stage.numbers.total, stage.numbers.course
        rows.append(
            [
                stage.name,
                str(stage.plan[0]),
                number(course.window.seconds if course else None),
                count(total.count),
                number(total.requests_per_second),
                FIGURES["mb_per_s"].text(total, statistics),
                _errors(total.failed),
                *_percentiles(total.lines[0].latency),
                count(total.due.late) if stage.plan[0].rate else "-",
                "-" if stage.numbers.not_begun is None else count(stage.numbers.not_begun),
            ]
        )
    load = Column("load", is_number=False, detail=Detail.PAGE)
    heads = [*columns_of("stage"), load, Column("seconds", short="s"), *figure_columns()]
    yield Table([*heads, Column("late"), Column("not begun", short="never")], rows)


def storage_urls(statistics: RunStatistics) -> Iterator[Table]:
    """Yield a table with a row for each storage URL; none where it is not known of any operation."""
    urls = statistics.run.storage_urls
    found = _by(statistics, "storage_url")
    if not any(0 <= place < len(urls) for place, _ in found):
        return
    rows = [
        [
            urls[place] if 0 <= place < len(urls) else "unknown",
            *figures_of(statistics, figures),
        ]
        for place, figures in found
    ]
    yield Table([*columns_of("storage URL"), *figure_columns()], rows)


class PartKind(msgspec.Struct, frozen=True):
    """A way in which runs have parts: what one is called, which there are, how their section begins.

    ``title`` is that of the section, ``detail`` says which reports have it.
    """

    one: str
    title: str
    parts: Callable[[RunStatistics], Sequence[RunPart]]
    elements: Callable[[RunStatistics], Iterator[Element]]
    detail: Detail = Detail.BRIEF


def part_sections(statistics: RunStatistics) -> Iterator[Section]:
    """Yield a section for each kind of parts that a run has."""
    for kind in PART_KINDS:
        if kind.parts(statistics):
            yield from section_of(kind.title, kind.elements(statistics), kind.detail)


def _sides(statistics: RunStatistics) -> Iterator[Element]:
    yield _by_part("side", statistics.sides)
    yield Note("compare with this stat file alone says whether the sides differ.")


def groups(statistics: RunStatistics) -> Iterator[Element]:
    """Yield what each group of users was asked for beside what it delivered, and a row for each operation."""
    if statistics.by_group:
        yield _delivered(statistics)
        yield _by_part("group", statistics.by_group)


def _delivered(statistics: RunStatistics) -> Items:
    """Return what each group of users was asked for beside what it delivered."""
    loads = zip(statistics.by_group, loads_by_group(statistics), strict=True)
    shown = [(group.name, delivered(each.asked, each.delivered, group.numbers)) for group, each in loads]
    return Items([Item(f"{name}: {'; '.join(map(unbroken, parts))}") for name, parts in shown])


def _by_part(kind: str, parts: Sequence[RunPart]) -> Table:
    """Return a row for each part and operation, and one for all operations of each."""
    rows = [
        (part.name, name_of(section), *_of_line(section.lines[0], part.numbers))
        for part in parts
        for section in (*part.numbers.sections[1:], part.numbers.total)
    ]
    heads = [*columns_of(kind), Column("operation", is_number=False, short=""), *_columns()]
    return Table(heads, rows, keys=2)


def _by(statistics: RunStatistics, key: str) -> list[tuple[int, Figures]]:
    groups = statistics.groups
    return [(value, each) for (value,), each in groups.by(key).items()] if key in groups.keys else []


def figure_columns() -> list[Column]:
    """Return the columns of what :func:`figures_of` yields."""
    return [*columns_of(*_FIGURES[: -len(_LATENCIES)], texts=0), *_latency_columns()]


def figures_of(statistics: RunStatistics, figures: Figures) -> Iterator[str | Cell]:
    """Yield the cells of figures."""
    operations_, moved = rates(figures, statistics.course.window if statistics.course else None)
    yield count(figures.count)
    yield number(operations_)
    yield megabytes(moved if figures.moved else None)
    yield _errors(figures.failed)
    yield from _percentiles(figures.latency)


def _percentiles(latencies: Censored) -> Iterator[str]:
    for rank in _RANKS:
        yield bounded(latencies, rank)


def _errors(failed: int) -> str | Cell:
    return Cell(count(failed), Tone.BAD) if failed else "0"


STAGES = PartKind("Stage", "Stages", lambda run: run.stages, _stages, Detail.PAGE)
SIDES = PartKind("Side", "Sides", lambda run: run.sides, _sides, Detail.PAGE)
GROUPS = PartKind("Group", "Groups of users", lambda run: run.by_group, groups)

#: In the order of reports.
PART_KINDS = (STAGES, SIDES, GROUPS)
