"""The page of what runs show."""

from __future__ import annotations

import numpy as np
from simulated_equal_runs import PlantedNoise, simulate_noise

from ssbench.comparison.noise_report import make_noise_document
from ssbench.document.elements import Chart


def test_the_page_draws_what_a_time_shows() -> None:
    found = simulate_noise(np.random.default_rng(1), PlantedNoise())
    document = make_noise_document(found)
    (chart,) = (each for each in document.elements if isinstance(each, Chart))
    assert [each.name for each in chart.curves] == ["ops/s", "p50"]
    for curve in chart.curves:
        assert list(curve.y) == sorted(curve.y, reverse=True)
        assert curve.x[-1] == 240
    assert document.verdict is not None
    assert "show a change of 5 % of ops/s and p50 in 9 of 10" in document.verdict.title
