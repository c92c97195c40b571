"""What was done in each second, and the intervals that follow from it."""

from __future__ import annotations

import math
from collections import Counter
from statistics import NormalDist

import noise
import numpy as np
import pytest

from ssbench.statistics.by_second import BySecond, LatencyTable


def _of(seconds, values):
    return LatencyTable.of(np.asarray(seconds, float), np.asarray(values, float))


def test_percentiles_of_each_second_are_within_a_bucket_of_the_exact_ones():
    random = np.random.default_rng(1)
    seconds = np.repeat(np.arange(100, 105), 2000)
    values = random.lognormal(-4, 0.6, len(seconds))
    found_seconds, found, counts = _of(seconds + 0.5, values).percentiles(0.5)
    assert found_seconds.tolist() == [100, 101, 102, 103, 104]
    assert counts.tolist() == [2000] * 5
    exact = [np.median(values[seconds == second]) for second in range(100, 105)]
    assert found == pytest.approx(exact, rel=0.01)


def test_parts_are_put_together():
    one = _of([7.1, 7.2, 9.9], [0.010, 0.020, 0.030])
    two = _of([7.3, 8.0], [0.020, 0.040])
    seconds, _, counts = LatencyTable.merged([one, two]).percentiles(0.5)
    assert seconds.tolist() == [7, 8, 9]
    assert counts.tolist() == [3, 1, 1]


def test_tables_of_several_groups_are_those_of_each_by_itself():
    random = np.random.default_rng(5)
    groups = random.choice([0, 3, 4, 250], 5000)
    ended = random.uniform(100, 130, 5000)
    values = random.lognormal(-4 + groups / 100, 0.6)
    tables = LatencyTable.by_group(groups, ended, values)
    assert set(tables) == {0, 3, 4, 250}
    for group, table in tables.items():
        alone = _of(ended[groups == group], values[groups == group])
        for found, expected in zip(table._rows(), alone._rows(), strict=True):
            assert found.tolist() == expected.tolist()
        for found, expected in zip(table.percentiles(0.5), alone.percentiles(0.5), strict=True):
            assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("share", [0.01, 0.5, 0.9, 1.0])
def test_a_percentile_of_all_seconds_is_within_a_bucket_of_the_exact_one(share):
    random = np.random.default_rng(3)
    values = random.lognormal(-4, 0.6, 5000)
    table = LatencyTable.merged(_of(np.full(500, second), values[second::10]) for second in range(10))
    exact = np.quantile(values, share, method="inverted_cdf")
    assert table.percentile(share) == pytest.approx(exact, rel=0.016)
    assert math.isnan(LatencyTable().percentile(share))


def test_within_a_bucket_latencies_count_as_evenly_spread():
    table = _of(np.full(100, 7.0), np.full(100, 1.0))
    assert table.percentile(0.5) == pytest.approx(1 + 0.5 / 64)
    assert table.percentile(1.0) == pytest.approx(1 + 1 / 64)
    _, found, _ = table.percentiles(0.25)
    assert found == pytest.approx([1 + 0.25 / 64])


def test_a_series_has_the_whole_seconds_between_two_moments():
    counted = BySecond(Counter({10: 3, 11: 5, 13: 7}), Counter({10: 30, 13: 70}))
    counts, moved = counted.series(9.5, 13.9)
    assert counts.tolist() == [3, 5, 0]
    assert moved.tolist() == [30, 0, 0]
    assert counted.series(10.0, 11.0)[0].tolist() == [3]
    assert counted.series(10.1, 11.9)[0].tolist() == []


def test_few_moments_far_apart_are_those_of_a_damaged_file():
    # Three thousand operations in five weeks took 18 s of CPU and 1.5 GB.
    assert _of(np.arange(3000) * 1000.0, np.full(3000, 0.01)).ranks(0.5) is None
    rare = BySecond(Counter({second * 1000: 1 for second in range(3000)}))
    assert rare.intervals(0, 3e6) == (None, None)
    assert _of(np.arange(3000) * 50.0, np.linspace(0.01, 0.02, 3000)).ranks(0.5) is not None
    assert _of(np.arange(80) * 1000.0, np.linspace(0.01, 0.02, 80)).ranks(0.5) is not None


def test_far_moments_and_no_latencies_at_all_are_no_trouble():
    assert LatencyTable().ranks(0.5) is None
    assert [len(each) for each in LatencyTable().percentiles(0.5)] == [0, 0, 0]
    far = _of([0.0, 1e300, 5e9], [1e-9, 1.0, 1e9])
    assert far.ranks(0.5) is None
    assert len(far.percentiles(0.5)[0]) == 3


@pytest.mark.parametrize("share", [0.5, 0.95])
def test_the_interval_of_a_percentile_has_the_truth_in_it(share):
    """100 requests a second for a minute, with noise that is alike from second to second."""
    random, runs, seconds = np.random.default_rng(2), 200, 60
    truth = math.exp(NormalDist().inv_cdf(share) * math.hypot(0.6, 0.05))
    ended, count = np.repeat(np.arange(seconds), 100) + 0.5, 100 * seconds
    hits = plain = 0
    for level in noise.correlated(random, runs, seconds, 0.8, 0.05):
        values = np.exp(np.repeat(level, 100) + random.normal(0, 0.6, count))
        ranks = _of(ended, values).ranks(share)
        found = np.mean(values <= truth)  # the share that an interval has to have in it
        hits += ranks.low <= found <= ranks.high
        plain += abs(found - share) <= 1.96 * math.sqrt(share * (1 - share) / count)
    assert hits >= 0.86 * runs  # of 1000: 916 and 921
    assert plain < hits  # of 1000: 622 and 809


def test_latencies_are_counted_by_second():
    table = LatencyTable.of(np.array([5.1, 5.9, 7.0, 7.5, 8.0]), np.array([0.2, 0.21, 0.2, 1.0, 0.1]))
    assert table.between(0.19, 0.22) == {5: 2, 7: 1}
    assert table.between(0.5, 2.0) == {7: 1}
    assert LatencyTable().between(0.0, 1.0) == {}
