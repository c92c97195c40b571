"""Stores of which it is known how many users they bear, and a bench whose runs are theirs."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from result_rows import many

from ssbench.base.option import record_options
from ssbench.results.block import Failure
from ssbench.results.run_description import PLAN_BEGAN_OPTION, RunDescription, RunSummary
from ssbench.results.writer import RunResultsWriter
from ssbench.run.bench_options import BenchOptions, RunOptions
from ssbench.run.benchmark_run import RunOutcome
from ssbench.scenario.model import Scenario
from ssbench.scenario.operations import OPERATIONS

#: Seconds of an operation where nothing else is in its way, and by how much one differs from another.
SERVICE, SPREAD = 0.1, 0.2

#: Seconds that a run takes beside its time.
BESIDE = 2.0


@dataclass(frozen=True)
class PlantedStore:
    """How long operations take, which share fails, and the most users at which the usual condition holds."""

    name: str
    slower: Callable[[int, int], float]  # by users and bytes of an object: times SERVICE
    failing: Callable[[int], float]
    users: float
    at_least: bool = False
    room: int = 10_000


def _never(_users: int) -> float:
    return 0.0


#: Objects of 1 MB. The p99 is ten times that of one user where operations take ten times as long.
STORES = (
    PlantedStore("eight slots", lambda users, _: max(1.0, users / 8), _never, 80),
    PlantedStore(
        "a bucket of 40 tokens a second", lambda users, _: max(1.0, users / 40 / SERVICE), _never, 40
    ),
    PlantedStore("sheds from 32 users on", lambda _, __: 1.0, lambda users: 0.05 * (users >= 32), 31),
    PlantedStore(
        "100 MB a second",
        lambda users, size: max(1.0, users * size / 100e6 / SERVICE),
        _never,
        10 * 100e6 * SERVICE / 1e6,
    ),
    PlantedStore("our workers", lambda _, __: 1.0, _never, 24, at_least=True, room=24),
)


def find_true_limit(store: PlantedStore, condition: str) -> float:
    """Return the most users at which a condition holds, such as ``read.p99 <= 310ms and ...``."""
    found = re.search(r"<= ([\d.]+)ms", condition)
    assert found is not None
    if store.failing(10_000) or store.at_least:
        return store.users
    return store.users * float(found[1]) / (10_000 * SERVICE * math.exp(2.326 * SPREAD))


def find_true_rate(store: PlantedStore, condition: str) -> float:
    """Return the operations of 1 MB a second with the most users at which a condition holds."""
    users = int(find_true_limit(store, condition))
    return users / SERVICE / store.slower(users, 1_000_000)


@dataclass
class EnvelopeBench:
    """Carries out no operation: each run has the results that the store has for its users."""

    store: PlantedStore
    folder: Path
    seed: int
    now: float = 1e9
    runs: list[Scenario] = field(default_factory=list)
    ends_after: int | None = None  # the run that is interrupted
    noise: float = 0.0  # standard deviation of the logarithm of how long operations take, from run to run
    deletion: float = 0.0  # seconds for each object that is deleted after a run
    uploading: float = 0.0  # seconds for each initial object that is written before a run
    others: dict[str, PlantedStore] = field(default_factory=dict)  # further stores, by name
    there: dict[str, int] = field(default_factory=dict)  # initial objects that are there, by size class

    def __call__(self, _options: BenchOptions) -> EnvelopeBench:
        return self

    def __enter__(self) -> EnvelopeBench:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now

    def capacity(self) -> int:
        return self.store.room

    def start_swifts(self, _runs: object) -> None:
        pass

    def check(self, *_: object) -> None:
        pass

    def _draw_level(self) -> float:
        return float(np.random.default_rng([self.seed, len(self.runs)]).normal(0, self.noise))

    def _upload(self, scenario: Scenario) -> float:
        """Return how long it takes to write the initial objects that are not there."""
        missing = sum(max(0, c.initial_files - self.there.get(c.name, 0)) for c in scenario.size_classes)
        self.there |= {
            c.name: 0 if c.weights.get("delete") else c.initial_files for c in scenario.size_classes
        }
        return self.uploading * missing

    def run(self, scenario: Scenario, options: RunOptions, **_: Any) -> RunOutcome:
        self.runs.append(scenario)
        if self.ends_after is not None and len(self.runs) > self.ends_after:
            raise KeyboardInterrupt
        store = self.others.get(options.store or "", self.store)
        random = np.random.default_rng([self.seed, len(self.runs), scenario.user_count])
        classes, seconds = scenario.size_classes, scenario.run_seconds or 1.0
        users = min(scenario.user_count, store.room)
        if scenario.rate:  # those that are busy, by Little's law
            users = min(users, math.ceil(scenario.rate * SERVICE))
        level = SERVICE * math.exp(self._draw_level())
        latencies = level * np.array([store.slower(users, each.size_max) for each in classes])
        rate = scenario.rate or users / float(latencies[0])
        count = max(1, int(seconds * rate))
        files = np.array([each.initial_files for each in classes])
        classes_of = random.choice(len(classes), count, p=files / files.sum()) if len(classes) > 1 else 0
        path = options.stats_file or self.folder / "run.stat.gz"
        about = RunDescription(
            scenario,
            started=self.now,
            seed=options.seed,
            options={
                **record_options(options.requests),
                **record_options(options),
                PLAN_BEGAN_OPTION: options.plan_began,
                "store": options.store,
            },
        )
        writer = RunResultsWriter(path, about)
        self.now += self._upload(scenario)
        results = many(
            range(count),
            completed=self.now + np.sort(random.uniform(0, seconds, count)),
            last_byte=latencies[classes_of] * random.lognormal(0, SPREAD, count),
            size=np.array([each.size_max for each in classes])[classes_of],
            size_class=classes_of,
        )
        failing = np.flatnonzero(random.random(count) < store.failing(users))
        weights = classes[0].weights
        codes = [OPERATIONS.named(name).code for name in weights]
        shares = np.array([*weights.values()]) / sum(weights.values())
        results.operation[:] = random.choice(codes, count, p=shares)
        results.failures.update({int(row): Failure("HTTP 503", "", {}) for row in failing})
        writer.add(results)
        writer.end(RunSummary(self.now + seconds))
        created, deleted = (
            np.sum(results.operation == OPERATIONS.named(name).code) for name in ("create", "delete")
        )
        self.now += seconds + BESIDE + self.deletion * max(0, int(created - deleted))
        return RunOutcome(run_id=1, seed=options.seed or 0, path=path, count=count)
