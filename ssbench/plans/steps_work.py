"""Steps of a load that grows: those of a sweep, or of a search for the limit."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ssbench.base.errors import ExitCode, GateResult, TooManyErrorsError, UsageError, choose_worst_code
from ssbench.base.text_values import format_duration
from ssbench.comparison import search
from ssbench.comparison.capacity_report import (
    Capacity,
    PhaseCapacities,
    compare_sweeps,
    conclude_fill,
    conclude_search,
    conclude_sweep,
)
from ssbench.comparison.object_trend import MIN_TREND_STEPS
from ssbench.comparison.search import LIMIT_TOLERANCE, LimitSearch
from ssbench.comparison.sweep import describe_limits, describe_lost, describe_short_steps, make_step_scenario
from ssbench.comparison.sweep_variables import LARGEST_VALUES, GroupVariable, Sweep, Variable, Varied
from ssbench.document.columns import format_plural
from ssbench.document.units import format_change_size, format_number
from ssbench.plans.plan_rules import ChainRule, SearchRule, StepResult, SweepRule, SweptSide
from ssbench.plans.plan_work import Conclusion, PlanSide, PlanWork, find_row_shortage, tabulate_trials
from ssbench.reports.products import Product
from ssbench.run.plan import DoneTrial, PlanEnd, bound_run_seconds, describe_time_needed
from ssbench.scenario.conditions import Condition
from ssbench.scenario.replay_source import Replay
from ssbench.statistics.confidence import MIN_SECONDS

_log = logging.getLogger(__name__)

#: How many steps a search takes: rarely fewer, rarely more; and where it looks for a share of errors, which
#: are few, so that chance has more to say.
_MIN_TRIALS, _USUAL_TRIALS, _USUAL_TRIALS_OF_ERRORS = 5, 15, 25

#: How many of these are as short as the first ones, where steps near the limit are as long as they may be.
_USUAL_SHORT_TRIALS = 5


class _StepsWork(PlanWork[StepResult]):
    """What sweeps and searches say of their steps."""

    def __init__(self, variable: Varied) -> None:
        self.variable = variable

    def _say_step(self, done: Sequence[DoneTrial[StepResult]], verdict: str) -> None:
        """Log the result of the last step in one line."""
        step, label = done[-1].kept.step, done[-1].trial.label
        side = "" if label.startswith(self.variable.value) else label.partition(".")[0]
        _log.info(
            "Step %d: %s%s, %.0f s: %s ops/s, %d failed%s",
            len(done),
            f"{side}, " if side else "",
            self.variable.words(step.value),
            step.seconds,
            format_number(step.rate),
            step.failed,
            f"; {verdict}" if verdict else "",
        )

    def say_files(self, done: Sequence[DoneTrial[StepResult]], program: str) -> None:
        """Log where the results of all steps are."""
        if not done:
            return
        last, kind = str(done[-1].path), self.variable.value
        pattern = re.sub(
            rf"(\.[ab])?\.{re.escape(kind)}-\d+(\.\d+)?(\.stat\.gz)\Z",
            lambda match: f"{'.*' if match[1] else ''}.{kind}-*{match[3]}",
            last,
            flags=re.ASCII,
        )
        _log.info("Results saved to %s", last if len(done) == 1 else pattern)


class SweepWork(_StepsWork):
    """The steps of ``--sweep``, once or repeated, of one way to run or of two."""

    name = "Sweep"
    rule: SweepRule

    def __init__(
        self,
        sides: Sequence[PlanSide],
        sweep: Sweep,
        rounds: int,
        pause: float,
        prefix: str = "",
        fill_rate: float | None = None,
    ) -> None:
        super().__init__(sweep.variable)
        self._sides = sides
        self._sweep = sweep
        self._rounds = rounds
        self._pause = pause
        if sweep.variable is Variable.OBJECTS and rounds > 1:
            raise UsageError("a second round of a sweep over objects would begin with all of them: give one")
        swept: list[SweptSide] = [(side.scenario, side.options) for side in sides]
        self.rule = SweepRule(swept, sweep, rounds, prefix, fill_rate)
        self.product = Product.SUITES if len(sides) > 1 else Product.CAPACITY
        for side in sides:
            for value in sweep.values:  # so that a wrong one is reported before the first run
                if side.options.sides and value % 2 and sweep.variable is Variable.USERS:
                    raise UsageError(
                        f"--sweep: {value} users cannot be halved, and with --ab each side has half of them"
                    )
                make_step_scenario(side.scenario, sweep.variable, value)

    def list_users(self) -> list[int]:
        """Return the most users of any step of each side, where users are swept."""
        varied = self.variable.variable if isinstance(self.variable, GroupVariable) else self.variable
        if varied is not Variable.USERS:
            return []
        last = self._sweep.values[-1]
        return [make_step_scenario(side.scenario, self.variable, last).user_count for side in self._sides]

    def forecast(self) -> str:
        """Return how long it will take, in words."""
        count = len(self._sweep.values) * len(self._sides) * self._rounds
        scenarios = [side.scenario for side in self._sides]
        return f"{format_plural(count, 'step')}, {describe_time_needed(scenarios, count, self._pause)}"

    def find_shortage(self) -> str:
        """Return why there will be no verdict on two ways to run, or on more objects; empty if there may."""
        if len(self._sides) > 1:
            return find_row_shortage(len(self._sweep.values), self._rounds, "step")
        if self.variable is not Variable.OBJECTS:
            return ""
        seconds = self._sides[0].scenario.run_seconds or math.inf
        if len(self._sweep.values) >= MIN_TREND_STEPS and seconds >= MIN_SECONDS:
            return ""
        return (
            f"a verdict on more objects needs {MIN_TREND_STEPS} numbers of them or more, and runs of"
            f" {MIN_SECONDS} s or more"
        )

    def say(self, done: Sequence[DoneTrial[StepResult]]) -> None:
        """Log the result of the last step."""
        self._say_step(done, "")

    def conclude(self, end: PlanEnd[StepResult], took: str) -> Conclusion[Any]:
        """Return what is known."""
        self.rule.done = end.done
        found = [
            replace(
                conclude_sweep(
                    side.scenario.name,
                    self.variable,
                    self.rule.steps(place),
                    self.rule.stops[place],
                    end.why,
                    [
                        (each.kept.step.value, each.kept.sided)
                        for each in end.done
                        if each.kept.side == place and each.kept.sided is not None
                    ],
                ),
                took=took,
            )
            for place, side in enumerate(self._sides)
        ]
        # A run by itself in which no operation succeeds, or some are lost, has failed, too.
        failed = not end.why and not all(each.kept.step.count for each in end.done)
        failed |= any(each.kept.step.lost for each in end.done)
        code = ExitCode.FAILED if failed else ExitCode.OK
        worst = choose_worst_code([end.code, code])
        if len(found) == 1:
            return Conclusion(Product.CAPACITY, replace(found[0], exit_code=worst), code)
        table = tabulate_trials(self.rule, end.done).reduced(lambda kept: kept.figures)
        return Conclusion(Product.SUITES, compare_sweeps(found[0], found[1], table), code)


#: Seconds that all of a log takes in a step of a search at least: in less, all requests would be due at once.
_LEAST_REPLAY_SECONDS = 2.0


class SearchWork(_StepsWork):
    """The steps of ``--find``."""

    name = "Search"
    rule: SearchRule
    product = Product.CAPACITY

    def __init__(
        self,
        side: PlanSide,
        conditions: Sequence[Condition],
        tolerance: float | None = None,
        repeats: int = 1,
        pause: float = 0.0,
        prefix: str = "",
    ) -> None:
        self._pause = pause
        scenario, self._replay = side.scenario, side.options.replayed
        if self._replay is not None and scenario.rate:  # each step is all of the log
            scenario = replace(scenario, run_seconds=len(self._replay) / scenario.rate)
        variable = Variable.RATE if scenario.rate is not None else Variable.USERS
        most = LARGEST_VALUES[variable] if self._replay is None else _find_fastest_replay(self._replay)
        super().__init__(variable)
        self._scenario = scenario
        if scenario.run_seconds is None or scenario.stages:
            raise UsageError("--find needs -r/--run-seconds, the time of a step, and no stages")
        if scenario.groups:
            names = ", ".join(f"{each.name}.users" for each in scenario.groups)
            raise UsageError(
                f"--find: the scenario has groups of users; vary those of one: --sweep ({names})"
            )
        try:
            known = search.resolve_objective(conditions, scenario, noop=side.options.noop)
        except ValueError as error:
            raise UsageError(f"--find: {error}") from None
        start = scenario.user_count if scenario.rate is None else max(1, round(scenario.rate))
        limit = LimitSearch(start, scenario.run_seconds, most=most, tolerance=tolerance or LIMIT_TOLERANCE)
        self.rule = SearchRule(
            side.scenario, side.options, variable, tuple(dict.fromkeys(known)), limit, repeats, prefix
        )
        if self._replay is not None:
            self.rule.why_not_higher = f"all of the log would then take less than {_LEAST_REPLAY_SECONDS:g} s"

    def forecast(self) -> str:
        """Return how long it will take, in words."""
        repeats, short = self.rule.repeats, _USUAL_SHORT_TRIALS
        of_errors = any(each.figure == "errors" for each in self.rule.conditions)
        usual = _USUAL_TRIALS_OF_ERRORS if of_errors else _USUAL_TRIALS
        factor = search.MAX_TRIAL_FACTOR if self._replay is None else 1.0
        longer = replace(self._scenario, run_seconds=factor * (self._scenario.run_seconds or 0.0))
        (least, most), (_, longest) = bound_run_seconds(self._scenario), bound_run_seconds(longer)

        def needed(first: float, further: float = 0.0, count: int = _MIN_TRIALS) -> str:
            seconds = short * first + (count - short) * further + (count - 1 / repeats) * self._pause
            return format_duration(repeats * seconds)

        near = f", those near the limit up to {factor:.0f} times as long" if factor > 1 else ""
        return (
            f"some {_MIN_TRIALS} to {usual} steps{f' of {repeats} runs' * (repeats > 1)}{near}: about"
            f" {needed(least)} to {needed(most, longest, usual)} (at most {search.MAX_TRIALS} steps,"
            f" {needed(most, longest, search.MAX_TRIALS)})"
        )

    def say(self, done: Sequence[DoneTrial[StepResult]]) -> None:
        """Log the result of the last step, unless it was interrupted."""
        last = done[-1]
        is_judged = last.ended_early is None or last.ending_code is TooManyErrorsError.exit_code
        self._say_step(done, _describe_findings(last.kept.verdict, last.kept.findings) if is_judged else "")
        runs = self.rule.repeats
        if is_judged and runs > 1 and not len(done) % runs:
            found = self.rule.judge_load([each.kept for each in done[-runs:]])
            _log.info(
                "%s, %d runs: %s",
                self.variable.words(found.step.value),
                runs,
                _describe_result(found.verdict, [each.text for each in found.findings]),
            )

    def conclude(self, end: PlanEnd[StepResult], took: str) -> Conclusion[Any]:
        """Return what is known."""
        rule, why = self.rule, end.why
        results = [each.kept for each in end.done]
        judged = results[: rule.judged] if why else results
        steps = tuple(each.step for each in results)
        answer = rule.search.answer()
        wanted = " and ".join(condition.text for condition in rule.conditions)
        left = len(results) - len(judged)
        loads = [judged[first : first + rule.repeats] for first in range(0, len(judged), rule.repeats)]
        words = [
            *(_describe_result(each.verdict, [one.text for one in each.findings]) for each in judged),
            *([f"not judged: {why}"] * left),
        ]
        if rule.repeats > 1:
            for place, runs in enumerate(loads):
                pooled = rule.judge_load(runs)
                texts = [each.text for each in pooled.findings]
                words[place * rule.repeats + len(runs) - 1] += (
                    f". All {len(runs)}: {_describe_result(pooled.verdict, texts)}"
                )
        findings = [*(each.findings for each in judged), *([()] * left)]
        tried = [(runs[0].step.value, rule.judge_load(runs).verdict) for runs in loads]
        headline, remarks, result = conclude_search(
            self.variable, wanted, answer, why, rule.why_not_higher, tried
        )
        if answer.value:
            upto = [each.findings for each in judged if each.step.value <= answer.value and each.findings]
            remarks = [*remarks, *search.describe_rare_errors(upto)]
        if self._replay is not None and answer.value:
            remarks = [_describe_factor(answer, self._replay), *remarks]
        if rule.repeats > 1 and loads:
            remarks = [*remarks, _describe_basis(loads, rule.repeats)]
        notes = describe_lost(self.variable, steps) + describe_limits(self.variable, steps)
        notes += [] if rule.is_bounded else describe_short_steps(steps)
        code = ExitCode.OK
        if not why:
            if not answer.narrow:
                code = ExitCode.UNDECIDED
            elif answer.value is None:
                code = ExitCode.FAILED
        if any(each.lost for each in steps):
            code = ExitCode.FAILED
        found = Capacity(
            f"{self._scenario.name}: {self.variable.most} at which {wanted}",
            self.variable,
            steps,
            tuple(words),
            headline,
            result,
            tuple(notes),
            tuple(findings),
            answer=answer,
            remarks=tuple(remarks),
            exit_code=choose_worst_code([end.code, code]),
            took=took,
        )
        return Conclusion(Product.CAPACITY, found, code)


def _find_fastest_replay(replay: Replay) -> int:
    """Return the highest rate at which a log loads a store for long enough; raises UsageError at none."""
    most = int(len(replay) / _LEAST_REPLAY_SECONDS)
    if most < max(1, round(replay.rate)):
        took = format_duration(len(replay) / replay.rate)
        raise UsageError(
            f"--find: {replay.source.title} has {len(replay):,} requests in {took}, and each step replays all"
            f" of them, in {_LEAST_REPLAY_SECONDS:g} s or more: choose more of the log"
        )
    return most


def _describe_factor(answer: search.SearchAnswer, replay: Replay) -> str:
    """Return the answer of a search as how many times the traffic of a log it is."""
    best, low, high = (
        f"{replay.find_factor(value or 0):.2f}" for value in (answer.value, answer.low, answer.high)
    )
    sure = "at least" if answer.at_least else f"95 % sure: {low} to {high} times"
    return f"That is {best} times the traffic of {replay.source.title} ({sure})."


class PhasedStepsWork(PlanWork[StepResult]):
    """A sweep or a search of each of ``--phases``, one after the other.

    Of sweeps over objects all phases are run with so many, before there are more; how these are uploaded is
    a phase of its own.
    """

    name = "Phases"
    rule: ChainRule
    product = Product.CAPACITIES

    def __init__(self, works: Sequence[tuple[str, SweepWork | SearchWork]]) -> None:
        self._works = works
        self._in_turn = works[0][1].variable is Variable.OBJECTS
        self.rule = ChainRule([work.rule for _, work in works], in_turn=self._in_turn)

    def list_users(self) -> list[int]:
        """Return the most users of any step."""
        return [users for _, work in self._works for users in work.list_users()]

    def forecast(self) -> str:
        """Return how long each phase will take, in words."""
        return f"{format_plural(len(self._works), 'phase')} of {self._works[0][1].forecast()} each"

    def find_shortage(self) -> str:
        """Return why the phases will have no verdict; empty where they may have one."""
        return self._works[0][1].find_shortage()

    def say(self, done: Sequence[DoneTrial[StepResult]]) -> None:
        """Log the result of the last step."""
        place = self.rule.last_place
        self._works[place][1].say(self.rule.split(done)[place])

    def conclude(self, end: PlanEnd[StepResult], took: str) -> Conclusion[Any]:
        """Return what is known of each phase."""
        parts = self.rule.split(end.done)
        found, codes = [], []
        for place, (part, (phase, work)) in enumerate(zip(parts, self._works, strict=False)):
            why = end.why if self._in_turn or place == len(parts) - 1 else ""
            if part or not why:
                made = work.conclude(replace(end, done=[*part], why=why, code=ExitCode.OK), "")
                codes.append(made.code)
                if made.found is not None:
                    found.append((phase, made.found))
        code = choose_worst_code(codes)
        if not found:
            return Conclusion(self.product, None, code)
        if fills := [each.kept.fill for each in end.done if each.kept.fill is not None]:
            ways = [each.trial.cell.fill for each in end.done]
            asked = next((way.rate for way in ways if way is not None), None)
            found.insert(0, ("fill", conclude_fill(fills, end.why, asked)))
        worst = choose_worst_code([end.code, code])
        return Conclusion(self.product, PhaseCapacities(tuple(found), end.why, worst, took), code)

    def say_files(self, done: Sequence[DoneTrial[StepResult]], program: str) -> None:
        """Log where the results of all steps are."""
        for part, (_, work) in zip(self.rule.split(done), self._works, strict=False):
            work.say_files(part, program)


def _describe_basis(loads: Sequence[Sequence[StepResult]], repeats: int) -> str:
    """Return what the answer of a search rests on, where each load was run several times."""
    scatters = []
    conditions = [each.condition for each in loads[0][0].findings]
    for place, condition in enumerate(conditions):
        values = [[run.findings[place].value or 0.0 for run in runs] for runs in loads]
        if (scatter := search.find_scatter(values)) is not None:
            scatters.append(f"{condition.subject} by {format_change_size(scatter)} %")
    differ = f", whose runs differ in {' and '.join(scatters)} (standard deviation)" if scatters else ""
    return f"It rests on {format_plural(len(loads), 'trial')} of {repeats} runs each{differ}."


#: How reports say that an objective holds.
_RESULT_WORDS = {
    GateResult.PASSED: "holds",
    GateResult.FAILED: "does not hold",
    GateResult.UNDECIDED: "undecided",
}


def _describe_result(verdict: GateResult, texts: Sequence[str]) -> str:
    return f"{_RESULT_WORDS[verdict]}: {'; '.join(texts)}"


def _describe_findings(verdict: GateResult, findings: Sequence[search.ObjectiveFinding]) -> str:
    """Return the result of a step in few words: the figures without the operations that they rest on."""
    measured = [
        f"{each.condition.subject} "
        + ("not measured" if each.value is None else each.condition.spell_measured(each.value))
        for each in findings
    ]
    return _describe_result(verdict, measured)
