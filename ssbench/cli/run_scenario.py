"""``ssbench-master run-scenario``: run a benchmark and report on it.

Its options are in :mod:`ssbench.cli.run_scenario_options`; the run itself is :mod:`ssbench.run`'s.
"""

from __future__ import annotations

import argparse
import copy
import logging
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ssbench.base import interruption
from ssbench.base.errors import ExitCode, UsageError, choose_worst_code
from ssbench.base.text_values import format_duration
from ssbench.base.version import __version__
from ssbench.cli import archives, auth_options, option_table, settings, sides
from ssbench.cli import (
    options as cli_options,
)
from ssbench.cli.options import AUTOMATIC_WORD, choose_undecided
from ssbench.cli.output_file import (
    is_standard_output_name,
    measure_terminal,
    open_standard_output,
    try_to_write_output,
)
from ssbench.cli.run_report import PrintedRunReport
from ssbench.document.columns import wrap_words
from ssbench.fleet import wire
from ssbench.fleet.addresses import BindAddress
from ssbench.reports import products
from ssbench.results.block import Goal, Sink
from ssbench.run.bench import Bench
from ssbench.run.benchmark_run import RunOutcome
from ssbench.run.folders import (
    default_stats_stem,
    label_stats_path,
    new_stats_path,
    results_folder,
)
from ssbench.run.options import (
    BenchOptions,
    ExistingIn,
    NamedStore,
    RunOptions,
    SuitePlace,
    refuse_past_moment,
)
from ssbench.run.progress import ProgressLine, ResultCharacters
from ssbench.scenario import ad_hoc
from ssbench.scenario.consistency import explain_idle_arrivals, override
from ssbench.scenario.master_shares import take_master_share
from ssbench.scenario.model import Scenario
from ssbench.scenario.reading import read_scenario
from ssbench.scenario.scenario_files import list_shipped_scenarios
from ssbench.scenario.value_rules import TimedCommand, make_timed_command
from ssbench.store.request_options import RequestOptions

# What only some runs need (comparisons, the live screen, reports) is imported by those, and before the run:
# one of hours must not depend on what is installed when it ends.
if TYPE_CHECKING:
    from ssbench.cli import plans
    from ssbench.run.bench import Companions
    from ssbench.run.plan import PlanTrial

_log = logging.getLogger(__name__)

#: Where a master listens for workers that are not started here, as documented.
_ANY_ADDRESS = "0.0.0.0"  # noqa: S104


def run(arguments: argparse.Namespace) -> ExitCode:
    """Run the benchmark; raises SsbenchError where it cannot begin."""
    if arguments.list_scenarios:
        return _print_shipped(list_shipped_scenarios())
    settings.log_settings_files(arguments)
    arguments, load = _choose_ad_hoc_load(arguments)
    if load is not None and arguments.print_scenario:
        text = _describe_ad_hoc_file(arguments) + ad_hoc.write_ad_hoc_text(load)
        with open_standard_output() as out:
            out.write(text)
        return ExitCode.OK
    arguments = _check_arguments(arguments)
    if arguments.sweep or arguments.find or arguments.repeat or arguments.phases:
        return _run_plan(arguments)
    arguments, scenario = _load_scenario(arguments)
    _choose_workers(arguments, scenario.user_count)
    _choose_file(arguments, scenario)
    report = _PrintedRun(arguments, scenario)
    options = _make_run_options(arguments)
    with (
        Bench(_make_bench_options(arguments, options)) as bench,
        option_table.open_companions(arguments) as companions,
    ):
        report.carry_out(options, bench, companions)
    return report.code


class _PrintedRun:
    """A run whose report is printed: the only one, or one of a phase."""

    def __init__(self, arguments: argparse.Namespace, scenario: Scenario) -> None:
        self.code = ExitCode.OK  # of the run, when it has been carried out
        self._arguments = arguments
        self._scenario = scenario
        judges = bool(scenario.fail_if or scenario.groups) or scenario.is_open
        self._report = PrintedRunReport(arguments, judges=judges)

    def carry_out(self, options: RunOptions, bench: Bench, companions: Companions) -> RunOutcome:
        """Carry out the run and report on it."""
        arguments, scenario, report = self._arguments, self._scenario, self._report
        # What this master does of it.
        own = scenario if options.part is None else take_master_share(scenario, options.part)
        prints = bool(arguments.ab) and not arguments.no_default_report
        compare = sides.make_comparison_printer(arguments) if prints else None
        with companions.open_sinks(own, bench) as shown:
            with report.interruptible():
                outcome = bench.run(
                    scenario,
                    options,
                    sinks=[
                        *_make_progress_sinks(arguments, own, bench),
                        *shown,
                        *report.sinks(bench.so_far),
                    ],
                    on_measured=report.print,
                    observer=companions.observer,
                    goal=_make_goal(options.until),
                )
                self.code = report.finish(outcome)
            if compare is not None and outcome.path is not None:
                written = try_to_write_output(Path("-"), partial(compare, outcome.path))
                self.code = self.code if written else choose_worst_code([self.code, ExitCode.FAILED])
            return outcome


def _print_shipped(entries: Iterable[tuple[str, str]]) -> ExitCode:
    """Print names with what each is for: for a program a line each, on a terminal within its width."""
    with open_standard_output() as out:
        width = measure_terminal(out)
        for name, purpose in entries:
            line = f"{name:20}  {purpose}"
            lines = [line] if width is None else wrap_words(line.split(" "), 22, columns=max(width, 40))
            out.writelines(f"{each}\n" for each in lines)
    return ExitCode.OK


def run_suite(arguments: argparse.Namespace) -> ExitCode:
    """Run the rows of a suite; raises SsbenchError where one cannot begin."""
    from ssbench.cli import plans
    from ssbench.run.plan import PlanCell, PlanSettings
    from ssbench.scenario.scenario_files import list_shipped_suites
    from ssbench.scenario.suite_file import read_suite

    if arguments.list_suites:
        return _print_shipped(list_shipped_suites())
    if arguments.suite is None:
        raise UsageError("a suite is expected: a file, or the name of a shipped one (--list-suites)")
    settings.log_settings_files(arguments)
    given = sides.parse_stores(arguments)
    suite = read_suite(
        arguments.suite,
        scale=arguments.scale,
        seconds=arguments.run_seconds,
        bodies=arguments.allow_bodies,
        stores=given,
        storage_url=next(iter(arguments.auth_storage_urls or ()), ""),
        rows=arguments.rows,
    )
    if arguments.rounds is not None:
        suite = replace(suite, rounds=arguments.rounds)
    arguments.sides = ()
    arguments.listed = auth_options.read_account_credentials(arguments, os.environ)
    _choose_workers(arguments, max(each.scenario.user_count for each in suite.variants))
    stem = re.sub(r"[^A-Za-z0-9._-]+", "_", suite.name)
    arguments.stats_file = _choose_plan_file(arguments, stem, ".*", f"the suite {suite.name}")
    options = _make_run_options(arguments)
    cells = [
        PlanCell(
            each.file_name,
            _use_listed_accounts(each.scenario, len(arguments.listed)),
            replace(options, suite_place=SuitePlace(suite.name, each.name), store=each.store),
            each.name,
            may_be_skipped=True,
        )
        for each in suite.variants
    ]
    page = arguments.html if arguments.html and not is_standard_output_name(arguments.html) else None
    work = plans.SuiteWork(
        suite,
        cells,
        arguments.pause,
        page,
        force=arguments.force or arguments.resume,
        stores=None if arguments.local_swift else given,
    )
    used = [*dict.fromkeys(each.store for each in suite.variants)]
    stores = sides.make_named_stores(arguments, [*filter(None, used)], given, os.environ)
    bench_options = _make_bench_options(
        arguments,
        options,
        work.list_users(),
        [cell.scenario.policy for cell in cells],
        stores,
        needs_account=None in used,
    )

    with (
        interruption.hold_signals(),
        option_table.open_companions(arguments) as companions,
        _PlanRuns(arguments, companions, keeps=False) as runs,
    ):
        plan = PlanSettings(pause=arguments.pause, carry_out=runs.carry_out)
        return plans.run_plan(arguments, work, bench_options, plan)


def _choose_plan_file(arguments: argparse.Namespace, stem: str, labels: str, what: str) -> Path:
    """Return the name that stat files begin with: a new one, with ``--resume`` that of the last call.

    One that was killed before it had any result does not count where there is another. ``labels`` is a
    pattern of what distinguishes these files; ``what`` is what a message calls the plan.
    """
    folder = archives.choose_folder(arguments) or results_folder()
    if not arguments.resume:
        return folder / f"{stem}.{time.strftime('%Y-%m-%d.%H%M%S')}.stat.gz"
    pattern = re.compile(rf"({re.escape(stem)}\.\d{{4}}-\d\d-\d\d\.\d{{6}})\.{labels}\.stat\.gz\Z")
    begun = [
        (each.stat().st_size > 0, match[1])
        for each in folder.glob("*.stat.gz")
        if (match := pattern.match(each.name))
    ]
    if not begun:
        raise UsageError(f"--resume: {folder} has no run of {what}")
    return folder / f"{max(begun)[1]}.stat.gz"


def run_equal_runs(arguments: argparse.Namespace) -> ExitCode:
    """Make equal runs in turn, and say what follows from them; raises SsbenchError where one cannot begin."""
    from ssbench.cli import plans
    from ssbench.run.plan import PlanSettings

    settings.log_settings_files(arguments)
    arguments.sides = ()
    arguments.listed = auth_options.read_account_credentials(arguments, os.environ)
    arguments, scenario = _load_scenario_of_equal_runs(arguments)
    seconds, pairs = plans.choose_equal_runs(arguments, scenario)
    scenario = override(scenario, run_seconds=seconds)
    _choose_workers(arguments, scenario.user_count)
    stem = default_stats_stem(scenario)
    arguments.stats_file = _choose_plan_file(arguments, stem, r"[ab]-\d+", f"noise with {scenario.name}")
    side = plans.PlanSide(scenario, _make_run_options(arguments))
    work = plans.NoiseWork(side, pairs, arguments.pause, arguments.detect)
    bench_options = _make_bench_options(arguments, side.options, work.list_users(), [scenario.policy])
    with (
        interruption.hold_signals(),
        option_table.open_companions(arguments) as companions,
        _PlanRuns(arguments, companions, keeps=True) as runs,
    ):
        plan = PlanSettings(
            pause=arguments.pause,
            stops_on_errors=True,
            carry_out=runs.carry_out,
        )
        return plans.run_plan(arguments, work, bench_options, plan)


def _load_scenario_of_equal_runs(arguments: argparse.Namespace) -> tuple[argparse.Namespace, Scenario]:
    """Return the scenario, and the arguments that fit it.

    One of the command line alone needs no time or number of operations.
    """
    from ssbench.cli import plans

    if arguments.scenario_file or arguments.run_seconds is not None:
        return _load_scenario(arguments)
    timed = copy.copy(arguments)
    timed.run_seconds = plans.EQUAL_RUN_SECONDS
    return arguments, _load_scenario(timed)[1]


def prepare_scenario(arguments: argparse.Namespace) -> ExitCode:
    """Upload the initial objects of a scenario, and no more; raises SsbenchError where that cannot begin."""
    settings.log_settings_files(arguments)
    scenario = override(
        read_scenario(
            cli_options.choose_scenario_file(arguments), limited=True, bodies=arguments.allow_bodies
        ),
        **option_table.read_overridden_keys(arguments),
    )
    _choose_workers(arguments, scenario.user_count)
    credentials = auth_options.read_account_credentials(arguments, os.environ)
    scenario = _use_listed_accounts(scenario, len(credentials))
    credentials = credentials or [auth_options.make_credentials(arguments, os.environ)]
    table = option_table.read_known_option_values(RunOptions, arguments)
    options = RunOptions(
        requests=RequestOptions(**option_table.read_option_values(RequestOptions, arguments)), **table
    )
    shared = BenchOptions(
        workers=arguments.workers or 0,
        address=_make_address(arguments, options),
        offer=arguments.offer,
        key_file=cli_options.choose_key_file(arguments),
        credentials=credentials[0],
        further_credentials=tuple(credentials[1:]),
    )
    began = time.monotonic()
    with Bench(shared) as bench:
        outcome = bench.prepare(scenario, options)
    if outcome.interrupted:
        _log.warning("Interrupted; what was uploaded stays, and the same command goes on from there")
    elif not outcome.trouble:
        _log.info("All initial objects are there, after %s", format_duration(time.monotonic() - began))
    return outcome.ending_code


def _check_arguments(arguments: argparse.Namespace) -> argparse.Namespace:
    """Return the arguments that go together, with the sides of ``--ab``.

    Raises UsageError for others, and where ``--ab`` is wrong.
    """
    arguments = _check_options_of_plans(arguments)
    _read_events(arguments)
    if arguments.start_at is not None:
        refuse_past_moment(arguments.start_at, time.time())
    elif arguments.part is not None:
        _log.warning("--part without --start-at: merge needs runs that were under way at the same time")
    if arguments.ab:
        arguments = settings.refuse_options(arguments, "--ab names the sides", "--credentials")
    arguments.sides = sides.parse_sides(arguments)
    if any(side.policy for side in arguments.sides):
        arguments = settings.refuse_options(arguments, "--ab names the policies", "--policy")
    if arguments.local_swift:
        arguments = settings.refuse_options(
            arguments, "--local-swift has credentials of its own", "--credentials"
        )
    arguments.listed = auth_options.read_account_credentials(arguments, os.environ)
    if urls := [side.storage_url for side in arguments.sides if side.storage_url and not side.api]:
        arguments.auth_storage_urls = urls
    return arguments


def _choose_workers(arguments: argparse.Namespace, users: int | None = None) -> None:
    """Use local workers unless an option implies others: one per core, at most one per user.

    Those that are waiting at the usual ports come first: commands of ssbench 0.x do not say that there are
    some. None on another host reaches a local Swift.
    """
    arguments.offer = None
    if arguments.workers or option_table.expects_other_workers(arguments):
        return
    cores = len(os.sched_getaffinity(0))
    arguments.workers = min(cores, users or cores)
    local = getattr(arguments, "local_swift", False)
    arguments.offer = cli_options.make_bind_address(arguments, "127.0.0.1" if local else _ANY_ADDRESS)


def _check_options_of_plans(arguments: argparse.Namespace) -> argparse.Namespace:
    """Raise UsageError for an option of many runs that lacks the one that it belongs to."""
    if not arguments.find:
        arguments = settings.refuse_options(arguments, "--find-within needs --find", "--find-within")
    is_plan = bool(arguments.sweep or arguments.find or arguments.repeat or arguments.phases)
    if not is_plan:
        several = "--repeat, --sweep, --find or --phases"
        if "pause" in arguments.given:
            raise UsageError(f"--pause is between the runs of {several}: leave out --pause, or give one")
        arguments = settings.refuse_options(arguments, f"--resume is for {several}", "--resume")
    if not arguments.repeat:
        arguments = settings.ignore_options(arguments, "it needs --repeat", "--versus")
        if arguments.versus is not None:
            raise UsageError("--versus needs --repeat, which says how often both are run")
    if is_plan:
        several = "--repeat, --sweep, --find and --phases are several runs of one master"
        flags = [row.flag for row in option_table.list_single_run_options()]
        arguments = settings.refuse_options(arguments, several, *flags)
    if arguments.phases and arguments.sweep:
        arguments = settings.refuse_options(
            arguments,
            "--phases with --sweep has one way to run; --repeat with --versus compares two",
            "--versus",
        )
    if arguments.phases and "-" in {str(getattr(arguments, name)) for name in products.FORMAT_FILES}:
        raise UsageError("--phases has several reports: expected the name of a file, not -")
    return arguments


def _find_existing(arguments: argparse.Namespace) -> ExistingIn | None:
    """Where the objects are that exist already; None where the run makes its own."""
    if not arguments.existing and arguments.existing_list is None:
        return None
    from ssbench.comparison.sweep_variables import Variable

    what = "--existing has its own objects, and writes none"
    if arguments.noop:  # also where only a variable says so: its user expects that nothing is sent
        raise UsageError("--existing reads objects, and --noop sends no requests: leave out one of them")
    settings.refuse_options(arguments, what, "--container-count", "--delete-after", "--policy", "--ab")
    if arguments.sweep and arguments.sweep.variable is Variable.SIZE:
        raise UsageError(f"{what}: leave out --sweep size")
    return ExistingIn(tuple(arguments.existing), arguments.existing_list)


def _choose_file(arguments: argparse.Namespace, scenario: Scenario) -> None:
    """Let the stat file be a new one in the folder of results, where there is one."""
    if arguments.stats_file is not None:
        if arguments.results_dir is not None:
            raise UsageError("-s/--stats-file and --results-dir: one of them is enough")
    elif (folder := archives.choose_folder(arguments)) is not None:
        arguments.stats_file = new_stats_path(folder, scenario, time.time())


def _run_plan(arguments: argparse.Namespace) -> ExitCode:
    """Carry out many runs: repeated, in turn, of phases, of a sweep or of a search."""
    from ssbench.cli import plans
    from ssbench.run.plan import PlanSettings

    arguments = _check_plan_options(arguments)
    made = _make_sides(arguments)
    is_stepped = bool(arguments.sweep or arguments.find)
    is_repeated = bool(arguments.repeat) and not is_stepped
    pause = arguments.pause if is_repeated or "pause" in arguments.given else 0.0
    phases = _split_phases(arguments, made)
    work = _make_work(arguments, made, phases, pause)
    printed = {} if is_stepped or is_repeated else _list_printed_runs(arguments, phases)
    # All runs have the same workers, where it is known what they need.
    users = work.list_users()
    policies = [each.scenario.policy for each in made]
    bench_options = _make_bench_options(arguments, made[0].options, users, policies)
    reported = copy.copy(arguments)
    # The reports of phases are CSV; a table with other columns below them would be none.
    reported.no_default_report |= bool(printed) and arguments.csv
    with (
        interruption.hold_signals(),
        option_table.open_companions(arguments) as companions,
        _PlanRuns(arguments, companions, keeps=is_repeated, printed=printed) as runs,
    ):
        plan = PlanSettings(
            pause=pause,
            is_quiet=is_stepped,
            stops_on_errors=not is_stepped,
            carry_out=runs.carry_out,
        )
        code = plans.run_plan(reported, work, bench_options, plan)
        return choose_worst_code([code, *(each.code for each in printed.values())])


def _split_phases(arguments: argparse.Namespace, made: Sequence[plans.PlanSide]) -> list[plans.PhaseSides]:
    """Return the ways to run each phase, with labels of their own; none without ``--phases``."""
    found: list[plans.PhaseSides] = []
    if not arguments.phases:
        return found
    split = [[*ad_hoc.split_into_phases(each.scenario, arguments.phases)] for each in made]
    for parts in zip(*split, strict=True):
        name = parts[0][0].name
        sides_ = []
        for side, (_, scenario) in zip(made, parts, strict=True):
            label = f"{side.options.label}-{name}" if side.options.label else name
            options = replace(side.options, label=label, plan_phase=name)
            sides_.append(replace(side, scenario=scenario, options=options))
        found.append((name, sides_))
    return found


def _list_printed_runs(
    arguments: argparse.Namespace, phases: Sequence[plans.PhaseSides]
) -> dict[str, _PrintedRun]:
    """Return the runs of phases with their reports; raises UsageError for one that cannot be written."""
    found = {}
    began = time.time()
    for name, (side, *_) in phases:
        own = copy.copy(arguments)
        own.stats_file = label_stats_path(arguments.stats_file, side.scenario, name, began)
        own.label = side.options.label
        for option in products.FORMAT_FILES:
            if (path := getattr(own, option)) is not None:
                setattr(own, option, path.with_name(f"{path.stem}.{name}{path.suffix}"))
        found[name] = _PrintedRun(own, side.scenario)
    return found


def _make_work(
    arguments: argparse.Namespace,
    made: Sequence[plans.PlanSide],
    phases: Sequence[plans.PhaseSides],
    pause: float,
) -> plans.PlanWork[Any]:
    """Return the plan that the options ask for."""
    from ssbench.cli import plans

    def make_steps(made: Sequence[plans.PlanSide], prefix: str = "") -> plans.SweepWork | plans.SearchWork:
        repeats = arguments.repeat or 1
        if arguments.find:
            found, within = arguments.find, arguments.find_within
            return plans.SearchWork(made[0], found, within, repeats, pause, prefix)
        return plans.SweepWork(made, arguments.sweep, repeats, pause, _check_goal, prefix)

    if arguments.sweep or arguments.find:
        if phases:
            return plans.PhasedStepsWork([(name, make_steps(own, f"{name}.")) for name, own in phases])
        return make_steps(made)
    if phases:
        html = arguments.html
        page = html if html and not is_standard_output_name(html) else None
        return plans.PhasesWork(phases, arguments.repeat, pause, page, force=arguments.force)
    return plans.RepeatWork(made, arguments.repeat, pause)


def _check_plan_options(arguments: argparse.Namespace) -> argparse.Namespace:
    """Return the arguments that go together in many runs; raises UsageError for others."""
    from ssbench.cli import plans

    if arguments.resume and arguments.stats_file is None:
        raise UsageError("--resume needs -s/--stats-file: the name of the files that are there")
    if arguments.sweep or arguments.find:
        return plans.check_capacity_options(arguments)
    return plans.check_repeat_options(arguments) if arguments.repeat else arguments


def _make_sides(arguments: argparse.Namespace) -> list[plans.PlanSide]:
    """Return the ways to run; raises UsageError where ``--versus`` is wrong."""
    from ssbench.cli import plans

    own, scenario = _load_scenario(arguments)
    _choose_workers(arguments, None if arguments.sweep or arguments.find else scenario.user_count)
    _choose_file(arguments, scenario)
    own.stats_file = arguments.stats_file
    found = [plans.PlanSide(scenario, _make_run_options(own))]
    if arguments.versus is not None:
        # Of what was asked, not of what fits the scenario of the first side.
        other, scenario = _load_scenario(plans.parse_second_side(arguments))
        found.append(plans.PlanSide(scenario, _make_run_options(other)))
    return found


class _PlanRuns(ExitStack):
    """What carries out the runs of a plan: with the sinks of their results, besides the stat files.

    ``keeps``: those of companions are opened once, with the scenario of the first run. ``printed`` are the
    runs that print a report of their own, by the names of their cells.
    """

    def __init__(
        self,
        arguments: argparse.Namespace,
        companions: Companions,
        *,
        keeps: bool,
        printed: Mapping[str, _PrintedRun] | None = None,
    ) -> None:
        super().__init__()
        self._arguments = arguments
        self._companions = companions
        self._keeps = keeps
        self._printed = printed or {}
        self._kept: list[Sink] | None = None

    def carry_out(self, trial: PlanTrial, options: RunOptions, bench: Bench) -> RunOutcome:
        """Carry out a run."""
        scenario = trial.cell.scenario
        if trial.cell.name in self._printed:
            return self._printed[trial.cell.name].carry_out(options, bench, self._companions)
        with self._open_sinks(scenario, bench) as shown:
            return bench.run(
                scenario,
                options,
                sinks=[*_make_progress_sinks(self._arguments, scenario, bench), *shown],
                observer=self._companions.observer,
                goal=_make_goal(options.until),
            )

    @contextmanager
    def _open_sinks(self, scenario: Scenario, bench: Bench) -> Iterator[Sequence[Sink]]:
        if not self._keeps:
            with self._companions.open_sinks(scenario, bench) as shown:
                yield shown
            return
        if self._kept is None:
            self._kept = self.enter_context(self._companions.open_sinks(scenario, bench))
        yield self._kept


def _check_goal(scenario: Scenario, until: float | None) -> None:
    """Raise UsageError where a run cannot end before its time as was asked."""
    if until is None:
        return
    if scenario.run_seconds is None:
        raise UsageError("--until needs a limit of time: -r/--run-seconds")
    if scenario.is_open or scenario.stages:
        raise UsageError("--until is for runs whose rate is not given: without --rate, and without stages")


def _make_goal(until: float | None) -> Goal | None:
    """What ends the run before its time, where that was asked for."""
    if until is None:
        return None
    from ssbench.statistics.stopping_rule import StoppingSink

    return StoppingSink(until)


def _make_progress_sinks(arguments: argparse.Namespace, scenario: Scenario, bench: Bench) -> list[Sink]:
    match arguments.progress:
        case "line":
            return [ProgressLine(scenario, bench.workers)]
        case "live":
            from ssbench.run.progress import LiveScreen

            return [LiveScreen(scenario, bench.workers, bench.worker_views)]
        case "characters":
            return [ResultCharacters(scenario)]
    return []


def _choose_ad_hoc_load(
    arguments: argparse.Namespace,
) -> tuple[argparse.Namespace, ad_hoc.AdHocLoad | None]:
    """Return the arguments that go together, and the load of a scenario without a file, None with one.

    Raises UsageError.
    """
    asked = arguments.size is not None or arguments.mix is not None
    asked |= bool(arguments.phases and arguments.existing)
    if arguments.scenario_file and ("scenario_file" in arguments.given or not asked):
        arguments = settings.refuse_options(
            arguments,
            "-f names a scenario, which has sizes and operations",
            *("--size", "--mix", "--objects", "--print-scenario"),
        )
        return arguments, None
    arguments = settings.ignore_options(arguments, "--size and --mix make a scenario", "--scenario-file")
    if not asked:
        if arguments.print_scenario or arguments.objects or arguments.phases:
            raise UsageError("--size is missing: the size of the objects, such as 4kB or 4kB..1MB")
        raise UsageError(
            "-f/--scenario-file is required (--list-scenarios lists those that ship with ssbench), or --size"
            " and --mix, as in: --size 4kB --mix put,get,delete"
        )
    return arguments, _make_ad_hoc_load(arguments)


def _make_ad_hoc_load(arguments: argparse.Namespace) -> ad_hoc.AdHocLoad:
    """Return the load that the command line says; raises UsageError."""
    exists = bool(arguments.existing) or arguments.existing_list is not None
    if arguments.size is None and not exists:
        raise UsageError("--size is missing: the size of the objects, such as 4kB or 4kB..1MB")
    if bool(arguments.mix) == bool(arguments.phases):
        raise UsageError(
            "--mix and --phases: expected one of them (--mix read=9,create=1: together; --phases"
            " put,get,delete: one after the other)"
        )
    keys = option_table.read_overridden_keys(arguments)
    keys["fail_if"] = [each.text for each in arguments.fail_if] or None
    if arguments.run_seconds is not None:
        keys["operation_count"] = None
    if arguments.warmup == AUTOMATIC_WORD:
        keys["warmup"] = None
    keys["delete_after"] = arguments.delete_after or None
    return ad_hoc.AdHocLoad(
        size=arguments.size or "1",  # of objects that exist it is theirs
        weights=arguments.mix or {},
        phases=arguments.phases or (),
        objects=arguments.objects,
        values={key: value for key, value in keys.items() if value is not None},
    )


def _describe_ad_hoc_file(arguments: argparse.Namespace) -> str:
    """Return the comments that a printed scenario begins with."""
    phases = ",".join(each.name for each in arguments.phases or ())
    more = f" --phases {phases}" if phases else ""
    return f"# ssbench-master run-scenario -f FILE{more}\n"


def _load_scenario(arguments: argparse.Namespace) -> tuple[argparse.Namespace, Scenario]:
    """Return the scenario, and the arguments that fit it; raises UsageError and ScenarioError."""
    limited = arguments.run_seconds is not None or arguments.op_count is not None
    arguments, load = _choose_ad_hoc_load(arguments)
    if load is not None:
        scenario = ad_hoc.make_ad_hoc_scenario(load)
    else:
        scenario = read_scenario(arguments.scenario_file, limited=limited, bodies=arguments.allow_bodies)
    if scenario.stages:
        arguments = settings.ignore_options(
            arguments, "the scenario has stages", "--run-seconds", "--op-count", "--rate"
        )
    if arguments.rate is not None or scenario.is_open:
        arguments = settings.ignore_options(
            arguments, "no user decides when operations of a rate are due", "--think-time"
        )
    scenario = override(
        scenario,
        fail_if=[condition.text for condition in arguments.fail_if],
        **option_table.read_overridden_keys(arguments),
    )
    _log.info("ssbench %s: %s", __version__, scenario.name)
    idle = explain_idle_arrivals(scenario)
    if idle and not (arguments.sweep and arguments.sweep.variable.value == "rate"):
        _log.warning("%s", idle)
    if arguments.ab and not arguments.repeat:
        _warn_of_short_sides(scenario)
    return _ignore_goal(arguments, scenario), _use_listed_accounts(scenario, len(arguments.listed))


def _ignore_goal(arguments: argparse.Namespace, scenario: Scenario) -> argparse.Namespace:
    """Return arguments without a goal that is set elsewhere, where the scenario can have none."""
    if arguments.until is None:
        return arguments
    if arguments.sweep:
        from ssbench.comparison.sweep import make_step_scenario

        scenario = make_step_scenario(scenario, arguments.sweep.variable, arguments.sweep.values[0])
    if scenario.run_seconds is None or scenario.is_open or scenario.stages:
        arguments = settings.ignore_options(arguments, "this run has a rate, or no limit of time", "--until")
    _check_goal(scenario, arguments.until)
    return arguments


def _warn_of_short_sides(scenario: Scenario) -> None:
    """Say before a run with two sides that it is too short for a verdict on them."""
    from ssbench.statistics.confidence import MIN_SECONDS

    if scenario.run_seconds is not None and scenario.run_seconds < MIN_SECONDS:
        _log.warning(
            "--ab: a verdict on two sides needs %d s or more, not %g s", MIN_SECONDS, scenario.run_seconds
        )


def _use_listed_accounts(scenario: Scenario, count: int) -> Scenario:
    """Return a scenario in the accounts of a list, 0: of none; one with another number of them is refused."""
    return override(scenario, accounts=count) if count and scenario.accounts == 1 else scenario


def _make_bench_options(
    arguments: argparse.Namespace,
    options: RunOptions,
    users: Sequence[int] = (),
    policies: Sequence[str | None] = (),
    stores: tuple[NamedStore, ...] = (),
    *,
    needs_account: bool = True,
) -> BenchOptions:
    """Return what all runs with such options share; ``users`` are those of runs with the same local workers.

    ``needs_account``: not all runs name one of the ``stores``.
    """
    needs_credentials = needs_account and not options.noop and not arguments.local_swift
    credentials = arguments.listed
    if needs_credentials and not credentials:
        credentials = sides.make_side_credentials(arguments, os.environ)
    most = max(users, default=0)
    return BenchOptions(
        workers=arguments.workers or 0,
        concurrency=min(-(-most // arguments.workers), wire.MAX_JOBS) if most and arguments.workers else None,
        policies=tuple(filter(None, policies)),
        address=_make_address(arguments, options),
        offer=arguments.offer,
        key_file=cli_options.choose_key_file(arguments),
        credentials=next(iter(credentials), None),
        further_credentials=tuple(credentials[1:]),
        local_swift=arguments.local_swift,
        stores=stores,
        profile=options.profile,
    )


def _make_address(arguments: argparse.Namespace, options: RunOptions) -> BindAddress | None:
    """Where workers that are not started here connect; None where none are expected."""
    if not arguments.workers:
        return cli_options.make_bind_address(arguments, _ANY_ADDRESS)
    if cli_options.has_zmq_options(arguments) or (options.expect_workers or 0) > arguments.workers:
        return cli_options.make_bind_address(arguments, "127.0.0.1")
    return None


def _read_events(arguments: argparse.Namespace) -> tuple[TimedCommand, ...]:
    """Return the commands of ``--at``; raises UsageError."""
    try:
        return tuple(make_timed_command(at, command) for at, command in arguments.at)
    except ValueError as error:
        raise UsageError(f"--at: {error}") from None


def _make_run_options(arguments: argparse.Namespace) -> RunOptions:
    return RunOptions(
        requests=RequestOptions(**option_table.read_option_values(RequestOptions, arguments)),
        **option_table.read_option_values(RunOptions, arguments),
        swift=option_table.make_trial_swift(arguments),
        sides=arguments.sides,
        existing=_find_existing(arguments),
        events=_read_events(arguments),
        until=arguments.until,
        find_warmup=arguments.warmup == AUTOMATIC_WORD,
        stats_file=arguments.stats_file,
        force=arguments.force,
        profile=arguments.profile,
        undecided=choose_undecided(arguments),
    )
