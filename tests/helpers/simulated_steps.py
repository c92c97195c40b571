"""Operations a second of runs whose rate stays, or changes once, with noise like that of a store."""

from __future__ import annotations

import noise
import numpy as np
import numpy.typing as npt

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
) -> npt.NDArray[np.float64]:
    """Return the counts of each second, a row a run; the rate changes by ``change`` after a share of it."""
    random = np.random.default_rng(seed)
    moments = at * seconds + random.uniform(-0.5, 0.5, (runs, 1))
    changed = np.clip(np.arange(1, seconds + 1) - moments, 0, 1)
    levels = RATE * (1 + change * changed)
    return random.poisson(levels * np.exp(noise.correlated(random, runs, seconds, phi, spread))).astype(float)
