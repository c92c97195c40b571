"""What is said of workers: by name while they are few, in one line when they are hundreds."""

from __future__ import annotations

from ssbench.fleet.dispatch import Event
from ssbench.fleet.news import News, id_ranges, strange_results
from ssbench.fleet.worker_state import WorkerState


def worker(number: int, hosts: int = 8) -> WorkerState:
    return WorkerState(number, number + 1, f"host{number % hosts}", number, "1", 4, 0.0)


def event(number: int, kind: str = "joined", jobs: int = 0) -> Event:
    return Event(kind, worker(number), f"Worker {number} {kind}", jobs)


def said(news: News, events: list[Event], now: float) -> list[str]:
    return [line.text for line in news.lines(events, now)]


def test_few_are_named_at_once_in_order() -> None:
    news = News()
    assert said(news, [event(1), event(2, "refused"), event(1, "lost")], 0.0) == [
        "Worker 1 joined",
        "Worker 2 refused",
        "Worker 1 lost",
    ]
    assert said(news, [event(3)], 0.5) == ["Worker 3 joined"]
    assert said(news, [], 0.6) == []


def test_hundreds_are_one_line_a_second() -> None:
    news = News()
    assert said(news, [event(number) for number in range(5)], 0.0) == [
        "5 workers on 5 hosts (ids 0-4) joined"
    ]
    for tick in range(1, 10):
        assert said(news, [event(number) for number in range(5 + 20 * tick, 25 + 20 * tick)], tick / 10) == []
    assert said(news, [], 1.0) == ["180 workers on 8 hosts (ids 25-204) joined"]


def test_what_is_held_back_is_said_in_the_end() -> None:
    news = News()
    for number in range(4):
        news.lines([event(number)], 0.0)
    assert news.lines([event(4)], 0.1) == []
    lines = news.lines([], 0.2, all_of_it=True)
    assert [(line.text, line.warning, line.keep) for line in lines] == [("Worker 4 joined", False, False)]


def test_losses_are_gathered_with_their_jobs_and_kept_for_the_report() -> None:
    events = [event(number, "lost", jobs=3) for number in range(212)]
    lines = News().lines(events, 0.0)
    assert [(line.text, line.warning, line.keep) for line in lines] == [
        (
            "212 workers on 8 hosts (ids 0-211) have not been heard of any more and count as lost,"
            " with 636 jobs",
            True,
            True,
        )
    ]


def test_of_a_kind_with_various_reasons_the_first_is_told() -> None:
    events = [event(number, "refused") for number in range(9)]
    assert said(News(), events, 0.0) == [
        "9 workers on 8 hosts (ids 0-8) refused; the first: Worker 0 refused"
    ]


def test_ids_are_named_as_ranges() -> None:
    assert id_ranges([3, 1, 2, 2, 9, 11, 12]) == "1-3, 9, 11-12"
    assert id_ranges(range(0, 1000, 2)).endswith("22, ...")


def test_strange_results_are_counted_for_the_report() -> None:
    assert strange_results([worker(1)]) == []
    strange = [worker(number) for number in range(5)]
    for each in strange:
        each.foreign_results = 500
    strange[2].invalid_results = 1
    assert strange_results(strange) == [
        "2,500 results named jobs that other workers had and were ignored: 500 of worker 0 on host0 (pid 0),"
        " 500 of worker 1 on host1 (pid 1), 500 of worker 2 on host2 (pid 2) and 2 more workers",
        "1 result had figures that cannot be and count as errors: 1 of worker 2 on host2 (pid 2)",
    ]
