"""The options of ``ssbench-master run-scenario``.

They are not in :mod:`ssbench.cli.run_scenario` because that imports all that a run needs, which takes much
longer than to print the help.
"""

from __future__ import annotations

import argparse

from ssbench.base.errors import ExitCode
from ssbench.base.option import OptionGroup, OptionScope
from ssbench.cli import archives, auth_options, option_table, options
from ssbench.cli.option_table import Objective, RunScenarioAsked
from ssbench.cli.options import (
    ALLOW_OPTION,
    FAIL_IF_OPTION,
    FILE,
    FORCE_OPTION,
    PERCENTILES_OPTION,
    SCENARIO_FILE,
    UNDECIDED_OPTION,
    Argument,
    ValueKind,
    add_options,
    add_report_options,
    make_argument_type,
    parse_share,
    read_by,
)
from ssbench.cli.own_program import import_faster
from ssbench.run.bench_options import RunOptions

USAGE = "%(prog)s -f SCENARIO [option ...]"

EXAMPLE = "ssbench-master run-scenario -f small --workers 2 -u 16 -r 60"

#: What the short help shows.
BRIEF = (
    "--scenario-file",
    "--local-swift",
    "--workers",
    "--user-count",
    "--op-count",
    "--run-seconds",
    "--rate",
    "--warmup",
    "--set",
    "--policy",
    "--keep-objects",
    "--stats-file",
    "--label",
    "--html",
    "--json",
    "--fail-if",
    "--sweep",
    "--find",
    "--repeat",
    "--versus",
)

DESCRIPTION = (
    "Run a scenario against Swift, with connected workers or with local ones (--workers), write every result"
    " to a stat file and print a report. Options for Swift and the user are those of the 'swift' command;"
    " --local-swift starts a Swift on this machine."
)


ASKED = RunScenarioAsked


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the sub-command."""
    add_options(
        parser,
        Argument(
            "-f --scenario-file",
            SCENARIO_FILE,
            "a scenario in YAML or JSON, the name of a shipped one (ssbench-master help scenarios), or one in"
            " a line: 'size=4kB mix=put,get,delete' (doc/scenarios.rst)",
        ),
        ALLOW_OPTION,
    )
    option_table.add_leaf_arguments(option_table.REPLAY_OPTIONS, parser)
    option_table.add_load_arguments(parser)
    _add_capacity(parser)
    option_table.add_request_arguments(parser)
    _add_results(parser)
    option_table.add_leaf_arguments(option_table.CLUSTER_OPTIONS, parser)
    option_table.add_leaf_arguments(option_table.METRICS_OPTIONS, parser)
    option_table.add_fleet_arguments(
        parser,
        "start N local workers for this run",
        "those that are waiting, or else one for each core",
        OptionScope.ONE_RUN,
    )
    auth_options.add_auth_arguments(parser)


def _parse_objective(text: str) -> Objective:
    """Parse the conditions of ``--find``, and how exactly the answer is to be known."""
    from ssbench.scenario import conditions  # here, because it brings the tables of operations and of figures

    wanted, _, within = text.partition(" within ")
    return Objective(
        conditions.parse_conditions(wanted, grouped=True), parse_share(within) if within else None
    )


def _add_capacity(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "capacity", "Many runs with the same workers and initial objects; see doc/capacity.rst."
    )
    add_options(
        group.add_mutually_exclusive_group(),
        Argument(
            "--sweep",
            ValueKind("WHAT=VALUES", read_by("comparison.sweep_variables", "parse_sweep")),
            "a run for each value of users, rate, size, objects or workers: users=4,8,16 or users=4..512"
            " (doubled); ends where more load brings nothing, or operations fail",
        ),
        Argument(
            "--find",
            ValueKind("CONDITIONS", make_argument_type(_parse_objective)),
            "find the most users (with --rate: the highest rate) at which 'read.p99 <= 50ms and errors <="
            " 0.1%%' holds, within 10 %% (or 'errors <= 0.1%% within 5%%'); starts at -u or --rate; -r is the"
            " time of a step",
        ),
    )


def _add_results(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("results")
    add_options(
        group,
        Argument(
            "-s --stats-file",
            FILE,
            "file for the results; .gz is appended",
            default_text=f"a new file in {archives.DEFAULT_FOLDER}",
        ),
        archives.make_results_dir_option("folder for a new stat file, in which ssbench-master list finds it"),
    )
    option_table.add_record_options(group, RunOptions, OptionGroup.RESULTS)
    add_options(group, FORCE_OPTION, Argument("-R --no-default-report", None, "print no report"))
    add_report_options(group)
    add_options(
        group, PERCENTILES_OPTION, FAIL_IF_OPTION, UNDECIDED_OPTION, *options.list_report_file_options()
    )
    add_options(
        group,
        Argument(
            "--progress",
            ("line", "live", "characters", "none"),
            "how to show progress on standard error: a line (redrawn on a terminal, otherwise one"
            " every 10 s), live (operations, latencies over time, workers with their CPU and lag, and errors"
            " by cause on the whole terminal), a character for each result, or nothing",
            "line",
        ),
        Argument("--profile", None, "write profiles of the benchmark and of the local workers"),
    )


def run(asked: RunScenarioAsked) -> ExitCode:
    """Run the benchmark; raises SsbenchError where it cannot begin."""
    with import_faster():
        from ssbench.cli import run_scenario

    return run_scenario.run(asked)
