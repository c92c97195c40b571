"""The sentences about a fleet: one for each kind of event, and what a run says that it waits for."""

from __future__ import annotations

from dataclasses import fields

import pytest
from said import UNHEARING

from ssbench.fleet import fleet_events
from ssbench.fleet.phase import StallDetector
from ssbench.fleet.roster import NotReady
from ssbench.fleet.worker_state import WorkerState
from ssbench.run import worker_messages


def worker(number: int = 1) -> WorkerState:
    return WorkerState(number, number + 1, f"host{number}", 100 + number, "1", 4, 0.0)


def all_kinds() -> list[type[fleet_events.WorkerEvent]]:
    # Not __subclasses__(): a data class with slots is made twice.
    found = [each for each in vars(fleet_events).values() if isinstance(each, type)]
    return [
        each
        for each in found
        if issubclass(each, fleet_events.WorkerEvent) and each is not fleet_events.WorkerEvent
    ]


def an_event(kind: type[fleet_events.WorkerEvent]) -> fleet_events.WorkerEvent:
    values = {"seconds": 61.25, "jobs": 3, "reason": "has a {reason}", "why": "it is {why}", "capacity": 8}
    return kind(worker(), **{each.name: values[each.name] for each in fields(kind) if each.name in values})


@pytest.mark.parametrize("kind", all_kinds(), ids=lambda kind: kind.__name__)
def test_each_event_has_a_sentence_for_one_and_for_many(kind: type[fleet_events.WorkerEvent]) -> None:
    event = an_event(kind)
    one = worker_messages.describe_event(event, "the work port (4711)")
    assert one.startswith("Worker 1 on host1 (pid 101) ")
    assert one.count("3") == ("jobs" in {each.name for each in fields(kind)})
    many = worker_messages.describe_events([event, event], "the work port (4711)")
    assert many.startswith("2 workers on host host1 (ids 1) ")
    for text in (one, many):
        assert "{event" not in text
        assert "{work" not in text


def test_a_worker_that_cannot_be_reached_is_named_with_the_port() -> None:
    port = worker_messages.format_work_port(4711)
    for kind in (fleet_events.CutOff, fleet_events.Unreachable):
        assert "cannot be reached on the work port (4711)" in worker_messages.describe_event(
            an_event(kind), port
        )
    assert worker_messages.format_work_port(None) == worker_messages.format_work_port(0) == "the work port"


def test_an_invalid_message_is_repeated_in_part() -> None:
    text = worker_messages.describe_event(fleet_events.InvalidMessage("x" * 10_000))
    assert text == "Dropped an invalid message: " + "x" * 200


def test_workers_that_are_not_ready_are_named_while_they_are_few() -> None:
    assert worker_messages.describe_not_ready([]) == ""
    text = worker_messages.describe_not_ready([(worker(number), why) for number, why in enumerate(NotReady)])
    assert text == (
        "Worker 0 on host0 (pid 100) has just come;"
        " Worker 1 on host1 (pid 101) has the id of a worker that may still be running;"
        f" Worker 2 on host2 (pid 102) {UNHEARING} reached on the work port;"
        " does a firewall block that port?;"
        f" Worker 3 on host3 (pid 103) {UNHEARING} reached on the work port, as another"
        " worker on its host can; is it overloaded?"
    )
    many = worker_messages.describe_not_ready([(worker(number), NotReady.NEW) for number in range(7)])
    assert many.endswith("; and so on for 3 more workers")


def test_what_a_phase_waits_for() -> None:
    standstill = StallDetector(60.0, 0.0)
    standstill.succeeded(10.0)
    holders = [worker(number) for number in range(7)]
    for each in holders:
        each.held.outstanding = 2
    assert worker_messages.describe_waiting("deletions", 14, holders[:1], 0, standstill, 15.0) == (
        "Waiting for 14 deletions to end (worker 0 on host0 has 2); nothing has ended for 5 s"
    )
    # A phase that drains says what it waits for even while jobs end.
    assert worker_messages.describe_waiting("deletions", 14, holders[:1], 0, standstill, 10.01, 9) == (
        "Waiting for 14 deletions to end (worker 0 on host0 has 2), 9 more wait for a worker"
    )
    standstill.failed("HTTP 503", "busy", 1.0, 12.0)
    assert worker_messages.describe_waiting("deletions", 14, holders[:1], 0, standstill, 12.0).endswith(
        "(worker 0 on host0 has 2); nothing has succeeded for 2 s: 1 x HTTP 503 (the last: busy)"
    )
    assert worker_messages.describe_waiting("deletions", 14, holders, 3, standstill, 15.0).endswith(
        "worker 4 on host4 has 2, 2 more workers have the rest), 3 more wait for a new token;"
        " nothing has ended for 3 s, nothing has succeeded for 5 s: 1 x HTTP 503 (the last: busy)"
    )
    # What is in flight is not 0 where all workers were lost, or where all wait for a token.
    calm = StallDetector(60.0, 0.0)
    assert worker_messages.describe_waiting("initial uploads", 0, [], 0, calm, 5.0, 8) == (
        "Waiting with 8 initial uploads for a worker that can take them; nothing has ended for 5 s"
    )
    assert worker_messages.describe_waiting("initial uploads", 0, [], 0, calm, 5.0).startswith(
        "Waiting with initial uploads for a worker that can take them;"
    )
    assert worker_messages.describe_waiting("initial uploads", 0, [], 4, calm, 5.0).startswith(
        "Waiting with initial uploads, 4 wait for a new token;"
    )
    assert worker_messages.describe_idle_phase("operations", calm, 5.0) == (
        "Waiting with operations until more are due; nothing has ended for 5 s"
    )
    assert ", 2 more wait for a worker;" in worker_messages.describe_waiting(
        "deletions", 1, [], 0, calm, 5.0, 2
    )
    assert worker_messages.describe_abandoned_phase(standstill, 70.0) == (
        "nothing has succeeded for 1 min: 1 x HTTP 503 (the last: busy) (given up after --give-up-after 60)"
    )


def test_ids_are_named_as_ranges() -> None:
    assert worker_messages.format_id_ranges([3, 1, 2, 2, 9, 11, 12]) == "1-3, 9, 11-12"
    assert worker_messages.format_id_ranges(range(0, 1000, 2)).endswith("22, ...")


def test_stalls_of_a_worker_count_once_however_many_groups_it_serves() -> None:
    one = worker()
    one.load.gaps_dropped = 7
    assert worker_messages.describe_strange_results([one, one.copy_for_group(), one.copy_for_group()]) == [
        "7 more stalls of workers were not recorded"
    ]


def test_strange_results_are_counted_for_the_report() -> None:
    assert worker_messages.describe_strange_results([worker()]) == []
    strange = [worker(number) for number in range(5)]
    for each in strange:
        each.held.foreign_results = 500
    strange[2].held.invalid_results = 1
    assert worker_messages.describe_strange_results(strange, 7) == [
        "2,500 results named jobs that other workers had and were ignored:"
        " 500 of worker 0 on host0 (pid 100),"
        " 500 of worker 1 on host1 (pid 101), 500 of worker 2 on host2 (pid 102) and 2 more workers",
        "1 result had impossible figures and count as errors: 1 of worker 2 on host2 (pid 102)",
        "7 invalid messages were dropped",
    ]
