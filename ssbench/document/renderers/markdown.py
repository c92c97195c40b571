"""A document in Markdown, as GitHub and GitLab show it, for a pull request or a job's summary."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from ssbench.base.printable import printable
from ssbench.document.columns import UNBROKEN, bar, bars
from ssbench.document.elements import (
    Bars,
    Cell,
    Chart,
    Document,
    Element,
    Intervals,
    Item,
    Items,
    Lines,
    Note,
    Section,
    Table,
    Tiles,
    Tone,
    Verdict,
    View,
    Warnings,
)

_MARKS = {Tone.GOOD: "\u2705", Tone.DOUBTFUL: "\u26a0\ufe0f", Tone.BAD: "\u274c"}
#: What Markdown or HTML would take for more than a character.
_SPECIAL = re.compile(r"([\\`*_\[\]#|<>&~$])")

#: Columns of a bar in a cell.
_BAR = 13


def escape(text: str) -> str:
    """Return a text that Markdown shows as it is, on one line."""
    # No text from a stat file is to notify the person of that name.
    return _SPECIAL.sub(r"\\\1", printable(text).replace(UNBROKEN, " ")).replace("@", "@\u2060")


def render(document: Document, view: View) -> str:
    """Return the document."""
    verdict = document.verdict
    title = escape(document.title)
    if verdict is not None:
        title = f"{_MARKS[verdict.tone]} {title}: {escape(verdict.title)}"
    blocks = [f"### {title}", escape("; ".join(document.facts)), *_elements(document.elements, view, 4)]
    if verdict is not None:
        blocks.append(_list(verdict.sentences))
    text = "\n\n".join(filter(None, blocks)) + "\n"
    return text.encode(view.encoding, "replace").decode(view.encoding)


def _elements(found: Iterable[Element], view: View, level: int) -> Iterator[str]:
    for each in found:
        match each:
            case Verdict():
                yield f"{_MARKS[each.tone]} {escape(each.title)}"
                yield _list(each.sentences)
            case Note(text):
                yield escape(text)
            case Warnings(texts) if texts:
                yield f"<details><summary>Warnings</summary>\n\n{_list(texts)}\n\n</details>"
            case Items(items):
                yield "\n".join(_items(items))
            case Bars():
                note = f" ({escape(each.note)})" if each.note else ""
                yield f"{escape(each.title)}: {bars(each.values, view.encoding)}{note}"
            case Table() if each.detail <= view.detail and each.rows:
                yield from _table(each, view)
            case Section() if each.detail <= view.detail:
                yield f"{'#' * level} {escape(each.title)}" if each.title else ""
                yield from _elements(each.elements, view, level + 1)
            case Table() | Section() | Chart() | Tiles() | Intervals() | Lines() | Warnings():
                pass


def _list(texts: Iterable[str]) -> str:
    return "\n".join(f"- {escape(text)}" for text in texts)


def _items(items: Iterable[Item], depth: int = 0) -> Iterator[str]:
    for item in items:
        yield f"{'  ' * depth}- {escape(item.text)}"
        yield from _items(item.items, depth + 1)


def _table(table: Table, view: View) -> Iterator[str]:
    if table.title:
        yield f"**{escape(table.title)}**"
    places = [place for place, column in enumerate(table.columns) if column.detail <= view.detail]
    rows = table.rows[: table.most]
    lines = [
        _row([escape(table.columns[place].head) for place in places]),
        "|" + "|".join("--:" if table.columns[place].is_number else "---" for place in places) + "|",
    ]
    for number, row in enumerate(rows, 1):
        if isinstance(row, Note):
            lines.append(_row([escape(row.text), *[""] * (len(places) - 1)]))
            continue
        cells = [_cell(row[place], view) for place in places]
        if table.has_sum and number == len(table.rows):
            cells[0] = f"**{cells[0]}**"
        lines.append(_row(cells))
    yield "\n".join(lines)
    if len(table.rows) > len(rows):
        yield f"and {len(table.rows) - len(rows):,} more"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(cell: str | Cell, view: View) -> str:
    if isinstance(cell, str):
        return escape(cell)
    if cell.bar is not None:
        return bar(cell.bar, _BAR, view.encoding)
    if cell.bars:
        return bars(cell.bars, view.encoding, 1.0)
    if cell.is_code and cell.text:
        return f"`{printable(cell.text).replace('`', '').replace('|', '')}`"
    return escape(cell.text)
