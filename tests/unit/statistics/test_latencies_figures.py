"""Percentiles and the other figures of latencies, against the rules that say what they mean."""

from __future__ import annotations

import math
import statistics as stdlib
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from counted import SCENARIO, WHOLE_NUMBER_PERCENTILES, count, row
from hypothesis import given
from hypothesis import strategies as st
from result_rows import block

from ssbench.statistics import latencies
from ssbench.statistics.latencies import LatencyCollector


def percentile_by_the_rule(values: Sequence[float], rank: float) -> float:
    ordered = sorted(values)
    place = len(ordered) * Fraction(str(rank)) / 100
    if place.denominator == 1 and place < len(ordered):
        return (ordered[int(place) - 1] + ordered[int(place)]) / 2
    return ordered[math.ceil(place) - 1]


@pytest.mark.parametrize(("count_", "rank", "expected"), WHOLE_NUMBER_PERCENTILES)
def test_percentiles_of_whole_numbers(count_: int, rank: float, expected: float) -> None:
    total = count([row(last=float(i), completed=1e6) for i in range(1, count_ + 1)]).total
    assert total.lines[0].last_byte.percentile(rank) == expected


NANOSECONDS = st.integers(0, 2**33) | st.integers(0, 40)


@given(
    drawn=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1), NANOSECONDS), min_size=1, max_size=60),
    rank=st.sampled_from([1, 10, 25, 50, 75, 90, 95, 99, 99.9, 100]) | st.floats(1, 100),
    part_size=st.sampled_from([1, 3, 1000]),
)
def test_figures_of_any_latencies(drawn: list[tuple[int, int, int]], rank: float, part_size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(latencies, "_PART_COUNT", part_size)
        rows = [row(op, class_, ns / 1e9, 100.0 + place) for place, (op, class_, ns) in enumerate(drawn)]
        numbers = count(rows)
    for section in numbers.sections:
        for line in section.lines:
            own = [
                (ns / 1e9, place)
                for place, (op, class_, ns) in enumerate(drawn)
                if section.operation is None or section.operation.code == op
                if line.size_class is None or line.size_class == SCENARIO.size_classes[class_].name
            ]
            values = [latency for latency, _ in own if latency]
            figures = line.last_byte
            assert figures.count == len(values)
            assert line.first_byte.count == 0
            assert figures.slowest is not None
            slowest, place = max(own, key=lambda entry: (entry[0], -entry[1]))
            assert (figures.slowest.latency, figures.slowest.trans_id) == (slowest, f"tx{place}")
            if values:
                assert (figures.minimum, figures.maximum) == (min(values), max(values))
                assert figures.percentile(rank) == percentile_by_the_rule(values, rank)
                assert figures.mean == pytest.approx(stdlib.fmean(values), rel=1e-12)
                assert figures.deviation == pytest.approx(stdlib.pstdev(values), rel=1e-6, abs=1e-12)
            else:
                assert math.isnan(figures.mean)
                assert math.isnan(figures.percentile(rank))


def test_many_latencies_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latencies, "_PART_COUNT", 5000)
    values = np.rint(np.random.default_rng(1).lognormal(-5, 1, 100_000) * 1e9) / 1e9
    figures = count([row(last=value) for value in values.tolist()]).total.lines[0].last_byte
    for rank in (1, 50, 95, 99.99, 100):
        assert figures.percentile(rank) == percentile_by_the_rule(values.tolist(), rank)
    assert figures.mean == pytest.approx(values.mean(), rel=1e-12)
    assert figures.deviation == pytest.approx(values.std(), rel=1e-12)


def test_a_percentile_needs_ten_results_beyond_it() -> None:
    figures = count([row(last=float(i)) for i in range(1, 1001)]).total.lines[0].last_byte
    assert [figures.supported_percentile(rank) for rank in (50, 99, 99.1, 99.9, 100)] == [
        500.5,
        990.5,
        None,
        None,
        1000.0,
    ]
    nothing = count([]).total.lines[0].last_byte
    assert nothing.supported_percentile(100) is None


@given(
    st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=100),
    st.sampled_from([1, 2, 4, 8, 16]),
    st.floats(1e-6, 1e3),
)
def test_histograms_and_shares_are_exact(values: list[float], per_octave: int, limit: float) -> None:
    collector = LatencyCollector()
    for value in values:
        one = block([row(last=value)])
        collector.add(one, np.zeros(1, np.intp), np.zeros(1, np.intp), one.last_byte, 0)
    (found,) = collector.finish()
    edges, counts = found.histogram(per_octave)
    expected, _ = np.histogram(values, np.append(edges[:-1], np.nextafter(edges[-1], 0)))
    assert counts.tolist() == expected.tolist()
    assert counts.sum() == len(values)
    assert counts[0] > 0 < counts[-1]
    ranks = [1.0, 12.5, 50.0, 99.0, 99.9, 100.0]
    assert found.percentiles(ranks) == [found.percentile(rank) for rank in ranks]
    assert np.all(edges[1:] / edges[:-1] <= 1 + 1 / per_octave + 1e-12)
    assert found.share_within(limit) == sum(value <= limit for value in values) / len(values)
