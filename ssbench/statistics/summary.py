"""The numbers of a run that reports show. ``doc/numbers.rst`` defines them.

- Requests a second: successes that ended in the window from the first send to the last moment of
  sending, by its length. Of files of ssbench 0.x: successes / (latest completion, failures' too -
  earliest start of a success), a start being a completion less the last-byte latency.
- Latencies are of successes only. Missing ones and zeros (no-op runs) do not count.
- Deviation: the square root of the population variance.
- Percentiles: see :mod:`ssbench.statistics.latencies`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from ssbench.cluster.observation import Observation
from ssbench.operations import OPERATIONS, Operation
from ssbench.results import ResultBlock, RunDescription, RunSummary, WorkerFacts
from ssbench.scenario.model import Scenario
from ssbench.statistics.collect import Cause, Collector, Figures, Groups, Within, merge_figures
from ssbench.statistics.confidence import Interval
from ssbench.statistics.cut import AUTOMATIC, find_cut
from ssbench.statistics.due import Due
from ssbench.statistics.generator import Generator, Measured, generator, sentences
from ssbench.statistics.latencies import Latencies
from ssbench.statistics.over_time import OverTime
from ssbench.statistics.parts import Parts
from ssbench.statistics.slowest import SlowOperation
from ssbench.statistics.stages import StageStatistics, mean_users, stage_statistics
from ssbench.statistics.steadiness import Steadiness, steadiness
from ssbench.statistics.timeline import EachSecond, Stall, Timeline, Window

#: Longer stretches without a completion do not go into the requests of each second one by one.
_MAX_GAP_SECONDS = 86400

_NO_CUT = (
    "no warm-up was left out (--warmup auto): none was seen, or the run was shorter than a minute or not"
    " steady by its half"
)


class RunFacts(Protocol):
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


class Results(RunFacts, Protocol):
    """The results of a run, and what is known of it once they have been read."""

    def blocks(self) -> Iterable[ResultBlock]:
        """Yield the results in order of arrival."""

    def again(self) -> Results:
        """Return the same results, to be read from their beginning once more."""

    def close(self) -> None:
        """Read no more of them."""


@dataclass(frozen=True, slots=True)
class Line:
    """The figures of one size class of an operation, or of all of them (``size_class`` is None).

    ``count``, ``failed``, ``moved`` and the rates are as in :class:`Section`. The intervals (95 %) of the
    rates are None of runs that were too short, and of older formats. ``due`` is what is known of operations
    that were due in an open loop.
    """

    size_class: str | None
    first_byte: Latencies
    last_byte: Latencies
    count: int
    failed: int
    moved: int
    requests_per_second: float
    moved_per_second: float
    rate_interval: Interval | None
    moved_interval: Interval | None
    due: Due


@dataclass(frozen=True, slots=True)
class Section:
    """The figures of an operation, or of all of them (``operation`` is None).

    ``lost`` counts operations whose worker vanished; they are neither in ``count`` nor in ``errors``.
    ``requests_per_second`` is infinite where no time passed. ``resent`` counts requests that were
    sent again because a kept connection had gone stale; they are no retries. ``held_up`` are the
    latencies that are in no other figure, because a worker stood still. ``within`` is what ended
    in the window of the run. ``moved`` is bytes of body, all that successes moved, and
    ``moved_per_second`` those of the window a second. Files of ssbench 0.x have rates of their own.
    """

    operation: Operation | None
    count: int
    errors: int
    lost: int
    retries: int
    requests_per_second: float
    lines: tuple[Line, ...]
    resent: int
    parts: Parts
    held_up: Latencies
    within: Within
    moved: int
    moved_per_second: float

    @property
    def failed(self) -> int:
        """Operations that did not succeed, lost ones too."""
        return self.errors + self.lost

    @property
    def rate_interval(self) -> Interval | None:
        """The interval of ``requests_per_second``."""
        return self.lines[0].rate_interval

    @property
    def due(self) -> Due:
        """What is known of operations that were due in an open loop."""
        return self.lines[0].due

    @property
    def retry_rate(self) -> float:
        """Retries, those of failures too, for each hundred successes; 0 without any."""
        return 100 * self.retries / self.count if self.count else 0.0


@dataclass(frozen=True, slots=True)
class Spread:
    """How evenly something is spread."""

    minimum: float
    maximum: float
    mean: float
    deviation: float


@dataclass(frozen=True, slots=True)
class Course:
    """How a run went over time.

    ``drain`` is the time from the end of the window to the last completion, in seconds. ``busy`` is the
    share of the users' time in the window in which they had an operation under way. ``operations`` and
    ``moved`` (bytes) are of its whole seconds, None where it has none.
    """

    window: Window
    drain: float
    busy: float
    operations: EachSecond | None
    moved: EachSecond | None
    stalls: tuple[Stall, ...]
    steadiness: Steadiness


@dataclass(frozen=True, slots=True)
class RunStatistics:
    """Every number that a report shows.

    ``start`` and ``end`` are seconds since 1970, None without a result. ``sections`` begins with
    all operations together and goes on with each that has results; ``groups`` has what they were
    summed up from. ``requests_by_second`` holds
    (second of the clock since that of the first completion, counted from 1; successes completed in
    it). ``workers`` spreads successes over workers. ``errors`` and ``retries`` are keyed by cause.
    ``not_sendable`` holds (operation, size class, how often), ``counters`` what else the run counted.
    ``cluster`` is what was seen of the cluster, None where nobody looked.
    ``current`` tells that the file is of today's format, which knows more than the older ones.
    ``fleet`` are the workers that were used, none in older formats. ``interrupted`` tells that the run was
    ended before its time by a signal, ``ended_early`` that it ended itself, ``complete`` that it has written
    its summary. ``over_time`` and ``slowest`` are there where they were asked for. ``due`` is how many
    operations were due in an open loop, ``not_begun`` how many of them had not begun by the end; None in a
    closed loop, and where it is not known. ``stages`` are the stages of the run, each by itself.
    """

    run: RunDescription
    current: bool
    start: float | None
    end: float | None
    sections: tuple[Section, ...]
    groups: Groups
    requests_by_second: tuple[tuple[int, int], ...]
    worker_count: int
    workers: Spread
    errors: dict[str, Cause]
    retries: dict[str, int]
    not_sendable: tuple[tuple[Operation, str, int], ...]
    warnings: tuple[str, ...]
    course: Course | None = None
    warmed_up: int = 0
    counters: dict[str, float] = field(default_factory=dict)
    cluster: Observation | None = None
    generator: Generator = field(default_factory=Generator)
    fleet: tuple[WorkerFacts, ...] = ()
    interrupted: bool = False
    complete: bool = True
    over_time: OverTime | None = None
    slowest: tuple[SlowOperation, ...] = ()
    ended_early: bool = False
    due: int | None = None
    not_begun: int | None = None
    stages: tuple[StageStatistics, ...] = ()

    @property
    def total(self) -> Section:
        """All operations together."""
        return self.sections[0]

    @property
    def duration(self) -> float:
        """Seconds from ``start`` to ``end``."""
        return 0.0 if self.start is None or self.end is None else max(0.0, self.end - self.start)


def summarize(results: Results, by: Sequence[str] = (), *, over_time: bool = False) -> RunStatistics:
    """Read all results and count them; raises what ``results.blocks()`` raises.

    ``by`` names fields to keep apart in :attr:`RunStatistics.groups`, beside operation and size class.
    With ``over_time`` :attr:`RunStatistics.over_time` and :attr:`RunStatistics.slowest` are there.
    """
    automatic = results.run.options.get("warmup") == AUTOMATIC
    begin = _cut(results) if automatic else None
    collector = Collector(
        by,
        current=results.current,
        begin=begin,
        over_time=over_time,
        stages=len(results.run.stages),
    )
    for block in results.blocks():
        collector.add(block)
    statistics = make_statistics(collector, results)
    if not automatic or begin is not None:
        return statistics
    return replace(statistics, warnings=(*statistics.warnings, _NO_CUT))


def _cut(results: Results) -> float | None:
    with closing(results.again()) as first_reading:
        return find_cut(first_reading.blocks())


def make_statistics(collector: Collector, facts: RunFacts) -> RunStatistics:
    """Return the numbers of what was collected so far."""
    numbers = _numbers(collector, facts, mean_users(facts.run.scenario.plan))
    stages = stage_statistics(collector, facts, _numbers)
    dues = [stage.due for stage in (facts.summary.stages if facts.summary else ()) if stage.due is not None]
    if not dues:
        return replace(numbers, stages=stages)
    not_begun = [each.numbers.not_begun or 0 for each in stages] or [max(0, sum(dues) - collector.due)]
    return replace(numbers, due=sum(dues), not_begun=sum(not_begun), stages=stages)


def _numbers(collector: Collector, facts: RunFacts, users: float) -> RunStatistics:
    """Return the numbers of what was collected so far, of so many users."""
    names, summary, timeline = facts.size_classes, facts.summary, collector.timeline
    window = timeline.window(summary.sent_until if summary else None) if timeline else None
    groups = collector.groups(window)
    leaves = groups.by("operation", "size_class")
    sections = [_section(None, leaves, names, window)]
    for operation in OPERATIONS.drawn:
        own = {key: figures for key, figures in leaves.items() if key[0] == operation.code}
        if own:
            sections.append(_section(operation, own, names, window))
    total = merge_figures(leaves.values())
    start = collector.first_completed if math.isinf(total.start) else total.start  # without a success
    scenario = facts.run.scenario
    course = _course(timeline, window, total, users) if timeline and window else None
    unsteady = course.steadiness.warning() if course and not scenario.stages else None
    measured = _measured(course, total, scenario) if course else None
    own_part = generator(summary, measured) if measured else Generator()
    return RunStatistics(
        run=facts.run,
        current=facts.current,
        start=None if not collector.results else window.start if window else start,
        end=total.end if collector.results else None,
        sections=tuple(sections),
        groups=groups,
        requests_by_second=_by_second(timeline.seconds(), 0) if timeline else _by_second(collector.seconds),
        worker_count=len(collector.workers),
        workers=_spread(list(collector.workers.values())),
        errors=dict(sorted(collector.errors().items(), key=lambda item: (-item[1].count, item[0]))),
        retries=dict(sorted(collector.retries.items(), key=lambda item: (-item[1], item[0]))),
        not_sendable=tuple(
            (known, names[size_class], times)
            for code, size_class, times in (summary.not_sendable if summary else ())
            if (known := OPERATIONS.get(code)) and size_class < len(names)
        ),
        warnings=(
            *facts.warnings,
            *([unsteady] if unsteady else []),
            *(sentences(own_part, measured) if measured else ()),
        ),
        course=course,
        generator=own_part,
        warmed_up=collector.warmed_up,
        counters=summary.counters if summary else {},
        cluster=summary.cluster if summary else None,
        fleet=summary.workers if summary else facts.run.workers,
        interrupted=summary is not None and summary.interrupted,
        complete=summary is not None or not facts.current,
        over_time=_over_time(collector, window, total),
        slowest=collector.slowest.finish() if collector.slowest else (),
        ended_early=summary is not None and summary.ended_early is not None,
    )


def _over_time(collector: Collector, window: Window | None, total: Figures) -> OverTime | None:
    if not collector.over_time or not collector.results:
        return None
    start = window.start if window else min(total.start, collector.first_completed)
    return collector.over_time.finish(start, total.end)


def _measured(course: Course, total: Figures, scenario: Scenario) -> Measured:
    """Return what says something of the load generator."""
    window = course.window
    # Users of an open loop wait for what is due, others think; of a whole window all began at once.
    idle = scenario.is_open or scenario.think_time or scenario.stages or window.whole
    return Measured(
        start=window.start,
        end=window.end,
        median=total.last_byte.percentile(50),
        p99=total.last_byte.percentile(99),
        busy=None if idle or total.lost else course.busy,
        held_up=total.held_up.count,
    )


def _course(timeline: Timeline, window: Window, total: Figures, users: float) -> Course:
    each = timeline.each_second(window)
    of_all_users = users * window.seconds
    return Course(
        window=window,
        drain=max(0.0, timeline.last_ended - window.end),
        busy=total.within.busy / of_all_users if of_all_users else math.nan,
        operations=each[0] if each else None,
        moved=each[1] if each else None,
        steadiness=steadiness(total.by_second.series(window.start, window.end)[0]),
        stalls=timeline.stalls(window, total.last_byte, math.ceil(users)),
    )


def _section(
    operation: Operation | None,
    leaves: Mapping[tuple[int, ...], Figures],
    names: Sequence[str],
    window: Window | None,
) -> Section:
    """Return the section of some groups, which are keyed by operation and size class."""
    classes: dict[int, list[Figures]] = {}
    for (_, size_class), figures in leaves.items():
        classes.setdefault(size_class, []).append(figures)
    total = merge_figures(leaves.values())
    by_class: dict[str | None, Figures] = {None: total}
    for size_class in sorted(classes):
        by_class[names[size_class]] = merge_figures(classes[size_class])
    rate, moved_rate = rates(total, window)
    return Section(
        operation=operation,
        count=total.count,
        errors=total.errors,
        lost=total.lost,
        retries=total.retries,
        requests_per_second=rate,
        lines=tuple(
            Line(
                name,
                figures.first_byte,
                figures.last_byte,
                figures.count,
                figures.failed,
                figures.moved,
                *rates(figures, window),
                *intervals(figures, window),
                figures.due,
            )
            for name, figures in by_class.items()
        ),
        resent=total.resent,
        parts=total.parts,
        held_up=total.held_up,
        within=total.within,
        moved=total.moved,
        moved_per_second=moved_rate,
    )


def rates(figures: Figures, window: Window | None) -> tuple[float, float]:
    """Return operations and bytes a second."""
    if window:
        return window.per_second(figures.within.count), window.per_second(figures.within.moved)
    if not figures.count:
        return 0.0, 0.0
    own = Window(figures.start, figures.end)
    return own.per_second(figures.count), own.per_second(figures.moved)


def intervals(figures: Figures, window: Window | None) -> tuple[Interval | None, Interval | None]:
    """Return the 95 % intervals of :func:`rates`; None of runs that were too short, and of old files."""
    if window is None:
        return None, None
    found = figures.by_second.intervals(window.start, window.end)
    # Whole seconds of the clock are a little less than the window; their spread is what is wanted of them.
    operations, moved = (
        interval and interval.around(rate)
        for rate, interval in zip(rates(figures, window), found, strict=True)
    )
    return operations, moved


def _by_second(seconds: Counter[int], first: int | None = None) -> tuple[tuple[int, int], ...]:
    """Return (second, count) from the first second on, empty ones too except in very long gaps.

    Without ``first`` that is the first one which has any.
    """
    rows: list[tuple[int, int]] = []
    if first is None:
        first = min(seconds, default=0)
    for second in sorted(seconds):
        previous = rows[-1][0] if rows else 0
        place = second - first + 1
        if place - previous <= _MAX_GAP_SECONDS:
            rows.extend((empty, 0) for empty in range(previous + 1, place))
        rows.append((place, seconds[second]))
    return tuple(rows)


def _spread(counts: list[int]) -> Spread:
    if not counts:
        return Spread(0.0, 0.0, 0.0, 0.0)
    values = np.array(counts, np.float64)
    return Spread(float(values.min()), float(values.max()), float(values.mean()), float(values.std()))
