"""One run of several that differ in one value: users, rate, size or workers."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from ssbench.capacity.variables import Variable
from ssbench.errors import UsageError
from ssbench.scenario.model import Scenario
from ssbench.scenario.reading import override
from ssbench.statistics import Interval, RunStatistics

#: A worker that used more of its core than this was itself the limit.
BUSY_SHARE = 0.9


@dataclass(frozen=True, slots=True)
class Step:
    """What came of a run. Times are in seconds.

    ``rate`` is operations a second, with its interval (None of runs that were too short), ``moved`` bytes a
    second. ``mean`` is of last-byte latency, and so are ``p50`` and ``p99``, but that in an open loop these
    count from when operations were due; NaN without any. ``supported`` is the highest of these ranks beyond
    which enough latencies lie, None where that holds for neither. ``users`` is how many
    operations the run was to have in flight; ``generator`` the share of its core that the busiest worker
    used, None where that is not known, and ``room`` how many operations all workers can run at once, None
    likewise. ``limits`` says in what way the load generator was the limit. ``file`` is the stat file,
    ``ended_early`` why the run ended before its time.
    """

    value: float
    seconds: float
    users: int
    rate: float
    interval: Interval | None
    moved: float
    mean: float
    p50: float
    p99: float
    count: int
    failed: int
    generator: float | None
    room: int | None = None
    limits: tuple[str, ...] = ()
    file: str = ""
    ended_early: str | None = None
    supported: int | None = 99

    @property
    def in_flight(self) -> float:
        """Little's law: how many operations were in flight on average."""
        return self.rate * self.mean

    @property
    def generator_full(self) -> bool:
        """Whether the workers could do no more, so that higher loads say nothing of the store."""
        return self.is_busy or self.lacks_room

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


def step_of(
    value: float,
    statistics: RunStatistics,
    *,
    room: int | None = None,
    file: str = "",
    ended_early: str | None = None,
) -> Step:
    """Return what came of a run."""
    total, latencies = statistics.total, statistics.total.lines[0].last_byte
    response = total.due.response if total.due.response.count else latencies
    shares = [each.cpu_share for each in statistics.fleet if each.cpu_share is not None]
    return Step(
        value=value,
        seconds=statistics.course.window.seconds if statistics.course else statistics.duration,
        users=statistics.run.scenario.user_count,
        rate=total.requests_per_second,
        interval=total.rate_interval,
        moved=total.moved_per_second,
        mean=latencies.mean,
        p50=response.percentile(50),
        p99=response.percentile(99),
        supported=max((rank for rank in (50, 99) if response.supports(rank)), default=None),
        count=total.count,
        failed=total.failed,
        generator=max(shares, default=None),
        room=room,
        limits=statistics.generator.limits,
        file=file,
        ended_early=ended_early,
    )


def scenario_with(
    scenario: Scenario, variable: Variable, value: float, seconds: float | None = None
) -> Scenario:
    """Return the scenario of a step, of another length where that is given; raises UsageError."""
    if scenario.stages:
        raise UsageError(f"the scenario has stages of its own; it cannot be run with other {variable.value}")
    match variable:
        case Variable.USERS:
            return override(scenario, user_count=round(value), run_seconds=seconds)
        case Variable.RATE:
            return override(scenario, rate=float(value), run_seconds=seconds)
        case Variable.SIZE:
            size = round(value)
            classes = (replace(each, size_min=size, size_max=size) for each in scenario.size_classes)
            scenario = replace(scenario, size_classes=tuple(classes))
    return override(scenario, run_seconds=seconds)


def gain(before: Step, after: Step) -> tuple[float, float | None]:
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
