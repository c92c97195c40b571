"""What is counted over time, against the same counted result by result."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest
from result_rows import many

from ssbench.results.block import Failure
from ssbench.statistics.over_time import BinsOverTime, OverTimeCollector

START = 1_700_000_000.0


class Results(NamedTuple):
    operation: np.ndarray
    started: np.ndarray
    completed: np.ndarray
    latency: np.ndarray
    size: np.ndarray
    causes: dict[int, str]


def draw(seed: int, count: int, seconds: float) -> Results:
    """Draw results, a few of which are far shorter or longer than there are buckets for."""
    random = np.random.default_rng(seed)
    started = random.uniform(0.3, seconds - 0.4, count)
    latency = random.lognormal(math.log(0.05), 0.8, count)
    completed = np.minimum(started + latency, seconds)
    latency[:3], latency[3:6] = 1e-8, 1e5
    causes = {int(row): f"HTTP {500 + row % 3}" for row in random.choice(count, count // 10, replace=False)}
    operation = random.choice([1, 2, 5], count)
    return Results(
        operation, START + started, START + completed, latency, random.integers(-1, 99, count), causes
    )


def collect(results: Results, blocks: int) -> OverTimeCollector:
    collector = OverTimeCollector()
    count = len(results.latency)
    for rows in np.array_split(np.arange(count), blocks):
        columns = results._asdict()
        causes = columns.pop("causes")
        made = many(
            range(len(rows)),
            **{"last_byte" if name == "latency" else name: values[rows] for name, values in columns.items()},
        )
        made.failures.update(
            {place: Failure(causes[row], "", {}) for place, row in enumerate(rows.tolist()) if row in causes}
        )
        collector.add(made)
    return collector


def bucket(latency: float, parts: int) -> float:
    """Return the lower end of the bucket of a latency, of so many in an octave from 2**-20 to 2**12 s."""
    latency = min(max(latency, 2.0**-20), 2.0**12 - 1)
    octave = 2.0 ** math.floor(math.log2(latency))
    return octave * (1 + math.floor((latency / octave - 1) * parts) / parts)


def percentile(latencies: list[float], rank: float, needed: int) -> float:
    if len(latencies) < needed:
        return math.nan
    low = bucket(sorted(latencies)[math.ceil(len(latencies) * rank / 100) - 1], 32)
    return min(low + 2.0 ** math.floor(math.log2(low)) / 64, max(latencies))


@pytest.fixture(scope="module", params=[(1, 4000, 4.0, 1), (2, 900, 30.0, 7)], ids=["short run", "longer"])
def case(request: pytest.FixtureRequest) -> tuple[Results, OverTimeCollector, BinsOverTime]:
    seed, count, seconds, blocks = request.param
    results = draw(seed, count, seconds)
    collector = collect(results, blocks)
    return results, collector, collector.finish(results.started.min(), results.completed.max())


Case = tuple[Results, OverTimeCollector, BinsOverTime]


def rows_of_bins(results: Results, found: BinsOverTime) -> list[list[int]]:
    begins = found.starts + results.started.min()
    place = np.maximum(np.searchsorted(begins, results.completed, "right") - 1, 0)
    return [np.flatnonzero(place == each).tolist() for each in range(len(begins))]


def test_each_bin_has_what_ended_in_it_by_operation(case: Case) -> None:
    results, _, found = case
    assert set(found.operations) == {None, 1, 2, 5}
    for code, series in found.operations.items():
        for place, rows in enumerate(rows_of_bins(results, found)):
            mine = [row for row in rows if code in (None, results.operation[row])]
            fine = [row for row in mine if row not in results.causes]
            latencies = [float(results.latency[row]) for row in fine]
            assert series.count[place] == len(fine)
            assert series.failed[place] == len(mine) - len(fine)
            assert series.moved[place] == sum(max(int(results.size[row]), 0) for row in fine)
            same = {"nan_ok": True, "rel": 1e-12}
            assert series.maximum[place] == pytest.approx(max(latencies, default=math.nan), **same)
            assert series.p50[place] == pytest.approx(percentile(latencies, 50, 20), **same)
            assert series.p99[place] == pytest.approx(percentile(latencies, 99, 1000), **same)
    assert any(not np.isnan(series.p50).all() for series in found.operations.values())


def test_the_heat_map_has_each_success_in_its_quarter_of_an_octave(case: Case) -> None:
    results, _, found = case
    edges = found.heat_edges.tolist()
    assert edges[:2] == [2.0**-20, 2.0**-20 * 1.25]  # the least are in the first, the longest in the last
    assert edges[-2:] == [2.0**12 * 0.875, 2.0**12]
    for place, rows in enumerate(rows_of_bins(results, found)):
        expected = [0] * (len(edges) - 1)
        for row in rows:
            if row not in results.causes:
                expected[edges.index(bucket(float(results.latency[row]), 4))] += 1
        assert found.heat[place].tolist() == expected


def test_operations_are_under_way_from_their_start_to_their_end_and_failures_have_causes(case: Case) -> None:
    results, _, found = case
    begins = found.starts + results.started.min()
    ends = begins + found.seconds
    overlap = np.minimum(ends[:, None], results.completed) - np.maximum(begins[:, None], results.started)
    expected = np.maximum(overlap, 0.0).sum(1) / found.seconds
    assert found.under_way == pytest.approx(expected, rel=1e-3, abs=1e-3)
    for cause, counts in found.causes.items():
        assert counts.tolist() == [
            sum(results.causes.get(row) == cause for row in rows) for rows in rows_of_bins(results, found)
        ]
    assert sum(int(counts.sum()) for counts in found.causes.values()) == len(results.causes)


def test_spans_and_steps_have_the_successes_of_their_bins(case: Case) -> None:
    results, collector, _ = case
    bins = np.floor(results.completed / collector.width).astype(int)
    fine = np.array([row not in results.causes for row in range(len(bins))])
    for begin, end, is_last in ((0.0, 1.25, False), (1.25, 2.6, False), (2.6, 3.3, True), (9.0, 9.0, False)):
        first = math.floor((START + begin) / collector.width)
        last = (math.ceil if is_last else math.floor)((START + end) / collector.width)
        inside = (bins >= first) & (bins < last)
        found = collector.count_span(START + begin, START + end, is_last=is_last)
        assert (found.count, found.failed) == (int((inside & fine).sum()), int((inside & ~fine).sum()))
        latencies = results.latency[inside & fine].tolist()
        for value, rank, needed in ((found.p50, 50, 20), (found.p99, 99, 1000)):
            expected = percentile(latencies, rank, needed)
            assert value == (None if math.isnan(expected) else pytest.approx(expected))
        causes = [results.causes[row] for row in np.flatnonzero(inside & ~fine).tolist()]
        assert found.causes == {each: causes.count(each) for each in causes}
    steps = collector.list_successes(START + 0.5, 0.75, 4)
    edges = [round((START + 0.5 + 0.75 * step) / collector.width) for step in range(5)]
    assert steps == [int((fine & (bins >= low) & (bins < high)).sum()) for low, high in pairwise(edges)]
    assert sum(steps) > 0
