"""How much runs differ, by what all rows of a table say."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ssbench.comparison.change import FigureDifference
from ssbench.comparison.row_variances import estimate_common_share, fit_variance_prior, moderate_variances


def test_how_much_rows_have_in_common() -> None:
    rng = np.random.default_rng(1)
    rounds = rng.standard_normal(6)
    own = rng.standard_normal((20, 6))

    def share(common: float) -> float:
        rows = math.sqrt(common) * rounds + math.sqrt(1 - common) * own
        return estimate_common_share([[*(row - row.mean())] for row in rows])

    assert share(0.0) < 0.15
    assert share(0.5) == pytest.approx(0.5, abs=0.2)
    assert share(1.0) == pytest.approx(1.0)
    assert estimate_common_share([]) == estimate_common_share([[1.0, -1.0]]) == 0.0
    assert estimate_common_share([[0.0, 0.0], [0.0, 0.0], []]) == 0.0


def test_rows_that_say_the_same_have_the_freedom_of_one() -> None:
    found = {
        row: FigureDifference(1.0, 1.0, 0.0, 0.01, 4.0, between_runs=True, sure=True) for row in range(20)
    }
    assert {each.freedom for each in moderate_variances(found).values()} == {80.0}
    assert {each.freedom for each in moderate_variances(found, common=1.0).values()} == {4.0}


def test_the_prior_of_variances() -> None:
    """Rows that differ by no more than chance are worth infinitely many degrees; others few."""
    rng = np.random.default_rng(1)
    alike = [(4.0 * float(rng.chisquare(6)) / 6, 6.0) for _ in range(400)]
    middle, freedom = fit_variance_prior(alike)
    assert middle == pytest.approx(4.0, rel=0.1)
    assert freedom > 50
    apart = [(4.0 * 8 / float(rng.chisquare(8)) * float(rng.chisquare(6)) / 6, 6.0) for _ in range(2000)]
    middle, freedom = fit_variance_prior(apart)
    assert middle == pytest.approx(4.0, rel=0.1)
    assert freedom == pytest.approx(8, rel=0.3)
