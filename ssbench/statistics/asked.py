"""What a run was asked for, and what it delivered, in the same figures."""

from __future__ import annotations

import math

import msgspec

from ssbench.base.measures import Count, PerSecond, Seconds, Share
from ssbench.scenario.model import Scenario
from ssbench.scenario.operation_table import OPERATIONS
from ssbench.statistics.run_statistics import RunStatistics


class Load(msgspec.Struct, frozen=True, rename={"rate": "ops_per_second"}):
    """A load, as it was asked for or as it was; null for what was not asked for, or is not known.

    ``users`` is how many operations were under way at once, of an open loop and of stages at most,
    ``seconds`` for how long operations were sent. ``mix`` is the share of each operation.
    """

    rate: PerSecond | None = None
    users: float | None = None
    seconds: Seconds | None = None
    operations: Count | None = None
    mix: dict[str, Share] = {}


class GroupLoad(msgspec.Struct, frozen=True):
    """The load that a group of users was asked for, and what it was."""

    group: str
    asked: Load
    delivered: Load


def loads_by_group(statistics: RunStatistics) -> tuple[GroupLoad, ...]:
    """Return the loads of each group of users, none of a run without."""
    return tuple(
        GroupLoad(each.name, asked_load(each.numbers), delivered_load(each.numbers))
        for each in statistics.by_group
    )


def asked_load(statistics: RunStatistics) -> Load:
    """Return what the scenario asks for; of an open loop, as many operations as were due."""
    scenario, delivery = statistics.run.scenario, statistics.delivery
    by_rate = delivery is not None and not scenario.is_mixed
    rates = [each.rate for each in scenario.groups]
    return Load(
        rate=sum(each or 0.0 for each in rates) if rates and None not in rates else scenario.rate,
        users=float(scenario.user_count),
        seconds=scenario.run_seconds,
        operations=delivery.due if by_rate and delivery else scenario.operation_count or None,
        mix=asked_mix(scenario),
    )


def delivered_load(statistics: RunStatistics) -> Load:
    """Return what was done: operations that ended, those of the warm-up and failed ones too."""
    total, course, scenario = statistics.total, statistics.course, statistics.run.scenario
    ended = total.count + total.failed
    users = None
    if course and course.busy is not None and not scenario.is_open and not scenario.is_staged:
        users = course.busy * scenario.user_count
    seconds = statistics.sending
    rate = total.requests_per_second
    return Load(
        rate=rate if math.isfinite(rate) else None,
        users=users,
        seconds=statistics.duration if seconds is None else seconds,
        operations=ended + statistics.warmed_up,
        mix={
            section.operation.name: (section.count + section.failed) / ended
            for section in statistics.sections
            if section.operation and ended
        },
    )


def asked_mix(scenario: Scenario) -> dict[str, float]:
    """Return the share of each operation that a scenario asks for; nothing where each group has its own."""
    if scenario.groups:
        return {}
    files = sum(each.share for each in scenario.size_classes)
    shares: dict[str, float] = {}
    for each in scenario.size_classes:
        total = sum(each.weights.values())
        for name, weight in each.weights.items():
            if files and total and weight:
                shares[name] = shares.get(name, 0.0) + each.share / files * weight / total
    # The sum of the shares of size classes may come out as the next number above 1.
    return {each.name: min(1.0, shares[each.name]) for each in OPERATIONS.drawn if each.name in shares}
