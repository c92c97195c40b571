"""``--live``: a small screen of operations and workers, redrawn twice a second while a benchmark runs.

Its lines are put together by hand and stand where the progress line would: messages go above them, and the
report takes their place. (rich takes many times as long for such a table, in which no job would be sent.)
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ssbench.document.figures import percentile_of
from ssbench.results.block import ResultBlock
from ssbench.run import terminal
from ssbench.run.live_frame import HISTORY_SECONDS, LiveView, OperationView, WorkerView, compose_live_screen
from ssbench.run.progress_line import ProgressLine
from ssbench.scenario.model import Scenario
from ssbench.scenario.operation_table import OPERATIONS

#: Seconds that rates and latencies are of.
_LIVE_WINDOW_SECONDS = 5.0

#: Latencies of an operation that are kept of a quarter of a second; of more, they are picked.
_MAX_LIVE_LATENCIES = 200

#: Lines of a terminal that does not tell its height, and the most that are drawn.
_USUAL_ROWS, _MAX_ROWS = 24, 40


class _OperationSample(NamedTuple):
    """What an operation did in a quarter of a second; latencies are a sample, in seconds."""

    done: int
    moved: int
    latencies: npt.NDArray[np.float64]


class _SecondTotals(NamedTuple):
    """A second: successes by operation and by worker, failures by cause."""

    operations: Counter[int]
    workers: Counter[int]
    causes: Counter[str]


class _QuarterSecond(NamedTuple):
    """A quarter of a second: operations by code, successes by worker."""

    until: float
    operations: dict[int, _OperationSample]
    workers: Counter[int]


class LiveScreen(ProgressLine):
    """Shows a run on a small screen; without a terminal, a line each ten seconds.

    ``worker_views`` returns what is known of each worker.
    """

    def __init__(
        self,
        scenario: Scenario,
        workers: Callable[[], tuple[int, int]],
        worker_views: Callable[[], Sequence[WorkerView]],
    ) -> None:
        super().__init__(scenario, workers)
        self._title = scenario.name
        self._views = worker_views
        self._parts: deque[_QuarterSecond] = deque()
        self._parts_begin: float | None = None
        self._failed: Counter[int] = Counter()
        self._seconds: deque[_SecondTotals] = deque(maxlen=HISTORY_SECONDS)
        self._second_ends = 0.0
        self._second = _SecondTotals(Counter(), Counter(), Counter())
        self._seen: set[int] = set()

    def _gather(self, now: float) -> None:
        if self._drawn:
            self._count(now)
        super()._gather(now)

    def _count(self, now: float) -> None:
        if self._parts_begin is None:
            self._parts_begin = now
            self._second_ends = now + 1.0
        operations: dict[int, _OperationSample] = {}
        workers: Counter[int] = Counter()
        for block in self._blocks:
            self._count_block(block, operations, workers)
        self._seen.update(operations)
        self._second.operations.update({code: each.done for code, each in operations.items()})
        self._second.workers.update(workers)
        if now >= self._second_ends:
            self._second_ends += max(int(now - self._second_ends), 0) + 1.0
            self._seconds.append(self._second)
            self._second = _SecondTotals(Counter(), Counter(), Counter())
        self._parts.append(_QuarterSecond(now, operations, workers))
        while self._parts[0].until <= now - _LIVE_WINDOW_SECONDS:
            self._parts_begin = self._parts.popleft().until

    def _count_block(
        self, block: ResultBlock, operations: dict[int, _OperationSample], workers: Counter[int]
    ) -> None:
        failed, codes = block.failed, block.operation
        self._failed.update(codes[failed].tolist())
        self._second.causes.update(each.cause for each in block.failures.values() if each.cause is not None)
        for code in np.flatnonzero(np.bincount(codes)).tolist():
            rows = np.flatnonzero((codes == code) & ~failed)
            latencies = block.last_byte[rows]
            latencies = latencies[:: 1 + len(latencies) // _MAX_LIVE_LATENCIES]
            before = operations.get(code, _OperationSample(0, 0, np.empty(0)))
            operations[code] = _OperationSample(
                before.done + len(rows),
                before.moved + int(np.maximum(block.size[rows], 0).sum()),
                np.concatenate([before.latencies, latencies[~np.isnan(latencies)]]),
            )
        # By hand, as np.unique takes its time when it is first called.
        ids = np.sort(block.worker[~failed])
        starts = np.flatnonzero(np.diff(ids, prepend=ids[:1] - 1))
        counts = np.diff(np.append(starts, len(ids)))
        workers.update(dict(zip(ids[starts].tolist(), counts.tolist(), strict=True)))

    def view(self, now: float) -> LiveView:
        """Return what is to be shown at ``now``, a moment of the clock of :meth:`tick`."""
        seconds = max(now - (self._parts_begin or now), 1e-9)
        workers: Counter[int] = Counter()
        for part in self._parts:
            workers.update(part.workers)
        return LiveView(
            title=self._title,
            figures=self.figures(now),
            operations=[self._operation(code, seconds) for code in sorted(self._seen)],
            workers=self._views(),
            rates={worker: count / seconds for worker, count in workers.items()},
            of_workers={worker: [each.workers[worker] for each in self._seconds] for worker in workers},
            of_causes={
                cause: [each.causes[cause] for each in self._seconds] for cause in self._causes_shown()
            },
        )

    def _causes_shown(self) -> list[str]:
        return [cause for cause, _ in self._causes.most_common(_MAX_ROWS)]

    def _operation(self, code: int, seconds: float) -> OperationView:
        parts = [part.operations[code] for part in self._parts if code in part.operations]
        latencies = np.sort(np.concatenate([np.empty(0), *(part.latencies for part in parts)]))
        operation = OPERATIONS.get(code)
        p50, p95, p99, longest = (percentile_of(latencies, rank) for rank in (50, 95, 99, 100))
        return OperationView(
            operation.name if operation else str(code),
            sum(part.done for part in parts) / seconds,
            sum(part.moved for part in parts) / seconds,
            p50,
            p95,
            p99,
            longest,
            self._failed[code],
            [each.operations[code] for each in self._seconds],
        )

    def _draw(self, now: float, width: int) -> None:
        # One line stays free, or the terminal would scroll.
        height = min((terminal.terminal_height() or _USUAL_ROWS) - 1, _MAX_ROWS)
        terminal.redraw_lines(
            compose_live_screen(self.view(now), width, height, terminal.terminal_encoding())
        )
