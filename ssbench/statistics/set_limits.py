"""Limits that are set in the Swift that a run started, where the run met them.

What was measured is then the setting, and nothing of what the servers can do. Swift's ``ratelimit`` bounds
PUT, POST, COPY and DELETE of objects in each container (``container_ratelimit_SIZE``: from so many objects
on).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from ssbench.document.columns import format_plural
from ssbench.document.units import format_number
from ssbench.scenario.operations import Effect
from ssbench.statistics.run_statistics import RunStatistics

#: What settings are called that limit the writes in a container.
_CONTAINER_LIMIT = "ratelimit.container_ratelimit_"
_LIMITED_METHODS = frozenset({"PUT", "POST", "DELETE", "COPY"})

#: From this share of what all containers may take on the limit is met; up to this one, which the first
#: seconds may exceed, it holds.
_MET_SHARE, _HELD_SHARE = 0.8, 1.15


def describe_met_limits(statistics: RunStatistics) -> Iterator[str]:
    """Yield what limit a run met, or each of its two sides; nothing where none is known to be set."""
    run = statistics.run
    if run.scenario.groups:  # which may have containers in common
        return
    due = statistics.delivery
    if due is not None and not (due.undelivered or due.behind or due.climb):  # nothing was held back
        return
    if statistics.sides:
        for side, settings in zip(statistics.sides, run.side_swifts, strict=False):
            yield from _describe(side.numbers, settings, f" of side {side.name}")
    elif run.swift_settings:
        yield from _describe(statistics, run.swift_settings, "")


def _describe(numbers: RunStatistics, settings: Mapping[str, str], whose: str) -> Iterator[str]:
    names = [name for name in settings if name.startswith(_CONTAINER_LIMIT)]
    try:
        limits = {int(name.removeprefix(_CONTAINER_LIMIT)): float(settings[name]) for name in names}
    except ValueError:  # Swift does not start with it
        return
    written = [
        each for each in numbers.sections if each.operation and each.operation.method in _LIMITED_METHODS
    ]
    added = sum(each.count for each in written if each.operation and each.operation.effect is Effect.ADDS)
    scenario, containers = numbers.run.scenario, numbers.run.scenario.container_numbers
    initial = sum(each.initial_files for each in scenario.size_classes)
    allowed = _list_allowed(limits, (initial + added) / containers)
    if not allowed or min(allowed) <= 0:
        return
    rate = sum(each.requests_per_second for each in written)
    low, high = min(allowed), max(allowed)
    if _MET_SHARE * containers * low <= rate <= _HELD_SHARE * containers * high:
        each = " to ".join(format_number(limit) for limit in dict.fromkeys((low, high)))
        yield (
            f"the limit that is set was met: ratelimit{whose} lets each container take {each} writes a second"
            f" ({names[0].partition('.')[2]}), and {format_number(rate)}/s went to"
            f" {format_plural(containers, 'container')}; what its servers can do was not measured"
        )


def _list_allowed(limits: Mapping[int, float], objects: float) -> list[float]:
    """Return the rates that a container may take while it gets so many objects, nothing without a limit.

    ``limits`` are by the number of objects from which on they hold; in between they are on a line.
    """
    sizes = sorted(limits)
    reached = [limits[size] for size in sizes if size <= objects]
    if reached:
        reached.append(float(np.interp(objects, sizes, [limits[size] for size in sizes])))
    return reached
