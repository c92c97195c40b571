"""What the master's loop carries through: a phase of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ssbench.fleet.dispatch import Task
from ssbench.fleet.wire import Result
from ssbench.fleet.worker_state import WorkerState


class Phase(Protocol):
    """What a run consists of. Times are of the master's monotonic clock."""

    #: For messages: "initial uploads", "operations".
    what: str
    #: Seconds to wait for tasks in flight once no more are to be sent; None: as long as it takes.
    patience: float | None

    def next_tasks(self, count: int) -> Sequence[Task]:
        """At most ``count`` tasks to send now."""

    def exhausted(self, now: float) -> bool:
        """Whether no more tasks are to be sent (and :meth:`next_tasks` is asked no more)."""

    def done(self, ended: Sequence[tuple[Task, Result]], worker: WorkerState) -> None:
        """These tasks ended, well or not."""

    def lost(
        self, tasks: Sequence[Task], *, given_up: str | None, worker: WorkerState | None = None
    ) -> Sequence[Task]:
        """These were lost with a worker, or given up (and why); returns those to send again.

        ``worker`` is the one they were lost with, where that is known.
        """

    def catch_up(self) -> None:
        """Called when the next tasks are on their way: do what could wait until then."""

    def tick(self, now: float) -> None:
        """Called some times a second."""
