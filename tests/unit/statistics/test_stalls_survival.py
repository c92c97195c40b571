"""What stalls rest on: the share of latencies that are longer, and gaps that chance would leave."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ssbench.statistics.latencies import Latencies, merge_latencies, select_latencies
from ssbench.statistics.stalls import _expected_completions, _find_bounds, _Gap, _Survival


def latencies_of(*groups: tuple[int, float]) -> Latencies:
    return merge_latencies([select_latencies(np.full(count, seconds)) for count, seconds in groups])


def test_the_share_of_longer_latencies_falls_from_one_to_one_of_one_more_than_there_are() -> None:
    survival = _Survival(latencies_of((60, 0.1), (30, 1.0), (10, 10.0)))
    moments = np.array([0.0, 0.05, 0.5, 5.0, 50.0])
    shares = [1.0, 1.0, 41 / 101, 11 / 101, 1 / 101]
    assert np.exp(survival.at_most(moments)) == pytest.approx(shares)
    assert np.exp(survival.at_least(moments)) == pytest.approx(shares)
    # Within the bucket of a latency it is not known which of them are longer.
    within = np.array([1.001])
    assert np.exp(survival.at_most(within)) == pytest.approx([41 / 101])
    assert np.exp(survival.at_least(within)) == pytest.approx([11 / 101])


def gap(start: float, end: float, *sent: float) -> _Gap:
    return _Gap(start, end, np.array(sent), len(sent), unknown=False, asked=end - start)


def test_completions_are_expected_by_how_long_each_operation_took_already() -> None:
    survival = _Survival(latencies_of((60, 0.1), (30, 1.0), (10, 10.0)))

    def hazard(before: float, after: float) -> float:
        return math.log(before) - math.log(after)

    assert _expected_completions(gap(100.0, 105.0), survival) == 0.0
    # Sent within the gap, or as it began: it might have ended at any time.
    assert _expected_completions(gap(100.0, 105.0, 100.0), survival) == pytest.approx(hazard(101, 11))
    assert _expected_completions(gap(100.0, 105.0, 104.5), survival) == pytest.approx(hazard(101, 41))
    # What took half a second already is one of the slower ones.
    assert _expected_completions(gap(100.0, 105.0, 99.5), survival) == pytest.approx(hazard(41, 11))
    both = gap(100.0, 105.0, 99.5, 104.5)
    assert _expected_completions(both, survival) == pytest.approx(hazard(41, 11) + hazard(101, 41))
    assert _expected_completions(gap(100.0, 105.0, 50.0), survival) == 0.0


@pytest.mark.parametrize("waited", [99, 100, 1000])
def test_the_bound_is_ten_times_the_percentile_of_what_did_not_wait_and_of_one_at_least(waited: int) -> None:
    latencies = latencies_of((1, 0.01), (99, 3.0))
    assert _find_bounds([], latencies, waited) == pytest.approx(0.1, rel=0.02)
    assert _find_bounds([], latencies, 0) == pytest.approx(30.0, rel=0.02)


def test_gaps_are_left_out_one_two_four_at_a_time_while_they_are_stalls_then() -> None:
    latencies = latencies_of((960, 0.01), (40, 1.0))
    long = [(0.5, 10)] * 4  # each delayed ten of the forty slow ones
    assert _find_bounds(long, latencies, 0) == pytest.approx(0.1, rel=0.02)
    assert _find_bounds(long[:3], latencies, 0) == pytest.approx(10.0, rel=0.02)
    assert _find_bounds(long[:3], latencies, 10) == pytest.approx(10.0, rel=0.02)
    assert _find_bounds(long[:3], latencies, 20) == pytest.approx(0.1, rel=0.02)
    # What is shorter than the bound without it is none.
    assert _find_bounds([(0.09, 40)], latencies, 0) == pytest.approx(10.0, rel=0.02)
    assert _find_bounds([(0.11, 40)], latencies, 0) == pytest.approx(0.1, rel=0.02)
