"""The rules of plans: which run is next, given what has been done.

:class:`GridRule` goes through cells in rounds: one cell is a repetition, two are runs in turn, more are a
suite. :class:`SweepRule` goes through the values of a variable until more load brings nothing, and then again
through those that it reached. :class:`SearchRule` asks a search for the next load. Each makes its trials in a
generator, which may look at what has been done before it goes on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Generic

from ssbench.base.errors import GateResult, combine_gate_results
from ssbench.comparison.family import RowRun, make_row_run
from ssbench.comparison.paired_sides import SidedRun, make_sided_run
from ssbench.comparison.search import (
    FAILS_EVIDENCE,
    LimitSearch,
    ObjectiveFinding,
    judge_objective,
    pool_findings,
)
from ssbench.comparison.sweep import (
    SweepStep,
    describe_missing_gain,
    explain_stop,
    make_fill_step,
    make_step,
    make_step_scenario,
)
from ssbench.comparison.sweep_variables import Sweep, Variable, Varied
from ssbench.run.bench_options import ObjectFill, RunOptions
from ssbench.run.plan import DoneTrial, EndedRun, Kept, PlanCell, PlanTrial
from ssbench.scenario.conditions import Condition
from ssbench.scenario.model import Scenario
from ssbench.statistics.run_statistics import RunStatistics


class GeneratedTrials(Generic[Kept]):
    """What all rules are: a generator of trials, which sees in ``done`` what has been done."""

    def __init__(self) -> None:
        self.done: Sequence[DoneTrial[Kept]] = ()
        self._trials = self._make_trials()

    def next(self, done: Sequence[DoneTrial[Kept]]) -> PlanTrial | None:
        """Return the next trial, None where there is none."""
        self.done = done
        return next(self._trials, None)

    def _make_trials(self) -> Iterator[PlanTrial]:
        raise NotImplementedError


class GridRule(GeneratedTrials[Kept]):
    """Each cell once in each round.

    ``in_turn``: every other round goes the other way (A B, B A, ...), so that what drifts evenly is the same
    for all cells. Otherwise all rounds of a cell come before those of the next. The trials of a round draw
    the same operations, those of another one others: what one seed draws would be the same for all runs, and
    so seem to be known.
    """

    def __init__(
        self,
        cells: Sequence[PlanCell],
        rounds: int,
        keep: Callable[[RunStatistics, str], Kept],
        *,
        in_turn: bool = True,
    ) -> None:
        super().__init__()
        self.cells = cells
        self._rounds = rounds
        self._keep = keep
        self._in_turn = in_turn

    @property
    def labels(self) -> Sequence[str]:
        """What the labels of all trials begin with."""
        return [f"{cell.name}-" if cell.is_counted else cell.name for cell in self.cells]

    @property
    def count(self) -> int:
        """How many trials there are."""
        return len(self.cells) * self._rounds

    def keep(self, _trial: PlanTrial, statistics: RunStatistics, ended: EndedRun) -> Kept:
        """Return what is kept of a run, by its statistics and the name of its stat file."""
        return self._keep(statistics, ended.path.name.removesuffix(".gz").removesuffix(".stat"))

    def _make_trials(self) -> Iterator[PlanTrial]:
        numbers = range(1, self._rounds + 1)
        if not self._in_turn:
            yield from (PlanTrial(cell, number, number - 1) for cell in self.cells for number in numbers)
            return
        for number in numbers:
            yield from (
                PlanTrial(cell, number, number - 1) for cell in self.cells[:: 1 if number % 2 else -1]
            )


@dataclass(frozen=True, slots=True)
class StepResult:
    """What is kept of the run of a step."""

    step: SweepStep
    figures: RowRun
    side: int = 0  # which of the ways to run it is of
    #: The judgment of each condition of a search.
    findings: tuple[ObjectiveFinding, ...] = ()
    verdict: GateResult = GateResult.UNDECIDED  # that of all conditions together
    sided: SidedRun | None = None  # of a run with two sides (``--ab``)
    fill: SweepStep | None = None  # how the objects were uploaded that the step added


#: A way to run that is swept: a scenario, and how it is run.
SweptSide = tuple[Scenario, RunOptions]


class SweepRule(GeneratedTrials[StepResult]):
    """The values of a sweep in ascending order, and in further rounds those that the first one reached.

    Of two ``sides`` each ends where its own rate rises no more; they take turns at each value.
    """

    def __init__(
        self,
        sides: Sequence[SweptSide],
        sweep: Sweep,
        rounds: int = 1,
        prefix: str = "",
        fill_rate: float | None = None,
    ) -> None:
        super().__init__()
        self._fill = ObjectFill(fill_rate) if sweep.variable is Variable.OBJECTS else None
        self._prefix = prefix
        self.variable: Varied = sweep.variable
        #: Why the first round of each side ended before the last value; None where it did not.
        self.stops: list[str | None] = [None] * len(sides)
        self._sides = sides
        self._values = sweep.values
        self._rounds = rounds

    @property
    def labels(self) -> Sequence[str]:
        """What the labels of all trials begin with."""
        return [f"{self._name(side)}-" for side in range(len(self._sides))]

    @property
    def count(self) -> int | None:
        """How many trials there are, where all of them are made whatever they find."""
        known = not self.variable.is_load
        return len(self._sides) * len(self._values) * self._rounds if known else None

    @property
    def cells(self) -> Sequence[PlanCell]:
        """The first and the last step of each side: what is too much for one between is so for the last."""
        ends = dict.fromkeys((self._values[0], self._values[-1]))
        return [self._cell(side, value) for side in range(len(self._sides)) for value in ends]

    def steps(self, side: int = 0) -> list[SweepStep]:
        """Return the steps of a side, those of further rounds beside the first ones."""
        own = [each.kept.step for each in self.done if each.kept.side == side]
        return sorted(own, key=lambda step: step.value) if self._rounds > 1 else own

    def keep(self, trial: PlanTrial, statistics: RunStatistics, ended: EndedRun) -> StepResult:
        """Return the step that a run is."""
        value, side = trial.cell.value
        sided = make_sided_run(statistics, ended.path.name) if self._sides[side][1].sides else None
        step = make_kept_step(value, statistics, ended)
        fill = make_fill_step(value, statistics, step.file) if trial.cell.fill is not None else None
        return StepResult(step, make_row_run(statistics), side, sided=sided, fill=fill)

    def _name(self, side: int) -> str:
        name = self.variable.value
        return f"{'ab'[side]}.{name}" if len(self._sides) > 1 else f"{self._prefix}{name}"

    def _cell(self, side: int, value: int) -> PlanCell:
        scenario, options = self._sides[side]
        fill = self._fill if options.can_fill else None
        return PlanCell(
            f"{self._name(side)}-{value}",
            make_step_scenario(scenario, self.variable, value),
            options if fill is None else replace(options, prepared=True),
            (value, side),
            f"{self._prefix}{self.variable.words(value)}",
            "ab"[side] if len(self._sides) > 1 else "",
            workers=value if self.variable is Variable.WORKERS else None,
            fill=fill,
            is_counted=False,
        )

    def _make_trials(self) -> Iterator[PlanTrial]:
        reached: list[list[int]] = [[] for _ in self._sides]
        for place, value in enumerate(self._values):
            for side in self._turn(place):
                if self.stops[side] is None:
                    yield PlanTrial(self._cell(side, value))
                    reached[side].append(value)
                    own = [each.kept.step for each in self.done if each.kept.side == side]
                    self.stops[side] = explain_stop(self.variable, own)
        for number in range(2, self._rounds + 1):
            for place, value in enumerate(self._values[:: 1 if number % 2 else -1]):
                for side in self._turn(place + number):
                    if value in reached[side]:
                        yield PlanTrial(self._cell(side, value), number, number - 1)

    def _turn(self, place: int) -> Sequence[int]:
        return range(len(self._sides))[:: -1 if place % 2 else 1]


def make_kept_step(value: float, statistics: RunStatistics, ended: EndedRun) -> SweepStep:
    """Return the step of a run that has ended."""
    return make_step(value, statistics, room=ended.room, file=str(ended.path), ended_early=ended.ended_early)


class SearchRule(GeneratedTrials[StepResult]):
    """The trials of a search for the highest load at which conditions hold, each load ``repeats`` times."""

    count = None

    def __init__(
        self,
        scenario: Scenario,
        options: RunOptions,
        variable: Variable,
        conditions: Sequence[Condition],
        search: LimitSearch,
        repeats: int = 1,
        prefix: str = "",
    ) -> None:
        super().__init__()
        self._prefix = prefix
        self._name = f"{prefix}{variable.value}-"
        self.variable = variable
        self.conditions = conditions
        self.search = search
        #: Whether a condition ends with more load whatever the store is.
        self.is_bounded = any(condition.rank is not None for condition in conditions)
        self.why_not_higher = ""  # why no higher load says anything of the store
        self.judged = 0  # trials that the search knows of: not one that was interrupted
        self.repeats = repeats
        self._scenario = scenario
        self._options = options

    @property
    def labels(self) -> Sequence[str]:
        """What the labels of all trials begin with."""
        return [self._name]

    @property
    def cells(self) -> Sequence[PlanCell]:
        """The scenario as it is given: how much load it will have is not known."""
        return [PlanCell(self._name, self._scenario, self._options)]

    def keep(self, trial: PlanTrial, statistics: RunStatistics, ended: EndedRun) -> StepResult:
        """Return the step that a run is, judged."""
        step = make_kept_step(trial.cell.value, statistics, ended)
        findings = tuple(judge_objective(statistics, self.conditions))
        verdict = combine_gate_results(each.verdict for each in findings)
        if step.ended_early is not None:  # too many operations failed
            verdict = GateResult.FAILED
            findings = tuple(replace(each, evidence=FAILS_EVIDENCE) for each in findings)
        return StepResult(step, make_row_run(statistics), findings=findings, verdict=verdict)

    def judge_load(self, runs: Sequence[StepResult]) -> StepResult:
        """Return the step of all runs of a load together: the last one, judged by all of them."""
        findings = tuple(pool_findings([run.findings for run in runs]))
        verdict = combine_gate_results(each.verdict for each in findings)
        ended = [run for run in runs if run.step.ended_early is not None]
        if len(ended) == len(runs):
            verdict = GateResult.FAILED
        elif ended and verdict is GateResult.PASSED:
            verdict = GateResult.UNDECIDED
        return replace(runs[-1], findings=findings, verdict=verdict)

    def _make_trials(self) -> Iterator[PlanTrial]:
        counts: dict[int, int] = {}
        while (wanted := self.search.next()) is not None:
            value, seconds = wanted.value, wanted.seconds
            scenario = make_step_scenario(self._scenario, self.variable, value, seconds)
            name, row = f"{self._name}{value}", f"{self._prefix}{self.variable.words(value)}"
            cell = PlanCell(name, scenario, self._options, value, row, is_counted=False)
            for repeat in range(self.repeats):
                counts[value] = counts.get(value, 0) + 1
                yield PlanTrial(cell, counts[value], repeat)
            runs = [each.kept for each in self.done[-self.repeats :]]
            found = self.judge_load(runs)
            self.judged += self.repeats
            evidence = [each.evidence for each in found.findings]
            self.search.record(evidence, no_higher=self._is_high_enough(found, runs))

    def _is_high_enough(self, found: StepResult, runs: Sequence[StepResult]) -> bool:
        """Whether a value higher than that of ``runs`` would say nothing of Swift, and why.

        In one run of a load the load generator may be full where it just is not in another one.
        """
        if found.verdict is not GateResult.PASSED:
            return False
        last = found.step
        full = [str(number) for number, run in enumerate(runs, start=1) if run.step.generator_full]
        why = None
        if full:
            which = f"run{'s' * (len(full) > 1)} {' and '.join(full)} of {len(runs)}"
            why = "the load generator was full" + (f" in {which}" if len(runs) > 1 else "")
        steps = [each.kept.step for each in self.done]
        below = [step for step in steps if step.value < last.value]
        if why is None and below and not self.is_bounded:
            # Nothing that is asked for would ever end: more users only wait longer.
            why = describe_missing_gain(self.variable, max(below, key=lambda step: step.value), last)
        self.why_not_higher = why or self.why_not_higher
        return why is not None


class ChainRule(GeneratedTrials[StepResult]):
    """The trials of some rules, one rule after the other; or ``in_turn``, a trial of each."""

    def __init__(self, rules: Sequence[SweepRule | SearchRule], *, in_turn: bool = False) -> None:
        super().__init__()
        self._rules = rules
        self._in_turn = in_turn
        self._places: list[int] = []  # of which rule each trial is

    @property
    def labels(self) -> Sequence[str]:
        """What the labels of all trials begin with."""
        return [label for rule in self._rules for label in rule.labels]

    @property
    def cells(self) -> Sequence[PlanCell]:
        """Those of all rules."""
        return [cell for rule in self._rules for cell in rule.cells]

    @property
    def count(self) -> int | None:
        """How many trials there are, where all rules know that."""
        counts = [rule.count for rule in self._rules]
        known = [count for count in counts if count is not None]
        return sum(known) if len(known) == len(counts) else None

    def keep(self, trial: PlanTrial, statistics: RunStatistics, ended: EndedRun) -> StepResult:
        """Return what the rule keeps of which the run is."""
        return self._rules[self._places[-1]].keep(trial, statistics, ended)

    @property
    def last_place(self) -> int:
        """Which rule made the last trial."""
        return self._places[-1]

    def split(self, done: Sequence[DoneTrial[StepResult]]) -> list[list[DoneTrial[StepResult]]]:
        """Return what has been done of each rule that has begun."""
        found: list[list[DoneTrial[StepResult]]] = [[] for _ in range(max(self._places, default=-1) + 1)]
        for place, each in zip(self._places, done, strict=False):
            found[place].append(each)
        return found

    def _make_trials(self) -> Iterator[PlanTrial]:
        places = deque(range(len(self._rules)))
        while places:
            parts = dict(enumerate(self.split(self.done)))
            trial = self._rules[places[0]].next(parts.get(places[0], []))
            if trial is None:
                places.popleft()
                continue
            self._places.append(places[0])
            yield trial
            if self._in_turn:
                places.rotate(-1)
