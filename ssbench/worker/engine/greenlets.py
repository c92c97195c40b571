"""The engine of real runs: slots, which are greenlets that make one job's requests after another.

There are at most as many slots as the worker has concurrency, made when they are first needed. A job
that is submitted while a slot is idle begins at once: the event loop switches straight into the slot, and
back when the slot first waits. Through a queue and an event it would take a turn of the loop more. A slot
that has ended a job takes the next one from the queue, unless the worker's share of the users has shrunk.
"""

# ruff: noqa: D102 - the methods are documented in Engine

from __future__ import annotations

from collections import deque
from itertools import repeat

import gevent
from gevent import getcurrent

from ssbench.fleet.wire import Job, JobBatch, RunParameters
from ssbench.worker.engine.contract import Ended, Engine
from ssbench.worker.engine.noop import NoopEngine
from ssbench.worker.requests import Run, as_result

#: A job to carry out: the id of its batch, itself, and its history.
_Work = tuple[int, Job, tuple[int, float] | None]


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
        self._queue: deque[_Work] = deque()
        self._idle: list[gevent.Greenlet] = []
        self._closed = False
        self._hub = gevent.get_hub()

    @property
    def waiting(self) -> int:
        return len(self._queue)

    def submit(self, batch: JobBatch) -> None:
        batch_id, histories = batch.batch_id, batch.histories
        if histories:
            self._queue += zip(repeat(batch_id), batch.jobs, histories)
        else:
            self._queue += zip(repeat(batch_id), batch.jobs, repeat(None))
        self.share(batch.users)

    def share(self, users: int) -> None:
        self._users = users = min(users, self._slots)
        queue, idle = self._queue, self._idle
        # A slot may end its job at once, and take more from the queue.
        while queue and self.busy < users:
            self.busy += 1
            if idle:
                idle.pop().switch(queue.popleft())
            else:
                gevent.spawn(self._slot, queue.popleft())

    def update(self, parameters: RunParameters) -> None:
        self._run.parameters = parameters

    def cancel(self) -> list[tuple[int, int]]:
        not_begun = [(batch_id, job[0]) for batch_id, job, _ in self._queue]
        self._queue.clear()
        return not_begun

    def close(self) -> None:
        self._closed = True
        self._queue.clear()
        gevent.killall(self._idle, block=False)
        self._idle.clear()
        # Requests in flight fail at once, and their slots end.
        self._run.close()

    def _slot(self, work: _Work) -> None:
        run, queue, idle = self._run, self._queue, self._idle
        switch_to_hub, perform = self._hub.switch, self._run.perform
        while not self._closed:
            batch_id, job, history = work
            self.begun = job[0]
            generation = run.parameters.generation
            outcome, storage_url = perform(job, history)
            self.busy -= 1
            if self._closed:
                return
            # The token that was refused is the one the job began with: there may be a new one since.
            refused = generation if outcome.unauthorized else None
            self._ended(batch_id, [as_result(job[0], outcome, storage_url)], refused)
            if queue and self.busy < self._users:
                self.busy += 1
                work = queue.popleft()
            else:
                idle.append(getcurrent())
                work = switch_to_hub()


def make_engine(parameters: RunParameters, slots: int, ended: Ended) -> Engine:
    """Return the engine that a run needs."""
    return (NoopEngine if parameters.noop else GreenletEngine)(parameters, slots, ended)
