"""Tasks that have not begun are given back with what is known of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from ssbench.fleet.phase import Phase, give_back_tasks
from ssbench.fleet.worker_state import History, Task


class Taken:
    """What a phase was given back, in order."""

    def __init__(self) -> None:
        self.calls: list[tuple[list[Task], bool]] = []

    def take_back(self, tasks: Sequence[Task], *, in_doubt: bool) -> None:
        self.calls.append(([*tasks], in_doubt))


def task(number: int) -> Task:
    return number, 0, 0, 0, 0


def given_back(*not_begun: tuple[Task, History | None]) -> list[tuple[list[Task], bool]]:
    phase = Taken()
    give_back_tasks(cast("Phase", phase), not_begun)
    return phase.calls


def test_what_may_have_been_done_is_given_back_apart() -> None:
    known, doubted = History(0, 1.0, {}, due=2.0), History(0, 1.0, {}, in_doubt=True)
    calls = given_back((task(1), None), (task(2), doubted), (task(3), known), (task(4), doubted))
    assert calls == [([task(1), task(3)], False), ([task(2), task(4)], True)]


def test_no_call_is_made_for_nothing() -> None:
    assert given_back() == []
    assert given_back((task(1), History(0, 1.0, {}, in_doubt=True))) == [([task(1)], True)]
