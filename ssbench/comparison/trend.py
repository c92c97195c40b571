"""How the runs of a scenario developed: a line a run, with bars, and what changed between them.

Where the level of a figure changed is found with E-divisive (Matteson and James, 2014): a series is cut where
the distances between both parts exceed those within them by most, and each part is cut again, as long as such
a difference is improbable by chance. How probable it is follows from shuffling the runs.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Literal

import numpy as np
import numpy.typing as npt

from ssbench.base.measures import Share
from ssbench.base.record import Record
from ssbench.comparison.entry import NO_P99, Entry
from ssbench.document.columns import cut, plural
from ssbench.document.elements import Cell, Column, Document, Note, Row, Section, Table, View
from ssbench.document.figures import FIGURES
from ssbench.document.units import extent

_COLUMNS = (
    Column("begun (UTC)", is_number=False),
    Column("ops/s"),
    Column("", is_number=False),
    Column("p99 ms"),
    Column("", is_number=False),
    Column("verdict", is_number=False),
)

#: Values that changed are cut to this many columns.
_VALUE = 24

#: Facts with as many values as this share of the runs are expected to differ, as seeds that were not given.
_ALWAYS_NEW = 0.5

_LEFT_OUT = ("interrupted", "incomplete")


class FactChange(Record, frozen=True, kw_only=False, tag_field="about", tag="fact"):
    """What the runs should have in common changed; None where a run has no such fact."""

    name: str
    before: str | None
    after: str | None


class Level(Record, frozen=True, kw_only=False, tag_field="about", tag="level"):
    """A new level of a figure began, higher by this share, or lower."""

    figure: Literal["ops_per_second", "p99"]
    change: Share


def document(entries: Sequence[Entry], _view: View) -> Document:
    """Return a section for each scenario; the entries are in the order of time."""
    sections = [_section(*each) for each in runs_of(entries)]
    if not sections:
        return Document("no runs", ())
    return Document("How runs developed", sections, untitled=True)


def _section(scenario: str, runs: Sequence[Entry], left_out: int) -> Section:
    behind = f" ({left_out} left out: interrupted or incomplete)" if left_out else ""
    title = f"{scenario}: {plural(len(runs), 'run')}{behind}"
    if not runs:
        return Section(title, ())
    own, changes = changes_of(runs)
    rows: list[Row] = []
    for place, run in enumerate(runs):
        rows += map(Note, map(_in_words, changes[place]))
        rows.append(
            (
                time.strftime("%Y-%m-%d %H:%M", time.gmtime(run.started)),
                FIGURES["rate"].unit.text(run.rate),
                _bar(run.rate, [each.rate for each in runs]),
                FIGURES["p99"].unit.text(run.p99),
                _bar(run.p99, [each.p99 for each in runs]),
                run.verdict,
            )
        )
    note = (
        "ops/s and p99 of all operations. "
        + (NO_P99 + ". " if any(run.p99 is None for run in runs) else "")
        + "! something that should stay the same changed. * performance changed here (1 % false alarms"
        + (")." if len(runs) >= ENOUGH_RUNS else f"; needs {ENOUGH_RUNS} runs).")
        + (f" Not marked, because it differs from run to run: {', '.join(own)}." if own else "")
    )
    return Section(title, (Table(_COLUMNS, rows), Note(note)))


def _bar(value: float | None, among: Sequence[float | None]) -> Cell:
    most = max((each for each in among if each is not None), default=0.0)
    return Cell(bar=value / most) if value is not None and most else Cell()


def runs_of(entries: Sequence[Entry]) -> Iterator[tuple[str, list[Entry], int]]:
    """Yield each scenario, its runs that were not cut short, and how many others it has."""
    for scenario in dict.fromkeys(entry.scenario for entry in entries):
        everything = [entry for entry in entries if entry.scenario == scenario]
        runs = [run for run in everything if run.verdict not in _LEFT_OUT]
        yield scenario, runs, len(everything) - len(runs)


def changes_of(runs: Sequence[Entry]) -> tuple[list[str], list[list[FactChange | Level]]]:
    """Return the facts that differ from run to run, and for each run what changed before it."""
    facts = [{"label": run.label or "", **facts_of_run(run)} for run in runs]
    names = dict.fromkeys(name for each in facts for name in each)
    own = [
        name
        for name in names
        if len({each[name] for each in facts if each.get(name)}) > max(2, _ALWAYS_NEW * len(runs))
    ]
    changes: list[list[FactChange | Level]] = [[] for _ in runs]
    for place, (one, two) in enumerate(pairwise(facts), start=1):
        changes[place] += [
            FactChange(name, one.get(name) or None, two.get(name) or None)
            for name in names
            if name not in own and one.get(name, "") != two.get(name, "")
        ]
    for figure, values in _VALUES.items():
        for place, change in _levels([values(run) for run in runs]):
            changes[place].append(Level(figure, change))
    return own, changes


_VALUES: dict[Literal["ops_per_second", "p99"], Callable[[Entry], float | None]] = {
    "ops_per_second": lambda run: run.rate,
    "p99": lambda run: run.p99,
}
_TITLES = {"ops_per_second": "ops/s", "p99": "p99"}


def _in_words(change: FactChange | Level) -> str:
    if isinstance(change, FactChange):
        return f"! {change.name}: {_shown(change.before)} -> {_shown(change.after)}"
    words = f"{extent(abs(change.change))} % {'higher' if change.change > 0 else 'lower'}"
    return f"* {_TITLES[change.figure]} {words} from here on"


def facts_of_run(run: Entry) -> dict[str, str]:
    """Return what an entry says of its run that should be the same in others."""
    found = json.loads(run.facts)
    return {str(name): str(value) for name, value in found.items()} if isinstance(found, dict) else {}


def _shown(value: str | None) -> str:
    return cut(value, _VALUE) if value else "none"


def _levels(values: Sequence[float | None]) -> Iterator[tuple[int, float]]:
    """Yield the run at which each new level begins, and by how much it is higher or lower, as a share."""
    # A level is not compared with runs whose own levels are not known.
    known = [(place, value) for place, value in enumerate(values) if value][-MOST_RUNS:]
    places = level_changes([value for _, value in known])
    logs = [math.log(value) for _, value in known]
    for before, place, after in zip([0, *places], places, [*places[1:], len(known)], strict=False):
        change = math.expm1(
            sum(logs[place:after]) / (after - place) - sum(logs[before:place]) / (place - before)
        )
        yield known[place][0], change


#: With fewer runs a change cannot be distinguished from chance.
ENOUGH_RUNS = 10

#: The least number of runs of a level.
_SHORTEST = 3

#: The probability by chance that a cut may have at most, and the shuffles from which it is estimated.
_BY_CHANCE = 0.01
_SHUFFLES = 999

#: Of a longer series pass only the last runs: time and memory grow with the square of their number.
MOST_RUNS = 200

_Floats = npt.NDArray[np.float64]


def level_changes(values: Sequence[float]) -> list[int]:
    """Return the places at which a new level begins; all values are above 0, one a run."""
    if len(values) < ENOUGH_RUNS:
        return []
    # The same series gives the same answer each time.
    return sorted(_cut(np.log(np.asarray(values, np.float64)), 0, np.random.default_rng(0)))


def _cut(logs: _Floats, begin: int, random: np.random.Generator) -> list[int]:
    if len(logs) < 2 * _SHORTEST:
        return []
    distances = np.abs(logs[:, None] - logs[None, :])
    excess, place = _best(distances)
    as_much = 0
    for tried in range(_SHUFFLES):
        order = random.permutation(len(logs))
        as_much += _best(distances[np.ix_(order, order)])[0] >= excess
        if as_much > _BY_CHANCE * (_SHUFFLES + 1) - 1 or (tried == 0 and not excess > 0):
            return []
    return [
        *_cut(logs[:place], begin, random),
        begin + place,
        *_cut(logs[place:], begin + place, random),
    ]


def _best(distances: _Floats) -> tuple[float, int]:
    """Return by how much distances between two parts exceed those within them, at most, and where to cut."""
    count = len(distances)
    sums = distances.cumsum(0).cumsum(1)
    first = np.arange(_SHORTEST, count - _SHORTEST + 1)
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
