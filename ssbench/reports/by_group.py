"""What reports show of each group of users by itself: what was asked beside what was delivered, its table."""

from __future__ import annotations

from collections.abc import Iterator

from ssbench.document.columns import cut, wrap
from ssbench.printable import printable
from ssbench.reports import breakdown, stages
from ssbench.reports.verdict import beside
from ssbench.statistics import GroupStatistics, RunStatistics
from ssbench.verdict.asked import GroupLoad, loads_by_group

#: Longer names are cut, because the columns of the table begin there.
_MOST_NAME = 14


def lines(statistics: RunStatistics) -> Iterator[str]:
    """Yield a paragraph and a table for each group, at most 80 columns wide; none of a run without groups."""
    for group, loads in zip(statistics.by_group, loads_by_group(statistics), strict=True):
        yield from wrap(_facts(group, loads))
        yield from breakdown.table(_rows(group), cut(printable(group.name), _MOST_NAME))


def section(statistics: RunStatistics) -> Iterator[str]:
    """Yield the section of the full report: the same, and the stages of groups that have some."""
    if not statistics.by_group:
        return
    yield from ("", "Groups of users", *(f"       {line}" for line in lines(statistics)))
    for group in statistics.by_group:
        of_stages = list(stages.section(group.numbers))
        if of_stages:
            yield from ("", f"Group {group.name}", *of_stages[1:])


def _facts(group: GroupStatistics, loads: GroupLoad) -> Iterator[str]:
    facts = [*beside(loads.asked, loads.delivered), f"{group.numbers.total.failed:,} errors"]
    yield f"{printable(group.name)}:"
    yield from (f"{fact};" for fact in facts[:-1])
    yield facts[-1]


def _rows(group: GroupStatistics) -> Iterator[tuple[str, breakdown.Row]]:
    numbers = group.numbers
    for each in (*numbers.sections[1:], numbers.total):
        name = each.operation.name.upper() if each.operation else "ALL"
        yield name, breakdown.of_section(each, numbers)
