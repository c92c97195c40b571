"""The engine of no-op runs: each job ends at once, and no request is made."""

# ruff: noqa: D102 - the methods are documented in Engine

from __future__ import annotations

import time
from collections.abc import Sequence

from ssbench.fleet.wire import Brief, Job, JobBatch, Result, RunParameters
from ssbench.worker.engine.contract import Ended
from ssbench.worker.engine.due import DueJobs


class NoopEngine:
    """Ends jobs within :meth:`submit`, or when they are due.

    An :class:`~ssbench.worker.engine.contract.Engine`.
    """

    def __init__(self, _parameters: RunParameters, _slots: int, ended: Ended) -> None:
        self.busy = 0
        self.begun = 0
        self._ended = ended
        self._due = DueJobs(self._end_due)

    @property
    def waiting(self) -> int:
        return len(self._due)

    def submit(self, batch: JobBatch) -> None:
        now = time.monotonic()
        jobs: Sequence[Job] = batch.jobs
        if batch.dues:
            for job, due in zip(batch.jobs, batch.dues, strict=True):
                if due is not None:
                    self._due.add(batch.start + due, (batch.batch_id, job, None, batch.start + due))
            jobs = [job for job, due in zip(batch.jobs, batch.dues, strict=True) if due is None]
            self._end_due()
        if jobs:
            self.begun = max(self.begun, jobs[-1][0])
            self._ended(batch.batch_id, [Brief(job[0], 0.0, 0.0, now) for job in jobs])

    def _end_due(self) -> None:
        while (work := self._due.take()) is not None:
            batch_id, job, _, due = work
            now = time.monotonic()
            self.begun = max(self.begun, job[0])
            self._ended(batch_id, [Result(job[0], 0.0, 0.0, now, late=now - (due or now))])

    def share(self, users: int) -> None:
        pass

    def update(self, parameters: RunParameters) -> None:
        pass

    def cancel(self) -> list[tuple[int, int]]:
        return [(batch_id, job[0]) for batch_id, job, _, _ in self._due.clear()]

    def close(self) -> None:
        self._due.close()
