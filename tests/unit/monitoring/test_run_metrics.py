"""What is counted of a run for metrics: workers, operations in flight, groups of results."""

from __future__ import annotations

import math

import numpy as np
import pytest
from metric_results import READ, SCENARIO, SOURCE
from result_rows import block, row

from ssbench.monitoring import run_metrics as monitoring_sums
from ssbench.monitoring.run_metrics import CountingSink, MetricSums, group_by_fields
from ssbench.results.result_fields import ResultMark
from ssbench.results.run_description import RunSummary, WorkerFacts


def test_of_very_many_workers_the_greatest_values_are_told() -> None:
    facts = tuple(
        WorkerFacts(n, "h", cpu_share=n / 1000, lag_p99=None)
        for n in range(monitoring_sums.MAX_LISTED_WORKERS + 1)
    )
    sums = MetricSums(1, facts=facts)
    found = {metric.key: dict(metric.samples(sums)) for metric in monitoring_sums.METRICS}
    assert found["worker.cpu"] == {("busiest", ""): monitoring_sums.MAX_LISTED_WORKERS / 1000}
    assert [*map(math.isnan, found["worker.lag"].values())] == [True]


def test_operations_in_flight_are_the_mean_of_the_last_seconds() -> None:
    """Ten users are busy all the time, with operations of a quarter of a second."""
    counting = CountingSink(SCENARIO, SOURCE)
    counting.tick(0.0)
    for now in np.arange(0.5, 20.5, 0.5):
        rows = [row(operation=READ, last_byte=0.25, completed=1e9, status=200) for _ in range(20)]
        counting.add(block(rows))
        counting.tick(float(now))
        assert counting.shown.in_flight == pytest.approx(10)
    for now in np.arange(20.5, 26.0, 0.5):
        counting.tick(float(now))
    assert counting.shown.in_flight == 0
    counting.end(RunSummary(ended=1.0))
    assert counting.shown.in_flight == 0


def test_latencies_that_reports_leave_out_are_in_no_histogram() -> None:
    """Of a worker that stalled meanwhile: the metrics had a tail that the report did not."""
    counting = CountingSink(SCENARIO, SOURCE)
    counting.tick(0.0)
    rows = [
        row(operation=READ, first_byte=first, last_byte=last, completed=1e9, status=200)
        for first, last in ((0.5, 1.0), (4.0, 8.0), (0.25, 0.5))
    ]
    counting.add(block(rows, rare={"marks": {1: int(ResultMark.DELAYED)}}))
    counting.tick(0.5)
    key, sums = ("read", SCENARIO.size_classes[0].name), counting.shown
    assert (sums.operations[key], sums.left_out[key]) == (3, 1)
    found = [each[key] for each in (sums.last_byte, sums.first_byte)]
    assert [(int(each.counts.sum()), each.total) for each in found] == [(2, 1.5), (2, 0.75)]


def test_groups_of_wide_values() -> None:
    made = block([row(operation=n % 2, status=100 * n, completed=1.0) for n in range(300)])
    found = {values: list(rows) for values, rows in group_by_fields(made, "operation", "status")}
    assert len(found) == 300
    assert found[1, 29_900] == [299]
