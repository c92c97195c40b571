"""Ctrl-C and other signals that end a program: noted when they come, heeded where that does no harm.

A handler that raises does so at any instruction, such as between the line that takes the lock of a Popen and
the ``try`` that releases it; ``Popen.wait`` then waits for that lock for ever. So no handler here raises:

- A program that has called :func:`handle_interrupts` ends on the spot: one line, exit code 130, and nothing
  else of it is executed. That is safe at any instruction. What must not stay behind is named with
  :func:`undo_on_interrupt`.
- In the context of :func:`hold_signals` a signal is only noted. Code that waits calls
  :func:`raise_if_interrupted`, which raises KeyboardInterrupt where that does no harm, or
  :func:`sleep_interruptibly` and :func:`take_from_queue`, which call it.
- A program that does not come to a check in time ends on the spot.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from types import FrameType, TracebackType
from typing import TypeVar

from ssbench.base.errors import ExitCode

_Item = TypeVar("_Item")
_Handler = Callable[[int, FrameType | None], object]

#: Seconds to the next check after the first signal and after each further one; then the program ends on the
#: spot. The first has time for a busy machine, because what was made is removed then.
FIRST_GRACE_SECONDS, GRACE_SECONDS = 5.0, 1.0

#: Seconds between two checks of what waits.
_TICK_SECONDS = 0.1

_ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _State:
    """What there is once in a process, as its signal handlers are. Only the main thread changes it."""

    def __init__(self) -> None:
        #: The name of the program, None where it is not one of ours.
        self.program: str | None = None
        #: The signal that was noted and not heeded yet.
        self.noted: int | None = None
        #: When the program ends on the spot, by time.monotonic.
        self.deadline = 0.0
        #: How many contexts hold signals, and how many signals came in them.
        self.depth = self.count = 0
        self.undo: list[Callable[[], object]] = []
        #: Writes the last line to standard error; must wait neither for locks nor for a reader.
        self.say: Callable[[str], object] = write_last_line


def write_last_line(text: str) -> None:
    """Write to standard error, unless its reader does not read."""
    import select  # noqa: PLC0415 - the beginning of each program does without

    with suppress(OSError, ValueError):
        if select.select([], [2], [], 0)[1]:
            os.write(2, text.encode())


_state = _State()


def handle_interrupts(program: str, instead_of: _Handler = signal.default_int_handler) -> None:
    """Let Ctrl-C end this process on the spot; a ``program`` calls this first.

    Where it is ignored, or has another handler than ``instead_of``, that stays.
    """
    _state.program = program
    if signal.getsignal(signal.SIGINT) is instead_of:
        signal.signal(signal.SIGINT, lambda _number, _frame: end_program_now())


def _is_program() -> bool:
    """Return whether this process is a program of ours, and not one that uses ssbench as a library."""
    return _state.program is not None


def set_last_line_writer(say: Callable[[str], object]) -> None:
    """Let ``say`` write the last line; it must wait neither for locks nor for a reader."""
    _state.say = say


def end_program_now() -> None:
    """End the process with exit code 130. Children of ours end when they see that it has ended."""
    for call in reversed(_state.undo):
        with suppress(Exception):
            call()
    with suppress(Exception):
        _state.say(f"{_state.program or 'ssbench'}: interrupted\n")
    os._exit(ExitCode.INTERRUPTED)


def say_last_line(text: str) -> None:
    """Write a line where the program ends on the spot; for what :func:`undo_on_interrupt` calls."""
    _state.say(f"{text}\n")


@contextmanager
def undo_on_interrupt(call: Callable[[], object]) -> Iterator[None]:
    """Have ``call`` called where the program ends on the spot in this context; it must wait for no lock."""
    _state.undo.append(call)
    try:
        yield
    finally:
        _state.undo.remove(call)


@contextmanager
def hold_signals(*also: signal.Signals, handler: _Handler | None = None) -> Iterator[None]:
    """Note signals in this context instead of having them raise there or end the process.

    These are the ones that have a handler in Python, and ``also``. One that was not heeded is delivered again
    at the end of the context. ``handler`` is what notes them. Within such a context, another one without a
    handler has no effect, nor has one in another thread than the main one.
    """
    inner = _state.depth > 0 and handler is None
    if inner or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {
        number: signal.signal(number, handler or _handle_signal)
        for number in _ENDING_SIGNALS
        if number in also or callable(signal.getsignal(number))
    }
    _state.depth += 1
    try:
        yield
    finally:
        _state.depth -= 1
        for number, former in reversed(before.items()):  # SIGINT last, whose handler may raise
            signal.signal(number, former)
        if not _state.depth:
            left, _state.noted, _state.count = _state.noted, None, 0
            if left is not None:
                signal.raise_signal(left)


def _handle_signal(number: int, _frame: FrameType | None) -> None:
    _state.count += 1
    _note_signal(number, FIRST_GRACE_SECONDS if _state.count == 1 else GRACE_SECONDS)


def _note_signal(number: int, grace: float) -> None:
    """Note a signal, for the next :func:`raise_if_interrupted`.

    A program of ours has ``grace`` seconds to come to one.
    """
    deadline = time.monotonic() + grace
    _state.deadline = deadline if _state.noted is None else min(_state.deadline, deadline)
    _state.noted = number
    if _state.program is not None:
        # Without the locks that threading.Thread takes, which the interrupted code may have.
        _thread.start_new_thread(_end_if_unheeded, ())


def _end_if_unheeded() -> None:
    """End the program where it does not heed the signal in time; the body of a thread."""
    while _state.noted is not None:
        left = _state.deadline - time.monotonic()
        if left <= 0:
            end_program_now()
        time.sleep(min(_TICK_SECONDS / 2, left))


def forget_signals() -> None:
    """Drop what was noted: the program ends anyway."""
    _state.noted = None


def has_noted_signal() -> bool:
    """Return whether a signal was noted that is not heeded yet."""
    return _state.noted is not None


def raise_if_interrupted() -> None:
    """Raise KeyboardInterrupt where a signal was noted; in other threads than the main one do nothing."""
    if _state.noted is not None and threading.current_thread() is threading.main_thread():
        _state.noted = None
        raise KeyboardInterrupt


def sleep_interruptibly(seconds: float) -> None:
    """Sleep, and check meanwhile."""
    end = time.monotonic() + seconds
    raise_if_interrupted()
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(_TICK_SECONDS, left))
        raise_if_interrupted()


def take_from_queue(items: queue.SimpleQueue[_Item], timeout: float = float("inf")) -> _Item:
    """Return the next item of a queue, and check meanwhile; raises queue.Empty after ``timeout`` seconds."""
    end = time.monotonic() + timeout
    while True:
        raise_if_interrupted()
        left = end - time.monotonic()
        try:
            return items.get(timeout=max(0.0, min(_TICK_SECONDS, left)))
        except queue.Empty:
            if left <= _TICK_SECONDS:
                raise


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
    :func:`raise_if_interrupted` raises KeyboardInterrupt, so that every context on
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
        import logging  # noqa: PLC0415 - --help does without

        self._log = logging.getLogger(__name__)

    @contextmanager
    def armed(
        self, stop: Callable[[], str], stop_at_once: Callable[[], bool] = lambda: False
    ) -> Iterator[None]:
        """Let the first signal call ``stop``, which returns what happens now, for the user.

        The second one is noted, for the next check, unless ``stop_at_once`` returns that it will raise
        KeyboardInterrupt itself, where that does no harm. Signals before do not count.
        """
        raise_if_interrupted()
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
        raise_if_interrupted()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if (
            number == signal.SIGHUP
            and self._reloads
            and (self._ignored or not self._had_terminal or _has_terminal())
        ):
            self.reload()
            return
        if not self._busy and not _is_program() and callable(self._former):
            self._former(number, frame)
            return
        self._count += 1
        if self._count > 2:
            end_program_now()
        elif self._stop is None:
            _note_signal(number, FIRST_GRACE_SECONDS if self._count == 1 else GRACE_SECONDS)
        elif self._count == 1:
            self._log.warning("%s: %s", _SIGNAL_NAMES[signal.Signals(number)], self._stop())
        elif not self._stop_at_once():
            _note_signal(number, GRACE_SECONDS)

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
        self._stack.enter_context(hold_signals(*numbers, handler=self._handle))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        late = has_noted_signal()
        forget_signals()
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


_Argument = TypeVar("_Argument")
_Answer = TypeVar("_Answer")


def call_concurrently(
    call: Callable[[_Argument], _Answer], items: Sequence[_Argument], most: int, name: str
) -> list[_Answer]:
    """Return what a call returns for each item, at most ``most`` at a time; raises the first error.

    The threads delay neither Ctrl-C nor the end of the program. For those of ``concurrent.futures``, and what
    they still have to do, the interpreter waits at its end.

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
            answer = take_from_queue(answers)
            if isinstance(answer, BaseException):
                raise answer
            found[answer[0]] = answer[1]
    finally:
        with contextlib.suppress(queue.Empty):
            while True:
                waiting.get_nowait()
    return [found[place] for place in range(len(items))]
