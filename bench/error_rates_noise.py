"""How often the plan that ``noise`` names is wrong: of runs with planted variances, and of drifting ones."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
from error_rates import ErrorRate

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))
from simulated_equal_runs import PlantedNoise, compare_as_planned, simulate_noise

#: Comparisons by each plan.
_COMPARISONS = 5


def _wrong(noise: PlantedNoise, count: int, slow: float, runs: int) -> tuple[int, int]:
    """Head figures that are missed where one side is slower; comparisons that differ where none is."""
    random = np.random.default_rng(1)
    wrong = made = 0
    for _ in range(2 * runs):
        found = simulate_noise(random, noise, count)
        price = found.price(found.heads)
        if price is None:
            continue
        for _ in range(_COMPARISONS):
            changes = [each.differs for *_, each in compare_as_planned(random, noise, price, slow).changes()]
            if slow == 1:
                wrong, made = wrong + any(changes), made + 1
            else:
                wrong, made = wrong + changes.count(False), made + len(changes)
    return wrong, made


def _rows() -> Iterator[ErrorRate]:
    for noise, what in (
        (PlantedNoise(0.02, 0.05), "2 % between runs, 5 % a second"),
        (PlantedNoise(0.04, 0.02), "4 % between runs, 2 % a second"),
        (PlantedNoise(0.005, 0.1), "0.5 % between runs, 10 % a second"),
        (PlantedNoise(0.02, 0.05, 0.01), "the first one, drift of 1 % a run"),
    ):
        for count in (8, 40):
            name = f"noise of {count} runs, {what}"
            count_wrong: Callable[[int], tuple[int, int]] = partial(_wrong, noise, count, 1.05)
            yield ErrorRate(f"{name}: 5 % missed", count_wrong, 0.1)
            yield ErrorRate(f"{name}: equal differ", partial(_wrong, noise, count, 1.0), 0.05)


ROWS = tuple(_rows())
