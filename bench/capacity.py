"""How often --find and the knee of --sweep are right, of stores that are simulated by their latencies.

    python bench/capacity.py [--seeds N] [--noise SHARE ...]

Each store has a limit that can be calculated. Its latencies are lognormal; the level changes by 5 % from
second to second (autocorrelation 0.8) and, with --noise, by so much from run to run.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))

from noise import correlated

from ssbench.comparison.search import LimitSearch, TrialEvidence
from ssbench.comparison.sweep import estimate_knee


@dataclass(frozen=True)
class Store:
    """``level`` is the median latency in seconds at a load; a share of ``slow`` takes five times as long."""

    name: str
    level: Callable[[float], float]
    sigma: float
    limit: float
    wanted: float
    slow: float = 0.0
    spread: float = 0.05
    is_open: bool = False

    def share_within(self, load: float) -> float:
        """Return which share of latencies is within the limit."""
        deviation = math.hypot(self.sigma, self.spread)
        usual, slow = (
            0.5 * math.erfc(-math.log(self.limit / (self.level(load) * factor)) / deviation / math.sqrt(2))
            for factor in (1.0, 5.0)
        )
        return (1 - self.slow) * usual + self.slow * slow

    def truth(self) -> float:
        """Return the highest load at which the wanted share is within the limit."""
        low, high = 1.0, 1e6
        for _ in range(60):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if self.share_within(middle) >= self.wanted else (low, middle)
        return low

    def trial(
        self, load: int, seconds: float, noise: float, random: np.random.Generator
    ) -> tuple[TrialEvidence, int]:
        """Return what a run says, and how many requests it made; ``noise``: by how much runs differ."""
        level = self.level(load) * math.exp(noise * random.standard_normal())
        rate = load if self.is_open else load / (level * math.exp(self.sigma**2 / 2))
        count = max(1, int(rate * seconds))
        levels = level * np.exp(correlated(random, 1, round(seconds) + 1, spread=self.spread)[0])
        second = np.linspace(0, seconds, count, endpoint=False).astype(int)
        latencies = levels[second] * np.exp(self.sigma * random.standard_normal(count))
        latencies[random.random(count) < self.slow] *= 5.0
        inside = latencies <= self.limit
        return TrialEvidence(float(inside.mean()), count / _inflation(inside, second), self.wanted), count


def _inflation(inside: np.ndarray, second: np.ndarray) -> float:
    """Return by how much the variance of the share is larger than that of independent operations."""
    share = inside.mean()
    counts = np.bincount(second)
    rest = np.bincount(second, inside) - counts * share
    expected = counts.mean() * share * (1 - share)
    if len(rest) < 3 or not expected or not rest.any():
        return 1.0
    lag = min(max(float(np.corrcoef(rest[1:], rest[:-1])[0, 1]), 0.0), 0.9)
    return max(1.0, float(rest.var() / expected) * (1 + lag) / (1 - lag))


STORES = (
    Store("levels off", lambda n: max(0.01, n / 400), 0.3, 0.2, 0.99),
    Store("rises smoothly", lambda n: 0.01 * (1 + (n / 16) ** 4) ** 0.25, 0.4, 0.05, 0.99),
    Store("0.6 % always slow", lambda n: max(0.01, n / 400), 0.3, 0.2, 0.99, slow=0.006),
    Store("rises slowly", lambda n: 0.01 * (1 + n / 30), 0.8, 0.2, 0.99),
    Store("slow, p95", lambda n: 0.05 * (1 + (n / 6) ** 3) ** (1 / 3), 0.5, 0.3, 0.95),
    Store("few operations", lambda n: 0.2 * (1 + (n / 12) ** 3) ** (1 / 3), 0.35, 0.6, 0.99, spread=0.1),
    Store("open loop", lambda r: 1 / (500 - r) if r < 499.9 else 10.0, 0.5, 0.05, 0.99, is_open=True),
)

SWEEPS: tuple[tuple[str, Callable[[float], float], float], ...] = (
    ("46 a user up to 4", lambda n: 46 * min(n, 4), 4.0),
    ("rounded at 10", lambda n: 20 * n / (1 + (n / 10) ** 4) ** 0.25, 11.75),  # 90 % of the most
    ("USL", lambda n: 20 * n / (1 + 0.05 * (n - 1) + 0.002 * n * (n - 1)), 12.22),
    ("never levels off", lambda n: 20 * n, math.inf),
)


@dataclass(frozen=True)
class Searched:
    """How often the answer was within a tenth of the truth, the truth in its interval, and that narrow."""

    near: int
    covered: int
    decided: int
    requests: float
    seconds: float
    steps: float


def search(store: Store, seeds: int, noise: float = 0.03) -> Searched:
    """Search the limit of a store this many times; requests and seconds are the median, steps the mean."""
    truth, near, covered, decided, requests, steps, seconds = store.truth(), 0, 0, 0, [], [], []
    for seed in range(seeds):
        random = np.random.default_rng(seed)
        searching = LimitSearch(50 if store.is_open else 4, 20.0, most=10**6)
        requests.append(0)
        steps.append(0)
        seconds.append(0.0)
        while (trial := searching.next()) is not None:
            evidence, count = store.trial(trial.value, trial.seconds, noise, random)
            searching.record([evidence])
            requests[-1] += count
            steps[-1] += 1
            seconds[-1] += trial.seconds
        answer = searching.answer()
        near += abs((answer.value or 0) - truth) <= max(1.0, 0.1 * truth)
        covered += answer.low <= truth <= answer.high + 1
        decided += answer.narrow
    middle = float(np.median(requests)), float(np.median(seconds))
    return Searched(near, covered, decided, *middle, float(np.mean(steps)))


@dataclass(frozen=True)
class Swept:
    """How often the knee was within 15 %, its interval had the truth, and the sweep was said to pass it."""

    near: int
    covered: int
    certain: int


def sweep(rate: Callable[[float], float], truth: float, seeds: int) -> Swept:
    """Look for the knee this many times, in sweeps from 1 to 64."""
    values = [1, 2, 4, 8, 16, 32, 64]
    near = covered = certain = 0
    for seed in range(seeds):
        random = np.random.default_rng(seed)
        rates = [rate(value) * math.exp(0.02 * random.standard_normal()) for value in values]
        found = estimate_knee(values, rates, [0.03] * len(values))
        assert found is not None
        near += found.value == truth or abs(found.value / truth - 1) <= 0.15
        covered += found.low <= truth <= found.high
        certain += found.reached
    return Swept(near, covered, certain)


def searches(seeds: int, noises: Sequence[float]) -> None:
    """Print a line for each store and noise."""
    columns = (
        f"{'limit':>8}{'within 10 %':>13}{'in interval':>13}{'decided':>9}{'requests':>10}{'seconds':>9}"
    )
    print(f"of {seeds}\n{'--find':<20}{'noise':>6}{columns}{'steps':>7}")
    for noise in noises:
        for store in STORES:
            found = search(store, seeds, noise)
            print(
                f"{store.name:<20}{noise:>6.2f}{store.truth():>8.1f}{found.near:>13}{found.covered:>13}"
                f"{found.decided:>9}{found.requests:>10.0f}{found.seconds:>9.0f}{found.steps:>7.1f}",
                flush=True,
            )


def sweeps(seeds: int) -> None:
    """Print a line for each store."""
    print(f"\n{'--sweep':<20}{'knee':>8}{'within 15 %':>13}{'in interval':>13}{'called certain':>16}")
    for name, rate, truth in SWEEPS:
        found = sweep(rate, truth, seeds)
        print(
            f"{name:<20}{truth:>8.1f}{found.near:>9} of {seeds}{found.covered:>9} of {seeds}"
            f"{found.certain:>12} of {seeds}"
        )


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--noise", type=float, nargs="+", default=[0.03], help="by how much runs differ")
    arguments = parser.parse_args()
    searches(arguments.seeds, arguments.noise)
    sweeps(arguments.seeds)


if __name__ == "__main__":
    main()
