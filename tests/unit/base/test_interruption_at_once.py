"""Several calls at once: their answers in order, the first error, and no more calls after one."""

from __future__ import annotations

import threading

import pytest

from ssbench.base.interruption import call_concurrently

SOON = 60


def test_answers_are_in_the_order_of_the_items() -> None:
    last = threading.Event()

    def call(item: int) -> int:
        if item == 2:
            last.set()
        assert last.wait(SOON)  # all three are under way together
        return item * item

    assert call_concurrently(call, [0, 1, 2], 3, "test") == [0, 1, 4]
    assert call_concurrently(call, [], 3, "test") == []


def test_no_more_are_under_way_than_asked() -> None:
    lock, barrier = threading.Lock(), threading.Barrier(2)
    now, most = 0, 0

    def call(item: int) -> str:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        barrier.wait(SOON)
        with lock:
            now -= 1
        return threading.current_thread().name

    assert call_concurrently(call, range(8), 2, "a name") == ["a name"] * 8
    assert most == 2


def test_an_error_is_raised_and_what_has_not_begun_never_begins() -> None:
    begun: list[int] = []
    raised = threading.Event()

    def call(item: int) -> None:
        begun.append(item)
        if item == 0:
            raise ValueError("the first")
        assert raised.wait(SOON)

    with pytest.raises(ValueError, match="the first"):
        call_concurrently(call, range(1000), 1, "one thread")
    raised.set()
    for thread in threading.enumerate():
        if thread.name == "one thread":
            thread.join(SOON)
    # The thread may have taken one more before the error was raised.
    assert begun in ([0], [0, 1])
