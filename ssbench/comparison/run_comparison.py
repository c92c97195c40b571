"""Two groups of runs beside each other."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean

from ssbench.base.errors import GateResult, Undecided
from ssbench.base.record import Moment
from ssbench.comparison.change import (
    HEADS,
    MIN_RUNS_FOR_WORD,
    NO_DRIFT,
    NOISE_SHARE,
    Drift,
    FigureChange,
    FigureDifference,
    FigurePlace,
    RunOrder,
    find_run_order,
    is_measured,
    judge_changes,
    measure_difference,
)
from ssbench.comparison.noise_floor import SESSION_SECONDS, NoiseFloors, SwiftStarts, add_noise_floor
from ssbench.comparison.run_figures import (
    ALL_KEY,
    FigureKey,
    RunFigures,
    describe_fact_differences,
    describe_noop,
    make_operation_key,
    runs_with_figure,
)
from ssbench.document.columns import format_plural
from ssbench.document.figures import COMPARED_FIGURES
from ssbench.document.units import format_change_size
from ssbench.reports.part_changes import ChangesByPart
from ssbench.statistics.confidence import MIN_SECONDS


@dataclass(frozen=True, slots=True)
class ComparisonRow:
    """The changes of an operation and a size class."""

    operation: str  # its name, or ``ALL``
    size_class: str | None  # None: all sizes
    changes: Mapping[str, FigureChange]  # by the keys of figures

    @property
    def name(self) -> str:
        """Operation and size class in one."""
        return f"{self.operation} {self.size_class or ''}".rstrip()


@dataclass(frozen=True, slots=True)
class Judged:
    """A condition of a comparison, and how it ended."""

    condition: str  # as it was given
    came: str  # what was measured, in one line
    result: GateResult  # how it ended
    needs: str = ""  # what would decide it

    @property
    def undecided(self) -> bool:
        """Whether it neither failed nor passed."""
        return self.result is GateResult.UNDECIDED


@dataclass(frozen=True, slots=True)
class ComparedSide:
    """Where and when the runs of a side were measured; empty where they have nothing in common."""

    label: str  # that of the runs
    scenario: str  # the name of their scenario
    storage_url: str  # where they went
    first: Moment | None  # when the first run began
    last: Moment | None  # when the last one did


@dataclass(frozen=True, slots=True)
class Comparison:
    """The changes of all figures, with verdicts only where what was measured supports them."""

    before: str  # name of the side
    after: str  # name of the side
    runs: tuple[int, int]  # Number of runs of each side; 0, 0: the two sides of runs with ``--ab``
    rows: tuple[ComparisonRow, ...]
    #: Verdicts are given, because there were enough runs, or a run with two sides was long enough.
    repeated: bool
    judgment: str  # what the intervals are
    noise: float
    warnings: tuple[str, ...] = ()  # what should have been the same and was not
    conditions: tuple[Judged, ...] = ()  # those that were asked for
    undecided: Undecided = Undecided.REPORT  # what those of them count as that are undecided
    seconds: float = 0.0  # how long a run with two sides was
    drifts: Mapping[str, float] | None = None  # changes of figures from the first run to the last
    #: The size class of each operation that has one, whose changes are those of the operation.
    only_classes: Mapping[str, str] = field(default_factory=dict)
    #: Groups of users that only the runs before have, and only those after: the others alone are compared.
    groups_apart: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    doubt: str = ""  # what else would explain all changes that are shown; empty: nothing that is known
    sides: tuple[ComparedSide, ...] = ()  # both; none of two sides in one run
    by_part: ChangesByPart | None = None  # where each side has a Swift whose logs were at hand
    noop: tuple[str, ...] = ()  # that a side sent nothing, where it is so

    def changes(self) -> list[tuple[ComparisonRow, str, FigureChange]]:
        """Return every change with its row and the name of its figure."""
        return [(row, name, change) for row in self.rows for name, change in row.changes.items()]

    def heads(self) -> list[tuple[ComparisonRow, str, FigureChange]]:
        """Return the changes on which the verdict stands; that of failures first, where there were some."""
        return [
            (row, name, row.changes[name])
            for key, name in find_heads([(row.operation, row.size_class) for row in self.rows])
            for row in self.rows
            if (row.operation, row.size_class) == key and name in row.changes
            if is_measured(row.changes[name])
        ]

    def operations(self) -> list[str]:
        """Return the names of the operations that have rows, as scenarios have them."""
        names = dict.fromkeys(row.operation.rpartition(".")[2] for row in self.rows)
        return [name.lower() for name in names if name != make_operation_key(None)]

    def groups(self) -> list[str]:
        """Return the names of the groups of users that have rows."""
        return [*dict.fromkeys(row.operation.partition(".")[0] for row in self.rows if "." in row.operation)]

    def has(self, operation: str | None, size_class: str | None, group: str | None = None) -> bool:
        """Whether a side has operations of a kind; None as operation means all of them."""
        wanted = self._place(operation, size_class, group)
        return any((row.operation, row.size_class) == wanted for row in self.rows)

    def find(
        self, operation: str | None, size_class: str | None, figure: str, group: str | None = None
    ) -> FigureChange | None:
        """Return one change; None as operation means all of them, as group all users."""
        wanted = self._place(operation, size_class, group)
        for row in self.rows:
            if (row.operation, row.size_class) == wanted:
                return row.changes.get(figure)
        return None

    def _place(self, operation: str | None, size_class: str | None, group: str | None) -> FigureKey:
        """Return the operation and the size class of the row that has the changes of a kind of operations."""
        name = make_operation_key(operation, group)
        return name, None if size_class == self.only_classes.get(name) else size_class


def compare_runs(
    before: Sequence[RunFigures],
    after: Sequence[RunFigures],
    noise: float = NOISE_SHARE,
    floors: NoiseFloors | None = None,
) -> Comparison:
    """Compare two groups of runs; each needs one at least.

    ``floors`` say what differs between runs in which nothing was changed. Where one side has groups of users
    that the other one lacks, the groups of both are compared, and nothing that is of all users.
    """
    apart = find_groups_apart(before, after)
    if any(apart):
        before, after = (
            [_keep_groups(run, {*apart[0], *apart[1]}) for run in runs] for runs in (before, after)
        )
    found: dict[FigurePlace, FigureDifference] = {}
    order = _find_order(before, after)
    worse = _carried_over(before, after, order)
    keys = {key: None for run in (*before, *after) for key in run.rows}
    # ALL is the last one, whatever operations only one side has.
    for key in sorted(keys, key=lambda key: key[0] == "ALL"):
        for name, figure in COMPARED_FIGURES.items():
            sides = [runs_with_figure(runs, key, figure) for runs in (before, after)]
            if any(sides):
                first, second = ([run.rows[key][name] for run in runs] for runs in sides)
                drift = worse.turned() if figure.more_is_better else worse
                measured = measure_difference(figure, first, second, _find_order(*sides), drift)
                floor = floors.of((key, name)) if floors is not None and not figure.is_share else None
                counts = len(first), len(second)
                if floor is not None and min(counts):
                    measured = add_noise_floor(measured, floor, counts, apart=_are_other_sessions(*sides))
                own_starts = SwiftStarts.of(*([run.local_swift for run in side] for side in sides))
                found[key, name] = own_starts.allow_for(figure, measured)
    changes = judge_changes(found, noise, find_heads(keys))
    runs = len(before), len(after)
    floor_of = floors.runs if floors is not None and floors.of((ALL_KEY, "p50")) is not None else 0
    starts = SwiftStarts.of(*([run.local_swift for run in side] for side in (before, after)))
    has_intervals = any(each.error is not None for each in found.values())
    judgment = _judgment(runs, order, floor_of, has_intervals=has_intervals)
    return Comparison(
        before=_join_names(before),
        after=_join_names(after),
        runs=runs,
        rows=tuple(group_rows(changes)),
        repeated=any(each.sure for each in found.values()),
        judgment=". ".join(filter(None, [judgment, starts.describe()])),
        noise=noise,
        warnings=(
            *describe_fact_differences(*([run.facts for run in runs] for runs in (before, after))),
            *join_alike_warnings((run.name, run.warnings) for run in (*before, *after)),
        ),
        drifts=_drifts(before, after, order),
        only_classes=find_only_classes([run.only_classes for run in (*before, *after)]),
        groups_apart=apart,
        doubt=_doubt(before, after, order, _shown(found, changes)),
        sides=(_describe_side(before), _describe_side(after)),
        noop=describe_noop((*before, *after)),
    )


def find_heads(keys: Collection[FigureKey]) -> tuple[FigurePlace, ...]:
    """Return the figures on which a verdict stands: where all users are not compared, those of each group."""
    groups = [key for key in keys if key[0].endswith(f".{ALL_KEY[0]}") and key[1] is None]
    if ALL_KEY in keys or not groups:
        return HEADS
    return tuple((key, name) for _, name in HEADS for key in groups)


#: Facts that differ because a side has another group of users.
_FACTS_OF_GROUPS = {"groups", "users", "sizes", "mix", "containers"}


def find_groups_apart(
    before: Sequence[RunFigures], after: Sequence[RunFigures]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the groups of users that only the first runs have, and only the second ones.

    None where no group is in all runs: then only all users can be compared.
    """
    found = [[{_find_group(key): None for key in run.rows} for run in runs] for runs in (before, after)]
    common = set.intersection(*({*groups} - {""} for runs in found for groups in runs))
    if not common:
        return (), ()
    first, second = (
        tuple(dict.fromkeys(name for groups in runs for name in groups if name not in common and name))
        for runs in found
    )
    return first, second


def _find_group(key: FigureKey) -> str:
    """Return the group of users that a key names; "" of all users."""
    return key[0].rpartition(".")[0]


def _keep_groups(run: RunFigures, apart: Collection[str]) -> RunFigures:
    """Return a run with the figures of its groups of users alone, but not of those that are ``apart``."""
    rows = {key: row for key, row in run.rows.items() if _find_group(key) not in {"", *apart}}
    facts = {name: value for name, value in run.facts.items() if name not in _FACTS_OF_GROUPS}
    return replace(run, rows=rows, facts=facts)


def _describe_side(runs: Sequence[RunFigures]) -> ComparedSide:
    def common(values: Iterable[str]) -> str:
        found = {*values}
        return found.pop() if len(found) == 1 else ""

    started = [run.started for run in runs if run.started is not None]
    return ComparedSide(
        common(run.label for run in runs),
        common(run.facts.get("scenario", "") for run in runs),
        common(run.facts.get("storage URL", "") for run in runs),
        min(started, default=None),
        max(started, default=None),
    )


def find_only_classes(runs: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return the size classes that each run has as the only one of an operation."""
    return {
        operation: name
        for operation, name in runs[0].items()
        if all(run.get(operation) == name for run in runs)
    }


def group_rows(changes: Mapping[FigurePlace, FigureChange]) -> Iterator[ComparisonRow]:
    """Yield a row for each operation and size class."""
    rows: dict[FigureKey, dict[str, FigureChange]] = {}
    for (key, name), change in changes.items():
        rows.setdefault(key, {})[name] = change
    for key, each in rows.items():
        yield ComparisonRow(*key, each)


def _find_order(before: Sequence[RunFigures], after: Sequence[RunFigures]) -> RunOrder | None:
    if not before or not after:
        return None
    found = find_run_order([run.started for run in before], [run.started for run in after])
    if found is None and (found := find_run_order(*([run.turn for run in runs] for runs in (before, after)))):
        return replace(found, is_sequence=True)
    return found


def _head_logs(
    before: Sequence[RunFigures], after: Sequence[RunFigures], order: RunOrder | None
) -> Iterator[tuple[str, RunOrder, list[float], list[float]]]:
    """Yield the name and the logarithms of each head figure but shares that all runs have; none of few."""
    if order is None or min(len(before), len(after)) < MIN_RUNS_FOR_WORD:
        return
    for key, name in HEADS:
        is_share = COMPARED_FIGURES[name].is_share
        if not is_share and all(name in run.rows.get(key, {}) for run in (*before, *after)):
            first, second = (
                [math.log(run.rows[key][name].value) for run in runs] for runs in (before, after)
            )
            yield name, order, first, second


def _drifts(
    before: Sequence[RunFigures], after: Sequence[RunFigures], order: RunOrder | None
) -> dict[str, float]:
    """Return by how much the head figures changed from the first run to the last, as a share."""
    return {name: math.expm1(places.drift(*logs)) for name, places, *logs in _head_logs(before, after, order)}


def _carried_over(before: Sequence[RunFigures], after: Sequence[RunFigures], order: RunOrder | None) -> Drift:
    """Return the drift of the head figures that every figure may have, where up is for the worse.

    Theirs are known best.
    """
    worse = NO_DRIFT
    for name, places, *logs in _head_logs(before, after, order):
        carried = places.carried_over(*logs)
        worse = worse.with_other(carried.turned() if COMPARED_FIGURES[name].more_is_better else carried)
    return worse


def _doubt(
    before: Sequence[RunFigures],
    after: Sequence[RunFigures],
    order: RunOrder | None,
    shown: Sequence[float],
) -> str:
    """Say that a drift would explain all differences that are shown, where one side followed the other.

    It is one that the runs of each side do not exclude, by either head figure. Differences above 0 are for
    the worse.
    """
    low = high = 0.0
    for name, places, *logs in _head_logs(before, after, order):
        ends = places.may_carry_over(*logs)
        if COMPARED_FIGURES[name].more_is_better:
            ends = -ends[1], -ends[0]
        low, high = min(low, ends[0]), max(high, ends[1])
    if order is None or not shown or not all(low <= each <= high for each in shown):
        return ""
    largest = max(map(abs, shown))
    each_run = math.expm1(largest / abs(fmean(order.after) - fmean(order.before)))
    return (
        f"or a drift of {format_change_size(each_run)} % a run, which these runs allow: one side was "
        "measured after the other (--versus measures in turn)"
    )


def _shown(
    found: Mapping[FigurePlace, FigureDifference], changes: Mapping[FigurePlace, FigureChange]
) -> list[float]:
    """Return the differences that are shown, of logarithms, where more is worse; not those of shares."""
    middles = [
        (COMPARED_FIGURES[place[1]], found[place].middle or 0.0)
        for place, each in changes.items()
        if each.differs
    ]
    return [-middle if figure.more_is_better else middle for figure, middle in middles if not figure.is_share]


def _are_other_sessions(before: Sequence[RunFigures], after: Sequence[RunFigures]) -> bool:
    """Whether the sides were measured in different sessions, or nothing is known of that."""
    moments = [[run.started for run in runs if run.started is not None] for runs in (before, after)]
    if not all(moments):
        return True
    one, two = sorted(moments, key=min)
    return min(two) - max(one) > SESSION_SECONDS


def _judgment(runs: tuple[int, int], order: RunOrder | None, floor_of: int, *, has_intervals: bool) -> str:
    if floor_of and min(runs) == 1:
        return (
            "no repeated runs: the intervals (Student's t) come from the variation of"
            f" {floor_of} earlier equal runs"
        )
    if max(runs) == 1 or min(runs) == 1:
        return "no repeated runs: no verdict. " + (
            "The intervals cover variation within these runs, not from run to run"
            if has_intervals
            else f"Intervals within a run need a stat file of {MIN_SECONDS} seconds or more"
        )
    in_turn = order is not None and bool(order.pairs)
    test = "Student's t on pairs of runs, which were measured in turn" if in_turn else "Welch's t on the runs"
    if min(runs) < MIN_RUNS_FOR_WORD:
        return f"fewer than {MIN_RUNS_FOR_WORD} runs a side: no verdict. The intervals are of {test}"
    if order is None or not order.one_after_the_other:
        return f"the intervals are of {test}, each of which counts once"
    if order.is_sequence:
        return (
            f"the intervals are of {test}, each of which counts once. One side was measured after the other:"
            " the intervals allow for any drift that the runs do not exclude (measure in turn for narrower"
            " ones)"
        )
    step = (
        f"and for a step between them as in {floor_of} earlier equal runs"
        if floor_of
        else "but not for a step between them or an unseen drift (--versus measures in turn)"
    )
    return (
        f"the intervals are of {test}, each of which counts once. One side was measured after the other:"
        f" the intervals allow for a drift seen within the sides, {step}"
    )


def _join_names(runs: Sequence[RunFigures]) -> str:
    first = runs[0].name
    return first if len(runs) == 1 else f"{first} and {len(runs) - 1} more"


_NUMBER = re.compile(r"\d[\d.,]*")
_GROUP = re.compile(r"group [^ ]+: ")


def join_alike_warnings(warnings: Iterable[tuple[str, Sequence[str]]]) -> list[str]:
    """Return the warnings of runs, which begin with their names; what several say, once with a count.

    They may say it with other numbers, but of the same group of users. What one run says more than once, as
    of several workers, stays apart.
    """
    alike: dict[tuple[str, int], list[str]] = {}
    for name, texts in warnings:
        times: Counter[str] = Counter()
        for warning in texts:
            text = warning.removeprefix(f"{name}: ")
            group = found[0] if (found := _GROUP.match(text)) else ""
            kind = group + _NUMBER.sub("", text.removeprefix(group))
            alike.setdefault((kind, times[kind]), []).append(warning)
            times[kind] += 1
    return [
        f"{first}; likewise in {format_plural(len(more), 'more run')}" if more else first
        for first, *more in alike.values()
    ]
