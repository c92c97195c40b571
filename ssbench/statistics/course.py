"""How a run went over time: its window, its whole seconds, and the times when nothing ended."""

from __future__ import annotations

import math

import msgspec

from ssbench.measures import PerhapsShare, Seconds
from ssbench.statistics.figures import Figures
from ssbench.statistics.stalls import Stall
from ssbench.statistics.steadiness import Steadiness, steadiness
from ssbench.statistics.timeline import EachSecond, Timeline, Window


class Course(msgspec.Struct, frozen=True, kw_only=True, rename={"moved": "bytes"}):
    """How a run went over time.

    ``drain`` is the time from the end of the window to the last completion. ``busy`` is the share of the
    users' time in the window in which they had an operation under way. The numbers of operations and of
    bytes are of its whole seconds, null where it has none.
    """

    window: Window
    drain: Seconds
    busy: PerhapsShare
    operations: EachSecond | None
    moved: EachSecond | None
    stalls: tuple[Stall, ...]
    steadiness: Steadiness


def course_of(timeline: Timeline, window: Window, total: Figures, users: float, *, idle: bool) -> Course:
    """Return the course of a run that had this many users; ``total`` is all of its results.

    ``idle`` tells that users are idle at times by intention.
    """
    each = timeline.each_second(window)
    of_all_users = users * window.seconds
    return Course(
        window=window,
        drain=max(0.0, timeline.last_ended - window.end),
        busy=total.within.busy / of_all_users if of_all_users else math.nan,
        operations=each[0] if each else None,
        moved=each[1] if each else None,
        steadiness=steadiness(
            total.by_second.series(window.start, window.end)[0], window.start, total.last_byte.by_second
        ),
        stalls=timeline.stalls(window, total.last_byte, None if idle else math.ceil(users)),
    )
