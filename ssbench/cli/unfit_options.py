"""Which options of ``run-scenario`` do not go together, or do not fit the scenario.

Most cases are rows; :func:`check_options` and :func:`check_existing` have those that are no matter of leaving
out an option.
"""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import TypeAlias

from ssbench.base.errors import UsageError
from ssbench.cli import option_table, sides
from ssbench.cli import options as cli_options
from ssbench.cli.asked import UnfitOptions
from ssbench.cli.option_table import LoadAsked, RunAsked, RunScenarioAsked
from ssbench.cli.parser import Origin
from ssbench.document.units import Unit
from ssbench.reports import products
from ssbench.reports.products import Product
from ssbench.run.bench_options import refuse_many_workers, refuse_past_moment
from ssbench.scenario.conditions import find_precision_figure
from ssbench.scenario.model import Scenario

#: Units of figures that are known where a rate is given.
_RATES = (Unit.PER_SECOND, Unit.MEGABYTES_PER_SECOND)

_ONE_RUN_FLAGS = tuple(row.flag for row in option_table.list_single_run_options())
_WORKER_FLAGS = tuple(row.flag for row in option_table.list_worker_options())

_OWN_WORKERS = "--sweep workers= starts local workers; leave out --expect-workers and the options for others"
_PLAN_OPTIONS = "--repeat, --sweep, --find or --phases"

#: Options of commands for one way to run a scenario: those of a side.
_OfSide: TypeAlias = UnfitOptions[LoadAsked, None]

#: Options of one call of run-scenario.
_OfCall: TypeAlias = UnfitOptions[RunScenarioAsked, None]


def _sweeps(what: str, asked: LoadAsked, _: object = None) -> bool:
    return asked.sweep is not None and asked.sweep.variable.value == what


def _name_plan_option(asked: RunScenarioAsked) -> str:
    """Return the option that decides what the report of many runs is; empty: --phases alone, or none."""
    ways = {"--sweep": asked.sweep, "--find": asked.find, "--repeat": asked.repeat}
    return next((option for option, value in ways.items() if value), "")


def choose_product(asked: RunScenarioAsked) -> Product:
    """Return what the report of many runs is."""
    two = asked.is_in_turn
    if two and (asked.sweep or asked.phases):
        return Product.SUITES
    if asked.is_stepped:
        return Product.CAPACITIES if asked.phases else Product.CAPACITY
    if asked.phases:
        return Product.SUITE
    return Product.COMPARISON if asked.ab or two else Product.REPEATED


def _lacks_report(option: str, flag: str, asked: RunScenarioAsked, _: object) -> bool:
    return _name_plan_option(asked) == option and any(
        products.format_option(file[0]) == flag and not _has_report(asked, file)
        for file in cli_options.choose_report_files(asked).wanted
    )


def _has_report(asked: RunScenarioAsked, file: tuple[str, Path]) -> bool:
    return products.has_format(choose_product(asked), file[0])


UNFIT_FOR_SIDE: tuple[_OfSide, ...] = (
    UnfitOptions(
        ("--scenario-file", "--op-count", "--run-seconds", "--container-count", "--delete-after"),
        "--replay says what is done, to what, and for how long",
        lambda asked, _: asked.is_replay,
    ),
    UnfitOptions(
        ("--phases", "--ab", "--existing", "--part", "--verify", "--prepared", "--until"),
        "--replay repeats the requests of a log as a whole",
        lambda asked, _: asked.is_replay,
    ),
    UnfitOptions(
        ("--container-count", "--delete-after", "--policy", "--ab"),
        "--existing reads objects that exist, and writes none",
        lambda asked, _: bool(asked.existing) and not asked.options.noop,
    ),
)

UNFIT_FOR_CALL: tuple[_OfCall, ...] = (
    UnfitOptions(
        ("--pause",),
        f"--pause is between the runs of {_PLAN_OPTIONS}",
        lambda asked, _: not asked.is_plan,
        refusal=f"--pause is between the runs of {_PLAN_OPTIONS}: leave out --pause, or give one",
        is_ignored=False,
    ),
    UnfitOptions(("--resume",), f"--resume is for {_PLAN_OPTIONS}", lambda asked, _: not asked.is_plan),
    UnfitOptions(
        ("--versus",),
        "it needs --repeat",
        lambda asked, _: not asked.repeat,
        refusal="--versus needs --repeat, which says how often both are run",
    ),
    UnfitOptions(
        ("--versus",),
        "it compares whole runs with and without a group of users",
        lambda asked, _: (
            asked.isolated_group is not None
            and bool(asked.is_stepped or asked.phases or asked.ab or asked.is_replay)
        ),
        refusal="--versus 'without GROUP' compares runs with and without a group of users: leave out --sweep,"
        " --find, --phases, --ab and --replay",
    ),
    UnfitOptions(
        _ONE_RUN_FLAGS,
        "--repeat, --sweep, --find and --phases are several runs of one master",
        lambda asked, _: asked.is_plan,
    ),
    UnfitOptions(
        ("--versus",),
        "--phases with --sweep has one way to run; --repeat with --versus compares two",
        lambda asked, _: bool(asked.phases and asked.sweep),
    ),
    UnfitOptions(("--credentials",), "--ab names the sides", lambda asked, _: bool(asked.ab)),
    UnfitOptions(
        ("--policy",),
        "--ab names the policies",
        lambda asked, _: any(side.policy for side in sides.parse_sides(asked)),
    ),
    UnfitOptions(
        ("--credentials",),
        "--local-swift has credentials of its own",
        lambda asked, _: bool(asked.local_swift),
    ),
    UnfitOptions(
        ("--versus",),
        "--find looks for the limit of one way to run; --sweep compares two at each load",
        lambda asked, _: bool(asked.find),
    ),
    UnfitOptions(
        ("--ab",),
        "--find judges all users of a run; --sweep compares the sides at each load",
        lambda asked, _: bool(asked.find),
    ),
    UnfitOptions(
        ("--report", "--pctile", "--fail-if"), "--sweep makes many runs", lambda asked, _: bool(asked.sweep)
    ),
    UnfitOptions(
        ("--report", "--pctile", "--fail-if", "--until"),
        "--find makes many runs",
        lambda asked, _: bool(asked.find),
    ),
    *(
        UnfitOptions(
            (flag,),
            f"{option} has no such report",
            partial(_lacks_report, option, flag),
            is_refused=False,  # here: :func:`check_options` says which ones there are
            fits=_has_report if flag == "--ci" else None,
        )
        for option in ("--sweep", "--find", "--repeat")
        for flag in ("--json", "--html", "--ci")
    ),
    *(
        UnfitOptions(
            (flag,),
            "--sweep varies it",
            partial(_sweeps, what),
            refusal=f"--sweep varies what {name} sets; leave out one of them",
            is_ignored=False,  # the values of the sweep win
        )
        for flag, name, what in (
            ("--user-count", "-u/--user-count", "users"),
            ("--rate", "--rate", "rate"),
            ("--workers", "--workers", "workers"),
        )
    ),
    UnfitOptions(
        _WORKER_FLAGS,
        "--sweep workers= starts local workers",
        partial(_sweeps, "workers"),
        refusal=_OWN_WORKERS,
    ),
    UnfitOptions(
        ("--repeat",),
        "--sweep objects adds objects from step to step, and a second series would begin with all of them",
        partial(_sweeps, "objects"),
    ),
    UnfitOptions(
        ("--metrics",),
        "--versus is for runs of two kinds",
        lambda asked, _: asked.is_in_turn and asked.monitoring.counts_operations,
    ),
)

UNFIT_FOR_SCENARIO: tuple[UnfitOptions[LoadAsked, Scenario], ...] = (
    UnfitOptions(
        ("--run-seconds", "--op-count", "--rate"),
        "the scenario has stages",
        lambda _, scenario: bool(scenario.stages),
        is_refused=False,  # here: the scenario refuses to be overridden
        origin=Origin.SCENARIO,
    ),
)

#: What does not fit the scenario as it is run, with what options say of it.
UNFIT_FOR_RUN: tuple[UnfitOptions[RunAsked, Scenario], ...] = (
    UnfitOptions(
        ("--until",),
        "this run has a rate",
        lambda asked, scenario: (
            scenario.is_open and any(find_precision_figure(each).unit in _RATES for each in asked.goals)
        ),
        refusal="--until: this run has a rate; ask for a latency, such as 'read.p99 5%'",
        origin=Origin.SCENARIO,
    ),
    UnfitOptions(
        ("--until",),
        "this run has stages",
        lambda _, scenario: any(part.stages for part in scenario.parts),
        refusal="--until is for runs without stages, whose figures change as was asked for",
        origin=Origin.SCENARIO,
    ),
)


def check_options(asked: RunScenarioAsked) -> None:
    """Raise UsageError where options do not go together, of what :func:`fit_options` has left."""
    if asked.phases and Path("-") in cli_options.choose_report_files(asked).paths:
        raise UsageError("--phases has several reports: expected the name of a file, not -")
    if asked.options.start_at is not None:
        refuse_past_moment(asked.options.start_at, time.time())
    if asked.is_plan and asked.resume and asked.stats_file is None:
        raise UsageError("--resume needs -s/--stats-file: the name of the files that are there")
    if option := _name_plan_option(asked):
        wanted = [name for name, _ in cli_options.choose_report_files(asked).wanted]
        products.check_format(choose_product(asked), wanted, option)
    if asked.ab and asked.versus is not None:
        raise UsageError("--ab compares two sides within each run; leave out --versus")
    if asked.sweep and _sweeps("workers", asked):
        if cli_options.has_zmq_options(asked):
            raise UsageError(_OWN_WORKERS)
        refuse_many_workers(asked.sweep.values[-1])


def check_replay(asked: LoadAsked) -> None:
    """Raise UsageError where a replay cannot have what is set, because the log says it."""
    if not asked.is_replay:
        return
    if asked.sweep and not _sweeps("rate", asked):
        raise UsageError(
            f"--replay says what is done: --sweep rate is possible, not {asked.sweep.variable.value}"
        )
    # Not for the help.
    from ssbench.scenario.model import SCENARIO_KEYS, KeyTopic

    of_log = {key.name for key in SCENARIO_KEYS if key.topic in {KeyTopic.WORK, KeyTopic.LOAD}}
    of_log |= {"size", "objects", "popularity", "reuse", "objects_per_container"}
    for path, _ in asked.set:
        if path.partition(".")[0] in of_log:
            raise UsageError(f"--replay says what is done: leave out --set {path}")


def check_existing(asked: LoadAsked) -> None:
    """Raise UsageError where a way to run cannot have objects that exist already."""
    if not asked.existing:
        return
    if asked.options.noop:
        # Also where only a variable says so: its user expects that nothing is sent.
        raise UsageError("--existing reads objects, and --noop sends no requests: leave out one of them")
    for what in ("size", "objects"):
        if _sweeps(what, asked):
            raise UsageError(
                f"--existing reads objects that exist, and writes none: leave out --sweep {what}"
            )
