"""Two groups of runs beside each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ssbench.comparison.change import ENOUGH_RUNS, NOISE, Change, between
from ssbench.comparison.figures import FIGURES, Key, RunFigures, Sample
from ssbench.statistics.confidence import MIN_SECONDS


@dataclass(frozen=True, slots=True)
class Row:
    """The changes of an operation and a size class, by the names of figures."""

    operation: str
    size_class: str | None
    changes: Mapping[str, Change]


@dataclass(frozen=True, slots=True)
class Judged:
    """A condition, what came of it in one line, and whether it failed."""

    condition: str
    came: str
    failed: bool


@dataclass(frozen=True, slots=True)
class Comparison:
    """What became of each row, in words that were earned.

    ``before`` and ``after`` are the names of the two sides, each of one run or more. ``judgment`` says what
    may be said of them: ``repeated`` tells that verdicts are given, because there were enough runs, or a run
    with two sides was long enough. ``warnings`` tell what should have been the same and was not.
    ``conditions`` are those that were asked for.
    """

    before: str
    after: str
    runs: tuple[int, int]
    rows: tuple[Row, ...]
    repeated: bool
    judgment: str
    noise: float
    warnings: tuple[str, ...] = ()
    conditions: tuple[Judged, ...] = ()

    def changes(self) -> list[tuple[Row, str, Change]]:
        """Return every change with its row and the name of its figure."""
        return [(row, name, change) for row in self.rows for name, change in row.changes.items()]

    def find(self, operation: str | None, size_class: str | None, figure: str) -> Change | None:
        """Return one change; None as operation means all of them."""
        for row in self.rows:
            if (row.operation, row.size_class) == (operation.upper() if operation else "ALL", size_class):
                return row.changes.get(figure)
        return None


def compare(before: Sequence[RunFigures], after: Sequence[RunFigures], noise: float = NOISE) -> Comparison:
    """Compare two groups of runs; each needs one at least."""
    keys = {key: None for run in (*before, *after) for key in run.rows}
    # ALL is the last one, whatever operations only one side has.
    ordered: list[Key] = sorted(keys, key=lambda key: key[0] == "ALL")
    rows = []
    for key in ordered:
        changes = {}
        for name, figure in FIGURES.items():
            first, second = (_samples(runs, key, name) for runs in (before, after))
            if first or second:
                changes[name] = between(figure, first, second, noise)
        rows.append(Row(*key, changes))
    runs = len(before), len(after)
    every = (change for row in rows for change in row.changes.values())
    repeated = min(runs) >= ENOUGH_RUNS
    return Comparison(
        before=_name(before),
        after=_name(after),
        runs=runs,
        rows=tuple(rows),
        repeated=repeated,
        judgment=_judgment(runs, any(change.low is not None for change in every)),
        noise=noise,
        warnings=(*_differences(before, after), *_warnings(before, after)),
    )


def _samples(runs: Sequence[RunFigures], key: Key, name: str) -> list[Sample]:
    return [run.rows[key][name] for run in runs if name in run.rows.get(key, {})]


def _judgment(runs: tuple[int, int], has_intervals: bool) -> str:
    if max(runs) == 1 or min(runs) == 1:
        return "runs were not repeated: no verdict. " + (
            "The intervals hold within these runs; what differs from run to run is not in them"
            if has_intervals
            else f"They were too short for intervals, which take {MIN_SECONDS} seconds at least"
        )
    if min(runs) < ENOUGH_RUNS:
        return f"fewer than {ENOUGH_RUNS} runs a side: no verdict. The intervals are of Welch's t on the runs"
    return "the intervals are of Welch's t on the runs, each of which counts once; 1 of 20 is wrong by chance"


def _name(runs: Sequence[RunFigures]) -> str:
    first = runs[0].name
    return first if len(runs) == 1 else f"{first} and {len(runs) - 1} more"


def _differences(before: Sequence[RunFigures], after: Sequence[RunFigures]) -> list[str]:
    """Say which facts the runs do not have in common."""
    warnings = []
    for fact in {fact: None for run in (*before, *after) for fact in run.facts}:
        sides = [dict.fromkeys(run.facts.get(fact, "") for run in runs) for runs in (before, after)]
        if sides[0] == sides[1] and len(sides[0]) == 1:
            continue
        # Repeated runs of one seed would differ from others by the seed alone.
        if fact == "seed" and (len(sides[0]) > 1 or len(sides[1]) > 1):
            continue
        texts = [" and ".join(value or "none" for value in list(side)[:3]) for side in sides]
        if texts[0] == texts[1]:
            warnings.append(f"{fact} differs among the runs of a side: {texts[0]}")
        else:
            warnings.append(f"{fact} differs: {texts[0]} before, {texts[1]} after")
    return warnings


def _warnings(before: Sequence[RunFigures], after: Sequence[RunFigures]) -> list[str]:
    return [warning for run in (*before, *after) for warning in run.warnings]
