"""The requests of a log, handed out as the jobs of a run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from replays import NAMES, make_replay, make_scenario

from ssbench.scenario.operations import OPERATIONS
from ssbench.scenario.replay_source import Replay
from ssbench.scenario.replayed import (
    ReplayArrivals,
    ReplayPopulation,
    ReplayWorkload,
    find_peak_rate,
)
from ssbench.store.contract import JobResult


def make_population(replay: Replay, speed: float = 1.0, **changes: Any) -> ReplayPopulation:
    scenario = make_scenario(replay, speed, **changes)
    return ReplayPopulation(scenario, ReplayWorkload(scenario, 1, replay), replay)


def end(state: ReplayPopulation, job: Sequence[int], *, took: float = 0.01, status: int = 200) -> None:
    failed = None if status < 400 else f"HTTP {status}"
    result = JobResult(1, None, None if failed else took, 0.0, cause=failed, status=status, late=0.0)
    state.ended([(tuple(job), result)])


CODES = {name: OPERATIONS.named(name).code for name in NAMES}


def test_requests_are_handed_out_in_their_order_with_their_objects() -> None:
    replay = make_replay(
        [(0, "read", 1, 70), (1, "create", 2, 30), (2, "read", 2, 0), (3, "delete", 2, 0), (4, "list", 1, 0)]
    )
    state = make_population(replay)
    first = state.next_jobs(2)
    assert first == [(CODES["read"], 0, 0, 1, 70), (CODES["create"], 0, 1, 2, 30)]
    rest = state.next_jobs(100)
    assert [job[:4] for job in rest[:2]] == [(CODES["read"], 0, 1, 2), (CODES["delete"], 0, 1, 2)]
    assert rest[2][:3] == (CODES["list"], 0, 1)
    assert rest[2][3] > 2  # of no object
    assert state.next_jobs(1) == []
    assert state.drawn == 5


def test_initial_objects_are_those_that_the_log_needs() -> None:
    replay = make_replay([(0, "read", 1, 70)], (0, 1, 0), 2, written=np.array([False, False, True]))
    workload = ReplayWorkload(make_scenario(replay), 1, replay)
    looked_for = OPERATIONS.named("upload_if_missing").code
    assert [*workload.initial_uploads()] == [(looked_for, 0, 1, 1, 70), (CODES["create"], 0, 0, 2, 70)]


def test_containers_of_several_accounts_are_numbered_as_operations_expect() -> None:
    rows = [(number, "read", number, 70) for number in (1, 2, 3, 4)]
    accounts = np.array([0, 1, 2, 0], np.uint32)
    replay = make_replay(rows, (0, 0, 1, 2, 3), 4, accounts=accounts)
    jobs = make_population(replay, accounts=2).next_jobs(4)
    # The third account is the first of ours again, in which there are three containers then.
    assert [job[2] for job in jobs] == [0, 1, 2, 4]
    assert make_scenario(replay, accounts=2).container_count == 3


def test_statuses_are_counted_beside_those_of_the_log() -> None:
    rows = [(number, "read", 1, 70) for number in range(5)]
    state = make_population(make_replay(rows, statuses=(200, 503, 200, 200, 200)))
    jobs = state.next_jobs(5)
    for job, status in zip(jobs, (200, 200, 404, 0, 200), strict=True):
        end(state, job, status=status or 200) if status else end(state, job, status=0)
    read = CODES["read"]
    # The first that ends is taken for the one that failed in the log: all are in flight for the same object.
    assert state.statuses == {
        (read, 503, 200): 1,
        (read, 200, 200): 2,
        (read, 200, 404): 1,
        (read, 200, 0): 1,
    }


def test_reads_due_before_a_write_has_ended_are_counted_and_not_held_back() -> None:
    rows = [
        (0.0, "create", 2, 9),
        (0.1, "read", 2, 0),
        (0.3, "read", 2, 0),
        (0.3, "read", 1, 70),
        (1, "read", 2, 0),
    ]
    for speed, took, expected in ((1, 0.05, 0), (1, 0.2, 1), (1, 0.5, 2), (10, 0.05, 2), (0.1, 0.5, 0)):
        state = make_population(make_replay(rows), speed)
        jobs = state.next_jobs(5)
        assert len(jobs) == 5
        end(state, jobs[1])
        end(state, jobs[0], took=took, status=201)
        assert state.early_requests == expected, (speed, took)


def test_what_was_created_and_not_deleted_is_left() -> None:
    rows = [
        (0.0, "create", 2, 9),
        (0.1, "create", 3, 9),
        (0.2, "delete", 3, 0),
        (0.3, "create", 4, 9),
        (1, "read", 1, 70),
    ]
    state = make_population(make_replay(rows, (0, 0, 1, 1, 0)))
    assert [*state.leftovers()] == []
    jobs = state.next_jobs(4)
    for job in jobs[:3]:
        end(state, job, status=201)
    assert [*state.leftovers()] == [(0, 1, 2), (0, 0, 4)]  # it may be there before its result is
    state.take_back(*jobs[3][:4])
    assert state.drawn == 3
    state.owns_initial = True
    assert (0, 0, 1) in [*state.leftovers()]


def test_moments_are_those_of_the_log_at_a_speed() -> None:
    replay = make_replay([(0, "read", 1, 70), (1, "read", 1, 70), (3, "read", 1, 70)])
    arrivals = ReplayArrivals(replay, 2.0)
    assert arrivals.until(0.5) == 2
    assert arrivals.take(5) == [0, 0.5, 1.5]
    assert arrivals.next == math.inf
    assert [arrivals.count_due(*each) for each in ((0.4, None), (1.0, None), (9, None), (9, 2))] == [
        1,
        2,
        3,
        2,
    ]
    assert find_peak_rate(replay, 1.5) == pytest.approx(2 / 1.5)
