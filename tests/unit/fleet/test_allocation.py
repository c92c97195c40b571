"""How many jobs each worker may have, without a roster and a ledger."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import pytest

from ssbench.fleet.allocation import Allocation
from ssbench.fleet.prefetch import MAX_FLEET_PREFETCHED, MAX_PREFETCHED, PrefetchedJobs
from ssbench.fleet.wire import GATHERING_SECONDS
from ssbench.fleet.worker_state import WorkerState


def allocation(workers: int, limit: int, *, round_trip: float = 0.0) -> tuple[Allocation, list[WorkerState]]:
    made = Allocation(limit)
    found = [WorkerState(number, number, "h", 1, "1", 10, 0.0) for number in range(1, workers + 1)]
    for worker in found:
        worker.presence.round_trip = round_trip
        made.add(worker)
    made.share_out()
    return made, found


def test_before_there_are_workers_none_gathers_longer_than_one_alone() -> None:
    assert Allocation(4).gathering == GATHERING_SECONDS
    assert Allocation(4).next_worker() is None


@pytest.mark.parametrize(("held", "low"), [(8, 0), (9, 0), (10, 1), (48, 20), (1000, 36)])
def test_while_operations_wait_for_objects_half_of_what_a_worker_has_ahead_is_little(
    held: int, low: int
) -> None:
    made, (worker,) = allocation(1, 8)
    made.observe(worker, 15, 0.1, 0.0)
    usual = worker.allowance.ahead.low
    worker.held.outstanding = held
    assert made.low(worker) == usual
    made.results_are_awaited = True
    assert made.low(worker) == low <= usual


@pytest.mark.parametrize(
    ("workers", "in_hand", "is_bounded"), [(1, None, False), (2, None, True), (2, 8, False)]
)
def test_what_workers_hold_is_bounded_where_several_share_all_free_objects(
    workers: int, in_hand: int | None, is_bounded: bool
) -> None:
    made, found = allocation(workers, 8)
    for worker in found:
        made.observe(worker, 40, 0.1, 0.0)
    made.in_hand = in_hand
    made.await_results(8)
    made.share_out()
    assert [worker.allowance.bound < math.inf for worker in found] == [is_bounded] * workers


def test_the_bound_rises_while_results_come_and_ends_where_it_is_above_all_needs() -> None:
    made, found = allocation(2, 40)
    for worker in found:
        made.observe(worker, 40, 0.1, 0.0)
    made.await_results(40)
    bounds = []
    while made._bound is not None:
        bounds.append(made._bound)
        made.results_came()
    assert bounds[0] == 40
    assert bounds == sorted(bounds)
    enough = sum(worker.allowance.ahead.high for worker in found) + 40
    rise = max(after / before for before, after in pairwise(bounds))
    assert enough / rise < bounds[-1] <= enough


def test_one_that_was_sent_all_it_may_have_is_in_line_again_when_it_has_few() -> None:
    made, (worker,) = allocation(1, 4)
    made.observe(worker, 40, 0.1, 0.0)
    allowance = worker.allowance
    assert allowance.ahead.low > 10
    assert made.next_worker() is worker
    worker.held.outstanding = allowance.most
    made.note_sent(worker)
    for left, found in ((allowance.most - 1, None), (allowance.share + allowance.ahead.low, worker)):
        worker.held.outstanding = left
        made.note_room(worker)
        assert made.next_worker() is found
    # It was sent some of it: it stays in line.
    worker.held.outstanding = allowance.most - 1
    made.note_sent(worker)
    assert made.next_worker() is worker


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
    assert sum(worker.allowance.most for worker in workers) <= 30_000 + MAX_FLEET_PREFETCHED
    assert made.gathering > 0.1


def test_another_run_begins_without_workers_and_with_its_own_limit() -> None:
    made, (worker,) = allocation(1, 4)
    made.in_hand, made.keeps_ahead = 5, False
    worker.held.outstanding = 9
    made.share_out()
    assert made.beyond == 5
    made.begin(7)
    assert (made.limit, made.in_hand, made.keeps_ahead) == (7, None, True)
    assert (made.workers, made.capacity, made.ahead, made.beyond) == ([], 0, 0, 0)
    assert (worker.allowance.share, worker.allowance.most) == (0, 0)
    made.add(worker)
    worker.held.outstanding = 0
    assert made.next_worker() is worker
    assert worker.allowance.share == 7


def test_one_that_comes_again_is_measured_anew_and_is_not_away() -> None:
    made, (worker,) = allocation(1, 4)
    worker.allowance.ahead.observe(1000, 1.0, 0.0)
    worker.allowance.away = True
    made.add(worker)
    assert made.next_worker() is worker
    assert worker.allowance.most == 4 + PrefetchedJobs().high


@pytest.mark.parametrize(
    ("change", "share", "most"),
    [
        (lambda made, _: setattr(made, "limit", 2), 2, 4),
        (lambda made, _: setattr(made, "in_hand", 5), 4, 5),
        (lambda made, _: setattr(made, "keeps_ahead", False), 4, 4),
        (lambda made, worker: made.set_capacity(worker, 3), 3, 5),
        (lambda made, worker: made.add(worker), 4, 6),
        (lambda made, worker: made.remove(worker), 0, 0),
    ],
)
def test_shares_follow_each_change(
    change: Callable[[Allocation, WorkerState], None], share: int, most: int
) -> None:
    made, (worker,) = allocation(1, 4)
    change(made, worker)
    made.next_worker()
    assert (worker.allowance.share, worker.allowance.most) == (share, most)
    assert made.ahead == most - share


def test_what_does_not_change_puts_no_shares_out_anew() -> None:
    made, (worker,) = allocation(1, 4)
    worker.allowance.share = 99  # would be counted again
    made.limit, made.in_hand, made.keeps_ahead = 4, None, True
    made.set_capacity(worker, 10)
    made.share_out()
    assert worker.allowance.share == 99


def test_all_in_hand_is_shared_out_as_users_are() -> None:
    made, workers = allocation(3, 8)
    assert [worker.allowance.share for worker in workers] == [3, 3, 2]
    made.in_hand = 12
    made.share_out()
    assert [worker.allowance.most for worker in workers] == [5, 5, 3]  # each rounded up
    made.in_hand = 1  # no less than a share
    made.share_out()
    assert [worker.allowance.most for worker in workers] == [3, 3, 2]
    made.limit, made.in_hand = 0, 12
    made.share_out()
    assert [worker.allowance.most for worker in workers] == [0, 0, 0]


def test_in_hand_has_the_bound_of_a_worker_too() -> None:
    made, (worker,) = allocation(1, 4)
    made.in_hand = 10**9
    made.share_out()
    assert worker.allowance.most == 4 + MAX_PREFETCHED


def test_room_is_for_the_share_first_and_then_for_what_is_ahead() -> None:
    made, (worker,) = allocation(1, 4)
    found = []
    for worker.held.outstanding in (0, 3, 4, 5, 6):
        found.append(made.room(worker))
    assert found == [4, 1, 2, 1, 0]
    worker.held.outstanding = 0
    assert made.room(worker, whole=True) == 6


def test_one_is_in_line_again_when_it_has_few_and_only_once() -> None:
    made, (worker,) = allocation(1, 4)
    worker.held.outstanding = 6
    assert made.next_worker() is None
    made.note_room(worker)  # it has all that it may
    assert made.next_worker() is None
    worker.held.outstanding = 5  # no more than "low" beyond its share
    made.note_room(worker)
    made.note_room(worker)
    assert made.next_worker() is worker
    worker.held.outstanding = 6
    assert made.next_worker() is None
    worker.held.outstanding = 5
    assert made.next_worker() is None  # nobody said so


def test_with_a_number_in_hand_one_is_in_line_with_any_room() -> None:
    for in_hand in (None, 4 + 100):
        made, (worker,) = allocation(1, 4)
        made.observe(worker, 10, 1.0, 0.0)
        made.in_hand = in_hand
        made.share_out()
        worker.held.outstanding = worker.allowance.most
        assert made.next_worker() is None
        worker.held.outstanding -= 1
        made.note_room(worker)
        assert (made.next_worker() is worker) == (in_hand is not None)


def test_workers_take_turns_for_their_share_and_for_what_is_ahead() -> None:
    made, workers = allocation(3, 6)
    assert [made.next_worker() for _ in range(4)] == [*workers, workers[0]]
    for worker in workers:
        worker.held.outstanding = 2
    assert [made.next_worker() for _ in range(4)] == [*workers[1:], *workers[:2]]
    # One that has less than its share goes before all that have it.
    workers[2].allowance.in_turn = False
    workers[2].held.outstanding = 1
    made.note_room(workers[2])
    assert made.next_worker() is workers[2]
    assert made.next_worker() is workers[2]


def test_one_that_is_away_is_passed_over_until_the_next_tick() -> None:
    for outstanding in (0, 2):
        made, (first, second) = allocation(2, 4)
        first.held.outstanding = second.held.outstanding = outstanding
        first.allowance.away = True
        assert [made.next_worker() for _ in range(3)] == [second] * 3
        made.tick()
        assert {made.next_worker() for _ in range(2)} == {first, second}


def test_a_measurement_changes_what_is_ahead_at_once() -> None:
    made, (first, second) = allocation(2, 4)
    before = made.ahead
    made.observe(first, 1000, 1.0, 0.9)
    grown = first.allowance.most - second.allowance.most
    assert grown > 10
    assert made.ahead == before + grown
    made.measure_anew()
    assert made.ahead == before
    assert first.allowance.most == second.allowance.most


def test_jobs_beyond_what_a_worker_may_have_by_now_are_counted_until_they_have_ended() -> None:
    made, (first, second) = allocation(2, 8)
    first.held.outstanding, second.held.outstanding = 6, 2
    assert made.beyond == 0
    made.limit, made.keeps_ahead = 4, False
    made.share_out()
    assert made.beyond == 4
    first.held.outstanding = 3
    assert made.beyond == 1
    first.held.outstanding = 2
    assert made.beyond == 0
    first.held.outstanding = 5  # of its own doing
    assert made.beyond == 0


def test_one_that_has_less_than_its_share_is_in_line_only_once() -> None:
    made, (first, second) = allocation(2, 4)
    for worker in (first, second):
        worker.held.outstanding = worker.allowance.most
    assert made.next_worker() is None
    for worker in (first, first, second):
        worker.held.outstanding = 1
        made.note_room(worker)
    assert [made.next_worker() for _ in range(4)] == [first, second, first, second]


def test_the_way_to_the_workers_is_that_to_the_furthest_one_that_is_known() -> None:
    assert Allocation(4).find_round_trip() == 0.0
    made, found = allocation(3, 10)
    for worker, seconds in zip(found, (math.inf, 0.2, 0.1), strict=True):
        worker.presence.round_trip = seconds
    assert made.find_round_trip() == 0.2
    for worker in found:
        worker.presence.round_trip = math.inf
    assert made.find_round_trip() == 0.0


@pytest.mark.parametrize("limit", [1, 2, 4, 8])
@pytest.mark.parametrize("in_hand", [8, 9, 20])
def test_of_objects_at_hand_each_worker_may_hold_as_large_a_part_as_of_the_users(
    limit: int, in_hand: int
) -> None:
    made, (worker,) = allocation(1, limit)
    made.observe(worker, 400, 0.1, 0.0)
    assert worker.allowance.ahead.high > 20
    made.in_hand = in_hand
    made.share_out()
    assert (worker.allowance.share, worker.allowance.most) == (limit, max(limit, in_hand))
    made, (first, second) = allocation(2, 2 * limit)
    made.in_hand = in_hand
    for each in (first, second):
        made.observe(each, 400, 0.1, 0.0)
    made.share_out()
    assert [each.allowance.most for each in (first, second)] == [max(limit, math.ceil(in_hand / 2))] * 2
