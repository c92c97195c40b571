"""A comparison as text, CSV, Markdown and JSON."""

from __future__ import annotations

import csv
import io
import json
import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict

from ssbench.comparison.change import Change
from ssbench.comparison.compare import Comparison, Row
from ssbench.comparison.figures import FIGURES, Figure
from ssbench.reports.figures import printable
from ssbench.reports.markdown import escape

_COLUMNS = ("operation", "figure", "before", "after", "change", "95 % interval", "shows", "")


def text(comparison: Comparison) -> str:
    """Return a table of at most 100 columns, a line a figure, and what may be said of it."""
    lines = [*head(comparison), ""]
    form = "{:<16.16} {:<9}{:>9}{:>9}{:>9}  {:<16}{:>7}  {}"
    lines.append(form.format(*_COLUMNS))
    for row in comparison.rows:
        name = _name(row)
        for figure, change in telling(row):
            lines.append(form.format(name, FIGURES[figure].title, *cells(FIGURES[figure], change)))
            name = ""
    lines.append("")
    for note in notes(comparison):
        lines += textwrap.wrap(note, 100, subsequent_indent="  ", break_on_hyphens=False)
    return "".join(f"{printable(line.rstrip())}\n" for line in lines)


def markdown(comparison: Comparison) -> str:
    """Return the same as a table for a pull request."""
    lines = [*map(escape, head(comparison)), "", _row(_COLUMNS), _row(["---"] * len(_COLUMNS))]
    for row in comparison.rows:
        for figure, change in telling(row):
            title = FIGURES[figure].title
            lines.append(_row([_name(row), title, *cells(FIGURES[figure], change)]))
    lines += ["", *(f"- {escape(note)}" for note in notes(comparison))]
    return "".join(f"{line}\n" for line in lines)


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(map(escape, cells)) + " |"


def as_csv(comparison: Comparison) -> str:
    """Return a line a figure, with values in seconds, bytes and shares."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["Operation", "Size class", "Figure", *(_title(name) for name in Change.__slots__)])
    for row in comparison.rows:
        for figure, change in row.changes.items():
            values = [getattr(change, name) for name in Change.__slots__]
            writer.writerow([row.operation, row.size_class or "", figure, *values])
    return out.getvalue()


def _title(name: str) -> str:
    return name.replace("_", " ").capitalize()


def as_json(comparison: Comparison) -> str:
    """Return everything, with values in seconds, bytes and shares."""
    return json.dumps({"version": 1, **asdict(comparison)}, indent=1, allow_nan=False) + "\n"


#: Every format by its name.
FORMATS: dict[str, Callable[[Comparison], str]] = {
    "text": text,
    "csv": as_csv,
    "markdown": markdown,
    "json": as_json,
}


def telling(row: Row) -> Iterator[tuple[str, Change]]:
    """Yield the changes of a row; errors only where there were some."""
    for figure, change in row.changes.items():
        if figure != "errors" or change.before or change.after:
            yield figure, change


def _name(row: Row) -> str:
    return f"{row.operation} {row.size_class or ''}".rstrip()


def head(comparison: Comparison) -> Iterator[str]:
    """Yield the two sides, and what was shown."""
    first, second = comparison.runs
    yield f"before: {comparison.before} ({_runs(first)})" if first else f"before: {comparison.before}"
    yield f"after:  {comparison.after} ({_runs(second)})" if second else f"after:  {comparison.after}"
    shown = [
        f"{_name(row)} {FIGURES[figure].title.split()[0]} {change.word} ({_signed(FIGURES[figure], change)})"
        for row, figure, change in comparison.changes()
        if change.differs
    ]
    if shown:
        yield f"shown: {'; '.join(shown[:4])}" + (f"; and {len(shown) - 4} more" if len(shown) > 4 else "")
    elif comparison.repeated:
        yield "no difference shown"
    else:
        yield "no verdict"


def _runs(count: int) -> str:
    return "1 run" if count == 1 else f"{count} runs"


def notes(comparison: Comparison) -> Iterator[str]:
    """Yield what may be said of the comparison, what came of its conditions, and warnings."""
    yield f"{comparison.judgment}."
    if comparison.repeated:
        yield (
            f"A change is shown where its whole interval is beyond {100 * comparison.noise:g} %. The column"
            " shows: the change that 9 of 10 such comparisons would have shown."
        )
    for each in comparison.conditions:
        yield f"fail-if {each.condition}: {'FAILED' if each.failed else 'ok'} ({each.came})"
    for warning in comparison.warnings:
        yield f"! {warning}"


def cells(figure: Figure, change: Change) -> list[str]:
    """Return before, after, change, interval, what it shows, the word."""
    interval = ""
    if change.low is not None and change.high is not None:
        interval = f"{_percent(change.low)} to {_percent(change.high)}"
    return [
        _value(figure, change.before),
        _value(figure, change.after),
        _signed(figure, change),
        interval,
        "" if change.shows is None else f"{100 * change.shows:.1f} %",
        change.word or "",
    ]


def _signed(figure: Figure, change: Change) -> str:
    if change.change is None:
        return "-"
    # Of shares, percentage points.
    return f"{_percent(change.change)}{'' if figure.more_is_faster is None else ' %'}"


def _percent(share: float) -> str:
    return f"{100 * share:+.1f}" if abs(share) < 10 else f"{100 * share:+.0f}"


def _value(figure: Figure, value: float | None) -> str:
    return "-" if value is None else figure.spell(value)
