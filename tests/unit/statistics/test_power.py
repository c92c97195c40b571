"""How large a change a t-test shows, beside drawing."""

from __future__ import annotations

import numpy as np
import pytest

from ssbench.statistics.confidence import t_quantile
from ssbench.statistics.power import find_detectable_errors, find_power


@pytest.mark.parametrize(("freedom", "level"), [(3, 0.05), (7, 0.025), (30, 0.025)])
def test_power_agrees_with_drawing(freedom: int, level: float) -> None:
    random = np.random.default_rng(1)
    draws = 40_000
    limit = t_quantile(1 - level / 2, freedom)
    spread = np.sqrt(random.chisquare(freedom, draws) / freedom)
    for errors in (2.0, 4.0):
        for known in (4.0, 20.0):
            true = errors * np.sqrt(random.chisquare(known, draws) / known)
            drawn = np.mean((true + random.standard_normal(draws)) / spread > limit)
            assert find_power(errors, freedom, known, level) == pytest.approx(drawn, abs=0.01)
    assert find_power(find_detectable_errors(freedom, 20.0, level), freedom, 20.0, level) == pytest.approx(
        0.9, abs=0.01
    )
