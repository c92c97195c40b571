"""Ctrl-C and other signals that end a program: noted when they come, heeded where that does no harm.

A handler that raises does so at any instruction, such as between the line that takes the lock of a Popen and
the ``try`` that releases it; ``Popen.wait`` then waits for that lock for ever. So no handler here raises:

- A program that has called :func:`begin` ends on the spot: one line, exit code 130, and nothing else of it is
  executed. That is safe at any instruction. What must not stay behind is named with :func:`undone`.
- In the context of :func:`held` a signal is only noted. Code that waits calls :func:`check`, which raises
  KeyboardInterrupt where that does no harm, or :func:`sleep` and :func:`take`, which call it.
- A program that does not come to a check in time ends on the spot.
"""

from __future__ import annotations

import _thread
import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TypeVar

from ssbench.base.errors import ExitCode

_Item = TypeVar("_Item")

#: Seconds to the next check after the first signal and after each further one; then the program ends on the
#: spot. The first has time for a busy machine, because what was made is removed then.
FIRST_GRACE, GRACE = 5.0, 1.0

#: Seconds between two checks of what waits.
_TICK = 0.1

_NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


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
        self.say: Callable[[str], object] = write_last


def write_last(text: str) -> None:
    """Write to standard error, unless its reader does not read."""
    import select  # noqa: PLC0415 - the beginning of each program does without

    with suppress(OSError, ValueError):
        if select.select([], [2], [], 0)[1]:
            os.write(2, text.encode())


_state = _State()


def begin(program: str) -> None:
    """Let Ctrl-C end this process on the spot, unless it is ignored; a ``program`` calls this first."""
    _state.program = program
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda _number, _frame: end_on_the_spot())


def is_program() -> bool:
    """Return whether this process is a program of ours, and not one that uses ssbench as a library."""
    return _state.program is not None


def say_with(say: Callable[[str], object]) -> None:
    """Let ``say`` write the last line; it must wait neither for locks nor for a reader."""
    _state.say = say


def end_on_the_spot() -> None:
    """End the process with exit code 130. Children of ours end when they see that it has ended."""
    for call in reversed(_state.undo):
        with suppress(Exception):
            call()
    with suppress(Exception):
        _state.say(f"{_state.program or 'ssbench'}: interrupted\n")
    os._exit(ExitCode.INTERRUPTED)


@contextmanager
def undone(call: Callable[[], object]) -> Iterator[None]:
    """Have ``call`` called where the program ends on the spot in this context; it must wait for no lock."""
    _state.undo.append(call)
    try:
        yield
    finally:
        _state.undo.remove(call)


@contextmanager
def held(
    *also: signal.Signals, handler: Callable[[int, FrameType | None], object] | None = None
) -> Iterator[None]:
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
        number: signal.signal(number, handler or _note)
        for number in _NUMBERS
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


def _note(number: int, _frame: FrameType | None) -> None:
    _state.count += 1
    note(number, FIRST_GRACE if _state.count == 1 else GRACE)


def note(number: int, grace: float) -> None:
    """Note a signal, for the next :func:`check`; a program of ours has ``grace`` seconds to come to one."""
    deadline = time.monotonic() + grace
    _state.deadline = deadline if _state.noted is None else min(_state.deadline, deadline)
    _state.noted = number
    if _state.program is not None:
        # Without the locks that threading.Thread takes, which the interrupted code may have.
        _thread.start_new_thread(_watch, ())


def _watch() -> None:
    """End the program where it does not heed the signal in time; the body of a thread."""
    while _state.noted is not None:
        left = _state.deadline - time.monotonic()
        if left <= 0:
            end_on_the_spot()
        time.sleep(min(_TICK / 2, left))


def forget() -> None:
    """Drop what was noted: the program ends anyway."""
    _state.noted = None


def noted() -> bool:
    """Return whether a signal was noted that is not heeded yet."""
    return _state.noted is not None


def check() -> None:
    """Raise KeyboardInterrupt where a signal was noted; in other threads than the main one do nothing."""
    if _state.noted is not None and threading.current_thread() is threading.main_thread():
        _state.noted = None
        raise KeyboardInterrupt


def sleep(seconds: float) -> None:
    """Sleep, and check meanwhile."""
    end = time.monotonic() + seconds
    check()
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(_TICK, left))
        check()


def take(items: queue.SimpleQueue[_Item], timeout: float = float("inf")) -> _Item:
    """Return the next item of a queue, and check meanwhile; raises queue.Empty after ``timeout`` seconds."""
    end = time.monotonic() + timeout
    while True:
        check()
        left = end - time.monotonic()
        try:
            return items.get(timeout=max(0.0, min(_TICK, left)))
        except queue.Empty:
            if left <= _TICK:
                raise
