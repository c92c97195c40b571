"""Text to a descriptor that never holds up, ends or fails the program.

A thread of its own does the writing. What the reader is too slow for, and what cannot be written (a
closed pipe, a full disk), is dropped and counted.
"""

from __future__ import annotations

import io
import os
import select
import threading
from queue import SimpleQueue

#: Bytes that may wait for the reader: while text that can be spared comes, and at the most.
_MOST_SPARED = 256 * 1024
_MOST = 1024 * 1024


class Channel(io.TextIOBase):
    """A text stream over a descriptor; nothing it does waits for the reader, but :meth:`drain`.

    ``descriptor`` is None where the program was started with a closed one: all is dropped. May be used
    by any thread, and by a signal handler in the middle of a call.
    """

    encoding = "utf-8"
    errors = "backslashreplace"

    def __init__(self, descriptor: int | None, encoding: str = "utf-8") -> None:
        self.encoding = encoding
        #: The first error of writing; None where there was no more than a slow reader.
        self.failure: OSError | None = None
        self._descriptor = descriptor
        self._lost = self._waiting = 0
        self._sparing = False
        # Reentrant, because a signal handler may log while its own thread counts.
        self._counting = threading.RLock()
        self._queue: SimpleQueue[tuple[bytes, bool] | threading.Event] = SimpleQueue()
        if descriptor is not None:
            threading.Thread(target=self._write, args=(descriptor,), name="output", daemon=True).start()

    def write(self, text: str) -> int:
        """Hand over text that is dropped only when very much waits."""
        self._hand_over(text, False)
        return len(text)

    def write_if_read(self, text: str) -> None:
        """Hand over text that can be spared: it is dropped as soon as the reader does not keep up."""
        self._hand_over(text, True)

    @property
    def behind(self) -> bool:
        """Whether so much waits that text that can be spared will soon be dropped."""
        return self._waiting > _MOST_SPARED // 2

    @property
    def unread(self) -> int:
        """Bytes that were dropped, and those that wait at this moment."""
        return self._lost + self._waiting

    @property
    def why(self) -> str:
        """Why they are unread."""
        if self._descriptor is None:
            return "it is closed"
        return str(self.failure.strerror) if self.failure else "nobody reads it"

    def drain(self, seconds: float) -> bool:
        """Wait until all is written or dropped, so long at most; whether it is."""
        if self._descriptor is None:
            return True
        reached = threading.Event()
        self._queue.put(reached)
        return reached.wait(seconds)

    def finish(self, seconds: float) -> None:
        """Drain; where that takes longer, drop what can be spared and give the rest as long again."""
        if not self.drain(seconds):
            self._sparing = True
            self.drain(seconds)

    def _hand_over(self, text: str, spare: bool) -> None:
        data = text.encode(self.encoding, self.errors)
        size = len(data)
        with self._counting:
            if self._descriptor is None or self._waiting + size > (_MOST_SPARED if spare else _MOST):
                self._lost += size
                return
            self._waiting += size
        self._queue.put((data, spare))

    def _write(self, descriptor: int) -> None:
        """Write what comes; the body of the thread."""
        while True:
            item = self._queue.get()
            if isinstance(item, threading.Event):
                item.set()
                continue
            data, spare = item
            left = len(data) if spare and self._sparing else self._write_all(descriptor, data)
            with self._counting:
                self._waiting -= len(data)
                self._lost += left

    def _write_all(self, descriptor: int, data: bytes) -> int:
        """Write ``data``; returns how many bytes of it could not be written."""
        while data:
            try:
                data = data[os.write(descriptor, data) :]
            except BlockingIOError:  # somebody who shares the descriptor made it so
                select.select([], [descriptor], [])
            except OSError as error:
                self.failure = self.failure or error
                break
        return len(data)

    # What a stream has to have besides; a bar asks for it.

    def writable(self) -> bool:
        """It is."""
        return True

    def isatty(self) -> bool:
        """Whether the reader is a terminal."""
        return self._descriptor is not None and os.isatty(self._descriptor)

    def fileno(self) -> int:
        """Return the descriptor; raises OSError where it is closed."""
        if self._descriptor is None:
            raise OSError("closed")
        return self._descriptor
