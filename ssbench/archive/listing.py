"""The runs in a folder, a line each."""

from __future__ import annotations

import time
from collections.abc import Sequence

from ssbench.archive.entry import NO_P99, Entry
from ssbench.document import Cell, Column, Detail, Document, Element, Note, Row, Table, Tone, View
from ssbench.figures import FIGURES
from ssbench.verdict import Outcome

#: What stands out in a list: verdicts that are not good.
_TONES = {
    Outcome.WARNED.value: Tone.DOUBTFUL,
    Outcome.UNDECIDED.value: Tone.DOUBTFUL,
    Outcome.NOT_DELIVERED.value: Tone.BAD,
    Outcome.FAILED.value: Tone.BAD,
}


def document(entries: Sequence[tuple[str, Entry]], _view: View) -> Document:
    """Return a table of runs, each with its name in commands; labels only where there are some."""
    if not entries:
        return Document("no runs", ())
    labelled = any(entry.label for _, entry in entries)
    columns = [
        Column("run", is_number=False),
        Column("begun (UTC)", is_number=False, is_whole=True),
        Column("scenario", is_number=False),
        *([Column("label", is_number=False)] if labelled else []),
        Column("users"),
        Column("ops/s"),
        Column("p99 ms"),
        Column("verdict", is_number=False, is_whole=True),
        Column("file", is_number=False, detail=Detail.VERBOSE),
    ]
    rows: list[Row] = [
        (
            name,
            time.strftime("%Y-%m-%d %H:%M", time.gmtime(entry.started)),
            entry.scenario,
            *([entry.label or ""] if labelled else []),
            str(entry.users),
            FIGURES["rate"].unit.text(entry.rate),
            FIGURES["p99"].unit.text(entry.p99),
            Cell(entry.verdict, tone=_TONES.get(entry.verdict)),
            entry.file,
        )
        for name, entry in entries
    ]
    elements: list[Element] = [Table(columns, rows)]
    if any(entry.p99 is None for _, entry in entries):
        elements.append(Note(NO_P99))
    return Document("Runs", elements, untitled=True)
