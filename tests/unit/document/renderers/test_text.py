"""Documents as text: what is first, what fits into the columns, and what gives way where it does not."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from ssbench.document.columns import measure_width
from ssbench.document.elements import (
    Column,
    Document,
    Element,
    Note,
    Table,
    Tone,
    Verdict,
    View,
)
from ssbench.document.renderers import markdown, text

NAME = Column("name", is_number=False)
NUMBERS = [Column(f"number {place}") for place in range(12)]


def shown(*elements: Element, **view: object) -> str:
    return text.render(Document("t", elements, untitled=True), View(**view))


def test_the_verdict_is_first_and_its_sentences_last_in_text() -> None:
    document = Document(
        "Title", [Note("n")], Verdict(Tone.BAD, "slow: sdb", ["Because.", "Also."]), ["one", "two"]
    )
    assert text.render(document, View()) == "Title\none; two\nslow: sdb\nn\n\nBecause.\nAlso.\n"
    assert markdown.render(document, View()) == (
        "### \u274c Title: slow: sdb\n\none; two\n\nn\n\n- Because.\n- Also.\n"
    )


NAMES = st.text(st.characters(exclude_categories=("Cs",)), max_size=90)


@given(
    st.lists(
        st.tuples(NAMES, st.lists(st.integers(0, 10**9), min_size=12, max_size=12)), min_size=1, max_size=4
    ),
    st.sampled_from([80, 100, 160]),
    st.booleans(),
)
def test_no_line_of_a_table_is_wider_than_the_view(
    rows: list[tuple[str, list[int]]], columns: int, words: bool
) -> None:
    middle = [Column("a long word", is_number=False)] if words else []
    table = Table(
        [NAME, *middle, *NUMBERS],
        [(name, *([name] if words else []), *map(str, numbers)) for name, numbers in rows],
    )
    lines = shown(table, columns=columns).splitlines()
    assert max(map(measure_width, lines)) <= columns
    for place in range(12):
        assert sum(f"number {place}" in re.split("  +", line.strip()) for line in lines) == 1
    for number in (number for _, numbers in rows for number in numbers):
        assert any(str(number) in line for line in lines)


def test_a_wider_terminal_has_the_table_in_one_piece() -> None:
    table = Table([NAME, *NUMBERS], [("x" * 40, *["123,456"] * 12)])
    assert shown(table).count("name") > 1
    assert shown(table, columns=160).count("name") == 1


def test_a_wide_table_is_as_wide_as_its_cells_and_sentences_are_not() -> None:
    table = Table([NAME, *NUMBERS], [("x" * 40, *["123,456"] * 12)])
    lines = shown(table, Note("word " * 40), wide=True).splitlines()
    assert len(lines[0]) > 160
    assert max(map(len, lines[2:])) <= 80


def test_dates_are_not_cut() -> None:
    whole, other = (Column(head, is_number=False, is_whole=head == "date") for head in ("date", "text"))
    table = Table([NAME, whole, other, *NUMBERS[:4]], [("n", "2026-11-22 20:51", "t" * 60, *"1234")])
    assert "2026-11-22 20:51  t" in shown(table)
    assert "t~ " in shown(table)


def test_long_names_have_a_line_of_their_own_and_long_words_are_cut() -> None:
    columns = [NAME, Column("word", is_number=False), *NUMBERS[:5]]
    lines = shown(Table(columns, [("n" * 30, "w" * 30, *"12345"), ("n", "w", *"12345")])).splitlines()
    assert lines[1] == "n" * 30
    assert "w~  " in lines[2]
    assert lines[3].startswith("n ")
