"""One character for each result of a benchmark, on standard error.

They are not shown where INFO lines are not (``-q``).
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache

import numpy as np
import numpy.typing as npt

from ssbench.results.block import ResultBlock
from ssbench.results.description import RunSummary
from ssbench.run import terminal
from ssbench.scenario.model import CRUD_OPERATIONS
from ssbench.scenario.operation import MAX_OPERATION_CODE, OperationKind
from ssbench.scenario.operation_table import OPERATIONS

#: Seconds between two writes of result characters.
_CHARACTER_SECONDS = 0.05

#: Latencies (seconds) from which the next character is used, and the characters.
_LATENCY_STEPS = (1.0, 3.0, 10.0)
_FIRST_BYTE_CHARACTERS, _LAST_BYTE_CHARACTERS = b".oO*", b"_|^@"


def describe_characters(names: Collection[str]) -> str:
    """Return the text that explains the characters of the operations of these names."""
    first, last = (
        ", ".join(
            row.name for row in OPERATIONS.drawn if row.times_first_byte is by_first and row.name in names
        )
        for by_first in (True, False)
    )
    return f"""\
Benchmark run:
  X    failed
  .  <  1 s  first byte  ({first})
  o  <  3 s  first byte
  O  < 10 s  first byte
  * >= 10 s  first byte
  _  <  1 s  last byte   ({last})
  |  <  3 s  last byte
  ^  < 10 s  last byte
  @ >= 10 s  last byte"""


@cache
def _character_tables(
    operations: tuple[OperationKind, ...],
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.bool_]]:
    """Return by code: the character of each step of latency; whether it is that of the first byte."""
    codes = np.zeros((MAX_OPERATION_CODE + 1, len(_LATENCY_STEPS) + 1), np.uint8)
    times_first_byte = np.zeros(MAX_OPERATION_CODE + 1, np.bool_)
    for operation in operations:
        times_first_byte[operation.code] = operation.times_first_byte
        codes[operation.code] = list(
            _FIRST_BYTE_CHARACTERS if operation.times_first_byte else _LAST_BYTE_CHARACTERS
        )
    return codes, times_first_byte


def make_result_characters(block: ResultBlock) -> str:
    """Return the character of each result; a latency that was not measured counts as fast."""
    operation = block.operation
    by_code, times_first_byte = _character_tables(OPERATIONS.drawn)
    if block.last_byte.max() < _LATENCY_STEPS[0]:  # then no first byte took longer either
        codes = by_code[operation, 0]
    else:
        latency = np.where(times_first_byte[operation], block.first_byte, block.last_byte)
        codes = by_code[operation, np.digitize(np.fmax(latency, 0.0), _LATENCY_STEPS)]
    if block.failures:
        codes[block.failed] = ord("X")
    text: bytes = codes.tobytes()
    return text.decode()


class ResultCharacters:
    """Writes one character a result to standard error, in chunks, after a legend with the first tick.

    A :class:`~ssbench.results.Sink`.
    """

    def __init__(self, names: Collection[str] = CRUD_OPERATIONS) -> None:
        """Take the names of the operations of a run that are not those of any."""
        self._names = {*CRUD_OPERATIONS, *names}
        self._wanted = terminal.shows_progress()
        self._chunks: list[str] = []
        self._wrote = 0.0
        self._has_legend = False

    def add(self, block: ResultBlock) -> None:
        """Receive results."""
        if self._wanted:
            self._chunks.append(make_result_characters(block))

    def tick(self, now: float) -> None:
        """Let what has gathered be seen, some tens of times a second at the most."""
        if self._wanted and not self._has_legend:
            self._has_legend = True
            terminal.write_line(describe_characters(self._names))
        if self._chunks and now - self._wrote >= _CHARACTER_SECONDS:
            self._wrote = now
            terminal.write_in_row("".join(self._chunks))
            self._chunks.clear()

    def end(self, _summary: RunSummary) -> None:
        """Write the rest and end the line."""
        self.tick(float("inf"))
        terminal.end_row()
