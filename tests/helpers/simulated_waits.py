"""Latencies of stores that are well, and of stores in which some requests wait for a constant."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from planted_load import play
from result_rows import block

from ssbench.results.run_description import RunDescription, RunSummary
from ssbench.scenario.model import Scenario, SizeClass, Stage
from ssbench.statistics.collector import Collector
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.summary import make_statistics

Floats = npt.NDArray[np.float64]
START = 1_700_000_000.0
CLASSES = ("small", "medium", "large")


@dataclass
class Facts:
    """What the statistics are told of the run."""

    run: RunDescription
    summary: RunSummary
    size_classes: tuple[str, ...] = CLASSES
    warnings: tuple[str, ...] = ()
    current: bool = True


@dataclass(frozen=True)
class Plant:
    """A share of the requests of one operation (by code) that waits, or connects so long."""

    seconds: float
    share: float
    operation: int = 0
    connecting: bool = False


def healthy(random: np.random.Generator, count: int, median: float) -> Floats:
    """Draw latencies of one operation and size class: one of the shapes that stores have."""
    shape = random.integers(5)
    body = median * np.exp(random.uniform(0.1, 0.6) * random.standard_normal(count))
    if shape == 1:  # a cache: some are five to fifty times faster
        body[random.random(count) < random.uniform(0.1, 0.9)] /= random.uniform(5, 50)
    elif shape == 2:  # a heavy tail
        slow = random.random(count) < random.uniform(0.001, 0.05)
        body[slow] *= 1 + random.pareto(random.uniform(1.0, 2.5), int(slow.sum()))
    elif shape == 3:  # a second crowd, as of another kind of disk
        slow = random.random(count) < random.uniform(0.02, 0.5)
        body[slow] *= random.uniform(2, 20) * np.exp(0.15 * random.standard_normal(int(slow.sum())))
    elif shape == 4:  # pauses of the store, which requests meet at any moment of them
        slow = random.random(count) < random.uniform(0.005, 0.05)
        body[slow] += random.uniform(0.02, 1.5) * random.random(int(slow.sum()))
    # What no request is faster than: the way, and the clock of a busy machine.
    return body + random.exponential(0.0005, count) + random.uniform(0.0002, 0.003)


def statistics_of(seed: int, plant: Plant | None = None, count: int | None = None) -> RunStatistics:
    """Return the statistics of a simulated run of two operations, of one to three size classes."""
    random = np.random.default_rng(seed)
    classes = int(random.integers(1, 4))
    count = count or int(10 ** random.uniform(2.3, 4.3))
    median = 10 ** random.uniform(-3, -1)
    if plant:
        median = min(median, plant.seconds / 8)
    operation, size_class = random.integers(0, 2, count), random.integers(0, classes, count)
    latency, connecting = np.zeros(count), np.zeros(count)
    factor = 10 ** random.uniform(-0.5, 0.5, 2)
    for code in (0, 1):
        for place in range(classes):
            rows = (operation == code) & (size_class == place)
            if plant:  # what is too slow without cannot show it
                drawn = median * factor[code] / 3 * np.exp(0.4 * random.standard_normal(int(rows.sum())))
            else:
                drawn = healthy(random, int(rows.sum()), median * factor[code] * 2**place)
            latency[rows] = drawn
    if plant:
        waits = (operation == plant.operation) & (random.random(count) < plant.share)
        # Timers of a kernel count in jiffies, those of a program wait for its loop.
        extra = plant.seconds + random.exponential(0.0015, count)
        latency[waits] += extra[waits]
        if plant.connecting:
            connecting[waits] = extra[waits]
            others = ~waits & (random.random(count) < 0.2)
            connecting[others] = random.exponential(0.0005, int(others.sum()))
    else:
        new = random.random(count) < random.choice([0.02, 0.2, 1.0])
        connecting[new] = healthy(random, int(new.sum()), 10 ** random.uniform(-4, -1))
        latency += connecting
    return _statistics(operation, size_class, latency, connecting)


def pausing(seed: int) -> RunStatistics:
    """Return the statistics of a run whose store pauses now and then, and delays what all users have sent."""
    random = np.random.default_rng(seed)
    users, seconds, median = int(random.choice([8, 32, 64])), 6, 10 ** random.uniform(-2.2, -1.6)
    number = int(random.integers(1, 6))
    begin, last = np.sort(random.uniform(0, seconds, number)), 10 ** random.uniform(-1.6, 0.2, number)

    def store(sent: float) -> float:
        ended = sent + median * random.lognormal(0, 0.4)
        for start, length in zip(begin, last, strict=True):
            if start <= sent < start + length:
                ended += start + length - sent
            elif sent < start < ended:
                ended += length
        return float(ended)

    return play(store, [Stage(seconds, (users, users), None)])


def _statistics(
    operation: npt.NDArray[np.int64], size_class: npt.NDArray[np.int64], latency: Floats, connecting: Floats
) -> RunStatistics:
    ended = START + np.cumsum(latency) / 4
    rows = [
        (int(code), int(place), 1, 0, 1, 1000, -1.0, float(seconds), float(end), 200, 0)
        for code, place, seconds, end in zip(operation, size_class, latency, ended, strict=True)
    ]
    rare: dict[str, dict[int, float]] = {
        "started": {place: float(ended[place] - latency[place]) for place in range(len(rows))},
        "attempts": dict.fromkeys(range(len(rows)), 1),
        "connecting": {place: float(each) for place, each in enumerate(connecting)},
        "pausing": dict.fromkeys(range(len(rows)), 0.0),
    }
    collector = Collector()
    collector.add(block(rows, [f"tx{place}" for place in range(len(rows))], {}, rare=rare))
    weights = {"create": 1.0, "read": 1.0}
    scenario = Scenario(
        "waits",
        tuple(SizeClass(name, 1000, 1000, 1, weights) for name in CLASSES),
        user_count=4,
        operation_count=len(rows),
    )
    summary = RunSummary(ended=float(ended[-1]), sent_until=float(ended[-1]))
    return make_statistics(collector, Facts(RunDescription(scenario, "1"), summary))
