"""What Ctrl-C, SIGTERM and SIGHUP do: once they end what is running early, twice at once."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType

from ssbench.errors import ExitCode

_log = logging.getLogger(__name__)

_NAMES = {
    signal.SIGINT: "Interrupted",
    signal.SIGTERM: "Terminated",
    signal.SIGHUP: "The terminal is closed",
}


class Interrupts:
    """A context manager that handles the signals; outside of the main thread it has no effect.

    With ``reloads`` SIGHUP calls ``reload`` instead while the terminal is there, where there never was one,
    and where SIGHUP was ignored.

    Outside of :meth:`armed` a signal raises KeyboardInterrupt, so that every context on the way is left.
    The third signal ends the process on the spot.
    """

    def __init__(self, *, reloads: bool = False) -> None:
        self.reload: Callable[[], None] = lambda: None
        self._reloads = reloads
        self._ignored = self._had_terminal = False
        self._stop: Callable[[], str] | None = None
        self._stop_at_once: Callable[[], bool] = lambda: False
        self._count = 0

    @contextmanager
    def armed(
        self, stop: Callable[[], str], stop_at_once: Callable[[], bool] = lambda: False
    ) -> Iterator[None]:
        """Let the first signal call ``stop``, which returns what happens now, for the user.

        The second one raises KeyboardInterrupt unless ``stop_at_once`` returns that it will raise it
        itself, where that does no harm. Signals before do not count.
        """
        self._count = 0
        self._stop, self._stop_at_once = stop, stop_at_once
        try:
            yield
        finally:
            self._stop = None

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        if (
            number == signal.SIGHUP
            and self._reloads
            and (self._ignored or not self._had_terminal or _has_terminal())
        ):
            self.reload()
            return
        self._count += 1
        if self._count == 1 and self._stop is not None:
            _log.warning("%s: %s", _NAMES[signal.Signals(number)], self._stop())
        elif self._count <= 2:
            if self._count == 1 or not self._stop_at_once():
                raise KeyboardInterrupt
        else:
            os._exit(ExitCode.INTERRUPTED)

    def __enter__(self) -> Interrupts:
        # Whoever starts a run with nohup wants it to go on without a terminal.
        self._ignored = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
        self._had_terminal = _has_terminal()
        numbers = [
            number for number in _NAMES if number != signal.SIGHUP or self._reloads or not self._ignored
        ]
        if threading.current_thread() is not threading.main_thread():
            numbers = []  # Python allows no other thread to handle signals
        self._before = {number: signal.signal(number, self._handle) for number in numbers}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)


def _has_terminal() -> bool:
    """Whether this process has a terminal that is still there."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True
