"""One run of several that differ in one value: users, rate, size or workers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import msgspec

from ssbench.base.errors import UsageError
from ssbench.base.measures import (
    Count,
    PerhapsBytesPerSecond,
    PerhapsNumber,
    PerhapsPerSecond,
    PerhapsSeconds,
    Seconds,
    Share,
)
from ssbench.base.suggestions import did_you_mean
from ssbench.comparison.variables import GroupVariable, Variable, Varied
from ssbench.scenario.conditions import parse_condition
from ssbench.scenario.model import Scenario
from ssbench.scenario.overriding import override
from ssbench.statistics.confidence import Interval
from ssbench.statistics.due import CensoredLatencies
from ssbench.statistics.run_statistics import RunStatistics

#: A worker that used more of its core than this was itself the limit.
BUSY_SHARE = 0.9

#: The ranks of the percentiles of a step.
_PERCENTILE_RANKS = (50, 99)


#: The public names of fields that have others here.
_PUBLIC_NAMES = {
    "rate": "ops_per_second",
    "interval": "ops_interval",
    "moved": "bytes_per_second",
    "failed": "errors",
    "generator": "worker_cpu_share",
    "room": "worker_slots",
    "file": "stat_file",
}


class GroupStep(msgspec.Struct, frozen=True, rename={"rate": "ops_per_second", "interval": "ops_interval"}):
    """A group of users in the run of one value; null where too few latencies lie beyond a percentile.

    ``at_least`` are the ranks of percentiles that are lower bounds.
    """

    name: str
    rate: PerhapsPerSecond
    interval: Interval | None
    p50: PerhapsSeconds
    p99: PerhapsSeconds
    at_least: tuple[int, ...] = ()


class SweepStep(msgspec.Struct, frozen=True, rename=_PUBLIC_NAMES):
    """The run of one value; the interval of its rate is None where it was too short.

    ``mean`` is of last-byte latency, and so are ``p50`` and ``p99``, but that in an open loop these
    count from when operations were due; null where too few latencies lie beyond, ``supported`` is the highest
    of these ranks of which that does not hold. ``at_least`` are those of them that are lower bounds, because
    operations that were due never began. ``users`` is how many operations the run was to have in
    flight, ``in_flight`` how many there were on average (Little's law). The share of its core is that of the
    busiest worker, the slots are those of all workers together; None where they are not known.
    ``limits`` says in what way the load generator was the limit, ``generator_full`` whether the workers could
    do no more, so that higher loads say nothing of the store. ``ended_early`` is why the run ended before its
    time. ``groups`` is what came of each group of users.
    """

    value: float
    seconds: Seconds
    users: Count
    rate: PerhapsPerSecond
    interval: Interval | None
    moved: PerhapsBytesPerSecond
    mean: PerhapsSeconds
    p50: PerhapsSeconds
    p99: PerhapsSeconds
    count: Count
    failed: Count
    generator: Share | None
    room: Count | None = None
    limits: tuple[str, ...] = ()
    file: str = ""
    ended_early: str | None = None
    supported: int | None = 99
    in_flight: PerhapsNumber = math.nan
    generator_full: bool = False
    groups: tuple[GroupStep, ...] = ()
    at_least: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "in_flight", self.rate * self.mean)
        msgspec.structs.force_setattr(self, "generator_full", self.is_busy or self.lacks_room)

    @property
    def generator_limited(self) -> bool:
        """Whether the load generator rather than the store limited the figures, or added to them."""
        return self.generator_full or bool(self.limits)

    @property
    def is_busy(self) -> bool:
        """Whether a worker had no more of its core to use."""
        return self.generator is not None and self.generator > BUSY_SHARE

    @property
    def lacks_room(self) -> bool:
        """Whether the workers cannot run as many operations at once as there are users."""
        return self.room is not None and self.room < self.users


def make_step(
    value: float,
    statistics: RunStatistics,
    *,
    room: int | None = None,
    file: str = "",
    ended_early: str | None = None,
) -> SweepStep:
    """Return what came of a run."""
    total, latencies = statistics.total, statistics.total.lines[0].last_byte
    met = total.latency
    shares = [each.cpu_share for each in statistics.fleet if each.cpu_share is not None]
    return SweepStep(
        value=value,
        seconds=statistics.course.window.seconds if statistics.course else statistics.duration,
        users=statistics.run.scenario.user_count,
        rate=total.requests_per_second,
        interval=total.rate_interval,
        moved=total.moved_per_second,
        mean=latencies.mean,
        p50=_known(met.supported_percentile(50)),
        p99=_known(met.supported_percentile(99)),
        supported=max((rank for rank in _PERCENTILE_RANKS if met.supports(rank)), default=None),
        at_least=_lower_bound_ranks(met),
        count=total.count,
        failed=total.failed,
        generator=max(shares, default=None),
        room=room,
        limits=statistics.generator.limits,
        file=file,
        ended_early=ended_early,
        groups=tuple(_make_group_steps(statistics)),
    )


def _lower_bound_ranks(latencies: CensoredLatencies) -> tuple[int, ...]:
    """Return the ranks of percentiles that are lower bounds."""
    return tuple(
        rank
        for rank in _PERCENTILE_RANKS
        if latencies.supports(rank) and latencies.most(rank) > latencies.percentile(rank)
    )


def _known(percentile: float | None) -> float:
    return math.nan if percentile is None else percentile


def make_step_scenario(
    scenario: Scenario, variable: Varied, value: float, seconds: float | None = None
) -> Scenario:
    """Return the scenario of a step, of another length where that is given; raises UsageError."""
    if isinstance(variable, GroupVariable):
        return override(_with_group(scenario, variable, value), run_seconds=seconds)
    if scenario.stages:
        raise UsageError(f"the scenario has stages of its own; it cannot be run with other {variable.value}")
    match variable:
        case Variable.USERS:
            return override(scenario, user_count=round(value), run_seconds=seconds)
        case Variable.RATE:
            return override(scenario, rate=float(value), run_seconds=seconds)
        case Variable.SIZE:
            size = round(value)
            classes = (
                replace(each, size_min=size, size_max=size, shape=None) for each in scenario.size_classes
            )
            scenario = replace(scenario, size_classes=tuple(classes))
    return override(scenario, run_seconds=seconds)


def _with_group(scenario: Scenario, varied: GroupVariable, value: float) -> Scenario:
    """Return a scenario with so many users, or such a rate, of a group; with 0 without the group."""
    names = [each.name for each in scenario.groups]
    if varied.group not in names:
        known = (
            f"its groups of users are {', '.join(names)}" if names else "the scenario has no groups of users"
        )
        raise UsageError(f"{varied.value}: {known}{did_you_mean(varied.group, names)}")
    (group,) = (each for each in scenario.groups if each.name == varied.group)
    if group.stages:
        raise UsageError(f"{varied.value}: the group has stages of its own")
    if not value:
        if len(names) == 1:
            raise UsageError(f"{varied.value}: 0 would leave no group")
        left = tuple(each for each in scenario.groups if each is not group)
        conditions = [
            text for text in scenario.fail_if if parse_condition(text, grouped=True).group != group.name
        ]
    else:
        changed = (
            replace(group, user_count=round(value))
            if varied.variable is Variable.USERS
            else replace(group, rate=float(value))
        )
        left = tuple(changed if each is group else each for each in scenario.groups)
        conditions = [*scenario.fail_if]
    users = sum(each.user_count for each in left)
    return replace(scenario, groups=left, user_count=users, fail_if=tuple(conditions))


def _make_group_steps(statistics: RunStatistics) -> Iterator[GroupStep]:
    for group in statistics.by_group:
        total = group.numbers.total
        latencies = total.lines[0].latency
        yield GroupStep(
            group.name,
            total.requests_per_second,
            total.rate_interval,
            _known(latencies.supported_percentile(50)),
            _known(latencies.supported_percentile(99)),
            _lower_bound_ranks(latencies),
        )


def measure_gain(before: SweepStep, after: SweepStep) -> tuple[float, float | None]:
    """Return by how much the rate rose, as a share, and the upper end of the 95 % interval of that.

    The latter is None where one of the runs was too short for an interval.
    """
    if not before.rate or not math.isfinite(before.rate) or not math.isfinite(after.rate):
        return math.nan, None
    ratio = after.rate / before.rate
    if before.interval is None or after.interval is None:
        return ratio - 1, None
    errors = [step.interval.half_width / step.rate for step in (before, after) if step.interval and step.rate]
    return ratio - 1, ratio * (1 + math.hypot(*errors)) - 1
