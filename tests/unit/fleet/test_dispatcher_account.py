"""The jobs of one group of users: what it makes of a worker, and what reaches its allocation and ledger."""

from __future__ import annotations

from heartbeats import make_heartbeat

from ssbench.fleet import fleet_events
from ssbench.fleet.dispatcher import GroupJobs
from ssbench.fleet.wire import Heartbeat, Job
from ssbench.fleet.worker_state import Task, WorkerState

RUN = 77


def tasks(*numbers: int) -> list[Task]:
    return [(0, 0, 0, number, 0) for number in numbers]


def worker(number: int = 1, capacity: int = 10) -> WorkerState:
    made = WorkerState(number, number, "h", 1, "1", capacity, 0.0)
    made.presence.ready, made.presence.round_trip = True, 0.0
    return made


def beat(capacity: int = 10, held: list[int] | None = None, run_id: int = RUN) -> Heartbeat:
    return make_heartbeat(1, run_id=run_id, capacity=capacity, held=held or [])


def account(limit: int = 10, group: int = 0, part: float = 1.0) -> tuple[GroupJobs, list[fleet_events.Event]]:
    told: list[fleet_events.Event] = []
    return GroupJobs(told.append, limit, group, part), told


def full() -> tuple[GroupJobs, WorkerState, int, list[Job]]:
    """An account whose only worker has all the jobs that it may have, and these."""
    made, _ = account(limit=2)
    made.admit(whole := worker())
    first, jobs = made.send(tasks(1, 2, 3, 4), 0.0, whole)
    assert made.allocation.next_worker() is None
    return made, whole, first, jobs


def test_the_first_group_knows_the_worker_itself_and_others_a_seat_that_stays() -> None:
    first, second = account()[0], account(group=1)[0]
    whole = worker()
    assert first.state_of(whole) is whole
    state = second.state_of(whole)
    assert state is not whole
    assert second.state_of(whole) is state
    assert (state.name, state.presence, state.allowance.capacity) == (whole.name, whole.presence, 10)
    state.held.outstanding = 3
    assert whole.held.outstanding == 0


def test_numbers_of_groups_never_meet() -> None:
    numbers = []
    for group in range(3):
        made, _ = account(group=group)
        made.admit(whole := worker())
        numbers.append(made.send(tasks(1), 0.0, made.state_of(whole))[0])
    assert numbers == [1, 2**48 + 1, 2**49 + 1]


def test_a_group_may_use_its_part_of_a_worker_and_at_least_one_slot() -> None:
    made, _ = account(limit=100, group=1, part=0.25)
    made.admit(whole := worker())
    for capacity, own in ((10, 3), (8, 2), (1, 1)):
        made.heard(whole, beat(capacity), RUN)
        assert made.allocation.capacity == own
    whole_of_it, _ = account(limit=100)
    whole_of_it.admit(whole)
    whole_of_it.heard(whole, beat(7), RUN)
    assert whole_of_it.allocation.capacity == 7


def test_jobs_are_sent_with_the_share_that_the_worker_has_by_now() -> None:
    made, _ = account(limit=6)
    first, second = worker(1), worker(2)
    made.admit(first)
    made.send(tasks(1), 0.0, first)
    assert first.held.users_told == 6
    made.admit(second)
    made.send(tasks(2), 0.0, first)
    assert first.held.users_told == 3
    assert made.living() == [first, second]


def test_one_that_is_withdrawn_gets_nothing_and_its_jobs_are_lost() -> None:
    made, _ = account(limit=2)
    made.admit(whole := worker())
    made.send(tasks(1, 2, 3), 0.0, whole)
    assert made.withdraw(whole) == 2
    assert made.living() == []
    assert made.allocation.next_worker() is None
    assert len(made.ledger.backlog) == 1


def test_a_heartbeat_tells_which_batches_are_held_in_this_run() -> None:
    made, told = account(limit=2)
    made.admit(whole := worker())
    first, _ = made.send(tasks(1), 0.0, whole)
    made.heard(whole, beat(held=[first]), RUN)
    assert whole.held.batches[first].claimed
    made.heard(whole, beat(held=[first], run_id=RUN + 1), RUN)
    assert told == [fleet_events.Dropped(whole, 1)]


def test_a_heartbeat_puts_a_worker_in_line_that_has_little() -> None:
    made, whole, _, _ = full()
    made.ledger.settle(1, whole)
    made.ledger.settle(2, whole)
    assert made.allocation.next_worker() is None
    made.heard(whole, beat(), RUN)
    assert made.allocation.next_worker() is whole


def test_one_that_could_not_be_reached_is_tried_again_after_the_next_tick() -> None:
    made, _ = account(limit=2)
    made.admit(whole := worker())
    first, _ = made.send(tasks(1), 0.0, whole)
    made.unsend(first)
    assert made.allocation.next_worker() is None
    made.allocation.tick()
    assert made.allocation.next_worker() is whole


def test_one_that_hands_jobs_back_is_tried_again_after_the_next_tick_unless_it_was_asked_to() -> None:
    for asked in (False, True):
        made, _ = account(limit=2)
        made.admit(whole := worker())
        first, _ = made.send(tasks(1), 0.0, whole)
        made.hand_back([first], whole, 5, asked=asked)
        assert made.allocation.capacity == 5
        assert (made.allocation.next_worker() is whole) == asked
        assert made.ledger.handed_back == (0 if asked else 1)
        assert len(made.ledger.backlog) == 1
        made.allocation.tick()
        assert made.allocation.next_worker() is whole


def test_results_say_how_many_jobs_a_worker_needs_ahead() -> None:
    made, _ = account(limit=2)
    made.admit(whole := worker())
    first, _ = made.send(tasks(*range(20)), 0.0, whole)
    before = made.allocation.ahead
    for number in range(18):
        made.ledger.settle(first + number, whole)
    made.note_progress(whole, 18, first + 19, (first, 0.01), 0.1, 0.0)
    # 18 jobs in 0.1 s, of which 0.09 were spent on the way.
    assert made.allocation.ahead > before + 10
    assert whole.held.begun == first + 19
    assert made.allocation.next_worker() is whole


def test_after_all_was_abandoned_workers_get_jobs_again() -> None:
    made, whole, _, _ = full()
    begun, not_begun = made.abandon()
    assert (len(begun), len(not_begun)) == (2, 2)
    assert made.allocation.next_worker() is whole


def test_results_put_a_worker_in_line_that_has_room_again() -> None:
    made, whole, first, jobs = full()
    for number in (1, 2, 3):
        made.ledger.settle(number, whole)
    made.note_progress(whole, 3, jobs[-1][0], (first, 0.0), 1.0, 0.0)
    assert made.allocation.next_worker() is whole


def test_jobs_that_are_handed_back_leave_room_for_others() -> None:
    made, whole, _, jobs = full()
    made.hand_back([job[0] for job in jobs[1:]], whole, 10, asked=True)
    assert made.allocation.next_worker() is whole


def test_one_that_comes_back_may_not_have_the_parameters_that_it_was_sent() -> None:
    for group in (0, 1):
        made, _ = account(group=group)
        made.admit(whole := worker())
        state = made.state_of(whole)
        assert state in made.living()
        state.held.parameters = b"those"
        made.withdraw(whole)
        assert (made.living(), state.held.parameters) == ([], b"those")
        made.admit(whole)
        assert (made.living(), state.held.parameters) == ([state], b"")
