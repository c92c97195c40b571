"""What is known of a job before it was sent again."""

from __future__ import annotations

from ssbench.fleet.worker_state import History, history_after_failure, make_spent
from ssbench.store.contract import JobResult, RareFields


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
