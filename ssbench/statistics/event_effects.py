"""What happened before, during and after the commands that were run at moments of a benchmark.

*Before* is all until the first command. The rate has *fallen* after a command if so many seconds in a row
were slower than the slowest second before that chance does it after at most one of twenty commands that do
nothing (:func:`count_slow_seconds`); it is *back* from the first so many seconds in a row on that were not.
The time between is *during*. Seconds count from the command on.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import msgspec

from ssbench.base.measures import Count, Offset, PerSecond, Seconds
from ssbench.document.units import format_number
from ssbench.results.run_description import EventFacts
from ssbench.statistics.over_time import OverTimeCollector

#: Seconds before the first command that there must be to say how slow a second usually is.
_MIN_SECONDS_BEFORE = 10

#: The share of commands without any effect after which the rate seems to have fallen.
_ERROR_SHARE = 0.05


class SpanFigures(msgspec.Struct, frozen=True):
    """What ended in a span of a run, to the width of a bin; percentiles are within 1.6 % of exact ones."""

    start: Offset  # when it begins
    seconds: Seconds  # how long it is
    count: Count  # successes
    failed: Count  # failures
    rate: PerSecond | None  # successes a second; null: no time passed
    p50: Seconds | None  # latency of successes; null: too few
    p99: Seconds | None  # as p50
    causes: Mapping[str, Count]  # failures by cause


class EventEffect(msgspec.Struct, frozen=True):
    """A command that was run during the benchmark, and what happened around it."""

    facts: EventFacts  # how the command went
    start: Offset | None  # when it began; null: it did not
    slowest_before: PerSecond | None  # rate of the slowest second before the first command; null: too few
    #: Seconds from its begin until the rate was back; 0: it did not fall; null: it did not come back before
    #: the next command or the end, or it is not known.
    back_after: Seconds | None
    fell: bool | None  # whether the rate fell; null: there was too little time before to know
    before: SpanFigures | None  # until the first command
    during: SpanFigures | None  # until the rate was back; null: it did not fall
    after: SpanFigures | None  # from then on, until the next command or the end


def count_slow_seconds(before: int, after: int) -> int:
    """Return how many seconds in a row have to be slower than each of so many ``before``.

    Chance makes that many among so many ``after`` with a probability of at most 5 %, where all orders of
    seconds are as likely.
    """
    number = 2
    while after / math.comb(before + number, number) > _ERROR_SHARE:
        number += 1
    return number


def measure_event_effects(
    events: Sequence[EventFacts], over_time: OverTimeCollector, start: float, end: float
) -> tuple[EventEffect, ...]:
    """Return what happened around each of the commands of a run; ``start`` and ``end`` are its window's."""
    begun = sorted((each for each in events if each.began is not None), key=lambda each: each.began or 0.0)
    bounds = [min(max(each.began or 0.0, start), end) for each in begun] + [end]
    found = []
    step = max(1.0, over_time.width)
    usual = [*over_time.list_successes(start, step, int((bounds[0] - start) / step))]
    known = len(usual) >= _MIN_SECONDS_BEFORE

    def measured(since: float, until: float) -> SpanFigures:
        return _measure_span(over_time, start, since, until, is_last=until == end)

    before = measured(start, bounds[0]) if begun else None
    for each, (own, following) in zip(begun, pairwise(bounds), strict=True):
        number = int((following - own) / step)
        counts = [*over_time.list_successes(own, step, number)]
        fell, back = (None, None) if not known else _find_fall(counts, min(usual), len(usual))
        middle = following if fell and back is None else own + (back or 0) * step
        found.append(
            EventEffect(
                facts=each,
                start=own - start,
                slowest_before=min(usual) / step if known else None,
                back_after=None if back is None else back * step,
                fell=fell,
                before=before,
                during=measured(own, middle) if fell else None,
                after=measured(middle, following) if middle < following else None,
            )
        )
    for each in events:
        if each.began is None:
            found.append(EventEffect(each, None, None, None, None, None, None, None))
    return tuple(found)


def _find_fall(counts: Sequence[int], slowest: int, before: int) -> tuple[bool, int | None]:
    """Return whether the rate fell, and after how many steps it was back; None: not until the end."""
    needed = count_slow_seconds(before, max(len(counts), 1))
    slow = [count < slowest for count in counts]
    first = _find_run(slow, needed, 0, wanted=True)
    if first is None:
        return False, 0
    return True, _find_run(slow, needed, first, wanted=False)


def _find_run(values: Sequence[bool], length: int, start: int, *, wanted: bool) -> int | None:
    """Return where the first so many values in a row are as wanted, from a place on."""
    row = 0
    for place in range(start, len(values)):
        row = row + 1 if values[place] is wanted else 0
        if row == length:
            return place - length + 1
    return None


def _measure_span(
    over_time: OverTimeCollector, origin: float, start: float, end: float, *, is_last: bool = False
) -> SpanFigures:
    counted = over_time.count_span(start, end, is_last=is_last)
    seconds = max(0.0, end - start)
    return SpanFigures(
        start=start - origin,
        seconds=seconds,
        count=counted.count,
        failed=counted.failed,
        rate=counted.count / seconds if seconds else None,
        p50=counted.p50,
        p99=counted.p99,
        causes=counted.causes,
    )


def describe_event_effect(effect: EventEffect) -> Iterator[str]:
    """Yield sentences on what a command did to the rate."""
    if effect.start is None or effect.fell is None:
        return
    slowest = f"{format_number(effect.slowest_before)} ops/s" if effect.slowest_before is not None else ""
    if not effect.fell:
        yield f"the rate did not fall below that of the slowest second before ({slowest})"
    elif effect.back_after is None:
        yield f"the rate fell below that of the slowest second before ({slowest}), and was not back"
    else:
        yield (
            f"the rate fell below that of the slowest second before ({slowest}), and was back after"
            f" {format_number(effect.back_after)} s"
        )
