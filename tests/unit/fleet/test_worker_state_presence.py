"""Whether a worker is there: what its answers to pings say, and what a delay of the master changes."""

from __future__ import annotations

from ssbench.fleet.wire import HEARTBEAT_SECONDS
from ssbench.fleet.worker_state import WorkerPresence


def test_after_the_first_answer_the_next_ping_is_due_at_once_and_then_one_each_interval() -> None:
    presence = WorkerPresence(0.0, 0.0, 0.0)
    presence.begin(0.0)
    presence.pinged_at(1.0)
    assert presence.ping_due == 1.0 + HEARTBEAT_SECONDS
    presence.answered(1.0, 50.0, 1.25)
    assert presence.ping_due == 1.25
    presence.pinged_at(1.25)
    presence.answered(1.25, 50.25, 1.5)
    assert presence.ping_due == 1.25 + HEARTBEAT_SECONDS


def test_seconds_of_which_the_master_heard_nothing_do_not_count() -> None:
    presence = WorkerPresence(3.0, 1.0, 1.0)
    presence.pinged_at(2.0)
    presence.answered(2.0, 50.0, 2.5)
    presence.forgive(30.0)
    assert (presence.last_seen, presence.since, presence.reached) == (33.0, 31.0, 32.5)
    assert presence.known_since == 1.0


def test_an_answer_to_a_ping_from_before_a_delay_of_the_master_says_nothing() -> None:
    presence = WorkerPresence(0.0, 0.0, 0.0)
    presence.pinged_at(1.0)
    presence.answered(1.0, 50.0, 1.25)
    presence.pinged_at(3.0)
    presence.forgive(30.0)
    presence.answered(3.0, 52.0, 33.5)
    assert (presence.reached, presence.heard, presence.round_trip) == (31.25, 50.0, 0.25)
    presence.pinged_at(34.0)
    presence.answered(34.0, 83.0, 34.125)
    assert (presence.reached, presence.heard, presence.round_trip) == (34.125, 83.0, 0.125)


def test_what_arrived_by_the_results_puts_off_the_next_ping_but_not_for_ever() -> None:
    presence = WorkerPresence(0.0, 0.0, 0.0)
    presence.ready = True
    presence.pinged_at(1.0, 3.0)
    for step in range(10):
        now = 1.5 + step / 2
        presence.acknowledged(now - 0.25, 50.0 + now, now)
        assert (presence.reached, presence.last_seen, presence.heard) == (now, now, 50.0 + now)
        assert presence.ping_due == min(now + HEARTBEAT_SECONDS, 4.0)
    presence.pinged_at(6.0)
    presence.acknowledged(6.25, 56.5, 6.5)
    assert presence.ping_due == 6.0 + HEARTBEAT_SECONDS


def test_jobs_from_before_a_worker_was_lost_or_the_master_stood_still_say_nothing() -> None:
    presence = WorkerPresence(0.0, 0.0, 0.0)
    presence.ready = True
    presence.pinged_at(1.0)
    presence.pinged = 2.0  # jobs
    presence.forgive(30.0)
    presence.acknowledged(2.0, 50.0, 33.0)
    assert presence.heard is None
    presence.pinged = 34.0
    presence.ready = False
    presence.lose()
    presence.acknowledged(34.0, 50.0, 35.0)
    presence.ready = True
    presence.acknowledged(34.0, 50.0, 35.0)
    assert presence.heard is None
    presence.acknowledged(36.0, 52.0, 37.0)
    assert (presence.heard, presence.reached) == (52.0, 37.0)
