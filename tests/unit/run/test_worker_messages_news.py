"""What is said of workers: by name while they are few, in one line when they are hundreds."""

from __future__ import annotations

from collections.abc import Callable

from said import NOT_HEARD_OF

from ssbench.fleet import fleet_events
from ssbench.fleet.worker_state import WorkerState
from ssbench.run.worker_messages import WorkerNews


def worker(number: int) -> WorkerState:
    return WorkerState(number, number + 1, f"host{number % 8}", number, "1", 4, 0.0)


def joined(number: int) -> fleet_events.Event:
    return fleet_events.WorkerJoined(worker(number), 4)


def refused(number: int) -> fleet_events.Event:
    return fleet_events.Refused(worker(number), f"is wrong in way {number}")


def lost(number: int) -> fleet_events.Event:
    return fleet_events.Lost(worker(number), 5.0, jobs=3)


def said(news: WorkerNews, happened: list[fleet_events.Event], now: float) -> list[str]:
    return [line.text for line in news.lines(happened, now)]


def several(make: Callable[[int], fleet_events.Event], numbers: range) -> list[fleet_events.Event]:
    return [make(number) for number in numbers]


def test_few_are_named_at_once_in_order() -> None:
    news = WorkerNews()
    assert said(news, [joined(1), refused(2), lost(1)], 0.0) == [
        "Worker 1 on host1 (pid 1) joined (4 jobs at once)",
        "Worker 2 on host2 (pid 2) is refused: it is wrong in way 2",
        f"Worker 1 on host1 (pid 1) {NOT_HEARD_OF} for 5 s and counts as lost, with 3 jobs",
    ]
    assert said(news, [joined(3)], 0.5) == ["Worker 3 on host3 (pid 3) joined (4 jobs at once)"]
    assert said(news, [], 0.6) == []


def test_hundreds_are_one_line_a_second() -> None:
    news = WorkerNews()
    assert said(news, several(joined, range(5)), 0.0) == ["5 workers on 5 hosts (ids 0-4) joined"]
    for tick in range(1, 10):
        assert said(news, several(joined, range(5 + 20 * (tick - 1), 5 + 20 * tick)), tick / 10) == []
    assert said(news, [], 1.0) == ["180 workers on 8 hosts (ids 5-184) joined"]


def test_the_first_of_another_kind_is_not_held_back() -> None:
    news = WorkerNews()
    assert said(news, several(joined, range(5)), 0.0) == ["5 workers on 5 hosts (ids 0-4) joined"]
    assert said(news, [joined(5)], 0.1) == []
    assert said(news, several(lost, range(7)), 0.2) == [
        "Worker 5 on host5 (pid 5) joined (4 jobs at once)",
        "7 workers on 7 hosts (ids 0-6) have not been heard of any more and count as lost, with 21 jobs",
    ]
    assert said(news, [joined(8), lost(9)], 0.3) == []


def test_what_is_held_back_is_said_in_the_end() -> None:
    news = WorkerNews()
    for number in range(4):
        news.lines([joined(number)], 0.0)
    assert news.lines([joined(4)], 0.1) == []
    lines = news.lines([], 0.2, all_of_it=True)
    assert [(line.text[:8], line.warning, line.keep) for line in lines] == [("Worker 4", False, False)]


def test_losses_are_gathered_with_their_jobs_and_kept_for_the_report() -> None:
    news = WorkerNews()
    news.tell([*several(lost, range(212)), joined(1)], 0.0)
    assert news.warnings == [
        "212 workers on 8 hosts (ids 0-211) have not been heard of any more and count as lost, with 636 jobs"
    ]


def test_where_reasons_differ_the_first_is_told() -> None:
    assert said(WorkerNews(), several(refused, range(9)), 0.0) == [
        "9 workers on 8 hosts (ids 0-8) are refused; the first:"
        " Worker 0 on host0 (pid 0) is refused: it is wrong in way 0"
    ]


def test_what_is_counted_for_the_report_is_a_warning_and_not_kept() -> None:
    happened = [
        fleet_events.Foreign(worker(1)),
        fleet_events.Invalid(worker(2), "x"),
        fleet_events.InvalidMessage("y"),
    ]
    assert [(line.warning, line.keep) for line in WorkerNews().lines(happened, 0.0)] == [(True, False)] * 3


def test_warnings_for_the_report_are_bounded() -> None:
    news = WorkerNews()
    for number in range(1000):
        news.warn(str(number))
        if number == 500:
            news.add(["of the end"])  # which the run adds by itself
    assert len(news.warnings) == 202
    assert news.warnings[199:] == ["199", "800 more warnings of the run are in its log alone", "of the end"]
