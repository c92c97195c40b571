"""Makes the numbers of a few results for tests, from blocks in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from result_rows import block

from ssbench.results.block import Failure, ResultBlock, ResultRow
from ssbench.results.result_fields import NOT_MEASURED, UNKNOWN_NUMBER
from ssbench.results.run_description import RunDescription, RunSummary
from ssbench.scenario.model import Scenario, SizeClass
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.summary import summarize

WEIGHTS = (1.0, 1.0, 1.0, 1.0)
SCENARIO = Scenario(
    "s",
    (SizeClass("small", 1, 1, 1, WEIGHTS), SizeClass("big", 9, 9, 1, WEIGHTS)),
    user_count=2,
    operation_count=1,
)

#: So many whole numbers from 1 on, a rank, and the percentile that these have.
WHOLE_NUMBER_PERCENTILES = [
    (10, 95, 10),
    (10, 50, 5.5),
    (10, 90, 9.5),
    (10, 100, 10),
    (10, 1, 1),
    (1, 50, 1),
    (1000, 99.9, 999.5),
    (7, 50, 4),
]


def row(
    operation: int = 1,
    size_class: int = 0,
    last: float = 0.1,
    completed: float = 100.0,
    *,
    first: float = NOT_MEASURED,
    worker: int = 1,
    retries: int = 0,
) -> ResultRow:
    """Return a result, by default a success of 100 ms."""
    return (operation, size_class, worker, 0, 1, 1, first, last, completed, UNKNOWN_NUMBER, retries)


class Memory:
    """Results of a run that are in memory; see :class:`ssbench.statistics.Results`."""

    def __init__(
        self,
        *blocks: ResultBlock,
        run: RunDescription | None = None,
        summary: RunSummary | None = None,
        current: bool = True,
    ) -> None:
        self.run = run or RunDescription(SCENARIO)
        self.size_classes = [each.name for each in self.run.scenario.size_classes]
        ended = summary or RunSummary(ended=0.0)
        self.summary: RunSummary | None = ended
        self.warnings: Sequence[str] = ended.warnings
        self.current = current
        self.damaged = False
        self._blocks = [*blocks]

    def add(self, made: ResultBlock) -> None:
        self._blocks.append(made)

    def blocks(self) -> Iterable[ResultBlock]:
        return iter(self._blocks)

    def again(self) -> Memory:
        return self

    def close(self) -> None:
        pass


def count(
    rows: Sequence[ResultRow],
    failures: dict[int, Failure] | None = None,
    summary: RunSummary | None = None,
) -> RunStatistics:
    """Return the numbers of some results."""
    made = [block(rows, [f"tx{i}" for i in range(len(rows))], failures)] if rows else []
    return summarize(Memory(*made, summary=summary))


def failed(*rows: int, cause: str = "HTTP 503") -> dict[int, Failure]:
    """Return failures with one cause, in these rows."""
    return {place: Failure(cause, "", {}) for place in rows}
