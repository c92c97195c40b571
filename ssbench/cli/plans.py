"""``run-scenario --repeat``, ``--versus``, ``--sweep`` and ``--find``: options to a plan, and its report.

A :class:`PlanWork` is a plan with what is said of it: the rule, the forecast, a line after each run, and what
is concluded of all runs. :func:`run_plan` carries it out over one bench and writes the report.
"""

from __future__ import annotations

import logging
import math
import re
import shlex
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Protocol, TextIO, TypeVar
from urllib.parse import quote

from ssbench.base import printable
from ssbench.base.errors import (
    ExitCode,
    GateResult,
    SsbenchError,
    TooManyErrorsError,
    UsageError,
    choose_worst_code,
)
from ssbench.base.text_values import format_duration
from ssbench.cli import option_table, output_file, run_report
from ssbench.cli import options as cli_options
from ssbench.cli.asked import get_value, read_more
from ssbench.cli.options import parse_label
from ssbench.cli.own_program import quote_own_command
from ssbench.cli.parser import Parser
from ssbench.comparison import search
from ssbench.comparison.capacity_report import (
    Capacity,
    PhaseCapacities,
    compare_sweeps,
    conclude_search,
    conclude_sweep,
)
from ssbench.comparison.change import MIN_RUNS_FOR_WORD, NOISE_SHARE
from ssbench.comparison.compare import compare_runs
from ssbench.comparison.equal_runs import MIN_EQUAL_RUNS, EqualRun, make_equal_run, measure_noise
from ssbench.comparison.family import count_needed_rounds
from ssbench.comparison.noise_report import judge_noise
from ssbench.comparison.plan_rules import ChainRule, GridRule, SearchRule, StepResult, SweepRule, SweptSide
from ssbench.comparison.run_figures import ALL_KEY, RunFigures, make_run_figures
from ssbench.comparison.search import LIMIT_TOLERANCE, LimitSearch
from ssbench.comparison.sides import SidedRun, compare_sided, make_sided_run
from ssbench.comparison.suite_report import (
    SuiteFindings,
    SuiteRow,
    SuiteRun,
    compare_suites,
    judge_suite,
    make_suite_run,
)
from ssbench.comparison.sweep import describe_limits, describe_lost, describe_short_steps, make_step_scenario
from ssbench.comparison.sweep_variables import LARGEST_VALUES, GroupVariable, Sweep, Variable, Varied
from ssbench.document.columns import format_plural
from ssbench.document.units import format_change_size, format_latency, format_number
from ssbench.reports import products
from ssbench.reports.products import Product
from ssbench.reports.writing import ReportOptions, make_run_report_parts
from ssbench.results.reading import open_results
from ssbench.run.bench import Bench
from ssbench.run.options import BenchOptions, RunOptions
from ssbench.run.plan import (
    RUN_OVERHEAD_SECONDS,
    DoneTrial,
    PlanCell,
    PlanEnd,
    PlanRule,
    PlanSettings,
    bound_run_seconds,
    carry_out_plan,
    describe_time_needed,
)
from ssbench.scenario.conditions import Condition
from ssbench.scenario.model import Scenario
from ssbench.scenario.suite_file import Suite, list_container_bases
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.run_verdict import RunVerdict, verdict_of
from ssbench.statistics.summary import summarize

if TYPE_CHECKING:
    from ssbench.cli.option_table import NoiseAsked, RunAsked, RunScenarioAsked

_log = logging.getLogger(__name__)

#: What a plan keeps of a run.
_Kept = TypeVar("_Kept")

#: What is kept of a run that is repeated.
_Reduced = TypeVar("_Reduced")


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What is reported of a plan."""

    product: Product
    found: Any  # what the product is made of; None: too little was done for a report
    code: ExitCode = ExitCode.OK  # the exit code that follows from it, besides how the runs ended


class PlanWork(Protocol[_Kept]):
    """A plan with what is said of it."""

    @property
    def name(self) -> str:
        """What messages call it."""

    @property
    def product(self) -> Product:
        """What its report is."""

    @property
    def rule(self) -> PlanRule[_Kept]:
        """What makes its runs."""

    def list_users(self) -> list[int]:
        """Return the users of the runs that are to have the same local workers; none: as they come."""

    def forecast(self) -> str:
        """Return how long it will take, in words."""

    def find_shortage(self) -> str:
        """Return why there will be no verdict; empty if there may be one, or none is wanted."""

    def say(self, done: Sequence[DoneTrial[_Kept]]) -> None:
        """Log the result of the last run."""

    def conclude(self, end: PlanEnd[_Kept], took: str) -> Conclusion:
        """Return what is known; ``took`` is how long all took beside the forecast."""

    def say_files(self, done: Sequence[DoneTrial[_Kept]]) -> None:
        """Log where the results of all runs are."""


def run_plan(asked: RunAsked, work: PlanWork[_Kept], bench: BenchOptions, plan: PlanSettings) -> ExitCode:
    """Carry out a plan and report on it; raises SsbenchError where a run cannot begin."""
    output = PlanOutput(asked, work.product)
    plan = replace(plan, on_done=work.say, resumes=asked.resume)
    end: PlanEnd[_Kept] = PlanEnd()
    if shortage := work.find_shortage():
        _log.warning("%s; changes will be shown without one", shortage)
    with Bench(bench) as opened:
        forecast, began = work.forecast(), time.monotonic()
        _log.info("%s: %s, besides initial uploads", work.name, forecast)

        def report() -> ExitCode:
            took = _describe_time_taken(time.monotonic() - began, forecast, len(end.done), end.resumed)
            found = work.conclude(end, took)
            code = choose_worst_code([end.code, found.code])
            written = found.found is None or output.try_to_write(found)
            return code if written else choose_worst_code([code, ExitCode.FAILED])

        try:
            carry_out_plan(work.rule, opened, plan, end)
        except (SsbenchError, KeyboardInterrupt):
            work.say_files(end.done)
            report()
            raise
        work.say_files(end.done)
        return report()


def _describe_time_taken(seconds: float, forecast: str, done: int, resumed: int) -> str:
    """Say how long all took, beside the forecast; of a plan that was resumed, for how many runs."""
    runs = f" for {format_plural(done - resumed, 'run')} ({resumed} were there already)" if resumed else ""
    all_ = " of all" if resumed else ""
    took = f"took {format_duration(seconds)} with initial uploads{runs}"
    return f"{took}; forecast{all_} without them: {forecast}"


class PlanOutput:
    """Where the report of a plan goes: standard output, and files."""

    def __init__(self, asked: RunAsked, product: Product) -> None:
        files = cli_options.choose_report_files(asked)
        files.check([], asked.stats_file)
        self._force = files.force
        self._wanted = [*files.wanted]
        if files.on_standard_output is None and not asked.no_default_report:
            name = "csv" if asked.csv and products.has_format(product, "csv") else "text"
            name = asked.format or name
            self._wanted.insert(0, (name, Path("-")))
        for name, _ in self._wanted:  # before the runs: they may take hours
            products.find_writer(product, name)

    def write(self, found: Conclusion) -> None:
        """Write all that can be; then raises UsageError, which names those that could not."""
        errors: list[UsageError] = []
        for name, path in self._wanted:
            clean, done = printable.choose_cleaner(name), output_file.log_written
            try:
                with output_file.open_output(path, force=self._force, clean=clean, done=done) as out:
                    _write_conclusion(name, found, out)
            except UsageError as error:
                errors.append(error)
        if errors:
            raise UsageError("; ".join(map(str, errors)))

    def try_to_write(self, found: Conclusion) -> bool:
        """Write all after runs; log what could not be written, and return whether all was."""
        written = [
            output_file.try_to_write_output(
                path,
                partial(_write_conclusion, name, found),
                force=self._force,
                clean=printable.choose_cleaner(name),
            )
            for name, path in self._wanted
        ]
        return all(written)


def _write_conclusion(name: str, found: Conclusion, out: TextIO) -> None:
    out.writelines(products.make_product_parts(found.product, name, found.found, output_file.make_view(out)))


class _GridWork(Generic[_Kept]):
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

    def find_shortage(self) -> str:
        """Return "": each run, or each row, is judged by itself."""
        return ""

    def say_files(self, done: Sequence[DoneTrial[_Kept]]) -> None:
        """Log where the results are."""
        if done:
            label = f".{done[-1].trial.label}.stat.gz"
            _log.info("Results saved to %s", str(done[-1].path).removesuffix(label) + ".*.stat.gz")


# -- Repeated runs, and runs in turn ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PlanSide:
    """A way to run: the only one of a plan, or one of the two of ``--versus``."""

    scenario: Scenario
    options: RunOptions


@dataclass(frozen=True, slots=True)
class RepeatedRun(Generic[_Reduced]):
    """What is kept of a run that is repeated."""

    verdict: RunVerdict
    reduced: _Reduced


class RepeatWork(_GridWork[RepeatedRun[Any]]):
    """The runs of ``--repeat``: of one way to run, or in turn of the two of ``--versus``."""

    name = "Repetition"

    def __init__(self, sides: Sequence[PlanSide], count: int, pause: float) -> None:
        self._kinds = ("a", "b") if len(sides) > 1 else ("run",)
        self._has_sides = bool(sides[0].options.sides)
        cells = [
            PlanCell(kind, side.scenario, side.options) for kind, side in zip(self._kinds, sides, strict=True)
        ]
        super().__init__(
            GridRule(cells, count, make_sided_repetition if self._has_sides else make_repetition), pause
        )
        self._count = count

    def find_shortage(self) -> str:
        """Return why two sides will have no verdict; empty where they may have one."""
        if self.product is not Product.COMPARISON or self._count >= MIN_RUNS_FOR_WORD:
            return ""
        return f"--repeat {self._count}: a verdict on two sides needs {MIN_RUNS_FOR_WORD} runs or more"

    @property
    def product(self) -> Product:
        """What its report is."""
        return Product.COMPARISON if len(self._kinds) > 1 or self._has_sides else Product.REPEATED

    def say(self, done: Sequence[DoneTrial[RepeatedRun[Any]]]) -> None:
        """Log where the results of the last run are, and what was judged."""
        last = done[-1]
        _log.info("Results saved to %s", last.path)
        run_report.log_thresholds(last.kept.verdict, in_report=False)

    def conclude(self, end: PlanEnd[RepeatedRun[Any]], took: str) -> Conclusion:
        """Return the summary of the runs that ended as they should; their worst code counts."""
        codes = [choose_worst_code([each.kept.verdict.exit_code, each.ending_code]) for each in end.done]
        code = choose_worst_code(codes)
        good = [each for each in end.done if each.ended_early is None]
        if len(good) < self.rule.count:
            _log.warning("%d of %d runs ended as they should", len(good), self.rule.count)
        runs = [[each.kept.reduced for each in good if each.trial.cell.name == kind] for kind in self._kinds]
        found: Any = None
        if len(runs) > 1 and all(runs):
            found = compare_runs(runs[0], runs[1])
        elif len(runs) == 1 and len(runs[0]) > 1:
            found = compare_sided(runs[0]) if self._has_sides else runs[0]
        return Conclusion(self.product, found, code)

    def say_files(self, done: Sequence[DoneTrial[RepeatedRun[Any]]]) -> None:
        """Log the command that compares both sides again."""
        if len(self._kinds) < 2:
            return
        files = {each.trial.cell.name: each.path for each in done}
        if len(files) == len(self._kinds):
            before, after = (_make_file_pattern(files[kind], f".{kind}-") for kind in self._kinds)
            _log.info("Compare them again with: %s compare %s --to %s", quote_own_command(), before, after)


def make_repetition(statistics: RunStatistics, name: str) -> RepeatedRun[RunFigures]:
    """Return what is kept of a run."""
    return RepeatedRun(verdict_of(statistics), make_run_figures(statistics, name))


def make_sided_repetition(statistics: RunStatistics, name: str) -> RepeatedRun[SidedRun]:
    """Return what is kept of a run with two sides."""
    return RepeatedRun(verdict_of(statistics), make_sided_run(statistics, name))


def _make_file_pattern(file: Path, kind: str) -> str:
    """Return the pattern of a shell that matches the files of a series."""
    name, found, _ = str(file).rpartition(kind)
    return f"{shlex.quote(name + found)}*.stat.gz"


#: What both sides share, or what would make more than two of them.
_SHARED_OPTIONS = (
    "ab",
    "repeat",
    "pause",
    "resume",
    "versus",
    "until",
    "keep_objects",
    "seed",
)


class _VersusParser(Parser):
    """A parser of options within an option."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"--versus: {message}")


def parse_second_side(asked: RunScenarioAsked) -> RunScenarioAsked:
    """Return what is asked of the second side: what ``--versus`` names, otherwise the same.

    Raises UsageError.
    """
    try:
        words = shlex.split(asked.versus or "")
    except ValueError as error:
        raise UsageError(f"--versus: {error}") from None
    parser = _VersusParser(prog="--versus", add_help=False)
    parser.add_argument("-f", "--scenario-file")
    parser.add_argument("--label", type=parse_label)
    option_table.add_load_arguments(parser)
    option_table.add_request_arguments(parser)
    parser.add_opposites()
    # Of options of the first side it does not matter where they are from.
    found, unknown = read_more(replace(asked, sources={}), parser, words)
    if unknown:
        raise UsageError(
            f"--versus: {unknown[0]} is no option that can differ: a scenario (-f), load, requests, --label"
        )
    for name in _SHARED_OPTIONS:
        if get_value(found, name) != get_value(asked, name):
            raise UsageError(f"--versus: --{name.replace('_', '-')} is for both sides")
    if bool(found.local_swift) != bool(asked.local_swift):
        raise UsageError("--versus: --local-swift is for both sides, which may have different releases")
    if found.is_given("scenario_file"):
        found = replace(found, size=None, mix=None, objects=None)  # of a first side without a file
    elif found.is_given("size", "mix"):
        found = replace(found, scenario_file=None)
    if found.is_given("op_count") and not found.is_given("run_seconds"):
        found = replace(found, run_seconds=None)  # of the first side, which would win
    return replace(found, sources={**asked.sources, **found.sources})


# -- Sweeps and searches ---------------------------------------------------------------------------


#: How many steps a search takes: rarely fewer, rarely more; and where it looks for a share of errors, which
#: are few, so that chance has more to say.
_MIN_TRIALS, _USUAL_TRIALS, _USUAL_TRIALS_OF_ERRORS = 5, 15, 25

#: How many of these are as short as the first ones, where steps near the limit are as long as they may be.
_USUAL_SHORT_TRIALS = 5


class _RowsWork(_GridWork[SuiteRun]):
    """Runs that are rows of one table."""

    name = "Suite"
    product = Product.SUITE

    def __init__(
        self,
        title: str,
        rule: GridRule[SuiteRun],
        rounds: int,
        pause: float,
        page: Path | None,
        *,
        force: bool = False,
        in_turn: bool = True,
    ) -> None:
        super().__init__(rule, pause)
        self._title = title
        self._rounds = rounds
        self._page = page  # that of the table; None: there is none, or it goes to standard output
        self._force = force
        self._in_turn = in_turn
        self._scale = ""
        self._left_out = 0

    def forecast(self) -> str:
        """Return how long it will take, in words."""
        return f"{format_plural(len(self.rule.cells), 'row')}, {super().forecast()}"

    def say(self, done: Sequence[DoneTrial[SuiteRun]]) -> None:
        """Log the result of the last run in one line."""
        trial, found = done[-1].trial, done[-1].kept.figures.figures
        rate = format_number(found["rate"].value) if "rate" in found else "no"
        p99 = f", p99 {format_latency(found['p99'].value)}" if "p99" in found else ""
        failed = "".join(f"; {reason}" for reason in done[-1].kept.reasons[:1])
        number = f", round {trial.number}" if trial.cell.is_counted else ""
        _log.info("%s%s: %s ops/s%s%s", trial.cell.value, number, rate, p99, failed)

    def conclude(self, end: PlanEnd[SuiteRun], took: str) -> Conclusion:
        """Return what is known; nothing where no run was made, which leaves files of earlier calls alone."""
        if not end.done:
            return Conclusion(self.product, None, end.code)
        found = self._make_findings(end, took)
        return Conclusion(Product.SUITE, found, judge_suite(found).exit_code)

    def _make_findings(self, end: PlanEnd[SuiteRun], took: str) -> SuiteFindings:
        """Return the table of all runs that are known."""
        rows = [
            SuiteRow(
                cell.value,
                tuple(
                    replace(each.kept, file=str(each.path))
                    for each in end.done
                    if each.trial.cell is cell and each.ending_code is not ExitCode.INTERRUPTED
                ),
                store=cell.options.store or "",
                skipped=end.skipped.get(cell.name, ""),
            )
            for cell in self.rule.cells
        ]
        if self._page is not None:
            rows = [self._write_page(row, cell) for row, cell in zip(rows, self.rule.cells, strict=True)]
        return SuiteFindings(
            self._title,
            tuple(rows),
            self._rounds,
            end.why,
            end.code,
            took,
            self.rule.cells[0].options.undecided,
            in_turn=self._in_turn,
            kind=self.name,
            scale=self._scale,
            left_out=self._left_out,
        )

    def _write_page(self, row: SuiteRow, cell: PlanCell) -> SuiteRow:
        """Write the page of one of the runs of a row, and return the row with it."""
        run = row.choose_typical_run()
        if run is None or self._page is None:
            return row
        folder = self._page.with_name(f"{self._page.stem}-rows")
        path = folder / f"{cell.name}.html"
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            _log.error("%s: cannot be written: %s", folder, error.strerror)
            return row
        written = output_file.try_to_write_output(
            path,
            partial(_write_run_page, run.file),
            force=self._force,
            clean=printable.choose_cleaner("html"),
        )
        return replace(row, page=f"{folder.name}/{quote(path.name)}") if written else row


class SuiteWork(_RowsWork):
    """The runs of a suite."""

    def __init__(
        self,
        suite: Suite,
        cells: Sequence[PlanCell],
        pause: float,
        page: Path | None,
        *,
        force: bool = False,
        stores: Mapping[str, str] | None = None,
    ) -> None:
        rule = GridRule(cells, suite.rounds, make_suite_run, in_turn=suite.in_turn)
        super().__init__(suite.name, rule, suite.rounds, pause, page, force=force, in_turn=suite.in_turn)
        self._suite = suite
        self._scale = "" if suite.scale == 1 else str(suite.scale)
        self._left_out = suite.left_out
        self._stores = stores  # what --store says of each; None: the objects of the suite go with their store

    def say_files(self, done: Sequence[DoneTrial[SuiteRun]]) -> None:
        """Log where the results are, and how to delete the objects."""
        super().say_files(done)
        if self.rule.cells[0].options.noop or self._stores is None:
            return
        commands = dict.fromkeys(
            _write_deletion(base, self._stores.get(store, ""))
            for store, bases in list_container_bases(self._suite).items()
            for base in bases
        )
        _log.info("Delete the objects of the suite with: %s", "; ".join(commands))


def _find_row_shortage(rows: int, rounds: int, what: str) -> str:
    """Return why two ways in turn will have no verdict on some rows; empty where they may have one."""
    needed = count_needed_rounds(rows)
    if rounds >= needed:
        return ""
    return f"--repeat {rounds}: a verdict on {format_plural(rows, what)} needs {needed} rounds or more"


#: The ways to run each phase: one, or the two of ``--versus``.
PhaseSides = tuple[str, Sequence[PlanSide]]


class PhasesWork(_RowsWork):
    """The runs of ``--phases``: a row for each, in rounds, of one way to run or in turn of two."""

    name = "Phases"

    def __init__(
        self,
        phases: Sequence[PhaseSides],
        rounds: int | None,
        pause: float,
        page: Path | None,
        *,
        force: bool = False,
    ) -> None:
        self._two = len(phases[0][1]) > 1
        cells = [
            PlanCell(
                f"{'ab'[place]}.{phase}" if self._two else phase,
                side.scenario,
                side.options,
                phase,
                is_counted=rounds is not None,
            )
            for phase, sides in phases
            for place, side in enumerate(sides)
        ]
        title = phases[0][1][0].scenario.name
        self._shortage = _find_row_shortage(len(phases), rounds or 1, "phase") if self._two else ""
        self._has_pages = rounds is None  # its runs have a page each
        super().__init__(
            title, GridRule(cells, rounds or 1, make_suite_run), rounds or 1, pause, page, force=force
        )

    @property
    def product(self) -> Product:  # type: ignore[override]
        """What its report is."""
        return Product.SUITES if self._two else Product.SUITE

    def find_shortage(self) -> str:
        """Return why two ways to run will have no verdict; empty where they may have one."""
        return self._shortage

    def _write_page(self, row: SuiteRow, cell: PlanCell) -> SuiteRow:
        """Return a row with its page, which the run itself has written where there is one run of each."""
        if self._two or self._page is None:
            return row
        if not self._has_pages:
            return super()._write_page(row, cell)
        return replace(row, page=quote(f"{self._page.stem}.{cell.name}{self._page.suffix}"))

    def conclude(self, end: PlanEnd[SuiteRun], took: str) -> Conclusion:
        """Return what is known, of two ways to run what changed."""
        if not self._two or not end.done:
            return super().conclude(end, took)
        found = self._make_findings(end, took)
        code = judge_suite(found).exit_code
        sides = [{row.name: row.runs for row in found.rows[side::2] if row.runs} for side in (0, 1)]
        if not set(sides[0]) & set(sides[1]):
            return Conclusion(self.product, None, code)
        changes = compare_suites(
            (f"{found.name} (a)", sides[0]), (f"{found.name} (b)", sides[1]), NOISE_SHARE
        )
        return Conclusion(self.product, changes, code)


def _write_deletion(base: str, store: str) -> str:
    """Return the command that deletes the objects of a suite in a store: a URL, or @FILE; "": the account."""
    command = f"{quote_own_command()} cleanup-containers --container-base {shlex.quote(base)}"
    if store.startswith("@"):
        file = store[1:] if "/" in store else f"./{store[1:]}"
        return f"(set -a; . {shlex.quote(file)}; {command})"
    return f"{command} -S {shlex.quote(store)}" if store else command


def _write_run_page(file: str, out: TextIO) -> None:
    with closing(open_results(Path(file))) as results:
        statistics = summarize(results, products.PAGE_GROUPS, over_time=True)
    out.writelines(make_run_report_parts("html", statistics, ReportOptions()))


#: Runs of equal ones, unless the scenario or -r says otherwise; shorter ones have no intervals of their own.
EQUAL_RUN_SECONDS = 20.0
_SHORTEST_EQUAL_RUN = 10.0

#: So many pairs tell enough, so that runs may be as long as the scenario says.
_ENOUGH_PAIRS = 10


def choose_equal_runs(asked: NoiseAsked, scenario: Scenario) -> tuple[float | None, int]:
    """Return how long each of some equal runs is (None: as its stages say), and how many pairs there are.

    Raises UsageError where too few fit into ``--minutes``.
    """
    budget = 60 * asked.minutes + asked.pause
    beside = RUN_OVERHEAD_SECONDS + asked.pause
    longest = budget / (2 * _ENOUGH_PAIRS) - beside
    seconds = asked.run_seconds or scenario.run_seconds or EQUAL_RUN_SECONDS
    if asked.run_seconds is None and not scenario.stages:
        seconds = math.floor(max(min(seconds, longest), min(seconds, _SHORTEST_EQUAL_RUN)))
    pairs = math.floor(budget / (2 * (seconds + beside)))
    if 2 * pairs < MIN_EQUAL_RUNS:
        raise UsageError(
            f"--minutes {asked.minutes:g}: {2 * pairs} runs of {seconds:g} s do not tell how much runs"
            f" differ; {MIN_EQUAL_RUNS} or more do: give more minutes, or a shorter -r/--run-seconds"
        )
    return None if scenario.stages else float(seconds), pairs


class NoiseWork(_GridWork[EqualRun]):
    """Equal runs in turn."""

    name = "Noise"
    product = Product.NOISE

    def __init__(self, side: PlanSide, pairs: int, pause: float, wanted: float) -> None:
        cells = [PlanCell(kind, side.scenario, side.options) for kind in ("a", "b")]
        super().__init__(GridRule(cells, pairs, make_equal_run), pause)
        self._wanted = wanted

    def say(self, done: Sequence[DoneTrial[EqualRun]]) -> None:
        """Log the rate of the last run."""
        found = done[-1].kept.figures.rows.get(ALL_KEY, {}).get("rate")
        _log.info("Run %d: %s ops/s", len(done), "no" if found is None else format_number(found.value))

    def conclude(self, end: PlanEnd[EqualRun], took: str) -> Conclusion:
        """Return what is known of the runs that ended as they should."""
        runs = [each.kept for each in end.done if each.ended_early is None]
        if not runs:
            return Conclusion(Product.NOISE, None)
        found = measure_noise(runs, self._wanted, took=took)
        return Conclusion(Product.NOISE, found, judge_noise(found)[1])


class _StepsWork:
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

    def say_files(self, done: Sequence[DoneTrial[StepResult]]) -> None:
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

    def __init__(
        self,
        sides: Sequence[PlanSide],
        sweep: Sweep,
        rounds: int,
        pause: float,
        prefix: str = "",
    ) -> None:
        super().__init__(sweep.variable)
        self._sides = sides
        self._sweep = sweep
        self._rounds = rounds
        self._pause = pause
        swept: list[SweptSide] = [(side.scenario, side.options) for side in sides]
        self.rule = SweepRule(swept, sweep, rounds, prefix)
        for side in sides:
            for value in sweep.values:  # so that a wrong one is reported before the first run
                if side.options.sides and value % 2 and sweep.variable is Variable.USERS:
                    raise UsageError(
                        f"--sweep: {value} users cannot be halved, and with --ab each side has half of them"
                    )
                make_step_scenario(side.scenario, sweep.variable, value)

    @property
    def product(self) -> Product:
        """What its report is."""
        return Product.SWEEPS if len(self._sides) > 1 else Product.CAPACITY

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
        """Return why two ways to run will have no verdict; empty where they may have one."""
        two = len(self._sides) > 1
        return _find_row_shortage(len(self._sweep.values), self._rounds, "step") if two else ""

    def say(self, done: Sequence[DoneTrial[StepResult]]) -> None:
        """Log the result of the last step."""
        self._say_step(done, "")

    def conclude(self, end: PlanEnd[StepResult], took: str) -> Conclusion:
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
        runs = [
            (each.kept.step.value, each.kept.side, each.kept.figures)
            for each in end.done
            if each.kept.figures is not None
        ]
        return Conclusion(Product.SWEEPS, compare_sweeps(found[0], found[1], runs), code)


class SearchWork(_StepsWork):
    """The steps of ``--find``."""

    name = "Search"
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
        scenario = side.scenario
        variable = Variable.RATE if scenario.rate is not None else Variable.USERS
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
        limit = LimitSearch(
            start,
            scenario.run_seconds,
            most=LARGEST_VALUES[variable],
            tolerance=tolerance or LIMIT_TOLERANCE,
        )
        self.rule = SearchRule(
            scenario, side.options, variable, tuple(dict.fromkeys(known)), limit, repeats, prefix
        )

    def list_users(self) -> list[int]:
        """Return nothing: what it will try is not known."""
        return []

    def forecast(self) -> str:
        """Return how long it will take, in words."""
        repeats, short = self.rule.repeats, _USUAL_SHORT_TRIALS
        of_errors = any(each.figure == "errors" for each in self.rule.conditions)
        usual = _USUAL_TRIALS_OF_ERRORS if of_errors else _USUAL_TRIALS
        factor = search.MAX_TRIAL_FACTOR
        longer = replace(self._scenario, run_seconds=factor * (self._scenario.run_seconds or 0.0))
        (least, most), (_, longest) = bound_run_seconds(self._scenario), bound_run_seconds(longer)

        def needed(first: float, further: float = 0.0, count: int = _MIN_TRIALS) -> str:
            seconds = short * first + (count - short) * further + (count - 1 / repeats) * self._pause
            return format_duration(repeats * seconds)

        return (
            f"some {_MIN_TRIALS} to {usual} steps{f' of {repeats} runs' * (repeats > 1)}, those near"
            f" the limit up to {factor:.0f} times as long: about {needed(least)} to"
            f" {needed(most, longest, usual)} (at most {search.MAX_TRIALS} steps,"
            f" {needed(most, longest, search.MAX_TRIALS)})"
        )

    def find_shortage(self) -> str:
        """Return "": a search compares nothing."""
        return ""

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

    def conclude(self, end: PlanEnd[StepResult], took: str) -> Conclusion:
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


class PhasedStepsWork:
    """A sweep or a search of each of ``--phases``, one after the other."""

    name = "Phases"
    product = Product.CAPACITIES

    def __init__(self, works: Sequence[tuple[str, SweepWork | SearchWork]]) -> None:
        self._works = works
        self.rule = ChainRule([work.rule for _, work in works])

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
        parts = self.rule.split(done)
        self._works[len(parts) - 1][1].say(parts[-1])

    def conclude(self, end: PlanEnd[StepResult], took: str) -> Conclusion:
        """Return what is known of each phase."""
        parts = self.rule.split(end.done)
        found, codes = [], []
        for place, (part, (phase, work)) in enumerate(zip(parts, self._works, strict=False)):
            why = end.why if place == len(parts) - 1 else ""
            if part or not why:
                made = work.conclude(replace(end, done=[*part], why=why, code=ExitCode.OK), "")
                found.append((phase, made.found))
                codes.append(made.code)
        code = choose_worst_code(codes)
        if not found:
            return Conclusion(self.product, None, code)
        worst = choose_worst_code([end.code, code])
        return Conclusion(self.product, PhaseCapacities(tuple(found), end.why, worst, took), code)

    def say_files(self, done: Sequence[DoneTrial[StepResult]]) -> None:
        """Log where the results of all steps are."""
        for part, (_, work) in zip(self.rule.split(done), self._works, strict=False):
            work.say_files(part)


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
