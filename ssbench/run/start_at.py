"""``--start-at``: several masters begin their benchmarks at one moment, each by its own clock."""

from __future__ import annotations

import logging
import time

from ssbench.document import units
from ssbench.run.lane import TICK
from ssbench.run.loop import Loop
from ssbench.run.moment import spell
from ssbench.store.contract import Bounds

_log = logging.getLogger(__name__)

#: Seconds between two messages on what is waited for.
_SAY_SECONDS = 10.0

#: A benchmark that begins later than this (seconds) is late; clocks that are further apart are wrong.
_LATE = 0.1
_CLOCKS = 0.5


def warn_of_clock(found: Bounds | None, loop: Loop) -> None:
    """Say how far the clock of this host is from that of the store."""
    if found is None:
        loop.news.warn(
            "The store does not tell the time, or its servers tell different ones, so that the clock of this"
            " host is not checked"
        )
        return
    least, most = found
    if least > _CLOCKS or most < -_CLOCKS:
        seconds, where = (least, "behind") if least > 0 else (-most, "ahead of")
        loop.news.warn(
            f"The clock of this host is at least {units.moment(seconds)} s {where} the store's: masters with"
            " other clocks begin at other moments. Check NTP"
        )
    else:
        _log.info(
            "The clock of this host is from %s s to %s s behind the store's",
            units.seconds(least),
            units.seconds(most),
        )


def wait(loop: Loop, moment: float) -> None:
    """Return at a moment (seconds since 1970), or when the run is interrupted; warns where it is over."""
    late = time.time() - moment
    if late > _LATE:
        loop.news.warn(
            f"The benchmark begins {units.moment(late)} s after --start-at {spell(moment)}, because workers,"
            " containers and initial objects took until now: the masters do not begin together. Choose a"
            " later time"
        )
        return
    said_at = -float("inf")
    # By the monotonic clock, so that a step of the other one does not stretch it.
    until = loop.clock() + moment - time.time()
    while not loop.interrupted.is_set() and (left := until - (now := loop.clock())) > 0:
        loop.tick(now)
        if now - said_at >= _SAY_SECONDS:
            said_at = now
            _log.info("Ready; the benchmark begins in %.0f s, at %s", left, spell(moment))
        loop.fleet.receive(min(TICK, left))
