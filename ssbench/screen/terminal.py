"""Standard error as a place that two kinds of text share: whole lines, and characters in a row."""

from __future__ import annotations

import sys

_in_row = False


def write_in_row(text: str) -> None:
    """Write characters without an end of line."""
    global _in_row  # noqa: PLW0603 - there is one standard error
    _in_row = True
    sys.stderr.write(text)
    sys.stderr.flush()


def write_line(text: str) -> None:
    """Write a line of its own, ending the row of characters before it."""
    end_row()
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def end_row() -> None:
    """Begin a new line where characters stand in this one."""
    global _in_row  # noqa: PLW0603 - there is one standard error
    if _in_row:
        _in_row = False
        sys.stderr.write("\n")
        sys.stderr.flush()
