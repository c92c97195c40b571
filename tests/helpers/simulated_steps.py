"""Operations a second of runs whose rate stays, or changes, with noise like that of a store."""

from __future__ import annotations

from functools import partial

import noise
import numpy as np
import numpy.typing as npt

from ssbench.statistics.stopping_rule import StoppingRule, estimate_half_width

RATE = 1000


def rates(
    seed: int,
    runs: int,
    seconds: int,
    *,
    phi: float = 0.8,
    spread: float = 0.05,
    change: float = 0.0,
    at: float = 0.5,
    usual: npt.NDArray[np.float64] | float = 1.0,
) -> npt.NDArray[np.float64]:
    """Return the counts of each second, a row a run; the rate changes by ``change`` after a share of it.

    ``usual`` is its level besides, as a share of :data:`RATE`.
    """
    random = np.random.default_rng(seed)
    moments = at * seconds + random.uniform(-0.5, 0.5, (runs, 1))
    changed = np.clip(np.arange(1, seconds + 1) - moments, 0, 1)
    levels = RATE * usual * (1 + change * changed)
    return random.poisson(levels * np.exp(noise.correlated(random, runs, seconds, phi, spread))).astype(float)


def bursty_rates(seed: int, runs: int, seconds: int) -> npt.NDArray[np.float64]:
    """Return the counts of runs with bursts of 2 to 6 s, half as fast again or slower, 3 in 100 s."""
    random = np.random.default_rng(seed)
    return random.poisson(RATE * np.exp(bursty_levels(random, runs, seconds))).astype(float)


def bursty_levels(random: np.random.Generator, runs: int, seconds: int) -> npt.NDArray[np.float64]:
    """Return logarithms of what the seconds of such runs have in common, a row a run."""
    levels = 0.05 * random.standard_normal((runs, seconds))
    for row in levels:
        second = 0
        while second < seconds:
            length = 1
            if random.random() < 0.03:
                length = int(random.integers(2, 7))
                row[second : second + length] += random.choice([-0.5, 0.5])
            second += length
    return levels


def changed_rates(
    seed: int, runs: int, levels: npt.NDArray[np.float64], phi: float = 0.8, spread: float = 0.05
) -> npt.NDArray[np.float64]:
    """Return the counts of each second, a row a run, whose rate is so many times the usual one."""
    return rates(seed, runs, len(levels), phi=phi, spread=spread, usual=levels)


def middle_third(seconds: int, level: float) -> npt.NDArray[np.float64]:
    """Return levels that are another one in the middle third."""
    second = np.arange(seconds)
    return np.where((second >= seconds // 3) & (second < 2 * seconds // 3), level, 1.0)


def _find_widths(series: npt.NDArray[np.float64], seconds: float) -> list[float]:
    return [_find_width(series[: int(seconds)])]


def until_known(series: npt.NDArray[np.float64], truth: float, target: float) -> tuple[int, int]:
    """Return how many runs ``--until`` ends, and in how many of these the rate is as near as was asked."""
    ended = right = 0
    for each in series:
        rule = StoppingRule([target])
        if rule.look(len(each), partial(_find_widths, each)):
            ended += 1
            right += abs(float(each[: int(rule.seen)].mean()) / truth - 1) <= target
    return ended, right


def _find_width(series: npt.NDArray[np.float64]) -> float:
    return estimate_half_width(series) / float(series.mean())
