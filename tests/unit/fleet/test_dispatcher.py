"""Which worker holds which job, without a roster and an allocation."""

from __future__ import annotations

import math
from dataclasses import asdict, fields

import pytest

from ssbench.fleet import fleet_events
from ssbench.fleet.dispatcher import JobCounts, JobLedger
from ssbench.fleet.wire import LOST_AFTER
from ssbench.fleet.worker_state import History, Task, TaskBatch, WorkerState


def task(number: int) -> Task:
    return (1, 2, 3, number, 5)


def tasks(*numbers: int) -> list[Task]:
    return [task(number) for number in numbers]


def claimed(worker: WorkerState) -> set[int]:
    return {first for first, batch in worker.held.batches.items() if batch.claimed}


class Book:
    """A ledger, the events that it told of, and workers that are ready."""

    def __init__(self, numbers: int = 0) -> None:
        self.events: list[fleet_events.Event] = []
        self.ledger = JobLedger(self.events.append, numbers)

    def worker(self, number: int = 1) -> WorkerState:
        made = WorkerState(number, number, "h", 1, "1", 10, 0.0)
        made.presence.ready = True
        return made

    def send(self, worker: WorkerState, *numbers: int, now: float = 0.0, users: int = 1) -> int:
        return self.ledger.send(tasks(*numbers), now, worker, users)[0]

    @property
    def backlog(self) -> list[int]:
        return [each[3] for each, _ in self.ledger.backlog]


def test_jobs_are_numbered_one_after_another_above_a_number() -> None:
    book = Book(100)
    worker = book.worker()
    first, jobs = book.ledger.send(tasks(7, 8), 1.0, worker, 3)
    assert (first, jobs) == (101, [(101, 1, 2, 3, 7, 5), (102, 1, 2, 3, 8, 5)])
    assert book.send(worker, 9) == 103
    assert [*book.ledger.in_flight] == [101, 102, 103]
    assert (worker.held.outstanding, worker.held.users_told) == (3, 1)


def test_a_worker_that_gets_jobs_may_be_asked_to_hand_back_again() -> None:
    book, worker = Book(), Book().worker()
    assert not worker.held.recalled  # a new one was asked for nothing
    worker.held.recalled = True
    book.send(worker, 1)
    assert not worker.held.recalled


def test_what_could_not_be_sent_is_first_in_line_in_its_order() -> None:
    book = Book()
    worker = book.worker()
    book.ledger.send_again(task(9), None)
    book.send(worker, 1)
    first = book.send(worker, 2, 3)
    assert book.ledger.unsend(first) is worker
    assert book.backlog == [2, 3, 9]
    assert worker.held.outstanding == 1
    assert [*book.ledger.in_flight] == [1]
    assert [batch.first for batch in worker.held.unacknowledged] == [1]
    assert [batch.first for batch in worker.held.unbegun] == [1]


def test_a_result_settles_a_job_once_and_names_its_batch() -> None:
    book = Book()
    worker = book.worker()
    first = book.send(worker, 1, 2)
    batch = book.ledger.settle(first, worker)
    assert batch is not None
    assert (batch.first, batch.remaining, worker.held.outstanding) == (first, 1, 1)
    assert claimed(worker) == {first}  # a result claims its batch
    assert book.ledger.settle(first, worker) is None
    assert (book.ledger.late_results, book.ledger.foreign_results) == (1, 0)
    assert book.ledger.settle(first + 1, worker) is batch
    assert not worker.held.batches
    assert not book.ledger.in_flight
    assert book.ledger.oldest_begun is None


def test_a_result_of_one_that_is_not_ready_claims_nothing() -> None:
    book = Book()
    worker = book.worker()
    first = book.send(worker, 1, 2)
    worker.presence.ready = False
    assert book.ledger.settle(first, worker) is not None
    assert not claimed(worker)


def test_a_job_stays_with_the_worker_that_has_it_and_another_is_named_once() -> None:
    book = Book()
    one, other = book.worker(1), book.worker(2)
    first = book.send(one, 1, 2)
    assert book.ledger.settle(first, other) is None
    assert book.events == [fleet_events.Foreign(other)]
    assert book.ledger.settle(first + 1, other) is None
    assert book.ledger.foreign_results == other.held.foreign_results == 2
    assert book.events == [fleet_events.Foreign(other)]
    assert len(book.ledger.in_flight) == one.held.outstanding == 2


def test_impossible_results_are_counted_and_named_once_a_worker() -> None:
    book = Book()
    one, other = book.worker(1), book.worker(2)
    for worker in (one, one, other):
        book.ledger.note_invalid(worker, "why")
    assert book.ledger.invalid_results == 3
    assert (one.held.invalid_results, other.held.invalid_results) == (2, 1)
    assert book.events == [fleet_events.Invalid(one, "why"), fleet_events.Invalid(other, "why")]


def test_another_run_counts_from_0() -> None:
    book = Book()
    worker = book.worker()
    book.ledger.settle(99, worker)
    book.ledger.note_invalid(worker, "why")
    first = book.send(worker, 1)
    book.ledger.settle(first, book.worker(2))
    book.ledger.hand_back([first], worker)
    book.ledger.passed_on = 1
    book.ledger.begin()
    assert {each.name: getattr(book.ledger, each.name) for each in fields(JobCounts)} == asdict(JobCounts())


def test_what_is_handed_back_is_first_in_line_and_counted_unless_it_was_asked_for() -> None:
    book = Book()
    worker = book.worker()
    book.ledger.send_again(task(9), None)
    first = book.send(worker, 1, 2, 3)
    book.ledger.hand_back([first + 1, first + 2], worker)
    assert (book.backlog, book.ledger.handed_back) == ([2, 3, 9], 2)
    book.ledger.hand_back([first, first + 1], worker, asked=True)  # the second of them it has handed back
    assert (book.backlog, book.ledger.handed_back, book.ledger.late_results) == ([1, 2, 3, 9], 2, 0)
    assert not worker.held.unacknowledged
    assert not worker.held.unbegun


def test_jobs_of_another_are_not_handed_back() -> None:
    book = Book()
    one, other = book.worker(1), book.worker(2)
    first = book.send(one, 1)
    book.ledger.hand_back([first], other)
    assert (book.backlog, book.ledger.handed_back, one.held.outstanding) == ([], 0, 1)


def test_a_turn_is_from_when_a_batch_was_sent_and_counts_what_ended_since() -> None:
    book = Book()
    worker = book.worker()
    first = book.send(worker, 1, 2, now=1.0)
    assert book.ledger.note_progress(worker, 1, first, first, 3.0) == (1, 1.0)
    assert worker.held.progressed_at == 3.0
    second = book.send(worker, 3, now=4.0)
    assert book.ledger.note_progress(worker, 0, first, first, 5.0) is None  # it said so before
    assert worker.held.progressed_at == 3.0
    assert book.ledger.note_progress(worker, 2, second, second, 6.0) == (2, 4.0)
    assert worker.held.completed == 3
    assert claimed(worker) == {first, second}


def test_a_message_claims_its_batch_and_those_before_but_not_the_ones_after() -> None:
    book = Book()
    worker = book.worker()
    firsts = [book.send(worker, number) for number in (1, 2, 3)]
    book.ledger.note_progress(worker, 0, 0, firsts[1], 1.0)
    assert claimed(worker) == {*firsts[:2]}
    assert [batch.first for batch in worker.held.unacknowledged] == firsts[2:]


@pytest.mark.parametrize("ready", [True, False])
def test_only_a_ready_worker_claims_what_it_holds_and_only_its_own(ready: bool) -> None:
    book = Book()
    one, other = book.worker(1), book.worker(2)
    first, second = book.send(one, 1), book.send(other, 2)
    one.presence.ready = ready
    book.ledger.compare(one, [first, second, 99])
    assert claimed(one) == ({first} if ready else set())
    assert not claimed(other)


def test_a_claimed_batch_that_is_left_out_is_dropped() -> None:
    book = Book()
    worker = book.worker()
    first, second = book.send(worker, 1, 2), book.send(worker, 3)
    book.ledger.compare(worker, [first, second])
    book.ledger.compare(worker, [second])
    assert book.events == [
        fleet_events.Dropped(worker, 1)
    ]  # it runs one at once, so the other one had not begun
    assert book.ledger.take_lost() == [(task(1), worker)]
    assert book.ledger.take_lost() == []
    assert (book.backlog, book.ledger.passed_on, worker.held.outstanding) == ([2], 1, 1)
    assert [*book.ledger.in_flight] == [second + 0]


def test_of_a_lost_worker_what_may_have_begun_is_lost_and_the_rest_is_first_in_line() -> None:
    book = Book()
    worker = book.worker()
    book.ledger.send_again(task(9), None)
    book.send(worker, 1, 2, users=2)
    book.send(worker, 3, 4, users=2)
    book.ledger.settle(1, worker)
    assert book.ledger.lose(worker) == 2
    assert [each[3] for each, _ in book.ledger.take_lost()] == [2, 3]
    assert book.backlog == [4, 9]
    history = book.ledger.backlog[0][1]
    assert history is not None
    assert history.in_doubt
    assert (history.retries, history.due) == (0, None)
    assert worker.held.outstanding == 0
    assert not book.ledger.in_flight


def test_what_a_worker_said_had_begun_is_lost_however_few_it_may_run() -> None:
    book = Book()
    worker = book.worker()
    first = book.send(worker, 1, 2, 3)
    book.ledger.note_progress(worker, 0, first + 1, first, 1.0)
    assert book.ledger.lose(worker) == 2
    assert book.backlog == [3]


def test_earlier_batches_that_stay_are_the_first_to_have_begun() -> None:
    book = Book()
    worker = book.worker()
    book.send(worker, 1, 2, users=3)
    second = book.send(worker, 3, 4, users=3)
    assert book.ledger.lose(worker, {second}) == 1
    assert book.backlog == [4]
    assert [*book.ledger.in_flight] == [1, 2]


def test_a_due_time_and_what_was_spent_go_with_a_job() -> None:
    book = Book()
    worker = book.worker()
    earlier = History(1, 2.0, {"HTTP 401": 1})
    book.ledger.send(tasks(1, 2), 0.0, worker, 0, (earlier, None), (7.0, 8.0))
    book.ledger.lose(worker)
    (_, first), (_, second) = book.ledger.backlog
    assert first == History(1, 2.0, {"HTTP 401": 1}, in_doubt=True)
    assert second == History(0, 0.0, {}, due=8.0, in_doubt=True)


def test_what_is_handed_back_is_still_due_when_it_was_and_beyond_doubt() -> None:
    book = Book()
    worker = book.worker()
    first, _ = book.ledger.send(tasks(1), 0.0, worker, 1, (), (7.0,))
    book.ledger.hand_back([first], worker)
    first, _ = book.ledger.send(tasks(2), 0.0, worker, 1)
    book.ledger.hand_back([first], worker)
    assert [history for _, history in book.ledger.backlog] == [None, History(0, 0.0, {}, due=7.0)]


def test_abandoning_tells_what_may_have_begun_from_what_has_not() -> None:
    book = Book()
    worker = book.worker()
    tried = History(1, 0.0, {"HTTP 401": 1})
    book.ledger.send_again(task(8), tried)
    book.ledger.send_again(task(9), None)
    book.send(worker, 1, 2)
    begun, not_begun = book.ledger.abandon()
    assert [each[3] for each in begun] == [1, 8]
    assert [each[3] for each, _ in not_begun] == [2, 9]
    assert not book.ledger.backlog
    assert not book.ledger.in_flight
    assert book.ledger.passed_on == 0  # they went to nobody


def test_a_batch_that_is_not_claimed_in_time_is_lost() -> None:
    book = Book()
    worker = book.worker()
    first, second = book.send(worker, 1), book.send(worker, 2, now=1.0)
    book.ledger.find_unconfirmed(LOST_AFTER)
    assert not book.events
    book.ledger.compare(worker, [second])
    book.ledger.find_unconfirmed(LOST_AFTER + 0.1)
    assert book.events == [fleet_events.Unconfirmed(worker, 1)]
    book.ledger.find_unconfirmed(2 * LOST_AFTER)
    assert len(book.events) == 1
    assert [*book.ledger.in_flight] == [second]
    assert first not in book.ledger.in_flight


def test_what_the_master_was_delayed_does_not_count_against_a_claim() -> None:
    book = Book()
    worker = book.worker()
    book.send(worker, 1)
    book.ledger.forgive(5.0, 5.0)
    book.ledger.find_unconfirmed(LOST_AFTER + 5.0)
    assert not book.events
    book.ledger.find_unconfirmed(LOST_AFTER + 5.1)
    assert book.events == [fleet_events.Unconfirmed(worker, 1)]


def test_a_job_that_takes_longer_than_any_can_is_overdue_from_when_it_can_have_begun() -> None:
    book = Book()
    worker = book.worker()
    book.ledger.longest_job = 10.0
    first = book.send(worker, 1, 2, 3)
    assert book.ledger.overdue([], 10.0) == []
    assert book.ledger.overdue([], 10.1) == [worker]
    # The second one begins when the first has ended; what it says had begun counts from there.
    book.ledger.settle(first, worker)
    book.ledger.note_progress(worker, 1, 0, first, 8.0)
    assert book.ledger.overdue([], 18.0) == []
    assert book.ledger.overdue([], 18.1) == [worker]
    book.ledger.note_progress(worker, 0, first + 2, first, 9.0)
    assert book.ledger.overdue([], 19.0) == []
    assert book.ledger.overdue([], 19.1) == [worker]


def test_of_batches_that_have_not_begun_only_the_oldest_is_looked_at() -> None:
    book = Book()
    worker = book.worker()
    book.ledger.longest_job = 10.0
    book.send(worker, 1, now=5.0)
    book.send(worker, 2, now=0.0)
    assert book.ledger.overdue([], 12.0) == []
    assert book.ledger.overdue([], 15.1) == [worker]


def test_after_a_batch_that_is_passed_over_those_of_other_workers_are_looked_at() -> None:
    book = Book()
    busy, late = book.worker(1), book.worker(2)
    book.ledger.longest_job = 10.0
    book.send(busy, 1, now=0.0)
    book.send(busy, 2, now=0.0)
    busy.held.progressed_at = 5.0
    book.send(late, 3, now=1.0)
    assert book.ledger.overdue([], 12.0) == [late]


def test_no_job_is_overdue_until_what_ended_meanwhile_was_heard() -> None:
    book = Book()
    worker = book.worker()
    book.ledger.longest_job = 10.0
    book.send(worker, 1)
    book.ledger.forgive(30.0, 30.0)
    assert book.ledger.overdue([], 30.0 + LOST_AFTER - 0.1) == []
    assert book.ledger.overdue([], 30.0 + LOST_AFTER) == [worker]
    book.ledger.forgive(1.0, 20.0)  # an earlier moment takes nothing back
    assert book.ledger.overdue([], 30.0 + LOST_AFTER - 0.1) == []


def test_a_job_that_had_begun_at_one_look_has_ended_at_the_next() -> None:
    book = Book()
    worker = book.worker()
    book.ledger.longest_job = 10.0
    first = book.send(worker, 1, 2, 3)
    book.ledger.note_progress(worker, 0, first + 1, first, 0.0)
    living = [worker]
    assert book.ledger.overdue(living, 0.0) == []
    # It goes on and on, and never says that the second one has ended.
    book.ledger.settle(first, worker)
    book.ledger.note_progress(worker, 1, first + 2, first, 9.0)
    assert book.ledger.overdue(living, 10.0) == []
    assert book.ledger.overdue(living, 10.1) == [worker]
    assert book.ledger.overdue(living, 10.2) == []  # looked at a moment ago


def test_a_job_that_had_not_begun_at_one_look_may_go_on_at_the_next() -> None:
    book = Book()
    worker = book.worker()
    book.ledger.longest_job = 10.0
    first = book.send(worker, 1, 2)
    book.ledger.note_progress(worker, 0, first, first, 0.0)
    assert book.ledger.overdue([worker], 0.0) == []
    book.ledger.settle(first, worker)
    book.ledger.note_progress(worker, 1, first + 1, first, 9.0)
    assert book.ledger.overdue([worker], 10.1) == []


def test_when_the_oldest_job_in_flight_can_have_begun() -> None:
    book = Book()
    worker = book.worker()
    assert book.ledger.oldest_begun is None
    first = book.send(worker, 1, 2, now=3.0)
    assert book.ledger.oldest_begun == 3.0
    second = book.send(worker, 3, now=1.0)
    # Two are before it and one runs at once.
    assert book.ledger.oldest_begun == 3.0
    book.ledger.note_progress(worker, 0, second, second, 5.0)
    assert book.ledger.oldest_begun == 5.0
    assert first in book.ledger.in_flight


def test_all_jobs_of_a_worker_that_may_run_as_many_have_begun() -> None:
    book = Book()
    worker = book.worker()
    book.send(worker, 1, now=3.0, users=2)
    book.send(worker, 2, now=1.0, users=2)
    assert book.ledger.oldest_begun == 1.0


def test_without_a_limit_no_job_is_overdue() -> None:
    book = Book()
    worker = book.worker()
    book.send(worker, 1)
    assert book.ledger.longest_job == math.inf
    assert book.ledger.overdue([worker], 1e9) == []


def test_a_batch_knows_its_jobs() -> None:
    worker = Book().worker()
    worker.held.completed = 4
    histories = [None, History(1, 0.0, {})]
    batch = TaskBatch(10, tasks(1, 2), 3.0, worker, histories, (5.0, None))
    assert [batch.task(number)[3] for number in (10, 11)] == [1, 2]
    assert [batch.history(number) for number in (10, 11)] == histories
    assert [batch.due(number) for number in (10, 11)] == [5.0, None]
    assert (batch.remaining, batch.began_at, batch.waits_since, batch.completed) == (2, 3.0, 3.0, 4)


@pytest.mark.parametrize(("begun", "oldest"), [(0, 1.0), (1, 2.0), (-1, 1.0)])
def test_the_oldest_batch_is_one_of_which_a_job_has_begun_if_there_is_any(begun: int, oldest: float) -> None:
    """The second worker has one user, and two jobs of the batch that was sent at 2 s."""
    book = Book()
    one, other = book.worker(1), book.worker(2)
    for worker, sent in ((one, 1.0), (other, 2.0)):
        first, _ = book.ledger.send(tasks(1, 2), sent, worker, 1)
    other.held.begun = first - 1 + begun
    assert other.held.outstanding > other.held.users_told
    assert book.ledger.oldest_begun == oldest
