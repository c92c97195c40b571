"""Makes the numbers of a few results for tests, by way of a stat file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from result_rows import block

from ssbench.results import NOT_MEASURED, UNKNOWN, Failure, ResultRow
from ssbench.run_results import RunDescription, RunResultsWriter, RunSummary, open_results
from ssbench.scenario.model import Scenario, SizeClass
from ssbench.statistics import RunStatistics, summarize

WEIGHTS = (1.0, 1.0, 1.0, 1.0)
SCENARIO = Scenario(
    "s",
    (SizeClass("small", 1, 1, 1, WEIGHTS), SizeClass("big", 9, 9, 1, WEIGHTS)),
    user_count=2,
    operation_count=1,
)


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
    return (operation, size_class, worker, 0, 1, 1, first, last, completed, UNKNOWN, retries)


def count(
    tmp_path: Path,
    rows: Sequence[ResultRow],
    failures: dict[int, Failure] | None = None,
    summary: RunSummary | None = None,
) -> RunStatistics:
    """Write some results to a stat file and return the numbers that are read from it."""
    path = tmp_path / "run.stat.gz"
    writer = RunResultsWriter(path, RunDescription(SCENARIO))
    if rows:
        writer.add(block(rows, [f"tx{i}" for i in range(len(rows))], failures))
    writer.end(summary or RunSummary(ended=0.0))
    return summarize(open_results(path))


def failed(*rows: int, cause: str = "HTTP 503") -> dict[int, Failure]:
    """Return failures with one cause, in these rows."""
    return {place: Failure(cause, "", {}) for place in rows}
