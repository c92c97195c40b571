"""``ssbench-master suite``: many runs from one file, one table, one exit code."""

from __future__ import annotations

import argparse
import itertools
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from ssbench.base.errors import ExitCode, UsageError
from ssbench.base.option import OptionGroup, OptionScope
from ssbench.cli import archives, auth_options, option_table, options, sides, unfit_options
from ssbench.cli.asked import fit_options
from ssbench.cli.option_table import RunAsked
from ssbench.cli.options import (
    ALLOW_OPTION,
    COUNT,
    FORCE_OPTION,
    SECONDS,
    SECONDS_OR_0,
    UNDECIDED_OPTION,
    Argument,
    ValueKind,
    add_options,
    make_argument_type,
)
from ssbench.cli.own_program import import_faster
from ssbench.reports.products import Product
from ssbench.run.bench_options import RunOptions

if TYPE_CHECKING:
    from ssbench.plans.rows_work import SuiteWork
    from ssbench.run.plan import PlanCell
    from ssbench.scenario.value_rules import Precision

_log = logging.getLogger(__name__)

USAGE = "%(prog)s SUITE [option ...]"

EXAMPLE = "ssbench-master suite quick --local-swift --workers 2"

#: What the short help of a command shows last that makes many runs for one report.
BRIEF_OF_PLANS = ("--resume", "--label", "--local-swift", "--workers", "--results-dir", "--html", "--json")

#: What the short help shows.
BRIEF = ("--rounds", "--rows", "--run-seconds", "--scale", "--store", "--between", *BRIEF_OF_PLANS)

DESCRIPTION = (
    "Run every row of a suite, a file that lists scenarios and values to vary, in rounds with the same "
    "workers and initial objects, and print one table. Suites that ship with ssbench: quick (five minutes), "
    "standard (4 kB and 1 MB), ai; releases and features, which start Swifts here and compare them. See "
    "doc/suites.rst; 'compare' says what changed between two suites."
)


@dataclass(frozen=True, kw_only=True)
class SuiteAsked(RunAsked):
    """What ``suite`` is asked."""

    suite: str | None
    rounds: int | None
    between: str | None
    rows: Sequence[str]
    scale: Fraction
    store: Sequence[str]


ASKED = SuiteAsked


def parse_scale(text: str) -> Fraction:
    """Parse ``1/64`` or ``0.5``; raises ValueError."""
    try:
        scale = Fraction(text)
    except (ValueError, ZeroDivisionError):
        scale = Fraction(0)
    if not 0 < scale <= 1000:
        raise ValueError(f"{text!r} is not a scale, such as 1/64")
    return scale


def make_store_option(what: str, several: str) -> Argument:
    """Return the option; it says what is done with a store, and with several."""
    return Argument(
        "--store",
        ValueKind("STORE"),
        f"{what}: swift or s3, the account over either API, NAME=URL, NAME=@FILE with the variables of an"
        " account, or NAME=RELEASE (as 2.37.4), a Swift that is started for it; may be repeated, and"
        f" {several}",
        default=[],
        repeated=True,
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the sub-command."""
    add_options(
        parser,
        Argument(
            "suite",
            ValueKind("SUITE"),
            "a suite in YAML or JSON, or the name of a shipped one (ssbench-master help suites)",
            settings={"nargs": "?"},
        ),
        ALLOW_OPTION,
        UNDECIDED_OPTION,
    )
    group = parser.add_argument_group("load", "Each replaces the value in the suite.")
    add_options(
        group,
        Argument("--rounds", COUNT, "run each row N times", default_text="as the suite says"),
        Argument("-r --run-seconds", SECONDS, "time of each run"),
        Argument(
            "--scale",
            ValueKind("SCALE", make_argument_type(parse_scale)),
            "multiply object sizes, and numbers of initial objects above 1,000, by SCALE, for a small"
            " machine, say: 1/64; names of rows have the sizes that result",
            Fraction(1),
            default_text="no scaling",
        ),
        Argument(
            "--rows",
            ValueKind("NAME"),
            "run only these rows: names of rows, such as kv, or patterns, such as 'kv*' or '*users=8'; may be"
            " repeated",
            default=[],
            repeated=True,
        ),
        make_store_option("run the rows that name no store at this one", "the table has a row for each"),
        Argument(
            "--between",
            ValueKind("KEY"),
            "compare the values of a key that varies, with one verdict: --between profile, users, size",
            default_text="two stores, if there are two",
        ),
        Argument("--pause", SECONDS_OR_0, "seconds between two runs", 0.0),
        option_table.make_resume_option("continue the last call for this suite"),
    )
    option_table.add_record_options(group, RunOptions, OptionGroup.LOAD)
    option_table.add_local_swift_arguments(group)
    add_options(group, option_table.UNTIL_OPTION, option_table.AT_OPTION)
    add_arguments_of_plans(parser, Product.SUITE)


def add_arguments_of_plans(
    parser: argparse.ArgumentParser, product: Product, folder: str = "folder for the stat files of all runs"
) -> None:
    """Add the options of a command that makes many runs for one report: requests, results, fleet, account."""
    option_table.add_request_arguments(parser)
    results = parser.add_argument_group("results")
    add_options(results, archives.make_results_dir_option(folder))
    option_table.add_record_options(results, RunOptions, OptionGroup.RESULTS)
    add_options(
        results,
        FORCE_OPTION,
        Argument("-R --no-default-report", None, "print no table"),
        options.make_format_option(product),
        *options.list_report_file_options(),
        Argument(
            "--progress", ("line", "characters", "none"), "what to show of each run on standard error", "line"
        ),
    )
    option_table.add_leaf_arguments(option_table.CLUSTER_OPTIONS, parser)
    option_table.add_leaf_arguments(option_table.METRICS_OPTIONS, parser)
    option_table.add_fleet_arguments(
        parser,
        "start N local workers for all runs",
        "one for each core, if no option says that others connect",
        OptionScope.MANY_RUNS,
    )
    auth_options.add_auth_arguments(parser)


def run(asked: SuiteAsked) -> ExitCode:
    """Run the rows of a suite; raises SsbenchError where one cannot begin."""
    with import_faster():
        from ssbench.cli.plans import make_page_writer
        from ssbench.cli.run_scenario import PlanFiles, begin_plan, start_plan, use_listed_accounts
        from ssbench.plans import rows_work
        from ssbench.run.plan import PlanSettings
        from ssbench.scenario.suite_file import read_suite

    asked, place = begin_plan(asked, asked.store)
    if asked.suite is None:
        raise UsageError(
            "a suite is expected: a file, or the name of a shipped one ('ssbench-master help suites')"
        )
    suite = read_suite(
        asked.suite,
        scale=asked.scale,
        seconds=asked.run_seconds,
        bodies=options.list_allowed_folders(asked.allow),
        stores=place.stores,
        storage_url=next(iter(asked.auth_storage_urls or ()), ""),
        rows=asked.rows,
    )
    if asked.rounds is not None:
        suite = replace(suite, rounds=asked.rounds)
    if suite.swifts:
        asked = sides.ask_for_swifts(asked, f"the suite {suite.name}", always=True)
        place = replace(place, swifts=suite.swifts)

    def make_work(options: RunOptions) -> SuiteWork:
        scenarios = [use_listed_accounts(each.scenario, place) for each in suite.variants]
        return rows_work.SuiteWork(
            suite,
            _bind_goals_of_rows(asked, rows_work.make_suite_cells(suite, options, scenarios)),
            asked.pause,
            make_page_writer(asked.html, force=asked.force or asked.resume),
            stores=None if asked.local_swift else place.stores,
            between=asked.between or suite.between,
        )

    files = PlanFiles(re.sub(r"[^A-Za-z0-9._-]+", "_", suite.name), f"the suite {suite.name}")
    return start_plan(asked, place, files, make_work, PlanSettings(pause=asked.pause))


def _bind_goals_of_rows(asked: SuiteAsked, cells: Sequence[PlanCell]) -> list[PlanCell]:
    """Return the rows of a suite, each with what ``--until`` waits for in it; logs which rows lack a figure.

    Raises UsageError where all lack it.
    """
    from ssbench.cli.run_scenario import bind_goal

    goals: list[list[tuple[Precision, ...]]] = [[] for _ in cells]
    for goal in asked.goals:
        reasons: dict[str, str] = {}
        for own, cell in zip(goals, cells, strict=True):
            try:
                bound = bind_goal(goal, cell.scenario, noop=asked.options.noop)
                row = replace(asked, until=[(bound,)])
                own.extend(fit_options(row, unfit_options.UNFIT_FOR_RUN, cell.scenario).until)
            except UsageError as error:
                reasons[cell.row] = str(error)
        if len(reasons) == len(cells):
            raise UsageError(next(iter(reasons.values())))
        for name, why in reasons.items():
            _log.info("Row %s does not wait for %s: %s", name, goal.subject, why)
    return [
        replace(cell, options=replace(cell.options, until=tuple(itertools.chain(*own))))
        for cell, own in zip(cells, goals, strict=True)
    ]
