"""Lines of Swift's statsd: what is read of them, counted, and kept."""

from __future__ import annotations

import math
import random
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssbench.cluster import statsd
from ssbench.results.cluster_observation import Metric, MetricInterval, Statsd

DATA = Path(__file__).parents[2] / "data" / "cluster"


def test_every_genuine_line_is_understood():
    lines = (DATA / "statsd.txt").read_bytes().splitlines()
    parsed = [statsd.parse_statsd_line(line) for line in lines]
    assert None not in parsed
    assert {line.timer for line in parsed if line} == {True, False}
    assert statsd.parse_statsd_line(b"o1.object-server.HEAD.timing:0.5|ms|@0.8") == statsd.StatsdValue(
        "o1.object-server.HEAD.timing", True, 0.5, 1.25
    )
    assert statsd.parse_statsd_line(b"p1.proxy-server.object.PUT.201.xfer:4096|c") == statsd.StatsdValue(
        "p1.proxy-server.object.PUT.201.xfer", False, 4096.0, 1.0
    )


@pytest.mark.parametrize(
    "line",
    [
        b"", b"a", b"a:1", b"a:|ms", b"a:1|s", b"a:-1|ms", b"a:nan|ms", b"a:inf|c", b"a:1|ms|@0",
        b"a:1|ms|@2",
        b"a:1|ms|@.", b"a:1e99|c", b"a b:1|c", b"\xff:1|c", b"a:1|c|#k:v", b"a" * 201 + b":1|c", b"a:1|c\n",
    ],
)  # fmt: skip
def test_strange_lines(line: bytes):
    assert statsd.parse_statsd_line(line) is None


@given(st.binary(max_size=200) | st.from_regex(rb"[a-z.]{1,5}:[-0-9.e]{1,8}\|(ms|c)(\|@[0-9.e-]{1,6})?"))
def test_the_parser_raises_nothing(data: bytes):
    line = statsd.parse_statsd_line(data)
    if line is not None:
        assert math.isfinite(line.value)
        assert 1 <= line.weight <= 10_000
        assert not (line.timer and line.value < 0)
    aggregator = statsd.Aggregator(5.0)
    aggregator.datagram(data, 1.0)
    received = aggregator.result(1, 0)
    assert received.lines + received.strange == max(1, len(data.splitlines()))
    assert msgspec.json.decode(msgspec.json.encode(received), type=Statsd) == received


def test_percentiles_are_off_by_three_percent_at_most():
    numbers = np.random.default_rng(1).lognormal(2, 2, 5000)
    aggregator = statsd.Aggregator(5.0)
    for place, number in enumerate(numbers):
        aggregator.datagram(b"x.timing:%.4f|ms" % number, place / 50)
    (metric,) = aggregator.result(1, 0).metrics
    assert len(metric.intervals) == 20
    together = statsd.merge_intervals(metric.intervals)
    assert together.count == 5000
    assert together.total == pytest.approx(numbers.sum(), rel=1e-4)
    for rank in (1, 50, 99, 100):
        exact = np.percentile(numbers, rank, method="inverted_cdf")
        assert statsd.timer_percentile(together, rank) == pytest.approx(exact, rel=0.032)
    assert math.isnan(statsd.timer_percentile(MetricInterval(0.0), 50))


def test_sampled_lines_count_as_often_as_their_rate_says():
    aggregator = statsd.Aggregator(5.0)
    aggregator.datagram(b"t:8|ms|@0.1\nc:2|c|@0.5\nc:-1|c\n", 7.0)
    counter, timer = aggregator.result(1, 0).metrics
    assert counter == Metric("c", False, (MetricInterval(5.0, total=3.0),))
    assert (timer.intervals[0].count, timer.intervals[0].total) == (10.0, 80.0)


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(statsd, "MAX_NAMES", 20)
    monkeypatch.setattr(statsd, "MAX_METRIC_NUMBERS", 300)
    aggregator = statsd.Aggregator(1.0)
    draw = random.Random(1)
    for second in range(1000):
        aggregator.datagram(b"t%d:%d|ms" % (draw.randrange(25), draw.choice((1, 1000))), second)
    received = aggregator.result(1, 0)
    assert received.seconds > 16
    assert len(received.metrics) == 20
    assert received.lines + received.nameless == 1000
    assert received.nameless > 100
    kept = [each for metric in received.metrics for each in metric.intervals]
    assert sum(1 + len(each.buckets) for each in kept) <= 300
    assert sum(each.count for each in kept) == received.lines
