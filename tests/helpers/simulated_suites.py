"""Suites whose rows have runs that differ by chance, and by what is planted."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ssbench.comparison.family import FamilyComparison, RowRun, compare_families
from ssbench.comparison.run_figures import FigureSample

ROWS = 20

#: How much more than the rate a figure differs from run to run, by itself.
_OWN_NOISE = {"p50": 0.5, "p90": 0.8, "p99": 2.0, "first_p50": 0.6, "first_p99": 2.5}


def make_suite(
    rng: np.random.Generator,
    noise: Sequence[float],
    rounds: int,
    *,
    begins: float = 0.0,
    slow: int | None = None,
    tails: bool = False,
) -> list[list[RowRun]]:
    """Return the runs of each row, of which one may be 10 % slower; ``tails``: chance is Student's t of 4."""

    def draw() -> float:
        return float(rng.standard_t(4) / math.sqrt(2) if tails else rng.standard_normal())

    rows = []
    for row, share in enumerate(noise):
        change = math.log(1.1) if row == slow else 0.0
        runs = []
        for number in range(rounds):
            common = draw() * share
            figures = {
                key: math.exp(common + own * share * draw() + change) for key, own in _OWN_NOISE.items()
            }
            rate = math.exp(-common - change)
            figures |= {"rate": rate, "mb_per_s": rate}
            figures["errors"] = float(rng.poisson(0.5)) / 1000 if row % 5 == 0 else 0.0
            samples = {key: FigureSample(value) for key, value in figures.items()}
            runs.append(RowRun(samples, begins + 1000.0 * number + row))
        rows.append(runs)
    return rows


def compare_simulated(
    seed: int, rounds: int, *, spread: float = 0.0, slow: int | None = None, tails: bool = False
) -> FamilyComparison:
    """Compare two suites, one after the other.

    Runs differ by 1.5 %, in rows other than the one that is slow by more or less: ``spread`` is the standard
    deviation of the logarithm.
    """
    rng = np.random.default_rng(seed)
    noise = 0.015 * np.exp(spread * rng.standard_normal(ROWS))
    if slow is not None:
        noise[slow] = 0.015
    sides = [
        make_suite(rng, noise.tolist(), rounds, begins=begins, slow=planted, tails=tails)
        for begins, planted in ((0.0, None), (1e6, slow))
    ]
    rows = [(f"row {place}", *runs) for place, runs in enumerate(zip(*sides, strict=True))]
    return compare_families("before", "after", [(name, one, two) for name, one, two in rows])
