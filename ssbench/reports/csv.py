"""The report as two lines of CSV: header and data.

Columns and their order are those of ssbench 0.3.9; what is new goes to the end.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator

from ssbench.base.printable import escape_csv_cell
from ssbench.document.figures import COUNTED_FIGURES, CSV_RANKS
from ssbench.reports.key_figures import format_rank, format_utc
from ssbench.reports.writing import ReportOptions
from ssbench.statistics.latencies import Latencies
from ssbench.statistics.run_statistics import FiguresSection, RunPart, RunStatistics

CsvValue = str | float


def make_run_csv(statistics: RunStatistics, options: ReportOptions) -> str:
    """Return the report, with one percentile."""
    columns = [*_run_columns(statistics)]
    for section in statistics.sections:
        columns += _section_columns(section, options.percentile)
    if statistics.current:
        columns += _newer_columns(statistics)
        columns += _byte_columns(statistics)
        columns += _more_percentiles(statistics, [rank for rank in CSV_RANKS if rank != options.percentile])
    for group in statistics.by_group:
        columns += _group_columns(group, options.percentile)
    known = {name for name, _ in columns}
    more = [*_more_percentiles(statistics, options.more)]
    if statistics.current:
        more += _counter_columns(statistics)
    columns += [column for column in more if column[0] not in known]
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerow([escape_csv_cell(name) for name, _ in columns])
    writer.writerow([escape_csv_cell(value) if isinstance(value, str) else value for _, value in columns])
    return text.getvalue()


def _run_columns(statistics: RunStatistics) -> Iterator[tuple[str, CsvValue]]:
    run = statistics.run
    yield "scenario_name", run.scenario.name
    yield "ssbench_version", run.version
    yield "worker_count", statistics.worker_count
    yield "concurrency", run.scenario.user_count
    yield "start_time", format_utc(statistics.start)
    yield "stop_time", format_utc(statistics.end)
    yield "duration", round(statistics.duration, 6)
    yield "delete_after", str(run.scenario.delete_after)


def _group_columns(group: RunPart, percentile: float) -> Iterator[tuple[str, CsvValue]]:
    """Yield the columns of a group of users, whose names begin with its name."""
    for section in group.numbers.sections:
        for name, value in _section_columns(section, percentile):
            yield f"{group.name}_{name}", value
    yield f"{group.name}_due", group.numbers.due or 0
    yield f"{group.name}_not_begun", group.numbers.not_begun or 0


def _section_columns(section: FiguresSection, percentile: float) -> Iterator[tuple[str, CsvValue]]:
    name = _column_name(section)
    yield f"{name}_count", section.count
    yield f"{name}_errors", section.failed
    yield f"{name}_retries", section.counted["retries"]
    yield f"{name}_retry_rate", f"{section.retry_rate:.6f}"
    yield f"{name}_avg_req_per_s", round(section.requests_per_second, 6)
    for line in section.lines:
        size_class = "all" if line.size_class is None else line.size_class
        yield from _latency_columns(f"{name}_first_{size_class}", line.first_byte, percentile)
        yield from _latency_columns(f"{name}_last_{size_class}", line.last_byte, percentile)


def _latency_columns(prefix: str, latencies: Latencies, percentile: float) -> Iterator[tuple[str, CsvValue]]:
    figures = {
        "min": latencies.minimum,
        "max": latencies.maximum,
        "avg": latencies.mean,
        "std_dev": latencies.deviation,
        f"{format_rank(percentile)}_pctile": latencies.percentile(percentile),
    }
    for name, seconds in figures.items():
        # The old program put there what its text report shows, with the width that it has there.
        missing = " N/A  " if name == "min" else "  N/A  "
        yield f"{prefix}_{name}", missing if math.isnan(seconds) else round(seconds, 6)
    slowest = latencies.slowest
    yield f"{prefix}_worst_txid", (slowest.trans_id or "") if slowest else ""


def _newer_columns(statistics: RunStatistics) -> Iterator[tuple[str, CsvValue]]:
    for section in statistics.sections:
        yield f"{_column_name(section)}_lost", section.lost
    yield "not_sendable", sum(times for _, _, times in statistics.not_sendable)


def _byte_columns(statistics: RunStatistics) -> Iterator[tuple[str, CsvValue]]:
    for section in statistics.sections:
        yield f"{_column_name(section)}_bytes", section.moved
        yield f"{_column_name(section)}_bytes_per_s", round(section.moved_per_second, 6)


def _counter_columns(statistics: RunStatistics) -> Iterator[tuple[str, CsvValue]]:
    for section in statistics.sections:
        for key in COUNTED_FIGURES:
            yield f"{_column_name(section)}_{key}", section.counted[key]


def _more_percentiles(statistics: RunStatistics, ranks: Iterable[float]) -> Iterator[tuple[str, CsvValue]]:
    ranks = list(ranks)
    for section in statistics.sections:
        for line in section.lines:
            size_class = "all" if line.size_class is None else line.size_class
            for which, latencies in (("first", line.first_byte), ("last", line.last_byte)):
                for percentile in ranks:
                    seconds = latencies.percentile(percentile)
                    yield (
                        f"{_column_name(section)}_{which}_{size_class}_{format_rank(percentile)}_pctile",
                        "  N/A  " if math.isnan(seconds) else round(seconds, 6),
                    )


def _column_name(section: FiguresSection) -> str:
    return section.operation.name if section.operation else "total"


def make_requests_per_second_csv(statistics: RunStatistics, _options: ReportOptions) -> str:
    """Return a header and a line for each second, counted from the first send.

    Seconds that reach beyond the window of the run are marked as partial. Files of ssbench 0.x have the
    seconds of the clock, from that of the first completion on, and no such mark.
    """
    head = '"Seconds Since Start","Requests Completed"'
    if not statistics.current:
        rows = [f"{second},{completed}\n" for second, completed in statistics.requests_by_second]
        return f"{head}\n{''.join(rows)}"
    whole = int(statistics.course.window.seconds) if statistics.course else 0
    rows = [
        f"{second},{completed},{int(second > whole)}\n" for second, completed in statistics.requests_by_second
    ]
    return f'{head},"Partial"\n{"".join(rows)}'


def format_csv(lines: Iterable[Iterable[object]]) -> str:
    """Return lines of cells as CSV; None is an empty cell, and texts of others are escaped already."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(lines)
    return out.getvalue()
