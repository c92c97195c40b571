"""A stat file with something in each part of a report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from result_rows import CLUSTER, block

from ssbench.results.block import LOST_CAUSE, Failure
from ssbench.results.run_description import RunDescription, RunSummary, WorkerFacts
from ssbench.results.writer import RunResultsWriter
from ssbench.scenario.model import Scenario, SizeClass

NAN = float("nan")
CLASSES = (SizeClass("tiny", 10, 10, 3, (1.0, 1.0, 1.0, 1.0)), SizeClass("big", 90, 99, 1, {"read": 1.0}))
RUN = RunDescription(
    Scenario("Füll <b>&|", CLASSES, user_count=3, run_seconds=2.0, data={"name": "Füll", "rate": NAN}),
    version="1.0",
    seed=7,
    run_id=2**62,
    started=1e9,
    workers=(WorkerFacts(1), WorkerFacts(9)),
    storage_urls=("http://a/v1/x", "http://b/v1/x"),
)
SUMMARY = RunSummary(
    1e9 + 3,
    ((3, 0, 2),),
    1,
    ("w </script> @all",),
    workers=(WorkerFacts(1, "h", "1.0", 0.5, 0.001, 3.5), WorkerFacts(2), WorkerFacts(9)),
    counters={"drawn": 4.0},
    cluster=CLUSTER,
)


def write_full_run(path: Path, run: RunDescription = RUN, **changes: Any) -> Path:
    """Write the file; ``changes`` are of the summary."""
    writer = RunResultsWriter(path, run)
    writer.add(
        block(
            [
                (1, 0, 1, 0, 7, 10, 0.1, 0.2, 1e9 + 0.5, 200, 0),
                (1, 1, 2, 1, 1, 90, 0.1, 0.4, 1e9 + 1.0, 200, 1),
                (3, 0, 2, 1, 1, 0, NAN, NAN, 1e9 + 2, 503, 0),
                (3, 0, 2**63 - 1, 1, 1, 0, NAN, NAN, 1e9 + 2.5, -1, 0),
            ],
            ["tx0", "tx1", "tx2", None],
            {
                1: Failure(None, "", {"HTTP 503": 1}),
                2: Failure("HTTP 503", "no", {}),
                3: Failure(LOST_CAUSE, "", {}),
            },
            rare={"storage_url": {0: 0, 1: 1}},
        )
    )
    writer.end(replace(SUMMARY, **changes))
    return path
