"""Conditions do not contradict each other: what is certain of one is certain of all that follow from it."""

from __future__ import annotations

import math
from itertools import pairwise
from types import SimpleNamespace

import noise
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulated_conditions import run

from ssbench.scenario.conditions import parse_condition
from ssbench.statistics.by_second import LatencyTable
from ssbench.statistics.latencies import Latencies, merge_latencies, select_latencies
from ssbench.statistics.latency_parts import CensoredLatencies
from ssbench.statistics.thresholds import Certainty, _judge_percentile, _share_sides, judge_conditions

RANKS = (0.0005, 0.01, 0.2, 0.5, 0.6, 0.9, 0.93, 0.95, 0.99, 0.995, 0.999, 0.9999)


def drifting(seed: int, seconds: int, each: int, spread: float, phi: float, drift: float) -> Latencies:
    """Return the latencies of a run whose seconds have some noise in common."""
    random = np.random.default_rng(seed)
    level = noise.correlated(random, 1, seconds, phi, spread)[0] + np.linspace(0, drift, seconds)
    counts = np.maximum(random.poisson(each * np.exp(-0.3 * level)), 1)
    second = np.repeat(np.arange(seconds), counts)
    values = 0.01 * np.exp(level[second] + random.normal(0, 0.6, len(second)))
    latencies = merge_latencies([select_latencies(values)])
    return Latencies(
        **{
            **{name: getattr(latencies, name) for name in latencies.__struct_fields__},
            "by_second": LatencyTable.of(1e9 + second + 0.5, values),
        }
    )


def judged(latencies: Latencies, rank: float, limit: float) -> Certainty:
    found = latencies.percentile(100 * rank)
    condition = SimpleNamespace(limit=limit, relation=">")
    return _judge_percentile(latencies, condition, rank, found, found)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10_000),
    seconds=st.sampled_from((1, 4, 9, 10, 20, 33)),
    each=st.sampled_from((1, 8, 60)),
    spread=st.sampled_from((0.0, 0.05, 0.3, 1.0, 2.0)),
    phi=st.sampled_from((0.0, 0.8, 0.99)),
    drift=st.sampled_from((0.0, 1.0, 3.0)),
    data=st.data(),
)
def test_what_is_certain_of_a_percentile_is_of_lower_ones_and_further_limits(
    seed: int, seconds: int, each: int, spread: float, phi: float, drift: float, data: st.DataObject
) -> None:
    latencies = drifting(seed, seconds, each, spread, phi, drift)
    shares = data.draw(st.lists(st.floats(0.01, 99.99), min_size=2, max_size=3))
    factors = data.draw(st.lists(st.sampled_from((1e-3, 0.05, 0.3, 1.01, 2, 9, 30, 500)), max_size=3))
    limits = sorted(
        {latencies.percentile(each) for each in shares}
        | {latencies.percentile(100 if each > 1 else 0.01) * each for each in factors}
    )
    ranks = sorted(data.draw(st.sets(st.sampled_from(RANKS), min_size=2, max_size=4)))
    found = {(rank, limit): judged(latencies, rank, limit) for rank in ranks for limit in limits}
    for limit in limits:
        for lower, higher in pairwise(ranks):
            assert found[lower, limit].below >= found[higher, limit].below
            assert found[higher, limit].above >= found[lower, limit].above
    for rank in ranks:
        for near, far in pairwise(limits):
            assert found[rank, far].below >= found[rank, near].below
            assert found[rank, near].above >= found[rank, far].above
    assert not any(each.above and each.below for each in found.values())


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    share=st.floats(0, 1),
    size=st.floats(1, 1e5),
    limit=st.floats(1e-4, 1 - 1e-4),
    times=st.floats(1, 1e3),
)
def test_what_is_certain_of_some_operations_is_of_more_and_of_limits_further_away(
    share: float, size: float, limit: float, times: float
) -> None:
    above, below = _share_sides(share, size, limit)
    more_above, more_below = _share_sides(share, times * size, limit)
    assert more_above >= above
    assert more_below >= below
    assert _share_sides(share, size, limit / times)[0] >= above
    assert _share_sides(share, size, 1 - (1 - limit) / times)[1] >= below


def test_what_never_began_leaves_the_order_of_percentiles() -> None:
    """An open loop of which a tenth did not begin."""
    measured = drifting(1, 20, 60, 0.5, 0.9, 1.0)
    waited = select_latencies(np.full(measured.count // 9, 0.5))
    times = CensoredLatencies.of(measured, merge_latencies([waited]))
    for limit in (0.002, 0.01, 0.04, 1.0, 100.0):
        condition = SimpleNamespace(limit=limit, relation=">")
        found = [
            _judge_percentile(times, condition, each, times.percentile(100 * each), times.most(100 * each))
            for each in RANKS
        ]
        assert sorted((each.below for each in found), reverse=True) == [each.below for each in found]
        assert sorted(each.above for each in found) == [each.above for each in found]


#: Runs of 20 s whose latencies drift, so that the seconds are worth two: seeds, and the noise of a second.
DRIFTING = [(15, 0.5), (3, 0.8), (6, 0.8)]


@pytest.mark.parametrize(("seed", "spread"), DRIFTING)
def test_no_percentile_is_undecided_that_every_second_is_far_from(seed: int, spread: float) -> None:
    numbers = run(np.random.default_rng(seed), 1242, 20, 0.95, spread)
    texts = ("p50 > 5s", "p75 > 5s", "p95 > 5s", "max > 5s")
    found = judge_conditions(numbers, map(parse_condition, texts))
    assert {each.result.value for each in found} == {"ok"}, [each.text for each in found]


def test_a_rate_far_above_its_limit_is_certain_or_needs_what_somebody_can_run() -> None:
    numbers = run(np.random.default_rng(18), 1242, 20, 0.95, 0.3)
    (near,) = judge_conditions(numbers, [parse_condition("rate < 1")])
    assert near.result.value == "ok"
    numbers = run(np.random.default_rng(14), 1242, 20, 0.95, 0.8)
    near, wide = judge_conditions(numbers, map(parse_condition, ("rate < 1", "rate < 2")))
    assert near.result.value == "ok"
    assert wide.undecided
    assert wide.count is not None
    assert wide.enough is not None
    assert 1 < wide.enough / wide.count < 10
    assert math.isfinite(wide.enough)
