"""The thread of a run's mark: it outlives errors that no request should end in, and tells of them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from golden_words import GoldenWords

from ssbench.run import ownership
from ssbench.run.bench_options import RunOptions
from ssbench.run.run_marks import RunMark
from ssbench.run.worker_messages import WorkerNews
from ssbench.scenario.scenario_reading import read_scenario
from ssbench.store.contract import AttemptError

SECONDS = 10


class Store:
    """Marks in which whatever ``fails`` raises happens instead of a request."""

    def __init__(self) -> None:
        self.fails: Callable[[], None] = lambda: None
        self.asked = threading.Semaphore(0)
        self.listed = 0

    def put(self, _mark: object) -> None:
        self.asked.release()
        self.fails()

    def others(self, _run: str) -> list[Any]:
        self.listed += 1
        self.fails()
        return []

    def delete(self, _run: str) -> None:
        self.fails()


def fail() -> None:
    raise RuntimeError("no such thing")


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def owner(store: Store, monkeypatch: pytest.MonkeyPatch) -> ownership.Ownership:
    monkeypatch.setattr(ownership, "MARK_RENEWAL_SECONDS", 0.02)
    monkeypatch.setattr(ownership.Ownership, "_stores", lambda _self: [store])
    loop = SimpleNamespace(news=WorkerNews(), interrupted=threading.Event())
    return ownership.Ownership(
        *(read_scenario("very_small"), [], RunOptions(), cast(Any, None), cast(Any, loop)),
        run_id=7,
        trans_id_extra=None,
    )


def test_the_mark_is_renewed_again_after_an_error_that_nobody_expected(
    owner: ownership.Ownership, store: Store, golden_words: GoldenWords
) -> None:
    assert owner.begin() == ""
    news = owner._loop.news
    assert news.warnings == []
    store.fails = fail
    while not news.warnings:
        assert store.asked.acquire(timeout=SECONDS)
    store.fails = lambda: None
    while store.asked.acquire(blocking=False):
        pass
    for _ in range(3):  # it goes on
        assert store.asked.acquire(timeout=SECONDS)
    owner.end()
    golden_words(news.warnings)


def test_a_run_goes_on_where_marks_fail_for_a_reason_that_nobody_expected(
    owner: ownership.Ownership, store: Store, golden_words: GoldenWords
) -> None:
    store.fails = fail
    assert owner.begin() == ""
    golden_words(owner._loop.news.warnings)
    owner.look()
    owner.end()


@pytest.mark.parametrize(("status", "times"), [(0, 1), (501, 1), (503, 3)])
def test_marks_of_others_are_not_asked_for_again_where_the_store_cannot_list(
    owner: ownership.Ownership, store: Store, status: int, times: int
) -> None:
    """Each attempt at the end would hold up the report, and then the end of the run."""
    deleted: list[str] = []
    store.put = lambda _mark: None
    store.delete = deleted.append

    def fail() -> None:
        error = AttemptError("bad response", "no listing")
        error.status = status
        raise error

    store.fails = fail
    assert owner.begin() == ""
    assert len(owner._loop.news.warnings) == 1
    owner.look()
    owner.end()
    assert store.listed == times
    assert deleted == (["00000007"] if times == 1 else [])


def test_other_runs_are_one_warning_with_a_count(
    owner: ownership.Ownership, store: Store, golden_words: GoldenWords
) -> None:
    others = [RunMark(run=f"c{number}", host="vm", pid=number, tag=f"c{number}") for number in range(1, 8)]
    store.others = lambda _run: others
    assert owner.begin() == ""
    owner.end()
    (warning,) = owner._loop.news.warnings
    golden_words(warning)
