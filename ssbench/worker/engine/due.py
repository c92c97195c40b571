"""Jobs that wait until they are due, and the clock that wakes their engine.

The alarm is a timerfd of Linux, which is exact to some tens of microseconds: a timer of the event loop is up
to a millisecond late, because epoll counts in those. Elsewhere that one is used. What is left is how long a
sleeping core takes to wake up: the timer is set earlier by that much, and the last microseconds are spent in
a busy wait.
"""

from __future__ import annotations

import ctypes
import heapq
import math
import os
import struct
import time
from collections.abc import Callable

import gevent

from ssbench.fleet.wire import Job, Spent

#: A job to carry out: the id of its batch, itself, its history, when it is due (None: at once).
DueWork = tuple[int, Job, Spent | None, float | None]

_ABSOLUTE_TIMER = 1  # TFD_TIMER_ABSTIME

#: The timer is set at most this long before the moment (seconds): nothing else is done in what is left of it.
_MAX_EARLY_SECONDS = 100e-6

#: By how much (seconds) a timer that rings after the moment makes the next ones earlier. One that rings
#: before makes them later by a third of it, so that three of four ring before.
_STEP_SECONDS = 2e-6


#: struct itimerspec: an interval, which is 0, and a moment, each in seconds and nanoseconds.
_TIMER_LAYOUT = struct.Struct("4l")


class GreenletAlarm:
    """Calls ``wake`` on the event loop at a moment of the monotonic clock; one at a time."""

    def __init__(self, wake: Callable[[], object]) -> None:
        self._wake = wake
        self._loop = gevent.get_hub().loop
        # The call takes no time, so the lock of the interpreter is kept. A structure of ctypes, made for each
        # call, would double what it costs.
        library = ctypes.PyDLL(None)
        self._specification = ctypes.create_string_buffer(_TIMER_LAYOUT.size)
        self._descriptor = -1
        self._at = math.inf
        self._early = 0.0
        #: Whether the moment was ahead when it was set, so that the timer shows how long waking up takes.
        self._ahead = False
        if hasattr(library, "timerfd_create"):
            self._descriptor = library.timerfd_create(time.CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC)
            self._set_timer = library.timerfd_settime
            self._set_timer.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
        self._watcher = self._loop.io(self._descriptor, 1) if self._descriptor >= 0 else self._loop.timer(0.0)
        if self._descriptor >= 0:
            self._watcher.start(self._ring)

    def set(self, moment: float) -> None:
        """Ring then, at once if that has passed; infinity: not at all. An earlier setting is forgotten."""
        if moment == self._at:
            return
        self._at = moment
        if self._descriptor < 0:
            self._watcher.stop()
            if moment < math.inf:
                self._watcher = self._loop.timer(max(0.0, moment - time.monotonic()))
                self._watcher.start(self._ring)
        else:
            self._set_timer_to(moment)

    def _set_timer_to(self, moment: float) -> None:
        # No moment at all turns it off, and one that has passed rings at once.
        timer = max(moment - self._early, 1e-9) if moment < math.inf else 0.0
        self._ahead = timer > time.monotonic()
        seconds = int(timer)
        nanoseconds = int((timer - seconds) * 1e9)
        _TIMER_LAYOUT.pack_into(self._specification, 0, 0, 0, seconds, nanoseconds)
        self._set_timer(self._descriptor, _ABSOLUTE_TIMER, self._specification, None)

    def _ring(self) -> None:
        moment = self._at
        if moment == math.inf or (self._ahead and time.monotonic() < moment - _MAX_EARLY_SECONDS):
            return  # it was set anew meanwhile
        if self._ahead:
            self._wait_out(moment)
        self._at = math.inf
        self._wake()
        if self._at == math.inf and self._descriptor >= 0:
            # A timer that was not set anew would ring on. To read it, as is usual, would be one call more for
            # each that was.
            self._set_timer_to(math.inf)

    def _wait_out(self, moment: float) -> None:
        """Busy-wait for the moment, but not for long; note how early the timer has to be."""
        now = time.monotonic()
        if now > moment:
            self._early = min(self._early + _STEP_SECONDS, _MAX_EARLY_SECONDS)
            return
        self._early = max(self._early - _STEP_SECONDS / 3, 0.0)
        moment = min(moment, now + _MAX_EARLY_SECONDS)
        while time.monotonic() < moment:
            pass

    def close(self) -> None:
        """Ring no more."""
        self._watcher.stop()
        self._watcher.close()
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class DueJobs:
    """Jobs by when they are due. ``wake`` is called when the first of them is, if it was not taken before."""

    def __init__(self, wake: Callable[[], object]) -> None:
        self._heap: list[tuple[float, int, DueWork]] = []
        self._wake = wake
        #: Made when it is needed: most runs have no due times.
        self._alarm: GreenletAlarm | None = None

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, due: float, work: DueWork) -> None:
        """Keep a job until then."""
        heapq.heappush(self._heap, (due, work[1][0], work))

    def take(self, now: float) -> DueWork | None:
        """Take the job that has been due for longest. None if none is due: then the alarm is set."""
        heap = self._heap
        if not heap:
            if self._alarm is not None:
                self._alarm.set(math.inf)
            return None
        moment = heap[0][0]
        if moment <= now:
            return heapq.heappop(heap)[2]
        if self._alarm is None:
            self._alarm = GreenletAlarm(self._wake)
        self._alarm.set(moment)
        return None

    def clear(self) -> list[DueWork]:
        """Forget all jobs; return them in order."""
        works = [work for _, _, work in sorted(self._heap)]
        self._heap.clear()
        if self._alarm is not None:
            self._alarm.set(math.inf)
        return works

    def close(self) -> None:
        """Forget all jobs for good."""
        self.clear()
        if self._alarm is not None:
            self._alarm.close()
            self._alarm = None
