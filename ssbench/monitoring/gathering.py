"""Results on their way to a monitoring system, half a second of them together so that they cost little."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ssbench.results.block import ResultBlock, join_blocks
from ssbench.results.description import RunSummary
from ssbench.scenario.model import Scenario
from ssbench.scenario.operation_table import OPERATIONS

#: Seconds between two moments at which what was gathered is counted.
_BATCH_SECONDS = 0.5

#: Seconds between two looks at the load generator, which of thousands of workers take their time.
_LOOK_SECONDS = 5.0

#: Seconds that the mean number of operations in flight is of.
_IN_FLIGHT_SECONDS = 5.0

#: Causes come from workers: from this many on, new ones are called "other".
_MAX_CAUSES = 50


@dataclass(frozen=True, slots=True)
class RunMonitor:
    """Where to ask about a run that is under way.

    ``workers`` returns how many workers can get jobs, and how many are expected; ``so_far`` the stat file
    and what else is known, None before the benchmark.
    """

    workers: Callable[[], tuple[int, int]]
    so_far: Callable[[], tuple[Path, RunSummary] | None] = lambda: None


class BatchingSink(ABC):
    """A :class:`~ssbench.results.Sink` that passes results on, half a second of them together.

    ``summary`` is what was last known of the workers and the master, ``path`` the stat file (None before
    the benchmark). ``in_flight`` is how many operations were in flight in the last seconds, on average over
    those that have ended.
    """

    def __init__(self, scenario: Scenario, source: RunMonitor) -> None:
        self.scenario = scenario
        self.source = source
        self.path: Path | None = None
        self.summary = RunSummary(ended=0.0)
        self.in_flight = 0.0
        self._blocks: list[ResultBlock] = []
        self._next: float | None = None
        self._look_at = 0.0
        #: Moments, and for how many seconds the operations took that ended before each.
        self._busy: deque[tuple[float, float]] = deque()
        self._causes: set[str] = set()

    def add(self, block: ResultBlock) -> None:
        """Receive results."""
        self._blocks.append(block)

    def tick(self, now: float) -> None:
        """Pass on what was gathered, where it is time to."""
        if self._next is None:
            self._look_at = now
            self._busy.clear()
            self.begun()
        elif now < self._next:
            return
        self._next = now + _BATCH_SECONDS
        if now >= self._look_at:
            self._look_at = now + _LOOK_SECONDS
            self._look()
        block = self._gathered()
        self._count_in_flight(block, now)
        self.take(block)

    def end(self, summary: RunSummary) -> None:
        """Pass on the rest; another run may begin."""
        self._look()
        self.summary = summary
        self.in_flight = 0.0
        self.take(self._gathered())
        self._next = None
        self.ended(summary)

    def _look(self) -> None:
        found = self.source.so_far()
        if found is not None:
            self.path, self.summary = found

    def _gathered(self) -> ResultBlock | None:
        blocks, self._blocks = self._blocks, []
        return join_blocks(blocks) if blocks else None

    def _count_in_flight(self, block: ResultBlock | None, now: float) -> None:
        # Of failures it may not be known when they were sent.
        seconds = 0.0 if block is None else float(np.nansum(block.completed - block.started))
        busy = self._busy
        busy.append((now, seconds))
        while len(busy) > 1 and busy[1][0] <= now - _IN_FLIGHT_SECONDS:
            busy.popleft()
        # What ended before the first moment took its time before it.
        passed = now - busy[0][0]
        self.in_flight = sum(took for _, took in list(busy)[1:]) / passed if passed > 0 else 0.0

    @abstractmethod
    def begun(self) -> None:
        """The benchmark has begun."""

    @abstractmethod
    def take(self, block: ResultBlock | None) -> None:
        """Take the results of half a second; None where there are none."""

    @abstractmethod
    def ended(self, summary: RunSummary) -> None:
        """The benchmark has ended."""

    def cause(self, name: str) -> str:
        """Return the name of a cause, or "other" where there are too many different ones."""
        if name not in self._causes and len(self._causes) >= _MAX_CAUSES:
            return "other"
        self._causes.add(name)
        return name

    def size_class(self, index: int) -> str:
        """Return the name of a size class."""
        return self.scenario.size_classes[index].name


def group_by_fields(
    block: ResultBlock, first: str, second: str
) -> Iterator[tuple[int, int, npt.NDArray[np.intp]]]:
    """Yield the values that two fields have together, and the rows of each."""
    columns = [np.asarray(getattr(block, field), np.int64) for field in (first, second)]
    lowest = [int(column.min()) for column in columns]
    span = int(columns[1].max()) - lowest[1] + 1
    code = (columns[0] - lowest[0]) * span + (columns[1] - lowest[1])
    if code.max() < 1 << 16:
        code = code.astype(np.uint16)  # which numpy sorts by radix
    order = np.argsort(code, kind="stable")
    ordered = code[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=ordered[:1] + 1))
    for rows in np.split(order, starts[1:]):
        yield int(columns[0][rows[0]]), int(columns[1][rows[0]]), rows


def format_operation_name(code: int) -> str:
    """Return what reports call an operation."""
    operation = OPERATIONS.get(code)
    return operation.name if operation else str(code)
