"""The runs of ``--sweep`` and ``--find``: one for each step, over one bench."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ssbench.base.errors import ExitCode, TooManyErrorsError
from ssbench.comparison.steps import SweepStep, make_step, make_step_scenario
from ssbench.comparison.variables import Variable, Varied
from ssbench.document.units import format_number
from ssbench.results.formats import open_results
from ssbench.results.sink import Goal, Sink
from ssbench.run import Bench, BenchOptions, RunOptions, RunOutcome
from ssbench.run.series import Series
from ssbench.scenario.model import Scenario
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.summary import summarize

if TYPE_CHECKING:
    from ssbench.results.observation import ClusterObserver

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
