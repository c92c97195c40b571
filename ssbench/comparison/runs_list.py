"""The runs in a folder, a line each; and as JSON, also how those of each scenario developed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Literal

from ssbench.base import record
from ssbench.base.measures import Count, Moment, PerSecond, Seconds
from ssbench.base.record import JsonHead, JsonRecord
from ssbench.comparison.entry import NO_P99_NOTE, ArchiveEntry
from ssbench.comparison.trend import (
    FactChange,
    LevelChange,
    find_fact_changes,
    group_runs_by_scenario,
    read_entry_facts,
)
from ssbench.document.elements import Cell, Column, Detail, Document, Element, Note, Row, Table, Tone, View
from ssbench.document.figures import FIGURES
from ssbench.statistics.verdict import Outcome

#: What stands out in a list: verdicts that are not good.
_TONES = {
    Outcome.WARNED.value: Tone.DOUBTFUL,
    Outcome.UNDECIDED.value: Tone.DOUBTFUL,
    Outcome.NOT_DELIVERED.value: Tone.BAD,
    Outcome.FAILED.value: Tone.BAD,
}


def make_runs_document(entries: Sequence[tuple[str, ArchiveEntry]], _view: View) -> Document:
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
        elements.append(Note(NO_P99_NOTE))
    return Document("Runs", elements, untitled=True)


class ListedRun(JsonRecord, frozen=True, kw_only=True):
    """A run; null is what was not measured, or is only a lower bound.

    ``facts`` are what runs that are compared should share.
    """

    file: str
    started: Moment
    scenario: str
    label: str | None
    users: Count
    ops_per_second: PerSecond | None
    p99: Seconds | None
    verdict: str
    facts: dict[str, str]


class NamedRun(ListedRun, frozen=True, kw_only=True):
    """A run with what it is called in commands, such as ``last-1``."""

    name: str


class ChangedRun(ListedRun, frozen=True, kw_only=True):
    """A run with what changed since the one before."""

    changes: tuple[FactChange | LevelChange, ...]


class RunsList(JsonHead, frozen=True, kw_only=True):
    """The runs of a folder, the newest last."""

    format: Literal["ssbench list"] = "ssbench list"
    version: Literal[1] = 1
    runs: tuple[NamedRun, ...]


class Development(JsonRecord, frozen=True, kw_only=True):
    """The runs of a scenario; others were ``left_out`` because they were cut short.

    ``not_marked`` are facts that differ from run to run.
    """

    scenario: str
    left_out: Count
    not_marked: tuple[str, ...]
    runs: tuple[ChangedRun, ...]


class Trend(JsonHead, frozen=True, kw_only=True):
    """How the runs of each scenario developed."""

    format: Literal["ssbench trend"] = "ssbench trend"
    version: Literal[1] = 1
    scenarios: tuple[Development, ...]


def make_runs_list(entries: Sequence[tuple[str, ArchiveEntry]], *_: Any) -> str:
    """Return a list of runs, each with its name, as one JSON document."""
    return record.format_json(
        RunsList(runs=tuple(NamedRun(name=name, **_make_listed_run(entry)) for name, entry in entries))
    )


def make_trend_report(entries: Sequence[ArchiveEntry], *_: Any) -> str:
    """Return how runs developed as one JSON document; the entries are in the order of time."""
    return record.format_json(
        Trend(scenarios=tuple(_make_development(*each) for each in group_runs_by_scenario(entries)))
    )


def _make_development(scenario: str, entries: Sequence[ArchiveEntry], left_out: int) -> Development:
    not_marked, changes = find_fact_changes(entries)
    made = (
        ChangedRun(changes=tuple(own), **_make_listed_run(entry))
        for entry, own in zip(entries, changes, strict=True)
    )
    return Development(scenario=scenario, left_out=left_out, not_marked=tuple(not_marked), runs=tuple(made))


def _make_listed_run(entry: ArchiveEntry) -> dict[str, Any]:
    return {
        "file": entry.file,
        "started": entry.started,
        "scenario": entry.scenario,
        "label": entry.label,
        "users": entry.users,
        "ops_per_second": entry.rate,
        "p99": entry.p99,
        "verdict": entry.verdict,
        "facts": read_entry_facts(entry),
    }
