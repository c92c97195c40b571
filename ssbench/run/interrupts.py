"""What Ctrl-C, SIGTERM and SIGHUP do: once they end what is running early, twice at once."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType, TracebackType

from ssbench.base import interruption

_log = logging.getLogger(__name__)

_SIGNAL_NAMES = {
    signal.SIGINT: "Interrupted",
    signal.SIGTERM: "Terminated",
    signal.SIGHUP: "The terminal is closed",
}


class Interrupts:
    """A context manager that handles the signals; outside of the main thread it has no effect.

    With ``reloads`` SIGHUP calls ``reload`` instead while the terminal is there, where there never was one,
    and where SIGHUP was ignored.

    Outside of :meth:`armed` a signal is noted, and the next
    :func:`ssbench.base.interruption.raise_if_interrupted` raises KeyboardInterrupt, so that every context on
    the way is left. In a program that uses ssbench as a library, and is not within :meth:`busy`, what it had
    for SIGINT before is called instead. The third signal ends the process on the spot.
    """

    def __init__(self, *, reloads: bool = False) -> None:
        self.reload: Callable[[], None] = lambda: None
        self._reloads = reloads
        self._ignored = self._had_terminal = False
        self._stop: Callable[[], str] | None = None
        self._stop_at_once: Callable[[], bool] = lambda: False
        self._count = self._busy = 0
        self._former: object = None
        self._stack = ExitStack()

    @contextmanager
    def armed(
        self, stop: Callable[[], str], stop_at_once: Callable[[], bool] = lambda: False
    ) -> Iterator[None]:
        """Let the first signal call ``stop``, which returns what happens now, for the user.

        The second one is noted, for the next check, unless ``stop_at_once`` returns that it will raise
        KeyboardInterrupt itself, where that does no harm. Signals before do not count.
        """
        interruption.raise_if_interrupted()
        self._count = 0
        self._stop, self._stop_at_once = stop, stop_at_once
        try:
            with self.busy():
                yield
        finally:
            self._stop = None

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Note signals in this context; one that was not heeded raises KeyboardInterrupt at its end."""
        self._busy += 1
        try:
            yield
        finally:
            self._busy -= 1
        interruption.raise_if_interrupted()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if (
            number == signal.SIGHUP
            and self._reloads
            and (self._ignored or not self._had_terminal or _has_terminal())
        ):
            self.reload()
            return
        if not self._busy and not interruption.is_program() and callable(self._former):
            self._former(number, frame)
            return
        self._count += 1
        if self._count > 2:
            interruption.end_program_now()
        elif self._stop is None:
            interruption.note_signal(
                number, interruption.FIRST_GRACE_SECONDS if self._count == 1 else interruption.GRACE_SECONDS
            )
        elif self._count == 1:
            _log.warning("%s: %s", _SIGNAL_NAMES[signal.Signals(number)], self._stop())
        elif not self._stop_at_once():
            interruption.note_signal(number, interruption.GRACE_SECONDS)

    def __enter__(self) -> Interrupts:
        # Whoever starts a run with nohup wants it to go on without a terminal.
        self._ignored = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
        self._had_terminal = _has_terminal()
        self._former = signal.getsignal(signal.SIGINT)
        numbers = [
            number
            for number in _SIGNAL_NAMES
            if number != signal.SIGHUP or self._reloads or not self._ignored
        ]
        self._stack.enter_context(interruption.hold_signals(*numbers, handler=self._handle))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        late = interruption.has_noted_signal()
        interruption.forget_signals()
        self._stack.close()
        if late and kind is None:
            raise KeyboardInterrupt


def _has_terminal() -> bool:
    """Whether this process has a terminal that is still there."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True
