"""``--start-at``: several masters begin their benchmarks at one moment, each by its own clock."""

from __future__ import annotations

import logging
import time

from ssbench.document import units
from ssbench.run.lane import TICK_SECONDS
from ssbench.run.loop import MasterLoop
from ssbench.run.moment import format_start_moment
from ssbench.store.contract import ClockBounds

_log = logging.getLogger(__name__)

#: Seconds between two messages on what is waited for.
_START_SAY_SECONDS = 10.0

#: A benchmark that begins later than this (seconds) is late; clocks that are further apart are wrong.
_LATE_START_SECONDS = 0.1
_MAX_CLOCK_DIFFERENCE = 0.5


def warn_of_store_clock(found: ClockBounds | None, loop: MasterLoop) -> None:
    """Say how far the clock of this host is from that of the store."""
    if found is None:
        loop.news.warn(
            "The store does not tell the time, or its servers tell different ones, so that the clock of this"
            " host is not checked"
        )
        return
    least, most = found
    if least > _MAX_CLOCK_DIFFERENCE or most < -_MAX_CLOCK_DIFFERENCE:
        seconds, where = (least, "behind") if least > 0 else (-most, "ahead of")
        loop.news.warn(
            f"The clock of this host is at least {units.format_moment(seconds)} s {where} the store's: masters with"
            " other clocks begin at other moments. Check NTP"
        )
    else:
        _log.info(
            "The clock of this host is from %s s to %s s behind the store's",
            units.format_seconds(least),
            units.format_seconds(most),
        )


def wait_for_moment(loop: MasterLoop, moment: float) -> None:
    """Return at a moment (seconds since 1970), or when the run is interrupted; warns where it is over."""
    late = time.time() - moment
    if late > _LATE_START_SECONDS:
        loop.news.warn(
            f"The benchmark begins {units.format_moment(late)} s after --start-at {format_start_moment(moment)}, because workers,"
            " containers and initial objects took until now: the masters do not begin together. Choose a"
            " later time"
        )
        return
    said_at = -float("inf")
    # By the monotonic clock, so that a step of the other one does not stretch it.
    until = loop.clock() + moment - time.time()
    while not loop.interrupted.is_set() and (left := until - (now := loop.clock())) > 0:
        loop.tick(now)
        if now - said_at >= _START_SAY_SECONDS:
            said_at = now
            _log.info("Ready; the benchmark begins in %.0f s, at %s", left, format_start_moment(moment))
        loop.fleet.receive(min(TICK_SECONDS, left))
