"""Sweeps: where they end, the knee, and how certain it is."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Sequence

import pytest
from capacity_runs import step
from golden_words import GoldenWords
from msgspec import structs

from ssbench.comparison.sweep import (
    MIN_GAIN,
    Knee,
    describe_knee,
    describe_limits,
    describe_short_steps,
    estimate_knee,
    explain_stop,
    find_first_best,
    find_knee,
    measure_gain,
)
from ssbench.comparison.sweep_variables import Variable


def test_a_sweep_ends_where_more_brings_nothing_for_certain(golden_words: GoldenWords) -> None:
    users = Variable.USERS
    assert explain_stop(users, []) is None
    assert explain_stop(users, [step(4, 100)]) is None
    rising = [step(1, 30), step(2, 60), step(4, 100)]
    assert explain_stop(users, [*rising, step(8, 103, half=3)]) is None  # perhaps it rose by 7 %
    assert "from 4 to 8 users the rate rose by less than 5.0 %" in str(
        explain_stop(users, [*rising, step(8, 102)])
    )
    # The knee needs some steps.
    assert explain_stop(users, [step(4, 100), step(8, 102)]) is None
    assert explain_stop(users, [step(4, 100, None), step(8, 90, None)]) is None
    assert explain_stop(users, [step(4, 100, failed=2)]) == "2 operations failed at 4 users"
    assert explain_stop(Variable.SIZE, [step(4096, 100), step(8192, 50)]) is None
    for variable in (users, Variable.SIZE):
        nothing = structs.replace(step(8192, 1, None), rate=0.0, count=0)
        golden_words(explain_stop(variable, [step(4096, 100), nothing]))


def test_what_is_to_be_known_of_a_sweep(golden_words: GoldenWords) -> None:
    (full,) = describe_limits(Variable.USERS, [step(4, 100), step(8, 200, generator=0.95)])
    golden_words(full)
    (other,) = describe_limits(
        Variable.USERS, [step(4, 100), step(8, 200, limits=("Users were idle", "More"))]
    )
    assert other == "At 8 users, of the last of them: Users were idle."
    (one,) = describe_limits(Variable.USERS, [step(1, 100, limits=("Late",))])
    assert one == "At 1 user, of the last of them: Late."
    # A search goes up and down.
    searched_steps = [step(8, 200, limits=("Late",)), step(4, 100, limits=("Idle",)), step(8, 1)]
    assert describe_limits(Variable.USERS, searched_steps) == ["At 4, 8 users, of the last of them: Late."]
    taken = ("on host-1 other programs used 80 % of its CPU",)
    (shared,) = describe_limits(Variable.USERS, [step(4, 100), step(8, 200, shared=taken)])
    golden_words(shared)
    (short,) = describe_short_steps([step(4, 100, None), step(8, 200, None)])
    assert "too short to tell how exact" in short
    assert step(64, 640).in_flight == pytest.approx(64)
    assert math.isnan(measure_gain(structs.replace(step(4, 1), rate=0.0), step(8, 100))[0])


def test_of_40_sweeps_over_a_store_that_saturates_few_end_before_it() -> None:
    """The store does 10 ops/s for each user, up to 640; each rate is known to 2 %."""
    early = late = 0
    for seed in range(40):
        draw, steps = random.Random(seed), []
        for users in (4, 8, 16, 32, 64, 128, 256):
            rate = min(10.0 * users, 640.0)
            steps.append(step(users, draw.gauss(rate, rate * 0.01), rate * 0.02))
            if explain_stop(Variable.USERS, steps):
                break
        early += steps[-1].value <= 64
        late += steps[-1].value > 128
    assert early == 0
    assert late <= 4
    assert MIN_GAIN == 0.05


def swept(rate: Callable[[float], float], values: Sequence[float], seed: int) -> Knee:
    draw = random.Random(seed)
    rates = [rate(value) * math.exp(draw.gauss(0, 0.02)) for value in values]
    found = estimate_knee(values, rates, [0.03] * len(values))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("rate", "where"),
    [
        (lambda n: 46 * min(n, 4), 4.0),  # 184 at 4 users, and at 8
        (lambda n: 20 * n / (1 + (n / 10) ** 4) ** 0.25, 11.8),  # 90 % of the best
        (lambda n: 20 * n / (1 + 0.05 * (n - 1) + 0.002 * n * (n - 1)), 12.2),
    ],
    ids=["hard", "round", "USL"],
)
def test_the_knee_of_a_sweep(rate: Callable[[float], float], where: float) -> None:
    found = [swept(rate, (1, 2, 4, 8, 16, 32, 64), seed) for seed in range(20)]
    assert all(each.reached for each in found)
    assert all(abs(each.value / where - 1) < 0.15 for each in found)
    assert sum(each.low <= where <= each.high for each in found) >= 18
    # With steps that end soon after it.
    few = swept(rate, (2, 4, 8, 16, 32), 1)
    assert few.low <= where <= few.high


@pytest.mark.long
@pytest.mark.parametrize(
    "rate",
    [
        lambda n: 20 * math.sqrt(n),
        lambda n: 20 * (1 + math.log2(n)),
        lambda n: 20 * n / (1 + 0.05 * (n - 1)),
        lambda n: {1: 178, 2: 213, 4: 243, 8: 298, 16: 302}.get(round(n), 19 * n),
    ],
    ids=["square root", "logarithm", "contention", "as seen"],
)
def test_a_store_whose_rate_rises_slowly_has_no_certain_knee_and_none_below_all_steps(
    rate: Callable[[float], float],
) -> None:
    for seed in range(12):
        for values in ((1, 2, 4, 8, 16), (1, 2, 4, 8, 16, 32, 64)):
            found = swept(rate, values, seed)
            assert found.value >= 1
            assert found.low == 0 or found.low >= 1
            assert not found.reached or rate(found.value) > 0.85 * max(map(rate, values))
    found = swept(lambda n: 20 * math.sqrt(n), (1, 2, 4, 8, 16), 1)
    assert not found.reached
    assert re.search(
        "still rises by (39|4[0-4])[.]. % at each doubling", describe_knee(Variable.USERS, found, 1)
    )


def test_a_rate_that_is_as_high_at_the_lowest_load_has_its_knee_there_or_below(
    golden_words: GoldenWords,
) -> None:
    for seed in range(20):
        found = swept(lambda _: 100.0, (4, 8, 16, 32, 64), seed)
        assert found.reached
        assert found.value == found.low == 4
        golden_words(describe_knee(Variable.USERS, found, 4))


def test_a_rate_that_still_rises_has_no_knee() -> None:
    for seed in range(20):
        found = swept(lambda n: 20 * n, (1, 2, 4, 8, 16, 32), seed)
        assert not found.reached
        assert found.low > 10
    assert estimate_knee([1, 2, 4], [1, 2, 4], [None] * 3) is None
    assert estimate_knee([1, 2, 4, 8], [1, 2, 4, math.inf], [None] * 4) is None
    steps = [step(value, 20.0 * value) for value in (1, 2, 4, 8)]
    found = find_knee(Variable.USERS, steps)
    assert found is not None
    assert "No knee is certain" in describe_knee(Variable.USERS, found, 1)
    assert find_knee(Variable.SIZE, steps) is None


def test_of_a_knee_that_may_be_below_all_steps_nothing_is_said() -> None:
    """Five short steps of a busy store: "if there is one, it is at 0.5 users or beyond"."""
    rates = (18.5, 28.0, 28.0, 29.0, 38.1)
    found = estimate_knee([1, 2, 4, 8, 16], rates, [0.57, None, 0.38, None, None])
    assert found is not None
    assert not found.reached
    assert found.low == 0
    assert "if there is one" not in describe_knee(Variable.USERS, found, 1)


def test_what_is_said_of_a_knee_names_the_first_of_equal_rates() -> None:
    steps = [step(value, 46.0 * min(value, 4)) for value in (1, 2, 4, 8, 16)]
    steps[-1] = structs.replace(steps[-1], rate=184.3)
    found = find_knee(Variable.USERS, steps)
    assert found is not None
    words = describe_knee(Variable.USERS, found, 1)
    assert re.match(r"The knee is at (3\.9|4) users \(95 % sure: 3\.\d to 4\.\d; ", words)
    assert find_first_best(steps).value == 4
