"""``ssbench-master run-scenario``: run a benchmark and report on it.

Its options are in :mod:`ssbench.cli.run_scenario_options`; the run itself is :mod:`ssbench.run`'s.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ssbench.base import interruption
from ssbench.base.errors import ExitCode, UsageError, choose_worst_code
from ssbench.base.text_values import format_duration
from ssbench.base.version import __version__
from ssbench.cli import archives, auth_options, option_table, settings, sides, unfit_options
from ssbench.cli import options as cli_options
from ssbench.cli.asked import fit_options
from ssbench.cli.option_table import LoadAsked, Objective, PrepareAsked, RunAsked, RunScenarioAsked
from ssbench.cli.options import AUTOMATIC_WORD, choose_undecided
from ssbench.cli.output_file import try_to_write_output
from ssbench.cli.run_report import PrintedRunReport
from ssbench.reports import products
from ssbench.results.block import Goal, Sink
from ssbench.run.bench import Bench
from ssbench.run.bench_options import BenchOptions, ExistingIn, RunOptions, RunSide, recorded_options
from ssbench.run.benchmark_run import RunOutcome
from ssbench.run.folders import label_stats_path, new_stats_path, results_folder
from ssbench.run.progress import ProgressLine, ResultCharacters
from ssbench.scenario import ad_hoc
from ssbench.scenario.conditions import (
    find_precision_figure,
    find_unknown_subject,
    parse_precisions,
)
from ssbench.scenario.consistency import explain_idle_arrivals, override
from ssbench.scenario.master_shares import take_master_share
from ssbench.scenario.model import Scenario
from ssbench.scenario.replayed import fit_to_replay
from ssbench.scenario.scenario_reading import check_scenario_text, read_scenario
from ssbench.scenario.value_rules import TimedCommand, make_timed_command

# What only some runs need (comparisons, the live screen, reports) is imported by those, and before the run:
# one of hours must not depend on what is installed when it ends.
if TYPE_CHECKING:
    from ssbench.cli.option_table import LoggedSide
    from ssbench.comparison.sweep_variables import Sweep
    from ssbench.plans.plan_work import Conclusion, PlanSide, PlanWork
    from ssbench.plans.rows_work import PhaseSides
    from ssbench.run.bench import Companions
    from ssbench.run.plan import PlanSettings, PlanTrial
    from ssbench.scenario.ad_hoc import LoadPhase
    from ssbench.scenario.value_rules import Precision
    from ssbench.store.stores import Credentials

_log = logging.getLogger(__name__)

_AnyRunAsked = TypeVar("_AnyRunAsked", bound=RunAsked)
_AnyLoadAsked = TypeVar("_AnyLoadAsked", bound=LoadAsked)

#: Where a master listens for workers that are not started here, as documented.
_ANY_ADDRESS = "0.0.0.0"  # noqa: S104


def run(asked: RunScenarioAsked) -> ExitCode:
    """Run the benchmark; raises SsbenchError where it cannot begin."""
    settings.log_settings_files(asked.sources)
    asked = sides.ask_for_swifts(asked, "--ab", asked.ab or ())
    given, asked = asked, fit_options(asked, unfit_options.UNFIT_FOR_SIDE, None)
    asked = fit_options(asked, unfit_options.UNFIT_FOR_CALL, None)
    unfit_options.check_options(asked)
    if asked.options.part is not None and asked.options.start_at is None:
        _log.warning(
            "--part without a time (1/2@14:30): merge needs runs that were under way at the same time"
        )
    place = _choose_place(asked)
    if asked.is_plan:
        return _run_plan(asked, given, place)
    asked, scenario = load_asked_scenario(asked, place)
    fleet = _choose_fleet(asked, scenario.user_count)
    asked = _choose_file(asked, scenario)
    report = _PrintedRun(asked, scenario)
    options = _make_run_options(asked, place)
    _say_until_forecast(asked.results_dir, fleet, [(scenario, options)])
    with (
        Bench(_add_account(fleet, asked, place)) as bench,
        option_table.open_companions(asked.cluster, asked.monitoring) as companions,
    ):
        report.carry_out(options, bench, companions)
    return report.code


def _say_until_forecast(
    given: Path | None, fleet: BenchOptions, ways: Sequence[tuple[Scenario, RunOptions]]
) -> None:
    """Say how long earlier runs needed that were as these are to be, where ``--until`` ends them."""
    if not any(options.until for _, options in ways):
        return
    from ssbench.comparison.archive import UntilRun
    from ssbench.comparison.run_figures import collect_described_facts
    from ssbench.results.run_description import RunDescription

    runs = []
    for scenario, options in ways:
        place, name = options.suite_place, scenario.name
        row = options.plan_phase if place is None else place.row
        kept = recorded_options(fleet, options, None)
        facts = collect_described_facts(RunDescription(scenario, __version__, options=kept))
        runs.append(UntilRun(f"{name}: {row}" if row else name, tuple(facts.items()), options.until))
    if said := archives.describe_until_forecast(given, runs):
        _log.info("%s", said)


@dataclass(frozen=True, slots=True)
class RunPlace:
    """Where runs are, as far as the command line says it and not the scenario."""

    sides: tuple[RunSide, ...] = ()
    accounts: tuple[Credentials, ...] = ()  # those of a list
    stores: Mapping[str, str] = field(default_factory=dict)  # what --store says of each name
    swifts: Mapping[str, Mapping[str, object]] = field(default_factory=dict)  # that a suite has started


def _choose_place(asked: RunAsked) -> RunPlace:
    """Return where runs are; raises UsageError. What a list of accounts names is read once."""
    found = sides.parse_sides(asked)
    return RunPlace(found, tuple(auth_options.read_account_credentials(asked, os.environ)))


class _PrintedRun:
    """A run whose report is printed: the only one, or one of a phase."""

    def __init__(self, asked: RunScenarioAsked, scenario: Scenario) -> None:
        self.code = ExitCode.OK  # of the run, when it has been carried out
        self._asked = asked
        self._scenario = scenario
        judges = bool(scenario.fail_if or scenario.groups) or scenario.is_open
        self._report = PrintedRunReport(asked, judges=judges)

    def carry_out(self, options: RunOptions, bench: Bench, companions: Companions) -> RunOutcome:
        """Carry out the run and report on it."""
        asked, scenario, report = self._asked, self._scenario, self._report
        # What this master does of it.
        own = scenario if options.part is None else take_master_share(scenario, options.part)
        comparer = None
        if asked.ab:
            comparer = sides.SidesComparer(asked.results_dir, lambda: bench.list_access_logs(options))
        with companions.open_sinks(own, bench) as shown:
            with report.interruptible():
                goal = _make_goal(own, options)
                outcome = bench.run(
                    scenario,
                    options,
                    sinks=[
                        *_make_progress_sinks(asked.progress, own, bench, goal),
                        *shown,
                        *report.sinks(bench.so_far),
                    ],
                    on_measured=partial(report.print, sides=comparer),
                    observer=companions.observer,
                    goal=goal,
                )
                self.code = report.finish(outcome)
            if comparer is not None and not asked.no_default_report and outcome.path is not None:
                written = try_to_write_output(Path("-"), partial(comparer.print, outcome.path))
                self.code = self.code if written else choose_worst_code([self.code, ExitCode.FAILED])
            return outcome


def _carry_out_plan(
    asked: RunAsked,
    place: RunPlace,
    work: PlanWork[Any],
    fleet: BenchOptions,
    plan: PlanSettings,
    *,
    keeps: bool = False,
    printed: Mapping[str, _PrintedRun] | None = None,
) -> ExitCode:
    """Carry out a plan and report on it; raises SsbenchError where a run cannot begin. See `_PlanRuns`.

    All runs have the same workers, where it is known what they need.
    """
    from ssbench.cli import plans
    from ssbench.plans.plan_work import fit_bench

    cells = work.rule.cells
    if not plan.is_quiet:
        _say_until_forecast(asked.results_dir, fleet, [(each.scenario, each.options) for each in cells])
    policies = dict.fromkeys(each.scenario.policy for each in cells)
    stores = dict.fromkeys(each.options.store for each in cells)
    named = sides.make_named_stores(asked, [*filter(None, stores)], place.stores, os.environ, place.swifts)
    bench = _add_account(replace(fleet, stores=named), asked, place, needs_account=None in stores)
    bench = fit_bench(bench, work.list_users(), [*policies], first_room=work.first_room)
    with (
        interruption.hold_signals(),
        option_table.open_companions(asked.cluster, asked.monitoring) as companions,
        _PlanRuns(asked.progress, companions, keeps=keeps, printed=printed) as runs,
    ):
        plan = replace(plan, carry_out=runs.carry_out)
        return plans.run_plan(asked, work, bench, plan, complete=runs.add_parts)


@dataclass(frozen=True, slots=True)
class PlanFiles:
    """How the stat files of the plan of a command of its own are called."""

    stem: str  # what their names begin with
    what: str  # what a message calls the plan
    labels: str = ".*"  # a pattern of what distinguishes them
    fills: bool = False  # before the plan has any run it may have filled the store


def begin_plan(asked: _AnyRunAsked, stores: Sequence[str] = ()) -> tuple[_AnyRunAsked, RunPlace]:
    """Return what a command of its own is asked, and where its runs are; ``stores`` is what ``--store`` says.

    Says which files set its options; raises UsageError.
    """
    settings.log_settings_files(asked.sources)
    asked = sides.ask_for_swifts(asked, "--store", stores)
    given = sides.parse_stores(stores, local_swift=bool(asked.local_swift))
    return asked, replace(_choose_place(asked), stores=given)


def start_plan(
    asked: RunAsked,
    place: RunPlace,
    files: PlanFiles,
    make_work: Callable[[RunOptions], PlanWork[Any]],
    plan: PlanSettings,
    *,
    users: int | None = None,
    keeps: bool = False,
) -> ExitCode:
    """Carry out the plan of a command of its own, in new stat files or, with ``--resume``, those of the last.

    Raises SsbenchError where a run cannot begin. ``make_work`` is called with how all runs are carried out.
    There are local workers for so many ``users``, by default for those of the work.
    """
    asked = replace(asked, stats_file=_choose_plan_file(asked, files))
    work = make_work(_make_run_options(asked, place))
    fleet = _choose_fleet(asked, users or max(work.list_users(), default=None))
    return _carry_out_plan(asked, place, work, fleet, plan, keeps=keeps)


def _choose_plan_file(asked: RunAsked, files: PlanFiles) -> Path:
    """Return the name that stat files begin with: a new one, with ``--resume`` that of the last call.

    One that was killed before it had any result does not count where there is another.
    """
    folder = archives.choose_folder(asked.results_dir) or results_folder()
    new = folder / f"{files.stem}.{time.strftime('%Y-%m-%d.%H%M%S')}.stat.gz"
    if not asked.resume:
        return new
    pattern = re.compile(
        rf"({re.escape(files.stem)}\.\d{{4}}-\d\d-\d\d\.\d{{6}})\.{files.labels}\.stat\.gz\Z"
    )
    begun = [
        (each.stat().st_size > 0, match[1])
        for each in folder.glob("*.stat.gz")
        if (match := pattern.match(each.name))
    ]
    if not begun and files.fills:
        _log.info("--resume: %s has no run of %s; the objects that are there are kept", folder, files.what)
        return new
    if not begun:
        raise UsageError(f"--resume: {folder} has no run of {files.what}; without --resume it begins")
    return folder / f"{max(begun)[1]}.stat.gz"


def prepare_scenario(asked: PrepareAsked) -> ExitCode:
    """Upload the initial objects of a scenario, and no more; raises SsbenchError where that cannot begin."""
    settings.log_settings_files(asked.sources)
    scenario = override(
        ad_hoc.read_named_scenario(
            cli_options.choose_scenario_file(asked),
            limited=True,
            bodies=cli_options.list_allowed_folders(asked.allow),
            changes=asked.set,
        ),
        **option_table.read_overridden_keys(asked),
    )
    fleet = _choose_fleet(asked, scenario.user_count)
    credentials = auth_options.read_account_credentials(asked, os.environ)
    scenario = use_listed_accounts(scenario, RunPlace(accounts=tuple(credentials)))
    credentials = credentials or [auth_options.make_credentials(asked, os.environ)]
    began = time.monotonic()
    with Bench(
        replace(fleet, credentials=credentials[0], further_credentials=tuple(credentials[1:]))
    ) as bench:
        outcome = bench.prepare(scenario, asked.options)
    if outcome.interrupted:
        _log.warning("Interrupted; what was uploaded stays, and the same command goes on from there")
    elif not outcome.trouble:
        _log.info("All initial objects are there, after %s", format_duration(time.monotonic() - began))
    return outcome.ending_code


def _choose_fleet(asked: RunAsked | PrepareAsked, users: int | None = None) -> BenchOptions:
    """Return the workers: local ones unless an option implies others, one per core, at most one per user.

    Those that are waiting at the usual ports come first: commands of ssbench 0.x do not say that there are
    some. None on another host reaches a local Swift.
    """
    workers, offer, address = asked.workers or 0, None, None
    if not workers and not option_table.expects_other_workers(asked):
        cores = len(os.sched_getaffinity(0))
        workers = min(cores, users or cores)
        offer = cli_options.make_bind_address(asked, "127.0.0.1" if asked.local_swift else _ANY_ADDRESS)
    if not workers:
        address = cli_options.make_bind_address(asked, _ANY_ADDRESS)
    elif cli_options.has_zmq_options(asked) or (asked.options.expect_workers or 0) > workers:
        address = cli_options.make_bind_address(asked, "127.0.0.1")
    return BenchOptions(
        workers=workers,
        address=address,
        offer=offer,
        key_file=cli_options.choose_key_file(asked),
        local_swift=bool(asked.local_swift),
    )


def _add_account(
    fleet: BenchOptions, asked: RunAsked, place: RunPlace, *, needs_account: bool = True
) -> BenchOptions:
    """Return what runs share, with credentials. ``needs_account``: not all runs name a store of their own."""
    credentials: Sequence[Credentials] = place.accounts
    if not credentials and needs_account and not asked.options.noop and not asked.local_swift:
        credentials = sides.make_side_credentials(asked, place.sides, os.environ)
    return replace(
        fleet,
        credentials=next(iter(credentials), None),
        further_credentials=tuple(credentials[1:]),
        profile=asked.profile,
    )


def _choose_file(asked: RunScenarioAsked, scenario: Scenario) -> RunScenarioAsked:
    """Let the stat file be a new one in the folder of results, where there is one; raises UsageError."""
    if asked.stats_file is not None:
        if asked.results_dir is not None:
            raise UsageError("-s/--stats-file and --results-dir: one of them is enough")
    elif (folder := archives.choose_folder(asked.results_dir)) is not None:
        return replace(asked, stats_file=new_stats_path(folder, scenario, time.time()))
    return asked


def _run_plan(asked: RunScenarioAsked, given: RunScenarioAsked, place: RunPlace) -> ExitCode:
    """Carry out many runs: repeated, in turn, of phases, of a sweep or of a search.

    ``given`` is all that was asked, also what does not fit the first way to run.
    """
    from ssbench.run.plan import PlanSettings

    asked, made, fleet = _make_sides(asked, given, place)
    is_repeated = bool(asked.repeat) and not asked.is_stepped
    pause = asked.pause if is_repeated or asked.is_given("pause") else 0.0
    phases = _split_phases(asked.phases or (), made)
    work = _make_work(asked, made, phases, pause)
    printed = {} if asked.is_stepped or is_repeated else _list_printed_runs(asked, phases)
    # The reports of phases are CSV; a table with other columns below them would be none.
    reported = replace(asked, no_default_report=asked.no_default_report or (bool(printed) and asked.csv))
    stepped = asked.is_stepped
    plan = PlanSettings(pause=pause, is_quiet=stepped, stops_on_errors=not stepped)
    code = _carry_out_plan(reported, place, work, fleet, plan, keeps=is_repeated, printed=printed)
    return choose_worst_code([code, *(each.code for each in printed.values())])


def _split_phases(phases: Sequence[LoadPhase], made: Sequence[PlanSide]) -> list[PhaseSides]:
    """Return the ways to run each phase, with labels of their own."""
    found: list[PhaseSides] = []
    split = [[*ad_hoc.split_into_phases(each.scenario, phases)] for each in made] if phases else []
    for parts in zip(*split, strict=True):
        name = parts[0][0].name
        sides_ = []
        for side, (_, scenario) in zip(made, parts, strict=True):
            label = f"{side.options.label}-{name}" if side.options.label else name
            until = _list_goals_of_phase(name, scenario, side.options.until)
            options = replace(side.options, label=label, plan_phase=name, until=until)
            sides_.append(replace(side, scenario=scenario, options=options))
        found.append((name, sides_))
    return found


def _insert_name(path: Path, name: str) -> Path:
    return path.with_name(f"{path.stem}.{name}{path.suffix}")


def _list_printed_runs(asked: RunScenarioAsked, phases: Sequence[PhaseSides]) -> dict[str, _PrintedRun]:
    """Return the runs of phases with their reports; raises UsageError for one that cannot be written."""
    found = {}
    began = time.time()
    for name, (side, *_) in phases:
        given = {option: getattr(asked, option) for option in products.FORMAT_FILES}
        files: dict[str, Any] = {
            option: path and _insert_name(path, name) for option, path in given.items()
        } | {"ci": [(option, _insert_name(path, name)) for option, path in asked.ci]}
        stats_file = label_stats_path(asked.stats_file, side.scenario, name, began)
        found[name] = _PrintedRun(replace(asked, stats_file=stats_file, **files), side.scenario)
    return found


def _make_work(
    asked: RunScenarioAsked, made: Sequence[PlanSide], phases: Sequence[PhaseSides], pause: float
) -> PlanWork[Any]:
    """Return the plan that the options ask for."""
    from ssbench.cli.plans import make_page_writer
    from ssbench.plans.repeat_work import RepeatWork
    from ssbench.plans.rows_work import PhasesWork
    from ssbench.plans.steps_work import PhasedStepsWork, SearchWork, SweepWork

    repeats = asked.repeat or 1

    def make_steps(made: Sequence[PlanSide], prefix: str = "") -> SweepWork | SearchWork:
        if asked.sweep:
            return SweepWork(made, asked.sweep, repeats, pause, prefix)
        return SearchWork(made[0], *(asked.find or Objective()), repeats, pause, prefix)

    if asked.is_stepped:
        if phases:
            return PhasedStepsWork([(name, make_steps(own, f"{name}.")) for name, own in phases])
        return make_steps(made)
    if phases:
        force = asked.force or asked.resume
        writer = make_page_writer(asked.html, force=force, is_written=asked.repeat is None)
        return PhasesWork(phases, asked.repeat, pause, None if asked.versus is not None else writer)
    return RepeatWork(made, repeats, pause)


def _make_sides(
    asked: RunScenarioAsked, given: RunScenarioAsked, place: RunPlace
) -> tuple[RunScenarioAsked, list[PlanSide], BenchOptions]:
    """Return what is asked of the first way to run, all ways, and the workers.

    Raises UsageError where ``--versus`` is wrong. The second way is one of all that was ``given``.
    """
    from ssbench.cli.plans import parse_second_side
    from ssbench.plans.plan_work import PlanSide
    from ssbench.plans.repeat_work import leave_out_side_group

    asked, scenario = load_asked_scenario(asked, place)
    if asked.sweep and asked.sweep.variable.value == "workers":
        asked = replace(asked, workers=asked.sweep.values[0])
    fleet = _choose_fleet(asked, None if asked.is_stepped else scenario.user_count)
    asked = _choose_file(asked, scenario)
    found = [PlanSide(scenario, _make_run_options(asked, place))]
    if asked.isolated_group is not None:
        found.insert(0, leave_out_side_group(found[0], asked.isolated_group))
    elif asked.versus is not None:
        other = replace(parse_second_side(given), left_out=asked.left_out, stats_file=asked.stats_file)
        other = fit_options(other, unfit_options.UNFIT_FOR_SIDE, None)
        other = fit_options(other, unfit_options.UNFIT_FOR_CALL, None)
        other, scenario = load_asked_scenario(other, place, said=scenario.name)
        found.append(PlanSide(scenario, _make_run_options(other, place)))
        first, second = (each.options.swift for each in found)
        if first != second and not asked.is_stepped:
            # From their logs follows in which part a difference is.
            found = [
                replace(
                    each, options=replace(each.options, swift=replace(each.options.swift, access_logs=True))
                )
                for each in found
            ]
    return asked, found, fleet


class _PlanRuns(ExitStack):
    """What carries out the runs of a plan: with the sinks of their results, besides the stat files.

    ``keeps``: those of companions are opened once, with the scenario of the first run. ``printed`` are the
    runs that print a report of their own, by the names of their cells.
    """

    def __init__(
        self,
        progress: str,
        companions: Companions,
        *,
        keeps: bool,
        printed: Mapping[str, _PrintedRun] | None = None,
    ) -> None:
        super().__init__()
        self._progress = progress
        self._companions = companions
        self._keeps = keeps
        self._printed = printed or {}
        self._kept: list[Sink] | None = None
        self._has_said_too_short = False
        #: Whose Swifts log each request, by the names of cells, or of the sides of all.
        self._logged: dict[str, LoggedSide] = {}

    def carry_out(self, trial: PlanTrial, options: RunOptions, bench: Bench) -> RunOutcome:
        """Carry out a run."""
        scenario = trial.cell.scenario
        if trial.cell.name in self._printed:
            return self._printed[trial.cell.name].carry_out(options, bench, self._companions)
        goal = self._make_goal_of_run(scenario, options)
        with self._open_sinks(scenario, bench) as shown:
            outcome = bench.run(
                scenario,
                options,
                sinks=[*_make_progress_sinks(self._progress, scenario, bench, goal), *shown],
                observer=self._companions.observer,
                goal=goal,
            )
        if outcome.path is not None and (logs := bench.list_access_logs(options)):
            made = [option_table.LoggedSide(trial.cell.name, logs[0], [outcome.path])]
            if options.sides:
                made = sides.make_logged_sides([each.name for each in options.sides], logs, [outcome.path])
            for each in made:
                known = self._logged.get(each.name)
                files = [*(known.files if known else ()), outcome.path]
                self._logged[each.name] = replace(each, files=files)
        return outcome

    def _make_goal_of_run(self, scenario: Scenario, options: RunOptions) -> Goal | None:
        """What ends a run before its time; None, said once, of runs that are too short for it."""
        goal = _make_goal(scenario, options)
        if goal is None or scenario.run_seconds is None:
            return goal
        from ssbench.statistics.stopping_rule import SHORTEST_RUN_SECONDS

        if scenario.run_seconds >= SHORTEST_RUN_SECONDS:
            return goal
        if not self._has_said_too_short:
            self._has_said_too_short = True
            _log.warning(
                "--until: runs of %s are too short for it; it takes %s or more",
                format_duration(scenario.run_seconds),
                format_duration(SHORTEST_RUN_SECONDS),
            )
        return None

    def add_parts(self, concluded: Conclusion[Any]) -> Conclusion[Any]:
        """Return what was found of a plan with the parts in which two sides differ, by their Swifts' logs."""
        from ssbench.comparison.run_comparison import Comparison
        from ssbench.comparison.suite_report import SuiteFindings

        found = concluded.found
        logged_files = {file for each in self._logged.values() for file in each.files}
        earlier = sum(file not in logged_files for file in concluded.files)
        warning = (
            f"{earlier} of {len(concluded.files)} runs are those of an earlier call, whose logs are gone:"
        )
        warnings = [f"{warning} the parts are those of the others"] if earlier else []
        if isinstance(found, SuiteFindings):
            by_part = {
                row: replace(made, warnings=(*made.warnings, *warnings))
                for row, cells, changes in found.list_store_rows()
                if cells[0] in self._logged and cells[1] in self._logged
                if (made := sides.find_parts([self._logged[cell] for cell in cells], changes)) is not None
            }
            return replace(concluded, found=replace(found, by_part=by_part))
        logged = sorted(self._logged.values(), key=lambda each: (each.group or 0, each.name))
        if isinstance(found, Comparison) and len(logged) == 2:
            compared = sides.add_parts(found, logged)
            if (made := compared.by_part) is not None:
                made = replace(made, warnings=(*made.warnings, *warnings))
            return replace(concluded, found=replace(compared, by_part=made))
        return concluded

    @contextmanager
    def _open_sinks(self, scenario: Scenario, bench: Bench) -> Iterator[Sequence[Sink]]:
        if not self._keeps:
            with self._companions.open_sinks(scenario, bench) as shown:
                yield shown
            return
        if self._kept is None:
            self._kept = self.enter_context(self._companions.open_sinks(scenario, bench))
        yield self._kept


#: Seconds of a run with ``--until`` at most, unless its length is given.
_MAX_UNTIL_SECONDS = 3600.0


def bind_goal(goal: Precision, scenario: Scenario, *, noop: bool) -> Precision:
    """Return a figure that ``--until`` waits for, as it is read where the scenario is known.

    Raises UsageError where runs of the scenario have no such figure.
    """
    classes, groups, defined = _list_names(scenario)
    sent = {name for part in scenario.parts for each in part.size_classes for name in each.weights}
    try:
        (goal,) = parse_precisions(goal.text, defined)
    except ValueError as error:
        raise UsageError(f"--until {error}") from None
    if wrong := find_unknown_subject(goal, classes, groups, defined):
        raise UsageError(f"--until {wrong}")
    if goal.operation is not None and goal.operation not in sent:
        raise UsageError(f"--until {goal.text!r}: the scenario has no {goal.operation}")
    if find_precision_figure(goal).times and noop:
        raise UsageError(f"--until {goal.text!r}: the operations of --noop take no time")
    return goal


def _list_goals_of_phase(name: str, scenario: Scenario, goals: Sequence[Precision]) -> tuple[Precision, ...]:
    """Return those of the figures that ``--until`` waits for that a phase has; logs which ones it lacks."""
    lacking = [each for each in goals if each.operation not in {None, *scenario.operation_names}]
    for goal in lacking:
        _log.info("Phase %s does not wait for %s: it has no %s", name, goal.subject, goal.operation)
    return tuple(each for each in goals if each not in lacking)


def _list_names(scenario: Scenario) -> tuple[list[str], list[str], tuple[str, ...]]:
    """Return the names of size classes, groups and operations that a scenario defines."""
    classes, groups = scenario.size_classes, scenario.groups
    return [each.name for each in classes], [each.name for each in groups], scenario.defined_operations


def _make_goal(scenario: Scenario, options: RunOptions) -> Goal | None:
    """What ends the run before its time, where that was asked for."""
    if not options.until:
        return None
    from ssbench.statistics.stopping_rule import StoppingSink

    classes, groups, _ = _list_names(scenario)
    numbers = {("operation", each.name): each.code for each in scenario.operation_table.drawn}
    numbers |= {("size_class", name): place for place, name in enumerate(classes)}
    numbers |= {("group", name): place for place, name in enumerate(groups)}
    return StoppingSink(options.until, numbers)


def _make_progress_sinks(progress: str, scenario: Scenario, bench: Bench, goal: Goal | None) -> list[Sink]:
    match progress:
        case "line":
            return [ProgressLine(scenario, bench.workers, goal)]
        case "live":
            from ssbench.run.progress import LiveScreen

            return [LiveScreen(scenario, bench.workers, bench.worker_views, goal)]
        case "characters":
            return [ResultCharacters(scenario)]
    return []


def _choose_ad_hoc_load(asked: LoadAsked) -> ad_hoc.AdHocLoad | None:
    """Return the load of a scenario without a file, None where there is one; raises UsageError."""
    line = asked.scenario_file or ""
    if not (ad_hoc.is_scenario_line(line) or (not line and asked.phases and asked.existing)):
        if line:
            return None
        raise UsageError(
            "-f/--scenario-file is required ('ssbench-master help scenarios' lists shipped ones), also as a"
            " line: -f 'size=4kB mix=put,get,delete'"
        )
    keys = option_table.read_overridden_keys(asked)
    keys["fail_if"] = [each.text for each in asked.fail_if] or None
    if asked.run_seconds is not None:
        keys["operation_count"] = None
    if asked.warmup == AUTOMATIC_WORD:
        keys["warmup"] = None
    keys["delete_after"] = asked.delete_after or None
    return ad_hoc.parse_scenario_line(
        line,
        asked.phases or (),
        {key: value for key, value in keys.items() if value is not None},
        has_objects=bool(asked.existing),
    )


def load_asked_scenario(
    asked: _AnyLoadAsked, place: RunPlace, *, said: str | None = None
) -> tuple[_AnyLoadAsked, Scenario]:
    """Return the scenario, and what was asked that fits it; raises UsageError and ScenarioError.

    Its name is logged, unless it is the one that was ``said`` before.
    """
    unfit_options.check_existing(asked)
    unfit_options.check_replay(asked)
    limited = asked.run_seconds is not None or asked.op_count is not None
    replayed = asked.log.read() if asked.log is not None else None
    load = _choose_ad_hoc_load(asked) if replayed is None else None
    if replayed is not None:
        text, replay = replayed
        scenario = check_scenario_text(text, "--replay", changes=asked.set)
        asked = replace(asked, options=replace(asked.options, replayed=replay))
    elif load is not None:
        scenario = ad_hoc.make_ad_hoc_scenario(load, asked.set)
    else:
        scenario = read_scenario(
            str(asked.scenario_file),
            limited=limited,
            bodies=cli_options.list_allowed_folders(asked.allow),
            changes=asked.set,
        )
    asked = fit_options(asked, unfit_options.UNFIT_FOR_SCENARIO, scenario)
    scenario = override(
        scenario,
        fail_if=[condition.text for condition in asked.fail_if],
        **option_table.read_overridden_keys(asked),
    )
    if asked.until and not (limited or scenario.stages or (load and scenario.operation_count)):
        scenario = override(scenario, run_seconds=_MAX_UNTIL_SECONDS)
    if scenario.name != said:
        _log.info("ssbench %s: %s", __version__, scenario.name)
    idle = explain_idle_arrivals(scenario)
    if idle and not (asked.sweep and asked.sweep.variable.value == "rate"):
        _log.warning("%s", idle)
    if asked.ab and not asked.repeat:
        _warn_of_short_sides(scenario)
    if asked.until:
        asked = fit_options(asked, unfit_options.UNFIT_FOR_RUN, _make_first_scenario(asked.sweep, scenario))
        bound = [bind_goal(each, scenario, noop=asked.options.noop) for each in asked.goals]
        asked = replace(asked, until=[(each,) for each in bound])
    scenario = use_listed_accounts(scenario, place)
    return asked, scenario if replayed is None else fit_to_replay(scenario, replayed[1])


def _make_first_scenario(sweep: Sweep | None, scenario: Scenario) -> Scenario:
    """Return the scenario of the first step of a sweep; as it is without one."""
    if sweep is None:
        return scenario
    from ssbench.comparison.sweep import make_step_scenario

    return make_step_scenario(scenario, sweep.variable, sweep.values[0])


def _warn_of_short_sides(scenario: Scenario) -> None:
    """Say before a run with two sides that it is too short for a verdict on them."""
    from ssbench.statistics.confidence import MIN_SECONDS

    if scenario.run_seconds is not None and scenario.run_seconds < MIN_SECONDS:
        _log.warning(
            "--ab: a verdict on two sides needs %d s or more, not %g s", MIN_SECONDS, scenario.run_seconds
        )


def use_listed_accounts(scenario: Scenario, place: RunPlace) -> Scenario:
    """Return a scenario in the accounts of a list, if there is one; another number of them is refused."""
    count = len(place.accounts)
    return override(scenario, accounts=count) if count and scenario.accounts == 1 else scenario


def _read_events(given: Sequence[tuple[str, str]]) -> tuple[TimedCommand, ...]:
    """Return the commands of ``--at``; raises UsageError."""
    try:
        return tuple(make_timed_command(at, command) for at, command in given)
    except ValueError as error:
        raise UsageError(f"--at: {error}") from None


def _find_existing(given: Sequence[str | Path]) -> ExistingIn | None:
    """Return where objects are that exist already; raises UsageError."""
    files = [each for each in given if isinstance(each, Path)]
    if len(files) > 1:
        raise UsageError("--existing: one @FILE is possible, with all objects")
    containers = tuple(each for each in given if isinstance(each, str))
    return ExistingIn(containers, *files) if given else None


def _make_run_options(asked: RunAsked, place: RunPlace) -> RunOptions:
    """Return how runs are carried out; raises UsageError."""
    return replace(
        asked.options,
        swift=asked.swift.make_trial_swift(asked.local_swift),
        sides=place.sides,
        existing=_find_existing(asked.existing),
        events=_read_events(asked.at),
        allow_events=cli_options.EVENTS_WORD in asked.allow,
        until=asked.goals,
        find_warmup=asked.warmup == AUTOMATIC_WORD,
        stats_file=asked.stats_file,
        force=asked.force,
        profile=asked.profile,
        undecided=choose_undecided(asked.undecided),
    )
