"""What Ctrl-C and SIGTERM do to a run: once it ends early, twice it ends at once."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable
from types import FrameType, TracebackType

from ssbench.errors import ExitCode

_log = logging.getLogger(__name__)

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """While this context lasts, the first signal calls ``stop`` when it is armed.

    Not armed, and with the second signal, KeyboardInterrupt is raised, so that every context on the way
    is left; the third ends the process on the spot. ``stop_at_once`` is asked before the second one
    raises, and returns whether it will raise KeyboardInterrupt itself, where that does no harm.
    """

    def __init__(self, stop: Callable[[], None], stop_at_once: Callable[[], bool]) -> None:
        self.armed = False
        self._stop = stop
        self._stop_at_once = stop_at_once
        self._count = 0

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        self._count += 1
        if self._count == 1 and self.armed:
            name = "Interrupted" if number == signal.SIGINT else "Told to end"
            _log.warning("%s: ending the run early; once more ends it at once", name)
            self._stop()
        elif self._count <= 2:
            if self._count == 1 or not self._stop_at_once():
                raise KeyboardInterrupt
        else:
            os._exit(ExitCode.INTERRUPTED)

    def __enter__(self) -> Interrupts:
        self._before = [signal.signal(number, self._handle) for number in _SIGNALS]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in zip(_SIGNALS, self._before, strict=True):
            signal.signal(number, handler)
