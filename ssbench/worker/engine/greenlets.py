"""The engine of real runs: slots, which are greenlets that make one job's requests after another.

There are at most as many slots as the worker has concurrency, made when they are first needed. A job
that is submitted while a slot is idle begins at once: the event loop switches straight into the slot, and
back when the slot first waits. Through a queue and an event it would take a turn of the loop more. A slot
that has ended a job takes the next one from the queue, unless the worker's share of the users has shrunk. It
sends the request of that before the result of the last one is passed on, which the event loop does when it is
its turn: so the user is idle for less time, and the results of several slots are passed on together. In
an open loop a job waits for its time (:mod:`ssbench.worker.engine.due`) and for a user.
"""

# ruff: noqa: D102 - the methods are documented in Engine

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from itertools import repeat
from pathlib import Path
from time import monotonic

import gevent
from gevent import getcurrent

from ssbench.base.errors import UsageError
from ssbench.fleet.wire import BriefResult, Job, JobBatch, JobResult, RunParameters, Spent
from ssbench.scenario.body_files import refuse_outside
from ssbench.worker.engine.contract import Engine, JobsEnded
from ssbench.worker.engine.due import DueJobs, DueWork
from ssbench.worker.engine.noop import NoopEngine
from ssbench.worker.requests import WorkerRun, make_job_result
from ssbench.worker.short_way import FastPath, make_fast_path

#: A job that has ended: the id of its batch, its result, and the generation of the parameters with which it
#: began where its token was refused.
_FinishedJob = tuple[int, JobResult, int | None]


class GreenletEngine:
    """Makes requests from at most ``slots`` greenlets; an :class:`~ssbench.worker.engine.contract.Engine`."""

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
        self._run.forget_names(job[0] for _, job, _, _ in works)
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
        if self._run.named:
            self._run.forget_names(result.job_id for _, result, _ in finished)
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
    if parameters.files is not None and not parameters.noop:
        try:
            refuse_outside(Path(parameters.files.folder), bodies)
        except ValueError as error:
            raise UsageError(f"body: {error}") from None
    return (NoopEngine if parameters.noop else GreenletEngine)(parameters, slots, ended)
