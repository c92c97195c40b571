"""Requests of a run that are made by a thread of their own, one after the other.

A Swift that does not answer delays neither the run nor Ctrl-C.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from ssbench.base import interruption
from ssbench.base.errors import SsbenchError
from ssbench.run.loop import MasterLoop

_log = logging.getLogger(__name__)

#: Seconds between two looks at whether to wait on, and after which to say so.
_REQUEST_TICK_SECONDS = 0.1
_REQUEST_SAY_SECONDS = 5.0

_CallResult = TypeVar("_CallResult")


class NoAnswerError(Exception):
    """There was no answer to a request, or it failed; the text says why."""


class RequestThread:
    """Makes calls on a thread of this ``name`` until :meth:`end`; they look for other runs.

    ``meanwhile`` is called on it where nothing was asked for ``every`` seconds.
    """

    def __init__(self, loop: MasterLoop, name: str, meanwhile: Callable[[], None], every: float) -> None:
        self._loop = loop
        self._name = name
        self._meanwhile = meanwhile
        self._every = every
        self._questions: queue.SimpleQueue[Callable[[], bool]] = queue.SimpleQueue()
        threading.Thread(target=self._serve, name=name, daemon=True).start()

    def ask(self, call: Callable[[], _CallResult], patience: float, *, heed: bool = True) -> _CallResult:
        """Return what a call returns on the thread of the requests; raises NoAnswerError.

        ``heed``: an interruption of the run ends it.
        """
        # Only here, because it imports python-swiftclient, which takes long and a no-op run does not need.
        from ssbench.store.http.client_errors import CLIENT_ERRORS, describe_client_error  # noqa: PLC0415

        answers: queue.SimpleQueue[tuple[_CallResult, None] | tuple[None, Exception]] = queue.SimpleQueue()

        def answer() -> bool:
            try:
                answers.put((call(), None))
            except Exception as error:  # noqa: BLE001 - the thread that asks reports it
                answers.put((None, error))
            return True

        self._questions.put(answer)
        began = said_at = time.monotonic()
        while True:
            try:
                result = answers.get(timeout=_REQUEST_TICK_SECONDS)
            except queue.Empty:
                interruption.raise_if_interrupted()
                now = time.monotonic()
                self._loop.fleet.look_after_descriptors(now)
                if heed and self._loop.interrupted.is_set():
                    raise NoAnswerError("the run was interrupted") from None
                if now - began > patience:
                    raise NoAnswerError(f"no answer within {patience:g} s") from None
                if now - said_at >= _REQUEST_SAY_SECONDS:
                    said_at = now
                    _log.info("Waiting for Swift: looking for other runs for %.0f s", now - began)
                continue
            if result[1] is None:
                return result[0]
            if isinstance(result[1], CLIENT_ERRORS):
                raise NoAnswerError(describe_client_error(result[1]))
            # The run does not depend on what is asked here.
            _log.debug("%s", self._name, exc_info=result[1])
            raise NoAnswerError(describe_unexpected_error(result[1]))

    def end(self) -> None:
        """End the thread once it has made the calls before."""
        self._questions.put(lambda: False)

    def _serve(self) -> None:
        more = True
        while more:
            try:
                question = self._questions.get(timeout=self._every)
            except queue.Empty:
                self._meanwhile()
            else:
                more = question()


def describe_unexpected_error(error: Exception) -> str:
    """Return what is said of an error that no request should end in."""
    if isinstance(error, SsbenchError):
        return str(error)
    return f"{type(error).__name__}: {error} (please report this)"
