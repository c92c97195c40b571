"""One character for each result of a benchmark, on standard error.

They are not shown where INFO lines are not (``-q``).
"""

from __future__ import annotations

from collections.abc import Iterable

from ssbench.operations import OPERATIONS
from ssbench.results import Failure, ResultRow
from ssbench.screen import terminal

#: Seconds between two writes of result characters.
_WRITE_SECONDS = 0.05


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
        self._wanted = terminal.shows_progress()
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
