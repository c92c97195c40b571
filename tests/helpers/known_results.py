"""Results of which every figure is known: five operations, two of which failed."""

from __future__ import annotations

from pathlib import Path

from result_rows import block

from ssbench.results.block import LOST_CAUSE, Failure, ResultRow
from ssbench.results.result_fields import NO_WORKER, NOT_MEASURED, UNKNOWN_NUMBER
from ssbench.results.run_description import RunDescription, RunSummary
from ssbench.results.writer import RunResultsWriter
from ssbench.scenario.model import Scenario, SizeClass

SCENARIO = Scenario(
    "Known results",
    (
        SizeClass("tiny", 2500, 2500, 3, (1.0, 1.0, 1.0, 1.0)),
        SizeClass("huge", 999_400_000_000, 10**12, 1, (0.0, 1.0, 0.0, 0.0)),
    ),
    user_count=4,
    run_seconds=1.5,
    delete_after=60,
    policy="gold",
)
ROWS: list[ResultRow] = [
    (0, 0, 1, 0, 7, 2500, NOT_MEASURED, 0.25, 1_000_000_000.5, 201, 0),
    (1, 0, 1, 1, 1, 2500, 0.125, 0.5, 1_000_000_001.0, 200, 2),
    (1, 1, 2, 2, 1, 10**12, 0.25, 1.5, 1_000_000_002.75, 200, 0),
    (1, 0, 2, 3, 2, 0, NOT_MEASURED, NOT_MEASURED, 1_000_000_003.0, 200, 1),
    (3, 0, NO_WORKER, 4, 3, 0, NOT_MEASURED, NOT_MEASURED, 1_000_000_004.25, UNKNOWN_NUMBER, 0),
]
FAILURES = {
    1: Failure(None, "", {"HTTP 503": 2}),
    3: Failure("short body", "12 of 2500 bytes", {"HTTP 408": 1}),
    4: Failure(LOST_CAUSE, "", {}),
}
SUMMARY = RunSummary(ended=1e9 + 4, not_sendable=((3, 0, 2),), lost_jobs=1, warnings=("worker 1 was busy",))


def write_known(
    path: Path,
    rows: list[ResultRow] = ROWS,
    failures: dict[int, Failure] = FAILURES,
    summary: RunSummary = SUMMARY,
    scenario: Scenario = SCENARIO,
) -> Path:
    """Write a stat file of the known results, or of others of their scenario."""
    writer = RunResultsWriter(path, RunDescription(scenario, version="1.0", storage_urls=("http://a/v1/x",)))
    if rows:
        ids = [f"tx{i}" for i in range(len(rows))]
        writer.add(block(rows, ids, failures, common={"storage_url": 0}))
    writer.end(summary)
    return path
