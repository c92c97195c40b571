"""Makes results of what workers report: from tasks and their results on the wire to blocks."""

from __future__ import annotations

from collections.abc import Sequence

from ssbench.fleet.dispatch import Task
from ssbench.fleet.wire import Result
from ssbench.fleet.worker_state import WorkerState
from ssbench.results import NO_WORKER, NOT_MEASURED, UNKNOWN, Failure, ResultBlock, Rows


class RowMaker:
    """Collects results until they are taken as a block.

    ``epoch`` is what turns the master's monotonic clock into seconds since 1970. ``errors`` counts
    the failures so far.
    """

    def __init__(self, epoch: float) -> None:
        self.errors = 0
        self._epoch = epoch
        self._rows = Rows()

    def __len__(self) -> int:
        return len(self._rows)

    def take(self) -> ResultBlock:
        """Return what was collected as a block, and begin anew."""
        return self._rows.take()

    def add(self, ended: Sequence[tuple[Task, Result]], worker: WorkerState) -> None:
        """Collect results that came in one message."""
        rows, trans_ids = self._rows.rows, self._rows.trans_ids
        to_epoch = worker.offset.seconds + self._epoch
        worker_id = worker.worker_id
        for (operation, size_class, container, number, size), result in ended:
            if result.retries or result.cause is not None:
                self._note_trouble(result, size)
            if result.cause is None:
                moved = result.size or size
                first, last = result.first_byte, result.last_byte
            else:
                moved, first, last = 0, None, None
            rows.append(
                (
                    operation,
                    size_class,
                    worker_id,
                    container,
                    number,
                    moved,
                    NOT_MEASURED if first is None else first,
                    NOT_MEASURED if last is None else last,
                    result.completed + to_epoch,
                    UNKNOWN,
                )
            )
            trans_ids.append(result.trans_id)

    def _note_trouble(self, result: Result, size: int) -> None:
        """Keep what few results have: those that failed, and successes after retries."""
        rows = self._rows
        rows.failures[len(rows)] = Failure(result.cause, result.detail, result.retried or {})
        rows.note("retries", result.retries)
        if result.cause is not None:
            self.errors += 1
            rows.note("expected_size", size or UNKNOWN)

    def add_lost(self, tasks: Sequence[Task], cause: str, worker: WorkerState | None, now: float) -> None:
        """Collect tasks of which no result came, because of ``cause``, as failures.

        ``worker`` is the one that had them, where that is known; ``now`` the master's monotonic clock.
        """
        rows = self._rows
        detail = f"with worker {worker.worker_id} on {worker.host} (pid {worker.pid})" if worker else ""
        failure = Failure(cause, detail, {})
        worker_id = worker.worker_id if worker else NO_WORKER
        for operation, size_class, container, number, size in tasks:
            rows.failures[len(rows)] = failure
            rows.note("expected_size", size or UNKNOWN)
            named = (operation, size_class, worker_id, container, number)
            rows.rows.append((*named, UNKNOWN, NOT_MEASURED, NOT_MEASURED, now + self._epoch, UNKNOWN))
            rows.trans_ids.append(None)
        self.errors += len(tasks)
