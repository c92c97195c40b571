"""What a user sees while something goes on: bars, lines every few seconds, one character a result.

All of it goes to standard error, and none of it appears when INFO lines do not (``-q``).
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING

from ssbench.operations import OPERATIONS
from ssbench.results import Failure, ResultRow
from ssbench.screen import terminal

if TYPE_CHECKING:
    from ssbench.screen.bars import SparingProgress

_log = logging.getLogger(__name__)

#: Seconds between two lines where there is no terminal to draw a bar on.
_LINE_SECONDS = 5.0

#: Seconds between two writes of result characters.
_WRITE_SECONDS = 0.05


def wanted() -> bool:
    """Whether the user wants to see anything but warnings."""
    return _log.isEnabledFor(logging.INFO)


class Bar:
    """Progress of something countable: a bar on a terminal, else a line every few seconds.

    A context manager; ``total`` may be None where it is not known.
    """

    def __init__(self, what: str, total: int | None) -> None:
        self._what = what
        self._total = total
        self._done = 0
        self._began = self._said = time.monotonic()
        self._bar: SparingProgress | None = None
        if wanted() and sys.stderr.isatty():
            from ssbench.screen import bars  # noqa: PLC0415 - see there

            self._bar = bars.counting()
            self._task = self._bar.add_task(what, total=total)

    def advance(self, count: int = 1) -> None:
        """So many more are done."""
        self._done += count
        if self._bar is not None:
            self._bar.show(self._task, done=self._done)
            return
        now = time.monotonic()
        if now - self._said >= _LINE_SECONDS:
            self._said = now
            rate = self._done / (now - self._began)
            text = f"{self._what}: {self._done}"
            if self._total is not None:
                text += f" of {self._total}"
            text += f", {rate:,.0f}/s"
            if self._total is not None and rate > 0:
                text += f", {(self._total - self._done) / rate:,.0f} s left"
            _log.info("%s", text)

    def expect(self, total: int) -> None:
        """There are at least so many."""
        if self._total is not None and total > self._total:
            self._total = total
            if self._bar is not None:
                self._bar.update(self._task, total=total)

    def __enter__(self) -> Bar:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()


LEGEND = """\
Benchmark run:
  X    failed
  .  <  1 s  first byte  (read, delete)
  o  <  3 s  first byte
  O  < 10 s  first byte
  * >= 10 s  first byte
  _  <  1 s  last byte   (create, update)
  |  <  3 s  last byte
  ^  < 10 s  last byte
  @ >= 10 s  last byte"""

_FIRST, _LAST = ".oO*", "_|^@"
_FAST = "".join(_FIRST[0] if operation.times_first_byte else _LAST[0] for operation in OPERATIONS)


def character(row: ResultRow) -> str:
    """The character of a result that succeeded; a latency that was not measured counts as fast."""
    first = OPERATIONS[row[0]].times_first_byte
    latency = row[6] if first else row[7]
    place = 3 if latency >= 10 else 2 if latency >= 3 else 1 if latency >= 1 else 0
    return (_FIRST if first else _LAST)[place]


class ResultCharacters:
    """Writes one character a result to standard error, in chunks, after a legend."""

    def __init__(self) -> None:
        self._wanted = wanted()
        self._chunks: list[str] = []
        self._wrote = 0.0
        if self._wanted:
            terminal.write_line(LEGEND)

    def add(self, rows: Iterable[ResultRow], failures: dict[int, Failure]) -> None:
        """These results have come; ``failures`` is keyed by their position."""
        if not self._wanted:
            return
        # One comparison a result: a latency of 1 s or more is rare, and so is a failure.
        characters = [_FAST[row[0]] if not row[7] >= 1.0 else character(row) for row in rows]
        for position, failure in failures.items():
            if failure.cause is not None:
                characters[position] = "X"
        self._chunks.append("".join(characters))

    def write(self, now: float) -> None:
        """Let what has gathered be seen, some tens of times a second at the most."""
        if self._chunks and now - self._wrote >= _WRITE_SECONDS:
            self._wrote = now
            terminal.write_in_row("".join(self._chunks))
            self._chunks.clear()

    def end(self) -> None:
        """Write the rest and end the line."""
        self.write(float("inf"))
        terminal.end_row()
