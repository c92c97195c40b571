"""A sweep: runs that differ in one value, when there are enough of them, and its knee.

A run is a :class:`SweepStep`; they differ in users, rate, size, objects or workers. The knee is the lowest
load at which the rate is nearly (:data:`KNEE_RATE_SHARE`) the best that there is: more load brings nothing.
Two models of the rate, which ``doc/methods.rst`` has, are fitted to all steps. Neither knows what a rate does
beyond the steps: where the last doubling of the load still raised it, or each of several after the knee by
:data:`MIN_GAIN`, no knee is certain.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np
import numpy.typing as npt

from ssbench.base.errors import UsageError
from ssbench.base.record import (
    Count,
    PerhapsBytesPerSecond,
    PerhapsNumber,
    PerhapsPerSecond,
    PerhapsSeconds,
    Seconds,
    Share,
)
from ssbench.comparison.sweep_variables import GroupVariable, Variable, Varied, format_exact
from ssbench.document.columns import format_plural
from ssbench.document.figures import LINE_RANKS
from ssbench.document.units import format_change, format_change_size, format_count
from ssbench.scenario.consistency import PER_CONTAINER_KEY, count_containers, override
from ssbench.scenario.key_rules import REPLAY_WORD
from ssbench.scenario.model import Scenario
from ssbench.scenario.set_values import share_count
from ssbench.scenario.user_groups import leave_out_group, refuse_unknown_group
from ssbench.statistics.confidence import Interval
from ssbench.statistics.latency_parts import CensoredLatencies
from ssbench.statistics.load_generator import describe_shared_host
from ssbench.statistics.run_statistics import RunStatistics

#: A worker that used more of its core than this was itself the limit.
BUSY_SHARE = 0.9


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
    """A group of users in the run of one value; null where too few latencies lie beyond a percentile."""

    name: str  # that of the group
    rate: PerhapsPerSecond  # successes a second
    interval: Interval | None  # that of the rate; None: the run was too short
    p50: PerhapsSeconds  # latency, as in the step
    p99: PerhapsSeconds
    at_least: tuple[int, ...] = ()  # ranks of percentiles that are lower bounds


class SweepStep(msgspec.Struct, frozen=True, rename=_PUBLIC_NAMES):
    """The run of one value."""

    value: float  # what was varied
    seconds: Seconds  # length of the window of the run
    users: Count  # operations that it was to have in flight
    rate: PerhapsPerSecond  # successes a second
    interval: Interval | None  # that of the rate; None: the run was too short
    moved: PerhapsBytesPerSecond  # what successes moved
    mean: PerhapsSeconds  # mean latency to the last byte
    #: Latency to the last byte, in an open loop from when operations were due; null where too few lie beyond.
    p50: PerhapsSeconds
    p99: PerhapsSeconds  # the same
    count: Count  # successes
    failed: Count  # failures
    generator: Share | None  # part of its core that the busiest worker used; None: not known
    room: Count | None = None  # slots of all workers together; None: not known
    limits: tuple[str, ...] = ()  # in what way the load generator was the limit
    shared: tuple[str, ...] = ()  # who else took the CPU of its hosts
    file: str = ""  # the stat file of the run
    ended_early: str | None = None  # why the run ended before its time; None: it did not
    supported: int | None = 99  # the highest rank of a percentile beyond which enough latencies lie
    in_flight: PerhapsNumber = math.nan  # operations in flight on average, by Little's law
    generator_full: bool = False  # the workers could do no more: higher loads say nothing of the store
    groups: tuple[GroupStep, ...] = ()  # what came of each group of users
    #: Ranks of percentiles that are lower bounds, because operations that were due never began.
    at_least: tuple[int, ...] = ()
    lost: Count = 0  # failures that were lost with a worker

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "in_flight", self.rate * self.mean)
        msgspec.structs.force_setattr(self, "generator_full", self.is_busy or self.lacks_room)

    @property
    def generator_limited(self) -> bool:
        """Whether the load generator rather than the store limited the figures, or added to them."""
        return self.generator_full or bool(self.limits)

    @property
    def error(self) -> float | None:
        """Half the width of the 95 % interval of the rate as a share of it; None: not known."""
        return self.interval.half_width / self.rate if self.interval and self.rate else None

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
        supported=max((rank for rank in LINE_RANKS if met.supports(rank)), default=None),
        at_least=_lower_bound_ranks(met),
        count=total.count,
        failed=total.failed,
        lost=total.lost,
        generator=max(shares, default=None),
        room=room,
        limits=statistics.generator.limits,
        shared=tuple(
            f"on {host.host} {why}"
            for host in statistics.generator.hosts
            if (why := describe_shared_host(host))
        ),
        file=file,
        ended_early=ended_early,
        groups=tuple(_make_group_steps(statistics)),
    )


def make_fill_step(value: float, statistics: RunStatistics, file: str = "") -> SweepStep | None:
    """Return how the objects of a run were uploaded; None where none were, or it is not known how long."""
    counters = statistics.counters
    count, seconds = int(counters.get("initial_uploaded", 0)), counters.get("initial_seconds", 0.0)
    if not count or not seconds:
        return None
    run = statistics.run.scenario
    files = sum(each.initial_files for each in run.size_classes)
    mean_bytes = sum(each.initial_files * (each.size_min + each.size_max) / 2 for each in run.size_classes)
    return SweepStep(
        value=value,
        seconds=seconds,
        users=run.user_count,
        rate=count / seconds,
        interval=None,
        moved=count / seconds * mean_bytes / files,
        mean=math.nan,
        p50=math.nan,
        p99=math.nan,
        count=count,
        failed=0,
        generator=None,
        file=file,
    )


def _lower_bound_ranks(latencies: CensoredLatencies) -> tuple[int, ...]:
    """Return the ranks of percentiles that are lower bounds."""
    return tuple(
        rank
        for rank in LINE_RANKS
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
            # A replay ends with its log.
            own = None if scenario.arrivals == REPLAY_WORD else seconds
            return override(scenario, rate=float(value), run_seconds=own)
        case Variable.SIZE:
            size = round(value)
            classes = (
                replace(each, size_min=size, size_max=size, shape=None) for each in scenario.size_classes
            )
            scenario = replace(scenario, size_classes=tuple(classes))
        case Variable.OBJECTS:
            scenario = _with_objects(scenario, round(value))
    return override(scenario, run_seconds=seconds)


def _with_objects(scenario: Scenario, count: int) -> Scenario:
    """Return a scenario with so many initial objects, in the same shares of size classes.

    They stay in their containers when there are more of them.
    """
    if scenario.is_open or scenario.groups:
        raise UsageError(
            "--sweep objects: what more of them cost is seen in the rate of users who wait for answers; the"
            f" scenario has {'groups of users' if scenario.groups else 'a rate of its own'}"
        )
    if not any(each.initial_files for each in scenario.size_classes):
        raise UsageError("--sweep objects: the scenario has no initial_files to make more of")
    per_container = scenario.objects_per_container
    if per_container and sum(bool(each.initial_files) for each in scenario.size_classes) > 1:
        raise UsageError(
            "--sweep objects: objects_per_container needs one size class, because more objects of one would"
            " move those of the next to other containers; give container_count instead"
        )
    parts = share_count(count, [each.initial_files for each in scenario.size_classes])
    for each, own in zip(scenario.size_classes, parts, strict=True):
        if each.initial_files and not own:
            raise UsageError(f"--sweep objects: {count} leave none for the size class {each.name!r}")
    classes = tuple(
        replace(each, initial_files=own) for each, own in zip(scenario.size_classes, parts, strict=True)
    )
    containers = count_containers({PER_CONTAINER_KEY: per_container}, classes)
    return replace(scenario, size_classes=classes, keeps_places=True, **containers)


def _with_group(scenario: Scenario, varied: GroupVariable, value: float) -> Scenario:
    """Return a scenario with so many users, or such a rate, of a group; with 0 without the group."""
    names = [each.name for each in scenario.groups]
    refuse_unknown_group(scenario, varied.group)
    (group,) = (each for each in scenario.groups if each.name == varied.group)
    if group.stages:
        raise UsageError(f"{varied.value}: the group has stages of its own")
    if not value:
        if len(names) == 1:
            raise UsageError(f"{varied.value}: 0 would leave no group")
        return leave_out_group(scenario, group.name)
    changed = (
        replace(group, user_count=round(value))
        if varied.variable is Variable.USERS
        else replace(group, rate=float(value))
    )
    groups = tuple(changed if each is group else each for each in scenario.groups)
    return replace(scenario, groups=groups, user_count=sum(each.user_count for each in groups))


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
    errors = [step.error for step in (before, after) if step.error is not None]
    return ratio - 1, ratio * (1 + math.hypot(*errors)) - 1


# -- All steps -------------------------------------------------------------------------------------


#: With fewer steps no model is fitted, as they have three parameters.
MIN_KNEE_STEPS = 4

#: Two runs of one load differ by at least this, as a share of the rate.
RUN_NOISE_SHARE = 0.02

#: The quantile .95 of chi square with 1 degree of freedom, for steps whose scatter is known, and those of F
#: with 1 and n degrees of freedom, n from 1 to 10, for steps that scatter more than that.
_CHI_SQUARE_QUANTILE = 3.841
_F_QUANTILES = (161.4, 18.51, 10.13, 7.709, 6.608, 5.987, 5.591, 5.318, 5.117, 4.965)

#: With so many degrees of freedom or more the scatter of repeated runs is used; it is this much at least.
_MIN_REPEATS = 4
_MIN_SCATTER = 0.002

_SHARPNESS_GRID = np.geomspace(0.7, 60.0, 60)
_CONTENTION_GRID = np.concatenate(([0.0], np.geomspace(1e-4, 1.0, 90)))
_CROSSTALK_GRID = np.concatenate(([0.0], np.geomspace(1e-8, 0.3, 120)))

_Floats = npt.NDArray[np.float64]

#: The rate at the knee is at least this share of the best.
KNEE_RATE_SHARE = 0.9

#: So many doublings of the load after a knee show whether the rate still rises.
_MIN_DOUBLINGS_AFTER = 1.9

#: A sweep ends where doubling the load brings less than this for certain; less where it was not doubled.
MIN_GAIN = 0.05


@dataclass(frozen=True, slots=True)
class Knee:
    """Where the rate stops rising with the load.

    It is not below the lowest load, at which the rate may be as high already.
    """

    value: PerhapsNumber  # the load; infinite, which JSON has as null, where it seems to be beyond the sweep
    low: float  # lower end of its 95 % interval
    high: PerhapsNumber  # upper end of it; infinite where it is not certain that the sweep went beyond it
    model: str  # the name of the model that fits better
    error: float  # by which share of the rate steps are off the model
    rise: float  # by which share the rate rose when the load was doubled for the last time

    @property
    def reached(self) -> bool:
        """Whether the sweep went beyond the knee, for certain."""
        return math.isfinite(self.high)


@dataclass(frozen=True, slots=True)
class _Fit:
    """A model on its grid."""

    name: str
    knees: _Floats
    rest: _Floats  # sum of squares, weighted, for each of ``knees``


def estimate_knee(
    values: Sequence[float], rates: Sequence[float], errors: Sequence[float | None]
) -> Knee | None:
    """Return the knee; None where there are too few steps.

    ``rates`` are operations a second at each of ``values``, ``errors`` half the widths of their 95 %
    intervals as a share, None where they are not known.
    """
    known = [
        (value, rate, error)
        for value, rate, error in zip(values, rates, errors, strict=True)
        if 0 < rate < math.inf
    ]
    if len({value for value, _, _ in known}) < MIN_KNEE_STEPS:
        return None
    x = np.array([value for value, _, _ in known])
    y = np.log([rate for _, rate, _ in known])
    spread = np.hypot([(error or 0.0) / 1.96 for _, _, error in known], RUN_NOISE_SHARE)
    measured, repeats = _scatter_of_repeats(x, y)
    if repeats >= _MIN_REPEATS:
        # What differs from run to run is measured, not assumed.
        spread = np.full(len(x), max(measured, _MIN_SCATTER))
    weights = 1 / spread**2
    fits = [_fit_queue(x, y, weights), _fit_usl(x, y, weights)]
    best = min(fits, key=lambda fit: float(fit.rest.min()))
    least = float(best.rest.min())
    allowed = least + _allowed_increase(least, len(known) - 3, repeats)
    likely = np.concatenate([fit.knees[fit.rest <= allowed] for fit in fits])
    lowest, highest = float(x.min()), float(x.max())
    near, rise, levelled = _between_steps(x, y)
    low, high = (max(lowest, float(each)) for each in (likely.min(), likely.max()))
    # Models cannot tell corners that are below all steps.
    value = lowest if near == low == lowest else _weigh_knees(fits, least, 4 * highest)
    value = min(max(value, low), high)
    error = math.sqrt(least / float(weights.sum()))
    after = _measure_rise_after(x, y, value)
    if after >= MIN_GAIN:
        levelled, rise = False, after
    if high > highest or not levelled:
        # Where a knee beyond all steps is cannot be known. A lower end at the first step says nothing: 0.
        low = min(low, highest) if low > lowest else 0.0
        value = value if value <= highest and levelled else math.inf
        return Knee(value, low, math.inf, best.name, error, rise)
    return Knee(value, low, high, best.name, error, rise)


def _scatter_of_repeats(x: _Floats, y: _Floats) -> tuple[float, int]:
    """Return how much repeated runs of one load differ, as a share, and the degrees of freedom of that."""
    groups = [y[x == load] for load in np.unique(x)]
    freedom = sum(len(group) - 1 for group in groups)
    squares = sum(float(((group - group.mean()) ** 2).sum()) for group in groups)
    return (math.sqrt(squares / freedom), freedom) if freedom else (0.0, 0)


def _weigh_knees(fits: Sequence[_Fit], least: float, most: float) -> float:
    """Return the mean of all knees up to ``most`` by their likelihood, of logarithms.

    The likeliest alone may have a sharp corner where a round one, with a later knee, fits as well.
    """
    weights = np.exp((least - np.concatenate([fit.rest.ravel() for fit in fits])) / 2)
    knees = np.clip(np.concatenate([fit.knees.ravel() for fit in fits]), 1e-9, most)
    return math.exp(float(weights @ np.log(knees)) / float(weights.sum()))


def _between_steps(x: _Floats, y: _Floats) -> tuple[float, float, bool]:
    """Return from which load on the rate is near the best, what the last doubling brought, if that is little.

    What it brought is a share. ``y`` are logarithms of the rate, which rise in straight lines between steps;
    a rate that levels off is above them.
    """
    loads = np.unique(x)
    logs = np.array([y[x == load].mean() for load in loads])
    wanted = float(logs.max()) + math.log(KNEE_RATE_SHARE)
    place = int(np.argmax(logs >= wanted))
    near = float(loads[0])
    if place:
        near = math.exp(np.interp(wanted, logs[place - 1 : place + 1], np.log(loads[place - 1 : place + 1])))
    half = max(float(loads[-1]) / 2, float(loads[0]))
    before = float(np.interp(math.log(half), np.log(loads), logs))
    rise = math.expm1((float(logs[-1]) - before) / math.log2(loads[-1] / half))
    return near, rise, before - float(logs[loads > half].max()) >= math.log(KNEE_RATE_SHARE)


def _measure_rise_after(x: _Floats, y: _Floats, knee: float) -> float:
    """Return what each doubling of the load after a knee brought, as a share; 0 of less than two of them.

    What rises slowly all along has no knee, though each doubling brings little.
    """
    loads = np.unique(x)
    first, last = float(loads[loads >= knee].min(initial=loads[-1])), float(loads[-1])
    doublings = math.log2(last / first)
    if doublings < _MIN_DOUBLINGS_AFTER:
        return 0.0
    return math.expm1(float(y[x == last].mean() - y[x == first].mean()) / doublings)


def _allowed_increase(least: float, degrees: int, repeats: int = 0) -> float:
    """Return how much more than the least a knee may leave, to be in the interval.

    ``repeats`` are the degrees of freedom by which the scatter of runs is known; 0: it is assumed.
    """
    scatter = least / max(1, degrees)
    known = _find_f_quantile(repeats) if repeats >= _MIN_REPEATS else _CHI_SQUARE_QUANTILE
    return known if scatter <= 1 else max(known, scatter * _find_f_quantile(degrees))


def _find_f_quantile(freedom: int) -> float:
    """Return the quantile .95 of F with 1 and this many degrees of freedom, for 10 those of more too."""
    return _F_QUANTILES[min(max(1, freedom), len(_F_QUANTILES)) - 1]


def _sum_residuals(y: _Floats, weights: _Floats, shapes: _Floats) -> _Floats:
    """Return what the best height leaves of each shape, whose last axis is that of the steps."""
    off = y - shapes
    height = (off * weights).sum(axis=-1, keepdims=True) / weights.sum()
    rest: _Floats = (weights * (off - height) ** 2).sum(axis=-1)
    return rest


def _fit_queue(x: _Floats, y: _Floats, weights: _Floats) -> _Fit:
    corners = np.geomspace(x.min() / 8, x.max() * 4, 800)
    sharpness = _SHARPNESS_GRID[None, :, None]
    ratio = np.log(x[None, None, :] / corners[:, None, None])
    shapes = np.log(x) - np.logaddexp(0.0, sharpness * ratio) / sharpness
    # From where X(N) is this near to its asymptote on: a sharp corner is, itself.
    beyond = np.maximum(
        1.0, KNEE_RATE_SHARE / (1 - KNEE_RATE_SHARE**_SHARPNESS_GRID) ** (1 / _SHARPNESS_GRID)
    )
    return _Fit("queue", np.outer(corners, beyond).ravel(), _sum_residuals(y, weights, shapes).ravel())


def _fit_usl(x: _Floats, y: _Floats, weights: _Floats) -> _Fit:
    coarse = _fit_usl_on_grid(x, y, weights, _CONTENTION_GRID, _CROSSTALK_GRID)
    # A step of the grid moves the knee by more than good measurements leave open.
    place = divmod(int(np.argmin(coarse.rest)), len(_CROSSTALK_GRID))
    fine = _fit_usl_on_grid(
        x, y, weights, _refine_grid(_CONTENTION_GRID, place[0]), _refine_grid(_CROSSTALK_GRID, place[1])
    )
    return _Fit("USL", np.concatenate([coarse.knees, fine.knees]), np.concatenate([coarse.rest, fine.rest]))


def _refine_grid(grid: _Floats, place: int) -> _Floats:
    """Return more values between those two places before and two after a place."""
    low, high = max(place - 2, 0), min(place + 2, len(grid) - 1)
    return np.linspace(grid[low], grid[high], 61)


def _fit_usl_on_grid(
    x: _Floats, y: _Floats, weights: _Floats, contention: _Floats, crosstalk: _Floats
) -> _Fit:
    sigma, kappa = contention[:, None, None], crosstalk[None, :, None]
    shapes = np.log(x) - np.log1p(sigma * (x - 1) + kappa * x * (x - 1))
    rest = _sum_residuals(y, weights, shapes).ravel()
    sigma, kappa = contention[:, None], crosstalk[None, :]
    with np.errstate(divide="ignore", invalid="ignore"):
        peak = np.maximum(np.sqrt((1 - sigma) / kappa), 1.0)
        most = np.where(kappa > 0, peak / (1 + sigma * (peak - 1) + kappa * peak * (peak - 1)), 1 / sigma)
        # X(N) = NEAR most is a square equation; its smaller root, in the form that allows kappa to be 0.
        wanted = KNEE_RATE_SHARE * most
        half = (1 - wanted * (sigma - kappa)) / 2
        knees = wanted * (1 - sigma) / (half + np.sqrt(half**2 - wanted**2 * kappa * (1 - sigma)))
    return _Fit("USL", np.nan_to_num(knees, nan=np.inf, posinf=np.inf).ravel(), rest)


def explain_stop(variable: Varied, steps: Sequence[SweepStep]) -> str | None:
    """Return why a sweep ends after these steps, None where it continues."""
    if not steps:
        return None
    last = steps[-1]
    if not last.count and not last.failed:
        return f"no operation ended at {variable.words(last.value)}"
    if not variable.is_load:
        return None
    if last.failed:
        return f"{format_count(last.failed)} operations failed at {variable.words(last.value)}"
    # The knee is found from some steps on.
    return describe_missing_gain(variable, *steps[-2:]) if len(steps) >= MIN_KNEE_STEPS else None


def describe_missing_gain(variable: Varied, before: SweepStep, after: SweepStep) -> str | None:
    """Return in words that more load brought nothing for certain; None where it did, or may have."""
    _, most = measure_gain(before, after)
    ratio = after.value / before.value
    # Of a smaller step as much is expected as several of it have to bring to double the load.
    least = min(MIN_GAIN, (1 + MIN_GAIN) ** math.log2(ratio) - 1)
    if most is None or most >= least:
        return None
    return (
        f"from {format_exact(before.value)} to {variable.words(after.value)} the rate rose by less than"
        f" {format_change_size(least)} % (95 % sure: by {format_change(most)} % at most)"
    )


def list_rates(steps: Sequence[SweepStep]) -> tuple[list[float], list[float], list[float | None]]:
    """Return the values of steps, their rates, and half the widths of the intervals of these as shares."""
    return [step.value for step in steps], [step.rate for step in steps], [step.error for step in steps]


def find_knee(variable: Varied, steps: Sequence[SweepStep]) -> Knee | None:
    """Return the knee of a sweep over a load; None where there are too few steps for one."""
    if not variable.is_load:
        return None
    return estimate_knee(*list_rates(steps))


def find_first_best(steps: Sequence[SweepStep]) -> SweepStep:
    """Return the step of the lowest value that may have the highest rate of all, by its interval."""
    best = max(steps, key=lambda step: step.rate)
    return min((step for step in steps if _may_be(step, best.rate)), key=lambda step: step.value)


def _may_be(step: SweepStep, rate: float) -> bool:
    return step.rate >= rate or (step.interval is not None and step.interval.high >= rate)


def describe_knee(variable: Varied, found: Knee, lowest: float) -> str:
    """Return a sentence on the knee; ``lowest`` is the lowest load that was tried."""
    words = variable.words
    fit = f"{found.model} model, steps {format_change_size(found.error)} % off"
    if found.reached:
        below = f" or below (95 % sure: at most {format_exact(format_knee_load(found.high))}; {fit})"
        between = (
            f" (95 % sure: {format_exact(format_knee_load(found.low))} to"
            f" {format_exact(format_knee_load(found.high))}; {fit})"
        )
        interval = below if found.value <= lowest else between
        return (
            f"The knee is at {words(format_knee_load(found.value))}{interval}: beyond it more load brings "
            f"longer waits, and at most {format_change_size(1 / KNEE_RATE_SHARE - 1)} % more operations."
        )
    rises = f"still rises by {format_change_size(found.rise)} % at each doubling"
    if found.rise < MIN_GAIN:
        rises = "may still rise at the highest load"
    known = f"; if there is one, it is at {words(format_knee_load(found.low))} or beyond" if found.low else ""
    return f"No knee is certain, since the rate {rises} ({fit}){known}."


def format_knee_load(value: float) -> float:
    """Return a knee, or an end of its interval, as it is shown: in 2 digits, whole from 10 on."""
    return round(value) if value >= 10 else float(f"{value:.2g}")


def describe_limits(variable: Varied, steps: Sequence[SweepStep]) -> list[str]:
    """Return where the load generator rather than Swift was full, or the limit, in words."""
    found = []
    if busy := [step for step in steps if step.is_busy]:
        found.append(
            f"The load generator rather than Swift was full at {_values(variable, busy)}: a worker used over"
            f" {100 * BUSY_SHARE:g} % of its core. Start more workers."
        )
    if small := [step for step in steps if step.lacks_room]:
        room = min(step.room or 0 for step in small)
        found.append(
            f"The load generator rather than Swift was full at {_values(variable, small)}: its workers"
            f" run {room} operations at once. Start more workers, or give them a higher --concurrency."
        )
    if other := [step for step in steps if step.limits and not step.generator_full]:
        last = sorted(other, key=lambda step: step.value)[-1]
        found.append(f"At {_values(variable, other)}, of the last of them: {last.limits[0]}.")
    return found + describe_shared(steps)


def describe_shared(steps: Sequence[SweepStep]) -> list[str]:
    """Return a sentence on runs whose hosts had other work to do; empty if there are none."""
    some = [each for each in steps if each.shared]
    if not some:
        return []
    return [
        f"The load generator waited for a CPU in {len(some)} of {format_plural(len(steps), 'run')} (in the"
        f" last of them, {some[-1].shared[0]}), so the store may be able to do more. Run nothing else on the"
        " machines that measure."
    ]


def describe_lost(variable: Varied, steps: Sequence[SweepStep]) -> list[str]:
    """Return a sentence on operations lost with a worker; empty if there are none."""
    some = [each for each in steps if each.lost]
    if not some:
        return []
    lost = format_plural(sum(each.lost for each in some), "operation")
    return [f"{lost} failed as lost with a worker, at {_values(variable, some)}: the load was less there."]


def describe_short_steps(steps: Sequence[SweepStep]) -> list[str]:
    """Return what is to be known where no gain can be judged."""
    if len(steps) < 2 or all(step.interval for step in steps):
        return []
    return [
        "Some steps were too short to tell how exact their rates are, so it is not known whether more load"
        " brought nothing. Give each a minute (-r 60)."
    ]


def _values(variable: Varied, steps: Iterable[SweepStep]) -> str:
    """Return what these steps have, with its unit."""
    values = sorted({step.value for step in steps})
    return variable.words(1) if values == [1] else f"{', '.join(map(format_exact, values))} {variable.unit}"
