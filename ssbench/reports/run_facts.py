"""Facts of a run: its head, causes of errors, slowest operations, waits, warnings, parameters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ssbench.document.columns import format_plural
from ssbench.document.elements import Cell, Column, Element, Item, Items, Table, drop_columns, make_columns
from ssbench.document.units import (
    format_count,
    format_milliseconds,
    format_percent,
    format_run_length,
    format_seconds,
)
from ssbench.reports import load
from ssbench.reports.key_figures import format_object_path, format_utc
from ssbench.results.schema import NO_WORKER
from ssbench.scenario.operation_table import OPERATIONS
from ssbench.statistics import waits
from ssbench.statistics.causes import Cause
from ssbench.statistics.latencies import SlowResult
from ssbench.statistics.run_statistics import RunStatistics

#: The columns of the table of errors.
_CAUSE_COLUMNS = (
    Column("cause", is_number=False),
    Column("errors"),
    Column("% of all"),
    Column("ms to fail: median", short="ms to fail"),
    Column("max"),
    Column("HTTP status", is_number=False, is_whole=True),
    Column("operations", is_number=False, is_whole=True),
    Column("first transaction id", is_number=False, is_whole=True),
)


def make_run_facts(statistics: RunStatistics) -> list[str]:
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
        found.append(format_plural(scenario.accounts, "account"))
    if statistics.current:
        each = " a side" if run.sides else " each" if scenario.accounts > 1 else ""
        found.append(format_plural(scenario.containers, "container") + each)
    if run.seed is not None:
        found.append(f"seed {run.seed}")
    found.append(load.describe_load(scenario))
    hosts = {worker.host for worker in statistics.fleet if worker.host}
    workers = format_plural(len(statistics.fleet) or statistics.worker_count, "worker")
    found.append(f"{workers} on {format_plural(len(hosts), 'host')}" if hosts else workers)
    found.append(f"{format_run_seconds(statistics)} from {format_utc(statistics.start)}")
    return [*found, f"ssbench {run.version}"]


def format_run_seconds(statistics: RunStatistics) -> str:
    """Return how long the run took; with its unit."""
    return f"{format_run_length(statistics.duration)} s"


def find_run_warnings(statistics: RunStatistics) -> list[str]:
    """Return what the reader should know before relying on figures."""
    none = ["there is no result in this stat file"] if statistics.start is None else []
    return [*statistics.warnings, *none]


def make_wait_items(statistics: RunStatistics) -> Iterator[Items]:
    """Yield waits that are as long as a constant of the system."""
    yield Items([Item(waits.describe_wait(wait)) for wait in statistics.waits])


def make_error_elements(statistics: RunStatistics) -> Iterator[Element]:
    """Yield the causes of errors, of retries, and operations that could not be sent."""
    if statistics.errors:
        total = statistics.total.count + statistics.total.failed
        rows: list[Sequence[str | Cell]] = []
        for name, cause in statistics.errors.items():
            of = [
                f"{operation.name.upper()} {format_count(times)}"
                for code, times in sorted(cause.operations.items())
                if (operation := OPERATIONS.get(code))
            ]
            rows.append(
                [
                    name,
                    format_count(cause.count),
                    format_percent(cause.count / total if total else 0.0),
                    format_milliseconds(cause.times.supported_percentile(50)),
                    format_milliseconds(cause.times.maximum),
                    _statuses(cause),
                    ", ".join(of),
                    _code(cause.trans_id),
                ]
            )
        yield Table(_CAUSE_COLUMNS, rows)
    if statistics.retries:
        retries = [(name, format_count(times)) for name, times in statistics.retries.items()]
        yield Table(make_columns("cause of retries", "retries"), retries)
    if statistics.not_sendable:
        unsent = [(each.name.upper(), name, format_count(n)) for each, name, n in statistics.not_sendable]
        yield Table(make_columns("no object for", "size class", "not sent", texts=2), unsent)


def _statuses(cause: Cause) -> str:
    """Return the HTTP statuses of a cause; how often each came where there are several."""
    several = sorted((status, times) for status, times in cause.statuses.items() if status > 0)[:3]
    return ", ".join(
        f"{status}" if times == cause.count else f"{status} x {times}" for status, times in several
    )


def make_slowest_table(statistics: RunStatistics) -> Table:
    """Return the slowest operations, with transaction ids to copy."""
    rows = [_slowest_row(statistics, each) for each in statistics.slowest]
    columns = [
        Column("ms"),
        Column("operation", is_number=False),
        *make_columns("at s", "first byte ms", "bytes", "retries", "worker", texts=0),
        *make_columns("object", "transaction id", "storage URL", texts=3),
    ]
    table = Table(columns, rows, keys=2)
    return table if len(statistics.run.storage_urls) > 1 else drop_columns(table, [len(columns) - 1])


def _slowest_row(statistics: RunStatistics, slow: SlowResult) -> list[str | Cell]:
    urls = statistics.run.storage_urls
    operation = OPERATIONS.get(slow.operation)
    where = urls[slow.storage_url] if 0 <= slow.storage_url < len(urls) else ""
    begun = slow.completed - slow.latency - (statistics.start or 0.0)
    return [
        format_milliseconds(slow.latency),
        operation.name.upper() if operation else str(slow.operation),
        format_seconds(begun),
        format_milliseconds(slow.first_byte),
        format_count(slow.size) if slow.size >= 0 else "-",
        str(slow.retries),
        "-" if slow.worker == NO_WORKER else str(slow.worker),
        format_object_path(statistics.run, slow),
        _code(slow.trans_id),
        where,
    ]


def _code(text: str | None) -> Cell:
    return Cell(text or "", is_code=True)
