"""Limits that are set in the Swift that a run started, where the run met them.

What was measured is then the setting, and nothing of what the servers can do. Swift's ``ratelimit`` bounds
PUT, POST and DELETE of objects in each container (``container_ratelimit_SIZE``: from so many objects on).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ssbench.document.columns import format_plural
from ssbench.document.units import format_number
from ssbench.statistics.run_statistics import RunStatistics

#: What settings are called that limit the writes in a container.
_CONTAINER_LIMIT = "ratelimit.container_ratelimit_"
_LIMITED_METHODS = frozenset({"PUT", "POST", "DELETE"})

#: From this share of what all containers may take on the limit is met; up to this one, which the first
#: seconds may exceed, it holds.
_MET_SHARE, _HELD_SHARE = 0.8, 1.15


def describe_met_limits(statistics: RunStatistics) -> Iterator[str]:
    """Yield what limit a run met, or each of its two sides; nothing where none is known to be set."""
    run = statistics.run
    if run.scenario.groups:  # which may have containers in common
        return
    if statistics.sides:
        for side, settings in zip(statistics.sides, run.side_swifts, strict=False):
            yield from _describe(side.numbers, settings, f" of side {side.name}")
    elif run.swift_settings:
        yield from _describe(statistics, run.swift_settings, "")


def _describe(numbers: RunStatistics, settings: Mapping[str, str], whose: str) -> Iterator[str]:
    names = [name for name in settings if name.startswith(_CONTAINER_LIMIT)]
    try:
        limits = sorted({float(settings[name]) for name in names})
    except ValueError:  # Swift does not start with it
        return
    if not limits or limits[0] <= 0:
        return
    containers = numbers.run.scenario.container_count * numbers.run.scenario.accounts
    written = sum(
        section.requests_per_second
        for section in numbers.sections
        if section.operation and section.operation.method in _LIMITED_METHODS
    )
    low, high = (containers * limit for limit in (limits[0], limits[-1]))
    if _MET_SHARE * low <= written <= _HELD_SHARE * high:
        each = " to ".join(format_number(limit) for limit in dict.fromkeys((limits[0], limits[-1])))
        yield (
            f"the limit that is set was met: ratelimit{whose} lets each container take {each} writes a second"
            f" ({names[0].partition('.')[2]}), and {format_number(written)}/s went to"
            f" {format_plural(containers, 'container')}; what its servers can do was not measured"
        )
