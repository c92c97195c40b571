"""Items that a thread goes through ahead of their use."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from ssbench.results.reading import iterate_ahead


def alive() -> bool:
    return any(thread.name == "read ahead" for thread in threading.enumerate())


def test_items_keep_their_order_and_the_thread_ends_with_them() -> None:
    assert [*iterate_ahead(iter(range(1000)), 3)] == [*range(1000)]
    assert [*iterate_ahead(iter([]), 1)] == []
    assert not alive()


def test_so_many_are_made_ahead_and_no_more() -> None:
    made: list[int] = []
    enough = threading.Event()

    def items() -> Iterator[int]:
        for number in range(100):
            made.append(number)
            if number == 4:  # one is used, three are ready, one is in hand
                enough.set()
            yield number

    going = iterate_ahead(items(), 3)
    assert next(going) == 0
    assert enough.wait(60)
    assert made == [*range(5)]
    assert [*going] == [*range(1, 100)]


def test_an_error_comes_in_its_place() -> None:
    def items() -> Iterator[int]:
        yield 1
        yield 2
        raise OSError(5, "Input/output error")

    going = iterate_ahead(items(), 10)
    assert [next(going), next(going)] == [1, 2]
    with pytest.raises(OSError, match="Input/output error"):
        next(going)
    assert not alive()


@pytest.mark.parametrize("used", [0, 1, 50])
@pytest.mark.parametrize("most", [1, 2, 100])
def test_one_that_is_closed_early_leaves_no_thread(used: int, most: int) -> None:
    going = iterate_ahead(iter(range(100)), most)
    for number in range(used):
        assert next(going) == number
    going.close()
    assert not alive()
    assert [*going] == []
