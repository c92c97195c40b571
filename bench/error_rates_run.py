"""How often what is said of one run is wrong."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
from error_rates import ErrorRate

from ssbench.base.errors import GateResult
from ssbench.statistics.by_second import LatencyTable
from ssbench.statistics.steadiness import judge_steadiness

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))
import noise
from planted import CREATE, Met, Store, operations, statistics_of
from simulated_conditions import outcomes, truth
from simulated_steps import bursty_rates, changed_rates, middle_third, rates


def _steady_called_unsteady(seconds: int, runs: int) -> tuple[int, int]:
    series = rates(1, 10 * runs, seconds)
    return sum(not judge_steadiness(each, 0.0, LatencyTable()).steady for each in series), len(series)


def _noise_called_unsteady(kind: str, seconds: int, runs: int) -> tuple[int, int]:
    phi = {"independent": 0.0, "autocorrelation 0.9": 0.9}.get(kind)
    count = 10 * runs
    series = bursty_rates(1, count, seconds) if phi is None else rates(1, count, seconds, phi=phi)
    return sum(not judge_steadiness(each, 0.0, LatencyTable()).steady for each in series), count


def _step_missed(seconds: int, change: float, runs: int) -> tuple[int, int]:
    series = rates(2, 5 * runs, seconds, change=change)
    return sum(judge_steadiness(each, 0.0, LatencyTable()).step is None for each in series), len(series)


def _change_missed(levels: npt.NDArray[np.float64], runs: int) -> tuple[int, int]:
    series = changed_rates(2, 2 * runs, levels)
    return sum(judge_steadiness(each, 0.0, LatencyTable()).steady for each in series), len(series)


def _latency_change(seconds: int, times: float, runs: int, *, is_wrong: bool) -> tuple[int, int]:
    """Runs at a constant rate whose latencies rise evenly to so many times what they were."""
    random, wrong = np.random.default_rng(3), 0
    for level in noise.correlated(random, 5 * runs, seconds, 0.9, 0.2):
        second = np.repeat(np.arange(seconds), 100)
        usual = 0.005 * np.linspace(1, times, seconds) * np.exp(level)
        table = LatencyTable.of(
            second + np.float64(1e9 + 0.5), usual[second] * random.lognormal(0, 0.6, len(second))
        )
        found = judge_steadiness(np.full(seconds, 100.0), 1e9, table).latency
        wrong += (found is not None) is is_wrong
    return wrong, 5 * runs


def _steps() -> tuple[ErrorRate, ...]:
    """Noise of 5 % a second and Poisson's, at an autocorrelation of 0.8; the change is in the middle."""
    rows = []
    for seconds in (19, 32, 60, 120):
        count: Callable[[int], tuple[int, int]] = partial(_steady_called_unsteady, seconds)
        rows.append(ErrorRate(f"{seconds} s, steady: called not steady", count, 1 / 30))
        for change in (1.0, -0.3, -0.2)[: 2 if seconds == 19 else 3]:
            limit = 1 / 6 if seconds == 32 and change == -0.2 else 1 / 12
            count = partial(_step_missed, seconds, change)
            rows.append(ErrorRate(f"{seconds} s, rate changes by {change:+.0%}: not found", count, limit))
    # The limits are what was measured when only steps of 20 s and drifts of 45 s were looked for.
    for kind, limit in (("independent", 0.01), ("autocorrelation 0.9", 0.06), ("bursts", 0.06)):
        for seconds in (19, 24, 32, 60, 120):
            count = partial(_noise_called_unsteady, kind, seconds)
            rows.append(ErrorRate(f"{seconds} s, steady, {kind}: called not steady", count, limit))
    second = np.arange(300)
    for name, levels in (
        ("falls to a third half-way in 19 s", np.where(second[:19] < 10, 1, 1 / 3)),
        ("falls evenly to a quarter in 24 s", np.linspace(1, 0.25, 24)),
        ("a bucket of tokens for 2 of 32 s, rate +29 %", np.where(second[:32] < 2, 1 + 0.29 * 16, 1)),
        ("a bucket of tokens for 3 of 32 s, rate +29 %", np.where(second[:32] < 3, 1 + 0.29 * 32 / 3, 1)),
        *((f"half as much again in the middle third of {n} s", middle_third(n, 1.5)) for n in (19, 60, 300)),
    ):
        rows.append(ErrorRate(f"rate {name}: not found", partial(_change_missed, levels), 1 / 12))
    for seconds in (19, 60, 120):
        name = f"{seconds} s, an open loop, noise of 20 % (0.9): the median latency"
        wrong = partial(_latency_change, seconds, 1.0, is_wrong=True)
        rows.append(ErrorRate(f"{name} is called changed", wrong, 0.03))
        missed = partial(_latency_change, seconds, 20.0, is_wrong=False)
        rows.append(ErrorRate(f"{name} rises from 5 to 100 ms: not found", missed, 1 / 12))
    return tuple(rows)


def _wrong(off: float, operations: int, seconds: int, spread: float, rank: int, runs: int) -> tuple[int, int]:
    """A condition on a percentile whose limit is so many times its true value."""
    limit = 1000 * truth(rank, spread) * off
    found = outcomes(5 * runs, f"p{rank} > {limit:.4f}ms", operations, seconds, 0.8, spread)
    return found[GateResult.FAILED if off > 1 else GateResult.PASSED], 5 * runs


def _conditions() -> tuple[ErrorRate, ...]:
    rows = []
    for rank, number, seconds, spread, away in (
        (50, 40, 4, 0.0, 0.1),
        (50, 2000, 4, 0.3, 0.02),
        (99, 2000, 4, 0.05, 0.02),
        (50, 400, 10, 0.05, 0.1),
        (50, 6000, 60, 0.05, 0.02),
        (99, 6000, 60, 0.0, 0.05),
        (99, 6000, 60, 0.05, 0.05),
    ):
        for off, word in ((1 + away, "red"), (1 - away, "green")):
            count = partial(_wrong, off, number, seconds, spread, rank)
            what = f"--fail-if p{rank}, {number:,} operations in {seconds} s, limit {away:.0%} off: {word}"
            rows.append(ErrorRate(f"{what} ({spread:.0%} a second)", count, 0.025))
    return tuple(rows)


def _large_in_between(random: np.random.Generator, share: float, spread: float) -> Store:
    """Return a healthy store: reads of 10 ms, and such a share of uploads that take about 3 s."""

    def store(_place: int, _sent: float) -> Met:
        if random.random() < share:
            return Met(3 * random.lognormal(0, 0.3), CREATE, 1)
        return Met(0.01 * random.lognormal(0, spread))

    return store


def _stall_of_healthy(users: int, share: float, spread: float, runs: int) -> tuple[int, int]:
    made = (_large_in_between(np.random.default_rng(seed), share, spread) for seed in range(2 * runs))
    found = (statistics_of(operations(each, users, 60), users, 60).store_stalls for each in made)
    return sum(map(bool, found)), 2 * runs


def _stall_missed(users: int, seconds: float, begins: float, ends: float, runs: int) -> tuple[int, int]:
    missed = 0
    for seed in range(2 * runs):
        usual = _large_in_between(np.random.default_rng(seed), 0.0, 0.6)

        def store(place: int, sent: float, usual: Store = usual) -> Met:
            met = usual(place, sent)
            left = ends - max(sent, begins)
            return replace(met, seconds=met.seconds + left) if begins - met.seconds < sent < ends else met

        found = statistics_of(operations(store, users, seconds), users, seconds).store_stalls
        missed += not any(abs(each.start - begins) < 0.2 for each in found)
    return missed, 2 * runs


def _stalls() -> tuple[ErrorRate, ...]:
    rows = []
    for users, share, spread in (
        (1, 0.005, 0.6),
        (2, 0.005, 0.6),
        (4, 0.02, 0.6),
        (8, 0.01, 1.2),
        (4, 0.0, 1.5),
    ):
        count: Callable[[int], tuple[int, int]] = partial(_stall_of_healthy, users, share, spread)
        what = f"{users} users, {share:.1%} large, spread {spread:g}"
        rows.append(ErrorRate(f"60 s, healthy, {what}: a stall in the verdict", count, 0.02))
    for users, seconds, begins, ends in ((1, 12, 4, 9), (10, 12, 4, 9), (8, 60, 20, 30), (8, 10, 8.8, 99)):
        count = partial(_stall_missed, users, seconds, begins, ends)
        what = f"{users} users, from second {begins:g} to {min(ends, seconds):g}"
        rows.append(ErrorRate(f"{seconds} s, a stall, {what}: not in the verdict", count, 0.0))
    return tuple(rows)


ROWS = (*_steps(), *_conditions(), *_stalls())
