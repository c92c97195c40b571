"""Text that fits a terminal: wrapping by the width of characters, short numbers, bars."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from ssbench.document.figures import count_needed_results

#: Columns that no line exceeds where more are not known to be there.
DEFAULT_COLUMNS = 80

#: A blank at which no line is broken.
NO_BREAK_SPACE = "\N{NO-BREAK SPACE}"

_BAR_HEIGHTS = "▁▂▃▄▅▆▇█"
_ASCII_BAR_HEIGHTS = "_.:-=+*#"
_BAR_EIGHTHS = "▏▎▍▌▋▊▉█"


def measure_width(text: str) -> int:
    """Return how many columns a text takes on a terminal."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # noqa: PLC0415 - 10 ms that most texts do without

    return cell_len(text)


def cut_text(text: str, columns: int) -> str:
    """Return a text, or as much of its beginning as has room, with ``~`` after it."""
    if measure_width(text) <= columns:
        return text
    while measure_width(text) > columns - 1:
        text = text[:-1]
    return text + "~"


def wrap_words(
    words: Iterable[str], indent: int = 2, between: str = " ", columns: int = DEFAULT_COLUMNS
) -> Iterator[str]:
    """Yield lines of words, each after the first indented; too long a word is broken, at a blank of it."""
    line = ""
    room = columns - len(between.rstrip())  # which is at the end of a line too
    for word in words:
        if line and measure_width(line) + len(between) + measure_width(word) <= room:
            line += between + word
            continue
        if line:
            yield (line + between).rstrip()
            line = " " * indent
        line += word
        while measure_width(line) > columns:
            fits = next(place for place in range(columns, 0, -1) if measure_width(line[:place]) <= columns)
            blank = line.rfind(" ", indent + 1, fits + 1)
            yield line[:fits] if blank < 0 else line[:blank]
            line = " " * indent + (line[fits:] if blank < 0 else line[blank + 1 :])
    if line:
        yield line


def wrap_paragraph(text: str, indent: int = 2, columns: int = DEFAULT_COLUMNS) -> Iterator[str]:
    """Yield a text in lines, broken at blanks."""
    return wrap_words(text.split(" "), indent, columns=columns)


def keep_unbroken(text: str) -> str:
    """Return a text that stays on one line where it fits."""
    return text.replace(" ", NO_BREAK_SPACE)


def describe_too_few(ranks: Iterable[float]) -> str:
    """Return what ``-`` means in place of these percentiles."""
    needs = ", ".join(f"p{rank:g} {count_needed_results(rank):,}" for rank in ranks)
    return f"-: too few operations (needed: {needs})"


def format_clock(seconds: float) -> str:
    """Return seconds after the start of a run as ``00:17`` or ``1:02:03``."""
    minutes, rest = divmod(int(max(seconds, 0.0)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes:02}:{rest:02}"


def format_plural(number: int, noun: str) -> str:
    """Return a number and a noun, with an s where it needs one."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def draw_bar(share: float, columns: int, encoding: str) -> str:
    """Return a line as long as a share of this many columns; a plain one where others cannot be encoded."""
    whole, part = divmod(round(min(max(share, 0.0), 1.0) * columns * len(_BAR_EIGHTHS)), len(_BAR_EIGHTHS))
    if not _can_encode(_BAR_EIGHTHS, encoding):
        return "#" * round(whole + part / len(_BAR_EIGHTHS))
    return _BAR_EIGHTHS[-1] * whole + (_BAR_EIGHTHS[part - 1] if part else "")


def draw_bars(values: Iterable[float], encoding: str, most: float | None = None) -> str:
    """Return a character for each value, from 0 to ``most`` or the largest, and a blank for NaN.

    They are plain ones where others cannot be encoded.
    """
    values = list(values)
    levels = _BAR_HEIGHTS if _can_encode(_BAR_HEIGHTS, encoding) else _ASCII_BAR_HEIGHTS
    most = most or max(values, default=0.0) or 1.0
    return "".join(
        " " if math.isnan(value) else levels[min(int(value / most * len(levels)), len(levels) - 1)]
        for value in values
    )


def draw_columns(values: Iterable[float], encoding: str, rows: int, most: float) -> list[str]:
    """Return lines, the top one first: each value is a column, from 0 to ``most``, and NaN a blank."""
    levels = _BAR_HEIGHTS if _can_encode(_BAR_HEIGHTS, encoding) else _ASCII_BAR_HEIGHTS
    # In steps of a character's levels; what is above 0 is seen.
    heights = [
        0 if math.isnan(value) or value <= 0 else max(round(value / (most or 1.0) * rows * len(levels)), 1)
        for value in values
    ]
    lines = []
    for row in reversed(range(rows)):
        filled = [min(max(height - row * len(levels), 0), len(levels)) for height in heights]
        lines.append("".join(levels[each - 1] if each else " " for each in filled))
    return lines


def _can_encode(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True
