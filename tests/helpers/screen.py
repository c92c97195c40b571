"""What a terminal shows: a small emulator of what ssbench writes to one."""

from __future__ import annotations

import re

_TOKEN = re.compile(r"\x1b\[([?\d;]*)([A-Za-z])|(\r)|(\n)|([^\r\n\x1b]+)")


class Screen:
    """The lines that remain after a text was written to a terminal of some columns; none is lost above."""

    def __init__(self, columns: int) -> None:
        self._columns = columns
        self._lines = [""]
        self._row = self._column = 0

    def write(self, text: str) -> Screen:
        for match in _TOKEN.finditer(text):
            number, command, back, down, plain = match.groups()
            if back:
                self._column = 0
            elif down:
                self._down()
            elif plain:
                for character in plain:
                    self._put(character)
            elif command == "A":
                self._row -= int(number or 1)
            elif command in {"K", "J"} and not number:
                self._lines[self._row] = self._lines[self._row][: self._column]
                if command == "J":
                    del self._lines[self._row + 1 :]
        return self

    def _put(self, character: str) -> None:
        if self._column == self._columns:
            self._down()
            self._column = 0
        line = self._lines[self._row].ljust(self._column)
        self._lines[self._row] = line[: self._column] + character + line[self._column + 1 :]
        self._column += 1

    def _down(self) -> None:
        self._row += 1
        if self._row == len(self._lines):
            self._lines.append("")

    @property
    def lines(self) -> list[str]:
        """All lines; the last one, an empty one, is where the shell would write its prompt."""
        return [line.rstrip() for line in self._lines]
