"""Results on their way to a monitoring system, half a second of them together so that they cost little."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from ssbench.operations import OPERATIONS
from ssbench.results import ResultBlock, RunSummary, join
from ssbench.scenario.model import Scenario

#: Seconds between two moments at which what was gathered is counted.
_GATHER_SECONDS = 0.5

#: Causes come from workers: from this many on, new ones are called "other".
_MOST_CAUSES = 50


class Gathering(ABC):
    """A :class:`~ssbench.results.Sink` that passes results on, half a second of them together.

    ``workers`` returns how many workers can get jobs, and how many are expected.
    """

    def __init__(self, scenario: Scenario, workers: Callable[[], tuple[int, int]]) -> None:
        self.scenario = scenario
        self.workers = workers
        self._blocks: list[ResultBlock] = []
        self._next: float | None = None
        self._causes: set[str] = set()

    def add(self, block: ResultBlock) -> None:
        """Take in results."""
        self._blocks.append(block)

    def tick(self, now: float) -> None:
        """Pass on what was gathered, where it is time to."""
        if self._next is None:
            self.begun()
        elif now < self._next:
            return
        self._next = now + _GATHER_SECONDS
        self._flush()

    def end(self, summary: RunSummary) -> None:
        """Pass on the rest; another run may begin."""
        self._flush()
        self._next = None
        self.ended(summary)

    def _flush(self) -> None:
        blocks, self._blocks = self._blocks, []
        self.take(join(blocks) if blocks else None)

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
        if name not in self._causes and len(self._causes) >= _MOST_CAUSES:
            return "other"
        self._causes.add(name)
        return name

    def size_class(self, index: int) -> str:
        """Return the name of a size class."""
        return self.scenario.size_classes[index].name


def groups(block: ResultBlock, first: str, second: str) -> Iterator[tuple[int, int, npt.NDArray[np.intp]]]:
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


def operation_name(code: int) -> str:
    """Return what reports call an operation."""
    operation = OPERATIONS.get(code)
    return operation.name if operation else str(code)
