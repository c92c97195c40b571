"""What load was asked for, and how that was kept to: a closed loop, or operations that were due; the mix.

``doc/numbers.rst`` defines response time, service time and lateness.
"""

from __future__ import annotations

from collections.abc import Iterator

from ssbench.document.columns import format_plural
from ssbench.document.elements import Element, Note, Table, make_columns
from ssbench.document.units import (
    format_count,
    format_latency,
    format_milliseconds,
    format_percent,
    format_run_length,
    format_share,
)
from ssbench.reports.key_figures import TABLE_RANKS, format_percentiles, percentile_heads
from ssbench.scenario.model import Scenario, UserGroup
from ssbench.scenario.operation_table import OPERATIONS
from ssbench.statistics.asked import asked_mix, delivered_load
from ssbench.statistics.due import LATE_START_SECONDS
from ssbench.statistics.run_statistics import RunStatistics


def make_load_notes(statistics: RunStatistics) -> Iterator[Note]:
    """Yield what was asked for: load, seed, capacity, and the mix beside what was done."""
    run = statistics.run
    if statistics.interrupted:
        yield Note(
            f"Interrupted after {format_run_length(statistics.lasted)} s: figures are of what was done until then"
        )
    kind = "open loop" if run.scenario.is_open else "closed loop"
    kind = "both" if run.scenario.is_mixed and run.scenario.groups else kind
    capacity = statistics.counters.get("capacity")
    more = f"; the workers run {format_count(round(capacity))} operations at once" if capacity else ""
    yield Note(f"Load: {kind}, {describe_load(run.scenario)}{more}")
    if run.seed is not None:
        yield Note(f"Seed: {run.seed}")
    yield from _requests(run.scenario)
    yield from _mix(statistics)


def _requests(scenario: Scenario) -> Iterator[Note]:
    """Yield what uploads consist of and which connections there are, where the scenario says so."""
    if scenario.body is not None:
        yield Note(f"Bodies: {scenario.body}")
    if scenario.metadata is not None:
        yield Note(f"Metadata of each upload: {scenario.metadata}")
    for group, part in zip(scenario.groups or ("",), scenario.parts, strict=True):
        if part.connections is not None:
            of = f" of group {group.name}" if isinstance(group, UserGroup) else ""
            yield Note(f"Connections{of}: {part.connections}")


def _mix(statistics: RunStatistics) -> Iterator[Note]:
    """Yield what share of the operations each was to be, and was; failures count as done."""
    wanted, done = asked_mix(statistics.run.scenario), delivered_load(statistics).mix
    if done and not statistics.by_group:
        names = [each.name for each in OPERATIONS.drawn if wanted.get(each.name) or done.get(each.name)]
        shares = (
            f"{name.upper()} {format_percent(wanted.get(name, 0.0))}/{format_percent(done.get(name, 0.0))}"
            for name in names
        )
        yield Note(f"Mix in %, asked for/done: {', '.join(shares)}")


def make_load_elements(statistics: RunStatistics) -> Iterator[Element]:
    """Yield how the load was kept to; nothing of a closed loop without think time."""
    scenario, due = statistics.run.scenario, statistics.total.due
    if scenario.think_time:
        yield Note(f"Think time: {scenario.think_time:g} s after each operation of a user")
    if not scenario.is_open:
        return
    began = due.lateness.count
    yield Note(
        f"Open loop: {describe_load(scenario)}"
        + (f"; due: {format_count(statistics.due)}" if statistics.due else "")
    )
    most = (
        f" ({format_share(due.late, began)}), at most {format_latency(due.lateness.maximum)}" if began else ""
    )
    yield Note(f"Began more than {LATE_START_SECONDS * 1000:g} ms late: {format_count(due.late)}{most}")
    if statistics.not_begun:
        yield Note(
            f"Due, but not begun by the end: {format_count(statistics.not_begun)} (in response times as at least)"
        )
    rows = [["ALL", format_count(began), *format_percentiles(due.lateness, TABLE_RANKS)]] if began else []
    yield Table(make_columns("Lateness in ms", "n", *percentile_heads(TABLE_RANKS)), rows)


def describe_load(scenario: Scenario) -> str:
    """Return the load that a scenario asks for in a few words."""
    if scenario.groups:
        names = ", ".join(
            f"{group.name} {describe_load(part)}"
            for group, part in zip(scenario.groups, scenario.parts, strict=True)
        )
        return f"{format_plural(len(scenario.groups), 'group')} of users: {names}"
    if scenario.stages:
        return f"{format_plural(len(scenario.stages), 'stage')}, at most {format_count(scenario.user_count)} in flight"
    if scenario.rate is None:
        return format_plural(scenario.user_count, "user")
    how = {"even": "evenly", "poisson": "Poisson"}[scenario.arrivals]
    return (
        f"{scenario.rate:g} operations a second, {how}, at most {format_count(scenario.user_count)} in flight"
    )


def make_open_loop_notes(statistics: RunStatistics) -> Iterator[Note]:
    """Yield what the summary says of an open loop besides its table, which has response times."""
    due = statistics.total.due
    if not statistics.run.scenario.is_open or not due.lateness.count:
        return
    service = statistics.total.last_byte
    parts = [
        f"p{rank:g} {format_milliseconds(seconds)}"
        for rank in (50, 99)
        if (seconds := service.supported_percentile(rank)) is not None
    ]
    if service.count:
        parts.append(f"max {format_latency(service.maximum)}")
    late = f"{format_count(due.late)} began late (max {format_latency(due.lateness.maximum)})"
    not_begun = f", {format_count(statistics.not_begun)} never" if statistics.not_begun else ""
    sent = f" From when they were sent: {' '.join(parts)}." if parts else ""
    yield Note(f"Latency counts from when operations were due.{sent} {late}{not_begun}")
