"""The figures of some results: of an operation, a size class, a worker or of whatever they have in common."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import zip_longest

import msgspec
from msgspec.structs import replace

from ssbench.results.counters import sum_counters
from ssbench.statistics.attempts import LatencyParts, sum_parts
from ssbench.statistics.by_second import BySecond, LatencyTable, merge_seconds
from ssbench.statistics.confidence import Interval
from ssbench.statistics.due import CensoredLatencies, DueFigures, merge_due
from ssbench.statistics.latencies import Latencies, merge_latencies
from ssbench.statistics.timeline import Window
from ssbench.statistics.window_totals import WindowTotals, merge_totals


class CountedFigures(msgspec.Struct, frozen=True):
    """What is counted of some results.

    ``count`` is of successes, ``failed`` of all others; ``lost`` of these are operations whose worker
    vanished. ``start`` is when the first success was sent, infinite without any;
    ``end`` the last completion, a failure's too, minus infinity without a result; seconds since 1970.
    ``counted`` has each counter of :data:`ssbench.results.COUNTERS`. ``moved``
    is the bytes of body of all successes whose size is known. ``by_second`` has what is needed for
    intervals of the rates, ``parts`` what the time of successes went into besides their last attempts,
    ``due`` what is known of operations that were due in an open loop.
    ``delayed`` are the last-byte latencies of successes whose worker stalled, and not among the others.
    ``last_attempt`` is what the last attempts of those in ``last_byte`` took, without connecting;
    ``connecting`` is of those that connected. ``steps`` is what each step of operations took that have some.
    """

    count: int
    failed: int
    lost: int
    counted: Mapping[str, int]
    start: float
    end: float
    first_byte: Latencies
    last_byte: Latencies
    window_totals: WindowTotals
    moved: int
    by_second: BySecond
    parts: LatencyParts
    due: DueFigures
    delayed: Latencies
    last_attempt: Latencies
    connecting: Latencies
    steps: tuple[Latencies, ...]

    @property
    def latency(self) -> CensoredLatencies:
        """The latencies that verdicts, thresholds and comparisons are about: as users met them.

        They are since operations were due in an open loop, and those that never began are among them; else
        they are to the last byte.
        """
        return self.due.users_latency(self.last_byte)


def merge_figures(parts: Iterable[CountedFigures]) -> CountedFigures:
    """Return the figures of several groups together, without copying latencies."""
    parts = list(parts)
    if len(parts) == 1:
        return parts[0]
    return CountedFigures(
        count=sum(part.count for part in parts),
        failed=sum(part.failed for part in parts),
        lost=sum(part.lost for part in parts),
        counted=sum_counters(part.counted for part in parts),
        start=min((part.start for part in parts), default=math.inf),
        end=max((part.end for part in parts), default=-math.inf),
        first_byte=merge_latencies(part.first_byte for part in parts),
        last_byte=merge_latencies(part.last_byte for part in parts),
        window_totals=merge_totals(part.window_totals for part in parts),
        moved=sum(part.moved for part in parts),
        by_second=merge_seconds(part.by_second for part in parts),
        parts=sum_parts(part.parts for part in parts),
        due=merge_due(part.due for part in parts),
        delayed=merge_latencies(part.delayed for part in parts),
        last_attempt=merge_latencies(part.last_attempt for part in parts),
        connecting=merge_latencies(part.connecting for part in parts),
        steps=tuple(
            map(merge_latencies, zip_longest(*(part.steps for part in parts), fillvalue=merge_latencies(())))
        ),
    )


def measure_rates(figures: CountedFigures, window: Window | None) -> tuple[float, float]:
    """Return operations and bytes a second."""
    if window:
        return window.per_second(figures.window_totals.count), window.per_second(figures.window_totals.moved)
    if not figures.count:
        return 0.0, 0.0
    own = Window(figures.start, figures.end)
    return own.per_second(figures.count), own.per_second(figures.moved)


def drop_seconds(figures: CountedFigures) -> CountedFigures:
    """Return the same figures without what the intervals of latencies are made of.

    Where stages are put together, what differs from second to second is what was asked for, and no noise.
    """
    return replace(
        figures,
        **{
            name: replace(getattr(figures, name), by_second=LatencyTable())
            for name in ("first_byte", "last_byte", "last_attempt", "connecting")
        },
        steps=tuple(replace(each, by_second=LatencyTable()) for each in figures.steps),
        due=replace(
            figures.due,
            response=replace(figures.due.response, by_second=LatencyTable()),
            undue=replace(figures.due.undue, by_second=LatencyTable()),
            lateness=replace(figures.due.lateness, by_second=LatencyTable()),
        ),
    )


def estimate_rate_intervals(
    figures: CountedFigures, window: Window | None
) -> tuple[Interval | None, Interval | None]:
    """Return the 95 % intervals of :func:`measure_rates`.

    None of runs that were too short, of old files, and where one reaches down to 0, which says nothing.
    """
    if window is None:
        return None, None
    found = figures.by_second.intervals(window.start, window.end)
    # Whole seconds of the clock are a little less than the window; only their spread is used.
    operations, moved = (
        interval.around(rate) if interval and interval.half_width < rate else None
        for rate, interval in zip(measure_rates(figures, window), found, strict=True)
    )
    return operations, moved
