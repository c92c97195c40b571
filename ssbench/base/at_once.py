"""Several calls at once, in threads that hold up neither Ctrl-C nor the end of the program.

At its end the interpreter waits for the threads of ``concurrent.futures``, and for what they still have to
do.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

from ssbench.base import interruption

_Argument = TypeVar("_Argument")
_Answer = TypeVar("_Answer")


def call_concurrently(
    call: Callable[[_Argument], _Answer], items: Sequence[_Argument], most: int, name: str
) -> list[_Answer]:
    """Return what a call returns for each item, at most ``most`` at a time; raises the first error.

    ``name`` is that of the threads. After an error no further call begins.
    """
    waiting: queue.SimpleQueue[tuple[int, _Argument]] = queue.SimpleQueue()
    answers: queue.SimpleQueue[tuple[int, _Answer] | BaseException] = queue.SimpleQueue()
    for each in enumerate(items):
        waiting.put(each)

    def work() -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                place, item = waiting.get_nowait()
                try:
                    answers.put((place, call(item)))
                except BaseException as error:  # noqa: BLE001 - it is raised where the answer is waited for
                    answers.put(error)

    for _ in range(min(most, len(items))):
        threading.Thread(target=work, name=name, daemon=True).start()
    found: dict[int, _Answer] = {}
    try:
        while len(found) < len(items):
            answer = interruption.take_from_queue(answers)
            if isinstance(answer, BaseException):
                raise answer
            found[answer[0]] = answer[1]
    finally:
        with contextlib.suppress(queue.Empty):
            while True:
                waiting.get_nowait()
    return [found[place] for place in range(len(items))]
