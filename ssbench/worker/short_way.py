"""The short way of a usual job: one request on a kept connection, and its result made at once.

It does what :meth:`ssbench.worker.requests.WorkerRun.perform` does, the careful way, for jobs that need none of
its care: no history, one storage URL, a request that is sent in one piece, an answer that comes in one.
Everything else goes the careful way: from the start where that can be seen before, or from where the request
was sent. Tests hold both to the same answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ssbench.fleet.wire import Job, JobResult, RareFields
from ssbench.store.http.connection import HttpConnection
from ssbench.store.http.payload import PIECE_BYTES
from ssbench.worker.apart import FreshConnections
from ssbench.worker.requests import MAX_DETAIL_CHARACTERS, WorkerRun


class FastPath:
    """That of one slot, which keeps its connection from one job to the next.

    ``begun`` is the connection on which the request of the last job was sent that did not end this way.
    """

    __slots__ = ("_begin_body", "_connection", "_plans", "_run", "_sample", "begun")

    def __init__(self, run: WorkerRun) -> None:
        self.begun: HttpConnection | None = None
        self._run = run
        self._plans = run.plans
        self._begin_body = run.client.payload.begin
        self._sample = run.client.sample
        self._connection: HttpConnection | None = None

    def perform(self, job: Job, due: float | None) -> JobResult | None:
        """Carry out a job; None where the careful way has to, from ``begun`` on if that is set."""
        job_id, code, size_class, container, number, size = job
        try:
            plan = self._plans[code, size_class, container]
        except KeyError:
            plan = self._plans[code, size_class, container] = self._run.plan(code, size_class, container)
        if (
            plan is None
            or (plan.sends and not 0 < size <= PIECE_BYTES)
            or (self._connection is None and not self._take_kept(plan.pool.idle))
            or (plan.reads and self._sample.is_next())
        ):
            return None
        connection, self._connection = self._connection, None
        if TYPE_CHECKING:
            assert connection is not None
        name = number if plan.named is None else plan.named(job)
        if plan.sends:
            body, offset, digest = self._begin_body(size)
            message = plan.template % (name, size, body)
            head = connection.exchange_briefly(message, digest, size - len(body), offset)
        else:
            head = connection.exchange_briefly(plan.template % name, None)
        if head is None or (
            plan.reads and (head.status != 200 or (size != head.length and plan.sized and size))
        ):
            self.begun = connection
            return None
        self._connection = connection
        sent_at, ended = connection.sent_at, connection.received_at
        trans_id = head.trans_id
        return JobResult(
            job_id,
            None if plan.sends else ended - sent_at,
            ended - sent_at,
            ended,
            size if plan.sends else head.length,
            0,
            trans_id if trans_id is None else trans_id[:MAX_DETAIL_CHARACTERS],
            None,
            "",
            None,
            False,
            0,
            None,
            head.status,
            None,
            0,
            RareFields(address=connection.address, unchecked=int(connection.unchecked))
            if connection.address or connection.unchecked
            else None,
            None if due is None else max(0.0, sent_at - due),
        )

    def rest(self) -> None:
        """Give the connection back: its slot waits for something else."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.rest()

    def _take_kept(self, idle: list[HttpConnection]) -> bool:
        """Take a kept connection of the kind whose bytes come from the kernel alone; False without one."""
        if not idle or not idle[-1].stamped:
            return False
        self._connection = connection = idle.pop()
        connection.claim()
        return True


class _KeptFastPath(FastPath):
    """A short way of those jobs alone that use kept connections."""

    __slots__ = ("_apart",)

    def __init__(self, run: WorkerRun, apart: FreshConnections) -> None:
        super().__init__(run)
        self._apart = apart

    def perform(self, job: Job, due: float | None) -> JobResult | None:
        return None if self._apart.has(job) else super().perform(job, due)


def make_fast_path(run: WorkerRun) -> FastPath:
    """Return a short way for one slot of a run."""
    return FastPath(run) if run.apart is None else _KeptFastPath(run, run.apart)
