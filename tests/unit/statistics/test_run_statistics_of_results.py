"""The numbers of a run as a whole, also of one with hardly any results."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from counted import SCENARIO, Memory, count, row
from result_rows import block

from ssbench.results.block import LOST_CAUSE, UNFINISHED_CAUSE, Failure
from ssbench.results.result_fields import NO_WORKER, NOT_MEASURED
from ssbench.results.run_description import RunDescription, RunSummary, WorkerFacts
from ssbench.scenario.model import Stage
from ssbench.statistics.latencies import Latencies
from ssbench.statistics.summary import summarize


def test_the_warm_up_is_left_out() -> None:
    run = Memory()
    rows = [row(last=9.0, completed=90.0 + place) for place in range(3)]
    rows += [row(last=1.0, completed=101.0 + place) for place in range(3)]
    marks = {"marks": {0: 1, 1: 1, 2: 1}}
    ids = [f"tx{place}" for place in range(6)]
    run.add(
        block(rows, ids, {1: Failure("HTTP 503", "", {}), 4: Failure(None, "", {"reset": 1})}, rare=marks)
    )
    numbers = summarize(run)
    assert (numbers.warmed_up, numbers.total.count, numbers.errors, numbers.retries) == (
        3,
        3,
        {},
        {"reset": 1},
    )
    assert numbers.total.lines[0].last_byte.maximum == 1.0
    assert numbers.total.lines[0].last_byte.slowest.trans_id == "tx3"
    assert numbers.course.window.start == 100.0


def test_no_time_passed() -> None:
    total = count([row(last=0.0)]).total
    assert total.requests_per_second == math.inf
    assert total.lines[0].last_byte.count == 0


def test_nothing_at_all() -> None:
    numbers = count([])
    assert (numbers.start, numbers.end, numbers.duration, numbers.worker_count) == (None, None, 0, 0)
    assert (numbers.total.count, numbers.total.requests_per_second, numbers.total.retry_rate) == (0, 0, 0)
    assert isinstance(numbers.total.lines[0].last_byte, Latencies)
    assert not numbers.requests_by_second


def test_failures_only() -> None:
    rows = [row(last=NOT_MEASURED, completed=100.0 + i) for i in range(2)]
    numbers = count(rows, dict.fromkeys(range(2), Failure("timeout", "", {})))
    assert (numbers.start, numbers.end) == (100.0, 101.0)
    assert (numbers.total.count, numbers.total.failed, numbers.total.requests_per_second) == (0, 2, 0)
    assert numbers.workers.maximum == 0


def test_causes_are_counted_and_lost_operations_among_them() -> None:
    rows = [row(), *(row(last=NOT_MEASURED) for _ in range(4)), row(last=NOT_MEASURED, worker=NO_WORKER)]
    failures = {
        0: Failure(None, "", {"HTTP 401": 1, "HTTP 503": 2}),
        1: Failure("HTTP 503", "", {"HTTP 503": 10}),
        2: Failure("timeout", "", {}),
        3: Failure("HTTP 503", "", {}),
        4: Failure("timeout", "", {}),
        5: Failure(LOST_CAUSE, "", {}),
    }
    summary = RunSummary(ended=0.0, not_sendable=((1, 1, 7), (99, 0, 1)), warnings=("careful",))
    numbers = count(rows, failures, summary)
    assert {name: (cause.count, cause.trans_id) for name, cause in numbers.errors.items()} == {
        "HTTP 503": (2, "tx1"),
        "timeout": (2, "tx2"),
        LOST_CAUSE: (1, "tx5"),
    }
    assert numbers.retries == {"HTTP 503": 12, "HTTP 401": 1}
    assert (numbers.total.count, numbers.total.failed, numbers.total.lost) == (1, 5, 1)
    assert [(op.name, class_, times) for op, class_, times in numbers.not_sendable] == [("read", "big", 7)]
    assert numbers.worker_count == 1
    assert numbers.warnings == ("careful",)


@pytest.mark.parametrize(
    ("cause", "times", "told"),
    [
        ("timeout", 1, "users were busy for 5.1"),
        (UNFINISHED_CAUSE, 1, "users were busy for at most 55.1"),
        (LOST_CAUSE, 1, "users were busy for at most 55.1"),
        (UNFINISHED_CAUSE, 2, None),
        (LOST_CAUSE, 2, None),
    ],
)
def test_operations_without_a_known_time_may_have_kept_one_user_each(
    cause: str, times: int, told: str | None
) -> None:
    rows = [row(last=0.1, completed=100.0 + second) for second in range(20)]
    worker = NO_WORKER if cause == LOST_CAUSE else 1
    rows += [row(last=NOT_MEASURED, completed=120.0, worker=worker)] * times
    summary = RunSummary(ended=120.0, sent_until=119.5, workers=(WorkerFacts(1),))
    numbers = count(rows, {20 + place: Failure(cause, "", {}) for place in range(times)}, summary)
    limits = [limit for limit in numbers.generator.limits if "users were busy" in limit]
    assert len(limits) == (told is not None)
    assert told is None or told in limits[0]


@pytest.mark.parametrize(("lacking", "told"), [(0, True), (3, False)])
def test_users_who_had_no_object_to_use_are_not_called_idle(lacking: int, told: bool) -> None:
    rows = [row(last=0.1, completed=100.0 + second) for second in range(20)]
    summary = RunSummary(
        ended=120.0, sent_until=119.5, workers=(WorkerFacts(1),), not_sendable=((1, 1, lacking),)
    )
    numbers = count(rows, {}, summary)
    assert any("users were busy" in limit for limit in numbers.generator.limits) == told


@pytest.mark.parametrize(("lacking", "stalls"), [(0, 1), (500, 0)])
def test_the_store_does_not_stall_while_no_object_is_left_to_use(lacking: int, stalls: int) -> None:
    rows = [row(last=0.1, completed=100.0 + place / 10) for place in range(20)]
    summary = RunSummary(
        ended=120.0, sent_until=110.0, workers=(WorkerFacts(1),), not_sendable=((1, 1, lacking),)
    )
    course = count(rows, {}, summary).course
    assert course is not None
    assert len(course.stalls) == stalls


@pytest.mark.parametrize(
    ("load", "told"),
    [
        ({}, True),
        ({"rate": 5.0}, False),
        ({"think_time": 0.9}, False),
        ({"stages": (Stage(10.0, (2, 2)), Stage(10.0, (1, 1)))}, False),
    ],
)
def test_users_who_are_idle_by_intention_are_not_called_idle(load: dict[str, Any], told: bool) -> None:
    rows = [row(last=0.1, completed=100.0 + second) for second in range(20)]
    summary = RunSummary(ended=120.0, sent_until=119.5, workers=(WorkerFacts(1),))
    run = RunDescription(replace(SCENARIO, **load))
    numbers = summarize(Memory(block(rows), run=run, summary=summary))
    assert any("users were busy" in limit for limit in numbers.generator.limits) == told


def test_successes_are_spread_over_workers() -> None:
    rows = [row(worker=1), row(worker=1), row(worker=2**40), row(worker=3, last=NOT_MEASURED)]
    numbers = count(rows, {3: Failure("HTTP 500", "", {})})
    assert numbers.worker_count == 3
    spread = numbers.workers
    assert (spread.minimum, spread.maximum, spread.mean) == (0, 2, 1)
    assert spread.deviation == pytest.approx(math.sqrt(2 / 3))


def test_a_long_time_without_a_request_is_left_out_of_the_seconds() -> None:
    rows = [row(completed=at) for at in (100.0, 103.0, 1e9)]
    by_second = count(rows).requests_by_second
    assert tuple(by_second) == ((1, 1), (2, 0), (3, 0), (4, 1), (999_999_901, 1))


@pytest.mark.parametrize(
    ("last", "noop", "named"), [(1e-6, False, True), (0.005, False, False), (1e-6, True, False)]
)
def test_a_worker_whose_operations_take_no_time_is_a_warning(last: float, noop: bool, named: bool) -> None:
    run = Memory(
        block([row(last=0.006, completed=100 + place / 100, worker=1) for place in range(200)]),
        block([row(last=last, completed=100 + place / 1000, worker=7) for place in range(2000)]),
        run=RunDescription(SCENARIO, options={"noop": noop}),
        summary=RunSummary(ended=110.0, workers=(WorkerFacts(1, "one"), WorkerFacts(7, "evil"))),
    )
    found = [
        each for each in summarize(run).warnings if each.startswith("Worker 7 on evil reports that its 2,000")
    ]
    assert len(found) == named
