"""Colours on terminals: when they are wanted, and how they are written.

A tone is the value of a :class:`ssbench.document.Tone`. NO_COLOR (https://no-color.org) and FORCE_COLOR
(https://force-color.org) are heeded; the first one wins.
"""

from __future__ import annotations

import os
from typing import IO, Any

#: The codes of tones (ECMA-48, SGR): green, yellow, bold red. What is open has none.
_TONE_CODES = {"good": "\x1b[32m", "doubtful": "\x1b[33m", "bad": "\x1b[1;31m"}
_RESET_CODE = "\x1b[0m"

#: All that :func:`paint_text` writes besides the text.
COLOUR_SEQUENCES = (*_TONE_CODES.values(), _RESET_CODE)

#: The descriptors that FORCE_COLOR is for; a file that the user names has no colours.
_STANDARD_DESCRIPTORS = (1, 2)


class TonedText(str):
    """A text with a tone."""

    __slots__ = ("tone",)

    tone: str

    @classmethod
    def of(cls, text: str, tone: str) -> TonedText:
        """Make one."""
        made = cls(text)
        made.tone = tone
        return made


def paint_text(text: str, tone: str | None) -> str:
    """Return a text in the colour of a tone; as it is where that has none."""
    code = _TONE_CODES.get(tone or "")
    return f"{code}{text}{_RESET_CODE}" if code and text else text


def wants_colours(stream: IO[Any]) -> bool:
    """Return whether colours are written to a stream: to a terminal, unless the user wants otherwise."""
    if os.environ.get("NO_COLOR"):
        return False
    try:
        if os.environ.get("FORCE_COLOR", "0") not in {"", "0", "false"}:
            return stream.fileno() in _STANDARD_DESCRIPTORS
        return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    except (AttributeError, OSError, ValueError):  # it is closed, or replaced by a test
        return False
