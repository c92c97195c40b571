"""The table, and the sections after it.

The table has the layout that ssbench 0.3.9 printed, to the last space, because scripts read it.
What later versions have to say comes in sections of its own after it, and in the summary.
"""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from ssbench.document import View
from ssbench.document.text import section as section_lines
from ssbench.operations import OPERATIONS
from ssbench.printable import printable
from ssbench.reports import by_group, cluster, confidence, key_figures, load, plan, stages
from ssbench.reports.figures import rank, utc
from ssbench.reports.options import ReportOptions
from ssbench.scenario.model import CRUD, Scenario
from ssbench.scenario.owner import why_replaced
from ssbench.statistics import Latencies, RunStatistics, Section, waits

_INDENT = " " * 7
#: Columns beside it, as other sections have.
_BESIDE = 93

_UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")

#: Options of run-scenario that change what counts as a failure, and their defaults.
_REQUEST_OPTIONS = {"request_timeout": None, "retries": 10, "retry_404": 0}


def table(statistics: RunStatistics, options: ReportOptions) -> str:
    """Return the table of ssbench 0.3.9, and further percentiles after it."""
    return _joined([*_table(statistics, options), *key_figures.percentiles(statistics, options.more)])


def report(statistics: RunStatistics, options: ReportOptions) -> str:
    """Return the table and all sections after it."""
    lines = [*_table(statistics, options)]
    if statistics.current:
        lines += [
            *plan.section(statistics),
            *key_figures.section(statistics),
            *load.section(statistics),
            *stages.section(statistics),
            *by_group.section(statistics),
            *confidence.section(statistics),
            *_errors(statistics),
            *_not_done(statistics),
            *_retries(statistics),
            *_waits(statistics),
        ]
        lines += _request_options(statistics.run.options)
        lines += _notes(statistics)
        if found := cluster.section(statistics.cluster):
            title, *shown = section_lines(found, View(columns=_BESIDE))
            lines += ["", title, *(_INDENT + line for line in shown if line)]
    lines += key_figures.percentiles(statistics, options.more)
    lines += _warnings(statistics)
    return _joined(lines)


def _joined(lines: Iterable[str]) -> str:
    return "".join(printable(line) + "\n" for line in lines)


def _table(statistics: RunStatistics, options: ReportOptions) -> Iterator[str]:
    yield from _head(statistics)
    yield from _scenario(statistics.run.scenario)
    for section in statistics.sections:
        yield from _section(section, options.percentile)
    spread = statistics.workers
    yield (
        f"Distribution of requests per worker-ID: {spread.minimum:6.3f} - {spread.maximum:7.3f} "
        f"(avg: {spread.mean:7.3f}; stddev: {spread.deviation:7.3f})"
    )


def _head(statistics: RunStatistics) -> Iterator[str]:
    run = statistics.run
    yield ""
    yield f"{run.scenario.name}  (generated with ssbench version {run.version})"
    yield (
        f"Worker count: {statistics.worker_count:3d}   Concurrency: {run.scenario.user_count:3d}  "
        f"Ran {utc(statistics.start)} to {utc(statistics.end)} ({int(statistics.duration)}s)"
    )
    if run.scenario.delete_after:
        most = f" to {run.scenario.delete_after_most}" if run.scenario.delete_after_most else ""
        yield f"Object expiration (X-Delete-After): {run.scenario.delete_after}{most} (sec)"
    yield ""


def _scenario(scenario: Scenario) -> Iterator[str]:
    """What the scenario asks for, which is not what happened."""
    columns = {name: name[0].upper() for name in CRUD}
    for operation in OPERATIONS.drawn:  # those that only this scenario has get a column of their own
        if operation.name not in CRUD and any(
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
        sizes = _size(size_class.size_min)
        if size_class.size_max != size_class.size_min:
            sizes += f" - {_size(size_class.size_max)}"
        name = size_class.name if size_class.shape is None else f"{size_class.name} ({size_class.shape})"
        yield f"{100 * share:3.0f}%   % {_columns(percents, widths)}      {sizes:15s}  {name}"
    yield "-" * 69
    yield f"         {_columns(average, widths)}      CRUD weighted average"
    yield ""


def _percents(weights: Mapping[str, float], names: Iterable[str]) -> list[float]:
    """Return the percentage of each operation among all of them."""
    total = sum(weights.values())
    return [100 * weights.get(name, 0.0) / total if total else 0.0 for name in names]


def _columns(percents: list[float], widths: list[int]) -> str:
    return "  ".join(f"{percent:{width}.0f}" for percent, width in zip(percents, widths, strict=True))


def _size(size: int) -> str:
    """Return a number of bytes in the smallest decimal unit that takes three digits, halves rounded up."""
    rounded = [(2 * size + 1000**power) // (2 * 1000**power) for power in range(len(_UNITS))]
    power = next((power for power, number in enumerate(rounded) if number < 1000), len(_UNITS) - 1)
    return f"{rounded[power]:3d} {_UNITS[power]:>2}"


def _section(section: Section, percentile: float) -> Iterator[str]:
    yield section.operation.name.upper() if section.operation else "TOTAL"
    yield (
        f"       Count: {section.count:5d} ({section.failed:5d} error; {section.retries:5d} retries: "
        f"{section.retry_rate:5.2f}%)  Average requests per second: {section.requests_per_second:5.1f}"
    )
    label = f"{rank(percentile)}%-ile"
    yield f"{'':28}min       max      avg      std_dev  {label:<26}Worst latency TX ID"
    for line in section.lines:
        which = "all obj sizes" if line.size_class is None else f"{line.size_class:>8} objs"
        yield f"       First-byte latency: {_latencies(line.first_byte, percentile, which)}"
        yield f"       Last-byte  latency: {_latencies(line.last_byte, percentile, which)}"
    yield ""


def _latencies(latencies: Latencies, percentile: float, which: str) -> str:
    slowest = latencies.slowest.trans_id if latencies.slowest else ""
    return (
        f"{_seconds(latencies.minimum, 6)} - {_seconds(latencies.maximum, 7)}  "
        f"{_seconds(latencies.mean, 7)}  ({_seconds(latencies.deviation, 7)})  "
        f"{_seconds(latencies.percentile(percentile), 7)}  ({which})  {slowest}"
    )


def _seconds(seconds: float, width: int) -> str:
    return f"{'N/A  ':>{width}}" if math.isnan(seconds) else f"{seconds:{width}.3f}"


def _errors(statistics: RunStatistics) -> Iterator[str]:
    causes = statistics.errors
    if causes:
        yield from ("", "Causes of errors")
        width = max(len(name) for name in causes)
        yield f"       Count  {'Cause':<{width}}  TX ID of the first"
        for name, cause in causes.items():
            yield f"       {cause.count:5d}  {name:<{width}}  {cause.trans_id or ''}".rstrip()


def _not_done(statistics: RunStatistics) -> Iterator[str]:
    """Operations whose worker vanished, and those that no object existed for."""
    rows: dict[str, list[int]] = {}
    for section in statistics.sections:
        if section.operation and section.lost:
            rows[section.operation.name] = [section.lost, 0]
    for operation, _, times in statistics.not_sendable:
        rows.setdefault(operation.name, [0, 0])[1] += times
    if rows:
        yield from ("", "Operations that were not done", "        Lost  Not sendable")
        for name, (lost, not_sendable) in rows.items():
            yield f"       {lost:5d}  {not_sendable:12d}  {name.upper()}"


def _retries(statistics: RunStatistics) -> Iterator[str]:
    if statistics.retries:
        yield from ("", "Causes of retries", "       Count  Cause")
        for name, times in statistics.retries.items():
            yield f"       {times:5d}  {name}"


def _waits(statistics: RunStatistics) -> Iterator[str]:
    if statistics.waits:
        yield from ("", waits.TITLE)
        for wait in statistics.waits:
            yield from textwrap.wrap(
                waits.sentence(wait), 99, initial_indent=" " * 7, subsequent_indent=" " * 9
            )


def _request_options(options: Mapping[str, object]) -> Iterator[str]:
    """What a request was allowed, where that was not the default."""
    changed = [name for name, default in _REQUEST_OPTIONS.items() if options.get(name, default) != default]
    if changed:
        yield from ("", "Request options")
        for name in changed:
            yield f"       --{name.replace('_', '-')} {options[name]}"


def _notes(statistics: RunStatistics) -> Iterator[str]:
    count = Counter({name: int(number) for name, number in statistics.counters.items()})
    uploaded, replaced, reused = (count[f"initial_{what}"] for what in ("uploaded", "replaced", "reused"))
    notes = []
    if statistics.run.options.get("noop"):
        notes.append("no-op run: nothing was sent to Swift; bytes are those that would have been moved")
    if uploaded or replaced or reused:
        verified = bool(statistics.run.options.get("verify"))
        why = why_replaced(replaced, count["initial_of_others"], verified=verified)
        why = f" ({why})" if why else ""
        notes.append(f"initial objects: {uploaded} uploaded, {replaced} replaced{why}, {reused} reused")
    if count["initial_sampled"]:
        notes.append(
            f"initial objects: as prepared; {count['initial_sampled']} of them, drawn at random, looked at"
        )
    if count["existing"]:
        skipped = count["existing_skipped"]
        notes.append(
            f"{count['existing']} objects that were there already were only read: nothing was prepared or"
            f" written; {skipped} others skipped: their sizes do not fit"
        )
    if count["waited"]:
        notes.append(f"small population: {count['waited']} operations waited for a free object")
    if count["reused"]:
        notes.append(f"{count['reused']} reads were for what had been read before, as the scenario asks")
    if count["redrawn"]:
        notes.append(f"{count['redrawn']} operations took another object: the one drawn was in use")
    if count["not_begun"]:
        notes.append(f"{count['not_begun']} operations still waited for a free object at the end; not sent")
    if count["passed_on"]:
        notes.append(f"{count['passed_on']} operations of lost workers had not begun; others did them")
    if count["expired"]:
        notes.append(f"{count['expired']} objects were no longer used: their delete_after had passed")
    if notes:
        yield from ("", "Notes", *(f"       {note}" for note in notes))


def _warnings(statistics: RunStatistics) -> Iterator[str]:
    warnings = list(statistics.warnings)
    if statistics.start is None:
        warnings.append("there is no result in this stat file")
    if warnings:
        yield from ("", "Warnings")
        for warning in warnings:
            yield f"       {warning}"
