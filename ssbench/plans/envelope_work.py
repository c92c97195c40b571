"""The envelope of a store: a search for the limit of each size and operation, in a time that is given."""

from __future__ import annotations

import logging
import math
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from msgspec import structs

from ssbench.base.errors import ExitCode, SsbenchError, UsageError, choose_exit_code, choose_worst_code
from ssbench.base.option import record_options
from ssbench.base.text_values import format_duration, parse_size, spell_size
from ssbench.comparison.change import NOISE_SHARE
from ssbench.comparison.envelope_comparison import compare_cells
from ssbench.comparison.family import FamilyComparison
from ssbench.comparison.run_table import make_run_table
from ssbench.comparison.search import LimitSearch, SearchAnswer, judge_objective, resolve_objective
from ssbench.comparison.store_limits import (
    Envelope,
    EnvelopeCell,
    EnvelopeCondition,
    EnvelopeStep,
    LoggedRun,
    MixedLoad,
    add_logged_run,
    check_envelope_conditions,
    conclude_cell,
    conclude_mixed,
    judge_envelope_condition,
    make_envelope_step,
    name_cell,
)
from ssbench.comparison.sweep import SweepStep, describe_shared, make_step_scenario
from ssbench.comparison.sweep_variables import LARGEST_VALUES, Variable
from ssbench.document.columns import format_plural
from ssbench.document.units import format_latency, format_number
from ssbench.plans.plan_rules import GeneratedTrials, make_kept_step
from ssbench.plans.plan_work import Conclusion, PlanWork
from ssbench.reports.products import Product
from ssbench.reports.run_facts import spell_option_row
from ssbench.run.bench_options import RunOptions
from ssbench.run.plan import RUN_OVERHEAD_SECONDS, DoneTrial, EndedRun, PlanCell, PlanEnd, PlanTrial
from ssbench.scenario.ad_hoc import make_ad_hoc_scenario, parse_scenario_line
from ssbench.scenario.conditions import Condition, parse_condition, parse_conditions
from ssbench.scenario.model import Scenario
from ssbench.scenario.operations import Effect
from ssbench.scenario.scenario_reading import check_scenario_data
from ssbench.scenario.store_kinds import find_store_kind
from ssbench.statistics.run_statistics import RunStatistics

_log = logging.getLogger(__name__)

#: Says what logs tell of a run, by its stat file, in which an operation is looked at. Raises UsageError where
#: no log is of it, and StatFileError.
ExamineFunction = Callable[[Path, str], LoggedRun]

#: The mix of each, and the operation that is looked at. Deletions need objects, and those are written beside.
_MIXES = {
    "write": ("create", "create"),
    "read": ("read", "read"),
    "delete": ("create,delete", "delete"),
    "list": ("list", "list"),
}

#: The sizes and operations of an envelope, unless others are asked for.
ENVELOPE_SIZES = ("1kB", "4kB", "64kB", "1MB", "16MB")
ENVELOPE_OPERATIONS = tuple(_MIXES)

#: What holds up to the limit, unless a condition is given: the p99 is at most so many times that of one
#: user, and no more than so many per cent of the operations fail.
_LATENCY_FACTOR, _ERRORS_PERCENT = 10.0, 0.1

#: Weights of the operations in the mixed load, and at which share of the limits it is run, for how much of
#: the time at least.
_MIXED_WEIGHTS = {"read": 65.0, "write": 25.0, "delete": 10.0}
_MIXED_SHARE, _MIXED_TIME = 0.7, 0.1

#: How many more objects there are after each of its operations.
_MIXED_LEFT = {"write": 1.0, "delete": -1.0}

#: Runs of a cell that are usually needed, and seconds of each at least and at most.
_USUAL_RUNS = 9
_SHORTEST_RUN, _LONGEST_RUN = 2.0, 30.0

#: Runs that each cell has before the others' doubts count.
_FIRST_RUNS = 4

#: Users of the first run of a search.
_START_USERS = 4

#: Runs that leave fewer objects say how long a run takes beside its time without their deletion.
_FEW_LEFT = 50

#: Initial objects: so many, no more bytes than that, so many for a second of a run, and the least number.
_OBJECTS, _OBJECT_BYTES, _OBJECTS_PER_SECOND, _LEAST_OBJECTS = 500, 200e6, 50, 20


@dataclass(frozen=True, slots=True)
class EnvelopeRun:
    """What is kept of a run: of a cell, or of the mixed load."""

    step: EnvelopeStep
    whole: SweepStep  # the run with all of its operations
    started: float  # seconds since 1970
    length: float  # seconds that it was to take
    call_began: float  # when the call that made it began, in seconds since 1970
    storage_url: str
    path: Path
    workers: int = 0  # that it had
    left: int = 0  # objects that it created and that were deleted after it
    evidence: tuple[Any, ...] = ()  # what it says of each condition
    mixed: MixedLoad | None = None


@dataclass(frozen=True, slots=True)
class _TimeBeside:
    """The time that a run takes beside its own."""

    fixed: float  # seconds, for what is the same of all runs
    deletion: float  # seconds for each object that is deleted after it

    def count_seconds(self, left: float) -> float:
        """Return the seconds of a run that leaves so many objects."""
        return self.fixed + self.deletion * left


@dataclass(slots=True)
class _Cell:
    """A size and an operation, and what is known of them."""

    name: str
    size: str
    operation: str
    scenario: Scenario
    search: LimitSearch
    store: str = ""  # its name; empty: there is one
    conditions: tuple[Condition, ...] = ()  # none before the run of one user has ended
    runs: list[EnvelopeRun] = field(default_factory=list)

    @property
    def looked_at(self) -> str:
        """The operation whose figures count."""
        return _MIXES[self.operation][1]

    def count_runs(self, users: int) -> int:
        """Return how many runs with so many users there were; they have one number after the other."""
        return sum(each.whole.users == users for each in self.runs)


class EnvelopeRule(GeneratedTrials[EnvelopeRun]):
    """One user of each cell, then what the least known cell asks for, at last the mixed load.

    What is done when follows from the stat files alone, so that a plan that is resumed does the same.
    """

    count = None

    def __init__(
        self,
        sizes: Sequence[str],
        operations: Sequence[str],
        minutes: float,
        options: RunOptions,
        wanted: Sequence[Condition] = (),
        stores: Sequence[str] = ("",),
    ) -> None:
        super().__init__()
        names = [(size, operation) for size in sizes for operation in operations if operation != "list"]
        names += [(sizes[0], "list")] if "list" in operations else []
        self._stores = stores
        self._budget = 60 * minutes
        self._options = options
        self._wanted = tuple(wanted)
        count = len(names) * len(stores)
        has_mixed = "read" in operations or "write" in operations
        self._search_share = 1 - _MIXED_TIME * has_mixed  # of the time, for the searches
        time = self._search_share * self._budget / (count * _USUAL_RUNS) - RUN_OVERHEAD_SECONDS
        self.seconds = float(math.floor(min(max(time, _SHORTEST_RUN), _LONGEST_RUN)))
        # Stores take turns, so that what drifts is the same for all of them.
        self.searched = [self._make_cell(*each, store) for each in names for store in stores]
        self.not_tried: list[str] = []

    @property
    def labels(self) -> Sequence[str]:
        """What the labels of all trials begin with."""
        return [*(f"{each.name}-" for each in self.searched), *map(_name_mixed, self._stores)]

    @property
    def cells(self) -> Sequence[PlanCell]:
        """Each cell with one user."""
        return [self._make_trial(each, 1, self.seconds).cell for each in self.searched]

    @property
    def least_minutes(self) -> float:
        """Minutes that one run of each cell with one user, one with more, and the mixed load take."""
        return (2 * len(self.searched) * (self.seconds + RUN_OVERHEAD_SECONDS)) / 60 / self._search_share

    def keep(self, trial: PlanTrial, statistics: RunStatistics, ended: EndedRun) -> EnvelopeRun:
        """Return what is kept of a run."""
        cell, scenario = trial.cell.value, trial.cell.scenario
        whole = make_kept_step(scenario.user_count, statistics, ended)
        started = statistics.run.started or statistics.start or 0.0
        began = statistics.run.plan_began
        store = trial.cell.options.store or ""
        asked = scenario.rate or 0.0
        mixed = None
        if cell is None:
            conditions = self._list_mixed_conditions(scenario, store)
            mixed = conclude_mixed(_MIXED_SHARE, asked, statistics, conditions, store)
        findings = judge_objective(statistics, cell.conditions) if cell is not None else []
        return EnvelopeRun(
            make_envelope_step(statistics, cell.looked_at if cell is not None else None, whole, findings),
            whole,
            started=started,
            length=scenario.run_seconds or 0.0,
            call_began=started if began is None else began,
            storage_url=", ".join(statistics.run.storage_urls),
            path=ended.path,
            workers=len(statistics.fleet),
            left=_count_left(statistics),
            evidence=tuple(each.evidence for each in findings),
            mixed=mixed,
        )

    def _make_cell(self, size: str, operation: str, store: str) -> _Cell:
        bytes_ = parse_size(size)
        most = min(_OBJECTS, _OBJECT_BYTES / max(bytes_, 1), _OBJECTS_PER_SECOND * self.seconds)
        objects = max(_LEAST_OBJECTS, int(most))
        line = f"size={size} mix={_MIXES[operation][0]} objects={objects}"
        values = {"user_count": 1, "run_seconds": self.seconds}
        scenario = make_ad_hoc_scenario(parse_scenario_line(line, (), values))
        search = LimitSearch(
            _START_USERS, self.seconds, most=LARGEST_VALUES[Variable.USERS], learns_noise=True
        )
        return _Cell(name_cell(size, operation, store), size, operation, scenario, search, store)

    def _make_trial(self, cell: _Cell, users: int, seconds: float) -> PlanTrial:
        scenario = make_step_scenario(cell.scenario, Variable.USERS, users, seconds)
        number = 1 + cell.count_runs(users)
        name = f"{cell.name}-{users}"
        return PlanTrial(
            PlanCell(
                name,
                scenario,
                self._use_store(cell.store),
                cell,
                f"{cell.name} {users}",
                is_counted=False,
            ),
            number,
            number - 1,
        )

    def _use_store(self, store: str) -> RunOptions:
        return replace(self._options, store=store) if store else self._options

    def _make_trials(self) -> Iterator[PlanTrial]:
        for cell in self.searched:
            if self._fits(cell, self.seconds):
                yield self._make_trial(cell, 1, self.seconds)
                cell.runs.append(self.done[-1].kept)
                cell.conditions = self._find_conditions(cell)
        while (least := self._choose_cell()) is not None:
            cell, wanted = least, least.search.next()
            if wanted is None or not self._fits(cell, wanted.seconds):
                break
            yield self._make_trial(cell, wanted.value, wanted.seconds)
            run = self.done[-1].kept
            cell.runs.append(run)
            passed = all(each.share >= each.wanted for each in run.evidence)
            cell.search.record(run.evidence, no_higher=run.step.generator_full and passed)
        for place, store in enumerate(self._stores):
            yield from self._make_mixed_trial(store, len(self._stores) - place)

    def _choose_cell(self) -> _Cell | None:
        """Return the cell whose limit is known least; None where all are known well enough."""
        left = [each for each in self.searched if each.conditions and each.search.next() is not None]
        # A few runs of each first: how much is known of a limit shows only near it.
        return min(
            left, key=lambda each: (min(len(each.runs), _FIRST_RUNS), -each.search.half_width), default=None
        )

    def _find_conditions(self, cell: _Cell) -> tuple[Condition, ...]:
        """Return what holds up to the limit; none where the one user has no latency to compare with."""
        if self._wanted:
            return resolve_objective(self._wanted, cell.scenario, noop=False)
        one = cell.runs[0].step
        if not one.count:
            return ()
        limit = 1000 * _LATENCY_FACTOR * one.p99
        text = f"{cell.looked_at}.p99 <= {limit:.3f}ms and errors <= {_ERRORS_PERCENT:g}%"
        return parse_conditions(text)

    def _list_mixed_conditions(self, scenario: Scenario, store: str) -> list[Condition]:
        """Return what is to hold in the mixed load of a store: what was given, or the limits of all cells."""
        if self._wanted:
            return [*resolve_objective(self._wanted, scenario, noop=False)]
        operations = {name for each in scenario.size_classes for name in each.weights}
        return [
            parse_condition(f"{cell.looked_at}.{cell.size}.{each.text.partition('.')[2]}")
            for cell in self.searched
            for each in cell.conditions
            if cell.store == store and cell.looked_at in operations and each.operation is not None
        ]

    def _fits(self, cell: _Cell, seconds: float) -> bool:
        """Whether a run of a cell still leaves the time of the mixed load."""
        left = max((each.left / each.length for each in cell.runs), default=0.0) * seconds
        needed = seconds + self._measure_beside().count_seconds(left)
        return self.spent() + needed <= self._search_share * self._budget

    def _measure_beside(self) -> _TimeBeside:
        """Return what the runs so far say of the time that one takes beside its own."""
        gaps = [
            (run.left, after.started - run.started - run.length)
            for run, after in pairwise(each.kept for each in self.done)
            if run.call_began == after.call_began
        ]
        few = [gap for left, gap in gaps if left < _FEW_LEFT]
        fixed = max(RUN_OVERHEAD_SECONDS, median(few)) if few else RUN_OVERHEAD_SECONDS
        many = [(left, gap) for left, gap in gaps if left >= _FEW_LEFT]
        deletions = sum(gap - fixed for _, gap in many) / sum(left for left, _ in many) if many else 0.0
        return _TimeBeside(fixed, max(0.0, deletions))

    def spent(self) -> float:
        """Return the seconds that all calls together took up to the end of their last complete runs."""
        last = {each.kept.call_began: each.kept for each in self.done}
        beside = self._measure_beside()
        ends = [run.started + run.length + beside.count_seconds(run.left) for run in last.values()]
        return sum(end - began for end, began in zip(ends, last, strict=True))

    def _make_mixed_trial(self, store: str, left: int) -> Iterator[PlanTrial]:
        """Yield the mixed load of a store, which is one of so many that are left, if it can be run."""
        cells = {(each.size, each.operation): each for each in self.searched if each.store == store}
        sizes = list(dict.fromkeys(size for size, _ in cells))
        asked = [each for each in _MIXED_WEIGHTS if all((size, each) in cells for size in sizes)]
        limits = {(size, each): self.conclude(cells[size, each]).rate for size in sizes for each in asked}
        unknown = [each for each, rate in limits.items() if not rate > 0]
        operations = [each for each in asked if each not in {operation for _, operation in unknown}]
        if "write" not in operations and "delete" in operations:
            operations.remove("delete")
        if unknown:
            missing = ", ".join(each for each in asked if each not in operations)
            what = f"has no {missing}" if operations else "was not run"
            names = ", ".join(cells[each].name for each in unknown)
            self._explain_mixed(store, f"{what}: no limit is known of {names}")
        elif not operations:
            self._explain_mixed(store, "was not run: no operations")
        if not operations:
            return
        files = {size: cells[size, operations[0]].scenario.size_classes[0].initial_files for size in sizes}
        weight = sum(_MIXED_WEIGHTS[each] for each in operations)
        busy = sum(
            files[size] / sum(files.values()) * _MIXED_WEIGHTS[each] / weight / rate
            for (size, each), rate in limits.items()
            if each in operations
        )
        rate = float(f"{_MIXED_SHARE / busy:.4g}")
        beside = self._measure_beside()
        time = (self._budget - self.spent()) / left - beside.fixed
        # The objects of each size were deleted or overwritten by the runs of others.
        time -= sum(files[size] / limits[size, "write"] for size in sizes if "write" in operations)
        kept = sum(_MIXED_LEFT.get(each, 0.0) * _MIXED_WEIGHTS[each] / weight for each in operations)
        seconds = math.floor(time / (1 + beside.deletion * kept * rate))
        if seconds < _SHORTEST_RUN:
            self._explain_mixed(store, "was not run: no time was left")
            return
        most = max(self.conclude(each).users or 1 for each in cells.values())
        scenario = check_scenario_data(
            {
                "name": "mixed load of an envelope",
                "sizes": [{"name": size, "size": size} for size in sizes],
                "initial_files": files,
                "profile": {_MIXES[each][1]: _MIXED_WEIGHTS[each] for each in operations},
                "container_count": cells[sizes[0], operations[0]].scenario.container_count,
                "user_count": max(8, most),
                "rate": rate,
                "run_seconds": float(seconds),
            }
        )
        name = _name_mixed(store)
        yield PlanTrial(PlanCell(name, scenario, self._use_store(store), None, name, is_counted=False))

    def _explain_mixed(self, store: str, what: str) -> None:
        of_store = f" of {store}" if store else ""
        self.not_tried.append(f"The mixed load{of_store} {what}.")

    def conclude(self, cell: _Cell) -> Any:
        """Return what is known of a cell."""
        runs = [(each.step, each.whole) for each in cell.runs]
        answer = cell.search.answer() if len(runs) > 1 else SearchAnswer(None)
        kind = find_store_kind(cell.runs[0].storage_url if cell.runs else "")
        found = conclude_cell(
            cell.name,
            parse_size(cell.size),
            cell.operation,
            cell.conditions,
            runs,
            answer,
            slows_by_503=kind.slows_by_503,
        )
        return structs.replace(found, store=cell.store)

    def compare_stores(self) -> FamilyComparison | None:
        """Return the comparison of two stores; None where there are not two."""
        if len(self._stores) != 2:
            return None
        placed = (
            (name_cell(each.size, each.operation), self._stores.index(each.store), self.conclude(each))
            for each in self.searched
        )
        return compare_cells(make_run_table(self._stores, placed), NOISE_SHARE, in_turn=True)


def _count_left(statistics: RunStatistics) -> int:
    """Return how many objects a run created and did not delete."""
    counts = {each.operation.effect: each.count for each in statistics.sections if each.operation}
    return max(0, counts.get(Effect.ADDS, 0) - counts.get(Effect.REMOVES, 0))


def _name_mixed(store: str) -> str:
    return f"{store}.mixed" if store else "mixed"


class EnvelopeWork(PlanWork[EnvelopeRun]):
    """The runs of an envelope."""

    name = "Envelope"
    product = Product.ENVELOPE
    rule: EnvelopeRule
    has_uploads_in_time = True
    first_room = 64  # uploads need it too
    #: The further words of a command line that makes it again; None: no command line made it.
    further_words: Sequence[str] | None = None
    #: What reads the logs of a run; None: there are none.
    examine_run: ExamineFunction | None = None

    def __init__(
        self,
        options: RunOptions,
        minutes: float,
        *,
        sizes: Sequence[str] = ENVELOPE_SIZES,
        operations: Sequence[str] = ENVELOPE_OPERATIONS,
        wanted: Sequence[Condition] = (),
        fail_if: Sequence[EnvelopeCondition] = (),
        stores: Sequence[str] = (),
    ) -> None:
        try:
            sizes = tuple(dict.fromkeys(sorted(sizes, key=parse_size)))
        except ValueError as error:
            raise UsageError(f"--sizes: {error}") from None
        largest = LARGEST_VALUES[Variable.SIZE]
        if sizes and parse_size(sizes[-1]) > largest:
            raise UsageError(
                f"--sizes: {sizes[-1]!r}: expected {spell_size(largest)} or less, because objects are in one"
                " piece"
            )
        if wrong := [each for each in operations if each not in _MIXES]:
            raise UsageError(f"--operations: {wrong[0]!r} is not one of {', '.join(_MIXES)}")
        if not sizes or not operations:
            raise UsageError("an envelope needs at least one size and one operation")
        operations = tuple(dict.fromkeys(operations))
        self.rule = EnvelopeRule(sizes, operations, minutes, options, wanted, stores or ("",))
        for cell in self.rule.searched:
            try:
                resolve_objective(wanted, cell.scenario, noop=False)
            except ValueError as error:
                raise UsageError(f"--holds: {error} (it has to hold for {cell.name} too)") from None
        if minutes < self.rule.least_minutes:
            limits = format_plural(len(self.rule.searched), "limit")
            least = math.ceil(10 * self.rule.least_minutes) / 10
            raise UsageError(
                f"--minutes {minutes:g}: too few for {limits} of sizes and operations: expected {least:g} or"
                " more, or fewer --sizes or --operations"
            )
        check_envelope_conditions(fail_if, [each.name for each in self.rule.searched])
        self._minutes, self._fail_if = minutes, tuple(fail_if)
        self._wanted = " and ".join(each.text for each in wanted)
        words = ["ssbench-master", "envelope", "--minutes", f"{minutes:g}", "--sizes", ",".join(sizes)]
        words += ["--operations", ",".join(operations), *(["--holds", self._wanted] if wanted else [])]
        self._words = words
        self._options = options

    def forecast(self) -> str:
        """Return how long it will take, in words."""
        cells = len(self.rule.searched)
        return (
            f"{format_plural(cells, 'limit')} in {format_duration(60 * self._minutes)}, runs of"
            f" {self.rule.seconds:g} s and more"
        )

    def say(self, done: Sequence[DoneTrial[EnvelopeRun]]) -> None:
        """Log the last run in one line."""
        last = done[-1]
        step = last.kept.step
        _log.info(
            "%s: %s ops/s, p99 %s, %s",
            last.trial.cell.row,
            format_number(step.rate),
            "not known" if math.isnan(step.p99) else format_latency(step.p99),
            "ended early" if last.ended_early else f"condition {step.result.value}",
        )

    def conclude(self, end: PlanEnd[EnvelopeRun], took: str) -> Conclusion[Any]:
        """Return what is known of all cells."""
        if not end.done:
            return Conclusion(self.product, None, end.code)
        cells, unread = self._conclude_cells(end)
        judged = tuple(judge_envelope_condition(each, cells) for each in self._fail_if)
        shared = describe_shared([each.kept.whole for each in end.done])
        early = [f"It ended early: {end.why}."] if end.why else []
        notes = [*self.rule.not_tried, *shared, *early, *unread]
        factor = f"the p99 of an operation is at most {_LATENCY_FACTOR:g} times that of one user, and"
        found = Envelope(
            cells,
            tuple(each.kept.mixed for each in end.done if each.kept.mixed is not None),
            self._wanted or f"{factor} at most {_ERRORS_PERCENT:g} % of operations fail",
            self._minutes,
            ", ".join(dict.fromkeys(each.kept.storage_url for each in end.done)),
            settings=tuple(
                (name.replace("_", " "), row[1])
                for name, value in {
                    "workers": max(each.kept.workers for each in end.done) or None,
                    **record_options(self._options.requests),
                    **record_options(self._options),
                }.items()
                if (row := spell_option_row(name, value)) is not None
            ),
            command="" if self.further_words is None else shlex.join([*self._words, *self.further_words]),
            conditions=judged,
            notes=tuple(notes),
            not_asked=tuple(self._list_not_asked()),
            took=took,
            seconds=self.rule.spent(),
            is_shared=bool(shared),
            stores=self.rule.compare_stores(),
        )
        code = choose_exit_code([each.result for each in judged], self._options.undecided)
        return Conclusion(self.product, replace(found, exit_code=choose_worst_code([end.code, code])), code)

    def _conclude_cells(self, end: PlanEnd[EnvelopeRun]) -> tuple[tuple[EnvelopeCell, ...], list[str]]:
        """Return what is known of all cells, also by logs, and a note if these were not read to their end."""
        cells = [*map(self.rule.conclude, self.rule.searched)]
        runs = {
            place: run
            for place, searched in enumerate(self.rule.searched)
            for run in searched.runs
            if run.step is cells[place].beyond
        }
        if self.examine_run is None or not runs:
            return tuple(cells), []
        unknown: dict[str, list[str]] = {}
        why = end.why
        for number, (place, run) in enumerate({} if why else runs.items(), 1):
            searched = self.rule.searched[place]
            _log.info("Reading the logs for %s (%d of %d)", searched.name, number, len(runs))
            try:
                logged = self.examine_run(run.path, searched.looked_at)
            except Exception as error:  # noqa: BLE001 - whatever the logs hold, the runs are reported
                what = "" if isinstance(error, (SsbenchError, OSError)) else f"{type(error).__name__}: "
                text = what + str(error).removeprefix(f"{run.path}: ")
                unknown.setdefault(text, []).append(searched.name)
                logged = LoggedRun(file=run.path.name, headline=f"Not known: {text}")
            except KeyboardInterrupt:  # the runs are over, and are reported
                why = "interrupted"
                end.code = choose_worst_code([end.code, ExitCode.INTERRUPTED])
                break
            cells[place] = add_logged_run(cells[place], logged)
        for text, names in unknown.items():
            _log.warning(
                "%s: who bounds %s is not known: %s",
                ", ".join(names),
                "them" if len(names) > 1 else "it",
                text,
            )
        note = f"Not all logs were read ({why}): with --resume and --swift-logs they are."
        return tuple(cells), [note] if why else []

    def _list_not_asked(self) -> Iterator[str]:
        """Yield what an envelope has unless something else is asked for, and this one does not."""
        sizes = {parse_size(each.size) for each in self.rule.searched}
        operations = {each.operation for each in self.rule.searched}
        usual = [f"objects of {each}" for each in ENVELOPE_SIZES if parse_size(each) not in sizes]
        if lacking := [*usual, *(each for each in ENVELOPE_OPERATIONS if each not in operations)]:
            yield f"Not tried, as it was not asked for: {', '.join(lacking)}."
        if "list" in operations and len(sizes) > 1:
            smallest = next(each.size for each in self.rule.searched if each.operation == "list")
            yield f"Listings were tried with objects of {smallest} only."
