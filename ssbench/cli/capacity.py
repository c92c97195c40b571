"""``run-scenario --sweep`` and ``--find``: many runs over one bench, and what they say together."""

from __future__ import annotations

import argparse
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ssbench.capacity import objective
from ssbench.capacity.search import TOLERANCE, Answer, Search, Trial, Verdict
from ssbench.capacity.steps import Step, scenario_with, step_of
from ssbench.capacity.sweep import limits, no_gain, too_short, why_stop
from ssbench.capacity.variables import LARGEST, Sweep, Variable
from ssbench.cli import output_file, report_files, zmq_options
from ssbench.conditions import Condition
from ssbench.errors import ExitCode, SsbenchError, TooManyErrorsError, UsageError
from ssbench.fleet import wire
from ssbench.reports.capacity import FORMATS, Capacity
from ssbench.reports.verdict import Tone, rate
from ssbench.results import Goal, Sink
from ssbench.run import Bench, BenchOptions, RunOptions, RunOutcome
from ssbench.run.series import Series
from ssbench.run_results import open_results
from ssbench.scenario.model import Scenario
from ssbench.statistics import RunStatistics, summarize

if TYPE_CHECKING:
    from ssbench.cluster.observer import Observer

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Setting:
    """What all steps have in common, but for what is varied."""

    scenario: Scenario
    bench: BenchOptions
    run: RunOptions
    observer: AbstractContextManager[Observer | None]
    sinks: Callable[[Scenario, Bench], AbstractContextManager[list[Sink]]]
    goal: Callable[[Scenario], Goal | None]


class _EndedEarlyError(Exception):
    """Ends the steps; ``code`` is the exit code."""

    def __init__(self, why: str, code: ExitCode) -> None:
        super().__init__(why)
        self.code = code


def prepare(arguments: argparse.Namespace) -> None:
    """Check the options that do not go together; raises UsageError."""
    option = "--sweep" if arguments.sweep else "--find"
    single = {
        "--report": arguments.report,
        "--pctile": arguments.pctile,
        "--junit": arguments.junit,
        "--summary-md": arguments.summary_md,
        "--fail-if": arguments.fail_if,
        "--repeat": arguments.repeat,
        "--ab": arguments.ab,
        "--until": arguments.until if arguments.find else None,
    }
    if given := [name for name, value in single.items() if value]:
        raise UsageError(f"{given[0]} is for single runs; leave it out with {option}")
    if arguments.find_within is not None and not arguments.find:
        raise UsageError("--find-within needs --find")
    if arguments.sweep:
        _prepare_sweep(arguments, arguments.sweep)


def _prepare_sweep(arguments: argparse.Namespace, sweep: Sweep) -> None:
    varied = {
        Variable.USERS: ("-u/--user-count", arguments.user_count),
        Variable.RATE: ("--rate", arguments.rate),
        Variable.WORKERS: ("--workers", arguments.workers),
    }
    name, value = varied.get(sweep.variable, ("", None))
    if value is not None:
        raise UsageError(f"--sweep varies what {name} sets; leave out one of them")
    if sweep.variable is Variable.WORKERS:
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
    with setting.observer as observer, Bench(steps.bench_options()) as bench:
        runs = _Runs(setting, steps.variable, bench, observer)
        why, code = "", ExitCode.OK
        try:
            code = steps.carry_out(runs)
        except _EndedEarlyError as error:
            why, code = str(error), error.code
        except (SsbenchError, KeyboardInterrupt) as error:
            output.write(steps.found(runs, str(error) or "interrupted"))
            raise
        runs.say_files()
        written = output.write(steps.found(runs, why))
        return code if written or code is not ExitCode.OK else ExitCode.FAILED


class _Runs:
    """Carries out the steps, and keeps what came of them."""

    def __init__(self, setting: Setting, variable: Variable, bench: Bench, observer: Observer | None) -> None:
        self.steps: list[Step] = []
        self._setting = setting
        self._variable = variable
        self._bench = bench
        self._observer = observer
        self._series = Series(bench, setting.run, variable.value)

    def step(self, value: int, seconds: float | None = None) -> tuple[Step, RunStatistics]:
        """Carry out one; raises _EndedEarlyError after one that is not to be judged."""
        setting, variable = self._setting, self._variable
        scenario = scenario_with(setting.scenario, variable, value, seconds)
        if variable is Variable.WORKERS:
            self._bench.use_local_workers(value)
        with setting.sinks(scenario, self._bench) as sinks, _quiet(after_first=bool(self.steps)):
            outcome = self._series.run(
                scenario, str(value), sinks=sinks, observer=self._observer, goal=setting.goal(scenario)
            )
        if outcome.path is None:
            raise _EndedEarlyError("interrupted", ExitCode.INTERRUPTED)
        statistics = summarize(open_results(outcome.path))
        step = step_of(
            value,
            statistics,
            room=self._bench.capacity(),
            file=str(outcome.path),
            ended_early=outcome.ended_early,
        )
        self.steps.append(step)
        try:
            _go_on(outcome)
        except _EndedEarlyError:
            self.say("")
            raise
        return step, statistics

    def say(self, verdict: str) -> None:
        """Log the result of the last step in one line."""
        step = self.steps[-1]
        _log.info(
            "Step %d: %s, %.0f s: %s ops/s, %d failed%s",
            len(self.steps),
            self._variable.words(step.value),
            step.seconds,
            rate(step.rate),
            step.failed,
            f"; {verdict}" if verdict else "",
        )

    def say_files(self) -> None:
        """Log where the results of all steps are."""
        if not self.steps:
            return
        last, kind = self.steps[-1].file, self._variable.value
        pattern = re.sub(rf"\.{kind}-\d+(\.\d+)?(\.stat\.gz)\Z", rf".{kind}-*\2", last, flags=re.ASCII)
        _log.info("Results saved to %s", last if len(self.steps) == 1 else pattern)


@contextmanager
def _quiet(*, after_first: bool) -> Iterator[None]:
    """Leave out the messages of each run on its phases, as the first step had them; warnings and -v stay."""
    loggers = [logging.getLogger(f"ssbench.{each}") for each in ("run", "swift", "fleet")]
    before = [each.level for each in loggers]
    quiet = after_first and not _log.isEnabledFor(logging.DEBUG)
    try:
        for each in loggers if quiet else ():
            each.setLevel(logging.WARNING)
        yield
    finally:
        for each, level in zip(loggers, before, strict=True):
            each.setLevel(level)


def _go_on(outcome: RunOutcome) -> None:
    """Raise _EndedEarlyError where no step can follow this one."""
    if outcome.error is not None and not isinstance(outcome.error, TooManyErrorsError):
        raise _EndedEarlyError(str(outcome.error), outcome.error.exit_code)
    if outcome.interrupted:
        raise _EndedEarlyError("interrupted", ExitCode.INTERRUPTED)


class _Sweeping:
    """The steps of ``--sweep``."""

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
        if not options.workers or self.variable is not Variable.USERS:
            return options
        room = -(-self._sweep.values[-1] // options.workers)
        return replace(options, concurrency=min(room, wire.MAX_JOBS))

    def carry_out(self, runs: _Runs) -> ExitCode:
        """Go through the values."""
        for value in self._sweep.values:
            runs.step(value)
            runs.say("")
            self._ended = why_stop(self.variable, runs.steps)
            if self._ended is not None:
                break
        return ExitCode.OK

    def found(self, runs: _Runs, why: str) -> Capacity:
        """Return what is known."""
        steps = tuple(runs.steps)
        if why:
            conclusion, tone = f"The sweep ended early: {why}.", Tone.DOUBTFUL
        elif self._ended is not None:
            conclusion, tone = f"The sweep ended: {self._ended}.", Tone.GOOD
        else:
            conclusion, tone = "The sweep went through all of its values.", Tone.GOOD
        if steps:
            best = max(steps, key=lambda step: step.rate)
            conclusion += (
                f" Most operations a second: {rate(best.rate)}, at {self.variable.words(best.value)}."
            )
        notes = limits(self.variable, steps) + (too_short(steps) if self.variable.is_load else [])
        if notes:
            tone = Tone.DOUBTFUL
        title = f"{self._setting.scenario.name}: sweep over {self.variable.value}"
        return Capacity(title, self.variable, steps, (), conclusion, tone, tuple(notes))


class _Finding:
    """The steps of ``--find``."""

    def __init__(self, setting: Setting, conditions: Sequence[Condition], tolerance: float) -> None:
        scenario = setting.scenario
        self.variable = Variable.RATE if scenario.rate is not None else Variable.USERS
        self._setting = setting
        self._conditions = tuple(dict.fromkeys(conditions))
        self._words: list[str] = []
        self._findings: list[tuple[objective.Finding, ...]] = []
        if scenario.run_seconds is None or scenario.stages:
            raise UsageError("--find needs the time that a step takes, -r/--run-seconds, and no stages")
        try:
            objective.check(self._conditions, scenario, noop=setting.run.noop)
        except ValueError as error:
            raise UsageError(f"--find: {error}") from None
        start = scenario.user_count if scenario.rate is None else max(1, round(scenario.rate))
        self._search = Search(start, scenario.run_seconds, most=LARGEST[self.variable], tolerance=tolerance)
        self._bounded = any(condition.rank is not None for condition in self._conditions)
        self._why_not_higher = ""
        self._confirmed_by = 0.0

    def bench_options(self) -> BenchOptions:
        """Return those of the command line."""
        return self._setting.bench

    def carry_out(self, runs: _Runs) -> ExitCode:
        """Search until there is an answer, or none."""
        _log.info("Searching: some 10 to 20 steps of %g s or more", self._setting.scenario.run_seconds)
        while (trial := self._search.next()) is not None:
            step, statistics = runs.step(trial.value, trial.seconds)
            findings = tuple(objective.judge(statistics, self._conditions))
            verdict = objective.together(findings)
            if step.ended_early is not None:
                verdict = Verdict.FAILED  # too many operations failed
            self._words.append(_words(trial, verdict, [each.text for each in findings]))
            self._findings.append(findings)
            runs.say(_brief(trial, verdict, findings))
            if trial.confirms and verdict is Verdict.PASSED:
                self._confirmed_by = trial.seconds
            self._search.record(verdict, no_higher=self._no_higher(runs.steps, verdict))
        return ExitCode.OK if self._search.answer().value is not None else ExitCode.FAILED

    def _no_higher(self, steps: Sequence[Step], verdict: Verdict) -> bool:
        """Whether a higher value would say nothing of Swift, and why."""
        if verdict is not Verdict.PASSED:
            return False
        why = "the load generator was full" if steps[-1].generator_full else None
        below = [step for step in steps if step.value < steps[-1].value]
        if why is None and below and not self._bounded:
            # Nothing that is asked for would ever end: more users only wait longer.
            why = no_gain(self.variable, max(below, key=lambda step: step.value), steps[-1])
        self._why_not_higher = why or self._why_not_higher
        return why is not None

    def found(self, runs: _Runs, why: str) -> Capacity:
        """Return what is known."""
        steps, answer, variable = tuple(runs.steps), self._search.answer(), self.variable
        wanted = " and ".join(condition.text for condition in self._conditions)
        not_judged = len(steps) - len(self._words)
        words = [*self._words, *([f"not judged: {why}"] * not_judged)]
        findings = [*self._findings, *([()] * not_judged)]
        tone = Tone.BAD if answer.value is None else Tone.DOUBTFUL if why or answer.at_least else Tone.GOOD
        conclusion = self._conclusion(wanted, answer, why)
        notes = limits(variable, steps) + ([] if self._bounded else too_short(steps))
        title = f"{self._setting.scenario.name}: {variable.most} at which {wanted}"
        return Capacity(title, variable, steps, tuple(words), conclusion, tone, tuple(notes), tuple(findings))

    def _conclusion(self, wanted: str, answer: Answer, why: str) -> str:
        words, passed = self.variable.words, self._search.passed
        undecided = ""
        if answer.undecided:
            values = ", ".join(map(str, answer.undecided))
            undecided = f" Not decided at {values} {self.variable.unit}: give the steps more time (-r)."
        if answer.value is not None and not why:
            above = (
                f" It does not hold, or is not decided, at {words(answer.failed)}." if answer.failed else ""
            )
            more = f" Nothing higher was tried: {self._why_not_higher or 'the range ended'}."
            return (
                f"{wanted}: holds up to {words(answer.value)}, confirmed by a step of"
                f" {self._confirmed_by:.0f} s.{more if answer.at_least else above}{undecided}"
            )
        so_far = f"held at {words(passed)}, which is not confirmed" if passed else "held nowhere"
        if why:
            return f"{wanted}: the search ended early ({why}); until then it {so_far}.{undecided}"
        return f"{wanted}: it {so_far}.{undecided}"


def _words(trial: Trial, verdict: Verdict, texts: Sequence[str]) -> str:
    reasons = (("to confirm", trial.confirms), ("tried again", trial.again))
    why = ", ".join(words for words, holds in reasons if holds)
    return f"{verdict.value}{f' ({why})' if why else ''}: {'; '.join(texts)}"


def _brief(trial: Trial, verdict: Verdict, findings: Sequence[objective.Finding]) -> str:
    """Return the result of a step in few words: the figures without the operations that they rest on."""
    measured = [
        f"{each.condition.subject} "
        + ("not measured" if each.value is None else each.condition.spell_measured(each.value))
        for each in findings
    ]
    return _words(trial, verdict, measured)


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
            output_file.attempt(path, partial(self._write, name, path, found)) for name, path in self._wanted
        ]
        return all(written)

    def _write(self, name: str, path: Path, found: Capacity) -> None:
        with output_file.writing(path, force=self._force) as out:
            out.write(FORMATS[name](found, out.encoding or "utf-8"))
        if not output_file.is_standard_output(path):
            _log.info("Wrote %s", path)
