"""The engine of no-op runs: jobs take no time, and no request is made. Only thinking keeps users busy."""

# ruff: noqa: D102 - the methods are documented in Engine

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter

import gevent

from ssbench.fleet.wire import BriefResult, Job, JobBatch, JobResult, RunParameters
from ssbench.worker.engine.contract import JobsEnded
from ssbench.worker.engine.due import DueJobs


class NoopEngine:
    """Ends jobs within :meth:`submit`, when they are due, or when a user has thought.

    An :class:`~ssbench.worker.engine.contract.Engine`.
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
