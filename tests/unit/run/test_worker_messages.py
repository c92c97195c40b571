"""The sentences about a fleet: one for each kind of event, and what a run says that it waits for."""

from __future__ import annotations

from dataclasses import fields

import pytest
from golden_words import GoldenWords

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


def test_a_worker_that_cannot_be_reached_is_named_with_the_port(golden_words: GoldenWords) -> None:
    port = worker_messages.format_work_port(4711)
    for kind in (fleet_events.CutOff, fleet_events.Unreachable):
        golden_words(worker_messages.describe_event(an_event(kind), port))
    assert worker_messages.format_work_port(None) == worker_messages.format_work_port(0) == "the work port"


def test_an_invalid_message_is_repeated_in_part(golden_words: GoldenWords) -> None:
    text = worker_messages.describe_event(fleet_events.InvalidMessage("x" * 10_000))
    golden_words(text)


def test_workers_that_are_not_ready_are_named_while_they_are_few(golden_words: GoldenWords) -> None:
    assert worker_messages.describe_not_ready([]) == ""
    text = worker_messages.describe_not_ready([(worker(number), why) for number, why in enumerate(NotReady)])
    golden_words(text)
    many = worker_messages.describe_not_ready([(worker(number), NotReady.NEW) for number in range(7)])
    assert many.endswith("; and so on for 3 more workers")


def test_what_a_phase_waits_for(golden_words: GoldenWords) -> None:
    standstill = StallDetector(60.0, 0.0)
    standstill.succeeded(10.0)
    holders = [worker(number) for number in range(7)]
    for each in holders:
        each.held.outstanding = 2
    golden_words(worker_messages.describe_waiting("deletions", 14, holders[:1], 0, standstill, 15.0))
    # A phase that drains says what it waits for even while jobs end.
    assert worker_messages.describe_waiting("deletions", 14, holders[:1], 0, standstill, 10.01, 9) == (
        "Waiting for 14 deletions to end (worker 0 on host0 has 2), 9 more wait for a worker"
    )
    standstill.failed("HTTP 503", "busy", 1.0, 12.0)
    golden_words(worker_messages.describe_waiting("deletions", 14, holders[:1], 0, standstill, 12.0))
    golden_words(worker_messages.describe_waiting("deletions", 14, holders, 3, standstill, 15.0))
    # What is in flight is not 0 where all workers were lost, or where all wait for a token.
    calm = StallDetector(60.0, 0.0)
    golden_words(worker_messages.describe_waiting("initial uploads", 0, [], 0, calm, 5.0, 8))
    golden_words(worker_messages.describe_waiting("initial uploads", 0, [], 0, calm, 5.0))
    assert worker_messages.describe_waiting("initial uploads", 0, [], 4, calm, 5.0).startswith(
        "Waiting with initial uploads, 4 wait for a new token;"
    )
    golden_words(worker_messages.describe_idle_phase("operations", calm, 5.0))
    assert ", 2 more wait for a worker;" in worker_messages.describe_waiting(
        "deletions", 1, [], 0, calm, 5.0, 2
    )
    golden_words(worker_messages.describe_abandoned_phase(standstill, 70.0))


def test_ids_are_named_as_ranges() -> None:
    assert worker_messages.format_id_ranges([3, 1, 2, 2, 9, 11, 12]) == "1-3, 9, 11-12"
    assert worker_messages.format_id_ranges(range(0, 1000, 2)).endswith("22, ...")


def test_stalls_of_a_worker_count_once_however_many_groups_it_serves(golden_words: GoldenWords) -> None:
    one = worker()
    one.load.gaps_dropped = 7
    golden_words(worker_messages.describe_strange_results([one, one.copy_for_group(), one.copy_for_group()]))


def test_strange_results_are_counted_for_the_report(golden_words: GoldenWords) -> None:
    assert worker_messages.describe_strange_results([worker()]) == []
    strange = [worker(number) for number in range(5)]
    for each in strange:
        each.held.foreign_results = 500
    strange[2].held.invalid_results = 1
    golden_words(worker_messages.describe_strange_results(strange, 7))
