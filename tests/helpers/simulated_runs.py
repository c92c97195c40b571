"""Results of runs of a store that is simulated by its latencies only, for what is said of them."""

from __future__ import annotations

import noise
import numpy as np

from ssbench.names import side_of
from ssbench.results import ResultBlock, RunDescription
from ssbench.scenario.model import Scenario, SizeClass
from ssbench.statistics import Collector, RunStatistics, make_statistics

SCENARIO = Scenario("simulated", (SizeClass("small", 1, 1, 1, (0, 1, 0, 0)),), 4, run_seconds=20)

#: Alike from second to second, and of a whole run; standard deviations of logarithms.
EACH_SECOND, EACH_RUN, EACH_REQUEST = 0.05, 0.02, 0.6


class _Facts:
    size_classes = ("small",)
    summary = None
    warnings = ()
    current = True

    def __init__(self, sides: tuple[str, ...]) -> None:
        self.run = RunDescription(SCENARIO, sides=sides)


def reads(
    random: np.random.Generator,
    seconds: int,
    change: float = 1.0,
    *,
    rate: int = 100,
    sides: tuple[str, ...] = (),
) -> RunStatistics:
    """The statistics of a run of reads; ``change`` multiplies latencies, of two sides those of the second."""
    count = rate * seconds
    level = noise.correlated(random, 1, seconds, 0.8, EACH_SECOND)[0] + random.normal(0, EACH_RUN)
    latency = 0.01 * np.exp(np.repeat(level, rate) + random.normal(0, EACH_REQUEST, count))
    columns = {
        "operation": np.ones(count, int),
        "completed": 1e9 + 0.005 + np.arange(count) / rate,
        "size": np.full(count, 1000),
    }
    if sides:
        columns["side"] = side_of(random.integers(1, 10_000, count))
        latency[columns["side"] == 1] *= change
    else:
        latency *= change
    collector = Collector(("side",) if sides else ())
    collector.add(ResultBlock(count, {**columns, "first_byte": latency, "last_byte": latency}))
    return make_statistics(collector, _Facts(sides))
