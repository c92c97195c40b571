"""One character for each result of a benchmark, on standard error.

They are not shown where INFO lines are not (``-q``).
"""

from __future__ import annotations

import numpy as np

from ssbench.operations import OPERATIONS
from ssbench.results import ResultBlock, RunSummary
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

#: Seconds from which on a latency is shown by the next character.
_STEPS = (1.0, 3.0, 10.0)
_CODES = np.frombuffer(
    "".join(".oO*" if operation.times_first_byte else "_|^@" for operation in OPERATIONS).encode(), np.uint8
).reshape(len(OPERATIONS), len(_STEPS) + 1)
_TIMES_FIRST_BYTE = np.array([operation.times_first_byte for operation in OPERATIONS])


def characters(block: ResultBlock) -> str:
    """The character of each result; a latency that was not measured counts as fast."""
    operation = block.operation
    if block.last_byte.max() < _STEPS[0]:  # and so is none of the first bytes, which come before
        codes = _CODES[operation, 0]
    else:
        latency = np.where(_TIMES_FIRST_BYTE[operation], block.first_byte, block.last_byte)
        codes = _CODES[operation, np.digitize(np.fmax(latency, 0.0), _STEPS)]
    if block.failures:
        codes[block.failed] = ord("X")
    text: bytes = codes.tobytes()
    return text.decode()


class ResultCharacters:
    """Writes one character a result to standard error, in chunks, after a legend with the first tick.

    A :class:`~ssbench.results.Sink`.
    """

    def __init__(self) -> None:
        self._wanted = terminal.shows_progress()
        self._chunks: list[str] = []
        self._wrote = 0.0
        self._has_legend = False

    def add(self, block: ResultBlock) -> None:
        """Take in results."""
        if self._wanted:
            self._chunks.append(characters(block))

    def tick(self, now: float) -> None:
        """Let what has gathered be seen, some tens of times a second at the most."""
        if self._wanted and not self._has_legend:
            self._has_legend = True
            terminal.write_line(LEGEND)
        if self._chunks and now - self._wrote >= _WRITE_SECONDS:
            self._wrote = now
            terminal.write_in_row("".join(self._chunks))
            self._chunks.clear()

    def end(self, _summary: RunSummary) -> None:
        """Write the rest and end the line."""
        self.tick(float("inf"))
        terminal.end_row()
