"""A document as text in lines that fit a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import dropwhile, pairwise, product

from ssbench.base.printable import TonedText, make_printable, paint_text
from ssbench.document.columns import (
    NO_BREAK_SPACE,
    cut_text,
    draw_bar,
    draw_bars,
    measure_width,
    wrap_paragraph,
    wrap_words,
)
from ssbench.document.elements import (
    Bars,
    Cell,
    Chart,
    Column,
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

#: Columns of a bar in a cell.
_BAR_COLUMNS = 13

#: Names have this many columns at least; a longer one than there is room for has a line of its own.
_MIN_NAME_COLUMNS = 8
#: Other texts are cut to this many at least.
_MIN_TEXT_COLUMNS = 5

_GAP_COLUMNS = 2

#: Columns by which a section is indented below its title.
_INDENT_COLUMNS = 2


def render(document: Document, view: View) -> str:
    """Return the document; what the encoding lacks is replaced."""
    lines = [*_separate_blocks(_render_document(document, view))]
    text = "".join(line.rstrip() + "\n" for line in lines).replace(NO_BREAK_SPACE, " ")
    return text.encode(view.encoding, "replace").decode(view.encoding)


def _render_document(document: Document, view: View) -> Iterator[Sequence[str]]:
    """Yield blocks of lines; an empty one is a line between those around it."""
    if not document.untitled:
        yield [*_render_paragraph(document.title, view)]
    if document.facts:
        yield [*wrap_words(map(make_printable, document.facts), between="; ", columns=view.columns)]
    if document.verdict is not None:
        yield _render_title(document.verdict, view)
    yield from render_elements(document.elements, view)
    if document.verdict is not None and (said := (*document.verdict.sentences, *document.verdict.details)):
        yield ()
        yield [line for each in said for line in _render_paragraph(each, view)]


def _separate_blocks(blocks: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of blocks with at most one empty line between two of them, and none at the ends."""
    waits = begun = False
    for block in blocks:
        if not block:
            waits = begun
        for line in block:
            if waits:
                yield ""
            waits, begun = False, True
            yield line


def render_elements(found: Iterable[Element], view: View) -> Iterator[Sequence[str]]:
    """Yield elements as blocks of lines."""
    for each in found:
        match each:
            case Verdict():
                yield _render_title(each, view)
                said = (*each.sentences, *each.details)
                yield [line for sentence in said for line in _render_paragraph(sentence, view)]
            case Note(text):
                yield [*_render_paragraph(text, view)]
            case Warnings(texts) if texts:
                yield [
                    _paint_if_coloured(line, Tone.DOUBTFUL, view)
                    for text in texts
                    for line in _render_paragraph(f"! {text}", view)
                ]
            case Items(items):
                yield [*_render_items(items, view, 2)]
            case Bars():
                yield [*_render_bars(each, view)]
            case Table() if each.detail <= view.detail and each.rows:
                yield ()
                yield [*_render_table(each, view)]
                yield ()
            case Section() if each.detail <= view.detail:
                yield ()
                yield from _render_section(each, view)
                yield ()
            case Table() | Section() | Chart() | Tiles() | Intervals() | Lines() | Warnings():
                pass


def _render_section(found: Section, view: View) -> Iterator[Sequence[str]]:
    """Yield a section; what is below a title is indented."""
    if not found.title:
        yield from render_elements(found.elements, view)
        return
    yield [*_render_paragraph(found.title, view)]
    inner = render_elements(found.elements, replace(view, columns=view.columns - _INDENT_COLUMNS))
    for block in dropwhile(lambda lines: not lines, inner):
        yield [" " * _INDENT_COLUMNS + line if line else line for line in block]


def render_verdict_line(verdict: Verdict, view: View) -> str:
    """Return the line of a verdict alone, as its document has it."""
    return "".join(f"{line}\n" for line in _render_title(verdict, view)).replace(NO_BREAK_SPACE, " ")


def _render_title(verdict: Verdict, view: View) -> list[str]:
    return [_paint_if_coloured(line, verdict.tone, view) for line in _render_paragraph(verdict.line, view)]


def _paint_if_coloured(text: str, tone: Tone | None, view: View) -> str:
    return paint_text(text, tone.value) if view.coloured and tone is not None else text


def _render_paragraph(text: str, view: View) -> Iterator[str]:
    return wrap_paragraph(make_printable(text), 2, view.columns)


def _render_items(items: Iterable[Item], view: View, indent: int) -> Iterator[str]:
    for item in items:
        first, *words = make_printable(item.text).split(" ")
        yield from wrap_words([" " * indent + first, *words], indent + 2, columns=view.columns)
        yield from _render_items(item.items, view, indent + 2)


def _render_bars(each: Bars, view: View) -> Iterator[str]:
    note = f" ({each.note})" if each.note else ""
    return _render_paragraph(f"{each.title}: {draw_bars(each.values, view.encoding)}{note}", view)


# -- Tables ----------------------------------------------------------------------------------------


def _render_table(table: Table, view: View) -> Iterator[str]:
    if table.title:
        yield from _render_paragraph(table.title, view)
    rows = table.rows[: table.most]
    places = [
        place
        for place, column in enumerate(table.columns)
        if place >= table.keys and not column.is_long and column.detail <= view.detail
    ]
    columns = [Column("", is_number=all(each.is_number for each in table.columns[: table.keys]))]
    columns += [table.columns[place] for place in places]
    names = [_render_head(*table.columns[: table.keys])]
    names += _shorten_names(rows, table, view)
    whole = [row for row in rows if not isinstance(row, Note)]
    cells = [
        [_render_head(column), *(_render_cell(row[place], view) for row in whole)]
        for place, column in zip(places, columns[1:], strict=True)
    ]
    notes = _place_notes(rows, view)
    for number, block in enumerate(_split_into_blocks(names, cells, columns, view)):
        if number:
            yield ""
        yield from _render_block(block, notes if not number else {})
    if len(table.rows) > len(rows):
        yield f"and {len(table.rows) - len(rows):,} more"
    yield from _render_long_texts(whole, table, view)


def _place_notes(rows: Iterable[object], view: View) -> dict[int, list[str]]:
    """Return the lines that precede rows, by the number of rows before them; the heads are a row too."""
    notes: dict[int, list[str]] = {}
    place = 1
    for row in rows:
        if isinstance(row, Note):
            notes.setdefault(place, []).extend(_render_paragraph(row.text, view))
        else:
            place += 1
    return notes


def _shorten_names(rows: Iterable[object], table: Table, view: View) -> Iterator[str]:
    """Yield what each row is about; of the same as the row above only what differs."""
    keys = [
        [_render_cell(cell, view) for cell in row[: table.keys]]
        for row in rows
        if isinstance(row, (tuple, list))
    ]
    for above, own in pairwise([[], *keys]):
        same = 0
        while table.keys > 1 and same < len(own) and above[same : same + 1] == own[same : same + 1]:
            same += 1
        yield "  " * min(same, 1) + " ".join(filter(None, own[same:]))


def _render_head(*columns: Column) -> str:
    heads = (column.head if column.short is None else column.short for column in columns)
    return make_printable(" ".join(filter(None, heads)))


def _render_cell(cell: str | Cell, view: View) -> str:
    if isinstance(cell, str):
        return make_printable(cell)
    if cell.bar is not None:
        return draw_bar(cell.bar, _BAR_COLUMNS, view.encoding)
    if cell.bars:
        return draw_bars(cell.bars, view.encoding, 1.0)
    text = make_printable(cell.short or cell.text)
    return TonedText.of(text, cell.tone.value) if view.coloured and cell.tone is not None else text


#: The width of a column, whether it is aligned to the right, and its cells.
_Column = tuple[int, bool, Sequence[str]]
#: The gap between columns, and the columns.
_Block = tuple[int, list[_Column]]


def _split_into_blocks(
    names: Sequence[str], cells: Sequence[Sequence[str]], columns: Sequence[Column], view: View
) -> Iterator[_Block]:
    """Yield columns in blocks that fit beside the names."""
    most = sys.maxsize if view.wide else view.columns
    name = max(map(measure_width, names))
    least = min(name, _MIN_NAME_COLUMNS)
    others = [
        (max(map(measure_width, own)), column.is_number, own)
        for own, column in zip(cells, columns[1:], strict=True)
    ]
    texts = [place for place, each in enumerate(columns[1:]) if not (each.is_number or each.is_whole)]
    _cut_columns(others, texts, most - name - _GAP_COLUMNS * len(others))

    def block(gap: int, columns_: list[_Column]) -> _Block:
        room = most - sum(each + gap for each, *_ in columns_)
        return gap, [(max(least, min(name, room)), columns[0].is_number, names), *columns_]

    # Where cells have blanks, one blank does not part them.
    has_blanks = any(" " in cell for *_, own in others for cell in own)
    for room, gap in product((name, least), (_GAP_COLUMNS,) if has_blanks else (_GAP_COLUMNS, 1)):
        if room + sum(each + gap for each, *_ in others) <= most:
            yield block(gap, others)
            return
    some: list[_Column] = []
    for each in others:
        if some and least + sum(own + _GAP_COLUMNS for own, *_ in (*some, each)) > most:
            yield block(_GAP_COLUMNS, some)
            some = []
        some.append(each)
    yield block(_GAP_COLUMNS, some)


def _cut_columns(columns: list[_Column], texts: Sequence[int], room: int) -> None:
    """Cut columns of texts, the widest ones first, until all have this room."""
    widths = [each for each, *_ in columns]
    while texts and sum(widths) > room:
        widest = max(texts, key=widths.__getitem__)
        if widths[widest] <= _MIN_TEXT_COLUMNS:
            break
        widths[widest] -= 1
    for place in texts:
        _, is_number, cells = columns[place]
        columns[place] = widths[place], is_number, [cut_text(cell, widths[place]) for cell in cells]


def _render_block(block: _Block, notes: dict[int, list[str]]) -> Iterator[str]:
    gap, columns = block
    room = columns[0][0]
    for place in range(len(columns[0][2])):
        yield from notes.get(place, ())
        cells = [
            " " * (most - measure_width(own[place])) + _paint_cell(own[place])
            if is_number
            else _paint_cell(own[place]) + " " * (most - measure_width(own[place]))
            for most, is_number, own in columns
        ]
        if measure_width(columns[0][2][place]) > room:
            yield cells[0]
            cells[0] = " " * room
        yield (" " * gap).join(cells).rstrip()
    yield from notes.get(len(columns[0][2]), ())


def _paint_cell(text: str) -> str:
    return paint_text(text, text.tone) if isinstance(text, TonedText) else text


def _render_long_texts(rows: Iterable[Sequence[str | Cell]], table: Table, view: View) -> Iterator[str]:
    """Yield what tables have no room for, below them."""
    head = _render_head(*table.columns[: table.keys])
    for row in rows:
        for column, cell in zip(table.columns, row, strict=True):
            if column.is_long and column.detail <= view.detail and (text := _render_cell(cell, view)):
                name = " ".join(_render_cell(each, view) for each in row[: table.keys])
                yield from _render_paragraph(f"{head} {name}: {text}".strip(), view)
