"""The engine of no-op runs: each job ends at once, and no request is made."""

# ruff: noqa: D102 - the methods are documented in Engine

from __future__ import annotations

import time

from ssbench.fleet.wire import Brief, JobBatch, RunParameters
from ssbench.worker.engine.contract import Ended


class NoopEngine:
    """Ends each batch within :meth:`submit`; an :class:`~ssbench.worker.engine.contract.Engine`."""

    def __init__(self, _parameters: RunParameters, _slots: int, ended: Ended) -> None:
        self.busy = 0
        self.begun = 0
        self.waiting = 0
        self._ended = ended

    def submit(self, batch: JobBatch) -> None:
        now = time.monotonic()
        self.begun = batch.jobs[-1][0]
        self._ended(batch.batch_id, [Brief(job[0], 0.0, 0.0, now) for job in batch.jobs])

    def share(self, users: int) -> None:
        pass

    def update(self, parameters: RunParameters) -> None:
        pass

    def cancel(self) -> list[tuple[int, int]]:
        return []

    def close(self) -> None:
        pass
