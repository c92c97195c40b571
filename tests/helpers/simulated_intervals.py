"""How often the truth lies in an interval, and a warm-up is found, of seconds that are much alike."""

from __future__ import annotations

import math
from collections.abc import Iterable
from statistics import NormalDist

import noise
import numpy as np

from ssbench.results.block import ResultBlock
from ssbench.statistics.confidence import mean_interval
from ssbench.statistics.latencies import Latencies, LatencyCollector
from ssbench.statistics.steadiness import judge_steadiness

#: Standard deviations of the logarithm of what a second has in common, and of each request.
EACH_SECOND, EACH_REQUEST = 0.05, 0.6
RATE = 100
MEDIAN = 0.01
PERCENTILES = (50, 95)

_START = 1e9


def coverage(phi: float, seconds: int, runs: int, seed: int = 1) -> dict[str, tuple[int, int]]:
    """Return for the rate and for percentiles in how many runs there is an interval, and the truth in it."""
    random = np.random.default_rng(seed)
    found = {name: [0, 0] for name in ("rate", *(f"p{rank}" for rank in PERCENTILES))}
    for _ in range(runs):
        level = noise.correlated(random, 1, seconds, phi, EACH_SECOND)[0]
        rate = mean_interval(1 + level)
        if rate is not None:
            found["rate"][0] += 1
            found["rate"][1] += rate.low <= 1 <= rate.high
        latencies = _latencies(random, np.exp(level), np.full(seconds, RATE))
        for rank in PERCENTILES:
            interval = latencies.interval(rank)
            if interval is not None:
                spread = math.hypot(EACH_SECOND, EACH_REQUEST)
                truth = MEDIAN * math.exp(NormalDist().inv_cdf(rank / 100) * spread)
                found[f"p{rank}"][0] += 1
                found[f"p{rank}"][1] += interval.low <= truth <= interval.high
    return {name: (given, right) for name, (given, right) in found.items()}


def warm_ups(seconds: int, phi: float, slower: float, seeds: Iterable[int]) -> list[float | None]:
    """Return the warm-ups of runs of a closed loop that begin slower by a share that decays in 15 s."""
    found = []
    for seed in seeds:
        random = np.random.default_rng(seed)
        speed = 1 - slower * np.exp(-np.arange(seconds) / 15)
        speed *= np.exp(noise.correlated(random, 1, seconds, phi, EACH_SECOND)[0])
        counts = np.rint(RATE * speed).astype(int)
        latencies = _latencies(random, 1 / speed, counts)
        found.append(judge_steadiness(counts.astype(float), _START, latencies.by_second).warm_up)
    return found


def _latencies(random: np.random.Generator, level: np.ndarray, counts: np.ndarray) -> Latencies:
    values = MEDIAN * np.repeat(level, counts) * random.lognormal(0, EACH_REQUEST, int(counts.sum()))
    completed = _START + 0.5 + np.repeat(np.arange(len(counts)), counts)
    collector = LatencyCollector()
    every, one = np.arange(len(values)), np.zeros(len(values), np.intp)
    collector.add(ResultBlock(len(values), {"completed": completed}), every, one, values, 0)
    (found,) = collector.finish()
    return found
