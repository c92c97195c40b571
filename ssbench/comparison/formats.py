"""A comparison as text, CSV, Markdown, JSON and JUnit XML; all of them begin with its verdict."""

from __future__ import annotations

import csv
import io
import json
import textwrap
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import pairwise

from ssbench.comparison.change import NO_DIFFERENCE, Change
from ssbench.comparison.compare import Comparison, Judged, Row
from ssbench.comparison.figures import FIGURES
from ssbench.comparison.texts import NOT_KNOWN, cells
from ssbench.comparison.verdict import verdict
from ssbench.figures import DASH
from ssbench.printable import cell, printable
from ssbench.reports.columns import WIDTH, cut, width
from ssbench.reports.markdown import escape

_COLUMNS = ("operation", "figure", "before", "after", "change", "95 % interval", "detects", "")

#: The columns after this many are left out where no row has anything in them.
_ALWAYS = 5

#: In text, by their places: those with words, and one that has a title only there; and shorter words.
_LEFT = (1, 5, 7)
_TITLES = {7: "shown"}
_SHORT = {
    NO_DIFFERENCE: "none",
    **{word: word.partition(" ")[0] for each in FIGURES.values() for word in each.words},
}

#: Operation and size class have this many columns at least.
_LEAST_NAME = 6


def text(comparison: Comparison) -> str:
    """Return a table, a line a figure, and what may be said of it, in lines that fit a terminal."""
    places, rows = _table(comparison)
    rows = [[_SHORT.get(cell, cell) for cell in row] for row in rows]
    rows[0] = [_TITLES.get(place, title) for place, title in zip(places, rows[0], strict=True)]
    left = [number for number, place in enumerate(places) if place in _LEFT]
    lines = [line for part in head(comparison) for line in wrapped(part)]
    lines += ["", *aligned(rows, left)]
    if any(DASH in row for row in rows):
        lines += wrapped(NOT_KNOWN)
    lines.append("")
    for note in notes(comparison):
        lines += wrapped(note)
    return "".join(f"{printable(line.rstrip())}\n" for line in lines)


def aligned(rows: Sequence[Sequence[str]], left: Collection[int]) -> Iterator[str]:
    """Yield rows as lines that fit a terminal, the titles first; ``left`` are places of columns with words.

    In the first column are operations with their size classes.
    """
    names = [_below(before, name) for before, name in pairwise(["", *(row[0] for row in rows)])]
    _, *columns = zip(*rows, strict=True)
    widths = [max(map(width, column)) for column in (names, *columns)]
    widths[0] = max(_LEAST_NAME, min(widths[0], WIDTH - sum(widths[1:]) - 2 * len(columns)))
    for name, (_, *rest) in zip(names, rows, strict=True):
        shown = cut(name, widths[0])
        texts = [shown + " " * (widths[0] - width(shown))]
        texts += [
            f"{cell:<{room}}" if place in left else f"{cell:>{room}}"
            for place, (cell, room) in enumerate(zip(rest, widths[1:], strict=True), 1)
        ]
        yield "  ".join(texts)


def _below(before: str, name: str) -> str:
    """Return what stands for a name below another one: of the same operation, only its size class."""
    if name == before:
        return ""
    operation, _, size_class = name.partition(" ")
    return f"  {size_class}" if size_class and before.partition(" ")[0] == operation else name


def wrapped(text: str) -> list[str]:
    """Return a sentence in lines that fit a terminal; blanks in a row stay."""
    return textwrap.wrap(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False)


def markdown(comparison: Comparison) -> str:
    """Return the same as a table for a pull request."""
    places, (titles, *rows) = _table(comparison)
    lines = [*map(escape, head(comparison)), "", _row(titles), _row(["---"] * len(places))]
    lines += map(_row, rows)
    lines += ["", *(f"- {escape(note)}" for note in notes(comparison))]
    return "".join(f"{line}\n" for line in lines)


def _table(comparison: Comparison) -> tuple[list[int], list[list[str]]]:
    """Return the places of the columns that are shown; and the rows of their cells, titles first."""
    rows = [
        [row.name, FIGURES[figure].compared_head, *cells(FIGURES[figure], change)]
        for row in comparison.rows
        for figure, change in visible(row)
    ]
    places = [place for place in range(len(_COLUMNS)) if place < _ALWAYS or any(row[place] for row in rows)]
    return places, [[row[place] for place in places] for row in (list(_COLUMNS), *rows)]


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(map(escape, cells)) + " |"


def as_csv(comparison: Comparison) -> str:
    """Return a line a figure, with values in seconds, operations or megabytes a second, and shares."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["Operation", "Size class", "Figure", *(_title(name) for name in Change.__slots__)])
    for row in comparison.rows:
        for figure, change in row.changes.items():
            values = asdict(change).values()
            writer.writerow([row.operation, cell(row.size_class or ""), figure, *values])
    return out.getvalue()


def _title(name: str) -> str:
    return name.replace("_", " ").capitalize()


def as_json(comparison: Comparison) -> str:
    """Return everything, with values in seconds, operations or megabytes a second, and shares."""
    said = verdict(comparison)
    record = {
        "version": 2,
        "verdict": {**asdict(said), "outcome": said.outcome.value},
        **asdict(comparison),
        "conditions": [{**asdict(each), "result": each.result.value} for each in comparison.conditions],
    }
    return json.dumps(record, indent=1, allow_nan=False) + "\n"


def visible(row: Row) -> Iterator[tuple[str, Change]]:
    """Yield the changes of a row; shares, such as errors, only where there were some."""
    for figure, change in row.changes.items():
        if not FIGURES[figure].is_share or change.before or change.after:
            yield figure, change


def head(comparison: Comparison) -> Iterator[str]:
    """Yield the two sides, and the verdict."""
    first, second = comparison.runs
    yield f"before: {comparison.before} ({_runs(first)})" if first else f"before: {comparison.before}"
    yield f"after:  {comparison.after} ({_runs(second)})" if second else f"after:  {comparison.after}"
    yield verdict(comparison).headline


def _runs(count: int) -> str:
    return "1 run" if count == 1 else f"{count} runs"


def notes(comparison: Comparison) -> Iterator[str]:
    """Yield the reasons of the verdict, what was found of its conditions, and warnings."""
    yield from verdict(comparison).reasons
    yield from map(of_condition, comparison.conditions)
    for warning in comparison.warnings:
        yield f"! {warning}"


def of_condition(judged: Judged) -> str:
    """Return the line of a condition."""
    needs = f"; it needs {judged.needs}" if judged.needs else ""
    return f"fail-if {judged.condition}: {judged.result.value} ({judged.came}){needs}"
