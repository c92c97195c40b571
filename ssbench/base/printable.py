"""Text of others, as it may be shown: on a terminal, in a line of a report, in JSON, in a cell of CSV.

Names, transaction ids, error messages and lines of logs come from files and other hosts. What of them would
control a terminal, or let a line read in another order than it is written, is replaced. Everything that a
program prints passes through one of two sinks, :mod:`ssbench.run.terminal` and
:mod:`ssbench.cli.output_file`, which do that.

The only colours on terminals are those of tones (:class:`ssbench.document.elements.Tone`). NO_COLOR
(https://no-color.org) and FORCE_COLOR (https://force-color.org) are heeded; the first one wins.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from typing import IO, Any, TextIO, cast

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


# -- Printable texts -------------------------------------------------------------------------------


#: Control characters, line and paragraph separators, and what overrides the direction of writing (Unicode's
#: Technical Report 36, 2.5). Marks of a direction, which names in Arabic may hold, are not among them.
_CONTROL_CHARACTERS = "\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069"
_CONTROL_IN_TEXT_PATTERN = re.compile(f"[{_CONTROL_CHARACTERS}]")
_CONTROL_IN_LINE_PATTERN = re.compile(f"[{_CONTROL_CHARACTERS}\t\n\ud800-\udfff]")
_COLOUR_OR_CONTROL_PATTERN = re.compile(
    f"({'|'.join(map(re.escape, COLOUR_SEQUENCES))})|[{_CONTROL_CHARACTERS}]"
)

#: What a spreadsheet takes for the beginning of a formula
#: (https://owasp.org/www-community/attacks/CSV_Injection).
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
_NUMBER_PATTERN = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?%?\Z", re.ASCII)


def make_printable(text: str) -> str:
    """Return a text on one line, with U+FFFD for each character that controls a terminal or a line."""
    return text if text.isprintable() else _CONTROL_IN_LINE_PATTERN.sub("\ufffd", text)


def make_printable_lines(text: str) -> str:
    """Return a text of several lines with U+FFFD for each character that controls a terminal or a line."""
    return text if text.isprintable() else _CONTROL_IN_TEXT_PATTERN.sub("\ufffd", text)


def make_printable_coloured(text: str) -> str:
    """Return a text as :func:`make_printable_lines` does, but with the colours of :func:`paint_text`."""
    return (
        text
        if text.isprintable()
        else _COLOUR_OR_CONTROL_PATTERN.sub(lambda found: found[1] or "\ufffd", text)
    )


def escape_in_json(text: str) -> str:
    """Return a text of JSON in which these characters are written as escapes, so that nothing is lost."""
    return (
        text
        if text.isprintable()
        else _CONTROL_IN_TEXT_PATTERN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    )


def choose_cleaner(format_: str) -> Callable[[str], str]:
    """Return what makes texts of a format printable: nothing may be lost of JSON."""
    return escape_in_json if format_ == "json" else make_printable_lines


def escape_csv_cell(text: str) -> str:
    """Return a text for a cell of CSV: an apostrophe precedes what a spreadsheet would take for a formula."""
    text = make_printable(text)
    return (
        f"'{text}"
        if text.startswith(_FORMULA_STARTS) and not _NUMBER_PATTERN.match(text) and text != "-"
        else text
    )


class PrintableStream:
    """A text stream that passes on what ``clean`` makes of a text; all else is that of the stream."""

    def __init__(self, stream: TextIO, clean: Callable[[str], str]) -> None:
        self._stream = stream
        self._clean = clean

    def let_paint(self) -> None:
        """Let colours pass from now on; for what is made of texts that are printable each by itself."""
        if self._clean is make_printable_lines:
            self._clean = make_printable_coloured

    def write(self, text: str) -> int:
        """Write a text."""
        return self._stream.write(self._clean(text))

    def writelines(self, lines: Iterable[str]) -> None:
        """Write several."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def make_printable_stream(out: TextIO, clean: Callable[[str], str] = make_printable_lines) -> TextIO:
    """Return a stream over another one, which can be shown on a terminal whatever is written to it."""
    return cast("TextIO", PrintableStream(out, clean))
