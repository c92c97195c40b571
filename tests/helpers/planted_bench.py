"""A bench whose runs have planted results, for plans of many runs: no process, no socket, no store."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from result_rows import many

from ssbench.base.option import record_options
from ssbench.results.block import LOST_CAUSE, Failure, Goal
from ssbench.results.run_description import RunDescription, RunSummary
from ssbench.results.writer import RunResultsWriter
from ssbench.run.bench_options import BenchOptions, RunOptions
from ssbench.run.benchmark_run import RunOutcome
from ssbench.scenario.model import Scenario
from ssbench.scenario.operations import OPERATIONS

#: Seconds that the store takes for an operation, and how many at once it can.
LATENCY, AT_ONCE = 0.01, 20


@dataclass
class PlantedBench:
    """Carries out no operation: each run is of the store's planted results, and of the workers' room."""

    folder: Path
    scenarios: list[Scenario] = field(default_factory=list)
    options: list[RunOptions] = field(default_factory=list)
    goals: list[Goal | None] = field(default_factory=list)
    workers: list[int] = field(default_factory=list)
    #: What replaces the outcome of a run, by its number.
    instead: dict[int, Callable[[RunOutcome], RunOutcome]] = field(default_factory=dict)
    failing: bool = False
    most_rate: float = math.inf  # at higher ones all operations fail
    losing: dict[int, int] = field(default_factory=dict)  # operations lost with a worker, by a run's number
    room: int = 1000
    slower: float = 1.0  # how many times as long the second of two sides takes

    def __call__(self, options: BenchOptions) -> PlantedBench:
        self.bench = options
        return self

    def __enter__(self) -> PlantedBench:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def capacity(self) -> int:
        return self.room

    def start_swifts(self, _runs: object) -> None:
        pass

    def check(self, *_: object) -> None:
        pass

    def so_far(self) -> None:
        return None

    def list_access_logs(self, _options: RunOptions) -> list[Path]:
        return []

    def use_local_workers(self, count: int) -> None:
        self.workers.append(count)

    def run(
        self,
        scenario: Scenario,
        options: RunOptions,
        on_measured: Callable[[RunOutcome], object] | None = None,
        goal: Goal | None = None,
        **_: Any,
    ) -> RunOutcome:
        self.scenarios.append(scenario)
        self.goals.append(goal)
        self.options.append(options)
        users = scenario.user_count
        latency = LATENCY * max(1.0, users / AT_ONCE)
        seconds = scenario.run_seconds or 1.0
        count = int(seconds * users / latency)
        if scenario.run_seconds is None and scenario.operation_count:
            count = scenario.operation_count
            seconds = count * latency / users
        if options.replayed is not None and scenario.rate:
            count = len(options.replayed)
            seconds = count / scenario.rate
        began = 1e9 + 100 * len(self.scenarios)
        operation = OPERATIONS.named(next(iter(scenario.size_classes[0].weights))).code
        path = self.folder / (options.stats_file or Path("run.stat.gz")).name
        sides = tuple(each.name for each in options.sides)
        known = {**record_options(options.requests), **record_options(options)}
        about = RunDescription(scenario, started=began, sides=sides, seed=options.seed, options=known)
        writer = RunResultsWriter(path, about)
        completed = began + np.linspace(latency, seconds, count)
        columns: dict[str, Any] = {"last_byte": latency}
        if sides:
            random = np.random.default_rng(len(self.scenarios))
            columns["group"] = np.arange(count) % 2
            columns["last_byte"] = latency * np.where(columns["group"], self.slower, 1.0)
            columns["last_byte"] *= random.lognormal(0, 0.1, count)
        results = many(range(count), operation=operation, completed=completed, size=1, **columns)
        if self.failing or (scenario.rate or 0.0) > self.most_rate:
            results.failures.update({row: Failure("HTTP 503", "", {}) for row in range(count)})
        lost = self.losing.get(len(self.scenarios), 0)
        results.failures.update({row: Failure(LOST_CAUSE, "", {}) for row in range(lost)})
        writer.add(results)
        writer.end(RunSummary(began + seconds))
        logging.getLogger("ssbench.run.benchmark_run").info("run of %d", users)
        outcome = RunOutcome(run_id=1, seed=7, path=path, count=count)
        if instead := self.instead.get(len(self.scenarios)):
            outcome = instead(outcome)
        if on_measured is not None:
            on_measured(outcome)
        return outcome
