"""Engines: greenlets that make the requests of real runs, and one of no-op runs that makes none.

An engine (:class:`Engine`) carries out the jobs of one run. The worker makes one when the parameters of a run
arrive, and closes it when the run ends. How late the event loop runs is measured by the worker, not by the
engine: it delays every engine alike.
"""

from __future__ import annotations

import ctypes
import heapq
import math
import os
import struct
import time

# ruff: noqa: D102 - the methods are documented in Engine
from collections import deque
from collections.abc import Callable, Sequence
from itertools import groupby, repeat
from operator import itemgetter
from pathlib import Path
from time import monotonic
from typing import Protocol

import gevent
from gevent import getcurrent

from ssbench.base.errors import UsageError
from ssbench.fleet.wire import Job, JobBatch, RunParameters, Spent
from ssbench.scenario.structured_values import refuse_outside
from ssbench.store.contract import BriefResult, JobResult
from ssbench.worker.worker_run import FastPath, WorkerRun, make_fast_path, make_job_result


class JobsEnded(Protocol):
    """The worker's callback for jobs that have ended."""

    def __call__(self, batch_id: int, results: Sequence[BriefResult], refused: int | None = None) -> None:
        """Receive results of jobs of one batch, one or several; each is a Brief or a Result.

        ``refused`` is the generation of the parameters with which a job began whose token was refused
        (:attr:`~ssbench.store.contract.JobResult.unauthorized`), None if there is none. Called from the
        engine's slots, or from within :meth:`Engine.submit`. It does not block and raises nothing.
        """


class Engine(Protocol):
    """Carries out the jobs of a run.

    The worker decides how many jobs it accepts from the master, and the engine never refuses one. All calls
    come from one thread, and none may block it: an engine works between them, as greenlets on the worker's
    event loop do.

    It runs as many jobs at once as the worker has users, which may be fewer than it has slots. The others
    wait, in the order in which they were submitted. Jobs with a due time begin in order of that, when it has
    come and a user is free; none is dropped, and their results say how late they began. With a think time, a
    user waits for so long between two jobs.

    Each job that was submitted ends in exactly one of three ways: one result is passed to
    :class:`JobsEnded`, :meth:`cancel` returns it, or :meth:`close` drops it.
    """

    #: Slots in use: jobs that have begun and not ended.
    busy: int

    #: The number of the last job that has begun; the largest, where they do not begin in order.
    begun: int

    @property
    def waiting(self) -> int:
        """How many jobs were submitted and have not begun."""

    def submit(self, batch: JobBatch) -> None:
        """Carry out the jobs of a batch; a job begins at once if a user is free.

        From now on there are ``batch.users`` of them. Whatever goes wrong with a job is in its result.
        Called from the event loop.
        """

    def share(self, users: int) -> None:
        """Run at most this many jobs at once from now on. Those that go on are not stopped."""

    def trust_until(self, moment: float) -> None:
        """Begin jobs only before this moment of the monotonic clock; after it others may have them.

        The engine looks at the clock itself: a worker that was stopped continues where it was, before
        anything of the worker has a turn. Jobs that wait for that reason begin when this is called again.
        """

    def update(self, parameters: RunParameters) -> None:
        """Use later parameters of the same run, such as a new token, for jobs that begin from now on."""

    def cancel(self) -> list[tuple[int, int]]:
        """Take back the jobs that have not begun; return them as (batch id, job id). The others go on.

        The results of all that have ended were passed on when this returns.
        """

    def close(self) -> None:
        """End the run: drop all jobs, close all connections. No result is passed on from now on."""


#: Makes an engine of this many slots for a run.
MakeEngine = Callable[[RunParameters, int, JobsEnded], Engine]


# -- Jobs that are due -----------------------------------------------------------------------------


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
    """Calls ``wake`` on the event loop at a moment of the monotonic clock; one at a time.

    It is a timerfd of Linux, which is exact to some tens of microseconds: a timer of the event loop is up to
    a millisecond late, because epoll counts in those. Elsewhere that one is used. What is left is how long a
    sleeping core takes to wake up: the timer is set earlier by that much, and the last microseconds are spent
    in a busy wait.
    """

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


# -- The engine of no-op runs ----------------------------------------------------------------------


class NoopEngine:
    """Ends jobs within :meth:`submit`, when they are due, or when a user has thought; an :class:`Engine`.

    Jobs take no time here; only thinking keeps users busy.
    """

    def __init__(self, parameters: RunParameters, slots: int, ended: JobsEnded) -> None:
        self.busy = 0
        self.begun = 0
        self._think_time = parameters.think_time
        self._slots = self._users = slots
        self._ended = ended
        #: Jobs that wait for a user, each with its batch.
        self._queue: deque[tuple[int, Job]] = deque()
        self._due = DueJobs(self._begin_more)
        self._hub = gevent.get_hub()

    @property
    def waiting(self) -> int:
        return len(self._queue) + len(self._due)

    def submit(self, batch: JobBatch) -> None:
        jobs: Sequence[Job] = batch.jobs
        if batch.dues:
            for job, due in zip(batch.jobs, batch.dues, strict=True):
                if due is not None:
                    self._due.add(batch.start + due, (batch.batch_id, job, None, batch.start + due))
            jobs = [job for job, due in zip(batch.jobs, batch.dues, strict=True) if due is None]
        if jobs and batch.users and not self._think_time and not self._queue:
            # Nearly all do not wait for a user; through the queue they would take twice as long.
            self._end(batch.batch_id, jobs)
        else:
            self._queue += ((batch.batch_id, job) for job in jobs)
        self.share(batch.users)

    def _end(self, batch_id: int, jobs: Sequence[Job]) -> None:
        now = time.monotonic()
        self.begun = max(self.begun, jobs[-1][0])
        self._ended(batch_id, [BriefResult(job[0], 0.0, 0.0, now) for job in jobs])

    def share(self, users: int) -> None:
        self._users = min(users, self._slots)
        self._begin_more()

    def _begin_more(self) -> None:
        while self._queue and self.busy < self._users:
            count = len(self._queue)
            if self._think_time:
                count = min(count, self._users - self.busy)
                self.busy += count
                # A timer counts from when the loop last looked at the clock, so the time to think would lack
                # what has passed since.
                self._hub.loop.update_now()
                gevent.spawn_later(self._think_time, self._have_thought, count)
            begin = [self._queue.popleft() for _ in range(count)]
            for batch_id, works in groupby(begin, itemgetter(0)):
                self._end(batch_id, [job for _, job in works])
        while self.busy < self._users and (work := self._due.take(time.monotonic())) is not None:
            batch_id, job, _, due = work
            now = time.monotonic()
            self.begun = max(self.begun, job[0])
            self._ended(batch_id, [JobResult(job[0], 0.0, 0.0, now, late=now - (due or now))])

    def _have_thought(self, users: int) -> None:
        self.busy -= users
        self._begin_more()

    def trust_until(self, moment: float) -> None:
        pass  # to do jobs twice that make no request changes nothing

    def update(self, parameters: RunParameters) -> None:
        self._think_time = parameters.think_time

    def cancel(self) -> list[tuple[int, int]]:
        works = [(batch_id, job[0]) for batch_id, job in self._queue]
        self._queue.clear()
        return works + [(batch_id, job[0]) for batch_id, job, _, _ in self._due.clear()]

    def close(self) -> None:
        self._queue.clear()
        self._due.close()


# -- The engine of real runs -----------------------------------------------------------------------


#: A job that has ended: the id of its batch, its result, and the generation of the parameters with which it
#: began where its token was refused.
_FinishedJob = tuple[int, JobResult, int | None]


class GreenletEngine:
    """Makes requests from at most ``slots`` greenlets, made when they are first needed; an :class:`Engine`.

    A job that is submitted while a slot is idle begins at once: the event loop switches straight into the
    slot, and back when the slot first waits. Through a queue and an event it would take a turn of the loop
    more. A slot that has ended a job takes the next one from the queue, unless the worker's share of the
    users has shrunk. It sends the request of that before the result of the last one is passed on, which the
    event loop does when it is its turn: so the user is idle for less time, and the results of several slots
    are passed on together.
    """

    def __init__(self, parameters: RunParameters, slots: int, ended: JobsEnded) -> None:
        self.busy = 0
        self.begun = 0
        self._run = WorkerRun(parameters, slots)
        self._ended = ended
        self._slots = slots
        #: How many jobs may run at once.
        self._users = slots
        #: No job begins after this moment.
        self._trusted_until = math.inf
        self._queue: deque[DueWork] = deque()
        #: Jobs that wait for their time; none of them begins before one of the queue.
        self._due = DueJobs(self._begin_due)
        self._idle: list[gevent.Greenlet] = []
        #: Jobs that have ended, and whose results are not passed on.
        self._finished: list[_FinishedJob] = []
        self._closed = False
        self._hub = gevent.get_hub()

    @property
    def waiting(self) -> int:
        return len(self._queue) + len(self._due)

    def submit(self, batch: JobBatch) -> None:
        batch_id, histories = batch.batch_id, batch.histories or repeat(None)
        if batch.paths:
            self._run.name(batch)
        if batch.versions:
            self._run.expect(batch)
        if batch.dues:
            for job, history, due in zip(batch.jobs, histories, batch.dues):  # noqa: B905 - one is endless
                if due is None:
                    self._queue.append((batch_id, job, history, None))
                else:
                    moment = batch.start + due
                    self._due.add(moment, (batch_id, job, history, moment))
        else:
            self._queue += zip(repeat(batch_id), batch.jobs, histories, repeat(None))
        self.share(batch.users)

    def share(self, users: int) -> None:
        self._users = users = min(users, self._slots)
        # A slot may end its job at once, and take more from the queue.
        while self.busy < users and (work := self._next()) is not None:
            self.busy += 1
            if self._idle:
                self._idle.pop().switch(work)
            else:
                gevent.spawn(self._slot, work)

    def _next(self) -> DueWork | None:
        """Take the next job that may begin; None if there is none."""
        now = monotonic()
        if now > self._trusted_until:
            return None
        return self._queue.popleft() if self._queue else self._due.take(now)

    def trust_until(self, moment: float) -> None:
        self._trusted_until = moment
        self.share(self._users)

    def _begin_due(self) -> None:
        self.share(self._users)

    def update(self, parameters: RunParameters) -> None:
        self._run.update(parameters)

    def cancel(self) -> list[tuple[int, int]]:
        self._pass_on()
        works = [*self._queue, *self._due.clear()]
        self._queue.clear()
        self._run.forget(job[0] for _, job, _, _ in works)
        return [(batch_id, job[0]) for batch_id, job, _, _ in works]

    def close(self) -> None:
        self._closed = True
        self._queue.clear()
        self._due.close()
        gevent.killall(self._idle, block=False)
        self._idle.clear()
        # Requests in flight fail at once, and their slots end.
        self._run.close()

    def _slot(self, work: DueWork) -> None:
        run, idle, finished, queue = self._run, self._idle, self._finished, self._queue
        run_callback = self._hub.loop.run_callback
        switch_to_hub = self._hub.switch
        short_way = make_fast_path(run)
        try:
            while not self._closed:
                batch_id, job, history, due = work
                if job[0] > self.begun:  # noqa: PLR1730 - max() is a call
                    self.begun = job[0]
                parameters, refused = run.parameters, None
                result = short_way.perform(job, due) if history is None else None
                if result is None:
                    result = self._perform(job, history, due, short_way)
                    if result.unauthorized:
                        # There may be a new token by now: what was refused is the one that it began with.
                        refused = parameters.generation
                if not finished:
                    run_callback(self._pass_on)
                finished.append((batch_id, result, refused))
                if due is None and run.parameters.think_time and not self._closed:
                    short_way.rest()
                    gevent.sleep(run.parameters.think_time)  # the user is not free meanwhile
                if self.busy <= self._users:
                    # A call of _next() would take as long again as this.
                    trusted = queue and monotonic() <= self._trusted_until
                    following = queue.popleft() if trusted else self._next()
                    if following is not None:
                        work = following
                        continue
                self.busy -= 1
                if not self._closed:
                    short_way.rest()
                    idle.append(getcurrent())
                    work = switch_to_hub()
        finally:
            short_way.rest()

    def _perform(self, job: Job, history: Spent | None, due: float | None, short_way: FastPath) -> JobResult:
        """Carry out a job carefully, from where the short way left it."""
        begun, short_way.begun = short_way.begun, None
        if begun is None:
            short_way.rest()
        outcome, storage_url = self._run.perform(job, history, begun)
        return make_job_result(job[0], outcome, storage_url, due)

    def _pass_on(self) -> None:
        """Pass on the results of the jobs that have ended."""
        finished = self._finished.copy()
        self._finished.clear()
        if self._closed or not finished:
            return
        if self._run.named or self._run.least:
            self._run.forget(result.job_id for _, result, _ in finished)
        results: list[BriefResult] = []
        last_id, last_refused = finished[0][0], None
        for batch_id, result, refused in finished:
            if batch_id != last_id or refused != last_refused:
                if results:
                    self._ended(last_id, results, last_refused)
                results, last_id, last_refused = [], batch_id, refused
            results.append(result)
        self._ended(last_id, results, last_refused)


def make_engine(
    parameters: RunParameters, slots: int, ended: JobsEnded, *, bodies: Sequence[Path] = ()
) -> Engine:
    """Return the engine that a run needs; ``bodies`` are the folders whose files this worker may upload.

    Raises UsageError where this host lacks what the run needs, or may not use it.
    """
    body = parameters.scenario.body
    if body is not None and body.files is not None and not parameters.noop:
        try:
            refuse_outside(Path(body.files.folder), bodies)
        except ValueError as error:
            raise UsageError(f"body: {error}") from None
    return (NoopEngine if parameters.noop else GreenletEngine)(parameters, slots, ended)
