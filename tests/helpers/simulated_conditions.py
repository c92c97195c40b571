"""Runs of a store whose figures are known, judged by conditions whose limits are somewhat off the truth."""

from __future__ import annotations

import math
from collections import Counter
from statistics import NormalDist

import noise
import numpy as np
from planted import START, WEIGHTS, Facts

from ssbench.base.errors import GateResult
from ssbench.results.block import Failure, ResultBlock
from ssbench.results.run_description import RunDescription, RunSummary
from ssbench.scenario.conditions import parse_condition
from ssbench.scenario.model import Scenario, SizeClass
from ssbench.statistics.collector import Collector
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.summary import make_statistics
from ssbench.statistics.thresholds import judge_conditions

MEDIAN = 0.01
#: Standard deviation of the logarithm of each latency, and the share of operations that fail.
EACH_REQUEST = 0.6
ERRORS = 0.02


def run(
    random: np.random.Generator,
    operations: int,
    seconds: int,
    phi: float = 0.0,
    spread: float = 0.0,
    *,
    drift: float = 0.0,
    errors: float | np.typing.NDArray[np.float64] = ERRORS,
) -> RunStatistics:
    """Return the numbers of a run; ``spread`` is that of what the operations of a second have in common.

    ``drift`` is by how much the logarithm of latencies rises in the run; ``errors`` may be a share a second.
    """
    level = noise.correlated(random, 1, seconds, phi, spread)[0] + np.linspace(0.0, drift, seconds)
    per_second = random.poisson(operations / seconds * np.exp(-level - spread**2 / 2))
    second = np.repeat(np.arange(seconds), per_second)
    count = len(second)
    latencies = MEDIAN * np.exp(level[second] + random.normal(0, EACH_REQUEST, count))
    completed = START + np.sort(second + random.random(count))
    failed = np.flatnonzero(random.random(count) < np.broadcast_to(errors, seconds)[second])
    columns = {
        "operation": np.ones(count, int),
        "completed": completed,
        "size": np.full(count, 1000),
        "last_byte": latencies,
        "started": np.maximum(completed - latencies, START),
    }
    block = ResultBlock(
        count, columns, failures={int(place): Failure("HTTP 503", "", {}) for place in failed}
    )
    classes = (SizeClass("small", 1000, 1000, 1, WEIGHTS),)
    scenario = Scenario("planted", classes, user_count=1, run_seconds=seconds)
    summary = RunSummary(ended=START + seconds, sent_until=START + seconds)
    collector = Collector()
    collector.add(block)
    return make_statistics(collector, Facts(RunDescription(scenario, "1"), summary, ("small",)))


def truth(rank: float, spread: float) -> float:
    """Return a percentile of all latencies that there could be."""
    return MEDIAN * math.exp(NormalDist().inv_cdf(rank / 100) * math.hypot(EACH_REQUEST, spread))


def outcomes(
    runs: int, condition: str, operations: int, seconds: int, phi: float = 0.0, spread: float = 0.0
) -> Counter[GateResult]:
    """Return how often a condition ends how, of as many runs."""
    random = np.random.default_rng(1)
    parsed = parse_condition(condition)
    found = (
        judge_conditions(run(random, operations, seconds, phi, spread), [parsed])[0] for _ in range(runs)
    )
    return Counter(each.result for each in found)
