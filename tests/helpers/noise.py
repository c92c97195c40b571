"""Noise like that of a store: what it does in one second is much like what it did before."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def correlated(
    random: np.random.Generator, runs: int, seconds: int, phi: float = 0.8, spread: float = 1.0
) -> npt.NDArray[np.float64]:
    """Return series of an AR(1) process with mean 0 and that standard deviation, a row a run."""
    steps = random.standard_normal((runs, seconds))
    steps[:, 1:] *= np.sqrt(1 - phi * phi)
    for second in range(1, seconds):
        steps[:, second] += phi * steps[:, second - 1]
    return spread * steps
