"""Equal runs with planted variances within and between runs, and comparisons by the plan that they name."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ssbench.comparison.equal_runs import EqualRun, NoiseFindings, Price, measure_noise
from ssbench.comparison.run_comparison import Comparison, compare_runs
from ssbench.comparison.run_figures import FigureKey, FigureSample, RunFigures

ALL: FigureKey = ("ALL", None)


@dataclass(frozen=True, slots=True)
class PlantedNoise:
    """Standard deviations of logarithms: from run to run, and of each second of a run."""

    between: float = 0.02
    second: float = 0.05
    drift: float = 0.0  # from each run to the next


def simulate_equal_run(
    random: np.random.Generator, noise: PlantedNoise, place: int, seconds: int = 20, slow: float = 1.0
) -> EqualRun:
    """Return a run of a closed loop: ops/s, and the median latency with as much noise of its own."""
    level = math.log(slow) + random.normal(0, noise.between) + place * noise.drift
    each = {key: random.normal(0, noise.second, seconds) for key in ("rate", "p50")}
    rates = 100 * np.exp(each["rate"] - level)
    latency = level + float(each["p50"].mean())
    half = seconds // 2
    return EqualRun(
        RunFigures(
            str(place),
            {ALL: {"rate": FigureSample(float(rates.mean())), "p50": FigureSample(math.exp(latency) / 100)}},
            started=1e9 + place * (seconds + 1.0),
        ),
        float(seconds),
        {(ALL, key): float(values[half:].mean() - values[:half].mean()) for key, values in each.items()},
        tuple(map(float, rates)),
    )


def simulate_noise(
    random: np.random.Generator, noise: PlantedNoise, count: int = 24, seconds: int = 20, wanted: float = 0.05
) -> NoiseFindings:
    """Return what so many equal runs say."""
    return measure_noise([simulate_equal_run(random, noise, each, seconds) for each in range(count)], wanted)


def compare_as_planned(
    random: np.random.Generator, noise: PlantedNoise, price: Price, slow: float
) -> Comparison:
    """Return the comparison of runs in turn, of which one side is slower."""
    sides: list[list[RunFigures]] = [[], []]
    for place in range(2 * price.pairs):
        side = int(place % 4 in {1, 2})
        run = simulate_equal_run(random, noise, place, round(price.seconds or 20), slow if side else 1.0)
        sides[side].append(run.figures)
    return compare_runs(sides[0], sides[1])
