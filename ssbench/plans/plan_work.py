"""Plans of runs with what is said of them: a forecast, a line after each run, a conclusion.

A :class:`PlanWork` has a rule, which says what to run next; :func:`carry_out_work` carries it out.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from ssbench.base.errors import ContainersError, ExitCode, SsbenchError, UsageError, choose_worst_code
from ssbench.base.text_values import format_duration
from ssbench.comparison.family import count_needed_rounds
from ssbench.comparison.run_table import RunTable, make_run_table
from ssbench.document.columns import format_plural
from ssbench.fleet import wire
from ssbench.plans.plan_rules import GridRule
from ssbench.reports.products import Product
from ssbench.run.bench import Bench
from ssbench.run.bench_options import BenchOptions, RunOptions
from ssbench.run.plan import (
    DoneTrial,
    PlanCell,
    PlanEnd,
    PlanRule,
    PlanSettings,
    carry_out_plan,
    describe_time_needed,
)
from ssbench.scenario.model import Scenario
from ssbench.statistics.run_verdict import NOTHING_SENT

_log = logging.getLogger(__name__)

#: What a plan keeps of a run.
_Kept = TypeVar("_Kept")

#: What its report is made of.
_Found = TypeVar("_Found")


@dataclass(frozen=True, slots=True)
class PlanSide:
    """A way to run: the only one of a plan, or one of the two of ``--versus``."""

    scenario: Scenario
    options: RunOptions


@dataclass(frozen=True, slots=True)
class Conclusion(Generic[_Found]):
    """What is reported of a plan."""

    product: Product
    found: _Found | None  # what the product is made of; None: too little was done for a report
    code: ExitCode = ExitCode.OK  # the exit code that follows from it
    why: str = ""  # why the plan ended before its time; empty where it did not
    files: tuple[Path, ...] = ()  # the stat files of its runs
    #: What is kept of each of them, by row and side.
    table: RunTable[Any] = field(default_factory=lambda: RunTable((), {}))


class PlanWork(Generic[_Kept]):
    """A plan with what is said of it."""

    name: str  # what messages call it
    product: Product  # what its report is
    rule: PlanRule[_Kept]  # what makes its runs
    has_uploads_in_time: bool = False  # its forecast has initial uploads in it
    first_room: int = 0  # for how many users local workers have room at first, where any number may come

    def list_users(self) -> list[int]:
        """Return the users of the runs that are to have the same local workers; none: as they come."""
        return []

    def forecast(self) -> str:
        """Return how long it will take, in words."""
        raise NotImplementedError

    def find_shortage(self) -> str:
        """Return why there will be no verdict; empty if there may be one, or none is wanted."""
        return ""

    def say(self, done: Sequence[DoneTrial[_Kept]]) -> None:
        """Log the result of the last run."""
        raise NotImplementedError

    def conclude(self, end: PlanEnd[_Kept], took: str) -> Conclusion[Any]:
        """Return what is known; ``took`` is how long all took beside the forecast."""
        raise NotImplementedError

    def say_files(self, done: Sequence[DoneTrial[_Kept]], program: str) -> None:
        """Log where the results of all runs are; others log commands of a program that use them, too."""
        if done:
            label = f".{done[-1].trial.label}.stat.gz"
            _log.info("Results saved to %s", str(done[-1].path).removesuffix(label) + ".*.stat.gz")


def carry_out_work(
    work: PlanWork[_Kept],
    bench: BenchOptions,
    settings: PlanSettings,
    *,
    program: str = "ssbench-master",
    on_concluded: Callable[[Conclusion[Any]], object] | None = None,
) -> Conclusion[Any]:
    """Carry out the runs of a plan, and return what follows from them.

    ``on_concluded`` is called with that too, also where an error or an interruption between two runs, which
    is raised then, ends the plan. Raises SsbenchError where a run cannot begin, and KeyboardInterrupt.
    ``program`` is how messages call this one.
    """
    check_containers(work.rule.cells)
    if shortage := work.find_shortage():
        _log.warning("%s; changes will be shown without one", shortage)
    end: PlanEnd[_Kept] = PlanEnd()

    def say(done: Sequence[DoneTrial[_Kept]]) -> None:
        work.say(done)
        if settings.on_done is not None:
            settings.on_done(done)

    def conclude() -> Conclusion[Any]:
        work.say_files(end.done, program)
        took = _describe_time_taken(
            time.monotonic() - began,
            f"{'' if work.has_uploads_in_time else 'without them: '}{forecast}",
            len(end.done),
            end.resumed,
        )
        if any(each.trial.cell.options.noop for each in end.done):
            took = f"no-op runs: {NOTHING_SENT}; {took}"
        found = work.conclude(end, took)
        code = choose_worst_code([end.code, found.code])
        files, table = tuple(each.path for each in end.done), tabulate_trials(work.rule, end.done)
        made = replace(found, code=code, why=end.why, files=files, table=table)
        if on_concluded is not None:
            on_concluded(made)
        return made

    with Bench(bench) as opened:
        forecast, began = work.forecast(), time.monotonic()
        uploads = "" if work.has_uploads_in_time else ", besides initial uploads"
        _log.info("%s: %s%s", work.name, forecast, uploads)
        try:
            carry_out_plan(work.rule, opened, replace(settings, on_done=say), end)
        except (SsbenchError, KeyboardInterrupt) as error:
            if end.done or not isinstance(error, ContainersError):  # otherwise there is nothing to tell of
                conclude()
            raise
        return conclude()


def check_containers(cells: Sequence[PlanCell]) -> None:
    """Raise UsageError where ways to run make the same containers with other header fields.

    Containers keep the fields that they have, such as versions, so that all runs would be alike.
    """
    made: dict[object, tuple[PlanCell, object]] = {}
    for cell in cells:
        if cell.options.noop or cell.options.existing is not None:
            continue
        for part in cell.scenario.parts:
            place = cell.options.store, part.container_base, part.policy
            first, headers = made.setdefault(place, (cell, part.container_put_headers))
            if headers != part.container_put_headers:
                raise UsageError(
                    f"container_put_headers: {first.name} and {cell.name} use the same containers, which keep"
                    f" the header fields that they have: give one of them another container_base than"
                    f" {part.container_base}"
                )


def tabulate_trials(rule: PlanRule[_Kept], done: Sequence[DoneTrial[_Kept]]) -> RunTable[_Kept]:
    """Return what is kept of some trials of a rule, by row and side, in the order in which they were made."""
    sides = [*dict.fromkeys(cell.side for cell in rule.cells)]
    placed = ((each.trial.cell, each.kept) for each in done)
    return make_run_table(sides, ((cell.row, sides.index(cell.side), kept) for cell, kept in placed))


def _describe_time_taken(seconds: float, forecast: str, done: int, resumed: int) -> str:
    """Say how long all took, beside the forecast; of a plan that was resumed, for how many runs."""
    runs = f" for {format_plural(done - resumed, 'run')} ({resumed} were there already)" if resumed else ""
    all_ = " of all" if resumed else ""
    took = f"took {format_duration(seconds)} with initial uploads{runs}"
    return f"{took}; forecast{all_} {forecast}"


def fit_bench(
    bench: BenchOptions, users: Sequence[int], policies: Sequence[str | None] = (), *, first_room: int = 0
) -> BenchOptions:
    """Return what runs share that have so many users each and the same local workers; none: any number.

    Then there is room for ``first_room`` users at first.
    """
    most = max(users, default=0)
    return replace(
        bench,
        concurrency=min(-(-most // bench.workers), wire.MAX_JOBS) if most and bench.workers else None,
        first_room=first_room,
        policies=tuple(filter(None, policies)),
    )


class GridWork(PlanWork[_Kept]):
    """What is the same of all works with a grid of runs: users, time, where results are."""

    rule: GridRule[_Kept]

    def __init__(self, rule: GridRule[_Kept], pause: float) -> None:
        self.rule = rule
        self._pause = pause

    def list_users(self) -> list[int]:
        """Return the users of all ways to run."""
        return [cell.scenario.user_count for cell in self.rule.cells]

    def forecast(self) -> str:
        """Return how long it will take, in words."""
        scenarios, count = [cell.scenario for cell in self.rule.cells], self.rule.count
        return f"{format_plural(count, 'run')}, {describe_time_needed(scenarios, count, self._pause)}"


def find_row_shortage(rows: int, rounds: int, what: str, option: str = "--repeat") -> str:
    """Return why two ways in turn will have no verdict on some rows; empty where they may have one."""
    needed = count_needed_rounds(rows)
    if rounds >= needed:
        return ""
    return f"{option} {rounds}: a verdict on {format_plural(rows, what)} needs {needed} rounds or more"
