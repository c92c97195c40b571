"""How late a worker's event loop is, and when it stalled.

A timer of the kernel becomes readable every :data:`LAG_TICK_SECONDS` seconds, as a socket does when an answer
comes. How late the loop calls back is what it adds to latencies. (A timer of the loop itself would not do: it
waits in whole milliseconds.) When a tick is due is taken from the timer that is armed, because making one may
take longer than the lateness that is measured. Where the loop stalled for :data:`LAG_GAP_SECONDS` seconds or
more, because the process was stopped or starved, the gap is kept.

Results say for how long gaps hid from them what the worker had to react to. A gap changes no latency while
the store is still working on a request that was sent whole: then nothing was waiting for the worker.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

from ssbench.fleet.wire import LAG_BUCKETS, MAX_GAPS, lag_bucket
from ssbench.store.contract import BriefResult, JobResult, change_rare_fields

#: Seconds between two ticks.
LAG_TICK_SECONDS = 0.02

#: The loop stalled when it was late by this (seconds).
LAG_GAP_SECONDS = 0.1

#: Of results that end now, the latest this many gaps are remembered.
_MAX_KEPT_GAPS = 32


class LagMeter:
    """Measures the lateness of a loop of gevent, from :meth:`start` to :meth:`stop`; may be started again."""

    def __init__(self, loop: Any) -> None:
        self._loop = loop
        self._counts = [0] * LAG_BUCKETS
        self._longest = 0.0
        self._due = 0.0
        #: Gaps, (begin, end), that overlap the time of results yet to come, and those still to be reported.
        self._gaps: deque[tuple[float, float]] = deque(maxlen=_MAX_KEPT_GAPS)
        self._unreported: list[tuple[float, float]] = []
        self._timer: int | None = None
        self._watcher: Any = None

    def start(self) -> None:
        """Begin to measure, unless it has begun."""
        if self._watcher is not None:
            return
        made = _make_kernel_timer(LAG_TICK_SECONDS)
        if made is None:
            self._watcher = self._loop.timer(LAG_TICK_SECONDS, LAG_TICK_SECONDS)
            self._due = time.monotonic() + LAG_TICK_SECONDS
        else:
            self._timer, self._due = made
            self._watcher = self._loop.io(self._timer, 1)
        self._watcher.start(self._tick)

    def stop(self) -> None:
        """Measure no more; what was measured stays."""
        if self._watcher is not None:
            self._watcher.stop()
            self._watcher.close()
            self._watcher = None
        if self._timer is not None:
            os.close(self._timer)
            self._timer = None

    def _tick(self) -> None:
        ticks = 1
        if self._timer is not None:
            try:
                ticks = int.from_bytes(os.read(self._timer, 8), sys.byteorder)
            except BlockingIOError:
                return
        now = time.monotonic()
        late = max(0.0, now - self._due)
        self._counts[lag_bucket(late)] += 1
        self._longest = max(self._longest, late)
        self._note_gap(now)
        self._due = (
            self._due + ticks * LAG_TICK_SECONDS if self._timer is not None else now + LAG_TICK_SECONDS
        )

    def _look(self) -> None:
        """Note a gap before the loop calls for the tick that is late."""
        if self._watcher is not None:
            self._note_gap(time.monotonic())

    def _note_gap(self, now: float) -> None:
        """Keep a gap that is there, or still lasts: its tick may be called back after those of sockets.

        One that begins within the last one continues it, so that no time is in two gaps.
        """
        begin = self._due
        if now - begin < LAG_GAP_SECONDS:
            return
        if self._gaps and begin <= self._gaps[-1][1]:
            begin = self._gaps.pop()[0]
        if self._unreported and self._unreported[-1][0] == begin:
            self._unreported.pop()
        self._gaps.append((begin, now))
        if len(self._unreported) < MAX_GAPS:
            self._unreported.append((begin, now))

    def take(self) -> tuple[list[int], float, list[tuple[float, float]]]:
        """Return, since the last call, how often ticks were how late, the most, and :meth:`take_gaps`."""
        self._look()
        taken = self._counts, self._longest, self.take_gaps()
        self._counts, self._longest = [0] * LAG_BUCKETS, 0.0
        return taken

    def take_gaps(self) -> list[tuple[float, float]]:
        """Return the gaps since the last call as (begin, end).

        One that is going on is among them after :meth:`mark`, which looks for it.
        """
        gaps, self._unreported = self._unreported, []
        return gaps

    def put_back(self, taken: tuple[list[int], float, list[tuple[float, float]]]) -> None:
        """Take back what :meth:`take` has just returned, because it could not be sent."""
        counts, longest, gaps = taken
        self._counts = [count + more for count, more in zip(counts, self._counts, strict=True)]
        self._longest = max(longest, self._longest)
        self._unreported = [*gaps, *self._unreported][:MAX_GAPS]

    def mark(self, results: Sequence[BriefResult]) -> list[BriefResult]:
        """Return results that have just ended, each with for how long gaps hid something from it."""
        self._look()
        return [self._marked(result) for result in results] if self._gaps else list(results)

    def _marked(self, result: BriefResult) -> BriefResult:
        if not isinstance(result, JobResult):
            return result
        took = (result.spent if result.last_byte is None else result.last_byte) or 0.0
        began = result.completed - took
        if began >= self._gaps[-1][1]:
            return result
        # Until its last request was sent there was something to do; then there is when the answer begins.
        sent = began + (result.rare.sending if result.rare is not None else 0.0)
        answered = began + (took if result.first_byte is None else result.first_byte)
        held = sum(
            _hidden_seconds(gap, began, sent, answered, result.completed)
            for gap in self._gaps
            if began < gap[1] and gap[0] < result.completed
        )
        return change_rare_fields(result, held=min(held, took)) if held else result


def _hidden_seconds(
    gap: tuple[float, float], began: float, sent: float, answered: float, ended: float
) -> float:
    """Return for how many seconds a gap kept something waiting of an operation that it overlaps.

    That ``began``, was ``sent`` whole, had the first byte of its answer, and ``ended`` at these moments. The
    kernel tells when bytes arrived, on most connections: those that arrived during the gap were not delayed
    themselves. What was read right after it, where the kernel does not tell, may have waited for all of it:
    that is up to a tick before the end that is known of the gap, whose tick may come after those of sockets.
    """
    begin, end = max(gap[0], began), gap[1]
    hidden = max(0.0, min(end, sent) - begin)
    read_after = end - LAG_TICK_SECONDS
    if read_after <= ended and answered - LAG_TICK_SECONDS <= end:
        since = begin if answered >= read_after else answered
        hidden += max(0.0, min(end, ended) - max(since, begin, sent))
    return hidden


class _KernelTime(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))

    @classmethod
    def after(cls, seconds: float) -> _KernelTime:
        return cls(int(seconds), int(seconds % 1 * 1e9))


class _KernelInterval(ctypes.Structure):
    _fields_ = (("interval", _KernelTime), ("first", _KernelTime))


#: The first moment of a timer is one of its clock, and not so long after now (timerfd_create(2)).
_ABSOLUTE = 1


def _make_kernel_timer(seconds: float) -> tuple[int, float] | None:
    """Return a descriptor that becomes readable at this interval, and when first, by the monotonic clock.

    None where there is no timerfd.
    """
    try:
        library = ctypes.CDLL(None, use_errno=True)
        timer: int = library.timerfd_create(time.CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC)
        if timer < 0:
            return None
        due = time.monotonic() + seconds
        interval = _KernelInterval(_KernelTime.after(seconds), _KernelTime.after(due))
        if library.timerfd_settime(timer, _ABSOLUTE, ctypes.byref(interval), None):
            os.close(timer)
            return None
    except (AttributeError, OSError):
        return None
    return timer, due
