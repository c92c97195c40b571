"""A document in Markdown, as GitHub and GitLab show it, for a pull request or a job's summary."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from ssbench.base.printable import make_printable
from ssbench.document.columns import NO_BREAK_SPACE, draw_bar, draw_bars
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

_TONE_MARKS = {Tone.GOOD: "\u2705", Tone.DOUBTFUL: "\u26a0\ufe0f", Tone.BAD: "\u274c"}
#: What Markdown or HTML would take for more than a character.
_SPECIAL_PATTERN = re.compile(r"([\\`*_\[\]#|<>&~$])")

#: Columns of a bar in a cell.
_BAR_COLUMNS = 13


def escape_markdown(text: str) -> str:
    """Return a text that Markdown shows as it is, on one line."""
    # No text from a stat file is to notify the person of that name.
    return _SPECIAL_PATTERN.sub(r"\\\1", make_printable(text).replace(NO_BREAK_SPACE, " ")).replace(
        "@", "@\u2060"
    )


def render(document: Document, view: View) -> str:
    """Return the document."""
    verdict = document.verdict
    title = escape_markdown(document.title)
    if verdict is not None:
        title = f"{_TONE_MARKS[verdict.tone]} {title}: {escape_markdown(verdict.line)}"
    blocks = [
        f"### {title}",
        escape_markdown("; ".join(document.facts)),
        *_render_elements(document.elements, view, 4),
    ]
    if verdict is not None:
        blocks.append(_render_list((*verdict.sentences, *verdict.details)))
    text = "\n\n".join(filter(None, blocks)) + "\n"
    return text.encode(view.encoding, "replace").decode(view.encoding)


def _render_elements(found: Iterable[Element], view: View, level: int) -> Iterator[str]:
    for each in found:
        match each:
            case Verdict():
                yield f"{_TONE_MARKS[each.tone]} {escape_markdown(each.line)}"
                yield _render_list((*each.sentences, *each.details))
            case Note(text):
                yield escape_markdown(text)
            case Warnings(texts) if texts:
                yield f"<details><summary>Warnings</summary>\n\n{_render_list(texts)}\n\n</details>"
            case Items(items):
                yield "\n".join(_render_items(items))
            case Bars():
                note = f" ({escape_markdown(each.note)})" if each.note else ""
                yield f"{escape_markdown(each.title)}: {draw_bars(each.values, view.encoding)}{note}"
            case Table() if each.detail <= view.detail and each.rows:
                yield from _render_table(each, view)
            case Section() if each.detail <= view.detail:
                yield f"{'#' * level} {escape_markdown(each.title)}" if each.title else ""
                yield from _render_elements(each.elements, view, level + 1)
            case Table() | Section() | Chart() | Tiles() | Intervals() | Lines() | Warnings():
                pass


def _render_list(texts: Iterable[str]) -> str:
    return "\n".join(f"- {escape_markdown(text)}" for text in texts)


def _render_items(items: Iterable[Item], depth: int = 0) -> Iterator[str]:
    for item in items:
        yield f"{'  ' * depth}- {escape_markdown(item.text)}"
        yield from _render_items(item.items, depth + 1)


def _render_table(table: Table, view: View) -> Iterator[str]:
    if table.title:
        yield f"**{escape_markdown(table.title)}**"
    places = [place for place, column in enumerate(table.columns) if column.detail <= view.detail]
    rows = table.rows[: table.most]
    lines = [
        _render_row([escape_markdown(table.columns[place].head) for place in places]),
        "|" + "|".join("--:" if table.columns[place].is_number else "---" for place in places) + "|",
    ]
    for number, row in enumerate(rows, 1):
        if isinstance(row, Note):
            lines.append(_render_row([escape_markdown(row.text), *[""] * (len(places) - 1)]))
            continue
        cells = [_render_cell(row[place], view) for place in places]
        if table.has_sum and number == len(table.rows):
            cells[0] = f"**{cells[0]}**"
        lines.append(_render_row(cells))
    yield "\n".join(lines)
    if len(table.rows) > len(rows):
        yield f"and {len(table.rows) - len(rows):,} more"


def _render_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _render_cell(cell: str | Cell, view: View) -> str:
    if isinstance(cell, str):
        return escape_markdown(cell)
    if cell.bar is not None:
        return draw_bar(cell.bar, _BAR_COLUMNS, view.encoding)
    if cell.bars:
        return draw_bars(cell.bars, view.encoding, 1.0)
    if cell.is_code and cell.text:
        return f"`{make_printable(cell.text).replace('`', '').replace('|', '')}`"
    return escape_markdown(cell.text)
