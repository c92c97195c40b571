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

from collections import deque
from itertools import groupby, repeat
from operator import itemgetter

import gevent
from gevent import getcurrent

from ssbench.fleet.wire import JobBatch, RunParameters
from ssbench.swift.outcome import Outcome
from ssbench.worker.engine.contract import Ended, Engine
from ssbench.worker.engine.due import DueJobs, Work
from ssbench.worker.engine.noop import NoopEngine
from ssbench.worker.requests import Run, as_result

#: A job that has ended: the id of its batch, the generation of the parameters with which it began, its own
#: id, how it ended, the place of its storage URL, when it was due.
_Finished = tuple[int, int, int, Outcome, int, float | None]


class GreenletEngine:
    """Makes requests from at most ``slots`` greenlets; an :class:`~ssbench.worker.engine.contract.Engine`."""

    def __init__(self, parameters: RunParameters, slots: int, ended: Ended) -> None:
        self.busy = 0
        self.begun = 0
        self._run = Run(parameters, slots)
        self._ended = ended
        self._slots = slots
        #: How many jobs may run at once.
        self._users = slots
        self._queue: deque[Work] = deque()
        #: Jobs that wait for their time; none of them begins before one of the queue.
        self._due = DueJobs(self._begin_due)
        self._idle: list[gevent.Greenlet] = []
        #: Jobs that have ended, and whose results are not passed on.
        self._finished: list[_Finished] = []
        self._closed = False
        self._hub = gevent.get_hub()

    @property
    def waiting(self) -> int:
        return len(self._queue) + len(self._due)

    def submit(self, batch: JobBatch) -> None:
        batch_id, histories = batch.batch_id, batch.histories or repeat(None)
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

    def _next(self) -> Work | None:
        """Take the next job that may begin; None if there is none."""
        if self._queue:
            return self._queue.popleft()
        return self._due.take() if self._due else None

    def _begin_due(self) -> None:
        self.share(self._users)

    def update(self, parameters: RunParameters) -> None:
        self._run.parameters = parameters

    def cancel(self) -> list[tuple[int, int]]:
        self._pass_on()
        works = [*self._queue, *self._due.clear()]
        self._queue.clear()
        return [(batch_id, job[0]) for batch_id, job, _, _ in works]

    def close(self) -> None:
        self._closed = True
        self._queue.clear()
        self._due.close()
        gevent.killall(self._idle, block=False)
        self._idle.clear()
        # Requests in flight fail at once, and their slots end.
        self._run.close()

    def _slot(self, work: Work) -> None:
        run, idle, finished = self._run, self._idle, self._finished
        run_callback = self._hub.loop.run_callback
        switch_to_hub, perform = self._hub.switch, self._run.perform
        while not self._closed:
            batch_id, job, history, due = work
            self.begun = max(self.begun, job[0])
            generation = run.parameters.generation
            outcome, storage_url = perform(job, history)
            finished.append((batch_id, generation, job[0], outcome, storage_url, due))
            if len(finished) == 1:
                run_callback(self._pass_on)
            think_time = run.parameters.think_time if due is None else 0.0
            if think_time and not self._closed:
                gevent.sleep(think_time)  # the user is not free meanwhile
            self.busy -= 1
            following = self._next() if self.busy < self._users else None
            if following is not None:
                self.busy += 1
                work = following
            elif not self._closed:
                idle.append(getcurrent())
                work = switch_to_hub()

    def _pass_on(self) -> None:
        """Pass on the results of the jobs that have ended."""
        if self._closed:
            return
        finished = self._finished.copy()
        self._finished.clear()
        for (batch_id, generation), of_batch in groupby(finished, itemgetter(0, 1)):
            results, refused = [], None
            for _, _, job_id, outcome, storage_url, due in of_batch:
                results.append(as_result(job_id, outcome, storage_url, due))
                if outcome.unauthorized:
                    # The token that was refused is the one the job began with: there may be a new one since.
                    refused = generation
            self._ended(batch_id, results, refused)


def make_engine(parameters: RunParameters, slots: int, ended: Ended) -> Engine:
    """Return the engine that a run needs."""
    return (NoopEngine if parameters.noop else GreenletEngine)(parameters, slots, ended)
