"""Facts of a run: its head, causes of errors, slowest operations, waits, warnings, parameters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ssbench.document.columns import plural
from ssbench.document.elements import Cell, Column, Element, Item, Items, Table, columns_of, without
from ssbench.document.units import count, milliseconds, percent, run_length, seconds
from ssbench.reports import load
from ssbench.reports.key_figures import object_path, utc
from ssbench.results.schema import NO_WORKER
from ssbench.scenario.operation_table import OPERATIONS
from ssbench.statistics import waits
from ssbench.statistics.causes import Cause
from ssbench.statistics.latencies import Slowest
from ssbench.statistics.run_statistics import RunStatistics

#: The columns of the table of errors.
_COLUMNS = (
    Column("cause", is_number=False),
    Column("errors"),
    Column("% of all"),
    Column("ms to fail: median", short="ms to fail"),
    Column("max"),
    Column("HTTP status", is_number=False, is_whole=True),
    Column("operations", is_number=False, is_whole=True),
    Column("first transaction id", is_number=False, is_whole=True),
)


def facts(statistics: RunStatistics) -> list[str]:
    """Return what stands at the head of a report: where, with which load, when, for how long."""
    run, scenario = statistics.run, statistics.run.scenario
    sides = run.sides_as_given
    found = []
    if sides:
        found.append(f"two sides, {' and '.join(sides)}: figures are of both together")
    if run.options.get("noop"):
        found.append("no-op run: nothing was sent to Swift")
    elif run.storage_urls and not any("://" in each for each in sides):
        more = len(run.storage_urls) - 1
        found.append(f"{run.storage_urls[0]}{f' and {more} more' if more else ''}")
    if scenario.policy:
        found.append(f"policy {scenario.policy}")
    if scenario.accounts > 1:
        found.append(plural(scenario.accounts, "account"))
    if statistics.current:
        each = " a side" if run.sides else " each" if scenario.accounts > 1 else ""
        found.append(plural(scenario.containers, "container") + each)
    if run.seed is not None:
        found.append(f"seed {run.seed}")
    found.append(load.words(scenario))
    hosts = {worker.host for worker in statistics.fleet if worker.host}
    workers = plural(len(statistics.fleet) or statistics.worker_count, "worker")
    found.append(f"{workers} on {plural(len(hosts), 'host')}" if hosts else workers)
    found.append(f"{seconds_of(statistics)} from {utc(statistics.start)}")
    return [*found, f"ssbench {run.version}"]


def seconds_of(statistics: RunStatistics) -> str:
    """Return how long the run took; with its unit."""
    return f"{run_length(statistics.duration)} s"


def warnings_of(statistics: RunStatistics) -> list[str]:
    """Return what the reader should know before relying on figures."""
    none = ["there is no result in this stat file"] if statistics.start is None else []
    return [*statistics.warnings, *none]


def waits_of(statistics: RunStatistics) -> Iterator[Items]:
    """Yield waits that are as long as a constant of the system."""
    yield Items([Item(waits.sentence(wait)) for wait in statistics.waits])


def errors(statistics: RunStatistics) -> Iterator[Element]:
    """Yield the causes of errors, of retries, and operations that could not be sent."""
    if statistics.errors:
        total = statistics.total.count + statistics.total.failed
        rows: list[Sequence[str | Cell]] = []
        for name, cause in statistics.errors.items():
            of = [
                f"{operation.name.upper()} {count(times)}"
                for code, times in sorted(cause.operations.items())
                if (operation := OPERATIONS.get(code))
            ]
            rows.append(
                [
                    name,
                    count(cause.count),
                    percent(cause.count / total if total else 0.0),
                    milliseconds(cause.times.supported_percentile(50)),
                    milliseconds(cause.times.maximum),
                    _statuses(cause),
                    ", ".join(of),
                    _code(cause.trans_id),
                ]
            )
        yield Table(_COLUMNS, rows)
    if statistics.retries:
        retries = [(name, count(times)) for name, times in statistics.retries.items()]
        yield Table(columns_of("cause of retries", "retries"), retries)
    if statistics.not_sendable:
        unsent = [(each.name.upper(), name, count(n)) for each, name, n in statistics.not_sendable]
        yield Table(columns_of("no object for", "size class", "not sent", texts=2), unsent)


def _statuses(cause: Cause) -> str:
    """Return the HTTP statuses of a cause; how often each came where there are several."""
    several = sorted((status, times) for status, times in cause.statuses.items() if status > 0)[:3]
    return ", ".join(
        f"{status}" if times == cause.count else f"{status} x {times}" for status, times in several
    )


def slowest(statistics: RunStatistics) -> Table:
    """Return the slowest operations, with transaction ids to copy."""
    rows = [_slow(statistics, each) for each in statistics.slowest]
    columns = [
        Column("ms"),
        Column("operation", is_number=False),
        *columns_of("at s", "first byte ms", "bytes", "retries", "worker", texts=0),
        *columns_of("object", "transaction id", "storage URL", texts=3),
    ]
    table = Table(columns, rows, keys=2)
    return table if len(statistics.run.storage_urls) > 1 else without(table, [len(columns) - 1])


def _slow(statistics: RunStatistics, slow: Slowest) -> list[str | Cell]:
    urls = statistics.run.storage_urls
    operation = OPERATIONS.get(slow.operation)
    where = urls[slow.storage_url] if 0 <= slow.storage_url < len(urls) else ""
    begun = slow.completed - slow.latency - (statistics.start or 0.0)
    return [
        milliseconds(slow.latency),
        operation.name.upper() if operation else str(slow.operation),
        seconds(begun),
        milliseconds(slow.first_byte),
        count(slow.size) if slow.size >= 0 else "-",
        str(slow.retries),
        "-" if slow.worker == NO_WORKER else str(slow.worker),
        object_path(statistics.run, slow),
        _code(slow.trans_id),
        where,
    ]


def _code(text: str | None) -> Cell:
    return Cell(text or "", is_code=True)
