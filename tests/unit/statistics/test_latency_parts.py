"""Three times of an operation: the whole of it, its last attempt, connecting."""

from __future__ import annotations

import numpy as np
import pytest
from counted import row
from result_rows import block

from ssbench.results.block import ResultBlock
from ssbench.statistics.latency_parts import (
    AttemptTimes,
    AttemptTimesCollector,
    LatencyParts,
    LatencyPartsCollector,
    Part,
    sum_parts,
)

RANKS = (1, 50, 100)


def collected(*blocks: ResultBlock) -> AttemptTimes:
    collector, before = AttemptTimesCollector(), 0
    for each in blocks:
        collector.add(each, np.arange(len(each)), np.zeros(len(each), np.intp), each.last_byte, before)
        before += len(each)
    (found,) = collector.finish()
    return found


def test_of_one_attempt_over_a_kept_connection_all_is_the_same() -> None:
    times = collected(block([row(last=1.0), row(last=3.0)]))
    assert (times.whole.count, times.last_attempt.count, times.connecting.count) == (2, 2, 0)
    for rank in RANKS:
        assert times.whole.percentile(rank) == times.last_attempt.percentile(rank)


def test_what_precedes_the_last_attempt_is_in_the_whole_only() -> None:
    rare = {"last_attempt": {0: 0.5, 1: 2.0}, "connecting": {1: 1.0}, "attempts": {0: 2}}
    times = collected(block([row(last=4.0), row(last=3.0), row(last=2.5)], rare=rare), block([row(last=1.0)]))
    assert (times.whole.minimum, times.whole.maximum, times.whole.count) == (1.0, 4.0, 4)
    assert (times.last_attempt.minimum, times.last_attempt.maximum) == (0.5, 2.5)
    assert times.whole.mean - times.last_attempt.mean == pytest.approx((3.5 + 1.0) / 4)
    assert (times.connecting.count, times.connecting.maximum) == (1, 1.0)


def test_a_last_attempt_that_took_no_time_counts() -> None:
    times = collected(block([row(last=1.0)], rare={"last_attempt": {0: 0.0}, "connecting": {0: 1.0}}))
    assert times.last_attempt.count == 1
    assert 0 < times.last_attempt.maximum < 1e-6


def test_only_the_rows_that_are_asked_for() -> None:
    made = block([row(last=1.0), row(last=2.0), row(last=3.0)], rare={"last_attempt": {1: 0.25}})
    collector, rows = AttemptTimesCollector(), np.array([1])
    collector.add(made, rows, np.zeros(1, np.intp), made.last_byte[rows], 0)
    (times,) = collector.finish()
    assert (times.whole.count, times.whole.maximum, times.last_attempt.maximum) == (1, 2.0, 0.25)


def test_parts_add_up_and_none_is_nothing() -> None:
    one, other = Part(2, 0.75, 0.5), Part(1, 0.25, 0.25)
    assert one + other == other + one == Part(3, 1.0, 0.5)
    assert Part() + other == other
    both = LatencyParts(one, other)
    assert sum_parts([both, LatencyParts(), both]) == LatencyParts(Part(4, 1.5, 0.5), Part(2, 0.5, 0.25))
    assert sum_parts([]) == LatencyParts(Part(0, 0.0, 0.0), Part(0, 0.0, 0.0))


def test_connections_and_pauses_are_counted_by_group() -> None:
    rare = {"connecting": {0: 0.25, 2: 0.5}, "pausing": {1: 0.125}}
    made = block([row(last=1.0), row(last=2.0), row(last=3.0)], rare=rare)
    collector = LatencyPartsCollector()
    collector.add(made, np.arange(3), np.array([1, 1, 0]))
    assert collector.finish(3) == [
        LatencyParts(Part(1, 0.5, 0.5)),
        LatencyParts(Part(1, 0.25, 0.25), Part(1, 0.125, 0.125)),
        LatencyParts(),
    ]
