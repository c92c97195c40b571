"""What the load was: a closed loop, or operations that were due; and how that was kept to.

``doc/numbers.rst`` defines response time, service time and lateness.
"""

from __future__ import annotations

from collections.abc import Iterator

from ssbench.document.columns import paragraph, plural
from ssbench.figures.units import milliseconds
from ssbench.reports.key_figures import RANKS, heads, values
from ssbench.scenario.model import Scenario
from ssbench.statistics import RunStatistics
from ssbench.statistics.due import LATE

_INDENT = " " * 7


def section(statistics: RunStatistics) -> Iterator[str]:
    """Yield the lines of the section; none of a closed loop without think time."""
    scenario, due = statistics.run.scenario, statistics.total.due
    lines: list[str] = []
    if scenario.think_time:
        lines.append(f"Think time: {scenario.think_time:g} s after each operation of a user")
    if scenario.is_open:
        began = due.lateness.count
        lines.append(f"Open loop: {words(scenario)}" + (f"; due: {statistics.due}" if statistics.due else ""))
        most = (
            f" ({100 * due.late / began:.2f} %), at most {milliseconds(due.lateness.maximum)} ms"
            if began
            else ""
        )
        lines.append(f"Began more than {LATE * 1000:g} ms late: {due.late}{most}")
        if statistics.not_begun:
            lines.append(
                f"Due, but not begun by the end: {statistics.not_begun} (in response times as at least)"
            )
        if began:
            lines += ["", f"{'Lateness in ms':<25}{'n':>9}{heads(RANKS)}"]
            lines.append(f"{'ALL':<25}{began:>9}{values(due.lateness, RANKS)}")
    if lines:
        yield from ("", "Load", *((_INDENT + line).rstrip() for line in lines))


def words(scenario: Scenario) -> str:
    """Return the load that a scenario asks for in a few words."""
    if scenario.groups:
        names = ", ".join(
            f"{group.name} {words(part)}" for group, part in zip(scenario.groups, scenario.parts, strict=True)
        )
        return f"{plural(len(scenario.groups), 'group')} of users: {names}"
    if scenario.stages:
        return f"{plural(len(scenario.stages), 'stage')}, at most {scenario.user_count:,} in flight"
    if scenario.rate is None:
        return plural(scenario.user_count, "user")
    how = {"even": "evenly", "poisson": "Poisson"}[scenario.arrivals]
    return f"{scenario.rate:g} operations a second, {how}, at most {scenario.user_count:,} in flight"


def brief(statistics: RunStatistics) -> Iterator[str]:
    """Yield what the summary says of an open loop besides its table, which has response times."""
    due = statistics.total.due
    if not statistics.run.scenario.is_open or not due.lateness.count:
        return
    service = statistics.total.last_byte
    parts = [
        f"p{rank:g} {milliseconds(seconds)}"
        for rank in (50, 99)
        if (seconds := service.supported_percentile(rank)) is not None
    ]
    if service.count:
        parts.append(f"max {milliseconds(service.maximum)} ms")
    late = f"{due.late:,} began late (max {milliseconds(due.lateness.maximum)} ms)"
    not_begun = f", {statistics.not_begun:,} never" if statistics.not_begun else ""
    sent = f" From when they were sent: {' '.join(parts)}." if parts else ""
    yield from paragraph(f"Latency counts from when operations were due.{sent} {late}{not_begun}")
