"""Colours: on terminals, as NO_COLOR and FORCE_COLOR say, never in files; texts of others bring none."""

from __future__ import annotations

import io
import logging
import os
import pty
from collections.abc import Iterator
from typing import IO

import pytest

from ssbench.base import printable
from ssbench.cli import output_file
from ssbench.document.elements import Cell, Column, Document, Table, Tone, Verdict, View, Warnings
from ssbench.document.renderers.text import render

RED, YELLOW, END = "\x1b[1;31m", "\x1b[33m", "\x1b[0m"


@pytest.fixture
def terminal() -> Iterator[IO[str]]:
    controller, descriptor = pty.openpty()
    with open(descriptor, "w", encoding="utf-8") as made:  # noqa: PTH123 - a descriptor
        yield made
    os.close(controller)


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")


def test_a_terminal_has_colours_unless_the_user_wants_none(
    terminal: IO[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert printable.wants_colours(terminal)
    monkeypatch.setenv("TERM", "dumb")
    assert not printable.wants_colours(terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    assert not printable.wants_colours(terminal)


def test_pipes_have_none_but_where_they_are_forced_and_files_never(monkeypatch: pytest.MonkeyPatch) -> None:
    class Standard(io.StringIO):
        def fileno(self) -> int:
            return 1

    assert not printable.wants_colours(Standard())
    monkeypatch.setenv("FORCE_COLOR", "0")
    assert not printable.wants_colours(Standard())
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert printable.wants_colours(Standard())
    with open(os.devnull, "w", encoding="utf-8") as file:  # noqa: PTH123
        assert not printable.wants_colours(file)
    assert not printable.wants_colours(io.StringIO())


DOCUMENT = Document(
    "a",
    [
        Warnings(["hot \x1b[32mstuff"]),
        Table(
            [Column("x", is_number=False), Column("y")], [("one", Cell("slow", Tone.BAD)), ("two", "fast")]
        ),
    ],
    Verdict(Tone.BAD, "FAILED: 3 errors"),
)


def test_a_document_has_the_colours_of_its_tones_and_no_others() -> None:
    plain = render(DOCUMENT, View())
    text = render(DOCUMENT, View(coloured=True))
    assert "\x1b" not in plain
    assert f"{RED}FAILED: 3 errors{END}\n" in text
    assert f"{YELLOW}! hot \ufffd[32mstuff{END}\n" in text
    assert f"one  {RED}slow{END}" in text
    without = text
    for sequence in printable.COLOUR_SEQUENCES:
        without = without.replace(sequence, "")
    assert without == plain


def test_only_our_colours_pass_where_they_may() -> None:
    out = io.StringIO()
    stream = printable.make_printable_stream(out)
    stream.write(f"{RED}a{END}")
    stream.let_paint()  # type: ignore[attr-defined]
    stream.write(f"{RED}b{END}\x1b[2J\x1b[31m")
    assert out.getvalue() == f"\ufffd[1;31ma\ufffd[0m{RED}b{END}\ufffd[2J\ufffd[31m"


def test_the_level_of_a_log_line_has_a_colour(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    record = logging.LogRecord("x", logging.ERROR, "", 0, "ERROR %s", ("\x1b[1;31mx",), None)
    handler = output_file._StandardErrorHandler()
    handler.setFormatter(logging.Formatter("%(levelname)s:%(message)s"))
    handler.emit(record)
    monkeypatch.setattr(printable, "wants_colours", lambda _: True)
    handler.emit(record)
    plain, painted = capsys.readouterr().err.splitlines()
    assert plain == "ERROR:ERROR \ufffd[1;31mx"
    assert painted == f"{RED}ERROR{END}:ERROR \ufffd[1;31mx"
