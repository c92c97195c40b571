"""When operations are due, against the arithmetic of the rate."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssbench.scenario.draws import Arrivals, count_due_by_stage
from ssbench.scenario.model import Stage


def all_of(arrivals: Arrivals) -> list[float]:
    return arrivals.take(10**7)


def test_an_even_rate() -> None:
    arrivals = Arrivals([Stage(2, rate=(500, 500))], "even", 1)
    assert arrivals.next == 0
    assert (arrivals.until(-1.0), arrivals.until(0.0), arrivals.until(0.0999), arrivals.until(9)) == (
        0,
        1,
        50,
        1000,
    )
    assert arrivals.take(3) == pytest.approx([0.0, 0.002, 0.004])
    assert arrivals.next == pytest.approx(0.006)
    assert arrivals.until(0.0061) == 1
    assert len(all_of(arrivals)) == 997
    assert (arrivals.taken, arrivals.next, arrivals.until(math.inf), arrivals.take(1)) == (
        1000,
        math.inf,
        0,
        [],
    )


def test_an_even_rate_without_end() -> None:
    arrivals = Arrivals([Stage(math.inf, rate=(1000, 1000))], "even", 1)
    assert arrivals.until(100.0) == 100_001
    assert arrivals.take(100_001)[-1] == pytest.approx(100.0)


def test_nothing_is_due_in_a_closed_loop() -> None:
    for seconds in (5.0, math.inf):
        arrivals = Arrivals([Stage(seconds, (1, 1))], "even", 1)
        assert (arrivals.next, arrivals.until(1e9), arrivals.take(5)) == (math.inf, 0, [])


def test_stages_with_and_without_a_rate() -> None:
    plan = [Stage(10, (1, 1)), Stage(2, rate=(10, 10)), Stage(5, (1, 1)), Stage(1, rate=(100, 100))]
    moments = all_of(Arrivals(plan, "even", 1))
    assert moments[:20] == pytest.approx([10 + each / 10 for each in range(20)])
    assert moments[20:] == pytest.approx([17 + each / 100 for each in range(100)])
    assert count_due_by_stage(plan, "even", 1, 17.0951, None) == [0, 20, 0, 10]
    assert count_due_by_stage(plan, "even", 1, 100, 7) == [0, 7, 0, 0]
    assert count_due_by_stage(plan, "even", 1, 100, None) == [0, 20, 0, 100]


@pytest.mark.parametrize(("first", "last"), [(0, 100), (100, 0), (50, 150)])
def test_a_ramp(first: float, last: float) -> None:
    moments = np.array(all_of(Arrivals([Stage(60, rate=(first, last))], "even", 1)))
    due = (first + last) / 2 * 60
    assert len(moments) == due
    # R(t) = first t + (last - first) t^2 / 120 is the number of each
    sums = first * moments + (last - first) * moments**2 / 120
    assert sums == pytest.approx(np.arange(due), abs=1e-6)
    assert (np.diff(moments) > 0).all()
    assert 0 <= moments[0] <= moments[-1] < 60


def test_the_same_seed_makes_the_same_moments() -> None:
    plan = [Stage(20, rate=(500, 500))]
    one, same, other = (all_of(Arrivals(plan, "poisson", seed)) for seed in (1, 1, 2))
    assert one == same != other


def test_a_poisson_process_has_the_distances_and_the_counts_of_one() -> None:
    moments = np.array(all_of(Arrivals([Stage(200, rate=(500, 500))], "poisson", 3)))
    distances = np.diff(moments)
    assert len(moments) == pytest.approx(100_000, abs=5 * math.sqrt(100_000))
    assert distances.mean() == pytest.approx(1 / 500, rel=0.02)
    assert distances.std() == pytest.approx(1 / 500, rel=0.03)
    counts = np.bincount(moments.astype(int))
    assert counts.var() / counts.mean() == pytest.approx(1.0, abs=0.5)


def test_a_poisson_process_follows_a_ramp() -> None:
    moments = np.array(all_of(Arrivals([Stage(100, rate=(0, 1000))], "poisson", 3)))
    halves = (moments < 50).sum(), (moments >= 50).sum()
    assert halves[0] == pytest.approx(12_500, rel=0.05)
    assert halves[1] == pytest.approx(37_500, rel=0.05)


def test_what_is_skipped_is_counted() -> None:
    arrivals = Arrivals([Stage(10, rate=(100, 100))], "even", 1)
    arrivals.take(10)
    arrivals.skip(5.0)
    assert (arrivals.taken, arrivals.skipped) == (10, 490)
    assert arrivals.next == pytest.approx(5.0)
    arrivals.skip(4.0)
    arrivals.skip(11.0)
    assert (arrivals.skipped, arrivals.next) == (990, math.inf)


@pytest.mark.parametrize("kind", ["even", "poisson"])
def test_a_backlog_is_made_only_as_far_as_it_is_asked_for(kind: str) -> None:
    arrivals = Arrivals([Stage(1000, rate=(10_000, 10_000))], kind, 1)
    for _ in range(100):
        assert arrivals.until(900.0, 7) == 7
        assert len(arrivals.take(5)) == 5
    assert len(arrivals._moments) < 10_000
    assert arrivals.until(0.0001, 7) == arrivals.until(0.0001)
    arrivals.skip(900.0)
    assert len(arrivals._moments) < 10_000
    assert arrivals.skipped == pytest.approx(9_000_000, rel=0.01)
    assert 900.0 <= arrivals.next < 900.1


_stages = st.builds(
    Stage,
    st.floats(0.1, 20),
    st.just((1, 1)),
    st.none() | st.tuples(st.floats(0, 300), st.floats(0.1, 300)),
)


@given(st.lists(_stages, min_size=1, max_size=5), st.sampled_from(["even", "poisson"]))
def test_moments_are_in_order_and_in_a_stage_with_a_rate(plan: list[Stage], kind: str) -> None:
    moments = all_of(Arrivals(plan, kind, 1))
    ends = list(itertools.accumulate(stage.seconds for stage in plan))
    assert all(before <= after for before, after in itertools.pairwise(moments))
    for moment in moments:
        place = next(place for place, end in enumerate([*ends, math.inf]) if moment < end or end == math.inf)
        near = [stage for stage, end in zip(plan, ends, strict=True) if abs(end - moment) < 1e-6]
        assert any(stage.rate for stage in [*plan[place : place + 1], *near])
    assert sum(count_due_by_stage(plan, kind, 1, math.inf, None)) == pytest.approx(len(moments), abs=1)
    taken = Arrivals(plan, kind, 1)
    again = []
    while (due := taken.until(taken.next)) > 0:
        again += taken.take(due)
    assert again == moments


@pytest.mark.parametrize("burst", [1.5, 4.2, 30.0])
def test_bursts_have_the_rate_and_the_variance_that_were_asked_for(burst: float) -> None:
    moments = np.array(all_of(Arrivals([Stage(4000.0, rate=(100, 100))], f"burst {burst:g}", 7)))
    assert len(moments) == pytest.approx(400_000, abs=5 * math.sqrt(burst * 400_000))
    distances = np.diff(moments)
    assert distances.var() / distances.mean() ** 2 == pytest.approx(burst, rel=0.1)
    a_second = np.bincount(moments.astype(int), minlength=4000)
    assert a_second.var() / a_second.mean() == pytest.approx(burst, rel=0.15)


def test_bursts_keep_to_the_rates_of_stages() -> None:
    plan = [Stage(100.0, rate=(10, 10)), Stage(100.0, rate=(200, 200))]
    counts = count_due_by_stage(plan, "burst 3", 1, math.inf, None)
    assert counts == [pytest.approx(1000, abs=250), pytest.approx(20_000, abs=1000)]
