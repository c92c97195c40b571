"""``ssbench-master prepare``: upload the initial objects of a scenario, and no more."""

from __future__ import annotations

import argparse

from ssbench.base.errors import ExitCode, UsageError
from ssbench.base.option import OptionScope
from ssbench.cli import auth_options, option_table, options
from ssbench.cli.option_table import PrepareAsked
from ssbench.cli.options import COUNT, Argument, add_options
from ssbench.cli.own_program import import_faster

USAGE = "%(prog)s FILE [option ...]"

EXAMPLE = "ssbench-master prepare my.yaml --workers 4 -u 64"

DESCRIPTION = (
    "Make the containers of a scenario and upload its initial objects, with the same workers as a run."
    " Existing objects are reused, so you can interrupt it and start it again. Runs with --prepared"
    " then start at once."
)


ASKED = PrepareAsked


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the sub-command."""
    add_options(parser, *options.SCENARIO_ARGUMENTS)
    add_options(
        parser.add_argument_group("load", "Each replaces the value in the scenario."),
        Argument("-u --user-count", COUNT, "maximum number of uploads in flight"),
        option_table.CONTAINER_COUNT_OPTION,
        option_table.POLICY_OPTION,
        option_table.SET_OPTION,
    )
    option_table.add_request_arguments(parser, OptionScope.PREPARATION)
    option_table.add_fleet_arguments(parser, "start N local workers", None, OptionScope.PREPARATION)
    auth_options.add_auth_arguments(parser)


def run(asked: PrepareAsked) -> ExitCode:
    """Upload the objects; raises SsbenchError where that cannot begin."""
    if asked.options.max_errors is not None:
        raise UsageError("--give-up-after: uploads have no number of errors; a time is expected")
    with import_faster():
        from ssbench.cli.run_scenario import prepare_scenario

    return prepare_scenario(asked)
