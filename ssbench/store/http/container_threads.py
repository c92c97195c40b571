"""Making containers on threads, because the master has no gevent.

They are daemons, so a server that does not answer delays neither Ctrl-C nor the end of the program. Those of
:mod:`concurrent.futures` would: the interpreter waits for them.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager

from ssbench.base.errors import ClusterError
from ssbench.base.text_values import format_duration

_log = logging.getLogger(__name__)

#: Seconds between two messages on what it waits for.
_SAY_SECONDS = 5.0

#: Seconds between two looks at whether to wait on.
_TICK_SECONDS = 0.1

#: How many failures an error's text has in full.
_MAX_FULL_FAILURES = 3

#: Makes a container; returns where that is, and why it failed, None where it did not.
ContainerMaker = Callable[[str], tuple[str, str | None]]


def make_containers(
    open_maker: Callable[[int], AbstractContextManager[ContainerMaker]],
    names: Iterable[str],
    concurrency: int,
    advance: Callable[[], None],
    check: Callable[[], None],
    longest: float,
) -> None:
    """Make containers, ``concurrency`` at once, each in at most so many seconds.

    ``open_maker`` gets the number of a thread, and returns what makes them there. ``advance`` is called in
    this thread for each that is there, ``check`` some times a second; what they raise ends it at once. Raises
    ClusterError, which names the containers that could not be made (after the first one no further one is
    begun), and what a maker raises.
    """
    makers = _MakerThreads(open_maker, names, longest)
    try:
        makers.start(concurrency)
        failures = makers.wait(advance, check)
    finally:
        makers.stop.set()
    if failures:
        raise ClusterError(describe_failed_containers(failures))


class _MakerThreads:
    """The threads that make containers, and what the caller's thread knows of them."""

    def __init__(
        self,
        open_maker: Callable[[int], AbstractContextManager[ContainerMaker]],
        names: Iterable[str],
        longest: float,
    ) -> None:
        self.stop = threading.Event()
        self._open_maker = open_maker
        self._longest = longest
        self._waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._total = 0
        for name in names:
            self._waiting.put(name)
            self._total += 1
        self._running = 0
        # What is being made now, and since when.
        self._since: dict[str, float] = {}
        # A container and why it failed, if it did; or the end of a thread, and what ended it if that
        # was no failure of a request.
        self._ended: queue.SimpleQueue[tuple[str, str | None] | BaseException | None] = queue.SimpleQueue()

    def start(self, concurrency: int) -> None:
        self._running = min(concurrency, self._total)
        for index in range(self._running):
            threading.Thread(
                target=self._work, args=(index,), name=f"containers-{index}", daemon=True
            ).start()

    def wait(self, advance: Callable[[], None], check: Callable[[], None]) -> list[tuple[str, str]]:
        """Return containers that failed, and why, once all threads have ended, or one took too long."""
        failures: list[tuple[str, str]] = []
        most = self._longest
        ended_at = said_at = time.monotonic()
        made = 0
        while self._running:
            check()
            now = time.monotonic()
            if late := [name for name, since in list(self._since.items()) if now - since > most]:
                return [*failures, *((name, f"not made within {format_duration(most)}") for name in late)]
            if now - max(ended_at, said_at) >= _SAY_SECONDS:
                said_at = now
                self._say(made, now - ended_at)
            try:
                news = self._ended.get(timeout=_TICK_SECONDS)
            except queue.Empty:
                continue
            ended_at = time.monotonic()
            if isinstance(news, BaseException):
                raise news
            if news is None:
                self._running -= 1
            else:
                place, cause = news
                if cause is None:
                    made += 1
                    advance()
                else:
                    failures.append((place, cause))
        return failures

    def _say(self, made: int, seconds: float) -> None:
        names = list(self._since)
        more = f" and {len(names) - _MAX_FULL_FAILURES} more" if len(names) > _MAX_FULL_FAILURES else ""
        _log.info(
            "Waiting for containers: %d of %d are there, none has come for %.0f s; under way: %s%s",
            made,
            self._total,
            seconds,
            ", ".join(names[:_MAX_FULL_FAILURES]),
            more,
        )

    # -- in the threads -----------------------------------------------------------------------

    def _work(self, index: int) -> None:
        fault = None
        try:
            with self._open_maker(index) as make:
                while not self.stop.is_set():
                    name = self._waiting.get_nowait()
                    self._since[name] = time.monotonic()
                    place, failure = make(name)
                    self._since.pop(name, None)
                    if failure is not None:
                        self.stop.set()
                    self._ended.put((place, failure))
        except queue.Empty:
            pass
        except BaseException as error:  # noqa: BLE001 - it is raised again in the caller's thread
            fault = error
        self._ended.put(fault)


def describe_failed_containers(failures: Iterable[tuple[str, str]]) -> str:
    """Return why containers failed, with one of them for each reason."""
    places: dict[str, list[str]] = {}
    for place, cause in failures:
        places.setdefault(cause, []).append(place)
    shown = [
        f"{first}{f' and {len(others)} more' if others else ''}: {cause}"
        for cause, (first, *others) in list(places.items())[:_MAX_FULL_FAILURES]
    ]
    more = (
        f"; and {len(places) - _MAX_FULL_FAILURES} other reasons" if len(places) > _MAX_FULL_FAILURES else ""
    )
    return f"containers could not be made: {'; '.join(shown)}{more}"
