"""What becomes of tasks and of what workers report of them."""

from __future__ import annotations

import math

from ssbench.fleet.worker_state import WorkerState
from ssbench.results.block import LOST_CAUSE, Failure
from ssbench.results.result_fields import NO_WORKER, ResultMark
from ssbench.run.result_rows import ListingMinimums, RowMaker
from ssbench.scenario.operations import HEAD, LIST
from ssbench.store.contract import JobResult, RareFields

EPOCH = 1e9


def worker() -> WorkerState:
    state = WorkerState(instance=1, worker_id=7, host="box", pid=5, version="1", capacity=9, now=0.0)
    state.clock.offset.seconds = 100.0
    return state


def test_successes_have_the_figures_of_their_results() -> None:
    rows = RowMaker(EPOCH, storage_urls=1)
    read, create = (1, 0, 3, 4, 0), (0, 1, 3, 5, 2000)
    rows.add(
        [
            (read, JobResult(1, 0.25, 0.5, 50.0, 1000, trans_id="tx1", status=200)),
            (create, JobResult(2, None, 0.75, 51.0, 2000, status=201)),
        ],
        worker(),
    )
    assert rows.count == 2
    block = rows.take()
    assert (rows.count, rows.errors) == (0, 0)
    assert block.operation.tolist() == [1, 0]
    assert block.worker.tolist() == [7, 7]
    assert block.object.tolist() == [4, 5]
    assert block.size.tolist() == block.expected_size.tolist() == [1000, 2000]
    assert block.completed.tolist() == [EPOCH + 150, EPOCH + 151]
    assert block.started.tolist() == [EPOCH + 149.5, EPOCH + 150.25]
    assert (block.first_byte[0], math.isnan(block.first_byte[1])) == (0.25, True)
    assert block.status.tolist() == [200, 201]
    assert block.attempts.tolist() == [1, 1]
    assert block.storage_url.tolist() == [0, 0]
    assert list(block.trans_id) == ["tx1", None]
    assert not block.failed.any()


def test_what_few_results_have_stays_with_its_row() -> None:
    listings = ListingMinimums({3: 7}, 1, {LIST.code: 100})
    rows = RowMaker(EPOCH, storage_urls=0, listings=listings)
    read, create, listing = (1, 0, 3, 4, 1000), (0, 1, 3, 5, 2000), (LIST.code, 0, 3, 6, 0)
    listings.handed_out([listing])
    for _ in range(2):
        rows.add([(read, JobResult(1, 0.25, 0.5, 50.0, 400, rare=RareFields(unchecked=1)))], worker())
        rows.add(
            [
                (create, JobResult(2, None, 0.5, 50.0, 1500)),
                (create, JobResult(3, None, 0.5, 50.0)),
                (listing, JobResult(4, None, None, 50.0, cause="HTTP 503")),
                (listing, JobResult(5, 0.5, 0.5, 50.0, 300, rare=RareFields(entries=5))),
            ],
            worker(),
        )
        block = rows.take()
        assert block.size.tolist() == [400, 1500, 2000, 0, 300]
        assert block.expected_size.tolist() == [400, 2000, 2000, -1, 300]
        assert block.unchecked.tolist() == [1, 0, 0, 0, 0]
        assert block.entries.tolist() == [0, 0, 0, 0, 5]
        assert block.expected_entries.tolist() == [0, 0, 0, 0, 7]
        listings.handed_out([listing])


def test_a_head_moves_nothing_of_the_object_whose_size_it_has_to_tell() -> None:
    rows = RowMaker(EPOCH, storage_urls=0)
    head = (HEAD.code, 0, 3, 4, 1000)
    told = JobResult(1, 0.25, 0.25, 50.0)
    rows.add([(head, told), (head, JobResult(2, None, None, 50.0, cause="wrong size"))], worker())
    block = rows.take()
    assert (block.size.tolist(), block.expected_size.tolist()) == ([0, 0], [0, -1])


def test_failures_keep_their_start_and_their_status_and_moved_nothing() -> None:
    rows = RowMaker(EPOCH, storage_urls=0)
    failure = JobResult(
        1, None, None, 50.0, 0, 2, "tx1", "HTTP 503", "Busy", {"HTTP 503": 2}, status=503, spent=10.0
    )
    retried = JobResult(2, None, 0.5, 50.0, 9, 1, retried={"timeout": 1}, status=201)
    resent = JobResult(3, None, 0.5, 50.0, 9, status=201, resent=1)
    rows.add(
        [((0, 0, 0, number, 9), each) for number, each in enumerate((failure, retried, resent))], worker()
    )
    block = rows.take()
    assert rows.errors == 1
    assert block.failures == {
        0: Failure("HTTP 503", "Busy", {"HTTP 503": 2}),
        1: Failure(None, "", {"timeout": 1}),
    }
    assert block.failed.tolist() == [True, False, False]
    assert block.status.tolist() == [503, 201, 201]
    assert block.started.tolist() == [EPOCH + 140, EPOCH + 149.5, EPOCH + 149.5]
    assert (math.isnan(block.last_byte[0]), math.isnan(block.first_byte[0])) == (True, True)
    assert block.size.tolist() == [0, 9, 9]
    assert block.expected_size.tolist() == [9, 9, 9]
    assert block.retries.tolist() == [2, 1, 0]
    assert block.attempts.tolist() == [3, 2, 2]
    assert block.storage_url.tolist() == [-1, -1, -1]


def test_what_a_result_spent_with_connecting_and_pauses() -> None:
    rows = RowMaker(EPOCH, storage_urls=0)
    plain = JobResult(1, 0.25, 0.5, 50.0, 9)
    retried = JobResult(2, 0.25, 2.0, 50.0, 9, 1, rare=RareFields(pausing=0.25, last_attempt=0.5))
    connected = JobResult(3, 0.25, 0.5, 50.0, 9, rare=RareFields(0.125))
    rows.add([((1, 0, 0, 1, 9), each) for each in (plain, retried, connected)], worker())
    block = rows.take()
    assert block.connecting.tolist() == [0.0, 0.0, 0.125]
    assert block.pausing.tolist() == [0.0, 0.25, 0.0]
    assert block.last_attempt.tolist() == [0.5, 0.5, 0.375]
    rows.add([((1, 0, 0, 1, 9), plain)], worker())
    block = rows.take()
    assert not block.given & {"connecting", "pausing", "last_attempt"}
    assert block.last_attempt.tolist() == [0.5]


def test_a_result_is_marked_whose_worker_stood_still_for_a_tenth_of_its_time() -> None:
    rows = RowMaker(EPOCH, storage_urls=0)
    held = [0.0, 0.19, 0.2, 0.2]
    results = [JobResult(1, 0.25, 2.0, 50.0, 9, rare=RareFields(held=seconds)) for seconds in held]
    results[3] = JobResult(1, None, None, 50.0, cause="reset", spent=2.1, rare=RareFields(held=0.2))
    rows.add([((1, 0, 0, 1, 9), each) for each in results], worker())
    assert rows.take().marks.tolist() == [0, 0, ResultMark.DELAYED, 0]


def test_which_of_several_storage_urls_a_result_used_and_what_is_lost() -> None:
    rows = RowMaker(EPOCH, storage_urls=3)
    rows.add([((1, 0, 0, 1, 0), JobResult(1, 0.1, 0.1, 50.0, storage_url=2))], worker())
    rows.add(
        [((1, 0, 0, 1, 0), JobResult(1, 0.1, 0.1, 50.0, storage_url=2**32 - 1))], worker()
    )  # no such one
    rows.add_lost([(1, 0, 0, 2, 0)], LOST_CAUSE, worker(), 200.0)
    rows.add_lost([(0, 0, 0, 3, 70)], LOST_CAUSE, None, 200.0)
    block = rows.take()
    assert block.storage_url.tolist() == [2, -1, -1, -1]
    assert block.worker.tolist() == [7, 7, 7, NO_WORKER]
    assert block.completed.tolist()[2:] == [EPOCH + 200] * 2
    assert all(math.isnan(moment) for moment in block.started[2:])
    assert block.size.tolist()[2:] == [-1, -1]
    assert block.expected_size.tolist()[2:] == [-1, 70]
    assert block.failures[2] == Failure(LOST_CAUSE, "with worker 7 on box (pid 5)", {})
    assert rows.errors == 2


def test_when_operations_were_due() -> None:
    rows = RowMaker(EPOCH, storage_urls=2, with_due=True)
    read = (1, 0, 0, 1, 0)
    failure = JobResult(3, None, None, 50.0, cause="timeout", spent=2.0, late=1.0)
    unknown = JobResult(4, None, None, 50.0, cause="timeout", late=1.0)
    results = [JobResult(1, 0.1, 0.5, 50.0, late=0.25), JobResult(2, 0.1, 0.5, 50.0), failure, unknown]
    rows.add([(read, each) for each in results], worker())
    rows.add_lost([read], LOST_CAUSE, None, 200.0)
    block = rows.take()
    assert block.due.tolist()[0] == EPOCH + 149.25
    assert block.due.tolist()[2] == EPOCH + 147
    assert [math.isnan(due) for due in block.due] == [False, True, False, True, True]
    assert block.storage_url.tolist() == [0, 0, 0, 0, -1]
