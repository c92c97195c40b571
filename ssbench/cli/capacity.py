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
from ssbench.cli.capacity_runs import EndedEarlyError, Runs, Setting
from ssbench.comparison import objective
from ssbench.comparison.conclusion import Capacity, of_search, of_sweep
from ssbench.comparison.limit import FAILS
from ssbench.comparison.search import TOLERANCE, Search
from ssbench.comparison.steps import Step, scenario_with
from ssbench.comparison.sweep import limits, no_gain, too_short, why_stop
from ssbench.comparison.variables import LARGEST, OfGroup, Sweep, Variable, Varied
from ssbench.document.columns import plural
from ssbench.document.gates import Result, worst, worst_result
from ssbench.fleet import wire
from ssbench.reports import products
from ssbench.reports.products import Product
from ssbench.run import Bench, BenchOptions
from ssbench.scenario.conditions import Condition

_log = logging.getLogger(__name__)

#: How many steps a search takes: rarely fewer, rarely more.
_LEAST_TRIALS, _USUAL_TRIALS = 5, 12

#: Seconds that a step takes beside its time, for its drain and the deletion of what it created.
_STEP_OVERHEAD = 1.0


def prepare(arguments: argparse.Namespace) -> None:
    """Check the options that do not go together; raises UsageError."""
    option = "--sweep" if arguments.sweep else "--find"
    single = ["--report", "--pctile", "--fail-if", "--repeat", "--versus", "--ab"]
    unfit.refuse(arguments, f"{option} makes many runs", *single, *(["--until"] if arguments.find else []))
    wanted = [name for name, _ in report_files.chosen(arguments).wanted]
    lacking = [name for name in wanted if not products.has(Product.CAPACITY, name)]
    unfit.forgo(arguments, f"{option} has no such report", *map(products.option, lacking))
    wanted = [name for name, _ in report_files.chosen(arguments).wanted]
    products.check(Product.CAPACITY, wanted, option)
    if arguments.sweep:
        _prepare_sweep(arguments, arguments.sweep)


def _prepare_sweep(arguments: argparse.Namespace, sweep: Sweep) -> None:
    varied: dict[Varied, tuple[str, str]] = {
        Variable.USERS: ("-u/--user-count", "user_count"),
        Variable.RATE: ("--rate", "rate"),
        Variable.WORKERS: ("--workers", "workers"),
    }
    name, field = varied.get(sweep.variable, ("", ""))
    if field in arguments.given:  # the values of the sweep win over one of a file or a variable
        raise UsageError(f"--sweep varies what {name} sets; leave out one of them")
    if sweep.variable is Variable.WORKERS:
        unfit.forgo(arguments, "--sweep workers= starts local workers", "--expect-workers")
        if zmq_options.any_given(arguments) or arguments.expect_workers:
            raise UsageError(
                "--sweep workers= starts local workers; leave out --expect-workers and the options for others"
            )
        arguments.workers = sweep.values[0]


def run(arguments: argparse.Namespace, setting: Setting) -> ExitCode:
    """Carry out all steps and report on them; raises SsbenchError where one cannot begin."""
    output = _Output(arguments)
    steps: _Sweeping | _Finding
    if arguments.sweep:
        steps = _Sweeping(setting, arguments.sweep)
    else:
        steps = _Finding(setting, arguments.find, arguments.find_within or TOLERANCE)
    with Bench(steps.bench_options()) as bench:
        runs = Runs(setting, steps.variable, bench)
        why, code = "", ExitCode.OK
        forecast, began = steps.forecast(), time.monotonic()
        _log.info("%s: %s, besides initial uploads", steps.name, forecast)
        try:
            code = steps.carry_out(runs)
        except EndedEarlyError as error:
            why, code = str(error), error.code
        except (SsbenchError, KeyboardInterrupt) as error:
            code = error.exit_code if isinstance(error, SsbenchError) else ExitCode.INTERRUPTED
            took = _took(time.monotonic() - began, forecast)
            output.write(replace(steps.found(runs, str(error) or "interrupted"), exit_code=code, took=took))
            raise
        if runs.trouble:
            code = worst([code, ExitCode.FAILED])
        runs.say_files()
        took = _took(time.monotonic() - began, forecast)
        written = output.write(replace(steps.found(runs, why), exit_code=code, took=took))
        return code if written or code is not ExitCode.OK else ExitCode.FAILED


class _Sweeping:
    """The steps of ``--sweep``."""

    name = "Sweep"

    def __init__(self, setting: Setting, sweep: Sweep) -> None:
        self.variable = sweep.variable
        self._setting = setting
        self._sweep = sweep
        self._ended: str | None = None
        for value in sweep.values:  # so that a wrong one is reported before the first run
            setting.goal(scenario_with(setting.scenario, sweep.variable, value))

    def bench_options(self) -> BenchOptions:
        """Return options of workers that have room for the most users, so that all steps have the same."""
        options = self._setting.bench
        varied = self.variable.variable if isinstance(self.variable, OfGroup) else self.variable
        if not options.workers or varied is not Variable.USERS:
            return options
        most = scenario_with(self._setting.scenario, self.variable, self._sweep.values[-1])
        room = -(-most.user_count // options.workers)
        return replace(options, concurrency=min(room, wire.MAX_JOBS))

    def forecast(self) -> str:
        """Return how long it will take, in words."""
        count = len(self._sweep.values)
        return f"{plural(count, 'step')}, {_span(self._setting.scenario.run_seconds or 0.0, count, count)}"

    def carry_out(self, runs: Runs) -> ExitCode:
        """Go through the values."""
        for value in self._sweep.values:
            runs.step(value)
            runs.say("")
            self._ended = why_stop(self.variable, runs.steps)
            if self._ended is not None:
                break
        # A run by itself in which no operation succeeds has failed, too.
        return ExitCode.OK if all(step.count for step in runs.steps) else ExitCode.FAILED

    def found(self, runs: Runs, why: str) -> Capacity:
        """Return what is known."""
        return of_sweep(self._setting.scenario.name, self.variable, runs.steps, self._ended, why)


class _Finding:
    """The steps of ``--find``."""

    name = "Search"

    def __init__(self, setting: Setting, conditions: Sequence[Condition], tolerance: float) -> None:
        scenario = setting.scenario
        self.variable = Variable.RATE if scenario.rate is not None else Variable.USERS
        self._setting = setting
        self._words: list[str] = []
        self._findings: list[tuple[objective.Finding, ...]] = []
        if scenario.run_seconds is None or scenario.stages:
            raise UsageError("--find needs the time that a step takes, -r/--run-seconds, and no stages")
        if scenario.groups:
            names = ", ".join(f"{each.name}.users" for each in scenario.groups)
            raise UsageError(
                f"--find: the scenario has groups of users; vary those of one: --sweep ({names})"
            )
        try:
            known = objective.of_scenario(conditions, scenario, noop=setting.run.noop)
        except ValueError as error:
            raise UsageError(f"--find: {error}") from None
        self._conditions = tuple(dict.fromkeys(known))
        start = scenario.user_count if scenario.rate is None else max(1, round(scenario.rate))
        self._search = Search(start, scenario.run_seconds, most=LARGEST[self.variable], tolerance=tolerance)
        self._bounded = any(condition.rank is not None for condition in self._conditions)
        self._why_not_higher = ""

    def bench_options(self) -> BenchOptions:
        """Return those of the command line."""
        return self._setting.bench

    def forecast(self) -> str:
        """Return how long it will take, in words."""
        seconds = self._setting.scenario.run_seconds or 0.0
        return (
            f"some {_LEAST_TRIALS} to {_USUAL_TRIALS} steps, {_span(seconds, _LEAST_TRIALS, _USUAL_TRIALS)}"
        )

    def carry_out(self, runs: Runs) -> ExitCode:
        """Search until there is an answer, or none."""
        while (trial := self._search.next()) is not None:
            step, statistics = runs.step(trial.value, trial.seconds)
            findings = tuple(objective.judge(statistics, self._conditions))
            verdict = worst_result(each.verdict for each in findings)
            evidence = [each.evidence for each in findings]
            if step.ended_early is not None:  # too many operations failed
                verdict, evidence = Result.FAILED, [FAILS for _ in findings]
            self._words.append(_words(verdict, [each.text for each in findings]))
            self._findings.append(findings)
            runs.say(_brief(verdict, findings))
            self._search.record(evidence, no_higher=self._no_higher(runs.steps, verdict))
        return self._code()

    def _code(self) -> ExitCode:
        """Return the exit code of a search that has ended by itself."""
        answer = self._search.answer()
        if not answer.narrow:
            return ExitCode.UNDECIDED
        return ExitCode.OK if answer.value is not None else ExitCode.FAILED

    def _no_higher(self, steps: Sequence[Step], verdict: Result) -> bool:
        """Whether a higher value would say nothing of Swift, and why."""
        if verdict is not Result.PASSED:
            return False
        why = "the load generator was full" if steps[-1].generator_full else None
        below = [step for step in steps if step.value < steps[-1].value]
        if why is None and below and not self._bounded:
            # Nothing that is asked for would ever end: more users only wait longer.
            why = no_gain(self.variable, max(below, key=lambda step: step.value), steps[-1])
        self._why_not_higher = why or self._why_not_higher
        return why is not None

    def found(self, runs: Runs, why: str) -> Capacity:
        """Return what is known."""
        steps, answer, variable = tuple(runs.steps), self._search.answer(), self.variable
        wanted = " and ".join(condition.text for condition in self._conditions)
        not_judged = len(steps) - len(self._words)
        words = [*self._words, *([f"not judged: {why}"] * not_judged)]
        findings = [*self._findings, *([()] * not_judged)]
        conclusion, result = of_search(variable, wanted, answer, why, self._why_not_higher)
        notes = limits(variable, steps) + ([] if self._bounded else too_short(steps))
        title = f"{self._setting.scenario.name}: {variable.most} at which {wanted}"
        return Capacity(
            *(title, variable, steps, tuple(words), conclusion, result, tuple(notes), tuple(findings)),
            answer=answer,
        )


#: How reports say that an objective holds.
_HOLDS = {Result.PASSED: "holds", Result.FAILED: "does not hold", Result.UNDECIDED: "undecided"}


def _words(verdict: Result, texts: Sequence[str]) -> str:
    return f"{_HOLDS[verdict]}: {'; '.join(texts)}"


def _brief(verdict: Result, findings: Sequence[objective.Finding]) -> str:
    """Return the result of a step in few words: the figures without the operations that they rest on."""
    measured = [
        f"{each.condition.subject} "
        + ("not measured" if each.value is None else each.condition.spell_measured(each.value))
        for each in findings
    ]
    return _words(verdict, measured)


def _took(seconds: float, forecast: str) -> str:
    """Say how long all took, beside the forecast."""
    return f"took {quantities.duration(seconds)} with initial uploads; forecast without them: {forecast}"


def _span(seconds: float, least: int, most: int) -> str:
    """Return how long so many steps take, in words; initial uploads and clean-up come on top."""
    if not seconds:
        return "as long as their operations take"
    few, many = (quantities.duration(steps * (seconds + _STEP_OVERHEAD)) for steps in (least, most))
    return f"about {few}" if few == many else f"about {few} to {many}"


class _Output:
    """Where the report goes: standard output, and files."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        files = report_files.chosen(arguments)
        files.check([], arguments.stats_file)
        self._force: bool = arguments.force
        self._wanted = [*files.wanted]
        if files.on_standard_output is None and not arguments.no_default_report:
            self._wanted.insert(0, ("csv" if arguments.csv else "text", Path("-")))

    def write(self, found: Capacity) -> bool:
        """Write all; log what could not be written, and return whether all was."""
        written = [
            output_file.attempt(
                path, partial(_write, name, found), force=self._force, clean=printable.of(name)
            )
            for name, path in self._wanted
        ]
        return all(written)


def _write(name: str, found: Capacity, out: TextIO) -> None:
    out.writelines(products.parts(Product.CAPACITY, name, found, output_file.view(out)))
