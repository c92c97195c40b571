"""Text of others controls no terminal, no spreadsheet and no page, whichever way it is shown."""

from __future__ import annotations

import csv
import json
import logging
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
import result_rows
from hypothesis import given
from hypothesis import strategies as st

from ssbench.base.printable import escape_csv_cell, escape_in_json, make_printable, make_printable_lines
from ssbench.cli.master import main
from ssbench.results.block import Failure
from ssbench.results.run_description import RunDescription, RunSummary, WorkerFacts
from ssbench.results.writer import RunResultsWriter
from ssbench.run import terminal
from ssbench.scenario.model import Scenario, SizeClass

#: Erases a screen, sets a title, rings, turns the writing round, and is a formula and markup.
HOSTILE = "=cmd|'/C calc'!A0\x1b[2J\x1b]0;x\x07\x9b31m\r\u202e</script><script>alert(1)</script><b>**x**|"

#: No text of others may bring any of these to a reader.
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture
def stat_file(tmp_path: Path) -> Path:
    """Return a stat file in which all that is text is hostile."""
    scenario = Scenario(
        HOSTILE,
        (SizeClass(HOSTILE, 1, 2, 3, (1, 2, 3, 4)),),
        user_count=4,
        run_seconds=1.5,
        policy=HOSTILE,
        data={"name": HOSTILE, HOSTILE: HOSTILE},
    )
    run = RunDescription(
        scenario,
        version=HOSTILE,
        options={"label": HOSTILE, HOSTILE: HOSTILE},
        host=HOSTILE,
        started=1.7e9,
        workers=(WorkerFacts(7, HOSTILE, HOSTILE),),
        storage_urls=(HOSTILE,),
    )
    path = tmp_path / "hostile.stat.gz"
    writer = RunResultsWriter(path, run)
    common = {"operation": 1, "worker": 7, "container": 3, "size": 2, "status": 200}
    rows = [
        result_rows.row(**common, object=n, first_byte=0.001, last_byte=0.002, completed=1.7e9 + n / 100)
        for n in range(200)
    ]
    failures = {n: Failure(HOSTILE, HOSTILE, {HOSTILE: 1}) for n in range(5)}
    writer.add(result_rows.block(rows, [HOSTILE] * len(rows), failures))
    writer.end(RunSummary(ended=1.7e9 + 2, warnings=(HOSTILE,), workers=(WorkerFacts(7, HOSTILE, HOSTILE),)))
    return path


class Elements(HTMLParser):
    """Counts the elements of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)


def test_no_output_of_a_hostile_file_controls_its_reader(
    stat_file: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    file = str(stat_file)
    report = ["report-scenario", "-s", file]
    for name, arguments in {
        "text": [*report, "--report", "full", "--verbose"],
        "csv": [*report, "--csv"],
        "json": [*report, "--json", "-"],
        "xml": [*report, "--ci", "xml=-"],
        "md": [*report, "--ci", "md=-"],
        "export.csv": ["export", "-s", file, "-o", "-"],
        "export.jsonl": ["export", "-s", file, "-f", "jsonl", "-o", "-"],
        "compare": ["compare", file, file],
        "compare.csv": ["compare", file, file, "--format", "csv"],
        "compare.json": ["compare", file, file, "--format", "json"],
        "compare.md": ["compare", file, file, "--format", "markdown"],
        "list": ["list", "--results-dir", str(tmp_path)],
        "trend": ["list", "--results-dir", str(tmp_path), "--trend"],
    }.items():
        main(arguments)
        shown_text, told = capfd.readouterr()
        assert shown_text, name
        for text in (shown_text, told):
            assert not CONTROL.search(text), (name, CONTROL.findall(text))
        (out / name).write_text(shown_text)
    for name in ("csv", "export.csv", "compare.csv"):
        with (out / name).open(newline="") as lines:
            cells = [each for line in csv.reader(lines) for each in line]
        assert not [each for each in cells if each.startswith("=")], name
        assert [each for each in cells if each.startswith("'=")] or name == "compare.csv", name
    for name in ("json", "export.jsonl"):
        first = json.loads((out / name).read_text().partition("\n" if name == "export.jsonl" else "\0")[0])
        assert HOSTILE in (first.get("trans_id"), first.get("run", {}).get("scenario", {}).get("name")), name
    ElementTree.fromstring((out / "xml").read_text())
    for name in ("md", "compare.md"):
        plain = re.sub(r"`[^`\n]*`|\\<", "", (out / name).read_text())  # without code and what is escaped
        assert "<script" not in plain, name


def test_a_hostile_file_adds_no_element_to_a_page(stat_file: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert main(["report-scenario", "-s", str(stat_file), "--html", str(page)]) == 0
    text = page.read_text()
    assert not CONTROL.search(re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL))
    assert "alert(1)" in text
    elements = Elements()
    elements.feed(text)
    assert elements.seen.count("script") == 2  # uPlot, our own
    assert "b" not in elements.seen


def test_messages_are_cleaned_where_they_are_written(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.write_line(f"one\n\ttwo {HOSTILE}")
    terminal.redraw_line(HOSTILE)
    terminal.end_row()
    terminal.write_in_row(HOSTILE)
    terminal.end_row()
    text = capsys.readouterr().err
    assert "one\n\ttwo" in text
    assert not CONTROL.search(text.replace("\r", "").replace("\x1b[K", ""))


def test_a_log_line_is_cleaned(capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> None:
    from ssbench.cli import output_file  # noqa: PLC0415 - set up for this test only

    before = logging.root.handlers[:], logging.root.level
    try:
        output_file.set_up_logging()
        logging.getLogger("x").warning("%s", HOSTILE)
    finally:
        logging.root.handlers[:], _ = before
        logging.root.setLevel(before[1])
    text = capsys.readouterr().err
    assert "WARNING:=cmd" in text
    assert not CONTROL.search(text)


@given(st.text())
def test_whatever_a_text_is(text: str) -> None:
    for made in (
        make_printable(text),
        make_printable_lines(text),
        escape_in_json(text),
        escape_csv_cell(text),
    ):
        assert not CONTROL.search(made)
    assert make_printable(text).isprintable() or not set(make_printable(text)) & set("\t\n")
    assert json.loads(escape_in_json(json.dumps(text, ensure_ascii=False))) == text
    assert len(make_printable(text)) == len(make_printable_lines(text)) == len(text)


@pytest.mark.parametrize("text", ["-1", "+2.5", "-", "-3e5", "", "N/A", "  N/A  ", "a=b", "-12%"])
def test_what_is_no_formula_stays_as_it_is(text: str) -> None:
    assert escape_csv_cell(text) == text


@pytest.mark.parametrize("text", ["=1+1", "+cmd", "-cmd", "@SUM(1)", "-1+cmd|'x'!A0", "--"])
def test_a_formula_is_a_text(text: str) -> None:
    assert escape_csv_cell(text) == f"'{text}"
