"""``run-scenario --sweep`` and ``--find``: many runs over one bench, and what they say together."""

from __future__ import annotations

import argparse
import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TextIO

from ssbench.base import printable, quantities
from ssbench.base.errors import ExitCode, SsbenchError, UsageError
from ssbench.cli import output_file, report_files, unfit, zmq_options
from ssbench.cli.capacity_runs import EndedEarlyError, StepRuns, StepSetting
from ssbench.comparison import objective
from ssbench.comparison.conclusion import Capacity, conclude_search, conclude_sweep
from ssbench.comparison.limit import FAILS_EVIDENCE
from ssbench.comparison.search import LIMIT_TOLERANCE, LimitSearch
from ssbench.comparison.steps import SweepStep, make_step_scenario
from ssbench.comparison.sweep import (
    describe_limits,
    describe_missing_gain,
    describe_short_steps,
    explain_stop,
)
from ssbench.comparison.variables import LARGEST_VALUES, GroupVariable, Sweep, Variable, Varied
from ssbench.document.columns import format_plural
from ssbench.document.gates import GateResult, choose_worst_code, combine_gate_results
from ssbench.fleet import wire
from ssbench.reports import products
from ssbench.reports.products import Product
from ssbench.run import Bench, BenchOptions
from ssbench.scenario.conditions import Condition

_log = logging.getLogger(__name__)

#: How many steps a search takes: rarely fewer, rarely more.
_MIN_TRIALS, _USUAL_TRIALS = 5, 12

#: Seconds that a step takes beside its time, for its drain and the deletion of what it created.
_STEP_OVERHEAD_SECONDS = 1.0


def check_capacity_options(arguments: argparse.Namespace) -> None:
    """Check the options that do not go together; raises UsageError."""
    option = "--sweep" if arguments.sweep else "--find"
    single = ["--report", "--pctile", "--fail-if", "--repeat", "--versus", "--ab"]
    unfit.refuse_options(
        arguments, f"{option} makes many runs", *single, *(["--until"] if arguments.find else [])
    )
    wanted = [name for name, _ in report_files.choose_report_files(arguments).wanted]
    lacking = [name for name in wanted if not products.has_format(Product.CAPACITY, name)]
    unfit.ignore_options(arguments, f"{option} has no such report", *map(products.format_option, lacking))
    wanted = [name for name, _ in report_files.choose_report_files(arguments).wanted]
    products.check_format(Product.CAPACITY, wanted, option)
    if arguments.sweep:
        _check_sweep_options(arguments, arguments.sweep)


def _check_sweep_options(arguments: argparse.Namespace, sweep: Sweep) -> None:
    varied: dict[Varied, tuple[str, str]] = {
        Variable.USERS: ("-u/--user-count", "user_count"),
        Variable.RATE: ("--rate", "rate"),
        Variable.WORKERS: ("--workers", "workers"),
    }
    name, field = varied.get(sweep.variable, ("", ""))
    if field in arguments.given:  # the values of the sweep win over one of a file or a variable
        raise UsageError(f"--sweep varies what {name} sets; leave out one of them")
    if sweep.variable is Variable.WORKERS:
        unfit.ignore_options(arguments, "--sweep workers= starts local workers", "--expect-workers")
        if zmq_options.has_zmq_options(arguments) or arguments.expect_workers:
            raise UsageError(
                "--sweep workers= starts local workers; leave out --expect-workers and the options for others"
            )
        arguments.workers = sweep.values[0]


def run_capacity(arguments: argparse.Namespace, setting: StepSetting) -> ExitCode:
    """Carry out all steps and report on them; raises SsbenchError where one cannot begin."""
    output = _CapacityOutput(arguments)
    steps: _SweepPlan | _SearchPlan
    if arguments.sweep:
        steps = _SweepPlan(setting, arguments.sweep)
    else:
        steps = _SearchPlan(setting, arguments.find, arguments.find_within or LIMIT_TOLERANCE)
    with Bench(steps.bench_options()) as bench:
        runs = StepRuns(setting, steps.variable, bench)
        why, code = "", ExitCode.OK
        forecast, began = steps.forecast(), time.monotonic()
        _log.info("%s: %s, besides initial uploads", steps.name, forecast)
        try:
            code = steps.carry_out(runs)
        except EndedEarlyError as error:
            why, code = str(error), error.code
        except (SsbenchError, KeyboardInterrupt) as error:
            code = error.exit_code if isinstance(error, SsbenchError) else ExitCode.INTERRUPTED
            took = _describe_time_taken(time.monotonic() - began, forecast)
            output.write(replace(steps.found(runs, str(error) or "interrupted"), exit_code=code, took=took))
            raise
        if runs.trouble:
            code = choose_worst_code([code, ExitCode.FAILED])
        runs.say_files()
        took = _describe_time_taken(time.monotonic() - began, forecast)
        written = output.write(replace(steps.found(runs, why), exit_code=code, took=took))
        return code if written or code is not ExitCode.OK else ExitCode.FAILED


class _SweepPlan:
    """The steps of ``--sweep``."""

    name = "Sweep"

    def __init__(self, setting: StepSetting, sweep: Sweep) -> None:
        self.variable = sweep.variable
        self._setting = setting
        self._sweep = sweep
        self._ended: str | None = None
        for value in sweep.values:  # so that a wrong one is reported before the first run
            setting.goal(make_step_scenario(setting.scenario, sweep.variable, value))

    def bench_options(self) -> BenchOptions:
        """Return options of workers that have room for the most users, so that all steps have the same."""
        options = self._setting.bench
        varied = self.variable.variable if isinstance(self.variable, GroupVariable) else self.variable
        if not options.workers or varied is not Variable.USERS:
            return options
        most = make_step_scenario(self._setting.scenario, self.variable, self._sweep.values[-1])
        room = -(-most.user_count // options.workers)
        return replace(options, concurrency=min(room, wire.MAX_JOBS))

    def forecast(self) -> str:
        """Return how long it will take, in words."""
        count = len(self._sweep.values)
        return f"{format_plural(count, 'step')}, {_describe_time_needed(self._setting.scenario.run_seconds or 0.0, count, count)}"

    def carry_out(self, runs: StepRuns) -> ExitCode:
        """Go through the values."""
        for value in self._sweep.values:
            runs.step(value)
            runs.say("")
            self._ended = explain_stop(self.variable, runs.steps)
            if self._ended is not None:
                break
        # A run by itself in which no operation succeeds has failed, too.
        return ExitCode.OK if all(step.count for step in runs.steps) else ExitCode.FAILED

    def found(self, runs: StepRuns, why: str) -> Capacity:
        """Return what is known."""
        return conclude_sweep(self._setting.scenario.name, self.variable, runs.steps, self._ended, why)


class _SearchPlan:
    """The steps of ``--find``."""

    name = "Search"

    def __init__(self, setting: StepSetting, conditions: Sequence[Condition], tolerance: float) -> None:
        scenario = setting.scenario
        self.variable = Variable.RATE if scenario.rate is not None else Variable.USERS
        self._setting = setting
        self._words: list[str] = []
        self._findings: list[tuple[objective.ObjectiveFinding, ...]] = []
        if scenario.run_seconds is None or scenario.stages:
            raise UsageError("--find needs the time that a step takes, -r/--run-seconds, and no stages")
        if scenario.groups:
            names = ", ".join(f"{each.name}.users" for each in scenario.groups)
            raise UsageError(
                f"--find: the scenario has groups of users; vary those of one: --sweep ({names})"
            )
        try:
            known = objective.resolve_objective(conditions, scenario, noop=setting.run.noop)
        except ValueError as error:
            raise UsageError(f"--find: {error}") from None
        self._conditions = tuple(dict.fromkeys(known))
        start = scenario.user_count if scenario.rate is None else max(1, round(scenario.rate))
        self._search = LimitSearch(
            start, scenario.run_seconds, most=LARGEST_VALUES[self.variable], tolerance=tolerance
        )
        self._bounded = any(condition.rank is not None for condition in self._conditions)
        self._why_not_higher = ""

    def bench_options(self) -> BenchOptions:
        """Return those of the command line."""
        return self._setting.bench

    def forecast(self) -> str:
        """Return how long it will take, in words."""
        seconds = self._setting.scenario.run_seconds or 0.0
        return f"some {_MIN_TRIALS} to {_USUAL_TRIALS} steps, {_describe_time_needed(seconds, _MIN_TRIALS, _USUAL_TRIALS)}"

    def carry_out(self, runs: StepRuns) -> ExitCode:
        """Search until there is an answer, or none."""
        while (trial := self._search.next()) is not None:
            step, statistics = runs.step(trial.value, trial.seconds)
            findings = tuple(objective.judge_objective(statistics, self._conditions))
            verdict = combine_gate_results(each.verdict for each in findings)
            evidence = [each.evidence for each in findings]
            if step.ended_early is not None:  # too many operations failed
                verdict, evidence = GateResult.FAILED, [FAILS_EVIDENCE for _ in findings]
            self._words.append(_describe_result(verdict, [each.text for each in findings]))
            self._findings.append(findings)
            runs.say(_describe_findings(verdict, findings))
            self._search.record(evidence, no_higher=self._no_higher(runs.steps, verdict))
        return self._code()

    def _code(self) -> ExitCode:
        """Return the exit code of a search that has ended by itself."""
        answer = self._search.answer()
        if not answer.narrow:
            return ExitCode.UNDECIDED
        return ExitCode.OK if answer.value is not None else ExitCode.FAILED

    def _no_higher(self, steps: Sequence[SweepStep], verdict: GateResult) -> bool:
        """Whether a higher value would say nothing of Swift, and why."""
        if verdict is not GateResult.PASSED:
            return False
        why = "the load generator was full" if steps[-1].generator_full else None
        below = [step for step in steps if step.value < steps[-1].value]
        if why is None and below and not self._bounded:
            # Nothing that is asked for would ever end: more users only wait longer.
            why = describe_missing_gain(self.variable, max(below, key=lambda step: step.value), steps[-1])
        self._why_not_higher = why or self._why_not_higher
        return why is not None

    def found(self, runs: StepRuns, why: str) -> Capacity:
        """Return what is known."""
        steps, answer, variable = tuple(runs.steps), self._search.answer(), self.variable
        wanted = " and ".join(condition.text for condition in self._conditions)
        not_judged = len(steps) - len(self._words)
        words = [*self._words, *([f"not judged: {why}"] * not_judged)]
        findings = [*self._findings, *([()] * not_judged)]
        conclusion, result = conclude_search(variable, wanted, answer, why, self._why_not_higher)
        notes = describe_limits(variable, steps) + ([] if self._bounded else describe_short_steps(steps))
        title = f"{self._setting.scenario.name}: {variable.most} at which {wanted}"
        return Capacity(
            *(title, variable, steps, tuple(words), conclusion, result, tuple(notes), tuple(findings)),
            answer=answer,
        )


#: How reports say that an objective holds.
_RESULT_WORDS = {
    GateResult.PASSED: "holds",
    GateResult.FAILED: "does not hold",
    GateResult.UNDECIDED: "undecided",
}


def _describe_result(verdict: GateResult, texts: Sequence[str]) -> str:
    return f"{_RESULT_WORDS[verdict]}: {'; '.join(texts)}"


def _describe_findings(verdict: GateResult, findings: Sequence[objective.ObjectiveFinding]) -> str:
    """Return the result of a step in few words: the figures without the operations that they rest on."""
    measured = [
        f"{each.condition.subject} "
        + ("not measured" if each.value is None else each.condition.spell_measured(each.value))
        for each in findings
    ]
    return _describe_result(verdict, measured)


def _describe_time_taken(seconds: float, forecast: str) -> str:
    """Say how long all took, beside the forecast."""
    return (
        f"took {quantities.format_duration(seconds)} with initial uploads; forecast without them: {forecast}"
    )


def _describe_time_needed(seconds: float, least: int, most: int) -> str:
    """Return how long so many steps take, in words; initial uploads and clean-up come on top."""
    if not seconds:
        return "as long as their operations take"
    few, many = (
        quantities.format_duration(steps * (seconds + _STEP_OVERHEAD_SECONDS)) for steps in (least, most)
    )
    return f"about {few}" if few == many else f"about {few} to {many}"


class _CapacityOutput:
    """Where the report goes: standard output, and files."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        files = report_files.choose_report_files(arguments)
        files.check([], arguments.stats_file)
        self._force: bool = arguments.force
        self._wanted = [*files.wanted]
        if files.on_standard_output is None and not arguments.no_default_report:
            self._wanted.insert(0, ("csv" if arguments.csv else "text", Path("-")))

    def write(self, found: Capacity) -> bool:
        """Write all; log what could not be written, and return whether all was."""
        written = [
            output_file.try_to_write_output(
                path,
                partial(_write_capacity, name, found),
                force=self._force,
                clean=printable.choose_cleaner(name),
            )
            for name, path in self._wanted
        ]
        return all(written)


def _write_capacity(name: str, found: Capacity, out: TextIO) -> None:
    out.writelines(products.make_product_parts(Product.CAPACITY, name, found, output_file.make_view(out)))
