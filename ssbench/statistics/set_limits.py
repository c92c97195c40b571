"""Limits that are set in the Swift that a run started, where the run met them.

What was measured is then the setting, and nothing of what the servers can do. Swift's ``ratelimit`` bounds
PUT, POST, COPY and DELETE of objects in each container (``container_ratelimit_SIZE``: from so many objects
on). A store whose own speed is near the setting writes as much; but a limit hands out as many writes in each
second as in any other, where what servers do varies. Without that the limit may have been met.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from ssbench.document.columns import format_plural
from ssbench.document.units import format_number
from ssbench.scenario.operations import Effect
from ssbench.statistics.by_second import merge_seconds
from ssbench.statistics.confidence import Series
from ssbench.statistics.run_statistics import RunStatistics

#: What settings are called that limit the writes in a container.
_CONTAINER_LIMIT = "ratelimit.container_ratelimit_"
_LIMITED_METHODS = frozenset({"PUT", "POST", "DELETE", "COPY"})

#: From this share of what all containers may take on the limit is met; up to this one, which the first
#: seconds may exceed, it holds.
_MET_SHARE, _HELD_SHARE = 0.8, 1.15

#: For so many seconds Swift lets a container make up for what it did not take (``rate_buffer_seconds``).
#: Where a limit is met, half of the seconds after that have as many writes as it lets pass, to within half a
#: write or this part of what chance does (the root of their number).
_BUFFER_SECONDS, _CHANCE_SHARE, _LEAST_AWAY = 5, 0.2, 0.5

_UNSURE_TEXT = "or that is what its servers can do, since the number of writes varies from second to second"


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
    by_second = merge_seconds(each.lines[0].by_second for each in written)
    counts = by_second.series(numbers.start or 0.0, numbers.end or 0.0)[0][_BUFFER_SECONDS:]
    is_long = len(counts) >= _BUFFER_SECONDS
    rate = float(np.mean(counts)) if is_long else sum(each.requests_per_second for each in written)
    low, high = min(allowed), max(allowed)
    if _MET_SHARE * containers * low <= rate <= _HELD_SHARE * containers * high:
        is_shown = is_long and _is_held_back(counts, containers * low, containers * high)
        each = " to ".join(format_number(limit) for limit in dict.fromkeys((low, high)))
        yield (
            f"the limit that is set {'was' if is_shown else 'was perhaps'} met: ratelimit{whose} lets each"
            f" container take {each} writes a second ({names[0].partition('.')[2]}), and"
            f"{f' after {_BUFFER_SECONDS} s' if is_long else ''} {format_number(rate)}/s went to"
            f" {format_plural(containers, 'container')}; "
            + ("what its servers can do was not measured" if is_shown else _UNSURE_TEXT)
        )


def _is_held_back(counts: Series, low: float, high: float) -> bool:
    """Whether most seconds have as many writes as a limit between these two lets pass."""
    away = float(np.median(np.abs(counts - counts.clip(low, high))))
    return away <= max(_LEAST_AWAY, _CHANCE_SHARE * math.sqrt(high))


def _list_allowed(limits: Mapping[int, float], objects: float) -> list[float]:
    """Return the rates that a container may take while it gets so many objects, nothing without a limit.

    ``limits`` are by the number of objects from which on they hold; in between they are on a line.
    """
    sizes = sorted(limits)
    reached = [limits[size] for size in sizes if size <= objects]
    if reached:
        reached.append(float(np.interp(objects, sizes, [limits[size] for size in sizes])))
    return reached
