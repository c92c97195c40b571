"""What is known of a job before it was sent again."""

from __future__ import annotations

import pytest

from ssbench.fleet.worker_state import (
    History,
    TaskBatch,
    WorkerState,
    history_after_failure,
    make_spent,
    was_tried,
)
from ssbench.store.contract import UNANSWERED_CAUSES, JobResult, RareFields


def test_an_attempt_never_ends_before_the_first_one_began() -> None:
    """What is known of a worker's clock gets better while a run is in progress."""
    refused = JobResult(1, None, 0.1, completed=0.0, cause="HTTP 401", unauthorized=True)
    first = history_after_failure(refused, "HTTP 401", None, 10.0)
    assert (first.began, first.ended, first.retries) == (9.9, 10.0, 1)
    # By the better clock the first one began at 8.5.
    again = history_after_failure(refused, "HTTP 401", History(1, 9.9, {"HTTP 401": 1}, ended=10.0), 8.9)
    assert again.ended == 8.9
    assert again.began <= 8.9


def test_an_operation_was_due_as_long_before_it_began_as_it_was_late() -> None:
    refused = JobResult(1, None, 0.5, completed=0.0, cause="HTTP 401", unauthorized=True, late=0.25)
    first = history_after_failure(refused, "HTTP 401", None, 10.0)
    assert (first.began, first.due) == (9.5, 9.25)
    assert history_after_failure(refused, "HTTP 401", first, 20.0).due == 9.25
    assert (
        history_after_failure(
            JobResult(1, None, 0.5, completed=0.0, cause="HTTP 401"), "HTTP 401", None, 10.0
        ).due
        is None
    )


def test_a_result_has_the_causes_and_the_parts_of_all_attempts() -> None:
    history = History(
        2, 1.0, {"HTTP 401": 1, "HTTP 503": 1}, RareFields(0.5, 2.0, left=1, connections=3, resumed=2)
    )
    result = JobResult(
        1, 0.1, 0.2, 3.0, retried={"HTTP 503": 2}, rare=RareFields(0.25, 1.0, connections=4, resumed=1)
    )
    whole = history.add_to(result)
    assert whole.retried == {"HTTP 401": 1, "HTTP 503": 3}
    assert whole.rare is not None
    assert (whole.rare.connecting, whole.rare.pausing) == (0.75, 3.0)
    assert (whole.rare.connections, whole.rare.resumed, whole.rare.left) == (7, 3, 0)
    assert history.add_to(JobResult(1, 0.1, 0.2, 3.0)).retried == history.retried
    # One that has not begun before leaves a result as it is.
    assert History(0, 0.0, {}, due=5.0).add_to(result) is result


def test_a_worker_is_told_of_earlier_attempts_by_its_own_clock() -> None:
    assert make_spent(None, 100.0) == (0, None, None, False)
    assert make_spent(History(0, 0.0, {}, due=5.0, in_doubt=True), 100.0) == (0, None, None, True)
    assert make_spent(History(2, 110.0, {}, ended=112.5), 100.0) == (2, 10.0, 12.5, False)
    assert make_spent(History(2, 110.0, {}, in_doubt=True), 100.0) == (2, 10.0, None, True)


@pytest.mark.parametrize(
    ("resent", "retried", "cause", "before", "in_doubt"),
    [
        (0, {}, "HTTP 401", None, False),
        (1, {}, "HTTP 401", None, True),  # the client sent it again, not knowing whether it was done
        (0, {"HTTP 503": 1}, "HTTP 401", None, False),
        (0, {min(UNANSWERED_CAUSES): 1}, "HTTP 401", None, True),
        (0, {}, min(UNANSWERED_CAUSES), None, True),
        (0, {}, "HTTP 401", False, False),
        (0, {}, "HTTP 401", True, True),
    ],
)
def test_an_operation_is_in_doubt_from_the_first_attempt_on_that_may_have_done_it(
    resent: int, retried: dict[str, int], cause: str, before: bool | None, in_doubt: bool
) -> None:
    history = None if before is None else History(1, 1.0, {}, in_doubt=before)
    result = JobResult(1, None, 0.1, completed=0.0, cause=cause, retried=retried, retries=2, resent=resent)
    found = history_after_failure(result, cause, history, 10.0)
    assert found.in_doubt is in_doubt
    assert found.retried == {**retried, cause: retried.get(cause, 0) + 1}
    assert found.retries == 3


def test_a_task_was_tried_that_has_begun_before() -> None:
    assert [was_tried(each) for each in (None, History(0, 0.0, {}), History(1, 0.0, {}))] == [
        False,
        False,
        True,
    ]


def test_another_run_knows_nothing_of_what_a_worker_held() -> None:
    worker = WorkerState(1, 1, "h", 1, "1", 10, 0.0)
    batch = TaskBatch(5, [(1, 2, 3, 4, 5)], 1.0, worker)
    held = worker.held
    held.unacknowledged.append(batch)
    held.unbegun.append(batch)
    held.foreign_results = held.invalid_results = 3
    held.begin()
    assert (held.foreign_results, held.invalid_results) == (0, 0)
    assert not held.unacknowledged
    assert not held.unbegun


@pytest.mark.parametrize(
    ("job", "began", "left"), [(4, [0, 0], 2), (5, [9, 0], 2), (6, [9, 0], 1), (7, [9, 9], 1), (8, [9, 9], 0)]
)
def test_batches_begin_with_their_first_job_and_wait_until_their_last_has_begun(
    job: int, began: list[int], left: int
) -> None:
    """Of two batches, of the jobs 5 and 6 and of 7 and 8."""
    worker = WorkerState(1, 1, "h", 1, "1", 10, 0.0)
    batches = [TaskBatch(first, [(1, 2, 3, 4, 5)] * 2, 0.0, worker) for first in (5, 7)]
    worker.held.unbegun.extend(batches)
    worker.held.has_begun(job, 9.0)
    assert [each.began_at for each in batches] == began
    assert len(worker.held.unbegun) == left
    worker.held.has_begun(job, 10.0)  # said again
    worker.held.has_begun(job - 1, 10.0)
    assert [each.began_at for each in batches] == began
