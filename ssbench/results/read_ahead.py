"""What is read, by a thread, while what was read before is worked on."""

from __future__ import annotations

import queue
from collections.abc import Generator, Iterator
from contextlib import suppress
from threading import Thread
from typing import TypeVar

_Item = TypeVar("_Item")


class _LastItem:
    """Stands behind the last item; ``error`` is what ended them early."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


def iterate_ahead(items: Iterator[_Item], most: int) -> Generator[_Item]:
    """Yield items of an iterator that a thread goes through, at most so many ahead.

    Raises what the iterator raises, in its place. The thread ends with this generator, closed or at its end.
    It gains time where the iterator lets other threads run, as decompression does.
    """
    ready = queue.Queue[_Item | _LastItem](most)
    closed = False

    def go_through() -> None:
        try:
            for item in items:
                ready.put(item)
                if closed:
                    return
        except BaseException as error:  # noqa: BLE001 - it is raised where the items are used
            ready.put(_LastItem(error))
        else:
            ready.put(_LastItem())

    thread = Thread(target=go_through, name="read ahead", daemon=True)
    thread.start()
    try:
        while not isinstance(item := ready.get(), _LastItem):
            yield item
        if item.error is not None:
            raise item.error
    finally:
        closed = True
        with suppress(queue.Empty):  # so that the thread can put what it has in hand
            while True:
                ready.get_nowait()
        thread.join()
