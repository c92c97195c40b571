"""What a worker expects of an engine, and an engine of a worker.

An engine carries out the jobs of one run. The worker makes one when the parameters of a run arrive, and
closes it when the run ends; it decides how many jobs it accepts from the master, and the engine never
refuses one. All calls come from one thread, and none may block it: an engine works between them, as
greenlets on the worker's event loop do.

Where the work to come fits in:

- *Jobs ahead*: the worker accepts more jobs than there are slots. They wait in the engine, in the order in
  which they were submitted, and a slot that has finished a job begins the next one without the worker.
  :attr:`Engine.waiting` tells the worker how many are left, and :meth:`Engine.cancel` takes them back when
  a timed run or a stage ends.
- *Due times* (open loop): a time for each job becomes a field of :class:`~ssbench.fleet.wire.JobBatch`, as
  the history of jobs is. The queue of the engine is then ordered by it, and a timer begins the first one
  when it is due. The worker and the outcomes do not change, except that a result says when it was due.

How late the event loop runs is measured by the worker, not by the engine: it delays every engine alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from ssbench.fleet.wire import Brief, JobBatch, RunParameters


class Ended(Protocol):
    """The worker's callback for jobs that have ended."""

    def __call__(self, batch_id: int, results: Sequence[Brief], refused: int | None = None) -> None:
        """Take in results of jobs of one batch, one or several; each is a Brief or a Result.

        ``refused`` is the generation of the parameters with which a job began whose token was refused
        (:attr:`~ssbench.fleet.wire.Result.unauthorized`), None if there is none. Called from the
        engine's slots, or from within :meth:`Engine.submit`. It does not block and raises nothing.
        """


class Engine(Protocol):
    """Carries out the jobs of a run.

    Each job that was submitted ends in exactly one of three ways: one result is passed to
    :class:`Ended`, :meth:`cancel` returns it, or :meth:`close` drops it.
    """

    #: Slots in use: jobs that have begun and not ended.
    busy: int

    @property
    def waiting(self) -> int:
        """How many jobs were submitted and have not begun."""

    def submit(self, batch: JobBatch) -> None:
        """Carry out the jobs of a batch; a job begins at once if a slot is free.

        Whatever goes wrong with a job is told by its result. Called from the event loop.
        """

    def update(self, parameters: RunParameters) -> None:
        """Use later parameters of the same run, such as a new token, for jobs that begin from now on."""

    def cancel(self) -> list[tuple[int, int]]:
        """Take back the jobs that have not begun; return them as (batch id, job id). The others go on."""

    def close(self) -> None:
        """End the run: drop all jobs, close all connections. No result is passed on from now on."""


#: Makes an engine of so many slots for a run.
MakeEngine = Callable[[RunParameters, int, Ended], Engine]
