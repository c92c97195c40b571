"""The engine of real runs: slots, which are greenlets that make one job's requests after another.

There are at most as many slots as the worker has concurrency, made when they are first needed. A job
that is submitted while a slot is idle begins at once: the event loop switches straight into the slot, and
back when the slot first waits. Through a queue and an event it would take a turn of the loop more.
"""

# ruff: noqa: D102 - the methods are documented in Engine

from __future__ import annotations

from collections import deque

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
        self._run = Run(parameters, slots)
        self._ended = ended
        #: How many slots may still be made.
        self._unmade = slots
        self._queue: deque[_Work] = deque()
        self._idle: list[gevent.Greenlet] = []
        self._closed = False
        self._hub = gevent.get_hub()

    @property
    def waiting(self) -> int:
        return len(self._queue)

    def submit(self, batch: JobBatch) -> None:
        idle, batch_id, histories = self._idle, batch.batch_id, batch.histories
        for place, job in enumerate(batch.jobs):
            work = (batch_id, job, histories[place] if histories else None)
            if idle:
                idle.pop().switch(work)
                continue
            self._queue.append(work)
            if self._unmade:
                self._unmade -= 1
                gevent.spawn(self._slot)

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

    def _slot(self) -> None:
        run, queue, idle = self._run, self._queue, self._idle
        switch_to_hub, perform = self._hub.switch, self._run.perform
        while not self._closed:
            if queue:
                batch_id, job, history = queue.popleft()
            else:
                idle.append(getcurrent())
                batch_id, job, history = switch_to_hub()
            self.busy += 1
            generation = run.parameters.generation
            outcome, storage_url = perform(job, history)
            self.busy -= 1
            if not self._closed:
                # The token that was refused is the one the job began with: there may be a new one since.
                refused = generation if outcome.unauthorized else None
                self._ended(batch_id, [as_result(job[0], outcome, storage_url)], refused)


def make_engine(parameters: RunParameters, slots: int, ended: Ended) -> Engine:
    """Return the engine that a run needs."""
    return (NoopEngine if parameters.noop else GreenletEngine)(parameters, slots, ended)
