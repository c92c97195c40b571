"""``run-scenario --sweep`` and ``--find``: a run for each step, over one bench, and what all steps say."""

from __future__ import annotations

import argparse
import logging
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from ssbench.base import printable, text_values
from ssbench.base.errors import ExitCode, SsbenchError, TooManyErrorsError, UsageError
from ssbench.cli import file_options, output_file, settings
from ssbench.cli import options as cli_options
from ssbench.comparison import search
from ssbench.comparison.capacity_report import Capacity, conclude_search, conclude_sweep
from ssbench.comparison.search import FAILS_EVIDENCE, LIMIT_TOLERANCE, LimitSearch
from ssbench.comparison.sweep import (
    SweepStep,
    describe_limits,
    describe_missing_gain,
    describe_short_steps,
    explain_stop,
    make_step,
    make_step_scenario,
)
from ssbench.comparison.sweep_variables import LARGEST_VALUES, GroupVariable, Sweep, Variable, Varied
from ssbench.document.columns import format_plural
from ssbench.document.gates import GateResult, choose_worst_code, combine_gate_results
from ssbench.document.units import format_number
from ssbench.fleet import wire
from ssbench.reports import products
from ssbench.reports.products import Product
from ssbench.results.block import Goal, Sink
from ssbench.results.reading import open_results
from ssbench.run.bench import Bench
from ssbench.run.benchmark_run import RunOutcome
from ssbench.run.options import BenchOptions, RunOptions
from ssbench.run.series import Series
from ssbench.scenario.conditions import Condition
from ssbench.scenario.model import Scenario
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.summary import summarize

if TYPE_CHECKING:
    from ssbench.results.cluster_observation import ClusterObserver

#: The messages are those of one feature.
_capacity_log = logging.getLogger("ssbench.cli.capacity")


@dataclass(frozen=True, slots=True)
class StepSetting:
    """What all steps have in common, but for what is varied."""

    scenario: Scenario
    bench: BenchOptions
    run: RunOptions
    observer: ClusterObserver | None
    sinks: Callable[[Scenario, Bench], AbstractContextManager[list[Sink]]]
    goal: Callable[[Scenario], Goal | None]


class EndedEarlyError(Exception):
    """Ends the steps; ``code`` is the exit code."""

    def __init__(self, why: str, code: ExitCode) -> None:
        super().__init__(why)
        self.code = code


class StepRuns:
    """Carries out the steps, and keeps their figures."""

    def __init__(self, setting: StepSetting, variable: Varied, bench: Bench) -> None:
        self.steps: list[SweepStep] = []
        #: Whether something besides the operations of a step failed, such as its clean-up.
        self.trouble = False
        self._setting = setting
        self._variable = variable
        self._bench = bench
        self._series = Series(bench, setting.run, variable.value)

    def step(self, value: int, seconds: float | None = None) -> tuple[SweepStep, RunStatistics]:
        """Carry out one; raises EndedEarlyError after one that is not to be judged."""
        setting, variable = self._setting, self._variable
        scenario = make_step_scenario(setting.scenario, variable, value, seconds)
        if variable is Variable.WORKERS:
            self._bench.use_local_workers(value)
        with setting.sinks(scenario, self._bench) as sinks, _silence_steps(after_first=bool(self.steps)):
            outcome = self._series.run(
                scenario, str(value), sinks=sinks, observer=setting.observer, goal=setting.goal(scenario)
            )
        self.trouble |= outcome.trouble
        if outcome.path is None:
            raise EndedEarlyError("interrupted", ExitCode.INTERRUPTED)
        statistics = summarize(open_results(outcome.path))
        step = make_step(
            value,
            statistics,
            room=self._bench.capacity(),
            file=str(outcome.path),
            ended_early=outcome.ended_early,
        )
        self.steps.append(step)
        try:
            _check_can_go_on(outcome)
        except EndedEarlyError:
            self.say("")
            raise
        return step, statistics

    def say(self, verdict: str) -> None:
        """Log the result of the last step in one line."""
        step = self.steps[-1]
        _capacity_log.info(
            "Step %d: %s, %.0f s: %s ops/s, %d failed%s",
            len(self.steps),
            self._variable.words(step.value),
            step.seconds,
            format_number(step.rate),
            step.failed,
            f"; {verdict}" if verdict else "",
        )

    def say_files(self) -> None:
        """Log where the results of all steps are."""
        if not self.steps:
            return
        last, kind = self.steps[-1].file, self._variable.value
        pattern = re.sub(rf"\.{kind}-\d+(\.\d+)?(\.stat\.gz)\Z", rf".{kind}-*\2", last, flags=re.ASCII)
        _capacity_log.info("Results saved to %s", last if len(self.steps) == 1 else pattern)


@contextmanager
def _silence_steps(*, after_first: bool) -> Iterator[None]:
    """Leave out the messages of each run on its phases, as the first step had them; warnings and -v stay."""
    loggers = [logging.getLogger(f"ssbench.{each}") for each in ("run", "store", "fleet")]
    before = [each.level for each in loggers]
    quiet = after_first and not _capacity_log.isEnabledFor(logging.DEBUG)
    try:
        for each in loggers if quiet else ():
            each.setLevel(logging.WARNING)
        yield
    finally:
        for each, level in zip(loggers, before, strict=True):
            each.setLevel(level)


def _check_can_go_on(outcome: RunOutcome) -> None:
    """Raise EndedEarlyError where no step can follow this one."""
    if outcome.error is not None and not isinstance(outcome.error, TooManyErrorsError):
        raise EndedEarlyError(str(outcome.error), outcome.error.exit_code)
    if outcome.interrupted:
        raise EndedEarlyError("interrupted", ExitCode.INTERRUPTED)


# -- The two options -------------------------------------------------------------------------------


_log = logging.getLogger(__name__)

#: How many steps a search takes: rarely fewer, rarely more.
_MIN_TRIALS, _USUAL_TRIALS = 5, 12

#: Seconds that a step takes beside its time, for its drain and the deletion of what it created.
_STEP_OVERHEAD_SECONDS = 1.0


def check_capacity_options(arguments: argparse.Namespace) -> None:
    """Check the options that do not go together; raises UsageError."""
    option = "--sweep" if arguments.sweep else "--find"
    single = ["--report", "--pctile", "--fail-if", "--repeat", "--versus", "--ab"]
    settings.refuse_options(
        arguments, f"{option} makes many runs", *single, *(["--until"] if arguments.find else [])
    )
    wanted = [name for name, _ in file_options.choose_report_files(arguments).wanted]
    lacking = [name for name in wanted if not products.has_format(Product.CAPACITY, name)]
    settings.ignore_options(arguments, f"{option} has no such report", *map(products.format_option, lacking))
    wanted = [name for name, _ in file_options.choose_report_files(arguments).wanted]
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
        settings.ignore_options(arguments, "--sweep workers= starts local workers", "--expect-workers")
        if cli_options.has_zmq_options(arguments) or arguments.expect_workers:
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
        return (
            f"{format_plural(count, 'step')},"
            f" {_describe_time_needed(self._setting.scenario.run_seconds or 0.0, count, count)}"
        )

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
        self._findings: list[tuple[search.ObjectiveFinding, ...]] = []
        if scenario.run_seconds is None or scenario.stages:
            raise UsageError("--find needs -r/--run-seconds, the time of a step, and no stages")
        if scenario.groups:
            names = ", ".join(f"{each.name}.users" for each in scenario.groups)
            raise UsageError(
                f"--find: the scenario has groups of users; vary those of one: --sweep ({names})"
            )
        try:
            known = search.resolve_objective(conditions, scenario, noop=setting.run.noop)
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
        return (
            f"some {_MIN_TRIALS} to {_USUAL_TRIALS} steps,"
            f" {_describe_time_needed(seconds, _MIN_TRIALS, _USUAL_TRIALS)}"
        )

    def carry_out(self, runs: StepRuns) -> ExitCode:
        """Search until there is an answer, or none."""
        while (trial := self._search.next()) is not None:
            step, statistics = runs.step(trial.value, trial.seconds)
            findings = tuple(search.judge_objective(statistics, self._conditions))
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


def _describe_findings(verdict: GateResult, findings: Sequence[search.ObjectiveFinding]) -> str:
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
        f"took {text_values.format_duration(seconds)} with initial uploads; forecast without them: {forecast}"
    )


def _describe_time_needed(seconds: float, least: int, most: int) -> str:
    """Return how long so many steps take, in words; initial uploads and clean-up come on top."""
    if not seconds:
        return "as long as their operations take"
    few, many = (
        text_values.format_duration(steps * (seconds + _STEP_OVERHEAD_SECONDS)) for steps in (least, most)
    )
    return f"about {few}" if few == many else f"about {few} to {many}"


class _CapacityOutput:
    """Where the report goes: standard output, and files."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        files = file_options.choose_report_files(arguments)
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
