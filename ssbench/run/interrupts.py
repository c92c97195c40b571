"""What Ctrl-C, SIGTERM and SIGHUP do to a run: once it ends early, twice it ends at once."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable
from types import FrameType, TracebackType

from ssbench.errors import ExitCode

_log = logging.getLogger(__name__)

_NAMES = {
    signal.SIGINT: "Interrupted",
    signal.SIGTERM: "Terminated",
    signal.SIGHUP: "The terminal is closed",
}


class Interrupts:
    """While this context lasts, the first signal calls ``stop`` when it is armed.

    ``stop`` returns what happens now, for the user. Not armed, and with the second signal,
    KeyboardInterrupt is raised, so that every context on the way is left; the third ends the process on
    the spot. ``stop_at_once`` is asked before the second one raises, and returns whether it will raise
    KeyboardInterrupt itself, where that does no harm.
    """

    def __init__(self, stop: Callable[[], str], stop_at_once: Callable[[], bool]) -> None:
        self.armed = False
        self._stop = stop
        self._stop_at_once = stop_at_once
        self._count = 0

    @property
    def happened(self) -> bool:
        """Whether any signal has come."""
        return self._count > 0

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        self._count += 1
        if self._count == 1 and self.armed:
            _log.warning("%s: %s", _NAMES[signal.Signals(number)], self._stop())
        elif self._count <= 2:
            if self._count == 1 or not self._stop_at_once():
                raise KeyboardInterrupt
        else:
            os._exit(ExitCode.INTERRUPTED)

    def __enter__(self) -> Interrupts:
        # Whoever starts a run with nohup wants it to go on without a terminal.
        ignored = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
        numbers = [number for number in _NAMES if number != signal.SIGHUP or not ignored]
        self._before = {number: signal.signal(number, self._handle) for number in numbers}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
