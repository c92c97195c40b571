"""Suites whose rows have runs that differ by chance, and by what is planted."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ssbench.comparison.family import FamilyComparison, RowRun, compare_table
from ssbench.comparison.run_figures import FigureSample
from ssbench.comparison.run_table import RunTable

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
    common: float = 0.0,
    stores: float = 0.0,
) -> list[list[RowRun]]:
    """Return the runs of each row, of which one may be 10 % slower; ``tails``: chance is Student's t of 4.

    ``common`` is how much of the variance is the same in all rows of a round, and ``stores`` how much in two
    rows that follow each other, as those of one scenario at two stores do.
    """

    def draw() -> float:
        return float(rng.standard_t(4) / math.sqrt(2) if tails else rng.standard_normal())

    of_round: dict[tuple[int, int, str], float] = {}  # of all rows, and of two

    def draw_for(row: int, number: int, key: str) -> float:
        if not common and not stores:
            return draw()
        for place in (-1, row // 2):
            if (place, number, key) not in of_round:
                of_round[place, number, key] = draw()
        shared = math.sqrt(common) * of_round[-1, number, key]
        shared += math.sqrt(stores) * of_round[row // 2, number, key]
        return shared + math.sqrt(1 - common - stores) * draw()

    rows = []
    for row, share in enumerate(noise):
        change = math.log(1.1) if row == slow else 0.0
        runs = []
        for number in range(rounds):
            load = draw_for(row, number, "") * share
            figures = {
                key: math.exp(load + own * share * draw_for(row, number, key) + change)
                for key, own in _OWN_NOISE.items()
            }
            rate = math.exp(-load - change)
            figures |= {"rate": rate, "mb_per_s": rate}
            failed = float(rng.poisson(0.5)) if row % 5 == 0 else 0.0
            samples = {key: FigureSample(value) for key, value in figures.items()}
            samples["errors"] = FigureSample(failed / 1000, 1.96 * math.sqrt(failed + 1) / 1000)
            runs.append(RowRun(samples, begins + 1000.0 * number + row))
        rows.append(runs)
    return rows


def compare_simulated(
    seed: int,
    rounds: int,
    *,
    spread: float = 0.0,
    slow: int | None = None,
    tails: bool = False,
    common: float = 0.0,
    stores: float = 0.0,
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
        make_suite(
            rng,
            noise.tolist(),
            rounds,
            begins=begins,
            slow=planted,
            tails=tails,
            common=common,
            stores=stores,
        )
        for begins, planted in ((0.0, None), (1e6, slow))
    ]
    rows = {f"row {place}": runs for place, runs in enumerate(zip(*sides, strict=True))}
    return compare_table(RunTable(("before", "after"), rows))
