"""Elements of documents: each in each renderer, and what texts of others may not do in any of them."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest

from ssbench.document.elements import (
    Bars,
    Cell,
    Chart,
    Column,
    Curve,
    Detail,
    Document,
    DrawnInterval,
    Element,
    Item,
    Items,
    Lines,
    Note,
    Section,
    Table,
    Tone,
    Verdict,
    View,
    Warnings,
    drop_columns,
)
from ssbench.document.renderers import markdown, text

NAME = Column("name", is_number=False)
#: What would end an element, a cell, a line, or control a terminal.
EVIL = "<b>|`x`</script>\x1b[2J\u202e\r\n@all"


def shown(*elements: Element, **view: object) -> str:
    return text.render(Document("t", elements, untitled=True), View(**view))


def in_markdown(*elements: Element, **view: object) -> str:
    return markdown.render(Document("t", elements), View(**view))


def page(*elements: Element) -> str:
    pytest.importorskip("jinja2")
    from ssbench.document.renderers import html  # noqa: PLC0415 - not before Jinja2 was found

    return html.render(Document("t", elements), View())


class Body(HTMLParser):
    """The tags and the texts of a page, but for its style and its scripts."""

    def __init__(self, made: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.feed(re.sub("<(style|script)>.*?</\\1>", "", made, flags=re.DOTALL))

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_the_verdict_on_a_page() -> None:
    pytest.importorskip("jinja2")
    from ssbench.document.renderers import html  # noqa: PLC0415 - not before Jinja2 was found

    made = html.render(Document("T", (), Verdict(Tone.BAD, "slow", ["Because."]), ["one", "two"]), View())
    assert "<div class='verdict bad' id=verdict><p><strong>slow</strong></p>" in made
    assert "<ul class=sentences><li>Because.</li></ul></div>" in made
    assert "one \u00b7 two" in made
    assert "<script src" not in made


def test_a_table() -> None:
    table = Table([NAME, Column("p99 ms", short="p99")], [("a", "1.5"), ("longer", "10.25")], title="Devices")
    assert shown(table) == "Devices\nname      p99\na         1.5\nlonger  10.25\n"
    assert "**Devices**\n\n| name | p99 ms |\n|---|--:|\n| a | 1.5 |\n| longer | 10.25 |\n" in in_markdown(
        table
    )
    made = page(table)
    assert "<h3>Devices</h3>" in made
    assert "<th scope=col><button type=button class=sort>name</button>" in made
    assert "<th scope=col class=number><button type=button class=sort>p99 ms</button>" in made
    assert "<td>longer<td class=number>10.25" in made


def test_an_empty_table_is_not_shown() -> None:
    table = Table([NAME], (), title="Devices")
    assert "Devices" not in shown(table) + in_markdown(table) + page(table)


def test_rows_of_the_same_have_its_name_once_in_text() -> None:
    columns = [Column("operation", is_number=False), Column("class", is_number=False, short=""), Column("n")]
    rows = [("READ", "", "1"), ("READ", "", "2"), ("READ", "tiny", "3"), ("ALL", "", "4")]
    assert shown(Table(columns, rows, keys=2)) == (
        "operation  n\nREAD       1\n           2\n  tiny     3\nALL        4\n"
    )
    assert "| READ | tiny | 3 |" in in_markdown(Table(columns, rows, keys=2))
    left = drop_columns(Table(columns, [row for row in rows if not row[1]], keys=2), [1])
    assert left.keys == 1
    assert shown(left).splitlines()[0] == "operation  n"


def test_a_note_among_rows_goes_over_all_columns() -> None:
    table = Table([NAME, Column("n")], [("a", "1"), Note("! here it changed"), ("b", "2"), Note("end")])
    assert shown(table) == "name  n\na     1\n! here it changed\nb     2\nend\n"
    assert "| ! here it changed |  |\n" in in_markdown(table)
    made = page(table)
    assert "<td colspan=2 class=note>! here it changed" in made
    assert "<table class=fixed>" in made  # its rows are in an order that means something


def test_rows_beyond_what_text_shows_are_counted() -> None:
    table = Table([NAME, Column("n")], [(f"r{place}", "1") for place in range(1500)], most=2)
    assert shown(table).splitlines()[-1] == "and 1,498 more"
    assert in_markdown(table).splitlines()[-1] == "and 1,498 more"
    made = page(table)
    assert Body(made).tags.count("tr") == 201
    assert "and 1,300 more" in made


def test_the_sum_is_marked() -> None:
    table = Table([NAME, Column("n")], [("a", "1"), ("ALL", "1")], has_sum=True)
    assert "| **ALL** | 1 |" in in_markdown(table)
    assert "<tr class=all><td>ALL" in page(table)


def test_cells() -> None:
    cells = (Cell("no difference shown", Tone.GOOD, short="none"), Cell("tx`1", is_code=True), Cell(bar=0.5))
    table = Table([NAME, Column("", is_number=False), Column("bar", is_number=False)], [cells])
    assert shown(table).splitlines()[1] == "none  tx`1  \u2588\u2588\u2588\u2588\u2588\u2588\u258c"
    assert shown(table, encoding="ascii").splitlines()[1] == "none  tx`1  ######"
    assert "| no difference shown | `tx1` | \u2588" in in_markdown(table)
    made = page(table)
    assert "<span class=good-text>no difference shown</span>" in made
    assert "<code>tx`1</code><button type=button class=copy>" in made
    assert "<meter min=0 max=1 value=0.5000>" in made


def test_sentences_of_a_table_come_below_it() -> None:
    table = Table([Column("users"), Column("n"), Column("judged by", is_long=True)], [("4", "1", "it held")])
    assert shown(table) == "users  n\n    4  1\nusers 4: it held\n"
    assert "| 4 | 1 | it held |" in in_markdown(table)
    assert "<div class=long>it held</div>" in page(table)


def test_details() -> None:
    table = Table(
        [NAME, Column("file", detail=Detail.PAGE), Column("cpu", detail=Detail.VERBOSE)], [("a", "f", "c")]
    )
    found = [Section("More", [table], Detail.VERBOSE), Section("Most", [Note("n")], Detail.PAGE)]
    assert shown(*found) == ""
    for made in (shown(*found, verbose=True), in_markdown(*found, verbose=True)):
        assert "More" in made
        assert "cpu" in made
        assert "file" not in made
        assert "Most" not in made
    assert {"More", "Most", "file", "cpu"} <= set(Body(page(*found)).texts)


def test_lists_notes_warnings_and_sections() -> None:
    found = [
        Section(
            "Outer", [Items([Item("one", [Item("within")]), Item("two")]), Section("Inner", [Note("n")])]
        ),
        Warnings(["beware"]),
        Warnings([]),
    ]
    assert shown(*found) == "Outer\n    one\n      within\n    two\n\n  Inner\n    n\n\n! beware\n"
    assert in_markdown(*found) == (
        "### t\n\n#### Outer\n\n- one\n  - within\n- two\n\n##### Inner\n\nn\n\n"
        "<details><summary>Warnings</summary>\n\n- beware\n\n</details>\n"
    )
    made = page(*found)
    assert "<h2>Outer</h2><ul><li>one<ul><li>within</ul><li>two</ul>" in made
    assert "<section><h3>Inner</h3><p class=note>n</p></section>" in made
    assert made.count("<h2>Warnings</h2>") == 1


def test_the_verdict_of_a_section() -> None:
    found = Section("Logs", [Verdict(Tone.BAD, "slow: sdb", ["Because."])])
    assert shown(found) == "Logs\n  slow: sdb\n  Because.\n"
    assert in_markdown(found).endswith("#### Logs\n\n\u274c slow: sdb\n\n- Because.\n")
    assert "<div class='verdict bad'><p><strong>slow: sdb</strong></p>" in page(found)


def test_lines_stay_as_they_are_on_pages() -> None:
    assert "a  b" not in shown(Lines(["a  b"])) + in_markdown(Lines(["a  b"]))
    assert "<pre>a  b\n&lt;c&gt;\n</pre>" in page(Lines(["a  b", "<c>"]))
    assert "<details><summary>File</summary><pre>x\n</pre></details>" in page(Lines(["x"], "File"))


def test_bars_are_for_text() -> None:
    bars = Bars("ops/s", (1.0, 2.0, 4.0), "median 2")
    assert shown(bars) == "ops/s: \u2583\u2585\u2588 (median 2)\n"
    assert shown(bars, encoding="ascii") == "ops/s: :=# (median 2)\n"
    assert "ops/s: \u2583\u2585\u2588 (median 2)" in in_markdown(bars)
    assert "median 2" not in page(bars)


def test_charts_are_for_pages() -> None:
    chart = Chart("Rate", "ops/s", [Curve("a<b", np.arange(3.0), np.ones(3), "#123456")], note="n")
    assert "Rate" not in shown(chart) + in_markdown(chart)
    made = page(chart, chart, Note("x"), chart)
    assert made.count("<figcaption>Rate <small>ops/s</small></figcaption>") == 3
    assert made.count("<div class=timeline>") == 2
    assert made.count("&#34;name&#34;:&#34;a&lt;b&#34;") == 3
    assert "uPlot" in made
    assert "uPlot" not in page(Note("x")).partition("<script>")[0]


def every(evil: str) -> Document:
    """Return a document that has a text everywhere where one may be."""
    table = Table(
        [Column(evil, is_number=False), Column(evil), Column(evil, is_long=True)],
        [
            (evil, Cell(evil, Tone.BAD), evil),
            Note(evil),
            (Cell(evil, is_code=True), Cell(evil, short=evil), ""),
        ],
        title=evil,
    )
    elements = [
        table,
        Note(evil),
        Warnings([evil]),
        Items([Item(evil, [Item(evil)])]),
        Bars(evil, (1,), evil),
        Lines([evil], evil),
    ]
    return Document(evil, [*elements, Section(evil, [Note(evil)])], Verdict(Tone.GOOD, evil, [evil]), [evil])


def test_texts_of_others_stay_texts() -> None:
    plain = text.render(every(EVIL), View(columns=200))
    assert not {"\x1b", "\u202e", "\r"} & {*plain, *markdown.render(every(EVIL), View())}
    lines = (
        markdown.render(every(EVIL), View()).replace("<details><summary>Warnings</summary>", "").splitlines()
    )
    for line in lines:
        if line != "</details>":
            bare = re.sub(r"\\.|`[^`]*`", "", line)
            assert not {"<", ">"} & {*bare}, line
            assert "@all" not in bare, line
            assert not bare.startswith("|") or bare.count("|") == 4, line


def test_texts_of_others_on_a_page_are_no_tags() -> None:
    pytest.importorskip("jinja2")
    from ssbench.document.renderers import html  # noqa: PLC0415 - not before Jinja2 was found

    made, harmless = (html.render(every(each), View()) for each in (EVIL, "harmless"))
    assert Body(made).tags == Body(harmless).tags
    assert not {"\x1b", "\u202e"} & {*made}


@pytest.mark.parametrize(
    ("low", "high", "ends"), [(4.0, 30.0, ["M192"]), (-0.9, -0.8, ["M8"]), (-0.9, 8.0, ["M8", "M192"])]
)
def test_an_interval_has_an_arrow_at_the_ends_of_the_axis_beyond_which_it_goes_on(
    low: float, high: float, ends: list[str]
) -> None:
    span = DrawnInterval(low, (low + high) / 2, high, 0.05, 3.0)
    made = page(Table([Column("a"), Column("b")], [("x", Cell(tone=Tone.BAD, span=span))]))
    assert re.findall(r'd="(M\d+) [^"]*" class=end', made) == ends


def test_the_picture_of_an_interval() -> None:
    span = DrawnInterval(-0.2, 0.25, 8.0, 0.05, 3.0)
    # The axis goes from a quarter to four times; a half is as far from 1 as the double.
    assert [span.place(value) for value in (-1.0, -0.75, -0.5, 0.0, 1.0, 3.0, 8.0)] == pytest.approx(
        [0, 0, 0.25, 0.5, 0.75, 1, 1]
    )
    assert [span.is_below(value) for value in (-0.8, -0.75, 3.1)] == [True, False, False]
    assert [span.is_above(value) for value in (-0.8, 3.0, 3.1)] == [False, False, True]
    made = page(Table([Column("a"), Column("b")], [("x", Cell(tone=Tone.BAD, span=span))]))
    assert '<svg class="span bad"' in made
    assert made.count("class=end") == 1
    assert 'd="M83.9 9H200.0"' in made
    assert 'cx="116.1"' in made
    assert "svg" not in page(Table([Column("a")], [("x",)])).partition("<main>")[2].partition("</main>")[0]
