"""The interface of a phase of a run, as :mod:`ssbench.run.loop` uses it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ssbench.fleet.history import History
from ssbench.fleet.wire import JobResult
from ssbench.fleet.worker_state import Task, WorkerState


class Phase(Protocol):
    """A part of a run: it provides tasks and receives how each ends.

    Times are of the master's monotonic clock.
    """

    #: For messages: "initial uploads", "operations".
    what: str

    @property
    def drain_timeout(self) -> float | None:
        """Seconds to wait for tasks in flight once no more are to be sent; None: as long as it takes."""

    def next_tasks(self, count: int) -> Sequence[Task]:
        """Return at most ``count`` tasks to send now."""

    def exhausted(self, now: float) -> bool:
        """Return whether no new tasks are to be sent. Changes nothing."""

    def cut_short(self, now: float) -> bool:
        """Return whether what has not begun is not to be done any more; only where it is exhausted."""

    def take_back(self, tasks: Sequence[Task], *, in_doubt: bool) -> None:
        """Take back tasks that have not begun and will not be sent again.

        ``in_doubt``: as far as is known they have not; a lost worker may have done them.
        """

    def sent_again(self, now: float) -> None:
        """Take note that tasks were sent after it was exhausted: some that had not begun, or that failed."""

    def done(self, ended: Sequence[tuple[Task, JobResult]], worker: WorkerState) -> None:
        """Receive results: these tasks succeeded or failed."""

    def lost(
        self, tasks: Sequence[Task], *, abandoned: str | None, worker: WorkerState | None = None
    ) -> Sequence[Task]:
        """Take note of tasks without a result; return those to send again.

        They were lost with ``worker`` if ``abandoned`` is None. Otherwise no task is sent any more, and
        ``abandoned`` is the cause of their failure; ``worker`` is the one that had them, where known.
        """

    def catch_up(self) -> None:
        """Do what could wait until the next tasks are on their way."""

    def tick(self, now: float) -> None:
        """Do what is to be done several times a second."""


def give_back_tasks(phase: Phase, not_begun: Sequence[tuple[Task, History | None]]) -> None:
    """Give back tasks to a phase that have not begun, each with its history."""
    for in_doubt in (False, True):
        tasks = [
            task for task, history in not_begun if (history is not None and history.in_doubt) == in_doubt
        ]
        if tasks:
            phase.take_back(tasks, in_doubt=in_doubt)
