"""What is known of a job before it was sent again."""

from __future__ import annotations

from ssbench.fleet.history import History, after_failure
from ssbench.fleet.wire import Result


def test_an_attempt_never_ends_before_the_first_one_began() -> None:
    """What is known of a worker's clock gets better while a run is in progress."""
    refused = Result(1, None, 0.1, completed=0.0, cause="HTTP 401", unauthorized=True)
    first = after_failure(refused, "HTTP 401", None, 10.0)
    assert (first.began, first.ended, first.retries) == (9.9, 10.0, 1)
    # By the better clock the first one began at 8.5.
    again = after_failure(refused, "HTTP 401", History(1, 9.9, {"HTTP 401": 1}, ended=10.0), 8.9)
    assert again.ended == 8.9
    assert again.began <= 8.9


def test_an_operation_was_due_as_long_before_it_began_as_it_was_late() -> None:
    refused = Result(1, None, 0.5, completed=0.0, cause="HTTP 401", unauthorized=True, late=0.25)
    first = after_failure(refused, "HTTP 401", None, 10.0)
    assert (first.began, first.due) == (9.5, 9.25)
    assert after_failure(refused, "HTTP 401", first, 20.0).due == 9.25
    assert (
        after_failure(Result(1, None, 0.5, completed=0.0, cause="HTTP 401"), "HTTP 401", None, 10.0).due
        is None
    )
