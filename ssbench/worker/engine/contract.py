"""What a worker expects of an engine, and an engine of a worker.

An engine carries out the jobs of one run. The worker makes one when the parameters of a run arrive, and
closes it when the run ends; it decides how many jobs it accepts from the master, and the engine never
refuses one. All calls come from one thread, and none may block it: an engine works between them, as
greenlets on the worker's event loop do.

It runs as many jobs at once as the worker has users, which may be fewer than it has slots. The others wait in
the engine, in the order in which they were submitted, and a slot that has finished a job begins the next
one without the worker. Jobs with a due time begin in order of that, when it has come and a user is free; none
is dropped, and their results say how late they began. With a think time, a user waits for so long between two
jobs.

How late the event loop runs is measured by the worker, not by the engine: it delays every engine alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from ssbench.fleet.wire import JobBatch, RunParameters
from ssbench.store.contract import BriefResult


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
