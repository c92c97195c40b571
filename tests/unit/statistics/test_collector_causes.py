"""The causes of failures: how many, with which answers, after how long."""

from __future__ import annotations

import numpy as np
import pytest
from counted import Memory, failed, row
from result_rows import block

from ssbench.statistics.collector import CauseCollector
from ssbench.statistics.summary import summarize


def test_a_cause_counts_statuses_operations_and_times() -> None:
    rows = [
        (1, 0, 1, 0, 1, 0, 0.0, 0.0, 101.0, 503, 0),
        (3, 0, 1, 0, 2, 0, 0.0, 0.0, 104.0, -1, 0),
        (1, 0, 1, 0, 3, 0, 0.0, 0.0, 106.0, 503, 0),
    ]
    made = block(rows, [None, "tx1", "tx2"], failed(0, 1, 2))
    cause = CauseCollector()
    cause.add(made, [0, 2], np.full(3, 100.0), 0)
    cause.add(made, [1], np.full(3, 100.0), 3)
    found = cause.finish()
    assert found.count == 3
    assert dict(found.statuses) == {503: 2, -1: 1}
    assert dict(found.operations) == {1: 2, 3: 1}
    assert (found.times.minimum, found.times.maximum) == (1.0, 6.0)
    assert found.trans_id == "tx2"  # of the first that has one, in the order in which they came


def test_where_the_start_is_not_known_there_is_no_time() -> None:
    made = block([row(completed=101.0)] * 2, failures=failed(0, 1))
    cause = CauseCollector()
    cause.add(made, [0, 1], np.array([np.nan, 100.0]), 0)
    found = cause.finish()
    assert (found.count, found.times.count) == (2, 1)
    assert found.trans_id is None


def test_causes_come_the_most_frequent_first_then_by_name() -> None:
    failures = {**failed(1, cause="b"), **failed(2, cause="a"), **failed(3, 4, cause="often")}
    run = Memory(block([row(completed=100.0 + place) for place in range(5)], failures=failures))
    errors = summarize(run).errors
    assert list(errors) == ["often", "a", "b"]
    assert sum(each.count for each in errors.values()) == 4
    assert errors["often"].count == pytest.approx(2)
