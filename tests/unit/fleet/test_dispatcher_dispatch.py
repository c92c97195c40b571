"""Who holds which job: each rule by an example, and all of them together in any order of events."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest
from heartbeats import make_heartbeat
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec import structs
from said import ID_TAKEN, REFUSED_WORKER

from ssbench.fleet import fleet_events
from ssbench.fleet.descriptors import MAX_WORKERS
from ssbench.fleet.dispatcher import Dispatcher
from ssbench.fleet.phase import ClosedLoop
from ssbench.fleet.prefetch import scale_of_fleet
from ssbench.fleet.roster import MAX_FLEET_GAPS, NotReady
from ssbench.fleet.wire import HEARTBEAT_SECONDS, LAG_BUCKETS, LOST_AFTER, Heartbeat, Job
from ssbench.fleet.worker_state import (
    CLOCK_WINDOW_SECONDS,
    ClockOffset,
    History,
    Task,
    WorkerClocks,
    WorkerLoad,
    WorkerState,
)

RUN = 77

#: The events that tell of jobs that were lost.
LOSSES = (
    fleet_events.Lost,
    fleet_events.CutOff,
    fleet_events.Overdue,
    fleet_events.Unconfirmed,
    fleet_events.Dropped,
    fleet_events.Left,
    fleet_events.Refused,
)


def beat(
    instance: int,
    held: list[int] | None = None,
    *,
    worker_id: int | None = None,
    run_id: int = RUN,
    capacity: int = 10,
    clock: float = 0.0,
) -> Heartbeat:
    return make_heartbeat(
        instance,
        worker_id=instance if worker_id is None else worker_id,
        run_id=run_id,
        clock=clock,
        capacity=capacity,
        held=held or [],
    )


def hear(dispatcher: Dispatcher, message: Heartbeat, now: float, *, answers: bool = True) -> None:
    """A heartbeat comes, as the answer to a ping of just now or unasked."""
    if answers:
        message = structs.replace(message, master=dispatcher.roster.master, ping=now)
    dispatcher.heartbeat(message, RUN, now)


def task(number: int) -> Task:
    return (0, 0, 0, number, 0)


def tasks(count: int) -> list[Task]:
    return [task(number) for number in range(count)]


def send(
    dispatcher: Dispatcher,
    batch: list[Task],
    now: float,
    histories: Sequence[History | None] = (),
    to: int | None = None,
) -> tuple[int, list[Job]]:
    """Send to one worker, or to whoever's turn it is."""
    worker = dispatcher.allocation.next_worker() if to is None else worker_of(dispatcher, to)
    assert worker is not None
    return dispatcher.send(batch, now, worker, histories)


def lost_numbers(dispatcher: Dispatcher) -> list[tuple[int, int | None]]:
    return [(each[3], worker and worker.worker_id) for each, worker in dispatcher.ledger.take_lost()]


def kinds(dispatcher: Dispatcher) -> list[type[fleet_events.Event]]:
    happened, dispatcher.events = dispatcher.events, []
    return [type(event) for event in happened]


def test_all_groups_of_a_run_know_how_many_share_the_workers() -> None:
    dispatcher = Dispatcher()
    for now, parts in ((1.0, (0.25,) * 4), (2.0, (0.02,) * 50), (3.0, (1.0,))):
        dispatcher.begin(0, now, parts)
        for instance in (1, 2):
            hear(dispatcher, beat(instance), now)
        expected = scale_of_fleet(2, len(parts)).gathering
        for account in dispatcher.accounts:
            account.allocation.share_out()
            assert account.allocation.gathering == expected


def room(dispatcher: Dispatcher) -> int:
    """How many more jobs may be sent in a closed loop of as many users as the limit."""
    pace = ClosedLoop(dispatcher.allocation.limit)
    return pace.room(0.0, 0, len(dispatcher.ledger.in_flight), dispatcher.allocation.capacity)


def reasons(dispatcher: Dispatcher, now: float) -> list[NotReady]:
    return [why for _, why in dispatcher.roster.not_ready(now)]


def joined(*instances: int, limit: int = 100) -> Dispatcher:
    dispatcher = Dispatcher(limit)
    for instance in instances:
        hear(dispatcher, beat(instance), 0.0)
    dispatcher.tick(0.0)
    dispatcher.events.clear()
    return dispatcher


def worker_of(dispatcher: Dispatcher, instance: int) -> WorkerState:
    worker = dispatcher.roster.known(instance)
    assert worker is not None
    return worker


def pass_time(
    dispatcher: Dispatcher,
    start: float,
    seconds: float,
    *alive: Heartbeat,
    unreached: Heartbeat | None = None,
) -> float:
    """Tick every 0.1 s, with a heartbeat a second of those that live; returns the time after it.

    ``unreached`` lives, but receives no ping.
    """
    for step in range(1, math.ceil(seconds * 10) + 1):
        now = start + step / 10
        if step % 10 == 0:
            for each in alive:
                hear(dispatcher, each, now)
            if unreached is not None:
                hear(dispatcher, unreached, now, answers=False)
        dispatcher.tick(now)
    return now


def test_nobody_there_means_no_room() -> None:
    dispatcher = Dispatcher(5)
    assert room(dispatcher) == 0
    hear(dispatcher, beat(1, capacity=3), 0.0)
    assert room(dispatcher) == 3
    hear(dispatcher, beat(2, capacity=3), 0.0)
    assert room(dispatcher) == 5
    send(dispatcher, tasks(2), 0.0)
    assert room(dispatcher) == 3


def test_a_result_settles_the_number_it_names_once() -> None:
    dispatcher = joined(1)
    first, jobs = send(dispatcher, tasks(2), 0.0)
    assert [job[0] for job in jobs] == [first, first + 1]
    worker = worker_of(dispatcher, 1)
    batch = dispatcher.ledger.settle(first, worker)
    assert batch is not None
    assert batch.task(first) == task(0)
    assert dispatcher.ledger.settle(first, worker) is None
    assert dispatcher.ledger.settle(12345, worker) is None
    assert dispatcher.ledger.late_results == 2
    assert list(dispatcher.ledger.in_flight) == [first + 1]


def test_a_job_is_settled_by_nobody_but_the_worker_that_has_it() -> None:
    dispatcher = joined(1, 2)
    first, _ = send(dispatcher, tasks(2), 0.0, to=1)
    thief = worker_of(dispatcher, 2)
    assert dispatcher.ledger.settle(first, thief) is None
    dispatcher.hand_back([first, first + 1], thief, 10)
    assert (
        dispatcher.ledger.foreign_results,
        thief.held.foreign_results,
        dispatcher.ledger.late_results,
    ) == (
        3,
        3,
        0,
    )
    assert kinds(dispatcher) == [fleet_events.Foreign]
    assert sorted(dispatcher.ledger.in_flight) == [first, first + 1]
    assert not dispatcher.ledger.backlog
    assert worker_of(dispatcher, 1).held.outstanding == 2
    assert dispatcher.ledger.settle(first, worker_of(dispatcher, 1)) is not None


def test_workers_that_come_and_go_under_new_ids_are_forgotten() -> None:
    dispatcher = Dispatcher(10)
    for instance in range(1, 2 * MAX_WORKERS):
        hear(dispatcher, beat(instance), 0.0)
        dispatcher.roster.leave(instance, "has ended")
        dispatcher.events.clear()
    assert len(dispatcher.roster._holders) <= MAX_WORKERS


def test_when_a_batch_was_sent_stays_true_when_the_master_was_stopped() -> None:
    dispatcher = joined(1)
    first, _ = send(dispatcher, tasks(1), 0.0)
    dispatcher.tick(60.0)
    assert dispatcher.ledger.in_flight[first].sent_at == 0.0


def test_a_job_sent_again_has_a_new_number() -> None:
    dispatcher = joined(1)
    first, _ = send(dispatcher, tasks(1), 0.0)
    dispatcher.unsend(first)
    assert list(dispatcher.ledger.backlog) == [(task(0), None)]
    assert dispatcher.allocation.next_worker() is None  # it is tried again at the next tick
    dispatcher.tick(0.1)
    again, _ = send(dispatcher, [dispatcher.ledger.backlog.popleft()[0]], 0.1)
    assert again != first


def test_unsent_tasks_keep_their_place_and_their_past() -> None:
    dispatcher = joined(1)
    dispatcher.ledger.send_again(task(9), None)
    history = History(2, 1.5, {"HTTP 401": 2})
    first, _ = send(dispatcher, tasks(2), 0.0, [history, None])
    dispatcher.unsend(first)
    assert list(dispatcher.ledger.backlog) == [(task(0), history), (task(1), None), (task(9), None)]


def test_of_a_lost_worker_only_what_may_have_begun_is_lost() -> None:
    dispatcher = joined(1, 2, limit=4)
    worker = worker_of(dispatcher, 1)
    first, _ = send(dispatcher, tasks(2), 0.0, to=1)
    second, _ = send(dispatcher, [task(number) for number in range(2, 6)], 0.0, to=1)
    assert worker.allowance.share == 2
    dispatcher.ledger.settle(first, worker)
    # Two more than its share: it says that it has begun the third.
    dispatcher.note_progress(worker, 1, second, (second, 0.0), 0.1, 0.0)
    dispatcher.roster.leave(1, "has ended")
    assert lost_numbers(dispatcher) == [(1, 1), (2, 1)]
    assert [
        (each[3], history is not None and history.in_doubt) for each, history in dispatcher.ledger.backlog
    ] == [
        (3, True),
        (4, True),
        (5, True),
    ]
    assert (dispatcher.ledger.passed_on, dispatcher.ledger.in_flight) == (3, {})


def test_of_a_dropped_batch_only_what_may_have_begun_is_lost() -> None:
    dispatcher = joined(1, limit=2)
    first, _ = send(dispatcher, tasks(1), 0.0)
    history = History(1, 0.0, {"HTTP 401": 1})
    second, _ = send(dispatcher, [task(number) for number in range(1, 5)], 0.0, [history] * 4, to=1)
    hear(dispatcher, beat(1, [first, second]), 0.5)
    hear(dispatcher, beat(1, [first]), 1.0)
    assert lost_numbers(dispatcher) == [(1, 1)]
    assert dispatcher.events == [fleet_events.Dropped(worker_of(dispatcher, 1), 1)]
    # It may have begun them after it last told what it had begun.
    in_doubt = replace(history, in_doubt=True)
    assert list(dispatcher.ledger.backlog) == [(task(number), in_doubt) for number in (2, 3, 4)]


def test_a_job_that_waits_ahead_is_not_overdue() -> None:
    dispatcher = joined(1, limit=1)
    dispatcher.ledger.longest_job = 50.0
    worker = worker_of(dispatcher, 1)
    first, _ = send(dispatcher, tasks(1), 0.0)
    second, _ = send(dispatcher, tasks(2), 0.0, to=1)
    for now in range(1, 136):
        held = [batch for batch in (first, second) if batch in dispatcher.ledger._batches]
        hear(dispatcher, beat(1, held), now)
        dispatcher.tick(now)
        if now == 40:
            dispatcher.ledger.settle(first, worker)
            dispatcher.note_progress(worker, 1, second, (second, 39.0), now, 0.0)
        if now == 85:
            dispatcher.ledger.settle(second, worker)
            dispatcher.note_progress(worker, 1, second + 1, (second, 84.0), now, 0.0)
    assert dispatcher.ledger.oldest_begun == 85.0
    assert kinds(dispatcher) == []
    hear(dispatcher, beat(1, [second]), 135.5)
    dispatcher.tick(135.5)
    assert dispatcher.events == [fleet_events.Overdue(worker, 50.0, 1)]


def test_without_jobs_ahead_a_worker_gets_what_it_can_begin() -> None:
    dispatcher = joined(1, limit=4)
    dispatcher.allocation.keeps_ahead = False
    worker = worker_of(dispatcher, 1)
    assert (
        dispatcher.allocation.next_worker(),
        dispatcher.allocation.room(worker),
        dispatcher.allocation.ahead,
    ) == (worker, 4, 0)
    send(dispatcher, tasks(4), 0.0)
    assert dispatcher.allocation.next_worker() is None
    dispatcher.allocation.keeps_ahead = True
    assert (
        dispatcher.allocation.next_worker(),
        dispatcher.allocation.room(worker),
        dispatcher.allocation.ahead,
    ) == (worker, 2, 2)


def test_all_workers_together_may_have_a_given_number_in_hand() -> None:
    dispatcher = joined(1, 2, limit=4)
    dispatcher.allocation.in_hand = 20
    assert dispatcher.allocation.ahead == 16
    assert [each.allowance.most for each in dispatcher.roster.living()] == [10, 10]


def test_the_batches_of_a_silent_worker_are_lost_with_it() -> None:
    dispatcher = joined(1, 2)
    first, _ = send(dispatcher, tasks(2), 0.0)
    second, _ = send(dispatcher, [task(5)], 0.0)
    hear(dispatcher, beat(1, [first]), 0.5)
    hear(dispatcher, beat(2, [second]), 0.5)
    pass_time(dispatcher, 0.5, LOST_AFTER + 0.2, beat(2, [second]))
    assert lost_numbers(dispatcher) == [(0, 1), (1, 1)]
    assert kinds(dispatcher) == [fleet_events.Lost]
    assert [worker.instance for worker in dispatcher.roster.living()] == [2]
    assert list(dispatcher.ledger.in_flight) == [second]
    assert dispatcher.allocation.capacity == 10


def test_a_batch_that_is_not_claimed_is_lost() -> None:
    dispatcher = joined(1)
    send(dispatcher, tasks(1), 0.0)
    now = pass_time(dispatcher, 0.0, LOST_AFTER, beat(1))
    assert lost_numbers(dispatcher) == []
    pass_time(dispatcher, now, 0.2, beat(1))
    assert lost_numbers(dispatcher) == [(0, 1)]
    assert dispatcher.events == [fleet_events.Unconfirmed(worker_of(dispatcher, 1), 1)]


def test_what_was_on_its_way_to_a_silent_worker_is_lost_with_it() -> None:
    dispatcher = joined(1, 2)
    now = pass_time(dispatcher, 0.0, LOST_AFTER - 0.5, beat(2))
    first, _ = send(dispatcher, tasks(2), now, to=1)
    now = pass_time(dispatcher, now, 1.0, beat(2))
    assert kinds(dispatcher) == [fleet_events.Lost]
    assert lost_numbers(dispatcher) == [(0, 1), (1, 1)]
    assert dispatcher.ledger.settle(first, worker_of(dispatcher, 1)) is None
    assert not dispatcher.ledger.in_flight
    assert worker_of(dispatcher, 1).held.outstanding == 0


def test_a_worker_gets_its_share_and_no_more_than_it_has_room_for() -> None:
    dispatcher = Dispatcher(20)
    for instance, capacity in ((1, 64), (2, 3), (3, 64)):
        hear(dispatcher, beat(instance, capacity=capacity), 0.0)
    assert dispatcher.allocation.capacity == 131
    assert [worker.allowance.share for worker in dispatcher.roster.living()] == [9, 3, 8]
    sent: Counter[int] = Counter()
    while sent.total() < 20 and (worker := dispatcher.allocation.next_worker()) is not None:
        dispatcher.send(tasks(1), 0.0, worker)
        sent[worker.instance] += 1
    assert sent == {1: 9, 2: 3, 3: 8}
    # Then all get jobs ahead.
    while (worker := dispatcher.allocation.next_worker()) is not None:
        dispatcher.send(tasks(1), 0.0, worker)
    assert [worker.held.outstanding - worker.allowance.share for worker in dispatcher.roster.living()] == [
        2,
        2,
        2,
    ]
    # One that stands still gets nothing more, and the others all that they can do.
    for first in [
        first for first, batch in dispatcher.ledger.in_flight.items() if batch.worker.instance != 1
    ]:
        worker = dispatcher.ledger.in_flight[first].worker
        dispatcher.ledger.settle(first, worker)
        dispatcher.allocation.note_room(worker)
    sent.clear()
    while (worker := dispatcher.allocation.next_worker()) is not None:
        dispatcher.send(tasks(1), 0.0, worker)
        sent[worker.instance] += 1
    assert sent == {2: 5, 3: 10}


def test_a_worker_that_is_not_connected_is_passed_over_for_a_while() -> None:
    dispatcher = joined(1, 2)
    away = worker_of(dispatcher, 1)
    away.allowance.away = True
    assert {dispatcher.allocation.next_worker() for _ in range(4)} == {worker_of(dispatcher, 2)}
    dispatcher.tick(0.1)
    assert {dispatcher.allocation.next_worker() for _ in range(4)} == {away, worker_of(dispatcher, 2)}


def test_a_worker_that_claims_its_jobs_for_ever_is_used_no_more() -> None:
    dispatcher = joined(1, 2)
    dispatcher.ledger.longest_job = 50.0
    first, _ = send(dispatcher, tasks(2), 0.0, to=1)
    for now in range(1, 51):
        hear(dispatcher, beat(1, [first]), now)
        hear(dispatcher, beat(2), now)
        dispatcher.tick(now)
    assert dispatcher.ledger.oldest_begun == 0.0
    assert kinds(dispatcher) == []
    dispatcher.tick(50.5)
    assert lost_numbers(dispatcher) == [(0, 1), (1, 1)]
    assert dispatcher.events == [fleet_events.Overdue(worker_of(dispatcher, 1), 50.0, 2)]
    hear(dispatcher, beat(1, [first]), 51.0)
    assert [worker.worker_id for worker in dispatcher.roster.living()] == [2]
    assert dispatcher.ledger.oldest_begun is None


def test_a_batch_that_its_owner_leaves_out_is_lost() -> None:
    dispatcher = joined(1)
    first, _ = send(dispatcher, tasks(3), 0.0)
    hear(dispatcher, beat(1, [first]), 1.0)
    dispatcher.ledger.settle(first, worker_of(dispatcher, 1))
    hear(dispatcher, beat(1, []), 2.0)
    assert lost_numbers(dispatcher) == [(1, 1), (2, 1)]
    assert dispatcher.events == [fleet_events.Dropped(worker_of(dispatcher, 1), 2)]


@pytest.mark.parametrize("run_id", [0, RUN + 1])
def test_a_worker_that_serves_another_run_has_lost_this_ones_batches(run_id: int) -> None:
    dispatcher = joined(1)
    first, _ = send(dispatcher, tasks(1), 0.0)
    hear(dispatcher, beat(1, [first]), 1.0)
    hear(dispatcher, beat(1, [first], run_id=run_id), 2.0)
    assert lost_numbers(dispatcher) == [(0, 1)]


def test_a_batch_stays_with_its_first_claimant() -> None:
    dispatcher = joined(1, 2)
    first, _ = send(dispatcher, tasks(2), 0.0)
    dispatcher.ledger.settle(first, worker_of(dispatcher, 1))
    hear(dispatcher, beat(2, [first]), 0.5)
    hear(dispatcher, beat(2, []), 0.6)
    assert lost_numbers(dispatcher) == []
    hear(dispatcher, beat(1, []), 0.7)
    assert lost_numbers(dispatcher) == [(1, 1)]


def test_handed_back_jobs_go_to_the_head_of_the_line() -> None:
    dispatcher = joined(1)
    dispatcher.ledger.send_again(task(9), None)
    first, _ = send(dispatcher, tasks(3), 0.0)
    dispatcher.hand_back([first + 2, 424242], worker_of(dispatcher, 1), 10)
    assert list(dispatcher.ledger.backlog) == [(task(2), None), (task(9), None)]
    assert sorted(dispatcher.ledger.in_flight) == [first, first + 1]
    assert dispatcher.ledger.late_results == 0
    hear(dispatcher, beat(1, []), 0.5)  # it owned the rest by handing back a part
    assert lost_numbers(dispatcher) == [(0, 1), (1, 1)]


def test_after_a_handback_a_worker_is_sent_no_more_than_it_has_room_for() -> None:
    dispatcher = joined(1, limit=10)
    first, _ = send(dispatcher, tasks(10), 0.0)
    worker = worker_of(dispatcher, 1)
    dispatcher.hand_back(range(first + 3, first + 10), worker, 3)
    assert (room(dispatcher), worker.held.outstanding, worker.allowance.share) == (0, 3, 3)
    assert dispatcher.allocation.next_worker() is None
    dispatcher.ledger.settle(first, worker)
    assert dispatcher.allocation.next_worker() is None  # not before the next tick
    dispatcher.tick(0.1)
    assert (dispatcher.allocation.next_worker(), room(dispatcher)) == (worker, 1)
    hear(dispatcher, beat(1, [first], capacity=10), 1.0)
    assert room(dispatcher) == 8


def test_what_a_worker_hands_back_goes_to_others() -> None:
    dispatcher = joined(1, 2, limit=12)
    first, _ = send(dispatcher, tasks(6), 0.0, to=1)
    dispatcher.hand_back(range(first, first + 6), worker_of(dispatcher, 1), 0)
    other = worker_of(dispatcher, 2)
    assert {dispatcher.allocation.next_worker() for _ in range(3)} == {other}
    assert other.allowance.share == 10


def test_a_lost_worker_that_speaks_is_used_again_and_its_late_results_are_dropped() -> None:
    dispatcher = joined(1, 2)
    first, _ = send(dispatcher, tasks(1), 0.0)
    hear(dispatcher, beat(1, [first]), 0.0)
    now = pass_time(dispatcher, 0.0, LOST_AFTER + 0.2, beat(2))
    assert lost_numbers(dispatcher) == [(0, 1)]
    assert dispatcher.ledger.settle(first, worker_of(dispatcher, 1)) is None
    hear(dispatcher, beat(1, []), now)
    assert kinds(dispatcher) == [fleet_events.Lost, fleet_events.Back]
    assert dispatcher.allocation.capacity == 20


def test_a_worker_that_leaves_is_gone_for_good() -> None:
    dispatcher = joined(1)
    first, _ = send(dispatcher, tasks(1), 0.0)
    hear(dispatcher, beat(1, [first]), 0.0)
    dispatcher.roster.leave(1, "has ended")
    dispatcher.roster.leave(1, "has ended")
    hear(dispatcher, beat(1, [first]), 0.1)  # was on its way
    assert lost_numbers(dispatcher) == [(0, 1)]
    assert kinds(dispatcher) == [fleet_events.Left]
    assert dispatcher.roster.living() == []
    assert room(dispatcher) == 0


def test_the_gap_of_a_master_that_was_stopped_is_nobodys_silence() -> None:
    dispatcher = joined(1)
    send(dispatcher, tasks(1), 0.0)
    dispatcher.tick(0.1)
    dispatcher.tick(60.1)
    assert kinds(dispatcher) == []
    assert lost_numbers(dispatcher) == []
    pass_time(dispatcher, 60.1, LOST_AFTER + 0.2)
    assert kinds(dispatcher) == [fleet_events.Lost]
    assert lost_numbers(dispatcher) == [(0, 1)]


def test_what_ended_while_the_master_was_stopped_is_heard_before_its_worker_is_overdue() -> None:
    dispatcher = joined(1)
    dispatcher.ledger.longest_job = 10.0
    first, _ = send(dispatcher, tasks(2), 0.0)
    dispatcher.tick(0.1)
    dispatcher.tick(60.1)
    assert kinds(dispatcher) == []
    dispatcher.ledger.settle(first, worker_of(dispatcher, 1))
    pass_time(dispatcher, 60.1, LOST_AFTER + 0.2, beat(1, [first]))
    assert kinds(dispatcher) == [fleet_events.Overdue]
    assert lost_numbers(dispatcher) == [(1, 1)]


def test_a_worker_is_ready_once_it_has_answered_a_ping_of_this_master() -> None:
    dispatcher = Dispatcher(10)
    hear(dispatcher, beat(1), 0.0, answers=False)
    assert [worker.instance for worker in dispatcher.roster.to_ping(0.0)] == [1]
    dispatcher.heartbeat(structs.replace(beat(1), master=dispatcher.roster.master + 1, ping=0.1), RUN, 0.1)
    dispatcher.heartbeat(
        structs.replace(beat(1), master=dispatcher.roster.master, ping=9.0), RUN, 0.2
    )  # not sent yet
    assert (dispatcher.roster.living(), room(dispatcher), dispatcher.allocation.next_worker()) == (
        [],
        0,
        None,
    )
    assert kinds(dispatcher) == []
    dispatcher.heartbeat(structs.replace(beat(1), master=dispatcher.roster.master, ping=0.2), RUN, 0.3)
    assert kinds(dispatcher) == [fleet_events.WorkerJoined]
    assert room(dispatcher) == 10
    worker = worker_of(dispatcher, 1)
    assert (worker.presence.echo, worker.presence.reached) == (0.2, 0.3)


def test_a_ping_is_due_each_heartbeat_interval_and_never_to_the_refused_or_silent() -> None:
    dispatcher = joined(1, 2, 3)
    for worker in dispatcher.roster.to_ping(0.0):
        worker.presence.pinged_at(0.0)
    dispatcher.roster.refuse(2, 2, "h", "is wrong", 0.1)
    dispatcher.roster.leave(3, "has ended")
    assert dispatcher.roster.to_ping(HEARTBEAT_SECONDS - 0.1) == []
    assert [worker.instance for worker in dispatcher.roster.to_ping(HEARTBEAT_SECONDS)] == [1]
    pass_time(dispatcher, 0.0, LOST_AFTER + 0.2)
    assert dispatcher.roster.to_ping(60.0) == []


def test_a_worker_whose_results_come_needs_few_pings_and_is_lost_as_long_after_the_last_ones() -> None:
    dispatcher = joined(1)
    worker = worker_of(dispatcher, 1)
    worker.presence.pinged_at(0.0, 3.0)
    pinged = []
    for step in range(1, 121):
        now = step / 10
        if step % 5 == 0:
            first, _ = send(dispatcher, tasks(1), now - 0.3)
            if dispatcher.ledger.settle(first, worker):
                dispatcher.note_progress(worker, 1, first, (first, 0.0), now, 50.0 + now)
        dispatcher.tick(now)
        for _ in dispatcher.roster.to_ping(now):
            pinged.append(now)
            worker.presence.pinged_at(now, 3.0)
    assert pinged == [3.0, 6.0, 9.0, 12.0]
    assert worker.presence.heard == 62.0
    now = pass_time(dispatcher, now, LOST_AFTER)
    assert dispatcher.roster.to_ping(12.0 + HEARTBEAT_SECONDS) == [worker]
    assert kinds(dispatcher) == []
    dispatcher.tick(now + 0.1)
    assert kinds(dispatcher) == [fleet_events.Lost]


def test_late_results_of_jobs_that_arrived_long_ago_do_not_say_that_a_worker_is_reached_now() -> None:
    dispatcher = joined(1)
    worker = worker_of(dispatcher, 1)
    first, _ = send(dispatcher, tasks(2), 0.125, to=1)
    now = pass_time(dispatcher, 0.0, 4.0)
    assert dispatcher.ledger.settle(first, worker)
    dispatcher.note_progress(worker, 1, first, (first, 3.75), now, 54.0)
    assert (worker.presence.last_seen, worker.presence.heard) == (4.0, 50.25)
    now = pass_time(dispatcher, now, 1.5)
    assert kinds(dispatcher) == [fleet_events.CutOff]


def test_a_worker_that_receives_nothing_is_lost_although_its_heartbeats_arrive() -> None:
    dispatcher = joined(1, 2)
    first, _ = send(dispatcher, tasks(2), 0.0, to=1)
    blocked = beat(1, [first])
    now = pass_time(dispatcher, 0.0, LOST_AFTER, beat(2), unreached=blocked)
    assert kinds(dispatcher) == []
    now = pass_time(dispatcher, now, 1.2, beat(2), unreached=blocked)
    (event,) = dispatcher.events
    assert isinstance(event, fleet_events.CutOff)
    assert event.jobs == 2
    assert event.seconds > LOST_AFTER
    assert lost_numbers(dispatcher) == [(0, 1), (1, 1)]
    assert [worker.instance for worker in dispatcher.roster.living()] == [2]
    dispatcher.events.clear()
    now = pass_time(dispatcher, now, 3 * LOST_AFTER, beat(2), unreached=blocked)
    assert kinds(dispatcher) == []  # once is enough
    assert reasons(dispatcher, now) == [NotReady.UNANSWERED]
    hear(dispatcher, beat(1), now)
    assert kinds(dispatcher) == [fleet_events.Back]
    assert reasons(dispatcher, now) == []


def test_nothing_blocks_the_way_to_a_host_where_another_worker_answers() -> None:
    dispatcher = joined(1)
    hear(dispatcher, beat(2), 0.0, answers=False)
    other_host = structs.replace(beat(3), host="another")
    hear(dispatcher, other_host, 0.0, answers=False)
    now = 0.0
    while now < LOST_AFTER + 1.0:
        now += 0.5
        hear(dispatcher, beat(1), now)
        hear(dispatcher, beat(2), now, answers=False)
        hear(dispatcher, other_host, now, answers=False)
        dispatcher.tick(now)
    assert kinds(dispatcher) == [fleet_events.Unanswered, fleet_events.Unreachable]
    assert reasons(dispatcher, now) == [NotReady.UNANSWERED, NotReady.UNREACHABLE]


def test_a_worker_that_is_never_reached_is_named_once() -> None:
    dispatcher = Dispatcher(10)
    hear(dispatcher, beat(1), 0.0, answers=False)
    assert reasons(dispatcher, 0.5) == [NotReady.NEW]
    now = pass_time(dispatcher, 0.0, 3 * LOST_AFTER, unreached=beat(1))
    assert dispatcher.events == [fleet_events.Unreachable(worker_of(dispatcher, 1))]
    assert reasons(dispatcher, now) == [NotReady.UNREACHABLE]
    assert dispatcher.roster.living() == []


@pytest.mark.parametrize("last_unasked", [0.0, 1.4])
def test_a_worker_that_is_cut_off_both_ways_counts_as_silent(last_unasked: float) -> None:
    dispatcher = joined(1)
    hear(dispatcher, beat(1), last_unasked, answers=False)
    pass_time(dispatcher, 0.0, LOST_AFTER + 2)
    assert kinds(dispatcher) == [fleet_events.Lost]


def test_a_gap_of_two_seconds_and_what_tcp_adds_to_it_loses_nothing() -> None:
    dispatcher = joined(1)
    first, _ = send(dispatcher, tasks(2), 0.0)
    hear(dispatcher, beat(1, [first]), 1.0)
    now = pass_time(dispatcher, 1.0, HEARTBEAT_SECONDS + 3.0)
    hear(dispatcher, beat(1, [first]), now)
    pass_time(dispatcher, now, 1.0, beat(1, [first]))
    assert kinds(dispatcher) == []
    assert lost_numbers(dispatcher) == []


def test_the_second_worker_with_an_id_is_refused_before_it_is_used() -> None:
    dispatcher = joined(1)
    hear(dispatcher, beat(2, worker_id=1), 0.1)
    assert kinds(dispatcher) == []
    assert reasons(dispatcher, 0.1) == [NotReady.SAME_ID]
    pass_time(dispatcher, 0.1, 2.1, beat(1), beat(2, worker_id=1))
    (event,) = dispatcher.events
    assert isinstance(event, fleet_events.Refused)
    assert f"{ID_TAKEN} h (pid 1)" in event.reason
    assert [worker.instance for worker in dispatcher.roster.refused()] == [2]
    assert [worker.instance for worker in dispatcher.roster.living()] == [1]
    assert not worker_of(dispatcher, 2).presence.used
    dispatcher.events.clear()
    hear(dispatcher, beat(2, worker_id=1), 2.6)
    hear(dispatcher, beat(1), 2.7)
    dispatcher.roster.leave(2, REFUSED_WORKER)
    assert kinds(dispatcher) == []
    assert dispatcher.roster.refused() == []


def test_of_three_workers_with_one_id_one_stays() -> None:
    dispatcher = joined(1)
    pass_time(dispatcher, 0.0, 4.0, beat(1), beat(2, worker_id=1), beat(3, worker_id=1))
    assert [worker.instance for worker in dispatcher.roster.refused()] == [2, 3]
    assert [worker.instance for worker in dispatcher.roster.living()] == [1]


def test_a_worker_started_again_at_once_with_its_old_id_is_welcome() -> None:
    dispatcher = joined(1)
    hear(dispatcher, beat(2, worker_id=1), 0.1)
    # What the killed one sent last may come a little later.
    hear(dispatcher, beat(1), 0.2)
    pass_time(dispatcher, 0.2, LOST_AFTER + 1.1, beat(2, worker_id=1))
    assert kinds(dispatcher) == [fleet_events.Lost, fleet_events.WorkerJoined]
    assert [worker.instance for worker in dispatcher.roster.living()] == [2]


def test_a_worker_started_again_after_its_end_is_used_at_once() -> None:
    dispatcher = joined(1)
    dispatcher.roster.leave(1, "has ended")
    hear(dispatcher, beat(2, worker_id=1), 0.1)
    assert kinds(dispatcher) == [fleet_events.Left, fleet_events.WorkerJoined]


def test_a_stopped_worker_whose_id_was_taken_meanwhile_is_refused_when_it_wakes() -> None:
    dispatcher = joined(1, 9)
    now = pass_time(dispatcher, 0.0, LOST_AFTER + 0.2, beat(9))
    hear(dispatcher, beat(2, worker_id=1), now)
    pass_time(dispatcher, now, 3.0, beat(2, worker_id=1), beat(1), beat(9))
    assert [worker.instance for worker in dispatcher.roster.refused()] == [1]
    assert [worker.instance for worker in dispatcher.roster.living()] == [9, 2]


def test_a_refused_worker_that_dies_and_speaks_again_owns_nothing_for_ever() -> None:
    dispatcher = joined(1)
    dispatcher.roster.refuse(2, 2, "h", "refused", 0.0)
    first, _ = send(dispatcher, tasks(1), 0.0)
    now = pass_time(dispatcher, 0.0, LOST_AFTER, beat(1))
    hear(dispatcher, beat(2, [first]), now)
    pass_time(dispatcher, now, 2 * LOST_AFTER, beat(1))
    assert lost_numbers(dispatcher) == [(0, 1)]


def test_whoever_is_refused_is_named_once() -> None:
    dispatcher = joined(1)
    dispatcher.roster.refuse(3, 3, "?", "speaks protocol 9", 0.0)
    dispatcher.roster.refuse(3, 3, "?", "speaks protocol 9", 0.1)
    hear(dispatcher, beat(3), 0.2)
    assert dispatcher.events == [fleet_events.Refused(worker_of(dispatcher, 3), "speaks protocol 9")]
    assert [worker.instance for worker in dispatcher.roster.refused()] == [3]
    assert dispatcher.allocation.capacity == 10


def test_the_book_has_room_for_so_many_workers() -> None:
    dispatcher = Dispatcher(10)
    for instance in range(1, MAX_WORKERS + 1):
        hear(dispatcher, beat(instance, capacity=1), 0.0)
    dispatcher.events.clear()
    hear(dispatcher, beat(MAX_WORKERS + 1), 0.0)
    hear(dispatcher, beat(MAX_WORKERS + 2), 0.0)
    assert kinds(dispatcher) == [fleet_events.Full]
    assert len(dispatcher.roster.workers) == MAX_WORKERS
    dispatcher.roster.leave(5, "has ended")
    hear(dispatcher, beat(MAX_WORKERS + 1), 0.0)
    assert kinds(dispatcher) == [fleet_events.Left, fleet_events.WorkerJoined]
    assert len(dispatcher.roster.workers) == MAX_WORKERS


def test_abandoning_returns_all_that_is_in_flight_or_in_line() -> None:
    dispatcher = joined(1)
    first, _ = send(dispatcher, tasks(2), 0.0)
    dispatcher.ledger.send_again(task(7), None)
    hear(dispatcher, beat(1, [first]), 0.1)
    assert dispatcher.abandon() == ([task(0), task(1)], [(task(7), None)])
    hear(dispatcher, beat(1, []), 0.2)
    assert lost_numbers(dispatcher) == []
    assert dispatcher.ledger.settle(first, worker_of(dispatcher, 1)) is None


def test_the_clock_offset_is_the_smallest_difference_of_late() -> None:
    offset = ClockOffset()
    assert offset.seconds == math.inf
    for sent, received in ((0.0, 100.3), (1.0, 101.1), (2.0, 102.5)):
        offset.observe(sent, received)
    assert offset.seconds == pytest.approx(100.1)
    # The other clock is faster: what was true two windows ago no longer is.
    for step in range(2 * int(CLOCK_WINDOW_SECONDS) + 2):
        offset.observe(3.0 + step, 105.0 + step)
    assert offset.seconds == pytest.approx(102.0)


def test_the_clock_offset_of_the_window_before_still_counts() -> None:
    offset = ClockOffset()
    offset.observe(0.0, 100.1)
    offset.observe(CLOCK_WINDOW_SECONDS, CLOCK_WINDOW_SECONDS + 100.4)
    assert offset.seconds == offset.most == pytest.approx(100.1)


def test_the_clock_offset_is_the_middle_of_the_shortest_ways_of_both_directions() -> None:
    """Whatever other messages take: pings and answers are delayed at random, each way by itself."""
    chance, offset = random.Random(3), ClockOffset()
    for second in range(60):
        asked = 1000.0 + second
        answered = asked + 0.15 + chance.expovariate(20)
        received = answered + 0.15 + chance.expovariate(5)
        offset.observe(answered - 400.0, received, asked)
        offset.observe(received - 400.0 + 0.1, received + 0.25 + chance.expovariate(5))
    assert offset.seconds == pytest.approx(400.0, abs=0.01)
    assert offset.most == pytest.approx(400.15, abs=0.02)


def test_the_clock_offset_of_a_clock_that_stalled_is_found_anew() -> None:
    offset = ClockOffset()
    offset.observe(0.1, 100.2, 100.0)
    assert offset.seconds == pytest.approx(100.0)
    # The worker's clock stood still for three seconds, then the master's for as long.
    for moved in (3.0, 0.0):
        offset.observe(1.1, 101.2 + moved, 101.0 + moved)
        assert offset.seconds == pytest.approx(100.0 + moved)


def test_a_late_answer_moves_no_clock_where_the_bounds_contradict_each_other() -> None:
    """By a rounding error, or because a clock has drifted by more than messages take."""
    offset = ClockOffset()
    offset.observe(0.001, 100.002, 100.0)
    assert offset.seconds == pytest.approx(100.0, abs=1e-6)
    # The offset is 3 ms more by now, and the answer takes 2 s.
    offset.observe(20.001, 122.005, 120.004)
    assert offset.seconds == pytest.approx(100.004, abs=1e-6)
    # It is less than it ever was, and no ping is answered.
    offset.observe(22.0, 121.997)
    assert offset.seconds == pytest.approx(99.996, abs=1e-6)


def test_the_load_is_what_happened_between_two_heartbeats() -> None:
    load = WorkerLoad()
    assert load.cpu_share is None
    assert load.lag_percentile(99) is None
    load.observe(10.0, 5.0, [1000] * LAG_BUCKETS)  # counts from before the first one are not the run's
    load.observe(10.25, 5.25, [0] * LAG_BUCKETS)
    assert load.cpu_share is None  # a worker that goes on after a pause has much to do for a moment
    load.observe(12.0, 6.0, [98, 1, 0, 0, 1] + [0] * (LAG_BUCKETS - 5))
    assert load.cpu_share == pytest.approx(0.5)
    assert load.lag_percentile(50) == pytest.approx(50e-6)
    assert load.lag_percentile(99) == pytest.approx(50e-6 * 2**0.5)
    assert load.lag_percentile(100) == pytest.approx(200e-6)
    load.observe(13.0, 6.5, [1] * LAG_BUCKETS, 0.3)
    assert load.stood_still(1.0, (3.0, 3.3), 1) == 1
    assert (load.lag_max, load.gaps) == (0.3, [(3.0, 3.3)])
    load.clear()
    assert load.cpu_share is None
    assert (load.lag_max, load.gaps) == (0.0, [])


def still(dispatcher: Dispatcher, instance: int, gaps: list[tuple[float, float]], now: float) -> None:
    hear(dispatcher, structs.replace(beat(instance, clock=now), gaps=gaps), now)


def test_a_gap_that_goes_on_after_it_was_told_is_one_gap() -> None:
    dispatcher = joined(1)
    for end in (5.0, 6.0, 7.0):
        still(dispatcher, 1, [(4.0, end)], end)
    still(dispatcher, 1, [(7.5, 8.0)], 8.0)
    assert worker_of(dispatcher, 1).load.gaps == [(4.0, 7.0), (7.5, 8.0)]


def test_gaps_are_within_the_run_and_in_order() -> None:
    dispatcher = joined(1)
    dispatcher.begin(10, 10.0)
    still(dispatcher, 1, [(1.0, 2.0), (9.0, 10.5), (11.0, 99.0), (15.0, 14.0), (1e9, 2e9)], 12.0)
    assert worker_of(dispatcher, 1).load.gaps == [(10.0, 10.5), (11.0, 12.0)]


def test_gaps_are_kept_of_workers_that_were_used_and_not_without_end() -> None:
    dispatcher = joined(*range(1, 21))
    hear(dispatcher, structs.replace(beat(99, clock=1.0), gaps=[(0.2, 0.4)]), 1.0, answers=False)
    assert worker_of(dispatcher, 99).load.gaps == []
    for second in range(1, 61):
        gaps = [(second + place / 20, second + (place + 0.5) / 20) for place in range(20)]
        for instance in range(1, 21):
            still(dispatcher, instance, gaps, second + 1.0)
    loads = [worker.load for worker in dispatcher.roster.workers.values()]
    assert sum(len(load.gaps) for load in loads) == MAX_FLEET_GAPS
    assert sum(load.gaps_dropped for load in loads) == 60 * 20 * 20 - MAX_FLEET_GAPS
    dispatcher.begin(10, 100.0)
    still(dispatcher, 1, [(101.0, 102.0)], 102.0)
    assert len(worker_of(dispatcher, 1).load.gaps) == 1


def test_batches_that_ended_are_forgotten_whatever_their_worker_says_of_them() -> None:
    dispatcher = joined(1)
    worker = worker_of(dispatcher, 1)
    for number in range(10):
        first, _ = send(dispatcher, [task(number)], 0.0)
        dispatcher.ledger.settle(first, worker)
        dispatcher.note_progress(worker, 1, 0, (0, 0.0), 0.0, 0.0)
        first, _ = send(dispatcher, [task(number)], 0.0)
        dispatcher.hand_back([first], worker, 10, asked=True)
        dispatcher.ledger.backlog.clear()
    assert (list(worker.held.unacknowledged), list(worker.held.unbegun)) == ([], [])


@pytest.mark.parametrize("says", ["the same", "one more each time"])
def test_a_worker_that_keeps_a_job_and_always_has_just_begun_one_is_overdue(says: str) -> None:
    dispatcher = joined(1, limit=2)
    dispatcher.ledger.longest_job = 50.0
    worker = worker_of(dispatcher, 1)
    first, _ = send(dispatcher, tasks(20), 0.0)
    for turn in range(1, 11):
        now = turn * 20.0
        if says == "one more each time":
            dispatcher.ledger.settle(first + turn, worker)
        begun = first + (turn + 1 if says == "one more each time" else 0)
        dispatcher.note_progress(worker, 0, begun, (first, 0.0), now, 0.0)
        worker.presence.reached = worker.presence.last_seen = now
        dispatcher._find_overdue(now)
        if happened := kinds(dispatcher):
            break
    assert happened == [fleet_events.Overdue]
    # It may have begun just after one look.
    assert now <= 2 * dispatcher.ledger.longest_job + 40.0
    assert not worker.presence.ready


def test_a_worker_that_is_never_done_and_keeps_no_job_is_not_overdue() -> None:
    dispatcher = joined(1, limit=1)
    dispatcher.ledger.longest_job = 50.0
    worker = worker_of(dispatcher, 1)
    first, _ = send(dispatcher, tasks(20), 0.0)
    for number in range(first, first + 20):
        now = (number - first) * 45.0
        dispatcher.note_progress(worker, 0, number, (first, 0.0), now, 0.0)
        dispatcher._find_overdue(now + 44.0)
        dispatcher.ledger.settle(number, worker)
        assert kinds(dispatcher) == []


def test_a_worker_whose_users_think_is_not_overdue() -> None:
    dispatcher = joined(1, limit=1)
    dispatcher.ledger.longest_job = 50.0
    worker = worker_of(dispatcher, 1)
    first, _ = send(dispatcher, tasks(4), 0.0)
    second, _ = send(dispatcher, tasks(4), 0.0, to=1)
    now = 0.0
    for number in range(first, second):
        now += 40.0
        dispatcher.ledger.settle(number, worker)
        dispatcher.note_progress(worker, 1, number, (second, 0.0), now, 0.0)
    worker.presence.reached = worker.presence.last_seen = now + 49.0
    dispatcher._find_overdue(now + 49.0)  # the user thinks, and the second batch has not begun
    assert kinds(dispatcher) == []
    dispatcher._find_overdue(now + 51.0)
    assert kinds(dispatcher) == [fleet_events.Overdue]


@pytest.mark.parametrize("slope", [0.0, 600e-6, -600e-6])
def test_the_slope_of_a_clock_is_found_in_spite_of_the_time_on_the_way(slope: float) -> None:
    clocks = WorkerClocks()
    on_the_way = [0.0003, 0.002, 0.0004, 0.08, 0.0003, 0.001]
    for second in range(60):
        late = on_the_way[second % 6]
        sent = 50.0 + second
        clocks.observe(sent - 100 - slope * second, sent + late, sent - 0.0004, 0.25 + late)
        if second < 10:
            assert clocks.slope is None
    assert clocks.slope == pytest.approx(slope, abs=30e-6)
    # The worker's time of day is 0.25 s behind; 0.7 ms went by from the ping to the answer.
    assert clocks.wall_offset == pytest.approx(0.2503 - 0.0007)


def test_the_time_on_the_way_is_no_offset_of_clocks() -> None:
    """A link of 150 ms in each direction, or of 300 ms in one: the times of day may be equal."""
    for there, back in ((0.15, 0.15), (0.3, 0.0), (0.0, 0.3)):
        clocks = WorkerClocks()
        for second in range(20):
            asked = float(second)
            sent = asked + there
            clocks.observe(sent + 7.0, sent + back, asked, back)
        assert clocks.wall_offset == pytest.approx(0.0, abs=1e-9)
        assert clocks.slope == pytest.approx(0.0, abs=1e-9)
    behind = WorkerClocks()
    behind.observe(0.0, 1.0, None, 5.15)
    assert behind.wall_offset is None
    behind.observe(0.0, 1.0, 0.7, 5.15)
    assert behind.wall_offset == pytest.approx(4.85)  # at least: 5.0 less half of the round trip
    # A step of a clock in the middle of the run.
    for wall in (0.15, 0.15):
        behind.observe(0.0, 1.0, 0.7, wall)
    assert behind.wall_offset == 0.0


def test_one_late_answer_at_the_end_hides_no_slope() -> None:
    clocks = WorkerClocks()
    for second in range(60):
        late = 0.09 if second == 59 else 0.0003
        clocks.observe((1 - 1e-3) * second, second + late, second - late, None)
    assert clocks.slope == pytest.approx(1e-3, abs=100e-6)


def test_heartbeats_that_a_loaded_machine_delays_make_no_slope() -> None:
    clocks = WorkerClocks()
    for second in range(16):
        late = 0.0003 if second < 5 else 0.09
        clocks.observe(float(second), second + late, second - 0.0003, None)
    assert clocks.slope == 0


class AnyOrder(RuleBasedStateMachine):
    """Whatever comes, in whatever order: each task is in one place, and ends once.

    The rules know of no worker's manners: they claim what others have, answer for what they never
    got, speak after they died, and fall silent in the middle of a batch.
    """

    instances = st.integers(1, 6)

    @initialize(limit=st.integers(1, 12))
    def begin(self, limit: int) -> None:
        self.dispatcher = Dispatcher(limit)
        self.now = 1000.0
        self.dispatcher.tick(self.now)
        self.made = 0
        self.ended: list[int] = []
        self.batches: list[tuple[int, int]] = []
        self.leavers: set[int] = set()
        self.answered: set[int] = set()

    def job_ids(self) -> list[int]:
        return [first + place for first, size in self.batches for place in range(size)]

    @precondition(lambda self: self.dispatcher.roster.workers)
    @rule(size=st.integers(1, 5), with_history=st.booleans(), data=st.data())
    def send(self, size: int, with_history: bool, data: st.DataObject) -> None:
        dispatcher = self.dispatcher
        batch: list[Task] = []
        histories: list[History | None] = []
        while len(batch) < size:
            if dispatcher.ledger.backlog:
                again, history = dispatcher.ledger.backlog.popleft()
            else:
                again, history = task(self.made), History(1, self.now, {}) if with_history else None
                self.made += 1
            batch.append(again)
            histories.append(history)
        worker = worker_of(
            dispatcher, data.draw(st.sampled_from(sorted(dispatcher.roster.workers)), "worker")
        )
        first, jobs = dispatcher.send(batch, self.now, worker, histories if any(histories) else ())
        assert [job[1:] for job in jobs] == batch
        assert all(
            dispatcher.ledger.in_flight[number].history(number) == history
            for number, history in enumerate(histories, first)
        )
        if data.draw(st.sampled_from([False, False, True]), "refused by the socket"):
            before = list(dispatcher.ledger.backlog)
            dispatcher.unsend(first)
            assert list(dispatcher.ledger.backlog) == [*zip(batch, histories, strict=True), *before]
        else:
            self.batches.append((first, size))

    @rule(
        instance=instances,
        data=st.data(),
        run_id=st.sampled_from([RUN, RUN, RUN, 0, RUN + 1]),
        answered=st.sampled_from([0.0, 0.0, 0.5, 20.0, None]),
    )
    def heartbeat(self, instance: int, data: st.DataObject, run_id: int, answered: float | None) -> None:
        firsts = [first for first, _ in self.batches] + [99999]
        held = data.draw(st.lists(st.sampled_from(firsts), max_size=4), "held")
        worker_id = (instance + 1) // 2  # two instances an id
        capacity = data.draw(st.integers(0, 8), "capacity")
        message = beat(instance, held, worker_id=worker_id, run_id=run_id, capacity=capacity, clock=self.now)
        if answered is not None:
            # Unasked, or the answer to a ping that was sent so long ago.
            message = structs.replace(message, master=self.dispatcher.roster.master, ping=self.now - answered)
            self.answered.add(instance)
        before = self.dispatcher.roster.known(instance)
        was_ready = before is not None and before.presence.ready
        self.dispatcher.heartbeat(message, RUN, self.now)
        worker = worker_of(self.dispatcher, instance)
        assert worker.presence.alive != (instance in self.leavers)
        claimed = {first for first, batch in worker.held.batches.items() if batch.claimed}
        assert claimed <= (set(held) if run_id == RUN else set())
        assert worker.presence.ready <= (was_ready or instance in self.answered)

    @precondition(lambda self: self.batches)
    @rule(instance=instances, data=st.data(), again=st.booleans())
    def result(self, instance: int, data: st.DataObject, again: bool) -> None:
        worker = self.dispatcher.roster.known(instance)
        if worker is None:
            return
        job_id = data.draw(st.sampled_from(self.job_ids()), "job")
        expected = self.dispatcher.ledger.in_flight.get(job_id)
        late = self.dispatcher.ledger.late_results
        foreign = self.dispatcher.ledger.foreign_results
        batch = self.dispatcher.ledger.settle(job_id, worker)
        if expected is not None and expected.worker is not worker:
            assert batch is None
            assert self.dispatcher.ledger.foreign_results == foreign + 1
            assert self.dispatcher.ledger.in_flight[job_id] is expected
            return
        assert batch is expected
        if batch is None:
            assert self.dispatcher.ledger.late_results == late + 1
        elif again:
            self.dispatcher.ledger.send_again(batch.task(job_id), batch.history(job_id))
        else:
            self.ended.append(batch.task(job_id)[3])

    @precondition(lambda self: self.batches)
    @rule(instance=instances, data=st.data())
    def hand_back(self, instance: int, data: st.DataObject) -> None:
        worker = self.dispatcher.roster.known(instance)
        if worker is not None:
            job_ids = data.draw(st.lists(st.sampled_from(self.job_ids()), max_size=6), "jobs")
            others = {
                job for job, batch in self.dispatcher.ledger.in_flight.items() if batch.worker is not worker
            }
            self.dispatcher.hand_back(job_ids, worker, data.draw(st.integers(0, 8), "capacity"))
            assert set(job_ids) & set(self.dispatcher.ledger.in_flight) == set(job_ids) & others

    @rule(instance=instances)
    def leave(self, instance: int) -> None:
        if self.dispatcher.roster.known(instance):
            self.leavers.add(instance)
        self.dispatcher.roster.leave(instance, "has ended")

    @rule(instance=instances)
    def refuse(self, instance: int) -> None:
        self.dispatcher.roster.refuse(instance, (instance + 1) // 2, "h", "is refused", self.now)

    @rule(seconds=st.floats(0.01, HEARTBEAT_SECONDS))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        self.dispatcher.tick(self.now)

    @rule(seconds=st.floats(HEARTBEAT_SECONDS + 0.01, 100.0))
    def master_was_stopped(self, seconds: float) -> None:
        alive = {
            worker.instance for worker in self.dispatcher.roster.workers.values() if worker.presence.alive
        }
        in_flight = set(self.dispatcher.ledger.in_flight)
        self.now += seconds
        self.dispatcher.tick(self.now)
        assert alive == {
            worker.instance for worker in self.dispatcher.roster.workers.values() if worker.presence.alive
        }
        assert in_flight == set(self.dispatcher.ledger.in_flight)

    @rule()
    def abandon(self) -> None:
        begun, not_begun = self.dispatcher.abandon()
        self.ended.extend(each[3] for each in (*begun, *(task for task, _ in not_begun)))

    @rule(again=st.booleans())
    def take_lost(self, again: bool) -> None:
        for each, _ in self.dispatcher.ledger.take_lost():
            if again:
                self.dispatcher.ledger.send_again(each, None)
            else:
                self.ended.append(each[3])

    @invariant()
    def every_task_is_in_one_place(self) -> None:
        if not hasattr(self, "dispatcher"):
            return
        dispatcher = self.dispatcher
        places = (
            self.ended
            + [batch.task(job)[3] for job, batch in dispatcher.ledger.in_flight.items()]
            + [each[3] for each, _ in dispatcher.ledger.backlog]
            + [each[3] for each, _ in dispatcher.ledger.lost]
        )
        assert sorted(places) == list(range(self.made))

    @invariant()
    def the_book_agrees_with_itself(self) -> None:
        if not hasattr(self, "dispatcher"):
            return
        dispatcher = self.dispatcher
        living = [each for each in dispatcher.roster.workers.values() if each.presence.ready]
        assert dispatcher.roster.living() == living
        assert all(
            each.presence.alive and each.presence.used and not each.presence.refused for each in living
        )
        assert len({each.worker_id for each in living}) == len(living)
        assert {each.instance for each in living} <= self.answered
        capacity = sum(worker.allowance.capacity for worker in living)
        assert dispatcher.allocation.capacity == capacity
        assert room(dispatcher) == min(dispatcher.allocation.limit, capacity) - len(
            dispatcher.ledger.in_flight
        )
        outstanding = Counter(batch.worker.instance for batch in dispatcher.ledger.in_flight.values())
        assert {
            each.instance: each.held.outstanding
            for each in dispatcher.roster.workers.values()
            if each.held.outstanding
        } == (outstanding)
        assert all(each.allowance.share <= each.allowance.capacity for each in living)
        assert sum(each.allowance.share for each in living) == min(dispatcher.allocation.limit, capacity)
        assert dispatcher.allocation.ahead == sum(
            each.allowance.most - each.allowance.share for each in living
        )
        following = dispatcher.allocation.next_worker()
        able = [
            each for each in living if each.held.outstanding < each.allowance.most and not each.allowance.away
        ]
        assert following is None or following in able
        if any(each.held.outstanding < each.allowance.share for each in able):
            assert following is not None
        open_batches = dispatcher.ledger._batches
        assert set(map(id, dispatcher.ledger.in_flight.values())) == set(map(id, open_batches.values()))
        for first, batch in open_batches.items():
            members = [job for job, each in dispatcher.ledger.in_flight.items() if each is batch]
            assert batch.remaining == len(members)
            assert all(first <= job < first + batch.size for job in members)
        for worker in dispatcher.roster.workers.values():
            assert worker.presence.ready or not any(each.claimed for each in worker.held.batches.values())
            assert not (worker.presence.alive and worker.presence.ended)
            own = [item for item in open_batches.items() if item[1].worker is worker]
            assert [*worker.held.batches.items()] == own

    @invariant()
    def each_loss_names_its_worker(self) -> None:
        if hasattr(self, "dispatcher"):
            named = {event.worker.instance for event in self.dispatcher.events if isinstance(event, LOSSES)}
            assert {worker.instance for _, worker in self.dispatcher.ledger.lost} <= named

    def teardown(self) -> None:
        if not hasattr(self, "dispatcher"):
            return
        for _ in range(40):
            self.now += LOST_AFTER / 30
            self.dispatcher.tick(self.now)
        assert not self.dispatcher.ledger.in_flight
        assert not self.dispatcher.ledger._batches
        assert not any(worker.presence.alive for worker in self.dispatcher.roster.workers.values())
        self.every_task_is_in_one_place()
        self.the_book_agrees_with_itself()


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(stateful_step_count=50)


def test_another_run_uses_only_workers_that_answer_again_and_counts_from_zero() -> None:
    dispatcher = Dispatcher(4)
    for instance in (1, 2):
        hear(dispatcher, beat(instance), 0.0)
    first, _ = send(dispatcher, tasks(1), 0.0, to=1)
    assert dispatcher.ledger.settle(first, worker_of(dispatcher, 2)) is None
    assert dispatcher.ledger.settle(first, worker_of(dispatcher, 1))
    assert dispatcher.ledger.settle(first, worker_of(dispatcher, 1)) is None
    assert (dispatcher.ledger.late_results, dispatcher.ledger.foreign_results) == (1, 1)
    kinds(dispatcher)

    # Nobody listened for an hour; one worker went away meanwhile.
    assert [each.instance for each in dispatcher.begin(12, 3600.0)] == [1, 2]
    assert (dispatcher.ledger.late_results, dispatcher.ledger.foreign_results) == (0, 0)
    assert worker_of(dispatcher, 2).held.foreign_results == 0
    assert room(dispatcher) == 0
    dispatcher.tick(3600.1)
    hear(dispatcher, beat(2), 3600.2, answers=False)  # said long ago
    assert dispatcher.allocation.next_worker() is None
    hear(dispatcher, beat(1), 3600.3)
    assert room(dispatcher) == 10
    assert worker_of(dispatcher, 1).allowance.share == 10
    for quarters in range(1, int(4 * LOST_AFTER) + 2):
        hear(dispatcher, beat(1), 3600.3 + quarters / 4)
        dispatcher.tick(3600.3 + quarters / 4)
    assert not worker_of(dispatcher, 2).presence.alive
    assert [each.instance for each in dispatcher.roster.living()] == [1]
    assert kinds(dispatcher) == [fleet_events.WorkerJoined]


# -- groups of users ------------------------------------------------------------------------------


def with_groups(*limits: int) -> Dispatcher:
    """A dispatcher of a run with a group for each limit, and two workers with room for all of them."""
    dispatcher = Dispatcher()
    dispatcher.begin(0, 0.0, [limit / sum(limits) for limit in limits])
    for account, limit in zip(dispatcher.accounts, limits, strict=True):
        account.allocation.limit = limit
    for instance in (1, 2):
        hear(dispatcher, beat(instance, capacity=sum(limits)), 0.0)
    dispatcher.tick(0.0)
    dispatcher.events.clear()
    return dispatcher


def test_each_group_has_shares_of_its_own() -> None:
    dispatcher = with_groups(8, 4)
    for account in dispatcher.accounts:
        account.allocation.share_out()
    shares = [[state.allowance.share for state in account.living()] for account in dispatcher.accounts]
    assert shares == [[4, 4], [2, 2]]
    web, backup = dispatcher.accounts
    for account in dispatcher.accounts:
        account.allocation.keeps_ahead = False
    # What one group has in flight takes no room from the other.
    while (worker := web.allocation.next_worker()) is not None:
        web.send(tasks(web.allocation.room(worker)), 0.0, worker)
    assert (len(web.ledger.in_flight), len(backup.ledger.in_flight)) == (8, 0)
    assert backup.allocation.next_worker() is not None
    for account in dispatcher.accounts:
        assert [state.worker_id for state in account.living()] == [1, 2]


def test_jobs_of_groups_have_numbers_apart_and_are_lost_with_their_worker() -> None:
    dispatcher = with_groups(1, 1)
    web, backup = dispatcher.accounts
    sent = []
    for account in dispatcher.accounts:
        first, _ = account.send(tasks(3), 0.0, account.living()[0])
        sent.append(first)
    assert sent[0] != sent[1]
    # A result of one group settles no job of the other.
    assert backup.ledger.settle(sent[0], backup.living()[0]) is None
    hear(dispatcher, beat(1, sent, capacity=2), 1.0)
    assert (len(web.ledger.in_flight), len(backup.ledger.in_flight)) == (3, 3)
    hear(dispatcher, beat(1, sent[:1], capacity=2), 2.0)
    assert (len(web.ledger.in_flight), len(backup.ledger.in_flight)) == (3, 0)
    dispatcher.roster.leave(1, "it was told to")
    assert not web.ledger.in_flight
    assert [state.worker_id for state in backup.living()] == [2]
    # One job of each had begun, as far as is known.
    assert [len(account.ledger.take_lost()) for account in dispatcher.accounts] == [1, 1]
    assert [len(account.ledger.backlog) for account in dispatcher.accounts] == [2, 2]


def test_a_worker_that_keeps_a_job_of_any_group_is_used_no_more() -> None:
    dispatcher = with_groups(1, 1)
    backup = dispatcher.accounts[1]
    backup.ledger.longest_job = 60.0
    first, _ = backup.send(tasks(1), 0.0, backup.living()[0])
    for now in range(1, 130):
        for instance in (1, 2):
            hear(dispatcher, beat(instance, [first] if instance == 1 else [], capacity=2), float(now))
        dispatcher.tick(float(now))
    assert fleet_events.Overdue in kinds(dispatcher)
    assert [len(account.living()) for account in dispatcher.accounts] == [1, 1]


def test_the_capacity_of_workers_is_divided_among_groups_where_it_is_not_enough() -> None:
    dispatcher = with_groups(30, 10)
    hear(dispatcher, beat(1, capacity=4), 1.0)
    hear(dispatcher, beat(2, capacity=4), 1.0)
    for account in dispatcher.accounts:
        account.allocation.share_out()
    shares = [sum(state.allowance.share for state in account.living()) for account in dispatcher.accounts]
    assert shares == [6, 2]
