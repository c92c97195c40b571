"""``ssbench-master prepare``: upload the initial objects of a scenario, and no more."""

from __future__ import annotations

import argparse

from ssbench.base.errors import ExitCode, UsageError
from ssbench.base.option import OptionGroup, OptionScope
from ssbench.cli import auth_options, option_table, options
from ssbench.cli.option_table import PrepareAsked
from ssbench.cli.options import COUNT, Argument, add_options
from ssbench.cli.own_program import import_faster
from ssbench.run.bench_options import RunOptions
from ssbench.store.request_options import RequestOptions

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
    requests = parser.add_argument_group("requests")
    option_table.add_record_options(requests, RequestOptions, OptionGroup.REQUESTS)
    option_table.add_record_options(requests, RunOptions, OptionGroup.REQUESTS, OptionScope.PREPARATION)
    options.add_zmq_arguments(parser, "0.0.0.0, or 127.0.0.1 with --workers")
    fleet = parser.add_argument_group("fleet")
    add_options(fleet, Argument("--workers", COUNT, "start N local workers"))
    option_table.add_record_options(fleet, RunOptions, OptionGroup.FLEET, OptionScope.PREPARATION)
    auth_options.add_auth_arguments(parser)


def run(asked: PrepareAsked) -> ExitCode:
    """Upload the objects; raises SsbenchError where that cannot begin."""
    if asked.options.max_errors is not None:
        raise UsageError("--give-up-after: uploads have no number of errors; a time is expected")
    with import_faster():
        from ssbench.cli.run_scenario import prepare_scenario

    return prepare_scenario(asked)
