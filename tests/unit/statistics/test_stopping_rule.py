"""Ending a run when its rate is known well enough."""

from __future__ import annotations

import argparse

import noise
import numpy as np
import pytest

from ssbench.cli.options import parse_share
from ssbench.results.block import ResultBlock
from ssbench.results.result_fields import ResultMark
from ssbench.statistics.stopping_rule import StoppingSink


def feed(until: StoppingSink, counts, start=1e9, marks=0) -> int:
    """Hand over the results of one second after the other; return how many it took."""
    for second, count in enumerate(counts):
        columns = {"completed": start + second + (np.arange(count) + 0.5) / count}
        if marks:
            columns["marks"] = np.full(count, marks)
        until.add(ResultBlock(count, columns))
        until.tick(float(second))
        if until.reached():
            return second + 1
    return len(counts)


def test_it_ends_when_the_rate_is_known():
    counts = (100 + noise.correlated(np.random.default_rng(1), 1, 300, 0.0, 5)[0]).astype(int)
    until = StoppingSink(0.02)
    assert 37 <= feed(until, counts) <= 130
    assert until.reached()
    assert "is known to +-1." in until.sentence()
    assert 0.01 <= until.width <= 0.02


def test_noise_that_is_alike_takes_longer():
    counts = (100 + noise.correlated(np.random.default_rng(1), 1, 1000, 0.8, 5)[0]).astype(int)
    assert feed(StoppingSink(0.02), counts) > 90


def test_the_limit_of_time_comes_first():
    counts = (100 + noise.correlated(np.random.default_rng(1), 1, 60, 0.8, 20)[0]).astype(int)
    until = StoppingSink(0.01)
    assert feed(until, counts) == 60
    assert not until.reached()
    assert until.sentence().startswith("The run ended before its rate was known to 1 %: +-")


def test_a_short_run_tells_nothing_nor_does_its_warm_up():
    until = StoppingSink(0.02)
    until.tick(0.0)
    feed(until, [100] * 20)
    feed(until, [100] * 100, marks=ResultMark.WARM_UP)
    until.add(ResultBlock(0, {"completed": np.empty(0)}))
    assert not until.reached()
    assert "too short" in until.sentence()


def test_per_cent():
    assert parse_share("2%") == parse_share("2") == 0.02
    for wrong in ("0", "100%", "%", "-1", "nan", "2%%"):
        with pytest.raises(argparse.ArgumentTypeError, match="a percentage such as 2%"):
            parse_share(wrong)
