"""The table of the summary, and what it is broken down by: size classes, workers, storage URLs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from ssbench.document.columns import cut, paragraph, plural, too_few, width
from ssbench.figures.units import AT_LEAST, count, megabytes, rate
from ssbench.operations import Operation
from ssbench.printable import printable
from ssbench.reports.figures import bounded
from ssbench.results import NO_WORKER
from ssbench.statistics import Figures, Line, RunStatistics, Section
from ssbench.statistics.censored import Censored, known

#: The percentiles of the table; 100 is the maximum.
RANKS = (50, 95, 99, 99.9, 100)

_LABEL = 8
#: More workers than this are counted; --csv and an export have all of them.
_MOST_ROWS = 64

_HEAD = (
    f"{'':<{_LABEL}}{'ops':>10}{'%':>4}{'errors':>8}{'ops/s':>9}{'MB/s':>7} |"
    f"{'ms: p50':>8}{'p95':>6}{'p99':>6}{'p99.9':>6}{'max':>6}"
)


@dataclass(frozen=True, slots=True)
class Row:
    """The figures of a row. ``share`` is of all operations that ended, ``moved`` bytes a second.

    ``latencies`` are as users met them: since operations were due in an open loop.
    """

    count: int
    failed: int
    share: float
    rate: float
    moved: float | None
    latencies: Censored


def of_section(section_: Section, statistics: RunStatistics) -> Row:
    """Return the row of an operation, or of all of them."""
    row = of_line(section_.lines[0], section_.operation, statistics)
    if section_.operation is None and not all(_knows_bytes(each) for each in statistics.sections[1:]):
        return replace(row, moved=None)
    return row


def _knows_bytes(each: Section) -> bool:
    """Whether it is known how many bytes an operation moved; the reads of old files lack them."""
    return bool(each.moved or not each.count or (each.operation and not each.operation.returns_object))


def of_line(line: Line, operation: Operation | None, statistics: RunStatistics) -> Row:
    """Return the row of a size class of an operation."""
    total = statistics.total
    everything = total.count + total.failed
    return Row(
        line.count,
        line.failed,
        (line.count + line.failed) / everything if everything else 0.0,
        line.requests_per_second,
        line.moved_per_second if line.moved else None,
        line.latency,
    )


def table(rows: Iterable[tuple[str, Row]], head: str = "") -> Iterator[str]:
    """Yield the head of the table and a line for each row; long labels have a line of their own."""
    yield head + _HEAD[len(head) :]
    for name, row in rows:
        label = printable(name)
        if width(label) >= _LABEL:
            yield from paragraph(label)
            label = ""
        yield label + " " * (_LABEL - width(label)) + _figures(row)


def not_known(latencies: Iterable[Censored]) -> Iterator[str]:
    """Yield why the table has ``-`` in place of a percentile, or ``>`` before one, where it has."""
    measured = [each for each in latencies if each.count]
    if any(each.waited.count for each in measured):
        yield f"{AT_LEAST}: at least; some operations that were due never began"
    ranks = [rank for rank in RANKS if not all(each.supports(rank) for each in measured)]
    if ranks:
        yield too_few(ranks)


def _figures(row: Row) -> str:
    values = [bounded(row.latencies, rank, AT_LEAST) for rank in RANKS]
    latencies = "".join(f"{value:>{columns}}" for value, columns in zip(values, (8, 6, 6, 6, 6), strict=True))
    return (
        f"{count(row.count, 10):>10}{100 * row.share:>4.0f}{count(row.failed, 7):>8}"
        f"{rate(row.rate, 8):>9}{megabytes(row.moved, 6):>7} |{latencies}"
    )


def section(statistics: RunStatistics) -> Iterator[str]:
    """Yield what the summary has besides with ``-v``."""
    yield from _classes(statistics)
    yield from _last_attempts(statistics)
    yield from _sites(statistics)
    yield from _workers(statistics)
    yield from _storage_urls(statistics)


def _classes(statistics: RunStatistics) -> Iterator[str]:
    for each in statistics.sections[1:]:
        if len(each.lines) > 2 and each.operation:
            rows = (
                (line.size_class or "", of_line(line, each.operation, statistics)) for line in each.lines[1:]
            )
            yield from table(rows, each.operation.name.upper())


def _last_attempts(statistics: RunStatistics) -> Iterator[str]:
    """Yield the latencies of last attempts, of operations that were more in some cases."""
    rows = [
        (
            each.operation.name.upper() if each.operation else "ALL",
            replace(of_section(each, statistics), latencies=known(each.lines[0].last_attempt)),
        )
        for each in (*statistics.sections[1:], statistics.total)
        if each.lines[0].last_attempt.mean < each.lines[0].last_byte.mean
    ]
    if rows:
        yield from table(rows, "LAST ATTEMPT")


def _of_figures(figures: Figures, statistics: RunStatistics) -> Row:
    total, course = statistics.total, statistics.course
    everything = total.count + total.failed
    window = course.window if course else None
    return Row(
        figures.count,
        figures.failed,
        (figures.count + figures.failed) / everything if everything else 0.0,
        window.per_second(figures.within.count) if window else float("nan"),
        window.per_second(figures.within.moved) if window and figures.moved else None,
        figures.latency,
    )


def _workers(statistics: RunStatistics) -> Iterator[str]:
    if "worker" not in statistics.groups.keys or not statistics.current:
        return
    facts = {worker.worker_id: worker for worker in statistics.fleet}
    rows = []
    for (worker_id,), figures in statistics.groups.by("worker").items():
        fact = facts.get(worker_id)
        label = "worker ?" if worker_id == NO_WORKER else f"worker {worker_id}"
        if fact is not None:
            label += f" on {cut(fact.host, 30)}" if fact.host else ""
            label += f", ssbench {fact.version}" if fact.version else ""
            label += "" if fact.cpu_share is None else f", {fact.cpu_share:.0%} of a core"
            label += "" if fact.lag_p99 is None else f", lag p99 up to {1000 * fact.lag_p99:g} ms"
        rows.append((label, _of_figures(figures, statistics)))
    if rows:
        yield from table(rows[:_MOST_ROWS], "WORKERS")
    if len(rows) > _MOST_ROWS:
        yield f"  and {len(rows) - _MOST_ROWS:,} more workers"


def _sites(statistics: RunStatistics) -> Iterator[str]:
    names = {worker.worker_id: worker.site for worker in statistics.fleet}
    if "worker" not in statistics.groups.keys or not any(names.values()):
        return
    rows = []
    for name, figures in statistics.groups.merged("worker", names).items():
        workers = plural(sum(site == name for site in names.values()), "worker")
        rows.append((f"{cut(name, 40)}, {workers}", _of_figures(figures, statistics)))
    yield from table(rows, "SITES")


def _storage_urls(statistics: RunStatistics) -> Iterator[str]:
    urls = statistics.run.storage_urls
    if "storage_url" not in statistics.groups.keys or not urls:
        return
    rows = [
        (urls[place] if 0 <= place < len(urls) else "not known", _of_figures(figures, statistics))
        for (place,), figures in statistics.groups.by("storage_url").items()
    ]
    yield from table(rows, "URLS")
