"""The numbers of a run that reports show. ``doc/numbers.rst`` defines them.

- Requests a second: successes that ended in the window from the first send to the last moment of sending, by
  its length. Of files of ssbench 0.x: successes / (latest completion, failures' too - earliest start of a
  success), a start being a completion less the last-byte latency.
- Latencies are of successes only. Missing ones and zeros (no-op runs) do not count.
- Deviation: the square root of the population variance.
- Percentiles: see :func:`ssbench.document.figures.percentile_by_rule`.

:func:`compute_statistics` makes :class:`RunStatistics` of what was counted, with a section for each
operation, and a line in it for each of its size classes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

import msgspec
import numpy as np
from msgspec.structs import replace

from ssbench.results.block import UNFINISHED_CAUSE, ResultBlock
from ssbench.results.cluster_observation import Observation
from ssbench.results.run_description import (
    PrecisionFacts,
    ReplayFacts,
    RunDescription,
    RunSummary,
    ServerCpuSample,
    StageFacts,
    WorkerFacts,
)
from ssbench.scenario.model import Stage
from ssbench.scenario.operations import OPERATIONS, OperationKind, OperationTable
from ssbench.statistics.collector import Cause, Collector, MemberCounts, ObjectCounts
from ssbench.statistics.confidence import Interval
from ssbench.statistics.counted_figures import (
    CountedFigures,
    Groups,
    drop_seconds,
    estimate_rate_intervals,
    measure_rates,
    merge_figures,
)
from ssbench.statistics.delivery import Delivery
from ssbench.statistics.latencies import SlowResult
from ssbench.statistics.load_generator import (
    GeneratorMeasurements,
    LoadGenerator,
    find_unlike_workers,
    list_generator_warnings,
    summarize_generator,
)
from ssbench.statistics.over_time import BinsOverTime, EventEffect, measure_event_effects
from ssbench.statistics.server_cpu import ServerCpu
from ssbench.statistics.stalls import Stall, are_notable, find_store_stalls
from ssbench.statistics.steadiness import Course, make_course
from ssbench.statistics.timeline import Successes, Window, list_successes
from ssbench.statistics.waits import WAIT_LENGTHS, Wait, find_waits


class RatedFigures(CountedFigures, frozen=True):
    """Figures with rates, and with their 95 % intervals.

    ``requests_per_second`` is infinite where no time passed. ``moved_per_second`` is bytes of body. Files of
    ssbench 0.x have rates of their own. ``window`` is that of the intervals, None where there are none.
    """

    requests_per_second: float
    moved_per_second: float
    window: Window | None

    @property
    def rate_interval(self) -> Interval | None:
        """The interval of operations a second; None of runs that were too short and of old files.

        It is found when it is asked for: a run may have thousands of lines, of which few are shown.
        """
        return estimate_rate_intervals(self, self.window)[0]

    @property
    def moved_interval(self) -> Interval | None:
        """The interval of bytes a second, as :attr:`rate_interval`."""
        return estimate_rate_intervals(self, self.window)[1]

    @property
    def retry_rate(self) -> float:
        """Retries, those of failures too, for each hundred successes; 0 without any."""
        return 100 * self.counted["retries"] / self.count if self.count else 0.0


class SectionLine(RatedFigures, frozen=True):
    """The figures of one size class of an operation, or of all of them (``size_class`` is None)."""

    size_class: str | None


class FiguresSection(RatedFigures, frozen=True):
    """The figures of an operation, or of all of them (``operation`` is None).

    ``lines`` begins with the same figures; a line for each size class follows.
    """

    operation: OperationKind | None
    lines: tuple[SectionLine, ...]


def make_sections(
    leaves: Mapping[tuple[int, ...], CountedFigures],
    names: Sequence[str],
    window: Window | None,
    *,
    operations: OperationTable = OPERATIONS,
    pooled: bool = False,
    total: CountedFigures | None = None,
) -> Iterator[FiguresSection]:
    """Yield the section of all operations together, then that of each that has results.

    ``leaves`` are figures by operation and size class, ``names`` those of the size classes, ``total`` all of
    them together where that is known already. Figures of
    several stages together (``pooled``) have no intervals.
    """
    yield _make_section(None, leaves, total or merge_figures(leaves.values()), names, window, pooled=pooled)
    for operation in operations.drawn:
        own = {key: figures for key, figures in leaves.items() if key[0] == operation.code}
        if own:
            yield _make_section(operation, own, merge_figures(own.values()), names, window, pooled=pooled)


def drop_rate_intervals(section: FiguresSection) -> FiguresSection:
    """Return a section without the intervals of its rates; those of latencies stay."""
    return replace(section, window=None, lines=tuple(replace(line, window=None) for line in section.lines))


def _make_section(
    operation: OperationKind | None,
    leaves: Mapping[tuple[int, ...], CountedFigures],
    total: CountedFigures,
    names: Sequence[str],
    window: Window | None,
    *,
    pooled: bool,
) -> FiguresSection:
    """Return the section of some groups, which are keyed by operation and size class."""
    classes: dict[int, list[CountedFigures]] = {}
    for (_, size_class), figures in leaves.items():
        classes.setdefault(size_class, []).append(figures)
    rated: dict[str | None, dict[str, Any]] = {None: _rated_fields(total, window, pooled=pooled)}
    for size_class in sorted(classes):
        rated[names[size_class]] = _rated_fields(merge_figures(classes[size_class]), window, pooled=pooled)
    return FiguresSection(
        **rated[None],
        operation=operation,
        lines=tuple(SectionLine(**values, size_class=name) for name, values in rated.items()),
    )


def _rated_fields(figures: CountedFigures, window: Window | None, *, pooled: bool) -> dict[str, Any]:
    """Return the fields of figures with rates."""
    rate, moved_rate = measure_rates(figures, window)
    if pooled:
        figures = drop_seconds(figures)
    return {
        **{name: getattr(figures, name) for name in CountedFigures.__struct_fields__},
        "requests_per_second": rate,
        "moved_per_second": moved_rate,
        "window": None if pooled else window,
    }


# -- What is known of a run besides its results ----------------------------------------------------


class RunContext(Protocol):
    """What statistics need to know of a run besides its results.

    ``size_classes`` holds names that results index. ``current`` is False for the formats of ssbench
    0.x, of which only the old table is printed. ``summary`` is None where a run did not end.
    """

    @property
    def run(self) -> RunDescription: ...  # noqa: D102
    @property
    def size_classes(self) -> Sequence[str]: ...  # noqa: D102
    @property
    def summary(self) -> RunSummary | None: ...  # noqa: D102
    @property
    def warnings(self) -> Sequence[str]: ...  # noqa: D102
    @property
    def current(self) -> bool: ...  # noqa: D102


class PartContext(msgspec.Struct, frozen=True):
    """What is known of a part of a run, a stage or a group of users, as if it were a run."""

    run: RunDescription
    size_classes: Sequence[str]
    summary: RunSummary | None
    warnings: Sequence[str] = ()
    current: bool = True


class ReadableResults(RunContext, Protocol):
    """The results of a run, and what is known of it once they have been read.

    ``damaged`` is whether not all of them could be.
    """

    @property
    def damaged(self) -> bool: ...  # noqa: D102

    def blocks(self) -> Iterable[ResultBlock]:
        """Yield the results in order of arrival."""

    def again(self) -> ReadableResults:
        """Return the same results, to be read from their beginning once more."""

    def close(self) -> None:
        """Read no more of them."""


# -- All numbers of a run --------------------------------------------------------------------------


#: Operations that could not be sent, up to this share of the results, leave users no time to be idle.
_FEW_NOT_SENDABLE_SHARE = 0.01


class Spread(msgspec.Struct, frozen=True, rename={"minimum": "min", "maximum": "max"}):
    """How evenly something is spread."""

    minimum: float  # the least
    maximum: float  # the most
    mean: float  # the mean
    deviation: float  # the standard deviation

    @classmethod
    def of(cls, counts: Iterable[int]) -> Self:
        """Return how evenly some counts are spread; all is 0 without any."""
        values = np.array([*counts], np.float64)
        if not len(values):
            return cls(0.0, 0.0, 0.0, 0.0)
        return cls(float(values.min()), float(values.max()), float(values.mean()), float(values.std()))


@dataclass(frozen=True, slots=True)
class RunStatistics:
    """Every number that a report shows."""

    run: RunDescription
    current: bool  # Whether the file is of today's format, which knows more than the older ones
    start: float | None  # seconds since 1970; None: there is no result
    end: float | None  # seconds since 1970; None: there is no result
    sections: tuple[FiguresSection, ...]  # all operations together, then each that has results
    groups: Groups  # what the sections were summed up from
    #: (Second of the clock since that of the first completion, counted from 1; successes completed in it).
    requests_by_second: Successes
    worker_count: int
    workers: Spread  # how evenly successes are spread over workers
    errors: dict[str, Cause]  # by cause
    retries: dict[str, int]  # by cause
    not_sendable: tuple[tuple[OperationKind, str, int], ...]  # (operation, size class, how often)
    warnings: tuple[str, ...]
    course: Course | None
    warmed_up: int  # results that were of the warm-up; no figure has them
    warmed_up_failed: int  # those of them that failed
    counters: dict[str, float]  # what else the run counted
    cluster: Observation | None  # what was seen of the cluster; None: it was not observed
    generator: LoadGenerator
    fleet: tuple[WorkerFacts, ...]  # workers that were used; none in older formats
    interrupted: bool  # the run was ended before its time by a signal
    complete: bool  # the run has written its summary
    over_time: BinsOverTime | None  # None: not asked for
    slowest: tuple[SlowResult, ...]  # none unless asked for
    ended_early: bool  # the run ended itself before its time
    error_code: int  # exit code of that
    until: tuple[PrecisionFacts, ...]  # the figures that ``--until`` asked for
    trouble: bool  # something besides operations failed
    sending: float | None  # seconds for which operations were sent
    waits: tuple[Wait, ...]  # those that are as long as a constant of the system
    accounts: tuple[MemberCounts, ...]  # figures of each account, where there are several
    addresses: tuple[MemberCounts, ...]  # figures of each address, where there are several
    address_names: tuple[str, ...]
    pooled: bool  # It is of several stages together, whose intervals would be of what was asked for
    events: tuple[EventEffect, ...]  # commands at moments of the run, and what happened around them
    replay: ReplayFacts | None  # how the replay of a log went; None: it was none
    objects: ObjectCounts | None  # how often each was used, of a side
    delivery: Delivery | None = None  # operations of an open loop that were due, and those that did not begin
    stages: tuple[RunPart, ...] = ()  # the stages of the run, each by itself
    by_group: tuple[RunPart, ...] = ()  # its groups of users, each by itself
    sides: tuple[RunPart, ...] = ()  # the two of a run with ``--ab``, each by itself
    #: CPU for an operation by kind of server, of a Swift on this machine; none of a part of a run.
    server_cpu: Mapping[str, ServerCpu] = field(default_factory=dict)
    cpu_samples: tuple[ServerCpuSample, ...] = ()  # from which that follows

    def group(self, name: str) -> RunPart | None:
        """Return the numbers of a group of users; None where there is none of that name."""
        return next((each for each in self.by_group if each.name == name), None)

    @property
    def due(self) -> int | None:
        """How many operations were due."""
        return self.delivery.due if self.delivery else None

    @property
    def not_begun(self) -> int | None:
        """How many of them never began."""
        return self.delivery.not_begun if self.delivery else None

    @property
    def total(self) -> FiguresSection:
        """All operations together."""
        return self.sections[0]

    @property
    def duration(self) -> float:
        """Seconds from ``start`` to ``end``."""
        return 0.0 if self.start is None or self.end is None else max(0.0, self.end - self.start)

    @property
    def store_stalls(self) -> tuple[Stall, ...]:
        """The stalls that the load generator does not explain; none where they are too short to matter."""
        course = self.course
        if course is None:
            return ()
        workers = [each.worker_id for each in self.fleet]
        found = [*find_store_stalls(course.stalls, course.window.start, self.generator.gaps, workers)]
        p99 = self.total.last_byte.percentile(99)
        return (*found,) if are_notable(found, course.window.seconds, p99) else ()

    @property
    def lasted(self) -> float:
        """Seconds that the benchmark took, with the warm-up and a time at its end in which nothing ended."""
        return max(self.duration, self.sending or 0.0)


@dataclass(frozen=True, slots=True)
class RunPart:
    """A part of a run by itself: a stage, a group of users, or a side."""

    name: str
    plan: tuple[Stage, ...]  # its pace as the scenario asks for it, a stage or several
    numbers: RunStatistics  # those of a run that has only the results of this part
    facts: StageFacts | None = None  # how a stage went; None of a run that was killed


def compute_statistics(
    collector: Collector,
    facts: RunContext,
    users: float,
    due: Callable[
        [Mapping[tuple[int, ...], CountedFigures]], Mapping[tuple[int, ...], CountedFigures]
    ] = lambda same: same,
    *,
    pooled: bool = False,
) -> RunStatistics:
    """Return the numbers of what was collected so far, of this many users; those of stages are not there.

    ``due`` adds to figures, by operation and size class, what is known besides of operations that were due.
    ``pooled``: it is of several stages together.
    """
    collector.settle()
    names, summary, timeline = facts.size_classes, facts.summary, collector.timeline
    window = timeline.window(summary.sent_until if summary else None) if timeline else None
    groups = collector.groups(window)
    leaves = due(groups.by("operation", "size_class"))
    total = merge_figures(leaves.values())
    start = collector.first_completed if math.isinf(total.start) else total.start  # without a success
    scenario = facts.run.scenario
    operations = scenario.operation_table
    # Where no object existed users had nothing to do. Those of an open loop wait for what is due, others
    # think.
    lacking = sum(times for *_, times in summary.not_sendable) if summary else 0
    lacks = lacking > _FEW_NOT_SENDABLE_SHARE * collector.results
    idle = scenario.is_staged or scenario.is_open or scenario.thinks
    course = (
        make_course(timeline, window, total, users, leaves.values(), idle=idle or lacks)
        if timeline and window
        else None
    )
    unsteady = course.steadiness.warning() if course and not scenario.is_staged else None
    errors = collector.errors()
    # How long users were busy with these is not known: each took one of them no longer than the window is.
    untimed = total.lost + (errors[UNFINISHED_CAUSE].count if UNFINISHED_CAUSE in errors else 0)
    # Of those that waited some were not sent.
    waited = min(1.0, (summary.counters.get("waited", 0) if summary else 0) / max(collector.results, 1))
    free = idle or lacks
    measured = (
        _measure_generator(course, total, waited, untimed / max(users, 1), idle=free) if course else None
    )
    own_part = summarize_generator(summary, measured) if measured else LoadGenerator()
    fleet = summary.workers if summary else facts.run.workers
    real = facts.current and not facts.run.options.get("noop")
    return RunStatistics(
        run=facts.run,
        current=facts.current,
        start=None if not collector.results else window.start if window else start,
        end=total.end if collector.results else None,
        sections=tuple(
            make_sections(leaves, names, window, operations=operations, pooled=pooled, total=total)
        ),
        groups=groups,
        requests_by_second=list_successes(timeline.seconds(), 0)
        if timeline
        else list_successes(collector.seconds),
        worker_count=len(collector.workers),
        workers=Spread.of(collector.workers.values()),
        errors=dict(sorted(errors.items(), key=lambda item: (-item[1].count, item[0]))),
        retries=dict(sorted(collector.retries.items(), key=lambda item: (-item[1], item[0]))),
        not_sendable=tuple(
            (known, names[size_class], times)
            for code, size_class, times in (summary.not_sendable if summary else ())
            if (known := operations.get(code)) and size_class < len(names)
        ),
        warnings=(
            *facts.warnings,
            *([unsteady] if unsteady else []),
            *(list_generator_warnings(own_part, measured) if measured else ()),
            *(find_unlike_workers(collector.typical_latencies(), collector.workers, fleet) if real else ()),
        ),
        course=course,
        generator=own_part,
        warmed_up=collector.warmed_up,
        warmed_up_failed=collector.warmed_up_failed,
        counters=summary.counters if summary else {},
        cluster=summary.cluster if summary else None,
        fleet=fleet,
        interrupted=summary is not None and summary.interrupted,
        complete=summary is not None or not facts.current,
        over_time=_over_time(collector, window, total),
        slowest=collector.slowest.finish() if collector.slowest else (),
        accounts=collector.members.finish("account", window) if collector.members else (),
        addresses=collector.members.finish("address", window) if collector.members else (),
        address_names=summary.addresses if summary else (),
        ended_early=summary is not None and summary.ended_early is not None,
        error_code=summary.error_code if summary else 0,
        until=summary.until if summary else (),
        trouble=summary is not None and summary.trouble,
        sending=_sending_seconds(summary),
        waits=find_waits(WAIT_LENGTHS, leaves, operations, scenario.user_count),
        pooled=pooled,
        events=_measure_events(collector, summary, window),
        replay=summary.replay if summary else None,
        objects=collector.objects,
    )


def _measure_events(
    collector: Collector, summary: RunSummary | None, window: Window | None
) -> tuple[EventEffect, ...]:
    """Return what happened around the commands of a run; nothing where that was not collected."""
    if summary is None or window is None or not summary.events or not collector.over_time:
        return ()
    return measure_event_effects(summary.events, collector.over_time, window.start, window.end)


def _over_time(collector: Collector, window: Window | None, total: CountedFigures) -> BinsOverTime | None:
    if not collector.over_time or not collector.results:
        return None
    start = window.start if window else min(total.start, collector.first_completed)
    return collector.over_time.finish(start, total.end)


def _sending_seconds(summary: RunSummary | None) -> float | None:
    """Return for how long operations were sent, in seconds, with the warm-up; None where it is not known."""
    if summary is None or summary.sent_until is None:
        return None
    begins = [
        stages[0].begins for stages in (summary.stages, *(each.stages for each in summary.groups)) if stages
    ]
    return max(0.0, summary.sent_until - min(begins)) if begins else None


def _measure_generator(
    course: Course, total: CountedFigures, waited: float, untimed: float, *, idle: bool
) -> GeneratorMeasurements:
    """Return the figures by which the load generator is judged."""
    window, interval = course.window, total.last_byte.interval(99)
    return GeneratorMeasurements(
        start=window.start,
        end=window.end,
        median=total.last_byte.percentile(50),
        p99=total.last_byte.percentile(99),
        # Of a whole window all began at once. Users that pause do not wait for the load generator.
        busy=None if idle or window.whole else course.busy + course.pausing,
        delayed=total.delayed.count,
        succeeded=total.last_byte.count + total.delayed.count,
        p99_least=-math.inf if interval is None else interval.low,
        waited=waited,
        untimed=untimed,
    )
