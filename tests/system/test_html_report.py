"""The report as a page of HTML in a real browser, where there is one."""

from __future__ import annotations

import json
from importlib import resources
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from chromium import BROWSER, DRIVER, chromium
from full_run import write_full_run
from simulated_runs import reads

from ssbench.cli.master import main
from ssbench.comparison.suite_report import SuiteFindings, make_suite_document
from ssbench.comparison.suite_rows import SuiteRow, make_kept_run
from ssbench.document.elements import Chart, Curve, Document, Note, Section, Table, View, make_columns
from ssbench.document.renderers import html
from ssbench.results.run_description import LoadSample

#: What stands out of the screen to the right, and texts whose colour is like the ground's.
LOOK = """
const light = text => {
  const [r, g, b] = text.match(/[\\d.]+/g).map(part => part / 255).map(
    part => part <= .03928 ? part / 12.92 : ((part + .055) / 1.055) ** 2.4);
  return .2126 * r + .7152 * g + .0722 * b;
};
const ground = light(getComputedStyle(document.body).backgroundColor);
const texts = [...document.querySelectorAll("h1, h2, p, td, th, li, strong, figcaption, button")];
const pale = texts.filter(each => {
  const [a, b] = [light(getComputedStyle(each).color), ground].sort((x, y) => y - x);
  return (a + .05) / (b + .05) < 4;
});
return [document.documentElement.scrollWidth - innerWidth, pale.map(each => each.textContent)];
"""
#: Whether each chart has a canvas of some size.
DRAWN = """
const drawn = canvas => canvas && canvas.width * canvas.height > 10000
  && canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.some(each => each);
const figures = [...document.querySelectorAll("figure")];
return figures.length > 3 && figures.every(figure => drawn(figure.querySelector("canvas")));
"""
#: How many curves of the page are hidden.
HIDDEN = "return document.querySelectorAll('.series[aria-pressed=false]').length"
#: Moves the mouse over the first chart; what is then told beside the names of curves.
TOLD = """
const over = document.querySelector(".u-over"), box = over.getBoundingClientRect();
const at = {clientX: box.x + box.width / 2, clientY: box.y + 20, bubbles: true};
over.dispatchEvent(new MouseEvent("mousemove", at));
return [...document.querySelectorAll("figure output")].map(each => each.textContent);
"""


#: What axe says of serious faults, and where.
SERIOUS = """
return window.found.violations.filter(each => ["serious", "critical"].includes(each.impact))
  .map(each => [each.id, each.nodes.map(node => node.html.slice(0, 200))]);
"""

CANVAS_WIDTHS = "return [...document.querySelectorAll('canvas')].map(each => each.width)"


@pytest.mark.skipif(not (BROWSER and DRIVER), reason="chromium and chromedriver are not installed")
def test_a_column_is_sorted_by_what_its_cells_say(tmp_path: Path) -> None:
    """Lower bounds were sorted as texts, and 100 s before 99,000 ms."""
    file = tmp_path / "table.html"
    rows = [["x", each] for each in ("914.4", ">1200", "-", "100s", "99,000", ".0634", "3h")]
    file.write_text(html.render(Document("t", [Table(make_columns("operation", "p99 ms"), rows)]), View()))
    with chromium(tmp_path) as browser:
        browser.show(file.as_uri(), 1000, "light")
        browser.run("document.querySelectorAll('th .sort')[1].click()")
        cells = browser.run(
            "return [...document.querySelectorAll('td:nth-child(2)')].map(each => each.textContent.trim())"
        )
    assert cells == ["3h", "100s", "99,000", ">1200", "914.4", ".0634", "-"]


@pytest.mark.skipif(not (BROWSER and DRIVER), reason="chromium and chromedriver are not installed")
def test_charts_do_not_touch_what_is_before_them(tmp_path: Path) -> None:
    """The first chart of a log's traffic began where its table ended."""
    file = tmp_path / "charts.html"
    numbers = np.arange(1.0, 9.0)
    charts = [Chart("c", "s", [Curve("x", numbers, numbers, "#3b82c4")], axis) for axis in ("time", "%")]
    table = Table(make_columns("operation", "p99 ms"), [["x", "1"]])
    parts = [part for chart in charts for before in (table, Note("n")) for part in (before, chart)]
    file.write_text(html.render(Document("t", parts), View()))
    with chromium(tmp_path) as browser:
        browser.show(file.as_uri(), 1000, "light")
        gaps = browser.run(
            "const of = each => each.getBoundingClientRect(); return [...document.querySelectorAll("
            "'.timeline, .charts')].map(each => of(each).top - of(each.previousElementSibling).bottom)"
        )
    assert len(gaps) == 4
    assert min(gaps) > 8


@pytest.mark.skipif(not (BROWSER and DRIVER), reason="chromium and chromedriver are not installed")
def test_a_part_that_is_folded_opens_where_the_address_names_it(tmp_path: Path) -> None:
    file = tmp_path / "folded.html"
    made = Document("t", [Section("Far below", [Note("x")], is_folded=True), Section("b", [Note("y")])])
    file.write_text(html.render(made, View()))
    with chromium(tmp_path) as browser:
        browser.show(file.as_uri(), 1000, "light")
        assert not browser.run("return document.querySelector('details').open")
        browser.run("document.querySelector('#contents a').click()")
        browser.wait_for("return document.querySelector('details').open")


@pytest.mark.skipif(not (BROWSER and DRIVER), reason="chromium and chromedriver are not installed")
def test_a_table_on_paper_breaks_only_long_names(tmp_path: Path) -> None:
    """In the first column of a wide table each letter had a line of its own."""
    file = tmp_path / "table.html"
    heads = [f"p{rank} of ms" for rank in range(80, 92)]
    rows = [["CREATE", "ssbench_000012/" + "medium_" * 12, *("123,456.7",) * len(heads)]]
    file.write_text(
        html.render(
            Document("t", [Table(make_columns("operation", "object", *heads, texts=2), rows)]), View()
        )
    )
    with chromium(tmp_path) as browser:
        browser.show(file.as_uri(), 700, "light")
        browser.tool("Emulation.setEmulatedMedia", media="print")
        heights = browser.run(
            "return [...document.querySelectorAll('td')].map(each => each.innerText.trim()"
            " && (range => (range.selectNodeContents(each), new Set([...range.getClientRects()]"
            ".map(box => Math.round(box.top))).size))(document.createRange()))"
        )
    assert heights[0] == 1
    assert heights[1] > 1


@pytest.mark.skipif(not (BROWSER and DRIVER), reason="chromium and chromedriver are not installed")
def test_it_opens_offline_and_can_be_read(tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    load = tuple(LoadSample(1e9 + at, 1.0, 0.5, 0.002, None, 0.25) for at in (1, 2))
    run = write_full_run(tmp_path / "run.stat.gz", generator_load=load)
    assert main(["-q", "report-scenario", "-s", str(run), "-f", "/dev/null", "--html", str(file)]) == 0
    with chromium(tmp_path) as browser:
        browser.requests()  # those of its own first page
        for scheme in ("light", "dark"):
            for width in (400, 1000, 1600):
                browser.show(file.as_uri(), width, scheme)
                browser.wait_for("return document.documentElement.dataset.charts == 'ready'")
                browser.wait_for(DRAWN)
                assert browser.run(LOOK) == [0, []], (scheme, width)
                hidden = browser.run(HIDDEN)
                browser.run("document.querySelector('.series').click()")
                assert abs(browser.run(HIDDEN) - hidden) == 1
                told = browser.run(TOLD)
                assert told[0] == told[1] != ""  # one cursor for all charts over time
                assert browser.console() == []
        asked = set(browser.requests())
        assert asked == {file.as_uri()}


@pytest.mark.long
@pytest.mark.skipif(not (BROWSER and DRIVER), reason="chromium and chromedriver are not installed")
def test_it_can_be_printed_and_used_without_a_mouse(tmp_path: Path) -> None:
    """Charts and tables were cut at the edge of the paper, and no program could say what a chart is."""
    axe = (resources.files("axe_core_python") / "axe.min.js").read_text()
    file = tmp_path / "report.html"
    load = tuple(LoadSample(1e9 + at, 1.0, 0.5, 0.002, None, 0.25) for at in (1, 2))
    run = write_full_run(tmp_path / "run.stat.gz", generator_load=load)
    assert main(["-q", "report-scenario", "-s", str(run), "-f", "/dev/null", "--html", str(file)]) == 0
    with chromium(tmp_path) as browser:
        browser.show(file.as_uri(), 1600, "light")
        browser.wait_for("return document.documentElement.dataset.charts == 'ready'")
        for scheme in ("light", "dark"):
            browser.show(file.as_uri(), 1600, scheme)
            browser.wait_for("return document.documentElement.dataset.charts == 'ready'")
            browser.run("for (const each of document.querySelectorAll('details')) each.open = true")
            browser.run(axe + ";axe.run().then(found => window.found = found)")
            browser.wait_for("return window.found")
            assert browser.run(SERIOUS) == [], scheme
            assert browser.run("return window.found.passes.length") > 10
        assert browser.run("return document.title").startswith("FAILED: ")
        browser.run("for (const each of document.querySelectorAll('details')) each.open = false")
        before = browser.run(CANVAS_WIDTHS)
        browser.run("window.dispatchEvent(new Event('beforeprint'))")
        assert set(browser.run(CANVAS_WIDTHS)) == {660}
        assert browser.run("return document.querySelectorAll('details:not([open], .figures)').length") == 0
        browser.run("window.dispatchEvent(new Event('afterprint'))")
        assert browser.run("return document.querySelectorAll('details[open]').length") == 0
        assert browser.run(CANVAS_WIDTHS)[:3] == before[:3]


#: The data of each chart.
RECORDS = "return [...document.querySelectorAll('figure')].map(each => each.dataset.chart)"

#: Notes in which colours texts of charts are drawn from now on.
NOTE_COLOURS = """
window.inks = new Set();
const {fillText} = CanvasRenderingContext2D.prototype;
CanvasRenderingContext2D.prototype.fillText = function (...given) {
  window.inks.add(this.fillStyle);
  fillText.apply(this, given);
};
"""

#: The first row of the figures of each chart, and how many rows there are.
READ_FIGURES = """
return [...document.querySelectorAll(".figures")].map(each => {
  const rows = [...each.querySelectorAll("tr")].map(row => [...row.cells].map(cell => cell.textContent));
  return [rows[0], rows[1], rows.length - 1];
});
"""


def write_report(folder: Path) -> Path:
    file = folder / "report.html"
    run = write_full_run(folder / "run.stat.gz")
    assert main(["-q", "report-scenario", "-s", str(run), "-f", "/dev/null", "--html", str(file)]) == 0
    return file


@pytest.mark.skipif(not (BROWSER and DRIVER), reason="chromium and chromedriver are not installed")
def test_charts_are_printed_in_the_colours_of_paper(tmp_path: Path) -> None:
    """From a dark desktop the axes were white on white: charts kept the colours of the screen."""
    file = write_report(tmp_path)
    with chromium(tmp_path) as browser:
        browser.show(file.as_uri(), 1000, "dark")
        browser.wait_for("return document.documentElement.dataset.charts == 'ready'")
        browser.run(NOTE_COLOURS)
        browser.run("window.dispatchEvent(new Event('beforeprint'))")
        browser.wait_for("return window.inks.size")
        assert set(browser.run("return [...window.inks]")) <= {"#1f2328", "#59636e"}
        browser.run("window.inks.clear(); window.dispatchEvent(new Event('afterprint'))")
        browser.wait_for("return window.inks.size")
        assert set(browser.run("return [...window.inks]")) <= {"#e6edf3", "#9da7b1"}


@pytest.mark.skipif(not (BROWSER and DRIVER), reason="chromium and chromedriver are not installed")
def test_the_figures_of_charts_can_be_read_without_seeing_them(tmp_path: Path) -> None:
    file = write_report(tmp_path)
    with chromium(tmp_path) as browser:
        browser.show(file.as_uri(), 1000, "light")
        browser.wait_for("return document.documentElement.dataset.charts == 'ready'")
        browser.run("for (const each of document.querySelectorAll('.figures summary')) each.click()")
        browser.wait_for(
            "return [...document.querySelectorAll('.figures')].every(each => each.querySelector('td'))"
        )
        records = [json.loads(text) for text in browser.run(RECORDS)]
        tables = browser.run(READ_FIGURES)
        assert len(tables) == len(records) > 5
        assert [bool(each.get("heat")) for each in records].count(True) == 1
        for record, (heads, first, count) in zip(records, tables, strict=True):
            if record.get("heat"):
                assert heads == ["from", "to", "values", "lowest", "highest"]
                assert count == len([column for column in record["heat"]["columns"] if column])
                continue
            assert heads[1:] == [curve["name"] for curve in record["curves"]]
            (x, *columns) = record["tables"][0]
            known = [place for place in range(len(x)) if any(column[place] is not None for column in columns)]
            if len(record["tables"]) == 1:
                assert count == len(known)
            shown = [bool(cell) for cell in first[1 : len(columns) + 1]]
            assert shown == [column[known[0]] is not None for column in columns]
        assert browser.console() == []
        # What is drawn on paper has no room for them.
        browser.tool("Emulation.setEmulatedMedia", media="print")
        assert browser.run("return document.querySelector('.figures').offsetHeight") == 0


#: Draws a chart again, and keeps the texts at points, with where each is.
DRAW_AGAIN = """
window.texts = [];
const prototype = CanvasRenderingContext2D.prototype, {fillText, clearRect} = prototype;
prototype.clearRect = function (...given) { window.texts = []; clearRect.apply(this, given); };
prototype.fillText = function (text, x, y) {
  if (this.font.startsWith("11px")) window.texts.push([text, x, y, x + this.measureText(text).width, y + 11]);
  fillText.call(this, text, x, y);
};
const button = document.querySelector(".series");
button.click();
button.click();
"""


@pytest.mark.skipif(not (BROWSER and DRIVER), reason="chromium and chromedriver are not installed")
def test_the_numbers_of_rows_do_not_overlap_on_a_phone(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    rows = tuple(
        SuiteRow(
            f"row{number // 4} users={number}",
            tuple(make_kept_run(reads(rng, 20, 1 + number / 40), "x", each) for each in (1, 2)),
        )
        for number in range(20)
    )
    page = tmp_path / "suite.html"
    page.write_text(html.render(make_suite_document(SuiteFindings("s", rows, 2)), View()))
    with chromium(tmp_path) as browser:
        browser.show(f"file://{page}", 400, "light")
        browser.wait_for("return document.documentElement.dataset.charts == 'ready'")
        browser.run(DRAW_AGAIN)
        browser.wait_for("return window.texts.length == 20")
        texts = browser.run("return window.texts")
    assert sorted(int(text) for text, *_ in texts) == [*range(1, 21)]
    overlapping = [
        (one[0], other[0])
        for one, other in combinations(texts, 2)
        if one[1] < other[3] and other[1] < one[3] and one[2] < other[4] and other[2] < one[4]
    ]
    assert not overlapping
