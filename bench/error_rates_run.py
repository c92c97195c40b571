"""How often what is said of one run is wrong."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from error_rates import ErrorRate

from ssbench.statistics.confidence import is_steady

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))
import noise


def _steady_called_unsteady(runs: int) -> tuple[int, int]:
    """Seconds that vary by 5 %, at an autocorrelation of 0.8."""
    random = np.random.default_rng(1)
    series = 1000 * np.exp(noise.correlated(random, 10 * runs, 60, 0.8, 0.05))
    return sum(not is_steady(each) for each in series), len(series)


ROWS = (ErrorRate("a steady run of 60 s is not called steady", _steady_called_unsteady, 0.03),)
