"""Standard error, which whole lines and rows of single characters share.

A program calls :func:`set_up_terminal` first. From then on nothing that it writes here can block, end or fail
it: text goes to an :class:`OutputChannel`, which has a thread of its own for writing. Text that its reader is
too slow for, or that cannot be written (a closed pipe, a full disk), is dropped and counted. Names in
messages come from files and other hosts, so all text is made printable.
"""

from __future__ import annotations

import atexit
import io
import logging
import os
import select
import stat
import sys
import threading
from collections.abc import Sequence
from queue import SimpleQueue
from time import monotonic, sleep

from ssbench.base import interruption, printable
from ssbench.base.printable import make_printable, make_printable_lines

#: For ``extra`` of a log call below the report: the user needs the message after the program has ended.
_REMAINS = "remains"
REMAINS = {_REMAINS: True}

#: Maximum bytes that wait for the reader: of text that may be dropped, and of all text.
_MAX_OPTIONAL_BYTES = 256 * 1024
_MAX_WAITING_BYTES = 1024 * 1024

#: Text that is written within this many seconds did not wait for the reader.
_PROMPT_SECONDS = 0.1


def _delayed_seconds(seconds: float) -> float:
    """Return the seconds of writing if they are more than a reader that reads makes it take."""
    return seconds if seconds > _PROMPT_SECONDS else 0.0


class OutputChannel(io.TextIOBase):
    """A text stream over a file descriptor; nothing waits for the reader except :meth:`drain`.

    ``descriptor`` is None where the program was started with a closed one; then all text is dropped. May
    be used by any thread, and by a signal handler in the middle of a call.
    """

    encoding = "utf-8"
    errors = "backslashreplace"

    def __init__(self, descriptor: int | None, encoding: str = "utf-8") -> None:
        self.encoding = encoding
        #: The first error of writing; None where the reader was no worse than slow.
        self.failure: OSError | None = None
        self._descriptor = descriptor
        self._lost = self._waiting = 0
        self._sparing = False
        self._waited = 0.0
        self._writing_since: float | None = None
        # Reentrant, because a signal handler may log while its own thread counts.
        self._counting = threading.RLock()
        self._queue: SimpleQueue[tuple[bytes, bool] | threading.Event] = SimpleQueue()
        if descriptor is not None:
            threading.Thread(target=self._write, args=(descriptor,), name="output", daemon=True).start()

    def write(self, text: str) -> int:
        """Hand over text; it is dropped only when more than 1 MiB waits, and what is beyond 1 MiB of it."""
        self._hand_over(text, False)
        return len(text)

    def write_if_read(self, text: str) -> None:
        """Hand over text that may be dropped; it is when the reader does not keep up."""
        self._hand_over(text, True)

    @property
    def behind(self) -> bool:
        """Return whether so much waits that text that may be dropped soon will be."""
        return self._waiting > _MAX_OPTIONAL_BYTES // 2

    @property
    def unread(self) -> int:
        """Return the number of bytes that were dropped or are still waiting."""
        return self._lost + self._waiting

    @property
    def seconds_unread(self) -> float:
        """Return how long, in seconds, text has waited for a reader that did not read."""
        since = self._writing_since
        return self._waited + (_delayed_seconds(monotonic() - since) if since is not None else 0.0)

    @property
    def waiting(self) -> int:
        """Return the number of bytes that are still waiting."""
        return self._waiting

    @property
    def why(self) -> str:
        """Return why they are unread, for a message."""
        if self._descriptor is None:
            return "it is closed"
        return str(self.failure.strerror) if self.failure else "it has no reader"

    def drain(self, seconds: float) -> bool:
        """Wait until all text is written or dropped, or ``seconds`` have passed; return whether it is."""
        if self._descriptor is None:
            return True
        reached = threading.Event()
        self._queue.put(reached)
        return reached.wait(seconds)

    def finish(self, seconds: float) -> None:
        """Drain; if that takes longer, drop the text that may be dropped and wait as long again."""
        if not self.drain(seconds):
            self._sparing = True
            self.drain(seconds)

    def _hand_over(self, text: str, spare: bool) -> None:
        data = text.encode(self.encoding, self.errors)
        if len(data) > _MAX_WAITING_BYTES and not spare:  # it would never fit
            with self._counting:
                self._lost += len(data) - _MAX_WAITING_BYTES + self._waiting
                data = data[: _MAX_WAITING_BYTES - self._waiting]
        size = len(data)
        with self._counting:
            if self._descriptor is None or self._waiting + size > (
                _MAX_OPTIONAL_BYTES if spare else _MAX_WAITING_BYTES
            ):
                self._lost += size
                return
            self._waiting += size
        self._queue.put((data, spare))

    def _write(self, descriptor: int) -> None:
        """Write what is handed over; the main function of the thread."""
        while True:
            item = self._queue.get()
            if isinstance(item, threading.Event):
                item.set()
                continue
            data, spare = item
            began = self._writing_since = monotonic()
            left = len(data) if spare and self._sparing else self._write_all(descriptor, data)
            self._writing_since = None
            self._waited += _delayed_seconds(monotonic() - began)
            with self._counting:
                self._waiting -= len(data)
                self._lost += left

    def _write_all(self, descriptor: int, data: bytes) -> int:
        """Write ``data``; return how many bytes of it could not be written."""
        while data:
            try:
                data = data[os.write(descriptor, data) :]
            except BlockingIOError:  # another process that shares the descriptor made it non-blocking
                select.select([], [descriptor], [])
            except OSError as error:
                self.failure = self.failure or error
                break
        return len(data)

    # Other methods of a stream, which progress bars call.

    def writable(self) -> bool:
        """Return True."""
        return True

    def isatty(self) -> bool:
        """Return whether the reader is a terminal."""
        return self._descriptor is not None and os.isatty(self._descriptor)

    def fileno(self) -> int:
        """Return the descriptor; raises OSError where it is closed."""
        if self._descriptor is None:
            raise OSError("closed")
        return self._descriptor


# -- Lines and rows on standard error --------------------------------------------------------------


#: Seconds to wait at the end of the program, or of a run, for a reader that does not keep up.
_DRAIN_SECONDS = 1.0

_channel: OutputChannel | None = None
_in_row = False
_passing_shown = False
#: Lines that are drawn and can be drawn over.
_drawn_lines = 0

#: The width of a terminal that does not tell it.
_USUAL_COLUMNS = 80

#: Levels of log lines, and their tones.
_LEVEL_TONES = {"WARNING": "doubtful", "ERROR": "bad", "CRITICAL": "bad"}

#: Erases the rest of a line of a terminal.
_ERASE_REST = "\x1b[K"

#: Erases the rest of the screen.
_ERASE_BELOW = "\x1b[J"


def set_up_terminal() -> None:
    """Send everything that is written to standard error through a channel."""
    global _channel  # noqa: PLW0603 - there is one standard error
    if sys.stderr is not sys.__stderr__:
        return  # set up already, or replaced by a test
    _reserve_descriptors()
    _channel = OutputChannel(sys.stderr.fileno(), sys.stderr.encoding) if sys.stderr else OutputChannel(None)
    sys.stderr = _channel
    atexit.register(_channel.finish, _DRAIN_SECONDS)
    atexit.register(end_row)  # before that
    interruption.set_last_line_writer(_write_last)


def _write_last(text: str) -> None:
    """Write the last line of a program that ends on the spot, in the middle of whatever is executed."""
    end = monotonic() + _DRAIN_SECONDS
    while _channel is not None and _channel.waiting and monotonic() < end:
        sleep(0.01)
    erase = _to_first_line() + (_ERASE_REST if _drawn_lines == 1 else _ERASE_BELOW) if _drawn_lines else ""
    interruption.write_last_line(erase + ("\n" if _in_row else "") + text)


def _reserve_descriptors() -> None:
    """Open /dev/null for each closed standard descriptor, so that no other file gets its number."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def write_in_row(text: str) -> None:
    """Write characters without an end of line; they are dropped when the reader does not keep up."""
    global _in_row  # noqa: PLW0603 - there is one standard error
    _in_row = True
    _write_if_read(make_printable_lines(text))


def redraw_line(text: str) -> None:
    """Write a line over the one that was drawn before; it is dropped when the reader does not keep up.

    It must be shorter than a line of the terminal. It disappears when anything else is written.
    """
    redraw_lines([text])


def redraw_lines(lines: Sequence[str]) -> None:
    """Write one line or more as :func:`redraw_line` does; there must be fewer than the terminal has."""
    global _drawn_lines  # noqa: PLW0603 - there is one standard error
    text = "\r\n".join(f"{_painted(line)}{_ERASE_REST}" for line in lines)
    _write_if_read(_to_first_line() + text + (_ERASE_BELOW if _drawn_lines > 1 else ""))
    _drawn_lines = len(lines)


def _painted(line: str) -> str:
    """Return a printable line, in its colour where it has one."""
    tone = line.tone if isinstance(line, printable.TonedText) and printable.wants_colours(sys.stderr) else ""
    return printable.paint_text(make_printable(line), tone)


def _to_first_line() -> str:
    return "\r" if _drawn_lines < 2 else f"\r\x1b[{_drawn_lines - 1}A"


def _write_if_read(text: str) -> None:
    if _channel is not None:
        _channel.write_if_read(text)
    else:
        sys.stderr.write(text)


def write_line(text: str, level: str = "") -> None:
    """Write a line, or several, after ending the row of characters before it.

    ``level`` is a word of it, such as WARNING, that has a colour where there are colours.
    """
    end_row()
    text = make_printable_lines(text)
    if level in _LEVEL_TONES and printable.wants_colours(sys.stderr):
        text = text.replace(level, printable.paint_text(level, _LEVEL_TONES[level]), 1)
    sys.stderr.write(text + "\n")


def end_row() -> None:
    """End the row of characters, and remove the line that is redrawn, if there is one."""
    global _drawn_lines, _in_row  # noqa: PLW0603 - there is one standard error
    if _drawn_lines:
        erase = _to_first_line() + (_ERASE_REST if _drawn_lines == 1 else _ERASE_BELOW)
        _drawn_lines = 0
        sys.stderr.write(erase)
    if _in_row:
        _in_row = False
        sys.stderr.write("\n")


def keep_drawn() -> None:
    """Let the lines that are redrawn remain; what follows is written below them."""
    global _drawn_lines  # noqa: PLW0603 - there is one standard error
    if _drawn_lines:
        _drawn_lines = 0
        sys.stderr.write("\r\n")


def keep_output() -> None:
    """Let what standard output has just shown be what remains on the screen.

    From now on, messages that are only for information are drawn in one line, which disappears
    (:func:`write_passing`); warnings, and those with :data:`REMAINS`, remain. Without effect where standard
    output and standard error are not one terminal, and with ``-v``.
    """
    global _passing_shown  # noqa: PLW0603 - there is one standard error
    _passing_shown = (
        can_redraw() and shares_standard_output() and not logging.getLogger().isEnabledFor(logging.DEBUG)
    )


def may_disappear(record: logging.LogRecord) -> bool:
    """Return whether a message is only for information on what is going on."""
    return record.levelno <= logging.INFO and not getattr(record, _REMAINS, False)


def messages_disappear() -> bool:
    """Return whether messages that are only for information disappear again."""
    return _passing_shown


def write_passing(text: str) -> None:
    """Show a line that disappears with the next one, or at the end of the program."""
    # ASCII, so that each character takes one column.
    redraw_line(text.encode("ascii", "replace").decode()[: (terminal_width() or _USUAL_COLUMNS) - 1])


def shares_standard_output() -> bool:
    """Return whether standard output and standard error are one terminal, or one file (``2>&1``)."""
    try:
        out, err = (os.fstat(stream.fileno()) for stream in (sys.stdout, sys.stderr))
    except (AttributeError, OSError, ValueError):  # it is closed, or replaced by a test
        return False
    # A terminal may be open under two names.
    if out.st_rdev:
        return out.st_rdev == err.st_rdev
    return (out.st_dev, out.st_ino) == (err.st_dev, err.st_ino)


def writes_to_pipe() -> bool:
    """Return whether standard output is a pipe."""
    try:
        return stat.S_ISFIFO(os.fstat(sys.stdout.fileno()).st_mode)
    except (AttributeError, OSError, ValueError):  # it is closed, or replaced by a test
        return False


def shows_progress() -> bool:
    """Return whether progress is shown, which it is where INFO lines are (not with ``-q``)."""
    return logging.getLogger().isEnabledFor(logging.INFO)


def can_redraw() -> bool:
    """Return whether standard error is a terminal on which a line can be redrawn."""
    return sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def terminal_width() -> int | None:
    """Return the width of the terminal; None where it does not tell it."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or None
    except (OSError, ValueError):
        return None


def terminal_height() -> int | None:
    """Return the height of the terminal; None where it does not tell it."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).lines or None
    except (OSError, ValueError):
        return None


def terminal_encoding() -> str:
    """Return the encoding of standard error."""
    return getattr(sys.stderr, "encoding", None) or "ascii"


def is_reader_behind() -> bool:
    """Return whether the reader does not keep up, so that optional text should be left out."""
    return _channel is not None and _channel.behind


def drain_output() -> None:
    """Wait up to a second until the text is written: before standard output is, and before a question."""
    if _channel is not None:
        _channel.drain(_DRAIN_SECONDS)


def describe_output_loss() -> str | None:
    """Drain; then return how much of standard error was not written and why, None where all was."""
    drain_output()
    if _channel is None or not _channel.unread:
        return None
    return f"Output: {_channel.unread:,} bytes for standard error were not written: {_channel.why}"


def seconds_unread() -> float:
    """Return how long, in seconds, standard error has waited for its reader."""
    return 0.0 if _channel is None else _channel.seconds_unread
