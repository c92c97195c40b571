"""Runs of searches and steps of sweeps: for tests of each and of their reports."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from msgspec import structs
from result_rows import many

from ssbench.comparison.sweep import SweepStep
from ssbench.results.block import Failure
from ssbench.results.reading import open_results
from ssbench.results.run_description import RunDescription, RunSummary
from ssbench.results.writer import RunResultsWriter
from ssbench.scenario.model import Scenario, SizeClass
from ssbench.statistics.confidence import Interval
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.summary import summarize

SCENARIO = Scenario("s", (SizeClass("small", 1, 9, 1, {"read": 1.0}),), user_count=8, run_seconds=20.0)


def step(users: float, rate: float, half: float | None = 1.0, **changes: object) -> SweepStep:
    interval = None if half is None else Interval(rate - half, rate + half, 20.0)
    made = SweepStep(users, 20.0, int(users), rate, interval, 0.0, users / rate, 0.01, 0.02, 1000, 0, 0.5)
    return structs.replace(made, **changes)


def run(folder: Path, latencies: np.ndarray, failed: int = 0, seconds: float = 20.0) -> RunStatistics:
    path = folder / "run.stat.gz"
    writer = RunResultsWriter(path, RunDescription(SCENARIO))
    count = len(latencies)
    completed = 1e9 + np.linspace(0.5, seconds, count)
    made = many(range(count), operation=1, last_byte=latencies, completed=completed, size=1)
    made.failures.update({row: Failure("HTTP 503", "", {}) for row in range(failed)})
    writer.add(made)
    writer.end(RunSummary(1e9 + seconds))
    return summarize(open_results(path))
