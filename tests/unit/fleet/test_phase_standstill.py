"""When a phase is given up: each case by an example, with a clock that the test moves."""

from __future__ import annotations

import pytest

from ssbench.fleet.phase import StallDetector


def standing(give_up_after: float = 60.0) -> StallDetector:
    return StallDetector(give_up_after, 100.0)


def is_hopeless(watch: StallDetector, now: float, oldest_begun: float | None) -> bool:
    return watch.hopeless(now, lambda: oldest_begun)


def test_what_succeeds_now_and_then_is_never_given_up() -> None:
    watch = standing()
    for now in range(101, 1000):
        watch.failed("HTTP 503", "", 0.5, now)
        if now % 50 == 0:
            watch.succeeded(now)
        assert not is_hopeless(watch, now, now - 0.1)


def test_nothing_but_failures_is_given_up_in_time_and_told() -> None:
    watch = standing()
    watch.succeeded(110.0)
    for now in range(111, 170):
        watch.failed("connect refused" if now % 3 else "HTTP 503", f"at {now}", 8.0, now)
        assert not is_hopeless(watch, now, now - 4.0)
    watch.failed("connect refused", "", 8.0, 170.0)
    assert is_hopeless(watch, 170.0, 166.0)
    assert watch.main_cause == "connect refused"
    assert watch.failures == "40 x connect refused, 20 x HTTP 503 (the last: at 169)"
    assert watch.silence(170.0) == 60.0


def test_nothing_in_flight_leaves_nothing_to_hope_for() -> None:
    watch = standing()
    watch.failed("HTTP 401", "", 0.0, 101.0)
    assert not is_hopeless(watch, 159.0, None)
    assert is_hopeless(watch, 160.0, None)


def test_slow_jobs_that_fail_at_nothing_are_waited_for() -> None:
    assert not is_hopeless(standing(), 10_000.0, 100.0)


def test_a_slow_job_is_waited_for_while_others_fail() -> None:
    watch = standing()
    for now in range(108, 300, 8):
        watch.failed("HTTP 503", "", 8.0, now)
        assert not is_hopeless(watch, now, 100.0), "it began before the first failure"
    watch.failed("HTTP 503", "", 200.0, 300.0)  # that one
    assert is_hopeless(watch, 300.0, 296.0)


def test_slow_jobs_begun_after_a_failure_are_waited_for() -> None:
    watch = standing()
    watch.failed("HTTP 503", "", 1.0, 101.0)
    assert not is_hopeless(watch, 280.0, 102.0), "they have been in flight for longer than the failure took"


def test_never() -> None:
    watch = standing(0)
    watch.failed("HTTP 503", "", 1.0, 101.0)
    assert not is_hopeless(watch, 1e9, None)


def test_the_longest_time_without_a_success_counts_only_where_something_failed() -> None:
    watch = standing()
    watch.succeeded(150.0)
    assert watch.longest == 0.0
    watch.failed("HTTP 503", "", 1.0, 160.0)
    watch.succeeded(162.0)
    watch.failed("HTTP 503", "", 1.0, 163.0)
    assert watch.silence(165.0) == 12.0
    watch.succeeded(165.0)
    assert watch.longest == 12.0
    assert watch.failures == ""


def test_to_be_idle_after_a_failure_is_no_failure() -> None:
    watch = standing()
    watch.failed("HTTP 503", "", 0.5, 101.0)
    for now in range(102, 1000):
        watch.idled(1.0)
        assert not is_hopeless(watch, now, None)
    watch.idled(0.0)
    assert not is_hopeless(watch, 1000.0, 999.8), "the next one has just begun"
    assert watch.silence(1000.0) < 20.0


def test_few_requests_that_all_fail_are_given_up_all_the_same() -> None:
    watch = standing()
    for number in range(12):  # one in half a minute
        assert not is_hopeless(watch, 100.0 + 30 * number, None) or number >= 9
        watch.failed("connect refused", "", 0.1, 100.0 + 30 * number)
        for _ in range(30):
            watch.idled(1.0)
    assert is_hopeless(watch, 460.0, None)


def test_the_oldest_job_is_looked_for_only_where_failures_last() -> None:
    watch = standing()
    watch.failed("HTTP 503", "", 0.5, 101.0)
    assert not watch.hopeless(159.9, lambda: pytest.fail("it is looked for"))
