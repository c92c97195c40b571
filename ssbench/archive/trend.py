"""How the runs of a scenario developed: a line a run, with bars, and what changed between them."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise

from ssbench.archive.entry import NO_P99, Entry
from ssbench.archive.levels import ENOUGH_RUNS, MOST_RUNS, level_changes
from ssbench.document import Cell, Column, Document, Note, Row, Section, Table, View
from ssbench.document.columns import cut, plural
from ssbench.figures import FIGURES

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


def document(entries: Sequence[Entry], _view: View) -> Document:
    """Return a section for each scenario; the entries are in the order of time."""
    sections = [
        _section(scenario, [entry for entry in entries if entry.scenario == scenario])
        for scenario in dict.fromkeys(entry.scenario for entry in entries)
    ]
    if not sections:
        return Document("no runs", ())
    return Document("How runs developed", sections, untitled=True)


def _section(scenario: str, everything: Sequence[Entry]) -> Section:
    runs = [run for run in everything if run.verdict not in _LEFT_OUT]
    left_out = len(everything) - len(runs)
    behind = f" ({left_out} left out: interrupted or incomplete)" if left_out else ""
    title = f"{scenario}: {plural(len(runs), 'run')}{behind}"
    if not runs:
        return Section(title, ())
    own, changes = _changes(runs)
    rows: list[Row] = []
    for place, run in enumerate(runs):
        rows += map(Note, changes[place])
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
        + "! what the runs should have in common changed."
        " * a new level begins; 1 of 100 series without one has such a mark."
        + ("" if len(runs) >= ENOUGH_RUNS else f" Levels are told from {ENOUGH_RUNS} runs on.")
        + (f" Not marked, because it differs from run to run: {', '.join(own)}." if own else "")
    )
    return Section(title, (Table(_COLUMNS, rows), Note(note)))


def _bar(value: float | None, among: Sequence[float | None]) -> Cell:
    most = max((each for each in among if each is not None), default=0.0)
    return Cell(bar=value / most) if value is not None and most else Cell()


def _changes(runs: Sequence[Entry]) -> tuple[list[str], list[list[str]]]:
    """Return the facts that differ from run to run, and for each run what changed before it."""
    facts = [{"label": run.label or "", **_facts(run)} for run in runs]
    names = dict.fromkeys(name for each in facts for name in each)
    own = [
        name
        for name in names
        if len({each[name] for each in facts if each.get(name)}) > max(2, _ALWAYS_NEW * len(runs))
    ]
    changes: list[list[str]] = [[] for _ in runs]
    for place, (one, two) in enumerate(pairwise(facts), start=1):
        changes[place] += [
            f"! {name}: {_shown(one.get(name, ''))} -> {_shown(two.get(name, ''))}"
            for name in names
            if name not in own and one.get(name, "") != two.get(name, "")
        ]
    for title, values in (("ops/s", [run.rate for run in runs]), ("p99", [run.p99 for run in runs])):
        for place, words in _levels(values):
            changes[place].append(f"* {title} {words} from here on")
    return own, changes


def _facts(run: Entry) -> dict[str, str]:
    found = json.loads(run.facts)
    return {str(name): str(value) for name, value in found.items()} if isinstance(found, dict) else {}


def _shown(value: str) -> str:
    return cut(value, _VALUE) if value else "none"


def _levels(values: Sequence[float | None]) -> Iterator[tuple[int, str]]:
    """Yield the run at which each new level begins, and by how much it is higher or lower."""
    # A level is not compared with runs whose own levels are not known.
    known = [(place, value) for place, value in enumerate(values) if value][-MOST_RUNS:]
    places = level_changes([value for _, value in known])
    logs = [math.log(value) for _, value in known]
    for before, place, after in zip([0, *places], places, [*places[1:], len(known)], strict=False):
        change = math.expm1(
            sum(logs[place:after]) / (after - place) - sum(logs[before:place]) / (place - before)
        )
        yield known[place][0], f"{abs(change):.1%} {'higher' if change > 0 else 'lower'}"
