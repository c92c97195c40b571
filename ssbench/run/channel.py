"""Text to a file descriptor, which never blocks, ends or fails the program.

A thread of its own writes. Text for which the reader is too slow, and text that cannot be written (a
closed pipe, a full disk), is dropped and counted.
"""

from __future__ import annotations

import io
import os
import select
import threading
from queue import SimpleQueue
from time import monotonic

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
