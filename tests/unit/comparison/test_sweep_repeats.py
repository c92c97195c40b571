"""The knee of a sweep whose steps were repeated: its interval rests on how much these differ."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ssbench.comparison.sweep import Knee, estimate_knee

LOADS = (1, 2, 4, 8, 16, 32, 64)

#: A sharp corner.
CORNER = 11


def sweep(seed: int, noise: float, rounds: int) -> Knee:
    random = np.random.default_rng(seed)
    loads = [load for load in LOADS for _ in range(rounds)]
    rates = [40 * min(load, CORNER) * math.exp(noise * random.standard_normal()) for load in loads]
    found = estimate_knee(loads, rates, [0.01] * len(loads))
    assert found is not None
    return found


@pytest.mark.long
@pytest.mark.parametrize("noise", [0.005, 0.06])
def test_the_scatter_of_repeated_steps_is_that_of_the_interval(noise: float) -> None:
    """One round assumes 2 %, which is too much of a quiet store and too little of another."""
    found = [each for each in (sweep(seed, noise, 3) for seed in range(12)) if each.reached]
    assert len(found) >= 10
    assert sum(each.low * 0.98 <= CORNER <= each.high * 1.02 for each in found) >= len(found) - 1
    widths = [math.log(each.high / each.low) for each in found]
    once = [math.log(each.high / each.low) for each in (sweep(seed, noise, 1) for seed in range(6))]
    assert np.median(widths) < np.median(once)


def test_two_repeated_steps_are_too_few_to_tell() -> None:
    rates = [40.0 * min(load, CORNER) for load in LOADS]
    alone = estimate_knee(LOADS, rates, [None] * len(LOADS))
    again = estimate_knee([*LOADS, 64], [*rates, rates[-1]], [None] * (len(LOADS) + 1))
    assert alone is not None
    assert again is not None
    assert again.high / again.low > 1.02  # the scatter of 0 is not believed


@pytest.mark.parametrize(("power", "is_certain"), [(0.1, False), (0.08, False), (0.02, True), (0.0, True)])
def test_a_rate_that_rises_slowly_all_along_has_no_certain_knee(power: float, *, is_certain: bool) -> None:
    """Each doubling of the load brings 7 % of n^0.1, so that from 8 to 64 it is 23 %."""
    loads = [1, 2, 4, 8, 16, 32, 64]
    knee = estimate_knee(loads, [20 * load**power for load in loads], [0.03] * len(loads))
    assert knee is not None
    assert knee.reached is is_certain
    if not is_certain:
        assert knee.rise == pytest.approx(2**power - 1)
