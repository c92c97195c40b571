"""Requests of a run on a thread of their own: answers, failures, patience, an interruption."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, cast

import pytest
import requests
from golden_words import GoldenWords
from swiftclient.exceptions import ClientException

from ssbench.base.errors import ClusterError
from ssbench.run.loop import MasterLoop
from ssbench.run.ownership import NoAnswerError, RequestThread, describe_unexpected_error

LONG = 60.0


class Run:
    """What a request thread sees of the loop of a run."""

    def __init__(self) -> None:
        self.interrupted = threading.Event()


class Calls:
    """A thread of requests, the run that it is for, and a call on it that has no answer until let go."""

    def __init__(self) -> None:
        self.run = Run()
        self.gate = threading.Event()
        self.begun = threading.Event()
        self.thread = self.make(LONG)

    def make(self, every: float, meanwhile: Any = lambda: None) -> RequestThread:
        return RequestThread(cast(MasterLoop, self.run), "look-for-runs", meanwhile, every)

    def slow(self) -> str:
        self.begun.set()
        assert self.gate.wait(LONG)
        return "late"


@pytest.fixture
def calls() -> Iterator[Calls]:
    made = Calls()
    yield made
    made.gate.set()
    made.thread.end()


def test_an_answer_comes_from_a_thread_of_that_name(calls: Calls) -> None:
    assert calls.thread.ask(lambda: threading.current_thread().name, LONG) == "look-for-runs"
    assert calls.thread.ask(lambda: None, LONG) is None


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ClientException("Container HEAD failed", http_status=503), "503"),
        (requests.ConnectionError("nobody there"), "ConnectionError"),
        (ClusterError("no token"), "no token"),
        (KeyError("x"), r"KeyError: 'x' \(please report this\)"),
    ],
)
def test_a_failure_is_a_text_and_the_thread_goes_on(calls: Calls, error: Exception, text: str) -> None:
    def fail() -> None:
        raise error

    with pytest.raises(NoAnswerError, match=text):
        calls.thread.ask(fail, LONG)
    assert calls.thread.ask(lambda: 5, LONG) == 5


def test_it_waits_no_longer_than_its_patience(calls: Calls) -> None:
    with pytest.raises(NoAnswerError, match=r"^no answer within 0\.15 s$"):
        calls.thread.ask(calls.slow, 0.15)


def test_an_interruption_ends_the_wait_where_it_is_heeded(calls: Calls, golden_words: GoldenWords) -> None:
    calls.run.interrupted.set()
    with golden_words.raises(NoAnswerError):
        calls.thread.ask(calls.slow, LONG)
    assert calls.begun.wait(LONG)
    with pytest.raises(NoAnswerError, match="no answer within"):
        calls.thread.ask(lambda: 5, 0.15, heed=False)
    calls.gate.set()
    assert calls.thread.ask(lambda: 5, LONG, heed=False) == 5


def test_an_answer_that_comes_late_is_not_that_of_the_next_question(calls: Calls) -> None:
    with pytest.raises(NoAnswerError):
        calls.thread.ask(calls.slow, 0.0)
    calls.gate.set()
    assert calls.thread.ask(lambda: "own", LONG) == "own"


def test_between_questions_there_is_something_else_to_do(calls: Calls) -> None:
    done = threading.Event()
    thread = calls.make(0.01, done.set)
    assert done.wait(LONG)
    thread.end()


def test_it_ends_after_the_calls_before(calls: Calls) -> None:
    thread = calls.make(LONG)
    found: list[threading.Thread] = []
    thread.ask(lambda: found.append(threading.current_thread()), LONG)
    thread.end()
    found[0].join(LONG)
    assert not found[0].is_alive()
    assert found[0].daemon, "a Swift that does not answer does not hold up the end of the program"


def test_what_is_said_of_an_error_that_should_not_be() -> None:
    assert describe_unexpected_error(ClusterError("why")) == "why"
    assert describe_unexpected_error(ValueError("why")) == "ValueError: why (please report this)"
