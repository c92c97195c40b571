"""The runs in a folder: a list of them, and how those of each scenario developed; as documents and JSON.

The development has a line for each run, with bars, and what changed between them. Where the level of a figure
changed is found with E-divisive (Matteson and James, 2014): a series is cut where the distances between both
parts exceed those within them by most, and each part is cut again, as long as such a difference is improbable
by chance. How probable it is follows from shuffling the runs.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from ssbench.base import record
from ssbench.base.record import Count, JsonHead, JsonRecord, Moment, PerSecond, Seconds, Share
from ssbench.comparison.archive import EXCLUDED_VERDICTS, NO_P99_NOTE, ArchiveEntry
from ssbench.document.columns import cut_text, format_plural
from ssbench.document.elements import (
    Cell,
    Column,
    Detail,
    Document,
    Element,
    Note,
    Row,
    Section,
    Table,
    Tone,
    View,
)
from ssbench.document.figures import FIGURES
from ssbench.document.units import format_change_size
from ssbench.statistics.run_verdict import Outcome

_COLUMNS = (
    Column("begun (UTC)", is_number=False),
    Column("ops/s"),
    Column("", is_number=False),
    Column("p99 ms"),
    Column("", is_number=False),
    Column("verdict", is_number=False),
)

#: Values that changed are cut to this many columns.
_MAX_VALUE_WIDTH = 24

#: Facts with as many values as this share of the runs are expected to differ, as seeds that were not given.
_NEW_VALUES_SHARE = 0.5


class FactChange(JsonRecord, frozen=True, kw_only=False, tag_field="about", tag="fact"):
    """What the runs should have in common changed; None where a run has no such fact."""

    name: str  # that of the fact
    before: str | None  # what it was
    after: str | None  # what it is from this run on


class LevelChange(JsonRecord, frozen=True, kw_only=False, tag_field="about", tag="level"):
    """A new level of a figure began."""

    figure: Literal["ops_per_second", "p99"]  # which one
    change: Share  # by how much it is higher, or lower


def make_trend_document(entries: Sequence[ArchiveEntry], _view: View) -> Document:
    """Return a section for each series; the entries are in the order of time."""
    sections = [_make_section(each) for each in list_run_series(entries)]
    if not sections:
        return Document("no runs", ())
    return Document("How runs developed", sections, untitled=True)


def _make_section(series: RunSeries) -> Section:
    runs, left_out = series.runs, series.left_out
    behind = f" ({left_out} left out: interrupted or incomplete)" if left_out else ""
    title = f"{series.title}: {format_plural(len(runs), 'run')}{behind}"
    if not runs:
        return Section(title, ())
    own, changes = find_fact_changes(runs)
    rows: list[Row] = []
    for place, run in enumerate(runs):
        rows += map(Note, map(_in_words, changes[place]))
        rows.append(
            (
                time.strftime("%Y-%m-%d %H:%M", time.gmtime(run.started)),
                FIGURES["rate"].unit.text(run.rate),
                _draw_bar(run.rate, [each.rate for each in runs]),
                FIGURES["p99"].unit.text(run.p99),
                _draw_bar(run.p99, [each.p99 for each in runs]),
                run.verdict,
            )
        )
    note = (
        "ops/s and p99 of all operations. "
        + (NO_P99_NOTE + ". " if any(run.p99 is None for run in runs) else "")
        + "! something that should stay the same changed. * performance changed here (1 % false alarms"
        + (")." if len(runs) >= MIN_TREND_RUNS else f"; needs {MIN_TREND_RUNS} runs).")
        + (f" Not marked, because it differs from run to run: {', '.join(own)}." if own else "")
    )
    return Section(title, (Table(_COLUMNS, rows), Note(note)))


def _draw_bar(value: float | None, among: Sequence[float | None]) -> Cell:
    most = max((each for each in among if each is not None), default=0.0)
    return Cell(bar=value / most) if value is not None and most else Cell()


@dataclass(frozen=True, slots=True)
class RunSeries:
    """Runs that measured the same: of one scenario, and of one row of a suite or one phase."""

    scenario: str
    row: str  # empty: of no suite
    title: str  # both in one
    runs: Sequence[ArchiveEntry]  # those that were not cut short, in the order of time
    left_out: int  # how many others there are


def list_run_series(entries: Sequence[ArchiveEntry]) -> Iterator[RunSeries]:
    """Yield the series of runs, in the order in which they began."""
    for scenario, row in dict.fromkeys((entry.scenario, entry.row) for entry in entries):
        everything = [entry for entry in entries if (entry.scenario, entry.row) == (scenario, row)]
        runs = [run for run in everything if run.verdict not in EXCLUDED_VERDICTS]
        yield RunSeries(scenario, row, everything[0].title, runs, len(everything) - len(runs))


def find_fact_changes(runs: Sequence[ArchiveEntry]) -> tuple[list[str], list[list[FactChange | LevelChange]]]:
    """Return the facts that differ from run to run, and for each run what changed before it."""
    facts = [{"label": run.label or "", **read_entry_facts(run)} for run in runs]
    names = dict.fromkeys(name for each in facts for name in each)
    own = [
        name
        for name in names
        if len({each[name] for each in facts if each.get(name)}) > max(2, _NEW_VALUES_SHARE * len(runs))
    ]
    changes: list[list[FactChange | LevelChange]] = [[] for _ in runs]
    for place, (one, two) in enumerate(pairwise(facts), start=1):
        changes[place] += [
            FactChange(name, one.get(name) or None, two.get(name) or None)
            for name in names
            if name not in own and one.get(name, "") != two.get(name, "")
        ]
    for figure, values in _FIGURE_VALUES.items():
        for place, change in _levels([values(run) for run in runs]):
            changes[place].append(LevelChange(figure, change))
    return own, changes


_FIGURE_VALUES: dict[Literal["ops_per_second", "p99"], Callable[[ArchiveEntry], float | None]] = {
    "ops_per_second": lambda run: run.rate,
    "p99": lambda run: run.p99,
}
_FIGURE_TITLES = {"ops_per_second": "ops/s", "p99": "p99"}


def _in_words(change: FactChange | LevelChange) -> str:
    if isinstance(change, FactChange):
        return f"! {change.name}: {_shown(change.before)} -> {_shown(change.after)}"
    words = f"{format_change_size(abs(change.change))} % {'higher' if change.change > 0 else 'lower'}"
    return f"* {_FIGURE_TITLES[change.figure]} {words} from here on"


def read_entry_facts(run: ArchiveEntry) -> dict[str, str]:
    """Return what an entry says of its run that should be the same in others."""
    found = json.loads(run.facts)
    return {str(name): str(value) for name, value in found.items()} if isinstance(found, dict) else {}


def _shown(value: str | None) -> str:
    return cut_text(value, _MAX_VALUE_WIDTH) if value else "none"


def _levels(values: Sequence[float | None]) -> Iterator[tuple[int, float]]:
    """Yield the run at which each new level begins, and by how much it is higher or lower, as a share."""
    # A level is not compared with runs whose own levels are not known.
    known = [(place, value) for place, value in enumerate(values) if value][-MAX_TREND_RUNS:]
    places = find_level_changes([value for _, value in known])
    logs = [math.log(value) for _, value in known]
    for before, place, after in zip([0, *places], places, [*places[1:], len(known)], strict=False):
        change = math.expm1(
            sum(logs[place:after]) / (after - place) - sum(logs[before:place]) / (place - before)
        )
        yield known[place][0], change


#: With fewer runs a change cannot be distinguished from chance.
MIN_TREND_RUNS = 10

#: The least number of runs of a level.
_MIN_LEVEL_RUNS = 3

#: The probability by chance that a cut may have at most, and the shuffles from which it is estimated.
_MAX_CHANCE = 0.01
_SHUFFLE_COUNT = 999

#: Of a longer series pass only the last runs: time and memory grow with the square of their number.
MAX_TREND_RUNS = 200

_Floats = npt.NDArray[np.float64]


def find_level_changes(values: Sequence[float]) -> list[int]:
    """Return the places at which a new level begins; all values are above 0, one a run."""
    if len(values) < MIN_TREND_RUNS:
        return []
    # The same series gives the same answer each time.
    return sorted(_find_cut(np.log(np.asarray(values, np.float64)), 0, np.random.default_rng(0)))


def _find_cut(logs: _Floats, begin: int, random: np.random.Generator) -> list[int]:
    if len(logs) < 2 * _MIN_LEVEL_RUNS:
        return []
    distances = np.abs(logs[:, None] - logs[None, :])
    excess, place = _find_best_cut(distances)
    as_much = 0
    for tried in range(_SHUFFLE_COUNT):
        order = random.permutation(len(logs))
        as_much += _find_best_cut(distances[np.ix_(order, order)])[0] >= excess
        if as_much > _MAX_CHANCE * (_SHUFFLE_COUNT + 1) - 1 or (tried == 0 and not excess > 0):
            return []
    return [
        *_find_cut(logs[:place], begin, random),
        begin + place,
        *_find_cut(logs[place:], begin + place, random),
    ]


def _find_best_cut(distances: _Floats) -> tuple[float, int]:
    """Return by how much distances between two parts exceed those within them, at most, and where to cut."""
    count = len(distances)
    sums = distances.cumsum(0).cumsum(1)
    first = np.arange(_MIN_LEVEL_RUNS, count - _MIN_LEVEL_RUNS + 1)
    second = count - first
    within_first = sums[first - 1, first - 1]
    between = sums[first - 1, -1] - within_first
    within_second = sums[-1, -1] - within_first - 2 * between
    excess = (
        2 * between / (first * second)
        - within_first / (first * np.maximum(first - 1, 1))
        - within_second / (second * np.maximum(second - 1, 1))
    ) * (first * second / count)
    best = int(np.argmax(excess))
    return float(excess[best]), int(first[best])


# -- The list of runs, and JSON --------------------------------------------------------------------


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
            entry.title,
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
    """A run; null is what was not measured, or is only a lower bound."""

    file: str  # its stat file
    started: Moment  # when it began
    scenario: str  # the name of its scenario
    row: str  # the row of a suite, or the phase, that it was; empty: none
    label: str | None  # what it was labelled
    users: Count  # those of the scenario
    ops_per_second: PerSecond | None  # successes a second
    p99: Seconds | None  # 99th percentile of latency
    verdict: str  # a word
    facts: dict[str, str]  # what runs that are compared should share


_AnyListedRun = TypeVar("_AnyListedRun", bound=ListedRun)


class NamedRun(ListedRun, frozen=True, kw_only=True):
    """A run with what it is called in commands, such as ``last-1``."""

    name: str  # what it is called


class ChangedRun(ListedRun, frozen=True, kw_only=True):
    """A run with what changed since the one before."""

    changes: tuple[FactChange | LevelChange, ...]  # those since the one before


class RunsList(JsonHead, frozen=True, kw_only=True):
    """The runs of a folder, the newest last."""

    format: Literal["ssbench list"] = "ssbench list"
    version: Literal[1] = 1
    runs: tuple[NamedRun, ...]  # the newest last


class Development(JsonRecord, frozen=True, kw_only=True):
    """The runs of a scenario, or of one row of a suite."""

    scenario: str  # its name
    row: str  # the row of a suite, or the phase; empty: none
    left_out: Count  # runs that are not among them because they were cut short
    not_marked: tuple[str, ...]  # facts that differ from run to run, so that no change of them is told
    runs: tuple[ChangedRun, ...]  # in the order of time


class Trend(JsonHead, frozen=True, kw_only=True):
    """How the runs of each scenario developed."""

    format: Literal["ssbench trend"] = "ssbench trend"
    version: Literal[1] = 1
    scenarios: tuple[Development, ...]  # each by itself


def make_runs_json(entries: Sequence[tuple[str, ArchiveEntry]], *_: Any) -> str:
    """Return a list of runs, each with its name, as one JSON document."""
    return record.format_json(
        RunsList(runs=tuple(_make_listed_run(NamedRun, entry, name=name) for name, entry in entries))
    )


def make_trend_json(entries: Sequence[ArchiveEntry], *_: Any) -> str:
    """Return how runs developed as one JSON document; the entries are in the order of time."""
    return record.format_json(Trend(scenarios=tuple(map(_make_development, list_run_series(entries)))))


def _make_development(series: RunSeries) -> Development:
    not_marked, changes = find_fact_changes(series.runs)
    made = (
        _make_listed_run(ChangedRun, entry, changes=tuple(own))
        for entry, own in zip(series.runs, changes, strict=True)
    )
    return record.make_record_from(Development, series, not_marked=tuple(not_marked), runs=tuple(made))


def _make_listed_run(kind: type[_AnyListedRun], entry: ArchiveEntry, **more: Any) -> _AnyListedRun:
    facts = read_entry_facts(entry)
    return record.make_record_from(kind, entry, ops_per_second=entry.rate, facts=facts, **more)
