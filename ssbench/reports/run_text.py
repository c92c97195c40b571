"""The reports of a run as text: the table of ssbench 0.3.9, the full report after it, and the summary.

The table is that of ssbench 0.3.9 to the last space, because scripts read it. The others are documents
(:mod:`.run_document`). The summary, some 25 lines where nothing went wrong, is what a person reads first: it
stands before the table, and after the long sections of a full report, so that it remains on the screen.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest

from ssbench.base.printable import make_printable, make_printable_lines
from ssbench.document.renderers import text
from ssbench.reports.key_figures import (
    format_rank,
    format_utc,
)
from ssbench.reports.run_document import make_full_document, make_percentiles_document, make_summary_document
from ssbench.reports.writing import ReportOptions
from ssbench.scenario.key_rules import CRUD_OPERATIONS
from ssbench.scenario.model import Scenario
from ssbench.statistics.latencies import Latencies
from ssbench.statistics.run_statistics import FiguresSection, RunStatistics

_SIZE_UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")


def make_old_table(statistics: RunStatistics, options: ReportOptions) -> str:
    """Return the table."""
    return "".join(make_printable(line) + "\n" for line in _table_parts(statistics, options))


def _table_parts(statistics: RunStatistics, options: ReportOptions) -> Iterator[str]:
    yield from _table_head(statistics)
    scenario = statistics.run.scenario
    for part, group in zip_longest(scenario.parts, scenario.groups):
        if group:  # which ssbench 0.x did not have: one has other operations than the next
            yield f"Group of users: {group.name}"
        yield from _scenario_lines(part)
    for section in statistics.sections:
        yield from _section_lines(section, options.percentile)
    spread = statistics.workers
    yield (
        f"Distribution of requests per worker-ID: {spread.minimum:6.3f} - {spread.maximum:7.3f} "
        f"(avg: {spread.mean:7.3f}; stddev: {spread.deviation:7.3f})"
    )


def _table_head(statistics: RunStatistics) -> Iterator[str]:
    run = statistics.run
    yield ""
    yield f"{run.scenario.name}  (generated with ssbench version {run.version})"
    yield (
        f"Worker count: {statistics.worker_count:3d}   Concurrency: {run.scenario.user_count:3d}  "
        f"Ran {format_utc(statistics.start)} to {format_utc(statistics.end)} ({int(statistics.duration)}s)"
    )
    if run.scenario.delete_after:
        yield f"Object expiration (X-Delete-After): {run.scenario.expiry} (sec)"
    yield ""


def _scenario_lines(scenario: Scenario) -> Iterator[str]:
    """What the scenario asks for, which is not what happened."""
    columns = {name: name[0].upper() for name in CRUD_OPERATIONS}
    for (
        operation
    ) in scenario.operation_table.drawn:  # those that only this scenario has get a column of their own
        if operation.name not in CRUD_OPERATIONS and any(
            each.weights.get(operation.name) for each in scenario.size_classes
        ):
            columns[operation.name] = operation.name.upper()
    widths = [max(2, len(title)) for title in columns.values()]
    titles = "  ".join(f"{title:>{width}}" for title, width in zip(columns.values(), widths, strict=True))
    yield f"% Ops   {titles}       Size Range       Size Name"
    whole = sum(size_class.share for size_class in scenario.size_classes)
    average = [0.0 for _ in columns]
    for size_class in scenario.size_classes:
        share = size_class.share / whole if whole else 0.0
        percents = _percents(size_class.weights, columns)
        average = [sum_ + share * percent for sum_, percent in zip(average, percents, strict=True)]
        sizes = _format_size(size_class.size_min)
        if size_class.size_max != size_class.size_min:
            sizes += f" - {_format_size(size_class.size_max)}"
        yield f"{100 * share:3.0f}%   % {_columns(percents, widths)}      {sizes:15s}  {size_class.title}"
    yield "-" * 69
    yield f"         {_columns(average, widths)}      CRUD weighted average"
    yield ""


def _percents(weights: Mapping[str, float], names: Iterable[str]) -> list[float]:
    """Return the percentage of each operation among all of them."""
    total = sum(weights.values())
    return [100 * weights.get(name, 0.0) / total if total else 0.0 for name in names]


def _columns(percents: list[float], widths: list[int]) -> str:
    return "  ".join(f"{percent:{width}.0f}" for percent, width in zip(percents, widths, strict=True))


def _format_size(size: int) -> str:
    """Return a number of bytes in the smallest decimal unit that takes three digits, halves rounded up."""
    rounded = [(2 * size + 1000**power) // (2 * 1000**power) for power in range(len(_SIZE_UNITS))]
    power = next((power for power, number in enumerate(rounded) if number < 1000), len(_SIZE_UNITS) - 1)
    return f"{rounded[power]:3d} {_SIZE_UNITS[power]:>2}"


def _section_lines(section: FiguresSection, percentile: float) -> Iterator[str]:
    yield section.operation.name.upper() if section.operation else "TOTAL"
    retries = section.counted["retries"]
    yield (
        f"       Count: {section.count:5d} ({section.failed:5d} error; {retries:5d} retries: "
        f"{section.retry_rate:5.2f}%)  Average requests per second: {section.requests_per_second:5.1f}"
    )
    label = f"{format_rank(percentile)}%-ile"
    yield f"{'':28}min       max      avg      std_dev  {label:<26}Worst latency TX ID"
    for line in section.lines:
        which = "all obj sizes" if line.size_class is None else f"{line.size_class:>8} objs"
        yield f"       First-byte latency: {_latency_line(line.first_byte, percentile, which)}"
        yield f"       Last-byte  latency: {_latency_line(line.last_byte, percentile, which)}"
    yield ""


def _latency_line(latencies: Latencies, percentile: float, which: str) -> str:
    slowest = latencies.slowest.trans_id if latencies.slowest else ""
    return (
        f"{_format_seconds(latencies.minimum, 6)} - {_format_seconds(latencies.maximum, 7)}  "
        f"{_format_seconds(latencies.mean, 7)}  ({_format_seconds(latencies.deviation, 7)})  "
        f"{_format_seconds(latencies.percentile(percentile), 7)}  ({which})  {slowest}"
    )


def _format_seconds(seconds: float, width: int) -> str:
    return f"{'N/A  ':>{width}}" if math.isnan(seconds) else f"{seconds:{width}.3f}"


# -- Reports ---------------------------------------------------------------------------------------


def make_table_report(statistics: RunStatistics, options: ReportOptions) -> str:
    """Return the table of ssbench 0.3.9, and further percentiles after it."""
    return _join_texts(
        make_printable_lines(make_old_table(statistics, options)),
        text.render(make_percentiles_document(statistics, options), options),
    )


def make_sections_report(statistics: RunStatistics, options: ReportOptions) -> str:
    """Return the table and all sections after it."""
    return _join_texts(
        make_printable_lines(make_old_table(statistics, options)),
        text.render(make_full_document(statistics, options), options),
    )


def make_summary_report(statistics: RunStatistics, options: ReportOptions) -> str:
    """Return the summary."""
    return text.render(make_summary_document(statistics, options), options)


def make_summary_and_table(statistics: RunStatistics, options: ReportOptions) -> str:
    """Return the summary and the table, which begins with an empty line."""
    return make_summary_report(statistics, options) + make_table_report(statistics, options)


def make_full_report(statistics: RunStatistics, options: ReportOptions) -> str:
    """Return the table with all sections, and the summary."""
    return _join_texts(make_sections_report(statistics, options), make_summary_report(statistics, options))


def _join_texts(above: str, below: str) -> str:
    return f"{above}\n{below}" if below else above
