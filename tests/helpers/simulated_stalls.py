"""Runs of a minute whose store stops for a second every ten, or never: how many stalls are found."""

from __future__ import annotations

import noise
import numpy as np
from planted_load import Store, play

from ssbench.scenario.model import Stage
from ssbench.statistics.stalls import Stall

SECONDS, EVERY, BEGINS, LASTS = 60, 10.0, 4.0, 1.0

#: Stalls of a run.
PLANTED = 6

#: One in so many operations takes five times as long.
_OUTLIERS = 0.02
_CHUNK = 4096


def stopping(random: np.random.Generator, median: float, *, stops: bool) -> Store:
    """Return a store with latencies that spread by a factor of 1.8, and whose world stands still at times."""
    level = np.exp(noise.correlated(random, 1, 2 * SECONDS, 0.8, 0.05)[0])
    drawn: list[float] = []

    def store(sent: float) -> float:
        if not drawn:
            latencies = median * random.lognormal(0, 0.6, _CHUNK)
            drawn.extend((latencies * np.where(random.random(_CHUNK) < _OUTLIERS, 5, 1)).tolist())
        latency = drawn.pop() * level[int(sent)]
        period, within = divmod(sent, EVERY)
        if stops and within < BEGINS + LASTS:
            if within >= BEGINS:
                return float(EVERY * period + BEGINS + LASTS + latency)
            if within + latency > BEGINS:
                latency += LASTS
        return float(sent + latency)

    return store


def stalls_of(
    seed: int, *, rate: float | None = None, users: int = 600, median: float = 0.02, stops: bool = True
) -> tuple[Stall, ...]:
    """Return what is found in a run; without a rate it is a closed loop."""
    store = stopping(np.random.default_rng(seed), median, stops=stops)
    course = play(store, [Stage(SECONDS, (users, users), (rate, rate) if rate else None)]).course
    assert course is not None
    return course.stalls


def all_found(stalls: tuple[Stall, ...]) -> bool:
    """Whether these are the stalls that were planted, and no others."""
    moments = sorted(stall.start + stall.seconds / 2 for stall in stalls)
    middle = BEGINS + LASTS / 2
    return len(moments) == PLANTED and all(
        abs(moment - EVERY * place - middle) < LASTS / 2 for place, moment in enumerate(moments)
    )
