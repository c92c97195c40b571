"""How often ``--sweep`` is wrong about the knee of thirteen stores with and without one.

They are simulated by their rates only, at loads that double: each differs by 2 % from run to run, and
its interval is 3 %. What is true is arithmetic: the knee is the lowest load at which the rate is 90 % of
the best, whatever the load, or a sharp corner. It is none where that is beyond the loads, or just below the
highest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from error_rates import ErrorRate

from ssbench.comparison.sweep import KNEE_RATE_SHARE, Knee, estimate_knee

LOADS = (1, 2, 4, 8, 16, 32, 64)

#: By how much a rate differs from run to run, and half the width of its interval.
_NOISE, _HALF = 0.02, 0.03

#: Three standard deviations of the ratio of two rates: so much less than 90 % of the best may be at a knee.
_ALLOWED = 3 * math.sqrt(2) * _NOISE


@dataclass(frozen=True)
class Store:
    """The rate at each load, and whether there is a knee; None where it jumps between two loads.

    A knee that is found is ``within`` this share of the truth, more where the rate hardly changes.
    """

    name: str
    rate: Callable[[float], float]
    has_knee: bool | None
    corner: float = 0.0
    within: float = 0.2
    falsely: float = 0.0  # the share of sweeps in which a knee may be certain

    def truth(self) -> float:
        """Return the knee, of all loads up to a million."""
        loads = np.geomspace(1, 1e6, 20_001)
        rates = np.array([self.rate(float(load)) for load in loads])
        return max(float(loads[int(np.argmax(rates >= KNEE_RATE_SHARE * rates.max()))]), self.corner)

    @cache  # noqa: B019
    def swept(self, runs: int) -> list[Knee]:
        """Return what is concluded of this many sweeps."""
        random = np.random.default_rng(1)
        found = []
        for _ in range(runs):
            rates = [self.rate(load) * math.exp(_NOISE * random.standard_normal()) for load in LOADS]
            each = estimate_knee(LOADS, rates, [_HALF] * len(LOADS))
            assert each is not None
            found.append(each)
        return found


def _round(corner: float, sharpness: float) -> Callable[[float], float]:
    return lambda n: 20 * n / (1 + (n / corner) ** sharpness) ** (1 / sharpness)


def _usl(sigma: float, kappa: float) -> Callable[[float], float]:
    return lambda n: 20 * n / (1 + sigma * (n - 1) + kappa * n * (n - 1))


STORES = (
    Store("a sharp corner at 4", lambda n: 46 * min(n, 4.0), has_knee=True, corner=4),
    Store("a sharp corner at 11", lambda n: 46 * min(n, 11.0), has_knee=True, corner=11),
    Store("a round corner at 10", _round(10, 4), has_knee=True),
    Store("most at 22, then less (USL)", _usl(0.05, 0.002), has_knee=True),
    Store("most at 7, then much less (USL)", _usl(0.02, 0.02), has_knee=True),
    Store("contention of 60 %", _usl(0.6, 0.0), has_knee=True, within=0.5),
    Store("as much at 1 user as at 64", lambda n: 100.0 + 0 * n, has_knee=True),
    Store("a jump between 8 and 16", lambda n: 5.0 * n if n <= 8 else 100.0, has_knee=None),
    Store("in proportion", lambda n: 20 * n, has_knee=False),
    Store("the square root", lambda n: 20 * math.sqrt(n), has_knee=False),
    Store("the tenth root", lambda n: 20 * n**0.1, has_knee=False, falsely=0.05),
    Store("the logarithm", lambda n: 20 * (1 + math.log2(n)), has_knee=False),
    Store("contention of 5 %", _usl(0.05, 0.0), has_knee=False),
)


def _below(store: Store, runs: int) -> tuple[int, int]:
    found = store.swept(runs)
    return sum(each.value < LOADS[0] or 0 < each.low < LOADS[0] for each in found), runs


def _too_low(store: Store, runs: int) -> tuple[int, int]:
    least = (KNEE_RATE_SHARE - _ALLOWED) * max(map(store.rate, LOADS))
    return sum(each.reached and store.rate(each.value) < least for each in store.swept(runs)), runs


def _not_found(store: Store, runs: int) -> tuple[int, int]:
    truth = store.truth()
    near = sum(each.reached and abs(each.value / truth - 1) <= store.within for each in store.swept(runs))
    return runs - near, runs


def _certain(store: Store, runs: int) -> tuple[int, int]:
    return sum(each.reached for each in store.swept(runs)), runs


def _rows() -> Iterator[ErrorRate]:
    for store in STORES:
        name = f"--sweep, {store.name}"
        yield ErrorRate(f"{name}: the knee is below the lowest load", partial(_below, store), 0.0)
        yield ErrorRate(
            f"{name}: less than 90 % of the best at a certain knee", partial(_too_low, store), 0.0
        )
        if store.has_knee:
            yield ErrorRate(
                f"{name}: the knee is not found within {store.within:.0%}", partial(_not_found, store), 0.1
            )
        elif store.has_knee is False:
            yield ErrorRate(f"{name}: a knee is certain", partial(_certain, store), store.falsely)


ROWS = tuple(_rows())
