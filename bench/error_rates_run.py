"""How often what is said of one run is wrong."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from error_rates import ErrorRate

from ssbench.base.errors import GateResult
from ssbench.statistics.by_second import LatencyTable
from ssbench.statistics.steadiness import judge_steadiness

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))
from simulated_conditions import outcomes, truth
from simulated_steps import rates


def _steady_called_unsteady(seconds: int, runs: int) -> tuple[int, int]:
    series = rates(1, 10 * runs, seconds)
    return sum(not judge_steadiness(each, 0.0, LatencyTable()).steady for each in series), len(series)


def _step_missed(seconds: int, change: float, runs: int) -> tuple[int, int]:
    series = rates(2, 5 * runs, seconds, change=change)
    return sum(judge_steadiness(each, 0.0, LatencyTable()).step is None for each in series), len(series)


def _steps() -> tuple[ErrorRate, ...]:
    """Noise of 5 % a second and Poisson's, at an autocorrelation of 0.8; the change is in the middle."""
    rows = []
    for seconds in (32, 60, 120):
        count: Callable[[int], tuple[int, int]] = partial(_steady_called_unsteady, seconds)
        rows.append(ErrorRate(f"{seconds} s, steady: called not steady", count, 1 / 30))
        for change in (1.0, -0.3, -0.2):
            limit = 1 / 6 if seconds == 32 and change == -0.2 else 1 / 12
            count = partial(_step_missed, seconds, change)
            rows.append(ErrorRate(f"{seconds} s, rate changes by {change:+.0%}: not found", count, limit))
    return tuple(rows)


def _wrong(off: float, operations: int, seconds: int, spread: float, rank: int, runs: int) -> tuple[int, int]:
    """A condition on a percentile whose limit is so many times its true value."""
    limit = 1000 * truth(rank, spread) * off
    found = outcomes(5 * runs, f"p{rank} > {limit:.4f}ms", operations, seconds, 0.8, spread)
    return found[GateResult.FAILED if off > 1 else GateResult.PASSED], 5 * runs


def _conditions() -> tuple[ErrorRate, ...]:
    rows = []
    for rank, operations, seconds, spread, away in (
        (50, 40, 4, 0.0, 0.1),
        (50, 2000, 4, 0.3, 0.02),
        (99, 2000, 4, 0.05, 0.02),
        (50, 400, 10, 0.05, 0.1),
        (50, 6000, 60, 0.05, 0.02),
        (99, 6000, 60, 0.0, 0.05),
        (99, 6000, 60, 0.05, 0.05),
    ):
        for off, word in ((1 + away, "red"), (1 - away, "green")):
            count = partial(_wrong, off, operations, seconds, spread, rank)
            what = (
                f"--fail-if p{rank}, {operations:,} operations in {seconds} s, limit {away:.0%} off: {word}"
            )
            rows.append(ErrorRate(f"{what} ({spread:.0%} a second)", count, 0.025))
    return tuple(rows)


ROWS = (*_steps(), *_conditions())
