"""How many jobs each worker may have, without a roster and a ledger."""

from __future__ import annotations

from ssbench.fleet.ahead import MOST_AHEAD_OF_ALL
from ssbench.fleet.allocation import Allocation
from ssbench.fleet.worker_state import WorkerState


def allocation(workers: int, limit: int, *, round_trip: float = 0.0) -> tuple[Allocation, list[WorkerState]]:
    made = Allocation(limit)
    found = [WorkerState(number, number, "h", 1, "1", 10, 0.0) for number in range(1, workers + 1)]
    for worker in found:
        worker.presence.round_trip = round_trip
        made.add(worker)
    made.share_out()
    return made, found


def test_one_that_is_removed_may_have_nothing_and_the_others_more() -> None:
    made, (first, second) = allocation(2, 8)
    assert [worker.allowance.share for worker in (first, second)] == [4, 4]
    made.remove(first)
    assert made.next_worker() is second
    assert (first.allowance.share, first.allowance.most, second.allowance.share) == (0, 0, 8)
    assert made.capacity == 10
    made.note_room(first)
    assert {made.next_worker() for _ in range(3)} == {second}


def test_all_get_their_shares_before_any_holds_jobs_ahead() -> None:
    made, (first, second) = allocation(2, 4)
    first.held.outstanding = 2
    assert [made.next_worker() for _ in range(2)] == [second, second]
    second.held.outstanding = 2
    assert {made.next_worker() for _ in range(4)} == {first, second}
    for worker in (first, second):
        worker.held.outstanding = worker.allowance.most
    assert made.next_worker() is None


def test_workers_far_away_hold_more_ahead_from_the_first_job_on() -> None:
    _, (near,) = allocation(1, 8)
    _, (far,) = allocation(1, 8, round_trip=0.3)
    assert near.allowance.most <= 8 + 2
    assert far.allowance.most > 8 * 0.3 / 0.005


def test_what_thousands_of_workers_far_away_hold_ahead_has_a_bound() -> None:
    made, workers = allocation(3000, 30_000, round_trip=5.0)
    assert sum(worker.allowance.most for worker in workers) <= 30_000 + MOST_AHEAD_OF_ALL
    assert made.gathering > 0.1
